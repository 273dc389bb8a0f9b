"""The text formats. The readers, the tests and the docs iterate this list."""

from __future__ import annotations

from segue.wire.text.base import TextFormat
from segue.wire.text.deepseek import DEEPSEEK_TEXT
from segue.wire.text.gemma import GEMMA
from segue.wire.text.hermes import HERMES
from segue.wire.text.kimi import KIMI_TEXT
from segue.wire.text.llama import LLAMA
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.xml_render import XML

__all__ = ["FORMATS"]

FORMATS: tuple[TextFormat, ...] = (HERMES, XML, LLAMA, GEMMA, DEEPSEEK_TEXT, KIMI_TEXT, MISTRAL_TEXT)

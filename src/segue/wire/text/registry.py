"""The text formats. The readers, the tests and the docs iterate this list."""

from __future__ import annotations

from segue.wire.text.base import TextFormat
from segue.wire.text.hermes import HERMES
from segue.wire.text.llama import LLAMA
from segue.wire.text.xml_render import XML

__all__ = ["FORMATS"]

FORMATS: tuple[TextFormat, ...] = (HERMES, XML, LLAMA)

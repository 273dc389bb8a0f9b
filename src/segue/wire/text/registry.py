"""The registry of text tool formats, and the choice of a format by name, by model and by text."""

from __future__ import annotations

import re

from segue.errors import require_string, unknown_name_error
from segue.models import Model, parse_model
from segue.wire.text.deepseek import DEEPSEEK_TEXT
from segue.wire.text.gemma import GEMMA
from segue.wire.text.hermes import HERMES
from segue.wire.text.kimi import KIMI_TEXT
from segue.wire.text.llama import LLAMA
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.text_format import TextFormat
from segue.wire.text.xml import XML, XML_VARIANTS

# Calls without a marker: a list of Python calls; JSON on its own line or in a fence; Gemma's calls without tokens.
_PYTHONIC = re.compile(r"\s*\[\s*[A-Za-z_][\w.]*\(")
_BARE_JSON = re.compile(
    r"""^[ \t]*+(?:[`~]{3,}[\w-]*+\s*+)?+\[?+\s*+\{\s*+["'](?:name|type|id|function)["']\s*+:""", re.MULTILINE
)
_BARE_GEMMA = re.compile(r"^[ \t]*+call:[\w.:/-]++[({]", re.MULTILINE)

# `<function=…>` around JSON is Llama's format, around parameters it is `xml`.
_TAGGED_JSON = re.compile(r"<function=[^<>\s]*+>\s*+\{")

# Models that may write their special tokens into the text instead of making API tool calls, by provider or family.
_LEAKED_FORMATS = {"kimi": "kimi-text", "deepseek": "deepseek-text", "mistral": "mistral-text"}

# In the order of `TEXT_FORMAT_NAMES`.
FORMATS: tuple[TextFormat, ...] = (HERMES, XML, LLAMA, GEMMA, DEEPSEEK_TEXT, KIMI_TEXT, MISTRAL_TEXT)
TEXT_FORMATS: dict[str, TextFormat] = {text_format.name: text_format for text_format in FORMATS}


def find_format(name: str) -> TextFormat:
    require_string(name, "format")
    text_format = TEXT_FORMATS.get(name)
    if text_format is None:
        raise unknown_name_error("text format", name, ("auto", *TEXT_FORMATS), path="format")
    return text_format


def select_render_format(name: str, model: Model) -> TextFormat | None:
    """Return the format in the variant that the model was trained on; None if `name` is not a text format."""
    return XML_VARIANTS.get(model.family, XML) if name == XML.name else TEXT_FORMATS.get(name)


def select_parse_format(name: str, provider: str, model: str | None) -> TextFormat | None:
    """Return the format to extract calls in: the named one; for `auto`, the one that the model is known to leak."""
    if name != "auto":
        return TEXT_FORMATS.get(name)
    family = parse_model(model).family if model else None
    return TEXT_FORMATS.get(_LEAKED_FORMATS.get(provider) or _LEAKED_FORMATS.get(family or "") or "")


def detect_format(text: str) -> TextFormat | None:
    """Return the format whose marker comes first in the text."""
    matches = [
        (position, -len(marker), text_format)
        for text_format in FORMATS
        for marker in text_format.markers
        if (position := text.find(marker)) >= 0
    ]
    if (tagged := _TAGGED_JSON.search(text)) is not None:
        matches.append((tagged.start(), -len(tagged[0]), LLAMA))
    if matches:
        return min(matches, key=lambda candidate: candidate[:2])[2]
    if _PYTHONIC.match(text):
        return LLAMA
    return HERMES if _BARE_JSON.search(text) else GEMMA if _BARE_GEMMA.search(text) else None

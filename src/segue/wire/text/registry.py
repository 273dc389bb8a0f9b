"""All text formats there are, and which of them a text is written in. Tests and docs iterate the list."""

from __future__ import annotations

import re

from segue.errors import InputError, text_argument
from segue.models import Model
from segue.wire.text.base import TextFormat
from segue.wire.text.deepseek import DEEPSEEK_TEXT
from segue.wire.text.gemma import GEMMA
from segue.wire.text.hermes import HERMES
from segue.wire.text.kimi import KIMI_TEXT
from segue.wire.text.llama import LLAMA
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.xml_render import SPELLINGS, XML

__all__ = ["FORMATS", "TEXT_FORMATS", "find_format", "format_of", "format_to_write"]

# A list of calls as Python writes them, which has no marker.
_PYTHONIC = re.compile(r"\s*\[\s*[A-Za-z_][\w.]*\(")

# Tags around JSON are Llama's, around parameters of `xml`; they begin alike.
_TAGGED_JSON = re.compile(r"<function=[^<>\s]*+>\s*+\{")

FORMATS: tuple[TextFormat, ...] = (HERMES, XML, LLAMA, GEMMA, DEEPSEEK_TEXT, KIMI_TEXT, MISTRAL_TEXT)
TEXT_FORMATS: dict[str, TextFormat] = {form.name: form for form in FORMATS}


def find_format(name: str) -> TextFormat:
    text_argument(name, "format")
    form = TEXT_FORMATS.get(name)
    if form is None:
        known = ", ".join(TEXT_FORMATS)
        raise InputError(f"{name!r} is not a known text format; known are auto, {known}", path="format")
    return form


def format_to_write(name: str, model: Model) -> TextFormat | None:
    """A format as the model was taught to write it; None where the name is none of a text format."""
    return SPELLINGS.get(model.family, XML) if name == XML.name else TEXT_FORMATS.get(name)


def format_of(text: str) -> TextFormat | None:
    """The format whose marker stands first in a text."""
    places = [
        (place, -len(marker), form) for form in FORMATS for marker in form.markers if (place := text.find(marker)) >= 0
    ]
    if (tagged := _TAGGED_JSON.search(text)) is not None:
        places.append((tagged.start(), -len(tagged[0]), LLAMA))
    if places:
        return min(places, key=lambda found: found[:2])[2]
    return LLAMA if _PYTHONIC.match(text) else None

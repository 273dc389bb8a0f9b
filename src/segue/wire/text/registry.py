"""All text formats there are, and which of them a text is written in. The readers, the tests and the docs iterate this."""

from __future__ import annotations

from segue.errors import InputError, text_argument
from segue.wire.text.base import TextFormat
from segue.wire.text.hermes import HERMES
from segue.wire.text.llama import LLAMA
from segue.wire.text.xml_render import XML

__all__ = ["FORMATS", "TEXT_FORMATS", "find_format", "format_of"]

FORMATS: tuple[TextFormat, ...] = (HERMES, XML, LLAMA)
TEXT_FORMATS: dict[str, TextFormat] = {form.name: form for form in FORMATS}


def find_format(name: str) -> TextFormat:
    text_argument(name, "format")
    form = TEXT_FORMATS.get(name)
    if form is None:
        known = ", ".join(TEXT_FORMATS)
        raise InputError(f"{name!r} is not a known text format; known are auto, {known}", path="format")
    return form


def format_of(text: str) -> TextFormat | None:
    """The format whose marker stands first in a text."""
    places = [
        (place, -len(marker), form)
        for form in FORMATS
        for marker in form.markers
        if (place := text.find(marker)) >= 0
    ]
    return min(places, key=lambda found: found[:2])[2] if places else None

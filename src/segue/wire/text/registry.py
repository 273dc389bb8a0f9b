"""All text formats there are, by name, and which of them a text is written in."""

from __future__ import annotations

from segue.errors import InputError, text_argument
from segue.wire.text.base import TextFormat
from segue.wire.text.hermes import HERMES

__all__ = ["TEXT_FORMATS", "find_format", "format_of"]

TEXT_FORMATS: dict[str, TextFormat] = {form.name: form for form in (HERMES,)}


def find_format(name: str) -> TextFormat:
    text_argument(name, "format")
    form = TEXT_FORMATS.get(name)
    if form is None:
        raise InputError(
            f"{name!r} is not a known text format; known are auto, {', '.join(TEXT_FORMATS)}", path="format"
        )
    return form


def format_of(text: str) -> TextFormat | None:
    """The format whose marker stands first in a text."""
    places = [
        (place, -len(marker), form)
        for form in TEXT_FORMATS.values()
        for marker in form.markers
        if (place := text.find(marker)) >= 0
    ]
    return min(places, key=lambda found: found[:2])[2] if places else None

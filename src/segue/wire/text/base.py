"""The shape of a text format: one frozen value that reads calls out of a model's words, and writes them into such.

A reader is made of openers and regions. An opener looks at a place in the text where a call may begin; the region
behind it takes the text from there on until it knows what it was: calls, a broken call that stays as it is written, or
just words. No region looks at any character more often than a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.typed import Declared

__all__ = [
    "Answered",
    "Closed",
    "Found",
    "Lost",
    "Match",
    "Opener",
    "Piece",
    "Region",
    "TextFormat",
    "any_of",
    "literal",
]


class Found(Struct, frozen=True, gc=False):
    """A call. `written` is how it stood in the text; `arguments_text` the exact text of arguments that say nothing.

    `twice` is a key that stands twice in it, of which only the last counts.
    """

    name: str
    arguments: Any
    arguments_text: str | None = None
    raw_id: str | None = None
    written: str = ""
    twice: str | None = None


class Lost(Struct, frozen=True, gc=False):
    """What began as a call and is none: it stays visible as it was written, and is reported.

    With `alone` it is reported only where the reply says nothing else.
    """

    written: str
    why: str
    alone: bool = False


Piece: TypeAlias = str | Found | Lost


class Closed(Struct, frozen=True, gc=False):
    """The end of a region: what was in it, and the text behind it, which nobody looked at yet."""

    pieces: list[Piece]
    rest: str


class Region(Protocol):
    """What follows an opener. It is fed everything from the first character of the opener on."""

    def feed(self, text: str) -> Closed | None:
        """More text; None while the region goes on."""
        ...

    def close(self) -> Closed:
        """The text ended inside the region."""
        ...


Match: TypeAlias = Literal["no", "perhaps"] | Callable[[Declared], Region]
"""No call begins here; more text is needed to tell; or the region that does."""


class Opener(Struct, frozen=True):
    """`first` are the signs that it may begin with, `second` those that may follow (any, if none are named).

    `match(text, place, at_line_start, ended)` looks at a place. A line also starts behind blanks.
    """

    first: str
    match: Callable[[str, int, bool, bool], Match]
    second: str = ""


def literal(marker: str, region: Callable[[Declared], Region]) -> Opener:
    """An opener that is always the same string."""

    def match(text: str, place: int, _at_line_start: bool, ended: bool) -> Match:
        if text.startswith(marker, place):
            return region
        short = len(text) - place < len(marker) and not ended
        return "perhaps" if short and marker.startswith(text[place:]) else "no"

    return Opener(marker[0], match, marker[1:2])


def any_of(markers: Sequence[str], region: Callable[[Declared], Region]) -> Opener:
    """An opener that is one of several strings, which all begin with the same sign and are longer than that."""
    whole = re.compile("|".join(map(re.escape, markers)))
    longest = max(map(len, markers))

    def match(text: str, place: int, _at_line_start: bool, ended: bool) -> Match:
        if whole.match(text, place) is not None:
            return region
        if ended or len(text) - place >= longest:
            return "no"
        return "perhaps" if any(marker.startswith(text[place:]) for marker in markers) else "no"

    return Opener(markers[0][0], match, "".join({marker[1] for marker in markers}))


class Answered(Struct, frozen=True, gc=False):
    """A call, by its name and id as they are spelled, and what came back for it, as text."""

    name: str
    id: str
    text: str
    error: bool = False


class TextFormat(Struct, frozen=True):
    """A way to write calls. `provider` is whose model wrote a call, where that is known, else `text`.

    `markers` are strings that tell a text of this format from others. `render_tools` says in a system text which tools
    there are and how to call them, `render_calls` what a model writes to call them, `render_results` what it then
    reads; ids and names come spelled. `one_call` is whether a reply can hold no more than one. `ends` are the tokens
    that its models end a reply with, and servers may leave in the words.
    """

    name: str
    title: str
    openers: tuple[Opener, ...]
    markers: tuple[str, ...]
    render_tools: Callable[[Sequence[Tool]], str]
    render_calls: Callable[[Sequence[ToolCall]], str]
    render_results: Callable[[Sequence[Answered]], str]
    provider: str = "text"
    one_call: bool = False
    ends: tuple[str, ...] = ()

"""A text tool format: one frozen value that parses tool calls from a model's text and renders them as text.

Parsing uses openers and regions. An opener matches a position in the text where a call may begin; its region consumes
the text from there until it is known to be calls, a broken call that stays in the text, or plain text. A region
examines each character a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools

__all__ = [
    "BrokenCall",
    "FoundCall",
    "Match",
    "Opener",
    "Region",
    "RegionEnd",
    "ResultText",
    "Segment",
    "TextFormat",
    "literal_opener",
    "literals_opener",
]


class FoundCall(Struct, frozen=True, gc=False):
    """A tool call. `raw_text` is its text in the reply; `arguments_text` the exact text of arguments that are not JSON.

    `repeated_key` is a key that occurs twice in the arguments; its last value is used.
    """

    name: str
    arguments: Any
    arguments_text: str | None = None
    raw_id: str | None = None
    raw_text: str = ""
    repeated_key: str | None = None


class BrokenCall(Struct, frozen=True, gc=False):
    """Text that begins like a tool call but is not a valid one. It stays in the text and is reported.

    With `report_if_alone` it is reported only if the reply has no other text and no calls.
    """

    raw_text: str
    reason: str
    report_if_alone: bool = False


Segment: TypeAlias = str | FoundCall | BrokenCall


class RegionEnd(Struct, frozen=True, gc=False):
    """The end of a region: its content, and the text after it, which is still to be scanned."""

    segments: list[Segment]
    rest: str


class Region(Protocol):
    """The text that an opener begins. It is fed from the first character of the opener on."""

    def feed(self, text: str) -> RegionEnd | None:
        """Consume more text; None until the region ends."""
        ...

    def close(self) -> RegionEnd:
        """End the region at the end of the text."""
        ...


Match: TypeAlias = Literal["no", "perhaps"] | Callable[[DeclaredTools], Region]
"""No call begins here; more text is needed to decide; or the region that begins here."""


class Opener(Struct, frozen=True):
    """`first_chars` are the characters it may begin with, `second_chars` those that may follow (empty: any).

    `match(text, position, at_line_start, ended)` tests one position. Leading blanks still count as the start of a line.
    """

    first_chars: str
    match: Callable[[str, int, bool, bool], Match]
    second_chars: str = ""


def literal_opener(marker: str, region: Callable[[DeclaredTools], Region]) -> Opener:
    """An opener that is one fixed string."""

    def match(text: str, position: int, _at_line_start: bool, ended: bool) -> Match:
        if text.startswith(marker, position):
            return region
        short = len(text) - position < len(marker) and not ended
        return "perhaps" if short and marker.startswith(text[position:]) else "no"

    return Opener(marker[0], match, marker[1:2])


def literals_opener(markers: Sequence[str], region: Callable[[DeclaredTools], Region]) -> Opener:
    """An opener that is one of several strings of two or more characters with the same first character."""
    pattern = re.compile("|".join(map(re.escape, markers)))
    longest = max(map(len, markers))

    def match(text: str, position: int, _at_line_start: bool, ended: bool) -> Match:
        if pattern.match(text, position) is not None:
            return region
        if ended or len(text) - position >= longest:
            return "no"
        return "perhaps" if any(marker.startswith(text[position:]) for marker in markers) else "no"

    return Opener(markers[0][0], match, "".join({marker[1] for marker in markers}))


class ResultText(Struct, frozen=True, gc=False):
    """A tool result as text, with the projected name and id of its call."""

    name: str
    id: str
    text: str
    error: bool = False


class TextFormat(Struct, frozen=True):
    """A text tool format. `provider` is recorded as the origin of parsed calls; `text` where it is unknown.

    `markers` are strings by which text of this format is detected. `render_tools` renders tool declarations and calling
    instructions for the system text, `render_calls` a model's calls, `render_results` their results; ids and names are
    already projected. `one_call_per_reply`: a reply can hold at most one call. `eos_tokens` are the end-of-sequence
    tokens of the format's models, which some servers leave in the text.
    """

    name: str
    title: str
    openers: tuple[Opener, ...]
    markers: tuple[str, ...]
    render_tools: Callable[[Sequence[Tool]], str]
    render_calls: Callable[[Sequence[ToolCall]], str]
    render_results: Callable[[Sequence[ResultText]], str]
    provider: str = "text"
    one_call_per_reply: bool = False
    eos_tokens: tuple[str, ...] = ()

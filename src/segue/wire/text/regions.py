"""Openers, regions and segments: how a text tool format finds calls in a model's text.

An opener matches a position in the text where a call may begin. The region that it opens consumes the text from there
until it is known to be calls, a broken call that stays in the text, or plain text; it examines each character a bounded
number of times. Segments are the parts of the scanned text: plain text, found calls and broken calls.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from msgspec import Struct

from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.lenient_json import JsonScanner

T = TypeVar("T")
Reading: TypeAlias = Generator[None, None, T]

_SPACE = re.compile(r"\s*+")


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


class Marker(Struct, frozen=True, gc=False):
    """A special token that belongs to no call. It is removed from the text."""

    raw_text: str


class Thought(Struct, frozen=True, gc=False):
    """Reasoning in the middle of the text. `raw_text` includes its tokens."""

    text: str
    raw_text: str


class BrokenCall(Struct, frozen=True, gc=False):
    """Text that begins like a tool call but is not a valid one. It stays in the text and is reported.

    With `report_if_alone` it is reported only if the reply has no other text and no calls.
    """

    raw_text: str
    reason: str
    report_if_alone: bool = False


Segment: TypeAlias = str | FoundCall | BrokenCall | Marker | Thought


class RegionEnd(Struct, frozen=True, gc=False):
    """The end of a region: its content, and the text after it, which is still to be scanned.

    A region without segments is not one: its text is in `rest`, and no call begins at the start of it.
    """

    segments: list[Segment]
    rest: str


class Region(ABC):
    """The text of a call from its opener on. A subclass implements the syntax in `read`.

    Consumed text is kept until `flush_taken`, so that no character is lost. Only short items (a tag, a name) wait for
    more text; everything else is consumed as it arrives, so that no text is examined repeatedly.
    """

    def __init__(self, declared: DeclaredTools) -> None:
        self.declared = declared
        self.ended = False
        self._text = ""
        self._offset = 0
        self._taken: list[str] = []
        self._generator = self.read()

    @abstractmethod
    def read(self) -> Reading[list[Segment]]:
        """Yield when more text is needed; return the segments of the region."""

    def feed(self, text: str) -> RegionEnd | None:
        """Consume text, which begins with the opener; None until the region ends."""
        self._text = self._text[self._offset :] + text
        self._offset = 0
        return self._advance()

    def close(self) -> RegionEnd:
        """End the region at the end of the text."""
        self.ended = True
        return self._advance() or RegionEnd([self.flush_taken()], self._text[self._offset :])

    def _advance(self) -> RegionEnd | None:
        try:
            next(self._generator)
        except StopIteration as stop:
            return RegionEnd(stop.value, self._text[self._offset :])
        return None

    # Methods that return a `Reading` may wait for more text; call them with `yield from`.

    def take(self, length: int) -> None:
        """Consume this many characters of the buffered text."""
        self._taken.append(self._text[self._offset : self._offset + length])
        self._offset += length

    def skip_space(self) -> Reading[None]:
        while True:
            space = _SPACE.match(self._text, self._offset)
            stop = space.end() if space is not None else self._offset
            self.take(stop - self._offset)
            if stop < len(self._text) or self.ended:
                return
            yield

    def peek(self, *markers: str) -> Reading[str]:
        """Return the next marker, or an empty string. No marker may be a prefix of another."""
        longest = max(map(len, markers))
        while True:
            coming = self._text[self._offset : self._offset + longest]
            for marker in markers:
                if coming.startswith(marker):
                    return marker
            if self.ended or not any(marker.startswith(coming) for marker in markers):
                return ""
            yield

    def take_marker(self, *markers: str) -> Reading[str]:
        """Consume the next marker if it is one of these."""
        marker = yield from self.peek(*markers)
        self.take(len(marker))
        return marker

    def at_end(self) -> Reading[bool]:
        """Return whether there is no more text."""
        while self._offset == len(self._text) and not self.ended:
            yield
        return self._offset == len(self._text)

    def peek_char(self) -> Reading[str]:
        """Return the next character, empty at the end."""
        ended = yield from self.at_end()
        return "" if ended else self._text[self._offset]

    def take_match(self, pattern: re.Pattern[str], limit: int = 4096) -> Reading[str]:
        """Consume the longest match here; empty if it exceeds `limit`."""
        while True:
            matched = pattern.match(self._text, self._offset)
            stop = matched.end() if matched is not None else self._offset
            if stop - self._offset > limit:
                return ""
            if stop < len(self._text) or self.ended:
                run = self._text[self._offset : stop]
                self.take(len(run))
                return run
            yield

    def take_until(self, pattern: re.Pattern[str], longest: int) -> Reading[str]:
        """Consume the text before the next match, which has at most `longest` characters, and return the match."""
        while True:
            matched = pattern.search(self._text, self._offset)
            if matched is not None:
                self.take(matched.start() - self._offset)
                return matched[0]
            self.take(max(0, len(self._text) - self._offset - (0 if self.ended else longest - 1)))
            if self.ended:
                return ""
            yield

    def take_json(self, scan: JsonScanner) -> Reading[bool]:
        """Consume a JSON value, or what there is of it; return whether it is complete."""
        while True:
            stop = scan.feed(self._text, self._offset)
            if stop is not None:
                self.take(stop - self._offset)
                return not scan.broken
            self.take(len(self._text) - self._offset)
            if self.ended:
                return False
            yield

    # Consumed text.

    @property
    def checkpoint(self) -> int:
        return len(self._taken)

    def text_since(self, checkpoint: int) -> str:
        return "".join(self._taken[checkpoint:])

    def rewind(self, checkpoint: int) -> None:
        """Unread the text consumed since the checkpoint."""
        self._text = self.text_since(checkpoint) + self._text[self._offset :]
        self._offset = 0
        del self._taken[checkpoint:]

    def reject(self, segments: Sequence[Segment] = ()) -> list[Segment]:
        """Unread everything, including the text of these segments: no call begins here."""
        text = "".join(segment if isinstance(segment, str) else segment.raw_text for segment in segments)
        self._text = text + self.flush_taken() + self._text[self._offset :]
        self._offset = 0
        return []

    def flush_taken(self) -> str:
        """Return the consumed text and clear it."""
        text = "".join(self._taken)
        self._taken.clear()
        return text

    def build_broken_call(self, reason: str, markers: re.Pattern[str] | None = None, start: int = 1) -> BrokenCall:
        """Return the consumed text as a broken call; unread it from the next of these markers on."""
        text = self.flush_taken()
        next_marker = None if markers is None else markers.search(text, start)
        if next_marker is not None:
            self._text = text[next_marker.start() :] + self._text[self._offset :]
            self._offset = 0
            text = text[: next_marker.start()]
        return BrokenCall(text, reason)


Match: TypeAlias = Literal["no", "perhaps"] | Callable[[DeclaredTools], Region]
"""No call begins here; more text is needed to decide; or the region that begins here."""


class Opener(Struct, frozen=True):
    """`first_chars` are the characters it may begin with, `second_chars` those that may follow (empty: any).

    `match(text, position, at_line_start, ended)` tests one position. Leading blanks still count as the start of a line.
    """

    first_chars: str
    match: Callable[[str, int, bool, bool], Match]
    second_chars: str = ""


class ThoughtRegion(Region):
    """Reasoning between two tags in the middle of the text; it may be unterminated at the end."""

    opening: ClassVar[str]
    closing: ClassVar[str]

    def read(self) -> Reading[list[Segment]]:
        yield from self.take_marker(self.opening)
        start = self.checkpoint
        end = yield from self.take_until(re.compile(re.escape(self.closing)), len(self.closing))
        text = self.text_since(start).strip("\n")
        self.take(len(end))
        return [Thought(text, self.flush_taken())]


def literal_opener(marker: str, region: Callable[[DeclaredTools], Region]) -> Opener:
    """Return an opener that is one fixed string."""

    def match(text: str, position: int, _at_line_start: bool, ended: bool) -> Match:
        if text.startswith(marker, position):
            return region
        short = len(text) - position < len(marker) and not ended
        return "perhaps" if short and marker.startswith(text[position:]) else "no"

    return Opener(marker[0], match, marker[1:2])


def literals_opener(markers: Sequence[str], region: Callable[[DeclaredTools], Region]) -> Opener:
    """Return an opener that is one of several strings of two or more characters with the same first character."""
    pattern = re.compile("|".join(map(re.escape, markers)))
    longest = max(map(len, markers))

    def match(text: str, position: int, _at_line_start: bool, ended: bool) -> Match:
        if pattern.match(text, position) is not None:
            return region
        if ended or len(text) - position >= longest:
            return "no"
        return "perhaps" if any(marker.startswith(text[position:]) for marker in markers) else "no"

    return Opener(markers[0][0], match, "".join({marker[1] for marker in markers}))

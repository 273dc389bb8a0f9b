"""A region as a generator: it yields to request more text and returns the segments it found.

Consumed text is kept until `flush_taken`, so that no character is lost. Only short items (a tag, a name) wait for more
text; everything else is consumed as it arrives, so that no text is examined repeatedly.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TypeAlias, TypeVar

from segue.wire.text.base import Closed, Lost, Piece
from segue.wire.text.loose import JsonScan
from segue.wire.text.typed import Declared

__all__ = ["Reader", "Reading"]

T = TypeVar("T")
Reading: TypeAlias = Generator[None, None, T]

_SPACE = re.compile(r"\s*+")


class Reader(ABC):
    """A region whose syntax a subclass implements in `read`."""

    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self.ended = False
        self._text = ""
        self._at = 0
        self._taken: list[str] = []
        self._run = self.read()

    @abstractmethod
    def read(self) -> Reading[list[Piece]]: ...

    def feed(self, text: str) -> Closed | None:
        self._text = self._text[self._at :] + text
        self._at = 0
        return self._go()

    def close(self) -> Closed:
        self.ended = True
        return self._go() or Closed([self.written()], self._text[self._at :])

    def _go(self) -> Closed | None:
        try:
            next(self._run)
        except StopIteration as stop:
            return Closed(stop.value, self._text[self._at :])
        return None

    # Methods that return a `Reading` may wait for more text; call them with `yield from`.

    def take(self, length: int) -> None:
        """Consume so many characters of the buffered text."""
        self._taken.append(self._text[self._at : self._at + length])
        self._at += length

    def space(self) -> Reading[None]:
        while True:
            found = _SPACE.match(self._text, self._at)
            stop = found.end() if found is not None else self._at
            self.take(stop - self._at)
            if stop < len(self._text) or self.ended:
                return
            yield

    def ahead(self, *markers: str) -> Reading[str]:
        """The next marker, or an empty string. No marker may be a prefix of another."""
        longest = max(map(len, markers))
        while True:
            coming = self._text[self._at : self._at + longest]
            for marker in markers:
                if coming.startswith(marker):
                    return marker
            if self.ended or not any(marker.startswith(coming) for marker in markers):
                return ""
            yield

    def one_of(self, *markers: str) -> Reading[str]:
        """Consume the next marker if it is one of these."""
        found = yield from self.ahead(*markers)
        self.take(len(found))
        return found

    def at_end(self) -> Reading[bool]:
        """True if there is no more text."""
        while self._at == len(self._text) and not self.ended:
            yield
        return self._at == len(self._text)

    def sign(self) -> Reading[str]:
        """The next character, empty at the end."""
        ended = yield from self.at_end()
        return "" if ended else self._text[self._at]

    def matching(self, pattern: re.Pattern[str], limit: int = 4096) -> Reading[str]:
        """Consume the longest match here; empty if it exceeds `limit`."""
        while True:
            found = pattern.match(self._text, self._at)
            stop = found.end() if found is not None else self._at
            if stop - self._at > limit:
                return ""
            if stop < len(self._text) or self.ended:
                run = self._text[self._at : stop]
                self.take(len(run))
                return run
            yield

    def until(self, pattern: re.Pattern[str], longest: int) -> Reading[str]:
        """Consume the text before the next match, which has at most `longest` characters, and return the match."""
        while True:
            found = pattern.search(self._text, self._at)
            if found is not None:
                self.take(found.start() - self._at)
                return found[0]
            self.take(max(0, len(self._text) - self._at - (0 if self.ended else longest - 1)))
            if self.ended:
                return ""
            yield

    def json(self, scan: JsonScan) -> Reading[bool]:
        """Consume a JSON value, or what there is of it; return whether it is complete."""
        while True:
            stop = scan.feed(self._text, self._at)
            if stop is not None:
                self.take(stop - self._at)
                return not scan.broken
            self.take(len(self._text) - self._at)
            if self.ended:
                return False
            yield

    # Consumed text.

    @property
    def mark(self) -> int:
        return len(self._taken)

    def since(self, mark: int) -> str:
        return "".join(self._taken[mark:])

    def give_back(self, mark: int) -> None:
        """Unread the text consumed since the checkpoint."""
        self._text = self.since(mark) + self._text[self._at :]
        self._at = 0
        del self._taken[mark:]

    def written(self) -> str:
        """Return the consumed text and clear it."""
        text = "".join(self._taken)
        self._taken.clear()
        return text

    def lost(self, why: str, markers: re.Pattern[str] | None = None, behind: int = 1) -> Lost:
        """Return the consumed text as a broken call; unread it from the next of these markers on."""
        text = self.written()
        found = None if markers is None else markers.search(text, behind)
        if found is not None:
            self._text = text[found.start() :] + self._text[self._at :]
            self._at = 0
            text = text[: found.start()]
        return Lost(text, why)

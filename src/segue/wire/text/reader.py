"""A region told as a straight line: a generator that asks for more text by yielding, and returns the pieces it found.

What was taken is kept until `written` asks for it, so that no character of a region is ever lost. What is waited for
is always short (a tag, a name) and everything else is taken as it comes, so no text is looked at again and again.
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
    """A region. Who makes one says in `read` what it is made of."""

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

    # What a region is read with. Those that give a `Reading` may have to wait, and are asked with `yield from`.

    def take(self, length: int) -> None:
        """Takes so many of the signs that are there."""
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
        """The marker that comes next, or nothing. None of them may be the beginning of another."""
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
        """Takes the marker that comes next, if one of these does."""
        found = yield from self.ahead(*markers)
        self.take(len(found))
        return found

    def at_end(self) -> Reading[bool]:
        """Whether there is no more text."""
        while self._at == len(self._text) and not self.ended:
            yield
        return self._at == len(self._text)

    def sign(self) -> Reading[str]:
        """The next sign, or nothing at the end."""
        ended = yield from self.at_end()
        return "" if ended else self._text[self._at]

    def matching(self, pattern: re.Pattern[str], limit: int = 4096) -> Reading[str]:
        """Takes the longest run that a pattern matches here, if something stands behind it and it is no longer."""
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
        """Takes all before what a pattern finds, which is no longer than that, and gives what it found, or nothing."""
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
        """Takes a value, or what there is of it; whether it is whole."""
        while True:
            stop = scan.feed(self._text, self._at)
            if stop is not None:
                self.take(stop - self._at)
                return not scan.broken
            self.take(len(self._text) - self._at)
            if self.ended:
                return False
            yield

    # What was taken.

    @property
    def mark(self) -> int:
        return len(self._taken)

    def since(self, mark: int) -> str:
        return "".join(self._taken[mark:])

    def give_back(self, mark: int) -> None:
        """What was taken since is still to be read."""
        self._text = self.since(mark) + self._text[self._at :]
        self._at = 0
        del self._taken[mark:]

    def written(self) -> str:
        """All that was taken and not yet asked for."""
        text = "".join(self._taken)
        self._taken.clear()
        return text

    def lost(self, why: str, markers: re.Pattern[str] | None = None, behind: int = 1) -> Lost:
        """What was taken is no call. From the next of these markers on, even in a string, it is still to be read."""
        text = self.written()
        found = None if markers is None else markers.search(text, behind)
        if found is not None:
            self._text = text[found.start() :] + self._text[self._at :]
            self._at = 0
            text = text[: found.start()]
        return Lost(text, why)

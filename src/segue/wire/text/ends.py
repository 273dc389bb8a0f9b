"""Tokens that end a reply, left in its words: at the very end, or right behind the calls, they are none."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["EndTokens"]

# No more than this is held back to see what comes behind it.
_HELD = 512


class EndTokens:
    """Words in, words out. What may turn out to be the end of the reply is held back until more comes."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._leading = re.compile(rf"(?:\s*+(?:{'|'.join(map(re.escape, tokens))}))++") if tokens else None
        self._held = ""
        self._behind_call = False
        self._last = ""
        self._opened = False
        self.dropped = False

    def feed(self, words: str) -> str:
        if self._leading is None:
            return words
        self._opened = self._opened or "<s>" in self._last + words
        self._last = (self._last + words)[-2:]
        words, self._held = self._held + words, ""
        stop = self._tail(words, ended=False)
        if self._behind_call:
            if len(words) <= _HELD and not words[:stop].strip():
                self._held = words
                return ""
            words = self._without_leading(words)
            stop = self._tail(words, ended=False)
        self._held = words[stop:]
        return words[:stop]

    def call(self) -> str:
        """A call follows: gives what was held back."""
        words, self._held = self._without_leading(self._held), ""
        self._behind_call = True
        return words

    def end(self) -> str:
        """The words are over: gives what was held back and is none of these tokens."""
        words, self._held = self._without_leading(self._held), ""
        stop = self._tail(words, ended=True)
        self.dropped = self.dropped or stop < len(words)
        return words[:stop]

    def _without_leading(self, words: str) -> str:
        if not self._behind_call or self._leading is None:
            return words
        self._behind_call = False
        found = self._leading.match(words)
        self.dropped = self.dropped or found is not None
        return words if found is None else words[found.end() :]

    def _tail(self, words: str, *, ended: bool) -> int:
        """Where the tokens begin that the words end with; the last may have come in part."""
        stop = len(words) - (0 if ended else self._half(words))
        while len(words) - stop < _HELD:
            bare = words[max(0, stop - _HELD) : stop].rstrip()
            token = next((one for one in self._tokens if bare.endswith(one)), None)
            # What is struck out in HTML ends like this too.
            if token is None or (token == "</s>" and self._opened):
                break
            stop = len(words[:stop].rstrip()) - len(token)
        return stop

    def _half(self, words: str) -> int:
        longest = 0
        for token in self._tokens:
            place = words.find(token[0], max(0, len(words) - len(token) + 1))
            while place >= 0 and not token.startswith(words[place:]):
                place = words.find(token[0], place + 1)
            longest = max(longest, len(words) - place if place >= 0 else 0)
        return longest

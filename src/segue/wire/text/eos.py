"""Removes end-of-sequence tokens that a server left in the text: at the very end, or right after the calls."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["EosFilter"]

# At most this much text is held back.
_MAX_HELD = 512


class EosFilter:
    """Filters text. Text that may be the end of the reply is held back until more text arrives."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._leading = re.compile(rf"(?:\s*+(?:{'|'.join(map(re.escape, tokens))}))++") if tokens else None
        self._held = ""
        self._after_call = False
        self._last_chars = ""
        self._has_s_tag = False
        self.dropped = False

    def feed(self, text: str) -> str:
        if self._leading is None:
            return text
        self._has_s_tag = self._has_s_tag or "<s>" in self._last_chars + text
        self._last_chars = (self._last_chars + text)[-2:]
        text, self._held = self._held + text, ""
        stop = self._find_eos(text, ended=False)
        if self._after_call:
            if len(text) <= _MAX_HELD and not text[:stop].strip():
                self._held = text
                return ""
            text = self._strip_leading_tokens(text)
            stop = self._find_eos(text, ended=False)
        self._held = text[stop:]
        return text[:stop]

    def flush_before_call(self) -> str:
        """Return the text held back; a call follows."""
        text, self._held = self._strip_leading_tokens(self._held), ""
        self._after_call = True
        return text

    def flush(self) -> str:
        """Return the text held back, without EOS tokens; the text has ended."""
        text, self._held = self._strip_leading_tokens(self._held), ""
        stop = self._find_eos(text, ended=True)
        self.dropped = self.dropped or stop < len(text)
        return text[:stop]

    def _strip_leading_tokens(self, text: str) -> str:
        if not self._after_call or self._leading is None:
            return text
        self._after_call = False
        leading = self._leading.match(text)
        self.dropped = self.dropped or leading is not None
        return text if leading is None else text[leading.end() :]

    def _find_eos(self, text: str, *, ended: bool) -> int:
        """The position of the EOS tokens at the end of the text; the last one may be incomplete."""
        stop = len(text) - (0 if ended else self._partial_token_length(text))
        while len(text) - stop < _MAX_HELD:
            bare = text[max(0, stop - _MAX_HELD) : stop].rstrip()
            token = next((candidate for candidate in self._tokens if bare.endswith(candidate)), None)
            # `<s>…</s>` is also HTML for struck-out text.
            if token is None or (token == "</s>" and self._has_s_tag):
                break
            stop = len(text[:stop].rstrip()) - len(token)
        return stop

    def _partial_token_length(self, text: str) -> int:
        longest = 0
        for token in self._tokens:
            start = text.find(token[0], max(0, len(text) - len(token) + 1))
            while start >= 0 and not token.startswith(text[start:]):
                start = text.find(token[0], start + 1)
            longest = max(longest, len(text) - start if start >= 0 else 0)
        return longest

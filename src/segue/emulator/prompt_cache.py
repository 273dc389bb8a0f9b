"""The prompt cache of a provider: how much of a prompt, from its beginning, was in an earlier request."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

__all__ = ["PromptCache", "estimate_tokens"]

_MAX_ENTRIES = 20_000


def estimate_tokens(text: str) -> int:
    """Estimates the number of tokens: four characters each."""
    return (len(text) + 3) // 4


class PromptCache:
    """Prefixes of the prompts of each account and model; the oldest are evicted."""

    def __init__(self) -> None:
        self._seen: dict[bytes, None] = {}

    def lookup_and_add(self, owner: tuple[str, str], head: Any, entries: Sequence[Any]) -> tuple[int, int, int]:
        """Returns the number of cached entries, of cached tokens, and of all tokens; adds the prompt to the cache."""
        link = sha256(repr(owner).encode() + _encode(head)).digest()
        count = known = 0
        is_cached = link in self._seen
        whole = cached = len(_encode(head)) // 4
        cached = cached if is_cached else 0
        self._add(link)
        for entry in entries:
            text = _encode(entry)
            link = sha256(link + text).digest()
            is_cached = is_cached and link in self._seen
            whole += len(text) // 4
            if is_cached:
                count += 1
                known = whole
            self._add(link)
        return count, max(known, cached), max(whole, 1)

    def _add(self, link: bytes) -> None:
        self._seen.pop(link, None)
        self._seen[link] = None
        if len(self._seen) > _MAX_ENTRIES:
            del self._seen[next(iter(self._seen))]


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")

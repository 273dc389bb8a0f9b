"""The prompt cache of a provider: how much of a prompt, from its beginning, was in an earlier request."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

_MAX_ENTRIES = 20_000


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens: four characters each."""
    return (len(text) + 3) // 4


class PromptCache:
    """Prefixes of the prompts of each account and model; the oldest are evicted."""

    def __init__(self) -> None:
        self._seen: dict[bytes, None] = {}

    def lookup_and_add(self, owner: tuple[str, str], head: Any, entries: Sequence[Any]) -> tuple[int, int, int]:
        """Return the number of cached entries, of cached tokens, and of all tokens; adds the prompt to the cache."""
        prefix_hash = sha256(repr(owner).encode() + _encode(head)).digest()
        cached_entries = entry_tokens = 0
        is_cached = prefix_hash in self._seen
        total_tokens = len(_encode(head)) // 4
        head_tokens = total_tokens if is_cached else 0
        self._add(prefix_hash)
        for entry in entries:
            text = _encode(entry)
            prefix_hash = sha256(prefix_hash + text).digest()
            is_cached = is_cached and prefix_hash in self._seen
            total_tokens += len(text) // 4
            if is_cached:
                cached_entries += 1
                entry_tokens = total_tokens
            self._add(prefix_hash)
        return cached_entries, max(entry_tokens, head_tokens), max(total_tokens, 1)

    def _add(self, prefix_hash: bytes) -> None:
        self._seen.pop(prefix_hash, None)
        self._seen[prefix_hash] = None
        if len(self._seen) > _MAX_ENTRIES:
            del self._seen[next(iter(self._seen))]


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")

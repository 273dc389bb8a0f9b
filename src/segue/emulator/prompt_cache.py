"""The prompt cache of a provider: how much of a prompt, from its beginning, was in an earlier request.

Most providers cache every prompt; Claude's providers only what a request marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

_MAX_ENTRIES = 20_000


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens: four characters each."""
    return (len(text) + 3) // 4


class PromptPart(NamedTuple):
    """A part of a prompt; `is_marked` if the prompt up to here is to be cached."""

    content: Any
    is_marked: bool


class _Prefixes:
    """Hashes of prompt prefixes; the oldest are evicted."""

    def __init__(self) -> None:
        self._seen: dict[bytes, None] = {}

    def __contains__(self, prefix_hash: bytes) -> bool:
        return prefix_hash in self._seen

    def add(self, prefix_hash: bytes) -> None:
        self._seen.pop(prefix_hash, None)
        self._seen[prefix_hash] = None
        if len(self._seen) > _MAX_ENTRIES:
            del self._seen[next(iter(self._seen))]


class MarkedPromptCache:
    """Prefixes that were marked to be cached, by account and model."""

    def __init__(self) -> None:
        self._written = _Prefixes()

    def lookup_and_add(self, owner: tuple[str, str], parts: Sequence[PromptPart], minimum: int) -> tuple[int, int]:
        """Return the tokens read from the cache and written to it; adds the marked prefixes of at least `minimum`."""
        prefix_hash, tokens = sha256(repr(owner).encode()).digest(), 0
        prefixes: list[tuple[bytes, int, bool]] = []
        for part in parts:
            text = _encode(part.content)
            prefix_hash = sha256(prefix_hash + text).digest()
            tokens += len(text) // 4
            prefixes.append((prefix_hash, tokens, part.is_marked))
        marks = [index for index, (_, total, is_marked) in enumerate(prefixes) if is_marked and total >= minimum]
        if not marks:
            return 0, 0
        candidates = prefixes[: marks[-1] + 1]
        read = max((total for found_hash, total, _ in candidates if found_hash in self._written), default=0)
        for index in marks:
            self._written.add(prefixes[index][0])
        return read, prefixes[marks[-1]][1] - read


class PromptCache:
    """Prefixes of the prompts of each account and model; the oldest are evicted."""

    def __init__(self) -> None:
        self._seen = _Prefixes()

    def lookup_and_add(self, owner: tuple[str, str], head: Any, entries: Sequence[Any]) -> tuple[int, int, int]:
        """Return the number of cached entries, of cached tokens, and of all tokens; adds the prompt to the cache."""
        prefix_hash = sha256(repr(owner).encode() + _encode(head)).digest()
        cached_entries = entry_tokens = 0
        is_cached = prefix_hash in self._seen
        total_tokens = len(_encode(head)) // 4
        head_tokens = total_tokens if is_cached else 0
        self._seen.add(prefix_hash)
        for entry in entries:
            text = _encode(entry)
            prefix_hash = sha256(prefix_hash + text).digest()
            is_cached = is_cached and prefix_hash in self._seen
            total_tokens += len(text) // 4
            if is_cached:
                cached_entries += 1
                entry_tokens = total_tokens
            self._seen.add(prefix_hash)
        return cached_entries, max(entry_tokens, head_tokens), max(total_tokens, 1)


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")

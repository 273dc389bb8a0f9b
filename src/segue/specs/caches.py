"""Loads `caches.toml`: how long and from which size on the vendors' prompt caches keep a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct

# Other rows of the catalogue on the same platform.
_PLATFORMS = {"openai-chat": "openai", "azure": "openai", "bedrock": "anthropic"}


class CacheRule(Struct, frozen=True):
    """A row; the file documents its columns."""

    models: str = ""
    minimum: int = 0
    unit: int = 1
    seconds: float | None = None
    longest: float | None = None
    marked: bool = False

    def round(self, tokens: int) -> int:
        """Return how much of a prefix of this many tokens is cached."""
        return 0 if tokens < self.minimum else tokens - tokens % self.unit


@cache
def _load_tables() -> Mapping[str, Any]:
    # Imported here, because only predictions need them.
    import tomllib
    from importlib import resources

    return tomllib.loads(resources.files("segue.specs").joinpath("caches.toml").read_text("utf-8"))


@lru_cache(maxsize=128)
def find_cache_rule(provider: str, model: str) -> CacheRule | None:
    """Return the rule of a model of a provider in the catalogue; None if none is known."""
    if provider == "bedrock" and "claude" not in model:
        return None
    rows = _load_tables().get(_PLATFORMS.get(provider, provider), ())
    found = next((row for row in rows if re.search(row["models"], model)), None)
    return CacheRule(**found) if found is not None else None

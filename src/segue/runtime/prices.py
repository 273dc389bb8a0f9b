"""The cost of a reply: by configured prices, else by the table of public prices that is part of segue.

If the package genai-prices is installed (extra `prices`), its prices are used in place of the table: they may be newer.
Nothing is fetched.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from segue.bridge.providers import Provider
from segue.canonical.request import Usage
from segue.specs.prices import SOURCES, Prices, Tiers, find_model, find_prices, parse_tiers, read_tiers

_MINUTE = 60


def cost(usage: Usage, provider: str, model: str, row: Provider | None = None, *, local: bool = False) -> float | None:
    """Return the cost in dollars; None if unknown. For `local` providers only configured prices count."""
    tiers = find_tiers(provider, model, row, local=local)
    return None if tiers is None else find_prices(tiers, usage.input).cost(usage)


def find_tiers(provider: str, model: str, row: Provider | None = None, *, local: bool = False) -> Tiers | None:
    """Return the prices of a model now; None if unknown. For `local` providers only configured prices count."""
    configured = row.find_model(model) if row is not None else None
    if configured is not None and configured.input is not None and configured.output is not None:
        prices = Prices(
            configured.input,
            configured.output,
            configured.cache_read,
            configured.cache_write,
            configured.cache_write_1h,
        )
        return ((0, prices),)
    return None if local else _find_public_tiers(provider, model, int(time.time()) // _MINUTE)


@lru_cache(maxsize=1024)
def _find_public_tiers(provider: str, model: str, minute: int) -> Tiers | None:
    """Return the prices of a model in this minute since 1970: some differ by the hour, or begin on a day."""
    now = datetime.fromtimestamp(minute * _MINUTE, UTC)
    package = _load_package() if provider in SOURCES else None
    if package is not None:
        try:
            found = package.calc_price(
                package.Usage(), model, provider_id=SOURCES[provider], genai_request_timestamp=now
            )
            rows = read_tiers(found.model_price)
        except (LookupError, ValueError):
            # Unknown provider or model.
            rows = None
        if rows is not None:
            return parse_tiers(rows)
    priced = find_model(provider, model)
    return None if priced is None else priced.tiers_at(now.hour * 60 + now.minute)


@cache
def _load_package() -> Any:
    try:
        import genai_prices
    except ImportError:
        return None
    return genai_prices

"""The cost of a reply: by configured prices, else by the table of public prices that is part of segue.

If the package genai-prices is installed (extra `prices`), its prices are used in place of the table: they may be newer.
Nothing is fetched.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from segue.bridge.providers import Provider
from segue.canonical.request import Usage
from segue.specs.prices import SOURCES, Prices, find_model


def cost(usage: Usage, provider: str, model: str, row: Provider | None = None, *, local: bool = False) -> float | None:
    """Return the cost in dollars; None if unknown. For `local` providers only configured prices count."""
    configured = row.find_model(model) if row is not None else None
    if configured is not None and configured.input is not None and configured.output is not None:
        prices = Prices(configured.input, configured.output, configured.cache_read, configured.cache_write)
        return cost_by(prices, usage)
    if local:
        return None
    calculate = _load_calculator() if provider in SOURCES else None
    found = None if calculate is None else calculate(usage, SOURCES[provider], model)
    if found is not None:
        return found
    priced = find_model(provider, model)
    if priced is None:
        return None
    now = datetime.now(UTC)
    return cost_by(priced.prices_for(usage.input, now.hour * 60 + now.minute), usage)


def cost_by(prices: Prices, usage: Usage) -> float:
    """Return the cost of a usage in dollars."""
    return prices.cost(
        input=usage.input, output=usage.output, cache_read=usage.cache_read, cache_write=usage.cache_write
    )


@cache
def _load_calculator() -> Any:
    try:
        import genai_prices
    except ImportError:
        return None

    def calculate(usage: Usage, provider: str, model: str) -> float | None:
        priced = genai_prices.Usage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
        )
        try:
            return float(genai_prices.calc_price(priced, model, provider_id=provider).total_price)
        except (LookupError, ValueError):
            # Unknown provider or model, or inconsistent usage numbers.
            return None

    return calculate

"""The cost of a reply: by configured prices, else by the package genai-prices if it is installed (extra `prices`).

The prices are part of the installed package; nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from segue.bridge.providers import Model, catalogue
from segue.canonical.request import Usage

_MILLION = 1_000_000
_GENAI_PRICES_NAMES = {
    "openai-chat": "openai",
    "gemini": "google",
    "moonshot": "moonshotai",
    "bedrock": "aws",
}


def cost(
    usage: Usage, provider: str, model: str, config: Mapping[str, Any] | None = None, *, local: bool = False
) -> float | None:
    """Return the cost in dollars; None if unknown. For custom and `local` providers only configured prices count."""
    row = catalogue(config).get(provider)
    configured = row.find_model(model) if row is not None else None
    if configured is not None and configured.input is not None and configured.output is not None:
        return _configured_cost(usage, configured)
    if local or provider not in catalogue():
        return None
    calculate = _load_calculator()
    return None if calculate is None else calculate(usage, _GENAI_PRICES_NAMES.get(provider, provider), model)


def _configured_cost(usage: Usage, price: Model) -> float:
    """Without a cache price, cached input costs as much as other input."""
    input_price = price.input or 0.0
    read_price = input_price if price.cache_read is None else price.cache_read
    write_price = input_price if price.cache_write is None else price.cache_write
    uncached = max(0, usage.input - usage.cache_read - usage.cache_write)
    cached = usage.cache_read * read_price + usage.cache_write * write_price
    return (uncached * input_price + cached + usage.output * (price.output or 0.0)) / _MILLION


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

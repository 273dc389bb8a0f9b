"""Write `src/segue/specs/prices.json`: prices and context sizes of models, from genai-prices (`make prices`).

A row is the model's id, a pattern of its names, its context size, and its prices by the size of the prompt: from how
many tokens on, then dollars per million tokens of input, output, cache reads, cache writes and, if there is one, of
writes for an hour. Prices for hours of the day follow: the first and the last minute in UTC, and the prices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime  # noqa: TID251  prices change with time
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from genai_prices import types
from genai_prices.data import providers

from segue.specs.prices import SOURCES, read_tiers

FILE = Path(__file__).parent.parent / "src" / "segue" / "specs" / "prices.json"


def price_table() -> str:
    """Return the text of the file, one line for each model."""
    by_id = {provider.id: provider for provider in providers}
    names = dict.fromkeys(SOURCES.values())
    fallbacks = {name: found for name in names if (found := by_id[name].fallback_model_providers)}
    names |= dict.fromkeys(other for others in fallbacks.values() for other in others)
    source = f"genai-prices {metadata.version('genai-prices')}"
    lines = [f'"source":{_encode(source)}', f'"fallbacks":{_encode(fallbacks)}']
    tables = [f"{_encode(name)}:[\n" + ",\n".join(map(_encode, _iter_rows(by_id[name]))) + "\n]" for name in names]
    return "{" + ",\n".join([*lines, '"providers":{\n' + ",\n".join(tables) + "}"]) + "}\n"


def _iter_rows(provider: types.Provider) -> Iterator[list[Any]]:
    for model in provider.models:
        by_time = (
            model.prices
            if isinstance(model.prices, list)
            else [types.ConditionalPrice(constraint=None, prices=model.prices)]
        )
        usual = [price.prices for price in by_time if _is_active(price.constraint)][-1:]
        tiers = read_tiers(usual[0]) if usual else None
        if tiers is None:
            continue
        hours = [
            [_minute(price.constraint.start_time), _minute(price.constraint.end_time), read_tiers(price.prices)]
            for price in by_time
            if isinstance(price.constraint, types.TimeOfDateConstraint)
        ]
        yield [model.id, _pattern(model.match), model.context_window, tiers, *([hours] if hours else [])]


def _is_active(constraint: Any) -> bool:
    """Return whether prices are the usual ones today."""
    if isinstance(constraint, types.StartDateConstraint):
        return constraint.active(datetime.now(UTC))
    return constraint is None


def _minute(time: Any) -> int:
    return time.hour * 60 + time.minute


def _pattern(clause: Any) -> str:
    """Return a regular expression for the names that a clause matches, in lower case."""
    match clause:
        case types.ClauseStartsWith(starts_with=text):
            return f"^{re.escape(text.lower())}"
        case types.ClauseEndsWith(ends_with=text):
            return f"{re.escape(text.lower())}$"
        case types.ClauseContains(contains=text):
            return re.escape(text.lower())
        case types.ClauseEquals(equals=text):
            return f"^{re.escape(text.lower())}$"
        case types.ClauseRegex(regex=text):
            return f"(?:{text})"
        case types.ClauseOr(or_=clauses):
            return "|".join(map(_pattern, clauses))
        case types.ClauseAnd(and_=clauses):
            return "^" + "".join(f"(?=.*?(?:{_pattern(each).removeprefix('^')}))" for each in clauses)
        case _:
            raise TypeError(f"unknown clause {clause!r}")


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    FILE.write_text(price_table(), "utf-8")

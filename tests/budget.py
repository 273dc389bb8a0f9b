"""How many examples each property gets: a percentage of `TOTAL`; and which rows of a large matrix are tried.

`make test` shows that every property holds on some histories, the same ones each time; `make soak` looks for new ones.
A property that runs once for each of `items` parameters divides its percentage among them, so a new wire costs little.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

SOAK = bool(os.environ.get("SEGUE_SOAK"))
TOTAL = 100_000 if SOAK else int(os.environ.get("SEGUE_EXAMPLES", "400"))
_FEWEST, _FEWEST_FOR_ITEM = 25, 5


def examples(percent: float, *, items: int = 1) -> settings:
    """Return the settings of a property that gets this percentage of `TOTAL`, divided among `items` parameters."""
    count = max(round(TOTAL * percent / 100 / items), _FEWEST // items, _FEWEST_FOR_ITEM)
    return settings(max_examples=count, derandomize=not SOAK)


def sample(rows: Iterable[T], share: int, *, start: int = 0) -> Iterator[T]:
    """Return one of `share` rows, all of them in `make soak`.

    With another `start` for each parameter of a test, every row is tried with some of the parameters.
    """
    return islice(rows, None) if SOAK else islice(rows, start % share, None, share)


def sample_pairs(members: Iterable[T], *, start: int = 0) -> list[tuple[T, T]]:
    """Return a third of the ordered pairs, all of them in `make soak`.

    Each member is the first of some pairs and the second of some. The pairs of `start` 0, 1 and 2 are all pairs.
    """
    numbered = product(enumerate(members), repeat=2)
    return [(first, second) for (row, first), (column, second) in numbered if SOAK or (row + column + start) % 3 == 0]

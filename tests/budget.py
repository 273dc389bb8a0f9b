"""How many examples each property gets: a share of one total, so that soak is 100,000 in all and not per property.

`TOTAL` is sized for a minute on two cores. A property that runs once for each of `items` parameters divides its
percent among them, so a new wire costs no more time. `make test` takes the same examples each time, soak new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

SOAK = bool(os.environ.get("SEGUE_SOAK"))
TOTAL = 100_000 if SOAK else int(os.environ.get("SEGUE_EXAMPLES", "8000"))


def examples(percent: float, *, items: int = 1) -> settings:
    """The settings of a property that may use this percent of all examples."""
    return settings(max_examples=max(10, round(TOTAL * percent / 100 / items)), derandomize=not SOAK)

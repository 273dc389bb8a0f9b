"""Cached strategies: creating a strategy for each draw costs more than the draw.

They generate and shrink exactly as without the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from hypothesis import strategies as st

Value = TypeVar("Value")
Made = TypeVar("Made", bound=st.SearchStrategy[Any])

_MOST = 4096


def cached_strategy(make: Callable[..., Made]) -> Callable[..., Made]:
    """`make`, once for each list of arguments. They are known by identity: some are equal and not the same, as 1 and
    True are, and some have no hash."""
    held: dict[tuple[int, ...], tuple[tuple[Any, ...], Made]] = {}

    @wraps(make)
    def found(*arguments: Any) -> Made:
        key = tuple(map(id, arguments))
        if key not in held:
            if len(held) >= _MOST:
                held.clear()
            # The arguments are held as well: as long as they live, nothing else has their identity.
            held[key] = (arguments, make(*arguments))
        return held[key][1]

    return found


@cached_strategy
def _sampled(*options: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(options)


def cached_sampled_from(options: Sequence[Value]) -> st.SearchStrategy[Value]:
    """`st.sampled_from`, once for each list of options."""
    return _sampled(*options)

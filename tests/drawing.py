"""Decisions drawn from a few strategies that stay: to make a new one costs more than to draw from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

Value = TypeVar("Value")


@cache
def between(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most)


def pick(draw: Callable[[st.SearchStrategy[int]], Any], options: Sequence[Value]) -> Value:
    """One of them, the first where it does not matter; as `st.sampled_from`."""
    return options[draw(between(0, len(options) - 1))]

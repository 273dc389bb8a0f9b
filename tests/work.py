"""Work counted in lines of segue that were run, so that the growth of a cost is tested without a clock."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class WorkLimitError(AssertionError):
    """More work than allowed."""


def count_work(action: Callable[[], object], limit: int | None = None) -> int:
    """Run the action and return the number of lines run; raise `WorkLimitError` above the limit."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if limit is not None and count > limit:
                raise WorkLimitError(f"more than {limit} lines were run")
        return line

    before = sys.gettrace()
    # The collector would run finalizers of other tests' objects, whose lines do not count.
    was_enabled = gc.isenabled()
    gc.disable()
    sys.settrace(line)
    try:
        action()
    finally:
        sys.settrace(before)
        if was_enabled:
            gc.enable()
    return count

"""`ConversionThreads`: run the steps of an exchange with a large body in a thread, so that others are served.

What relays share may be used in all threads: the search for a route and the memory of conversations have locks, and all
else is done by the event loop: entries of a store, credentials, limits, metrics. A relay is used by one step at a time.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

_Value = TypeVar("_Value")
# Each thread takes turns with the event loop, and the smaller steps of one exchange need not wait for those of another.
_THREADS = 2


class ConversionThreads:
    """The threads of a gateway. A body is large if it has more than `large_body` bytes."""

    def __init__(self, large_body: int) -> None:
        self._large_body = large_body
        self._threads = ThreadPoolExecutor(_THREADS, "segue conversion")
        self._lock = threading.Lock()
        self._running = 0
        self._collects = False

    def open(self, size: int) -> StepRunner:
        """Return the runner for the steps of an exchange with a body of this size."""
        return StepRunner(self if size > self._large_body else None)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, step: Callable[[], _Value]) -> _Value:
        """Run a step in a thread, without the garbage collector: it would stop all threads to search a large body."""

        def work() -> _Value:
            with self._without_collector():
                return step()

        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @contextmanager
    def _without_collector(self) -> Generator[None]:
        with self._lock:
            if not self._running:
                self._collects = gc.isenabled()
                gc.disable()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running and self._collects:
                    gc.enable()


class StepRunner:
    """Runs the steps of one exchange, one after the other: here, or in the threads of `conversions`."""

    def __init__(self, conversions: ConversionThreads | None) -> None:
        self._conversions = conversions
        self.is_running = False
        """Whether a step runs: the relay can't be used then."""

    async def run(self, step: Callable[[], _Value]) -> _Value:
        if self._conversions is None:
            return step()
        self.is_running = True
        try:
            return await self._conversions.run(step)
        finally:
            self.is_running = False

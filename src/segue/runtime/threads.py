"""Threads for blocking work: tools, host lookups, conversions of pages. Idle threads are used again.

A tool never waits for a thread, because the tool that has one may wait for it: a thread is started if none is idle. So
there are as many threads as tools that run at once, which `Limits.parallel` limits. Work that waits for no other work
(`run_in_thread`) shares `_MAX_SHARED` threads. Work that was given up and hangs keeps its thread outside of these
limits, so it does not hold up other work; while `_MAX_ABANDONED` of such threads run, no work is started. Threads are
daemons: a process ends without waiting for them.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeAlias, TypeVar

from segue.runtime.tool_types import ToolError

_Parameters = ParamSpec("_Parameters")
_Value = TypeVar("_Value")
_OnEnd: TypeAlias = Callable[[Any, BaseException | None], None]
"""Called once, in the thread, when work returned or raised: with its return value, or its exception."""

_MAX_IDLE = 8
_MAX_SHARED = 16
_MAX_ABANDONED = 64
_IDLE_NAME = "segue idle"


class AbandonedWorkError(ToolError):
    """Too much work that was given up is still running."""


class Work:
    """A function that runs in a thread, or waits for one."""

    def __init__(
        self, pool: ThreadPool, name: str, function: Callable[[], Any], on_end: _OnEnd, *, can_wait: bool
    ) -> None:
        self.name = name
        self.function = function
        self.on_end = on_end
        self.can_wait = can_wait
        self.has_ended = False
        self.is_abandoned = False
        self._pool = pool

    def abandon(self) -> None:
        """Give the work up: from now on its thread is not one of those in use."""
        self._pool.abandon(self)


class _Worker:
    """A thread and the queue of its next work."""

    def __init__(self, pool: ThreadPool) -> None:
        self.queue: SimpleQueue[Work] = SimpleQueue()
        self._pool = pool
        self._thread = threading.Thread(target=self._run, name=_IDLE_NAME, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        work = self.queue.get()
        self._thread.name = work.name
        value, error = None, None
        try:
            value = work.function()
        except BaseException as raised:  # noqa: BLE001 - also SystemExit
            error = raised
        self._thread.name = _IDLE_NAME
        # Released first, so that work that follows from the end finds this thread.
        is_kept = self._pool.release(self, work)
        work.on_end(value, error)
        return is_kept


class ThreadPool:
    """Threads that run work. All methods can be called in any thread."""

    def __init__(
        self, *, max_idle: int = _MAX_IDLE, max_shared: int = _MAX_SHARED, max_abandoned: int = _MAX_ABANDONED
    ) -> None:
        self._max_idle = max_idle
        self._max_shared = max_shared
        self._max_abandoned = max_abandoned
        self.forget_threads()

    def forget_threads(self) -> None:
        """Begin without threads; a forked process has none of those of its parent."""
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._waiting: deque[Work] = deque()
        self._shared = 0
        self._abandoned = 0

    def start(self, name: str, function: Callable[[], Any], on_end: _OnEnd, *, can_wait: bool = False) -> Work:
        """Run a function in a thread, which has this name meanwhile; `AbandonedWorkError` if too many threads hang."""
        work = Work(self, name, function, on_end, can_wait=can_wait)
        with self._lock:
            if self._abandoned >= self._max_abandoned:
                raise AbandonedWorkError(
                    f"{self._abandoned} earlier calls that were given up are still running; try again when some ended"
                )
            if can_wait:
                self._waiting.append(work)
                self._start_waiting()
            else:
                self._assign(work)
        return work

    def abandon(self, work: Work) -> None:
        with self._lock:
            if work.has_ended or work.is_abandoned:
                return
            if work in self._waiting:
                self._waiting.remove(work)
                return
            work.is_abandoned = True
            self._abandoned += 1
            self._shared -= work.can_wait
            self._start_waiting()

    def release(self, worker: _Worker, work: Work) -> bool:
        """Take a worker back whose work has ended; return whether it is kept."""
        with self._lock:
            work.has_ended = True
            if work.is_abandoned:
                self._abandoned -= 1
            else:
                self._shared -= work.can_wait
            is_kept = bool(self._waiting) or len(self._idle) < self._max_idle
            if is_kept:
                self._idle.append(worker)
            self._start_waiting()
            return is_kept

    def make_worker(self) -> _Worker:
        return _Worker(self)

    def _start_waiting(self) -> None:
        while self._waiting and self._shared < self._max_shared:
            self._shared += 1
            self._assign(self._waiting.popleft())

    def _assign(self, work: Work) -> None:
        worker = self._idle.pop() if self._idle else self.make_worker()
        worker.queue.put(work)


POOL = ThreadPool()
"""The threads of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget_threads)


async def run_in_thread(
    function: Callable[_Parameters, _Value], /, *values: _Parameters.args, **named: _Parameters.kwargs
) -> _Value:
    """Run a function in a thread of the pool and return its value. If the caller is cancelled, it is given up.

    The function must not wait for other work of the pool.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Value] = loop.create_future()

    def set_outcome(value: _Value, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            # A future can't raise StopIteration.
            future.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)

    def on_end(value: _Value, error: BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(set_outcome, value, error)
        except RuntimeError:
            # The loop is closed.
            return

    call = partial(contextvars.copy_context().run, function, *values, **named)
    work = POOL.start("segue work", call, on_end, can_wait=True)
    try:
        return await future
    except asyncio.CancelledError:
        work.abandon()
        raise

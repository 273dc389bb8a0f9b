"""How one tool is run, and how it is given up.

A blocking tool has a daemon thread of its own: one that never ends neither keeps the process from leaving nor takes
anybody's place. Any other tool is a task. Whatever a tool raises comes back as a value, on the loop's thread; the loop
itself never sees it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from segue.runtime.tooling import Arguments, Context, Tool

__all__ = ["Execution", "Over"]

Over: TypeAlias = Callable[[object, BaseException | None], None]
"""Told once, on the loop's thread, when a tool has really ended: what it gave back, or what it raised."""


class Execution:
    """A tool at work. `task` is None for one that has a thread."""

    def __init__(
        self, tool: Tool, arguments: Arguments, context: Context, over: Over, variables: contextvars.Context
    ) -> None:
        self._tool = tool
        self._arguments = arguments
        self._context = context
        self._over = over
        self._loop = asyncio.get_running_loop()
        # Whoever hears of the end is not within the call any more.
        self._outside = contextvars.copy_context()
        self.task: asyncio.Task[None] | None = None
        if tool.blocking:
            name = f"tool {tool.name}"
            threading.Thread(target=variables.run, args=(self._in_thread,), name=name, daemon=True).start()
        else:
            self.task = self._loop.create_task(self._in_loop(), context=variables)

    def give_up(self) -> None:
        """Nobody waits for it any more. It is told; whether it listens is its own affair."""
        self._context.cancelled.set()
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def _in_thread(self) -> None:
        value, error = None, None
        try:
            value = self._tool.run(self._arguments, self._context)
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value))
        except BaseException as raised:  # noqa: BLE001 - also one that would end the process
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._over, value, error, context=self._outside)
        except RuntimeError:
            # The loop is closed: there is nobody left to hear of it.
            return

    async def _in_loop(self) -> None:
        value, error = None, None
        try:
            value = cast("Any", self._tool.run(self._arguments, self._context))
            if inspect.isawaitable(value):
                value = await value
        except (KeyboardInterrupt, GeneratorExit):
            # Somebody at the keyboard, or the end of the loop: neither is the tool's.
            raise
        except BaseException as raised:  # noqa: BLE001 - also one that would end the process
            error = raised
        self._outside.run(self._over, value, error)


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value

"""`Execution`: one running tool, which can be cancelled.

A blocking tool runs in its own daemon thread, so that a tool that hangs neither blocks process exit nor occupies a
shared pool. Other tools run as tasks. Exceptions of a tool are passed to the `on_end` callback on the loop's thread;
they never propagate to the loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from segue.runtime.tool_types import Arguments, Context, Tool

__all__ = ["Execution", "OnEnd"]

OnEnd: TypeAlias = Callable[[object, BaseException | None], None]
"""Called once, on the loop's thread, when a tool returned or raised: with its return value, or its exception."""


class Execution:
    """A running tool. `task` is None for a tool that runs in a thread."""

    def __init__(
        self, tool: Tool, arguments: Arguments, context: Context, on_end: OnEnd, variables: contextvars.Context
    ) -> None:
        self._tool = tool
        self._arguments = arguments
        self._context = context
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        # The end callback runs outside of the call's context.
        self._outer_context = contextvars.copy_context()
        self.task: asyncio.Task[None] | None = None
        if tool.blocking:
            name = f"tool {tool.name}"
            threading.Thread(target=variables.run, args=(self._in_thread,), name=name, daemon=True).start()
        else:
            self.task = self._loop.create_task(self._in_loop(), context=variables)

    def cancel(self) -> None:
        """Signals the tool to stop, without waiting; a tool in a thread may ignore it."""
        self._context.cancelled.set()
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def _in_thread(self) -> None:
        value, error = None, None
        try:
            value = self._tool.run(self._arguments, self._context)
            if inspect.isawaitable(value):
                value = asyncio.run(_await(value))
        except BaseException as raised:  # noqa: BLE001 - also SystemExit
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._on_end, value, error, context=self._outer_context)
        except RuntimeError:
            # The loop is closed.
            return

    async def _in_loop(self) -> None:
        value, error = None, None
        try:
            value = cast("Any", self._tool.run(self._arguments, self._context))
            if inspect.isawaitable(value):
                value = await value
        except (KeyboardInterrupt, GeneratorExit):
            # Ctrl-C, or the end of the loop: not exceptions of the tool.
            raise
        except BaseException as raised:  # noqa: BLE001 - also SystemExit
            error = raised
        self._outer_context.run(self._on_end, value, error)


async def _await(value: Awaitable[Any]) -> Any:
    return await value

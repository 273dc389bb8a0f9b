"""The state of the scheduler: a `Job` for each tool call, a `Batch` of jobs, the `Execution` of a running tool."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from segue.canonical.blocks import ToolCall
from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import Tool as Declaration
from segue.errors import InputError
from segue.runtime.events import CallEnded
from segue.runtime.locks import Ticket
from segue.runtime.outputs import Output, last_line
from segue.runtime.threads import POOL, Work
from segue.runtime.tool_types import Approver, Arguments, Context, Tool

_OnEnd: TypeAlias = Callable[[object, BaseException | None], None]
"""Called once, on the loop's thread, when a tool returned or raised: with its return value, or its exception."""


class Execution:
    """A running tool, which can be cancelled. `task` is None for a tool that runs in a thread.

    A blocking tool runs in a thread of the pool, other tools run as tasks. Exceptions of a tool are passed to the
    `on_end` callback on the loop's thread; they never propagate to the loop.
    """

    def __init__(
        self, tool: Tool, arguments: Arguments, context: Context, on_end: _OnEnd, variables: contextvars.Context
    ) -> None:
        self._tool = tool
        self._arguments = arguments
        self._context = context
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        # The end callback runs outside of the call's context.
        self._outer_context = contextvars.copy_context()
        self.task: asyncio.Task[None] | None = None
        self._work: Work | None = None
        if tool.blocking:
            self._work = POOL.start(f"tool {tool.name}", partial(variables.run, self._in_thread), self._on_thread_end)
        else:
            self.task = self._loop.create_task(self._in_loop(), context=variables)
            self.task.add_done_callback(self._on_task_done, context=self._outer_context)

    def cancel(self) -> None:
        """Signal the tool to stop, without waiting; a tool in a thread may ignore it."""
        self._context.cancelled.set()
        if self._work is not None:
            self._work.abandon()
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def _in_thread(self) -> object:
        value = self._tool.run(self._arguments, self._context)
        return asyncio.run(_await(value)) if inspect.isawaitable(value) else value

    def _on_thread_end(self, value: object, error: BaseException | None) -> None:
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

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step runs none of `_in_loop`.
        if task.cancelled():
            self._on_end(None, asyncio.CancelledError())


async def _await(value: Awaitable[Any]) -> Any:
    return await value


class ToolRegistry(Protocol):
    """The part of a toolbox that the scheduler uses."""

    @property
    def folder(self) -> Path: ...
    @property
    def declarations(self) -> tuple[Declaration, ...]: ...
    def find(self, name: str) -> Tool | None: ...
    def validate_arguments(self, tool: Tool, arguments: Arguments) -> str | None: ...
    async def check_permission(self, tool: Tool, arguments: Arguments, approve: Approver | None) -> str | None: ...


class Job:
    """A tool call in a batch. `has_outcome` is set before its outcome is recorded, `has_ended` when its tool ends.

    A cancelled or timed-out call has its outcome before its tool ends.
    """

    def __init__(self, call: ToolCall, batch: Batch) -> None:
        self.call = call
        self.batch = batch
        self.tool: Tool | None = None
        self.arguments: Arguments = {}
        self.output_limit = 0
        self.timeout = 0.0
        self.paths: tuple[str, ...] = ()
        self.ticket: Ticket | None = None
        self.runner: asyncio.Task[None] | None = None
        self.execution: Execution | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.has_slot = False
        self.started_at: float | None = None
        self.has_outcome = False
        self.ended_event: CallEnded | None = None
        self.has_ended = False
        self.progress_line: str | None = None
        self.progress_scheduled = False


class Batch:
    """Calls that run together: those of one reply, or a single call (`is_single`).

    `callers` are the jobs whose tools made this call. `late_results` arrived after the outcome of their call and before
    the batch ended.
    """

    def __init__(
        self, owner: object, calls: Sequence[ToolCall], *, is_single: bool, cut_off_text: str | None = None
    ) -> None:
        self.owner = owner
        self.cut_off_text = cut_off_text
        self.jobs = [Job(call, self) for call in calls]
        self.is_single = is_single
        self.callers = [job for job in active_jobs.get() if job.batch.owner is owner and not job.has_ended]
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.approval_lock = asyncio.Lock()
        self.variables = contextvars.copy_context()
        self.is_started = False
        self.is_closed = False
        self.error: Exception | None = None
        self.late_results: list[tuple[Job, Output]] = []


active_jobs: contextvars.ContextVar[tuple[Job, ...]] = contextvars.ContextVar("segue_calls", default=())
"""The jobs within whose tools the current code runs, outermost first."""


def validate_arguments(job: Job, tools: ToolRegistry) -> str | None:
    """Parse and validate a call's arguments; return an error text for the model, or None."""
    call = job.call
    if call.broken:
        return job.batch.cut_off_text or "the call was cut off before it was complete, and did not run; send it again"
    if job.tool is None:
        names = ", ".join(tool.name for tool in tools.declarations) or "none"
        return f"unknown tool {call.name!r}; known tools: {names}"
    if call.arguments_text is not None and call.arguments_text.strip():
        return f"the arguments are not valid JSON, and the tool did not run: {_json_error(call.arguments_text)}"
    if not isinstance(call.arguments, Mapping):
        return f"the arguments must be a JSON object, not {_describe_type(call.arguments)}; the tool did not run"
    # A copy: a tool may modify it, the recorded call must not change.
    job.arguments = cast("dict[str, Any]", msgspec.json.decode(encode_json(cast("object", call.arguments))))
    return tools.validate_arguments(job.tool, job.arguments)


def summarize_call(job: Job) -> str:
    """Return the tool's summary of a call, or an empty text."""
    if job.tool is None or not isinstance(job.call.arguments, Mapping):
        return ""
    try:
        return last_line(job.tool.summarize(cast("Arguments", job.call.arguments)))
    except Exception:  # noqa: BLE001 - the arguments are not validated yet
        return ""


def _json_error(text: str) -> str:
    try:
        parse_json_object(text)
    except InputError as error:
        return str(error)
    return "something in it can't be read"


def _describe_type(value: object) -> str:
    kinds = {"list": "a list", "tuple": "a list", "str": "text", "NoneType": "null", "bool": "a boolean"}
    return kinds.get(type(value).__name__, "a number")

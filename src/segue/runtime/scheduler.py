"""`Scheduler`: runs the tool calls of a session; each call gets exactly one outcome.

All calls of a reply are one batch. Batches run one after the other in submission order; the calls of a batch run in
parallel, at most `Limits.parallel` of them. A call is validated, approved, waits for the locks on the files that it
writes, then for a free slot, and runs; only running counts for its timeout.

Every outcome (return value, exception, timeout, cancellation) goes through `_finish`, on the loop's thread and without
awaiting; only the first outcome of a call counts. It is recorded in the conversation log before its event is emitted,
and the log adds results to the history in call order. Results are truncated to a limit that is fixed before the call
runs, so they depend neither on timing nor on other calls. A result that arrives after the outcome of its call is late:
it is recorded as evidence when the batch has ended.

A call that is cancelled or times out frees its slot at once, but its file locks only when its tool has ended. A call is
never started twice, nor if another process may have started it. If the log can't be written, all tools of the batch
are cancelled, no further outcome is recorded, and `run_batch` or `run_one` raises the error.

A tool may run a single call with `run_one`, outside of the queue and the limit, under its own file locks. It can't run
a batch on its own scheduler, because that batch would wait for the batch that the tool is part of.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.errors import InputError, SegueError, StoreError
from segue.render.constraints import TEXTS
from segue.runtime.conversation_log import ConversationLog
from segue.runtime.events import (
    ApprovalRequested,
    CallEnded,
    CallProgress,
    CallQueued,
    CallStarted,
    Event,
    LateResult,
    Outcome,
)
from segue.runtime.jobs import Batch, Execution, Job, ToolRegistry, active_jobs, summarize_call, validate_arguments
from segue.runtime.locks import PathLockedError, PathLocks, resolve_paths
from segue.runtime.outputs import Output, format_error, last_line, make_output, split_budget, truncate
from segue.runtime.tool_types import ApprovalDecision, ApprovalRequest, Approver, ChangeRecorder, Context, Tool

# Seconds between progress events of a tool, and to wait for cancelled tools on close.
_PROGRESS_INTERVAL = 0.1
_CLOSE_TIMEOUT = 1.0
# Default timeout of a call in seconds, and extra time for a tool that ends itself at its time limit.
_DEFAULT_TIMEOUT = 120.0
_EXTRA_TIME = 3.0
_CANCELLED = Output(TEXTS.cancelled, TEXTS.cancelled, error=True)


class Limits(Struct, frozen=True):
    """Limits of a session. `parallel` is the maximum number of calls that run at once.

    `output` is the maximum number of characters of all results of a batch.
    `timeout` is the maximum time of a call in seconds; if None, the tool's own timeout applies, or two minutes.
    `max_turns` is the maximum number of turns in an exchange.
    `stream_retries` is how often a broken reply is requested again.
    """

    parallel: int = 8
    timeout: float | None = None
    output: int = 60_000
    max_turns: int = 100
    stream_retries: int = 2


_DEFAULT_LIMITS = Limits()


class Scheduler:
    """Runs tool calls. All methods must be called on the loop's thread."""

    def __init__(
        self,
        log: ConversationLog,
        toolbox: ToolRegistry,
        *,
        emit: Callable[[Event], None],
        approve: Approver | None = None,
        limits: Limits = _DEFAULT_LIMITS,
        clock: Callable[[], float] = time.monotonic,
        record_changes: Callable[[str, str], ChangeRecorder] | None = None,
    ) -> None:
        self._record_changes = record_changes
        self._log = log
        self._toolbox = toolbox
        self._on_event = emit
        self._approver = approve
        self._limits = limits
        self._clock = clock
        self._queue: deque[Batch] = deque()
        self._single_batches: list[Batch] = []
        self._seen_ids: set[str] = set()
        self._slots = asyncio.Semaphore(max(1, limits.parallel))
        self._locks = PathLocks()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    # ----------------------------------------------------------------------------------------------------------- public

    async def run_batch(self, calls: Sequence[ToolCall], *, cut_off_text: str | None = None) -> list[CallEnded]:
        """Run the calls of a reply and return their outcomes in call order. Batches are queued.

        `cut_off_text` is the result of calls that are incomplete.
        """
        if any(job.batch.owner is self and not job.has_ended for job in active_jobs.get()):
            raise InputError("a tool can't run a batch on the scheduler that runs it; use `run_one`")
        batch = self._make_batch(calls, is_single=False, cut_off_text=cut_off_text)
        self._queue.append(batch)
        self._emit_queued(batch)
        self._start_next()
        return await self._wait_for_outcomes(batch)

    async def cancel_calls(self, calls: Sequence[ToolCall]) -> list[CallEnded]:
        """Record calls as cancelled without running them, and return their outcomes."""
        batch = self._make_batch(calls, is_single=True)
        batch.is_started = True
        self._emit_queued(batch)
        self._cancel_batch(batch)
        return await self._wait_for_outcomes(batch)

    async def run_one(self, call: ToolCall) -> CallEnded:
        """Run a single call at once, outside of the queue and the limit, and return its outcome.

        If a tool makes the call, it is cancelled when that tool ends.
        """
        if any(job.batch.owner is self and job.has_outcome and not job.has_ended for job in active_jobs.get()):
            raise InputError("the calling tool call was cancelled")
        batch = self._make_batch([call], is_single=True)
        self._single_batches.append(batch)
        self._emit_queued(batch)
        if not batch.is_closed:
            self._start_batch(batch)
        return (await self._wait_for_outcomes(batch))[0]

    def cancel(self) -> None:
        """Cancel all running and queued batches: each call without an outcome becomes cancelled."""
        batches = [*self._single_batches, *self._queue]
        for batch in batches:
            batch.is_started = True
        for batch in batches:
            self._cancel_batch(batch)

    async def close(self) -> None:
        """Cancel everything. Results that arrive later are no longer recorded."""
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_TIMEOUT)
        self._is_closed = True

    # ---------------------------------------------------------------------------------------------------------- batches

    def _make_batch(self, calls: Sequence[ToolCall], *, is_single: bool, cut_off_text: str | None = None) -> Batch:
        """Create a batch; `InputError` if any of its calls may not be run."""
        if self._is_closed:
            raise InputError("the scheduler is closed")
        seen: set[str] = set()
        for index, call in enumerate(calls):
            path = f"calls[{index}]"
            if call.kind == "hosted":
                raise InputError(f"{call.id} is run by the provider", path=path)
            if call.id in seen or call.id in self._seen_ids:
                raise InputError(f"{call.id} was scheduled before", path=path)
            if not self._log.is_runnable(call):
                raise InputError(f"{call.id} is not pending, or another process may have started it", path=path)
            seen.add(call.id)
        self._seen_ids |= seen
        batch = Batch(self, calls, is_single=is_single, cut_off_text=cut_off_text)
        for job in batch.jobs:
            job.tool = self._toolbox.find(job.call.name)
        return batch

    def _emit_queued(self, batch: Batch) -> None:
        """Emit `CallQueued` for each call; a listener may cancel at once."""
        for job in batch.jobs:
            call = job.call
            self._emit(
                job, CallQueued(id=call.id, tool=call.name, arguments=call.arguments, summary=summarize_call(job))
            )

    async def _wait_for_outcomes(self, batch: Batch) -> list[CallEnded]:
        try:
            await asyncio.wait((batch.done,))
        except asyncio.CancelledError:
            batch.is_started = True
            self._cancel_batch(batch)
            raise
        if batch.error is not None:
            raise batch.error
        return [job.ended_event for job in batch.jobs if job.ended_event is not None]

    def _start_next(self) -> None:
        """Start the first batch in the queue, if it is not running yet."""
        if self._queue and not self._queue[0].is_started:
            self._start_batch(self._queue[0])

    def _start_batch(self, batch: Batch) -> None:
        batch.is_started = True
        even_share = self._limits.output // max(1, len(batch.jobs))
        errors = {
            job: truncate(text, even_share)[0] for job in batch.jobs if (text := self._validate_call(job)) is not None
        }
        running = [job for job in batch.jobs if job not in errors]
        share = split_budget(self._limits.output, len(running), errors.values())
        tickets = [job.ticket for job in batch.callers if job.ticket is not None]
        for job in running:
            job.output_limit = share
            job.ticket = self._locks.request(job.call.name, job.paths, callers=tickets)
            job.runner = self._track_task(batch.loop.create_task(self._run_job(job), context=batch.variables.copy()))
        for job, text in errors.items():
            self._finish(job, "error", Output(text, text, error=True))
        if not batch.jobs:
            self._close_batch(batch)

    def _cancel_batch(self, batch: Batch) -> None:
        for job in batch.jobs:
            self._finish(job, "cancelled", _CANCELLED)
        self._close_batch(batch)

    def _fail_batch(self, batch: Batch, error: Exception) -> None:
        """Cancel all tools of the batch without recording outcomes: the log can't be written."""
        batch.error = batch.error or error
        for job in batch.jobs:
            if not job.has_outcome:
                job.has_outcome = True
                self._stop_job(job)
        self._close_batch(batch)

    def _close_batch(self, batch: Batch) -> None:
        """End the batch: every call has its outcome, or writing the log failed."""
        if batch.is_closed:
            return
        batch.is_closed = True
        if batch.error is None:
            try:
                self._log.flush(*(job.call for job in batch.jobs))
            except Exception as error:  # noqa: BLE001 - raised by `_wait_for_outcomes`
                batch.error = error
        if batch in self._queue:
            self._queue.remove(batch)
        if batch in self._single_batches:
            self._single_batches.remove(batch)
        for job, output in batch.late_results:
            self._record_late(job, output)
        batch.done.set_result(None)
        batch.loop.call_soon(self._start_next)

    # --------------------------------------------------------------------------------------------------------- one call

    def _validate_call(self, job: Job) -> str | None:
        """Validate a call and set its timeout and paths; return an error text for the model, or None."""
        try:
            error_text = validate_arguments(job, self._toolbox)
            if error_text is None and job.tool is not None:
                job.timeout = self._timeout_for(job.tool)
                job.paths = resolve_paths(job.tool.writes(job.arguments, self._toolbox.folder))
            return error_text
        except Exception as error:  # noqa: BLE001 - third-party code
            return format_error(error)

    def _timeout_for(self, tool: Tool) -> float:
        timeout, limit = tool.timeout, self._limits.timeout
        if limit is None or tool.timeout_mode == "own":
            return _DEFAULT_TIMEOUT if timeout is None else timeout
        if tool.timeout_mode == "inside":
            # The tool ends itself at the limit, and returns its output so far.
            return limit + _EXTRA_TIME
        return limit if timeout is None else min(timeout, limit)

    async def _run_job(self, job: Job) -> None:
        """Wait for approval, file locks and a slot, then start the tool; stop as soon as the call has an outcome."""
        tool, ticket = job.tool, job.ticket
        assert tool is not None
        assert ticket is not None
        try:
            denied = await self._toolbox.check_permission(tool, job.arguments, self._make_approver(job))
            if denied is not None:
                self._finish(job, "denied", make_output(denied, job.output_limit))
            if not job.has_outcome:
                await ticket.wait(job.timeout)
            if not job.has_outcome and not job.batch.is_single:
                await self._slots.acquire()
                job.has_slot = True
            if not job.has_outcome:
                self._start_tool(job, tool)
        except asyncio.CancelledError:
            # Only event-loop shutdown reaches this without an outcome.
            self._finish(job, "cancelled", _CANCELLED)
            raise
        except PathLockedError as stuck:
            text = f"{stuck}; nothing was written, try again later or write elsewhere"
            self._finish(job, "error", make_output(text, job.output_limit))
        except Exception as error:  # noqa: BLE001 - third-party code
            self._finish(job, "error", make_output(format_error(error), job.output_limit))
        finally:
            if job.has_outcome:
                self._release_locks(job)

    def _make_approver(self, job: Job) -> Approver | None:
        """Return the approver for a call: one request of a batch at a time, and none once the call has an outcome."""
        approver = self._approver
        if approver is None:
            return None

        async def approve(request: ApprovalRequest) -> ApprovalDecision:
            async with job.batch.approval_lock:
                if job.has_outcome:
                    return "no"
                title, detail = request.title, request.detail
                self._emit(job, ApprovalRequested(id=job.call.id, tool=job.call.name, title=title, detail=detail))
                with self._paused_timer(job):
                    return await approver(request)

        return approve

    def _start_tool(self, job: Job, tool: Tool) -> None:
        try:
            if not self._log.is_runnable(job.call):
                raise StoreError(
                    f"the lease of the conversation was lost; {job.call.id} was not started", cause="leased"
                )
        except Exception as error:  # noqa: BLE001 - raised by `_wait_for_outcomes`
            self._fail_batch(job.batch, error)
            return
        job.started_at = self._clock()
        self._emit(job, CallStarted(id=job.call.id, tool=job.call.name))
        if job.has_outcome:
            return
        variables = contextvars.copy_context()
        variables.run(active_jobs.set, (*active_jobs.get(), job))
        context = Context(
            self._toolbox.folder,
            call_id=job.call.id,
            progress=self._make_progress(job),
            time_limit=self._limits.timeout,
            approve=self._make_approver(job),
        )
        if self._record_changes is not None:
            context.changes = self._record_changes(job.call.id, job.call.name)
        job.timer = job.batch.loop.call_later(job.timeout, self._time_out, job)

        def on_end(value: object, error: BaseException | None) -> None:
            self._on_tool_end(job, value, error)

        job.execution = Execution(tool, job.arguments, context, on_end, variables)
        if job.execution.task is not None:
            self._track_task(job.execution.task)

    @contextmanager
    def _paused_timer(self, job: Job) -> Generator[None]:
        """Do not count the time that the user needs for an answer while the tool runs."""
        is_running = job.timer is not None
        if job.timer is not None:
            job.timer.cancel()
        try:
            yield
        finally:
            if is_running and not job.has_outcome:
                job.timer = job.batch.loop.call_later(job.timeout, self._time_out, job)

    def _time_out(self, job: Job) -> None:
        self._finish(job, "timed-out", make_output(f"timed out after {job.timeout:g} seconds", job.output_limit))

    def _on_tool_end(self, job: Job, value: object, error: BaseException | None) -> None:
        """Called when the tool returned or raised: records the outcome of the call, or a late result."""
        job.has_ended = True
        if isinstance(error, asyncio.CancelledError):
            self._finish(job, "cancelled", _CANCELLED)
            self._release_locks(job)
            return
        try:
            output = make_output(value if error is None else format_error(error), job.output_limit)
        except Exception as fault:  # noqa: BLE001 - third-party object
            output, error = make_output(f"the result can't be read: {format_error(fault)}", job.output_limit), fault
        if error is not None:
            output = msgspec.structs.replace(output, error=True)
        if job.has_outcome:
            self._release_locks(job)
            if job.batch.is_closed:
                self._record_late(job, output)
            else:
                job.batch.late_results.append((job, output))
        else:
            self._finish(job, "error" if output.error else "complete", output)

    # --------------------------------------------------------------------------------------------------------- outcomes

    def _finish(self, job: Job, outcome: Outcome, output: Output) -> None:
        """Record and emit the outcome of a call; all but the first are ignored."""
        if job.has_outcome:
            return
        job.has_outcome = True
        self._stop_job(job)
        try:
            outcome, output = self._record_outcome(job, outcome, output)
        except Exception as error:  # noqa: BLE001 - raised by `_wait_for_outcomes`
            self._fail_batch(job.batch, error)
            return
        job.ended_event = CallEnded(
            id=job.call.id,
            tool=job.call.name,
            outcome=outcome,
            text=output.text,
            seconds=self._clock() - job.started_at if job.started_at is not None else 0.0,
            cut=output.omitted,
        )
        self._emit(job, job.ended_event)
        if all(other.ended_event is not None for other in job.batch.jobs):
            self._close_batch(job.batch)

    def _record_outcome(self, job: Job, outcome: Outcome, output: Output) -> tuple[Outcome, Output]:
        """Record the outcome, and return what was recorded: an error if the result can't be stored."""
        error = outcome != "complete"
        try:
            if outcome == "cancelled":
                self._log.record_result(job.call, outcome="cancelled")
            elif outcome == "denied":
                self._log.record_result(job.call, output.text, outcome="denied")
            else:
                self._log.record_result(job.call, output.content, error=error)
        except InputError as fault:
            outcome, output = (
                "error",
                make_output(f"the result can't be stored: {format_error(fault)}", job.output_limit),
            )
            self._log.record_result(job.call, output.content, error=True)
        return outcome, output

    def _stop_job(self, job: Job) -> None:
        """Stop a call that has its outcome: free its slot, and its file locks when its tool has ended."""
        if job.timer is not None:
            job.timer.cancel()
        if job.has_slot:
            job.has_slot = False
            self._slots.release()
        if job.execution is not None and not job.has_ended:
            if job.ticket is not None:
                job.ticket.abandon()
            job.execution.cancel()
            for batch in [batch for batch in self._single_batches if job in batch.callers]:
                self._cancel_batch(batch)
            return
        if job.runner is not None and job.execution is None and job.runner is not _current_task():
            job.runner.cancel()
        self._release_locks(job)

    def _release_locks(self, job: Job) -> None:
        """Release the file locks, and the slot if the call got one after its outcome."""
        if job.has_slot:
            job.has_slot = False
            self._slots.release()
        if job.ticket is not None and (job.execution is None or job.has_ended):
            job.ticket.release()

    def _record_late(self, job: Job, output: Output) -> None:
        """Record a late result as evidence; a failure to record it is ignored."""
        if self._is_closed:
            return
        try:
            self._log.add_result(job.call, output.content, error=output.error)
        except SegueError:
            return
        self._emit(job, LateResult(id=job.call.id, tool=job.call.name))

    # ----------------------------------------------------------------------------------------------------------- events

    def _make_progress(self, job: Job) -> Callable[[str], None]:
        """Return the progress callback of a tool, for any thread: emits the latest line at intervals."""

        def progress(text: str) -> None:
            job.progress_line = last_line(text) or job.progress_line
            if not job.progress_scheduled and not job.has_outcome:
                job.progress_scheduled = True
                try:
                    job.batch.loop.call_soon_threadsafe(self._emit_progress, job, context=job.batch.variables)
                except RuntimeError:
                    # The loop is closed.
                    return

        return progress

    def _emit_progress(self, job: Job) -> None:
        job.progress_scheduled = False
        line, job.progress_line = job.progress_line, None
        if line is None or job.has_outcome:
            return
        job.progress_scheduled = True
        self._emit(job, CallProgress(id=job.call.id, tool=job.call.name, text=line))
        job.batch.loop.call_later(_PROGRESS_INTERVAL, self._emit_progress, job)

    def _emit(self, job: Job, event: Event) -> None:
        """Emit an event; an exception of the listener goes to the loop's exception handler, not to the call."""
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - third-party code
            job.batch.loop.call_exception_handler({"message": "a listener of the scheduler failed", "exception": error})

    def _track_task(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        """Keep a reference to a task: the loop alone holds only a weak one."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None

"""`Scheduler`: runs the tool calls of a session; each call gets exactly one outcome.

All calls of a reply are one batch. Batches run one after the other in submission order; the calls of a batch run in
parallel, at most `Limits.parallel` of them. A call is validated, approved, waits for the locks on the files that it
writes, then for a free slot, and runs; only running counts for its timeout.

Every outcome (return value, exception, timeout, cancellation) goes through `_finish`, on the loop's thread and without
awaiting; the first one counts. It is recorded in the conversation log before it is emitted, and the log publishes
results in call order. Results are truncated to a share that is fixed before the call runs, so they depend neither on
timing nor on other calls. A result that arrives after its call's outcome is late: it is recorded as evidence when the
batch has ended.

Abandoning a call frees its slot at once, but its file locks only when its tool really ends. No call is started twice,
nor one that another process may have started. If the log can't be written, all tools of the batch are cancelled,
nothing more of it is recorded, and the error is raised to the waiter.

A tool may run a single call with `run_one`, outside of the queue and the limit, under its own file locks. It can't run
a batch on its own scheduler: that would wait for the batch that the tool is part of.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.errors import InputError, SegueError, StoreError
from segue.render.demands import TEXTS
from segue.runtime.book import Book
from segue.runtime.events import Asks, CallBegan, CallEnded, CallProgress, CallQueued, Event, Late, Outcome
from segue.runtime.execution import Execution
from segue.runtime.jobs import Batch, Job, Tools, making, read_arguments, shown_of
from segue.runtime.locks import Locks, StuckError, resolved
from segue.runtime.outputs import Output, cut, error_words, one_line, output_of, share_of
from segue.runtime.tooling import Answer, Approve, Context, Question, Tool

__all__ = ["STANDARD", "Limits", "Scheduler"]

# Seconds between progress events of a tool, and to wait for cancelled tools on close.
_PAUSE = 0.1
_GRACE = 1.0
# Default timeout of a call in seconds, and extra time for a tool that ends itself at its time limit.
_USUAL_TIME = 120.0
_LEAVE = 3.0
_CANCELLED = Output(TEXTS.cancelled, TEXTS.cancelled, error=True)


class Limits(Struct, frozen=True):
    """Limits of a session. `output` is the total number of characters for the results of a batch.

    `timeout` is the maximum time of a call in seconds; without it the tool's own timeout counts, or two minutes.
    `steps` is the maximum number of turns in an exchange, `stream_retries` how often a broken reply is requested again.
    """

    parallel: int = 8
    timeout: float | None = None
    output: int = 60_000
    steps: int = 100
    reasks: int = 2


STANDARD = Limits()


class Scheduler:
    """Runs tool calls. All methods must be called on the loop's thread."""

    def __init__(
        self,
        book: Book,
        toolbox: Tools,
        *,
        emit: Callable[[Event], None],
        approve: Approve | None = None,
        limits: Limits = STANDARD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._book = book
        self._toolbox = toolbox
        self._listener = emit
        self._approver = approve
        self._limits = limits
        self._clock = clock
        self._queue: deque[Batch] = deque()
        self._alone: list[Batch] = []
        self._taken: set[str] = set()
        self._places = asyncio.Semaphore(max(1, limits.parallel))
        self._locks = Locks()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    # ----------------------------------------------------------------------------------------------------------- public

    async def run_batch(self, calls: Sequence[ToolCall]) -> list[CallEnded]:
        """Runs the calls of a reply and returns their outcomes in call order. Batches are queued."""
        if any(job.batch.owner is self and not job.over for job in making.get()):
            raise InputError("a tool can't run a batch on the scheduler that runs it; use `run_one`")
        batch = self._admitted(calls, alone=False)
        self._queue.append(batch)
        self._tell_queued(batch)
        self._next()
        return await self._outcomes(batch)

    async def give_up(self, calls: Sequence[ToolCall]) -> list[CallEnded]:
        """Records calls as cancelled without running them, and returns their outcomes."""
        batch = self._admitted(calls, alone=True)
        batch.is_started = True
        self._tell_queued(batch)
        self._cancel(batch)
        return await self._outcomes(batch)

    async def run_one(self, call: ToolCall) -> CallEnded:
        """Runs a single call at once, outside of the queue and the limit, and returns its outcome.

        If a tool makes the call, it is cancelled when that tool ends.
        """
        if any(job.batch.owner is self and job.settled and not job.over for job in making.get()):
            raise InputError("the calling tool call was cancelled")
        batch = self._admitted([call], alone=True)
        self._alone.append(batch)
        self._tell_queued(batch)
        if not batch.is_closed:
            self._start(batch)
        return (await self._outcomes(batch))[0]

    def cancel(self) -> None:
        """Cancels all running and queued batches: each call without an outcome becomes cancelled."""
        batches = [*self._alone, *self._queue]
        for batch in batches:
            batch.is_started = True
        for batch in batches:
            self._cancel(batch)

    async def close(self) -> None:
        """Cancels everything. Results that arrive later are no longer recorded."""
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_GRACE)
        self._is_closed = True

    # ---------------------------------------------------------------------------------------------------------- batches

    def _admitted(self, calls: Sequence[ToolCall], *, alone: bool) -> Batch:
        """Creates a batch; `InputError` if any of its calls may not be run."""
        if self._is_closed:
            raise InputError("the scheduler is closed")
        seen: set[str] = set()
        for index, call in enumerate(calls):
            path = f"calls[{index}]"
            if call.kind == "hosted":
                raise InputError(f"{call.id} is run by the provider", path=path)
            if call.id in seen or call.id in self._taken:
                raise InputError(f"{call.id} was scheduled before", path=path)
            if not self._book.may_start(call):
                raise InputError(f"{call.id} is not pending, or another process may have started it", path=path)
            seen.add(call.id)
        self._taken |= seen
        batch = Batch(self, calls, alone=alone)
        for job in batch.jobs:
            job.tool = self._toolbox.find(job.call.name)
        return batch

    def _tell_queued(self, batch: Batch) -> None:
        """Emits `CallQueued` for each call; a listener may cancel at once."""
        for job in batch.jobs:
            call = job.call
            self._tell(job, CallQueued(id=call.id, tool=call.name, arguments=call.arguments, shown=shown_of(job)))

    async def _outcomes(self, batch: Batch) -> list[CallEnded]:
        try:
            await asyncio.wait((batch.done,))
        except asyncio.CancelledError:
            batch.is_started = True
            self._cancel(batch)
            raise
        if batch.error is not None:
            raise batch.error
        return [job.ended for job in batch.jobs if job.ended is not None]

    def _next(self) -> None:
        """Starts the first batch in the queue, if it is not running yet."""
        if self._queue and not self._queue[0].is_started:
            self._start(self._queue[0])

    def _start(self, batch: Batch) -> None:
        batch.is_started = True
        fair = self._limits.output // max(1, len(batch.jobs))
        errors = {job: cut(text, fair)[0] for job in batch.jobs if (text := self._refusal(job)) is not None}
        running = [job for job in batch.jobs if job not in errors]
        share = share_of(self._limits.output, len(running), errors.values())
        tickets = [job.ticket for job in batch.callers if job.ticket is not None]
        for job in running:
            job.share = share
            job.ticket = self._locks.ask(job.call.name, job.paths, within=tickets)
            job.carrier = self._kept(batch.loop.create_task(self._carry(job), context=batch.variables.copy()))
        for job, text in errors.items():
            self._end(job, "error", Output(text, text, error=True))
        if not batch.jobs:
            self._close(batch)

    def _cancel(self, batch: Batch) -> None:
        for job in batch.jobs:
            self._end(job, "cancelled", _CANCELLED)
        self._close(batch)

    def _fail(self, batch: Batch, error: Exception) -> None:
        """The log can't be written: cancels all tools of the batch without recording outcomes."""
        batch.error = batch.error or error
        for job in batch.jobs:
            if not job.settled:
                job.settled = True
                self._stop(job)
        self._close(batch)

    def _close(self, batch: Batch) -> None:
        """Ends the batch: every call has its outcome, or writing the log failed."""
        if batch.is_closed:
            return
        batch.is_closed = True
        if batch.error is None:
            try:
                self._book.publish(*(job.call for job in batch.jobs))
            except Exception as error:  # noqa: BLE001 - raised to the waiter
                batch.error = error
        if batch in self._queue:
            self._queue.remove(batch)
        if batch in self._alone:
            self._alone.remove(batch)
        for job, output in batch.late:
            self._keep_late(job, output)
        batch.done.set_result(None)
        batch.loop.call_soon(self._next)

    # --------------------------------------------------------------------------------------------------------- one call

    def _refusal(self, job: Job) -> str | None:
        """Validates a call and sets its timeout and paths; returns an error text for the model, or None."""
        try:
            error_text = read_arguments(job, self._toolbox)
            if error_text is None and job.tool is not None:
                job.timeout = self._time_for(job.tool)
                job.paths = resolved(job.tool.writes(job.arguments, self._toolbox.folder))
            return error_text
        except Exception as error:  # noqa: BLE001 - third-party code
            return error_words(error)

    def _time_for(self, tool: Tool) -> float:
        usual, limit = tool.timeout, self._limits.timeout
        if limit is None or tool.timing == "own":
            return _USUAL_TIME if usual is None else usual
        if tool.timing == "inside":
            # The tool ends itself at the limit, and reports how far it came.
            return limit + _LEAVE
        return limit if usual is None else min(usual, limit)

    async def _carry(self, job: Job) -> None:
        """Takes a call through approval, locks and slot to its start; stops as soon as the call has an outcome."""
        tool, ticket = job.tool, job.ticket
        assert tool is not None
        assert ticket is not None
        try:
            denied = await self._toolbox.may(tool, job.arguments, self._asker(job))
            if denied is not None:
                self._end(job, "error", output_of(denied, job.share))
            if not job.settled:
                await ticket.wait(job.timeout)
            if not job.settled and not job.batch.alone:
                await self._places.acquire()
                job.has_place = True
            if not job.settled:
                self._begin(job, tool)
        except asyncio.CancelledError:
            # Only event-loop shutdown reaches this without an outcome.
            self._end(job, "cancelled", _CANCELLED)
            raise
        except StuckError as stuck:
            text = f"{stuck}; nothing was written, try again later or write elsewhere"
            self._end(job, "error", output_of(text, job.share))
        except Exception as error:  # noqa: BLE001 - third-party code
            self._end(job, "error", output_of(error_words(error), job.share))
        finally:
            if job.settled:
                self._free(job)

    def _asker(self, job: Job) -> Approve | None:
        """The approver for a call: one request of a batch at a time, and none once the call has an outcome."""
        approver = self._approver
        if approver is None:
            return None

        async def ask(question: Question) -> Answer:
            async with job.batch.asking:
                if job.settled:
                    return "no"
                title, detail = question.title, question.detail
                self._tell(job, Asks(id=job.call.id, tool=job.call.name, title=title, detail=detail))
                return await approver(question)

        return ask

    def _begin(self, job: Job, tool: Tool) -> None:
        try:
            if not self._book.may_start(job.call):
                raise StoreError(
                    f"the lease of the conversation was lost; {job.call.id} was not started", cause="leased"
                )
        except Exception as error:  # noqa: BLE001 - raised to the waiter
            self._fail(job.batch, error)
            return
        job.began = self._clock()
        self._tell(job, CallBegan(id=job.call.id, tool=job.call.name))
        if job.settled:
            return
        variables = contextvars.copy_context()
        variables.run(making.set, (*making.get(), job))
        context = Context(
            self._toolbox.folder, call_id=job.call.id, progress=self._teller(job), limit=self._limits.timeout
        )
        job.timer = job.batch.loop.call_later(job.timeout, self._time_out, job)

        def on_end(value: object, error: BaseException | None) -> None:
            self._over(job, value, error)

        job.execution = Execution(tool, job.arguments, context, on_end, variables)
        if job.execution.task is not None:
            self._kept(job.execution.task)

    def _time_out(self, job: Job) -> None:
        self._end(job, "timed-out", output_of(f"timed out after {job.timeout:g} seconds", job.share))

    def _over(self, job: Job, value: object, error: BaseException | None) -> None:
        """The tool has really ended: this is its outcome, or a late result."""
        job.over = True
        if isinstance(error, asyncio.CancelledError):
            self._end(job, "cancelled", _CANCELLED)
            self._free(job)
            return
        try:
            output = output_of(value if error is None else error_words(error), job.share)
        except Exception as fault:  # noqa: BLE001 - third-party object
            output, error = output_of(f"the result can't be read: {error_words(fault)}", job.share), fault
        if error is not None:
            output = msgspec.structs.replace(output, error=True)
        if job.settled:
            self._free(job)
            if job.batch.is_closed:
                self._keep_late(job, output)
            else:
                job.batch.late.append((job, output))
        else:
            self._end(job, "error" if output.error else "complete", output)

    # --------------------------------------------------------------------------------------------------------- outcomes

    def _end(self, job: Job, outcome: Outcome, output: Output) -> None:
        """Records and emits the outcome of a call; all but the first are ignored."""
        if job.settled:
            return
        job.settled = True
        self._stop(job)
        try:
            outcome, output = self._written(job, outcome, output)
        except Exception as error:  # noqa: BLE001 - raised to the waiter
            self._fail(job.batch, error)
            return
        job.ended = CallEnded(
            id=job.call.id,
            tool=job.call.name,
            outcome=outcome,
            text=output.text,
            seconds=self._clock() - job.began if job.began is not None else 0.0,
            cut=output.left_out,
        )
        self._tell(job, job.ended)
        if all(other.ended is not None for other in job.batch.jobs):
            self._close(job.batch)

    def _written(self, job: Job, outcome: Outcome, output: Output) -> tuple[Outcome, Output]:
        """Records the outcome, and returns what was recorded: an error if the result can't be stored."""
        error = outcome != "complete"
        try:
            if outcome == "cancelled":
                self._book.know(job.call, outcome="cancelled")
            else:
                self._book.know(job.call, output.content, error=error)
        except InputError as fault:
            outcome, output = "error", output_of(f"the result can't be written down: {error_words(fault)}", job.share)
            self._book.know(job.call, output.content, error=True)
        return outcome, output

    def _stop(self, job: Job) -> None:
        """Stops a call that has its outcome: frees its slot, and its file locks when its tool has really ended."""
        if job.timer is not None:
            job.timer.cancel()
        if job.has_place:
            job.has_place = False
            self._places.release()
        if job.execution is not None and not job.over:
            if job.ticket is not None:
                job.ticket.give_up()
            job.execution.give_up()
            for batch in [batch for batch in self._alone if job in batch.callers]:
                self._cancel(batch)
            return
        if job.carrier is not None and job.execution is None and job.carrier is not _current():
            job.carrier.cancel()
        self._free(job)

    def _free(self, job: Job) -> None:
        """Releases the file locks, and the slot if the call got one after its outcome."""
        if job.has_place:
            job.has_place = False
            self._places.release()
        if job.ticket is not None and (job.execution is None or job.over):
            job.ticket.leave()

    def _keep_late(self, job: Job, output: Output) -> None:
        """Records a late result as evidence; a failure to record it is ignored."""
        if self._is_closed:
            return
        try:
            self._book.add_result(job.call, output.content, error=output.error)
        except SegueError:
            return
        self._tell(job, Late(id=job.call.id, tool=job.call.name))

    # ----------------------------------------------------------------------------------------------------------- events

    def _teller(self, job: Job) -> Callable[[str], None]:
        """The progress callback of a tool, for any thread: emits the latest line at intervals."""

        def progress(text: str) -> None:
            job.line = one_line(text) or job.line
            if not job.is_heard and not job.settled:
                job.is_heard = True
                try:
                    job.batch.loop.call_soon_threadsafe(self._hear, job, context=job.batch.variables)
                except RuntimeError:
                    # The loop is closed.
                    return

        return progress

    def _hear(self, job: Job) -> None:
        job.is_heard = False
        line, job.line = job.line, None
        if line is None or job.settled:
            return
        job.is_heard = True
        self._tell(job, CallProgress(id=job.call.id, tool=job.call.name, text=line))
        job.batch.loop.call_later(_PAUSE, self._hear, job)

    def _tell(self, job: Job, event: Event) -> None:
        """Emits an event; an exception of the listener goes to the loop's exception handler, not to the call."""
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - third-party code
            job.batch.loop.call_exception_handler({"message": "a listener of the scheduler failed", "exception": error})

    def _kept(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        """Keeps a reference to a task: the loop alone holds only a weak one."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _current() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None

"""One scheduler for the whole life of a session: calls go in, each comes out with exactly one outcome.

All calls of a reply are one batch. Batches run one after the other in the order in which they were handed in; the calls
of one run side by side, at most `Limits.parallel` of them. On its way a call is checked, asked for, waits for the files
that it writes, then for a place, and runs; only that last stretch is timed.

Every outcome passes one door, `_end`, on the loop's thread and without waiting for anything: what a tool gave back,
what it raised, that its time was over, that somebody cancelled. Whoever comes first decides. The outcome is in the book
before anybody hears of it, and the book says it in call order; what it says was cut to a share that was known before
the call ran, so neither the clock nor the other calls can change it. What ends after its outcome is late: it goes to
the book as evidence, once the batch is over.

Giving a call up frees its place at once, not the files that it writes: these stay locked until it really ends.
No call is started twice, nor one that another process may have started. If the book can't be written, all tools of the
batch are given up, nothing more of it is written, and whoever waits is told.

A tool may have a single call run by `run_one`, which is outside of the queue and the limit, and has the caller's files.
It can't have a batch run by its own scheduler: that would wait for the batch that the tool itself is part of.
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

# How long a tool that talks all the time is not heard again, and how long one that was cancelled is waited for at last.
_PAUSE = 0.1
_GRACE = 1.0
# Seconds for a call of which nothing was said, and for one that is about to end by itself.
_USUAL_TIME = 120.0
_LEAVE = 3.0
_CANCELLED = Output(TEXTS.cancelled, TEXTS.cancelled, error=True)


class Limits(Struct, frozen=True):
    """`output` is how many characters all results of a batch may have together.

    `timeout` is how many seconds a call may take at most. Without it that is the tool's own affair, or two minutes.
    """

    parallel: int = 8
    timeout: float | None = None
    output: int = 60_000
    steps: int = 100
    reasks: int = 2


STANDARD = Limits()


class Scheduler:
    """Runs calls. All methods are to be called on the loop's thread."""

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

    # ---------------------------------------------------------------------------------------------------- from outside

    async def run_batch(self, calls: Sequence[ToolCall]) -> list[CallEnded]:
        """The outcomes of these calls, in call order. A batch that is handed in while another runs comes after it."""
        if any(job.batch.owner is self and not job.over for job in making.get()):
            raise InputError("a tool can't wait for a batch of the scheduler that runs it; `run_one` runs a call")
        batch = self._admitted(calls, alone=False)
        self._queue.append(batch)
        self._tell_queued(batch)
        self._next()
        return await self._outcomes(batch)

    async def give_up(self, calls: Sequence[ToolCall]) -> list[CallEnded]:
        """The outcomes of calls that nobody wants to be run any more: each was cancelled."""
        batch = self._admitted(calls, alone=True)
        batch.is_started = True
        self._tell_queued(batch)
        self._cancel(batch)
        return await self._outcomes(batch)

    async def run_one(self, call: ToolCall) -> CallEnded:
        """The outcome of a single call, run at once: outside of the queue and of the limit.

        Where a tool asks for it, the call ends with that tool at the latest.
        """
        if any(job.batch.owner is self and job.settled and not job.over for job in making.get()):
            raise InputError("the call that this one is made by was given up")
        batch = self._admitted([call], alone=True)
        self._alone.append(batch)
        self._tell_queued(batch)
        if not batch.is_closed:
            self._start(batch)
        return (await self._outcomes(batch))[0]

    def cancel(self) -> None:
        """Ends all batches, those that wait too: each call that has no outcome was cancelled."""
        batches = [*self._alone, *self._queue]
        for batch in batches:
            batch.is_started = True
        for batch in batches:
            self._cancel(batch)

    async def close(self) -> None:
        """Ends everything. What comes late from now on is not written down any more."""
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_GRACE)
        self._is_closed = True

    # --------------------------------------------------------------------------------------------------------- batches

    def _admitted(self, calls: Sequence[ToolCall], *, alone: bool) -> Batch:
        """A batch of calls that may be run. Anything else is a mistake of the caller's: then none of them is."""
        if self._is_closed:
            raise InputError("the scheduler is closed")
        seen: set[str] = set()
        for place, call in enumerate(calls):
            path = f"calls[{place}]"
            if call.kind == "hosted":
                raise InputError(f"{call.id} is run by the provider", path=path)
            if call.id in seen or call.id in self._taken:
                raise InputError(f"{call.id} was handed in before", path=path)
            if not self._book.may_start(call):
                raise InputError(f"{call.id} does not wait to be run, or another process may have begun it", path=path)
            seen.add(call.id)
        self._taken |= seen
        batch = Batch(self, calls, alone=alone)
        for job in batch.jobs:
            job.tool = self._toolbox.find(job.call.name)
        return batch

    def _tell_queued(self, batch: Batch) -> None:
        """Whoever hears of a call may cancel it at once."""
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
        """Starts the first batch of the queue, if it does not run yet."""
        if self._queue and not self._queue[0].is_started:
            self._start(self._queue[0])

    def _start(self, batch: Batch) -> None:
        batch.is_started = True
        fair = self._limits.output // max(1, len(batch.jobs))
        refused = {job: cut(words, fair)[0] for job in batch.jobs if (words := self._refusal(job)) is not None}
        running = [job for job in batch.jobs if job not in refused]
        share = share_of(self._limits.output, len(running), refused.values())
        within = [job.ticket for job in batch.callers if job.ticket is not None]
        for job in running:
            job.share = share
            job.ticket = self._locks.ask(job.call.name, job.paths, within=within)
            job.carrier = self._kept(batch.loop.create_task(self._carry(job), context=batch.variables.copy()))
        for job, words in refused.items():
            self._end(job, "error", Output(words, words, error=True))
        if not batch.jobs:
            self._close(batch)

    def _cancel(self, batch: Batch) -> None:
        for job in batch.jobs:
            self._end(job, "cancelled", _CANCELLED)
        self._close(batch)

    def _fail(self, batch: Batch, error: Exception) -> None:
        """The book can't be written: all tools of the batch are given up, and nothing more is said of them."""
        batch.error = batch.error or error
        for job in batch.jobs:
            if not job.settled:
                job.settled = True
                self._stop(job)
        self._close(batch)

    def _close(self, batch: Batch) -> None:
        """The batch is over: every call has its outcome, or the book has failed."""
        if batch.is_closed:
            return
        batch.is_closed = True
        if batch.error is None:
            try:
                self._book.publish(*(job.call for job in batch.jobs))
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                batch.error = error
        if batch in self._queue:
            self._queue.remove(batch)
        if batch in self._alone:
            self._alone.remove(batch)
        for job, output in batch.late:
            self._keep_late(job, output)
        batch.done.set_result(None)
        batch.loop.call_soon(self._next)

    # ------------------------------------------------------------------------------------------------------- one call

    def _refusal(self, job: Job) -> str | None:
        """Why a call can't run, in words for the model; else all that is to be known before it does."""
        try:
            words = read_arguments(job, self._toolbox)
            if words is None and job.tool is not None:
                job.timeout = self._time_for(job.tool)
                job.paths = resolved(job.tool.writes(job.arguments, self._toolbox.folder))
            return words
        except Exception as error:  # noqa: BLE001 - a stranger's code
            return error_words(error)

    def _time_for(self, tool: Tool) -> float:
        usual, most = tool.timeout, self._limits.timeout
        if most is None or tool.timing == "own":
            return _USUAL_TIME if usual is None else usual
        if tool.timing == "inside":
            # It ends by itself, and has something to say of how far it came.
            return most + _LEAVE
        return most if usual is None else min(usual, most)

    async def _carry(self, job: Job) -> None:
        """Brings a call to where it runs. It may have its outcome at any moment: then it goes no further."""
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
            # Nobody but the end of the loop, or the outcome is there already.
            self._end(job, "cancelled", _CANCELLED)
            raise
        except StuckError as stuck:
            words = f"{stuck}; nothing was written, try again later or write elsewhere"
            self._end(job, "error", output_of(words, job.share))
        except Exception as error:  # noqa: BLE001 - a stranger's code
            self._end(job, "error", output_of(error_words(error), job.share))
        finally:
            if job.settled:
                self._free(job)

    def _asker(self, job: Job) -> Approve | None:
        """Asks somebody: one question of a batch at a time, and none once the call has its outcome."""
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
                raise StoreError(f"the conversation is in other hands; {job.call.id} was not started", cause="leased")
        except Exception as error:  # noqa: BLE001 - whoever waits is told
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

        def over(value: object, error: BaseException | None) -> None:
            self._over(job, value, error)

        job.execution = Execution(tool, job.arguments, context, over, variables)
        if job.execution.task is not None:
            self._kept(job.execution.task)

    def _time_out(self, job: Job) -> None:
        self._end(job, "timed-out", output_of(f"timed out after {job.timeout:g} seconds", job.share))

    def _over(self, job: Job, value: object, error: BaseException | None) -> None:
        """The tool has really ended: with its outcome, or after it."""
        job.over = True
        if isinstance(error, asyncio.CancelledError):
            self._end(job, "cancelled", _CANCELLED)
            self._free(job)
            return
        try:
            output = output_of(value if error is None else error_words(error), job.share)
        except Exception as fault:  # noqa: BLE001 - a stranger's object
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

    # ------------------------------------------------------------------------------------------------------- the door

    def _end(self, job: Job, outcome: Outcome, output: Output) -> None:
        """The one outcome of a call: the first to come is written down, then told."""
        if job.settled:
            return
        job.settled = True
        self._stop(job)
        try:
            outcome, output = self._written(job, outcome, output)
        except Exception as error:  # noqa: BLE001 - whoever waits is told
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
        """What the book took."""
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
        """Nobody waits for this call any more: its place is free, its files are when it has really ended."""
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
        """Its files are free, and its place if it got one after its outcome."""
        if job.has_place:
            job.has_place = False
            self._places.release()
        if job.ticket is not None and (job.execution is None or job.over):
            job.ticket.leave()

    def _keep_late(self, job: Job, output: Output) -> None:
        """What came too late is evidence. Nobody waits for it, so nobody is told where it can't be kept."""
        if self._is_closed:
            return
        try:
            self._book.add_result(job.call, output.content, error=output.error)
        except SegueError:
            return
        self._tell(job, Late(id=job.call.id, tool=job.call.name))

    # --------------------------------------------------------------------------------------------------------- telling

    def _teller(self, job: Job) -> Callable[[str], None]:
        """What a tool says of itself, from any thread: the newest line, now and then."""

        def say(text: str) -> None:
            job.line = one_line(text) or job.line
            if not job.is_heard and not job.settled:
                job.is_heard = True
                try:
                    job.batch.loop.call_soon_threadsafe(self._hear, job, context=job.batch.variables)
                except RuntimeError:
                    # The loop is closed.
                    return

        return say

    def _hear(self, job: Job) -> None:
        job.is_heard = False
        line, job.line = job.line, None
        if line is None or job.settled:
            return
        job.is_heard = True
        self._tell(job, CallProgress(id=job.call.id, tool=job.call.name, text=line))
        job.batch.loop.call_later(_PAUSE, self._hear, job)

    def _tell(self, job: Job, event: Event) -> None:
        """A listener that fails is no fault of the call's: the loop's handler of exceptions hears of it."""
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - a stranger's code
            job.batch.loop.call_exception_handler({"message": "a listener of the scheduler failed", "exception": error})

    def _kept(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        """A task that somebody holds: a loop alone may forget it."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _current() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None

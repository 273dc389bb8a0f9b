"""`Session`: the agent loop. `ask` runs an exchange as turns; a turn is one reply and the results of its tool calls.

Chat, one-shot runs and subagents all use it. Every message is recorded before the next request is sent. The route picks
the endpoint of each request; a reply in flight stays with the provider that began it. An incomplete reply is recorded
as evidence: it does not enter the history and none of its calls run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container
from contextlib import aclosing, suppress
from operator import add, sub
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Reply, Usage
from segue.checking import check
from segue.contents import blocks_of
from segue.conversation import Rendered
from segue.errors import InputError, ProjectionError, RemoteProtocolError, SegueError, UpstreamError
from segue.runtime.book import Book
from segue.runtime.events import (
    Began,
    Broke,
    CallEnded,
    Ended,
    Event,
    HowEnded,
    Moved,
    Replied,
    Requested,
    Thoughts,
    Words,
)
from segue.runtime.providers import Endpoint
from segue.runtime.scheduler import Limits, Scheduler
from segue.runtime.subagents import Models, Subagents
from segue.runtime.switching import Fixed, Route, Situation
from segue.runtime.toolbox import Toolbox
from segue.runtime.tooling import Approve
from segue.runtime.tools.task import task as task_tool
from segue.runtime.upstream import Upstream
from segue.wire import events as wire_events

__all__ = ["Listen", "Session", "Turn"]

Listen: TypeAlias = Callable[[Event], None]

_HEARTBEAT = 20.0
_USUAL = Limits()


class Turn(Struct, frozen=True):
    """One reply, and the outcomes of its calls in call order."""

    reply: Reply
    outcomes: tuple[CallEnded, ...] = ()


class _CancelledError(Exception):
    """The exchange was cancelled."""


class Session:
    """A running conversation. `on_event` gets all events; `approve` is called for calls that need approval.

    `models` resolves model names for subagents; without it there are none. `task` is the call id that a subagent's
    session works for. With `debug`, a request that the conformance checker rejects is not sent.
    """

    def __init__(
        self,
        book: Book,
        route: Route,
        *,
        upstream: Upstream,
        toolbox: Toolbox,
        listen: Listen = lambda event: None,
        approve: Approve | None = None,
        limits: Limits = _USUAL,
        debug: bool = False,
        models: Models | None = None,
        task: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.book = book
        self.route = route
        self.toolbox = toolbox
        if models is not None:
            subagents = Subagents(self, models)
            self.toolbox = toolbox.with_tools(task_tool(subagents.spawn, subagents.leave))
        self.toolbox.check_rules()
        self.limits = limits
        self.debug = debug
        self.usage = Usage()
        self.requests = 0
        self.exchanges = 0
        self.upstream = upstream
        self.approve = approve
        self._listen = listen
        self._task = task
        self._clock = clock
        self._asked: Endpoint | None = None
        self._cancelled = False
        self._streaming: asyncio.Task[Reply] | None = None
        self._over: asyncio.Future[None] | None = None
        """Done when the current exchange has ended."""
        self._scheduler = Scheduler(book, self.toolbox, emit=self.emit, approve=approve, limits=limits, clock=clock)

    # ----------------------------------------------------------------------------------------------------------- public

    async def ask(self, content: Any) -> Ended:
        """Runs an exchange, from a user message to the answer. Errors are reported in the returned event."""
        if self._over is not None:
            raise InputError("an exchange is running; cancel it and wait for its end first")
        began, before = self._clock(), self.usage
        self._cancelled = False
        self.exchanges += 1
        turns = _Turns()
        self._over = over = asyncio.get_running_loop().create_future()
        heartbeat = asyncio.create_task(self._keep())
        how: HowEnded = "cancelled"
        text, retryable, cause = "cancelled", False, None
        try:
            self.emit(Began(words=_words(content)))
            self.route.exchange()
            self._prepare()
            self.book.add_user(content)
            how, text = await self._exchange(turns)
        except _CancelledError:
            pass
        except SegueError as error:
            how, text, retryable = "failed", str(error), bool(getattr(error, "retryable", False))
            cause = getattr(error, "cause", None)
        finally:
            heartbeat.cancel()
            self._over = None
            over.set_result(None)
            ended = Ended(
                how=how,
                text=text,
                turns=turns.count,
                usage=_each(sub, self.usage, before),
                seconds=self._clock() - began,
                finish=turns.last.finish if turns.last is not None else None,
                retryable=retryable,
                cause=cause,
            )
            self.emit(ended)
        return ended

    async def _exchange(self, turns: _Turns) -> tuple[HowEnded, str]:
        while turns.count < self.limits.steps:
            turn = await self.turn()
            turns.count += 1
            turns.last, outcomes = turn.reply, turn.outcomes
            if self._cancelled:
                raise _CancelledError
            if outcomes:
                turns.paused = []
            elif turns.last.finish == "pause":
                turns.paused.append(turns.last.text)
            else:
                return "answered", "\n".join(text for text in (*turns.paused, turns.last.text) if text)
        turned = "1 turn" if self.limits.steps == 1 else f"{self.limits.steps:,} turns"
        return "steps", f"stopped after {turned}, the most for one question; ask again to go on"

    async def turn(self) -> Turn:
        """Requests one reply, and runs its calls as one batch."""
        reply, calls = await self._reply()
        if not calls:
            return Turn(reply)
        if self._cancelled:
            return Turn(reply, tuple(await self._scheduler.give_up(calls)))
        return Turn(reply, tuple(await self._scheduler.run_batch(calls)))

    def cancel(self) -> None:
        """Cancels the exchange: the reply in flight is recorded as incomplete, and every call gets an outcome."""
        self._cancelled = True
        if self._streaming is not None:
            self._streaming.cancel()
        self._scheduler.cancel()

    def switch(self, endpoint: Endpoint, why: str = "chosen") -> None:
        """Uses another model from the next request on."""
        self.take(Fixed(endpoint, why))

    def take(self, route: Route) -> None:
        """Uses another route from the next request on."""
        self.route = route

    async def close(self) -> None:
        """Cancels the exchange and releases the conversation."""
        self.cancel()
        if self._over is not None:
            await asyncio.wait((self._over,))
        await self._scheduler.close()
        with suppress(SegueError):
            self.book.close()

    def emit(self, event: Event) -> None:
        """Passes an event to the listener; events of a subagent get its task."""
        if self._task is not None and event.task is None:
            event = msgspec.structs.replace(event, task=self._task)
        self._listen(event)

    def spent(self, usage: Usage | None) -> None:
        """Adds the usage of a reply or a subagent."""
        if usage is not None:
            self.usage = _each(add, self.usage, usage)

    # -------------------------------------------------------------------------------------------------------- one reply

    async def _reply(self) -> tuple[Reply, list[ToolCall]]:
        """Sends requests until a reply is complete; returns it and its calls to run."""
        broken = 0
        while True:
            endpoint = self._chosen()
            try:
                return await self._asking(endpoint)
            except UpstreamError as error:
                self._look_up()
                has_failover = self.route.failed(endpoint, error)
                if error.cause != "broken":
                    if not has_failover:
                        raise
                    continue
                broken += 1
                again = broken <= self.limits.reasks
                self.emit(Broke(provider=endpoint.provider, model=endpoint.model, why=error.brief, again=again))
                if not again:
                    raise

    def _chosen(self) -> Endpoint:
        """Picks the endpoint for the next request. A change is recorded and emitted."""
        choice = self.route.choose(Situation(self.book.chat, self.exchanges))
        endpoint = choice.endpoint
        if endpoint != self._asked:
            if self._asked is not None:
                self.emit(Moved(provider=endpoint.provider, model=endpoint.model, why=choice.why))
            self.book.switch(endpoint.api, endpoint.model, provider=endpoint.provider)
            self._asked = endpoint
        return endpoint

    def _look_up(self) -> None:
        """Raises if the exchange or its task was cancelled meanwhile."""
        if self._cancelled:
            raise _CancelledError
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _asking(self, endpoint: Endpoint) -> tuple[Reply, list[ToolCall]]:
        """Sends one request and records the reply. The stream is read in its own task, so that it can be cancelled."""
        began = self._clock()
        self._look_up()
        rendered = self._rendered(endpoint)
        self._look_up()
        self.book.sent()
        self._streaming = streaming = asyncio.create_task(self._stream(endpoint, rendered))
        try:
            reply = await streaming
        except asyncio.CancelledError:
            if streaming.done() and not streaming.cancelled() and streaming.exception() is None:
                # The reply was complete when the exchange was cancelled.
                self.book.broke(streaming.result())
            if self._cancelled:
                raise _CancelledError from None
            raise
        finally:
            self._streaming = None
        cut = [place for place, call in enumerate(reply.calls) if call.broken]
        added = self.book.add_reply(_whole(reply))
        self.route.succeeded(endpoint)
        self.spent(added.usage)
        self.emit(
            Replied(
                provider=endpoint.provider,
                model=endpoint.model,
                finish=added.finish,
                text=added.text,
                calls=len(added.calls),
                seconds=self._clock() - began,
                usage=added.usage,
            )
        )
        return added, _runnable(added, cut)

    def _rendered(self, endpoint: Endpoint) -> Rendered:
        rendered = self.book.render(
            endpoint.api, endpoint.model, profile=endpoint.profile, tool_format=endpoint.tool_format
        )
        self.requests += 1
        if self.debug:
            for violation in check(rendered.body, endpoint.api, model=endpoint.model, profile=endpoint.profile):
                if violation.severity == "reject":
                    raise ProjectionError(
                        f"{endpoint.name} would reject this request ({violation.rule}): "
                        f"{violation.path}: {violation.message}"
                    )
        self.emit(
            Requested(
                provider=endpoint.provider,
                model=endpoint.model,
                api=endpoint.api,
                number=self.requests,
                messages=len(self.book.chat.history),
                findings=tuple(f"{finding.kind}: {finding.message}" for finding in rendered.report.findings),
            )
        )
        return rendered

    async def _stream(self, endpoint: Endpoint, rendered: Rendered) -> Reply:
        """Streams the reply and emits its deltas. An incomplete reply is recorded as evidence."""
        reader = rendered.answer()
        stream = await self.upstream.open(endpoint, rendered.fragments, tell=self.emit)
        try:
            async with aclosing(stream):
                async for data in stream:
                    for event in reader.feed(data):
                        if isinstance(event, wire_events.TextDelta):
                            self.emit(Words(text=event.text))
                        elif isinstance(event, wire_events.ThinkingDelta):
                            self.emit(Thoughts(text=event.text))
            reply = reader.close()
            self._look_up()
        except (_CancelledError, asyncio.CancelledError, UpstreamError, RemoteProtocolError) as error:
            with suppress(RemoteProtocolError):
                self.book.broke(reader.close())
            if isinstance(error, _CancelledError | asyncio.CancelledError):
                raise
            why = error.brief if isinstance(error, UpstreamError) else str(error)
            raise UpstreamError.broken(endpoint.provider, endpoint.model, why) from None
        if reply.finish == "error":
            self.book.broke(reply)
            raise UpstreamError.broken(endpoint.provider, endpoint.model, reply.cause or "the reply is incomplete")
        return reply

    # ----------------------------------------------------------------------------------------------- settings and lease

    def _prepare(self) -> None:
        """Updates the declared tools, and switches streaming on."""
        chat = self.book.chat
        changes: dict[str, Any] = {}
        if chat.tools != self.toolbox.declarations:
            changes["tools"] = self.toolbox.declarations
        if not chat.options.stream:
            changes["options"] = msgspec.structs.replace(chat.options, stream=True)
        if changes:
            self.book.set(**changes)

    async def _keep(self) -> None:
        """Renews the lease at intervals while the exchange runs."""
        while True:
            await asyncio.sleep(_HEARTBEAT)
            with suppress(SegueError):
                self.book.keep()


class _Turns:
    """The state of a running exchange."""

    def __init__(self) -> None:
        self.count = 0
        self.last: Reply | None = None
        self.paused: list[str] = []
        """Texts of replies that ended with `pause`."""


def _whole(reply: Reply) -> Reply:
    """Clears `broken` on incomplete calls, so that they are recorded; their result says that they were cut off."""
    blocks = (msgspec.structs.replace(b, broken=False) if isinstance(b, ToolCall) else b for b in reply.blocks)
    return msgspec.structs.replace(reply, blocks=tuple(blocks)) if any(c.broken for c in reply.calls) else reply


def _runnable(reply: Reply, cut: Container[int]) -> list[ToolCall]:
    """The calls that need an outcome. Those at the indices `cut` are incomplete and will not run."""
    calls = enumerate(reply.calls)
    return [msgspec.structs.replace(call, broken=at in cut) for at, call in calls if call.kind != "hosted"]


def _words(content: Any) -> str:
    return "\n".join(text for block in blocks_of(content) if isinstance(text := getattr(block, "text", None), str))


def _each(operation: Callable[[int, int], int], one: Usage, other: Usage) -> Usage:
    return Usage(**{name: operation(getattr(one, name), getattr(other, name)) for name in Usage.__struct_fields__})

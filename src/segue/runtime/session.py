"""One way to run an agent: `ask` is an exchange, made of turns; a turn is one reply and the results it asked for.

The terminal, the one-shot run and subagents all come through here. Everything that is said enters the book before the
next request goes out; whom the next request goes to is the route's business, and a reply in flight stays with whoever
began it. A reply that breaks off is evidence: none of it is said again, none of its calls run.
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
from segue.wire.events import TextDelta, ThinkingDelta

__all__ = ["Listen", "Session", "Turn"]

Listen: TypeAlias = Callable[[Event], None]

_HEARTBEAT = 20.0
_USUAL = Limits()


class Turn(Struct, frozen=True):
    """One reply, and what came of its calls, in call order."""

    reply: Reply
    outcomes: tuple[CallEnded, ...] = ()


class _CancelledError(Exception):
    """Somebody ended the exchange."""


class Session:
    """A conversation that is under way. `listen` hears everything; `approve` is asked where a rule says so.

    `models` finds models by name for subagents; without it there are none. `task` is the call that this session works
    for, if it is a subagent's. With `debug` no request goes out that the judge would refuse.
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
            others = Subagents(self, models)
            self.toolbox = toolbox.with_tools(task_tool(others.spawn, others.leave))
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
        """Done when the exchange that is under way is over."""
        self._scheduler = Scheduler(book, self.toolbox, emit=self.emit, approve=approve, limits=limits, clock=clock)

    # --------------------------------------------------------------------------------------------------- from outside

    async def ask(self, content: Any) -> Ended:
        """An exchange: from somebody's words to the answer. What goes wrong is how it ended."""
        if self._over is not None:
            raise InputError("an exchange is under way; cancel it and wait for its end first")
        began, before = self._clock(), self.usage
        self._cancelled = False
        self.exchanges += 1
        turns = _Turns()
        self._over = over = asyncio.get_running_loop().create_future()
        heart = asyncio.create_task(self._keep())
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
            heart.cancel()
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
        """One reply, and its calls run as one batch."""
        reply, calls = await self._reply()
        if not calls:
            return Turn(reply)
        if self._cancelled:
            return Turn(reply, tuple(await self._scheduler.give_up(calls)))
        return Turn(reply, tuple(await self._scheduler.run_batch(calls)))

    def cancel(self) -> None:
        """Ends the exchange: the reply in flight is evidence, and every call gets its outcome."""
        self._cancelled = True
        if self._streaming is not None:
            self._streaming.cancel()
        self._scheduler.cancel()

    def switch(self, endpoint: Endpoint, why: str = "chosen") -> None:
        """Another model from the next request on."""
        self.take(Fixed(endpoint, why))

    def take(self, route: Route) -> None:
        """Another route from the next request on."""
        self.route = route

    async def close(self) -> None:
        """Ends what runs, and lets the conversation go."""
        self.cancel()
        if self._over is not None:
            await asyncio.wait((self._over,))
        await self._scheduler.close()
        with suppress(SegueError):
            self.book.close()

    def emit(self, event: Event) -> None:
        """Tells whoever listens; what a subagent tells bears its task."""
        if self._task is not None and event.task is None:
            event = msgspec.structs.replace(event, task=self._task)
        self._listen(event)

    def spent(self, usage: Usage | None) -> None:
        """Counts what a reply cost, or a subagent."""
        if usage is not None:
            self.usage = _each(add, self.usage, usage)

    # ------------------------------------------------------------------------------------------------------- one reply

    async def _reply(self) -> tuple[Reply, list[ToolCall]]:
        """Asks until a reply came whole, and what of it is to be run. One that broke is asked for from the start."""
        broken = 0
        while True:
            endpoint = self._chosen()
            try:
                return await self._asking(endpoint)
            except UpstreamError as error:
                self._look_up()
                elsewhere = self.route.failed(endpoint, error)
                if error.cause != "broken":
                    if not elsewhere:
                        raise
                    continue
                broken += 1
                again = broken <= self.limits.reasks
                self.emit(Broke(provider=endpoint.provider, model=endpoint.model, why=error.brief, again=again))
                if not again:
                    raise

    def _chosen(self) -> Endpoint:
        """Whom to ask now. A change is told, and written down."""
        choice = self.route.choose(Situation(self.book.chat, self.exchanges))
        endpoint = choice.endpoint
        if endpoint != self._asked:
            if self._asked is not None:
                self.emit(Moved(provider=endpoint.provider, model=endpoint.model, why=choice.why))
            self.book.switch(endpoint.api, endpoint.model, provider=endpoint.provider)
            self._asked = endpoint
        return endpoint

    def _look_up(self) -> None:
        """Between two steps: whether anybody has ended the exchange meanwhile."""
        if self._cancelled:
            raise _CancelledError
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _asking(self, endpoint: Endpoint) -> tuple[Reply, list[ToolCall]]:
        """One request, and the reply to it, written down. It comes in a task of its own, so that it can be given up."""
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
                # It was there, and nobody was left to take it.
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
            for wrong in check(rendered.body, endpoint.api, model=endpoint.model, profile=endpoint.profile):
                if wrong.severity == "reject":
                    raise ProjectionError(
                        f"{endpoint.name} would refuse this ({wrong.rule}): {wrong.path}: {wrong.message}"
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
        """The reply as it comes. What breaks off is kept as evidence."""
        answering = rendered.answer()
        stream = await self.upstream.open(endpoint, rendered.fragments, tell=self.emit)
        try:
            async with aclosing(stream):
                async for data in stream:
                    for event in answering.feed(data):
                        if isinstance(event, TextDelta):
                            self.emit(Words(text=event.text))
                        elif isinstance(event, ThinkingDelta):
                            self.emit(Thoughts(text=event.text))
            reply = answering.close()
            self._look_up()
        except (_CancelledError, asyncio.CancelledError, UpstreamError, RemoteProtocolError) as error:
            with suppress(RemoteProtocolError):
                self.book.broke(answering.close())
            if isinstance(error, _CancelledError | asyncio.CancelledError):
                raise
            why = error.brief if isinstance(error, UpstreamError) else str(error)
            raise UpstreamError.broken(endpoint.provider, endpoint.model, why) from None
        if reply.finish == "error":
            self.book.broke(reply)
            raise UpstreamError.broken(endpoint.provider, endpoint.model, reply.cause or "it came to no end")
        return reply

    # --------------------------------------------------------------------------------------------------------- around

    def _prepare(self) -> None:
        """The tools that there are now, and an answer that comes as a stream."""
        chat = self.book.chat
        changes: dict[str, Any] = {}
        if chat.tools != self.toolbox.declarations:
            changes["tools"] = self.toolbox.declarations
        if not chat.options.stream:
            changes["options"] = msgspec.structs.replace(chat.options, stream=True)
        if changes:
            self.book.set(**changes)

    async def _keep(self) -> None:
        """The heartbeat: the conversation stays in hand while a long tool runs."""
        while True:
            await asyncio.sleep(_HEARTBEAT)
            with suppress(SegueError):
                self.book.keep()


class _Turns:
    """How far an exchange has come."""

    def __init__(self) -> None:
        self.count = 0
        self.last: Reply | None = None
        self.paused: list[str] = []
        """What was said before the model paused in mid-answer."""


def _whole(reply: Reply) -> Reply:
    """The reply with calls that were cut off as calls like any other: the model is told that they were."""
    blocks = (msgspec.structs.replace(b, broken=False) if isinstance(b, ToolCall) else b for b in reply.blocks)
    return msgspec.structs.replace(reply, blocks=tuple(blocks)) if any(c.broken for c in reply.calls) else reply


def _runnable(reply: Reply, cut: Container[int]) -> list[ToolCall]:
    """The calls that want an outcome. Those at the places `cut` are not whole, and won't run."""
    calls = enumerate(reply.calls)
    return [msgspec.structs.replace(call, broken=at in cut) for at, call in calls if call.kind != "hosted"]


def _words(content: Any) -> str:
    return "\n".join(text for block in blocks_of(content) if isinstance(text := getattr(block, "text", None), str))


def _each(do: Callable[[int, int], int], one: Usage, other: Usage) -> Usage:
    return Usage(**{name: do(getattr(one, name), getattr(other, name)) for name in Usage.__struct_fields__})

"""One way to run an agent: `ask` is an exchange, made of turns; a turn is one reply and the results it asked for.

The terminal, the one-shot run and subagents all come through here. Everything that is said enters the book before the
next request goes out; whom the next request goes to is the route's business, and a reply in flight stays with whoever
began it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Media, Text, ToolCall
from segue.canonical.request import Reply, Usage
from segue.conformance import check
from segue.conversation import Rendered
from segue.errors import ProjectionError, RemoteProtocolError, SegueError, UpstreamError
from segue.runtime.book import Book
from segue.runtime.events import Began, Broke, CallEnded, Ended, Event, Moved, Replied, Requested, Thoughts, Words
from segue.runtime.providers import Endpoint
from segue.runtime.scheduler import Limits, Scheduler
from segue.runtime.switching import Choice, Fixed, Route, Situation
from segue.runtime.toolbox import Toolbox
from segue.runtime.tooling import Approve
from segue.runtime.upstream import Upstream
from segue.wire.events import TextDelta, ThinkingDelta

__all__ = ["Session", "Turn"]

Listen: TypeAlias = Callable[[Event], None]
_HEARTBEAT = 20.0


class Turn(Struct, frozen=True):
    """One reply, and what came of its calls, in call order."""

    reply: Reply
    outcomes: tuple[CallEnded, ...] = ()


class Cancelled(Exception):
    """Somebody ended the exchange."""


class Session:
    """A conversation that is under way. `listen` hears everything; `approve` is asked where a rule says so."""

    def __init__(
        self,
        book: Book,
        route: Route,
        *,
        upstream: Upstream,
        toolbox: Toolbox,
        listen: Listen = lambda event: None,
        approve: Approve | None = None,
        limits: Limits = Limits(),
        debug: bool = False,
        task: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.book = book
        self.route = route
        self.toolbox = toolbox
        self.usage = Usage()
        self.requests = 0
        self._upstream = upstream
        self._listen = listen
        self._limits = limits
        self._debug = debug
        self._task = task
        self._clock = clock
        self._exchanges = 0
        self._asked: Endpoint | None = None
        self._cancelled = False
        self._streaming: asyncio.Task[Reply] | None = None
        self._scheduler = Scheduler(book, toolbox, emit=self.emit, approve=approve, limits=limits, clock=clock)

    # ---------------------------------------------------------------------------------------------------- from outside

    async def ask(self, content: Any) -> Ended:
        """An exchange: from somebody's words to the answer. What goes wrong is how it ended."""
        began = self._clock()
        before, turns = self.usage, 0
        self._cancelled = False
        self._exchanges += 1
        self.route.exchange()
        heart = asyncio.create_task(self._keep())
        try:
            self.emit(Began(words=_words(content)))
            self.book.add_user(content)
            self._declare()
            how, text = "steps", f"stopped after {self._limits.steps} turns"
            while turns < self._limits.steps:
                turns += 1
                reply = (await self.turn()).reply
                if self._cancelled:
                    raise Cancelled
                if reply.finish != "pause" and not _runnable(reply):
                    how, text = "answered", reply.text
                    break
        except Cancelled:
            how, text = "cancelled", "cancelled"
        except SegueError as error:
            how, text = "failed", str(error)
        finally:
            heart.cancel()
            with suppress(asyncio.CancelledError):
                await heart
        ended = Ended(
            how=how,
            text=text,
            turns=turns,
            usage=_less(self.usage, before),
            seconds=self._clock() - began,
        )
        self.emit(ended)
        return ended

    async def turn(self) -> Turn:
        """One reply, and its calls run as one batch."""
        reply = await self._reply()
        calls = _runnable(reply)
        outcomes = await self._scheduler.run_batch(calls) if calls else ()
        return Turn(reply, tuple(outcomes))

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
        self.cancel()
        await self._scheduler.close()
        with suppress(SegueError):
            self.book.close()

    def emit(self, event: Event) -> None:
        if self._task is not None and event.task is None:
            event = msgspec.structs.replace(event, task=self._task)
        self._listen(event)

    # --------------------------------------------------------------------------------------------------- one reply

    async def _reply(self) -> Reply:
        """Asks until a reply came whole. One that breaks is asked for again, from the start, at most twice."""
        broken = 0
        while True:
            choice = self._chosen()
            try:
                return await self._asking(choice.endpoint)
            except UpstreamError as error:
                if self._cancelled:
                    raise Cancelled from None
                elsewhere = self.route.failed(choice.endpoint, error)
                if error.cause == "broken":
                    broken += 1
                    again = broken <= self._limits.reasks
                    self.emit(Broke(provider=error.provider, model=error.model, why=error.brief, again=again))
                    if again:
                        continue
                if not elsewhere:
                    raise

    def _chosen(self) -> Choice:
        """Whom to ask now. A change is told, and written down."""
        choice = self.route.choose(self._situation())
        endpoint = choice.endpoint
        if endpoint != self._asked:
            if self._asked is not None:
                self.emit(Moved(provider=endpoint.provider, model=endpoint.model, why=choice.why))
            self.book.switch(endpoint.api, endpoint.model)
            self._asked = endpoint
        return choice

    async def _asking(self, endpoint: Endpoint) -> Reply:
        """One request, and the reply to it, written down. A task of its own, so that it can be given up."""
        rendered = self._rendered(endpoint)
        self.book.sent()
        began = self._clock()
        self._streaming = asyncio.create_task(self._stream(endpoint, rendered))
        try:
            reply = await self._streaming
        except asyncio.CancelledError:
            if self._cancelled:
                raise Cancelled from None
            self._streaming.cancel()
            raise
        finally:
            self._streaming = None
        added = self.book.add_reply(reply)
        self.route.succeeded(endpoint)
        self.usage = _more(self.usage, added.usage)
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
        return added

    def _rendered(self, endpoint: Endpoint) -> Rendered:
        rendered = self.book.render(endpoint.api, endpoint.model, tool_format=endpoint.tool_format)
        self.requests += 1
        if self._debug:
            verdict = check(rendered.body, endpoint.api, model=endpoint.model, profile=endpoint.profile)
            if not verdict:
                broken = next(iter(verdict))
                raise ProjectionError(
                    f"{endpoint.name} would refuse this: {broken.rule} {broken.path}: {broken.message}"
                )
        self.emit(
            Requested(
                provider=endpoint.provider,
                model=endpoint.model,
                api=endpoint.api,
                number=self.requests,
                messages=len(self.book.messages),
                findings=tuple(f"{finding.kind}: {finding.message}" for finding in rendered.report.findings),
            )
        )
        return rendered

    async def _stream(self, endpoint: Endpoint, rendered: Rendered) -> Reply:
        """The reply as it comes. What breaks off is kept as evidence."""
        answering = rendered.answer()
        try:
            async with aclosing(await self._upstream.open(endpoint, rendered.fragments, tell=self.emit)) as stream:
                async for data in stream:
                    for event in answering.feed(data):
                        if isinstance(event, TextDelta):
                            self.emit(Words(text=event.text))
                        elif isinstance(event, ThinkingDelta):
                            self.emit(Thoughts(text=event.text))
            reply = answering.close()
        except (asyncio.CancelledError, UpstreamError, RemoteProtocolError) as error:
            with suppress(RemoteProtocolError):
                self.book.broke(answering.close())
            if isinstance(error, RemoteProtocolError):
                raise UpstreamError.broken(endpoint.provider, endpoint.model, str(error)) from None
            raise
        if reply.finish == "error":
            self.book.broke(reply)
            raise UpstreamError.broken(endpoint.provider, endpoint.model, reply.cause or "the stream broke off")
        return reply

    # --------------------------------------------------------------------------------------------------------- around

    def _declare(self) -> None:
        """The tools that there are now."""
        declared = self.toolbox.declarations
        if self.book.chat.tools != declared:
            self.book.set(tools=declared)

    def _situation(self) -> Situation:
        chat = self.book.chat
        images = any(isinstance(block, Media) for message in chat.messages for block in message.blocks)
        return Situation(tokens=chat.tokens, images=images, exchange=self._exchanges)

    async def _keep(self) -> None:
        """The heartbeat: the conversation stays in hand while a long tool runs."""
        while True:
            await asyncio.sleep(_HEARTBEAT)
            with suppress(SegueError):
                self.book.keep()


def _runnable(reply: Reply) -> list[ToolCall]:
    return [call for call in reply.calls if call.kind != "hosted" and not call.broken]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks: Sequence[Any] = content if isinstance(content, list | tuple) else [content]
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def _more(usage: Usage, told: Usage | None) -> Usage:
    if told is None:
        return usage
    return Usage(**{name: getattr(usage, name) + getattr(told, name) for name in Usage.__struct_fields__})


def _less(usage: Usage, before: Usage) -> Usage:
    return Usage(**{name: getattr(usage, name) - getattr(before, name) for name in Usage.__struct_fields__})

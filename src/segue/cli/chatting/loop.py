"""The chat loop: input becomes commands and exchanges, one exchange at a time, until the user exits."""

from __future__ import annotations

import asyncio
import os
import re
import traceback
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli.chatting import commands
from segue.cli.chatting.approvals import meant
from segue.cli.chatting.elsewhere import Elsewhere
from segue.cli.chatting.figures import counted
from segue.cli.chatting.footer import footer
from segue.cli.chatting.looks import Row, columns, cut, wrapped
from segue.cli.chatting.meter import Meter
from segue.cli.chatting.recap import recap
from segue.errors import SegueError
from segue.runtime.switching import Situation
from segue.runtime.tooling import Answer, Question, Refused
from segue.view.clean import harmless, harmless_line

if TYPE_CHECKING:
    from segue.cli.agent import Agent
    from segue.cli.chatting.surface import Surface
    from segue.runtime.book import Book
    from segue.runtime.events import Event
    from segue.runtime.providers import Endpoint
    from segue.runtime.session import Session

__all__ = ["Chat"]

# A path such as /etc/hosts is not a command.
_COMMAND = re.compile(r"/[\w-]*(\s|$)")
_HELD = "this conversation is open in another process; /fork continues in a copy"


class Chat:
    """Connects a UI and an agent. `strategy` is the default of `/compress`."""

    def __init__(self, *, strategy: str = "dense") -> None:
        self.strategy = strategy
        self.meter = Meter(self._price)
        self.surface: Surface
        self.agent: Agent
        self._turn: asyncio.Task[None] | None = None
        self._waiting: deque[str] = deque()
        self._asking = asyncio.Lock()
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._commanding = asyncio.Lock()

    # -------------------------------------------------------------------------------------------------- for commands

    @property
    def session(self) -> Session:
        return self.agent.session

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the next request, as far as it is known before the request."""
        return self.session.route.choose(Situation(self.session.book.chat)).endpoint

    @property
    def busy(self) -> bool:
        return self._turn is not None

    @property
    def holds(self) -> int:
        """The estimated tokens of the conversation, including tools and system text."""
        log = self.session.book
        return log.chat.tokens if log.messages else 0

    @property
    def folder(self) -> Path:
        return self.agent.toolbox.folder

    @property
    def servers(self) -> Sequence[tuple[str, str]]:
        """The MCP servers and the state of each."""
        servers = self.agent.tools.servers
        return tuple(servers.states.items()) if servers is not None else ()

    @property
    def width(self) -> int:
        return self.surface.width()

    @property
    def waiting(self) -> Sequence[str]:
        """Messages that will be sent when the turn is over."""
        return tuple(self._waiting)

    def say(self, rows: list[Row]) -> None:
        self.surface.say(rows)

    def tell(self, text: str, style: str = "class:dim") -> None:
        self.say(wrapped(harmless_line(text), self.width, style, indent="    ", first="  "))

    async def open(self, book: Book) -> None:
        """Continue with another conversation."""
        previous = self.session.book
        await self.agent.take(book)
        self._drop(previous)
        self.greet()

    def _drop(self, book: Book) -> None:
        """Delete a conversation without messages."""
        store = self.agent.store
        if store is not None and not book.messages:
            with suppress(SegueError):
                store.delete(book.id)

    def begin(self) -> None:
        """Print version, model and conversation."""
        from importlib.metadata import version

        agent = self.agent
        head: Row = [("class:bold", f"segue {version('segue')}"), ("class:name", f"  {harmless_line(agent.model)}")]
        reason = f"  {harmless_line(agent.why)}" if agent.why else ""
        fits = columns(head) + columns(reason) <= self.width
        self.say([[*head, ("class:dim", reason)] if fits else head])
        if agent.emulated:
            self.tell("no real model is used: an emulated model answers, with the tools of this folder", "class:warn")
        self.greet()

    def footer(self, width: int) -> Row:
        endpoint = self.endpoint
        return footer(
            width,
            model=endpoint.name,
            meter=self.meter,
            holds=self.holds,
            context=endpoint.context,
            tool_format=endpoint.tool_format,
            note="emulated" if self.agent.emulated else "",
        )

    def greet(self) -> None:
        """Print the conversation id and its last exchange."""
        log = self.session.book
        name = f"conversation {self.agent.conversation}" if self.agent.conversation else "not stored"
        count = f", {counted(len(log.messages), 'message')}" if log.messages else ""
        self.tell(f"{name}{count}")
        self.say(recap(log.messages, self.width))
        if Elsewhere(self.agent.store, log).held:
            self.tell(_HELD, "class:warn")

    def left(self) -> None:
        self._over.set()
        self.surface.stop()

    # -------------------------------------------------------------------------------------------------- for the agent

    def hear(self, event: Event) -> None:
        self.meter.hear(event)
        self.surface.hear(event)

    async def approve(self, question: Question) -> Answer:
        """Ask the user for permission, one question at a time. The reason of a denial is sent to the model."""
        async with self._asking:
            answer, reason = meant(await self.surface.ask(question))
        title = cut(harmless_line(question.title or question.tool), 60)
        match answer:
            case "once":
                self.tell(f"allowed: {title}")
                return "once"
            case "always":
                self.tell(f"always allowed: {title}")
                return "always"
            case _:
                self.tell(f"denied: {reason or title}", "class:warn")
                return Refused(reason) if reason else "no"

    # ----------------------------------------------------------------------------------------------------- for the UI

    def entered(self, text: str) -> None:
        """Run a command at once, in order; queue a message until the turn and earlier commands are over."""
        if _COMMAND.match(text):
            self._spawn(self._command(text))
            return
        self._waiting.append(text)
        self._go_on()
        self.surface.redraw()

    def interrupted(self) -> bool:
        if not self.busy and not self._waiting:
            return False
        if self.busy:
            self.session.cancel()
        self._give_back()
        return True

    def _give_back(self, *texts: str) -> None:
        """Put unsent messages back into the input line."""
        if unsent := [*texts, *self._waiting]:
            self._waiting.clear()
            self.surface.refill("\n".join(unsent))

    # ----------------------------------------------------------------------------------------------------------- turns

    async def idle(self) -> None:
        """Wait until no turn and no command is running."""
        while self._turn is not None or self._tasks:
            await asyncio.wait([*([self._turn] if self._turn is not None else []), *self._tasks])

    async def end(self) -> None:
        """Cancel the turn and close the session."""
        self._over.set()
        if self._turn is not None:
            self.session.cancel()
        await self.idle()
        await self.session.close()
        self._drop(self.session.book)

    def _go_on(self) -> None:
        """Send the next queued message, unless a turn or a command is running."""
        if self._waiting and not self.busy and not self._tasks and not self._over.is_set():
            self._turn = asyncio.create_task(self._exchange(self._waiting.popleft()))

    async def _exchange(self, text: str) -> None:
        try:
            await self._guarded(self._asked(text))
        finally:
            self._turn = None
            self._go_on()
            self.surface.redraw()

    async def _asked(self, text: str) -> None:
        """Run an exchange; a message that could not be stored is put back into the input line."""
        watcher = Elsewhere(self.agent.store, self.session.book)
        if added := watcher.catch_up():
            self.tell(f"{counted(added, 'new message')} from another process", "class:warn")
            self.say(recap(self.session.book.messages, self.width))
        count = _human(self.session.book)
        ended = await self.agent.ask(text)
        if ended.how == "failed" and _human(self.session.book) == count:
            self._give_back(text)
            if watcher.held:
                self.tell(_HELD, "class:warn")

    async def _command(self, line: str) -> None:
        async with self._commanding:
            await commands.run(self, line)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._go_on()

    async def _guarded(self, work: Coroutine[Any, Any, object]) -> None:
        """Await something and print its error; the chat continues."""
        try:
            await work
        except click.ClickException as error:
            self.tell(f"✗ {error.format_message()}", "class:bad")
        except Exception as error:  # noqa: BLE001  a user never sees a traceback
            description = f"{type(error).__name__}: {error}"
            self.tell(f"✗ this is a bug in segue, please report it: {description}", "class:bad")
            if os.environ.get("SEGUE_DEBUG"):
                self.say(wrapped(harmless(traceback.format_exc()), self.width, "class:dim", indent="    "))

    def _price(self, provider: str, model: str, usage: Any) -> float | None:
        return self.agent.price(provider, model, usage)


def _human(book: Book) -> int:
    return sum(message.speaker == "human" for message in book.messages)

"""The chat for pipes and dumb terminals: lines in, lines out, no control sequences."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import threading
from collections.abc import Awaitable
from contextlib import suppress

from segue.cli import streams
from segue.cli.chatting.approvals import question_rows
from segue.cli.chatting.looks import Row, plain
from segue.cli.chatting.surface import Hands
from segue.cli.chatting.view import View
from segue.runtime.events import Event
from segue.runtime.tooling import Question
from segue.view.clean import harmless

__all__ = ["Plain", "forget_typed"]

_PROMPT = "> "
_QUESTION = "? y(es), a(lways), n(o), or type why not: "


class Plain:
    """A `ChatUI` that reads and writes plain lines."""

    def __init__(self) -> None:
        self._typed = streams.on_terminal(sys.stdin)
        self._over = asyncio.Event()
        self._unwritten: OSError | None = None
        self._view = View(
            self._write, width=self.width, fold_key="/thinking shows it" if self._typed else "", exact=True
        )

    @property
    def full(self) -> bool:
        return self._view.full

    @full.setter
    def full(self, value: bool) -> None:
        self._view.full = value

    def width(self) -> int:
        return max(20, shutil.get_terminal_size((100, 24)).columns)

    def say(self, rows: list[Row]) -> None:
        self._view.say(rows)

    def hear(self, event: Event) -> None:
        self._view.hear(event)

    def thought(self) -> str:
        return self._view.thought

    def refill(self, text: str) -> None:
        """Not possible: lines are consumed when they are read."""

    def redraw(self) -> None:
        """Nothing to redraw."""

    async def ask(self, question: Question) -> str:
        if not self._typed:
            return ""
        self._view.say(question_rows(question, self.width()))
        forget_typed()
        return await self._line(_QUESTION) or ""

    async def run(self, hands: Hands) -> None:
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if not hands.interrupted():
                hands.left()

        # A background job is started with SIGINT ignored, and it stays ignored.
        handled = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        with suppress(NotImplementedError, ValueError):
            if handled:
                loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            while not self._over.is_set():
                line = await self._line(_PROMPT if self._typed else "")
                if line is None:
                    break
                if line.strip():
                    hands.entered(line.strip())
                    await self._unless_over(hands.idle())
            if self._unwritten is not None:
                raise self._unwritten
        finally:
            with suppress(NotImplementedError, ValueError):
                if handled:
                    loop.remove_signal_handler(signal.SIGINT)

    def stop(self) -> None:
        self._over.set()

    def _write(self, rows: list[Row]) -> None:
        """Write rows; an error ends the chat and is raised by `run`."""
        if self._unwritten is None:
            try:
                streams.write(harmless(plain(rows)))
            except OSError as error:
                self._unwritten = error
                self._over.set()

    async def _unless_over(self, work: Awaitable[object]) -> None:
        """Wait for `work` or the end of the chat."""
        waits = [asyncio.ensure_future(work), asyncio.ensure_future(self._over.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                if not wait.done():
                    wait.cancel()

    async def _line(self, prompt: str) -> str | None:
        """Read a line; None at the end of input. The reading thread is a daemon and does not block exit."""
        loop = asyncio.get_running_loop()
        read: asyncio.Future[str] = loop.create_future()
        if prompt:
            streams.write(prompt)

        def wait() -> None:
            try:
                line = sys.stdin.readline()
            except (OSError, ValueError):
                line = ""
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: None if read.done() else read.set_result(line))

        threading.Thread(target=wait, daemon=True).start()
        await self._unless_over(read)
        return (read.result() or None) if read.done() and not read.cancelled() else None


def forget_typed() -> None:
    """Discard what was typed before a question was shown."""
    import termios

    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

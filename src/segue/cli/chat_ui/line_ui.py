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
from segue.cli.chat_ui.approvals import format_question, list_choices
from segue.cli.chat_ui.calls import SHOWN
from segue.cli.chat_ui.event_view import EventView
from segue.cli.chat_ui.styles import Row, rows_to_text
from segue.cli.chat_ui.ui import InputHandler
from segue.runtime.events import Event
from segue.runtime.tool_types import ApprovalRequest
from segue.view.sanitize import sanitize

_PROMPT = "> "


class LineUI:
    """A `ChatUI` that reads and writes plain lines."""

    def __init__(self, shown: tuple[int, int] = SHOWN) -> None:
        self._is_interactive = streams.is_terminal(sys.stdin)
        self._ended = asyncio.Event()
        self._write_error: OSError | None = None
        self._view = EventView(
            self._write,
            width=self.width,
            reasoning_hint="/thinking shows it" if self._is_interactive else "",
            plain=True,
            shown=shown,
        )

    @property
    def shows_details(self) -> bool:
        return self._view.shows_details

    @shows_details.setter
    def shows_details(self, value: bool) -> None:
        self._view.shows_details = value

    def width(self) -> int:
        return max(20, shutil.get_terminal_size((100, 24)).columns)

    def print_rows(self, rows: list[Row]) -> None:
        self._view.print_rows(rows)

    def on_event(self, event: Event) -> None:
        self._view.on_event(event)

    def last_reasoning(self) -> str:
        return self._view.reasoning

    def restore_input(self, text: str) -> None:
        """Not possible: lines are consumed when they are read."""

    def redraw(self) -> None:
        """Nothing to redraw."""

    async def ask_approval(self, question: ApprovalRequest, *, again: bool = False) -> str | None:
        if not self._is_interactive:
            return ""
        if not again:
            self._view.print_rows(format_question(question, self.width()))
        discard_typed()
        choices = ", ".join(f"{key} {label}" if key != "…" else label for key, label, _ in list_choices(question))
        return await self._read_line(f"? {choices}: ") or ""

    def withdraw_question(self) -> None:
        """Not possible: a line is being read. A command is run only after it was read."""

    async def run(self, handler: InputHandler) -> None:
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if not handler.interrupt():
                handler.leave()

        # A background job is started with SIGINT ignored, and it stays ignored.
        handled = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        with suppress(NotImplementedError, ValueError):
            if handled:
                loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            # At first a prompt of the command line may run.
            await self._wait_or_end(handler.wait_idle())
            while not self._ended.is_set():
                line = await self._read_line(_PROMPT if self._is_interactive else "")
                if line is None:
                    break
                if line.strip():
                    handler.submit(line.strip())
                    await self._wait_or_end(handler.wait_idle())
            if self._write_error is not None:
                raise self._write_error
        finally:
            with suppress(NotImplementedError, ValueError):
                if handled:
                    loop.remove_signal_handler(signal.SIGINT)

    def stop(self) -> None:
        self._ended.set()

    def _write(self, rows: list[Row]) -> None:
        """Write rows; an error ends the chat and is raised by `run`."""
        if self._write_error is None:
            try:
                streams.write(sanitize(rows_to_text(rows)))
            except OSError as error:
                self._write_error = error
                self._ended.set()

    async def _wait_or_end(self, work: Awaitable[object]) -> None:
        """Wait for `work` or the end of the chat."""
        waits = [asyncio.ensure_future(work), asyncio.ensure_future(self._ended.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                if not wait.done():
                    wait.cancel()

    async def _read_line(self, prompt: str) -> str | None:
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
        await self._wait_or_end(read)
        return (read.result() or None) if read.done() and not read.cancelled() else None


def discard_typed() -> None:
    """Discard what was typed before a question was shown."""
    import termios

    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

"""A terminal session: types input and waits for text on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyte

from tests.cli.process import SEGUE
from tests.interrupts import default_interrupt

ENTER, ALT_ENTER, TAB = "\r", "\x1b\r", "\t"
CTRL_C, CTRL_D, CTRL_T, CTRL_V = "\x03", "\x04", "\x14", "\x16"
PROMPT = "ask anything"
_TIMEOUT = 100.0


class TerminalSession:
    """`segue` in its own pty. `raw` has every byte written."""

    def __init__(
        self, *arguments: str, environment: Mapping[str, str], folder: Path, columns: int = 100, rows: int = 40
    ) -> None:
        self.raw = bytearray()
        self._screen = pyte.HistoryScreen(columns, rows, history=5_000, ratio=0.01)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        with default_interrupt():
            self._process = subprocess.Popen(
                [*SEGUE, *arguments],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                env={"TERM": "xterm-256color", **environment, **_found_from_anywhere()},
                cwd=folder,
                start_new_session=True,
            )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        os.close(self._terminal)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._terminal, 65_536)
            except OSError:
                data = b""
            with self._changed:
                self.raw += data
                self._stream.feed(data)
                self._changed.notify_all()
            if not data:
                return

    # ------------------------------------------------------------------------------------------------------ doing

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def enter(self, text: str) -> None:
        """Types a line; Enter follows when the text is on the screen, so no menu entry is chosen."""
        self.type(text)
        self.wait_for_text(text.splitlines()[-1][-20:])
        self.type(ENTER)

    def wait_exit(self) -> int:
        """Waits for the process to end and returns the exit code."""
        code = self._process.wait(_TIMEOUT)
        self._reader.join(_TIMEOUT)
        return code

    def resize(self, columns: int) -> None:
        """Changes the width and rewraps the screen, as most terminals do."""
        with self._changed:
            old, self._screen = self._screen, pyte.HistoryScreen(columns, self._screen.lines, history=5_000, ratio=0.01)
            lines = [line.rstrip() for line in old.display]
            above = lines[: old.cursor.y]
            below = lines[old.cursor.y :]
            while below and not below[-1]:
                below.pop()
            self._stream = pyte.ByteStream(self._screen)
            self._stream.feed("\r\n".join([*above, *below]).encode())
            at = sum(max(1, -(-len(line) // columns)) for line in above) + old.cursor.x // columns
            end = sum(max(1, -(-len(line) // columns)) for line in [*above, *below])
            self._screen.cursor.y = max(0, at - max(0, end - self._screen.lines))
            self._screen.cursor.x = old.cursor.x % columns
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", old.lines, columns, 0, 0))
        self._process.send_signal(signal.SIGWINCH)

    # ---------------------------------------------------------------------------------------------------- looking

    @property
    def pid(self) -> int:
        return self._process.pid

    def styled_lines(self) -> list[list[tuple[str, str, bool, bool]]]:
        """The screen as runs of text, each with its colour, whether it is bold, and whether it is italic."""
        with self._changed:
            rows: list[list[tuple[str, str, bool, bool]]] = []
            for y in range(self._screen.lines):
                row: list[tuple[str, str, bool, bool]] = []
                for x in range(self._screen.columns):
                    char = self._screen.buffer[y][x]
                    style = (char.fg, char.bold, char.italics)
                    if row and row[-1][1:] == style:
                        row[-1] = (row[-1][0] + char.data, *style)
                    else:
                        row.append((char.data, *style))
                rows.append(row)
            return rows

    @property
    def lines(self) -> list[str]:
        """The screen."""
        with self._changed:
            return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The screen and the scrollback."""
        with self._changed:
            above = ["".join(line[x].data for x in range(self._screen.columns)) for line in self._screen.history.top]
            return "\n".join(line.rstrip() for line in [*above, *self._screen.display])

    def wait_for_text(self, *texts: str, count: int = 1) -> None:
        """Waits until each of these texts occurs `count` times."""
        self._until(lambda: all(self._count(text) >= count for text in texts), f"never saw {texts}")

    def wait_until_gone(self, text: str) -> None:
        """Waits until a text is gone from the screen."""
        self._until(lambda: text not in "\n".join(self.lines), f"still sees {text!r}")

    def wait_for(self, what: Any, why: str = "it never came") -> None:
        self._until(what, why)

    def _count(self, text: str) -> int:
        return self.text.count(text)

    def _until(self, what: Any, why: str) -> None:
        end = time.monotonic() + _TIMEOUT
        while not what():
            with self._changed:
                left = end - time.monotonic()
                ended = self._process.poll() is not None and not self._reader.is_alive()
                if left <= 0 or (ended and not what()):
                    raise AssertionError(f"{why}; the screen is\n{self.text.rstrip()}")
                self._changed.wait(min(left, 0.2))


def _found_from_anywhere() -> dict[str, str]:
    """PYTHONPATH with absolute paths, for a process in another folder."""
    given = os.environ.get("PYTHONPATH")
    return (
        {"PYTHONPATH": os.pathsep.join(str(Path(place).resolve()) for place in given.split(os.pathsep))}
        if given
        else {}
    )

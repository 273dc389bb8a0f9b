"""A client on a terminal of its own: keys in, and the files that it writes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.clients.processes import end_session

_SECONDS = 60
_MAX_DRAIN = 2.0
_COLUMNS, _LINES = 120, 60
# What a terminal replies to questions about the cursor and about itself.
_ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c"}


class Terminal:
    """A running client. What it prints is kept in a file, and not interpreted."""

    def __init__(self, command: Sequence[str], folder: Path, work: Path, variables: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, _COLUMNS, 0, 0))
        self._output = (folder / "screen.txt").open("ab", buffering=0)
        self._process = subprocess.Popen(
            command,
            cwd=work,
            env={**{key: value for key, value in variables.items() if key != "CI"}, "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def type(self, *keys: str, until: Callable[[], bool]) -> None:
        """Type keys, each after a pause for the screen, then wait for a condition; `TimeoutError` if it fails."""
        for key in keys:
            self._drain(1.0)
            os.write(self._master, key.encode())
        end = time.monotonic() + _SECONDS
        while not until():
            self._drain(0.2)
            if time.monotonic() > end:
                raise TimeoutError(f"after {keys} the client did not do what was expected")

    def _drain(self, seconds: float) -> None:
        """Read what the client prints until it prints nothing for this time, or for two seconds."""
        end = time.monotonic() + _MAX_DRAIN
        while time.monotonic() < end and select.select([self._master], [], [], seconds)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            self._output.write(data)
            for question, answer in _ANSWERS.items():
                if question in data:
                    os.write(self._master, answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_session(self._process.pid)
        self._process.wait()
        os.close(self._master)
        self._output.close()

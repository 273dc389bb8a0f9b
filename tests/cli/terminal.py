"""`segue` in a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from concurrent.futures import ThreadPoolExecutor

from tests.cli.fork_server import run_forked
from tests.cli.process import environment


def run_in_terminal(*arguments: str, columns: int = 100, **variables: str) -> str:
    """The output in a terminal, escape sequences included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with ThreadPoolExecutor(1) as reader:
        shown = reader.submit(_all_of, ours)
        try:
            run_forked(arguments, environment(**{"TERM": "xterm-256color", **variables}), (theirs, theirs, theirs))
        finally:
            os.close(theirs)
        return shown.result().decode().replace("\r\n", "\n")


def _all_of(terminal: int) -> bytes:
    shown = bytearray()
    try:
        while chunk := os.read(terminal, 65_536):
            shown += chunk
    except OSError:  # how a terminal says that nobody is left to write
        pass
    os.close(terminal)
    return bytes(shown)

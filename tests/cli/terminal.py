"""`segue` in a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios

from tests.cli.process import SEGUE, environment


def in_terminal(*arguments: str, columns: int = 100, **variables: str) -> str:
    """What a user would see, escapes included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = {"TERM": "xterm-256color", **variables}
    with subprocess.Popen(
        [*SEGUE, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**variables)
    ):
        os.close(theirs)
        shown = bytearray()
        try:
            while chunk := os.read(ours, 65_536):
                shown += chunk
        except OSError:  # how a terminal says that nobody is left to write
            pass
        os.close(ours)
    return shown.decode().replace("\r\n", "\n")

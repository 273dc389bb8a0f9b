"""The lists of sessions that the clients show to be resumed, read from a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.clients.processes import end_session

_SECONDS = 60
_ROWS, _COLUMNS = 40, 140
# Questions of a program about its terminal, and the answers of a plain one.
_ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c"}

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "claude": ("--resume",),
    "codex": ("resume",),
    "gemini": ("--list-sessions", "--skip-trust"),
    "qwen": ("--resume",),
    "pi": ("--resume", "--offline"),
    "opencode": ("session", "list", "--pure"),
}
"""The arguments with which a client lists the sessions of its folder."""


def _claude_state(work: Path) -> str:
    trusted = {str(work): {"hasTrustDialogAccepted": True}}
    return json.dumps({"hasCompletedOnboarding": True, "theme": "dark", "projects": trusted})


STATES: Mapping[str, tuple[str, Callable[[Path], str]]] = {"claude": (".claude.json", _claude_state)}
"""A file below the home, without which a client would first show its introduction."""


def is_listed(command: Sequence[str], work: Path, variables: Mapping[str, str], word: str) -> bool:
    """Run a client in a terminal until a word is on its screen; return False if it does not appear."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(work)
        os.execvpe(command[0], list(command), {**variables, "TERM": "xterm-256color"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    shown = b""
    deadline = time.monotonic() + _SECONDS
    try:
        while word.encode() not in shown and time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            shown += data
            for question, answer in _ANSWERS.items():
                if question in data:
                    os.write(terminal, answer)
    finally:
        end_session(process)
        os.close(terminal)
        os.waitpid(process, 0)
    return word.encode() in shown

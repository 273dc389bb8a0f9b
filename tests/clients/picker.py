"""The lists of sessions from which the clients resume one, as they are on the screen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.clients.terminals import Terminal

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "claude": ("--resume",),
    "codex": ("resume",),
    "gemini": ("--list-sessions", "--skip-trust"),
    "qwen": ("--resume",),
    "pi": ("--resume", "--offline"),
    "opencode": ("session", "list", "--pure"),
}
"""The arguments with which a client lists the sessions of its folder."""


def _describe_claude(work: Path) -> str:
    trusted = {str(work): {"hasTrustDialogAccepted": True}}
    return json.dumps({"hasCompletedOnboarding": True, "theme": "dark", "projects": trusted})


_STATES: Mapping[str, tuple[str, Callable[[Path], str]]] = {"claude": (".claude.json", _describe_claude)}
"""A file below the home, without which a client would first show its introduction."""


def is_listed(client: str, command: Sequence[str], folder: Path, variables: Mapping[str, str], *words: str) -> bool:
    """Return whether a client lists a session with one of some words. `command` starts the client."""
    work, screen = folder / "project", folder / "screen.txt"
    if client in _STATES:
        name, describe = _STATES[client]
        (folder / "home" / name).write_text(describe(work))
    with Terminal([*command, *ARGUMENTS[client]], folder, work, variables) as terminal:
        try:
            terminal.type(until=lambda: any(word.encode() in screen.read_bytes() for word in words))
        except TimeoutError:
            return False
    return True

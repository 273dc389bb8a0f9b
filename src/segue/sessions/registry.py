"""The coding clients by name: those whose sessions segue reads and writes, and those that it starts on a gateway."""

from __future__ import annotations

from collections.abc import Mapping

from segue import entry_points
from segue.errors import unknown_name_error
from segue.sessions.claude import ClaudeCode
from segue.sessions.client import Client
from segue.sessions.codex import Codex
from segue.sessions.gemini import GeminiCli
from segue.sessions.launch import Program
from segue.sessions.launched import Cline, Continue, Copilot, Llm
from segue.sessions.opencode import Opencode
from segue.sessions.pi import Pi
from segue.sessions.qwen import QwenCode
from segue.sessions.segue_client import SegueStore

_INSTALLED = (entry_points.load(entry, Client) for entry in entry_points.find("segue.clients").values())
CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        ClaudeCode(),
        Codex(),
        GeminiCli(),
        QwenCode(),
        Opencode(),
        Pi(),
        SegueStore(),
        *_INSTALLED,
    )
}

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (*CLIENTS.values(), Copilot(), Cline(), Continue(), Llm())
    if isinstance(program, Program)
}
"""The clients that `segue with` starts."""


def find_client(name: str, argument: str) -> Client:
    """Return a client by its name; `InputError` for others."""
    try:
        return CLIENTS[name]
    except KeyError:
        raise unknown_name_error("client", name, CLIENTS, path=argument) from None

"""Tools of coding clients: declarations for sessions that do not record any.

Only the tools that a session calls are declared, with the arguments that are known. Nothing is known of their types and
descriptions, so none are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from segue.canonical.blocks import calls_of
from segue.canonical.request import Request, Tool
from segue.sessions.tools import TOOLS, ToolRow


def known_tools(request: Request, client: str) -> tuple[Tool, ...]:
    """Return declarations of the tools that a conversation calls, as far as the client is known to have them."""
    called = dict.fromkeys(call.name for message in request.messages for call in calls_of(message))
    tools = _tools_of(client)
    return tuple(tools[name] for name in called if name in tools)


@cache
def _tools_of(client: str) -> dict[str, Tool]:
    rows: dict[str, list[ToolRow]] = {}
    for row in TOOLS.get(client, ()):
        for name in row.names:
            rows.setdefault(name, []).append(row)
    return {name: _declare(name, found) for name, found in rows.items()}


def undeclared_tools(request: Request) -> list[str]:
    """Return the names of the tools that a conversation calls and that are not declared."""
    declared = {tool.name for tool in request.tools}
    called = dict.fromkeys(call.name for message in request.messages for call in calls_of(message))
    return [name for name in called if name not in declared]


def _declare(name: str, rows: Sequence[ToolRow]) -> Tool:
    """Return the declaration of a tool, which may be for several operations."""
    if any(row.free_text is not None for row in rows):
        return Tool(name, kind="custom")
    names = [argument.item_of or argument.name for row in rows for argument in row.arguments.values()]
    implied = [each for row in rows for each in row.implied]
    properties: dict[str, dict[str, Any]] = {each: {} for each in (*names, *implied)}
    return Tool(name, parameters={"type": "object", "properties": properties})

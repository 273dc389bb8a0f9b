"""Runtime tools made from the tools that an MCP server declares.

A declaration that can't be used is left out, with a reason; the others are not affected. A server's tool annotations
are displayed but not trusted: every call needs approval unless a rule allows it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from segue.canonical.json import encode_json, to_plain_json
from segue.errors import InputError, shorten_message
from segue.runtime.tool_types import ApprovalRequest, ApprovalScope, Arguments, Context, Result, Tool
from segue.runtime.toolbox import find_schema_error
from segue.wire.json_values import require_object

if TYPE_CHECKING:
    import mcp_types

_MAX_NAME = 64
_MAX_SERVER_NAME = 256
_MAX_DESCRIPTION = 4_000
_MAX_SCHEMA_BYTES = 256_000
_HINTS = {"read_only_hint": "read-only", "destructive_hint": "destructive", "open_world_hint": "open-world"}

CallFunction = Callable[[str, Arguments, Context], Awaitable[Result]]


class Declaration(Struct, frozen=True):
    """A valid declaration. `name` is the tool's name on the server."""

    name: str
    description: str
    schema: Mapping[str, Any]
    hints: tuple[str, ...] = ()


class LeftOut(Struct, frozen=True):
    """A tool that is not offered to the model, and the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"


def convert_tools(tools: Iterable[mcp_types.Tool]) -> tuple[list[Declaration], list[LeftOut]]:
    """Convert the tools of a page."""
    declared: list[Declaration] = []
    left_out: list[LeftOut] = []
    for tool in tools:
        try:
            declared.append(_convert_tool(tool))
        except InputError as error:
            left_out.append(LeftOut(shorten_message(repr(tool.name)), shorten_message(str(error))))
    return declared, left_out


def _convert_tool(tool: mcp_types.Tool) -> Declaration:
    if not 0 < len(tool.name) <= _MAX_SERVER_NAME:
        raise InputError(f"1 to {_MAX_SERVER_NAME} characters were expected, not {len(tool.name)}", path="name")
    schema = require_object(to_plain_json({"properties": {}, **tool.input_schema}))
    if (size := len(encode_json(schema))) > _MAX_SCHEMA_BYTES:
        raise InputError(f"{size:,} bytes; the limit is {_MAX_SCHEMA_BYTES:,}", path="inputSchema")
    if error := find_schema_error(schema):
        raise InputError(error, path="inputSchema")
    return Declaration(
        tool.name,
        (tool.description or tool.title or tool.name)[:_MAX_DESCRIPTION],
        schema,
        tuple(text for key, text in _HINTS.items() if getattr(tool.annotations, key, None)),
    )


def make_tools(
    server: str, declarations: Iterable[Declaration], call: CallFunction, *, timeout: float, has_own_timeout: bool
) -> tuple[tuple[Tool, ...], tuple[LeftOut, ...]]:
    """Return a tool for each declaration, in order of name, and the declarations that repeat a name.

    `call` gets the tool's name on the server. With `has_own_timeout`, the user's time limit does not apply.
    """
    tools: dict[str, Tool] = {}
    names: set[str] = set()
    left_out: list[LeftOut] = []
    for declared in sorted(declarations, key=lambda declared: declared.name):
        if declared.name in names:
            left_out.append(LeftOut(repr(declared.name), "declared twice"))
            continue
        names.add(declared.name)
        tool = _make_tool(server, declared, call, tools, timeout=timeout, has_own_timeout=has_own_timeout)
        tools[tool.name] = tool
    return tuple(tools.values()), tuple(left_out)


def _make_tool(
    server: str,
    declared: Declaration,
    call: CallFunction,
    taken: Mapping[str, Tool],
    *,
    timeout: float,
    has_own_timeout: bool,
) -> Tool:
    name = stem = f"{server}__{re.sub(r'[^A-Za-z0-9_-]', '_', declared.name)}"[:_MAX_NAME]
    number = 2
    while name in taken:
        name = f"{stem[: _MAX_NAME - 4]}_{number}"
        number += 1
    raw = declared.name
    hints = [f"(declared by the server: {', '.join(declared.hints)})"] if declared.hints else []

    async def run(arguments: Arguments, context: Context) -> Result:
        return await call(raw, arguments, context)

    def approval_request(arguments: Arguments, folder: Path) -> ApprovalRequest:
        subject = msgspec.json.encode(arguments, order="sorted").decode()
        lines = [f"{key}: {value}" for key, value in arguments.items()]
        return ApprovalRequest(
            name,
            subject,
            f"call {raw} of the MCP server {server}",
            "\n".join([*lines, *hints]),
            scopes=(
                ApprovalScope(f"all calls of {raw}", (name,)),
                ApprovalScope(f"all tools of {server}", (f"{server}__*",)),
            ),
        )

    return Tool(
        name,
        declared.description,
        declared.schema,
        run,
        blocking=False,
        timeout=timeout,
        timeout_mode="own" if has_own_timeout else "inside",
        approval_request=approval_request,
        summarize=lambda arguments: ", ".join(str(value) for value in arguments.values())[:120],
    )

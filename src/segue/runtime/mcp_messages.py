"""Limits of what the MCP SDK reads, and corrections to what it refuses (extra `mcp`).

Measured with mcp 2.3: the SDK reads a line of a process without a limit and in quadratic time (64 MB: 24 seconds), and
the body of a response without a limit, so those are limited here and an event by the SDK. It refuses a whole message
for half of a surrogate pair, which servers write when they shorten a text, and a whole result for one invalid tool or
content block. It never answers the request whose response it can't parse on a line, so that the call would wait until
its time limit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from anyio.abc import ObjectReceiveStream
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter
from mcp_types.methods import parse_server_result
from pydantic import ValidationError

from segue.errors import shorten_message
from segue.wire.json_values import object_or_none

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

# A line, a response, or an event of a stream; an event of short lines takes 30 times the memory.
MAX_BYTES = 16 * 1024 * 1024

_ESCAPE = re.compile(
    # An escape that continues in the next chunk, a surrogate pair, half of a pair, any other escape.
    rb"(?P<rest>\\(?:u\w{0,4}(?:\\u?\w{0,3})?)?\Z)|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w"
    rb"|(?P<half>\\u[dD][89a-fA-F]\w\w)|\\.",
    re.DOTALL,
)
_ID = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,(?!\s*"method")'
    rb'|.*,\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z',
    re.DOTALL,
)
# The version of the protocol that refuses most.
_STRICTEST = "2025-11-25"
_BLOCKS = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource_link": "ResourceLink",
    "resource": "EmbeddedResource",
}
_MAX_BLOCKS = 1_000
_MAX_TOOLS = 10_000
# The members that are used; the others can't make a tool invalid.
_TOOL_MEMBERS = ("name", "title", "description", "inputSchema", "annotations")


class SurrogateFilter:
    """Replaces halves of surrogate pairs in JSON that arrives in chunks."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, chunk: bytes) -> bytes:
        data, self._rest = self._rest + chunk, b""
        return _ESCAPE.sub(self._replace, data) if b"\\" in data else data

    def _replace(self, found: re.Match[bytes]) -> bytes:
        if found["rest"] is not None:
            self._rest = found["rest"]
            return b""
        return found[0] if found["half"] is None else rb"\ufffd"


def parse_line(line: bytes) -> SessionMessage | Exception:
    """Parse a message. A response that can't be parsed is an error of its request."""
    try:
        text = SurrogateFilter().read(line).decode(errors="replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        # The ends suffice, and the search does not depend on the length.
        found = _ID.match(line if len(line) < 1_000 else line[:500] + line[-500:])
        if found is None:
            return error
        data = ErrorData(code=PARSE_ERROR, message=f"the response is invalid: {describe_error(error)}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1] or found[2]), error=data))


def describe_error(error: ValueError, depth: int = 0, branch: str = "") -> str:
    """Return the first error of a validation, of a branch if it has any, without the first parts of its path."""
    if not isinstance(error, ValidationError):
        return str(error)
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    first = next((found for found in errors if branch in found["loc"]), errors[0])
    path = ".".join(map(str, first["loc"][depth:]))
    return f"{path}: {first['msg']}" if path else first["msg"]


@asynccontextmanager
async def drop_invalid(
    transport: AbstractAsyncContextManager[TransportStreams], on_drop: Callable[[str, str], None]
) -> AsyncGenerator[TransportStreams]:
    """Open a transport whose results have no invalid tools and blocks. `on_drop` gets a tool's name and the reason."""
    async with transport as (reading, writing):
        yield cast("Any", _CheckedStream(reading, on_drop)), writing


class _CheckedStream(ObjectReceiveStream["SessionMessage | Exception"]):
    def __init__(self, stream: Any, on_drop: Callable[[str, str], None]) -> None:
        self._stream = stream
        self._on_drop = on_drop

    async def receive(self) -> SessionMessage | Exception:
        item: SessionMessage | Exception = await self._stream.receive()
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            check_result(item.message.result, self._on_drop)
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()


def check_result(result: dict[str, Any], on_drop: Callable[[str, str], None]) -> None:
    """Drop the tools that the SDK would refuse, and replace such content blocks by the reason."""
    if isinstance(result.get("tools"), list):
        tools = cast("list[object]", result["tools"])
        if len(tools) > _MAX_TOOLS:
            on_drop("all further tools", f"the limit of a list is {_MAX_TOOLS:,}")
        kept: list[object] = []
        result["tools"] = kept
        for position, entry in enumerate(map(_read_tool, tools[:_MAX_TOOLS]), 1):
            if reason := _find_tool_error(entry):
                name = (object_or_none(entry) or {}).get("name")
                on_drop(shorten_message(repr(name)) if isinstance(name, str) else f"tool {position}", reason)
            else:
                kept.append(entry)
    if "structuredContent" in result:
        result.setdefault("content", [])
    if isinstance(result.get("content"), list):
        content = cast("list[object]", result["content"])
        result["content"] = [_read_block(block, number) for number, block in enumerate(content[:_MAX_BLOCKS], 1)]
        if len(content) > _MAX_BLOCKS:
            note = f"[{len(content) - _MAX_BLOCKS:,} more content blocks left out]"
            result["content"].append({"type": "text", "text": note})


def _read_tool(entry: object) -> object:
    if (members := object_or_none(entry)) is None:
        return entry
    tool = {name: members[name] for name in _TOOL_MEMBERS if name in members}
    if (schema := object_or_none(tool.get("inputSchema"))) is not None:
        tool["inputSchema"] = {"type": "object", **schema}
    return tool


def _find_tool_error(tool: object) -> str:
    error = _find_error("tools/list", {"tools": [tool]}, 2)
    return error or find_invalid_x_mcp_header(cast("dict[str, Any]", tool)["inputSchema"]) or ""


def _read_block(block: object, number: int) -> object:
    kind = (object_or_none(block) or {}).get("type")
    if isinstance(kind, str) and kind not in _BLOCKS:
        error = f"unknown type {shorten_message(repr(kind))}"
    else:
        error = _find_error("tools/call", {"content": [block]}, 3, _BLOCKS.get(str(kind), "TextContent"))
    return {"type": "text", "text": f"[content block {number} left out: {error}]"} if error else block


def _find_error(method: str, result: dict[str, Any], depth: int, branch: str = "") -> str:
    try:
        parse_server_result(method, _STRICTEST, result)
    except ValueError as error:
        return describe_error(error, depth, branch)
    return ""

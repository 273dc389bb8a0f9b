"""A transport for the MCP SDK that parses the results of `tools/list` and `tools/call` before the SDK validates them.

The SDK refuses a whole result for one invalid tool or content block. It gets a reduced result instead, which is valid
in every protocol version and holds the parsed one in `_meta`. A response that can't be parsed becomes an error of its
request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from segue.runtime.mcp_results import parse_result
from segue.runtime.mcp_tools import parse_tools

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCError, JSONRPCResponse

_PARSED = "segue/parsed"
_PARSED_METHODS = ("tools/list", "tools/call")


class _Parsed(str):
    """A parsed result. It is a string because the SDK serializes what it validates."""

    __slots__ = ("value",)
    value: Any

    @classmethod
    def wrap(cls, value: Any) -> dict[str, _Parsed]:
        parsed = cls()
        parsed.value = value
        return {_PARSED: parsed}


def parsed_result(result: Any) -> Any:
    """Return the parsed form of an SDK result: a `ToolPage` of `tools/list`, a `Result` of `tools/call`."""
    return result.meta[_PARSED].value


@asynccontextmanager
async def parse_results(transport: AbstractAsyncContextManager[TransportStreams]) -> AsyncGenerator[Any]:
    """Open a transport and yield its streams, which parse the results."""
    async with transport as (reading, writing):
        requests: dict[str, str] = {}
        yield _ReadStream(reading, requests), _WriteStream(writing, requests)


class _WriteStream:
    """The client's messages; `requests` gets the id and the method of each request."""

    def __init__(self, stream: WriteStream[SessionMessage], requests: dict[str, str]) -> None:
        self._stream = stream
        self._requests = requests

    async def send(self, item: SessionMessage, /) -> None:
        method = getattr(item.message, "method", None)
        if method is not None and (identifier := getattr(item.message, "id", None)) is not None:
            self._requests[str(identifier)] = method
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _WriteStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)


class _ReadStream:
    """The server's messages, with reduced results."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], requests: dict[str, str]) -> None:
        self._stream = stream
        self._requests = requests

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._reduce(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _ReadStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._reduce(await self._stream.__anext__())

    async def __aenter__(self) -> _ReadStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)

    def _reduce(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(item, Exception):
            return item
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            method = self._requests.pop(str(message.id), None)
            if isinstance(message, JSONRPCResponse):
                item.message = _reduce_response(method, message)
        return item


def _reduce_response(method: str | None, message: JSONRPCResponse) -> JSONRPCResponse | JSONRPCError:
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    from segue.runtime.mcp_messages import decode_message, find_original

    result: object = message.result
    if (text := find_original(result)) is not None:
        original, reason = decode_message(text)
        result = original.get("result")
        if method not in _PARSED_METHODS or not isinstance(result, dict):
            error = f"the server's response is invalid: {reason or _describe_response(original)}"
            return JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=INTERNAL_ERROR, message=error))
    if method not in _PARSED_METHODS:
        return message
    return message.model_copy(update={"result": _reduce_result(method, cast("dict[str, Any]", result))})


def _describe_response(message: Mapping[str, Any]) -> str:
    error: object = message.get("error")
    if isinstance(error, dict):
        error = cast("dict[str, object]", error).get("message")
    if isinstance(error, str):
        return error[:500]
    return "it has neither a result nor an error that is an object"


def _reduce_result(method: str, result: dict[str, Any]) -> dict[str, Any]:
    if method == "tools/call":
        if result.get("resultType") == "input_required":
            return result
        return {"resultType": "complete", "content": [], "_meta": _Parsed.wrap(parse_result(result))}
    page = parse_tools(result)
    return {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        # The SDK reads which arguments are also sent as HTTP headers from the schemas.
        "tools": [{"name": tool.name, "inputSchema": tool.schema} for tool in page.tools],
        "_meta": _Parsed.wrap(page),
    }

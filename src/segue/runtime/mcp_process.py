"""An MCP server that runs as a process (extra `mcp`): each line of its stdin and stdout is a message.

Lines are read in linear time, up to a limit. No process that the server started outlives it, and none outlives segue.
Its stderr never reaches the terminal; the last lines are kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from segue.runtime.mcp_messages import parse_message
from segue.runtime.tools.shell_process import SupervisedProcess
from segue.wire.limits import DEFAULT_LIMITS

_MAX_BYTES = DEFAULT_LIMITS.bytes
_CHUNK = 65_536
_FLUSH_SECONDS = 0.5
_LAST_LINES_SECONDS = 0.2
# A server ends when its stdin is closed; one that does not is ended.
_CLOSE_SECONDS = 2.0

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


class LineSplitter:
    """Splits chunks of bytes into lines, in linear time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # A buffer and not a list of chunks, each of which would take the memory of an object.
        self._line = bytearray()

    def split(self, chunk: bytes) -> list[bytes]:
        """Return the lines that are complete with this chunk; `ValueError` for a line above the limit."""
        lines: list[bytes] = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            lines.append(bytes(self._line))
            self._line.clear()
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        if len(self._line) + len(part) > self._limit:
            raise ValueError(f"the message is larger than {self._limit:,} bytes")
        self._line += part


@asynccontextmanager
async def run_server(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stderr_lines: deque[str],
    on_error: Callable[[str], None],
) -> AsyncGenerator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """Start a server and yield the streams of its messages; end it afterwards.

    `stderr_lines` gets the lines of its stderr, `on_error` the reason why its messages are no longer read.
    """
    environment = get_default_environment() | dict(environment)
    process = await SupervisedProcess.start(command, folder, environment)
    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    messages = asyncio.create_task(_read_messages(process, incoming, on_error))
    requests = asyncio.create_task(_write_messages(process, outgoing, incoming))
    errors = asyncio.create_task(_read_stderr(process, stderr_lines))
    try:
        yield reading, writing
    finally:
        with anyio.CancelScope(shield=True):
            reading.close()
            writing.close()
            await asyncio.wait({requests}, timeout=_FLUSH_SECONDS)
            await _end_process(process)
            # Processes that could not be ended may keep the pipe open.
            await asyncio.wait({errors}, timeout=_LAST_LINES_SECONDS)
            for task in (messages, requests, errors):
                task.cancel()
            await asyncio.wait({messages, requests, errors})
            incoming.close()
            outgoing.close()
            process.close()


async def _read_messages(process: SupervisedProcess, incoming: _Incoming, on_error: Callable[[str], None]) -> None:
    """Send the messages to `incoming` until it is closed, then discard them, so that the server does not block."""
    assert process.stdout is not None
    splitter = LineSplitter(_MAX_BYTES)
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError), incoming:
        while chunk := await process.stdout.read(_CHUNK):
            try:
                lines = splitter.split(chunk)
            except ValueError as error:
                on_error(str(error))
                process.kill()
                break
            for line in lines:
                await incoming.send(_parse_line(line))
    while await process.stdout.read(_CHUNK):
        pass


def _parse_line(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(parse_message(line))
    except ValueError as error:
        return error


async def _write_messages(process: SupervisedProcess, outgoing: _Outgoing, incoming: _Incoming) -> None:
    """Write the client's messages. If the server does not read them, the connection has ended."""
    assert process.stdin is not None
    try:
        async with outgoing:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()
    except OSError:
        incoming.close()


async def _read_stderr(process: SupervisedProcess, lines: deque[str]) -> None:
    assert process.stderr is not None
    rest = b""
    while chunk := await process.stderr.read(_CHUNK):
        *complete, rest = (rest + chunk)[-8_192:].split(b"\n")
        lines.extend(text for line in complete if (text := line.decode("utf-8", "replace").strip()))


async def _end_process(process: SupervisedProcess) -> None:
    assert process.stdin is not None
    process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await process.wait()
    await process.end()

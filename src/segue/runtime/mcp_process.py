"""An MCP server that runs as a process (extra `mcp`): each line of its stdin and stdout is a message.

It replaces the SDK's `stdio_client`, which has no limit for a line, does not end the processes that a server leaves in
other groups, and needs a file for stderr. Here, no process that the server started outlives it, and none outlives
segue. Its stderr never reaches the terminal; the last lines are kept.
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

from segue.runtime.mcp_messages import MAX_BYTES, parse_line
from segue.runtime.tools.shell_process import SupervisedProcess

_CHUNK = 65_536
_FLUSH_SECONDS = 0.5
_LAST_LINES_SECONDS = 0.2
# A server ends when its stdin is closed; one that does not is ended.
_CLOSE_SECONDS = 2.0

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


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
    process = await SupervisedProcess.start(command, folder, environment, max_line=MAX_BYTES)
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
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError), incoming:
        try:
            async for line in process.stdout:
                await incoming.send(parse_line(line))
        except ValueError:
            on_error(f"the message is larger than {MAX_BYTES:,} bytes")
            process.kill()
    while await process.stdout.read(_CHUNK):
        pass


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

"""The process of an MCP server: finding its command, reading its stderr, ending its process group."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["LEADER_SCRIPT", "StderrReader", "cancel_and_wait", "find_command"]

# Shell script: writes its process group id to stderr, then becomes the server.
LEADER_SCRIPT = 'echo "$$" >&2; exec "$@"'


async def cancel_and_wait(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


def find_command(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The path of a command; `FileNotFoundError` if it does not exist."""
    path = (
        shutil.which(str(folder / command)) if "/" in command else shutil.which(command, path=environment.get("PATH"))
    )
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "no such command", command)
    return path


class StderrReader:
    """Reads a server's stderr: the last lines are kept, and nothing reaches the terminal."""

    def __init__(self, lines: deque[str]) -> None:
        self._lines = lines
        self._group: int | None = None

    def kill_group(self) -> None:
        if self._group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        with suppress(ValueError):
            self._group = int(await stream.readline())
        rest = b""
        while chunk := await stream.read(65_536):
            *complete, rest = (rest + chunk)[-8_192:].split(b"\n")
            self._lines.extend(text for line in complete if (text := line.decode("utf-8", "replace").strip()))

    @asynccontextmanager
    async def open_pipe(self) -> AsyncGenerator[Any]:
        """Yields the writable end of a pipe, for the server's stderr."""
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        stream = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(stream)
        transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(reading, "rb"))
        task = asyncio.create_task(self._read(stream))
        try:
            with os.fdopen(writing, "w") as file:
                yield file
        finally:
            # Wait briefly for the last lines, but not for child processes that keep the pipe open.
            await asyncio.wait({task}, timeout=0.2)
            await cancel_and_wait(task)
            transport.close()

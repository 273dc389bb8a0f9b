"""The process of an MCP server: what it says of itself, and that nothing of it is left."""

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

__all__ = ["LEADER", "Overheard", "ended", "found"]

# For a shell: says whom it leads, the server and all that it starts, and becomes the server.
LEADER = 'echo "$$" >&2; exec "$@"'


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


def found(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The program that a command means."""
    there = (
        shutil.which(str(folder / command)) if "/" in command else shutil.which(command, path=environment.get("PATH"))
    )
    if there is None:
        raise FileNotFoundError(errno.ENOENT, "no such command", command)
    return there


class Overheard:
    """What a server says of itself: the end of it is kept, and nothing reaches the terminal."""

    def __init__(self, lines: deque[str]) -> None:
        self._lines = lines
        self._group: int | None = None

    def end_group(self) -> None:
        if self._group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        with suppress(ValueError):
            self._group = int(await stream.readline())
        rest = b""
        while piece := await stream.read(65_536):
            *whole, rest = (rest + piece)[-8_192:].split(b"\n")
            self._lines.extend(text for line in whole if (text := line.decode("utf-8", "replace").strip()))

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Any]:
        """A file to write to."""
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
            # What was written last is worth having; heirs that hold the pipe are not worth waiting for.
            await asyncio.wait({task}, timeout=0.2)
            await ended(task)
            transport.close()

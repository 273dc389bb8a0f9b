"""`SharedMetrics`: the counters of all workers of a gateway, served by each of them.

Each worker writes its counters to a file of its own, beside the run file. The file of a worker that ended stays, so
that no counter decreases.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from segue.gateway.metrics import Metrics, MetricsSnapshot
from segue.gateway.run_file import is_running

_INTERVAL = 1.0


class SharedMetrics:
    """The counters of this process and of those that write to files with the same `prefix`."""

    def __init__(self, own: Metrics, prefix: Path) -> None:
        self._own = own
        self._prefix = prefix
        self._file = prefix.with_name(f"{prefix.name}-{os.getpid()}")
        self._written = b""

    def render(self) -> str:
        """Return all counters as text; those of other processes are at most a second old."""
        total = Metrics()
        total.add(self._own.snapshot())
        for file in self._prefix.parent.glob(f"{self._prefix.name}-*[0-9]"):
            if file == self._file:
                continue
            with suppress(OSError, msgspec.MsgspecError, ValueError):
                process = int(file.name.rpartition("-")[2])
                other = msgspec.json.decode(file.read_bytes(), type=MetricsSnapshot)
                total.add(other, is_running=is_running(process))
        return total.render()

    async def publish(self) -> None:
        """Write the counters whenever they change, until the task is cancelled."""
        try:
            while True:
                self._write()
                await asyncio.sleep(_INTERVAL)
        finally:
            self._write()

    def _write(self) -> None:
        data = msgspec.json.encode(self._own.snapshot())
        if data == self._written:
            return
        temporary = self._file.with_name(f"{self._file.name}.{secrets.token_hex(4)}.new")
        with suppress(OSError):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as output:
                output.write(data)
            temporary.replace(self._file)
            self._written = data

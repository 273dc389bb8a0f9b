"""`SharedMetrics`: the counters of all workers of a gateway, served by each of them.

Each worker writes its counters to a file of its own, beside the record file. The file of a worker that ended stays, so
that no counter decreases.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from segue import private_files
from segue.gateway.metrics import Metrics, MetricsSnapshot
from segue.processes import is_running, start_time

_INTERVAL = 1.0


class SharedMetrics:
    """The counters of this process and of those that write to files with the same `prefix`."""

    def __init__(self, own: Metrics, prefix: Path) -> None:
        self._own = own
        self._prefix = prefix
        self._file = prefix.with_name(f"{prefix.name}-{start_time(os.getpid())}-{os.getpid()}")
        self._written = b""

    def render(self) -> str:
        """Return all counters as text; those of other processes are at most a second old."""
        total = Metrics(self._own.find_paused)
        total.add(self._own.snapshot())
        for file in self._prefix.parent.glob(f"{self._prefix.name}-*[0-9]"):
            if file == self._file:
                continue
            with suppress(OSError, msgspec.MsgspecError, ValueError):
                started, _, process = file.name.removeprefix(f"{self._prefix.name}-").partition("-")
                other = msgspec.json.decode(file.read_bytes(), type=MetricsSnapshot)
                total.add(other, is_running=is_running(int(process), started))
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
        with suppress(OSError):
            private_files.replace(self._file, data, is_durable=False)
            self._written = data

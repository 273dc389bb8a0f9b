"""Workers of a gateway: processes that accept connections on one socket, and the `Supervisor` that restarts them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from segue.errors import InputError

_RESTART_DELAY = 1.0
_KILL_DELAY = 10.0
_READY = b"ready\n"


class WorkerHandoff(Struct, frozen=True):
    """The values that a supervisor sends to a worker: listening socket, token of control calls, and record file."""

    socket: int
    token: str
    record: str

    def open_socket(self) -> socket.socket:
        return socket.socket(fileno=self.socket)


def read_handoff() -> WorkerHandoff:
    """Read the handoff of this worker from standard input.

    The supervisor keeps the pipe open; when it ends, even by SIGKILL, this process drains and ends too.
    """
    # Without a buffer: a thread that waits in one would break the end of the interpreter.
    pipe = sys.stdin.fileno()
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(pipe, 4096)
        if not data:
            raise InputError("workers are started only by segue serve --workers", path="worker")
        line += data

    def wait() -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="segue supervisor", daemon=True).start()
    try:
        return msgspec.json.decode(line, type=WorkerHandoff)
    except msgspec.MsgspecError as error:
        raise InputError(f"invalid values for a worker: {error}", path="worker") from None


def report_ready() -> None:
    """Report to the supervisor that this worker accepts connections."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), _READY)


class Supervisor:
    """Runs `number` workers, starts another when one ends, and passes signals on. `log` writes a line to the log.

    SIGTERM and SIGINT end it when all workers have drained; SIGHUP lets each reload its routes.
    """

    def __init__(
        self,
        command: Sequence[str],
        number: int,
        handoff: WorkerHandoff,
        listening: socket.socket,
        log: Callable[[str], None],
    ) -> None:
        self._command = command
        self._handoff = handoff
        self._listening = listening
        self._log = log
        self._running: dict[int, Process] = {}
        self._ready = [asyncio.Event() for _ in range(number)]
        self._is_stopping = False
        self._signal = 0
        self._has_failed = False
        self._drain_seconds = 0.0

    async def run(self, on_ready: Callable[[], None], drain_seconds: float) -> int:
        """Run until a signal ends it, and return its number; raise `InputError` if a worker does not start."""
        self._drain_seconds = drain_seconds
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._pass_on, signal.SIGHUP)
        workers = [asyncio.create_task(self._keep_running(slot)) for slot in range(len(self._ready))]
        for ready in self._ready:
            await ready.wait()
        if not self._is_stopping:
            on_ready()
        await asyncio.gather(*workers)
        if self._has_failed:
            raise InputError("a worker did not start", path="workers")
        return self._signal

    async def _keep_running(self, slot: int) -> None:
        while not self._is_stopping:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, pass_fds=(self._handoff.socket,), process_group=0
            )
            self._running[slot] = process
            is_ready = await self._send_handoff(process, slot)
            code = await process.wait()
            del self._running[slot]
            if self._is_stopping:
                break
            if not is_ready and not self._ready[slot].is_set():
                self._has_failed = True
                self._stop(signal.SIGTERM)
                break
            self._log(f"worker {process.pid} ended with code {code}; another one is started")
            if not is_ready:
                await asyncio.sleep(_RESTART_DELAY)
        self._ready[slot].set()

    async def _send_handoff(self, process: Process, slot: int) -> bool:
        """Give a new worker its handoff, and wait until it is ready; return False if it ends before."""
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(ConnectionError):
            process.stdin.write(msgspec.json.encode(self._handoff) + b"\n")
            await process.stdin.drain()
        is_ready = await process.stdout.readline() == _READY
        if is_ready:
            self._ready[slot].set()
        if self._is_stopping:
            _send(process, signal.SIGTERM)
        return is_ready

    def _stop(self, number: signal.Signals) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._signal = number
            # No connection may wait here that no worker accepts any more.
            self._listening.close()
            asyncio.get_running_loop().call_later(self._drain_seconds + _KILL_DELAY, self._pass_on, signal.SIGKILL)
        self._pass_on(number)

    def _pass_on(self, number: signal.Signals) -> None:
        for process in self._running.values():
            _send(process, number)


def _send(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)

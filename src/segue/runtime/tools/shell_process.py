"""A command or an MCP server that runs under a supervisor, as an asynchronous process.

No process of the command outlives it, except those that `end` returns. If segue ends in any way, the supervisor ends
the command.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process, SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

_SUPERVISOR = ("-I", "-S", str(Path(__file__).with_name("shell_supervisor.py")))
# Some builds of Python do not start without them.
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_GRACE = 1.0
_REPORT_SECONDS = 30.0
_CHUNK = 65_536


class Remainder(Struct, frozen=True):
    """Processes that could not be ended: those that are known, as `PID COMMAND`, and whether there may be others."""

    processes: tuple[str, ...] = ()
    has_unknown: bool = False


class SupervisedProcess:
    """A running command. `stdin`, `stdout` and `stderr` are its pipes, and those of the processes that it started."""

    _stdin = PIPE
    _stderr = PIPE

    def __init__(
        self,
        process: Process,
        ended: asyncio.Event,
        close: Callable[[], None],
        status: asyncio.StreamReader,
        control: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._ended = ended
        self.close = close
        self._status = status
        self._control = control
        self._left: list[str] = []
        self._has_unknown = False
        self._is_killed = False
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._status_task = asyncio.ensure_future(self._read_status())

    @classmethod
    async def start(
        cls, argv: Sequence[str], folder: Path, environment: Mapping[str, str], max_line: int = _CHUNK
    ) -> Self:
        """Start a command; `OSError` if that is not possible. `max_line` limits `readline` of its output."""
        loop = asyncio.get_running_loop()
        own, other = socket.socketpair()
        with other:
            try:
                status, control = await asyncio.open_connection(sock=own)
            except BaseException:
                own.close()
                raise
            try:
                transport, protocol = await loop.subprocess_exec(
                    lambda: _Protocol(limit=max_line, loop=loop),
                    sys.executable,
                    *_SUPERVISOR,
                    str(other.fileno()),
                    stdin=cls._stdin,
                    stderr=cls._stderr,
                    cwd=folder,
                    env={name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ},
                    pass_fds=(other.fileno(),),
                    start_new_session=True,
                )
            except BaseException:
                control.close()
                raise
        # Python changes the environment of its own process (LC_CTYPE), so that of the command is sent separately.
        data = marshal.dumps((list(argv), dict(environment)))
        control.write(len(data).to_bytes(4, "big") + data)
        return cls(Process(transport, protocol, loop), protocol.ended, transport.close, status, control)

    async def wait(self) -> int:
        """Return the exit code of the command, negative for a signal; processes that it started may still run."""
        return await asyncio.shield(self._exit_code)

    def kill(self) -> None:
        """Let the supervisor kill the command and all its processes."""
        self._is_killed = True
        self._control.write_eof()

    async def end(self) -> Remainder:
        """End the command and all its processes: SIGTERM, then SIGKILL. If cancelled while waiting, kill at once."""
        try:
            if not self._exit_code.done() and not self._is_killed:
                self._control.write(b"T")
                async with asyncio.timeout(_GRACE):
                    await self.wait()
        except TimeoutError:
            pass
        finally:
            self.kill()
            # The command can stop its supervisor.
            self._signal_supervisor(signal.SIGCONT)
        try:
            async with asyncio.timeout(_REPORT_SECONDS):
                await asyncio.shield(self._status_task)
        except TimeoutError:
            self._has_unknown = True
            self._signal_supervisor(signal.SIGKILL)
        finally:
            self._status_task.cancel()
            self._control.close()
        return Remainder(tuple(self._left), self._has_unknown)

    def _signal_supervisor(self, number: int) -> None:
        # `Process.send_signal` reaps a process that has just ended, and its exit code is lost.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    async def _read_status(self) -> None:
        # The connection is reset if the supervisor was killed before it read everything.
        with suppress(ConnectionError):
            while line := (await self._status.readline()).decode(errors="replace").rstrip("\n"):
                kind, _, value = line.partition(" ")
                match kind:
                    case "exit" if not self._exit_code.done():
                        self._exit_code.set_result(int(value))
                    case "left":
                        self._left.append(value)
                    case _:
                        self._has_unknown = True
        # `Process.wait` would also wait for the pipes, which other processes may hold.
        await self._ended.wait()
        code = self._process.returncode or 0
        if not self._exit_code.done():
            self._exit_code.set_result(code)
        # The command can kill its supervisor.
        self._has_unknown |= code != 0


class ShellProcess(SupervisedProcess):
    """A command without input, whose `stdout` is its output and that of the processes that it started."""

    _stdin = DEVNULL
    _stderr = STDOUT

    async def end(self) -> Remainder:
        try:
            return await super().end()
        finally:
            self.close()

    @property
    def output(self) -> asyncio.StreamReader:
        assert self.stdout is not None
        return self.stdout


class _Protocol(SubprocessStreamProtocol):
    """Sets `ended` at the end of a process, even if its pipes are open."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.ended = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.ended.set()

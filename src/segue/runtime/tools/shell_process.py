"""A shell command that runs under a supervisor, as an asynchronous process.

No process of the command outlives it, except those that `end` returns. If segue ends in any way, the supervisor ends
the command.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

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


class ShellProcess:
    """A running command. `output` is its output and that of the processes that it started."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        control: asyncio.StreamWriter,
        output: _Pipe,
        status: _Pipe,
    ) -> None:
        self._process = process
        self._control = control
        self._output_pipe = output
        self._status_pipe = status
        self._left: list[str] = []
        self._has_unknown = False
        self.output = output.stream
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._status_task = asyncio.ensure_future(self._read_status())

    @classmethod
    async def start(cls, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> ShellProcess:
        """Start a command; `OSError` if that is not possible."""
        output = await _Pipe.open()
        try:
            status = await _Pipe.open()
        except BaseException:
            output.close()
            raise
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *_SUPERVISOR,
                str(status.writing),
                stdin=asyncio.subprocess.PIPE,
                stdout=output.writing,
                stderr=output.writing,
                cwd=folder,
                env={name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ},
                pass_fds=(status.writing,),
                start_new_session=True,
            )
        except BaseException:
            output.close()
            status.close()
            raise
        output.close_writing()
        status.close_writing()
        assert process.stdin is not None
        # Python changes the environment of its own process (LC_CTYPE), so that of the command is sent separately.
        data = marshal.dumps((list(argv), dict(environment)))
        process.stdin.write(len(data).to_bytes(4, "big") + data)
        return cls(process, process.stdin, output, status)

    async def wait(self) -> int:
        """Return the exit code of the command, negative for a signal; processes that it started may still run."""
        return await asyncio.shield(self._exit_code)

    async def end(self) -> Remainder:
        """End the command and all its processes: SIGTERM, then SIGKILL. If cancelled while waiting, kill at once."""
        try:
            if not self._exit_code.done():
                self._control.write(b"T")
                async with asyncio.timeout(_GRACE):
                    await self.wait()
        except TimeoutError:
            pass
        finally:
            self._control.close()
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
            self._output_pipe.close()
            self._status_pipe.close()
        return Remainder(tuple(self._left), self._has_unknown)

    def _signal_supervisor(self, number: int) -> None:
        # `Process.send_signal` reaps a process that has just ended, and its exit code is lost.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    async def _read_status(self) -> None:
        while line := (await self._status_pipe.stream.readline()).decode(errors="replace").rstrip("\n"):
            kind, _, value = line.partition(" ")
            match kind:
                case "exit" if not self._exit_code.done():
                    self._exit_code.set_result(int(value))
                case "left":
                    self._left.append(value)
                case _:
                    self._has_unknown = True
        code = await self._process.wait()
        if not self._exit_code.done():
            self._exit_code.set_result(code)
        # The command can kill its supervisor.
        self._has_unknown |= code != 0


class _Pipe:
    """A pipe that a child process writes to and this process reads from."""

    def __init__(self, stream: asyncio.StreamReader, transport: asyncio.ReadTransport, writing: int) -> None:
        self.stream = stream
        self.writing = writing
        self._transport = transport

    @classmethod
    async def open(cls) -> _Pipe:
        reading, writing = os.pipe()
        stream = asyncio.StreamReader(limit=_CHUNK)
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb")
            )
        except BaseException:
            os.close(writing)
            raise
        return cls(stream, transport, writing)

    def close_writing(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def close(self) -> None:
        self.close_writing()
        self._transport.close()

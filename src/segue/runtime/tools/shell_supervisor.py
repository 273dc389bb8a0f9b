"""The process between segue and a command of the agent or an MCP server. It ends every process that this one started.

It runs as a program of its own and imports only the standard library. On Linux it is a subreaper: a process whose
parent has ended becomes its child, also after `setsid`, `nohup … &` or a double fork. So as long as the supervisor has
a child, some process of the command is alive, and none is left when it has no child. Elsewhere it kills the process
group of the command, and a pipe that all processes of the command inherit shows whether one of them is left.

The first argument is the file descriptor of a socket. From segue come the command and its environment, then `T` for
SIGTERM. When nothing can come any more, also because segue ended, SIGKILL is sent. Segue gets the lines `exit CODE`,
`left PID COMMAND` and `unknown`. Standard input and output are those of the command.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import select
import signal
import sys
import time
from collections.abc import Mapping

_SET_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 5.0
_KILL_INTERVAL = 0.02
# A command that signals its parent does not end the supervisor.
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
# Ignored by Python itself.
_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        return ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


class _Process:
    """A row of the process table."""

    def __init__(self, pid: int) -> None:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            state, parent, group = file.read().rpartition(b")")[2].split()[:3]
        self.pid = pid
        self.parent = int(parent)
        self.group = int(group)
        self.has_ended = state in (b"Z", b"X")

    def describe(self) -> str:
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as file:  # noqa: PTH123
                text = file.read(200).replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
        return " ".join(text.split())


def _list_descendants() -> list[_Process]:
    """Return all living descendants of this process."""
    children: dict[int, list[_Process]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                process = _Process(int(name))
            except (OSError, ValueError):
                continue
            children.setdefault(process.parent, []).append(process)
    found: list[_Process] = []
    parents = [os.getpid()]
    while parents:
        below = children.pop(parents.pop(), [])
        parents.extend(process.pid for process in below)
        found.extend(process for process in below if not process.has_ended)
    return found


class _Supervisor:
    def __init__(self, control: int) -> None:
        self._control = control
        self._is_subreaper = _prctl(_SET_CHILD_SUBREAPER, 1) and os.path.exists("/proc/self/stat")  # noqa: PTH110
        self._alive_pipe, self._alive_pipe_end = (-1, -1) if self._is_subreaper else os.pipe()
        self._wakeup, self._wakeup_end = os.pipe()
        self._is_stopped = False
        self._command = 0
        self._segue = os.getppid()

    def run(self) -> None:
        argv, environment = self._read_command()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(self._wakeup_end, False)
        signal.set_wakeup_fd(self._wakeup_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, self._stop)
        # If segue is killed, this signal also wakes a supervisor that the command has stopped.
        signal.signal(signal.SIGCONT, self._stop_as_orphan)
        _prctl(_SET_DEATH_SIGNAL, signal.SIGCONT)
        inherited = {number: signal.signal(number, signal.SIG_IGN) for number in _IGNORED}
        self._start(argv, environment, inherited)
        while not self._is_stopped:
            self._wait_for_signal(None)
            self._reap()
        if self._is_subreaper:
            self._kill_descendants()
        else:
            self._kill_group()

    def _read_command(self) -> tuple[list[str], dict[str, str]]:
        size = int.from_bytes(self._read_bytes(4), "big")
        return marshal.loads(self._read_bytes(size))

    def _read_bytes(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._read(size - len(data))
            if not chunk:
                sys.exit(0)
            data += chunk
        return data

    def _read(self, size: int) -> bytes:
        """Read from segue; nothing if it has ended, perhaps before it read all lines."""
        try:
            return os.read(self._control, size)
        except OSError:
            return b""

    def _stop(self, number: int, frame: object) -> None:
        self._is_stopped = True

    def _stop_as_orphan(self, number: int, frame: object) -> None:
        self._is_stopped = self._is_stopped or os.getppid() != self._segue

    def _start(self, argv: list[str], environment: dict[str, str], inherited: Mapping[signal.Signals, object]) -> None:
        supervisor = os.getpid()
        self._command = os.fork()
        if self._command:
            null = os.open(os.devnull, os.O_RDWR)
            for handle in range(3):
                os.dup2(null, handle)
            if not self._is_subreaper:
                os.close(self._alive_pipe_end)
            return
        try:
            os.setsid()
            _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(1)
            for number in (*_IGNORED, *_DEFAULT):
                kept = inherited.get(number) is signal.SIG_IGN
                signal.signal(number, signal.SIG_IGN if kept else signal.SIG_DFL)
            if not self._is_subreaper:
                os.set_inheritable(self._alive_pipe_end, True)
            os.execve(argv[0], argv, environment)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)

    def _wait_for_signal(self, seconds: float | None) -> None:
        """Wait for the end of a child or, without a time limit, for a byte from segue."""
        sources = [self._wakeup] if seconds is not None else [self._wakeup, self._control]
        readable = select.select(sources, [], [], seconds)[0]
        if self._wakeup in readable:
            os.read(self._wakeup, 4096)
        if self._control in readable:
            if self._read(1):
                self._terminate()
            else:
                self._is_stopped = True

    def _reap(self) -> bool:
        """Reap the children that have ended; return whether there are others."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self._command:
                self._report(f"exit {os.waitstatus_to_exitcode(status)}")

    def _terminate(self) -> None:
        if self._is_subreaper:
            _signal_groups(_list_descendants(), signal.SIGTERM)
        else:
            _signal_group(self._command, signal.SIGTERM)

    def _kill_descendants(self) -> None:
        """Kill until no child is left: a process that left its group meanwhile is killed in the next round."""
        deadline = time.monotonic() + _KILL_SECONDS
        while self._reap():
            found = _list_descendants()
            if time.monotonic() > deadline or not _signal_groups(found, signal.SIGKILL):
                for process in found:
                    self._report(f"left {process.pid} {process.describe()}")
                if not found:
                    self._report("unknown")
                return
            self._wait_for_signal(_KILL_INTERVAL)

    def _kill_group(self) -> None:
        """Kill the process group, and report if a process outside of it holds the inherited pipe open."""
        _signal_group(self._command, signal.SIGKILL)
        deadline = time.monotonic() + _KILL_SECONDS
        while self._reap() and time.monotonic() < deadline:
            self._wait_for_signal(_KILL_INTERVAL)
        # The processes of the group close the pipe a moment after the signal.
        if not select.select([self._alive_pipe], [], [], 1.0)[0]:
            self._report("unknown")

    def _report(self, line: str) -> None:
        try:
            os.write(self._control, f"{line}\n".encode(errors="replace"))
        except OSError:
            return


def _signal_groups(processes: list[_Process], number: int) -> bool:
    """Send a signal to the groups of these processes; return False if no group may be signalled.

    The kernel signals a whole group at once: no process of it can fork in between. Their groups are their own, as the
    command runs in a session of its own.
    """
    signalled = [_signal_group(group, number) for group in {process.group for process in processes}]
    return any(signalled) or not processes


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


if __name__ == "__main__":
    control_handle = int(sys.argv[1])
    os.set_inheritable(control_handle, False)
    _Supervisor(control_handle).run()

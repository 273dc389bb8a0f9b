"""`FolderSnapshot`: the files of a folder before a command, so that what the command changed can be found.

Files that git ignores, folders such as `.git`, and names that are not UTF-8 are not part of it. Links are not followed,
and folders have their modes. A file that was not touched since an earlier snapshot is not read again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from segue.runtime.checkpoint_journal import FileState, Journal
from segue.runtime.sandbox import TEMPORARY_PREFIX, resolve
from segue.runtime.tool_types import ToolError
from segue.runtime.tools.walk import Entry, walk

_MAX_FILES = 5_000
_MAX_BYTES = 64_000_000
_MAX_FILE = 16_000_000
# File times have a resolution: a file changed this shortly before a snapshot is read again.
_TIME_RESOLUTION = 50_000_000


class SnapshotError(Exception):
    """The folder is too large, or can't be read."""


class _SeenFile(Struct, frozen=True, array_like=True):
    """A file with what changes when it is written."""

    state: FileState
    inode: int
    changed_at: int
    modified_at: int


class FolderSnapshot(Struct):
    """All files, links and folders below a folder, by their paths relative to it."""

    files: dict[str, _SeenFile]
    taken_at: int

    @classmethod
    def take(cls, folder: Path, journal: Journal, earlier: FolderSnapshot | None = None) -> FolderSnapshot:
        """Read the folder and store the contents; `SnapshotError` above the limits."""
        snapshot = cls({}, time.time_ns())
        count = total = 0
        try:
            if earlier is None:
                # Before anything is read.
                _check_size(folder)
            for entry in walk(resolve(".", folder)):
                is_temporary = entry.name.startswith(TEMPORARY_PREFIX) and entry.name.endswith(".part")
                if is_temporary or journal.is_own_path(folder, entry.path) or not _is_text(entry.path):
                    continue
                known = earlier.files.get(entry.path) if earlier is not None else None
                seen = _read_entry(entry, journal, known, earlier.taken_at if earlier is not None else 0)
                if seen is None:
                    continue
                snapshot.files[entry.path] = seen
                count += seen.state.kind != "folder"
                total += seen.state.size if seen.state.digest is not None else 0
                _check_limits(count, total)
        except (OSError, ToolError) as error:
            raise SnapshotError(f"the folder can't be read: {error}") from None
        return snapshot

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def load(cls, data: bytes) -> FolderSnapshot | None:
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def changes_to(self, later: FolderSnapshot) -> Iterator[tuple[str, FileState | None, FileState | None]]:
        """Yield each path that differs, with its state here and in the later snapshot; not the new folders."""
        for path in sorted(self.files.keys() | later.files.keys()):
            before, after = self.files.get(path), later.files.get(path)
            one, other = before.state if before is not None else None, after.state if after is not None else None
            if one is None and other is not None and other.kind == "folder":
                continue
            if one != other or (one is not None and one.digest is None and before != after):
                yield path, one, other

    def new_folders(self, path: str) -> tuple[str, ...]:
        """Return the folders above a path that are not in this snapshot, the deepest first."""
        parents = [parent.as_posix() for parent in Path(path).parents if parent != Path()]
        return tuple(parent for parent in parents if parent not in self.files)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_size(folder: Path) -> None:
    count = total = 0
    for entry in walk(resolve(".", folder)):
        if not entry.is_folder:
            size = os.stat(entry.name, dir_fd=entry.handle, follow_symlinks=False).st_size
            count, total = count + 1, total + (size if size <= _MAX_FILE else 0)
            _check_limits(count, total)


def _check_limits(files: int, size: int) -> None:
    if files > _MAX_FILES:
        raise SnapshotError(f"the folder has more than {_MAX_FILES:,} files")
    if size > _MAX_BYTES:
        raise SnapshotError(f"the files of the folder have more than {_MAX_BYTES // 10**6} MB")


def _read_entry(entry: Entry, journal: Journal, known: _SeenFile | None, known_at: int) -> _SeenFile | None:
    """Return a file, link or folder of the walk; None for anything else. A file that can't be read has no content."""
    try:
        facts = os.stat(entry.name, dir_fd=entry.handle, follow_symlinks=False)
        mode = stat.S_IMODE(facts.st_mode)
        if stat.S_ISDIR(facts.st_mode):
            # Its times change with what is in it.
            return _SeenFile(FileState(None, mode, 0, "folder"), 0, 0, 0)
        if stat.S_ISLNK(facts.st_mode):
            target = os.fsencode(os.readlink(entry.name, dir_fd=entry.handle))
            return _SeenFile(FileState(journal.store(target), 0, len(target), "link"), 0, 0, 0)
        if not stat.S_ISREG(facts.st_mode):
            return None
        seen = (facts.st_ino, facts.st_ctime_ns, facts.st_mtime_ns)
        if (
            known is not None
            and (known.inode, known.changed_at, known.modified_at) == seen
            and facts.st_ctime_ns < known_at - _TIME_RESOLUTION
            and (known.state.digest is None or journal.has_content(known.state.digest))
        ):
            return known
        if facts.st_size > _MAX_FILE:
            return _SeenFile(FileState(None, mode, facts.st_size), *seen)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            handle = os.open(entry.name, flags, dir_fd=entry.handle)
        except PermissionError:
            return _SeenFile(FileState(None, mode, facts.st_size), *seen)
        with os.fdopen(handle, "rb") as file:
            data = file.read(_MAX_FILE + 1)
    except FileNotFoundError:
        return None
    return _SeenFile(FileState(journal.store(data), mode, len(data)), *seen)

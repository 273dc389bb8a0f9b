"""A disk that can fail and lose power, below the `sqlite3` module: a VFS in SQLite's own C interface, made with ctypes.

The `sqlite3` module has no interface for a VFS, and one that is registered through apsw lives in apsw's own copy of
SQLite. So the VFS is registered in the library that the `sqlite3` module itself is linked to: the store under test is
the real one, and no compiler is needed. Each file gets a copy of the system's table of functions, in which those that
use the disk are replaced; locks stay as they are.

`Disk` records every write, truncation, sync and deletion, and fails the chosen ones. `PowerLoss` replays the record
and returns what may be on disk if the power fails at some point of it: what was synced, and any part of the rest.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import random
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, cast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

FULL, CANTOPEN = 13, 14
IOERR_READ, IOERR_WRITE, IOERR_FSYNC, IOERR_TRUNCATE, IOERR_DELETE, IOERR_SHMMAP = 266, 778, 1034, 1546, 2570, 5386
_OPEN_WAL_OR_JOURNAL = 0x80000 | 0x800
_SECTOR = 512

_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_CLOSE = CFUNCTYPE(c_int, c_void_p)
_MOVE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
_SHM_MAP = CFUNCTYPE(c_int, c_void_p, c_int, c_int, c_int, c_void_p)


class _Vfs(Structure):
    """`sqlite3_vfs`."""

    _fields_ = (
        *(("version", c_int), ("file_size", c_int), ("longest_path", c_int), ("next", c_void_p), ("name", c_char_p)),
        *(("data", c_void_p), ("open", _OPEN), ("delete", _DELETE), ("rest", c_void_p * 14)),
    )


class _Methods(Structure):
    """`sqlite3_io_methods`."""

    _fields_ = (
        *(("version", c_int), ("close", _CLOSE), ("read", _MOVE), ("write", _MOVE), ("truncate", _TRUNCATE)),
        *(("sync", _SYNC), ("until_shm", c_void_p * 7), ("shm_map", _SHM_MAP), ("rest", c_void_p * 5)),
    )


class _File(Structure):
    """The beginning of every `sqlite3_file`."""

    _fields_ = (("methods", POINTER(_Methods)),)


@cache
def find_library() -> ctypes.CDLL | None:
    """Return the SQLite library of the `sqlite3` module; None if Python does not export its functions."""
    try:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        library.sqlite3_libversion.restype = c_char_p
    except (AttributeError, OSError, TypeError):
        return None
    return library if library.sqlite3_libversion() == sqlite3.sqlite_version.encode() else None


Kind = Literal["open", "read", "write", "truncate", "sync", "delete", "map"]


@dataclass(frozen=True)
class Op:
    """A recorded change of the disk. `file` numbers files in the order of their creation; a name can be reused."""

    kind: Literal["open", "write", "truncate", "sync", "delete", "mark"]
    file: int = 0
    name: str = ""
    offset: int = 0
    data: bytes = b""
    syncs_folder: bool = False
    mark: Any = None


@dataclass(frozen=True)
class Fault:
    """Fail operation number `at` of this kind with an error code; with `stays`, all later ones too."""

    kind: Kind
    at: int
    code: int
    stays: bool = False


class Disk:
    """The files of one store, as SQLite uses them."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.ops: list[Op] = []
        self.counts: dict[Kind, int] = {}
        self.fault: Fault | None = None
        self.has_failed = False
        self._live: dict[str, int] = {}
        self._files: dict[int, int] = {}
        self._count = 0
        self._tables: dict[int, _Methods] = {}

    def mark(self, mark: object) -> None:
        """Record a point of the program between the operations."""
        self.ops.append(Op("mark", mark=mark))

    @contextmanager
    def mounted(self) -> Generator[None]:
        """Use this disk for every SQLite file of this process that is opened meanwhile."""
        library = find_library()
        assert library is not None
        self._system = library.sqlite3_vfs_find(None)
        vfs = _Vfs()
        ctypes.pointer(vfs)[0] = self._system.contents
        vfs.name = b"faults"
        vfs.open, vfs.delete = _OPEN(self._open), _DELETE(self._delete)
        library.sqlite3_vfs_register(ctypes.byref(vfs), 1)
        try:
            yield
        finally:
            library.sqlite3_vfs_unregister(ctypes.byref(vfs))
            library.sqlite3_vfs_register(self._system, 1)

    def _fails(self, kind: Kind) -> int:
        """Count this operation, and return the code with which it has to fail, or 0."""
        number = self.counts[kind] = self.counts.get(kind, -1) + 1
        fault = self.fault
        if fault is None or fault.kind != kind or not (number == fault.at or (fault.stays and number > fault.at)):
            return 0
        self.has_failed = True
        return fault.code

    def _open(self, _vfs: int, path: int | None, file: int, flags: int, out: int | None) -> int:
        found = Path((cast(path, c_char_p).value or b"").decode()) if path else None
        if found is None or found.parent != self.path.parent:
            return self._system.contents.open(cast(self._system, c_void_p), path, file, flags, out)
        if code := self._fails("open"):
            cast(file, POINTER(_File)).contents.methods = None
            return code
        name = found.name
        # Read at the first opening only: closing the handle drops the locks that SQLite holds.
        content = found.read_bytes() if name not in self._live and found.exists() else None
        code = self._system.contents.open(cast(self._system, c_void_p), path, file, flags, out)
        opened = cast(file, POINTER(_File)).contents
        if not code and opened.methods:
            if name not in self._live:
                self._count += 1
                self._live[name] = self._count
                new_log = content is None and bool(flags & _OPEN_WAL_OR_JOURNAL)
                self.ops.append(Op("open", self._count, name, data=content or b"", syncs_folder=new_log))
            self._files[file] = self._live[name]
            opened.methods = ctypes.pointer(self._table(opened.methods))
        return code

    def _delete(self, _vfs: int, path: bytes, syncs_folder: int) -> int:
        if code := self._fails("delete"):
            return code
        name = Path(path.decode()).name
        code = self._system.contents.delete(cast(self._system, c_void_p), path, syncs_folder)
        if not code and self._live.pop(name, None):
            self.ops.append(Op("delete", name=name, syncs_folder=bool(syncs_folder)))
        return code

    def _table(self, methods: Any) -> _Methods:
        """Return the copy of a table of functions in which those that use the disk are replaced."""
        address = ctypes.addressof(methods.contents)
        if address in self._tables:
            return self._tables[address]
        system = methods.contents
        table = _Methods()
        ctypes.memmove(ctypes.byref(table), methods, ctypes.sizeof(_Methods))

        def close(file: int) -> int:
            self._files.pop(file, None)
            return system.close(file)

        def read(file: int, data: int, count: int, offset: int) -> int:
            return self._fails("read") or system.read(file, data, count, offset)

        def write(file: int, data: int, count: int, offset: int) -> int:
            if code := self._fails("write"):
                # A full disk takes the first part.
                count = count // 2 if code == FULL else 0
            if count:
                self.ops.append(Op("write", self._files[file], offset=offset, data=ctypes.string_at(data, count)))
            return (system.write(file, data, count, offset) if count else 0) or code

        def truncate(file: int, size: int) -> int:
            if code := self._fails("truncate"):
                return code
            self.ops.append(Op("truncate", self._files[file], offset=size))
            return system.truncate(file, size)

        def sync(file: int, _flags: int) -> int:
            if code := self._fails("sync"):
                return code
            # Nothing has to reach the real disk: `PowerLoss` computes what would have.
            self.ops.append(Op("sync", self._files[file]))
            return 0

        def shm_map(file: int, page: int, size: int, extend: int, out: int) -> int:
            return self._fails("map") or system.shm_map(file, page, size, extend, out)

        table.close, table.read, table.write = _CLOSE(close), _MOVE(read), _MOVE(write)
        table.truncate, table.sync = _TRUNCATE(truncate), _SYNC(sync)
        if system.version >= 2 and system.shm_map:
            table.shm_map = _SHM_MAP(shm_map)
        self._tables[address] = table
        return table


@dataclass
class _Inode:
    synced: bytearray
    is_new: bool
    """Whether SQLite syncs the folder with the first sync of this file."""
    pending: list[Op] = field(default_factory=list)


Image = dict[str, bytes]
Choose = Callable[[list[Op]], Iterator[Op]]


class PowerLoss:
    """What may be on disk after each recorded operation. Sectors are written whole, in any order; syncs are kept."""

    def __init__(self) -> None:
        self._files: dict[int, _Inode] = {}
        self._live: dict[str, int] = {}
        self._durable: dict[str, int] = {}

    def apply(self, op: Op) -> None:
        match op.kind:
            case "open":
                self._files[op.file] = _Inode(bytearray(op.data), op.syncs_folder)
                self._live[op.name] = op.file
                if not op.syncs_folder:
                    self._durable[op.name] = op.file
            case "write" | "truncate":
                self._files[op.file].pending.append(op)
            case "sync":
                file = self._files[op.file]
                for pending in file.pending:
                    _apply(file.synced, pending)
                file.pending.clear()
                if file.is_new:
                    file.is_new = False
                    self._durable = dict(self._live)
            case "delete":
                del self._live[op.name]
                if op.syncs_folder:
                    self._durable = dict(self._live)
            case "mark":
                pass

    def nothing_more(self) -> Image:
        """What was synced, and nothing else."""
        return self._image(self._durable, lambda _: iter(()))

    def everything(self) -> Image:
        return self._image(self._live, iter)

    def torn(self, chance: random.Random) -> Image:
        """The first writes in order, and of the next one some sectors from its start."""

        def choose(pending: list[Op]) -> Iterator[Op]:
            count = chance.randrange(len(pending) + 1)
            yield from pending[:count]
            for op in pending[count : count + 1]:
                sectors = list(_sectors(op))
                yield from sectors[: chance.randrange(len(sectors) + 1)]

        return self._image(chance.choice((self._durable, self._live)), choose)

    def reordered(self, chance: random.Random) -> Image:
        """Any of the sectors that were not synced."""
        share = chance.random()

        def choose(pending: list[Op]) -> Iterator[Op]:
            return (sector for op in pending for sector in _sectors(op) if chance.random() < share)

        return self._image(chance.choice((self._durable, self._live)), choose)

    def _image(self, names: dict[str, int], choose: Choose) -> Image:
        image: Image = {}
        for name, number in names.items():
            file = self._files[number]
            content = bytearray(file.synced)
            for op in choose(file.pending):
                _apply(content, op)
            image[name] = bytes(content)
        return image


def _sectors(op: Op) -> Iterator[Op]:
    """Yield a write as one write for each sector; a truncation is whole."""
    if op.kind == "truncate":
        yield op
        return
    start, end = op.offset, op.offset + len(op.data)
    while start < end:
        stop = min(end, (start // _SECTOR + 1) * _SECTOR)
        yield Op("write", op.file, offset=start, data=op.data[start - op.offset : stop - op.offset])
        start = stop


def _apply(content: bytearray, op: Op) -> None:
    if op.kind == "truncate":
        del content[op.offset :]
        content.extend(bytes(op.offset - len(content)))
        return
    content.extend(bytes(max(0, op.offset - len(content))))
    content[op.offset : op.offset + len(op.data)] = op.data


def write_image(image: Image, folder: Path) -> None:
    """Replace the files of this folder by the files of the image."""
    for file in folder.iterdir():
        file.unlink()
    for name, content in image.items():
        (folder / name).write_bytes(content)

"""Files of this machine and of any store that fsspec knows by a URL: listing, opening, and writing them whole.

URLs need fsspec, which comes with the extra ray.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from segue.errors import InputError

STATE = ".segue-corpus"
"""The folder that `segue corpus convert` keeps beside its output."""
_SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", STATE})
_REPORTS = frozenset({"corpus.json", "rejects.jsonl"})
_SUFFIXES = (".jsonl", ".json", ".ndjson", ".gz", ".zst")


def is_url(name: str) -> bool:
    return "://" in name


def _store_of(url: str) -> tuple[Any, str]:
    try:
        fsspec: Any = import_module("fsspec")
        return fsspec.url_to_fs(url)
    except ImportError as error:
        raise InputError(f"a URL needs fsspec, as in the extra ray: {error}", path=url) from None


def find_files(paths: Iterable[str], without: Folder | None = None) -> Iterator[str]:
    """Yield the files at some paths, those of folders in order; each file once, whatever links lead to it.

    Links to folders are not followed. Files in the folder `without` are left out.
    """
    seen: set[object] = set()
    for name in paths:
        for file in _find_in_store(name) if is_url(name) else _find_here(name):
            key = file if is_url(file) else _identity(file)
            if key not in seen and (without is None or not without.has(file)):
                seen.add(key)
                yield file


def _find_here(name: str) -> Iterator[str]:
    path = Path(name)
    if not os.path.lexists(path):
        raise InputError("there is no such file or folder", path=name)
    if not path.is_dir():
        yield name
        return
    for root, folders, names in os.walk(path):
        reports = _REPORTS if STATE in folders else frozenset[str]()
        folders[:] = sorted(each for each in folders if each not in _SKIPPED_FOLDERS)
        yield from (str(Path(root, each)) for each in sorted(set(names) - reports) if each.endswith(_SUFFIXES))


def _find_in_store(url: str) -> Iterator[str]:
    store, path = _store_of(url)
    found = store.find(path)
    if not found:
        raise InputError("there is no such file or folder", path=url)
    is_file = found == [path]
    yield from (store.unstrip_protocol(each) for each in sorted(found) if is_file or each.endswith(_SUFFIXES))


def _identity(file: str) -> object:
    try:
        status = Path(file).stat()
    except OSError:
        # A link that leads nowhere, or to itself.
        return file
    return status.st_dev, status.st_ino


def stat_file(name: str) -> tuple[int, str]:
    """Return the size of a file, and a stamp that shows whether it has changed."""
    if is_url(name):
        store, path = _store_of(name)
        return store.size(path), str(store.ukey(path))
    status = Path(name).stat()
    if not Path(name).is_file():
        raise InputError("not a file")
    return status.st_size, str(status.st_mtime_ns)


@contextmanager
def open_file(content: str | bytes) -> Generator[BinaryIO]:
    """Open a file, which is decompressed by its name, or some content."""
    if isinstance(content, bytes):
        yield io.BytesIO(content)
        return
    store, path = _store_of(content) if is_url(content) else (None, content)
    with store.open(path, "rb") if store is not None else Path(path).open("rb") as raw:
        if content.endswith(".gz"):
            with gzip.open(raw) as stream:
                yield cast("BinaryIO", stream)
        elif content.endswith(".zst"):
            with open_zstd(raw, "rb") as stream:
                yield cast("BinaryIO", stream)
        else:
            yield raw


def open_zstd(stream: BinaryIO, mode: str) -> Any:
    """Open a stream that is compressed with zstd."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            zstd: Any = import_module(name)
        except ImportError:
            continue
        return zstd.open(stream, mode)
    raise InputError("zstd needs Python 3.14 or the extra zstd: pip install 'segue[zstd]'")


class Folder:
    """A folder of output. What is written takes its place whole, or not at all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._store, self._root = _store_of(name) if is_url(name) else (None, name)
        self._real = os.path.realpath(self._root)

    def has(self, file: str) -> bool:
        """Return whether a file is in this folder."""
        if self._store is not None:
            return file.startswith(self.name.rstrip("/") + "/")
        return not is_url(file) and os.path.realpath(file).startswith(self._real + os.sep)

    def exists(self, name: str = "") -> bool:
        place = self._place(name)
        return self._store.exists(place) if self._store is not None else Path(place).exists()

    def is_empty(self) -> bool:
        if self._store is not None:
            return not self._store.find(self._root)
        path = Path(self._root)
        return not path.exists() or (path.is_dir() and not any(path.iterdir()))

    def read(self, name: str) -> bytes:
        place = self._place(name)
        return self._store.cat_file(place) if self._store is not None else Path(place).read_bytes()

    def remove(self, name: str) -> None:
        if self.exists(name):
            place = self._place(name)
            _ = self._store.rm(place, recursive=True) if self._store is not None else _remove(Path(place))

    @contextmanager
    def replacing(self, name: str) -> Generator[Path]:
        """Give a temporary path. A file or folder that is made there takes the place of `name`, if no error occurs."""
        if self._store is not None:
            with tempfile.TemporaryDirectory() as folder:
                yield (temporary := Path(folder, Path(name).name))
                self.remove(name)
                if temporary.exists():
                    self._store.makedirs(self._place(name).rpartition("/")[0], exist_ok=True)
                    self._store.put(str(temporary), self._place(name), recursive=temporary.is_dir())
            return
        path = Path(self._place(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        _remove(temporary)
        try:
            yield temporary
            if temporary.is_file():
                with temporary.open("rb") as stream:
                    os.fsync(stream.fileno())
            if temporary.exists():
                if path.is_dir():
                    shutil.rmtree(path)
                temporary.replace(path)
            else:
                self.remove(name)
        finally:
            _remove(temporary)

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

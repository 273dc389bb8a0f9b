"""The journal of files that the tools of a conversation changed, and the contents of these files.

A record is on disk before the change that it describes. Records are only appended, one JSON line each; a line that was
cut off by a crash is skipped. Contents are stored once, by their SHA-256. All files are readable by their owner only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from segue import private_files

_MAX_AGE = 30 * 86_400
_SWEEP_INTERVAL = 86_400
_KEPT_CONTENT = 3_600


class FileState(Struct, frozen=True):
    """Content and mode of a file, target of a link, or mode of a folder.

    `digest` is None for a folder, and if the content was too large to be stored.
    """

    digest: str | None
    mode: int
    size: int
    kind: Literal["file", "link", "folder"] = "file"


class Change(Struct, frozen=True, tag="change"):
    """A file that a call changed; a state is None if there was no file.

    `folders` are those that were created for it. `is_uncertain` is True if the change was found after a crash: a part
    of it may be the user's.
    """

    id: str
    exchange: str
    call: str
    tool: str
    path: str
    before: FileState | None
    after: FileState | None
    folders: tuple[str, ...] = ()
    is_uncertain: bool = False


class Unrecorded(Struct, frozen=True, tag="unrecorded"):
    """A command ran, and what it changed is not known."""

    exchange: str
    call: str
    command: str
    reason: str


class CommandStarted(Struct, frozen=True, tag="started"):
    """A command starts. `snapshot` is the name of the file with the state of the folder before it."""

    exchange: str
    call: str
    command: str
    snapshot: str


class CommandEnded(Struct, frozen=True, tag="ended"):
    """The command with this snapshot ended, and its changes are recorded."""

    snapshot: str


class RestoredFile(Struct, frozen=True):
    """A file that was restored, and what was there before."""

    path: str
    replaced: FileState | None
    restored: FileState | None
    folders: tuple[str, ...] = ()


class Undone(Struct, frozen=True, tag="undone"):
    """The changes with these ids were undone, or done again with `is_redo`. `redoes` is the id of the undo."""

    id: str
    changes: tuple[str, ...]
    files: tuple[RestoredFile, ...]
    is_redo: bool = False
    redoes: str = ""
    is_silent: bool = False
    """Whether the messages were removed too, so that the model need not be informed."""


class Informed(Struct, frozen=True, tag="informed"):
    """The model was informed about all that was undone so far."""


Record: TypeAlias = Change | Unrecorded | CommandStarted | CommandEnded | Undone | Informed
_decoder = msgspec.json.Decoder(Record)
_encoder = msgspec.json.Encoder()


class Journal:
    """The journal of one conversation in one folder. `root` is the place for all conversations of the folder."""

    def __init__(self, root: Path, conversation: str) -> None:
        self.root = root
        self._file = root / f"{conversation}.jsonl"

    @property
    def exists(self) -> bool:
        return self._file.exists()

    def is_own_path(self, folder: Path, path: str) -> bool:
        """Return whether `path`, relative to a folder, is in the folder of the journals."""
        return self.root.is_relative_to(folder) and (folder / path).is_relative_to(self.root)

    def read(self) -> list[Record]:
        try:
            lines = self._file.read_bytes().splitlines()
        except OSError:
            return []
        return [record for line in lines if (record := _decode(line)) is not None]

    def append(self, *records: Record) -> None:
        """Append records; they are on disk when this returns."""
        data = b"".join(_encoder.encode(record) + b"\n" for record in records)
        private_files.append(self._file, data, is_durable=True)

    # -------------------------------------------------------------------------------------------------------- contents

    def store(self, data: bytes) -> str:
        """Store a content and return its digest."""
        digest = hashlib.sha256(data).hexdigest()
        file = self._content_file(digest)
        if not file.exists():
            self._write(file, data)
        return digest

    def has_content(self, digest: str | None) -> bool:
        return digest is not None and self._content_file(digest).exists()

    def load(self, digest: str) -> bytes | None:
        """Return a content; None if it is missing or damaged."""
        try:
            data = self._content_file(digest).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def _content_file(self, digest: str) -> Path:
        return self.root / "contents" / digest[:2] / digest

    def write_snapshot(self, name: str, data: bytes) -> None:
        self._write(self.root / "snapshots" / name, data)

    def read_snapshot(self, name: str) -> bytes | None:
        try:
            return (self.root / "snapshots" / name).read_bytes()
        except OSError:
            return None

    def remove_snapshot(self, name: str) -> None:
        (self.root / "snapshots" / name).unlink(missing_ok=True)

    def _write(self, file: Path, data: bytes) -> None:
        private_files.make_folder(file.parent)
        # Thousands of files may be stored before a command.
        private_files.replace(file, data, is_durable=False)


def _decode(line: bytes) -> Record | None:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def folder_root(base: Path, folder: Path) -> Path:
    """Return the place for the journals of a folder."""
    return base / hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]


def delete_journals(base: Path, conversation: str) -> None:
    """Delete the journals of a conversation in all folders; contents that no journal needs are deleted later."""
    for file in base.glob(f"*/{conversation}.jsonl"):
        file.unlink(missing_ok=True)


def prune(base: Path, *, now: float | None = None) -> None:
    """Delete journals after 30 days without a change, and contents that no journal needs. Does so once a day."""
    now = time.time() if now is None else now
    marker = base / "pruned"
    with suppress(OSError):
        if now - marker.stat().st_mtime < _SWEEP_INTERVAL:
            return
    with suppress(OSError):
        private_files.make_folder(base)
        marker.touch(0o600)
        for root in [path for path in base.iterdir() if path.is_dir()]:
            _prune_folder(root, now)


def _prune_folder(root: Path, now: float) -> None:
    journals = list(root.glob("*.jsonl"))
    for file in journals:
        if now - file.stat().st_mtime > _MAX_AGE:
            file.unlink()
    remaining = list(root.glob("*.jsonl"))
    if not remaining and journals:
        shutil.rmtree(root, ignore_errors=True)
        return
    needed = {digest for file in remaining for digest in _find_digests(file)}
    for content in root.glob("contents/*/*"):
        if content.name not in needed and now - content.stat().st_mtime > _KEPT_CONTENT:
            content.unlink(missing_ok=True)


def _find_digests(file: Path) -> Iterator[str]:
    for line in file.read_bytes().splitlines():
        match _decode(line):
            case Change(before=before, after=after):
                states = [before, after]
            case Undone(files=files):
                states = [state for each in files for state in (each.replaced, each.restored)]
            case _:
                continue
        yield from (state.digest for state in states if state is not None and state.digest is not None)

"""The project files that the user trusts, by path and content hash, so that trust ends when a file changes.

Folders are trusted by path: the instruction files in them and below are used as they are. One file per entry in the
user's state folder, readable by its owner only.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from segue import private_files
from segue.cli import streams

# In the place of a hash, for an entry that is a folder.
_FOLDER = "folder"


class _Entry(Struct):
    path: str
    sha256: str


def is_trusted(file: Path, data: bytes) -> bool:
    """Return whether the user has trusted this file with exactly this content."""
    path = Path(os.path.realpath(file))
    return _read_entry(path) == _Entry(str(path), sha256(data).hexdigest())


def _read_entry(path: Path) -> _Entry | None:
    try:
        return msgspec.json.decode(_entry_path(path).read_bytes(), type=_Entry)
    except (OSError, msgspec.MsgspecError):
        return None


def is_trusted_folder(folder: Path) -> bool:
    """Return whether the user has trusted this folder, or one above it."""
    path = Path(os.path.realpath(folder))
    return any(_read_entry(each) == _Entry(str(each), _FOLDER) for each in (path, *path.parents))


def add_folder(folder: Path) -> None:
    """Trust a folder."""
    path = Path(os.path.realpath(folder))
    _write_entry(_Entry(str(path), _FOLDER))


def add(file: Path, data: bytes) -> None:
    """Trust a file until it changes."""
    path = Path(os.path.realpath(file))
    _write_entry(_Entry(str(path), sha256(data).hexdigest()))


def _write_entry(entry: _Entry) -> None:
    entry_file = _entry_path(Path(entry.path))
    with streams.translate_write_errors(entry_file):
        private_files.make_folder(entry_file.parent)
        private_files.replace(entry_file, msgspec.json.encode(entry))


def remove(file: Path) -> bool:
    """Stop trusting a file or folder and return whether it was trusted."""
    entry_file = _entry_path(Path(os.path.realpath(file)))
    try:
        entry_file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise streams.WriteError(f"can't remove {entry_file}: {streams.format_os_error(error)}") from None
    return True


def _entry_path(path: Path) -> Path:
    folder = Path(platformdirs.user_state_dir("segue", appauthor=False)) / "trusted"
    return folder / sha256(os.fsencode(path)).hexdigest()[:32]

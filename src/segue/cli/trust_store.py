"""The project files that the user trusts, by path and content hash, so that trust ends when a file changes.

One file per entry in the user's state folder, readable by its owner only.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from segue.cli import streams


class _Entry(Struct):
    path: str
    sha256: str


def is_trusted(file: Path, data: bytes) -> bool:
    """Return whether the user has trusted this file with exactly this content."""
    path = Path(os.path.realpath(file))
    try:
        entry = msgspec.json.decode(_entry_path(path).read_bytes(), type=_Entry)
    except (OSError, msgspec.MsgspecError):
        return False
    return entry == _Entry(str(path), sha256(data).hexdigest())


def add(file: Path, data: bytes) -> None:
    """Trust a file until it changes."""
    path = Path(os.path.realpath(file))
    entry_file = _entry_path(path)
    try:
        entry_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise streams.WriteError(f"can't write {entry_file.parent}: {streams.format_os_error(error)}") from None
    entry = _Entry(str(path), sha256(data).hexdigest())
    streams.replace_file(str(entry_file), msgspec.json.encode(entry), private=True)


def remove(file: Path) -> bool:
    """Stop trusting a file and return whether it was trusted."""
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

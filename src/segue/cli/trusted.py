"""Which project files the user has trusted: by place and content, so that one that changes is asked about again.

A file for each in the user's state folder, its owner's alone. Nobody but the user writes there.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from segue.cli import streams

__all__ = ["forget", "is_trusted", "remember"]


class _Kept(Struct):
    path: str
    sha256: str


def is_trusted(file: Path, data: bytes) -> bool:
    """Whether the user has trusted this file with just this in it."""
    place = Path(os.path.realpath(file))
    try:
        kept = msgspec.json.decode(_note(place).read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return False
    return kept == _Kept(str(place), sha256(data).hexdigest())


def remember(file: Path, data: bytes) -> None:
    """From now on it is trusted, until it changes."""
    place = Path(os.path.realpath(file))
    note = _note(place)
    try:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise streams.Unwritable(f"can't write {note.parent}: {streams.reason(error)}") from None
    kept = _Kept(str(place), sha256(data).hexdigest())
    streams.replace_file(str(note), msgspec.json.encode(kept), private=True)


def forget(file: Path) -> bool:
    """It is no longer trusted; gives whether it was."""
    note = _note(Path(os.path.realpath(file)))
    try:
        note.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise streams.Unwritable(f"can't remove {note}: {streams.reason(error)}") from None
    return True


def _note(place: Path) -> Path:
    folder = Path(platformdirs.user_state_dir("segue", appauthor=False)) / "trusted"
    return folder / sha256(os.fsencode(place)).hexdigest()[:32]

"""The file with the secret that envelopes are sealed with, made on first use and readable by its owner only."""

from __future__ import annotations

import secrets
import warnings
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_state_path

from segue import private_files
from segue.bridge.envelopes import MIN_KEY_SIZE, EnvelopeKeys
from segue.errors import InputError

_FILE_NAME = "envelope.key"


def load_envelope_keys(
    path: Path | None = None, *, creates: bool = True, warn: Callable[[str], None] = warnings.warn
) -> EnvelopeKeys:
    """Return the keys in a file: the current one in the first line, the previous one in the second, in base64.

    The default file is in the user's folder for the state of programs. A file that does not exist is made with a new
    key, unless `creates` is False. Raise `InputError` for a file that `read_private` refuses.
    """
    path = path or user_state_path("segue", appauthor=False) / _FILE_NAME
    if creates:
        _create(path)
    try:
        lines = private_files.read_private(path, warn).decode("ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the envelope key can't be read: {error}", path=str(path)) from None
    try:
        keys = [b64decode(line, validate=True) for line in lines[:2]]
    except (Error, ValueError):
        keys = []
    if not keys:
        raise InputError("not an envelope key: expected one or two lines of base64", path=str(path))
    return EnvelopeKeys(*keys)


def _create(path: Path) -> None:
    """Write a new key, unless the file exists. Of two processes that write at once, the first one wins."""
    try:
        if path.exists():
            return
        private_files.make_folder(path.parent)
        private_files.create(path, b64encode(secrets.token_bytes(MIN_KEY_SIZE)) + b"\n")
    except FileExistsError:
        return
    except OSError as error:
        raise InputError(f"the envelope key can't be written: {error}", path=str(path)) from None

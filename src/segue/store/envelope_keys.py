"""The file with the secret that envelopes are sealed with, made on first use and readable by its owner only."""

from __future__ import annotations

import os
import secrets
from base64 import b64decode, b64encode
from binascii import Error
from pathlib import Path

from platformdirs import user_state_path

from segue.bridge.envelopes import MIN_KEY_SIZE, EnvelopeKeys
from segue.errors import InputError

_FILE_NAME = "envelope.key"


def load_envelope_keys(path: Path | None = None, *, creates: bool = True) -> EnvelopeKeys:
    """Return the keys in a file: the current one in the first line, the previous one in the second, in base64.

    The default file is in the user's folder for the state of programs. A file that does not exist is made with a new
    key, unless `creates` is False. Raise `InputError` for a file that others can read.
    """
    path = path or user_state_path("segue", appauthor=False) / _FILE_NAME
    if creates:
        _create(path)
    try:
        lines = path.read_text("ascii").split()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the envelope key can't be read: {error}", path=str(path)) from None
    if os.name == "posix" and mode & 0o077:
        raise InputError("the envelope key can be read by others; make it yours alone: chmod 600", path=str(path))
    try:
        keys = [b64decode(line, validate=True) for line in lines[:2]]
    except (Error, ValueError):
        keys = []
    if not keys:
        raise InputError("not an envelope key: expected one or two lines of base64", path=str(path))
    return EnvelopeKeys(*keys)


def _create(path: Path) -> None:
    """Write a new key, unless the file exists. Of two processes that write at once, the first one wins."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b64encode(secrets.token_bytes(MIN_KEY_SIZE)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"the envelope key can't be written: {error}", path=str(path)) from None

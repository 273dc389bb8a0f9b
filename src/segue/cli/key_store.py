"""API keys that `segue keys set` stores: in a file that only its owner can read, or in the system's keyring.

The file lists all stored keys by the name of their environment variable; the value of one in the keyring is null. A key
is read when it is needed. Keys are never printed, and not passed to other processes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from segue.cli import config, streams
from segue.cli.streams import BadInputError

_SERVICE = "segue"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def key_file() -> Path:
    return config.user_file().with_name("keys.json")


class StoredKeys(Mapping[str, str]):
    """The stored keys by variable name."""

    def __init__(self, entries: Mapping[str, str | None]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> str:
        value = self._entries[name]
        if value is None:
            value = self._entries[name] = _read_keyring(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def revealed(self) -> dict[str, str]:
        """The keys that are in memory: value → variable name."""
        return {value: name for name, value in self._entries.items() if value}


def load_entries() -> dict[str, str | None]:
    """Read the file; a value is None if the key is in the keyring."""
    file = key_file()
    try:
        mode = file.stat().st_mode
        data = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadInputError(f"can't read {file}: {streams.format_os_error(error)}") from None
    if os.name == "posix" and mode & _OTHERS:
        raise BadInputError(f"{file} can be read by others: its keys are not used; run chmod 600 on it")
    try:
        return msgspec.json.decode(data, type=dict[str, str | None])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadInputError(f"{file} is damaged: expected a JSON object of keys") from None


def load() -> StoredKeys:
    return StoredKeys(load_entries())


def add(name: str, key: str) -> str:
    """Store a key under the name of its variable, and return where."""
    keyring = find_keyring()
    if keyring is not None:
        try:
            keyring.set_password(_SERVICE, name, key)
        except Exception as error:  # noqa: BLE001  backends raise errors of their own, which may hold the key
            raise BadInputError(f"the keyring did not store the key: {type(error).__name__}") from None
    _write({**load_entries(), name: None if keyring is not None else key})
    return "the system's keyring" if keyring is not None else str(key_file())


def remove(name: str) -> bool:
    """Remove a stored key, and return whether there was one."""
    entries = load_entries()
    if name not in entries:
        return False
    if entries.pop(name) is None and (keyring := find_keyring()) is not None:
        try:
            keyring.delete_password(_SERVICE, name)
        except Exception as error:  # noqa: BLE001  backends raise errors of their own
            raise BadInputError(f"the keyring did not remove the key: {type(error).__name__}") from None
    _write(entries)
    return True


def find_keyring() -> Any:
    """Return the module `keyring` (extra `keyring`) if the system has a keyring, else None."""
    try:
        keyring: Any = import_module("keyring")
        return keyring if keyring.get_keyring().priority > 0 else None
    except Exception:  # noqa: BLE001  not installed, or no backend for this system
        return None


def _read_keyring(name: str) -> str:
    keyring = find_keyring()
    try:
        return (keyring.get_password(_SERVICE, name) or "") if keyring is not None else ""
    except Exception:  # noqa: BLE001  a locked keyring: the key counts as missing
        return ""


def _write(entries: Mapping[str, str | None]) -> None:
    file = key_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if file.exists():
            file.chmod(0o600)
    except OSError as error:
        raise streams.WriteError(f"can't write {file}: {streams.format_os_error(error)}") from None
    data = msgspec.json.format(msgspec.json.encode(dict(sorted(entries.items()))), indent=1) + b"\n"
    streams.replace_file(str(file), data, private=True)

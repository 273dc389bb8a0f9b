"""API keys that `segue keys set` stores: in a file that only its owner can read, or in the system's keyring.

The file lists all stored keys by the name of their environment variable; the value of one in the keyring is null. A key
is read when it is needed. Keys are never printed, and not passed to other processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from segue import private_files
from segue.cli import config, streams
from segue.cli.streams import BadInputError
from segue.errors import InputError

_SERVICE = "segue"


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
    data = read_file(file)
    if data is None:
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, str | None])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadInputError(f"{file} is damaged: expected a JSON object of keys") from None


def read_file(file: Path) -> bytes | None:
    """Return the content of a file of keys; None if there is no such file."""
    try:
        return private_files.read_private(file, streams.print_message)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInputError(f"can't read {file}: {streams.format_os_error(error)}") from None
    except InputError as error:
        raise BadInputError(str(error)) from None


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
    entries = {**load_entries(), name: None if keyring is not None else key}
    write_file(key_file(), dict(sorted(entries.items())))
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
    write_file(key_file(), entries)
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


def write_file(file: Path, value: Any) -> None:
    """Write a file of keys as JSON."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
    with streams.translate_write_errors(file):
        private_files.make_folder(file.parent)
        # The file may be a symbolic link to one that is kept elsewhere.
        private_files.replace(Path(os.path.realpath(file)), data)

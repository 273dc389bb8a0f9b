"""What installed packages add to segue: the entry points of groups such as `segue.commands`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from segue.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def find(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, without importing them."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


def load(entry: EntryPoint, kind: type[T]) -> T:
    """Import what an entry point refers to; `InputError` if that fails, or if it is something else."""
    path = f"entry point {entry.name} of {entry.group}"
    try:
        loaded = entry.load()
    except Exception as error:
        raise InputError(f"can't import {entry.value}: {type(error).__name__}: {error}", path=path) from error
    if not isinstance(loaded, kind):
        raise InputError(f"{entry.value} is not a {kind.__name__}", path=path)
    return loaded

"""Parts of decoded JSON of unknown shape: values under keys, and the entries of lists with their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.values import is_list, is_object


def member(value: object, *keys: str) -> object:
    """Return the value under these keys, one inside the other; None if there is none."""
    for key in keys:
        value = value.get(key) if is_object(value) else None
    return value


def object_or_empty(value: object) -> Mapping[str, object]:
    return value if is_object(value) else {}


def list_entries(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the entries of a list with their paths; none of any other value."""
    return ((f"{path}[{index}]", entry) for index, entry in enumerate(value if is_list(value) else ()))


def list_objects(value: object, path: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the objects in a list with their paths."""
    return ((place, entry) for place, entry in list_entries(value, path) if is_object(entry))

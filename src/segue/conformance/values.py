"""Type tests for untrusted decoded JSON, and how to show a value in a message.

Every function takes any value and none raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

__all__ = ["is_list", "is_object", "is_text", "kind", "kind_of_json", "listed", "quoted", "text_of"]

_LONGEST_QUOTE = 80
_LONGEST_LIST = 5


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def is_text(value: object) -> TypeGuard[str]:
    """True for a non-empty string."""
    return isinstance(value, str) and value != ""


def text_of(value: object) -> str:
    """Returns the string itself, and `""` for everything else."""
    return value if isinstance(value, str) else ""


def kind(value: object) -> str:
    """Returns the JSON type with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string" if value else "an empty string"
    return "a list" if is_list(value) else "an object" if is_object(value) else f"a {type(value).__name__}"


def _no_constant(name: str) -> object:
    raise ValueError(name)


def kind_of_json(text: str) -> str:
    """Returns the type of the JSON value in a text, and `""` if it is not JSON (NaN is not)."""
    try:
        return kind(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return ""


def quoted(value: object) -> str:
    """Returns a string in quotes, shortened if it is long; any other value by its type."""
    if not isinstance(value, str):
        return kind(value)
    return repr(value) if len(value) <= _LONGEST_QUOTE else f"{value[:_LONGEST_QUOTE]!r}…"


def listed(names: Iterable[str]) -> str:
    """Returns the first names, quoted, and the number of the others."""
    every = list(names)
    shown = ", ".join(quoted(name) for name in every[:_LONGEST_LIST])
    rest = len(every) - _LONGEST_LIST
    return f"{shown} and {rest} more" if rest > 0 else shown

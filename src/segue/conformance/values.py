"""Type checks for decoded JSON of unknown shape, and short descriptions of values for messages.

Every function accepts any value, and none raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

_LONGEST_QUOTE = 80
_LONGEST_LIST = 5
# What segue's gateway writes into the fields of a reply for opaque data: reasoning of another provider.
_ENVELOPE_PREFIX = "segueSealedReasoning"
ENVELOPE = "an envelope of segue, which only the gateway or transport that sealed it can open"


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def has_text(value: object) -> TypeGuard[str]:
    """Return whether the value is a non-empty string."""
    return isinstance(value, str) and value != ""


def is_envelope(value: object) -> bool:
    """Return whether this is an envelope in place of a provider's signature or encrypted content: it is rejected."""
    return isinstance(value, str) and value.startswith(_ENVELOPE_PREFIX)


def text_or_empty(value: object) -> str:
    """Return the string itself, and `""` for everything else."""
    return value if isinstance(value, str) else ""


def type_name(value: object) -> str:
    """Return the JSON type with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string" if value else "an empty string"
    return "a list" if is_list(value) else "an object" if is_object(value) else f"a {type(value).__name__}"


def _reject_constant(name: str) -> object:
    raise ValueError(name)


def json_type_name(text: str) -> str:
    """Return the type of the JSON value in a text, and `""` if it is not JSON (NaN is not)."""
    try:
        return type_name(json.loads(text, parse_constant=_reject_constant))
    except (ValueError, RecursionError):
        return ""


def quote(value: object) -> str:
    """Return a string in quotes, shortened if it is long; any other value by its type."""
    if not isinstance(value, str):
        return type_name(value)
    return repr(value) if len(value) <= _LONGEST_QUOTE else f"{value[:_LONGEST_QUOTE]!r}…"


def format_list(names: Iterable[str]) -> str:
    """Return the first five names, quoted, and the number of the others."""
    all_names = list(names)
    listed = ", ".join(quote(name) for name in all_names[:_LONGEST_LIST])
    rest = len(all_names) - _LONGEST_LIST
    return f"{listed} and {rest} more" if rest > 0 else listed

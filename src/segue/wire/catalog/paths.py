"""Values in a payload by paths such as `function.arguments` or `functionCalls.0.id`."""

from __future__ import annotations

from typing import Any, cast

from segue.wire.json_values import JsonObject, object_or_none

__all__ = ["get_path", "has_path", "set_path"]


def get_path(payload: object, path: str) -> Any:
    """The value at a path; None if there is none."""
    for step in path.split(".") if path else ():
        if isinstance(payload, list):
            items = cast("list[object]", payload)
            payload = items[int(step)] if step.isdigit() and int(step) < len(items) else None
        else:
            payload = cast("JsonObject", payload).get(step) if isinstance(payload, dict) else None
    return payload


def has_path(payload: object, path: str) -> bool:
    """True if the path exists, even with the value null."""
    parent, _, name = path.rpartition(".")
    return name in (object_or_none(get_path(payload, parent)) or {})


def set_path(payload: JsonObject, path: str, value: object) -> JsonObject:
    """A copy of the payload with this value at the path."""
    step, _, rest = path.partition(".")
    inner = object_or_none(payload.get(step)) or {}
    return {**payload, step: set_path(inner, rest, value) if rest else value}

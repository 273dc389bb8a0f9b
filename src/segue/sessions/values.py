"""Parts of decoded JSON by their type. A value of another type is taken as missing: sessions may be damaged."""

from __future__ import annotations

from typing import Any, cast


def object_of(value: object) -> dict[str, Any]:
    """Return an object; an empty one for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list; an empty one for any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def string_of(value: object) -> str | None:
    """Return a text that is not empty; None for any other value."""
    return value if isinstance(value, str) and value else None

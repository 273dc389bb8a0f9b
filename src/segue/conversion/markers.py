"""Cache markers in the items of a conversation. Clients of Claude move them to the newest content with each request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from segue.canonical.json import encode_json, parse_json

_KEY = "cache_control"
# The names of markers in target bodies.
_RENDERED_KEYS = (b"cache_control", b"cachePoint")


def move_markers(
    earlier: Sequence[bytes], values: Sequence[Any], items: Sequence[bytes], entries: Sequence[bytes]
) -> list[bytes] | None:
    """Return the entries of items that differ from earlier ones in their markers alone; None if they differ in more.

    `values` are the earlier items decoded, `entries` their entries. One that is its item unchanged becomes the other
    item; in any other there must not be a marker.
    """
    moved = list(entries)
    for index, (one, other) in enumerate(zip(earlier, items, strict=True)):
        if one == other:
            continue
        unmarked = drop_markers(values[index])
        # Most items have no marker any more, and are spelled as they are encoded here.
        encoded = unmarked if unmarked == other else encode_json(parse_json(other)[0])
        if encoded is not unmarked and unmarked != drop_markers(parse_json(other)[0]):
            return None
        if len(entries) == len(items) and entries[index] == encode_json(values[index]):
            moved[index] = encoded
        elif any(key in entry for entry in entries for key in _RENDERED_KEYS):
            return None
    return moved


def has_markers(items: Iterable[Any]) -> bool:
    """Return whether a content part of an item is marked."""
    return any(part.get(_KEY) for item in items for part in _find_parts(item))


def drop_markers(item: Any) -> bytes:
    """Encode an item without its markers. Equal values of other types, such as 1 and true, have other bytes."""
    if not _find_parts(item):
        return encode_json(item)
    content: list[Any] = [
        {key: value for key, value in cast("dict[str, Any]", part).items() if key != _KEY}
        if isinstance(part, dict)
        else part
        for part in item["content"]
    ]
    return encode_json({**item, "content": content})


def _find_parts(item: Any) -> list[dict[str, Any]]:
    content: object = cast("dict[str, object]", item).get("content") if isinstance(item, dict) else None
    if not isinstance(content, list):
        return []
    return [cast("dict[str, Any]", part) for part in cast("list[object]", content) if isinstance(part, dict)]

"""Server-tool results and blocks of unknown type as text that any model can read.

All content is rendered: the main fields first, then the others with their keys. Omitted are types, encrypted content
and cache markers. Images and documents stay media.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from segue.canonical.blocks import Block, Text, one_text
from segue.canonical.jsontext import write_text
from segue.render.demands import TEXTS
from segue.wire.anthropic.media import parse_document, parse_image
from segue.wire.fields import JsonObject, object_or_none

__all__ = ["hosted_blocks", "tell_unknown"]

_PLAIN = (
    *("error_code", "error_message", "title", "url", "source", "tool_name", "text", "stdout", "stderr"),
    *("content", "lines", "data"),
)
_SILENT = frozenset(
    {
        "type",
        "media_type",
        "cache_control",
        "citations",
        "signature",
        "caller",
        "tool_use_id",
        "file_type",
        "stop_reason",
    }
)
_MEDIA = {"image": parse_image, "document": parse_document}
_SEALED = "encrypted_"
# Deeper than any known tool result; below this depth values are rendered as JSON.
_DEEPEST = 32


def hosted_blocks(content: object) -> tuple[Block, ...]:
    """The output of a server tool as text blocks and media in their order."""
    blocks: list[Block] = []
    texts: list[str] = []
    for part in _parts(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        blocks += [Text(one_text(texts))] if texts else []
        blocks.append(part)
        texts = []
    return (*blocks, Text(one_text(texts))) if texts or not blocks else tuple(blocks)


def tell_unknown(block: JsonObject) -> str:
    """The text of a block of unknown type."""
    parts = [part.text if isinstance(part, Text) else part for part in _members(block)]
    return one_text(part for part in parts if isinstance(part, str))


def _parts(value: object, depth: int = 0) -> Iterator[Any]:
    """Yields texts, and blocks for media."""
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif depth > _DEEPEST:
        yield write_text(value)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _parts(item, depth + 1)
    elif (members := object_or_none(value)) is not None:
        kind = members.get("type")
        if isinstance(kind, str) and kind in _MEDIA:
            yield _MEDIA[kind](members)
        else:
            parts = list(_members(members, depth))
            sealed = any(key.startswith(_SEALED) for key in members)
            yield from parts or ([TEXTS.undisclosed] if sealed else [])
    elif value is not None:
        yield write_text(value)


def _members(members: JsonObject, depth: int = 0) -> Iterator[Any]:
    hidden = "data" if members.get("type") == "base64" else None
    for key in _PLAIN:
        if key != hidden:
            yield from _parts(members.get(key), depth + 1)
    for key, value in members.items():
        if key in _PLAIN or key in _SILENT or key.startswith(_SEALED) or value in (None, "", [], {}):
            continue
        if key == "return_code":
            yield from [f"[exit code {value}]"] if value else []
        elif key.endswith("file_id"):
            yield f"[file {value}]"
        elif isinstance(value, str | int | float):
            yield f"{key}: {value if isinstance(value, str) else write_text(value)}"
        else:
            yield from _parts(value, depth + 1)

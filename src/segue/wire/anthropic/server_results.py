"""The text of server-tool results, and of blocks of unknown type.

The main fields come first, then the others with their keys. Types, encrypted content and cache markers are omitted.
Images and documents stay media.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from segue.canonical.blocks import Block, Text, join_texts
from segue.canonical.json import encode_json_text
from segue.render.constraints import TEXTS
from segue.wire.anthropic.media import parse_document, parse_image
from segue.wire.json_values import JsonObject, object_or_none

_MAIN_FIELDS = (
    *("error_code", "error_message", "title", "url", "source", "tool_name", "text", "stdout", "stderr"),
    *("content", "lines", "data"),
)
_OMITTED_FIELDS = frozenset(
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
_MEDIA_PARSERS = {"image": parse_image, "document": parse_document}
_ENCRYPTED_PREFIX = "encrypted_"
# Deeper than any known tool result; below this depth values are rendered as JSON.
_MAX_TEXT_DEPTH = 32


def server_tool_blocks(content: object) -> tuple[Block, ...]:
    """Return the output of a server tool as text blocks and media in their order."""
    blocks: list[Block] = []
    texts: list[str] = []
    for part in _flatten(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        blocks += [Text(join_texts(texts))] if texts else []
        blocks.append(part)
        texts = []
    return (*blocks, Text(join_texts(texts))) if texts or not blocks else tuple(blocks)


def unknown_block_text(block: JsonObject) -> str:
    """Return the text of a block of unknown type."""
    parts = [part.text if isinstance(part, Text) else part for part in _flatten_members(block)]
    return join_texts(part for part in parts if isinstance(part, str))


def _flatten(value: object, depth: int = 0) -> Iterator[Any]:
    """Yield texts, and blocks for media."""
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif depth > _MAX_TEXT_DEPTH:
        yield encode_json_text(value)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _flatten(item, depth + 1)
    elif (members := object_or_none(value)) is not None:
        kind = members.get("type")
        if isinstance(kind, str) and kind in _MEDIA_PARSERS:
            yield _MEDIA_PARSERS[kind](members)
        else:
            parts = list(_flatten_members(members, depth))
            has_encrypted = any(key.startswith(_ENCRYPTED_PREFIX) for key in members)
            yield from parts or ([TEXTS.undisclosed] if has_encrypted else [])
    elif value is not None:
        yield encode_json_text(value)


def _flatten_members(members: JsonObject, depth: int = 0) -> Iterator[Any]:
    hidden = "data" if members.get("type") == "base64" else None
    for key in _MAIN_FIELDS:
        if key != hidden:
            yield from _flatten(members.get(key), depth + 1)
    for key, value in members.items():
        if (
            key in _MAIN_FIELDS
            or key in _OMITTED_FIELDS
            or key.startswith(_ENCRYPTED_PREFIX)
            or value in (None, "", [], {})
        ):
            continue
        if key == "return_code":
            yield from [f"[exit code {value}]"] if value else []
        elif key.endswith("file_id"):
            yield f"[file {value}]"
        elif isinstance(value, str | int | float):
            yield f"{key}: {value if isinstance(value, str) else encode_json_text(value)}"
        else:
            yield from _flatten(value, depth + 1)

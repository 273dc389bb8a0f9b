"""What tools that the provider ran gave back, and blocks of unknown types, in words that any model can read.

Everything that is said is told: what a reader looks for first, then the rest under its key. Left out are types, what
only the provider can read, and marks for the API. Pictures and documents stay what they are.
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
# No tool is known to nest as deep; below, it is told as JSON.
_DEEPEST = 32


def hosted_blocks(content: object) -> tuple[Block, ...]:
    """The output of a tool that the provider ran: its words, and the media that stand among them."""
    blocks: list[Block] = []
    words: list[str] = []
    for part in _parts(content):
        if isinstance(part, str):
            words.append(part)
            continue
        blocks += [Text(one_text(words))] if words else []
        blocks.append(part)
        words = []
    return (*blocks, Text(one_text(words))) if words or not blocks else tuple(blocks)


def tell_unknown(block: JsonObject) -> str:
    """What can be said of a block whose type segue does not know."""
    told = [part.text if isinstance(part, Text) else part for part in _members(block)]
    return one_text(words for words in told if isinstance(words, str))


def _parts(value: object, depth: int = 0) -> Iterator[Any]:
    """Texts, and blocks where there is more than text."""
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
            told = list(_members(members, depth))
            sealed = any(key.startswith(_SEALED) for key in members)
            yield from told or ([TEXTS.undisclosed] if sealed else [])
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

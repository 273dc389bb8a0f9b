"""Conversion of tool return values to results: JSON-compatible, and truncated to a character limit.

The limit on all results of a batch is split evenly among its calls before they run, because a result is recorded when
its tool ends and must not depend on the order or size of the others. An unused share is not redistributed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, cast

from msgspec import Struct

from segue.canonical.blocks import Block, Code, Media, Opaque, Text, join_texts
from segue.canonical.json import encode_json_text, to_plain_json
from segue.canonical.placeholders import CUT_NOTE
from segue.coerce import is_blocks, is_content_parts
from segue.errors import InputError
from segue.runtime.tool_types import Result, ToolError

Content: TypeAlias = "str | tuple[Block, ...] | dict[str, Any] | list[Any]"

_MAX_DEPTH = 100
_MAX_ERROR = 2_000
_MAX_LINE = 200
_INTEGERS = range(-(2**63), 2**64)
# Lone surrogates, and NUL, which PostgreSQL rejects.
_UNSTORABLE = re.compile("[\ud800-\udfff\0]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Output(Struct, frozen=True):
    """The result for the model. `text` is its text, `omitted` how many characters were cut off."""

    content: Content
    text: str
    error: bool = False
    omitted: int = 0


def split_budget(budget: int, running: int, error_texts: Iterable[str] = ()) -> int:
    """Return the characters for each running call, after subtracting the error texts of calls that do not run."""
    return max(0, budget - sum(map(len, error_texts))) // max(1, running)


def truncate(text: str, limit: int) -> tuple[str, int]:
    """Shorten a text to its head and tail with a note between them; also returns how much was omitted."""
    if len(text) <= limit:
        return text, 0
    room = limit - len(CUT_NOTE.format(count=len(text)))
    if room <= 0:
        return text[: max(0, limit)], len(text) - max(0, limit)
    head = room * 2 // 3
    omitted = len(text) - room
    return text[:head] + CUT_NOTE.format(count=omitted) + text[len(text) - (room - head) :], omitted


def _sanitize_text(text: str) -> str:
    """Replace NUL characters and lone surrogates."""
    return _UNSTORABLE.sub(_REPLACEMENT, str.__str__(text))


def last_line(text: object) -> str:
    """Return the last non-empty line of a text, truncated, for progress display."""
    lines = [line for line in _sanitize_text(_safe_str(text)).splitlines() if line.strip()]
    return lines[-1].strip()[:_MAX_LINE] if lines else ""


def format_error(error: BaseException) -> str:
    """Return an exception as text for the model: the message of a `ToolError`, else type and message in one line."""
    text = _sanitize_text(_safe_str(error))
    if isinstance(error, ToolError):
        return text if text.strip() else "the tool failed without a message"
    message = " ".join(text.split())[:_MAX_ERROR]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def make_output(value: object, limit: int) -> Output:
    """Convert any return value of a tool to an `Output` within the given number of characters."""
    error = isinstance(value, Result) and value.error
    content = value.content if isinstance(value, Result) else value
    if content is None:
        content = ""
    if isinstance(content, str | bytes | bytearray):
        text, omitted = truncate(_decode(content), limit)
        return Output(text, text, error, omitted)
    if is_blocks(content):
        blocks = cast("Sequence[Block]", content) if isinstance(content, list | tuple) else (cast("Block", content),)
        return _blocks_output(blocks, limit, error=error)
    json_value = _to_json_value(content, 0, ())
    text = json_value if isinstance(json_value, str) else encode_json_text(json_value)
    shorter, omitted = truncate(text, limit)
    # A list that looks like content parts would be parsed as such.
    if omitted or not isinstance(json_value, dict | list) or is_content_parts(cast("object", json_value)):
        return Output(shorter, shorter, error, omitted)
    return Output(cast("dict[str, Any] | list[Any]", json_value), text, error)


def _blocks_output(blocks: Sequence[Block], limit: int, *, error: bool) -> Output:
    """Keep only block types that a result may hold, without provider data."""
    kept: list[Block] = []
    texts: list[str] = []
    total = 0
    for block in blocks:
        if isinstance(block, Media):
            kept.append(_clean_media(block))
            texts.append(f"[{block.kind}]")
            continue
        text, omitted = truncate(_sanitize_text(_block_text(block)), limit)
        limit -= len(text)
        total += omitted
        texts.append(text)
        kept.append(Code(text, _sanitize_text(block.language)) if isinstance(block, Code) else Text(text))
    return Output(tuple(kept), join_texts(texts), error, total)


def _block_text(block: Block) -> str:
    match block:
        case Text(text) | Opaque(text=text):
            return text
        case Code(code):
            return code
        case _:
            return "[a block that a result can't contain was left out]"


def _clean_media(block: Media) -> Media:
    fields = {name: getattr(block, name) for name in ("kind", "mime", "data", "url", "file_id", "name")}
    return Media(**{name: _sanitize_text(text) for name, text in fields.items() if isinstance(text, str)})  # pyright: ignore[reportArgumentType]


def _decode(value: str | bytes | bytearray) -> str:
    return _sanitize_text(value if isinstance(value, str) else bytes(value).decode(errors="replace"))


def _safe_str(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - `__str__` of a foreign object may raise anything
        return f"a {type(value).__name__}"


def _to_json_value(value: object, depth: int, parents: tuple[int, ...]) -> Any:
    """Convert a value to JSON types; anything else becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | bytes | bytearray):
        return _decode(value)
    if isinstance(value, int):
        return int(value) if int(value) in _INTEGERS else _safe_str(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if depth >= _MAX_DEPTH or id(value) in parents:
        return "…"
    parents = (*parents, id(value))
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return {
            _sanitize_text(_safe_str(key)): _to_json_value(item, depth + 1, parents) for key, item in fields.items()
        }
    if isinstance(value, Sequence | AbstractSet):
        return [_to_json_value(item, depth + 1, parents) for item in cast("Iterable[object]", value)]
    try:
        return _to_json_value(to_plain_json(value), depth + 1, parents)
    except InputError:
        return _sanitize_text(_safe_str(value))

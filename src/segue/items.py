"""`segue.parse_item` and `segue.render_item`: one tool call or output of any provider's, alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from segue.canonical.blocks import Block, Native, Opaque, Origin, ToolCall, ToolResponse
from segue.canonical.jsontext import read_object, write_text
from segue.convert import Body
from segue.errors import InputError
from segue.wire.catalog.entry import Entry
from segue.wire.catalog.reading import read
from segue.wire.catalog.table import PLAIN, SHAPES, find, named
from segue.wire.catalog.writing import write
from segue.wire.fields import JsonObject, string_or_none

__all__ = ["parse_item", "render_item"]


def parse_item(payload: Body, provider: str, wire_type: str | None = None) -> list[Block]:
    """The blocks of a payload: a call, an output, or both. `wire_type` is the catalogue's name of its type, needed
    only where the payload alone is ambiguous. A type that the catalogue has not is kept whole, as `Opaque`."""
    value, _ = read_object(payload)
    entry = find(value, provider, wire_type)
    if entry is not None:
        return read(value, entry, SHAPES[provider][entry.wire_type])
    kind = string_or_none(value.get("type")) or next(iter(value), "nothing")
    said = string_or_none(value.get("text")) or write_text(value)
    home = PLAIN[provider].api
    return [Opaque(kind, text=said, native=Native(home, value), origin=Origin(provider, identity="absent"))]


def render_item(blocks: Sequence[Block] | Block, provider: str, wire_type: str | None = None) -> dict[str, Any]:
    """The payload that says these blocks: the one they were parsed from, or one written anew."""
    spoken = [blocks] if isinstance(blocks, Block) else list(blocks or ())
    if not spoken or not all(isinstance(block, Block) for block in spoken):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("blocks were expected, as `parse_item` gives them", path="blocks")
    unknown = _uncatalogued(spoken, provider)
    if unknown is not None and wire_type is None:
        return unknown
    entry = _entry(spoken, provider, wire_type)
    return write(spoken, entry, SHAPES[entry.provider][entry.wire_type])


def _uncatalogued(blocks: Sequence[Block], provider: str) -> JsonObject | None:
    native = blocks[0].native
    if len(blocks) != 1 or not isinstance(blocks[0], Opaque) or native is None:
        return None
    if blocks[0].origin.provider != provider or blocks[0].origin.wire_type is not None:
        return None
    return dict(native.fragment)


def _entry(blocks: Sequence[Block], provider: str, wire_type: str | None) -> Entry:
    if wire_type is not None:
        return named(provider, wire_type)
    for block in blocks:
        origin = block.origin if isinstance(block, ToolCall | ToolResponse | Opaque) else None
        if origin is not None and origin.provider == provider and origin.wire_type is not None:
            return named(provider, origin.wire_type)
    if provider not in PLAIN:
        raise InputError(f"{provider!r} is not a provider; known are {', '.join(PLAIN)}", path="provider")
    plain = PLAIN[provider]
    called = any(isinstance(block, ToolCall) for block in blocks)
    return named(plain.provider, plain.call if called else plain.output)

"""`segue.parse_item` and `segue.render_item`: a single tool call or output of any provider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from segue.canonical.blocks import Block, Media, Native, Opaque, Origin, Text, ToolCall, ToolResponse
from segue.canonical.jsontext import read_object, write_text
from segue.convert import Body, convert
from segue.errors import InputError
from segue.wire.catalog.entry import Entry
from segue.wire.catalog.reading import read
from segue.wire.catalog.table import PLAIN, SHAPES, find, named
from segue.wire.catalog.writing import write
from segue.wire.fields import JsonObject, string_or_none
from segue.wire.registry import WIRES

__all__ = ["parse_item", "render_item"]


def parse_item(payload: Body, provider: str, wire_type: str | None = None) -> list[Block]:
    """Parse a payload into blocks: a call, an output, or both.

    `wire_type` is the catalogue's name of its type, needed only where the payload alone is ambiguous. A type that is
    not in the catalogue is kept whole, as `Opaque`.
    """
    value, _ = read_object(payload)
    entry = find(value, provider, wire_type)
    if entry is not None:
        return read(value, entry, SHAPES[provider][entry.wire_type])
    if not value:
        raise InputError("a call or an output was expected, not an empty object", path="payload")
    kind = string_or_none(value.get("type")) or next(iter(value))
    text = string_or_none(value.get("text")) or write_text(value)
    origin = Origin(provider, identity="absent")
    return [Opaque(kind, text=text, native=_kept(value, provider), origin=origin)]


def _kept(value: JsonObject, provider: str) -> Native:
    """Return the fragment as one of the provider's wire where that renders it unchanged, else marked as an item."""
    plain = PLAIN[provider]
    body = plain.body(value)
    try:
        blocks = [block for message in WIRES[plain.api].parse_request(body).messages[1:-1] for block in message.blocks]
        # Reasoning is bound to its conversation.
        if len(blocks) == 1 and isinstance(blocks[0], Opaque | Text | Media):
            made = convert(body, source=plain.api, target=plain.api).body
            if _holds(made, value):
                return Native(plain.api, value)
    except InputError:
        pass
    return Native(f"{provider}/item", value, intact=False)


def _holds(holder: object, value: JsonObject) -> bool:
    if holder == value:
        return True
    inner = cast("JsonObject", holder).values() if isinstance(holder, dict) else holder
    return isinstance(holder, dict | list) and any(_holds(one, value) for one in cast("Iterable[object]", inner))


def render_item(blocks: Sequence[Block] | Block, provider: str, wire_type: str | None = None) -> dict[str, Any]:
    """Render blocks as one payload: the one they were parsed from, or a new one."""
    listed = [blocks] if isinstance(blocks, Block) else list(blocks or ())
    if not listed or not all(isinstance(block, Block) for block in listed):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("blocks were expected, as returned by `parse_item`", path="blocks")
    unknown = _uncatalogued(listed, provider)
    if unknown is not None and wire_type is None:
        return unknown
    entry = _entry(listed, provider, wire_type)
    return write(listed, entry, SHAPES[entry.provider][entry.wire_type])


def _uncatalogued(blocks: Sequence[Block], provider: str) -> JsonObject | None:
    native = blocks[0].native
    if len(blocks) != 1 or not isinstance(blocks[0], Opaque) or native is None:
        return None
    if blocks[0].origin.provider != provider or blocks[0].origin.wire_type is not None:
        return None
    named = PLAIN[provider].elsewhere and bool(string_or_none(native.fragment.get("type")))
    if not native.intact and not named:
        raise InputError(f"{blocks[0].kind} is not an item that {provider} accepts", path="blocks")
    return dict(native.fragment)


def _entry(blocks: Sequence[Block], provider: str, wire_type: str | None) -> Entry:
    if wire_type is not None:
        return named(provider, wire_type)
    for block in blocks:
        origin = block.origin if isinstance(block, ToolCall | ToolResponse | Opaque) else None
        if origin is not None and origin.provider == provider and origin.wire_type is not None:
            return named(provider, origin.wire_type)
    if provider not in PLAIN:
        raise InputError(f"unknown provider {provider!r}; known are {', '.join(PLAIN)}", path="provider")
    plain = PLAIN[provider]
    called = any(isinstance(block, ToolCall) for block in blocks)
    return named(plain.provider, plain.call if called else plain.output)

"""`segue.parse_item` and `segue.render_item`: a single tool call or output of any provider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from segue._convert import Body, convert
from segue._literals import Api
from segue.canonical.blocks import Block, Media, Native, Opaque, Origin, Text, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text, parse_json_object
from segue.errors import InputError, unknown_name_error
from segue.wire.catalog.entry import Entry
from segue.wire.catalog.parse import parse_payload
from segue.wire.catalog.registry import GENERIC_TYPES, SHAPES, find_entry, get_entry
from segue.wire.catalog.render import render_payload
from segue.wire.json_values import JsonObject, string_or_none
from segue.wire.registry import WIRES


def parse_item(payload: Body, provider: str, wire_type: str | None = None) -> list[Block]:
    """Parse a payload into blocks: a call, an output, or both.

    `wire_type` is the name of its type in docs/types.md, needed only where the payload alone is ambiguous. A type that
    is not listed there is kept whole, as `Opaque`.
    """
    value, _ = parse_json_object(payload)
    entry = find_entry(value, provider, wire_type)
    if entry is not None:
        return parse_payload(value, entry, SHAPES[provider][entry.wire_type])
    if not value:
        raise InputError("a call or an output was expected, not an empty object", path="payload")
    kind = string_or_none(value.get("type")) or next(iter(value))
    text = string_or_none(value.get("text")) or encode_json_text(value)
    origin = Origin(provider, identity="absent")
    return [Opaque(kind, text=text, native=_make_native(value, provider), origin=origin)]


def _make_native(value: JsonObject, provider: str) -> Native:
    """Return the payload as a native fragment.

    It is attributed to the provider's API if a request of that API can carry it unchanged, else marked as an item.
    """
    generic = GENERIC_TYPES[provider]
    body = generic.body(value)
    try:
        blocks = [
            block for message in WIRES[generic.api].parse_request(body).messages[1:-1] for block in message.blocks
        ]
        # Reasoning is bound to its conversation.
        if len(blocks) == 1 and isinstance(blocks[0], Opaque | Text | Media):
            api = cast("Api", generic.api)
            if _contains(convert(body, source=api, target=api).body, value):
                return Native(generic.api, value)
    except InputError:
        pass
    return Native(f"{provider}/item", value, intact=False)


def _contains(holder: object, value: JsonObject) -> bool:
    if holder == value:
        return True
    inner = cast("JsonObject", holder).values() if isinstance(holder, dict) else holder
    return isinstance(holder, dict | list) and any(_contains(item, value) for item in cast("Iterable[object]", inner))


def render_item(blocks: Sequence[Block] | Block, provider: str, wire_type: str | None = None) -> dict[str, Any]:
    """Render blocks as one payload: unchanged blocks as they were parsed, others as a new payload."""
    listed = [blocks] if isinstance(blocks, Block) else list(blocks or ())
    if not listed or not all(isinstance(block, Block) for block in listed):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("blocks were expected, as returned by `parse_item`", path="blocks")
    payload = _payload_of_unknown_type(listed, provider)
    if payload is not None and wire_type is None:
        return payload
    entry = _find_entry(listed, provider, wire_type)
    return render_payload(listed, entry, SHAPES[entry.provider][entry.wire_type])


def _payload_of_unknown_type(blocks: Sequence[Block], provider: str) -> JsonObject | None:
    """Return the original payload of an `Opaque` block whose type is not in the catalog."""
    native = blocks[0].native
    if len(blocks) != 1 or not isinstance(blocks[0], Opaque) or native is None:
        return None
    if blocks[0].origin.provider != provider or blocks[0].origin.wire_type is not None:
        return None
    has_type = bool(string_or_none(native.fragment.get("type")))
    if not native.intact and not (GENERIC_TYPES[provider].has_other_apis and has_type):
        raise InputError(f"{blocks[0].kind} is not an item that {provider} accepts", path="blocks")
    return dict(native.fragment)


def _find_entry(blocks: Sequence[Block], provider: str, wire_type: str | None) -> Entry:
    if wire_type is not None:
        return get_entry(provider, wire_type)
    for block in blocks:
        origin = block.origin if isinstance(block, ToolCall | ToolResponse | Opaque) else None
        if origin is not None and origin.provider == provider and origin.wire_type is not None:
            return get_entry(provider, origin.wire_type)
    if provider not in GENERIC_TYPES:
        raise unknown_name_error("provider", provider, GENERIC_TYPES, path="provider")
    generic = GENERIC_TYPES[provider]
    has_call = any(isinstance(block, ToolCall) for block in blocks)
    return get_entry(generic.provider, generic.call if has_call else generic.output)

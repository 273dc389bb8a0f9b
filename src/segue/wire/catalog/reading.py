"""A payload alone → canonical blocks.

Ids are those of an item that stands by itself: made of the provider and the raw id, or the name where there is none.
So a call and its output have the same one though nothing but the two was looked at. In a conversation they get ids
of their turn.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Identity, Native, Opaque, Origin, ToolCall, ToolResponse
from segue.canonical.ids import canonical_tool_id, raw_id_or_none
from segue.canonical.jsontext import write_text
from segue.wire.catalog.entry import Entry
from segue.wire.catalog.paths import at
from segue.wire.catalog.shape import Shape
from segue.wire.fields import JsonObject, list_of, object_of, string_or_none
from segue.wire.registry import WIRES

__all__ = ["read"]

_ALONE = "item"
"""The turn key of what is in no turn."""


def read(payload: JsonObject, entry: Entry, shape: Shape) -> list[Block]:
    if shape.inside is not None:
        return [_stamped(block, entry, shape, payload) for block in _read_inside(payload, shape)]
    if shape.many is None:
        return _read_one(payload, payload, 0, entry, shape)
    members = list_of(at(payload, shape.many) or [], shape.many)
    blocks: list[Block] = []
    for index, member in enumerate(members):
        held = {"id": member} if shape.bare else object_of(member, f"{shape.many}[{index}]")
        blocks += _read_one(held, payload, index, entry, shape)
    return blocks


def _read_inside(payload: JsonObject, shape: Shape) -> list[Block]:
    """By the wire itself, so that an item is read as it is in a body."""
    assert shape.inside is not None
    request = WIRES[shape.inside.api].parse_request(shape.inside.body(payload))
    return [block for message in request.messages for block in message.blocks]


def _origin(payload: JsonObject, entry: Entry, shape: Shape) -> Origin:
    raw_id = raw_id_or_none(at(payload, shape.id)) if shape.id is not None else None
    item_id = string_or_none(at(payload, shape.item)) if shape.item is not None else None
    return Origin(
        entry.provider,
        raw_id=raw_id,
        item_id=item_id if shape.item is not None else raw_id if entry.identity == "conflated" else None,
        identity=_identity(entry, raw_id),
        parent=string_or_none(at(payload, shape.parent)) if shape.parent is not None else None,
        wire_type=entry.wire_type,
        family=entry.family,
    )


def _identity(entry: Entry, raw_id: str | None) -> Identity:
    if raw_id is None:
        return "absent" if entry.identity == "absent" else "synthetic"
    return "conflated" if entry.identity == "absent" else entry.identity


def _alone(origin: Origin, name: str | None, index: int) -> str:
    tool = None if origin.raw_id is not None else name
    return canonical_tool_id(
        provider=origin.provider, raw_id=origin.raw_id, tool_name=tool, turn_key=_ALONE, call_index=index
    )


def _read_one(payload: JsonObject, whole: JsonObject, index: int, entry: Entry, shape: Shape) -> list[Block]:
    origin = _origin(payload, entry, shape)
    native = Native(f"{entry.provider}/{entry.surface}", whole)
    name = string_or_none(at(payload, shape.name)) if shape.name is not None else None
    tool = name or shape.tool or None
    if origin.is_approval and entry.role == "output":
        said = shape.tell(payload) if shape.tell is not None else write_text(payload)
        return [Opaque(entry.family, text=said, native=native, origin=origin)]
    shared = 0 if origin.raw_id is not None else index
    blocks: list[Block] = []
    if entry.role != "output":
        arguments, text = shape.arguments.read(payload)
        blocks.append(
            ToolCall(
                tool or "",
                arguments,
                id=_alone(origin, tool, shared),
                arguments_text=text,
                kind="hosted" if origin.is_approval else shape.kind,
                origin=origin,
                native=native,
                awaited=not origin.is_approval,
            )
        )
    if entry.role == "call":
        return blocks if shape.output is None else [*blocks, *_outputs(payload, origin, tool, shared, native, shape)]
    return [*blocks, *_outputs(payload, origin, tool, shared, native, shape, always=entry.role == "output")]


def _outputs(
    payload: JsonObject,
    origin: Origin,
    tool: str | None,
    index: int,
    native: Native,
    shape: Shape,
    *,
    always: bool = False,
) -> list[Block]:
    """The output, where one is disclosed; an item that is nothing else is one without content, too."""
    content, structured = shape.output.read(payload) if shape.output is not None else (None, UNSET)
    failed = shape.failed(payload)
    if content is None and structured is UNSET and not (always or failed):
        return []
    response = ToolResponse(
        call_id=_alone(origin, tool, index),
        name=tool,
        content=content or (),
        structured=structured,
        error=failed,
        is_complete=True,
        outcome=shape.outcome,
        hosted=shape.kind == "hosted",
        origin=origin,
        native=native,
    )
    return [response]


def _stamped(block: Block, entry: Entry, shape: Shape, payload: JsonObject) -> Block:
    """What a wire read, with the provenance of the catalogue."""
    if not isinstance(block, ToolCall | ToolResponse | Opaque):
        return block
    known = _origin(payload, entry, shape)
    if isinstance(block, Opaque):
        return msgspec.structs.replace(block, origin=known)
    origin = msgspec.structs.replace(
        block.origin,
        provider=entry.provider,
        identity=known.identity,
        item_id=block.origin.item_id or known.item_id,
        parent=known.parent,
        wire_type=entry.wire_type,
        family=entry.family,
    )
    alone = _alone(origin, block.name, 0)
    if isinstance(block, ToolCall):
        return msgspec.structs.replace(block, id=alone, origin=origin)
    return msgspec.structs.replace(block, call_id=alone, origin=origin)

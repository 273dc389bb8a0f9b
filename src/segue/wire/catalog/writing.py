"""Renders canonical blocks as one payload: the original one if unchanged, else a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Block, Native, Opaque, Thinking, ToolCall, ToolResponse
from segue.errors import InputError
from segue.wire.catalog.entry import Entry, check
from segue.wire.catalog.fields import Patch
from segue.wire.catalog.paths import at, put
from segue.wire.catalog.shape import Shape
from segue.wire.fields import JsonObject
from segue.wire.openai_responses.shared import split_name

__all__ = ["own_payload", "write"]

Spoken = ToolCall | ToolResponse | Opaque


def own_payload(blocks: Sequence[Block], entry: Entry) -> JsonObject | None:
    """The payload that these blocks were parsed from, if they are unchanged and of this type."""
    natives = [block.native for block in blocks if isinstance(block, Spoken)]
    whole = {id(native.fragment): native for native in natives if native is not None and native.intact}
    if len(whole) != 1 or len(natives) != sum(native is not None for native in natives):
        return None
    types = {block.origin.wire_type for block in blocks if isinstance(block, Spoken)}
    providers = {block.origin.provider for block in blocks if isinstance(block, Spoken)}
    native: Native = next(iter(whole.values()))
    return dict(native.fragment) if types == {entry.wire_type} and providers == {entry.provider} else None


def write(blocks: Sequence[Block], entry: Entry, shape: Shape) -> JsonObject:
    own = own_payload(blocks, entry)
    rendered_blocks = [block for block in blocks if isinstance(block, Spoken) and _has_words(block, shape)]
    if own is not None and (shape.many is None or len(at(own, shape.many)) == len(rendered_blocks)):
        return own
    _refuse_more_than_it_holds(rendered_blocks, entry, shape)
    if not rendered_blocks:
        raise InputError(
            f"{entry.wire_type} needs a tool call or a tool result; the blocks have neither", path="blocks"
        )
    if shape.many is None:
        payload = _written(rendered_blocks, _signed(blocks, _begun(entry, shape), shape), entry, shape)
    elif shape.bare:
        payload = put(_begun(entry, shape), shape.many, [_bare(block) for block in rendered_blocks])
    else:
        payload = put(
            _begun(entry, shape), shape.many, [_written([block], {}, entry, shape) for block in rendered_blocks]
        )
    check(payload, entry)
    return payload


def _refuse_more_than_it_holds(rendered_blocks: Sequence[Spoken], entry: Entry, shape: Shape) -> None:
    """Reject a call together with its result, unless the type holds both."""
    call, result = (any(isinstance(block, kind) for block in rendered_blocks) for kind in (ToolCall, ToolResponse))
    if (result and entry.role == "call" and shape.output is None) or (call and entry.role == "output"):
        raise InputError(f"{entry.wire_type} is a {entry.role}: render calls and results separately", path="blocks")


def _has_words(block: Spoken, shape: Shape) -> bool:
    return not isinstance(block, Opaque) or (block.origin.is_approval and shape.untell is not None)


def _bare(block: Spoken) -> str:
    if block.origin.raw_id is None:
        raise InputError("a raw id is required; the block has none", path="blocks")
    return block.origin.raw_id


def _signed(blocks: Sequence[Block], payload: JsonObject, shape: Shape) -> JsonObject:
    signatures = [block.signature for block in blocks if isinstance(block, Thinking) and block.signature]
    return payload if shape.signature is None or not signatures else put(payload, shape.signature, signatures[-1])


def _begun(entry: Entry, shape: Shape) -> JsonObject:
    """The discriminator and default fields of the type."""
    payload: JsonObject = {} if entry.member is None else {entry.member: {}}
    for key, value in entry.discriminator.items():
        if value != "*":
            payload = put(payload, key, cast("list[Any]", value)[0] if isinstance(value, list) else value)
    for path, value in shape.defaults.items():
        payload = put(payload, path, value)
    return payload


def _written(blocks: Sequence[Spoken], payload: JsonObject, entry: Entry, shape: Shape) -> JsonObject:
    patch: Patch = {}
    for block in blocks:
        patch |= _named(block, entry, shape)
        if isinstance(block, Opaque):
            patch |= shape.untell(block.text) if shape.untell is not None else {}
        elif isinstance(block, ToolCall):
            patch |= shape.arguments.write(block)
        elif shape.output is not None:
            patch |= shape.output.write(block)
    for path in sorted(patch, key=lambda path: path.count(".")):
        payload = put(payload, path, patch[path])
    return payload


def _named(block: Spoken, entry: Entry, shape: Shape) -> dict[str, Any]:
    """The ids, each in its own field, and the name."""
    origin, name = block.origin, None if isinstance(block, Opaque) else block.name
    fields: dict[str | None, str | None] = {
        shape.item: origin.item_id,
        shape.id: _id(block, entry, shape),
        shape.name: name,
    }
    if name is not None and shape.namespace is not None:
        fields[shape.namespace], fields[shape.name] = split_name(name)
    return {path: value for path, value in fields.items() if path is not None and value is not None}


def _id(block: Spoken, entry: Entry, shape: Shape) -> str | None:
    """The raw id; where the type requires one and the block has none, the canonical id."""
    if block.origin.raw_id is not None or entry.ids.get((shape.id or "").rpartition(".")[2]) != "required":
        return block.origin.raw_id
    made = block.id if isinstance(block, ToolCall) else block.call_id if isinstance(block, ToolResponse) else None
    return made or None

"""Renders canonical blocks as one payload: the original one if unchanged, else a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Block, Native, Opaque, Thinking, ToolCall, ToolResponse
from segue.errors import InputError
from segue.wire.catalog.codecs import Patch
from segue.wire.catalog.entry import Entry, check_payload
from segue.wire.catalog.shape import PayloadShape
from segue.wire.json_values import JsonObject, get_path, set_path
from segue.wire.names import split_name

PayloadBlock = ToolCall | ToolResponse | Opaque


def find_original_payload(blocks: Sequence[Block], entry: Entry) -> JsonObject | None:
    """Return the payload that these blocks were parsed from, if they are unchanged and of this type."""
    natives = [block.native for block in blocks if isinstance(block, PayloadBlock)]
    originals = {id(native.fragment): native for native in natives if native is not None and native.intact}
    if len(originals) != 1 or len(natives) != sum(native is not None for native in natives):
        return None
    types = {block.origin.wire_type for block in blocks if isinstance(block, PayloadBlock)}
    providers = {block.origin.provider for block in blocks if isinstance(block, PayloadBlock)}
    native: Native = next(iter(originals.values()))
    return dict(native.fragment) if types == {entry.wire_type} and providers == {entry.provider} else None


def render_payload(blocks: Sequence[Block], entry: Entry, shape: PayloadShape) -> JsonObject:
    original = find_original_payload(blocks, entry)
    rendered_blocks = [block for block in blocks if isinstance(block, PayloadBlock) and _is_renderable(block, shape)]
    if original is not None and (
        shape.list_path is None or len(get_path(original, shape.list_path)) == len(rendered_blocks)
    ):
        return original
    _reject_extra_blocks(rendered_blocks, entry, shape)
    if not rendered_blocks:
        message = f"{entry.wire_type} needs a tool call or a tool result; the blocks have neither"
        raise InputError(message, path="blocks")
    if shape.list_path is None:
        payload = _render_blocks(
            rendered_blocks, _add_signature(blocks, _initial_payload(entry, shape), shape), entry, shape
        )
    elif shape.ids_only:
        payload = set_path(
            _initial_payload(entry, shape), shape.list_path, [_require_raw_id(block) for block in rendered_blocks]
        )
    else:
        payload = set_path(
            _initial_payload(entry, shape),
            shape.list_path,
            [_render_blocks([block], {}, entry, shape) for block in rendered_blocks],
        )
    check_payload(payload, entry)
    return payload


def _reject_extra_blocks(rendered_blocks: Sequence[PayloadBlock], entry: Entry, shape: PayloadShape) -> None:
    """Reject a call together with its result, unless the type holds both."""
    call, result = (any(isinstance(block, kind) for block in rendered_blocks) for kind in (ToolCall, ToolResponse))
    if (result and entry.role == "call" and shape.output is None) or (call and entry.role == "output"):
        raise InputError(f"{entry.wire_type} is a {entry.role}: render calls and results separately", path="blocks")


def _is_renderable(block: PayloadBlock, shape: PayloadShape) -> bool:
    return not isinstance(block, Opaque) or (block.origin.is_approval and shape.approval is not None)


def _require_raw_id(block: PayloadBlock) -> str:
    if block.origin.raw_id is None:
        raise InputError("a raw id is required; the block has none", path="blocks")
    return block.origin.raw_id


def _add_signature(blocks: Sequence[Block], payload: JsonObject, shape: PayloadShape) -> JsonObject:
    signatures = [block.signature for block in blocks if isinstance(block, Thinking) and block.signature]
    return payload if shape.signature is None or not signatures else set_path(payload, shape.signature, signatures[-1])


def _initial_payload(entry: Entry, shape: PayloadShape) -> JsonObject:
    """Return the discriminator and default fields of the type."""
    payload: JsonObject = {} if entry.member is None else {entry.member: {}}
    for key, value in entry.discriminator.items():
        if value != "*":
            payload = set_path(payload, key, cast("list[Any]", value)[0] if isinstance(value, list) else value)
    for path, value in shape.defaults.items():
        payload = set_path(payload, path, value)
    return payload


def _render_blocks(
    blocks: Sequence[PayloadBlock], payload: JsonObject, entry: Entry, shape: PayloadShape
) -> JsonObject:
    patch: Patch = {}
    for block in blocks:
        patch |= _render_ids_and_name(block, entry, shape)
        if isinstance(block, Opaque):
            patch |= shape.approval.render(block.text) if shape.approval is not None else {}
        elif isinstance(block, ToolCall):
            patch |= shape.arguments.render(block)
        elif shape.output is not None:
            patch |= shape.output.render(block)
    for path in sorted(patch, key=lambda path: path.count(".")):
        payload = set_path(payload, path, patch[path])
    return payload


def _render_ids_and_name(block: PayloadBlock, entry: Entry, shape: PayloadShape) -> dict[str, Any]:
    """Render the ids, each in its own field, and the name."""
    origin, name = block.origin, None if isinstance(block, Opaque) else block.name
    fields: dict[str | None, str | None] = {
        shape.item_id: origin.item_id,
        shape.id: _render_id(block, entry, shape),
        shape.name: name,
    }
    if name is not None and shape.namespace is not None:
        fields[shape.namespace], fields[shape.name] = split_name(name)
    return {path: value for path, value in fields.items() if path is not None and value is not None}


def _render_id(block: PayloadBlock, entry: Entry, shape: PayloadShape) -> str | None:
    """Return the raw id; where the type requires one and the block has none, the canonical id."""
    if block.origin.raw_id is not None or entry.ids.get((shape.id or "").rpartition(".")[2]) != "required":
        return block.origin.raw_id
    canonical_id = (
        block.id if isinstance(block, ToolCall) else block.call_id if isinstance(block, ToolResponse) else None
    )
    return canonical_id or None

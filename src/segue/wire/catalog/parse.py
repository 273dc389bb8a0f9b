"""Parses a single payload into canonical blocks.

Ids are derived from the provider and the raw id, or the tool name if there is none, so that a call and its output have
the same id without a conversation. In a conversation they get the ids of their turn.
"""

from __future__ import annotations

from typing import cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Identity, Media, Native, Opaque, Origin, ToolCall, ToolResponse
from segue.canonical.ids import canonical_tool_id, raw_id_or_none
from segue.canonical.json import encode_json_text
from segue.errors import InputError
from segue.wire.catalog.codecs import parse_data_url
from segue.wire.catalog.entry import Entry
from segue.wire.catalog.shape import PayloadShape
from segue.wire.json_values import JsonObject, get_path, optional_string, require_list, require_object
from segue.wire.names import join_name
from segue.wire.registry import WIRES

_STANDALONE_TURN_KEY = "item"
"""The turn key of payloads outside of a turn."""


def parse_payload(payload: JsonObject, entry: Entry, shape: PayloadShape) -> list[Block]:
    if shape.enclosing_body is not None:
        parsed = [_add_provenance(block, entry, shape, payload) for block in _parse_in_body(payload, shape)]
        if _has_expected_blocks(parsed, payload, entry, shape):
            return parsed
    if shape.list_path is None:
        return _parse_member(payload, payload, 0, entry, shape)
    members = require_list(get_path(payload, shape.list_path) or [], shape.list_path)
    blocks: list[Block] = []
    for index, member in enumerate(members):
        path = f"{shape.list_path}[{index}]"
        if shape.ids_only:
            blocks += _parse_member({shape.id or "": optional_string(member, path)}, payload, index, entry, shape)
            continue
        try:
            blocks += _parse_member(require_object(member), payload, index, entry, shape)
        except InputError as error:
            raise error.with_prefix(path) from None
    return blocks


def _parse_in_body(payload: JsonObject, shape: PayloadShape) -> list[Block]:
    """Parse with the wire, so that a payload is parsed as in a body."""
    assert shape.enclosing_body is not None
    body = shape.enclosing_body.wrap(payload)
    try:
        request = WIRES[shape.enclosing_body.api].parse_request(body)
    except InputError as error:
        path_in_body = (_find_path(body, payload) or "").removeprefix(".")
        raise InputError(error.message, path=error.path.removeprefix(path_in_body).removeprefix(".")) from None
    return [block for message in request.messages for block in message.blocks]


def _has_expected_blocks(blocks: list[Block], payload: JsonObject, entry: Entry, shape: PayloadShape) -> bool:
    """Return whether the wire returned the blocks of this type; some items are parsed only with their neighbours."""
    answered = any(isinstance(block, ToolResponse) for block in blocks)
    if entry.role == "output":
        return answered
    failed = shape.output is not None and shape.failed(payload)
    return any(isinstance(block, ToolCall) for block in blocks) and (answered or not failed)


def _find_path(holder: object, payload: JsonObject) -> str | None:
    """Return the path of the payload in a body."""
    if holder is payload:
        return ""
    steps: list[tuple[str, object]] = []
    if isinstance(holder, dict):
        steps = [(f".{key}", value) for key, value in cast("JsonObject", holder).items()]
    elif isinstance(holder, list):
        steps = [(f"[{index}]", value) for index, value in enumerate(cast("list[object]", holder))]
    for step, value in steps:
        inner_path = _find_path(value, payload)
        if inner_path is not None:
            return f"{step}{inner_path}"
    return None


def _string_at(payload: JsonObject, path: str | None) -> str | None:
    return optional_string(get_path(payload, path), path) if path is not None else None


def _origin(payload: JsonObject, entry: Entry, shape: PayloadShape) -> Origin:
    raw_id = raw_id_or_none(_string_at(payload, shape.id))
    item_id = _string_at(payload, shape.item_id)
    identity = _identity(entry, raw_id)
    return Origin(
        entry.provider,
        raw_id=raw_id,
        item_id=item_id if shape.item_id is not None else raw_id if identity == "conflated" else None,
        identity=identity,
        parent=_string_at(payload, shape.parent),
        wire_type=entry.wire_type,
        family=entry.family,
    )


def _identity(entry: Entry, raw_id: str | None) -> Identity:
    if raw_id is None:
        return "absent" if entry.identity == "absent" else "synthetic"
    return "conflated" if entry.identity == "absent" else entry.identity


def _native(payload: JsonObject, entry: Entry) -> Native:
    return Native(f"{entry.provider}/{entry.surface}", payload)


def _standalone_id(origin: Origin, name: str | None, index: int) -> str:
    tool = None if origin.raw_id is not None else name
    return canonical_tool_id(
        provider=origin.provider, raw_id=origin.raw_id, tool_name=tool, turn_key=_STANDALONE_TURN_KEY, call_index=index
    )


def _name(payload: JsonObject, shape: PayloadShape) -> str | None:
    name, namespace = _string_at(payload, shape.name), _string_at(payload, shape.namespace)
    return join_name(namespace, name) if name and namespace else name


def _parse_member(
    payload: JsonObject, full_payload: JsonObject, index: int, entry: Entry, shape: PayloadShape
) -> list[Block]:
    origin = _origin(payload, entry, shape)
    native = _native(full_payload, entry)
    tool = _name(payload, shape) or shape.tool or None
    if tool is None and shape.name is not None and _needs_name(entry, shape):
        raise InputError(f"a required field is missing ({entry.provider} {entry.wire_type})", path=shape.name)
    if origin.is_approval and entry.role == "output":
        text = shape.approval.parse(payload) if shape.approval is not None else encode_json_text(payload)
        return [Opaque(entry.family, text=text, native=native, origin=origin)]
    shared = 0 if origin.raw_id is not None else index
    blocks: list[Block] = []
    if entry.role != "output":
        arguments, text = shape.arguments.parse(payload)
        blocks.append(
            ToolCall(
                tool or "",
                arguments,
                id=_standalone_id(origin, tool, shared),
                arguments_text=text,
                kind="hosted" if origin.is_approval or shape.is_hosted(payload) else shape.kind,
                origin=origin,
                native=native,
                awaited=not origin.is_approval,
            )
        )
    if entry.role == "call":
        return (
            blocks if shape.output is None else [*blocks, *_parse_output(payload, origin, tool, shared, native, shape)]
        )
    return [*blocks, *_parse_output(payload, origin, tool, shared, native, shape, always=entry.role == "output")]


def _needs_name(entry: Entry, shape: PayloadShape) -> bool:
    """Return True for a name inside a nested object, which the catalog's field list does not check."""
    return entry.role != "output" and "." in (shape.name or "") and not entry.enveloped and shape.list_path is None


def _parse_output(
    payload: JsonObject,
    origin: Origin,
    tool: str | None,
    index: int,
    native: Native,
    shape: PayloadShape,
    *,
    always: bool = False,
) -> list[Block]:
    """Parse the output, if there is one; a type that is only an output has one even without content."""
    content, structured = shape.output.parse(payload) if shape.output is not None else (None, UNSET)
    failed = shape.failed(payload)
    if content is None and structured is UNSET and not (always or failed):
        return []
    response = ToolResponse(
        call_id=_standalone_id(origin, tool, index),
        name=tool,
        content=content or (),
        structured=structured,
        error=failed,
        is_complete=not shape.pending(payload),
        outcome="cancelled" if shape.cancelled(payload) else None,
        hosted=shape.kind == "hosted" or shape.is_hosted(payload),
        origin=origin,
        native=native,
    )
    return [response]


def _add_provenance(block: Block, entry: Entry, shape: PayloadShape, payload: JsonObject) -> Block:
    """Return a block that the wire parsed, with the provenance of the catalog."""
    if not isinstance(block, ToolCall | ToolResponse | Opaque):
        return block
    catalog_origin = _origin(payload, entry, shape)
    if isinstance(block, Opaque):
        return msgspec.structs.replace(block, origin=catalog_origin)
    hosted = shape.is_hosted(payload)
    # If the wire would change the payload or render only a part of it, keep the whole payload.
    is_unchanged = block.native is not None and block.native.intact and block.native.fragment == payload
    parsed_as_hosted = block.kind == "hosted" if isinstance(block, ToolCall) else block.hosted
    native = block.native if is_unchanged and (parsed_as_hosted or not hosted) else _native(payload, entry)
    origin = msgspec.structs.replace(
        block.origin,
        provider=entry.provider,
        identity=catalog_origin.identity,
        item_id=block.origin.item_id or catalog_origin.item_id,
        parent=catalog_origin.parent,
        wire_type=entry.wire_type,
        family=entry.family,
    )
    # As a single payload, an MCP tool has the name that its server gave it.
    name = _name(payload, shape) or block.name or shape.tool or None
    call_id = _standalone_id(origin, name, 0)
    if isinstance(block, ToolCall):
        kind = "hosted" if hosted else block.kind
        return msgspec.structs.replace(block, name=name or "", id=call_id, kind=kind, origin=origin, native=native)
    return msgspec.structs.replace(
        block,
        name=name,
        call_id=call_id,
        content=None if block.content is None else tuple(map(_inline_data_url, block.content)),
        error=block.error or shape.failed(payload),
        hosted=block.hosted or hosted,
        origin=origin,
        native=native,
    )


def _inline_data_url(block: Block) -> Block:
    """Convert media with a data URL to media with data."""
    if not isinstance(block, Media) or block.url is None or not block.url.startswith("data:"):
        return block
    decoded = parse_data_url(block.url, block.kind)
    return msgspec.structs.replace(block, mime=decoded.mime, data=decoded.data, url=decoded.url)

"""Content blocks ⇄ canonical blocks, one to one: block `i` of a message is item `i` of its content.

Same-API a block with an intact fragment is sent as the original object; only ids and tool names are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, assert_never, cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Code, Media, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.envelope import is_envelope
from segue.canonical.ids import NO_IDS, raw_id_or_none
from segue.canonical.json import are_identical, encode_json_text, parse_argument_text
from segue.errors import InputError
from segue.render.report import Report, field_level
from segue.wire.anthropic.capabilities import API
from segue.wire.anthropic.media import parse_document, parse_image, parse_search_result, render_media
from segue.wire.anthropic.server_results import server_tool_blocks, unknown_block_text
from segue.wire.base import RenderContext
from segue.wire.code import fence_code
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    optional_boolean,
    optional_list,
    optional_string,
    require_object,
    require_string,
    string_or_none,
)
from segue.wire.media import report_unsupported
from segue.wire.merge import intact_fragment, unmodelled_fields
from segue.wire.mixed_body import BodyApi, find_item_api, parse_item, parse_reasoning_item
from segue.wire.tools import describe_hosted, render_named_arguments

# Blocks about the reply that are no part of its content.
_NOTICES = frozenset({"fallback"})
TOOL_CHANGES = frozenset({"tool_addition", "tool_removal"})
"""Blocks that make a declared tool available or unavailable from there on; `extra` is the reference to the tool."""
BODY_API = BodyApi(API, API, API)
_SERVER_ID_PATTERN = re.compile("srvtoolu_[a-zA-Z0-9_]+")


# ------------------------------------------------------------------------------------------------------------------ in


def block_kind(block: Text) -> str:
    """Return the type of block that an unchanged text was parsed from: `text`, `search_result` …"""
    return str(block.native.fragment.get("type", "text")) if block.native is not None else "text"


def parse_content(content: list[Any], model: str | None = None) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for index, item in enumerate(content):
        try:
            blocks.append(_parse_block(item, model))
        except InputError as error:
            raise error.with_prefix(f"content[{index}]") from None
    return tuple(blocks)


def _parse_block(value: object, model: str | None) -> Block:
    block = require_object(value, "")
    kind = block.get("type")
    parse = _PARSERS.get(kind) if isinstance(kind, str) else None
    if parse is not None:
        parsed, known = parse(block, model), _FIELDS.get(cast("str", kind))
        if known is None or known.issuperset(block):
            return parsed
        return msgspec.structs.replace(parsed, native=Native(API, block, intact=False))
    if find_item_api(block) not in (None, API):
        return parse_item(block, BODY_API) or Opaque(str(kind), native=Native(API, block))
    if (thought := parse_reasoning_item(block, BODY_API)) is not None:
        return thought
    if not isinstance(kind, str) or not kind:
        raise InputError(f"a string was expected as `type`, not {json_type_name(kind)}", path="type")
    if kind.endswith("_tool_result") and "tool_use_id" in block:
        return _parse_hosted_result(block, model)
    if kind in _NOTICES:
        return Opaque(kind, native=Native(API, block), omit_reason="notice")
    return Opaque(kind, text=unknown_block_text(block), native=Native(API, block))


def _parse_text(block: JsonObject, _model: str | None) -> Block:
    return Text(require_string(block.get("text"), "text"), native=Native(API, block))


def _parse_thinking(block: JsonObject, model: str | None) -> Block:
    text, signature = (optional_string(block.get(key), key) for key in ("thinking", "signature"))
    return Thinking(
        text or "",
        # ANT-25: a signature is useless without the signed text
        signature=signature if text is not None else None,
        origin=Origin(API, model, identity="absent"),
        native=Native(API, block),
    )


def _parse_redacted_thinking(block: JsonObject, model: str | None) -> Block:
    encrypted = optional_string(block.get("data"), "data")
    return Thinking(encrypted=encrypted, origin=Origin(API, model, identity="absent"), native=Native(API, block))


def _origin(block: JsonObject, key: str, model: str | None) -> Origin:
    raw_id = optional_string(block.get(key), key)
    if raw_id is not None and raw_id not in NO_IDS and "caller" not in block:
        return Origin(API, model, raw_id)
    valid_id = raw_id_or_none(raw_id)
    malformed = raw_id if valid_id is None and raw_id else None
    parent = raw_id_or_none((object_or_none(block.get("caller")) or {}).get("tool_id"))
    return Origin(API, model, valid_id, malformed, "synthetic" if valid_id is None else "natural", parent)


def _parse_tool_use(block: JsonObject, model: str | None) -> Block:
    arguments: Any = block.get("input")
    text: str | None = None
    # ANT-11: anything but an object is rejected, so such a fragment is not intact
    intact = isinstance(arguments, dict)
    if isinstance(arguments, str):
        arguments, text = parse_argument_text(arguments)
    return ToolCall(
        require_string(block.get("name"), "name"),
        {} if arguments is None and text is None else arguments,
        arguments_text=text,
        origin=_origin(block, "id", model),
        native=Native(API, block, intact),
    )


def _parse_hosted_call(block: JsonObject, model: str | None) -> Block:
    # ANT-02: with another id the fragment is not intact
    hosted_id = optional_string(block.get("id"), "id")
    intact = block["type"] != "server_tool_use" or _SERVER_ID_PATTERN.fullmatch(str(hosted_id)) is not None
    name, server = require_string(block.get("name"), "name"), string_or_none(block.get("server_name"))
    return ToolCall(
        # Tools of two servers may have the same name.
        f"{server}.{name}" if server else name,
        block.get("input"),
        kind="hosted",
        origin=_origin(block, "id", model),
        native=Native(API, block, intact and isinstance(block.get("input"), dict)),
        # ANT-10: no rule requires the result of an MCP call.
        awaited=block["type"] != "mcp_tool_use",
    )


def _parse_tool_result(block: JsonObject, model: str | None) -> Block:
    content: Any = block.get("content")
    error = block.get("is_error", False)
    failed = optional_boolean(error, "is_error") or False
    intact = (content is not None or "content" not in block) and isinstance(error, bool)
    if isinstance(content, str):
        blocks: tuple[Block, ...] = (Text(content),)
    elif isinstance(content, list):
        parsed = parse_content(cast("list[Any]", content), model)
        blocks = tuple(_result_block(part) for part in parsed)
        intact = intact and blocks == parsed
    elif content is None:
        blocks = ()
    else:
        raise InputError(f"a string or a list was expected, not {json_type_name(content)}", path="content")
    return ToolResponse(
        content=blocks,
        error=failed,
        is_complete=True,
        origin=_origin(block, "tool_use_id", model),
        native=Native(API, block, intact),
    )


def _result_block(block: Block) -> Block:
    """ANT-18: calls, results and reasoning are invalid inside a result; they become text."""
    if isinstance(block, Text | Media | Code | Opaque):
        return block
    return Text(encode_json_text(block.native.fragment if block.native is not None else {}))


def _parse_hosted_result(block: JsonObject, model: str | None) -> Block:
    # ANT-09: `tool_use_id` is the only link to its call.
    if not require_string(block.get("tool_use_id"), "tool_use_id"):
        raise InputError("the id of a call was expected, not an empty string", path="tool_use_id")
    content: Any = block.get("content")
    if block["type"] == "web_search_tool_result" and isinstance(content, list):
        _validate_search_results(cast("list[object]", content))
    if isinstance(content, list) and block["type"] == "mcp_tool_result":
        blocks = tuple(_result_block(part) for part in parse_content(cast("list[Any]", content), model))
    else:
        blocks = () if content is None else server_tool_blocks(cast("object", content))
    return ToolResponse(
        content=blocks,
        error=block.get("is_error") is True or (isinstance(content, dict) and "error_code" in content),
        is_complete=True,
        hosted=True,
        origin=_origin(block, "tool_use_id", model),
        native=Native(API, block),
    )


def _validate_search_results(items: list[object]) -> None:
    """ANT-12, ANT-32: search results must be sent back unchanged; raises `InputError` for invalid ones."""
    for index, item in enumerate(items):
        result = require_object(item, f"content[{index}]")
        for key in ("type", "encrypted_content"):
            if not isinstance(result.get(key), str) or not result[key]:
                raise InputError(
                    "the non-empty string that the server sent was expected", path=f"content[{index}].{key}"
                )


def _parse_tool_reference(block: JsonObject, _model: str | None) -> Block:
    name = string_or_none(block.get("tool_name"))
    return Text(name, native=Native(API, block)) if name else Opaque("tool_reference", native=Native(API, block))


def _parse_compaction(block: JsonObject, _model: str | None) -> Block:
    """Parse a summary of the history before it; without content the compaction failed, and stands for nothing."""
    content, encrypted, signature = (
        optional_string(block.get(key), key) for key in ("content", "encrypted_content", "signature")
    )
    optional_list(block.get("tool_changes"), "tool_changes")
    extra = {"size": len(encrypted or ""), "replaces": signature is not None}
    return Opaque(
        block["type"],
        text=content or "",
        # ANT-46. No provider gets what segue made in its place.
        native=Native(API, block, content != "" and not is_envelope(signature)),
        omit_reason="compaction" if content or encrypted else "notice",
        extra={key: value for key, value in extra.items() if value} or None,
    )


def _parse_tool_change(block: JsonObject, _model: str | None) -> Block:
    tool = object_or_none(block.get("tool")) or {}
    named = tool if isinstance(tool.get("name"), str) else None
    return Opaque(block["type"], text=unknown_block_text(block), native=Native(API, block), extra=named)


def _render_tool_change(kind: str, tool: Mapping[str, Any], context: RenderContext) -> JsonObject:
    name = tool["name"] if "server_name" in tool else context.names.render(tool["name"])
    return {"type": kind, "tool": {**tool, "name": name}}


_PARSERS: dict[str, Callable[[JsonObject, str | None], Block]] = {
    "text": _parse_text,
    "thinking": _parse_thinking,
    "redacted_thinking": _parse_redacted_thinking,
    "tool_use": _parse_tool_use,
    "server_tool_use": _parse_hosted_call,
    "mcp_tool_use": _parse_hosted_call,
    "tool_result": _parse_tool_result,
    "image": lambda block, _model: parse_image(block),
    "document": lambda block, _model: parse_document(block),
    "search_result": lambda block, _model: parse_search_result(block),
    "tool_reference": _parse_tool_reference,
    "compaction": _parse_compaction,
    **dict.fromkeys(TOOL_CHANGES, _parse_tool_change),
}


# -------------------------------------------------------------------------------------------------------------- fields

# ANT-12: the API rejects unknown fields of a block, so they are dropped same-API too.

_COMMON_FIELDS = {"type", "cache_control"}
# From the request types of the SDK, for block types that segue can render. Types in neither table are not checked.
_FIELDS: dict[str, frozenset[str]] = {
    "text": frozenset(_COMMON_FIELDS | {"text", "citations"}),
    "image": frozenset(_COMMON_FIELDS | {"source", "transformations"}),
    "document": frozenset(_COMMON_FIELDS | {"source", "title", "context", "citations"}),
    "search_result": frozenset(_COMMON_FIELDS | {"source", "title", "content", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset(_COMMON_FIELDS | {"id", "name", "input", "caller", "toolset_name"}),
    "tool_result": frozenset(_COMMON_FIELDS | {"tool_use_id", "content", "is_error", "toolset_name"}),
    "tool_reference": frozenset(_COMMON_FIELDS | {"tool_name"}),
}
# The same for block types that only the provider creates.
_PROVIDER_FIELDS: dict[str, frozenset[str]] = {
    "server_tool_use": frozenset(_COMMON_FIELDS | {"id", "name", "input", "caller"}),
    "mcp_tool_use": frozenset(_COMMON_FIELDS | {"id", "name", "input", "server_name"}),
    "mcp_tool_result": frozenset(_COMMON_FIELDS | {"tool_use_id", "content", "is_error"}),
    "mcp_tool_listing": frozenset({"type", "mcp_server_name", "tools"}),
    "container_upload": frozenset(_COMMON_FIELDS | {"file_id"}),
    "compaction": frozenset(_COMMON_FIELDS | {"content", "encrypted_content", "signature", "tool_changes"}),
    "tool_addition": frozenset(_COMMON_FIELDS | {"tool"}),
    "tool_removal": frozenset(_COMMON_FIELDS | {"tool"}),
    "fallback": frozenset({"type", "from", "to", "trigger"}),
}
_RESULT_FIELDS = frozenset(_COMMON_FIELDS | {"tool_use_id", "content", "caller"})
_CALLER_FIELDS = frozenset({"caller.type", "caller.tool_id"})


def typed_keys(block: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the keys of a block of a provider's tool."""
    kind = str(block.get("type"))
    fields = _PROVIDER_FIELDS.get(kind) or (_RESULT_FIELDS if kind.endswith("_tool_result") else None)
    return None if fields is None else fields | _CALLER_FIELDS


def _unknown_keys(block: JsonObject, known: frozenset[str] | None) -> list[str]:
    """Return the keys of a block that are not known; none where its type is not."""
    return [] if known is None or known.issuperset(block) else sorted(block.keys() - known)


# ----------------------------------------------------------------------------------------------------------------- out

_MODELLED_FIELDS = frozenset(
    {"type", "text", "thinking", "signature", "data", "id", "name", "input"}
    | {"tool_use_id", "content", "is_error", "source", "title"}
)


ITEM_KEYS = (
    _MODELLED_FIELDS
    | {"role", "tool_name", "caller", "caller.type", "caller.tool_id"}
    | {f"source.{key}" for key in ("type", "media_type", "data", "url", "file_id", "content")}
)


def with_unmodelled(rendered: JsonObject, native: Native | None) -> JsonObject:
    """Return the rendered block plus the unmodelled fields of its fragment that are known for its type."""
    if native is None or native.api != API:
        return rendered
    rest = unmodelled_fields(native.fragment, _MODELLED_FIELDS)
    return rendered | {key: rest[key] for key in rest.keys() - _unknown_keys(rest, _FIELDS.get(str(rendered["type"])))}


def drop_unknown_keys(native: Native | None, report: Report) -> JsonObject | None:
    """ANT-12: the intact fragment of the block without its unknown keys, each of which is reported."""
    if native is None or native.api != API:
        return None
    original, fragment = intact_fragment(native, API), cast("JsonObject", native.fragment)
    fields = _FIELDS if original is None else _PROVIDER_FIELDS
    unknown = _unknown_keys(fragment, fields.get(str(fragment.get("type"))))
    for key in unknown:
        report.add(
            "dropped", f"`{key}` dropped: not a field of {fragment['type']} blocks", subject=key, level=field_level(key)
        )
    return (
        original
        if original is None or not unknown
        else {key: value for key, value in original.items() if key not in unknown}
    )


def drop_text_keys(block: JsonObject, report: Report) -> JsonObject:
    """ANT-12: a text block without its unknown keys; the same object if it has none, and any other block."""
    unknown = _unknown_keys(block, _FIELDS["text"]) if block.get("type") == "text" else []
    for key in unknown:
        report.add("dropped", f"`{key}` dropped: not a field of text blocks", subject=key)
    return {key: value for key, value in block.items() if key not in unknown} if unknown else block


def _drop_nested_keys(result: JsonObject, report: Report) -> JsonObject:
    """Return a result whose text blocks have only known keys."""
    content = result.get("content")
    if not isinstance(content, list):
        return result
    blocks = cast("list[JsonObject]", content)
    kept = [drop_text_keys(block, report) for block in blocks]
    return result if are_identical(kept, blocks) else {**result, "content": kept}


def render_block(block: Block, context: RenderContext) -> JsonObject:
    original = drop_unknown_keys(block.native, context.report)
    match block:
        case ToolCall():
            return _render_call(block, original, context)
        case ToolResponse():
            return _render_response(block, original, context)
        case _ if original is not None:
            return original
        case Text():
            return with_unmodelled({"type": "text", "text": block.text}, block.native)
        case Thinking():
            return with_unmodelled(_render_thinking(block), block.native)
        case Media():
            return with_unmodelled(render_media(block, context), block.native)
        case Code():
            return {"type": "text", "text": fence_code(block)}
        case Opaque() if block.kind in TOOL_CHANGES and block.extra:
            return _render_tool_change(block.kind, block.extra, context)
        case Opaque():
            return {"type": "text", "text": report_unsupported(block, context.report)}
        case _:
            assert_never(block)


def _render_thinking(block: Thinking) -> JsonObject:
    if block.encrypted is not None:
        return {"type": "redacted_thinking", "data": block.encrypted}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature or ""}


def _render_call(call: ToolCall, original: JsonObject | None, context: RenderContext) -> JsonObject:
    if call.kind == "hosted":
        # ANT-02: ids of hosted calls stay under every policy
        if original is not None:
            return original
        if call.origin.provider == API:
            return {"type": "text", "text": describe_hosted(call, context.report)}
    name = context.names.render(call.name)
    call_id = _project_id(call.id, call.origin, original, context)
    if original is None:
        rendered = {"type": "tool_use", "id": call_id, "name": name}
        return with_unmodelled(
            {**rendered, "input": render_named_arguments(call, context.report, context.names)}, call.native
        )
    if context.names.parameters.has_changed(call.name):
        return {
            **original,
            "id": call_id,
            "name": name,
            "input": render_named_arguments(call, context.report, context.names),
        }
    if original.get("id") == call_id and original.get("name") == name:
        return original
    return {**original, "id": call_id, "name": name}


def _render_response(response: ToolResponse, original: JsonObject | None, context: RenderContext) -> JsonObject:
    if response.hosted:
        if original is not None:
            return original
        if response.origin.provider == API:
            return {"type": "text", "text": describe_hosted(response, context.report)}
    call_id = _project_id(response.call_id, response.origin, original, context)
    if original is not None:
        original = _drop_nested_keys(original, context.report)
        return original if original.get("tool_use_id") == call_id else {**original, "tool_use_id": call_id}
    block: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
    content = _result_content(response, context)
    if content is not None:
        block["content"] = content
    if response.error or response.outcome is not None:
        block["is_error"] = True
    return with_unmodelled(block, response.native)


def _result_content(response: ToolResponse, context: RenderContext) -> str | list[JsonObject] | None:
    blocks = response.content or ()
    if response.structured is not UNSET and not any(isinstance(block, Text) for block in blocks):
        blocks = (Text(encode_json_text(response.structured)), *blocks)
    match blocks:
        case ():
            return None
        case (Text(native=None) as only,):
            return only.text
        case _:
            # ANT-13: no empty text next to other blocks
            kept = [block for block in blocks if not (isinstance(block, Text) and not block.text)]
            return [render_block(block, context) for block in kept]


def _project_id(call_id: str, origin: Origin, original: JsonObject | None, context: RenderContext) -> str:
    """Return the projected id; same-API the raw id for a call outside this body (in state that the provider stores)."""
    if call_id not in context.ids and original is not None and origin.raw_id is not None:
        return origin.raw_id
    return context.ids.render(call_id)

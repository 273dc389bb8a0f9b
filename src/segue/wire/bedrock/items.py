"""Content blocks ⇄ canonical blocks. A block is a union: an object with one member, whose key is its type.

A `cachePoint` belongs to the block before it: it is stored as a second member of that block's fragment, which renders
as two blocks. Same-API a block with an intact fragment is sent as the original object; only ids and tool names are
replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, assert_never, cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Code, Media, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.wire.anthropic.items import TOOL_CHANGES
from segue.wire.base import RenderContext
from segue.wire.bedrock.capabilities import API
from segue.wire.bedrock.media import MEDIA_KINDS, parse_media, parse_search_result, render_media
from segue.wire.code import fence_code
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_list,
    object_or_none,
    require_object,
    require_string,
    string_or_none,
)
from segue.wire.media import report_unsupported
from segue.wire.merge import intact_fragment
from segue.wire.mixed_body import BodyApi, parse_item, parse_reasoning_item
from segue.wire.tools import describe_hosted, render_named_arguments

CACHE_POINT = "cachePoint"
BODY_API = BodyApi(API, API, API)
_SERVER_TOOL_USE = "server_tool_use"
# The types that Claude has for calls and results of the client.
_CLIENT_RESULT = "tool_result"
_VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# A dotted name is one key of the object under the first key.
ITEM_KEYS = frozenset(
    # `type` is of blocks of other APIs.
    {"role", "content", "text", "json", "type"}
    | {f"{kind}.{key}" for kind in MEDIA_KINDS for key in ("format", "name")}
    | {f"{kind}.source.{key}" for kind in MEDIA_KINDS for key in ("bytes", "text", "content", "s3Location.uri")}
    | {"toolUse.toolUseId", "toolUse.name", "toolUse.input", "toolUse.type"}
    | {"toolResult.toolUseId", "toolResult.content", "toolResult.status", "toolResult.type"}
    | {"reasoningContent.reasoningText", "reasoningContent.redactedContent", "citationsContent.content"}
    | {"guardContent.text.text", "guardContent.image", "document.context"}
    | {"searchResult.source", "searchResult.title", "searchResult.content"}
)


# ------------------------------------------------------------------------------------------------------------------ in


def block_kind(block: Text) -> str:
    """Return the kind of Converse block that an unchanged text was parsed from: `text`, `document` …

    JSON is text for the model.
    """
    kind = next(iter(block.native.fragment), "text") if block.native is not None else "text"
    return "text" if kind == "json" else kind


def parse_content(content: list[Any], model: str | None) -> tuple[tuple[Block, ...], bool]:
    """Return the blocks, and whether the API accepts the content unchanged."""
    blocks: list[Block] = []
    intact = True
    hosted_ids = _hosted_call_ids(content)
    for index, item in enumerate(content):
        try:
            parsed, valid = _parse_item(item, model, _PARSERS, hosted_ids)
        except InputError as error:
            raise error.with_prefix(f"content[{index}]") from None
        intact = intact and valid and all(block.native is None or _is_intact(block.native) for block in parsed)
        blocks += parsed
        point = require_object(item).get(CACHE_POINT)
        if isinstance(point, dict) and blocks:
            blocks[-1] = with_cache_point(blocks[-1], cast("JsonObject", point))
    return tuple(blocks), intact


def _is_intact(native: Native) -> bool:
    return native.intact and native.api == API


_CacheableT = TypeVar("_CacheableT", Block, Text, Tool)


def with_cache_point(value: _CacheableT, point: JsonObject) -> _CacheableT:
    """Return the block or tool with a cache point after it."""
    native = value.native or Native(API, {}, intact=False)
    fragment = {**native.fragment, CACHE_POINT: point}
    return msgspec.structs.replace(value, native=Native(API, fragment, native.intact))


def split_fragment(fragment: JsonObject) -> list[JsonObject]:
    """Split a fragment into blocks of one member each."""
    return [fragment] if len(fragment) == 1 else [{key: value} for key, value in fragment.items()]


def _hosted_call_ids(content: list[Any]) -> frozenset[object]:
    """Return the ids of the hosted calls in this content."""
    ids: set[object] = set()
    for item in content:
        match item:
            case {"toolUse": {"type": "server_tool_use", "toolUseId": str(call_id)}}:
                ids.add(call_id)
            case _:
                pass
    return frozenset(ids)


_Parser = Callable[[JsonObject, Any, str | None], Block]


def _parse_item(
    value: object, model: str | None, parsers: dict[str, _Parser], hosted_ids: frozenset[object]
) -> tuple[list[Block], bool]:
    """Return the blocks of one union (several if the client set several members), and whether it is valid."""
    item = require_object(value)
    members = {key: member for key, member in item.items() if member is not None}
    if not members:
        raise InputError("a block needs a member with its content, such as `text`")
    is_foreign = "reasoningContent" not in members and parsers is _PARSERS
    if is_foreign and (thought := parse_reasoning_item(item, BODY_API)) is not None:
        return [thought], False
    blocks: list[Block] = []
    known_keys = [key for key in members if key in parsers]
    unknown = {key: member for key, member in members.items() if key not in parsers and key != CACHE_POINT}
    for key in known_keys:
        alone = item if len(item) == 1 else {key: members[key]}
        try:
            block = parsers[key](alone, members[key], model)
        except InputError as error:
            raise error.with_prefix(key) from None
        if unknown:
            block = msgspec.structs.replace(block, native=Native(API, alone | unknown, intact=False))
        if isinstance(block, ToolResponse) and block.origin.raw_id in hosted_ids and not block.hosted:
            block = msgspec.structs.replace(block, hosted=True)
        blocks.append(block)
    if not known_keys and CACHE_POINT not in members:
        foreign = parse_item(item, BODY_API) if parsers is _PARSERS else None
        if foreign is not None:
            return [foreign], False
        kind = next(iter(members))
        # BED-09: the API rejects unknown block types.
        blocks.append(Opaque(kind, text=_unknown_block_text(members[kind]), native=Native(API, item, intact=False)))
    return blocks, len(item) == 1


def _unknown_block_text(member: object) -> str:
    """Return the text of a block of unknown type."""
    inner = object_or_none(member) or {}
    return "\n".join(value for key in ("text", "name") if isinstance(value := inner.get(key), str))


def _parse_text(item: JsonObject, value: Any, _model: str | None) -> Block:
    return Text(require_string(value, ""), native=Native(API, item))


def _media_parser(kind: Any) -> _Parser:
    return lambda item, value, _model: parse_media(kind, item, require_object(value))


def _origin(raw_id: object, model: str | None) -> Origin:
    valid_id = raw_id_or_none(raw_id)
    malformed = raw_id if valid_id is None and isinstance(raw_id, str) and raw_id else None
    return Origin(API, model, valid_id, malformed, "synthetic" if valid_id is None else "natural")


def _parse_tool_use(item: JsonObject, value: Any, model: str | None) -> Block:
    inner = require_object(value)
    arguments: Any = inner.get("input")
    text: str | None = None
    # BED-09: anything but an object is rejected, so such a fragment is not intact
    intact = isinstance(arguments, dict)
    if isinstance(arguments, str):
        arguments, text = parse_argument_text(arguments)
    hosted = inner.get("type") == _SERVER_TOOL_USE
    # BED-01, BED-02: ids and names of hosted calls are never projected
    valid = not hosted or (_is_valid_id(inner.get("toolUseId")) and _is_valid_id(inner.get("name")))
    return ToolCall(
        require_string(inner.get("name"), "name"),
        {} if arguments is None and text is None else arguments,
        arguments_text=text,
        kind="hosted" if hosted else "function",
        origin=_origin(inner.get("toolUseId"), model),
        native=Native(API, item, intact and valid),
    )


def _is_valid_id(value: object) -> bool:
    return isinstance(value, str) and _VALID_ID.fullmatch(value) is not None


def _parse_tool_result(item: JsonObject, value: Any, model: str | None) -> Block:
    inner = require_object(value)
    content: Any = inner.get("content")
    failed = inner.get("status") == "error"
    structured: Any = UNSET
    blocks: tuple[Block, ...] = ()
    intact = isinstance(content, list) and isinstance(inner.get("status", ""), str)
    if isinstance(content, str):
        blocks = (Text(content),)
    elif isinstance(content, list):
        parts = cast("list[Any]", content)
        # «cannot be empty when status value is error»
        intact = intact and not (failed and not parts)
        intact = intact and (inner.get("type") is None or _is_valid_id(inner.get("toolUseId")))
        only = object_or_none(parts[0]) if len(parts) == 1 else None
        if only is not None and list(only) == ["json"]:
            structured = only["json"]
        else:
            blocks, valid = _parse_result_content(parts, model)
            intact = intact and valid
    elif content is not None:
        raise InputError(f"a list was expected, not {json_type_name(content)}", path="content")
    return ToolResponse(
        content=blocks,
        structured=structured,
        error=failed,
        is_complete=True,
        hosted=(string_or_none(inner.get("type")) or _CLIENT_RESULT) != _CLIENT_RESULT,
        origin=_origin(inner.get("toolUseId"), model),
        native=Native(API, item, intact),
    )


def _parse_result_content(parts: list[Any], model: str | None) -> tuple[tuple[Block, ...], bool]:
    blocks: list[Block] = []
    intact = True
    for index, part in enumerate(parts):
        try:
            parsed, valid = _parse_item(part, model, _RESULT_PARSERS, frozenset())
        except InputError as error:
            raise error.with_prefix(f"content[{index}]") from None
        # Other block types are invalid inside a result; they become text.
        is_valid_type = not any(isinstance(block, Opaque) and block.kind in _PARSERS for block in parsed)
        blocks += parsed if is_valid_type else [Text(encode_json_text(part))]
        intact = intact and valid and is_valid_type
    return tuple(blocks), intact


def _parse_reasoning(item: JsonObject, value: Any, model: str | None) -> Block:
    inner = require_object(value)
    origin = Origin(API, model, identity="absent")
    encrypted = string_or_none(inner.get("redactedContent"))
    if encrypted is not None:
        return Thinking(encrypted=encrypted, origin=origin, native=Native(API, item))
    reasoning = object_or_none(inner.get("reasoningText")) or {}
    text = string_or_none(reasoning.get("text"))
    # ANT-25: a signature is useless without the signed text
    signature = string_or_none(reasoning.get("signature")) if text is not None else None
    intact = text is not None and isinstance(reasoning.get("signature", ""), str)
    return Thinking(text or "", signature, origin=origin, native=Native(API, item, intact))


def _parse_citations(item: JsonObject, value: Any, _model: str | None) -> Block:
    parts: Any = require_object(value).get("content")
    texts = object_list(parts)
    text = "".join(part["text"] for part in texts if isinstance(part.get("text"), str))
    return Text(text, native=Native(API, item)) if text else Opaque("citationsContent", native=Native(API, item))


def _parse_guard_content(item: JsonObject, value: Any, _model: str | None) -> Block:
    inner = require_object(value)
    text, image = object_or_none(inner.get("text")) or {}, object_or_none(inner.get("image"))
    if isinstance(text.get("text"), str):
        return Text(text["text"], native=Native(API, item))
    if image is not None:
        return parse_media("image", item, image)
    return Opaque("guardContent", native=Native(API, item))


def _parse_tool_change(item: JsonObject, value: Any, _model: str | None) -> Block:
    (kind,) = (_TOOL_CHANGES[key] for key in item)
    tool = object_or_none(require_object(value).get("tool")) or {}
    name, server = string_or_none(tool.get("name")), string_or_none(tool.get("serverName"))
    if name is None:
        return Opaque(kind, native=Native(API, item))
    place = {"type": "tool_reference"} if server is None else {"type": "mcp_tool_reference", "server_name": server}
    return Opaque(kind, text=name, native=Native(API, item), extra={**place, "name": name})


def _render_tool_change(kind: str, tool: Mapping[str, Any], context: RenderContext) -> JsonObject:
    server = tool.get("server_name")
    name = context.names.render(tool["name"]) if server is None else tool["name"]
    key = next(key for key, change in _TOOL_CHANGES.items() if change == kind)
    return {key: {"tool": {"type": tool["type"], "name": name, **({} if server is None else {"serverName": server})}}}


_TOOL_CHANGES = {"toolAddition": "tool_addition", "toolRemoval": "tool_removal"}
_RESULT_PARSERS: dict[str, _Parser] = {
    "text": _parse_text,
    "json": lambda item, value, _model: Text(encode_json_text(value), native=Native(API, item)),
    **{kind: _media_parser(kind) for kind in MEDIA_KINDS if kind != "audio"},
    "searchResult": lambda item, value, _model: parse_search_result(item, require_object(value)),
}
_PARSERS: dict[str, _Parser] = {
    **{key: parser for key, parser in _RESULT_PARSERS.items() if key != "json"},
    "audio": _media_parser("audio"),
    "toolUse": _parse_tool_use,
    "toolResult": _parse_tool_result,
    "reasoningContent": _parse_reasoning,
    "citationsContent": _parse_citations,
    "guardContent": _parse_guard_content,
    **dict.fromkeys(_TOOL_CHANGES, _parse_tool_change),
}


# ----------------------------------------------------------------------------------------------------------------- out


def render_block(block: Block, context: RenderContext) -> list[JsonObject]:
    """Return the rendered block, and the cache point after it if there is one."""
    original = intact_fragment(block.native, API)
    match block:
        case ToolCall():
            return _with_cache_point(_render_call(block, original, context), block.native)
        case ToolResponse():
            return _with_cache_point(_render_response(block, original, context), block.native)
        case _ if original is not None:
            return split_fragment(original)
        case _:
            return _with_cache_point(_render_new(block, context), block.native)


def _with_cache_point(rendered: JsonObject, native: Native | None) -> list[JsonObject]:
    point = native.fragment.get(CACHE_POINT) if native is not None and native.api == API else None
    return [rendered] if point is None else [rendered, {CACHE_POINT: point}]


def _render_new(block: Text | Thinking | Media | Code | Opaque, context: RenderContext) -> JsonObject:
    match block:
        case Text():
            return {"text": block.text}
        case Thinking():
            return {"reasoningContent": _render_thinking(block)}
        case Media():
            return render_media(block, context)
        case Code():
            return {"text": fence_code(block)}
        case Opaque() if block.kind in TOOL_CHANGES and block.extra:
            return _render_tool_change(block.kind, block.extra, context)
        case Opaque():
            return {"text": report_unsupported(block, context.report)}
        case _:
            assert_never(block)


def _render_thinking(block: Thinking) -> JsonObject:
    if block.encrypted is not None:
        return {"redactedContent": block.encrypted}
    signed = {"signature": block.signature} if block.signature else {}
    return {"reasoningText": {"text": block.text, **signed}}


def _without_cache_point(fragment: JsonObject, key: str) -> JsonObject:
    """Return the fragment without its cache point; the same object if it has none."""
    return fragment if len(fragment) == 1 else {key: fragment[key]}


def _render_call(call: ToolCall, original: JsonObject | None, context: RenderContext) -> JsonObject:
    if call.kind == "hosted":
        if original is not None:
            return _without_cache_point(original, "toolUse")
        if call.origin.provider == API:
            return {"text": describe_hosted(call, context.report)}
    name = context.names.render(call.name)
    call_id = context.ids.render(call.id)
    if original is None:
        arguments = render_named_arguments(call, context.report, context.names)
        return {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}
    inner = original["toolUse"]
    if context.names.parameters.has_changed(call.name):
        inner = {**inner, "input": render_named_arguments(call, context.report, context.names)}
        return {"toolUse": {**inner, "toolUseId": call_id, "name": name}}
    if inner.get("toolUseId") == call_id and inner.get("name") == name:
        return _without_cache_point(original, "toolUse")
    return {"toolUse": {**inner, "toolUseId": call_id, "name": name}}


def _render_response(response: ToolResponse, original: JsonObject | None, context: RenderContext) -> JsonObject:
    if response.hosted:
        if original is not None:
            return _without_cache_point(original, "toolResult")
        if response.origin.provider == API:
            return {"text": describe_hosted(response, context.report)}
    call_id = context.ids.render(response.call_id)
    if original is not None:
        inner = original["toolResult"]
        same = inner.get("toolUseId") == call_id
        return _without_cache_point(original, "toolResult") if same else {"toolResult": {**inner, "toolUseId": call_id}}
    failed = response.error or response.outcome is not None
    rendered: JsonObject = {"toolUseId": call_id, "content": _result_content(response, context)}
    if failed:
        rendered["status"] = "error"
    return {"toolResult": rendered}


def _result_content(response: ToolResponse, context: RenderContext) -> list[JsonObject]:
    # BED-08: no empty text
    blocks = [block for block in response.content or () if not (isinstance(block, Text) and not block.text)]
    rendered = [item for block in blocks for item in render_block(block, context)]
    if response.structured is not UNSET and not any(isinstance(block, Text) for block in blocks):
        value: Any = response.structured
        return [{"json": value} if isinstance(value, dict) else {"text": encode_json_text(value)}, *rendered]
    return rendered

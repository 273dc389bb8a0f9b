"""Item types of hosted tools (call and output in one item), and all remaining item types.

Types in `HOSTED_TYPES` become a call and, if the output is disclosed, its result, both with the whole item as fragment;
types in `OPAQUE_TYPES` become `Opaque` blocks with a text for other APIs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from msgspec import UNSET, Struct

from segue.canonical.blocks import NO_ORIGIN, Block, Media, OmitReason, Opaque, Origin, Text, ToolCall, ToolResponse
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.wire.json_values import JsonObject, object_or_none, string_or_none
from segue.wire.openai_responses.call_types import structured_output, text_output
from segue.wire.openai_responses.context import ParseContext, parse_arguments

__all__ = [
    "APPROVAL_REQUEST",
    "HOSTED_TYPES",
    "OPAQUE_TYPES",
    "OpaqueType",
    "format_approval",
    "is_embedded",
    "parse_approval",
    "parse_hosted",
    "parse_opaque",
    "parse_repeated",
]

APPROVAL_REQUEST, APPROVAL_RESPONSE = "mcp_approval_request", "mcp_approval_response"


def _has_failed(item: JsonObject) -> bool:
    return item.get("status") == "failed"


def _no_value(_item: JsonObject) -> Any:
    return UNSET


class HostedType(Struct, frozen=True):
    """`result` returns None if the provider does not disclose the output; `structured` the part of it that is JSON.

    `name_key` is the key of the tool name if it is not `name`. `output_only`: the item is a result without a call.
    """

    tool_name: str
    arguments: Callable[[JsonObject], Any]
    result: Callable[[JsonObject], tuple[Block, ...] | None]
    is_error: Callable[[JsonObject], bool] = _has_failed
    structured: Callable[[JsonObject], Any] = _no_value
    name_key: str = "name"
    output_only: bool = False


# --------------------------------------------------------------------------------------------- call and output in one


def _list_or_none(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def _sources(item: JsonObject) -> tuple[Block, ...] | None:
    sources = _list_or_none((object_or_none(item.get("action")) or {}).get("sources"))
    return None if not sources else (Text(encode_json_text(sources)),)


def _search_action(item: JsonObject) -> JsonObject:
    action = object_or_none(item.get("action")) or {}
    return {key: value for key, value in action.items() if key != "sources"}


def _search_results(item: JsonObject) -> tuple[Block, ...] | None:
    results = _list_or_none(item.get("results"))
    return None if results is None else (Text(encode_json_text(results)),)


def _code_outputs(item: JsonObject) -> tuple[Block, ...] | None:
    outputs = _list_or_none(item.get("outputs"))
    if outputs is None:
        return None
    blocks: list[Block] = []
    for entry in map(object_or_none, outputs):
        match entry:
            case {"type": "logs", "logs": str(logs)}:
                blocks.append(Text(logs))
            case {"type": "image", "url": str(url)}:
                blocks.append(Media("image", url=url))
            case _:
                blocks.append(Text(encode_json_text(entry)))
    return tuple(blocks)


def _generated_image(item: JsonObject) -> tuple[Block, ...] | None:
    data = string_or_none(item.get("result"))
    if data is not None:
        return (Media("image", f"image/{string_or_none(item.get('output_format')) or 'png'}", data),)
    error = object_or_none(item.get("error"))
    return None if error is None else (Text(string_or_none(error.get("message")) or encode_json_text(error)),)


def _prompt(item: JsonObject) -> JsonObject:
    prompt = string_or_none(item.get("revised_prompt"))
    return {} if prompt is None else {"prompt": prompt}


def _mcp_arguments(item: JsonObject) -> Any:
    text = string_or_none(item.get("arguments")) or ""
    value, exact = parse_argument_text(text)
    return text if value is None and exact is not None else value


def _mcp_result(item: JsonObject) -> tuple[Block, ...] | None:
    if item.get("error") is not None:
        return (Text(encode_json_text(item["error"])),)
    output = item.get("output")
    return None if output is None else (Text(output if isinstance(output, str) else encode_json_text(output)),)


def _memories(item: JsonObject) -> tuple[Block, ...] | None:
    results = _list_or_none(item.get("results"))
    if results is None:
        return None
    memories = [object_or_none((object_or_none(result) or {}).get("memory_item")) or {} for result in results]
    return tuple(Text(content) for memory in memories if isinstance(content := memory.get("content"), str))


def _no_arguments(_item: JsonObject) -> Any:
    return {}


def _no_content(_item: JsonObject) -> tuple[Block, ...]:
    return ()


def _pick_fields(*names: str) -> Callable[[JsonObject], Any]:
    return lambda item: {name: item[name] for name in names if item.get(name) is not None}


HOSTED_TYPES: dict[str, HostedType] = {
    "web_search_call": HostedType("web_search", _search_action, _sources),
    "file_search_call": HostedType("file_search", lambda item: {"queries": item.get("queries") or []}, _search_results),
    "code_interpreter_call": HostedType(
        "code_interpreter", lambda item: {"code": string_or_none(item.get("code")) or ""}, _code_outputs
    ),
    "image_generation_call": HostedType("image_generation", _prompt, _generated_image),
    "mcp_call": HostedType("mcp", _mcp_arguments, _mcp_result, lambda item: item.get("error") is not None),
    # AZF-09: the query is not disclosed.
    "memory_search_call": HostedType("memory_search", _no_arguments, _memories),
    "workflow_action": HostedType(
        "workflow_action",
        _no_arguments,
        _no_content,
        structured=_pick_fields("action_id", "parent_action_id", "previous_action_id", "status"),
        name_key="kind",
        output_only=True,
    ),
    "oauth_consent_request": HostedType(
        "oauth_consent",
        _no_arguments,
        _no_content,
        structured=_pick_fields("server_label", "consent_link"),
        name_key="",
        output_only=True,
    ),
    "structured_outputs": HostedType(
        "capture_structured_outputs",
        _no_arguments,
        text_output,
        structured=structured_output,
        output_only=True,
    ),
}


def parse_hosted(item: JsonObject, context: ParseContext, *, valid_id: bool) -> list[Block]:
    row = HOSTED_TYPES[item["type"]]
    # OAI-RESP-20: the item id is the only id; call and output are one item, so they are paired by it.
    item_id = raw_id_or_none(item.get("id"))
    identity = "conflated" if item_id else "absent"
    origin = Origin(context.dialect.provider, context.model, item_id, item_id, identity)
    native = context.native(item, valid_id and context.is_valid_item(item["type"], item))
    tool = _qualified_tool_name(item, row.name_key) or row.tool_name
    call = ToolCall(tool, row.arguments(item), kind="hosted", origin=origin, native=native)
    content = row.result(item)
    if content is None:
        return [call]
    response = ToolResponse(
        name=tool,
        content=content,
        structured=row.structured(item),
        error=row.is_error(item),
        is_complete=not (row.output_only and item.get("status") == "in_progress"),
        outcome="cancelled" if item.get("status") == "cancelled" else None,
        hosted=True,
        origin=origin,
        native=native,
    )
    return [response] if row.output_only else [call, response]


def _qualified_tool_name(item: JsonObject, key: str = "name") -> str | None:
    """The tool name, prefixed with the MCP server label: servers may have tools of the same name."""
    name, server = string_or_none(item.get(key)), string_or_none(item.get("server_label"))
    return f"{server}.{name}" if name and server else name


def is_embedded(response: ToolResponse) -> bool:
    """Whether this result is in the same item as its call."""
    return response.native is not None and response.native.fragment.get("type") in HOSTED_TYPES


# ------------------------------------------------------------------------------------------------------ all the others


class OpaqueType(Struct, frozen=True):
    """`side`: its speaker; `none` for instructions to the API. `omit_reason`: why other APIs do not get it."""

    side: Literal["ai", "human", "none"]
    text: Callable[[JsonObject], str] = lambda _item: ""
    omit_reason: OmitReason | None = None


def _tools_of_server(item: JsonObject) -> str:
    tools = [object_or_none(tool) or {} for tool in _list_or_none(item.get("tools")) or []]
    names = [name for tool in tools if (name := string_or_none(tool.get("name")))]
    return f"{item.get('server_label')}: {', '.join(names)}"


def format_approval(is_approved: bool, reason: object = None) -> str:
    """The text of an approval response."""
    verdict = "approved" if is_approved else "refused"
    return f"{verdict}: {reason}" if isinstance(reason, str) and reason else verdict


def _item_id(item: JsonObject) -> str:
    return string_or_none(item.get("id")) or ""


OPAQUE_TYPES: dict[str, OpaqueType] = {
    "mcp_list_tools": OpaqueType("ai", _tools_of_server, "listing"),
    APPROVAL_RESPONSE: OpaqueType(
        "human", lambda item: format_approval(item.get("approve") is True, item.get("reason"))
    ),
    "compaction": OpaqueType("ai", _item_id, "missing"),
    "item_reference": OpaqueType("ai", _item_id, "missing"),
    "additional_tools": OpaqueType("none", omit_reason="declaring"),
    "configuration_update": OpaqueType("none", omit_reason="instruction"),
    "compaction_trigger": OpaqueType("none", omit_reason="instruction"),
}


def parse_opaque(item: JsonObject, kind: str, context: ParseContext, *, valid_id: bool) -> Opaque:
    """An `Opaque` block for an item; for an unknown type with its `text`, if it has one."""
    row = OPAQUE_TYPES.get(kind)
    text = row.text(item) if row is not None else string_or_none(item.get("text")) or ""
    is_valid = context.is_valid_item(kind, item)
    origin = NO_ORIGIN
    if kind == "item_reference":
        is_valid = is_valid and valid_id
    if kind == APPROVAL_RESPONSE:
        approval_id = raw_id_or_none(item.get("approval_request_id"))
        # OAI-RESP-21
        is_valid = is_valid and (context.continues or approval_id in context.approval_ids)
        origin = _approval_origin(approval_id, raw_id_or_none(item.get("id")), context)
    omit_reason = row.omit_reason if row is not None else None
    return Opaque(kind, text=text, native=context.native(item, is_valid), omit_reason=omit_reason, origin=origin)


def parse_repeated(item: JsonObject, kind: str, context: ParseContext) -> Opaque:
    """An item that is already in the body."""
    return Opaque(kind, text=_item_id(item), native=context.native(item, intact=False), omit_reason="repeated")


# ----------------------------------------------------------------------------------------------------------- approvals


def _approval_origin(raw_id: str | None, item_id: str | None, context: ParseContext) -> Origin:
    identity = "natural" if raw_id else "synthetic"
    return Origin(context.dialect.provider, context.model, raw_id, item_id, identity, family="mcp-approval")


def parse_approval(item: JsonObject, context: ParseContext, *, valid_id: bool) -> ToolCall:
    """An MCP approval request: it has no result; the approval response refers to its id."""
    approval_id = raw_id_or_none(item.get("id"))
    arguments, text = parse_arguments(item.get("arguments"))
    is_valid = valid_id and approval_id is not None and context.is_valid_item(APPROVAL_REQUEST, item)
    context.approval_ids.update([approval_id] if is_valid and approval_id is not None else [])
    return ToolCall(
        _qualified_tool_name(item) or "",
        arguments,
        arguments_text=text,
        kind="hosted",
        origin=_approval_origin(approval_id, None, context),
        native=context.native(item, is_valid),
        awaited=False,
    )

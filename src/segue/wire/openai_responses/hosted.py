"""Item types of hosted tools (call and output in one item), and all remaining item types.

Types in `HOSTED_TYPES` become a call and, if the output is disclosed, its result, both with the whole item as fragment;
types in `OTHER_TYPES` become `Opaque` blocks with a text for other APIs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from msgspec import UNSET, Struct

from segue.canonical.blocks import NO_ORIGIN, Block, Media, Opaque, Origin, Silence, Text, ToolCall, ToolResponse
from segue.canonical.ids import raw_id_or_none
from segue.canonical.jsontext import parse_argument_text, write_text
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.openai_responses.shared import Reading, parse_arguments
from segue.wire.openai_responses.typed import other_value, text_alone

__all__ = [
    "HOSTED",
    "OTHERS",
    "REQUEST",
    "OtherItem",
    "approved",
    "is_embedded",
    "parse_approval",
    "parse_hosted",
    "parse_other",
    "repetition",
]

REQUEST, ANSWER = "mcp_approval_request", "mcp_approval_response"


def _has_failed(item: JsonObject) -> bool:
    return item.get("status") == "failed"


def _no_value(_item: JsonObject) -> Any:
    return UNSET


class HostedItem(Struct, frozen=True):
    """`result` returns None if the provider does not disclose the output; `structured` the part of it that is JSON.

    `name_key` is the key of the tool name if it is not `name`. `output_only`: the item is a result without a call.
    """

    tool: str
    arguments: Callable[[JsonObject], Any]
    result: Callable[[JsonObject], tuple[Block, ...] | None]
    failed: Callable[[JsonObject], bool] = _has_failed
    value: Callable[[JsonObject], Any] = _no_value
    named: str = "name"
    alone: bool = False


# --------------------------------------------------------------------------------------------- call and output in one


def _listed(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def _sources(item: JsonObject) -> tuple[Block, ...] | None:
    sources = _listed((object_or_none(item.get("action")) or {}).get("sources"))
    return None if not sources else (Text(write_text(sources)),)


def _search_action(item: JsonObject) -> JsonObject:
    action = object_or_none(item.get("action")) or {}
    return {key: value for key, value in action.items() if key != "sources"}


def _found(item: JsonObject) -> tuple[Block, ...] | None:
    results = _listed(item.get("results"))
    return None if results is None else (Text(write_text(results)),)


def _code_outputs(item: JsonObject) -> tuple[Block, ...] | None:
    outputs = _listed(item.get("outputs"))
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
                blocks.append(Text(write_text(entry)))
    return tuple(blocks)


def _picture(item: JsonObject) -> tuple[Block, ...] | None:
    data = string_or_none(item.get("result"))
    if data is not None:
        return (Media("image", f"image/{string_or_none(item.get('output_format')) or 'png'}", data),)
    error = object_or_none(item.get("error"))
    return None if error is None else (Text(string_or_none(error.get("message")) or write_text(error)),)


def _prompt(item: JsonObject) -> JsonObject:
    prompt = string_or_none(item.get("revised_prompt"))
    return {} if prompt is None else {"prompt": prompt}


def _mcp_arguments(item: JsonObject) -> Any:
    text = string_or_none(item.get("arguments")) or ""
    value, exact = parse_argument_text(text)
    return text if value is None and exact is not None else value


def _mcp_result(item: JsonObject) -> tuple[Block, ...] | None:
    if item.get("error") is not None:
        return (Text(write_text(item["error"])),)
    output = item.get("output")
    return None if output is None else (Text(output if isinstance(output, str) else write_text(output)),)


def _memories(item: JsonObject) -> tuple[Block, ...] | None:
    results = _listed(item.get("results"))
    if results is None:
        return None
    found = [object_or_none((object_or_none(result) or {}).get("memory_item")) or {} for result in results]
    return tuple(Text(content) for memory in found if isinstance(content := memory.get("content"), str))


def _nothing(_item: JsonObject) -> Any:
    return {}


def _no_words(_item: JsonObject) -> tuple[Block, ...]:
    return ()


def _members(*names: str) -> Callable[[JsonObject], Any]:
    return lambda item: {name: item[name] for name in names if item.get(name) is not None}


HOSTED: dict[str, HostedItem] = {
    "web_search_call": HostedItem("web_search", _search_action, _sources),
    "file_search_call": HostedItem("file_search", lambda item: {"queries": item.get("queries") or []}, _found),
    "code_interpreter_call": HostedItem(
        "code_interpreter", lambda item: {"code": string_or_none(item.get("code")) or ""}, _code_outputs
    ),
    "image_generation_call": HostedItem("image_generation", _prompt, _picture),
    "mcp_call": HostedItem("mcp", _mcp_arguments, _mcp_result, lambda item: item.get("error") is not None),
    # AZF-09: the query is not disclosed.
    "memory_search_call": HostedItem("memory_search", _nothing, _memories),
    "workflow_action": HostedItem(
        "workflow_action",
        _nothing,
        _no_words,
        value=_members("action_id", "parent_action_id", "previous_action_id", "status"),
        named="kind",
        alone=True,
    ),
    "oauth_consent_request": HostedItem(
        "oauth_consent", _nothing, _no_words, value=_members("server_label", "consent_link"), named="", alone=True
    ),
    "structured_outputs": HostedItem(
        "capture_structured_outputs",
        _nothing,
        text_alone,
        value=other_value,
        alone=True,
    ),
}


def parse_hosted(item: JsonObject, context: Reading, *, sound: bool) -> list[Block]:
    row = HOSTED[item["type"]]
    # OAI-RESP-20: the item id is the only id; call and output are one item, so they are paired by it.
    item_id = raw_id_or_none(item.get("id"))
    identity = "conflated" if item_id else "absent"
    origin = Origin(context.dialect.provider, context.model, item_id, item_id, identity)
    native = context.native(item, sound and context.is_whole(item["type"], item))
    tool = _server_tool(item, row.named) or row.tool
    call = ToolCall(tool, row.arguments(item), kind="hosted", origin=origin, native=native)
    content = row.result(item)
    if content is None:
        return [call]
    response = ToolResponse(
        name=tool,
        content=content,
        structured=row.value(item),
        error=row.failed(item),
        is_complete=not (row.alone and item.get("status") == "in_progress"),
        outcome="cancelled" if item.get("status") == "cancelled" else None,
        hosted=True,
        origin=origin,
        native=native,
    )
    return [response] if row.alone else [call, response]


def _server_tool(item: JsonObject, key: str = "name") -> str | None:
    """The tool name, prefixed with the MCP server label: servers may have tools of the same name."""
    name, server = string_or_none(item.get(key)), string_or_none(item.get("server_label"))
    return f"{server}.{name}" if name and server else name


def is_embedded(response: ToolResponse) -> bool:
    """Whether this result is in the same item as its call."""
    return response.native is not None and response.native.fragment.get("type") in HOSTED


# ------------------------------------------------------------------------------------------------------ all the others


class OtherItem(Struct, frozen=True):
    """`side`: who made it; `none` for instructions to the API. `omit_reason`: why other APIs do not get it."""

    side: Literal["ai", "human", "none"]
    text: Callable[[JsonObject], str] = lambda _item: ""
    silent: Silence | None = None


def _tools_of_server(item: JsonObject) -> str:
    tools = [object_or_none(tool) or {} for tool in _listed(item.get("tools")) or []]
    names = [name for tool in tools if (name := string_or_none(tool.get("name")))]
    return f"{item.get('server_label')}: {', '.join(names)}"


def approved(agreed: bool, reason: object = None) -> str:
    """The text of an approval response."""
    verdict = "approved" if agreed else "refused"
    return f"{verdict}: {reason}" if isinstance(reason, str) and reason else verdict


def _own_id(item: JsonObject) -> str:
    return string_or_none(item.get("id")) or ""


OTHERS: dict[str, OtherItem] = {
    "mcp_list_tools": OtherItem("ai", _tools_of_server, "listing"),
    ANSWER: OtherItem("human", lambda item: approved(item.get("approve") is True, item.get("reason"))),
    "compaction": OtherItem("ai", _own_id, "missing"),
    "item_reference": OtherItem("ai", _own_id, "missing"),
    "additional_tools": OtherItem("none", silent="declaring"),
    "configuration_update": OtherItem("none", silent="instruction"),
    "compaction_trigger": OtherItem("none", silent="instruction"),
}


def parse_other(item: JsonObject, kind: str, context: Reading, *, sound: bool) -> Opaque:
    """An `Opaque` block for an item; for an unknown type with its `text`, if it has one."""
    row = OTHERS.get(kind)
    text = row.text(item) if row is not None else string_or_none(item.get("text")) or ""
    lawful = context.is_whole(kind, item)
    origin = NO_ORIGIN
    if kind == "item_reference":
        lawful = lawful and sound
    if kind == ANSWER:
        approval_id = raw_id_or_none(item.get("approval_request_id"))
        # OAI-RESP-21
        lawful = lawful and (context.continues or approval_id in context.asked)
        origin = _about_leave(approval_id, raw_id_or_none(item.get("id")), context)
    silent = row.silent if row is not None else None
    return Opaque(kind, text=text, native=context.native(item, lawful), silent=silent, origin=origin)


def repetition(item: JsonObject, kind: str, context: Reading) -> Opaque:
    """An item that is already in the body."""
    return Opaque(kind, text=_own_id(item), native=context.native(item, intact=False), silent="repeated")


# ----------------------------------------------------------------------------------------------------------- approvals


def _about_leave(raw_id: str | None, item_id: str | None, context: Reading) -> Origin:
    identity = "natural" if raw_id else "synthetic"
    return Origin(context.dialect.provider, context.model, raw_id, item_id, identity, family="mcp-approval")


def parse_approval(item: JsonObject, context: Reading, *, sound: bool) -> ToolCall:
    """An MCP approval request: it has no result; the approval response refers to its id."""
    approval_id = raw_id_or_none(item.get("id"))
    arguments, text = parse_arguments(item.get("arguments"))
    whole = sound and approval_id is not None and context.is_whole(REQUEST, item)
    context.asked.update([approval_id] if whole and approval_id is not None else [])
    return ToolCall(
        _server_tool(item) or "",
        arguments,
        arguments_text=text,
        kind="hosted",
        origin=_about_leave(approval_id, None, context),
        native=context.native(item, whole),
        awaited=False,
    )

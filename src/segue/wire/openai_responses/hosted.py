"""Items that say by themselves what the provider did: call and output in one, and those that are neither.

A row for each type. The first table's become a call and, where the output is disclosed, its result, both with the
whole item; the second's stay `Opaque` with what can be told of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from msgspec import Struct

from segue.canonical.blocks import Block, Media, Native, Opaque, Origin, Silence, Text, ToolCall, ToolResponse
from segue.canonical.ids import raw_id_or_none
from segue.canonical.jsontext import parse_argument_text, write_text
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.openai_responses.shapes import is_shaped
from segue.wire.openai_responses.shared import API, PROVIDER, Reading

__all__ = ["HOSTED", "OTHERS", "OtherItem", "is_embedded", "parse_hosted", "parse_other", "repetition"]


class HostedItem(Struct, frozen=True):
    """`result` gives None where the provider keeps the output to itself."""

    tool: str
    arguments: Callable[[JsonObject], Any]
    result: Callable[[JsonObject], tuple[Block, ...] | None]
    failed: Callable[[JsonObject], bool] = lambda item: item.get("status") == "failed"


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


HOSTED: dict[str, HostedItem] = {
    "web_search_call": HostedItem("web_search", _search_action, _sources),
    "file_search_call": HostedItem("file_search", lambda item: {"queries": item.get("queries") or []}, _found),
    "code_interpreter_call": HostedItem(
        "code_interpreter", lambda item: {"code": string_or_none(item.get("code")) or ""}, _code_outputs
    ),
    "image_generation_call": HostedItem("image_generation", _prompt, _picture),
    "mcp_call": HostedItem("mcp", _mcp_arguments, _mcp_result, lambda item: item.get("error") is not None),
}


def parse_hosted(item: JsonObject, reading: Reading, *, sound: bool) -> list[Block]:
    row = HOSTED[item["type"]]
    # OAI-RESP-20: the item's own id is all there is; call and output are one item, so they meet on it.
    item_id = raw_id_or_none(item.get("id"))
    origin = Origin(PROVIDER, reading.model, item_id, item_id, "conflated" if item_id else "absent")
    native = Native(API, item, sound and is_shaped(item["type"], item))
    tool = _server_tool(item) or row.tool
    call = ToolCall(tool, row.arguments(item), kind="hosted", origin=origin, native=native)
    content = row.result(item)
    if content is None:
        return [call]
    return [
        call,
        ToolResponse(
            name=tool,
            content=content,
            error=row.failed(item),
            is_complete=True,
            hosted=True,
            origin=origin,
            native=native,
        ),
    ]


def _server_tool(item: JsonObject) -> str | None:
    """An MCP server's tool has a name of its own, which another server's may have too."""
    name, server = string_or_none(item.get("name")), string_or_none(item.get("server_label"))
    return f"{server}.{name}" if name and server else name


def is_embedded(response: ToolResponse) -> bool:
    """Whether this result is part of the item that its call is."""
    return response.native is not None and response.native.fragment.get("type") in HOSTED


# ------------------------------------------------------------------------------------------------------ all the others


class OtherItem(Struct, frozen=True):
    """`side`: whose it is; `none` for what is said to the API itself. `silent`: why it is no part of what was said."""

    side: Literal["ai", "human", "none"]
    text: Callable[[JsonObject], str] = lambda _item: ""
    silent: Silence | None = None


def _tools_of_server(item: JsonObject) -> str:
    tools = [object_or_none(tool) or {} for tool in _listed(item.get("tools")) or []]
    names = [name for tool in tools if (name := string_or_none(tool.get("name")))]
    return f"{item.get('server_label')}: {', '.join(names)}"


def _approval_asked(item: JsonObject) -> str:
    return f"{item.get('name')} of {item.get('server_label')}: {item.get('arguments')}"


def _approval_given(item: JsonObject) -> str:
    return "approved" if item.get("approve") else f"refused {string_or_none(item.get('reason')) or ''}".rstrip()


def _own_id(item: JsonObject) -> str:
    return string_or_none(item.get("id")) or ""


OTHERS: dict[str, OtherItem] = {
    "mcp_list_tools": OtherItem("ai", _tools_of_server, "listing"),
    "mcp_approval_request": OtherItem("ai", _approval_asked),
    "mcp_approval_response": OtherItem("human", _approval_given),
    "compaction": OtherItem("ai", _own_id, "missing"),
    "item_reference": OtherItem("ai", _own_id, "missing"),
    "additional_tools": OtherItem("none", silent="declaring"),
    "configuration_update": OtherItem("none", silent="instruction"),
    "compaction_trigger": OtherItem("none", silent="instruction"),
}


def parse_other(item: JsonObject, kind: str, reading: Reading, *, sound: bool) -> Opaque:
    """An item of a type without a model; of an unknown type its text, if it has one."""
    row = OTHERS.get(kind)
    text = row.text(item) if row is not None else string_or_none(item.get("text")) or ""
    lawful = is_shaped(kind, item)
    if kind == "item_reference":
        lawful = lawful and sound
    if kind == "mcp_approval_request":
        # What answers it names its id.
        lawful = lawful and sound
        reading.asked.update([item["id"]] if lawful else [])
    if kind == "mcp_approval_response":
        # OAI-RESP-21
        lawful = lawful and (reading.continues or item["approval_request_id"] in reading.asked)
    return Opaque(kind, text=text, native=Native(API, item, lawful), silent=row.silent if row is not None else None)


def repetition(item: JsonObject, kind: str) -> Opaque:
    """An item that the body has already."""
    return Opaque(kind, text=_own_id(item), native=Native(API, item, intact=False), silent="repeated")

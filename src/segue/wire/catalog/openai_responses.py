"""The types of OpenAI's Responses API: client-run and hosted."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from segue.canonical.blocks import Media, Text, ToolCall, ToolResponse
from segue.wire.catalog.fields import Arguments, Content, Output, Patch, free_text, json_text, keys, said, value, words
from segue.wire.catalog.openai_mcp import LISTING, MAY_IT, THAT_IT_MAY, mcp
from segue.wire.catalog.openai_outputs import (
    code_outputs,
    commands,
    found,
    has_failed,
    list_in,
    parts,
    picture_made,
    screenshot,
    stated,
    tools_found,
)
from segue.wire.catalog.shape import Inside, Shape
from segue.wire.fields import JsonObject, object_or_none
from segue.wire.openai_responses.hosted import HOSTED
from segue.wire.openai_responses.typed import TYPED

__all__ = ["RESPONSES"]

_RESPONSES = Inside("openai-responses", lambda item: {"input": [item]})
_DONE = {"status": "completed"}
_PROGRAM = "caller.caller_id"


# ------------------------------------------------------------------------------------------------------------- helpers


def _kept(shape: Shape) -> Shape:
    """The stored variant of an item, which always has a status."""
    return replace(shape, defaults={**shape.defaults, **_DONE})


def _without_id(item: JsonObject) -> bool:
    return TYPED["tool_search_call"].hosted(item)


def _found_tools(item: JsonObject) -> Content:
    return TYPED["tool_search_call"].content(item), item["tools"]


def _commanded(call: ToolCall) -> Patch:
    container = {"environment": {"type": "container_reference", "container_id": ""}}
    return {"action": call.arguments, **(container if call.kind == "hosted" else {})}


def _searched(call: ToolCall) -> Patch:
    return {"arguments": call.arguments, "execution": "server" if call.kind == "hosted" else "client"}


def _search_answer(response: ToolResponse) -> Patch:
    return {**tools_found(response), "execution": "server" if response.hosted else "client"}


def _asked(kind: str, codec: Arguments) -> Arguments:
    """Arguments parsed as the wire does, and rendered by the codec."""
    return Arguments(lambda item: (HOSTED[kind].arguments(item), None), codec.write)


def _prompted(call: ToolCall) -> Patch:
    prompt = (object_or_none(call.arguments) or {}).get("prompt")
    return {} if prompt is None else {"revised_prompt": prompt}


def _logged_picture(media: Media) -> JsonObject:
    return {"type": "image", "url": media.url or f"data:{media.mime or 'image/png'};base64,{media.data or ''}"}


def _execution_error(text: str) -> JsonObject:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def _output_texts(response: ToolResponse) -> Patch:
    texts = [block.text for block in response.content or () if isinstance(block, Text)] or [said(response)]
    return {"output": [{"type": "output_text", "text": text, "annotations": []} for text in texts]}


# An item has its own id besides the id that call and output share; an item that is both has only its own.
_ITEM = Shape(id="call_id", item="id", inside=_RESPONSES)
_WHOLE = Shape(id="id", failed=has_failed, kind="hosted", inside=_RESPONSES)
_NAMED = replace(_ITEM, name="name", namespace="namespace", parent=_PROGRAM)
_RUN = replace(_ITEM, kind="hosted")
_PATCH = replace(_ITEM, tool="apply_patch", parent=_PROGRAM)
_SHELL = replace(_ITEM, tool="shell", parent=_PROGRAM)

_FUNCTION_CALL = replace(_NAMED, arguments=json_text("arguments"))
_FUNCTION_OUTPUT = replace(_NAMED, output=parts("output"))
_CUSTOM_CALL = replace(_FUNCTION_CALL, arguments=free_text("input"), kind="custom")
_CUSTOM_OUTPUT = replace(_ITEM, output=parts("output"), parent=_PROGRAM)
_PATCH_CALL = replace(_PATCH, arguments=value("operation"), defaults=_DONE)
_PATCH_OUTPUT = replace(_PATCH, output=stated(words("output")), failed=has_failed)
_SHELL_CALL = replace(_SHELL, arguments=Arguments(value("action").read, _commanded), hosted=TYPED["shell_call"].hosted)
_SHELL_OUTPUT = replace(_SHELL, output=commands)
_COMPUTER_OUTPUT = replace(_ITEM, tool="computer", output=stated(screenshot), failed=has_failed)
_TOOL_SEARCH = replace(
    _ITEM, tool="tool_search", arguments=Arguments(value("arguments").read, _searched), hosted=_without_id
)
# The wire can assign these to their search only in a body.
_TOOL_SEARCH_OUTPUT = Shape(
    id="call_id", item="id", tool="tool_search", output=Output(_found_tools, _search_answer), hosted=_without_id
)


# --------------------------------------------------------------------------------------------------------------- tables

_CLIENT_SIDE: dict[str, Shape] = {
    "FunctionToolCall": _FUNCTION_CALL,
    "FunctionToolCallResource": _kept(_FUNCTION_CALL),
    "FunctionToolCallOutput": _FUNCTION_OUTPUT,
    "FunctionToolCallOutputResource": _kept(_FUNCTION_OUTPUT),
    "FunctionCallOutputItemParam": _FUNCTION_OUTPUT,
    "CustomToolCall": _CUSTOM_CALL,
    "CustomToolCallResource": _kept(_CUSTOM_CALL),
    "CustomToolCallOutput": _CUSTOM_OUTPUT,
    "CustomToolCallOutputResource": _kept(_CUSTOM_OUTPUT),
    "ComputerToolCall": replace(
        _ITEM, tool="computer", arguments=keys("action", "actions"), defaults={"pending_safety_checks": [], **_DONE}
    ),
    "ComputerToolCallOutput": _COMPUTER_OUTPUT,
    "ComputerToolCallOutputResource": _COMPUTER_OUTPUT,
    # The request type has no status for failure.
    "ComputerCallOutputItemParam": replace(_COMPUTER_OUTPUT, output=screenshot),
    "ApplyPatchToolCall": _PATCH_CALL,
    "ApplyPatchToolCallItemParam": _PATCH_CALL,
    "ApplyPatchToolCallOutput": _PATCH_OUTPUT,
    "ApplyPatchToolCallOutputItemParam": _PATCH_OUTPUT,
    "FunctionShellCall": _SHELL_CALL,
    "FunctionShellCallItemParam": _SHELL_CALL,
    "FunctionShellCallOutput": _SHELL_OUTPUT,
    "FunctionShellCallOutputItemParam": _SHELL_OUTPUT,
    "LocalShellToolCall": replace(_ITEM, tool="local_shell", arguments=value("action"), defaults=_DONE),
    "LocalShellToolCallOutput": Shape(id="id", tool="local_shell", output=words("output"), inside=_RESPONSES),
    "ToolSearchCall": _TOOL_SEARCH,
    "ToolSearchCallItemParam": _TOOL_SEARCH,
    "ToolSearchOutput": _TOOL_SEARCH_OUTPUT,
    "ToolSearchOutputItemParam": _TOOL_SEARCH_OUTPUT,
}

_PROVIDER_SIDE: dict[str, Shape] = {
    "CodeInterpreterToolCall": replace(
        _WHOLE,
        tool="code_interpreter",
        arguments=_asked("code_interpreter_call", keys("code")),
        output=stated(code_outputs("outputs", _logged_picture)),
        defaults={"container_id": "", **_DONE},
    ),
    "FileSearchToolCall": replace(
        _WHOLE,
        tool="file_search",
        arguments=_asked("file_search_call", keys("queries")),
        output=stated(list_in("results")),
        defaults={"queries": [], **_DONE},
    ),
    "ImageGenToolCall": replace(
        _WHOLE,
        tool="image_generation",
        arguments=_asked("image_generation_call", Arguments(lambda _item: ({}, None), _prompted)),
        output=stated(picture_made),
        defaults={"result": None, **_DONE},
    ),
    "MCPToolCall": replace(
        _WHOLE,
        name="name",
        arguments=_asked("mcp_call", json_text("arguments")),
        output=stated(mcp(_execution_error)),
        defaults={"server_label": ""},
    ),
    "WebSearchToolCall": replace(
        _WHOLE,
        tool="web_search",
        arguments=_asked("web_search_call", value("action")),
        output=stated(found),
        defaults=_DONE,
    ),
    "Program": replace(_RUN, tool="program", arguments=keys("code"), defaults={"fingerprint": ""}),
    "ProgramOutput": replace(_RUN, tool="program", output=stated(words("result"), failed="incomplete")),
    "MultiAgentCall": replace(_RUN, tool="multi_agent", arguments=keys("action", "arguments")),
    "MultiAgentCallOutput": replace(
        _RUN,
        tool="multi_agent",
        output=Output(lambda item: (TYPED["multi_agent_call"].content(item), UNSET), _output_texts),
        defaults={"action": "wait_agent"},
    ),
    "MCPApprovalRequest": replace(MAY_IT, inside=_RESPONSES),
    # The wire parses these neither as calls nor as outputs.
    "MCPListTools": LISTING,
    "MCPApprovalResponse": THAT_IT_MAY,
}

RESPONSES: dict[str, Shape] = {**_CLIENT_SIDE, **_PROVIDER_SIDE}

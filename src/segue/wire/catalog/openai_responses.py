"""The types of OpenAI's Responses, as the client and as the provider runs them."""

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


# ----------------------------------------------------------------------- what two of them share, and odd ways to write


def _kept(shape: Shape) -> Shape:
    """The form in which the provider stores an item: how it stands is never left out."""
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


def _asked(kind: str, write: Arguments) -> Arguments:
    """What was asked, as the wire reads it."""
    return Arguments(lambda item: (HOSTED[kind].arguments(item), None), write.write)


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


_FUNCTION_CALL = Shape(
    id="call_id",
    item="id",
    name="name",
    namespace="namespace",
    arguments=json_text("arguments"),
    parent=_PROGRAM,
    inside=_RESPONSES,
)
_FUNCTION_OUTPUT = Shape(
    id="call_id",
    item="id",
    name="name",
    namespace="namespace",
    output=parts("output"),
    parent=_PROGRAM,
    inside=_RESPONSES,
)
_CUSTOM_CALL = replace(_FUNCTION_CALL, arguments=free_text("input"), kind="custom")
_CUSTOM_OUTPUT = Shape(id="call_id", item="id", output=parts("output"), parent=_PROGRAM, inside=_RESPONSES)
_PATCH_CALL = Shape(
    id="call_id",
    item="id",
    tool="apply_patch",
    arguments=value("operation"),
    parent=_PROGRAM,
    defaults=_DONE,
    inside=_RESPONSES,
)
_PATCH_OUTPUT = Shape(
    id="call_id",
    item="id",
    tool="apply_patch",
    output=stated(words("output")),
    failed=has_failed,
    parent=_PROGRAM,
    inside=_RESPONSES,
)
_SHELL_CALL = Shape(
    id="call_id",
    item="id",
    tool="shell",
    arguments=Arguments(value("action").read, _commanded),
    hosted=TYPED["shell_call"].hosted,
    parent=_PROGRAM,
    inside=_RESPONSES,
)
_SHELL_OUTPUT = Shape(id="call_id", item="id", tool="shell", output=commands, parent=_PROGRAM, inside=_RESPONSES)
_COMPUTER_OUTPUT = Shape(
    id="call_id", item="id", tool="computer", output=stated(screenshot), failed=has_failed, inside=_RESPONSES
)
_TOOL_SEARCH = Shape(
    id="call_id",
    item="id",
    tool="tool_search",
    arguments=Arguments(value("arguments").read, _searched),
    hosted=_without_id,
    inside=_RESPONSES,
)
# Which search found these, the wire can tell only in a body.
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
    "ComputerToolCall": Shape(
        id="call_id",
        item="id",
        tool="computer",
        arguments=keys("action", "actions"),
        defaults={"pending_safety_checks": [], **_DONE},
        inside=_RESPONSES,
    ),
    "ComputerToolCallOutput": _COMPUTER_OUTPUT,
    "ComputerToolCallOutputResource": _COMPUTER_OUTPUT,
    # What goes in has no word for failure.
    "ComputerCallOutputItemParam": replace(_COMPUTER_OUTPUT, output=screenshot),
    "ApplyPatchToolCall": _PATCH_CALL,
    "ApplyPatchToolCallItemParam": _PATCH_CALL,
    "ApplyPatchToolCallOutput": _PATCH_OUTPUT,
    "ApplyPatchToolCallOutputItemParam": _PATCH_OUTPUT,
    "FunctionShellCall": _SHELL_CALL,
    "FunctionShellCallItemParam": _SHELL_CALL,
    "FunctionShellCallOutput": _SHELL_OUTPUT,
    "FunctionShellCallOutputItemParam": _SHELL_OUTPUT,
    "LocalShellToolCall": Shape(
        id="call_id", item="id", tool="local_shell", arguments=value("action"), defaults=_DONE, inside=_RESPONSES
    ),
    "LocalShellToolCallOutput": Shape(id="id", tool="local_shell", output=words("output"), inside=_RESPONSES),
    "ToolSearchCall": _TOOL_SEARCH,
    "ToolSearchCallItemParam": _TOOL_SEARCH,
    "ToolSearchOutput": _TOOL_SEARCH_OUTPUT,
    "ToolSearchOutputItemParam": _TOOL_SEARCH_OUTPUT,
}

_PROVIDER_SIDE: dict[str, Shape] = {
    "CodeInterpreterToolCall": Shape(
        id="id",
        tool="code_interpreter",
        arguments=_asked("code_interpreter_call", keys("code")),
        output=stated(code_outputs("outputs", _logged_picture)),
        failed=has_failed,
        kind="hosted",
        defaults={"container_id": "", **_DONE},
        inside=_RESPONSES,
    ),
    "FileSearchToolCall": Shape(
        id="id",
        tool="file_search",
        arguments=_asked("file_search_call", keys("queries")),
        output=stated(list_in("results")),
        failed=has_failed,
        kind="hosted",
        defaults={"queries": [], **_DONE},
        inside=_RESPONSES,
    ),
    "ImageGenToolCall": Shape(
        id="id",
        tool="image_generation",
        arguments=_asked("image_generation_call", Arguments(lambda _item: ({}, None), _prompted)),
        output=stated(picture_made),
        failed=has_failed,
        kind="hosted",
        defaults={"result": None, **_DONE},
        inside=_RESPONSES,
    ),
    "MCPToolCall": Shape(
        id="id",
        name="name",
        arguments=_asked("mcp_call", json_text("arguments")),
        output=stated(mcp(_execution_error)),
        failed=has_failed,
        kind="hosted",
        defaults={"server_label": ""},
        inside=_RESPONSES,
    ),
    "WebSearchToolCall": Shape(
        id="id",
        tool="web_search",
        arguments=_asked("web_search_call", value("action")),
        output=stated(found),
        failed=has_failed,
        kind="hosted",
        defaults=_DONE,
        inside=_RESPONSES,
    ),
    "Program": Shape(
        id="call_id",
        item="id",
        tool="program",
        arguments=keys("code"),
        kind="hosted",
        defaults={"fingerprint": ""},
        inside=_RESPONSES,
    ),
    "ProgramOutput": Shape(
        id="call_id",
        item="id",
        tool="program",
        output=stated(words("result"), failed="incomplete"),
        kind="hosted",
        inside=_RESPONSES,
    ),
    "MultiAgentCall": Shape(
        id="call_id",
        item="id",
        tool="multi_agent",
        arguments=keys("action", "arguments"),
        kind="hosted",
        inside=_RESPONSES,
    ),
    "MultiAgentCallOutput": Shape(
        id="call_id",
        item="id",
        tool="multi_agent",
        output=Output(lambda item: (TYPED["multi_agent_call"].content(item), UNSET), _output_texts),
        kind="hosted",
        defaults={"action": "wait_agent"},
        inside=_RESPONSES,
    ),
    "MCPApprovalRequest": replace(MAY_IT, inside=_RESPONSES),
    # To the wire these are neither calls nor outputs.
    "MCPListTools": LISTING,
    "MCPApprovalResponse": THAT_IT_MAY,
}

RESPONSES: dict[str, Shape] = {**_CLIENT_SIDE, **_PROVIDER_SIDE}

"""The types of OpenAI's Responses API: client-run and hosted."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from segue.canonical.blocks import Media, Text, ToolCall, ToolResponse
from segue.wire.catalog.codecs import (
    ArgumentsCodec,
    OutputCodec,
    Patch,
    free_text,
    json_text,
    json_value,
    response_text,
    selected_keys,
    text_output,
)
from segue.wire.catalog.openai_mcp import APPROVAL_REQUEST, APPROVAL_RESPONSE, MCP_LIST_TOOLS, mcp_output
from segue.wire.catalog.openai_outputs import (
    code_interpreter_output,
    has_failed,
    image_generation_output,
    list_output,
    parts_output,
    render_found_tools,
    screenshot_output,
    shell_output,
    web_search_output,
    with_status,
)
from segue.wire.catalog.shape import EnclosingBody, PayloadShape
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.openai_responses.item_types import CALL_TYPES, HOSTED_TYPES

_ITEM_BODY = EnclosingBody("openai-responses", lambda item: {"input": [item]})
_DONE = {"status": "completed"}
_PARENT_PATH = "caller.caller_id"


# ------------------------------------------------------------------------------------------------------------- helpers


def _as_resource(shape: PayloadShape) -> PayloadShape:
    """Return the shape of the stored variant of an item, which always has a status."""
    return replace(shape, defaults={**shape.defaults, **_DONE})


def _is_hosted_search(item: JsonObject) -> bool:
    return CALL_TYPES["tool_search_call"].is_hosted(item)


def _render_shell_action(call: ToolCall) -> Patch:
    container = {"environment": {"type": "container_reference", "container_id": ""}}
    return {"action": call.arguments, **(container if call.kind == "hosted" else {})}


def _render_tool_search(call: ToolCall) -> Patch:
    return {"arguments": call.arguments, "execution": "server" if call.kind == "hosted" else "client"}


def _render_tool_search_output(response: ToolResponse) -> Patch:
    return {**render_found_tools(response), "execution": "server" if response.hosted else "client"}


def _hosted_arguments(kind: str, codec: ArgumentsCodec) -> ArgumentsCodec:
    """Return a codec that parses arguments as the wire does, and renders them with the given codec."""
    return ArgumentsCodec(lambda item: (HOSTED_TYPES[kind].arguments(item), None), codec.render)


def _render_prompt(call: ToolCall) -> Patch:
    prompt = (object_or_none(call.arguments) or {}).get("prompt")
    return {} if prompt is None else {"revised_prompt": prompt}


def _render_code_image(media: Media) -> JsonObject:
    return {"type": "image", "url": media.url or f"data:{media.mime or 'image/png'};base64,{media.data or ''}"}


def _render_output_texts(response: ToolResponse) -> Patch:
    texts = [block.text for block in response.content or () if isinstance(block, Text)] or [response_text(response)]
    return {"output": [{"type": "output_text", "text": text, "annotations": []} for text in texts]}


# An item has its own id besides the id that call and output share; an item that is both has only its own.
_ITEM = PayloadShape(id="call_id", item_id="id", enclosing_body=_ITEM_BODY)
_CALL_AND_OUTPUT = PayloadShape(failed=has_failed, kind="hosted", enclosing_body=_ITEM_BODY)
_NAMED_ITEM = replace(_ITEM, name="name", namespace="namespace", parent=_PARENT_PATH)
_HOSTED_ITEM = replace(_ITEM, kind="hosted")
_PATCH = replace(_ITEM, tool="apply_patch", parent=_PARENT_PATH)
_SHELL = replace(_ITEM, tool="shell", parent=_PARENT_PATH)

_FUNCTION_CALL = replace(_NAMED_ITEM, arguments=json_text("arguments"))
_FUNCTION_OUTPUT = replace(_NAMED_ITEM, output=parts_output("output"))
_CUSTOM_CALL = replace(_FUNCTION_CALL, arguments=free_text("input"), kind="custom")
_CUSTOM_OUTPUT = replace(_ITEM, output=parts_output("output"), parent=_PARENT_PATH)
_PATCH_CALL = replace(_PATCH, arguments=json_value("operation"), defaults=_DONE)
_PATCH_OUTPUT = replace(_PATCH, output=with_status(text_output("output")), failed=has_failed)
_SHELL_CALL = replace(
    _SHELL,
    arguments=ArgumentsCodec(json_value("action").parse, _render_shell_action),
    is_hosted=CALL_TYPES["shell_call"].is_hosted,
)
_SHELL_OUTPUT = replace(_SHELL, output=shell_output)
_COMPUTER_OUTPUT = replace(_ITEM, tool="computer", output=with_status(screenshot_output()), failed=has_failed)
_TOOL_SEARCH = replace(
    _ITEM,
    tool="tool_search",
    arguments=ArgumentsCodec(json_value("arguments").parse, _render_tool_search),
    is_hosted=_is_hosted_search,
)
# The wire can assign these to their search only in a body.
_TOOL_SEARCH_OUTPUT = PayloadShape(
    id="call_id",
    item_id="id",
    tool="tool_search",
    output=OutputCodec(
        lambda item: (CALL_TYPES["tool_search_call"].content(item), item["tools"]), _render_tool_search_output
    ),
    is_hosted=_is_hosted_search,
)


# --------------------------------------------------------------------------------------------------------------- tables

_CLIENT_SIDE: dict[str, PayloadShape] = {
    "FunctionToolCall": _FUNCTION_CALL,
    "FunctionToolCallResource": _as_resource(_FUNCTION_CALL),
    "FunctionToolCallOutput": _FUNCTION_OUTPUT,
    "FunctionToolCallOutputResource": _as_resource(_FUNCTION_OUTPUT),
    "FunctionCallOutputItemParam": _FUNCTION_OUTPUT,
    "CustomToolCall": _CUSTOM_CALL,
    "CustomToolCallResource": _as_resource(_CUSTOM_CALL),
    "CustomToolCallOutput": _CUSTOM_OUTPUT,
    "CustomToolCallOutputResource": _as_resource(_CUSTOM_OUTPUT),
    "ComputerToolCall": replace(
        _ITEM,
        tool="computer",
        arguments=selected_keys("action", "actions"),
        defaults={"pending_safety_checks": [], **_DONE},
    ),
    "ComputerToolCallOutput": _COMPUTER_OUTPUT,
    "ComputerToolCallOutputResource": _COMPUTER_OUTPUT,
    # The request type has no status for failure.
    "ComputerCallOutputItemParam": replace(_COMPUTER_OUTPUT, output=screenshot_output()),
    "ApplyPatchToolCall": _PATCH_CALL,
    "ApplyPatchToolCallItemParam": _PATCH_CALL,
    "ApplyPatchToolCallOutput": _PATCH_OUTPUT,
    "ApplyPatchToolCallOutputItemParam": _PATCH_OUTPUT,
    "FunctionShellCall": _SHELL_CALL,
    "FunctionShellCallItemParam": _SHELL_CALL,
    "FunctionShellCallOutput": _SHELL_OUTPUT,
    "FunctionShellCallOutputItemParam": _SHELL_OUTPUT,
    "LocalShellToolCall": replace(_ITEM, tool="local_shell", arguments=json_value("action"), defaults=_DONE),
    "LocalShellToolCallOutput": PayloadShape(
        tool="local_shell", output=text_output("output"), enclosing_body=_ITEM_BODY
    ),
    "ToolSearchCall": _TOOL_SEARCH,
    "ToolSearchCallItemParam": _TOOL_SEARCH,
    "ToolSearchOutput": _TOOL_SEARCH_OUTPUT,
    "ToolSearchOutputItemParam": _TOOL_SEARCH_OUTPUT,
}

_PROVIDER_SIDE: dict[str, PayloadShape] = {
    "CodeInterpreterToolCall": replace(
        _CALL_AND_OUTPUT,
        tool="code_interpreter",
        arguments=_hosted_arguments("code_interpreter_call", selected_keys("code")),
        output=with_status(code_interpreter_output("outputs", _render_code_image)),
        defaults={"container_id": "", **_DONE},
    ),
    "FileSearchToolCall": replace(
        _CALL_AND_OUTPUT,
        tool="file_search",
        arguments=_hosted_arguments("file_search_call", selected_keys("queries")),
        output=with_status(list_output("results")),
        defaults={"queries": [], **_DONE},
    ),
    "ImageGenToolCall": replace(
        _CALL_AND_OUTPUT,
        tool="image_generation",
        arguments=_hosted_arguments("image_generation_call", ArgumentsCodec(lambda _item: ({}, None), _render_prompt)),
        output=with_status(image_generation_output),
        defaults={"result": None, **_DONE},
    ),
    "MCPToolCall": replace(
        _CALL_AND_OUTPUT,
        name="name",
        arguments=_hosted_arguments("mcp_call", json_text("arguments")),
        output=with_status(
            mcp_output(lambda text: {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]})
        ),
        defaults={"server_label": ""},
    ),
    "WebSearchToolCall": replace(
        _CALL_AND_OUTPUT,
        tool="web_search",
        arguments=_hosted_arguments("web_search_call", json_value("action")),
        output=with_status(web_search_output),
        defaults=_DONE,
    ),
    "Program": replace(_HOSTED_ITEM, tool="program", arguments=selected_keys("code"), defaults={"fingerprint": ""}),
    "ProgramOutput": replace(
        _HOSTED_ITEM, tool="program", output=with_status(text_output("result"), failed="incomplete")
    ),
    "MultiAgentCall": replace(_HOSTED_ITEM, tool="multi_agent", arguments=selected_keys("action", "arguments")),
    "MultiAgentCallOutput": replace(
        _HOSTED_ITEM,
        tool="multi_agent",
        output=OutputCodec(lambda item: (CALL_TYPES["multi_agent_call"].content(item), UNSET), _render_output_texts),
        defaults={"action": "wait_agent"},
    ),
    "MCPApprovalRequest": replace(APPROVAL_REQUEST, enclosing_body=_ITEM_BODY),
    # The wire parses these neither as calls nor as outputs.
    "MCPListTools": MCP_LIST_TOOLS,
    "MCPApprovalResponse": APPROVAL_RESPONSE,
}

RESPONSES: dict[str, PayloadShape] = {**_CLIENT_SIDE, **_PROVIDER_SIDE}

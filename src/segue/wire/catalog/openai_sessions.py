"""OpenAI types of sessions and threads: Assistants, Realtime, ChatKit."""

from __future__ import annotations

from segue.canonical.blocks import Media, ToolCall
from segue.wire.catalog.field_codecs import (
    ArgumentsCodec,
    Content,
    OutputCodec,
    Patch,
    json_text,
    selected_keys,
    text_output,
)
from segue.wire.catalog.openai_mcp import APPROVAL_REQUEST, APPROVAL_RESPONSE, MCP_LIST_TOOLS, mcp_output
from segue.wire.catalog.openai_outputs import code_interpreter_output, has_failed, list_output, with_status
from segue.wire.catalog.paths import get_path
from segue.wire.catalog.shape import PayloadShape
from segue.wire.json_values import JsonObject, object_or_none, string_or_none

__all__ = ["ASSISTANTS", "CHATKIT", "REALTIME"]


# ---------------------------------------------------------------------------------------------------------- assistants


def _render_code(call: ToolCall) -> Patch:
    return {"code_interpreter.input": (object_or_none(call.arguments) or {}).get("code") or ""}


_CODE_ARGUMENTS = ArgumentsCodec(
    lambda step: ({"code": string_or_none(get_path(step, "code_interpreter.input")) or ""}, None), _render_code
)
_CODE_OUTPUT = code_interpreter_output(
    "code_interpreter.outputs",
    lambda media: {"type": "image", "image": {"file_id": media.file_id or _media_label(media)}},
)


def _media_label(media: Media) -> str:
    return media.url or media.name or ""


def _parse_run_output(step: JsonObject) -> Content:
    """The output; an empty list means that there is none yet."""
    content, structured = _CODE_OUTPUT.parse(step)
    return content or None, structured


ASSISTANTS: dict[str, PayloadShape] = {
    "RequiredActionFunctionToolCall": PayloadShape(
        id="id", name="function.name", arguments=json_text("function.arguments")
    ),
    "SubmitToolOutput": PayloadShape(id="tool_call_id", output=text_output("output")),
    "RunStepFunctionToolCall": PayloadShape(
        id="id", name="function.name", arguments=json_text("function.arguments"), output=text_output("function.output")
    ),
    "RunStepCodeInterpreterToolCall": PayloadShape(
        id="id",
        tool="code_interpreter",
        arguments=_CODE_ARGUMENTS,
        output=OutputCodec(_parse_run_output, _CODE_OUTPUT.render),
        kind="hosted",
        defaults={"code_interpreter.outputs": []},
    ),
    "RunStepFileSearchToolCall": PayloadShape(
        id="id",
        tool="file_search",
        arguments=selected_keys("ranking_options", root="file_search"),
        output=list_output("file_search.results"),
        kind="hosted",
        defaults={"file_search": {}},
    ),
}


# ------------------------------------------------------------------------------------------------------------ realtime


def _execution_error(text: str) -> JsonObject:
    return {"type": "tool_execution_error", "message": text}


REALTIME: dict[str, PayloadShape] = {
    "RealtimeFunctionCall": PayloadShape(id="call_id", item_id="id", name="name", arguments=json_text("arguments")),
    "RealtimeFunctionCallOutput": PayloadShape(id="call_id", item_id="id", output=text_output("output")),
    "RealtimeMCPToolCall": PayloadShape(
        id="id",
        name="name",
        arguments=json_text("arguments"),
        output=mcp_output(_execution_error),
        failed=has_failed,
        kind="hosted",
        defaults={"server_label": ""},
    ),
    "RealtimeMCPListTools": MCP_LIST_TOOLS,
    "RealtimeMCPApprovalRequest": APPROVAL_REQUEST,
    "RealtimeMCPApprovalResponse": APPROVAL_RESPONSE,
}


# ------------------------------------------------------------------------------------------------------------- chatkit

CHATKIT: dict[str, PayloadShape] = {
    "ChatKitClientToolCall": PayloadShape(
        id="call_id",
        item_id="id",
        name="name",
        arguments=json_text("arguments"),
        output=with_status(text_output("output"), failed="completed"),
        defaults={"object": "chatkit.thread_item", "thread_id": "", "created_at": 0, "status": "in_progress"},
    ),
}

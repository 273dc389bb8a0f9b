"""OpenAI types of sessions and threads: Assistants, Realtime, ChatKit."""

from __future__ import annotations

from segue.canonical.blocks import Media, ToolCall
from segue.wire.catalog.fields import Arguments, Content, Output, Patch, json_text, keys, words
from segue.wire.catalog.openai_mcp import LISTING, MAY_IT, THAT_IT_MAY, mcp
from segue.wire.catalog.openai_outputs import code_outputs, has_failed, list_in, stated
from segue.wire.catalog.paths import at
from segue.wire.catalog.shape import Shape
from segue.wire.fields import JsonObject, object_or_none, string_or_none

__all__ = ["ASSISTANTS", "CHATKIT", "REALTIME"]


# ---------------------------------------------------------------------------------------------------------- assistants


def _code_written(call: ToolCall) -> Patch:
    return {"code_interpreter.input": (object_or_none(call.arguments) or {}).get("code") or ""}


_CODE = Arguments(
    lambda step: ({"code": string_or_none(at(step, "code_interpreter.input")) or ""}, None), _code_written
)
_RUN = code_outputs(
    "code_interpreter.outputs", lambda media: {"type": "image", "image": {"file_id": media.file_id or _told(media)}}
)


def _told(media: Media) -> str:
    return media.url or media.name or ""


def _run_output(step: JsonObject) -> Content:
    """The output; an empty list means that there is none yet."""
    content, structured = _RUN.read(step)
    return content or None, structured


ASSISTANTS: dict[str, Shape] = {
    "RequiredActionFunctionToolCall": Shape(id="id", name="function.name", arguments=json_text("function.arguments")),
    "SubmitToolOutput": Shape(id="tool_call_id", output=words("output")),
    "RunStepFunctionToolCall": Shape(
        id="id", name="function.name", arguments=json_text("function.arguments"), output=words("function.output")
    ),
    "RunStepCodeInterpreterToolCall": Shape(
        id="id",
        tool="code_interpreter",
        arguments=_CODE,
        output=Output(_run_output, _RUN.write),
        kind="hosted",
        defaults={"code_interpreter.outputs": []},
    ),
    "RunStepFileSearchToolCall": Shape(
        id="id",
        tool="file_search",
        arguments=keys("ranking_options", root="file_search"),
        output=list_in("file_search.results"),
        kind="hosted",
        defaults={"file_search": {}},
    ),
}


# ------------------------------------------------------------------------------------------------------------ realtime


def _execution_error(text: str) -> JsonObject:
    return {"type": "tool_execution_error", "message": text}


REALTIME: dict[str, Shape] = {
    "RealtimeFunctionCall": Shape(id="call_id", item="id", name="name", arguments=json_text("arguments")),
    "RealtimeFunctionCallOutput": Shape(id="call_id", item="id", output=words("output")),
    "RealtimeMCPToolCall": Shape(
        id="id",
        name="name",
        arguments=json_text("arguments"),
        output=mcp(_execution_error),
        failed=has_failed,
        kind="hosted",
        defaults={"server_label": ""},
    ),
    "RealtimeMCPListTools": LISTING,
    "RealtimeMCPApprovalRequest": MAY_IT,
    "RealtimeMCPApprovalResponse": THAT_IT_MAY,
}


# ------------------------------------------------------------------------------------------------------------- chatkit

CHATKIT: dict[str, Shape] = {
    "ChatKitClientToolCall": Shape(
        id="call_id",
        item="id",
        name="name",
        arguments=json_text("arguments"),
        output=stated(words("output"), failed="completed"),
        defaults={"object": "chatkit.thread_item", "thread_id": "", "created_at": 0, "status": "in_progress"},
    ),
}

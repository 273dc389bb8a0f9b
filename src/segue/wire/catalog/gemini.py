"""Gemini's types: parts of generateContent and Live messages. Those of Interactions are in `gemini_interactions`."""

from __future__ import annotations

from msgspec import UNSET

from segue.canonical.blocks import Media, ToolCall, ToolResponse, text_of
from segue.wire.catalog.field_codecs import (
    ArgumentsCodec,
    Content,
    OutputCodec,
    Patch,
    response_text,
    selected_keys,
    text_output,
)
from segue.wire.catalog.gemini_interactions import INTERACTIONS
from segue.wire.catalog.paths import get_path
from segue.wire.catalog.shape import EnclosingBody, PayloadShape
from segue.wire.catalog.shared_codecs import object_arguments
from segue.wire.gemini.items import CODE_EXECUTION, intact_fragment, parse_result_content
from segue.wire.gemini.media import render_inline
from segue.wire.json_values import JsonObject, object_or_none

__all__ = ["GEMINI"]

_MODEL_BODY = EnclosingBody("gemini", lambda part: {"contents": [{"role": "model", "parts": [part]}]})
_USER_BODY = EnclosingBody("gemini", lambda part: {"contents": [{"role": "user", "parts": [part]}]})


# ----------------------------------------------------------------------------------------------------------- functions


def _get_object(payload: JsonObject, root: str) -> JsonObject:
    return object_or_none(get_path(payload, root)) or {}


def _function_output(root: str = "") -> OutputCodec:
    """The function's result in `response`, and its media in `parts`."""
    prefix = f"{root}." if root else ""

    def parse(payload: JsonObject) -> Content:
        content, structured, _, _ = parse_result_content(_get_object(payload, root))
        return content, structured

    def render(response: ToolResponse) -> Patch:
        patch: Patch = {f"{prefix}response": _render_response(response)}
        pictures = [block for block in response.content or () if isinstance(block, Media)]
        parts = [
            part for media in pictures if (part := intact_fragment(media.native) or render_inline(media)) is not None
        ]
        return patch | ({f"{prefix}parts": parts} if parts else {})

    return OutputCodec(parse, render)


def _render_response(response: ToolResponse) -> JsonObject:
    failed = response.error or response.outcome is not None
    structured = response.structured
    members = object_or_none(structured)
    if structured is UNSET:
        text = text_of(response.content)
        return {"error": text} if failed else {"output": text} if text else {}
    if failed:
        return members if members is not None and members.get("error") else {"error": structured}
    # Wrapped where it would be parsed differently.
    return {"output": structured} if members is None or "error" in members else members


def _call_shape(
    root: str = "", *, body: EnclosingBody | None = None, signature: str | None = None, list_path: str | None = None
) -> PayloadShape:
    prefix = f"{root}." if root else ""
    return PayloadShape(
        id=f"{prefix}id",
        name=f"{prefix}name",
        arguments=object_arguments(f"{prefix}args"),
        list_path=list_path,
        signature=signature,
        enclosing_body=body,
    )


def _result_shape(root: str = "", *, body: EnclosingBody | None = None, list_path: str | None = None) -> PayloadShape:
    prefix = f"{root}." if root else ""
    return PayloadShape(
        id=f"{prefix}id",
        name=f"{prefix}name",
        output=_function_output(root),
        failed=lambda payload: parse_result_content(_get_object(payload, root))[2],
        list_path=list_path,
        enclosing_body=body,
    )


# -------------------------------------------------------------------------------------------------------- hosted tools

_OK_OUTCOMES = (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED")


def _render_tool_call(call: ToolCall) -> Patch:
    return object_arguments("toolCall.args").render(call) | {"toolCall.toolType": call.name.upper()}


def _parse_tool_response(payload: JsonObject) -> Content:
    value = get_path(payload, "toolResponse.response")
    return (None, UNSET) if value is None else ((), value)


def _render_tool_response(response: ToolResponse) -> Patch:
    value = object_or_none(response.structured)
    return {
        "toolResponse.response": {"output": response_text(response)} if value is None else value,
        "toolResponse.toolType": (response.name or "server_tool").upper(),
    }


def _render_code_result(response: ToolResponse) -> Patch:
    outcome = "OUTCOME_FAILED" if response.error or response.outcome is not None else "OUTCOME_OK"
    return {"codeExecutionResult.output": response_text(response), "codeExecutionResult.outcome": outcome}


GEMINI: dict[str, PayloadShape] = {
    "FunctionCall": _call_shape("functionCall", body=_MODEL_BODY, signature="thoughtSignature"),
    "FunctionResponse": _result_shape("functionResponse", body=_USER_BODY),
    "ComputerUseFunctionCall": _call_shape("functionCall", body=_MODEL_BODY, signature="thoughtSignature"),
    "ComputerUseFunctionResponse": _result_shape("functionResponse", body=_USER_BODY),
    "ExecutableCode": PayloadShape(
        id="executableCode.id",
        tool=CODE_EXECUTION,
        arguments=selected_keys("language", "code", root="executableCode"),
        kind="hosted",
        signature="thoughtSignature",
        enclosing_body=_MODEL_BODY,
    ),
    "CodeExecutionResult": PayloadShape(
        id="codeExecutionResult.id",
        tool=CODE_EXECUTION,
        output=OutputCodec(text_output("codeExecutionResult.output").parse, _render_code_result),
        failed=lambda payload: get_path(payload, "codeExecutionResult.outcome") not in _OK_OUTCOMES,
        kind="hosted",
        enclosing_body=_MODEL_BODY,
    ),
    "ToolCall": PayloadShape(
        id="toolCall.id",
        tool="server_tool",
        arguments=ArgumentsCodec(object_arguments("toolCall.args").parse, _render_tool_call),
        kind="hosted",
        signature="thoughtSignature",
        enclosing_body=_MODEL_BODY,
    ),
    "ToolResponse": PayloadShape(
        id="toolResponse.id",
        tool="server_tool",
        output=OutputCodec(_parse_tool_response, _render_tool_response),
        kind="hosted",
        enclosing_body=_MODEL_BODY,
    ),
    "LiveServerToolCall": _call_shape(list_path="toolCall.functionCalls"),
    "LiveClientToolResponse": _result_shape(list_path="toolResponse.functionResponses"),
    "LiveServerToolCallCancellation": PayloadShape(
        id="id", list_path="toolCallCancellation.ids", ids_only=True, cancelled=lambda _payload: True
    ),
    **INTERACTIONS,
}

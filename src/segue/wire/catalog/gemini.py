"""Gemini's types: parts of generateContent, Live messages, and steps of Interactions."""

from __future__ import annotations

from typing import Any, cast

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse, text_of
from segue.wire.catalog.codecs import (
    ArgumentsCodec,
    Content,
    OutputCodec,
    Patch,
    no_arguments,
    object_arguments,
    response_text,
    selected_keys,
    text_output,
    with_failure_fields,
)
from segue.wire.catalog.shape import EnclosingBody, PayloadShape, is_true
from segue.wire.gemini.capabilities import API
from segue.wire.gemini.items import CODE_EXECUTION
from segue.wire.gemini.media import render_inline
from segue.wire.gemini.results import parse_result_content
from segue.wire.json_values import JsonObject, get_path, list_or_empty, object_or_none, string_or_none
from segue.wire.merge import intact_fragment

# -------------------------------------------------------------------------------------------------------- interactions


_MEDIA = ("image", "audio", "video", "document")


def _parse_result(step: JsonObject) -> Content:
    """Parse text, a list of content parts, or any other JSON value."""
    value = step.get("result")
    if value is None:
        return None, UNSET
    if isinstance(value, str):
        return (Text(value),), UNSET
    parts = list_or_empty(value)
    blocks = [_parse_part(part) for part in parts]
    parsed = [block for block in blocks if block is not None]
    return (tuple(parsed), UNSET) if parsed and len(parsed) == len(blocks) else ((), cast("object", value))


def _parse_part(part: object) -> Block | None:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": str(kind)} if kind in _MEDIA:
            return _parse_media(kind, object_or_none(part) or {})
        case _:
            return None


def _parse_media(kind: Any, part: JsonObject) -> Media | None:
    mime, data, uri = (string_or_none(part.get(key)) for key in ("mime_type", "data", "uri"))
    if data is None and uri is None:
        return None
    reachable = uri is not None and uri.startswith(("https://", "http://"))
    return Media(kind, mime, data=data, url=uri if reachable else None, file_id=None if reachable else uri)


def _render_result(response: ToolResponse) -> Patch:
    pictures = [block for block in response.content or () if isinstance(block, Media)]
    if response.structured is not UNSET and not pictures:
        return {"result": response.structured}
    if not pictures:
        return {"result": response_text(response)}
    texts = [{"type": "text", "text": text}] if (text := response_text(response)) else []
    return {"result": [*texts, *map(_render_media, pictures)]}


def _render_media(media: Media) -> JsonObject:
    source = {"data": media.data} if media.data is not None else {"uri": media.url or media.file_id or ""}
    return {"type": media.kind, **({"mime_type": media.mime} if media.mime else {}), **source}


def _render_list(response: ToolResponse) -> Patch:
    """Render a list of results; plain text becomes its only entry."""
    results = response.structured
    return {"result": results if isinstance(results, list) else [{"text": response_text(response)}]}


_RESULT = with_failure_fields(OutputCodec(_parse_result, _render_result), {"is_error": True})
_LIST = with_failure_fields(OutputCodec(_parse_result, _render_list), {"is_error": True})
_HIDDEN = with_failure_fields(OutputCodec(lambda _step: (None, UNSET), lambda _response: {}), {"is_error": True})


def _interaction_call(tool: str, arguments: ArgumentsCodec) -> PayloadShape:
    return PayloadShape(tool=tool, arguments=arguments, kind="hosted")


def _interaction_result(tool: str, output: OutputCodec | None) -> PayloadShape:
    return PayloadShape(id="call_id", tool=tool, output=output, failed=is_true("is_error"), kind="hosted")


_ARGUMENTS = object_arguments("arguments")
# By tool: the codecs of its arguments and its output. Some results have no output.
_TOOLS: dict[str, tuple[str, ArgumentsCodec, OutputCodec | None]] = {
    "CodeExecution": ("code_execution", _ARGUMENTS, _RESULT),
    "GoogleSearch": ("google_search", _ARGUMENTS, _LIST),
    "GoogleMaps": ("google_maps", _ARGUMENTS, OutputCodec(_parse_result, _render_list)),
    "UrlContext": ("url_context", _ARGUMENTS, _LIST),
    "FileSearch": ("file_search", no_arguments, None),
    "Retrieval": ("retrieval", _ARGUMENTS, _HIDDEN),
    "Processing": ("processing", no_arguments, None),
}

_INTERACTIONS: dict[str, PayloadShape] = {
    "InteractionFunctionCall": PayloadShape(name="name", arguments=_ARGUMENTS),
    "InteractionFunctionResult": PayloadShape(id="call_id", name="name", output=_RESULT, failed=is_true("is_error")),
    "InteractionMcpServerToolCall": PayloadShape(
        name="name", arguments=_ARGUMENTS, kind="hosted", defaults={"server_name": "unknown"}
    ),
    "InteractionMcpServerToolResult": PayloadShape(
        id="call_id", name="name", output=OutputCodec(_parse_result, _render_result), kind="hosted"
    ),
    **{f"Interaction{name}Call": _interaction_call(tool, arguments) for name, (tool, arguments, _) in _TOOLS.items()},
    **{f"Interaction{name}Result": _interaction_result(tool, output) for name, (tool, _, output) in _TOOLS.items()},
}


_MODEL_BODY = EnclosingBody("gemini", lambda part: {"contents": [{"role": "model", "parts": [part]}]})
_USER_BODY = EnclosingBody("gemini", lambda part: {"contents": [{"role": "user", "parts": [part]}]})


# ----------------------------------------------------------------------------------------------------------- functions


def _get_object(payload: JsonObject, root: str) -> JsonObject:
    return object_or_none(get_path(payload, root)) or {}


def _function_output(root: str = "") -> OutputCodec:
    """Return a codec for the function's result in `response`, and its media in `parts`."""
    prefix = f"{root}." if root else ""

    def parse(payload: JsonObject) -> Content:
        content, structured, _, _ = parse_result_content(_get_object(payload, root))
        return content, structured

    def render(response: ToolResponse) -> Patch:
        patch: Patch = {f"{prefix}response": _render_response(response)}
        pictures = [block for block in response.content or () if isinstance(block, Media)]
        parts = [
            part
            for media in pictures
            if (part := intact_fragment(media.native, API) or render_inline(media)) is not None
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
        list_path="toolCallCancellation.ids", ids_only=True, cancelled=lambda _payload: True
    ),
    **_INTERACTIONS,
}

"""Gemini's types: parts of generateContent and Live messages. Those of Interactions are in `gemini_interactions`."""

from __future__ import annotations

from msgspec import UNSET

from segue.canonical.blocks import Media, ToolCall, ToolResponse, text_of
from segue.wire.catalog.common import object_at
from segue.wire.catalog.fields import Arguments, Content, Output, Patch, keys, said, words
from segue.wire.catalog.interactions import INTERACTIONS
from segue.wire.catalog.paths import at
from segue.wire.catalog.shape import Inside, Shape
from segue.wire.fields import JsonObject, object_or_none
from segue.wire.gemini.hosted import CODE_EXECUTION
from segue.wire.gemini.items import own_fragment
from segue.wire.gemini.media import inline_part
from segue.wire.gemini.results import parse_content

__all__ = ["GEMINI"]

_MODEL = Inside("gemini", lambda part: {"contents": [{"role": "model", "parts": [part]}]})
_USER = Inside("gemini", lambda part: {"contents": [{"role": "user", "parts": [part]}]})


# ----------------------------------------------------------------------------------------------------------- functions


def _inner(payload: JsonObject, root: str) -> JsonObject:
    return object_or_none(at(payload, root)) or {}


def _result(root: str = "") -> Output:
    """The function's result in `response`, and its media in `parts`."""
    prefix = f"{root}." if root else ""

    def parse(payload: JsonObject) -> Content:
        content, structured, _, _ = parse_content(_inner(payload, root))
        return content, structured

    def render(response: ToolResponse) -> Patch:
        patch: Patch = {f"{prefix}response": _response(response)}
        pictures = [block for block in response.content or () if isinstance(block, Media)]
        parts = [part for media in pictures if (part := own_fragment(media.native) or inline_part(media)) is not None]
        return patch | ({f"{prefix}parts": parts} if parts else {})

    return Output(parse, render)


def _response(response: ToolResponse) -> JsonObject:
    failed = response.error or response.outcome is not None
    given = response.structured
    members = object_or_none(given)
    if given is UNSET:
        text = text_of(response.content)
        return {"error": text} if failed else {"output": text} if text else {}
    if failed:
        return members if members is not None and members.get("error") else {"error": given}
    # Wrapped where it would be parsed differently.
    return {"output": given} if members is None or "error" in members else members


def _call(
    root: str = "", *, body: Inside | None = None, signature: str | None = None, list_path: str | None = None
) -> Shape:
    prefix = f"{root}." if root else ""
    return Shape(
        id=f"{prefix}id",
        name=f"{prefix}name",
        arguments=object_at(f"{prefix}args"),
        many=list_path,
        signature=signature,
        inside=body,
    )


def _answer(root: str = "", *, body: Inside | None = None, list_path: str | None = None) -> Shape:
    prefix = f"{root}." if root else ""
    return Shape(
        id=f"{prefix}id",
        name=f"{prefix}name",
        output=_result(root),
        failed=lambda payload: parse_content(_inner(payload, root))[2],
        many=list_path,
        inside=body,
    )


# -------------------------------------------------------------------------------------------------------- hosted tools

_FINE = (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED")


def _write_tool_call(call: ToolCall) -> Patch:
    return object_at("toolCall.args").write(call) | {"toolCall.toolType": call.name.upper()}


def _read_tool_response(payload: JsonObject) -> Content:
    given = at(payload, "toolResponse.response")
    return (None, UNSET) if given is None else ((), given)


def _write_tool_response(response: ToolResponse) -> Patch:
    value = object_or_none(response.structured)
    return {
        "toolResponse.response": {"output": said(response)} if value is None else value,
        "toolResponse.toolType": (response.name or "server_tool").upper(),
    }


def _write_code_result(response: ToolResponse) -> Patch:
    outcome = "OUTCOME_FAILED" if response.error or response.outcome is not None else "OUTCOME_OK"
    return {"codeExecutionResult.output": said(response), "codeExecutionResult.outcome": outcome}


GEMINI: dict[str, Shape] = {
    "FunctionCall": _call("functionCall", body=_MODEL, signature="thoughtSignature"),
    "FunctionResponse": _answer("functionResponse", body=_USER),
    "ComputerUseFunctionCall": _call("functionCall", body=_MODEL, signature="thoughtSignature"),
    "ComputerUseFunctionResponse": _answer("functionResponse", body=_USER),
    "ExecutableCode": Shape(
        id="executableCode.id",
        tool=CODE_EXECUTION,
        arguments=keys("language", "code", root="executableCode"),
        kind="hosted",
        signature="thoughtSignature",
        inside=_MODEL,
    ),
    "CodeExecutionResult": Shape(
        id="codeExecutionResult.id",
        tool=CODE_EXECUTION,
        output=Output(words("codeExecutionResult.output").read, _write_code_result),
        failed=lambda payload: at(payload, "codeExecutionResult.outcome") not in _FINE,
        kind="hosted",
        inside=_MODEL,
    ),
    "ToolCall": Shape(
        id="toolCall.id",
        tool="server_tool",
        arguments=Arguments(object_at("toolCall.args").read, _write_tool_call),
        kind="hosted",
        signature="thoughtSignature",
        inside=_MODEL,
    ),
    "ToolResponse": Shape(
        id="toolResponse.id",
        tool="server_tool",
        output=Output(_read_tool_response, _write_tool_response),
        kind="hosted",
        inside=_MODEL,
    ),
    "LiveServerToolCall": _call(list_path="toolCall.functionCalls"),
    "LiveClientToolResponse": _answer(list_path="toolResponse.functionResponses"),
    "LiveServerToolCallCancellation": Shape(
        id="id", many="toolCallCancellation.ids", bare=True, cancelled=lambda _payload: True
    ),
    **INTERACTIONS,
}

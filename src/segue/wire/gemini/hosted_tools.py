"""Parts of hosted tools (code execution, server-side tools) to canonical calls and results.

Same-API, such parts are sent back unchanged with their own ids (GEM-24); cross-API, the `hosted` policy decides.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from segue.canonical.blocks import Block, Native, Origin, Text, ToolCall, ToolResponse
from segue.canonical.ids import raw_id_or_none
from segue.wire.gemini.fields import JsonObject, find_key, get_field, get_text_strict, require_object
from segue.wire.gemini.media import API

__all__ = ["CODE_EXECUTION", "HOSTED_PARSERS", "parse_origin"]

CODE_EXECUTION = "code_execution"


def parse_origin(inner: JsonObject, model: str | None) -> Origin:
    """The origin of a call or result. Every type may have an id, and many have none."""
    text = get_text_strict(inner, "id")
    raw_id = raw_id_or_none(text)
    invalid_id = text if raw_id is None and text else None
    return Origin(API, model, raw_id, invalid_id, "synthetic" if raw_id is None else "natural")


def _get_member(part: JsonObject, member: str) -> JsonObject:
    return require_object(get_field(part, member), find_key(part, member))


def _parse_code(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "executableCode")
    arguments = {key: value for key, value in inner.items() if key != "id"}
    return ToolCall(
        CODE_EXECUTION, arguments, kind="hosted", origin=parse_origin(inner, model), native=Native(API, part)
    )


def _parse_code_result(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "codeExecutionResult")
    output = get_text_strict(inner, "output")
    return ToolResponse(
        name=CODE_EXECUTION,
        content=(Text(output),) if output else (),
        error=get_field(inner, "outcome") not in (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED"),
        is_complete=True,
        hosted=True,
        origin=parse_origin(inner, model),
        native=Native(API, part),
    )


def _server_tool_name(inner: JsonObject) -> str:
    return (get_text_strict(inner, "toolType") or "server_tool").lower()


def _parse_server_call(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "toolCall")
    arguments = get_field(inner, "args")
    return ToolCall(
        _server_tool_name(inner),
        {} if arguments is None else arguments,
        kind="hosted",
        origin=parse_origin(inner, model),
        native=Native(API, part),
    )


def _parse_server_result(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "toolResponse")
    response = get_field(inner, "response")
    return ToolResponse(
        name=_server_tool_name(inner),
        content=(),
        structured=UNSET if response is None else response,
        is_complete=True,
        hosted=True,
        origin=parse_origin(inner, model),
        native=Native(API, part),
    )


HOSTED_PARSERS: dict[str, Callable[[JsonObject, str | None], Block]] = {
    "executableCode": _parse_code,
    "codeExecutionResult": _parse_code_result,
    "toolCall": _parse_server_call,
    "toolResponse": _parse_server_result,
}

"""Tool calls as JSON objects, and JSON as chat templates render it; shared by several text formats."""

from __future__ import annotations

import json
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.json import parse_argument_text
from segue.canonical.request import Tool
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.text.lenient_json import InvalidJsonError, find_repeated_key, parse_lenient
from segue.wire.text.text_format import FoundCall

__all__ = ["call_arguments", "function_declaration", "named_arguments", "parse_json_calls", "render_spaced_json"]

_OTHER_KEYS = frozenset({"name", "id", "type", "function"})


def render_spaced_json(value: object, *, indent: int | None = None) -> str:
    """JSON with a blank after each comma and colon, as chat templates render it."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def function_declaration(tool: Tool) -> JsonObject:
    """A tool declaration in the form that chat templates take."""
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description or "", "parameters": parameters}
    return {"type": "function", "function": function}


def call_arguments(call: ToolCall) -> Any:
    """The arguments of a call; text that is not valid JSON stays text."""
    return call.arguments if call.arguments_text is None else call.arguments_text


def named_arguments(call: ToolCall) -> JsonObject:
    """The arguments of a call as an object, for formats that only have named arguments."""
    arguments = call_arguments(call)
    if call.arguments_text is not None:
        return {"_raw": call.arguments_text} if call.arguments_text.strip() else {}
    return cast("JsonObject", arguments) if isinstance(arguments, dict) else {"value": arguments}


def parse_json_calls(text: str) -> list[FoundCall] | str:
    """The calls in a JSON object or a list of objects, or the reason why it is not valid."""
    try:
        value = parse_lenient(text)
    except InvalidJsonError as error:
        return str(error)
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    calls: list[FoundCall] = []
    for item in items:
        call = _parse_call(object_or_none(item))
        if isinstance(call, str):
            return call
        calls.append(call)
    if calls and (repeated := find_repeated_key(text, cast("object", value))) is not None:
        index = next((at for at, call in enumerate(calls) if repeated in (object_or_none(call.arguments) or {})), 0)
        calls[index] = replace(calls[index], repeated_key=repeated)
    return calls or "no tool name"


def _parse_call(value: JsonObject | None) -> FoundCall | str:
    if value is None:
        return "no tool name"
    function_object = object_or_none(value.get("function"))
    function = value if function_object is None else function_object
    name = function.get("name", function.get("function"))
    if not isinstance(name, str) or not name:
        return "no tool name"
    key = next((key for key in ("arguments", "parameters") if key in function), None)
    if key is None and not function.keys() <= _OTHER_KEYS:
        return "no arguments"
    raw_id = value.get("id")
    raw_id = raw_id if isinstance(raw_id, str) and raw_id else None
    arguments = None if key is None else function[key]
    if not isinstance(arguments, str):
        return FoundCall(name, {} if arguments is None else arguments, None, raw_id)
    parsed, exact = parse_argument_text(arguments)
    if exact is not None and exact.strip():
        try:
            parsed, exact = parse_lenient(exact), None
        except InvalidJsonError:
            parsed = None
    return FoundCall(name, parsed, exact, raw_id, repeated_key=find_repeated_key(arguments, parsed))

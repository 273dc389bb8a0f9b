"""Parses tool calls from the JSON objects or Python calls that a model wrote."""

from __future__ import annotations

import re
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.json import parse_argument_text
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.text.lenient_json import InvalidJsonError, find_repeated_key, parse_lenient
from segue.wire.text.regions import BrokenCall, FoundCall, Segment

_OTHER_KEYS = frozenset({"name", "id", "type", "function"})


def parse_json_calls(text: str) -> list[FoundCall] | str:
    """Parse the calls in a JSON object or a list of objects; return the reason if it is not valid."""
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


def parse_call(name: str, text: str, raw_text: str, raw_id: str | None = None) -> Segment:
    """Build a call from its name and JSON arguments; empty text means no arguments."""
    bare = text.strip()
    try:
        value = parse_lenient(bare) if bare else None
    except InvalidJsonError as error:
        return BrokenCall(raw_text, f"arguments: {error}")
    return build_call(name, value, raw_text, raw_id, find_repeated_key(bare, value))


def build_call(
    name: str, arguments: Any, raw_text: str, raw_id: str | None = None, repeated_key: str | None = None
) -> Segment:
    """Build a call from its name and parsed arguments; a string is parsed as JSON again, or kept as free text."""
    name = name.strip()
    if not name or len(name.split()) > 1:
        return BrokenCall(raw_text, "no tool name")
    if isinstance(arguments, str):
        try:
            decoded = parse_lenient(arguments.strip())
        except InvalidJsonError:
            decoded = None
        if not isinstance(decoded, dict):
            return FoundCall(name, None, arguments, raw_id, raw_text)
        parsed = cast("JsonObject", decoded)
        repeated_key = repeated_key or find_repeated_key(arguments, parsed)
        arguments = parsed
    return FoundCall(
        name, {} if arguments is None else arguments, raw_id=raw_id, raw_text=raw_text, repeated_key=repeated_key
    )


# Calls in Python syntax: `name(key=value, …)`, one or a list of them.
_PYTHON_TOKEN = re.compile(
    r"""
    (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
    | (?P<call>[A-Za-z_][\w.-]*+\s*+\()
    | (?P<key>[A-Za-z_]\w*+\s*+=(?!=))
    | (?P<word>\w++)
    | (?P<bracket>[()])
    """,
    re.VERBOSE | re.DOTALL,
)


def convert_python_calls(text: str) -> str:
    """Convert Python calls to lenient JSON objects with name and arguments. Anything else becomes invalid JSON."""
    opened: list[bool] = []
    inside = 0

    def convert(token: re.Match[str]) -> str:
        nonlocal inside
        match token.lastgroup:
            case "call":
                inside += 1
                opened.append(True)
                if inside > 1:
                    return "a call within a call"
                return f'{{"name":"{token[0][:-1].rstrip()}","arguments":{{'
            case "key":
                return f'"{token[0][:-1].rstrip()}":'
            case "bracket" if token[0] == "(":
                opened.append(False)
                return "["
            case "bracket" if opened and opened.pop():
                inside -= 1
                return "}}"
            case "bracket":
                return "]"
            case _:
                return token[0]

    return _PYTHON_TOKEN.sub(convert, text)

"""Checks of the declared tools: their parameters are a JSON Schema, and tool_choice names one of them.

The error texts are those of the validator most services use. Keywords have the types that all drafts from 7 on share;
what only some drafts reject is accepted. Unknown keywords are valid. The walk is iterative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from segue.conformance.values import is_list, is_object
from segue.emulator.errors.broken_rule import member
from segue.wire.base import ApiError
from segue.wire.json_values import object_list, object_or_none

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf"), "number"),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), "integer"),
    **dict.fromkeys(("$id", "$schema", "$ref", "$comment", "title", "description", "pattern", "format"), "string"),
    **dict.fromkeys(("enum", "examples", "required", "allOf", "anyOf", "oneOf"), "array"),
    **dict.fromkeys(("properties", "patternProperties", "definitions", "$defs"), "object"),
    "uniqueItems": "boolean",
}
_SUBSCHEMA_KEYWORDS = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
)
_LONGEST = 200


def format_value(value: object) -> str:
    """Return the repr of a value, shortened: the validator quotes values like this."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def wrong_type_message(value: str, kind: str) -> str:
    return f"{value} is not of type '{kind}'"


def _has_type(value: object, kind: str) -> bool:
    match kind:
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "integer":
            return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return is_list(value)
        case _:
            return is_object(value)


def _find_type_error(value: object) -> str | None:
    named = value if is_list(value) else [value]
    if named and all(isinstance(name, str) and name in _TYPES for name in named):
        return None
    return f"{format_value(value)} is not valid under any of the given schemas"


def _find_keyword_error(keyword: str, value: object) -> str | None:
    if keyword == "type":
        return _find_type_error(value)
    kind = _KINDS.get(keyword)
    if kind is not None and not _has_type(value, kind):
        return wrong_type_message(format_value(value), kind)
    if keyword == "required" and is_list(value):
        other = [name for name in value if not isinstance(name, str)]
        return wrong_type_message(format_value(other[0]), "string") if other else None
    return None


def _subschemas(schema: Mapping[str, object]) -> Iterator[object]:
    """Yield the subschemas of a schema."""
    for keyword, value in schema.items():
        if keyword in _SUBSCHEMA_KEYWORDS:
            yield from value if is_list(value) else [value]
        elif keyword in ("allOf", "anyOf", "oneOf") and is_list(value):
            yield from value
        elif keyword in ("properties", "patternProperties", "definitions", "$defs") and is_object(value):
            yield from value.values()


def find_schema_error(value: Any) -> str | None:
    """Return the first error, or `None` if the value is a schema."""
    waiting: list[object] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, bool):
            continue
        if not is_object(part):
            return f"{format_value(part)} is not of type 'object', 'boolean'"
        for keyword, inner in part.items():
            mismatch = _find_keyword_error(keyword, inner)
            if mismatch is not None:
                return mismatch
        waiting.extend(reversed(list(_subschemas(part))))
    return None


def find_parameters_error(path: str, name: object, schema: Any) -> ApiError | None:
    """Return OpenAI's error for parameters that are not the schema of an object, `None` if they are."""
    mismatch = find_schema_error(schema)
    if mismatch is None:
        kind = schema.get("type") if is_object(schema) else None
        if kind == "object" or schema == {}:
            return None
        mismatch = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'"
    message = f"Invalid schema for function '{name if isinstance(name, str) else format_value(name)}': {mismatch}."
    return ApiError(400, message, code="invalid_function_parameters", param=path)


def find_function_error(body: Mapping[str, Any]) -> ApiError | None:
    """Return the error for the first function of a Chat Completions body with invalid parameters."""
    for index, tool in enumerate(object_list(body.get("tools"))):
        function = object_or_none(tool.get("function")) or {}
        if function.get("parameters") is not None:
            path = f"tools[{index}].function.parameters"
            error = find_parameters_error(path, function.get("name"), function["parameters"])
            if error is not None:
                return error
    return None


def undeclared_choice(body: Mapping[str, Any]) -> str | None:
    """Return the name in the tool_choice of a Chat Completions body if no such tool is declared."""
    choice = body.get("tool_choice")
    name = member(member(choice, str(member(choice, "type"))), "name")
    declared = [member(member(tool, str(tool.get("type"))), "name") for tool in object_list(body.get("tools"))]
    return name if isinstance(name, str) and name not in declared else None

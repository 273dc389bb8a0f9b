"""The error texts of Converse for a body that does not match its service model.

A value of a wrong type gives a SerializationException without a path. Otherwise all broken constraints are in one
message, with indexes from one (`messages.2.member.content`). The members of blocks are checked last, with indexes from
zero. Values inside messages, system and tools are never shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from segue.conformance.values import is_list, is_object
from segue.emulator.errors.broken_rule import BrokenRule, member
from segue.specs import types as spec
from segue.wire.base import ApiError
from segue.wire.json_values import list_or_empty

_STEP = re.compile(r"\[(\d+)\]")
_UNSHOWN = ("messages", "system", "toolConfig", "promptVariables")
_CLASSES = {"string": "String", "integer": "Integer", "number": "Float", "boolean": "Boolean", "bytes": "ByteBuffer"}
# The service's names of union objects, by the ends of their paths.
_UNIONS: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"toolResult\.content\[\d+\]$", "ToolResultContentBlock"),
        (r"^messages\[\d+\]\.content\[\d+\]$", "ContentBlock"),
        (r"^system\[\d+\]$", "SystemContentBlock"),
        (r"reasoningContent$", "ReasoningContentBlock"),
        (r"^toolConfig\.tools\[\d+\]$", "Tool"),
        (r"toolChoice$", "ToolChoice"),
        (r"inputSchema$", "ToolInputSchema"),
        (r"image\.source$", "ImageSource"),
        (r"document\.source$", "DocumentSource"),
        (r"video\.source$", "VideoSource"),
    )
]


def validation_error(message: str, kind: str = "ValidationException") -> ApiError:
    return ApiError(400, message, kind)


def find_mismatch_error(broken: BrokenRule) -> ApiError | None:
    """Return the error for all mismatches in this body, `None` if there are none."""
    mismatches = list(spec.find_mismatches(spec.load_types("bedrock")["ConverseRequest"], broken.body))
    for mismatch in mismatches:
        if mismatch.kind == "type" and mismatch.value is not None:
            return validation_error(_serialization_message(mismatch), "SerializationException")
    constraints = [message for mismatch in mismatches if (message := _constraint_message(mismatch))]
    if constraints:
        return constraints_error(constraints)
    return next(
        (
            validation_error(message)
            for message in (*map(_content_message, mismatches), *_check_open_objects(broken.body))
            if message
        ),
        None,
    )


def constraints_error(constraints: Sequence[str]) -> ApiError:
    count = "1 validation error" if len(constraints) == 1 else f"{len(constraints)} validation errors"
    return validation_error(f"{count} detected: {'; '.join(constraints)}")


def constraint_message(place: str, requirement: str, shown: str = "") -> str:
    return f"Value{shown} at '{place}' failed to satisfy constraint: Member must {requirement}"


def _serialization_message(mismatch: spec.Mismatch) -> str:
    value, kind = mismatch.value, mismatch.spec.kind
    element = mismatch.path.endswith("]")
    if kind in ("object", "map"):
        if is_list(value):
            return "Unrecognized collection type"
        return "Unexpected value type in payload" if element else "Unexpected field type"
    if is_object(value):
        return "Start of structure or map found where not expected"
    if kind == "list":
        return "Unexpected field type"
    named = _CLASSES.get(kind, "Object")
    if is_list(value):
        package = "java.nio" if kind == "bytes" else "java.lang"
        return f"Unrecognized collection type class {package}.{named}"
    if kind == "bytes":
        return "only base-64-encoded strings are convertible to bytes"
    if kind == "boolean" and isinstance(value, str):
        return "Unexpected token received from parser"
    return f"{_token_name(value)} cannot be converted to {named}"


def _token_name(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE_VALUE" if value else "FALSE_VALUE"
    if isinstance(value, str):
        return "STRING_VALUE"
    return "NUMBER_VALUE" if isinstance(value, int) else "DECIMAL_VALUE"


def _constraint_message(mismatch: spec.Mismatch) -> str:
    requirement = _requirement(mismatch)
    if not requirement:
        return ""
    place = _STEP.sub(lambda step: f".{int(step[1]) + 1}.member", mismatch.path)
    shown = "" if mismatch.path.startswith(_UNSHOWN) else f" {_format_value(mismatch)}"
    return constraint_message(place, requirement, shown)


def _requirement(mismatch: spec.Mismatch) -> str:
    bounds = mismatch.spec
    match mismatch.kind:
        case "missing":
            return "not be null"
        case "type":
            # Null counts as missing.
            return "not be null"
        case "value":
            return f"satisfy enum value set: [{', '.join(bounds.values)}]"
        case "short" | "long":
            what = "value" if bounds.kind in ("integer", "number") else "length"
            side, bound = ("greater", bounds.minimum) if mismatch.kind == "short" else ("less", bounds.maximum)
            return f"have {what} {side} than or equal to {bound}"
        case "pattern":
            return f"satisfy regular expression pattern: {bounds.pattern}"
        case _:
            return ""


def _format_value(mismatch: spec.Mismatch) -> str:
    value = mismatch.value
    if mismatch.kind == "missing" or value is None:
        return "null"
    if isinstance(value, int | float) and mismatch.spec.kind == "number":
        return f"'{float(value)}'"
    return f"'{value if isinstance(value, str | int | float) else json.dumps(value, default=str)}'"


def _content_message(mismatch: spec.Mismatch) -> str:
    """Return the text for missing or surplus members of a union or closed object."""
    match mismatch.kind:
        case "none":
            return _one_key_message(mismatch.path, mismatch.spec.members, "one")
        case "several":
            return _one_key_message(mismatch.path, mismatch.spec.members, "only one")
        case "unknown" if mismatch.spec.exactly_one:
            return _one_key_message(mismatch.path.removesuffix(f".{mismatch.key}"), mismatch.spec.members, "one")
        case "unknown":
            above = mismatch.path[: -len(mismatch.key)].removesuffix(".")
            pointer = "/".join(["#", *_dotted(above).split(".")]) if above else "#"
            problem = f"{pointer}: extraneous key [{mismatch.key}] is not permitted"
            return f"Malformed input request: {problem}, please reformat your input and try again."
        case _:
            return ""


def _one_key_message(path: str, members: Mapping[str, object], how_many: str) -> str:
    name = next((name for pattern, name in _UNIONS if pattern.search(path)), "Union")
    return f"{name} object at {_dotted(path)} must set {how_many} of the following keys: {', '.join(members)}."


def _dotted(path: str) -> str:
    return _STEP.sub(r".\1", path)


def _check_open_objects(body: Mapping[str, object]) -> Iterator[str]:
    """Yield texts for values that the model does not restrict and the service requires to be objects."""
    for path, value in _documents(body):
        if not is_object(value):
            message = f"The format of the value at {path} is invalid."
            yield f"{message} Provide a json object for the field and try again."


def _documents(body: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for at, message in enumerate(list_or_empty(body.get("messages"))):
        for position, block in enumerate(list_or_empty(member(message, "content"))):
            call = member(block, "toolUse")
            if is_object(call) and "input" in call:
                yield f"messages.{at}.content.{position}.toolUse.input", call["input"]
    for at, tool in enumerate(list_or_empty(member(body.get("toolConfig"), "tools"))):
        schema = member(member(tool, "toolSpec"), "inputSchema")
        if is_object(schema) and "json" in schema:
            yield f"toolConfig.tools.{at}.toolSpec.inputSchema.json", schema["json"]
    if "additionalModelRequestFields" in body:
        yield "additionalModelRequestFields", body["additionalModelRequestFields"]

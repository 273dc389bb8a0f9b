"""The error texts of Converse for a body that does not match its service model.

A value of a wrong type gives a SerializationException without a path. Otherwise all broken constraints are in one
message, with indexes from one (`messages.2.member.content`). The members of blocks are checked last, with indexes from
zero. Values inside messages, system and tools are never shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from segue.conformance import form
from segue.conformance.bedrock.shape import REQUEST
from segue.conformance.values import is_list, is_object
from segue.emulator.wording.fault import Fault
from segue.wire.base import ApiError

__all__ = ["entries", "misshapen", "refused"]

_STEP = re.compile(r"\[(\d+)\]")
_SECRET = ("messages", "system", "toolConfig", "promptVariables")
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


def refused(message: str, kind: str = "ValidationException") -> ApiError:
    return ApiError(400, message, kind)


def misshapen(fault: Fault) -> ApiError | None:
    """Returns the error for all mismatches in this body, `None` if there are none."""
    found = list(form.faults(REQUEST, fault.body))
    for wrong in found:
        if wrong.wrong == "type" and wrong.value is not None:
            return refused(_unreadable(wrong), "SerializationException")
    constraints = [message for wrong in found if (message := _constraint(wrong))]
    if constraints:
        count = "1 validation error" if len(constraints) == 1 else f"{len(constraints)} validation errors"
        return refused(f"{count} detected: {'; '.join(constraints)}")
    return next((refused(message) for message in (*map(_content, found), *_open_objects(fault.body)) if message), None)


def _unreadable(wrong: form.Fault) -> str:
    value, kind = wrong.value, wrong.form.kind
    element = wrong.path.endswith("]")
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
    return f"{_token(value)} cannot be converted to {named}"


def _token(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE_VALUE" if value else "FALSE_VALUE"
    if isinstance(value, str):
        return "STRING_VALUE"
    return "NUMBER_VALUE" if isinstance(value, int) else "DECIMAL_VALUE"


def _constraint(wrong: form.Fault) -> str:
    must = _must(wrong)
    if not must:
        return ""
    place = _STEP.sub(lambda step: f".{int(step[1]) + 1}.member", wrong.path)
    shown = "" if wrong.path.startswith(_SECRET) else f" {_value(wrong)}"
    return f"Value{shown} at '{place}' failed to satisfy constraint: Member must {must}"


def _must(wrong: form.Fault) -> str:
    bounds = wrong.form
    match wrong.wrong:
        case "missing":
            return "not be null"
        case "type":
            # Null counts as missing.
            return "not be null"
        case "value":
            return f"satisfy enum value set: [{', '.join(bounds.values)}]"
        case "short" | "long":
            what = "value" if bounds.kind in ("integer", "number") else "length"
            side, bound = ("greater", bounds.least) if wrong.wrong == "short" else ("less", bounds.most)
            return f"have {what} {side} than or equal to {bound}"
        case "pattern":
            return f"satisfy regular expression pattern: {bounds.pattern}"
        case _:
            return ""


def _value(wrong: form.Fault) -> str:
    value = wrong.value
    if wrong.wrong == "missing" or value is None:
        return "null"
    if isinstance(value, int | float) and wrong.form.kind == "number":
        return f"'{float(value)}'"
    return f"'{value if isinstance(value, str | int | float) else json.dumps(value, default=str)}'"


def _content(wrong: form.Fault) -> str:
    """Returns the text for missing or surplus members of a union or closed object."""
    match wrong.wrong:
        case "none":
            return _one_of(wrong.path, wrong.form.members, "one")
        case "several":
            return _one_of(wrong.path, wrong.form.members, "only one")
        case "unknown" if wrong.form.union:
            return _one_of(wrong.path.removesuffix(f".{wrong.key}"), wrong.form.members, "one")
        case "unknown":
            above = wrong.path[: -len(wrong.key)].removesuffix(".")
            pointer = "/".join(["#", *_dotted(above).split(".")]) if above else "#"
            found = f"{pointer}: extraneous key [{wrong.key}] is not permitted"
            return f"Malformed input request: {found}, please reformat your input and try again."
        case _:
            return ""


def _one_of(path: str, members: Mapping[str, object], how_many: str) -> str:
    name = next((name for pattern, name in _UNIONS if pattern.search(path)), "Union")
    return f"{name} object at {_dotted(path)} must set {how_many} of the following keys: {', '.join(members)}."


def _dotted(path: str) -> str:
    return _STEP.sub(r".\1", path)


def _open_objects(body: Mapping[str, object]) -> Iterator[str]:
    """Yields texts for values that the model leaves open and the service requires to be objects."""
    for path, value in _documents(body):
        if not is_object(value):
            message = f"The format of the value at {path} is invalid."
            yield f"{message} Provide a json object for the field and try again."


def _documents(body: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for at, message in enumerate(entries(body.get("messages"))):
        for position, block in enumerate(entries(_member(message, "content"))):
            call = _member(block, "toolUse")
            if is_object(call) and "input" in call:
                yield f"messages.{at}.content.{position}.toolUse.input", call["input"]
    for at, tool in enumerate(entries(_member(body.get("toolConfig"), "tools"))):
        schema = _member(_member(tool, "toolSpec"), "inputSchema")
        if is_object(schema) and "json" in schema:
            yield f"toolConfig.tools.{at}.toolSpec.inputSchema.json", schema["json"]
    if "additionalModelRequestFields" in body:
        yield "additionalModelRequestFields", body["additionalModelRequestFields"]


def entries(value: object) -> Sequence[object]:
    """Returns the list itself, and an empty one for everything else."""
    return value if is_list(value) else ()


def _member(value: object, key: str) -> object:
    return value.get(key) if is_object(value) else None

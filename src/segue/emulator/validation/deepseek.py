"""Body validation of DeepSeek: the JSON deserializer reports types, the service ranges."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.deepseek import SPEC
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation.openai_errors import find_functions, validate_parameters
from segue.emulator.validation.tool_choice import undeclared_choice
from segue.specs.types import Mismatch, Spec, find_mismatches
from segue.wire.base import ApiError

_CODE = "invalid_request_error"
_RANGES = {
    "temperature": "[0, 2.0]",
    "top_p": "(0, 1.0]",
    "max_tokens": "[1, 393216]",
    "max_completion_tokens": "[1, 393216]",
    "presence_penalty": "[-2.0, 2.0]",
    "frequency_penalty": "[-2.0, 2.0]",
    "top_logprobs": "[0, 20]",
    "n": "[1, 1]",
}
_EXPECTED = {
    "string": "a string",
    "integer": "u32",
    "number": "f32",
    "boolean": "a boolean",
    "list": "a sequence",
}
_NESTED_PATH = re.compile(r"(messages\[\d+\]|tools\[\d+\])\..+")


def _error(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _describe_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{json.dumps(value)}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{value}`"
        case str():
            return f"string {json.dumps(value, ensure_ascii=False)}"
        case list() | tuple():
            return "sequence"
        case _:
            return "map"


def _describe_expected(spec: Spec, path: str) -> str:
    if spec.kind == "object":
        return "internally tagged enum ChatCompletionRequestMessage" if "messages" in path else "a map"
    return _EXPECTED.get(spec.kind, "a string")


def _describe_mismatch(mismatch: Mismatch) -> str:
    place = _NESTED_PATH.sub(r"\1", mismatch.path)
    match mismatch.kind:
        case "missing":
            return f"{place}: missing field `{mismatch.key}`"
        case "choice" | "value":
            known = [f"`{name}`" for name in mismatch.spec.variants or mismatch.spec.values]
            expected = known[0] if len(known) == 1 else f"one of {', '.join(known)}"
            where = mismatch.path if mismatch.path.endswith(".role") else place
            return f"{where}: unknown variant `{mismatch.value}`, expected {expected}"
        case _ if mismatch.path.endswith(".content"):
            return f"{place}: data did not match any variant of untagged enum ChatCompletionRequestContent"
        case _:
            expected = _describe_expected(mismatch.spec, mismatch.path)
            return f"{place}: invalid type: {_describe_value(mismatch.value)}, expected {expected}"


def validate(body: Mapping[str, Any], http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch with its line and column, `None` if the body is valid."""
    data = http_request.body
    for mismatch in find_mismatches(SPEC, body):
        if mismatch.kind in ("short", "long"):
            known = _RANGES.get(mismatch.path)
            rest = f", the valid range of {mismatch.path} is {known}" if known else ""
            return _error(f"Invalid {mismatch.path} value{rest}")
        lines = data.rstrip().split(b"\n")
        place = f"line {len(lines)} column {len(lines[-1])}"
        return _error(
            f"Failed to deserialize the JSON body into the target type: {_describe_mismatch(mismatch)} at {place}"
        )
    if body.get("messages") == []:
        return _error("Empty input messages")
    for _, function in find_functions(body):
        if function.get("parameters") is not None:
            error = validate_parameters("", function.get("name"), function["parameters"])
            if error is not None:
                return _error(error.message)
    undeclared = undeclared_choice(body) if body.get("tools") else None
    return None if undeclared is None else _error(f"The tool '{undeclared}' in tool_choice is not found in tools")

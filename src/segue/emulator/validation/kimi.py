"""Body validation of Moonshot, in the style of its other errors; the exact texts are not known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.kimi import SPEC
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation.openai_errors import find_functions, validate_parameters
from segue.emulator.validation.tool_choice import undeclared_choice
from segue.specs.types import Mismatch, find_mismatches
from segue.wire.base import ApiError

_KINDS = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean", "list": "a list"}
_MESSAGE = re.compile(r"messages\[(\d+)\]")


def _error(message: str) -> ApiError:
    return ApiError(400, f"Invalid request: {message}")


def _mismatch_error(mismatch: Mismatch, body: Mapping[str, Any]) -> ApiError:
    found = _MESSAGE.match(mismatch.path)
    at = int(found[1]) if found else 0
    match mismatch.kind:
        case "choice" if mismatch.path.endswith(".role"):
            return _error(f"unsupported role '{mismatch.value}' in the message at position {at}")
        case "choice" if found:
            role = body["messages"][at]["role"]
            return _error(f"unsupported content type '{mismatch.value}' in message with role '{role}'")
        case "choice":
            return _error(f"unsupported tool type '{mismatch.value}'")
        case "missing":
            return _error(f"{mismatch.path} is required")
        case "short" | "long":
            return _error(f"invalid {mismatch.path}: {mismatch.value}")
        case _ if mismatch.spec.any_of:
            return _error(f"{mismatch.path} must be a string or a list")
        case _:
            return _error(f"{mismatch.path} must be {_KINDS.get(mismatch.spec.kind, 'an object')}")


def validate(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    for mismatch in find_mismatches(SPEC, body):
        return _mismatch_error(mismatch, body)
    if body.get("messages") == []:
        return _error("messages must not be empty")
    for _, function in find_functions(body):
        if function.get("parameters") is not None:
            error = validate_parameters("", function.get("name"), function["parameters"])
            if error is not None:
                return _error(error.message[:1].lower() + error.message[1:])
    undeclared = undeclared_choice(body)
    return None if undeclared is None else _error(f"tool_choice: tool {undeclared} is not found in tools")

"""Body validation of DashScope: schema errors in the format of JSON Schema, others with its own prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.body_types import is_integral_float
from segue.conformance.qwen import SPEC
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation.json_schema import format_value
from segue.emulator.validation.openai_errors import find_functions, validate_parameters
from segue.emulator.validation.tool_choice import undeclared_choice
from segue.specs.types import Mismatch, find_mismatches
from segue.wire.base import ApiError

_CODE = "invalid_parameter_error"
_PREFIX = "<400> InternalError.Algo.InvalidParameter: "
_LISTED_PARTS = ("text", "image_url", "video_url", "video")
_KINDS = {"list": "array", "map": "object", "any": "object"}


def _error(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _dotted(path: str) -> str:
    return path.replace("[", ".").replace("]", "")


def _mismatch_error(mismatch: Mismatch) -> ApiError:
    place, value, spec = _dotted(mismatch.path), format_value(mismatch.value), mismatch.spec
    match mismatch.kind:
        case "missing":
            return _error(f"'{mismatch.key}' is a required property - '{place.rpartition('.')[0]}'")
        case "choice" if ".content." in place:
            *most, last = (f"'{name}'" for name in _LISTED_PARTS)
            return _error(f"Invalid value: {mismatch.value}. Supported values are: {','.join(most)} and {last}.")
        case "choice" | "value":
            known = list(spec.variants or spec.values)
            return _error(f"{value} is not one of {known} - '{place}'")
        case "short" | "long":
            bounds = (
                f"[{spec.minimum:g}, {spec.maximum:g}]" if spec.maximum is not None else f"[{spec.minimum:g}, 65536]"
            )
            return _error(f"{_PREFIX}Range of {place} should be {bounds}")
        case _ if spec.any_of:
            return _error(f"{value} is not valid under any of the given schemas - '{place}'")
        case _:
            return _error(f"{value} is not of type '{_KINDS.get(spec.kind, spec.kind)}' - '{place}'")


def validate(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    for mismatch in find_mismatches(SPEC, body):
        if is_integral_float(mismatch):
            continue
        return _mismatch_error(mismatch)
    for _, function in find_functions(body):
        if function.get("parameters") is not None:
            error = validate_parameters("", function.get("name"), function["parameters"])
            if error is not None:
                return _error(_PREFIX + error.message)
    undeclared = undeclared_choice(body)
    return None if undeclared is None else _error(f"{_PREFIX}The tool '{undeclared}' in tool_choice is not in tools.")

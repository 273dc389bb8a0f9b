"""OpenAI's error texts for values that do not match the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.values import is_list, is_object
from segue.emulator.errors.openai_style import invalid_choice_error, kind_name, type_name
from segue.emulator.json_values import object_or_none, objects_in
from segue.emulator.validation.json_schema import find_schema_error, format_value
from segue.specs.types import Mismatch
from segue.wire.base import ApiError


def missing_error(path: str) -> ApiError:
    message = f"Missing required parameter: '{path}'."
    return ApiError(400, message, code="missing_required_parameter", param=path)


def type_error(path: str, expected: str, value: object) -> ApiError:
    message = f"Invalid type for '{path}': expected {expected}, but got {type_name(value)} instead."
    return ApiError(400, message, code="invalid_type", param=path)


def _bounds_error(mismatch: Mismatch) -> ApiError:
    path, value, spec = mismatch.path, mismatch.value, mismatch.spec
    below = mismatch.kind == "short"
    bound = spec.minimum if below else spec.maximum
    if isinstance(value, int | float):
        noun = "integer" if spec.kind == "integer" else "decimal"
        side, sign = ("below minimum", ">=") if below else ("above maximum", "<=")
        message = f"{noun} {side} value. Expected a value {sign} {bound:g}, but got {value} instead."
        code = f"{noun}_{'below_min' if below else 'above_max'}_value"
        return ApiError(400, f"Invalid '{path}': {message}", code=code, param=path)
    noun, article = ("string", "a") if isinstance(value, str) else ("array", "an")
    size = len(value) if isinstance(value, str) or is_list(value) or is_object(value) else 0
    if below and not size:
        message = (
            f"empty {noun}. Expected {article} {noun} with minimum length {bound:g}, but got an empty {noun} instead."
        )
        return ApiError(400, f"Invalid '{path}': {message}", code=f"empty_{noun}", param=path)
    side, most = ("short", "minimum") if below else ("long", "maximum")
    message = (
        f"Expected {article} {noun} with {most} length {bound:g}, but got {article} {noun} with length {size} instead."
    )
    code = f"{noun}_{'below_min' if below else 'above_max'}_length"
    return ApiError(400, f"Invalid '{path}': {noun} too {side}. {message}", code=code, param=path)


def mismatch_error(mismatch: Mismatch) -> ApiError:
    """Return the error for one mismatch. Unknown members of the body are reported by each endpoint itself."""
    match mismatch.kind:
        case "missing":
            return missing_error(mismatch.path)
        case "type":
            return type_error(mismatch.path, kind_name(mismatch.spec), mismatch.value)
        case "value":
            return invalid_choice_error(mismatch.path, mismatch.value, mismatch.spec.values)
        case "choice":
            return invalid_choice_error(mismatch.path, mismatch.value, tuple(mismatch.spec.variants))
        case "short" | "long":
            return _bounds_error(mismatch)
        case _:
            message = f"Unknown parameter: '{mismatch.path}'."
            return ApiError(400, message, code="unknown_parameter", param=mismatch.path)


def validate_parameters(path: str, name: object, schema: Any) -> ApiError | None:
    """Return the error for parameters that are not the schema of an object, `None` if they are."""
    mismatch = find_schema_error(schema)
    if mismatch is None:
        kind = schema.get("type") if is_object(schema) else None
        if kind == "object" or schema == {}:
            return None
        mismatch = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'"
    message = f"Invalid schema for function '{name if isinstance(name, str) else format_value(name)}': {mismatch}."
    return ApiError(400, message, code="invalid_function_parameters", param=path)


def unknown_arguments_error(names: list[str]) -> ApiError:
    """Return the error of Chat Completions for unknown members."""
    noun = "argument" if len(names) == 1 else "arguments"
    return ApiError(400, f"Unrecognized request {noun} supplied: {', '.join(names)}")


def find_functions(body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the declared functions with their paths."""
    found = [object_or_none(tool.get("function")) for tool in objects_in(body.get("tools"))]
    return [(f"tools[{index}].function", function) for index, function in enumerate(found) if function is not None]

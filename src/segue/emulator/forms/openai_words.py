"""OpenAI's error texts for values that do not match the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.form import Fault, Form
from segue.conformance.values import is_list, is_object
from segue.emulator.forms.schemas import schema_fault, shown
from segue.emulator.json import object_or_none, objects
from segue.emulator.wording.openai_style import choices, kind_of
from segue.wire.base import ApiError

__all__ = ["bad_function", "missing", "mistyped", "told"]

_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a decimal",
    "boolean": "a boolean",
    "object": "an object",
    "map": "an object",
    "any": "an object",
}


def _kind(form: Form) -> str:
    if form.either:
        first, *others = [_kind(option) for option in form.either]
        bare = [other.removeprefix("an ").removeprefix("a ") for other in others]
        return f"one of {', '.join([first, *bare[:-1]])} or {bare[-1]}"
    if form.kind == "list":
        return f"an array of {'objects' if form.each is None or form.each.kind != 'string' else 'strings'}"
    return _KINDS.get(form.kind, "an object")


def missing(path: str) -> ApiError:
    message = f"Missing required parameter: '{path}'."
    return ApiError(400, message, code="missing_required_parameter", param=path)


def mistyped(path: str, expected: str, value: object) -> ApiError:
    message = f"Invalid type for '{path}': expected {expected}, but got {kind_of(value)} instead."
    return ApiError(400, message, code="invalid_type", param=path)


def _out_of_bounds(fault: Fault) -> ApiError:
    path, value, form = fault.path, fault.value, fault.form
    below = fault.wrong == "short"
    bound = form.least if below else form.most
    if isinstance(value, int | float):
        noun = "integer" if form.kind == "integer" else "decimal"
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


def told(fault: Fault) -> ApiError:
    """Returns the error for one mismatch. Unknown members of the body are reported by each endpoint itself."""
    match fault.wrong:
        case "missing":
            return missing(fault.path)
        case "type":
            return mistyped(fault.path, _kind(fault.form), fault.value)
        case "value":
            return choices(fault.path, fault.value, fault.form.values)
        case "choice":
            return choices(fault.path, fault.value, tuple(fault.form.choices))
        case "short" | "long":
            return _out_of_bounds(fault)
        case _:
            message = f"Unknown parameter: '{fault.path}'."
            return ApiError(400, message, code="unknown_parameter", param=fault.path)


def bad_function(path: str, name: object, schema: Any) -> ApiError | None:
    """Returns the error for parameters that are not the schema of an object, `None` if they are."""
    fault = schema_fault(schema)
    if fault is None:
        kind = schema.get("type") if is_object(schema) else None
        if kind == "object" or schema == {}:
            return None
        fault = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'"
    message = f"Invalid schema for function '{name if isinstance(name, str) else shown(name)}': {fault}."
    return ApiError(400, message, code="invalid_function_parameters", param=path)


def unknown(names: list[str]) -> ApiError:
    """Returns the error of Chat Completions for unknown members."""
    noun = "argument" if len(names) == 1 else "arguments"
    return ApiError(400, f"Unrecognized request {noun} supplied: {', '.join(names)}")


def functions(body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns the declared functions with their paths."""
    found = [object_or_none(tool.get("function")) for tool in objects(body.get("tools"))]
    return [(f"tools[{index}].function", function) for index, function in enumerate(found) if function is not None]

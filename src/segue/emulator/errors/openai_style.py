"""OpenAI's error texts for the schema and the conversation, which other vendors have partly adopted.

`mismatch_error` has the texts of the schema. A rule's error builder finds the mismatch of the value at the path of the
broken rule, so that one table row covers every error of a value: it is missing, of another type, too short, too long,
or does not match the pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from segue.conformance.rule import Violation
from segue.conformance.values import is_list, is_object, text_or_empty
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, member, parse_path
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import Mismatch, MismatchKind, Spec
from segue.wire.base import ApiError

OBJECTS = "an array of objects"
TEXT_OR_OBJECTS = "one of a string or array of objects"
NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
_LONGEST_SHOWN = 64
_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a decimal",
    "boolean": "a boolean",
    "object": "an object",
    "map": "an object",
    "any": "an object",
}


class ValueSpec(Struct, frozen=True):
    """The schema of a value: a type with its article, and bounds."""

    kind: str = "a string"
    minimum: int | None = None
    maximum: int | None = None
    pattern: str = ""
    values: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------------ values and text


def type_name(value: object) -> str:
    """Return the service's name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


def kind_name(spec: Spec) -> str:
    """Return the service's name of the type of a spec."""
    if spec.any_of:
        first, *others = [kind_name(option) for option in spec.any_of]
        bare = [other.removeprefix("an ").removeprefix("a ") for other in others]
        return f"one of {', '.join([first, *bare[:-1]])} or {bare[-1]}"
    if spec.kind == "list":
        return f"an array of {'objects' if spec.items is None or spec.items.kind != 'string' else 'strings'}"
    return _KINDS.get(spec.kind, "an object")


def join_and(values: Sequence[str]) -> str:
    """`'a'`, `'a' and 'b'`, or `'a', 'b', and 'c'`."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def shorten(value: object) -> str:
    """Format a value for a message; a long one by its two ends."""
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:3]}...{text[-3:]}"


def error_with_values(
    make_message: Callable[[BrokenRule], str], *, status: int = 400, param: str | None = None, code: str | None = None
) -> ErrorBuilder:
    """Return an error builder whose message contains values of the body."""
    return lambda broken: ApiError(status, make_message(broken), code=code, param=param)


# -------------------------------------------------------------------------------------------------------------- schema


def _rule_at(broken: BrokenRule, path: str) -> BrokenRule:
    """Return the broken rule in the same body with another path."""
    return replace(broken, violations=(Violation("", path, "", "reject"),))


def _join_path(steps: Sequence[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def is_missing(broken: BrokenRule) -> bool:
    """Return whether the path does not exist; null counts as existing."""
    *before, last = broken.steps or ("",)
    holder = broken.value_at(*before)
    return not is_object(holder) or last not in holder


def _find_wrong_parent(broken: BrokenRule) -> tuple[str, object, bool] | None:
    """Return path and value of the first parent that is not an object, and whether it is missing."""
    steps = broken.steps
    for depth in range(1, len(steps)):
        if isinstance(steps[depth], int):
            continue
        above = _rule_at(broken, _join_path(steps[:depth]))
        if not is_object(above.value):
            return above.path, above.value, isinstance(steps[depth - 1], str) and is_missing(above)
    return None


def missing_error(path: str) -> ApiError:
    return ApiError(400, f"Missing required parameter: '{path}'.", code="missing_required_parameter", param=path)


def missing_field_error(name: str, _http_request: HttpRequest, _body: Mapping[str, Any]) -> ApiError:
    return missing_error(name)


def _type_error(path: str, kind: str, value: object) -> ApiError:
    message = f"Invalid type for '{path}': expected {kind}, but got {type_name(value)} instead."
    return ApiError(400, message, code="invalid_type", param=path)


def invalid_choice_error(path: str, value: object, values: Sequence[str]) -> ApiError:
    """Return the error for a value that is not one of the supported ones."""
    message = f"Invalid value: '{shorten(value)}'. Supported values are: {join_and(values)}."
    return ApiError(400, message, code="invalid_value", param=path)


def unknown_parameter_error(path: str) -> ApiError:
    return ApiError(400, f"Unknown parameter: '{path}'.", code="unknown_parameter", param=path)


def mismatch_error(mismatch: Mismatch) -> ApiError:
    """Return the error for one mismatch. Unknown members of the body are reported by each endpoint itself."""
    path, value, spec = mismatch.path, mismatch.value, mismatch.spec
    match mismatch.kind:
        case "missing":
            return missing_error(path)
        case "type":
            return _type_error(path, kind_name(spec), value)
        case "value" | "choice":
            return invalid_choice_error(path, value, spec.values or tuple(spec.variants))
        case "short" | "long":
            return _bounds_error(path, mismatch.kind, value, spec)
        case "pattern":
            message = f"string does not match pattern. Expected a string that matches the pattern '{spec.pattern}'."
            return ApiError(400, f"Invalid '{path}': {message}", code="invalid_value", param=path)
        case _:
            return unknown_parameter_error(path)


def _bounds_error(path: str, kind: MismatchKind, value: Any, spec: Spec) -> ApiError:
    below = kind == "short"
    bound = spec.minimum if below else spec.maximum
    if isinstance(value, int | float):
        noun = "integer" if spec.kind == "integer" else "decimal"
        side, sign = ("below minimum", ">=") if below else ("above maximum", "<=")
        message = f"{noun} {side} value. Expected a value {sign} {bound:g}, but got {value} instead."
        code = f"{noun}_{'below_min' if below else 'above_max'}_value"
        return ApiError(400, f"Invalid '{path}': {message}", code=code, param=path)
    noun, article = ("string", "a") if isinstance(value, str) else ("array", "an")
    if below and not _size(value):
        message = f"Expected {article} {noun} with minimum length {bound}, but got an empty {noun} instead."
        return ApiError(400, f"Invalid '{path}': empty {noun}. {message}", code=f"empty_{noun}", param=path)
    side, most = ("short", "minimum") if below else ("long", "maximum")
    message = (
        f"Expected {article} {noun} with {most} length {bound}, but got {article} {noun} with length {_size(value)}"
    )
    code = f"{noun}_{'below_min' if below else 'above_max'}_length"
    return ApiError(400, f"Invalid '{path}': {noun} too {side}. {message} instead.", code=code, param=path)


def empty_array_error(path: str) -> ApiError:
    return mismatch_error(Mismatch(path, "short", Spec(minimum=1), ()))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) or is_list(value) or is_object(value) else 0


def _has_type(value: object, kind: str) -> bool:
    seen = type_name(value).split(" ")[-1]
    return seen in kind.replace("objects", "").split() or (seen == "integer" and "number" in kind)


def schema_error(broken: BrokenRule, spec: ValueSpec) -> ApiError:
    """Return the schema's error for the value at the path."""
    above = _find_wrong_parent(broken)
    if above is not None:
        path, value, missing = above
        return missing_error(path) if missing else _type_error(path, "an object", value)
    path, value = broken.path, broken.value
    if is_missing(broken) and broken.steps and isinstance(broken.steps[-1], str):
        return missing_error(path)
    if not _has_type(value, spec.kind):
        return _type_error(path, spec.kind, value)
    if spec.values and value not in spec.values:
        return invalid_choice_error(path, value, spec.values)
    bounds = Spec(minimum=spec.minimum, maximum=spec.maximum, pattern=spec.pattern)
    if spec.minimum and not _size(value):
        return mismatch_error(Mismatch(path, "short", bounds, value))
    if spec.maximum is not None and _size(value) > spec.maximum:
        return mismatch_error(Mismatch(path, "long", bounds, value))
    if spec.pattern:
        return mismatch_error(Mismatch(path, "pattern", bounds, value))
    return ApiError(400, f"Invalid value for '{path}'.", code="invalid_value", param=path)


def spec_error(
    kind: str = "a string",
    minimum: int | None = None,
    maximum: int | None = None,
    pattern: str = "",
    values: tuple[str, ...] = (),
) -> ErrorBuilder:
    """Return an error builder for a value with one spec."""
    spec = ValueSpec(kind, minimum, maximum, pattern, values)
    return lambda broken: schema_error(broken, spec)


# -------------------------------------------------------------------------------------------------------- conversations


def find_message(broken: BrokenRule) -> Mapping[str, Any]:
    message = broken.value_at(broken.steps[0] if broken.steps else "", broken.message_index)
    return message if is_object(message) else {}


def _messages(broken: BrokenRule) -> Sequence[Any]:
    messages = broken.value_at("messages")
    return messages if is_list(messages) else ()


def _call_message_index(broken: BrokenRule) -> int:
    """Return the index of the assistant message with calls at or before the path."""
    messages = _messages(broken)
    for index in range(min(broken.message_index, len(messages) - 1), -1, -1):
        if member(messages[index], "role") == "assistant" and member(messages[index], "tool_calls"):
            return index
    return broken.message_index


def _result_messages(broken: BrokenRule) -> Iterator[Any]:
    """Yield the tool messages directly after that assistant message."""
    for message in _messages(broken)[_call_message_index(broken) + 1 :]:
        if member(message, "role") != "tool":
            return
        yield message


def expected_result_index(broken: BrokenRule) -> int:
    """Return the index of the message at the position of the expected result, or the last index."""
    messages = _messages(broken)
    return max(0, min(_call_message_index(broken) + 1 + len(list(_result_messages(broken))), len(messages) - 1))


def unanswered_call_ids(broken: BrokenRule) -> str:
    """Return the ids of the calls without a result, comma-separated: those of the violations, or all open ones if
    another message is between the results."""
    if "tool_calls" in broken.steps:
        there = [parse_path(violation.path)[:4] for violation in broken.violations]
        ids = [
            broken.value_at(*steps, "id") for steps in there if steps[:2] == broken.steps[:2] and "tool_calls" in steps
        ]
    else:
        calls = member(broken.value_at("messages", _call_message_index(broken)), "tool_calls")
        answered = [member(result, "tool_call_id") for result in _result_messages(broken)]
        ids = [member(call, "id") for call in (calls if is_list(calls) else ())]
        ids = [name for name in ids if name not in answered]
    return ", ".join(text_or_empty(name) for name in ids)

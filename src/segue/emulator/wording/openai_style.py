"""OpenAI's error texts for the schema and the conversation, which other vendors have partly adopted.

An error builder inspects the value at the path of the breach, so that one table row covers every error of a value: it
is missing, of another type, too short, too long, or does not match the pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from segue.conformance.rule import Violation
from segue.conformance.values import is_list, is_object
from segue.emulator.wording.fault import Fault, Word
from segue.wire.base import ApiError

__all__ = [
    "NAME",
    "Want",
    "ask",
    "at_end_of",
    "call_ids_wanting",
    "choices",
    "either",
    "found_in",
    "index_of",
    "is_missing",
    "kind_of",
    "message_of",
    "plain",
    "said",
    "schema_error",
    "shown",
    "steps_of",
    "unknown_parameter",
    "wanted",
]

NAME = "^[a-zA-Z0-9_-]+$"
_LONGEST_SHOWN = 64


class Want(Struct, frozen=True):
    """The schema of a value: a type with its article, and bounds."""

    kind: str = "a string"
    least: int | None = None
    most: int | None = None
    pattern: str = ""
    values: tuple[str, ...] = ()


# ----------------------------------------------------------------------------------------------------- values and words


def kind_of(value: object) -> str:
    """Returns the service's name of a value's type."""
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


def either(values: Sequence[str]) -> str:
    """`'a'`, `'a' and 'b'`, or `'a', 'b', and 'c'`."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def shown(value: object) -> str:
    """Formats a value for a message; a long one by its two ends."""
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:3]}...{text[-3:]}"


def said(value: object) -> str:
    """Returns the string itself, and `""` for everything else."""
    return value if isinstance(value, str) else ""


def plain(message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Word:
    """Returns an error builder with a fixed message."""
    return lambda _: ApiError(status, message, code=code, param=param)


def ask(make: Callable[[Fault], str], *, status: int = 400, param: str | None = None, code: str | None = None) -> Word:
    """Returns an error builder whose message contains values of the body."""
    return lambda fault: ApiError(status, make(fault), code=code, param=param)


# -------------------------------------------------------------------------------------------------------------- schema


def _at(fault: Fault, path: str) -> Fault:
    """Returns a breach in the same body with another path."""
    return replace(fault, violations=(Violation("", path, "", "reject"),))


def steps_of(path: str) -> tuple[str | int, ...]:
    return Fault({}, (Violation("", path, "", "reject"),)).steps


def _joined(steps: Sequence[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def is_missing(fault: Fault) -> bool:
    """True if the path does not exist; null counts as existing."""
    *before, last = fault.steps or ("",)
    holder = fault.at(*before)
    return not is_object(holder) or last not in holder


def _amiss_above(fault: Fault) -> tuple[str, object, bool] | None:
    """Returns path and value of the first parent that is not an object, and whether it is missing."""
    steps = fault.steps
    for depth in range(1, len(steps)):
        if isinstance(steps[depth], int):
            continue
        above = _at(fault, _joined(steps[:depth]))
        if not is_object(above.value):
            return above.path, above.value, isinstance(steps[depth - 1], str) and is_missing(above)
    return None


def _missing(path: str) -> ApiError:
    return ApiError(400, f"Missing required parameter: '{path}'.", code="missing_required_parameter", param=path)


def _mistyped(path: str, kind: str, value: object) -> ApiError:
    message = f"Invalid type for '{path}': expected {kind}, but got {kind_of(value)} instead."
    return ApiError(400, message, code="invalid_type", param=path)


def unknown_parameter(fault: Fault) -> ApiError:
    return ApiError(400, f"Unknown parameter: '{fault.path}'.", code="unknown_parameter", param=fault.path)


def _is(value: object, kind: str) -> bool:
    seen = kind_of(value).split(" ")[-1]
    return seen in kind.replace("objects", "").split() or (seen == "integer" and "number" in kind)


def schema_error(fault: Fault, want: Want) -> ApiError:
    """Returns the schema's error for the value at the path."""
    above = _amiss_above(fault)
    if above is not None:
        path, value, missing = above
        return _missing(path) if missing else _mistyped(path, "an object", value)
    path, value = fault.path, fault.value
    if is_missing(fault) and fault.steps and isinstance(fault.steps[-1], str):
        return _missing(path)
    if not _is(value, want.kind):
        return _mistyped(path, want.kind, value)
    if want.values and value not in want.values:
        return choices(path, value, want.values)
    return _out_of_bounds(path, value, want)


def _out_of_bounds(path: str, value: Any, want: Want) -> ApiError:
    noun, code = ("a string", "string") if isinstance(value, str) else ("an array", "array")
    size = len(value) if isinstance(value, str) or is_list(value) or is_object(value) else 0
    if want.least and not size:
        message = f"empty {code}. Expected {noun} with minimum length {want.least}, but got an empty {code} instead."
        return ApiError(400, f"Invalid '{path}': {message}", code=f"empty_{code}", param=path)
    if want.most is not None and size > want.most:
        message = f"Expected {noun} with maximum length {want.most}, but got {noun} with length {size} instead."
        return ApiError(
            400, f"Invalid '{path}': {code} too long. {message}", code=f"{code}_above_max_length", param=path
        )
    if want.pattern:
        message = f"string does not match pattern. Expected a string that matches the pattern '{want.pattern}'."
        return ApiError(400, f"Invalid '{path}': {message}", code="invalid_value", param=path)
    return ApiError(400, f"Invalid value for '{path}'.", code="invalid_value", param=path)


def choices(path: str, value: object, values: Sequence[str]) -> ApiError:
    """Returns the error for a value that is not one of the supported ones."""
    message = f"Invalid value: '{shown(value)}'. Supported values are: {either(values)}."
    return ApiError(400, message, code="invalid_value", param=path)


def wanted(
    kind: str = "a string",
    least: int | None = None,
    most: int | None = None,
    pattern: str = "",
    values: tuple[str, ...] = (),
) -> Word:
    """Returns an error builder for a value with one spec."""
    want = Want(kind, least, most, pattern, values)
    return lambda fault: schema_error(fault, want)


# -------------------------------------------------------------------------------------------------------- conversations


def index_of(fault: Fault) -> int:
    """Returns the index of the message or item in the path."""
    return next((step for step in fault.steps if isinstance(step, int)), 0)


def message_of(fault: Fault) -> Mapping[str, Any]:
    message = fault.at(fault.steps[0] if fault.steps else "", index_of(fault))
    return message if is_object(message) else {}


def _messages(fault: Fault) -> Sequence[Any]:
    messages = fault.at("messages")
    return messages if is_list(messages) else ()


def found_in(value: object, key: str) -> Any:
    return value.get(key) if is_object(value) else None


def _opener(fault: Fault) -> int:
    """Returns the index of the assistant message with calls at or before the path."""
    messages = _messages(fault)
    for index in range(min(index_of(fault), len(messages) - 1), -1, -1):
        if found_in(messages[index], "role") == "assistant" and found_in(messages[index], "tool_calls"):
            return index
    return index_of(fault)


def _run(fault: Fault) -> Iterator[Any]:
    """Yields the tool messages directly after that assistant message."""
    for message in _messages(fault)[_opener(fault) + 1 :]:
        if found_in(message, "role") != "tool":
            return
        yield message


def at_end_of(fault: Fault) -> int:
    """Returns the index of the message at the position of the expected result, or the last index."""
    messages = _messages(fault)
    return max(0, min(_opener(fault) + 1 + len(list(_run(fault))), len(messages) - 1))


def call_ids_wanting(fault: Fault) -> str:
    """Returns the ids of the calls without a result, comma-separated: those of the violations, or all open ones if
    another message is between the results."""
    if "tool_calls" in fault.steps:
        there = [steps_of(violation.path)[:4] for violation in fault.violations]
        ids = [fault.at(*steps, "id") for steps in there if steps[:2] == fault.steps[:2] and "tool_calls" in steps]
    else:
        calls = found_in(fault.at("messages", _opener(fault)), "tool_calls")
        answered = [found_in(result, "tool_call_id") for result in _run(fault)]
        ids = [found_in(call, "id") for call in (calls if is_list(calls) else ())]
        ids = [name for name in ids if name not in answered]
    return ", ".join(said(name) for name in ids)

"""Checks that a value is a draft 7 JSON Schema: each keyword has the type that the meta-schema requires.

Only the first error is returned. Unknown keywords are valid. The walk is iterative, so that deep nesting costs nothing
but memory.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from segue.conformance.values import is_list, is_object, kind, quoted

__all__ = ["draft7_fault", "pattern_fault"]

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

# The path of a value as a linked list of steps. Joined only when there is an error to report.
_Place: TypeAlias = "tuple[_Place | None, str]"
_Part: TypeAlias = "tuple[_Place, object]"


def _joined(place: _Place | None) -> str:
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return "".join(reversed(steps))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_step(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not value <= 0


def _is_names(value: object) -> bool:
    return is_list(value) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value)


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _is_names(value) and is_list(value) and bool(value) and all(name in _TYPES for name in value)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


_Test = tuple[Callable[[object], bool], str]
_NUMBER: _Test = (_is_number, "a number")
_COUNT: _Test = (_is_count, "a whole number of at least 0")
_STRING: _Test = (_is_string, "a string")
_BOOL: _Test = (_is_bool, "a boolean")
_LIST: _Test = (is_list, "a list")

_PLAIN: Mapping[str, _Test] = {
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _COUNT),
    **dict.fromkeys(("$id", "$schema", "$ref", "$comment", "title", "description"), _STRING),
    **dict.fromkeys(("pattern", "format", "contentMediaType", "contentEncoding"), _STRING),
    **dict.fromkeys(("readOnly", "uniqueItems"), _BOOL),
    **dict.fromkeys(("enum", "examples"), _LIST),
    "multipleOf": (_is_step, "a number above 0"),
    "required": (_is_names, "a list of different names"),
    "type": (_is_type, "a type of JSON Schema or a list of different ones"),
}
_SCHEMA = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then"}
)
_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf"})
_NAMED = frozenset({"definitions", "dependencies", "patternProperties", "properties"})


def _inside(place: _Place, schema: Mapping[str, object]) -> Iterator[_Part | str]:
    """Yields the subschemas of a schema, and its own errors as strings."""
    for keyword, value in schema.items():
        here: _Place = (place, f".{keyword}")
        if keyword in _PLAIN:
            test, expected = _PLAIN[keyword]
            if not test(value):
                seen = quoted(value) if isinstance(value, str) else kind(value)
                yield f"{_joined(here)} is {seen}; {expected} is expected"
        elif keyword in _SCHEMA or (keyword == "items" and not is_list(value)):
            yield here, value
        elif keyword in _SCHEMAS or keyword == "items":
            if not is_list(value) or not value:
                seen = "an empty list" if is_list(value) else kind(value)
                yield f"{_joined(here)} is {seen}; a list of schemas is expected"
            else:
                yield from (((here, f"[{index}]"), part) for index, part in enumerate(value))
        elif keyword in _NAMED:
            yield from _named(here, keyword, value)


def _named(place: _Place, keyword: str, value: object) -> Iterator[_Part | str]:
    if not is_object(value):
        yield f"{_joined(place)} is {kind(value)}; an object of schemas is expected"
        return
    for name, part in value.items():
        here: _Place = (place, f".{name}")
        if keyword != "dependencies" or not is_list(part):
            yield here, part
        elif not _is_names(part):
            yield f"{_joined(here)} is a list; {_PLAIN['required'][1]} or a schema is expected"


def _schemas(value: object) -> Iterator[_Part | str]:
    """Yields every subschema object, and the errors found on the way as strings."""
    waiting: list[_Part] = [((None, "the schema"), value)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, bool):
            continue
        if not is_object(part):
            yield f"{_joined(place)} is {kind(part)}; a schema is expected"
            continue
        yield place, part
        for found in _inside(place, part):
            if isinstance(found, str):
                yield found
            else:
                waiting.append(found)


def draft7_fault(value: object) -> str | None:
    """Returns the first error, or `None` if the value is a draft 7 schema."""
    return next((found for found in _schemas(value) if isinstance(found, str)), None)


def pattern_fault(value: object) -> str | None:
    """Returns the first pattern that Python can't compile: Mistral's validator is written in Python."""
    for found in _schemas(value):
        if isinstance(found, str) or not is_object(found[1]):
            continue
        named = found[1].get("patternProperties")
        for pattern in (found[1].get("pattern"), *(named if is_object(named) else ())):
            if isinstance(pattern, str) and not _compiles(pattern):
                return f"{_joined(found[0])} has the pattern {quoted(pattern)}"
    return None


def _compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True

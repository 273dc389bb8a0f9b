"""Checks that a value is a draft 7 JSON Schema: each keyword has the type that the meta-schema requires.

Only the first error is returned. Unknown keywords are valid. The walk is written by hand: jsonschema-rs reports an
error below `items` or `dependencies` as one of the whole keyword, and here the patterns of all subschemas are checked,
too. It is not recursive, so that deeply nested schemas can't exceed the recursion limit.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from segue.conformance.values import is_list, is_object, quote, type_name

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

# The path of a value as a linked list of steps. Joined only when there is an error to report.
_PathStep: TypeAlias = "tuple[_PathStep | None, str]"
_Located: TypeAlias = "tuple[_PathStep, object]"


def _join_path(place: _PathStep | None) -> str:
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


def _is_positive_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not value <= 0


def _is_unique_strings(value: object) -> bool:
    return is_list(value) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value)


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _is_unique_strings(value) and is_list(value) and bool(value) and all(name in _TYPES for name in value)


_Test = tuple[Callable[[object], bool], str]
_NUMBER: _Test = (_is_number, "a number")
_COUNT: _Test = (_is_count, "a whole number of at least 0")
_STRING: _Test = (lambda value: isinstance(value, str), "a string")
_BOOL: _Test = (lambda value: isinstance(value, bool), "a boolean")
_LIST: _Test = (is_list, "a list")

_KEYWORD_TESTS: Mapping[str, _Test] = {
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _COUNT),
    **dict.fromkeys(("$id", "$schema", "$ref", "$comment", "title", "description"), _STRING),
    **dict.fromkeys(("pattern", "format", "contentMediaType", "contentEncoding"), _STRING),
    **dict.fromkeys(("readOnly", "uniqueItems"), _BOOL),
    **dict.fromkeys(("enum", "examples"), _LIST),
    "multipleOf": (_is_positive_number, "a number above 0"),
    "required": (_is_unique_strings, "a list of different names"),
    "type": (_is_type, "a type of JSON Schema or a list of different ones"),
}
_SCHEMA_KEYWORDS = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then"}
)
_SCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf"})
_SCHEMA_MAP_KEYWORDS = frozenset({"definitions", "dependencies", "patternProperties", "properties"})


def _check_keywords(place: _PathStep, schema: Mapping[str, object]) -> Iterator[_Located | str]:
    """Yield the subschemas of a schema, and its own errors as strings."""
    for keyword, value in schema.items():
        here: _PathStep = (place, f".{keyword}")
        if keyword in _KEYWORD_TESTS:
            test, expected = _KEYWORD_TESTS[keyword]
            if not test(value):
                seen = quote(value) if isinstance(value, str) else type_name(value)
                yield f"{_join_path(here)} is {seen}; {expected} is expected"
        elif keyword in _SCHEMA_KEYWORDS or (keyword == "items" and not is_list(value)):
            yield here, value
        elif keyword in _SCHEMA_LIST_KEYWORDS or keyword == "items":
            if not is_list(value) or not value:
                seen = "an empty list" if is_list(value) else type_name(value)
                yield f"{_join_path(here)} is {seen}; a list of schemas is expected"
            else:
                yield from (((here, f"[{index}]"), part) for index, part in enumerate(value))
        elif keyword in _SCHEMA_MAP_KEYWORDS:
            yield from _check_schema_map(here, keyword, value)


def _check_schema_map(place: _PathStep, keyword: str, value: object) -> Iterator[_Located | str]:
    if not is_object(value):
        yield f"{_join_path(place)} is {type_name(value)}; an object of schemas is expected"
        return
    for name, part in value.items():
        here: _PathStep = (place, f".{name}")
        if keyword != "dependencies" or not is_list(part):
            yield here, part
        elif not _is_unique_strings(part):
            yield f"{_join_path(here)} is a list; {_KEYWORD_TESTS['required'][1]} or a schema is expected"


def _walk_schemas(value: object) -> Iterator[_Located | str]:
    """Yield every subschema object, and the errors found on the way as strings."""
    waiting: list[_Located] = [((None, "the schema"), value)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, bool):
            continue
        if not is_object(part):
            yield f"{_join_path(place)} is {type_name(part)}; a schema is expected"
            continue
        yield place, part
        for error_or_subschema in _check_keywords(place, part):
            if isinstance(error_or_subschema, str):
                yield error_or_subschema
            else:
                waiting.append(error_or_subschema)


def find_draft7_error(value: object) -> str | None:
    """Return the first error, or `None` if the value is a draft 7 schema."""
    return next((entry for entry in _walk_schemas(value) if isinstance(entry, str)), None)


def find_pattern_error(value: object) -> str | None:
    """Return the first pattern that Python can't compile: Mistral's validator is written in Python."""
    for entry in _walk_schemas(value):
        if isinstance(entry, str) or not is_object(entry[1]):
            continue
        place, schema = entry[0], entry[1]
        pattern_properties = schema.get("patternProperties")
        for pattern in (schema.get("pattern"), *(pattern_properties if is_object(pattern_properties) else ())):
            if isinstance(pattern, str) and not _is_valid_pattern(pattern):
                return f"{_join_path(place)} has the pattern {quote(pattern)}"
    return None


def _is_valid_pattern(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True

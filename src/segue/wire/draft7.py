"""Whether a value is a valid draft 7 JSON Schema (MIS-13): every keyword has a value that the draft permits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

__all__ = ["is_draft7"]

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_string_set(value: object) -> bool:
    names = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = [name for name in names if isinstance(name, str)]
    return len(texts) == len(names) == len(set(texts))


def _is_type(value: object) -> bool:
    types = cast("list[object]", value) if isinstance(value, list) else [value]
    return bool(types) and _is_string_set(types) and all(name in _TYPES for name in types)


_KEYWORD_CHECKS: dict[str, Callable[[object], bool]] = {
    "type": _is_type,
    "required": _is_string_set,
    "enum": lambda value: isinstance(value, list),
    "examples": lambda value: isinstance(value, list),
    "uniqueItems": lambda value: isinstance(value, bool),
    "readOnly": lambda value: isinstance(value, bool),
    "multipleOf": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value > 0,
    **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], _is_number),
    **dict.fromkeys(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"], _is_count),
    **dict.fromkeys(["$id", "$schema", "$ref", "$comment", "title", "description", "pattern", "format"], _is_string),
    **dict.fromkeys(["contentMediaType", "contentEncoding"], _is_string),
}
_SINGLE_SCHEMA = frozenset(
    ["additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then"]
)
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_SCHEMA_MAPS = frozenset({"definitions", "dependencies", "patternProperties", "properties"})


def is_draft7(schema: object) -> bool:
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, bool):
            continue
        if not isinstance(node, dict):
            return False
        for keyword, value in cast("dict[str, object]", node).items():
            if keyword in _KEYWORD_CHECKS:
                if not _KEYWORD_CHECKS[keyword](value):
                    return False
                continue
            inner = list(_subschemas(keyword, value))
            if None in inner:
                return False
            pending += inner
    return True


def _subschemas(keyword: str, value: object) -> Iterator[object]:
    """The subschemas under a keyword; None in place of anything that cannot be one."""
    if keyword in _SINGLE_SCHEMA or (keyword == "items" and not isinstance(value, list)):
        yield value
    elif keyword in _SCHEMA_LISTS or keyword == "items":
        items = cast("list[object]", value) if isinstance(value, list) else []
        yield from items or [None]
    elif keyword in _SCHEMA_MAPS:
        table = cast("dict[str, object]", value) if isinstance(value, dict) else {"": None}
        yield from (part for part in table.values() if not (keyword == "dependencies" and _is_string_set(part)))

"""JSON Schema 2020-12: which keywords hold subschemas, apply to which types, or are annotations; and JSON equality."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

__all__ = [
    "ANNOTATIONS",
    "COMBINATORS",
    "SCHEMA_LISTS",
    "SCHEMA_MAPS",
    "SINGLE_SCHEMAS",
    "TYPES",
    "Node",
    "Schema",
    "applies_to",
    "is_equal",
    "is_schema",
    "json_type_of",
    "types_of",
    "unique_values",
]

Node: TypeAlias = dict[str, Any]
Schema: TypeAlias = "Node | bool"

TYPES = ("string", "number", "boolean", "object", "array", "null")
"""All types; `integer` is part of `number`."""
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SINGLE_SCHEMAS = frozenset(
    {"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "contentSchema"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
COMBINATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})

_KEYWORDS_BY_TYPE: dict[str, str] = {
    "string": "minLength maxLength pattern format contentEncoding contentMediaType contentSchema",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf format",
    "array": "items prefixItems minItems maxItems uniqueItems contains minContains maxContains unevaluatedItems",
    "object": "properties patternProperties additionalProperties required minProperties maxProperties propertyNames "
    "dependentRequired dependentSchemas unevaluatedProperties",
}
_TYPES_OF_KEYWORD: dict[str, frozenset[str]] = {
    keyword: frozenset(kind for kind, keywords in _KEYWORDS_BY_TYPE.items() if keyword in keywords.split())
    for keywords in _KEYWORDS_BY_TYPE.values()
    for keyword in keywords.split()
}


def applies_to(keyword: str, types: list[str] | None) -> bool:
    """True if a keyword constrains values of these types."""
    keyword_types = _TYPES_OF_KEYWORD.get(keyword)
    return types is None or keyword_types is None or any(_base_type(kind) in keyword_types for kind in types)


def _base_type(kind: str) -> str:
    return "number" if kind == "integer" else kind


def is_schema(value: object) -> bool:
    return isinstance(value, dict | bool)


def types_of(node: Node) -> list[str] | None:
    """The types that a node names; None means every type."""
    types: Any = node.get("type")
    return cast("list[str] | None", types) if types is None or isinstance(types, list) else [types]


def json_type_of(value: object) -> str:
    """The type of a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def is_equal(first: object, second: object) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0, but not true."""
    if json_type_of(first) != json_type_of(second):
        return False
    if isinstance(first, dict):
        left, right = cast("Node", first), cast("Node", second)
        return left.keys() == right.keys() and all(is_equal(left[key], right[key]) for key in left)
    if isinstance(first, list):
        items, others = cast("list[Any]", first), cast("list[Any]", second)
        return len(items) == len(others) and all(map(is_equal, items, others))
    return first == second


def unique_values(values: list[Any]) -> list[Any]:
    """The values without duplicates."""
    unique: list[Any] = []
    for value in values:
        if not any(is_equal(value, other) for other in unique):
            unique.append(value)
    return unique

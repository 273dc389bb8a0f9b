"""JSON Schema 2020-12: which keywords hold subschemas, apply to a type, or annotate; types and equality of values."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

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
    """Return whether a keyword constrains values of these types."""
    keyword_types = _TYPES_OF_KEYWORD.get(keyword)
    return types is None or keyword_types is None or any(_base_type(kind) in keyword_types for kind in types)


def _base_type(kind: str) -> str:
    return "number" if kind == "integer" else kind


def is_schema(value: object) -> bool:
    return isinstance(value, dict | bool)


def types_of(node: Node) -> list[str] | None:
    """Return the types that a node names; None means every type."""
    types: Any = node.get("type")
    return cast("list[str] | None", types) if types is None or isinstance(types, list) else [types]


def json_type_of(value: object) -> str:
    """Return the type of a JSON value."""
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
    """Return whether two JSON values are equal: 1 equals 1.0, but not true."""
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
    """Return the values without duplicates."""
    unique: list[Any] = []
    for value in values:
        if not any(is_equal(value, other) for other in unique):
            unique.append(value)
    return unique


def has_type(value: object, types: list[str] | None) -> bool:
    """Return whether a value has one of these types; None is every type."""
    if types is None:
        return True
    kinds = [kind.lower() for kind in types]
    if "integer" in kinds and isinstance(value, int | float) and not isinstance(value, bool):
        return "number" in kinds or isinstance(value, int) or value.is_integer()
    return json_type_of(value) in kinds


def find_value_types(values: list[Any], types: list[str] | None) -> list[str]:
    """Return the types of these values; numbers are `integer` where the node's types do not include `number`."""
    types_of_values = list(dict.fromkeys(json_type_of(value) for value in values))
    numbers = [value for value in values if json_type_of(value) == "number"]
    are_integers = all(isinstance(value, int) for value in numbers) if types is None else "number" not in types
    return ["integer" if kind == "number" and are_integers else kind for kind in types_of_values]


def add_null(node: Node) -> Node:
    """Return a rendered node that accepts null as well."""
    kinds = types_of(node)
    if kinds is not None and "null" in kinds:
        return node
    if kinds is not None and "const" not in node and not {"object", "array"} & set(kinds):
        values = {"enum": [*node["enum"], None]} if "enum" in node else {}
        return {**node, "type": [*kinds, "null"], **values}
    siblings = {key: value for key, value in node.items() if key in ("title", "description")}
    inner = {key: value for key, value in node.items() if key not in siblings}
    members = inner.get("anyOf", [inner])
    return {**siblings, "anyOf": unique_values([*members, {"type": "null"}])}


def is_finite(node: Node, defs: Node, seen: set[str], depth: int) -> bool:
    """Return whether some value of a rendered node is finite, by the conservative check of Moonshot's validator."""
    if not node:
        return True
    if depth > 100:
        return False
    kinds = types_of(node) or []
    if any(kind not in ("object", "array") for kind in kinds):
        return True
    if "array" in kinds and ("items" not in node or is_finite(node["items"], defs, seen, depth + 1)):
        return True
    if "object" in kinds:
        required = [node["properties"][name] for name in node.get("required", ()) if name in node.get("properties", {})]
        if not required or any(is_finite(property_schema, defs, seen, depth + 1) for property_schema in required):
            return True
    if any(is_finite(member, defs, seen, depth + 1) for member in node.get("anyOf", ())):
        return True
    name = node.get("$ref", "").removeprefix("#/$defs/")
    if not name or name in seen:
        return False
    seen.add(name)
    return is_finite(defs[name], defs, seen, depth + 1)

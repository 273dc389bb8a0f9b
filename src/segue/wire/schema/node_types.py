"""Types and values of schema nodes."""

from __future__ import annotations

from typing import Any

from segue.wire.schema.json_schema import Node, json_type_of, types_of, unique_values

__all__ = ["add_null", "find_value_types", "has_type", "is_finite"]


def has_type(value: object, types: list[str] | None) -> bool:
    """True if a value has one of these types; None is every type."""
    if types is None:
        return True
    kinds = [kind.lower() for kind in types]
    if "integer" in kinds and isinstance(value, int | float) and not isinstance(value, bool):
        return "number" in kinds or isinstance(value, int) or value.is_integer()
    return json_type_of(value) in kinds


def find_value_types(values: list[Any], types: list[str] | None) -> list[str]:
    """The types of these values; numbers are `integer` where the node's types do not include `number`."""
    types_of_values = list(dict.fromkeys(json_type_of(value) for value in values))
    numbers = [value for value in values if json_type_of(value) == "number"]
    are_integers = all(isinstance(value, int) for value in numbers) if types is None else "number" not in types
    return ["integer" if kind == "number" and are_integers else kind for kind in types_of_values]


def add_null(node: Node) -> Node:
    """A rendered node that accepts null as well."""
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
    """True if some value of a rendered node is finite, by the conservative check of Moonshot's validator."""
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

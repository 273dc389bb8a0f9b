"""Describes unsupported parts of a schema as text for the description. Every text has a maximum length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from segue.canonical.jsontext import write_text
from segue.wire.schema.vocabulary import Node, Schema, types_of

__all__ = ["KEYWORDS", "described", "tell", "told"]

_LONGEST = 240
_LONGEST_VALUE = 60
_MOST = 8
_DEEPEST = 2


def described(node: Node, texts: list[str]) -> Node:
    """The node with these texts appended to its description."""
    if not texts:
        return node
    joined = "; ".join(dict.fromkeys(texts))
    before = node.get("description")
    return {**node, "description": f"{before} ({joined})" if before else joined}


def told(keyword: str, value: Any) -> str:
    """One keyword as text; empty for keywords that are not in JSON Schema."""
    make = _WORDS.get(keyword)
    return "" if make is None else _cut(make(value))


def tell(schema: Schema, depth: int = 0) -> str:
    """A whole schema as short text."""
    if isinstance(schema, bool):
        return "anything" if schema else "nothing"
    if depth > _DEEPEST:
        return "…"
    heads = [" or ".join(types_of(schema) or ())]
    skipped = {"type", "title", "description", "default", "examples"}
    if "properties" in schema or "required" in schema:
        heads.append(_keys_told(schema, depth))
        skipped |= {"properties", "required"}
    for keyword, value in schema.items():
        if keyword == "$ref":
            heads.append("the whole" if value == "#" else str(value).rsplit("/", 1)[-1])
        elif keyword == "items":
            heads.append(f"of {tell(value, depth + 1)}")
        elif keyword in ("anyOf", "oneOf"):
            heads.append(_listed(cast("list[Schema]", value), " or ", depth))
        elif keyword == "allOf":
            heads.append(_listed(cast("list[Schema]", value), " and ", depth))
        elif keyword not in skipped:
            heads.append(told(keyword, value))
    return _cut(", ".join(filter(None, heads)) or "anything")


def _keys_told(schema: Node, depth: int) -> str:
    needed = cast("list[str]", schema.get("required", []))
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    keys = [*properties, *(name for name in needed if name not in properties)]
    parts: list[str] = []
    for key in keys[:_MOST]:
        notes = [] if properties.get(key, True) in (True, {}) else [tell(properties[key], depth + 1)]
        notes += ["needed"] if key in needed else []
        parts.append(f"{key} ({', '.join(notes)})" if notes else key)
    return "with " + ", ".join([*parts, "…"] if len(keys) > _MOST else parts) if parts else ""


def _listed(schemas: list[Schema], joint: str, depth: int = 0) -> str:
    parts = [tell(schema, depth + 1) for schema in schemas[:_MOST]]
    return _cut(joint.join([*parts, "…"] if len(schemas) > _MOST else parts))


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else write_text(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _values(values: list[Any]) -> str:
    parts = [_value(value) for value in values[:_MOST]]
    return ", ".join([*parts, "…"] if len(values) > _MOST else parts)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _dependencies(value: dict[str, Any]) -> str:
    return "; ".join(f"{key} needs {_values(names)}" for key, names in list(value.items())[:_MOST])


def _dependent(value: dict[str, Schema]) -> str:
    return "; ".join(f"beside {key}: {tell(schema, 1)}" for key, schema in list(value.items())[:_MOST])


def _patterned(value: dict[str, Schema]) -> str:
    return "; ".join(f"keys like {pattern}: {tell(schema, 1)}" for pattern, schema in list(value.items())[:_MOST])


def _other_keys(value: Schema) -> str:
    return "no other keys" if value is False else f"other keys: {tell(value, 1)}"


_WORDS: dict[str, Callable[[Any], str]] = {
    "minLength": lambda value: f"at least {value} characters",
    "maxLength": lambda value: f"at most {value} characters",
    "pattern": lambda value: f"pattern {_value(value)}",
    "format": lambda value: f"format {_value(value)}",
    "minimum": lambda value: f"at least {value}",
    "maximum": lambda value: f"at most {value}",
    "exclusiveMinimum": lambda value: f"more than {value}",
    "exclusiveMaximum": lambda value: f"less than {value}",
    "multipleOf": lambda value: f"a multiple of {value}",
    "minItems": lambda value: f"at least {value} items",
    "maxItems": lambda value: f"at most {value} items",
    "uniqueItems": lambda value: "no item twice" if value else "",
    "minProperties": lambda value: f"at least {value} keys",
    "maxProperties": lambda value: f"at most {value} keys",
    "enum": lambda value: f"one of {_values(value)}",
    "const": lambda value: f"always {_value(value)}",
    "default": lambda value: f"default {_value(value)}",
    "examples": lambda value: f"for example {_values(value)}",
    "deprecated": lambda value: "deprecated" if value else "",
    "readOnly": lambda value: "read only" if value else "",
    "writeOnly": lambda value: "write only" if value else "",
    "required": lambda value: f"needs {_values(value)}",
    "prefixItems": lambda value: f"in this order: {_listed(value, ', ')}",
    "items": lambda value: "no more items" if value is False else f"items: {tell(value, 1)}",
    "contains": lambda value: f"holds {tell(value, 1)}",
    "minContains": lambda value: f"at least {value} of them",
    "maxContains": lambda value: f"at most {value} of them",
    "unevaluatedItems": lambda value: "no more items" if value is False else f"more items: {tell(value, 1)}",
    "unevaluatedProperties": _other_keys,
    "additionalProperties": _other_keys,
    "patternProperties": _patterned,
    "propertyNames": lambda value: f"keys: {tell(value, 1)}",
    "dependentRequired": _dependencies,
    "dependentSchemas": _dependent,
    "anyOf": lambda value: f"any of: {_listed(value, ' or ')}",
    "oneOf": lambda value: f"exactly one of: {_listed(value, ' or ')}",
    "allOf": lambda value: f"all of: {_listed(value, ' and ')}",
    "not": lambda value: f"not {tell(value, 1)}",
    "if": lambda value: f"where it is {tell(value, 1)}",
    "then": lambda value: f"then {tell(value, 1)}",
    "else": lambda value: f"otherwise {tell(value, 1)}",
    "contentEncoding": lambda value: f"encoded as {_value(value)}",
    "contentMediaType": lambda value: f"content of type {_value(value)}",
}
KEYWORDS = frozenset(_WORDS)
"""All keywords that can be described."""

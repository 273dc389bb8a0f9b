"""Describes unsupported parts of a schema as text for the description. Every text has a maximum length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from segue.canonical.json import encode_json_text
from segue.wire.schema.json_schema import Node, Schema, types_of

_MAX_LENGTH = 240
_MAX_VALUE_LENGTH = 60
_MAX_ITEMS = 8
_MAX_DEPTH = 2


def add_to_description(node: Node, texts: list[str]) -> Node:
    """Return the node with these texts appended to its description."""
    if not texts:
        return node
    joined = "; ".join(dict.fromkeys(texts))
    existing = node.get("description")
    return {**node, "description": f"{existing} ({joined})" if existing else joined}


def describe_keyword(keyword: str, value: Any) -> str:
    """Describe one keyword as text; empty for keywords that are not in JSON Schema."""
    make = _DESCRIPTIONS.get(keyword)
    return "" if make is None else _truncate(make(value))


def describe_schema(schema: Schema, depth: int = 0) -> str:
    """Describe a whole schema as short text."""
    if isinstance(schema, bool):
        return "anything" if schema else "nothing"
    if depth > _MAX_DEPTH:
        return "…"
    heads = [" or ".join(types_of(schema) or ())]
    skipped = {"type", "title", "description", "default", "examples"}
    if "properties" in schema or "required" in schema:
        heads.append(_describe_keys(schema, depth))
        skipped |= {"properties", "required"}
    for keyword, value in schema.items():
        if keyword == "$ref":
            heads.append("the whole" if value == "#" else str(value).rsplit("/", 1)[-1])
        elif keyword == "items":
            heads.append(f"of {describe_schema(value, depth + 1)}")
        elif keyword in ("anyOf", "oneOf"):
            heads.append(_describe_list(cast("list[Schema]", value), " or ", depth))
        elif keyword == "allOf":
            heads.append(_describe_list(cast("list[Schema]", value), " and ", depth))
        elif keyword not in skipped:
            heads.append(describe_keyword(keyword, value))
    return _truncate(", ".join(filter(None, heads)) or "anything")


def _describe_keys(schema: Node, depth: int) -> str:
    required = cast("list[str]", schema.get("required", []))
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    keys = [*properties, *(name for name in required if name not in properties)]
    parts: list[str] = []
    for key in keys[:_MAX_ITEMS]:
        notes = [] if properties.get(key, True) in (True, {}) else [describe_schema(properties[key], depth + 1)]
        notes += ["needed"] if key in required else []
        parts.append(f"{key} ({', '.join(notes)})" if notes else key)
    return "with " + ", ".join([*parts, "…"] if len(keys) > _MAX_ITEMS else parts) if parts else ""


def _describe_list(schemas: list[Schema], joint: str, depth: int = 0) -> str:
    parts = [describe_schema(schema, depth + 1) for schema in schemas[:_MAX_ITEMS]]
    return _truncate(joint.join([*parts, "…"] if len(schemas) > _MAX_ITEMS else parts))


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) else encode_json_text(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else text[: _MAX_VALUE_LENGTH - 1] + "…"


def _format_values(values: list[Any]) -> str:
    parts = [_format_value(value) for value in values[:_MAX_ITEMS]]
    return ", ".join([*parts, "…"] if len(values) > _MAX_ITEMS else parts)


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def _describe_required(value: dict[str, Any]) -> str:
    return "; ".join(f"{key} needs {_format_values(names)}" for key, names in list(value.items())[:_MAX_ITEMS])


def _describe_dependent_schemas(value: dict[str, Schema]) -> str:
    return "; ".join(f"beside {key}: {describe_schema(schema, 1)}" for key, schema in list(value.items())[:_MAX_ITEMS])


def _describe_patterns(value: dict[str, Schema]) -> str:
    return "; ".join(
        f"keys like {pattern}: {describe_schema(schema, 1)}" for pattern, schema in list(value.items())[:_MAX_ITEMS]
    )


def _describe_other_keys(value: Schema) -> str:
    return "no other keys" if value is False else f"other keys: {describe_schema(value, 1)}"


_DESCRIPTIONS: dict[str, Callable[[Any], str]] = {
    "minLength": lambda value: f"at least {value} characters",
    "maxLength": lambda value: f"at most {value} characters",
    "pattern": lambda value: f"pattern {_format_value(value)}",
    "format": lambda value: f"format {_format_value(value)}",
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
    "enum": lambda value: f"one of {_format_values(value)}",
    "const": lambda value: f"always {_format_value(value)}",
    "default": lambda value: f"default {_format_value(value)}",
    "examples": lambda value: f"for example {_format_values(value)}",
    "deprecated": lambda value: "deprecated" if value else "",
    "readOnly": lambda value: "read only" if value else "",
    "writeOnly": lambda value: "write only" if value else "",
    "required": lambda value: f"needs {_format_values(value)}",
    "prefixItems": lambda value: f"in this order: {_describe_list(value, ', ')}",
    "items": lambda value: "no more items" if value is False else f"items: {describe_schema(value, 1)}",
    "contains": lambda value: f"holds {describe_schema(value, 1)}",
    "minContains": lambda value: f"at least {value} of them",
    "maxContains": lambda value: f"at most {value} of them",
    "unevaluatedItems": lambda value: "no more items" if value is False else f"more items: {describe_schema(value, 1)}",
    "unevaluatedProperties": _describe_other_keys,
    "additionalProperties": _describe_other_keys,
    "patternProperties": _describe_patterns,
    "propertyNames": lambda value: f"keys: {describe_schema(value, 1)}",
    "dependentRequired": _describe_required,
    "dependentSchemas": _describe_dependent_schemas,
    "anyOf": lambda value: f"any of: {_describe_list(value, ' or ')}",
    "oneOf": lambda value: f"exactly one of: {_describe_list(value, ' or ')}",
    "allOf": lambda value: f"all of: {_describe_list(value, ' and ')}",
    "not": lambda value: f"not {describe_schema(value, 1)}",
    "if": lambda value: f"where it is {describe_schema(value, 1)}",
    "then": lambda value: f"then {describe_schema(value, 1)}",
    "else": lambda value: f"otherwise {describe_schema(value, 1)}",
    "contentEncoding": lambda value: f"encoded as {_format_value(value)}",
    "contentMediaType": lambda value: f"content of type {_format_value(value)}",
}
DESCRIBED_KEYWORDS = frozenset(_DESCRIPTIONS)
"""All keywords that can be described."""

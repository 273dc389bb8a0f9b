"""Gemini schemas, a subset of OpenAPI 3.0, to JSON Schema 2020-12.

Types may be in capitals, `nullable` becomes a type, counts may be strings, and keys may be in snake_case. Property
names are not changed.
"""

from __future__ import annotations

from typing import Any, cast

from segue.wire.json_values import JsonObject, object_or_none


def to_camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


_SNAKE_CASE = (
    *("any_of", "one_of", "all_of", "prefix_items", "min_items", "max_items", "min_length", "max_length"),
    *("min_properties", "max_properties", "additional_properties", "property_ordering"),
)
_CAMEL_CASE = {name: to_camel_case(name) for name in _SNAKE_CASE}
_SCHEMA_KEYWORDS = frozenset({"items", "additionalProperties", "not"})
_SCHEMA_LIST_KEYWORDS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMA_MAP_KEYWORDS = frozenset({"properties", "defs", "$defs"})
_COUNT_KEYWORDS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


_TEXT_KEYWORDS = frozenset({"format", "title", "description", "pattern", "ref"})
_STRING_LIST_KEYWORDS = frozenset({"enum", "propertyOrdering", "required"})
_UNCHECKED_KEYWORDS = _COUNT_KEYWORDS | {"default", "example", "maximum", "minimum", "additionalProperties"}
_TYPES = frozenset({"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})


def is_valid_schema(schema: Any, *, is_root: bool = True) -> bool:
    """Return whether this is a valid Gemini schema; a root schema must describe an object."""
    if not isinstance(schema, dict):
        return False
    fields = {
        _CAMEL_CASE.get(key, key): value for key, value in cast("JsonObject", schema).items() if value is not None
    }
    kind = fields.get("type")
    if (is_root and str(kind or "OBJECT").upper() != "OBJECT") or (
        str(kind).upper() == "ARRAY" and "items" not in fields
    ):
        return False
    for key, value in fields.items():
        inner: list[Any] = []
        match key:
            case "items":
                inner = [value]
            case "anyOf":
                inner = cast("list[Any]", value) if isinstance(value, list) else [value]
            case "properties" | "defs" if isinstance(value, dict):
                inner = list(cast("JsonObject", value).values())
            case _ if not _is_valid_keyword(key, value):
                return False
            case _:
                continue
        for item in inner:
            if item is not None and not is_valid_schema(item, is_root=False):
                return False
    return True


def _is_valid_keyword(key: str, value: Any) -> bool:
    if key == "type":
        return value.upper() in _TYPES if isinstance(value, str) else False
    if key == "nullable":
        return isinstance(value, bool)
    if key in _STRING_LIST_KEYWORDS:
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        return all(isinstance(item, str) and (item or key != "enum") for item in values)
    return isinstance(value, str) if key in _TEXT_KEYWORDS else key in _UNCHECKED_KEYWORDS


def parse_schema(schema: JsonObject) -> JsonObject:
    """Convert a Gemini schema to JSON Schema.

    It uses one stack frame per level, so that the deepest nesting of a valid body is parsed.
    """
    parsed: JsonObject = {}
    for raw_key, value in schema.items():
        key = _CAMEL_CASE.get(raw_key, raw_key)
        inner: Any = value
        if key in _SCHEMA_KEYWORDS and isinstance(value, dict):
            inner = parse_schema(cast("JsonObject", value))
        elif key in _SCHEMA_LIST_KEYWORDS and isinstance(value, list):
            inner = []
            for item in cast("list[Any]", value):
                inner.append(parse_schema(cast("JsonObject", item)) if isinstance(item, dict) else item)
        elif key in _SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
            inner = {}
            for name, item in cast("JsonObject", value).items():
                inner[name] = parse_schema(cast("JsonObject", item)) if isinstance(item, dict) else item
        _set_keyword(parsed, key, inner)
    _order_properties(parsed, schema.get("propertyOrdering", schema.get("property_ordering")))
    return _make_nullable(parsed) if parsed.pop("nullable", None) is True else parsed


def _set_keyword(parsed: JsonObject, key: str, value: Any) -> None:
    match key:
        case "type" if isinstance(value, str):
            if value.upper() != "TYPE_UNSPECIFIED":
                parsed["type"] = value.lower()
        case "format" if value == "enum":
            pass
        case "example":
            parsed["examples"] = [value]
        case "ref" if isinstance(value, str):
            parsed["$ref"] = value.replace("#/defs/", "#/$defs/")
        case "defs":
            parsed["$defs"] = value
        # JSON Schema has no such keyword: see `_order_properties`.
        case "propertyOrdering":
            pass
        case _ if key in _COUNT_KEYWORDS and isinstance(value, str) and value.isdecimal():
            parsed[key] = int(value)
        case _:
            parsed[key] = value


def _order_properties(parsed: JsonObject, names: Any) -> None:
    """Sort the properties into the order in which the model sees them."""
    properties = object_or_none(parsed.get("properties"))
    if properties is None or not isinstance(names, list):
        return
    first = [name for name in cast("list[Any]", names) if isinstance(name, str) and name in properties]
    parsed["properties"] = {name: properties[name] for name in [*first, *properties]}


def _make_nullable(schema: JsonObject) -> JsonObject:
    kind = schema.get("type")
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        null = {"type": "null"}
        members = cast("list[Any]", choices)
        return (
            schema
            if any(object_or_none(member) == null for member in members)
            else {**schema, "anyOf": [*members, null]}
        )
    if not isinstance(kind, str):
        return schema
    nullable = {**schema, "type": [kind, "null"]}
    if isinstance(schema.get("enum"), list):
        nullable["enum"] = [*cast("list[Any]", schema["enum"]), None]
    return nullable

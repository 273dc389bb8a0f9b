"""Renames the properties at the root of a schema, wherever the root's keywords name them; nested names stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.wire.schema.json_schema import Node

# Keywords whose schemas apply to the same value as the schema that holds them.
_IN_PLACE_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_IN_PLACE_SCHEMAS = frozenset({"not", "if", "then", "else"})
_DEFINITIONS = ("$defs", "definitions")


def find_root_properties(schema: Mapping[str, Any]) -> list[str]:
    """Return the names under the root's `properties`."""
    properties = schema.get("properties")
    return list(cast("Node", properties)) if isinstance(properties, dict) else []


def rename_root_properties(schema: Mapping[str, Any], names: Mapping[str, str]) -> Node:
    """Return the schema with other names for properties of its root.

    References to the root, or into it, refer to a definition that holds the schema as it was.
    """
    renamed = _rename(schema, names)
    original = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    if not _has_root_reference(schema):
        return renamed
    definitions = cast("Node", renamed.get("$defs") if isinstance(renamed.get("$defs"), dict) else {})
    whole = "whole"
    while whole in definitions:
        whole += "_"
    return _redirect({**renamed, "$defs": {**definitions, whole: original}}, f"#/$defs/{whole}")


def _rename(schema: Mapping[str, Any], names: Mapping[str, str]) -> Node:
    return {key: _rename_keyword(key, value, names) for key, value in schema.items()}


def _rename_keyword(key: str, value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        members = cast("Node", value)
        if key in ("properties", "default", "const"):
            return {names.get(name, name): member for name, member in members.items()}
        if key in ("dependentRequired", "dependentSchemas", "dependencies"):
            return {names.get(name, name): _rename_dependency(member, names) for name, member in members.items()}
        if key in _IN_PLACE_SCHEMAS:
            return _rename(members, names)
        if key == "propertyNames":
            return {
                name: _rename_values(member, names) if name in ("enum", "const") else member
                for name, member in members.items()
            }
        return members
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if key == "required":
            return _rename_values(items, names)
        if key in _IN_PLACE_LISTS:
            return [_rename_dependency(item, names) for item in items]
        if key in ("examples", "enum"):
            return [_rename_keyword("default", item, names) for item in items]
    return cast("Any", value)


def _rename_dependency(value: Any, names: Mapping[str, str]) -> Any:
    """Rename in a schema that applies to the same value, or in a list of names."""
    return _rename(cast("Node", value), names) if isinstance(value, dict) else _rename_values(value, names)


def _rename_values(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_rename_values(item, names) for item in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


def _is_root_reference(value: object) -> bool:
    if not isinstance(value, str) or not (value == "#" or value.startswith("#/")):
        return False
    return not value.startswith(tuple(f"#/{key}/" for key in _DEFINITIONS))


def _has_root_reference(value: Any) -> bool:
    if isinstance(value, dict):
        members = cast("Node", value)
        return _is_root_reference(members.get("$ref")) or any(map(_has_root_reference, members.values()))
    return isinstance(value, list) and any(map(_has_root_reference, cast("list[Any]", value)))


def _redirect(value: Any, whole: str) -> Any:
    if isinstance(value, dict):
        return {
            key: whole + cast("str", item)[1:] if key == "$ref" and _is_root_reference(item) else _redirect(item, whole)
            for key, item in cast("Node", value).items()
        }
    return [_redirect(item, whole) for item in cast("list[Any]", value)] if isinstance(value, list) else value

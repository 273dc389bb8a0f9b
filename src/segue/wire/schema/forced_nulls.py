"""Drops the nulls that a strict mode forces into arguments, since it requires every property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.document import Document
from segue.wire.schema.json_schema import Schema, types_of
from segue.wire.schema.merge import Merger, enum_values
from segue.wire.schema.parse import parse_schema_document


def drop_forced_nulls(arguments: Any, parameters: Mapping[str, Any]) -> Any:
    """Drop nulls of optional properties that the original schema does not allow to be null."""
    document = parse_schema_document(parameters, SchemaChanges())
    return _drop_nulls(arguments, document.root, document, 0)


def _drop_nulls(value: Any, schema: Schema, document: Document, depth: int) -> Any:
    node = schema
    while isinstance(node, dict) and "$ref" in node and depth < 100:
        node, depth = document.find(node["$ref"]), depth + 1
    if isinstance(node, bool) or depth >= 100:
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_drop_nulls(item, node["items"], document, depth + 1) for item in items] if "items" in node else items
    if not isinstance(value, dict):
        return value
    properties: dict[str, Schema] = node.get("properties", {})
    return {
        key: _drop_nulls(item_value, properties[key], document, depth + 1) if key in properties else item_value
        for key, item_value in cast("dict[str, Any]", value).items()
        if item_value is not None
        or key not in properties
        or key in node.get("required", ())
        or _accepts_null(properties[key], document)
    }


def _accepts_null(schema: Schema, document: Document) -> bool:
    for branch in Merger(document, SchemaChanges()).expand_branches(schema, ""):
        values = enum_values(branch)
        if "null" in (types_of(branch) or ["null"]) and (values is None or None in values):
            return True
    return False

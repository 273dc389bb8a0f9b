"""Drops nulls from arguments that a strict declaration forced, since it requires every property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.wire.schema.document import Document
from segue.wire.schema.merge import Merger, values_of
from segue.wire.schema.notes import Notes
from segue.wire.schema.read import read_document
from segue.wire.schema.vocabulary import Schema, types_of

__all__ = ["without_forced_nulls"]


def without_forced_nulls(arguments: Any, parameters: Mapping[str, Any]) -> Any:
    """The arguments without nulls for optional properties that the original schema does not allow to be null."""
    document = read_document(parameters, Notes())
    return _mended(arguments, document.root, document, 0)


def _mended(value: Any, schema: Schema, document: Document, depth: int) -> Any:
    node = schema
    while isinstance(node, dict) and "$ref" in node and depth < 100:
        node, depth = document.find(node["$ref"]), depth + 1
    if isinstance(node, bool) or depth >= 100:
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_mended(item, node["items"], document, depth + 1) for item in items] if "items" in node else items
    if not isinstance(value, dict):
        return value
    properties: dict[str, Schema] = node.get("properties", {})
    return {
        key: _mended(inner, properties[key], document, depth + 1) if key in properties else inner
        for key, inner in cast("dict[str, Any]", value).items()
        if inner is not None
        or key not in properties
        or key in node.get("required", ())
        or _takes_null(properties[key], document)
    }


def _takes_null(schema: Schema, document: Document) -> bool:
    for branch in Merger(document, Notes()).branches(schema, ""):
        values = values_of(branch)
        if "null" in (types_of(branch) or ["null"]) and (values is None or None in values):
            return True
    return False

"""A parsed schema: its root and definitions, and functions on their references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct

from segue.wire.schema.json_schema import SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMAS, Node, Schema, is_schema

ROOT = "#"
"""The name of the whole document among its definitions."""
_LEGACY_SCHEMA_MAPS = SCHEMA_MAPS | {"$defs", "definitions", "dependencies"}
_LEGACY_SINGLE_SCHEMAS = SINGLE_SCHEMAS | {"additionalItems"}


class Document(Struct):
    """A schema in 2020-12. The value of a `$ref` is a key of `defs`, or `#` for `root`; `size` counts nodes."""

    root: Schema
    defs: dict[str, Schema]
    size: int

    def find(self, name: str) -> Schema:
        return self.root if name == ROOT else self.defs[name]


def format_pointer(name: str, *, key: str = "$defs") -> str:
    """Return the `$ref` pointer to a definition in a rendered schema."""
    return name if name == ROOT else f"#/{key}/{name}"


def iter_references(schema: Schema) -> Iterator[str]:
    """Yield the definitions that a schema refers to."""
    if isinstance(schema, bool):
        return
    for key, value in schema.items():
        if key == "$ref":
            yield value
        for subschema in list_subschemas(key, value):
            yield from iter_references(subschema)


def rename_definition(schema: Any, old: str, new: str) -> Any:
    """Return a copy with references to one definition renamed."""
    if not isinstance(schema, dict):
        return schema
    copy: Node = {}
    for key, value in cast("Node", schema).items():
        if key == "$ref":
            value = new if value == old else value
        elif key in SCHEMA_MAPS:
            value = {name: rename_definition(subschema, old, new) for name, subschema in value.items()}
        elif key in SCHEMA_LISTS:
            value = [rename_definition(subschema, old, new) for subschema in value]
        elif key in SINGLE_SCHEMAS:
            value = rename_definition(value, old, new)
        copy[key] = value
    return copy


def find_recursive(document: Document) -> set[str]:
    """Return the definitions that lead into a recursion."""
    targets_of = {name: set(iter_references(document.find(name))) for name in (ROOT, *document.defs)}
    sources_of: dict[str, list[str]] = {}
    for name, targets in targets_of.items():
        for target in targets:
            sources_of.setdefault(target, []).append(name)
    ended = [name for name, targets in targets_of.items() if not targets]
    for name in ended:  # grows during iteration
        for source in sources_of.get(name, ()):
            targets_of[source].discard(name)
            if not targets_of[source]:
                ended.append(source)
    return {name for name, targets in targets_of.items() if targets}


def find_dependents(document: Document, names: set[str]) -> frozenset[str]:
    """Return these definitions, and all that refer to one of them, directly or not."""
    sources_of: dict[str, list[str]] = {}
    for name in (ROOT, *document.defs):
        for target in set(iter_references(document.find(name))):
            sources_of.setdefault(target, []).append(name)
    queue = list(names)
    seen = set(names)
    for name in queue:  # grows during iteration
        for source in sources_of.get(name, ()):
            if source not in seen:
                seen.add(source)
                queue.append(source)
    return frozenset(seen)


def list_subschemas(key: str, value: Any) -> list[Schema]:
    """Return the subschemas of a keyword, of any draft."""
    if key in _LEGACY_SCHEMA_MAPS and isinstance(value, dict):
        return [subschema for subschema in cast("Node", value).values() if is_schema(subschema)]
    if key in _LEGACY_SINGLE_SCHEMAS and is_schema(value):
        return [value]
    if (key in SCHEMA_LISTS or key == "items") and isinstance(value, list):
        return [subschema for subschema in cast("list[Any]", value) if is_schema(subschema)]
    return []

"""Renders plain schemas for a target with a subset, in one walk.

Every node of a plain schema has one type, and only keywords that the subset has for it. The result equals that of the
full renderer. A node without further nodes in it, but for scalar alternatives, may be odd: the caller renders it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from segue.wire.schema.json_schema import SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMAS, Node, has_type
from segue.wire.schema.rules import SchemaRules

_MAX_DEPTH = 20
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array"})
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_DESCRIBED = frozenset({"type", "description"})
_LIMITS: dict[str, tuple[str, str]] = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
}
_KEYWORDS = frozenset(
    {"type", "enum", "properties", "required", "additionalProperties", "items", "pattern"}
    | {"title", "description", "default"}.union(*_LIMITS.values())
)
_COMMON = frozenset({"type", "description", "properties", "required", "additionalProperties", "items", "enum"})
# Keywords that refer to other nodes, or hold or declare them.
_NESTING = (SCHEMA_MAPS | SCHEMA_LISTS | SINGLE_SCHEMAS) - {"additionalProperties"} | {
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$defs",
    "definitions",
    "dependencies",
    "additionalItems",
    "required",
}
_ALTERNATIVES = frozenset({"anyOf", "oneOf", "description", "title", "default"})

Path = tuple[str | None, ...]
"""The place of a node: the name of the property at each level, None for the items of an array."""
RenderLeaf = Callable[[Node, Path], Node]


class NotPlainError(Exception):
    """The full renderer is needed."""


class PlainSubset:
    """Renders plain schemas. `render_leaf` renders a node that is odd and has at most scalar alternatives in it."""

    def __init__(self, rules: SchemaRules, render_leaf: RenderLeaf | None = None) -> None:
        self._rules = rules
        self._keywords = _KEYWORDS & (rules.keywords or frozenset())
        self._render_leaf = render_leaf
        pattern = rules.property_name_pattern
        self._match_name = None if pattern is None else re.compile(pattern).fullmatch

    def render(self, root: Node) -> Node:
        """Return the schema with its keywords in the order of the full renderer; raise `NotPlainError` for others."""
        return self._render_node(root, ())

    def _render_node(self, node: object, path: Path) -> Node:
        if type(node) is not dict or len(path) > _MAX_DEPTH:
            raise NotPlainError
        parts = cast("Node", node)
        kind = parts.get("type")
        if type(kind) is not str or kind not in _TYPES or not self._keywords.issuperset(parts):
            raise NotPlainError
        rendered: Node = {"type": kind}
        if kind == "object":
            self._add_object(rendered, parts, path)
        elif kind == "array":
            self._add_items(rendered, parts, path)
        elif kind == "string" and "enum" in parts:
            rendered["enum"] = self._plain_values(parts["enum"])
        if not _COMMON.issuperset(parts):
            _add_limits(rendered, parts, kind)
        for key in ("title", "description"):
            if key in parts and type(parts[key]) is str:
                rendered[key] = parts[key]
        if "default" in parts and has_type(parts["default"], [kind]):
            rendered["default"] = parts["default"]
        # What is left is not plain, or has no effect and is reported; only an empty list is dropped without a finding.
        if len(rendered) < len(parts) - (parts.get("required") == []):
            raise NotPlainError
        return rendered

    def _render_inner(self, node: object, path: Path) -> Node:
        if self._render_leaf is None:
            return self._render_node(node, path)
        try:
            return self._render_node(node, path)
        except NotPlainError:
            if not _is_leaf(node):
                raise
            return self._render_leaf(cast("Node", node), path)

    def _add_object(self, rendered: Node, parts: Node, path: Path) -> None:
        properties: Any = parts.get("properties", {})
        required = parts.get("required", [])
        additional = parts.get("additionalProperties", False)
        # Only the root may have no properties.
        if type(properties) is not dict or not (properties or not path) or type(additional) is not bool:
            raise NotPlainError
        names = cast("Node", properties)
        if self._match_name is not None and not all(map(self._match_name, names)):
            raise NotPlainError
        if not _is_name_list(required) or not names.keys() >= set(required):
            raise NotPlainError
        nodes: Node = {}
        for name, part in names.items():
            nodes[name] = _copy_described(part) or self._render_inner(part, (*path, name))
        rendered["properties"] = nodes
        if required:
            rendered["required"] = required
        if "additionalProperties" in parts:
            rendered["additionalProperties"] = additional

    def _add_items(self, rendered: Node, parts: Node, path: Path) -> None:
        if "items" in parts:
            rendered["items"] = self._render_inner(parts["items"], (*path, None))
        # The full renderer drops items that may have any value.
        if not rendered.get("items") and ("items" in parts or self._rules.items_required):
            raise NotPlainError

    def _plain_values(self, values: object) -> list[str]:
        rules = self._rules
        if not _is_name_list(values) or not values:
            raise NotPlainError
        texts = cast("list[str]", values)
        if "string" not in rules.enum_types or (rules.enum_limit is not None and len(texts) > rules.enum_limit):
            raise NotPlainError
        if not rules.empty_enum_string and "" in texts:
            raise NotPlainError
        return texts


def _copy_described(node: Any) -> Node | None:
    """Return a copy of a scalar node that has only a type and a description; None for any other node."""
    if type(node) is not dict:
        return None
    parts = cast("Node", node)
    if parts.keys() != _DESCRIBED:
        return None
    kind, description = parts["type"], parts["description"]
    if type(kind) is not str or kind not in _SCALARS or type(description) is not str:
        return None
    return {"type": kind, "description": description}


def _is_leaf(node: object) -> bool:
    """Return whether this is a node without references, and without other nodes in it but plain alternatives."""
    if type(node) is not dict:
        return False
    parts = cast("Node", node)
    if _NESTING.isdisjoint(parts):
        return type(parts.get("additionalProperties", False)) is bool
    if not _ALTERNATIVES.issuperset(parts) or ("anyOf" in parts and "oneOf" in parts):
        return False
    members: Any = parts.get("anyOf", parts.get("oneOf"))
    return type(members) is list and all(map(_is_plain_leaf, cast("list[object]", members)))


def _is_plain_leaf(node: object) -> bool:
    """Return whether this is a node of one scalar type, with plain keywords only."""
    if type(node) is not dict or not _KEYWORDS.issuperset(cast("Node", node)):
        return False
    kind = cast("Node", node).get("type")
    return type(kind) is str and kind in _SCALARS


def _is_name_list(value: object) -> bool:
    if type(value) is not list:
        return False
    names = cast("list[object]", value)
    return not names or ({*map(type, names)} == {str} and len(set(names)) == len(names))


def _add_limits(rendered: Node, parts: Node, kind: str) -> None:
    """Add the limits of values of this type in their order, and the pattern of a string."""
    low, high = _LIMITS.get(kind, ("", ""))
    for key, value in parts.items():
        if key in (low, high):
            if type(value) is int and (value >= 0 or low == "minimum"):
                rendered[key] = value
        elif key == "pattern" and kind == "string" and type(value) is str:
            rendered[key] = value
    if low in rendered and high in rendered and rendered[low] > rendered[high]:
        raise NotPlainError

"""Renders plain schemas in one walk: those of nearly all tools, which targets accept as they are.

A plain schema has no references, no keywords of older drafts, and nothing that the target rejects. The result equals
that of the full renderer, which handles all other schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from segue.wire.schema.json_schema import Node
from segue.wire.schema.rules import SchemaRules

_MAX_DEPTH = 20
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array"})
# The keywords that are plain in a subset which has them.
_SUBSET_KEYWORDS = frozenset(
    {"type", "enum", "properties", "required", "additionalProperties", "items", "minimum", "maximum"}
    | {"title", "description"}
)


class _NotPlainError(Exception):
    """The full renderer is needed."""


def render_plain(schema: Mapping[str, Any], rules: SchemaRules) -> Mapping[str, Any] | None:
    """Render the parameters of a tool: the same object if nothing changes, None if the schema is not plain."""
    if schema.get("type") != "object" or rules.closed_objects or rules.openapi:
        return None
    root = schema
    if "$schema" in root:
        root = {key: value for key, value in root.items() if key != "$schema"}
    if not root.keys().isdisjoint(rules.rejected_at_top) or "enum" in root or "const" in root:
        return None
    if "properties" not in root:
        root = {**root, "properties": dict[str, Any]()}
    if rules.keywords is None:
        return root if _is_plain(root, rules, 0) else None
    try:
        return _render_node(root, rules, 0)
    except _NotPlainError:
        return None


# ------------------------------------------------------------------------------------------- all of JSON Schema


def _is_plain(node: object, rules: SchemaRules, depth: int) -> bool:
    """Return whether a target that accepts nearly all of JSON Schema gets this node unchanged."""
    if type(node) is not dict or depth > _MAX_DEPTH:
        return False
    for key, value in cast("Node", node).items():
        check = _CHECKS.get(key)
        if check is not None:
            if not check(value):
                return False
        elif key == "properties":
            if type(value) is not dict or not _are_plain(cast("Node", value).values(), rules, depth + 1):
                return False
        elif key in ("anyOf", "oneOf", "allOf"):
            if not _is_nonempty_list(value) or not _are_plain(value, rules, depth + 1):
                return False
        elif key == "items" or (key == "additionalProperties" and type(value) is not bool):
            if not _is_plain(value, rules, depth + 1):
                return False
        elif key != "additionalProperties":
            return False
    node = cast("Node", node)
    return not rules.items_required or "items" in node or "array" not in (node.get("type") or ())


def _are_plain(nodes: Iterable[object], rules: SchemaRules, depth: int) -> bool:
    return all(_is_plain(node, rules, depth) for node in nodes)


def _is_type(value: object) -> bool:
    if type(value) is list:
        types = cast("list[object]", value)
        return bool(types) and len(set(map(str, types))) == len(types) and all(map(_is_type_name, types))
    return _is_type_name(value)


def _is_type_name(value: object) -> bool:
    return type(value) is str and (value in _TYPES or value == "null")


def _is_string(value: object) -> bool:
    return type(value) is str


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _is_nonempty_list(value: object) -> bool:
    return type(value) is list and bool(cast("list[object]", value))


def _is_name_list(value: object) -> bool:
    if type(value) is not list:
        return False
    names = cast("list[object]", value)
    return all(map(_is_string, names)) and len(set(names)) == len(names)


def _is_any(_value: object) -> bool:
    return True


_CHECKS: dict[str, Callable[[object], bool]] = {
    "type": _is_type,
    "required": _is_name_list,
    "enum": _is_nonempty_list,
    **dict.fromkeys(("title", "description", "format", "pattern"), _is_string),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("const", "default"), _is_any),
}


# ------------------------------------------------------------------------------------------------------ subsets


def _render_node(node: object, rules: SchemaRules, depth: int) -> Node:
    """Return a node with its keywords in the order of the full renderer, if its target's subset has all of them."""
    if type(node) is not dict or depth > _MAX_DEPTH:
        raise _NotPlainError
    parts = cast("Node", node)
    kind = parts.get("type")
    if type(kind) is not str or kind not in _TYPES or not parts.keys() <= (rules.keywords or set()) & _SUBSET_KEYWORDS:
        raise _NotPlainError
    rendered: Node = {"type": kind}
    if kind == "object":
        _add_object(rendered, parts, rules, depth)
    elif kind == "array" and "items" in parts:
        rendered["items"] = _render_node(parts["items"], rules, depth + 1)
    elif kind == "string" and "enum" in parts:
        rendered["enum"] = _plain_values(parts["enum"], rules)
    elif kind in ("integer", "number"):
        _add_bounds(rendered, parts)
    for key in ("title", "description"):
        if key in parts and type(parts[key]) is str:
            rendered[key] = parts[key]
    # What is left over is not plain, or has no effect and is reported; only an empty list is dropped without a finding.
    if len(rendered) < len(parts) - (parts.get("required") == []):
        raise _NotPlainError
    if kind == "array" and rules.items_required and "items" not in rendered:
        raise _NotPlainError
    return rendered


def _add_object(rendered: Node, parts: Node, rules: SchemaRules, depth: int) -> None:
    properties = parts.get("properties", {})
    required = parts.get("required", [])
    additional = parts.get("additionalProperties", False)
    # Only the root may have no properties.
    if type(properties) is not dict or not (properties or depth == 0) or type(additional) is not bool:
        raise _NotPlainError
    names = cast("Node", properties)
    pattern = rules.property_name_pattern
    if pattern is not None and not all(re.fullmatch(pattern, name) for name in names):
        raise _NotPlainError
    if not _is_name_list(required) or not names.keys() >= set(required):
        raise _NotPlainError
    rendered["properties"] = {name: _render_node(part, rules, depth + 1) for name, part in names.items()}
    if required:
        rendered["required"] = required
    if "additionalProperties" in parts:
        rendered["additionalProperties"] = additional


def _add_bounds(rendered: Node, parts: Node) -> None:
    for key, value in parts.items():
        if key in ("minimum", "maximum") and type(value) is int:
            rendered[key] = value
    if "minimum" in rendered and "maximum" in rendered and rendered["minimum"] > rendered["maximum"]:
        raise _NotPlainError


def _plain_values(values: object, rules: SchemaRules) -> list[str]:
    if not _is_name_list(values) or not values:
        raise _NotPlainError
    texts = cast("list[str]", values)
    if "string" not in rules.enum_types or (rules.enum_limit is not None and len(texts) > rules.enum_limit):
        raise _NotPlainError
    if not rules.empty_enum_string and "" in texts:
        raise _NotPlainError
    return texts

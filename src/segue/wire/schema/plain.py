"""Renders plain schemas in one walk: those of nearly all tools, which targets accept as they are.

A plain schema has no references, no keywords of older drafts, and nothing that the target rejects. The result equals
that of the full renderer, which handles all other schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from segue.canonical.type_warmup import warm_type
from segue.wire.schema.json_schema import Node
from segue.wire.schema.rules import SchemaRules

_MAX_DEPTH = 20
# A type is made for each of these levels.
_MAX_CHECKED_DEPTH = 8
_NonNullTypeName = Literal["string", "number", "integer", "boolean", "object", "array"]
_TypeName = Literal[_NonNullTypeName, "null"]
_TYPES = frozenset(get_args(_NonNullTypeName))
# The keywords that are plain in a subset which has them.
_SUBSET_KEYWORDS = frozenset(
    {"type", "enum", "properties", "required", "additionalProperties", "items", "minimum", "maximum"}
    | {"title", "description"}
)


class _NotPlainError(Exception):
    """The full renderer is needed."""


def render_plain(schema: Mapping[str, Any], rules: SchemaRules) -> Node | None:
    """Render the parameters of a tool: the same object if nothing changes, None if the schema is not plain."""
    if schema.get("type") != "object" or rules.closed_objects or rules.openapi:
        return None
    root = cast("Node", schema)
    if "$schema" in root:
        root = {key: value for key, value in root.items() if key != "$schema"}
    if not root.keys().isdisjoint(rules.rejected_at_top) or "enum" in root or "const" in root:
        return None
    if "properties" not in root:
        root = {**root, "properties": dict[str, Any]()}
    if rules.keywords is None:
        return root if _is_plain(root, rules) else None
    try:
        return _render_node(root, rules, 0)
    except _NotPlainError:
        return None


# ------------------------------------------------------------------------------------------- all of JSON Schema


def _is_plain(root: Node, rules: SchemaRules) -> bool:
    """Return whether a target that accepts nearly all of JSON Schema gets this schema unchanged."""
    try:
        msgspec.convert(root, _plain_type(rules.items_required))
    except msgspec.ValidationError:
        return False
    return True


@cache
def _plain_type(items_required: bool) -> Any:
    """Return a type that msgspec converts plain schemas to, and no others.

    There is one type for each level of nodes, since msgspec does not limit the depth.
    """
    optional: dict[str, Any] = {
        "type": _TypeName | tuple[_NonNullTypeName, Literal["null"]],
        "required": list[str],
        "enum": _non_empty(Any),
        **dict.fromkeys(("title", "description", "format", "pattern"), str),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), Annotated[int, Meta(ge=0)]),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), int | float),
        **dict.fromkeys(("const", "default"), Any),
    }
    post_init = {"__post_init__": _check_items_and_names if items_required else _check_names}
    # No value has this type: the innermost nodes have no further ones.
    node: Any = UnsetType
    for _ in range(_MAX_CHECKED_DEPTH):
        inner: dict[str, Any] = {
            "properties": dict[str, node],
            "items": node,
            "additionalProperties": bool | node,
            **dict.fromkeys(("anyOf", "oneOf", "allOf"), _non_empty(node)),
        }
        fields = [(name, kind | UnsetType, UNSET) for name, kind in (optional | inner).items()]
        node = msgspec.defstruct("PlainNode", fields, forbid_unknown_fields=True, gc=False, namespace=post_init)
    return warm_type(node)


def _non_empty(kind: Any) -> Any:
    return Annotated[list[kind], Meta(min_length=1)]


def _check_names(node: Any) -> None:
    if node.required is not UNSET and len(set(node.required)) < len(node.required):
        raise ValueError("a name twice")


def _check_items_and_names(node: Any) -> None:
    _check_names(node)
    if node.items is UNSET and "array" in (node.type or ()):
        raise ValueError("an array without items")


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


def _is_name_list(value: object) -> bool:
    if type(value) is not list:
        return False
    names = cast("list[object]", value)
    return all(type(name) is str for name in names) and len(set(names)) == len(names)


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

"""Renders plain schemas in one walk: those of nearly all tools, which targets accept as they are.

A plain schema has no references, no keywords of older drafts, and nothing that the target rejects. The result equals
that of the full renderer, which handles all other schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from segue.canonical.type_warmup import warm_type
from segue.wire.schema.json_schema import Node
from segue.wire.schema.plain_subset import NotPlainError, PlainSubset
from segue.wire.schema.rules import SchemaRules

_MAX_CHECKED_DEPTH = 7
_NonNullTypeName = Literal["string", "number", "integer", "boolean", "object", "array"]
_TypeName = Literal[_NonNullTypeName, "null"]
_KEYWORDS: dict[str, Any] = {
    "type": _TypeName | tuple[_NonNullTypeName, Literal["null"]],
    "required": list[str],
    "enum": Annotated[list[Any], Meta(min_length=1)],
    **dict.fromkeys(("title", "description", "format", "pattern"), str),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), Annotated[int, Meta(ge=0)]),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), int | float),
    # `encrypted` is no keyword, which the full renderer keeps. Codex sends it.
    **dict.fromkeys(("const", "default", "encrypted"), Any),
}


def render_plain(schema: Mapping[str, Any], rules: SchemaRules) -> Node | None:
    """Render the parameters of a tool: the same object if nothing changes, None if the schema is not plain."""
    if rules.closed_objects or rules.openapi:
        return None
    root = cast("Node", schema)
    if rules.keywords is None:
        try:
            msgspec.convert(root, _plain_root(rules.rejected_at_top, rules.items_required))
        except msgspec.ValidationError:
            return None
        return normalize_root(root)
    if root.get("type") != "object" or not rules.rejected_at_top.isdisjoint(root):
        return None
    try:
        return PlainSubset(rules).render(normalize_root(root))
    except NotPlainError:
        return None


def normalize_root(root: Node) -> Node:
    """Return the root without the name of its draft, and with properties; the same object if nothing changes."""
    if "$schema" in root:
        root = {key: value for key, value in root.items() if key != "$schema"}
    return root if "properties" in root else {**root, "properties": dict[str, Any]()}


# ------------------------------------------------------------------------------------------- all of JSON Schema
#
# msgspec validates a schema by converting it to a type that only plain schemas can be converted to. There is one type
# for each level of nodes, since msgspec does not limit the depth.


@cache
def _plain_root(rejected: frozenset[str], items_required: bool) -> Any:
    """Return the type of plain schemas at the root, where these keywords are rejected."""
    # No value has this type: the innermost nodes have no further ones.
    node: Any = UnsetType
    for _ in range(_MAX_CHECKED_DEPTH):
        node = _define_node(_KEYWORDS | _inner_keywords(node), items_required)
    keywords = {**_KEYWORDS, **_inner_keywords(node), "type": Literal["object"], "$schema": Any}
    for keyword in (*rejected, "enum", "const"):
        keywords.pop(keyword, None)
    return warm_type(_define_node(keywords, items_required, required="type"))


def _inner_keywords(node: Any) -> dict[str, Any]:
    """Return the keywords with further nodes, which have this type."""
    members = dict.fromkeys(("anyOf", "oneOf", "allOf"), Annotated[list[node], Meta(min_length=1)])
    return {"properties": dict[str, node], "items": node, "additionalProperties": bool | node, **members}


def _define_node(keywords: Mapping[str, Any], items_required: bool, *, required: str = "") -> Any:
    names = {name: name.replace("$", "_") for name in keywords}
    return msgspec.defstruct(
        "PlainNode",
        [
            (names[name], kind) if name == required else (names[name], kind | UnsetType, UNSET)
            for name, kind in sorted(keywords.items(), key=lambda item: item[0] != required)
        ],
        rename={python_name: name for name, python_name in names.items()},
        forbid_unknown_fields=True,
        gc=False,
        namespace={"__post_init__": _check_items_and_names if items_required else _check_names},
    )


def _check_names(node: Any) -> None:
    if node.required is not UNSET and len(set(node.required)) < len(node.required):
        raise ValueError("a name twice")


def _check_items_and_names(node: Any) -> None:
    if node.items is UNSET and "array" in (node.type or ()):
        raise ValueError("an array without items")
    if node.required is not UNSET and len(set(node.required)) < len(node.required):
        raise ValueError("a name twice")

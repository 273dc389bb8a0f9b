"""Renders a schema of any draft: the rules of the root, then those of its parts.

Most tools have plain schemas, which `plain` renders; this module is imported for all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.description import add_to_description, describe_keyword, describe_schema
from segue.wire.schema.document import ROOT, Document, iter_references, rename_definition
from segue.wire.schema.json_schema import ANNOTATIONS, COMBINATORS, Node, Schema, is_finite, types_of
from segue.wire.schema.lenient import render_lenient
from segue.wire.schema.merge import Merger, merge_objects
from segue.wire.schema.parse import parse_schema_document
from segue.wire.schema.plain import normalize_root
from segue.wire.schema.plain_subset import NotPlainError, PlainSubset
from segue.wire.schema.rules import UNRESTRICTED, SchemaRules, UnsupportedSchemaError
from segue.wire.schema.subset import LeafRenderer, render_subset


def normalize_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema of any draft, or of OpenAPI, to JSON Schema 2020-12."""
    return render_lenient(parse_schema_document(schema, SchemaChanges()), UNRESTRICTED, SchemaChanges())


def render_root(schema: Mapping[str, Any], rules: SchemaRules, changes: SchemaChanges, *, wrap: bool) -> Node:
    """Render a schema for a target. With `wrap`, a schema that is not an object becomes the property of one."""
    node = render_nearly_plain(schema, rules, changes) if wrap else None
    return render_document(schema, rules, changes, wrap=wrap) if node is None else node


def render_document(schema: Mapping[str, Any], rules: SchemaRules, changes: SchemaChanges, *, wrap: bool) -> Node:
    """Render any schema for a target, as `render_root` does."""
    document = _inline_root_reference(parse_schema_document(schema, changes))
    if wrap or rules.response_must_be_object:
        document = _ensure_object_root(document, rules, changes, wrap=wrap)
    if rules.closed_objects and not wrap and not _has_named_keys(document.root):
        raise UnsupportedSchemaError("an object in the schema allows undeclared properties")
    return (
        render_lenient(document, rules, changes) if rules.keywords is None else render_subset(document, rules, changes)
    )


def render_nearly_plain(schema: Mapping[str, Any], rules: SchemaRules, changes: SchemaChanges) -> Node | None:
    """Render a schema for a subset if only nodes without further ones in them are not plain; None for any other."""
    if rules.keywords is None or rules.closed_objects or rules.openapi:
        return None
    if schema.get("type") != "object" or not rules.rejected_at_top.isdisjoint(schema):
        return None
    leaves = LeafRenderer(rules)
    try:
        node = PlainSubset(rules, leaves.render).render(normalize_root(cast("Node", schema)))
    except NotPlainError:
        return None
    if rules.must_terminate and not is_finite(node, {}, set(), 0):
        return None
    leaves.add_changes(changes)
    return node


def _has_named_keys(root: Schema) -> bool:
    return isinstance(root, dict) and bool(root.get("properties") or "additionalProperties" in root)


def _ensure_object_root(document: Document, rules: SchemaRules, changes: SchemaChanges, *, wrap: bool) -> Document:
    """Return the document with an object at the root, without keywords that the target rejects there."""
    root = document.root
    node = root if isinstance(root, dict) else {}
    rejected = node.keys() & rules.rejected_at_top
    types = types_of(node)
    if (
        root is not False
        and not rejected
        and (types is None or "object" in types)
        and not node.keys() & {"enum", "const"}
    ):
        return _replace_root(document, {**node, "type": "object"}, rules)
    branches = Merger(document, changes).expand_branches(root, "") if rejected else [node]
    objects = [branch for branch in branches if "object" in (types_of(branch) or ["object"])]
    if not objects or root is False:
        if not wrap:
            raise UnsupportedSchemaError("the schema is not an object")
        changes.add("not an object: wrapped in one as the property `value`", "", widens=False)
        return _replace_root(document, {"type": "object", "properties": {"value": root}, "required": ["value"]}, rules)
    merged = merge_objects([{**branch, "type": "object"} for branch in objects])
    texts: list[str] = []
    for key in sorted(merged.keys() & (rules.rejected_at_top | {"enum", "const"}) - COMBINATORS):
        texts.append(describe_keyword(key, merged.pop(key)))
        changes.add(f"`{key}` moved to the description", "")
    if len(objects) > 1:
        texts.append(f"one of: {' or '.join(describe_schema(branch, 1) for branch in objects[:6])}"[:600])
        changes.add("alternatives merged into one object", "")
    annotations = {key: node[key] for key in ("title", "description") if key in node}
    return _replace_root(document, add_to_description({**merged, **annotations}, texts), rules)


def _inline_root_reference(document: Document) -> Document:
    """Replace a root that is only a reference to a definition by that definition."""
    body, name, seen = document.root, ROOT, {ROOT}
    while isinstance(body, dict) and "$ref" in body and not body.keys() - ANNOTATIONS - {"$ref"}:
        name = body["$ref"]
        target = document.find(name)
        if name in seen or isinstance(target, bool):
            return document
        seen.add(name)
        body = {**target, **{key: value for key, value in body.items() if key != "$ref"}}
    if name == ROOT:
        return document
    defs = {key: rename_definition(schema, name, ROOT) for key, schema in document.defs.items() if key != name}
    return Document(rename_definition(body, name, ROOT), defs, document.size)


def _replace_root(document: Document, root: Node, rules: SchemaRules) -> Document:
    """Return the document with another root. References to the old root keep referring to it."""
    if not rules.openapi:
        root = {**root, "properties": root.get("properties", {})}
    if root == document.root or not any(ROOT in iter_references(schema) for schema in (root, *document.defs.values())):
        return Document(root, document.defs, document.size)
    name = "whole"
    while name in document.defs:
        name += "_"
    defs = {
        key: rename_definition(schema, ROOT, name) for key, schema in {**document.defs, name: document.root}.items()
    }
    return Document(rename_definition(root, ROOT, name), defs, document.size)

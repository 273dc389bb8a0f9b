"""JSON Schemas of tool parameters and response formats, from any draft to the subset that a target accepts.

JSON Schema 2020-12 is the canonical form. `normalize_schema` converts any draft to it; `render_schema` renders it for a
target, whose subset is a row of `rules`. A rendered schema accepts every value that the original accepted: unsupported
keywords move to the description, rejected combinations are merged, and each change is reported. Strict modes are the
exception, since they forbid undeclared keys; a schema that a strict mode can't express is not sent as strict. They also
require every property: `drop_forced_nulls` drops the nulls that this forces into arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import ResponseFormat, Tool
from segue.render.report import FindingKind, Report
from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.containers import FORCED_NULL_CHANGE
from segue.wire.schema.description import add_to_description, describe_keyword, describe_schema
from segue.wire.schema.document import ROOT, Document, iter_references, rename_definition
from segue.wire.schema.json_schema import ANNOTATIONS, COMBINATORS, Node, Schema, types_of
from segue.wire.schema.lenient import render_lenient
from segue.wire.schema.merge import Merger, enum_values, merge_objects
from segue.wire.schema.parse import parse_schema_document
from segue.wire.schema.rules import UNRESTRICTED, SchemaRules, UnsupportedSchemaError
from segue.wire.schema.subset import render_subset


def normalize_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema of any draft, or of OpenAPI, to JSON Schema 2020-12."""
    return render_lenient(parse_schema_document(schema, SchemaChanges()), UNRESTRICTED, SchemaChanges())


def render_schema(
    parameters: Mapping[str, Any] | None,
    rules: SchemaRules,
    report: Report,
    *,
    subject: str,
    kind: FindingKind = "tools",
) -> dict[str, Any]:
    """Render the schema of a tool's parameters, always of an object. For rules that are not strict.

    Parameters that are not an object become its only property, `value`; so do the arguments.
    """
    return _render_cached(parameters or {}, rules, as_object=True).report_and_decode(report, subject=subject, kind=kind)


def render_tool_schema(
    tool: Tool, rules: SchemaRules, report: Report, *, strict: SchemaRules | None = None
) -> tuple[dict[str, Any], bool | None]:
    """Render a tool's parameters and its `strict`, which is dropped where the schema can't be expressed."""
    if not tool.strict:
        return render_schema(tool.parameters, rules, report, subject=tool.name), None if strict is None else tool.strict
    if strict is None:
        report.add(
            "tools", "`strict` dropped: the target has a different schema subset", subject=tool.name, level="lost"
        )
    else:
        rendered = _render_cached(tool.parameters or {}, strict, as_object=True)
        if not rendered.unsupported:
            return rendered.report_and_decode(report, subject=tool.name, kind="tools"), True
        report.add("tools", f"`strict` dropped: {rendered.unsupported}", subject=tool.name, level="lost")
    return render_schema(tool.parameters, rules, report, subject=tool.name), None


def render_format_schema(
    form: ResponseFormat | None, rules: SchemaRules, report: Report, *, strict: SchemaRules | None = None
) -> ResponseFormat | None:
    """Render the response format; None if the target can't express it.

    Unlike arguments, a response is not wrapped, so a target that requires an object gets no other schema.
    """
    if form is None or form.schema is None:
        return form
    if form.strict and strict is not None:
        rendered = _render_cached(form.schema, strict, as_object=False)
        # Forced nulls are removed from arguments, but not from a response.
        why = rendered.unsupported or (
            "the schema has an optional property" if FORCED_NULL_CHANGE in rendered.changes else ""
        )
        if not why:
            return replace(form, schema=rendered.report_and_decode(report, subject="response_format", kind="adjusted"))
        report.add(
            "adjusted", f"`strict` dropped from the response format: {why}", subject="response_format", level="lost"
        )
        form = replace(form, strict=None)
    rendered = _render_cached(form.schema or {}, rules, as_object=False)
    if rendered.unsupported:
        report.add(
            "adjusted", f"`response_format` dropped: {rendered.unsupported}", subject="response_format", level="lost"
        )
        return None
    return replace(form, schema=rendered.report_and_decode(report, subject="response_format", kind="adjusted"))


class _RenderedSchema(Struct, frozen=True):
    """A schema rendered for a target, encoded since it is cached, or the reason why the target can't express it."""

    data: bytes
    changes: SchemaChanges
    unsupported: str = ""

    def report_and_decode(self, report: Report, *, subject: str, kind: FindingKind) -> dict[str, Any]:
        self.changes.report(report, subject=subject, kind=kind)
        return parse_json_object(self.data)[0]


def _render_cached(schema: Mapping[str, Any], rules: SchemaRules, *, as_object: bool) -> _RenderedSchema:
    return _render_bytes(encode_json(schema), rules, as_object)


@lru_cache(maxsize=512)
def _render_bytes(data: bytes, rules: SchemaRules, as_object: bool) -> _RenderedSchema:
    """Render a schema; cached, since a conversation declares the same tools at every turn."""
    changes = SchemaChanges()
    try:
        node = _render(parse_json_object(data)[0], rules, changes, wrap=as_object)
    except UnsupportedSchemaError as why:
        return _RenderedSchema(b"", changes, str(why))
    return _RenderedSchema(encode_json(node), changes)


# ------------------------------------------------------------------------------------------------------------ the root


def _render(schema: Mapping[str, Any], rules: SchemaRules, changes: SchemaChanges, *, wrap: bool) -> Node:
    document = _inline_root_reference(parse_schema_document(schema, changes))
    if wrap or rules.response_must_be_object:
        document = _ensure_object_root(document, rules, changes, wrap=wrap)
    if rules.closed_objects and not wrap and not _has_named_keys(document.root):
        raise UnsupportedSchemaError("an object in the schema allows undeclared properties")
    return (
        render_lenient(document, rules, changes) if rules.keywords is None else render_subset(document, rules, changes)
    )


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


# --------------------------------------------------------------------------------------------------------- forced nulls


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

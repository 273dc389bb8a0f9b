"""JSON Schemas of tool parameters and response formats, from any draft to the subset that a target accepts.

JSON Schema 2020-12 is the canonical form. `normalize_schema` converts any draft to it; `render_schema` renders it for a
target, whose subset is a row of `rules`. A rendered schema accepts every value that the original accepted: unsupported
keywords move to the description, rejected combinations are merged, and each change is reported. Strict modes are the
exception, since they forbid undeclared keys; a schema that a strict mode can't express is not sent as strict.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.jsontext import read_object, write
from segue.canonical.request import ResponseFormat, Tool
from segue.render.report import Kind, Report
from segue.wire.schema.back import without_forced_nulls
from segue.wire.schema.containers import FORCED_NULL
from segue.wire.schema.document import ROOT, Document, references, renamed
from segue.wire.schema.merge import Merger, united
from segue.wire.schema.narrow import written_narrow
from segue.wire.schema.notes import Notes
from segue.wire.schema.plain import written_plain
from segue.wire.schema.read import read_document
from segue.wire.schema.rules import PLAIN, SchemaRules, UnfitError
from segue.wire.schema.vocabulary import ANNOTATIONS, COMBINATORS, Node, Schema, types_of
from segue.wire.schema.words import described, tell, told

__all__ = ["SchemaRules", "fitted", "fitted_format", "fitted_tool", "read_schema", "without_forced_nulls"]


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of any draft, or of OpenAPI, as JSON Schema 2020-12."""
    return written_plain(read_document(schema, Notes()), PLAIN, Notes())


def fitted(
    parameters: Mapping[str, Any] | None, rules: SchemaRules, report: Report, *, subject: str, kind: Kind = "tools"
) -> dict[str, Any]:
    """The schema of a tool's parameters for the target, always of an object. For rules that are not strict.

    Parameters that are not an object become its only property, `value`; so do the arguments.
    """
    return _fit(parameters or {}, rules, as_object=True).told(report, subject=subject, kind=kind)


def fitted_tool(
    tool: Tool, rules: SchemaRules, report: Report, *, strict: SchemaRules | None = None
) -> tuple[dict[str, Any], bool | None]:
    """A tool's parameters and its `strict` for the target; `strict` is dropped where the schema can't be expressed."""
    if not tool.strict:
        return fitted(tool.parameters, rules, report, subject=tool.name), None if strict is None else tool.strict
    if strict is None:
        report.add("tools", "`strict` dropped: the target has a different schema subset", subject=tool.name)
    else:
        fit = _fit(tool.parameters or {}, strict, as_object=True)
        if not fit.unfit:
            return fit.told(report, subject=tool.name, kind="tools"), True
        report.add("tools", f"`strict` dropped: {fit.unfit}", subject=tool.name)
    return fitted(tool.parameters, rules, report, subject=tool.name), None


def fitted_format(
    form: ResponseFormat | None, rules: SchemaRules, report: Report, *, strict: SchemaRules | None = None
) -> ResponseFormat | None:
    """The response format for the target; None if the target can't express it.

    Unlike arguments, a response is not wrapped, so a target that requires an object gets no other schema.
    """
    if form is None or form.schema is None:
        return form
    if form.strict and strict is not None:
        fit = _fit(form.schema, strict, as_object=False)
        # Forced nulls are removed from arguments, but not from a response.
        why = fit.unfit or ("a property is optional" if FORCED_NULL in fit.changes else "")
        if not why:
            return replace(form, schema=fit.told(report, subject="response_format", kind="adjusted"))
        report.add("adjusted", f"`strict` dropped from the response format: {why}", subject="response_format")
        form = replace(form, strict=None)
    fit = _fit(form.schema or {}, rules, as_object=False)
    if fit.unfit:
        report.add("adjusted", f"`response_format` dropped: {fit.unfit}", subject="response_format")
        return None
    return replace(form, schema=fit.told(report, subject="response_format", kind="adjusted"))


class _Fit(Struct, frozen=True):
    """A schema rendered for a target, encoded since it is cached, or the reason why the target can't express it."""

    data: bytes
    changes: Notes
    unfit: str = ""

    def told(self, report: Report, *, subject: str, kind: Kind) -> dict[str, Any]:
        self.changes.report(report, subject=subject, kind=kind)
        return read_object(self.data)[0]


def _fit(schema: Mapping[str, Any], rules: SchemaRules, *, as_object: bool) -> _Fit:
    return _fit_text(write(schema), rules, as_object)


@lru_cache(maxsize=512)
def _fit_text(data: bytes, rules: SchemaRules, as_object: bool) -> _Fit:
    """Cached, since a conversation declares the same tools at every turn."""
    changes = Notes()
    try:
        node = _written(read_object(data)[0], rules, changes, wrap=as_object)
    except UnfitError as why:
        return _Fit(b"", changes, str(why))
    return _Fit(write(node), changes)


# ------------------------------------------------------------------------------------------------------------ the root


def _written(schema: Mapping[str, Any], rules: SchemaRules, changes: Notes, *, wrap: bool) -> Node:
    document = _opened(read_document(schema, changes))
    if wrap or rules.object_answers:
        document = _with_object_root(document, rules, changes, wrap=wrap)
    if rules.closed and not wrap and not _named_keys(document.root):
        raise UnfitError("an object in it accepts undeclared keys")
    return (
        written_plain(document, rules, changes) if rules.keywords is None else written_narrow(document, rules, changes)
    )


def _named_keys(root: Schema) -> bool:
    return isinstance(root, dict) and bool(root.get("properties") or "additionalProperties" in root)


def _with_object_root(document: Document, rules: SchemaRules, changes: Notes, *, wrap: bool) -> Document:
    """The document with an object at the root, without keywords that the target rejects there."""
    root = document.root
    node = root if isinstance(root, dict) else {}
    rejected = node.keys() & rules.refused_at_top
    types = types_of(node)
    if (
        root is not False
        and not rejected
        and (types is None or "object" in types)
        and not node.keys() & {"enum", "const"}
    ):
        return _rooted(document, {**node, "type": "object"}, rules)
    branches = Merger(document, changes).branches(root, "") if rejected else [node]
    objects = [branch for branch in branches if "object" in (types_of(branch) or ["object"])]
    if not objects or root is False:
        if not wrap:
            raise UnfitError("it is not an object")
        changes.add("not an object: wrapped in one as the property `value`", "", loss=False)
        return _rooted(document, {"type": "object", "properties": {"value": root}, "required": ["value"]}, rules)
    merged = united([{**branch, "type": "object"} for branch in objects])
    texts: list[str] = []
    for key in sorted(merged.keys() & (rules.refused_at_top | {"enum", "const"}) - COMBINATORS):
        texts.append(told(key, merged.pop(key)))
        changes.add(f"`{key}` moved to the description", "")
    if len(objects) > 1:
        texts.append(f"one of: {' or '.join(tell(branch, 1) for branch in objects[:6])}"[:600])
        changes.add("alternatives merged into one object", "")
    outer = {key: node[key] for key in ("title", "description") if key in node}
    return _rooted(document, described({**merged, **outer}, texts), rules)


def _opened(document: Document) -> Document:
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
    defs = {key: renamed(schema, name, ROOT) for key, schema in document.defs.items() if key != name}
    return Document(renamed(body, name, ROOT), defs, document.size)


def _rooted(document: Document, root: Node, rules: SchemaRules) -> Document:
    """The document with another root. References to the old root keep referring to it."""
    if not rules.openapi:
        root = {**root, "properties": root.get("properties", {})}
    if root == document.root or not any(ROOT in references(schema) for schema in (root, *document.defs.values())):
        return Document(root, document.defs, document.size)
    name = "whole"
    while name in document.defs:
        name += "_"
    defs = {key: renamed(schema, ROOT, name) for key, schema in {**document.defs, name: document.root}.items()}
    return Document(renamed(root, ROOT, name), defs, document.size)

"""Schemas of tool parameters and answers, from any draft to what a target takes.

JSON Schema 2020-12 is the canonical form. `read_schema` reads anything into it; `fitted` writes it for a target, whose
subset is a row of `rules`. Nothing that was valid becomes invalid: what a target has no keyword for is told in words,
a combination that it refuses is merged, and each such thing is reported. Rows of strict modes are the exception, since
strictness itself closes objects; a schema that can't be said so is not sent as strict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.request import ResponseFormat, Tool
from segue.render.report import Kind, Report
from segue.wire.schema.merge import Merger, united
from segue.wire.schema.narrow import UnfitError, written_narrow
from segue.wire.schema.notes import Notes
from segue.wire.schema.plain import written_plain
from segue.wire.schema.read import ROOT, Document, read_document, references, renamed
from segue.wire.schema.rules import PLAIN, SchemaRules
from segue.wire.schema.vocabulary import ANNOTATIONS, COMBINATORS, Node, types_of
from segue.wire.schema.words import described, tell, told

__all__ = ["SchemaRules", "fitted", "fitted_format", "fitted_tool", "read_schema"]


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of any draft, or of OpenAPI, as JSON Schema 2020-12."""
    return written_plain(read_document(schema, Notes()), PLAIN, Notes())


def fitted(
    parameters: Mapping[str, Any] | None, rules: SchemaRules, report: Report, *, subject: str, kind: Kind = "tools"
) -> dict[str, Any]:
    """The schema of a tool's parameters as the target takes it; always one of an object. For rows that are not strict.

    Parameters that are no object become its only property, `value`, as the arguments do.
    """
    notes = Notes()
    node = _written(parameters or {}, rules, notes, as_object=True)
    notes.report(report, subject=subject, kind=kind)
    return node


def fitted_tool(
    tool: Tool, rules: SchemaRules, report: Report, *, strict: SchemaRules | None = None
) -> tuple[dict[str, Any], bool | None]:
    """A tool's parameters and its `strict`. A tool that can't be strict there is declared without it."""
    if not tool.strict:
        return fitted(tool.parameters, rules, report, subject=tool.name), tool.strict if strict is not None else None
    if strict is None:
        report.add("tools", "`strict` is left out: the target has no such mode for tools", subject=tool.name)
    else:
        notes = Notes()
        try:
            node = _written(tool.parameters or {}, strict, notes, as_object=True)
        except UnfitError as why:
            report.add("tools", f"`strict` is left out: {why}, which its schema subset can't say", subject=tool.name)
        else:
            notes.report(report, subject=tool.name, kind="tools")
            return node, True
    return fitted(tool.parameters, rules, report, subject=tool.name), None


def fitted_format(
    form: ResponseFormat | None, rules: SchemaRules, report: Report, *, strict: SchemaRules | None = None
) -> ResponseFormat | None:
    """The answer's form as the target takes it; None where it has no word for it.

    An answer can't be wrapped as arguments are, so a target that wants an object gets no schema of anything else.
    """
    if form is None or form.schema is None:
        return form
    wanted = strict if form.strict and strict is not None else rules
    notes = Notes()
    try:
        node = _written(form.schema, wanted, notes, as_object=False)
    except UnfitError as why:
        if wanted is rules:
            report.add("adjusted", f"`response_format` is left out: {why}", subject="response_format")
            return None
        report.add("adjusted", f"the answer is not asked for as strict: {why}", subject="response_format")
        return fitted_format(replace(form, strict=None), rules, report)
    notes.report(report, subject="response_format", kind="adjusted")
    return replace(form, schema=node)


# ------------------------------------------------------------------------------------------------------------ the root


def _written(schema: Mapping[str, Any], rules: SchemaRules, notes: Notes, *, as_object: bool) -> Node:
    document = _with_lawful_root(read_document(schema, notes), rules, notes, wrap=as_object)
    return written_plain(document, rules, notes) if rules.keywords is None else written_narrow(document, rules, notes)


def _with_lawful_root(document: Document, rules: SchemaRules, notes: Notes, *, wrap: bool) -> Document:
    """The document as one of an object, without what the target refuses at the top."""
    document = _opened(document)
    root = document.root
    node = cast("Node", root) if isinstance(root, dict) else {}
    refused = node.keys() & rules.refused_at_top
    types = types_of(node)
    if (
        root is not False
        and not refused
        and (types is None or "object" in types)
        and not node.keys() & {"enum", "const"}
    ):
        return _rooted(document, {**node, "type": "object"}, rules)
    branches = Merger(document.find, notes).branches(root, "") if refused else [node]
    objects = [branch for branch in branches if "object" in (types_of(branch) or ["object"])]
    if not objects or root is False:
        if not wrap:
            raise UnfitError("it is no object")
        return _rooted(document, {"type": "object", "properties": {"value": root}, "required": ["value"]}, rules)
    merged = united([{**branch, "type": "object"} for branch in objects])
    words: list[str] = []
    for key in sorted(merged.keys() & (rules.refused_at_top | {"enum", "const"}) - COMBINATORS):
        words.append(told(key, merged.pop(key)))
        notes.add(f"`{key}` is told in words", "")
    if len(objects) > 1:
        words.append(f"one of: {' or '.join(tell(branch, 1) for branch in objects[:6])}"[:600])
        notes.add("alternatives are merged into one object", "")
    outer = {key: node[key] for key in ("title", "description") if key in node}
    return _rooted(document, described({**merged, **outer}, words), rules)


def _opened(document: Document) -> Document:
    """The document without a root that is nothing but a reference to one of its definitions."""
    root = document.root
    while isinstance(root, dict) and not root.keys() - ANNOTATIONS - {"$ref"} and root.get("$ref", ROOT) != ROOT:
        name: str = root["$ref"]
        target = document.defs[name]
        if isinstance(target, bool):
            break
        body = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
        defs = {key: renamed(schema, name, ROOT) for key, schema in document.defs.items() if key != name}
        root = renamed(body, name, ROOT)
        document = Document(root, defs)
    return document


def _rooted(document: Document, root: Node, rules: SchemaRules) -> Document:
    """The document with another root. What refers to the whole goes on to mean the old one."""
    if rules.properties_needed:
        root = {**root, "properties": root.get("properties", {})}
    if root == document.root or not any(ROOT in references(schema) for schema in (root, *document.defs.values())):
        return Document(root, document.defs)
    name = "whole"
    while name in document.defs:
        name += "_"
    defs = {key: renamed(schema, ROOT, name) for key, schema in {**document.defs, name: document.root}.items()}
    return Document(renamed(root, ROOT, name), defs)

"""JSON Schemas of tool parameters and response formats, from any draft to the subset that a target accepts.

JSON Schema 2020-12 is the canonical form. `root.normalize_schema` converts any draft to it; `render_schema` renders it
for a target, whose subset is a row of `rules`. A rendered schema accepts every value that the original accepted:
unsupported keywords move to the description, rejected combinations are merged, and each change is reported. Strict
modes are the exception, since they forbid undeclared keys; a schema that a strict mode can't express is not sent as
strict. They also require every property: `forced_nulls` drops the nulls that this forces into arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.json import encode_json
from segue.canonical.request import ResponseFormat, Tool
from segue.render.report import FindingKind, Report
from segue.wire.schema.changes import FORCED_NULL_CHANGE, SchemaChanges
from segue.wire.schema.plain import render_plain
from segue.wire.schema.rules import SchemaRules, UnsupportedSchemaError

_NO_PARAMETERS: Mapping[str, Any] = {"type": "object"}


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
    schema = parameters or _NO_PARAMETERS
    plain = render_plain(schema, rules)
    if plain is not None:
        return plain
    rendered = _render_cached(schema, rules, as_object=True)
    return rendered.report_and_decode(schema, report, subject=subject, kind=kind)


def render_tool_schema(
    tool: Tool, rules: SchemaRules, report: Report, *, strict: SchemaRules | None = None
) -> tuple[dict[str, Any], bool | None]:
    """Render a tool's parameters and its `strict`, which is dropped where the schema can't be expressed."""
    if not tool.strict:
        return render_schema(tool.parameters, rules, report, subject=tool.name), None if strict is None else tool.strict
    if strict is None:
        message = "`strict` dropped: the target has a different schema subset"
        report.add("tools", message, subject=tool.name, level="lost")
    else:
        schema = tool.parameters or {}
        rendered = _render_cached(schema, strict, as_object=True)
        if not rendered.unsupported:
            return rendered.report_and_decode(schema, report, subject=tool.name, kind="tools"), True
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
            return _replace_schema(form, rendered, report)
        message = f"`strict` dropped from the response format: {why}"
        report.add("adjusted", message, subject="response_format", level="lost")
        form = replace(form, strict=None)
    rendered = _render_cached(form.schema or {}, rules, as_object=False)
    if rendered.unsupported:
        message = f"`response_format` dropped: {rendered.unsupported}"
        report.add("adjusted", message, subject="response_format", level="lost")
        return None
    return _replace_schema(form, rendered, report)


def _replace_schema(form: ResponseFormat, rendered: _RenderedSchema, report: Report) -> ResponseFormat:
    schema = rendered.report_and_decode(form.schema or {}, report, subject="response_format", kind="adjusted")
    return replace(form, schema=schema)


class _RenderedSchema(Struct, frozen=True):
    """A schema rendered for a target, or the reason why the target can't express it.

    It is encoded since it is cached; `data` is None if the schema is unchanged.
    """

    data: bytes | None
    changes: SchemaChanges
    unsupported: str = ""

    def report_and_decode(
        self, original: Mapping[str, Any], report: Report, *, subject: str, kind: FindingKind
    ) -> dict[str, Any]:
        """Report the changes, and return the schema: the original one if it is unchanged."""
        self.changes.report(report, subject=subject, kind=kind)
        return cast("dict[str, Any]", original) if self.data is None else msgspec.json.decode(self.data)


def _render_cached(schema: Mapping[str, Any], rules: SchemaRules, *, as_object: bool) -> _RenderedSchema:
    return _render_bytes(encode_json(schema), rules, as_object)


@lru_cache(maxsize=512)
def _render_bytes(data: bytes, rules: SchemaRules, as_object: bool) -> _RenderedSchema:
    """Render a schema that is not plain; cached, since a conversation declares the same tools at every turn."""
    schema = msgspec.json.decode(data)
    changes = SchemaChanges()
    # Imported here, because most tools have plain schemas.
    from segue.wire.schema.root import render_root

    try:
        rendered = encode_json(render_root(schema, rules, changes, wrap=as_object))
    except UnsupportedSchemaError as why:
        return _RenderedSchema(None, changes, str(why))
    return _RenderedSchema(None if rendered == data else rendered, changes)


def clear_rendered_schemas() -> None:
    """Clear the cache of rendered schemas."""
    _render_bytes.cache_clear()

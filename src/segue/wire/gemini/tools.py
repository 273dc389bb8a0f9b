"""Tool declarations ⇄ `Tool`.

One entry of `tools` may declare several functions and hosted tools; each becomes a `Tool` of its own. Same-API, they
stay in their original entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Native
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.wire import mixed_body
from segue.wire.base import RenderContext
from segue.wire.gemini.capabilities import API
from segue.wire.gemini.fields import (
    JsonObject,
    as_list,
    both_cases,
    find_key,
    get_field,
    get_text,
    get_text_strict,
    replace_fields,
)
from segue.wire.json_values import optional_schema, require_object
from segue.wire.merge import intact_fragment
from segue.wire.schema import render_schema, rules
from segue.wire.schema.openapi import is_valid_schema, parse_schema
from segue.wire.tools import declare_name, report_undeclarable, to_function_tool, to_object_schema

_DECLARATIONS = "functionDeclarations"
TOOL_KEYS = both_cases("name", "description", "parameters", "parametersJsonSchema")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_tools(value: object) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for index, item in enumerate(as_list(value, "tools")):
        try:
            entry = require_object(item)
            tools += mixed_body.parse_tool(entry, API) or [
                tool for key in entry for tool in _parse_tool_field(entry, key)
            ]
        except InputError as error:
            raise error.with_prefix(f"tools[{index}]") from None
    return tuple(tools)


def _parse_tool_field(entry: JsonObject, key: str) -> list[Tool]:
    if key != find_key(entry, _DECLARATIONS):
        return [] if entry[key] is None else [Tool(key, kind="hosted", native=Native(API, {key: entry[key]}))]
    tools: list[Tool] = []
    for index, item in enumerate(as_list(entry[key], key)):
        try:
            tools.append(_parse_function(require_object(item)))
        except InputError as error:
            raise error.with_prefix(f"{key}[{index}]") from None
    return tools


def _parse_function(function: JsonObject) -> Tool:
    name = get_text_strict(function, "name")
    if name is None:
        raise InputError("a function needs a name", path="name")
    parameters, schema = (
        optional_schema(get_field(function, key), find_key(function, key))
        for key in ("parametersJsonSchema", "parameters")
    )
    if parameters is None and schema is not None:
        parameters = parse_schema(schema)
    return Tool(name, get_text_strict(function, "description"), parameters, native=Native(API, function))


# ----------------------------------------------------------------------------------------------------------------- out


def render_tools(tools: Sequence[Tool], render_context: RenderContext) -> list[JsonObject]:
    """Render cross-API declarations: all functions in one entry, and Gemini's own hosted tools."""
    functions: list[JsonObject] = []
    names: set[str] = set()
    hosted: list[JsonObject] = []
    for declared_tool in tools:
        if declared_tool.kind == "hosted":
            rendered = intact_fragment(declared_tool.native, API)
            hosted += [rendered] if rendered is not None else []
            if rendered is None:
                report_undeclarable(declared_tool, render_context.report)
            continue
        tool = to_function_tool(declared_tool, render_context.report)
        rendered = _render_function(tool, render_context)
        if declare_name(names, rendered["name"], tool.name, render_context.report):
            functions.append(rendered)
    return [*([{_DECLARATIONS: functions}] if functions else []), *hosted]


def _render_function(tool: Tool, render_context: RenderContext) -> JsonObject:
    original = intact_fragment(tool.native, API)
    name = render_context.names.render(tool.name)
    if original is not None:
        return replace_fields(_valid_schemas(original, render_context), name=name)
    rendered: JsonObject = {"name": name}
    if tool.description is not None:
        rendered["description"] = tool.description
    if tool.parameters is not None:
        rendered["parametersJsonSchema"] = render_schema(
            tool.parameters, rules.GEMINI, render_context.report, subject=tool.name
        )
    if tool.strict:
        message = "`strict` dropped: Gemini has no such option"
        render_context.report.add("tools", message, subject=tool.name, level="lost")
    return rendered


def _valid_schemas(function: JsonObject, render_context: RenderContext) -> JsonObject:
    """Return a same-API declaration; schemas that are not valid Gemini schemas become JSON Schema (GEM-23)."""
    changed = function
    for name in ("parameters", "response"):
        plain = f"{name}JsonSchema"
        gemini_schema = get_field(function, name)
        if gemini_schema is None or (
            is_valid_schema(gemini_schema, is_root=name == "parameters") and get_field(function, plain) is None
        ):
            continue
        schema = get_field(function, plain)
        if schema is None and isinstance(gemini_schema, dict):
            schema = to_object_schema(parse_schema(cast("JsonObject", gemini_schema)))
        message = f"`{name}` sent as `{plain}`: not a valid Gemini schema"
        render_context.report.add("tools", message, subject=get_text(function, "name"))
        changed = replace_fields(changed, **{name: None, plain: schema})
    return changed


def merge_tools(original_entries: Any, tools: Sequence[Tool], render_context: RenderContext) -> list[JsonObject] | None:
    """Return the original entries with the projected function names; None if nothing changed."""
    rendered = iter([_render_function(tool, render_context) for tool in tools if tool.kind == "function"])
    names: set[str] = set()
    changed = False
    entries: list[JsonObject] = []
    for item in as_list(original_entries, "tools"):
        entry = cast("JsonObject", item)
        key = find_key(entry, _DECLARATIONS)
        functions: list[Any] = as_list(entry.get(key), key)
        if (foreign := mixed_body.parse_tool(entry, API)) is not None:
            # A hosted tool of another API is not declared.
            functions, entry = [tool for tool in foreign if tool.kind != "hosted"], {}
        projected = [next(rendered) for _ in functions]
        # GEM-23
        kept = [tool for tool in projected if declare_name(names, tool["name"], tool["name"], render_context.report)]
        if kept != functions:
            changed = True
            entry = {**entry, key: kept}
        entries += [entry] if entry else []
    return entries if changed else None

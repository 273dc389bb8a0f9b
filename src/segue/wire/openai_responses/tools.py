"""Tool declarations ⇄ `Tool`. Tools in namespaces and in items are declared too.

Same-API, the original list is kept; only invalid names are replaced. Tools declared in an item (`declared_in`) are sent
with that item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.blocks import Native
from segue.canonical.json import are_identical
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.render.transcript import Transcript
from segue.wire import mixed_body
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    objects_in,
    optional_boolean,
    optional_object,
    optional_schema,
    optional_string,
    require_list,
    require_object,
    string_or_none,
)
from segue.wire.names import NAMESPACE_SEPARATOR, NameRule, join_name, split_name
from segue.wire.openai_responses.context import ResponsesContext, ResponsesDialect
from segue.wire.openai_shared import is_openai_native
from segue.wire.schema import render_tool_schema, rules
from segue.wire.tools import limit_tools, render_object_schema, report_undeclarable, to_object_schema

_KINDS = ("function", "custom")
# The APIs whose declarations are parsed here.
_ACCEPTED_TOOLS = ("openai-responses", "openai-chat")
# As on Chat Completions; only applied to cross-API bodies.
_LIMIT = 128
DECLARING_TYPES = ("additional_tools", "tool_search_output")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_tools(
    value: object, dialect: ResponsesDialect, path: str = "tools", *, declared_in: str | None = None
) -> list[Tool]:
    """Parse all tools of a list; `declared_in` is the type of the item that declares them."""
    tools: list[Tool] = []
    for index, item in enumerate(require_list(value, path)):
        extra = {"declared_in": declared_in} if declared_in else None
        try:
            entry = require_object(item)
            tools += mixed_body.parse_tool(entry, *_ACCEPTED_TOOLS) or _parse_entry(entry, None, extra, dialect)
        except InputError as error:
            raise error.with_prefix(f"{path}[{index}]") from None
    return tools


def parse_item_tools(items: Sequence[object], dialect: ResponsesDialect) -> Iterator[Tool]:
    """Parse the tools that items make available."""
    kinds = [item.get("type") for item in objects_in(items)]
    if not [kind for kind in DECLARING_TYPES if kind in kinds]:
        return
    for index, item in enumerate(map(object_or_none, items)):
        if item is not None and item.get("type") in DECLARING_TYPES and isinstance(item.get("tools"), list):
            yield from parse_tools(item["tools"], dialect, f"input[{index}].tools", declared_in=item["type"])


def namespaced_names_by_bare_name(tools: Sequence[Tool]) -> dict[str, str]:
    """Map bare to namespaced names, except names of tools outside namespaces. OAI-RESP-18: the first one."""
    namespaced = [tool.name for tool in tools if NAMESPACE_SEPARATOR in tool.name]
    if not namespaced:
        return {}
    plain = {tool.name for tool in tools if NAMESPACE_SEPARATOR not in tool.name}
    joined_names: dict[str, str] = {}
    for name in namespaced:
        _, bare = split_name(name)
        if bare not in plain:
            joined_names.setdefault(bare, name)
    return joined_names


def _parse_entry(
    entry: JsonObject, namespace: str | None, extra: JsonObject | None, dialect: ResponsesDialect
) -> list[Tool]:
    kind = entry.get("type") or "function"
    if not isinstance(kind, str):
        raise InputError(f"a tool's type must be a string, not {json_type_name(kind)}", path="type")
    if kind == "namespace":
        name = _parse_name(entry)
        entries = require_list(entry.get("tools"), "tools")
        if dialect.validate_tool is not None:
            dialect.validate_tool(entry)
        tools: list[Tool] = []
        for index, value in enumerate(entries):
            try:
                tools += _parse_entry(require_object(value), name, extra, dialect)
            except InputError as error:
                raise error.with_prefix(f"tools[{index}]") from None
        return tools
    if kind not in _KINDS:
        label = string_or_none(entry.get("server_label")) or kind
        if kind == "mcp" and label == kind:
            raise InputError("an MCP server's tools need its `server_label`", path="server_label")
        if dialect.validate_tool is not None:
            dialect.validate_tool(entry)
        return [Tool(label, kind="hosted", native=Native(dialect.name, entry), extra=extra)]
    return [_parse_client_tool(entry, kind, namespace, extra, dialect)]


def _parse_client_tool(
    entry: JsonObject, kind: str, namespace: str | None, extra: JsonObject | None, dialect: ResponsesDialect
) -> Tool:
    # A nested declaration is the Chat Completions form; it is accepted.
    nested = object_or_none(entry.get(kind)) if "name" not in entry else None
    detail = entry if nested is None else nested
    name = _parse_name(detail)
    prefix = "" if nested is None else f"{kind}."
    parameters = optional_schema(detail.get("parameters"), f"{prefix}parameters")
    intact = nested is None and entry.get("type") == kind and detail.get("parameters") in (None, parameters)
    grammar_fields: JsonObject = {}
    if form := optional_object(detail.get("format"), f"{prefix}format"):
        grammar = optional_object(form.get("grammar"), f"{prefix}format.grammar") or form
        grammar_fields = {key: grammar[key] for key in ("syntax", "definition") if key in grammar}
    return Tool(
        name if namespace is None else join_name(namespace, name),
        optional_string(detail.get("description"), f"{prefix}description"),
        parameters,
        kind="custom" if kind == "custom" else "function",
        strict=optional_boolean(detail.get("strict"), f"{prefix}strict"),
        grammar=grammar_fields or None,
        native=Native(dialect.name, entry, intact),
        extra=extra,
    )


def _parse_name(entry: JsonObject) -> str:
    name = entry.get("name")
    if not isinstance(name, str):
        raise InputError(f"a tool's name was expected, not {json_type_name(name)}", path="name")
    return name


# ----------------------------------------------------------------------------------------------------------------- out


def render_tools(transcript: Transcript, context: ResponsesContext) -> list[JsonObject]:
    """Render declarations, the original ones for this API's own tools."""
    supported: list[Tool] = []
    for tool in transcript.tools:
        is_own = context.own_native(tool.native) is not None
        if is_own and tool.extra is not None and "declared_in" in tool.extra:
            continue
        if tool.kind == "hosted" and not is_own:
            report_undeclarable(tool, context.report)
        else:
            supported.append(tool)
    return [_render_tool(tool, context) for tool in limit_tools(supported, _LIMIT, transcript, context.report)]


def _render_tool(tool: Tool, context: ResponsesContext) -> JsonObject:
    native = context.own_native(tool.native)
    if tool.kind == "hosted" and native is not None:
        return cast("JsonObject", native.fragment)
    name = context.project_name(tool.name)
    if native is not None and native.intact:
        return _with_name(cast("JsonObject", native.fragment), name)
    if tool.grammar is not None and not _is_grammar(tool.grammar):
        why = "grammar dropped: it has no definition or an unknown syntax"
        context.report.add("tools", why, subject=tool.name, level="lost")
        tool = replace(tool, grammar=None)
    if tool.kind == "function" and is_openai_native(tool.native):
        tool = replace(tool, parameters=render_object_schema(tool, rules.OPENAI, context.report))
    elif tool.kind == "function":
        parameters, strict = render_tool_schema(tool, rules.OPENAI, context.report, strict=rules.OPENAI_STRICT)
        tool = replace(tool, parameters=parameters, strict=strict)
    return _render_declaration(tool, name)


def _is_grammar(grammar: Mapping[str, Any]) -> bool:
    return grammar.get("syntax") in ("lark", "regex") and isinstance(grammar.get("definition"), str)


def _render_declaration(tool: Tool, name: str) -> JsonObject:
    entry: JsonObject = {"type": tool.kind, "name": name}
    if tool.description is not None:
        entry["description"] = tool.description
    if tool.kind == "custom":
        return entry if tool.grammar is None else {**entry, "format": {"type": "grammar", **tool.grammar}}
    entry["parameters"] = to_object_schema(tool.parameters)
    # The default would be strict if the schema allows it.
    entry["strict"] = bool(tool.strict)
    return {**entry, "defer_loading": True} if tool.extra and "defer_loading" in tool.extra else entry


def _with_name(entry: JsonObject, name: str) -> JsonObject:
    return entry if entry.get("name") == name else {**entry, "name": name}


def project_tools(entries: Sequence[Any], context: ResponsesContext, namespace: str | None = None) -> list[Any]:
    """Return the declarations with projected names in valid form; unchanged ones are the same objects."""
    return [tool for entry in entries for tool in _project_entry(object_or_none(entry) or {}, context, namespace)]


def _project_entry(entry: JsonObject, context: ResponsesContext, namespace: str | None) -> list[JsonObject]:
    foreign = mixed_body.parse_tool(entry, *_ACCEPTED_TOOLS)
    if foreign is None:
        return [_project_tool(entry, context, namespace)]
    # A hosted tool of another API is not declared.
    return [_render_tool(tool, context) for tool in foreign if tool.kind != "hosted"]


def _project_tool(entry: JsonObject, context: ResponsesContext, namespace: str | None) -> JsonObject:
    kind = entry.get("type") or "function"
    if kind == "namespace" and isinstance(entry.get("tools"), list):
        entries = cast("list[Any]", entry["tools"])
        projected = project_tools(entries, context, _parse_name(entry))
        name = NameRule().project(_parse_name(entry))
        unchanged = name == entry["name"] and are_identical(projected, entries)
        return entry if unchanged else {**entry, "name": name, "tools": projected}
    if kind not in _KINDS:
        return entry
    tool = _parse_client_tool(entry, kind, namespace, None, context.dialect)
    _, name = split_name(context.project_name(tool.name))
    if tool.native is not None and not tool.native.intact:
        return _render_declaration(tool, name)
    return _with_name(entry, name)

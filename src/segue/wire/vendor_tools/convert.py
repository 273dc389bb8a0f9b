"""Converts vendor-defined tools of a request to the target API, and calls to them in replies back.

A hosted tool that the target also has is declared as the target's, with the options that both have; a client-run tool
becomes a function; any other is reported. Functions have priority where a target does not accept both.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Native, ToolCall, calls_of
from segue.canonical.request import Options, Request, Tool, ToolChoice
from segue.models import Model
from segue.render.report import Report, field_level
from segue.wire.json_values import JsonObject
from segue.wire.tools import declare_name, report_undeclarable
from segue.wire.vendor_tools.client_run import ClientTool, find_client_tools, find_dropped_keys
from segue.wire.vendor_tools.declarations import (
    Declaration,
    body_declarations,
    body_tool_fields,
    build_declaration,
    find_body_tool,
    tool_declarations,
)
from segue.wire.vendor_tools.hosted import KIND_TITLES, HostedTool, find_source_row, find_target_row

DEFERRED_KEY = "defer_loading"
_RESPONSES = "openai-responses"
_REQUIRED_OPTIONS = ("label", "url")
# Enabled by a header, which a body cannot contain.
_MCP_BETA = "mcp-client-2025-11-20"


class ConvertedTools(Struct, frozen=True):
    """The request with tools of the target, fields of the body besides `tools`, and source keys that were converted."""

    request: Request
    body_fields: JsonObject = {}
    converted_keys: frozenset[str] = frozenset()


def convert_vendor_tools(request: Request, api: str, model: Model, report: Report) -> ConvertedTools:
    """Convert the hosted and client-run tools of a request for the target `api` and `model`."""
    same_api = request.native is not None and request.native.api == api
    to_convert = [tool for tool in request.tools if tool.kind == "hosted" and not _is_own(tool, api)]
    outside_tools = [] if same_api else body_declarations(request)
    if not to_convert and not outside_tools:
        return ConvertedTools(request)
    converter = _ToolConverter(request, api, model, report)
    for tool in request.tools:
        if tool.kind == "hosted" and not _is_own(tool, api):
            for declaration in tool_declarations(request, tool) or [Declaration("", tool.name, {}, tool)]:
                converter.convert(declaration)
        else:
            converter.keep(tool)
    for declaration in outside_tools:
        converter.convert(declaration)
    return converter.finish(frozenset() if same_api else frozenset(body_tool_fields(request)))


def _is_own(tool: Tool, api: str) -> bool:
    return tool.native is not None and tool.native.api == api


def is_deferred(tool: Tool) -> bool:
    """Return whether a tool is loaded only when a tool search finds it."""
    return tool.kind != "hosted" and tool.native is not None and tool.native.fragment.get(DEFERRED_KEY) is True


class _ToolConverter:
    """Collects the converted tools of one request."""

    def __init__(self, request: Request, api: str, model: Model, report: Report) -> None:
        self._request, self._api, self._model, self._report = request, api, model, report
        self._tools: list[Tool] = []
        self._hosted: list[tuple[HostedTool, Declaration, JsonObject]] = []
        self._names = {tool.name for tool in request.tools if tool.kind != "hosted"}
        self._new_names: dict[str, str] = {}

    def keep(self, tool: Tool) -> None:
        self._tools.append(tool)

    def convert(self, declaration: Declaration) -> None:
        functions = find_client_tools(declaration.api, declaration.kind, declaration.members)
        if functions:
            added = [tool.name for row in functions if (tool := self._add_function(row, declaration)) is not None]
            noun = "the function" if len(added) == 1 else "the functions"
            message = f"client-run tool {declaration.kind} declared as {noun} {', '.join(added)}"
            if added:
                self._report.add("tools", message, subject=declaration.tool.name)
            for key in find_dropped_keys(declaration.members):
                why = f"`{key}` of {declaration.kind} dropped: not supported by {self._api}"
                self._report.add("dropped", why, subject=key, fault="projection", level=field_level(key))
            return
        source_row = find_source_row(declaration.api, declaration.kind, declaration.members)
        target_row = find_target_row(self._api, source_row.kind, self._model) if source_row is not None else None
        if source_row is None or target_row is None:
            title = f" ({KIND_TITLES[source_row.kind]})" if source_row is not None else ""
            report_undeclarable(declaration.tool, self._report, title)
            return
        options = source_row.parse_options(declaration.members)
        if options is None or target_row.render_options(options) is None:
            name = f"{declaration.tool.name} ({KIND_TITLES[source_row.kind]})"
            message = f"hosted tool {name} not declared: its options cannot be converted to the target"
            self._report.add("tools", message, subject=declaration.tool.name, level="lost")
            return
        self._hosted.append((target_row, declaration, options))

    def _add_function(self, row: ClientTool, declaration: Declaration) -> Tool | None:
        tool = row.to_function(declaration.tool, declaration.kind, declaration.members)
        if not declare_name(self._names, tool.name, tool.name, self._report):
            return None
        self._tools.append(tool)
        self._new_names[declaration.tool.name] = tool.name
        return tool

    def finish(self, converted_keys: frozenset[str]) -> ConvertedTools:
        body_fields: JsonObject = {}
        rejection = self._hosted_rejection()
        has_tool_search = rejection is None and any(target.kind == "tool_search" for target, _, _ in self._hosted)
        for target, declaration, options in self._hosted:
            why = rejection
            # Deferred tools need a tool search.
            supported_options = {key: value for key, value in options.items() if has_tool_search or key != "deferred"}
            members = target.render_options(supported_options) or {}
            tool, extra_fields = build_declaration(self._api, target.declared_type or "", members)
            if tool is not None and (
                tool.name in self._names or any(tool.native == other.native for other in self._tools)
            ):
                why = "another tool has the same name"
            if why is not None:
                message = f"hosted tool {declaration.tool.name} not declared: {why}"
                self._report.add("tools", message, subject=declaration.tool.name, level="lost")
                continue
            self._report_declared(target, declaration)
            self._report_dropped_options(target, declaration, options, members)
            if tool is not None:
                self._tools.append(tool)
                self._new_names[declaration.tool.name] = tool.name
            body_fields = merge_body_fields(body_fields, extra_fields)
        tools = self._keep_deferred() if has_tool_search else self._tools
        options = self._map_tool_choice()
        allowed = options.tool_choice.allowed if options.tool_choice is not None else None
        kinds = {tool.kind == "hosted" for tool in tools if allowed is None or tool.name in allowed}
        if self._api == "gemini" and len(kinds) > 1:
            # GEM-24
            body_fields = merge_body_fields(body_fields, {"toolConfig": {"includeServerSideToolInvocations": True}})
        changed = msgspec.structs.replace(self._request, tools=tuple(tools), options=options)
        return ConvertedTools(changed, body_fields, converted_keys)

    def _report_declared(self, target: HostedTool, declaration: Declaration) -> None:
        header = f"; needs the beta header {_MCP_BETA}" if target.declared_type == "mcp_toolset" else ""
        message = (
            f"hosted tool {declaration.kind} declared as {target.declared_type} ({KIND_TITLES[target.kind]}){header}"
        )
        self._report.add("tools", message, subject=declaration.tool.name)

    def _report_dropped_options(
        self, target: HostedTool, declaration: Declaration, options: JsonObject, members: JsonObject
    ) -> None:
        """Report options that have no effect on the rendered declaration."""
        for name in sorted(options):
            other_options = {key: value for key, value in options.items() if key != name}
            if name not in _REQUIRED_OPTIONS and target.render_options(other_options) == members:
                message = f"`{name}` of {declaration.kind} dropped: {self._api} has no such option"
                self._report.add("tools", message, subject=declaration.tool.name, level="lost")

    def _has_functions(self) -> bool:
        return any(tool.kind != "hosted" for tool in self._tools)

    def _hosted_rejection(self) -> str | None:
        """Return why hosted tools can't be declared: GEM-24; Qwen's search with functions is not documented."""
        older = self._api == "gemini" and bool(self._model.version) and not self._model.at_least(3)
        field = find_body_tool(self._api)
        if self._has_functions() and (older or (field is not None and not field.with_functions)):
            return "the target does not accept hosted tools together with functions"
        return None

    def _keep_deferred(self) -> list[Tool]:
        """Keep deferred loading, for a target with tool search; tools called already are loaded."""
        called = {call.name for message in self._request.messages for call in calls_of(message)}
        return [
            msgspec.structs.replace(tool, extra={**(tool.extra or {}), DEFERRED_KEY: True})
            if is_deferred(tool) and not _is_own(tool, self._api) and tool.name not in called
            else tool
            for tool in self._tools
        ]

    def _map_tool_choice(self) -> Options:
        """Return the options with the tool choice mapped to the new tool names."""
        options = self._request.options
        choice = options.tool_choice
        if choice is None:
            return options
        allowed = choice.allowed and tuple(self._new_names.get(name, name) for name in choice.allowed)
        # Other targets can only force functions; the caller's name is the one to report.
        hosted_names = {
            name for _, declaration, _ in self._hosted for name in [declaration.tool.name] if self._api != "anthropic"
        }
        name = (
            choice.name
            if choice.name is None or choice.name in hosted_names
            else self._new_names.get(choice.name, choice.name)
        )
        return msgspec.structs.replace(options, tool_choice=ToolChoice(choice.mode, name, allowed))


def merge_body_fields(body: JsonObject, more: JsonObject) -> JsonObject:
    """Merge more fields into the body; objects and lists that exist already are extended."""
    if not more:
        return body
    merged = dict(body)
    for key, value in more.items():
        present = merged.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            merged[key] = {**cast("JsonObject", present), **cast("JsonObject", value)}
        elif isinstance(present, list) and isinstance(value, list):
            merged[key] = [*cast("list[Any]", present), *cast("list[Any]", value)]
        else:
            merged[key] = value
    return merged


def restore_client_call(call: ToolCall, request: Request) -> ToolCall:
    """Convert a reply's call to a client-run tool of the Responses API to that tool's own item type."""
    arguments = call.arguments
    same_api = call.native is not None and call.native.api == _RESPONSES
    if same_api or call.kind != "function" or not isinstance(arguments, dict):
        return call
    for tool in request.tools:
        if tool.kind != "hosted" or tool.native is None or tool.native.api != _RESPONSES:
            continue
        for declaration in tool_declarations(request, tool):
            for row in find_client_tools(declaration.api, declaration.kind, declaration.members):
                members = (
                    row.build_item_members(cast("JsonObject", arguments)) if row.function_name == call.name else None
                )
                if members is not None and row.item_type is not None:
                    from segue.wire.openai_responses.context import derive_id

                    item_id = derive_id(row.item_type.replace("_", ""), call.id)
                    item = {"type": row.item_type, "id": item_id, "call_id": "", **members, "status": "completed"}
                    return msgspec.structs.replace(call, native=Native(_RESPONSES, item))
    return call

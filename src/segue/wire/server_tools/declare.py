"""Converts vendor-defined tools of a request to the target API, and calls to them in replies back.

A hosted tool that the target also has is declared as the target's, with the options that both have; a client-run tool
becomes a function; any other is reported. Functions win where a target does not accept both.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Native, ToolCall, calls_of
from segue.canonical.request import Options, Request, Tool, ToolChoice
from segue.models import Model
from segue.render.report import Report
from segue.wire.fields import JsonObject
from segue.wire.openai_responses.shared import made_id
from segue.wire.server_tools.client_run import ClientRun, client_run_of
from segue.wire.server_tools.places import Declared, beside_tools, declared_in, place, said_beside
from segue.wire.server_tools.rows import KINDS, Row, row_of, row_to
from segue.wire.tools import only_elsewhere

__all__ = ["Abroad", "called_back", "declared_abroad", "is_deferred", "laid_beside"]

DEFERRED = "defer_loading"
_RESPONSES = "openai-responses"
_NEEDED = ("label", "url")
# Enabled by a header, which a body cannot contain.
_MCP_BETA = "mcp-client-2025-11-20"


class Abroad(Struct, frozen=True):
    """The request with tools of the target, fields of the body besides `tools`, and source keys that were converted."""

    request: Request
    beside: JsonObject = {}
    told: frozenset[str] = frozenset()


def declared_abroad(request: Request, api: str, model: Model, report: Report) -> Abroad:
    """Converts the hosted and client-run tools of a request for the target `api` and `model`."""
    same_api = request.native is not None and request.native.api == api
    foreign = [tool for tool in request.tools if tool.kind == "hosted" and not _is_own(tool, api)]
    declared = [] if same_api else beside_tools(request)
    if not foreign and not declared:
        return Abroad(request)
    converter = _Declaring(request, api, model, report)
    for tool in request.tools:
        if tool.kind == "hosted" and not _is_own(tool, api):
            for declaration in declared_in(request, tool) or [Declared("", tool.name, {}, tool)]:
                converter.take(declaration)
        else:
            converter.keep(tool)
    for declaration in declared:
        converter.take(declaration)
    return converter.done(frozenset() if same_api else frozenset(said_beside(request)))


def _is_own(tool: Tool, api: str) -> bool:
    return tool.native is not None and tool.native.api == api


def is_deferred(tool: Tool) -> bool:
    """Whether a tool is loaded only when a tool search finds it."""
    return tool.kind != "hosted" and tool.native is not None and tool.native.fragment.get(DEFERRED) is True


class _Declaring:
    """Collects the converted tools of one request."""

    def __init__(self, request: Request, api: str, model: Model, report: Report) -> None:
        self._request, self._api, self._model, self._report = request, api, model, report
        self._tools: list[Tool] = []
        self._own: list[tuple[Row, Declared, JsonObject]] = []
        self._names = {tool.name for tool in request.tools if tool.kind != "hosted"}
        self._chosen: dict[str, str] = {}

    def keep(self, tool: Tool) -> None:
        self._tools.append(tool)

    def take(self, declaration: Declared) -> None:
        functions = client_run_of(declaration.api, declaration.kind, declaration.members)
        if functions:
            added = [tool.name for row in functions if (tool := self._function(row, declaration)) is not None]
            message = f"client-run tool {declaration.kind} declared as the function {', '.join(added)}"
            if added:
                self._report.add("tools", message, subject=declaration.tool.name)
            return
        known = row_of(declaration.api, declaration.kind, declaration.members)
        target = row_to(self._api, known.kind, self._model) if known is not None else None
        if known is None or target is None:
            what = f" ({KINDS[known.kind]})" if known is not None else ""
            self._report.add("tools", only_elsewhere(declaration.tool) + what, subject=declaration.tool.name)
            return
        options = known.read(declaration.members)
        if options is None or target.write(options) is None:
            name = f"{declaration.tool.name} ({KINDS[known.kind]})"
            message = f"tool {name} not declared: its options cannot be converted to the target"
            self._report.add("tools", message, subject=declaration.tool.name)
            return
        self._own.append((target, declaration, options))

    def _function(self, row: ClientRun, declaration: Declared) -> Tool | None:
        tool = row.declared(declaration.tool, declaration.kind, declaration.members)
        if tool.name in self._names:
            self._report.add(
                "tools", f"tool {tool.name} not declared: another tool has the same name", subject=tool.name
            )
            return None
        self._names.add(tool.name)
        self._tools.append(tool)
        self._chosen[declaration.tool.name] = tool.name
        return tool

    def done(self, converted_keys: frozenset[str]) -> Abroad:
        body_fields: JsonObject = {}
        rejection = self._refused_beside_functions()
        searching = rejection is None and any(target.kind == "tool_search" for target, _, _ in self._own)
        for target, declaration, options in self._own:
            why = rejection
            # Deferred tools need a tool search.
            usable = {key: value for key, value in options.items() if searching or key != "deferred"}
            members = target.write(usable) or {}
            tool, more = place(self._api, target.written or "", members)
            if tool is not None and (
                tool.name in self._names or any(tool.native == other.native for other in self._tools)
            ):
                why = "another tool has the same name"
            if why is not None:
                self._report.add(
                    "tools", f"tool {declaration.tool.name} not declared: {why}", subject=declaration.tool.name
                )
                continue
            self._report_declared(target, declaration)
            self._report_lost(target, declaration, options, members)
            if tool is not None:
                self._tools.append(tool)
                self._chosen[declaration.tool.name] = tool.name
            body_fields = laid_beside(body_fields, more)
        tools = self._with_deferred() if searching else self._tools
        options = self._options()
        allowed = options.tool_choice.allowed if options.tool_choice is not None else None
        kinds = {tool.kind == "hosted" for tool in tools if allowed is None or tool.name in allowed}
        if self._api == "gemini" and len(kinds) > 1:
            # GEM-24
            body_fields = laid_beside(body_fields, {"toolConfig": {"includeServerSideToolInvocations": True}})
        changed = msgspec.structs.replace(self._request, tools=tuple(tools), options=options)
        return Abroad(changed, body_fields, converted_keys)

    def _report_declared(self, target: Row, declaration: Declared) -> None:
        header = f"; needs the beta header {_MCP_BETA}" if target.written == "mcp_toolset" else ""
        message = f"hosted tool {declaration.kind} declared as {target.written} ({KINDS[target.kind]}){header}"
        self._report.add("tools", message, subject=declaration.tool.name)

    def _report_lost(self, target: Row, declaration: Declared, options: JsonObject, members: JsonObject) -> None:
        """Reports options that have no effect on the rendered declaration."""
        for name in sorted(options):
            less = {key: value for key, value in options.items() if key != name}
            if name not in _NEEDED and target.write(less) == members:
                message = f"`{name}` of {declaration.kind} dropped: {self._api} has no such option"
                self._report.add("tools", message, subject=declaration.tool.name)

    def _functions(self) -> bool:
        return any(tool.kind != "hosted" for tool in self._tools)

    def _refused_beside_functions(self) -> str | None:
        """GEM-24; whether Qwen's search works together with functions is unknown."""
        older = self._api == "gemini" and bool(self._model.version) and not self._model.at_least(3)
        if self._functions() and (older or self._api == "qwen"):
            return "the target does not accept hosted tools together with functions"
        return None

    def _with_deferred(self) -> list[Tool]:
        """The tools with deferred loading kept, for a target with tool search; tools called already are loaded."""
        called = {call.name for message in self._request.messages for call in calls_of(message)}
        return [
            msgspec.structs.replace(tool, extra={**(tool.extra or {}), DEFERRED: True})
            if is_deferred(tool) and not _is_own(tool, self._api) and tool.name not in called
            else tool
            for tool in self._tools
        ]

    def _options(self) -> Options:
        """The options with the tool choice mapped to the new tool names."""
        options = self._request.options
        choice = options.tool_choice
        if choice is None:
            return options
        allowed = choice.allowed and tuple(self._chosen.get(name, name) for name in choice.allowed)
        # Other targets can only force functions; the caller's name is the one to report.
        own = {name for _, declaration, _ in self._own for name in [declaration.tool.name] if self._api != "anthropic"}
        name = choice.name if choice.name is None or choice.name in own else self._chosen.get(choice.name, choice.name)
        return msgspec.structs.replace(options, tool_choice=ToolChoice(choice.mode, name, allowed))


def laid_beside(body: JsonObject, more: JsonObject) -> JsonObject:
    """The body with more fields; objects and lists that exist already are extended."""
    if not more:
        return body
    made = dict(body)
    for key, value in more.items():
        held = made.get(key)
        if isinstance(held, dict) and isinstance(value, dict):
            made[key] = {**cast("JsonObject", held), **cast("JsonObject", value)}
        elif isinstance(held, list) and isinstance(value, list):
            made[key] = [*cast("list[Any]", held), *cast("list[Any]", value)]
        else:
            made[key] = value
    return made


def called_back(call: ToolCall, request: Request) -> ToolCall:
    """A reply's call to a client-run tool of the Responses API, converted to that tool's own item type."""
    arguments = call.arguments
    same_api = call.native is not None and call.native.api == _RESPONSES
    if same_api or call.kind != "function" or not isinstance(arguments, dict):
        return call
    for tool in request.tools:
        if tool.kind != "hosted" or tool.native is None or tool.native.api != _RESPONSES:
            continue
        for declaration in declared_in(request, tool):
            for row in client_run_of(declaration.api, declaration.kind, declaration.members):
                members = row.members(cast("JsonObject", arguments)) if row.function == call.name else None
                if members is not None and row.item is not None:
                    item_id = made_id(row.item.replace("_", ""), call.id)
                    item = {"type": row.item, "id": item_id, "call_id": "", **members, "status": "completed"}
                    return msgspec.structs.replace(call, native=Native(_RESPONSES, item))
    return call

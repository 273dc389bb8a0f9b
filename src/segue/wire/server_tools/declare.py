"""The tools of a request as another API can be told of them, and the calls to them on their way back.

What the target has too is declared as its own, with the options that both have; what the caller's client runs becomes
a function; what is left is in the report. Functions come first where a target takes either.
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
# A beta of Anthropic's is asked for by a header, which no body can.
_NEEDED = ("label", "url")
_MCP_BETA = "mcp-client-2025-11-20"


class Abroad(Struct, frozen=True):
    """The request with tools of the target, what stands beside them, and the keys of the old body that say the same."""

    request: Request
    beside: JsonObject = {}
    told: frozenset[str] = frozenset()


def declared_abroad(request: Request, api: str, model: Model, report: Report) -> Abroad:
    """`api` is the target's, `model` the one that will be asked."""
    home = request.native is not None and request.native.api == api
    foreign = [tool for tool in request.tools if tool.kind == "hosted" and not _is_own(tool, api)]
    declared = [] if home else beside_tools(request)
    if not foreign and not declared:
        return Abroad(request)
    work = _Declaring(request, api, model, report)
    for tool in request.tools:
        if tool.kind == "hosted" and not _is_own(tool, api):
            for one in declared_in(request, tool) or [Declared("", tool.name, {}, tool)]:
                work.take(one)
        else:
            work.keep(tool)
    for one in declared:
        work.take(one)
    return work.done(frozenset() if home else frozenset(said_beside(request)))


def _is_own(tool: Tool, api: str) -> bool:
    return tool.native is not None and tool.native.api == api


def is_deferred(tool: Tool) -> bool:
    """Whether a tool is to be loaded only when a search finds it."""
    return tool.kind != "hosted" and tool.native is not None and tool.native.fragment.get(DEFERRED) is True


class _Declaring:
    """The tools of one request, on their way."""

    def __init__(self, request: Request, api: str, model: Model, report: Report) -> None:
        self._request, self._api, self._model, self._report = request, api, model, report
        self._tools: list[Tool] = []
        self._own: list[tuple[Row, Declared, JsonObject]] = []
        self._names = {tool.name for tool in request.tools if tool.kind != "hosted"}
        self._chosen: dict[str, str] = {}

    def keep(self, tool: Tool) -> None:
        self._tools.append(tool)

    def take(self, one: Declared) -> None:
        functions = client_run_of(one.api, one.kind, one.members)
        if functions:
            added = [tool.name for row in functions if (tool := self._function(row, one)) is not None]
            said = f"{one.kind}, which the client runs, is declared as the function {', '.join(added)}"
            if added:
                self._report.add("tools", said, subject=one.tool.name)
            return
        known = row_of(one.api, one.kind, one.members)
        target = row_to(self._api, known.kind, self._model) if known is not None else None
        if known is None or target is None:
            what = f" ({KINDS[known.kind]})" if known is not None else ""
            self._report.add("tools", only_elsewhere(one.tool) + what, subject=one.tool.name)
            return
        options = known.read(one.members)
        if options is None or target.write(options) is None:
            said = f"{one.tool.name}: {KINDS[known.kind]} can't be declared here, not as its own declaration bounds it"
            self._report.add("tools", said, subject=one.tool.name)
            return
        self._own.append((target, one, options))

    def _function(self, row: ClientRun, one: Declared) -> Tool | None:
        tool = row.declared(one.tool, one.kind, one.members)
        if tool.name in self._names:
            self._report.add("tools", "a second tool of the same name is left out", subject=tool.name)
            return None
        self._names.add(tool.name)
        self._tools.append(tool)
        self._chosen[one.tool.name] = tool.name
        return tool

    def done(self, told: frozenset[str]) -> Abroad:
        beside: JsonObject = {}
        refused = self._refused_beside_functions()
        searching = refused is None and any(target.kind == "tool_search" for target, _, _ in self._own)
        for target, one, options in self._own:
            why = refused
            # What is to be found has to be searched for.
            said = {key: value for key, value in options.items() if searching or key != "deferred"}
            members = target.write(said) or {}
            tool, more = place(self._api, target.written or "", members)
            if tool is not None and (tool.name in self._names or any(tool.native == one.native for one in self._tools)):
                why = "a second tool of the same name is left out"
            if why is not None:
                self._report.add("tools", f"{one.tool.name}: {why}", subject=one.tool.name)
                continue
            self._report_declared(target, one)
            self._report_lost(target, one, options, members)
            if tool is not None:
                self._tools.append(tool)
                self._chosen[one.tool.name] = tool.name
            beside = laid_beside(beside, more)
        tools = self._with_deferred() if searching else self._tools
        options = self._options()
        allowed = options.tool_choice.allowed if options.tool_choice is not None else None
        kinds = {tool.kind == "hosted" for tool in tools if allowed is None or tool.name in allowed}
        if self._api == "gemini" and len(kinds) > 1:
            # GEM-24
            beside = laid_beside(beside, {"toolConfig": {"includeServerSideToolInvocations": True}})
        changed = msgspec.structs.replace(self._request, tools=tuple(tools), options=options)
        return Abroad(changed, beside, told)

    def _report_declared(self, target: Row, one: Declared) -> None:
        header = f"; it needs the beta {_MCP_BETA}" if target.written == "mcp_toolset" else ""
        said = f"{one.kind} is declared as {target.written}: {KINDS[target.kind]}{header}"
        self._report.add("tools", said, subject=one.tool.name)

    def _report_lost(self, target: Row, one: Declared, options: JsonObject, members: JsonObject) -> None:
        """Options that leave no trace in what is written."""
        for name in sorted(options):
            less = {key: value for key, value in options.items() if key != name}
            if name not in _NEEDED and target.write(less) == members:
                said = f"`{name}` of {one.kind} is not carried over to {self._api}"
                self._report.add("tools", said, subject=one.tool.name)

    def _functions(self) -> bool:
        return any(tool.kind != "hosted" for tool in self._tools)

    def _refused_beside_functions(self) -> str | None:
        """GEM-24; of Qwen's search it is not known that it goes with functions."""
        older = self._api == "gemini" and bool(self._model.version) and not self._model.at_least(3)
        if self._functions() and (older or self._api == "qwen"):
            return "tools that the provider runs don't go with functions here"
        return None

    def _with_deferred(self) -> list[Tool]:
        """Tools that were to be loaded when found stay so where the target searches for tools, too.

        One that was called already is at hand.
        """
        called = {call.name for message in self._request.messages for call in calls_of(message)}
        return [
            msgspec.structs.replace(tool, extra={**(tool.extra or {}), DEFERRED: True})
            if is_deferred(tool) and not _is_own(tool, self._api) and tool.name not in called
            else tool
            for tool in self._tools
        ]

    def _options(self) -> Options:
        """The options, with a choice of tools by the names that they have now."""
        options = self._request.options
        choice = options.tool_choice
        if choice is None:
            return options
        allowed = choice.allowed and tuple(self._chosen.get(name, name) for name in choice.allowed)
        # Elsewhere only functions can be chosen: the name that the caller knows is the one to report.
        own = {name for _, one, _ in self._own for name in [one.tool.name] if self._api != "anthropic"}
        name = choice.name if choice.name is None or choice.name in own else self._chosen.get(choice.name, choice.name)
        return msgspec.structs.replace(options, tool_choice=ToolChoice(choice.mode, name, allowed))


def laid_beside(body: JsonObject, more: JsonObject) -> JsonObject:
    """The body with more in it; what is there already is added to."""
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
    """A reply's call to a tool that the caller's client runs, in the type of item that such a tool is called by."""
    arguments = call.arguments
    home = call.native is not None and call.native.api == _RESPONSES
    if home or call.kind != "function" or not isinstance(arguments, dict):
        return call
    for tool in request.tools:
        if tool.kind != "hosted" or tool.native is None or tool.native.api != _RESPONSES:
            continue
        for one in declared_in(request, tool):
            for row in client_run_of(one.api, one.kind, one.members):
                members = row.members(cast("JsonObject", arguments)) if row.function == call.name else None
                if members is not None and row.item is not None:
                    item_id = made_id(row.item.replace("_", ""), call.id)
                    item = {"type": row.item, "id": item_id, "call_id": "", **members, "status": "completed"}
                    return msgspec.structs.replace(call, native=Native(_RESPONSES, item))
    return call

"""The settings of a body: everything but its conversation, and the tool names that both use."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from segue.canonical.blocks import Text
from segue.canonical.contents import Contents
from segue.canonical.json import are_identical
from segue.canonical.request import Options, Request, Tool
from segue.models import parse_model
from segue.render.transcript import Transcript
from segue.wire.names import NameMap, NameRule
from segue.wire.registry import WIRES
from segue.wire.vendor_tools.convert import DEFERRED_KEY, ConvertedTools

# With more tools, the declarations may depend on the calls: called tools come first where not all can be declared.
_MAX_TOOLS = 128


class Settings(msgspec.Struct, frozen=True):
    """A rendered body with an empty conversation, and the values that it was rendered from."""

    declared: ConvertedTools
    system: tuple[Text, ...]
    tools: tuple[Tool, ...]
    options: Options
    body: dict[str, Any]

    def are_settings_of(self, transcript: Transcript) -> bool:
        """Return whether the body of the transcript has the same settings."""
        return (
            (self.tools is transcript.tools or are_identical(self.tools, transcript.tools))
            and self.system == transcript.system
            and self.options == transcript.options
            and not self._depends_on_calls
        )

    @property
    def _depends_on_calls(self) -> bool:
        """Whether the declarations may depend on the calls: there are many tools, or some are deferred."""
        if len(self.tools) > _MAX_TOOLS:
            return True
        return bool([tool for tool in self.tools if tool.extra and tool.extra.get(DEFERRED_KEY)])


def build_name_map(request: Request, contents: Contents, api: str, rule: NameRule) -> NameMap:
    if request.native is None or request.native.api != api:
        return NameMap(rule)
    names = NameMap(rule.for_same_api(tool.name for tool in request.tools))
    for name in _built_in_names(request, contents):
        names.keep(name)
    if rule.same_api_custom_unchecked:
        for name in _custom_tool_names(request, contents, rule):
            names.keep(name)
    return names


def _built_in_names(request: Request, contents: Contents) -> set[str]:
    """Return the names of tools that the API itself defines (`$web_search`): their calls have another type."""
    own = {tool.name for tool in request.tools if tool.kind == "hosted"}
    calls = [call for call in contents.calls if call.name in own] if own else []
    return {
        call.name
        for call in calls
        if call.native is not None and call.native.fragment.get("type") == "builtin_function"
    }


class NameInText:
    """Maps a tool name to its name in text: the projected one if there is one."""

    def __init__(self, request: Request, contents: Contents, names: NameMap) -> None:
        self._request = request
        self._contents = contents
        self._names = names

    def __call__(self, name: str) -> str:
        projected = self._names.render(name) if name in self._projected_names else name
        return projected.replace(self._separator, ".") if self._separator else projected

    @cached_property
    def _projected_names(self) -> frozenset[str]:
        called = [call.name for call in self._contents.calls if not call.origin.is_approval]
        return frozenset([*called, *(tool.name for tool in self._request.tools)])

    @cached_property
    def _separator(self) -> str:
        """The separator of the source API between the parts of a name; empty if it has none."""
        request = self._request
        source = WIRES.get(request.native.api) if request.native is not None else None
        return source.name_rule(parse_model(request.model)).same_api_separator if source is not None else ""


def _custom_tool_names(request: Request, contents: Contents, rule: NameRule) -> set[str]:
    """Return names used by custom tools only, not by a function or a tool in a namespace."""
    used = [(item.name, item.kind) for item in (*request.tools, *contents.calls)]
    valid = {name for name, _ in used if 0 < len(name) <= rule.same_api_limit and rule.same_api_separator not in name}
    custom = {name for name, kind in used if kind == "custom" and name in valid}
    return custom - {name for name, kind in used if kind != "custom"}

"""Tool declarations ⇄ `Tool`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from segue.canonical.blocks import Native
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.wire.anthropic.items import API, own_fragment
from segue.wire.base import Projection
from segue.wire.fields import JsonObject, kind_of, list_of, object_of, object_or_none, string_or_none
from segue.wire.overlay import unmodelled
from segue.wire.schema import fitted_tool, rules
from segue.wire.tools import as_function, lawful_schema, only_elsewhere

__all__ = ["TOOL_KEYS", "parse_tools", "render_tools"]

TOOL_KEYS = frozenset({"type", "name", "description", "input_schema", "strict"})


def parse_tools(value: object) -> tuple[Tool, ...]:
    if value is None:
        return ()
    return tuple(_parse_tool(item, f"tools[{index}]") for index, item in enumerate(list_of(value, "tools")))


def _parse_tool(value: Any, path: str) -> Tool:
    tool = object_of(value, path)
    name = string_or_none(tool.get("name"))
    if name is None and tool.get("name") is not None:
        raise InputError(f"a tool's name must be a string, not {kind_of(tool['name'])}", path=f"{path}.name")
    native = Native(API, tool)
    kind = tool.get("type")
    if kind is not None and not isinstance(kind, str):
        raise InputError(f"a tool's type must be a string, not {kind_of(kind)}", path=f"{path}.type")
    if kind not in (None, "custom"):
        return Tool(name or str(tool.get("mcp_server_name") or kind), kind="hosted", native=native)
    if name is None:
        raise InputError("a tool needs a name", path=f"{path}.name")
    strict = tool.get("strict")
    return Tool(
        name,
        string_or_none(tool.get("description")),
        object_or_none(tool.get("input_schema")),
        strict=strict if isinstance(strict, bool) else None,
        native=native,
    )


def render_tools(tools: Sequence[Tool], projection: Projection) -> list[JsonObject]:
    """What the API can be told of. A declaration that is lawful at home is the very object that came in."""
    declared: list[JsonObject] = []
    names: set[object] = set()
    for given in tools:
        tool = as_function(given, projection.report)
        written = _render_tool(tool, projection)
        if written is None:
            projection.report.add("tools", only_elsewhere(tool), subject=tool.name)
            continue
        name = written.get("name")
        # ANT-35: names are unique in a request
        if name is not None and name in names:
            projection.report.add("tools", "a second tool of the same name is left out", subject=tool.name)
            continue
        names.add(name)
        declared.append(written)
    return declared


def _render_tool(tool: Tool, projection: Projection) -> JsonObject | None:
    own = own_fragment(tool.native)
    if tool.kind == "hosted":
        return own
    name = projection.names.render(tool.name)
    # ANT-36: input_schema.type is `object`
    lawful = tool.parameters is not None and tool.parameters.get("type") == "object"
    if own is not None:
        if lawful and name == own.get("name"):
            return own
        schema = tool.parameters if lawful else lawful_schema(tool, rules.ANTHROPIC, projection.report)
        return {**own, "name": name, "input_schema": schema}
    written: JsonObject = {"name": name}
    if tool.description is not None:
        written["description"] = tool.description
    # All strict tools of a request share a narrow limit of unions and optional keys: none is made strict here.
    written["input_schema"], _ = fitted_tool(tool, rules.ANTHROPIC, projection.report)
    if tool.native is not None and tool.native.api == API:
        written |= unmodelled(tool.native.fragment, TOOL_KEYS)
    elif tool.extra and "defer_loading" in tool.extra:
        written["defer_loading"] = True
    return written

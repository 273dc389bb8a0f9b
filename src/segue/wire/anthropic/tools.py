"""Tool declarations ⇄ `Tool`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from segue.canonical.blocks import Native
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.wire.anthropic.capabilities import API
from segue.wire.base import RenderContext
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    require_list,
    require_object,
    string_or_none,
)
from segue.wire.merge import intact_fragment, unmodelled_fields
from segue.wire.schema import render_tool_schema, rules
from segue.wire.tools import render_object_schema, to_function_tool, undeclarable_message

TOOL_KEYS = frozenset({"type", "name", "description", "input_schema", "strict"})


def parse_tools(value: object) -> tuple[Tool, ...]:
    if value is None:
        return ()
    return tuple(_parse_tool(item, f"tools[{index}]") for index, item in enumerate(require_list(value, "tools")))


def _parse_tool(value: Any, path: str) -> Tool:
    tool = require_object(value, path)
    name = string_or_none(tool.get("name"))
    if name is None and tool.get("name") is not None:
        raise InputError(f"a tool's name must be a string, not {json_type_name(tool['name'])}", path=f"{path}.name")
    native = Native(API, tool)
    kind = tool.get("type")
    if kind is not None and not isinstance(kind, str):
        raise InputError(f"a tool's type must be a string, not {json_type_name(kind)}", path=f"{path}.type")
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


def render_tools(tools: Sequence[Tool], context: RenderContext) -> list[JsonObject]:
    """Return the declarations that the API accepts. Same-API, a valid declaration is the original object."""
    declared: list[JsonObject] = []
    names: set[object] = set()
    for declared_tool in tools:
        tool = to_function_tool(declared_tool, context.report)
        rendered = _render_tool(tool, context)
        if rendered is None:
            context.report.add("tools", undeclarable_message(tool), subject=tool.name, level="lost")
            continue
        name = rendered.get("name")
        # ANT-35: names are unique in a request
        if name is not None and name in names:
            context.report.add(
                "tools",
                f"tool {tool.name} not declared: another tool has the same name",
                subject=tool.name,
                level="lost",
            )
            continue
        names.add(name)
        declared.append(rendered)
    return declared


def _render_tool(tool: Tool, context: RenderContext) -> JsonObject | None:
    original = intact_fragment(tool.native, API)
    if tool.kind == "hosted":
        return original
    name = context.names.render(tool.name)
    # ANT-36: input_schema.type is `object`
    valid = tool.parameters is not None and tool.parameters.get("type") == "object"
    if original is not None:
        if valid and name == original.get("name"):
            return original
        schema = tool.parameters if valid else render_object_schema(tool, rules.ANTHROPIC, context.report)
        return {**original, "name": name, "input_schema": schema}
    rendered: JsonObject = {"name": name}
    if tool.description is not None:
        rendered["description"] = tool.description
    # Strict tools of a request share a low limit of unions and optional keys, so no tool is made strict.
    rendered["input_schema"], _ = render_tool_schema(tool, rules.ANTHROPIC, context.report)
    if tool.native is not None and tool.native.api == API:
        rendered |= unmodelled_fields(tool.native.fragment, TOOL_KEYS)
    elif tool.extra and "defer_loading" in tool.extra:
        rendered["defer_loading"] = True
    return rendered

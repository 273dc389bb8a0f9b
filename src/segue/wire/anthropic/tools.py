"""Tool declarations ⇄ `Tool`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Native
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.wire import mixed_body
from segue.wire.anthropic.capabilities import API
from segue.wire.base import RenderContext
from segue.wire.json_values import (
    JsonObject,
    object_or_none,
    optional_boolean,
    optional_schema,
    optional_string,
    require_list,
    require_object,
)
from segue.wire.merge import intact_fragment, unmodelled_fields
from segue.wire.names import CLAUDE_PARAMETERS
from segue.wire.schema import render_tool_schema, rules
from segue.wire.tools import declare_name, render_object_schema, report_undeclarable, to_function_tool

# Keys that a declaration of another API may have instead of `input_schema`.
_OTHER_SCHEMA_KEYS = frozenset({"function", "custom"})
_UNUSUAL_KEYS = frozenset({"type", "strict"})
TOOL_KEYS = frozenset({"type", "name", "description", "input_schema", "strict"})


def parse_tools(value: object) -> tuple[Tool, ...]:
    if value is None:
        return ()
    tools: list[Tool] = []
    for index, item in enumerate(require_list(value, "tools")):
        try:
            tool = require_object(item)
            if type(tool.get("input_schema")) is dict and _OTHER_SCHEMA_KEYS.isdisjoint(tool):
                tools.append(_parse_tool(tool))
            else:
                tools += mixed_body.parse_tool(tool, API) or [_parse_tool(tool)]
        except InputError as error:
            raise error.with_prefix(f"tools[{index}]") from None
    return tuple(tools)


def _parse_tool(tool: JsonObject) -> Tool:
    name, description, schema = tool.get("name"), tool.get("description"), tool.get("input_schema")
    is_function = isinstance(name, str) and isinstance(schema, dict) and _UNUSUAL_KEYS.isdisjoint(tool)
    if is_function and isinstance(description, str):
        return Tool(cast("str", name), description, cast("JsonObject", schema), native=Native(API, tool))
    name, kind = optional_string(tool.get("name"), "name"), optional_string(tool.get("type"), "type")
    native = Native(API, tool)
    if kind not in (None, "custom"):
        return Tool(name or str(tool.get("mcp_server_name") or kind), kind="hosted", native=native)
    if name is None:
        raise InputError("a tool needs a name", path="name")
    return Tool(
        name,
        optional_string(tool.get("description"), "description"),
        optional_schema(tool.get("input_schema"), "input_schema"),
        strict=optional_boolean(tool.get("strict"), "strict"),
        native=native,
    )


def render_tools(tools: Sequence[Tool], context: RenderContext) -> list[JsonObject]:
    """Return the declarations that the API accepts. Same-API, a valid declaration is the original object."""
    declared: list[JsonObject] = []
    names: set[str] = set()
    for declared_tool in tools:
        tool = to_function_tool(declared_tool, context.report)
        rendered = _render_tool(tool, context)
        if rendered is None:
            report_undeclarable(tool, context.report)
        # ANT-35: names are unique in a request
        elif rendered.get("name") is None or declare_name(names, rendered["name"], tool.name, context.report):
            declared.append(rendered)
    return declared


def _render_tool(tool: Tool, context: RenderContext) -> JsonObject | None:
    original = intact_fragment(tool.native, API)
    if tool.kind == "hosted":
        return original
    name = context.names.render(tool.name)
    # ANT-36: input_schema.type is `object`
    schema = tool.parameters
    valid = schema is not None and schema.get("type") == "object"
    if original is not None:
        if schema is None or not valid:
            schema = render_object_schema(tool, rules.ANTHROPIC, context.report)
        projected = context.names.parameters.render_schema(tool.name, schema, CLAUDE_PARAMETERS)
        if valid and projected is schema and name == original.get("name"):
            return original
        return {**original, "name": name, "input_schema": projected, **_render_examples(tool.name, original, context)}
    rendered: JsonObject = {"name": name}
    if tool.description is not None:
        rendered["description"] = tool.description
    # Strict tools of a request share a low limit of unions and optional keys, so no tool is made strict.
    schema, _ = render_tool_schema(tool, rules.ANTHROPIC, context.report)
    rendered["input_schema"] = context.names.parameters.render_schema(tool.name, schema, CLAUDE_PARAMETERS)
    if tool.native is not None and tool.native.api == API:
        rendered |= unmodelled_fields(tool.native.fragment, TOOL_KEYS)
    elif tool.extra and "defer_loading" in tool.extra:
        rendered["defer_loading"] = True
    return rendered


def _render_examples(tool: str, original: JsonObject, context: RenderContext) -> JsonObject:
    """Return the `input_examples` of a declaration with the projected parameter names, if it has any."""
    examples = original.get("input_examples")
    if not isinstance(examples, list) or not context.names.parameters.has_changed(tool):
        return {}
    objects = (object_or_none(example) for example in cast("list[Any]", examples))
    render = context.names.parameters.render_arguments
    return {"input_examples": [render(tool, example) for example in objects if example is not None]}

"""Tool declarations ⇄ `Tool`: the entries of `toolConfig.tools`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.blocks import Native
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.models import Model
from segue.wire import mixed_body
from segue.wire.base import RenderContext
from segue.wire.bedrock.capabilities import API
from segue.wire.bedrock.items import CACHE_POINT, split_fragment, with_cache_point
from segue.wire.json_values import JsonObject, object_or_none, require_list, require_object, string_or_none
from segue.wire.merge import intact_fragment
from segue.wire.names import CLAUDE_PARAMETERS
from segue.wire.schema import SchemaRules, render_tool_schema, rules
from segue.wire.tools import declare_name, render_object_schema, report_undeclarable, to_function_tool

TOOL_KEYS = frozenset(f"toolSpec.{key}" for key in ("name", "description", "inputSchema", "strict"))

# Nova's guide: the only keywords at the top level of a schema.
_NOVA_TOP_LEVEL = ("type", "properties", "required")


def parse_tools(value: object, path: str) -> tuple[Tool, ...]:
    if value is None:
        return ()
    tools: list[Tool] = []
    for index, item in enumerate(require_list(value, path)):
        entry = require_object(item, f"{path}[{index}]")
        try:
            foreign = mixed_body.parse_tool(entry, API)
        except InputError as error:
            raise error.with_prefix(f"{path}[{index}]") from None
        if foreign is not None:
            tools += foreign
            continue
        point = object_or_none(entry.get(CACHE_POINT))
        if len(entry) > 1 or point is None:
            tools.append(_parse_tool(entry, f"{path}[{index}]"))
        elif tools:
            tools[-1] = with_cache_point(tools[-1], point)
    return tuple(tools)


def _parse_tool(entry: JsonObject, path: str) -> Tool:
    if entry.get("toolSpec") is None:
        kind = next((key for key, member in entry.items() if member is not None), None)
        if kind is None:
            raise InputError("a tool needs a `toolSpec`", path=path)
        inner = object_or_none(entry[kind]) or {}
        return Tool(string_or_none(inner.get("name")) or kind, kind="hosted", native=Native(API, entry))
    spec = require_object(entry["toolSpec"], f"{path}.toolSpec")
    name = string_or_none(spec.get("name"))
    if name is None:
        raise InputError("a tool needs a name", path=f"{path}.toolSpec.name")
    strict = spec.get("strict")
    schema = object_or_none(spec.get("inputSchema")) or {}
    return Tool(
        name,
        string_or_none(spec.get("description")),
        object_or_none(schema.get("json")),
        strict=strict if isinstance(strict, bool) else None,
        native=Native(API, entry, intact=spec.get("description") != ""),
    )


def render_tools(tools: Sequence[Tool], context: RenderContext, model: Model) -> list[JsonObject]:
    """Return the declarations that the API accepts, with cache points; same-API a valid one is the original object."""
    declared: list[JsonObject] = []
    names: set[str] = set()
    for declared_tool in tools:
        tool = to_function_tool(declared_tool, context.report)
        name = context.names.render(tool.name) if tool.kind != "hosted" else tool.name
        rendered = _render_tool(tool, name, context, model)
        if not rendered:
            report_undeclarable(tool, context.report)
        elif declare_name(names, name, tool.name, context.report):
            declared += rendered
    return declared


def _render_tool(tool: Tool, name: str, context: RenderContext, model: Model) -> list[JsonObject]:
    original = intact_fragment(tool.native, API)
    if tool.kind == "hosted":
        return [] if original is None else split_fragment(original)
    if tool.native is None or tool.native.api != API:
        return [{"toolSpec": _render_spec(tool, name, context, model)}]
    schema = tool.parameters
    valid = schema is not None and schema.get("type") == "object"
    if schema is None or not valid:
        schema = render_object_schema(tool, _schema_rules(model), context.report)
    projected = _project_parameters(tool.name, schema, context, model)
    valid = valid and projected is schema
    if original is not None and valid and original["toolSpec"].get("name") == name:
        return split_fragment(original)
    return _repair_tool(tool, name, None if valid else projected)


def _project_parameters(
    tool: str, schema: Mapping[str, Any], context: RenderContext, model: Model
) -> Mapping[str, Any]:
    if model.family != "claude":
        return schema
    return context.names.parameters.render_schema(tool, schema, CLAUDE_PARAMETERS)


def _schema_rules(model: Model) -> SchemaRules:
    return {"claude": rules.ANTHROPIC, "nova": rules.NOVA}.get(model.family, rules.BEDROCK)


def _repair_tool(tool: Tool, name: str, schema: Mapping[str, Any] | None) -> list[JsonObject]:
    """Return a declaration of this API with only its invalid fields replaced."""
    fragment = cast("JsonObject", tool.native.fragment) if tool.native is not None else {}
    spec: JsonObject = {**fragment.get("toolSpec", {}), "name": name}
    if not spec.get("description"):
        spec.pop("description", None)
    if schema is not None:
        spec["inputSchema"] = {"json": schema}
    return split_fragment({**fragment, "toolSpec": spec})


def _render_spec(tool: Tool, name: str, context: RenderContext, model: Model) -> JsonObject:
    rendered, _ = render_tool_schema(tool, _schema_rules(model), context.report)
    schema = _project_parameters(tool.name, rendered, context, model)
    description = tool.description or ""
    if model.family == "nova":
        schema, description = _strip_top_level(schema, description, tool.name, context)
    spec: JsonObject = {"name": name}
    if description:
        spec["description"] = description
    spec["inputSchema"] = {"json": schema}
    return spec


def _strip_top_level(
    schema: Mapping[str, Any], description: str, name: str, context: RenderContext
) -> tuple[Mapping[str, Any], str]:
    """Return the schema with only Nova's top-level keywords; its description moves to the description of the tool."""
    dropped = sorted(schema.keys() - set(_NOVA_TOP_LEVEL))
    if not dropped:
        return schema, description
    text = schema.get("description")
    if isinstance(text, str) and text:
        description = f"{description}\n{text}".strip()
    message = f"{', '.join(dropped)} dropped from the top level of the schema: the model does not accept them"
    context.report.add("tools", message, subject=name)
    return {key: schema[key] for key in _NOVA_TOP_LEVEL if key in schema}, description

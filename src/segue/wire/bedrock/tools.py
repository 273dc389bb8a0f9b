"""Tool declarations ⇄ `Tool`: the entries of `toolConfig.tools`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Native
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.models import Model
from segue.wire.base import Projection
from segue.wire.bedrock.items import CACHE_POINT, apart, marked, own_fragment
from segue.wire.bedrock.traits import API
from segue.wire.fields import JsonObject, list_of, object_of, object_or_none, string_or_none
from segue.wire.schema import SchemaRules, fitted_tool, rules
from segue.wire.tools import as_function, lawful_schema, only_elsewhere

__all__ = ["TOOL_KEYS", "parse_tools", "render_tools"]

TOOL_KEYS = frozenset(f"toolSpec.{key}" for key in ("name", "description", "inputSchema", "strict"))

# Nova's guide: only these stand at the top of a schema.
_NOVA_TOP = ("type", "properties", "required")


def parse_tools(value: object, path: str) -> tuple[Tool, ...]:
    if value is None:
        return ()
    tools: list[Tool] = []
    for index, item in enumerate(list_of(value, path)):
        entry = object_of(item, f"{path}[{index}]")
        point = object_or_none(entry.get(CACHE_POINT))
        if len(entry) > 1 or point is None:
            tools.append(_parse_tool(entry, f"{path}[{index}]"))
        elif tools:
            tools[-1] = marked(tools[-1], point)
    return tuple(tools)


def _parse_tool(entry: JsonObject, path: str) -> Tool:
    if entry.get("toolSpec") is None:
        kind = next((key for key, member in entry.items() if member is not None), None)
        if kind is None:
            raise InputError("a tool needs a `toolSpec`", path=path)
        inner = object_or_none(entry[kind]) or {}
        return Tool(string_or_none(inner.get("name")) or kind, kind="hosted", native=Native(API, entry))
    spec = object_of(entry["toolSpec"], f"{path}.toolSpec")
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


def render_tools(tools: Sequence[Tool], projection: Projection, model: Model) -> list[JsonObject]:
    """What the API can be told of, each with its cache point; what is lawful at home is the object that came in."""
    declared: list[JsonObject] = []
    names: set[object] = set()
    for given in tools:
        tool = as_function(given, projection.report)
        name = projection.names.render(tool.name) if tool.kind != "hosted" else tool.name
        written = _render_tool(tool, name, projection, model)
        if not written:
            projection.report.add("tools", only_elsewhere(tool), subject=tool.name)
        elif name in names:
            projection.report.add("tools", "a second tool of the same name is left out", subject=tool.name)
        else:
            names.add(name)
            declared += written
    return declared


def _render_tool(tool: Tool, name: str, projection: Projection, model: Model) -> list[JsonObject]:
    own = own_fragment(tool.native)
    if tool.kind == "hosted":
        return [] if own is None else apart(own)
    lawful = tool.parameters is not None and tool.parameters.get("type") == "object"
    if own is not None and lawful and own["toolSpec"].get("name") == name:
        return apart(own)
    if tool.native is not None and tool.native.api == API:
        return _mended(tool, name, None if lawful else lawful_schema(tool, _row(model), projection.report))
    return [{"toolSpec": _render_spec(tool, name, projection, model)}]


def _row(model: Model) -> SchemaRules:
    return {"claude": rules.ANTHROPIC, "nova": rules.NOVA}.get(model.family, rules.BEDROCK)


def _mended(tool: Tool, name: str, schema: JsonObject | None) -> list[JsonObject]:
    """A declaration of this API with only that written anew which it refuses."""
    fragment = cast("JsonObject", tool.native.fragment) if tool.native is not None else {}
    spec: JsonObject = {**fragment.get("toolSpec", {}), "name": name}
    if not spec.get("description"):
        spec.pop("description", None)
    if schema is not None:
        spec["inputSchema"] = {"json": schema}
    return apart({**fragment, "toolSpec": spec})


def _render_spec(tool: Tool, name: str, projection: Projection, model: Model) -> JsonObject:
    schema, _ = fitted_tool(tool, _row(model), projection.report)
    description = tool.description or ""
    if model.family == "nova":
        schema, description = _with_bare_top(schema, description, tool.name, projection)
    spec: JsonObject = {"name": name}
    if description:
        spec["description"] = description
    spec["inputSchema"] = {"json": schema}
    return spec


def _with_bare_top(
    schema: dict[str, Any], description: str, name: str, projection: Projection
) -> tuple[dict[str, Any], str]:
    """The schema with nothing but what Nova takes at its top; what it says of itself goes to the tool's description."""
    lost = sorted(schema.keys() - set(_NOVA_TOP))
    if not lost:
        return schema, description
    said = schema.get("description")
    if isinstance(said, str) and said:
        description = f"{description}\n{said}".strip()
    projection.report.add("tools", f"the top of the schema is left without {', '.join(lost)}", subject=name)
    return {key: schema[key] for key in _NOVA_TOP if key in schema}, description

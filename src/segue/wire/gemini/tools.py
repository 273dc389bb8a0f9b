"""Tool declarations ⇄ `Tool`.

One object of `tools` declares many functions and tools that the provider runs; each is a `Tool` of its own. At home
they stay in the objects that they stood in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Native
from segue.canonical.request import Tool
from segue.errors import InputError
from segue.wire.base import Projection
from segue.wire.gemini.fields import JsonObject, both, items_of, laid, look, object_of, object_or_none, spelled, text_at
from segue.wire.gemini.items import API, own_fragment
from segue.wire.gemini.openapi import is_lawful, parse_schema
from segue.wire.schema import fitted, rules
from segue.wire.tools import as_function, object_schema, only_elsewhere

__all__ = ["TOOL_KEYS", "lay_tools", "parse_tools", "render_tools"]

_FUNCTIONS = "functionDeclarations"
TOOL_KEYS = both("name", "description", "parameters", "parametersJsonSchema")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_tools(value: object) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for index, item in enumerate(items_of(value, "tools")):
        try:
            entry = object_of(item)
            for key in entry:
                tools += _parse_member(entry, key)
        except InputError as error:
            raise error.under(f"tools[{index}]") from None
    return tuple(tools)


def _parse_member(entry: JsonObject, key: str) -> list[Tool]:
    if key != spelled(entry, _FUNCTIONS):
        return [] if entry[key] is None else [Tool(key, kind="hosted", native=Native(API, {key: entry[key]}))]
    tools: list[Tool] = []
    for index, item in enumerate(items_of(entry[key], key)):
        try:
            tools.append(_parse_function(object_of(item)))
        except InputError as error:
            raise error.under(f"{key}[{index}]") from None
    return tools


def _parse_function(function: JsonObject) -> Tool:
    name = text_at(function, "name")
    if name is None:
        raise InputError("a function needs a name", path="name")
    parameters = object_or_none(look(function, "parametersJsonSchema"))
    if parameters is None and (schema := object_or_none(look(function, "parameters"))) is not None:
        parameters = parse_schema(schema)
    return Tool(name, text_at(function, "description"), parameters, native=Native(API, function))


# ----------------------------------------------------------------------------------------------------------------- out


def render_tools(tools: Sequence[Tool], projection: Projection) -> list[JsonObject]:
    """What the API can be told of, from abroad: functions, all in one object, and tools of its own."""
    functions: list[JsonObject] = []
    names: set[str] = set()
    own: list[JsonObject] = []
    for given in tools:
        if given.kind == "hosted":
            written = own_fragment(given.native)
            own += [written] if written is not None else []
            if written is None:
                projection.report.add("tools", only_elsewhere(given), subject=given.name)
            continue
        tool = as_function(given, projection.report)
        written = _render_function(tool, projection)
        if written["name"] in names:
            projection.report.add("tools", "a second tool of the same name is left out", subject=tool.name)
            continue
        names.add(written["name"])
        functions.append(written)
    return [*([{_FUNCTIONS: functions}] if functions else []), *own]


def _render_function(tool: Tool, projection: Projection) -> JsonObject:
    own = own_fragment(tool.native)
    name = projection.names.render(tool.name)
    if own is not None:
        return laid(_lawful_schemas(own, projection), name=name)
    written: JsonObject = {"name": name}
    if tool.description is not None:
        written["description"] = tool.description
    if tool.parameters is not None:
        written["parametersJsonSchema"] = fitted(tool.parameters, rules.GEMINI, projection.report, subject=tool.name)
    if tool.strict:
        projection.report.add("tools", "`strict` is left out: there is no such option", subject=tool.name)
    return written


def _lawful_schemas(function: JsonObject, projection: Projection) -> JsonObject:
    """A declaration at home, with a schema that its own form can't say in the other one (GEM-23)."""
    made = function
    for name in ("parameters", "response"):
        plain = f"{name}JsonSchema"
        own = look(function, name)
        if own is None or (is_lawful(own, top=name == "parameters") and look(function, plain) is None):
            continue
        schema = look(function, plain)
        if schema is None and isinstance(own, dict):
            schema = object_schema(parse_schema(cast("JsonObject", own)))
        projection.report.add(
            "tools", f"`{name}` is not what the API takes: said as `{plain}`", subject=text_at(function, "name")
        )
        made = laid(made, **{name: None, plain: schema})
    return made


def lay_tools(given: Any, tools: Sequence[Tool], projection: Projection) -> list[JsonObject] | None:
    """The objects that came in, with the names that functions have now; None where nothing changed."""
    written = iter([_render_function(tool, projection) for tool in tools if tool.kind == "function"])
    names: set[Any] = set()
    changed = False
    entries: list[JsonObject] = []
    for item in items_of(given, "tools"):
        entry = cast("JsonObject", item)
        key = spelled(entry, _FUNCTIONS)
        functions = items_of(entry.get(key), key)
        now: list[JsonObject] = []
        for function in [next(written) for _ in functions]:
            # GEM-23
            if function["name"] in names:
                projection.report.add("tools", "a second tool of the same name is left out", subject=function["name"])
            else:
                now.append(function)
            names.add(function["name"])
        if now != functions:
            changed = True
            entry = {**entry, key: now}
        entries.append(entry)
    return entries if changed else None

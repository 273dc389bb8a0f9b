"""`segue.convert_tools`: convert tool declarations of any API to any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast, overload

from segue._literals import Api, ToolFormat
from segue.canonical.blocks import Native
from segue.canonical.json import encode_json, parse_json, to_plain_json
from segue.canonical.request import Options, Request, Tool
from segue.errors import InputError, UndetectedApiError, require_string
from segue.models import parse_model
from segue.pipeline import MCP, report_dropped_tool_fields, report_surrogates
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import RenderContext, Wire
from segue.wire.ids import IdMap
from segue.wire.json_values import json_type_name
from segue.wire.names import NameMap
from segue.wire.registry import WIRES, find_wire
from segue.wire.vendor_tools.convert import convert_vendor_tools

# Tool format names that are not wire names.
_FORMAT_ALIASES = {"openai": "openai-chat"}
_DECLARATION_LISTS = ("functionDeclarations", "function_declarations")
_SCHEMA_KEYS = frozenset(
    {"input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema"}
)
# Keys that only one API's declarations have, with the wires that parse them.
_API_KEYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("function", ("openai-chat",)),
    ("custom", ("openai-chat",)),
    ("input_schema", ("anthropic",)),
    *((key, ("gemini",)) for key in _DECLARATION_LISTS),
    *(
        (key, ("gemini",))
        for key in ("parametersJsonSchema", "parameters_json_schema", "googleSearch", "codeExecution")
    ),
    ("toolSpec", ("bedrock",)),
)


class ConvertedTools(Sequence[dict[str, Any]]):
    """Converted tool declarations and their report. A sequence of its `tools`."""

    def __init__(self, tools: list[dict[str, Any]], report: Report, target: str) -> None:
        self.tools = tools
        self.report = report
        self.target = target

    def __repr__(self) -> str:
        return f"<ConvertedTools for {self.target}: {len(self.tools)} tools, {len(self.report.findings)} findings>"

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self.tools[index]

    def __len__(self) -> int:
        return len(self.tools)

    @cached_property
    def data(self) -> bytes:
        """The declarations as JSON."""
        return encode_json(self.tools)


def convert_tools(
    tools: bytes | bytearray | str | Sequence[Any] | Mapping[str, Any],
    *,
    target: Api | ToolFormat,
    source: Api | ToolFormat | None = None,
    model: str | None = None,
) -> ConvertedTools:
    """Convert tool declarations of one API, as a list or as JSON, to another.

    Without `source`, the API of each declaration is detected by its shape; tools listed by an MCP server are accepted
    too. `model` is the target's model. Names and schemas are adapted to the target, and every change is reported.
    """
    wire = _find_wire(target, "target")
    source_wire = None if source is None else _find_wire(source, "source")
    require_string(model, "model", required=False)
    value, surrogates = parse_json(tools)
    declarations: object = cast("dict[str, Any]", value).get("tools") if isinstance(value, dict) else value
    if not isinstance(declarations, list):
        raise InputError("a list of tool declarations was expected", path="tools")
    entries = cast("list[object]", declarations)
    parsed = tuple(
        tool for position, entry in enumerate(entries) for tool in _parse_entry(entry, position, source_wire)
    )
    report = Report(target=wire.name, tool_format=wire.tool_format, model=model)
    report_surrogates(surrogates, report)
    return ConvertedTools(_render_tools(parsed, wire, model, report), report, wire.name)


def _find_wire(name: str, argument: str) -> Wire:
    require_string(name, argument)
    return find_wire(_FORMAT_ALIASES.get(name, name), argument=argument)


def parse_declaration(declaration: Mapping[str, Any], position: int) -> tuple[Tool, ...]:
    """Parse a tool declaration of any API; one object of Gemini declares several tools."""
    return _parse_entry(to_plain_json(declaration), position, None)


def _parse_entry(entry: object, position: int, wire: Wire | None) -> tuple[Tool, ...]:
    if not isinstance(entry, dict):
        raise InputError("a tool's declaration must be an object", path=f"tools[{position}]")
    tool = cast("dict[str, Any]", entry)
    _validate_schemas(tool, f"tools[{position}]")
    try:
        if wire is None and isinstance(tool.get("name"), str) and isinstance(tool.get("inputSchema"), dict):
            return (_parse_mcp_tool(tool),)
        wire = wire or WIRES[_detect_source(tool)]
        if wire.name == "gemini" and "name" in tool:
            tool = {_DECLARATION_LISTS[0]: [tool]}
        # Each wire parses its own list of messages and ignores the others.
        return wire.parse_request({"messages": [], "input": [], "contents": [], "tools": [tool]}).tools
    except InputError as error:
        path = error.path.replace("tools[0]", "", 1).removeprefix(".")
        raise InputError(error.message, path=f"tools[{position}]{'.' if path else ''}{path}") from None


def _validate_schemas(tool: dict[str, Any], path: str) -> None:
    """Raise `InputError` for a schema that is not an object, true or false."""
    for key, value in tool.items():
        if key in _SCHEMA_KEYS and value is not None and not isinstance(value, dict | bool):
            raise InputError(f"a schema was expected, not {json_type_name(value)}", path=f"{path}.{key}")
        if key in ("function", "toolSpec") and isinstance(value, dict):
            _validate_schemas(cast("dict[str, Any]", value), f"{path}.{key}")
        if key in _DECLARATION_LISTS and isinstance(value, list):
            for index, inner in enumerate(cast("list[object]", value)):
                if isinstance(inner, dict):
                    _validate_schemas(cast("dict[str, Any]", inner), f"{path}.{key}[{index}]")


def _parse_mcp_tool(tool: dict[str, Any]) -> Tool:
    """Parse a tool as listed by an MCP server."""
    description = tool.get("description")
    text = description if isinstance(description, str) else None
    return Tool(tool["name"], text, tool["inputSchema"], native=Native(MCP, tool))


def _detect_source(tool: Mapping[str, Any]) -> str:
    for key, wires in _candidate_apis(tool):
        for name in wires:
            if name in WIRES:
                return name
        raise InputError(f"`{key}` belongs to {wires[0]}, which is not a known API; expected one of {', '.join(WIRES)}")
    raise UndetectedApiError("not a tool declaration of a known API")


def _candidate_apis(tool: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from ((key, wires) for key, wires in _API_KEYS if tool.get(key) is not None)
    schema = tool.get("parameters")
    if isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "OBJECT":
        yield "parameters", ("gemini",)
    if isinstance(tool.get("name"), str) and tool.get("type") in (None, "function"):
        yield "name", ("openai-responses", "openai-chat") if "type" in tool else ("openai-chat",)
    if isinstance(tool.get("type"), str):
        # Tool types defined by Anthropic end with a date: `bash_20250124`.
        dated = tool["type"][-8:].isdigit()
        yield "type", ("anthropic",) if dated else ("openai-responses", "openai-chat")


def _render_tools(tools: tuple[Tool, ...], wire: Wire, model: str | None, report: Report) -> list[dict[str, Any]]:
    target_model = parse_model(model or wire.default_model)
    rule = wire.name_rule(target_model)
    rendered = Report(target=wire.name, model=model)
    declared = convert_vendor_tools(Request((), tools=tools), wire.name, target_model, rendered)
    tools = declared.request.tools
    same_api = all(tool.native is not None and tool.native.api == wire.name for tool in tools)
    names = NameMap(rule.for_same_api() if same_api else rule)
    transcript = Transcript(declared.request, wire.constraints(target_model), Policy(), (), (), tools, Options(), model)
    body = wire.render_request(
        transcript, RenderContext(IdMap(wire.id_scheme(target_model), provider=wire.provider), names, rendered)
    )
    report_dropped_tool_fields(tools, wire, report)
    report.extend(rendered.findings_of("tools"))
    for key in declared.body_fields:
        report.add("tools", f"`{key}` must be set in the request body beside the tools", subject=key)
    for name, projected in names.changed:
        report.add("name", f"tool {name!r} renamed to {projected!r}", subject=name)
    # Bedrock's tools are inside `toolConfig`.
    return body.get("toolConfig", body).get("tools") or []

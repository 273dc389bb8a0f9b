"""`segue.convert_tools`: convert tool declarations of any API to any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast, overload

from segue._literals import Api, ToolFormat
from segue.canonical.contents import summarize
from segue.canonical.json import encode_json, parse_json, to_plain_json
from segue.canonical.request import Options, Request, Tool
from segue.conversion.convert import report_surrogates
from segue.errors import InputError, UndetectedApiError, format_count, require_string
from segue.models import parse_model
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import RenderContext, Wire
from segue.wire.dropped_fields import report_dropped_tool_fields
from segue.wire.ids import IdMap
from segue.wire.mixed_body import find_tool_api
from segue.wire.mixed_body import parse_declaration as parse_by_api
from segue.wire.names import NameMap
from segue.wire.registry import find_wire
from segue.wire.vendor_tools.convert import convert_vendor_tools

# Tool format names that are not wire names.
_FORMAT_ALIASES = {"openai": "openai-chat"}


class ConvertedTools(Sequence[dict[str, Any]]):
    """Converted tool declarations and their report. A sequence of its `tools`."""

    def __init__(self, tools: list[dict[str, Any]], report: Report, target: str) -> None:
        self.tools = tools
        self.report = report
        self.target = target

    def __repr__(self) -> str:
        tools, findings = format_count(len(self.tools), "tool"), format_count(len(self.report.findings), "finding")
        return f"<ConvertedTools for {self.target}: {tools}, {findings}>"

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
    try:
        return tuple(parse_by_api(tool, _detect_source(tool) if wire is None else wire.name))
    except InputError as error:
        raise error.with_prefix(f"tools[{position}]") from None


def _detect_source(tool: Mapping[str, Any]) -> str:
    """Return the API of a declaration; one that may be of several APIs counts as OpenAI's."""
    api = find_tool_api(tool)
    if api is not None:
        return api
    if isinstance(tool.get("type"), str):
        return "openai-responses"
    if isinstance(tool.get("name"), str):
        return "openai-responses" if "type" in tool else "openai-chat"
    raise UndetectedApiError("not a tool declaration of a known API")


def _render_tools(tools: tuple[Tool, ...], wire: Wire, model: str | None, report: Report) -> list[dict[str, Any]]:
    target_model = parse_model(model or wire.default_model)
    rule = wire.name_rule(target_model)
    rendered = Report(target=wire.name, model=model)
    declared = convert_vendor_tools(Request((), tools=tools), wire.name, target_model, rendered)
    tools = declared.request.tools
    same_api = all(tool.native is not None and tool.native.api == wire.name for tool in tools)
    names = NameMap(rule.for_same_api() if same_api else rule)
    transcript = Transcript(
        request=declared.request,
        constraints=wire.constraints(target_model),
        policy=Policy(),
        system=(),
        messages=(),
        contents=summarize(()),
        tools=tools,
        options=Options(),
        model=model,
    )
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

"""Tool-call arguments and tool declarations in the form that a target needs.

A target that requires an object always gets one: `{"input": text}` for free text, `{"_raw": text}` for text that is
not JSON, `{"value": …}` for any other value. A target that takes text gets the exact text where there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import ToolCall, ToolResponse, calls_of, text_of
from segue.canonical.json import encode_json_text, find_duplicate_key, parse_argument_text
from segue.canonical.request import Options, Tool
from segue.render.constraints import TEXTS
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.names import NameMap
from segue.wire.schema import SchemaRules, render_schema

FREE_TEXT_KEY = "input"


def duplicate_key_extra(text: object, value: object) -> dict[str, Any] | None:
    """Return the extra field `repeated` of a call whose arguments text has a duplicate key; None for any other call."""
    key = find_duplicate_key(text, value) if isinstance(text, str) and value else None
    return None if key is None else {"repeated": key}


def render_arguments_object(call: ToolCall, report: Report) -> dict[str, Any]:
    """Return the arguments as a JSON object; anything else is wrapped and reported."""
    if call.arguments is None and call.arguments_text is not None:
        message = "arguments wrapped in an object as `_raw`: they are not valid JSON"
        report.add("argument", message, call_id=call.id, subject=call.name)
        return {"_raw": call.arguments_text}
    if isinstance(call.arguments, dict):
        return cast("dict[str, Any]", call.arguments)
    key = FREE_TEXT_KEY if call.kind == "custom" else "value"
    message = f"arguments wrapped in an object as `{key}`: they are not an object"
    report.add("argument", message, call_id=call.id, subject=call.name)
    return {key: call.arguments}


def render_named_arguments(call: ToolCall, report: Report, names: NameMap) -> dict[str, Any]:
    """Return the arguments as a JSON object with the projected parameter names."""
    return dict(names.parameters.render_arguments(call.name, render_arguments_object(call, report)))


def render_arguments_text(call: ToolCall, report: Report, original: object = None) -> str:
    """Return the arguments as JSON text: `original`, if its value is that of the call.

    Free text is wrapped, for targets without custom tools.
    """
    if call.kind == "custom":
        return encode_json_text(render_arguments_object(call, report))
    if call.arguments_text is not None and call.arguments is None:
        return call.arguments_text
    text = encode_json_text(call.arguments)
    if not isinstance(original, str):
        return text
    value, invalid = parse_argument_text(original)
    return original if invalid is None and encode_json_text(value) == text else text


def unwrap_free_text(call: ToolCall, custom_names: frozenset[str]) -> ToolCall:
    """Return a reply's call with its free text unwrapped, if the caller declared the tool as a custom tool."""
    if call.name not in custom_names or call.kind == "custom":
        return call
    match call.arguments:
        case {"input": str(text), **rest} if not rest:
            free_text = text
        case None if call.arguments_text is not None:
            free_text = call.arguments_text
        case arguments:
            # Not the declared form, but the caller's tool accepts only free text.
            free_text = encode_json_text(arguments)
    return msgspec.structs.replace(call, kind="custom", arguments=free_text, arguments_text=None, native=None)


def drop_call_nulls(call: ToolCall, strict: Mapping[str, Tool]) -> ToolCall:
    """Return a reply's call to a strict tool without the nulls that only strict mode requires."""
    tool = strict.get(call.name)
    if tool is None or tool.parameters is None or not isinstance(call.arguments, dict):
        return call
    # Imported here, because only replies to strict tools need it.
    from segue.wire.schema.forced_nulls import drop_forced_nulls

    original = cast("dict[str, Any]", call.arguments)
    arguments = drop_forced_nulls(original, tool.parameters)
    return call if arguments == original else msgspec.structs.replace(call, arguments=arguments, native=None)


def restore_parameter_names(call: ToolCall, names: NameMap) -> ToolCall:
    """Return a reply's call with the caller's parameter names."""
    if not names.parameters.has_changed(call.name) or not isinstance(call.arguments, dict):
        return call
    original = cast("dict[str, Any]", call.arguments)
    arguments = dict(names.parameters.parse_arguments(call.name, original))
    return call if arguments == original else msgspec.structs.replace(call, arguments=arguments, native=None)


def project_tool(tool: Tool, names: NameMap) -> Tool:
    """Return a tool with the names that the target gets."""
    parameters = tool.parameters
    if parameters is not None and names.parameters.has_changed(tool.name):
        parameters = names.parameters.rename_schema(tool.name, parameters)
    return msgspec.structs.replace(tool, name=names.render(tool.name), parameters=parameters)


def report_undeclarable(tool: Tool, report: Report, title: str = "") -> None:
    """Report a hosted tool that the target does not have."""
    message = f"hosted tool {tool.name} not declared: the target has no such tool{title}"
    report.add("tools", message, subject=tool.name, level="lost")


def declare_name(names: set[str], name: str, tool: str, report: Report) -> bool:
    """Add the name of a declaration to those of the others; False, and a finding for the tool, if it is one of them."""
    if name in names:
        report.add("tools", f"tool {tool} not declared: another tool has the same name", subject=tool, level="lost")
        return False
    names.add(name)
    return True


def limit_tools(tools: Sequence[Tool], limit: int, transcript: Transcript, report: Report) -> Sequence[Tool]:
    """Drop tools over the limit (OAI-CHAT-16). Used tools are kept first; the order does not change."""
    if len(tools) <= limit:
        return tools
    used = {call.name for message in transcript.messages for call in calls_of(message)}
    if transcript.options.tool_choice is not None and transcript.options.tool_choice.name is not None:
        used.add(transcript.options.tool_choice.name)
    ranked = sorted(range(len(tools)), key=lambda index: tools[index].name not in used)
    for name in [tools[index].name for index in sorted(ranked[limit:])]:
        report.add("tools", f"tool {name} dropped: at most {limit} are accepted", subject=name, level="lost")
    return [tools[index] for index in sorted(ranked[:limit])]


def to_function_tool(tool: Tool, report: Report) -> Tool:
    """Return a custom tool as a function with one string parameter; any other tool unchanged."""
    if tool.kind != "custom":
        return tool
    report.add("tools", "custom tool declared as a function with one string parameter", subject=tool.name)
    return msgspec.structs.replace(tool, kind="function", parameters=_free_text_schema(tool), native=None)


def _free_text_schema(tool: Tool) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    if tool.grammar is not None:
        text["description"] = f"Must follow this format: {encode_json_text(tool.grammar)}"
    return {"type": "object", "properties": {FREE_TEXT_KEY: text}, "required": [FREE_TEXT_KEY]}


def to_object_schema(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the schema of an object; a schema of another type moves into the property `value`, as arguments do."""
    if not parameters:
        return {"type": "object", "properties": {}}
    if parameters.get("type") == "object":
        return dict(parameters)
    if "type" not in parameters:
        return {"type": "object", **parameters}
    return {"type": "object", "properties": {"value": dict(parameters)}, "required": ["value"]}


def render_object_schema(tool: Tool, rules: SchemaRules, report: Report) -> dict[str, Any]:
    """Return the schema unchanged if it is an object schema, else converted to one and reported."""
    schema = tool.parameters
    if not schema or schema.get("type") == "object":
        return to_object_schema(schema)
    return render_schema(schema, rules, report, subject=tool.name)


def drop_undeclared_choice(options: Options, declared: Collection[str], report: Report) -> Options:
    """Return the options without a `tool_choice` of an undeclared tool. If no tool is declared, the wire drops it."""
    choice = options.tool_choice
    if choice is None or choice.mode != "tool" or not declared or choice.name in declared:
        return options
    message = f"`tool_choice` dropped: the tool {choice.name} is not declared"
    report.add("adjusted", message, subject="tool_choice", level="lost")
    return msgspec.structs.replace(options, tool_choice=None)


def describe_hosted(block: ToolCall | ToolResponse, report: Report) -> str:
    """Report a changed call or result of a hosted tool, and return the text that takes its place."""
    if isinstance(block, ToolCall):
        call_id, text = block.id, TEXTS.hosted_call.format(tool=block.name, arguments=encode_json_text(block.arguments))
    else:
        content = text_of(block.content) if block.structured is UNSET else encode_json_text(block.structured)
        call_id, text = block.call_id, TEXTS.hosted_result.format(tool=block.name, content=content)
    why = "hosted tool call rendered as text: only an unchanged one can be sent back"
    report.add("text", why, call_id=call_id, subject=block.name)
    return text

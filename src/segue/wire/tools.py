"""Arguments and tool declarations in the shapes that targets want.

A target that wants an object always gets one: `{"input": text}` for free text, `{"_raw": text}` for text that is not
JSON, `{"value": …}` for any other value. A target that wants text gets the exact text where there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import ToolCall
from segue.canonical.jsontext import repeated_key, write_text
from segue.canonical.request import Options, Tool
from segue.render.report import Report
from segue.wire.schema import SchemaRules, fitted, without_forced_nulls

__all__ = [
    "as_function",
    "declared_choice",
    "free_text_back",
    "lawful_schema",
    "object_schema",
    "only_elsewhere",
    "render_arguments_object",
    "render_arguments_text",
    "repeated",
    "strict_back",
]

FREE_TEXT = "input"


def repeated(text: object, value: object) -> dict[str, Any] | None:
    """What is noted of a call in the text of whose arguments a key stands twice."""
    key = repeated_key(text, value) if isinstance(text, str) and value else None
    return None if key is None else {"repeated": key}


def render_arguments_object(call: ToolCall, report: Report) -> dict[str, Any]:
    """The arguments as an object."""
    if call.arguments is None and call.arguments_text is not None:
        report.add(
            "argument", "arguments that are not valid JSON are sent as `_raw`", call_id=call.id, subject=call.name
        )
        return {"_raw": call.arguments_text}
    if isinstance(call.arguments, dict):
        return cast("dict[str, Any]", call.arguments)
    key = FREE_TEXT if call.kind == "custom" else "value"
    report.add("argument", f"arguments that are no object are sent as `{key}`", call_id=call.id, subject=call.name)
    return {key: call.arguments}


def render_arguments_text(call: ToolCall, report: Report) -> str:
    """The arguments as JSON text; a free-text call to a target without such calls is wrapped."""
    if call.kind == "custom":
        return write_text(render_arguments_object(call, report))
    if call.arguments_text is not None and call.arguments is None:
        return call.arguments_text
    return write_text(call.arguments)


def free_text_back(call: ToolCall, custom_names: frozenset[str]) -> ToolCall:
    """A reply's call to a tool that the caller declared as free text, unwrapped again."""
    if call.name not in custom_names or call.kind == "custom":
        return call
    match call.arguments:
        case {"input": str(text), **rest} if not rest:
            said = text
        case None if call.arguments_text is not None:
            said = call.arguments_text
        case arguments:
            # Not what was declared, but the caller's tool takes free text and nothing else.
            said = write_text(arguments)
    return msgspec.structs.replace(call, kind="custom", arguments=said, arguments_text=None, native=None)


def strict_back(call: ToolCall, strict: Mapping[str, Tool]) -> ToolCall:
    """A reply's call to a tool that was declared as strict, without nulls that only the declaration asked for."""
    tool = strict.get(call.name)
    if tool is None or tool.parameters is None or not isinstance(call.arguments, dict):
        return call
    given = cast("dict[str, Any]", call.arguments)
    arguments = without_forced_nulls(given, tool.parameters)
    return call if arguments == given else msgspec.structs.replace(call, arguments=arguments, native=None)


def only_elsewhere(tool: Tool) -> str:
    """What is to be said of a tool that its own API alone defines."""
    return f"{tool.name}: a tool that only its own API defines can't be declared here"


def as_function(tool: Tool, report: Report) -> Tool:
    """A free-text tool declared as a function that takes one string; any other tool as it is."""
    if tool.kind != "custom":
        return tool
    report.add("tools", "a free-text tool is declared as a function with one string", subject=tool.name)
    return msgspec.structs.replace(tool, kind="function", parameters=_free_text_schema(tool), native=None)


def _free_text_schema(tool: Tool) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    if tool.grammar is not None:
        text["description"] = f"Must follow this format: {write_text(tool.grammar)}"
    return {"type": "object", "properties": {FREE_TEXT: text}, "required": [FREE_TEXT]}


def object_schema(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """The schema as one of an object, which is what arguments become (`{"value": …}` for any other value)."""
    if not parameters:
        return {"type": "object", "properties": {}}
    if parameters.get("type") == "object":
        return dict(parameters)
    if "type" not in parameters:
        return {"type": "object", **parameters}
    return {"type": "object", "properties": {"value": dict(parameters)}, "required": ["value"]}


def lawful_schema(tool: Tool, rules: SchemaRules, report: Report) -> dict[str, Any]:
    """The schema as its own API wrote it where that is one of an object, else as one that is; a change is reported."""
    given = tool.parameters
    if not given or given.get("type") == "object":
        return object_schema(given)
    return fitted(given, rules, report, subject=tool.name)


def declared_choice(options: Options, declared: Collection[str], report: Report) -> Options:
    """The options without a choice of a tool that is not among the declared ones. Where none is, wires say so."""
    choice = options.tool_choice
    if choice is None or choice.mode != "tool" or not declared or choice.name in declared:
        return options
    report.add("adjusted", f"`tool_choice` is left out: the tool {choice.name} is not declared", subject="tool_choice")
    return msgspec.structs.replace(options, tool_choice=None)

"""Renders `xml`: Qwen3-Coder's variant by default, those of GLM and MiniMax for their models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.json_values import object_or_none
from segue.wire.text import minimax
from segue.wire.text.json_calls import function_declaration, named_arguments, render_spaced_json
from segue.wire.text.text_format import ResultText, TextFormat
from segue.wire.text.xml_parse import ESCAPABLE_TAG, OPENER

__all__ = ["XML", "XML_VARIANTS"]

_PLAIN_NAME = re.compile(r"""[^\s<>"']+""")


def _render_value(value: object) -> str:
    """Text unchanged, anything else as JSON."""
    text = value if isinstance(value, str) else render_spaced_json(value)
    return ESCAPABLE_TAG.sub(r"<\\\1", text) if "<" in text else text


def _render_name(name: str) -> str:
    return (
        name
        if _PLAIN_NAME.fullmatch(name)
        else render_spaced_json(name).replace("<", "\\u003c").replace(">", "\\u003e")
    )


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;"}


def _escape_attribute(name: str) -> str:
    return "".join(_ENTITIES.get(sign, sign) for sign in name)


# Qwen3-Coder and Qwen 3.5


def _qwen_calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(f"<tool_call>\n{_qwen_call(call)}\n</tool_call>" for call in calls)


def _qwen_call(call: ToolCall) -> str:
    parts = [
        f"<parameter={_render_name(k)}>\n{_render_value(v)}\n</parameter>\n" for k, v in named_arguments(call).items()
    ]
    return f"<function={_render_name(call.name)}>\n{''.join(parts)}</function>"


def _render_elements(fields: Mapping[str, Any], skipped: tuple[str, ...]) -> list[str]:
    """Each key as a tag, except the known ones."""
    return [
        f"<{key}>{value if isinstance(value, str) else render_spaced_json(value)}</{key}>"
        for key, value in fields.items()
        if key not in skipped
    ]


def _qwen_parameter(name: str, schema: object) -> list[str]:
    fields = object_or_none(schema) or {}
    parts = [f"<name>{name}</name>"]
    if "type" in fields:
        parts.append(
            f"<type>{fields['type'] if isinstance(fields['type'], str) else render_spaced_json(fields['type'])}</type>"
        )
    if isinstance(fields.get("description"), str):
        parts.append(f"<description>{fields['description'].strip()}</description>")
    return ["<parameter>", *parts, *_render_elements(fields, ("name", "type", "description")), "</parameter>"]


def _qwen_tool(tool: Tool) -> str:
    schema = tool.parameters or {}
    lines = ["<function>", f"<name>{tool.name}</name>"]
    if tool.description:
        lines.append(f"<description>{tool.description.strip()}</description>")
    lines.append("<parameters>")
    for name, fields in (object_or_none(schema.get("properties")) or {}).items():
        lines += _qwen_parameter(name, fields)
    lines += _render_elements(schema, ("type", "properties"))
    return "\n".join([*lines, "</parameters>", "</function>"])


def _qwen_tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(_qwen_tool(tool) for tool in tools)
    return (
        f"# Tools\n\nYou have access to the following tools:\n\n<tools>\n{listed}\n</tools>\n\n"
        "If you choose to call a tool ONLY reply in the following format with NO suffix:\n\n"
        "<tool_call>\n<function=example_function_name>\n"
        "<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
        "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n"
        "</parameter>\n</function>\n</tool_call>\n\n"
        "<IMPORTANT>\nReminder:\n"
        "- A call MUST follow this format: a <function=...></function> block within <tool_call></tool_call> tags\n"
        "- Required parameters MUST be given\n"
        "- You may say in words why you call the tool BEFORE the call, but NOT after it\n"
        "- If no tool is of use, answer as usual and do not mention tools\n"
        "</IMPORTANT>"
    )


def _qwen_results(results: Sequence[ResultText]) -> str:
    return "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in results)


# GLM


def _glm_calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(_glm_call(call) for call in calls)


def _glm_call(call: ToolCall) -> str:
    parts = [
        f"<arg_key>{_render_name(key)}</arg_key>\n<arg_value>{_render_value(value)}</arg_value>\n"
        for key, value in named_arguments(call).items()
    ]
    return f"<tool_call>{call.name}\n{''.join(parts)}</tool_call>"


def _glm_tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(render_spaced_json(function_declaration(tool)) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>\n{listed}\n</tools>\n\n"
        "For each function call, output the function name and arguments within the following XML format:\n"
        "<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>\n<arg_value>{arg-value-1}</arg_value>\n"
        "<arg_key>{arg-key-2}</arg_key>\n<arg_value>{arg-value-2}</arg_value>\n...\n</tool_call>"
    )


# MiniMax


def _minimax_calls(calls: Sequence[ToolCall]) -> str:
    parts = "".join(f"{_minimax_call(call)}\n" for call in calls)
    return f"<minimax:tool_call>\n{parts}</minimax:tool_call>" if parts else ""


def _minimax_call(call: ToolCall) -> str:
    parts = [
        f'<parameter name="{_escape_attribute(key)}">{_render_value(value)}</parameter>\n'
        for key, value in named_arguments(call).items()
    ]
    return f'<invoke name="{_escape_attribute(call.name)}">\n{"".join(parts)}</invoke>'


def _minimax_tools(tools: Sequence[Tool]) -> str:
    listed = "".join(f"<tool>{render_spaced_json(function_declaration(tool)['function'])}</tool>\n" for tool in tools)
    return (
        "# Tools\nYou may call one or more tools to assist with the user query.\n"
        f"Here are the tools available in JSONSchema format:\n\n<tools>\n{listed}</tools>\n\n"
        "When making tool calls, use XML format to invoke tools and pass parameters:\n\n"
        '<minimax:tool_call>\n<invoke name="tool-name-1">\n<parameter name="param-key-1">param-value-1</parameter>\n'
        '<parameter name="param-key-2">param-value-2</parameter>\n...\n</invoke>\n</minimax:tool_call>'
    )


def _minimax_results(results: Sequence[ResultText]) -> str:
    return "\n".join(f"<response>{result.text}</response>" for result in results)


def _build_format(
    title: str,
    render_tools: Callable[[Sequence[Tool]], str],
    render_calls: Callable[[Sequence[ToolCall]], str],
    render_results: Callable[[Sequence[ResultText]], str],
) -> TextFormat:
    return TextFormat(
        name="xml",
        title=title,
        openers=(OPENER, minimax.OPENER),
        markers=(
            minimax.MARKER,
            "<function=",
            "<parameter=",
            "<arg_key>",
            "<invoke name=",
            "<minimax:tool_call>",
            "<function_calls>",
        ),
        render_tools=render_tools,
        render_calls=render_calls,
        render_results=render_results,
        eos_tokens=("<|im_end|>", "<|endoftext|>", "<|observation|>", "<|user|>"),
    )


XML = _build_format("Qwen3-Coder, Qwen 3.5, GLM, MiniMax: tags", _qwen_tools, _qwen_calls, _qwen_results)
XML_VARIANTS = {
    "qwen": XML,
    "glm": _build_format("GLM: keys and values as tags", _glm_tools, _glm_calls, _qwen_results),
    "minimax": _build_format("MiniMax: tags with attributes", _minimax_tools, _minimax_calls, _minimax_results),
}
"""By model family: all variants are parsed alike; the one that the model was trained on is rendered."""

"""Tools that the system text declares in a text tool format: the emulated model reads results and writes calls in it.

The request is converted to one with ordinary tools, calls and results for the built-in model, and its calls to text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET, Struct

from segue.canonical.blocks import Block, Message, Text, ToolCall, ToolResponse, join_texts
from segue.canonical.request import Request, Tool
from segue.emulator.steps import CallStep, ReplySteps, Step, TextStep
from segue.wire.json_values import object_or_none
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.gemma import parse_value
from segue.wire.text.regions import FoundCall
from segue.wire.text.registry import TEXT_FORMATS
from segue.wire.text.scan import scan_text
from segue.wire.text.text_format import TextFormat
from segue.wire.text.xml import XML_VARIANTS

_JSON_DECLARATION = re.compile(r'(?=\{\s*"type":\s*"function",\s*"function":)|(?<=<tool>)(?=\{"name":)')
_DEEPSEEK_DECLARATION = re.compile(r"^### (\S+)\n.*?^Parameters: (?=\{)", re.DOTALL | re.MULTILINE)
_QWEN_DECLARATION = re.compile(r"<function>\n<name>(.*?)</name>(.*?)</function>", re.DOTALL)
_QWEN_PARAMETER = re.compile(r"<parameter>\n<name>(.*?)</name>(?:\n<type>(.*?)</type>)?", re.DOTALL)
_QWEN_REQUIRED = re.compile(r"</parameter>\s*<required>(\[.*?\])</required>", re.DOTALL)
_GEMMA_DECLARATION = re.compile(r"<\|tool>declaration:([^{]+)(\{.*?\})<tool\|>", re.DOTALL)


def _parse_json_tools(text: str) -> Iterator[Tool]:
    decoder = json.JSONDecoder()
    for match in _JSON_DECLARATION.finditer(text):
        try:
            value = cast("Mapping[str, Any]", decoder.raw_decode(text, match.start())[0])
        except ValueError:
            continue
        function = object_or_none(value.get("function")) or value
        yield Tool(str(function.get("name")), parameters=object_or_none(function.get("parameters")))


def _parse_deepseek_tools(text: str) -> Iterator[Tool]:
    for match in _DEEPSEEK_DECLARATION.finditer(text):
        yield Tool(match[1], parameters=json.JSONDecoder().raw_decode(text, match.end())[0])


def _parse_qwen_tools(text: str) -> Iterator[Tool]:
    for match in _QWEN_DECLARATION.finditer(text):
        properties = {key: {"type": kind} if kind else {} for key, kind in _QWEN_PARAMETER.findall(match[2])}
        required = _QWEN_REQUIRED.search(match[2])
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        yield Tool(match[1], parameters=schema | ({"required": json.loads(required[1])} if required else {}))


def _parse_gemma_tools(text: str) -> Iterator[Tool]:
    for match in _GEMMA_DECLARATION.finditer(text):
        declaration = cast("Mapping[str, Any]", parse_value(match[2]))
        yield Tool(match[1], parameters=_lower_types(declaration.get("parameters")))


def _lower_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_lower_types(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _lower_types(value)
        for key, value in members.items()
    }


class _Syntax(Struct, frozen=True):
    """How a format is recognised in the system text, and how its declarations and results are parsed."""

    marker: str
    text_format: TextFormat
    parse_tools: Callable[[str], Iterator[Tool]]
    result: re.Pattern[str]


def _result_pattern(start: str, end: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(start)}(.*?){re.escape(end)}", re.DOTALL)


_TOOL_RESPONSE = _result_pattern("<tool_response>\n", "\n</tool_response>")
# In this order: the instructions of some formats contain the markers of others.
_SYNTAXES = (
    _Syntax(
        "<|tool>declaration:",
        TEXT_FORMATS["gemma"],
        _parse_gemma_tools,
        re.compile(r'<\|tool_response>response:[^{]*\{value:<\|"\|>(.*?)<\|"\|>\}<tool_response\|>', re.DOTALL),
    ),
    _Syntax(
        "<|tool_calls_section_begin|>",
        TEXT_FORMATS["kimi-text"],
        _parse_json_tools,
        re.compile(r"## Return of [^\n]*\n(.*?)(?=\n\n## Return of |\Z)", re.DOTALL),
    ),
    _Syntax(
        "<\uff5ctool▁calls▁begin\uff5c>",
        TEXT_FORMATS["deepseek-text"],
        _parse_deepseek_tools,
        _result_pattern("<\uff5ctool▁output▁begin\uff5c>", "<\uff5ctool▁output▁end\uff5c>"),
    ),
    _Syntax(
        "[AVAILABLE_TOOLS]",
        TEXT_FORMATS["mistral-text"],
        _parse_json_tools,
        _result_pattern("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    ),
    _Syntax(
        "<minimax:tool_call>", XML_VARIANTS["minimax"], _parse_json_tools, _result_pattern("<response>", "</response>")
    ),
    _Syntax("<arg_key>", XML_VARIANTS["glm"], _parse_json_tools, _TOOL_RESPONSE),
    _Syntax("<function=example", TEXT_FORMATS["xml"], _parse_qwen_tools, _TOOL_RESPONSE),
    _Syntax("<tool_call>\n{", TEXT_FORMATS["hermes"], _parse_json_tools, _TOOL_RESPONSE),
    _Syntax(
        '"parameters": dictionary', TEXT_FORMATS["llama"], _parse_json_tools, re.compile(r"(.+?)(?:\n\n|\Z)", re.DOTALL)
    ),
)


class TextTools(Struct, frozen=True):
    """The tools of a request that are declared in its system text."""

    syntax: _Syntax
    tools: tuple[Tool, ...]

    def convert_request(self, request: Request) -> Request:
        """Return the request with ordinary tools, calls and results."""
        declared = DeclaredTools(self.tools)
        messages: list[Message] = []
        open_calls: list[ToolCall] = []
        for number, message in enumerate(request.messages):
            text = join_texts(block.text for block in message.blocks if isinstance(block, Text))
            if message.speaker == "ai":
                blocks, open_calls = self._parse_reply(text, number, declared)
                messages.append(Message("ai", tuple(blocks)))
            elif message.speaker == "human" and open_calls:
                messages += self._parse_results(text, open_calls)
                open_calls = []
            else:
                messages.append(message)
        return msgspec.structs.replace(request, messages=tuple(messages), tools=self.tools)

    def _parse_reply(self, text: str, number: int, declared: DeclaredTools) -> tuple[list[Block], list[ToolCall]]:
        blocks: list[Block] = []
        calls: list[ToolCall] = []
        for segment in scan_text(text, self.syntax.text_format, declared):
            if isinstance(segment, FoundCall):
                calls.append(ToolCall(segment.name, segment.arguments, f"text_{number}_{len(calls)}"))
                blocks.append(calls[-1])
            elif isinstance(segment, str) and segment.strip():
                blocks.append(Text(segment))
        return blocks, calls

    def _parse_results(self, text: str, calls: Sequence[ToolCall]) -> Iterator[Message]:
        results = list(self.syntax.result.finditer(text))[: len(calls)]
        responses = [
            ToolResponse(call.id, call.name, (Text(result[1]),)) for call, result in zip(calls, results, strict=False)
        ]
        if responses:
            yield Message("tool", tuple(responses))
        text_after = text[results[-1].end() :].strip() if results else text
        if text_after:
            yield Message("human", (Text(text_after),))

    def convert_steps(self, steps: ReplySteps) -> ReplySteps:
        """Return the steps with the calls as text."""
        calls = [
            ToolCall(
                step.name,
                {} if step.arguments is UNSET else step.arguments,
                f"functions.{step.name}:{number}",
                arguments_text=step.text,
            )
            for number, step in enumerate(step for step in steps if isinstance(step, CallStep))
        ]
        if not calls:
            return steps
        kept = calls[:1] if self.syntax.text_format.one_call_per_reply else calls
        others: list[Step] = [step for step in steps if not isinstance(step, CallStep)]
        text = "\n".join(step.text for step in others if isinstance(step, TextStep))
        rendered = self.syntax.text_format.render_calls(kept)
        before = [step for step in others if not isinstance(step, TextStep)]
        return (*before, TextStep(f"{text}\n{rendered}" if text else rendered))


def find_text_tools(request: Request) -> TextTools | None:
    """Return the tools that the system text declares; None if it declares none, or the request has ordinary tools."""
    if request.tools:
        return None
    blocks = [*request.system, *(block for message in request.messages[:1] for block in message.blocks)]
    text = join_texts(block.text for block in blocks if isinstance(block, Text))
    syntax = next((syntax for syntax in _SYNTAXES if syntax.marker in text), None)
    tools = () if syntax is None else tuple(syntax.parse_tools(text))
    return TextTools(syntax, tools) if syntax is not None and tools else None

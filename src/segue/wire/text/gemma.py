"""`gemma`: the tool call formats of Google's open models (TPL-11).

Gemma 4 and FunctionGemma have special tokens around `call:name{key:value}`, and tokens in place of quotes; Gemma 3
writes Python into a `tool_code` fence. Gemma 2 and 3, prompted for a list of calls or for JSON, write what `llama`
parses. Gemma 4's format is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.json_values import object_or_none
from segue.wire.text.gemma_values import QUOTES, convert_to_json, render_key, render_value, sort_keys
from segue.wire.text.json_calls import named_arguments, parse_json_calls
from segue.wire.text.lenient_json import InvalidJsonError, find_repeated_key, parse_lenient
from segue.wire.text.pythonic import convert_python_calls
from segue.wire.text.region_reader import Reading
from segue.wire.text.special_tokens import TokenReader, TokenSet, build_call, token_opener
from segue.wire.text.text_format import FoundCall, ResultText, Segment, TextFormat

__all__ = ["GEMMA"]

_OPEN, _CLOSE = "<|tool_call>", "<tool_call|>"
_KINDS = {"call": (_OPEN, "<start_function_call>"), "end": (_CLOSE, "<end_function_call>")}
_STRINGS = {quote: TokenSet({quote: quote}) for quote in QUOTES}
_TOKENS = TokenSet({**_KINDS, **{quote: quote for quote in QUOTES}})
_CALL, _END = _TOKENS.select("call"), _TOKENS.select("end")
_NAME_ENDS = TokenSet({**_KINDS, "object": "{"})
_LONGEST_NAME = 256


class _Call(TokenReader):
    tokens, opening, closing = _TOKENS, _CALL, _END

    def read(self) -> Reading[list[Segment]]:
        yield from self.take_token(_CALL)
        start = self.checkpoint
        kind = yield from self.take_until_token(_NAME_ENDS, _LONGEST_NAME)
        if not kind:
            self.rewind(start)
            return [self.build_broken_call("no call after the opening token")]
        name = self.text_since(start).strip().removeprefix("call:")
        if kind != "object":
            return (yield from self.take_broken_call("no arguments"))
        start = self.checkpoint
        if not (yield from self.take_balanced(_STRINGS)):
            return (yield from self.take_broken_call("unterminated arguments"))
        text = self.text_since(start)
        yield from self.take_closers(_END)
        try:
            converted = convert_to_json(text)
            arguments = parse_lenient(converted)
        except InvalidJsonError as error:
            return [self.build_broken_call(f"arguments: {error}")]
        return [build_call(name, arguments, self.flush_taken(), repeated_key=find_repeated_key(converted, arguments))]


_FENCE = TokenSet({"fence": "```tool_code"})
_FENCE_END = TokenSet({"end": "```"})
_PRINT_CALL = re.compile(r"print\s*\((.*)\)", re.DOTALL)


class _Code(TokenReader):
    """A code fence that holds only calls, each on its own lines."""

    tokens, opening, closing = _FENCE_END, _FENCE, _FENCE_END

    def read(self) -> Reading[list[Segment]]:
        yield from self.take_token(_FENCE)
        start = self.checkpoint
        is_closed = yield from self.take_until_token(_FENCE_END)
        text = self.text_since(start).strip()
        yield from self.take_token(_FENCE_END)
        calls = self._parse_calls(text)
        if isinstance(calls, str) or not is_closed:
            return [self.build_broken_call(calls if isinstance(calls, str) else "unterminated code")]
        return [replace(calls[0], raw_text=self.flush_taken()), *calls[1:]]

    def _parse_calls(self, text: str) -> list[FoundCall] | str:
        """The calls of the code as a whole, or line by line; or the reason why it is not only calls."""
        calls = parse_json_calls(convert_python_calls(_strip_print(text)))
        if isinstance(calls, str):
            lines = [
                parse_json_calls(convert_python_calls(_strip_print(line.strip())))
                for line in text.splitlines()
                if line.strip()
            ]
            calls = next((line for line in lines if isinstance(line, str)), "no call")
            if all(isinstance(line, list) for line in lines) and lines:
                calls = [line_call for line in lines for line_call in line if isinstance(line_call, FoundCall)]
        return (
            calls if isinstance(calls, str) else [replace(call, name=self._strip_module(call.name)) for call in calls]
        )

    def _strip_module(self, name: str) -> str:
        """A name without its module."""
        last = name.rpartition(".")[2]
        is_tool_name = self.declared.can_call(name) if self.declared.is_given else not name.startswith("default_api.")
        return name if is_tool_name or (self.declared.is_given and not self.declared.can_call(last)) else last


def _strip_print(code: str) -> str:
    printed = _PRINT_CALL.fullmatch(code)
    return code if printed is None else printed[1]


def _render_tools(tools: Sequence[Tool]) -> str:
    return "".join(f"<|tool>{_render_declaration(tool)}<tool|>" for tool in tools)


def _render_declaration(tool: Tool) -> str:
    start = f"declaration:{tool.name}{{description:{render_value(tool.description or '')}"
    schema = tool.parameters or {}
    if not schema:
        return start + "}"
    parts = [*_render_properties_and_required(schema), f"type:{render_value(_render_type(schema))}"]
    return f"{start},parameters:{{{','.join(parts)}}}}}"


def _render_properties_and_required(schema: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    if properties := object_or_none(schema.get("properties")):
        parts.append(f"properties:{{{_render_properties(properties)}}}")
    if required := schema.get("required"):
        parts.append(f"required:{render_value(required)}")
    return parts


def _render_properties(properties: Mapping[str, Any]) -> str:
    schemas = [(key, object_or_none(properties[key]) or {}) for key in sort_keys(properties)]
    return ",".join(f"{render_key(key)}:{_render_property(schema)}" for key, schema in schemas)


def _render_property(schema: Mapping[str, Any]) -> str:
    """A property's schema, with the keywords that the chat template prints, in its order."""
    kind = _render_type(schema)
    parts: list[str] = []
    if description := schema.get("description"):
        parts.append(f"description:{render_value(description)}")
    if schema.get("enum"):
        parts.append(f"enum:{render_value(schema['enum'])}")
    if kind == "ARRAY" and (items := object_or_none(schema.get("items"))):
        parts.append(f"items:{_render_items(items)}")
    if schema.get("nullable"):
        parts.append("nullable:true")
    if kind == "OBJECT":
        parts += _render_properties_and_required(schema)
    parts.append(f"type:{render_value(kind)}")
    return f"{{{','.join(parts)}}}"


def _render_items(schema: Mapping[str, Any]) -> str:
    """The schema of a list's items, with all its keywords."""
    parts: list[str] = []
    for key in sort_keys(schema):
        if key == "properties":
            parts.append(f"properties:{{{_render_properties(object_or_none(schema[key]) or {})}}}")
        elif key == "type":
            parts.append(f"type:{render_value(_render_type(schema))}")
        elif schema[key] is not None:
            parts.append(f"{render_key(key)}:{render_value(schema[key])}")
    return f"{{{','.join(parts)}}}"


def _render_type(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        return [str(name).upper() for name in cast("list[object]", kind)]
    return str(kind or ("object" if "properties" in schema else "string")).upper()


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{_OPEN}call:{call.name}{render_value(named_arguments(call))}{_CLOSE}" for call in calls)


def _render_results(results: Sequence[ResultText]) -> str:
    return "".join(
        f"<|tool_response>response:{result.name}{render_value({'value': result.text})}<tool_response|>"
        for result in results
    )


GEMMA = TextFormat(
    name="gemma",
    title="Gemma 4 and FunctionGemma: bare keys, and tokens in place of quotes",
    openers=(token_opener(_CALL, _Call), token_opener(_FENCE, _Code)),
    markers=(_OPEN, "<start_function_call>", "```tool_code"),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    eos_tokens=("<end_of_turn>", "<turn|>", "<eos>", "<start_function_response>", "<|tool_response>"),
)

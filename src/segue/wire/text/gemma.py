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
from segue.wire.fields import object_or_none
from segue.wire.text.base import Answered, Found, Piece, TextFormat
from segue.wire.text.gemma_values import QUOTES, as_json, in_order, write_key, write_value
from segue.wire.text.loose import NotReadableError, read_loose, repeated
from segue.wire.text.marks import MarkedReader, Marks, call_with, opener
from segue.wire.text.pythonic import as_objects
from segue.wire.text.reader import Reading
from segue.wire.text.spoken import calls_in, object_of_call

__all__ = ["GEMMA"]

_OPEN, _CLOSE = "<|tool_call>", "<tool_call|>"
_KINDS = {"call": (_OPEN, "<start_function_call>"), "end": (_CLOSE, "<end_function_call>")}
_STRINGS = {quote: Marks({quote: quote}) for quote in QUOTES}
_MARKS = Marks({**_KINDS, **{quote: quote for quote in QUOTES}})
_CALL, _END = _MARKS.only("call"), _MARKS.only("end")
_NAME_ENDS = Marks({**_KINDS, "object": "{"})
_LONGEST_NAME = 256


class _Call(MarkedReader):
    marks, opening, closing = _MARKS, _CALL, _END

    def read(self) -> Reading[list[Piece]]:
        yield from self.past(_CALL)
        start = self.mark
        mark = yield from self.find(_NAME_ENDS, _LONGEST_NAME)
        if not mark:
            self.give_back(start)
            return [self.lost("no call")]
        name = self.since(start).strip().removeprefix("call:")
        if mark != "object":
            return (yield from self.broken("no arguments"))
        start = self.mark
        if not (yield from self.balanced(_STRINGS)):
            return (yield from self.broken("unterminated arguments"))
        text = self.since(start)
        yield from self.closers(_END)
        try:
            converted = as_json(text)
            arguments = read_loose(converted)
        except NotReadableError as error:
            return [self.lost(f"arguments: {error}")]
        return [call_with(name, arguments, self.written(), twice=repeated(converted, arguments))]


_FENCE = Marks({"fence": "```tool_code"})
_FENCE_END = Marks({"end": "```"})
_PRINTED = re.compile(r"print\s*\((.*)\)", re.DOTALL)


class _Code(MarkedReader):
    """A code fence that holds only calls, each on its own lines."""

    marks, opening, closing = _FENCE_END, _FENCE, _FENCE_END

    def read(self) -> Reading[list[Piece]]:
        yield from self.past(_FENCE)
        start = self.mark
        is_closed = yield from self.find(_FENCE_END)
        text = self.since(start).strip()
        yield from self.past(_FENCE_END)
        found = self._calls(text)
        if isinstance(found, str) or not is_closed:
            return [self.lost(found if isinstance(found, str) else "unterminated code")]
        return [replace(found[0], written=self.written()), *found[1:]]

    def _calls(self, text: str) -> list[Found] | str:
        """The calls of the code as a whole, or line by line; or the reason why it is not only calls."""
        found = calls_in(as_objects(_unprinted(text)))
        if isinstance(found, str):
            lines = [calls_in(as_objects(_unprinted(line.strip()))) for line in text.splitlines() if line.strip()]
            found = next((line for line in lines if isinstance(line, str)), "no call")
            if all(isinstance(line, list) for line in lines) and lines:
                found = [call for line in lines for call in line if isinstance(call, Found)]
        return found if isinstance(found, str) else [replace(one, name=self._name(one.name)) for one in found]

    def _name(self, name: str) -> str:
        """A name without its module."""
        last = name.rpartition(".")[2]
        is_whole = self.declared.knows(name) if self.declared.given else not name.startswith("default_api.")
        return name if is_whole or (self.declared.given and not self.declared.knows(last)) else last


def _unprinted(code: str) -> str:
    found = _PRINTED.fullmatch(code)
    return code if found is None else found[1]


def _render_tools(tools: Sequence[Tool]) -> str:
    return "".join(f"<|tool>{_declaration(tool)}<tool|>" for tool in tools)


def _declaration(tool: Tool) -> str:
    start = f"declaration:{tool.name}{{description:{write_value(tool.description or '')}"
    schema = tool.parameters or {}
    if not schema:
        return start + "}"
    parts = [*_properties_and_required(schema), f"type:{write_value(_type_of(schema))}"]
    return f"{start},parameters:{{{','.join(parts)}}}}}"


def _properties_and_required(schema: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    if properties := object_or_none(schema.get("properties")):
        parts.append(f"properties:{{{_properties(properties)}}}")
    if required := schema.get("required"):
        parts.append(f"required:{write_value(required)}")
    return parts


def _properties(properties: Mapping[str, Any]) -> str:
    schemas = [(key, object_or_none(properties[key]) or {}) for key in in_order(properties)]
    return ",".join(f"{write_key(key)}:{_property(schema)}" for key, schema in schemas)


def _property(schema: Mapping[str, Any]) -> str:
    """A property's schema, with the keywords that the chat template prints, in its order."""
    kind = _type_of(schema)
    parts: list[str] = []
    if description := schema.get("description"):
        parts.append(f"description:{write_value(description)}")
    if schema.get("enum"):
        parts.append(f"enum:{write_value(schema['enum'])}")
    if kind == "ARRAY" and (items := object_or_none(schema.get("items"))):
        parts.append(f"items:{_items(items)}")
    if schema.get("nullable"):
        parts.append("nullable:true")
    if kind == "OBJECT":
        parts += _properties_and_required(schema)
    parts.append(f"type:{write_value(kind)}")
    return f"{{{','.join(parts)}}}"


def _items(schema: Mapping[str, Any]) -> str:
    """The schema of a list's items, with all its keywords."""
    parts: list[str] = []
    for key in in_order(schema):
        if key == "properties":
            parts.append(f"properties:{{{_properties(object_or_none(schema[key]) or {})}}}")
        elif key == "type":
            parts.append(f"type:{write_value(_type_of(schema))}")
        elif schema[key] is not None:
            parts.append(f"{write_key(key)}:{write_value(schema[key])}")
    return f"{{{','.join(parts)}}}"


def _type_of(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        return [str(one).upper() for one in cast("list[object]", kind)]
    return str(kind or ("object" if "properties" in schema else "string")).upper()


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{_OPEN}call:{call.name}{write_value(object_of_call(call))}{_CLOSE}" for call in calls)


def _render_results(results: Sequence[Answered]) -> str:
    return "".join(
        f"<|tool_response>response:{result.name}{write_value({'value': result.text})}<tool_response|>"
        for result in results
    )


GEMMA = TextFormat(
    name="gemma",
    title="Gemma 4 and FunctionGemma: bare keys, and tokens in place of quotes",
    openers=(opener(_CALL, _Call), opener(_FENCE, _Code)),
    markers=(_OPEN, "<start_function_call>", "```tool_code"),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    ends=("<end_of_turn>", "<turn|>", "<eos>", "<start_function_response>", "<|tool_response>"),
)

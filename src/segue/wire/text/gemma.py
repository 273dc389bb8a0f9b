"""`gemma`: what Google's open models write to call a tool (TPL-11).

Gemma 4 and FunctionGemma have special tokens around `call:name{key:value}`, and tokens in place of quotes. Rendered is
Gemma 4's way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.fields import object_or_none
from segue.wire.text.base import Answered, Piece, TextFormat
from segue.wire.text.gemma_values import QUOTES, in_order, read_value, write_key, write_value
from segue.wire.text.loose import NotReadableError
from segue.wire.text.marks import MarkedReader, Marks, call_with, opener
from segue.wire.text.reader import Reading

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
            return [self.lost("no call follows")]
        name = self.since(start).strip().removeprefix("call:")
        if mark != "object":
            return (yield from self.broken("no arguments follow"))
        start = self.mark
        if not (yield from self.balanced(_STRINGS)):
            return (yield from self.broken("the arguments have no end"))
        text = self.since(start)
        yield from self.closers(_END)
        try:
            arguments = read_value(text)
        except NotReadableError as error:
            return [self.lost(f"not readable: {error}")]
        return [call_with(name, arguments, self.written())]


def _render_tools(tools: Sequence[Tool]) -> str:
    return "".join(f"<|tool>{_declaration(tool)}<tool|>" for tool in tools)


def _declaration(tool: Tool) -> str:
    said = f"declaration:{tool.name}{{description:{write_value(tool.description or '')}"
    schema = tool.parameters or {}
    if not schema:
        return said + "}"
    parts = [*_properties_and_required(schema), f"type:{write_value(_type_of(schema))}"]
    return f"{said},parameters:{{{','.join(parts)}}}}}"


def _properties_and_required(schema: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    if properties := object_or_none(schema.get("properties")):
        parts.append(f"properties:{{{_properties(properties)}}}")
    if required := schema.get("required"):
        parts.append(f"required:{write_value(required)}")
    return parts


def _properties(properties: Mapping[str, Any]) -> str:
    told = [(key, object_or_none(properties[key]) or {}) for key in in_order(properties)]
    return ",".join(f"{write_key(key)}:{_property(schema)}" for key, schema in told)


def _property(schema: Mapping[str, Any]) -> str:
    """A property's schema, by the parts that the template prints, and in its order."""
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
    """The schema of a list's items, with all that it says."""
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
    return "".join(f"{_OPEN}call:{call.name}{_arguments(call)}{_CLOSE}" for call in calls)


def _arguments(call: ToolCall) -> str:
    """The arguments. What is no object stands under the key that the template gives to a result's text."""
    said = call.arguments if call.arguments_text is None else call.arguments_text
    return write_value(said if isinstance(said, Mapping) else {"value": said})


def _render_results(results: Sequence[Answered]) -> str:
    return "".join(
        f"<|tool_response>response:{result.name}{write_value({'value': result.text})}<tool_response|>"
        for result in results
    )


GEMMA = TextFormat(
    name="gemma",
    title="Gemma 4 and FunctionGemma: bare keys, and tokens in place of quotes",
    openers=(opener(_CALL, _Call),),
    markers=(f"{_OPEN}call:", _OPEN, "<start_function_call>"),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
)

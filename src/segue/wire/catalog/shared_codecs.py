"""Codecs of arguments and outputs that several providers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.render.report import Report
from segue.wire.catalog.field_codecs import ArgumentsCodec, Content, OutputCodec, Patch, json_value, value_output
from segue.wire.catalog.paths import get_path
from segue.wire.json_values import JsonObject, object_or_none, string_or_none
from segue.wire.tools import render_arguments_object

__all__ = [
    "conditional_output",
    "keys_output",
    "object_arguments",
    "object_or_text",
    "optional_output",
    "with_failure_fields",
]


def object_arguments(path: str) -> ArgumentsCodec:
    """An object; other arguments are wrapped in one, as the wires do."""
    return ArgumentsCodec(json_value(path).parse, lambda call: {path: render_arguments_object(call, Report())})


def conditional_output(output: OutputCodec, condition: Callable[[ToolResponse], bool]) -> OutputCodec:
    """An output that is rendered only for responses that meet the condition."""
    return OutputCodec(output.parse, lambda response: output.render(response) if condition(response) else {})


def object_or_text(path: str) -> ArgumentsCodec:
    """An instruction to another agent: an object as a JSON string, or plain text."""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        text = string_or_none(get_path(payload, path)) or ""
        parsed = object_or_none(parse_argument_text(text)[0])
        return (text if parsed is None else parsed), None

    def render(call: ToolCall) -> Patch:
        return {path: call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)}

    return ArgumentsCodec(parse, render)


def _has_content(response: ToolResponse) -> bool:
    return bool(response.content) or response.structured is not UNSET


def optional_output(path: str) -> OutputCodec:
    """Text or any other JSON value; omitted if the response is empty."""
    return conditional_output(value_output(path), _has_content)


def keys_output(*names: str) -> OutputCodec:
    """An object of these keys of the payload."""

    def parse(payload: JsonObject) -> Content:
        return (), {name: payload[name] for name in names if payload.get(name) is not None}

    def render(response: ToolResponse) -> Patch:
        fields = object_or_none(response.structured) or {}
        return {name: fields[name] for name in names if name in fields}

    return OutputCodec(parse, render)


def with_failure_fields(output: OutputCodec, failure: Mapping[str, Any]) -> OutputCodec:
    """An output with these fields added if the call failed."""

    def render(response: ToolResponse) -> Patch:
        failed = response.error or response.outcome is not None
        return {**output.render(response), **(failure if failed else {})}

    return OutputCodec(output.parse, render)

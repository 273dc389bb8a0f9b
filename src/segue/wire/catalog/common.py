"""Codecs of arguments and outputs that several providers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.canonical.jsontext import parse_argument_text, write_text
from segue.render.report import Report
from segue.wire.catalog.fields import Arguments, Content, Output, Patch, value, values
from segue.wire.catalog.paths import at
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.tools import render_arguments_object

__all__ = ["anything", "instruction", "marked", "members", "object_at", "restricted"]


def object_at(path: str) -> Arguments:
    """An object; other arguments are wrapped in one, as the wires do."""
    return Arguments(value(path).read, lambda call: {path: render_arguments_object(call, Report())})


def restricted(output: Output, fits: Callable[[ToolResponse], bool]) -> Output:
    """An output that is rendered only for responses that meet the condition."""
    return Output(output.read, lambda response: output.write(response) if fits(response) else {})


def instruction(path: str) -> Arguments:
    """An instruction to another agent: an object as a JSON string, or plain text."""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        text = string_or_none(at(payload, path)) or ""
        parsed = object_or_none(parse_argument_text(text)[0])
        return (text if parsed is None else parsed), None

    def render(call: ToolCall) -> Patch:
        return {path: call.arguments if isinstance(call.arguments, str) else write_text(call.arguments)}

    return Arguments(parse, render)


def _says_something(response: ToolResponse) -> bool:
    return bool(response.content) or response.structured is not UNSET


def anything(path: str) -> Output:
    """Text or any other JSON value; omitted if the response is empty."""
    return restricted(values(path), _says_something)


def members(*names: str) -> Output:
    """An object of these keys of the payload."""

    def parse(payload: JsonObject) -> Content:
        return (), {name: payload[name] for name in names if payload.get(name) is not None}

    def render(response: ToolResponse) -> Patch:
        given = object_or_none(response.structured) or {}
        return {name: given[name] for name in names if name in given}

    return Output(parse, render)


def marked(output: Output, failure: Mapping[str, Any]) -> Output:
    """An output with these fields added if the call failed."""

    def render(response: ToolResponse) -> Patch:
        failed = response.error or response.outcome is not None
        return {**output.write(response), **(failure if failed else {})}

    return Output(output.read, render)

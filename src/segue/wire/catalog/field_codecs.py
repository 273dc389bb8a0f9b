"""Codecs for arguments and outputs in a payload: pairs of a parse and a render function.

Paths have the form `function.arguments`. A render function returns a patch: values by path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.wire.catalog.paths import get_path
from segue.wire.json_values import JsonObject, object_or_none, string_or_none

__all__ = [
    "ArgumentsCodec",
    "OutputCodec",
    "Patch",
    "custom_output",
    "free_text",
    "json_text",
    "json_text_or_value",
    "json_value",
    "no_arguments",
    "parse_data_url",
    "response_text",
    "selected_keys",
    "text_output",
    "value_output",
]

Patch: TypeAlias = dict[str, Any]
Content: TypeAlias = tuple[tuple[Block, ...] | None, Any]
"""The blocks of an output, None if it has none; and its value if it is JSON and not text."""


class ArgumentsCodec(Struct, frozen=True):
    """`parse` returns the value, and the exact text if it is not valid JSON."""

    parse: Callable[[JsonObject], tuple[Any, str | None]]
    render: Callable[[ToolCall], Patch]


class OutputCodec(Struct, frozen=True):
    """`path` is the path of the output if it is a single field."""

    parse: Callable[[JsonObject], Content]
    render: Callable[[ToolResponse], Patch]
    path: str | None = None


# ----------------------------------------------------------------------------------------------------------- arguments


def json_text(path: str) -> ArgumentsCodec:
    """JSON as a string."""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        text = get_path(payload, path)
        return parse_argument_text(text) if isinstance(text, str) else ({} if text is None else text, None)

    return ArgumentsCodec(parse, lambda call: {path: _render_json_text(call)})


def _render_json_text(call: ToolCall) -> str:
    return call.arguments_text if call.arguments_text is not None else encode_json_text(call.arguments)


def json_value(path: str) -> ArgumentsCodec:
    """A JSON value."""
    return ArgumentsCodec(
        lambda payload: (get_path(payload, path) if get_path(payload, path) is not None else {}, None),
        _render_value_at(path),
    )


def _render_value_at(path: str) -> Callable[[ToolCall], Patch]:
    return lambda call: {path: call.arguments}


def json_text_or_value(path: str) -> ArgumentsCodec:
    """A JSON value or a JSON string when parsed; rendered as a string."""
    return json_text(path)


def free_text(path: str) -> ArgumentsCodec:
    return ArgumentsCodec(
        lambda payload: (string_or_none(get_path(payload, path)) or "", None),
        lambda call: {path: call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)},
    )


def selected_keys(*names: str, root: str = "") -> ArgumentsCodec:
    """An object of these keys of the payload."""
    prefix = f"{root}." if root else ""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        fields = object_or_none(get_path(payload, root)) or {}
        return {name: fields[name] for name in names if name in fields}, None

    def render(call: ToolCall) -> Patch:
        arguments = object_or_none(call.arguments) or {}
        return {f"{prefix}{name}": arguments[name] for name in names if name in arguments}

    return ArgumentsCodec(parse, render)


no_arguments = ArgumentsCodec(lambda _payload: ({}, None), lambda _call: {})


# ------------------------------------------------------------------------------------------------------------- outputs


def text_output(path: str) -> OutputCodec:
    """Text; other JSON values are parsed as structured content."""

    def parse(payload: JsonObject) -> Content:
        text = get_path(payload, path)
        if text is None:
            return None, UNSET
        return ((Text(text),), UNSET) if isinstance(text, str) else ((), text)

    return OutputCodec(parse, lambda response: {path: response_text(response)}, path)


def value_output(path: str) -> OutputCodec:
    """Text, or any other JSON value."""

    def render(response: ToolResponse) -> Patch:
        return {path: response_text(response) if isinstance(response.structured, UnsetType) else response.structured}

    return OutputCodec(text_output(path).parse, render, path)


def custom_output(
    path: str, parse_value: Callable[[Any], Sequence[Block]], render_value: Callable[[ToolResponse], object]
) -> OutputCodec:
    """A value with its own conversion from and to blocks."""

    def parse(payload: JsonObject) -> Content:
        value = get_path(payload, path)
        return (None if value is None else tuple(parse_value(value))), UNSET

    return OutputCodec(parse, lambda response: {path: render_value(response)}, path)


def response_text(response: ToolResponse) -> str:
    """The text of a response; structured content as JSON text."""
    if not isinstance(response.structured, UnsetType):
        return encode_json_text(response.structured)
    return "\n".join(block.text for block in response.content or () if isinstance(block, Text))


def parse_data_url(url: str, kind: str = "image") -> Media:
    """Media from a URL or a data URL."""
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        return Media(cast("Any", kind), head[5:-7] or None, data)
    return Media(cast("Any", kind), url=url)

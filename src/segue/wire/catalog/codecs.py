"""Codecs for arguments and outputs in a payload: pairs of a parse and a render function.

Paths have the form `function.arguments` or `functionCalls.0.id`. A render function returns a patch: values by path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.render.report import Report
from segue.wire.json_values import JsonObject, get_path, object_or_none, string_or_none
from segue.wire.openai_responses.item_types import format_approval
from segue.wire.tools import render_arguments_object


def has_path(payload: object, path: str) -> bool:
    """Return whether the path exists, even with the value null."""
    parent, _, name = path.rpartition(".")
    return name in (object_or_none(get_path(payload, parent)) or {})


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


class ApprovalCodec(Struct, frozen=True):
    """An approval as text, `approved: reason`. `render` returns the fields of an approval from its text."""

    parse: Callable[[JsonObject], str]
    render: Callable[[str], Patch]


def approval_field(path: str, approved: object, refused: object, reason: str | None = None) -> ApprovalCodec:
    """Return a codec for a decision at a path, and its reason in another field."""

    def parse(payload: JsonObject) -> str:
        return format_approval(get_path(payload, path) == approved, payload.get(reason) if reason is not None else None)

    def render(text: str) -> Patch:
        is_approved, given = parse_approval_text(text)
        return {path: approved if is_approved else refused, **({reason: given} if reason is not None and given else {})}

    return ApprovalCodec(parse, render)


def parse_approval_text(text: str) -> tuple[bool, str]:
    """Parse `approved: reason`: whether it is an approval, and its reason, if any."""
    decision, _, reason = text.partition(": ")
    return decision == "approved", reason


# ----------------------------------------------------------------------------------------------------------- arguments


def json_text(path: str) -> ArgumentsCodec:
    """Return a codec for JSON as a string; a payload may also have the value itself."""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        text = get_path(payload, path)
        return parse_argument_text(text) if isinstance(text, str) else ({} if text is None else text, None)

    return ArgumentsCodec(parse, lambda call: {path: _render_json_text(call)})


def _render_json_text(call: ToolCall) -> str:
    return call.arguments_text if call.arguments_text is not None else encode_json_text(call.arguments)


def json_value(path: str) -> ArgumentsCodec:
    """Return a codec for a JSON value."""
    return ArgumentsCodec(
        lambda payload: (get_path(payload, path) if get_path(payload, path) is not None else {}, None),
        _render_value_at(path),
    )


def _render_value_at(path: str) -> Callable[[ToolCall], Patch]:
    return lambda call: {path: call.arguments}


def free_text(path: str) -> ArgumentsCodec:
    return ArgumentsCodec(
        lambda payload: (string_or_none(get_path(payload, path)) or "", None),
        lambda call: {path: call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)},
    )


def selected_keys(*names: str, root: str = "") -> ArgumentsCodec:
    """Return a codec for an object of these keys of the payload."""
    prefix = f"{root}." if root else ""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        fields = object_or_none(get_path(payload, root)) or {}
        return {name: fields[name] for name in names if name in fields}, None

    def render(call: ToolCall) -> Patch:
        arguments = object_or_none(call.arguments) or {}
        return {f"{prefix}{name}": arguments[name] for name in names if name in arguments}

    return ArgumentsCodec(parse, render)


def object_arguments(path: str) -> ArgumentsCodec:
    """Return a codec for an object; other arguments are wrapped in one, as the wires do."""
    return ArgumentsCodec(json_value(path).parse, lambda call: {path: render_arguments_object(call, Report())})


def object_or_text(path: str) -> ArgumentsCodec:
    """Return a codec for an instruction to another agent: an object as a JSON string, or plain text."""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        text = string_or_none(get_path(payload, path)) or ""
        parsed = object_or_none(parse_argument_text(text)[0])
        return (text if parsed is None else parsed), None

    return ArgumentsCodec(parse, free_text(path).render)


no_arguments = ArgumentsCodec(lambda _payload: ({}, None), lambda _call: {})


# ------------------------------------------------------------------------------------------------------------- outputs


def text_output(path: str) -> OutputCodec:
    """Return a codec for text; other JSON values are parsed as structured content."""

    def parse(payload: JsonObject) -> Content:
        text = get_path(payload, path)
        if text is None:
            return None, UNSET
        return ((Text(text),), UNSET) if isinstance(text, str) else ((), text)

    return OutputCodec(parse, lambda response: {path: response_text(response)}, path)


def value_output(path: str) -> OutputCodec:
    """Return a codec for text or any other JSON value."""

    def render(response: ToolResponse) -> Patch:
        return {path: response_text(response) if isinstance(response.structured, UnsetType) else response.structured}

    return OutputCodec(text_output(path).parse, render, path)


def custom_output(
    path: str, parse_value: Callable[[Any], Sequence[Block]], render_value: Callable[[ToolResponse], object]
) -> OutputCodec:
    """Return a codec for a value with its own conversion from and to blocks."""

    def parse(payload: JsonObject) -> Content:
        value = get_path(payload, path)
        return (None if value is None else tuple(parse_value(value))), UNSET

    return OutputCodec(parse, lambda response: {path: render_value(response)}, path)


def response_text(response: ToolResponse) -> str:
    """Return the text of a response; structured content as JSON text."""
    if not isinstance(response.structured, UnsetType):
        return encode_json_text(response.structured)
    return "\n".join(block.text for block in response.content or () if isinstance(block, Text))


def has_content(response: ToolResponse) -> bool:
    return bool(response.content) or not isinstance(response.structured, UnsetType)


def parse_data_url(url: str, kind: str = "image") -> Media:
    """Parse a URL or a data URL as media."""
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        return Media(cast("Any", kind), head[5:-7] or None, data)
    return Media(cast("Any", kind), url=url)


def optional_output(path: str) -> OutputCodec:
    """Return a codec for text or any other JSON value; it is omitted if the response is empty."""
    output = value_output(path)

    def render(response: ToolResponse) -> Patch:
        return output.render(response) if has_content(response) else {}

    return OutputCodec(output.parse, render)


def keys_output(*names: str) -> OutputCodec:
    """Return a codec for an object of these keys of the payload."""

    def parse(payload: JsonObject) -> Content:
        return (), {name: payload[name] for name in names if payload.get(name) is not None}

    def render(response: ToolResponse) -> Patch:
        fields = object_or_none(response.structured) or {}
        return {name: fields[name] for name in names if name in fields}

    return OutputCodec(parse, render)


def with_failure_fields(output: OutputCodec, failure: Mapping[str, Any]) -> OutputCodec:
    """Return the codec with these fields added if the call failed."""

    def render(response: ToolResponse) -> Patch:
        failed = response.error or response.outcome is not None
        return {**output.render(response), **(failure if failed else {})}

    return OutputCodec(output.parse, render)

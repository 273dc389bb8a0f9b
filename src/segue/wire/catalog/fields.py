"""Codecs for arguments and outputs in a payload: pairs of a parse and a render function.

Paths have the form `function.arguments`. A render function returns a patch: values by path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse
from segue.canonical.jsontext import parse_argument_text, write_text
from segue.wire.catalog.paths import at
from segue.wire.fields import JsonObject, object_or_none, string_or_none

__all__ = [
    "Arguments",
    "Output",
    "Patch",
    "data_url",
    "either",
    "free_text",
    "json_text",
    "keys",
    "nothing",
    "said",
    "told",
    "value",
    "values",
    "words",
]

Patch: TypeAlias = dict[str, Any]
Content: TypeAlias = tuple[tuple[Block, ...] | None, Any]
"""The blocks of an output, None if it has none; and its value if it is JSON and not text."""


class Arguments(Struct, frozen=True):
    """`parse` returns the value, and the exact text if it is not valid JSON."""

    read: Callable[[JsonObject], tuple[Any, str | None]]
    write: Callable[[ToolCall], Patch]


class Output(Struct, frozen=True):
    """`path` is the place of the output, if it has a single one."""

    read: Callable[[JsonObject], Content]
    write: Callable[[ToolResponse], Patch]
    path: str | None = None


# ----------------------------------------------------------------------------------------------------------- arguments


def json_text(path: str) -> Arguments:
    """JSON as a string."""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        text = at(payload, path)
        return parse_argument_text(text) if isinstance(text, str) else ({} if text is None else text, None)

    return Arguments(parse, lambda call: {path: _text_of(call)})


def _text_of(call: ToolCall) -> str:
    return call.arguments_text if call.arguments_text is not None else write_text(call.arguments)


def value(path: str) -> Arguments:
    """A JSON value."""
    return Arguments(
        lambda payload: (at(payload, path) if at(payload, path) is not None else {}, None), _value_at(path)
    )


def _value_at(path: str) -> Callable[[ToolCall], Patch]:
    return lambda call: {path: call.arguments}


def either(path: str) -> Arguments:
    """A JSON value or a JSON string when parsed; rendered as a string."""
    return json_text(path)


def free_text(path: str) -> Arguments:
    return Arguments(
        lambda payload: (string_or_none(at(payload, path)) or "", None),
        lambda call: {path: call.arguments if isinstance(call.arguments, str) else write_text(call.arguments)},
    )


def keys(*names: str, root: str = "") -> Arguments:
    """An object of these keys of the payload."""
    prefix = f"{root}." if root else ""

    def parse(payload: JsonObject) -> tuple[Any, str | None]:
        inner = object_or_none(at(payload, root)) or {}
        return {name: inner[name] for name in names if name in inner}, None

    def render(call: ToolCall) -> Patch:
        given = object_or_none(call.arguments) or {}
        return {f"{prefix}{name}": given[name] for name in names if name in given}

    return Arguments(parse, render)


nothing = Arguments(lambda _payload: ({}, None), lambda _call: {})


# ------------------------------------------------------------------------------------------------------------- outputs


def words(path: str) -> Output:
    """Text; other JSON values are parsed as structured content."""

    def parse(payload: JsonObject) -> Content:
        text = at(payload, path)
        if text is None:
            return None, UNSET
        return ((Text(text),), UNSET) if isinstance(text, str) else ((), text)

    return Output(parse, lambda response: {path: said(response)}, path)


def values(path: str) -> Output:
    """Text, or any other JSON value."""

    def render(response: ToolResponse) -> Patch:
        return {path: said(response) if isinstance(response.structured, UnsetType) else response.structured}

    return Output(words(path).read, render, path)


def told(path: str, tell: Callable[[Any], Sequence[Block]], untell: Callable[[ToolResponse], object]) -> Output:
    """A value with its own conversion from and to blocks."""

    def parse(payload: JsonObject) -> Content:
        given = at(payload, path)
        return (None if given is None else tuple(tell(given))), UNSET

    return Output(parse, lambda response: {path: untell(response)}, path)


def said(response: ToolResponse) -> str:
    """The text of a response; structured content as JSON text."""
    if not isinstance(response.structured, UnsetType):
        return write_text(response.structured)
    return "\n".join(block.text for block in response.content or () if isinstance(block, Text))


def data_url(url: str, kind: str = "image") -> Media:
    """Media from a URL or a data URL."""
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        return Media(cast("Any", kind), head[5:-7] or None, data)
    return Media(cast("Any", kind), url=url)

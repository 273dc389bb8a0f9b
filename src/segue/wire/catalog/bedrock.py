"""Bedrock's types: the blocks of Converse."""

from __future__ import annotations

from typing import Any, cast

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse
from segue.canonical.jsontext import write_text
from segue.errors import InputError
from segue.wire.catalog.common import object_at
from segue.wire.catalog.fields import Arguments, Content, Output, Patch
from segue.wire.catalog.paths import at
from segue.wire.catalog.shape import Shape, one_of
from segue.wire.fields import JsonObject, list_of, object_of, object_or_none, string_or_none

__all__ = ["BEDROCK"]

_MIMES = {"jpeg": "image/jpeg", "pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown"}
_KINDS = ("image", "document", "video")


def _write_call(call: ToolCall) -> Patch:
    input_ = {"toolUse.input": call.arguments if call.arguments_text is None else call.arguments_text}
    return input_ | ({"toolUse.type": "server_tool_use"} if call.kind == "hosted" else {})


def _read_content(payload: JsonObject) -> Content:
    """One JSON value alone is that value; beside other content its text is told."""
    path = "toolResult.content"
    items = list_of(at(payload, path), path)
    blocks: list[Block] = []
    for index, item in enumerate(items):
        try:
            member = object_of(item)
        except InputError as error:
            raise error.under(f"{path}[{index}]") from None
        if len(items) == 1 and "json" in member:
            return (), member["json"]
        blocks += _told(member)
    return tuple(blocks), UNSET


def _told(item: JsonObject) -> list[Block]:
    text = string_or_none(item.get("text"))
    if text is not None:
        return [Text(text)]
    for kind in _KINDS:
        if (given := object_or_none(item.get(kind))) is not None:
            return [_media(kind, given)]
    found = object_or_none(item.get("searchResult"))
    if found is not None:
        parts = cast("list[object]", found.get("content") or [])
        texts = [(object_or_none(part) or {}).get("text") for part in parts]
        lines = [line for line in (found.get("title"), found.get("source"), *texts) if isinstance(line, str) and line]
        return [Text("\n".join(lines))]
    return [Text(write_text(item.get("json", item)))]


def _media(kind: Any, given: JsonObject) -> Block:
    form = string_or_none(given.get("format"))
    source = object_or_none(given.get("source")) or {}
    name = string_or_none(given.get("name"))
    words = source.get("text")
    if isinstance(words, str):
        return Text(f"{name}\n{words}" if name else words)
    mime = _MIMES.get(form, f"{kind}/{form}" if kind != "document" else f"application/{form}") if form else None
    data, url = string_or_none(source.get("bytes")), string_or_none(at(source, "s3Location.uri"))
    if data is None and url is None:
        return Text(write_text(given))
    return Media(kind, mime, data=data, url=url, name=name)


def _write_content(response: ToolResponse) -> Patch:
    content = [_written(block) for block in response.content or ()]
    if response.structured is not UNSET:
        content = [{"json": response.structured}, *content]
    patch: Patch = {"toolResult.content": content}
    if response.error or response.outcome is not None:
        patch["toolResult.status"] = "error"
    if response.hosted:
        patch["toolResult.type"] = f"{response.name or 'server_tool'}_result"
    return patch


def _written(block: Block) -> JsonObject:
    if isinstance(block, Media) and block.kind in _KINDS:
        s3 = block.url if block.url is not None and block.url.startswith("s3://") else None
        if block.data is not None or s3 is not None:
            source = {"bytes": block.data} if block.data is not None else {"s3Location": {"uri": s3}}
            named = {"name": block.name or "document"} if block.kind == "document" else {}
            return {block.kind: {"format": _format(block), **named, "source": source}}
    words = block.url or block.name or block.kind if isinstance(block, Media) else getattr(block, "text", "")
    return {"text": words}


def _format(media: Media) -> str:
    usual = {"image": "png", "document": "pdf", "video": "mp4"}[media.kind]
    known = {mime: form for form, mime in _MIMES.items()}
    return known.get(media.mime or "", (media.mime or "").partition("/")[2] or usual)


BEDROCK: dict[str, Shape] = {
    "ToolUse": Shape(
        id="toolUse.toolUseId",
        name="toolUse.name",
        arguments=Arguments(object_at("toolUse.input").read, _write_call),
        hosted=one_of("toolUse.type", "server_tool_use"),
    ),
    "ToolResult": Shape(
        id="toolResult.toolUseId",
        output=Output(_read_content, _write_content),
        failed=one_of("toolResult.status", "error"),
        hosted=lambda payload: at(payload, "toolResult.type") is not None,
    ),
}

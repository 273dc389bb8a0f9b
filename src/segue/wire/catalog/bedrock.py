"""Bedrock's types: the blocks of Converse."""

from __future__ import annotations

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, ToolCall, ToolResponse
from segue.wire.bedrock.media import format_of
from segue.wire.catalog.common import object_at
from segue.wire.catalog.fields import Arguments, Output, Patch
from segue.wire.catalog.paths import at
from segue.wire.catalog.shape import Inside, Shape, one_of
from segue.wire.fields import JsonObject

__all__ = ["BEDROCK"]

_SAID = Inside("bedrock", lambda block: {"messages": [{"role": "assistant", "content": [block]}]})
_GIVEN = Inside("bedrock", lambda block: {"messages": [{"role": "user", "content": [block]}]})
_KINDS = ("image", "document", "video")


def _write_call(call: ToolCall) -> Patch:
    input_ = {"toolUse.input": call.arguments if call.arguments_text is None else call.arguments_text}
    return input_ | ({"toolUse.type": "server_tool_use"} if call.kind == "hosted" else {})


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
        place = block.file_id or block.url or ""
        s3 = place if place.startswith("s3://") else None
        media_format = format_of(block)
        if media_format is not None and (block.data is not None or s3 is not None):
            source = {"bytes": block.data} if block.data is not None else {"s3Location": {"uri": s3}}
            named = {"name": block.name or "document"} if block.kind == "document" else {}
            return {block.kind: {"format": media_format, **named, "source": source}}
    text = block.url or block.name or block.kind if isinstance(block, Media) else getattr(block, "text", "")
    return {"text": text}


BEDROCK: dict[str, Shape] = {
    "ToolUse": Shape(
        id="toolUse.toolUseId",
        name="toolUse.name",
        arguments=Arguments(object_at("toolUse.input").read, _write_call),
        hosted=one_of("toolUse.type", "server_tool_use"),
        inside=_SAID,
    ),
    "ToolResult": Shape(
        id="toolResult.toolUseId",
        output=Output(lambda _payload: (None, UNSET), _write_content),
        failed=one_of("toolResult.status", "error"),
        hosted=lambda payload: at(payload, "toolResult.type") is not None,
        inside=_GIVEN,
    ),
}

"""Bedrock's types: the blocks of Converse."""

from __future__ import annotations

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, ToolCall, ToolResponse
from segue.wire.bedrock.media import format_name
from segue.wire.catalog.codecs import ArgumentsCodec, OutputCodec, Patch, object_arguments
from segue.wire.catalog.shape import EnclosingBody, PayloadShape, is_one_of
from segue.wire.json_values import JsonObject, get_path

_ASSISTANT_BODY = EnclosingBody("bedrock", lambda block: {"messages": [{"role": "assistant", "content": [block]}]})
_USER_BODY = EnclosingBody("bedrock", lambda block: {"messages": [{"role": "user", "content": [block]}]})
_KINDS = ("image", "document", "video")


def _render_call(call: ToolCall) -> Patch:
    input_ = {"toolUse.input": call.arguments if call.arguments_text is None else call.arguments_text}
    return input_ | ({"toolUse.type": "server_tool_use"} if call.kind == "hosted" else {})


def _render_content(response: ToolResponse) -> Patch:
    content = [_render_block(block) for block in response.content or ()]
    if response.structured is not UNSET:
        content = [{"json": response.structured}, *content]
    patch: Patch = {"toolResult.content": content}
    if response.error or response.outcome is not None:
        patch["toolResult.status"] = "error"
    if response.hosted:
        patch["toolResult.type"] = f"{response.name or 'server_tool'}_result"
    return patch


def _render_block(block: Block) -> JsonObject:
    if isinstance(block, Media) and block.kind in _KINDS:
        location = block.file_id or block.url or ""
        s3 = location if location.startswith("s3://") else None
        media_format = format_name(block)
        if media_format is not None and (block.data is not None or s3 is not None):
            source = {"bytes": block.data} if block.data is not None else {"s3Location": {"uri": s3}}
            name_field = {"name": block.name or "document"} if block.kind == "document" else {}
            return {block.kind: {"format": media_format, **name_field, "source": source}}
    text = block.url or block.name or block.kind if isinstance(block, Media) else getattr(block, "text", "")
    return {"text": text}


BEDROCK: dict[str, PayloadShape] = {
    "ToolUse": PayloadShape(
        id="toolUse.toolUseId",
        name="toolUse.name",
        arguments=ArgumentsCodec(object_arguments("toolUse.input").parse, _render_call),
        is_hosted=is_one_of("toolUse.type", "server_tool_use"),
        enclosing_body=_ASSISTANT_BODY,
    ),
    "ToolResult": PayloadShape(
        id="toolResult.toolUseId",
        output=OutputCodec(lambda _payload: (None, UNSET), _render_content),
        failed=is_one_of("toolResult.status", "error"),
        is_hosted=lambda payload: get_path(payload, "toolResult.type") is not None,
        enclosing_body=_USER_BODY,
    ),
}

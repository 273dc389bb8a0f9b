"""Renders streams of the Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.json import encode_json, encode_json_text
from segue.canonical.request import Usage
from segue.wire.anthropic.capabilities import API
from segue.wire.anthropic.items import drop_unknown_keys, render_block, with_unmodelled
from segue.wire.anthropic.reply import blocks_for_client, message_id, render_error, render_stop_reason, render_usage
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject, list_or_empty, object_or_none, string_or_none
from segue.wire.stream.events import Finished, ReplyStart
from segue.wire.stream.framing import encode_sse
from segue.wire.stream.render import BlockRenderer

_STOP_FIELDS = frozenset({"stop_reason", "stop_sequence", "stop_details"})
_DELTA_FIELDS = ("stop_details", "container")
_NOT_IN_START = _STOP_FIELDS | {"id", "content", "usage", "container"}
# Usage fields that the end of a stream repeats; the others are sent at the start.
_USAGE_FIELDS = frozenset(
    {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}
    | {"server_tool_use", "output_tokens_details", "iterations", "fallback_credit"}
)


class AnthropicStreamRenderer(BlockRenderer):
    api = API
    _delta_head = b""
    _sent_fields: Mapping[str, Any] = {}
    _last_whole: tuple[Block, ...] = ()

    def render_reply_start(self, event: ReplyStart) -> Iterator[bytes]:
        fields = event.opening if self.same_api and event.opening is not None else self.response_fields
        own_fields = {key: value for key, value in fields.items() if key not in _NOT_IN_START}
        message: JsonObject = {
            "id": message_id(event.id, f"{event.id}|{event.model}"),
            "type": "message",
            "role": "assistant",
            "model": event.model or self.model,
            **own_fields,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": object_or_none(fields.get("usage")) or render_usage(Usage()),
        }
        self._sent_fields = own_fields
        yield _event("message_start", message=message)

    def begin_text(self, block: Text) -> bytes:
        start = with_unmodelled({"type": "text", "text": ""}, block.native)
        if start.get("citations"):
            start["citations"] = []
        return self._begin(start, "text_delta", "text")

    def begin_thinking(self, block: Thinking) -> bytes:
        start = with_unmodelled({"type": "thinking", "thinking": "", "signature": ""}, block.native)
        return self._begin(start, "thinking_delta", "thinking")

    def begin_call(self, call: ToolCall) -> bytes:
        name, call_id = self.context.names.render(call.name), self.ids.render(call.id)
        drop_unknown_keys(call.native, self.report)
        start = with_unmodelled({"type": "tool_use", "id": call_id, "name": name, "input": {}}, call.native)
        return self._begin(start, "input_json_delta", "partial_json") + self.render_delta("")

    def _begin(self, block: JsonObject, kind: str, key: str) -> bytes:
        self._delta_head = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
        ) % (self.block_index, kind.encode(), key.encode())
        return _event("content_block_start", index=self.block_index, content_block=block)

    def render_delta(self, text: str) -> bytes:
        return self._delta_head + encode_json(text) + b"}}\n\n"

    def _render_fields_delta(self, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=self.block_index, delta={"type": kind, **fields})

    def end_text(self, block: Text) -> bytes:
        native = block.native
        if native is None or native.api != API:
            return b""
        drop_unknown_keys(native, self.report)
        original_citations = native.fragment.get("citations")
        citations = list_or_empty(original_citations)
        return b"".join(self._render_fields_delta("citations_delta", citation=citation) for citation in citations)

    def end_thinking(self, block: Thinking) -> bytes:
        drop_unknown_keys(block.native, self.report)
        # ANT-38: right before the stop
        return self._render_fields_delta("signature_delta", signature=block.signature) if block.signature else b""

    def render_block_stop(self) -> bytes:
        index, self.block_index = self.block_index, self.block_index + 1
        return b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % index

    def render_encrypted(self, block: Thinking) -> bytes:
        return self._render_complete(render_block(block, self.context))

    def render_whole(self, block: Block) -> bytes:
        self._last_whole = (block,)
        return self._render_complete(render_block(block, self.context))

    def _render_complete(self, rendered: JsonObject) -> bytes:
        """Render the events of a complete block, with one delta where the API streams it."""
        match rendered:
            case {"type": "text", "text": str(text)}:
                return self.begin_text(Text("")) + self.render_delta(text) + self.render_block_stop()
            case {"type": str(kind), "input": arguments} if kind.endswith("tool_use"):
                start = self._begin({**rendered, "input": {}}, "input_json_delta", "partial_json")
                return (
                    start
                    + self.render_delta("")
                    + self.render_delta(encode_json_text(arguments))
                    + self.render_block_stop()
                )
            case {"type": "compaction"}:
                streamed = ("content", "encrypted_content")
                block = {key: value for key, value in rendered.items() if key not in streamed}
                start = _event("content_block_start", index=self.block_index, content_block={**block, "content": None})
                fields = {key: rendered[key] for key in streamed if key in rendered}
                return start + self._render_fields_delta("compaction_delta", **fields) + self.render_block_stop()
            case _:
                return (
                    _event("content_block_start", index=self.block_index, content_block=rendered)
                    + self.render_block_stop()
                )

    def blocks_for_client(self, block: Block) -> list[Block]:
        return blocks_for_client([block], self.context)

    def is_valid_text(self, text: str) -> bool:
        return bool(text)

    def render_finish(self, event: Finished) -> Iterator[bytes]:
        own_reason = self.response_fields.get("stop_reason") if event.raw_finish else None
        reason = "max_tokens" if self.has_broken_call else string_or_none(own_reason)
        delta: JsonObject = {
            "stop_reason": reason
            or render_stop_reason(event.finish, event.stop_sequence, self._last_whole, has_calls=self.has_calls),
            "stop_sequence": event.stop_sequence,
            **{key: self.response_fields[key] for key in _DELTA_FIELDS if self.response_fields.get(key) is not None},
        }
        sent_fields = self._sent_fields
        changed_fields = {
            key: value
            for key, value in self.response_fields.items()
            if key not in _NOT_IN_START and (key not in sent_fields or sent_fields[key] != value)
        }
        original_usage = object_or_none(self.response_fields.get("usage"))
        if original_usage is not None:
            usage = {key: value for key, value in original_usage.items() if key in _USAGE_FIELDS}
        else:
            usage = render_usage(self.usage or Usage())
        yield _event("message_delta", delta=delta, usage={"output_tokens": 0, **usage}, **changed_fields)
        yield _event("message_stop")

    def render_error(self, error: ApiError) -> Iterator[bytes]:
        yield encode_sse(encode_json(render_error(replace(error, status=error.status or 500))), "error")


def _event(kind: str, **fields: Any) -> bytes:
    return encode_sse(encode_json({"type": kind, **fields}), kind)

"""Renders streams of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.jsontext import write, write_text
from segue.canonical.request import Usage
from segue.wire.anthropic.items import API, render_block, with_rest, without_strange_keys
from segue.wire.anthropic.reply import (
    for_client,
    message_id,
    render_error,
    render_usage,
    stop_reason,
)
from segue.wire.anthropic.stream_reader import AnthropicReader
from segue.wire.base import ApiError
from segue.wire.events import Finished, Opened
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.framing import server_sent
from segue.wire.stream_blocks import BlockRenderer

__all__ = ["AnthropicReader", "AnthropicRenderer"]

_AT_END = frozenset({"stop_reason", "stop_sequence", "stop_details"})
_IN_DELTA = ("stop_details", "container")
_TOLD_APART = _AT_END | {"content", "usage", "container"}
# Usage fields that the end of a stream repeats; the others are sent at the start.
_COUNTS = frozenset(
    {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}
    | {"server_tool_use", "output_tokens_details", "iterations", "fallback_credit"}
)


class AnthropicRenderer(BlockRenderer):
    api = API
    _head = b""
    _around_told: Mapping[str, Any] = {}

    def opened(self, event: Opened) -> bytes:
        own = {key: value for key, value in self.around.items() if key not in _TOLD_APART}
        message: JsonObject = {
            "id": message_id(event.id, f"{event.id}|{event.model}"),
            "type": "message",
            "role": "assistant",
            "model": event.model or self.model,
            **own,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": object_or_none(self.around.get("usage")) or render_usage(Usage()),
        }
        self._around_told = own
        return _event("message_start", message=message)

    def begin_text(self, block: Text) -> bytes:
        start = with_rest({"type": "text", "text": ""}, block.native)
        if start.get("citations"):
            start["citations"] = []
        return self._begin(start, "text_delta", "text")

    def begin_thinking(self, block: Thinking) -> bytes:
        start = with_rest({"type": "thinking", "thinking": "", "signature": ""}, block.native)
        return self._begin(start, "thinking_delta", "thinking")

    def begin_call(self, call: ToolCall) -> bytes:
        name, call_id = self.projection.names.render(call.name), self.ids.render(call.id)
        without_strange_keys(call.native, self.report)
        start = with_rest({"type": "tool_use", "id": call_id, "name": name, "input": {}}, call.native)
        return self._begin(start, "input_json_delta", "partial_json") + self.delta("")

    def _begin(self, block: JsonObject, kind: str, key: str) -> bytes:
        self._head = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
        ) % (self.index, kind.encode(), key.encode())
        return _event("content_block_start", index=self.index, content_block=block)

    def delta(self, text: str) -> bytes:
        return self._head + write(text) + b"}}\n\n"

    def _delta(self, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=self.index, delta={"type": kind, **fields})

    def end_text(self, block: Text) -> bytes:
        native = block.native
        if native is None or native.api != API:
            return b""
        without_strange_keys(native, self.report)
        cited = native.fragment.get("citations")
        citations = cast("list[object]", cited) if isinstance(cited, list) else []
        return b"".join(self._delta("citations_delta", citation=citation) for citation in citations)

    def end_thinking(self, block: Thinking) -> bytes:
        without_strange_keys(block.native, self.report)
        # ANT-38: right before the stop
        return self._delta("signature_delta", signature=block.signature) if block.signature else b""

    def stop(self) -> bytes:
        index, self.index = self.index, self.index + 1
        return b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % index

    def sealed(self, block: Thinking) -> bytes:
        return self._told(render_block(block, self.projection))

    def whole(self, block: Block) -> bytes:
        return self._told(render_block(block, self.projection))

    def _told(self, rendered: JsonObject) -> bytes:
        """The events of a complete block, with one delta where the API streams it."""
        match rendered:
            case {"type": "text", "text": str(text)}:
                return self.begin_text(Text("")) + self.delta(text) + self.stop()
            case {"type": str(kind), "input": given} if kind.endswith("tool_use"):
                start = self._begin({**rendered, "input": {}}, "input_json_delta", "partial_json")
                return start + self.delta("") + self.delta(write_text(given)) + self.stop()
            case {"type": "compaction"}:
                fields = {key: value for key, value in rendered.items() if key != "type"}
                start = _event(
                    "content_block_start", index=self.index, content_block={"type": "compaction", "content": None}
                )
                return start + self._delta("compaction_delta", **fields) + self.stop()
            case _:
                return _event("content_block_start", index=self.index, content_block=rendered) + self.stop()

    def for_client(self, block: Block) -> list[Block]:
        return for_client([block], self.projection)

    def says(self, text: str) -> bool:
        return bool(text)

    def finished(self, event: Finished) -> bytes:
        reason = "max_tokens" if self.broken else string_or_none(self.around.get("stop_reason"))
        delta: JsonObject = {
            "stop_reason": reason or stop_reason(event.finish, event.stop_sequence, called=self.called),
            "stop_sequence": event.stop_sequence,
            **{key: self.around[key] for key in _IN_DELTA if self.around.get(key) is not None},
        }
        sent = self._around_told
        late = {
            key: value
            for key, value in self.around.items()
            if key not in _TOLD_APART and (key not in sent or sent[key] != value)
        }
        counted = object_or_none(self.around.get("usage"))
        if counted is not None:
            usage = {key: value for key, value in counted.items() if key in _COUNTS}
        else:
            usage = render_usage(self.usage or Usage())
        end = _event("message_delta", delta=delta, usage={"output_tokens": 0, **usage}, **late)
        return end + _event("message_stop")

    def error(self, error: ApiError) -> bytes:
        return server_sent(write(render_error(replace(error, status=error.status or 500))), "error")


def _event(kind: str, **fields: Any) -> bytes:
    return server_sent(write({"type": kind, **fields}), kind)

"""Renders streams of Converse: messages of an AWS event stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.json import encode_json, encode_json_text
from segue.canonical.request import Usage
from segue.render.constraints import TEXTS
from segue.wire.base import ApiError
from segue.wire.bedrock.capabilities import API
from segue.wire.bedrock.items import render_block
from segue.wire.bedrock.reply import blocks_for_client, render_stop_reason, render_usage
from segue.wire.json_values import JsonObject, list_or_empty, object_or_none, string_or_none
from segue.wire.stream.aws_events import AwsMessageEncoder
from segue.wire.stream.events import Finished, ReplyStart
from segue.wire.stream.render import BlockRenderer, DeltaFormat


def _message_encoder(kind: str) -> AwsMessageEncoder:
    return AwsMessageEncoder(event_type=kind, content_type="application/json", message_type="event")


_EVENT_TYPES = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
_ENCODERS = {kind: _message_encoder(kind) for kind in _EVENT_TYPES}
_encode_delta = _ENCODERS["contentBlockDelta"]
_EXCEPTIONS = {
    400: "validationException",
    408: "modelStreamErrorException",
    424: "modelStreamErrorException",
    429: "throttlingException",
    503: "serviceUnavailableException",
    529: "serviceUnavailableException",
}
_STOP_FIELDS = ("stopReason", "additionalModelResponseFields")
_NOT_IN_METADATA = frozenset({*_STOP_FIELDS, "output", "usage", "metrics", "ResponseMetadata"})


class BedrockStreamRenderer(BlockRenderer):
    api = API
    _delta_head = _delta_tail = b""

    def render_reply_start(self, event: ReplyStart) -> Iterator[bytes]:
        yield _event("messageStart", {"role": "assistant"})

    # Text and reasoning have no start event.

    def begin_text(self, block: Text) -> bytes:
        return self._begin(b'"text":', b"}}")

    def begin_thinking(self, block: Thinking) -> bytes:
        return self._begin(b'"reasoningContent":{"text":', b"}}}")

    def begin_call(self, call: ToolCall) -> bytes:
        name, call_id = self.context.names.render(call.name), self.ids.render(call.id)
        return self._begin_tool_use({"toolUseId": call_id, "name": name})

    def _begin_tool_use(self, start: JsonObject) -> bytes:
        self._begin(b'"toolUse":{"input":', b"}}}")
        return self._start_block({"toolUse": start})

    def _start_block(self, start: JsonObject) -> bytes:
        return _event("contentBlockStart", {"start": start, "contentBlockIndex": self.block_index})

    def _begin(self, head: bytes, tail: bytes) -> bytes:
        self._delta_head = b'{"contentBlockIndex":%d,"delta":{%b' % (self.block_index, head)
        self._delta_tail = tail
        return b""

    def render_delta(self, text: str) -> bytes:
        return _encode_delta(self._delta_head + encode_json(text) + self._delta_tail)

    def open_deltas(self) -> DeltaFormat:
        return DeltaFormat(_encode_delta.encode_text(self._delta_head, self._delta_tail))

    def _render_fields_delta(self, **fields: Any) -> bytes:
        return _event("contentBlockDelta", {"contentBlockIndex": self.block_index, "delta": fields})

    def end_text(self, block: Text) -> bytes:
        native = block.native
        cited = native.fragment.get("citationsContent") if native is not None and native.api == API else None
        return self._render_citations(object_or_none(cited) or {})

    def _render_citations(self, content: JsonObject) -> bytes:
        citations = content.get("citations")
        items = list_or_empty(citations)
        return b"".join(self._render_fields_delta(citation=citation) for citation in items)

    def end_thinking(self, block: Thinking) -> bytes:
        return self._render_fields_delta(reasoningContent={"signature": block.signature}) if block.signature else b""

    def render_block_stop(self) -> bytes:
        index, self.block_index = self.block_index, self.block_index + 1
        return _event("contentBlockStop", {"contentBlockIndex": index})

    def render_encrypted(self, block: Thinking) -> bytes:
        return (
            self._render_fields_delta(reasoningContent={"redactedContent": block.encrypted}) + self.render_block_stop()
        )

    def render_whole(self, block: Block) -> bytes:
        return b"".join(self._render_complete(item) for item in render_block(block, self.context))

    def _render_complete(self, item: JsonObject) -> bytes:
        """Render the events of a complete block."""
        kind, value = next(iter(item.items()))
        inner = object_or_none(value) or {}
        match kind:
            case "text":
                return self.begin_text(Text("")) + self.render_delta(str(value)) + self.render_block_stop()
            case "toolUse":
                start_event = self._begin_tool_use({key: value for key, value in inner.items() if key != "input"})
                return start_event + self.render_delta(encode_json_text(inner.get("input"))) + self.render_block_stop()
            case "toolResult":
                start = {key: value for key, value in inner.items() if key != "content"}
                start_event = self._start_block({"toolResult": start})
                return (
                    start_event + self._render_fields_delta(toolResult=inner.get("content")) + self.render_block_stop()
                )
            case "image":
                fields = {key: value for key, value in inner.items() if key != "format"}
                start_event = self._start_block({"image": {"format": inner.get("format")}})
                return start_event + self._render_fields_delta(image=fields) + self.render_block_stop()
            case "cachePoint":
                return b""
            case _:
                self.report.add("text", f"{kind} rendered as text: the API does not stream it", subject=kind)
                return self._render_complete({"text": TEXTS.unsupported.format(kind=kind)})

    def blocks_for_client(self, block: Block) -> list[Block]:
        return blocks_for_client([block], self.context)

    def is_valid_text(self, text: str) -> bool:
        # BED-08
        return bool(text.strip())

    def render_finish(self, event: Finished) -> Iterator[bytes]:
        own_reason = self.response_fields.get("stopReason") if event.raw_finish else None
        reason = "max_tokens" if self.has_broken_call else string_or_none(own_reason)
        stop: JsonObject = {
            "stopReason": reason or render_stop_reason(event.finish, event.stop_sequence, has_calls=self.has_calls),
            **{key: self.response_fields[key] for key in _STOP_FIELDS[1:] if self.response_fields.get(key) is not None},
        }
        other_fields: Mapping[str, Any] = {
            key: value for key, value in self.response_fields.items() if key not in _NOT_IN_METADATA
        }
        metadata: JsonObject = {
            "usage": object_or_none(self.response_fields.get("usage")) or render_usage(self.usage or Usage()),
            "metrics": object_or_none(self.response_fields.get("metrics")) or {"latencyMs": 0},
            **other_fields,
        }
        yield _event("messageStop", stop)
        yield _event("metadata", metadata)

    def render_error(self, error: ApiError) -> Iterator[bytes]:
        status = error.status or 424
        kind = _EXCEPTIONS.get(status, "internalServerException" if status >= 500 else "validationException")
        encode_exception = AwsMessageEncoder(
            exception_type=kind, content_type="application/json", message_type="exception"
        )
        yield encode_exception(encode_json({"message": error.message}))


def _event(kind: str, payload: JsonObject) -> bytes:
    return _ENCODERS[kind](encode_json(payload))

"""Renders streams of Converse: messages of an AWS event stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.jsontext import write, write_text
from segue.canonical.request import Usage
from segue.render.demands import TEXTS
from segue.wire.base import ApiError
from segue.wire.bedrock.items import render_block
from segue.wire.bedrock.reply import for_client, render_usage, stop_reason
from segue.wire.bedrock.stream_reader import BedrockReader
from segue.wire.bedrock.traits import API
from segue.wire.events import Finished, Opened
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.framing import event_messages
from segue.wire.stream_blocks import BlockRenderer

__all__ = ["BedrockReader", "BedrockRenderer"]


def _messages(kind: str) -> Callable[[bytes], bytes]:
    return event_messages(event_type=kind, content_type="application/json", message_type="event")


_KINDS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
_FRAMED = {kind: _messages(kind) for kind in _KINDS}
_DELTA = _FRAMED["contentBlockDelta"]
_EXCEPTIONS = {
    400: "validationException",
    408: "modelStreamErrorException",
    424: "modelStreamErrorException",
    429: "throttlingException",
    503: "serviceUnavailableException",
    529: "serviceUnavailableException",
}
_AT_STOP = ("stopReason", "additionalModelResponseFields")
_APART = frozenset({*_AT_STOP, "output", "usage", "metrics", "ResponseMetadata"})


class BedrockRenderer(BlockRenderer):
    api = API
    _head = _tail = b""

    def opened(self, event: Opened) -> bytes:
        return _event("messageStart", {"role": "assistant"})

    # Text and reasoning have no start event.

    def begin_text(self, block: Text) -> bytes:
        return self._begin(b'"text":', b"}}")

    def begin_thinking(self, block: Thinking) -> bytes:
        return self._begin(b'"reasoningContent":{"text":', b"}}}")

    def begin_call(self, call: ToolCall) -> bytes:
        name, call_id = self.projection.names.render(call.name), self.ids.render(call.id)
        return self._begin_used({"toolUseId": call_id, "name": name})

    def _begin_used(self, start: JsonObject) -> bytes:
        self._begin(b'"toolUse":{"input":', b"}}}")
        return self._start_block({"toolUse": start})

    def _start_block(self, start: JsonObject) -> bytes:
        return _event("contentBlockStart", {"start": start, "contentBlockIndex": self.index})

    def _begin(self, head: bytes, tail: bytes) -> bytes:
        self._head = b'{"contentBlockIndex":%d,"delta":{%b' % (self.index, head)
        self._tail = tail
        return b""

    def delta(self, text: str) -> bytes:
        return _DELTA(self._head + write(text) + self._tail)

    def _delta(self, **fields: Any) -> bytes:
        return _event("contentBlockDelta", {"contentBlockIndex": self.index, "delta": fields})

    def end_text(self, block: Text) -> bytes:
        native = block.native
        cited = native.fragment.get("citationsContent") if native is not None and native.api == API else None
        return self._cited(object_or_none(cited) or {})

    def _cited(self, content: JsonObject) -> bytes:
        citations = content.get("citations")
        given = cast("list[object]", citations) if isinstance(citations, list) else []
        return b"".join(self._delta(citation=citation) for citation in given)

    def end_thinking(self, block: Thinking) -> bytes:
        return self._delta(reasoningContent={"signature": block.signature}) if block.signature else b""

    def stop(self) -> bytes:
        index, self.index = self.index, self.index + 1
        return _event("contentBlockStop", {"contentBlockIndex": index})

    def sealed(self, block: Thinking) -> bytes:
        return self._delta(reasoningContent={"redactedContent": block.sealed}) + self.stop()

    def whole(self, block: Block) -> bytes:
        return b"".join(self._told(item) for item in render_block(block, self.projection))

    def _told(self, item: JsonObject) -> bytes:
        """The events of a complete block."""
        kind, value = next(iter(item.items()))
        inner = object_or_none(value) or {}
        match kind:
            case "text":
                return self.begin_text(Text("")) + self.delta(str(value)) + self.stop()
            case "toolUse":
                started = self._begin_used({key: value for key, value in inner.items() if key != "input"})
                return started + self.delta(write_text(inner.get("input"))) + self.stop()
            case "toolResult":
                start = {key: value for key, value in inner.items() if key != "content"}
                started = self._start_block({"toolResult": start})
                return started + self._delta(toolResult=inner.get("content")) + self.stop()
            case "image":
                shown = {key: value for key, value in inner.items() if key != "format"}
                started = self._start_block({"image": {"format": inner.get("format")}})
                return started + self._delta(image=shown) + self.stop()
            case "cachePoint":
                return b""
            case _:
                self.report.add("text", f"{kind} replaced by text: the API does not stream it", subject=kind)
                return self._told({"text": TEXTS.unsupported.format(kind=kind)})

    def for_client(self, block: Block) -> list[Block]:
        return for_client([block], self.projection)

    def says(self, text: str) -> bool:
        # BED-08
        return bool(text.strip())

    def finished(self, event: Finished) -> bytes:
        reason = "max_tokens" if self.broken else string_or_none(self.around.get("stopReason"))
        stop: JsonObject = {
            "stopReason": reason or stop_reason(event.finish, event.stop_sequence, called=self.called),
            **{key: self.around[key] for key in _AT_STOP[1:] if self.around.get(key) is not None},
        }
        own: Mapping[str, Any] = {key: value for key, value in self.around.items() if key not in _APART}
        metadata: JsonObject = {
            "usage": object_or_none(self.around.get("usage")) or render_usage(self.usage or Usage()),
            "metrics": object_or_none(self.around.get("metrics")) or {"latencyMs": 0},
            **own,
        }
        return _event("messageStop", stop) + _event("metadata", metadata)

    def error(self, error: ApiError) -> bytes:
        status = error.status or 424
        kind = _EXCEPTIONS.get(status, "internalServerException" if status >= 500 else "validationException")
        message = event_messages(exception_type=kind, content_type="application/json", message_type="exception")
        return message(write({"message": error.message}))


def _event(kind: str, payload: JsonObject) -> bytes:
    return _FRAMED[kind](write(payload))

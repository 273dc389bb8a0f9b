"""Stream renderer: events to `GenerateContentResponse` chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.json import encode_json
from segue.models import parse_model
from segue.wire.base import ApiError, RenderContext
from segue.wire.gemini.capabilities import API
from segue.wire.gemini.fields import JsonObject, both_cases, find_key, get_field
from segue.wire.gemini.items import GeminiContext, is_signature_of_next, render_parts
from segue.wire.gemini.reply import (
    blocks_for_client,
    expects_content,
    needs_signature,
    placeholder_signature,
    render_error,
    render_finish,
    render_usage,
)
from segue.wire.gemini.stream_in import PER_CHUNK_FIELDS
from segue.wire.stream.events import Delta, Event, Finished, InputDelta, ReplyStart, TextDelta, ThinkingDelta
from segue.wire.stream.framing import encode_sse
from segue.wire.stream.render import DeltaFormat, StreamRenderer

_ID_FIELDS = both_cases("responseId")
_DELTA_HEAD = b'data: {"candidates":[{"content":{"parts":[{"text":'


def _render_nothing(_text: str, _encoded: bytes) -> bytes:
    return b""


_NO_DELTAS = DeltaFormat(_render_nothing)


class GeminiStreamRenderer(StreamRenderer):
    """Renders events as chunks.

    Calls are sent whole (GEM-25), neighbours in one chunk: Google's clients send each chunk back as a content of its
    own, and the API rejects calls of one reply in two contents (GEM-02). The last ones are part of the final chunk,
    because clients would send back the empty text of a final chunk after a call.
    """

    api = API

    def __init__(self, render_context: RenderContext, model: str | None) -> None:
        super().__init__(render_context, model)
        self._wire_context = GeminiContext(render_context, parse_model(None))
        self._chunk_fields: JsonObject = {}
        self._delta_tails: dict[bool, bytes] = {}
        self._open_tails: dict[int, bytes] = {}
        self._signature: Thinking | None = None
        self._has_calls = False
        self._pending_parts: list[JsonObject] = []
        self._pending_are_calls = False
        self._has_content = False

    def render(self, events: Iterable[Event]) -> bytes:
        chunks: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and event.index == self.order.current:
                self._render_delta(event, chunks)
                continue
            for ordered_event in self.order.reorder((event,)):
                if isinstance(ordered_event, (TextDelta, ThinkingDelta, InputDelta)):
                    self._render_delta(ordered_event, chunks)
                else:
                    chunks += self.render_event(ordered_event)
        return b"".join(chunks)

    def _render_delta(self, event: TextDelta | ThinkingDelta | InputDelta, chunks: list[bytes]) -> None:
        tail = self._open_tails.get(event.index)
        if tail is not None and event.text:
            if self._pending_parts:
                chunks.append(self._flush_parts())
            self._has_content = True
            chunks.append(b"%b%b%b" % (_DELTA_HEAD, encode_json(event.text), tail))

    def open_run(self, delta: Delta) -> DeltaFormat | None:
        if delta.index != self.order.current:
            return None
        tail = self._open_tails.get(delta.index)
        if tail is None:
            return _NO_DELTAS
        return None if self._pending_parts else DeltaFormat(None, _DELTA_HEAD, tail)

    def render_failure(self, error: ApiError) -> bytes:
        """Render the error as JSON alone: clients parse it only so, and in a write of its own."""
        return encode_json(render_error(error)) + b"\n"

    def render_error(self, error: ApiError) -> Iterable[bytes]:
        return [self._flush_parts(), encode_sse(encode_json(render_error(error)))]

    def render_reply_start(self, event: ReplyStart) -> Iterable[bytes]:
        model = event.model or self.model
        kept = self.response_fields
        reply_fields = {
            **({"modelVersion": model} if model else {}),
            **({find_key(kept, "responseId"): event.id} if event.id else {}),
        }
        self._chunk_fields = {
            **reply_fields,
            **{key: value for key, value in kept.items() if key not in PER_CHUNK_FIELDS | _ID_FIELDS},
        }
        tail = encode_json(self._chunk_fields)[1:]
        tail = (b"," if len(tail) > 1 else b"") + tail
        content = b'}],"role":"model"},"index":0}]' + tail + b"\n\n"
        self._delta_tails = {False: content, True: b',"thought":true' + content}
        return ()

    def _render_chunk(self, candidate: JsonObject, **extra_fields: object) -> bytes:
        return encode_sse(encode_json({"candidates": [candidate], **extra_fields, **self._chunk_fields}))

    def _flush_parts(self) -> bytes:
        parts, self._pending_parts = self._pending_parts, []
        return self._render_chunk({"content": {"parts": parts, "role": "model"}, "index": 0}) if parts else b""

    def render_block_start(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]:
        """Start streaming the block, unless it is a call, a signed block or an unstreamed same-API block."""
        if isinstance(block, ToolCall) or self._signature is not None:
            return ()
        from_gemini = self.same_api or (isinstance(block, Thinking) and block.origin.provider == API)
        if not from_gemini or (block.native is not None and not block.native.fragment):
            self._open_tails[index] = self._delta_tails[isinstance(block, Thinking)]
        return ()

    def render_block_end(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]:
        was_streamed = self._open_tails.pop(index, None) is not None
        # Reasoning without text is rendered here only to report that it was dropped.
        is_dropped = isinstance(block, Thinking) and not block.text
        return () if was_streamed and not is_dropped else self.render_block(block)

    def render_block(self, block: Block) -> Iterator[bytes]:
        if isinstance(block, ToolCall) and block.broken:
            self.report.add("dropped", f"incomplete call of {block.name} dropped: it was cut off", subject=block.name)
            return
        # Same-API, a call found in the text is not the API's own.
        is_own = self.same_api and (not isinstance(block, ToolCall) or block.native is not None)
        for client_block in [block] if is_own else blocks_for_client(block, self.context):
            if isinstance(client_block, Thinking) and is_signature_of_next(client_block):
                yield from self._queue_parts([])
                self._signature = client_block
                continue
            if isinstance(client_block, ToolCall) and client_block.kind != "hosted":
                first = not self._has_calls and not is_own
                if first and self._signature is None and needs_signature(client_block):
                    self._signature = placeholder_signature()
                self._has_calls = True
            yield from self._queue_parts([client_block])

    def _queue_parts(self, blocks: list[Block]) -> Iterator[bytes]:
        """Queue the parts of these blocks, the first one signed; they are sent with the next block or the end."""
        signature, self._signature = self._signature, None
        parts = render_parts([*([signature] if signature is not None else []), *blocks], self._wire_context)
        if parts:
            are_calls = all(map(_is_call, parts))
            if self._pending_parts and not (are_calls and self._pending_are_calls):
                yield self._flush_parts()
            self._pending_are_calls = are_calls
            self._pending_parts += parts
            self._has_content = True

    def render_finish(self, event: Finished) -> Iterator[bytes]:
        yield from self._queue_parts([])
        parts, self._pending_parts = self._pending_parts, []
        usage: JsonObject = {} if self.usage is None else {"usageMetadata": render_usage(self.usage)}
        raw_finish = event.raw_finish if self.same_api else None
        if (
            self.same_api
            and raw_finish is None
            and not self._has_content
            and get_field(self._chunk_fields, "promptFeedback")
        ):
            yield encode_sse(encode_json({**usage, **self._chunk_fields}))
            return
        candidate: JsonObject = {"finishReason": render_finish(event.finish, raw_finish), "index": 0}
        if parts or self._has_content or expects_content(event.finish):
            # The vendor's client treats a chunk without content as a failed reply.
            candidate = {"content": {"parts": parts or [{"text": ""}], "role": "model"}, **candidate}
        yield self._render_chunk(candidate, **usage)


def _is_call(part: JsonObject) -> bool:
    return find_key(part, "functionCall") in part

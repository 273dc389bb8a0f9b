"""Stream parsing, bytes to events: `StreamParser` for all APIs, and `PayloadReader`, the base class of their readers.

`StreamParser` decodes the payloads; the `PayloadReader` of a wire, in its module `stream_in`, parses them into events
and the complete reply. Nothing here does I/O. Every block that starts has ended before the reply does.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id, hash_tool_id
from segue.canonical.json import MAX_DEPTH, estimate_depth
from segue.canonical.request import Reply
from segue.errors import InputError, RemoteProtocolError
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits, arguments_error, bytes_error, calls_error
from segue.wire.replies import retryable_error
from segue.wire.stream.aws_events import EXCEPTION_PREFIX
from segue.wire.stream.delta_run import DeltaRun, open_run
from segue.wire.stream.delta_template import DeltaTemplate
from segue.wire.stream.deltas import TextBuffer
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    WholeBlock,
    block_events,
    reply_events,
)
from segue.wire.stream.framing import FrameDecoder
from segue.wire.stream.render import DeltaFormat

DEFAULT_TURN_KEY = "turn-0"
"""The turn key of a stream that belongs to no conversation."""
_DONE = b"[DONE]"
# After this many runs without a delta no run is opened any more: each event of the stream has other bytes (an SSE id).
_MAX_EMPTY_RUNS = 8
_RECORDED_KEYS = frozenset({"data", "event", "id", "retry", "time", "timestamp"})

_decode = msgspec.json.Decoder().decode


class StreamParser:
    """Bytes of one reply in, events out; `close` returns the reply. Invalid input raises `RemoteProtocolError`.

    A reply above its limits fails; its further bytes are ignored.
    """

    def __init__(self, reader: PayloadReader) -> None:
        self._reader = reader
        self._frames = FrameDecoder()
        self._received = 0
        self._empty_runs = 0
        """Number of runs since the last one that had a delta."""

    def set_limits(self, limits: ReplyLimits) -> None:
        self._reader.limits = limits

    @property
    def limit_error(self) -> ApiError | None:
        """The error of a reply above its limits; None within them."""
        return self._reader.limit_error

    @property
    def is_done(self) -> bool:
        """Whether the last event of the API was received; not all have one."""
        return self._reader.done

    @property
    def error(self) -> ApiError | None:
        """The error that ends the reply, as soon as it is received; `Failed` is emitted by `close`."""
        return self._reader.error

    def feed(self, data: bytes) -> None:
        reader = self._reader
        self._received += len(data)
        if self._received > reader.limits.bytes:
            reader.fail_at_limit(bytes_error(reader.limits))
        if reader.limit_error is not None:
            self._frames = FrameDecoder()
            return
        earlier_template = reader.delta_template
        if earlier_template is not None and (partial := self._frames.take_partial()) is not None:
            data = earlier_template.consume_stream(partial + data)
            if not data:
                return
        frames = self._frames.feed(data)
        position = 0
        while position < len(frames) and reader.limit_error is None:
            template = reader.delta_template
            if template is not None:
                # Deltas of a block that began before this read are passed on as one.
                stop = len(frames) if template is earlier_template else position + 1
                start, position = position, template.consume_frames(frames, position, stop)
                if position > start:
                    continue
                reader.template_misses += 1
            self._parse_payload(*frames[position])
            position += 1

    def open_run(self, read: bytes, delta: Delta, delta_format: DeltaFormat) -> DeltaRun | None:
        """Return a run that begins after this read, if the read had this delta and nothing else; else None."""
        reader = self._reader
        template = reader.delta_template
        if template is None or reader.has_split_surrogates or self._empty_runs >= _MAX_EMPTY_RUNS:
            return None
        frame = self._frames.frame_template(read, template.name)
        if frame is None:
            return None
        finder = frame.build_finder(template)
        if finder.find_decoded(read) != delta.text:
            return None
        limit = reader.limits.bytes - self._received
        if isinstance(delta, InputDelta):
            # A character of the arguments has at least one byte.
            limit = min(limit, reader.limits.arguments - len(reader.text_buffer(delta.index)))
        return open_run(template, finder, delta_format, limit)

    def close_run(self, run: DeltaRun) -> None:
        """Add the text of a run to its block. There are no events for it."""
        content = run.content()
        if not content.size:
            self._empty_runs += 1
            return
        self._empty_runs = 0
        self._received += content.size
        if run.template.is_variable:
            ((_, run.template.last_payload),) = self._frames.feed(content.last_read)
        run.template.emit(content.text)
        self._reader.events.clear()

    def feed_payload(self, payload: Mapping[str, Any], name: str | None = None) -> None:
        """Parse a decoded payload, also in a recorded form: an object with `event` and `data`."""
        value = cast("JsonObject", payload)
        if "data" in value and value.keys() <= _RECORDED_KEYS and isinstance(value["data"], dict):
            name = value["event"] if isinstance(value.get("event"), str) else None
            value = cast("JsonObject", value["data"])
        if self._reader.limit_error is not None:
            return
        try:
            self._reader.read(value, name)
        except (InputError, RecursionError) as error:
            raise RemoteProtocolError(f"not a stream of this API: {error}") from None

    def events(self) -> list[Event]:
        """Return the events since the last call."""
        events = self._reader.events
        self._reader.events = []
        return events

    def close(self) -> Reply:
        reader = self._reader
        for name, payload in self._frames.close():
            try:
                self._parse_payload(name, payload)
            except RemoteProtocolError:
                # The stream ended in the middle of a payload.
                if not reader.reply_started:
                    raise
        if not reader.reply_started:
            error = reader.error
            if error is None:
                raise RemoteProtocolError("the stream contains no reply")
            raise RemoteProtocolError(
                f"answered with an error: {error.kind}: {error.message}",
                status=error.status or None,
                code=error.code,
                kind=error.kind,
                message=error.message,
            )
        try:
            return reader.finish()
        except (InputError, RecursionError) as error:
            raise RemoteProtocolError(f"not a reply of this API: {error}") from None

    def _parse_payload(self, name: str | None, payload: bytes) -> None:
        if payload == _DONE:
            self._reader.done = True
            return
        if not payload:
            if name is None or not name.startswith(EXCEPTION_PREFIX):
                return
            payload = b"{}"
        if len(payload) > MAX_DEPTH and estimate_depth(payload) > MAX_DEPTH:
            raise RemoteProtocolError("not a stream of this API: nested too deep")
        try:
            value = _decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            value = self._decode_leniently(payload)
        if isinstance(value, dict):
            self._reader.payload, self._reader.event_name = payload, name
            self.feed_payload(cast("JsonObject", value), name)
            self._reader.payload = b""
            return
        # Some servers send payloads in a list.
        for item in cast("list[object]", value) if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise RemoteProtocolError("not a stream of this API: expected JSON objects")
            self.feed_payload(cast("JsonObject", item), name)

    def _decode_leniently(self, payload: bytes) -> object:
        """Decode a payload that msgspec rejects. It may end in half of a surrogate pair completed by the next one."""
        if payload.strip() in (b"", _DONE):
            self._reader.done = self._reader.done or bool(payload.strip())
            return {}
        try:
            value = json.loads(payload.decode("utf-8"))
        except (ValueError, RecursionError):
            raise RemoteProtocolError(f"not JSON: {payload[:64].decode('utf-8', 'replace')}") from None
        self._reader.has_split_surrogates = True
        return value


# ------------------------------------------------------------------------------------------------------ payload readers

ENDED_EARLY = retryable_error("the stream ended before the reply did")

# After this many misses no delta template is tried any more.
_MAX_TEMPLATE_MISSES = 32


class PayloadReader(ABC):
    """Parses payloads of one reply into events. It accumulates the text of open blocks (`text_so_far`).

    A subclass ends every block that it starts.
    """

    def __init__(self, provider: str, turn_key: str) -> None:
        self.provider = provider
        self.turn_key = turn_key
        self.events: list[Event] = []
        self.reply_started = False
        self.error: ApiError | None = None
        self.limits = DEFAULT_LIMITS
        self.limit_error: ApiError | None = None
        self.done = False
        self.block_count = 0
        self._call_count = 0
        self._ids: set[str] = set()
        self._texts: dict[int, TextBuffer] = {}
        self._pending_surrogates: dict[int, tuple[str, type[TextDelta | ThinkingDelta | InputDelta]]] = {}
        self.has_split_surrogates = False
        self.delta_template: DeltaTemplate | None = None
        """Template for the next payload; set while deltas of one block arrive, cleared when the block ends."""
        self.template_misses = 0
        self.event_name: str | None = None
        self.payload = b""
        """The current payload undecoded; empty if it was fed decoded."""

    # Implemented by each API's reader.

    @abstractmethod
    def read(self, payload: JsonObject, name: str | None) -> None:
        """Parse one payload; `name` is the name of the event where the framing has names."""

    @abstractmethod
    def finish(self) -> Reply:
        """End open blocks, emit usage and finish with `emit_finish`, and return the reply.

        The reply equals the one that the API would have sent without streaming; its calls have their canonical ids.
        """

    # Emitting events.

    def emit_reply_start(
        self,
        id: str | None,
        model: str | None,
        created: int | None = None,
        native: Native | None = None,
        opening: JsonObject | None = None,
    ) -> None:
        if not self.reply_started:
            self.reply_started = True
            self.events.append(ReplyStart(id, model, created, native, opening))

    def emit_block_start(self, block: Text | Thinking | ToolCall) -> int:
        index, self.block_count = self.block_count, self.block_count + 1
        self._texts[index] = TextBuffer()
        self.events.append(BlockStart(index, block))
        return index

    def add_text(self, index: int, text: str, extras: JsonObject | None = None) -> None:
        text = self._join_surrogates(index, text, TextDelta) if self.has_split_surrogates else text
        if text or extras:
            self._texts[index].append(text)
            self.events.append(TextDelta(index, text, extras))

    def add_thinking(self, index: int, text: str) -> None:
        text = self._join_surrogates(index, text, ThinkingDelta) if self.has_split_surrogates else text
        if text:
            self._texts[index].append(text)
            self.events.append(ThinkingDelta(index, text))

    def add_input(self, index: int, text: str) -> None:
        text = self._join_surrogates(index, text, InputDelta) if self.has_split_surrogates else text
        if text:
            buffer = self._texts[index]
            buffer.append(text)
            self.events.append(InputDelta(index, text))
            if len(buffer) > self.limits.arguments:
                self.fail_at_limit(arguments_error(self.limits))

    def fail_at_limit(self, error: ApiError) -> None:
        """End the reply with this error; the current payload is still parsed to its end."""
        self.limit_error = self.limit_error or error
        self.error = self.limit_error

    def text_so_far(self, index: int) -> str:
        """Return the text of an open block so far."""
        return self._texts[index].text()

    def text_buffer(self, index: int) -> TextBuffer:
        """Return the text of an open block so far, not joined."""
        return self._texts[index]

    def finish_text(self, index: int) -> str:
        """Return the complete text of a block at its end; an unpaired surrogate becomes U+FFFD."""
        half = self._pending_surrogates.pop(index, None)
        if half is not None:
            self._texts[index].append("\ufffd")
            self.events.append(half[1](index, "\ufffd"))
        return self.text_so_far(index)

    def set_delta_template(self, key: str, text: str, emit: Callable[[str], object]) -> None:
        """Set a template: the next payloads probably equal the current one except for the text under `key`."""
        if not self.payload or self.has_split_surrogates or self.template_misses >= _MAX_TEMPLATE_MISSES:
            return
        self.delta_template = DeltaTemplate.from_payload(self.payload, self.event_name, key, text, emit)

    def emit_block_end(self, index: int, block: Text | Thinking | ToolCall) -> None:
        self.delta_template = None
        if not self._texts[index] and isinstance(block, ToolCall) and block.kind == "function" and not block.broken:
            # A call without arguments: clients expect at least one delta.
            self.events.append(InputDelta(index, "{}"))
        del self._texts[index]
        self.events.append(BlockEnd(index, block))

    def emit_whole_block(self, block: Block) -> int:
        index, self.block_count = self.block_count, self.block_count + 1
        self.events.append(WholeBlock(index, block))
        return index

    def emit_block(self, block: Block) -> Block:
        """Emit the events of a complete block, a call with its canonical id, and return the block."""
        if isinstance(block, ToolCall):
            block = self.assign_id(block)
        events = block_events(self.block_count, block)
        self.block_count += 1
        self._check_arguments(events)
        self.events += events
        return block

    def _check_arguments(self, events: list[Event]) -> None:
        if any(isinstance(event, InputDelta) and len(event.text) > self.limits.arguments for event in events):
            self.fail_at_limit(arguments_error(self.limits))

    def emit_finish(self, reply: Reply) -> Reply:
        """Emit usage and the end of the reply; for a failed reply, emit the error and return its partial reply."""
        if reply.usage is not None:
            self.events.append(UsageUpdate(reply.usage))
        if self.error is None:
            self.events.append(Finished(reply.finish, reply.raw_finish, reply.stop_sequence))
            return reply
        self.events.append(Failed(self.error))
        return _mark_failed(reply, self.error)

    def assign_id(self, call: ToolCall) -> ToolCall:
        """Return the call with its canonical id, made from the turn key and its index among the calls of the turn."""
        index, self._call_count = self._call_count, self._call_count + 1
        if self._call_count > self.limits.calls:
            self.fail_at_limit(calls_error(self.limits))
        call_id = canonical_tool_id(
            provider=self.provider,
            raw_id=call.origin.raw_id,
            tool_name=call.name,
            turn_key=self.turn_key,
            call_index=index,
        )
        if call_id in self._ids:
            # The provider returned a canonical id twice in this reply.
            call_id = hash_tool_id(self.provider, call.origin.raw_id, call.name, self.turn_key, index)
        self._ids.add(call_id)
        return msgspec.structs.replace(call, id=call_id)

    def emit_reply(self, reply: Reply) -> Reply:
        """Emit the events of a reply that arrived complete although a stream was requested."""
        blocks = tuple(self.assign_id(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
        reply = msgspec.structs.replace(reply, blocks=blocks)
        self.reply_started = True
        events = reply_events(reply)
        self._check_arguments(events)
        if self.limit_error is not None:
            self.events += [*events[:-1], Failed(self.limit_error)]
            return _mark_failed(reply, self.limit_error)
        self.events += events
        return reply

    def _join_surrogates(self, index: int, text: str, kind: type[TextDelta | ThinkingDelta | InputDelta]) -> str:
        """Return the text with surrogate pairs joined that were split between deltas."""
        half = self._pending_surrogates.pop(index, None)
        text = text if half is None else half[0] + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._pending_surrogates[index] = text[-1], kind
            text = text[:-1]
        return join_surrogates(text)


def join_surrogates(text: str) -> str:
    """Return the text with split surrogate pairs joined; unpaired ones become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _mark_failed(reply: Reply, error: ApiError) -> Reply:
    """Return the reply with finish `error`; its native fragment no longer counts as intact."""
    native = reply.native if reply.native is None else Native(reply.native.api, reply.native.fragment, intact=False)
    return msgspec.structs.replace(reply, finish="error", raw_finish=error.message, native=native)


def with_streamed_calls(reply: Reply, streamed: Iterable[ToolCall]) -> Reply:
    """Return the reply with the ids of its streamed calls; a call that was truncated in the stream is `broken`."""
    following = iter(streamed)
    blocks = (
        _merge_streamed_call(block, next(following, block)) if isinstance(block, ToolCall) else block
        for block in reply.blocks
    )
    return msgspec.structs.replace(reply, blocks=tuple(blocks))


def _merge_streamed_call(parsed: ToolCall, streamed: ToolCall) -> ToolCall:
    if not streamed.broken:
        return msgspec.structs.replace(parsed, id=streamed.id)
    text = streamed.arguments_text
    return msgspec.structs.replace(parsed, id=streamed.id, arguments=None, arguments_text=text, broken=True)

"""`segue.assemble`, and `ReplyStream`, which converts a streamed reply to the caller's API."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec

from segue._literals import Api, ToolFormat
from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall
from segue.canonical.json import to_plain_json
from segue.canonical.request import Reply, Usage
from segue.errors import InputError, RemoteProtocolError
from segue.render.content import drop_omitted_blocks
from segue.render.hosted import approvals_to_text
from segue.render.report import Report
from segue.reply import SentRequest, find_model_fields, map_reply, render_reply, report_dropped, require_call_names
from segue.wire.base import ApiError, RenderContext, Wire
from segue.wire.error_forms import classify_error, fit_error
from segue.wire.ids import IdMap
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits, require_limits
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.registry import WIRES, find_wire
from segue.wire.replies import (
    is_unnamed_call,
    permanent_error,
    report_extra_choices,
    retryable_error,
    unnamed_call_error,
)
from segue.wire.stream.delta_run import DeltaRun
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
    arguments_text,
)
from segue.wire.stream.parse import DEFAULT_TURN_KEY, StreamParser
from segue.wire.stream.render import DeltaFormat
from segue.wire.text.extractor import TextExtractor, choose_extractor, extract_from_reply
from segue.wire.tool_formats import find_tool_format

# Chunks of bytes or text, mappings, and objects of the vendors' SDKs.
Stream = bytes | bytearray | str | Iterable[object]
_Bytes = bytes | bytearray | str
_OPENINGS = (ReplyStart, UsageUpdate, BlockStart)
_ENDINGS = (UsageUpdate, Finished, Failed)
_DELTAS = (TextDelta, ThinkingDelta, InputDelta)


def assemble(
    events: Stream, api: Api, *, tool_format: ToolFormat = "auto", limits: ReplyLimits = DEFAULT_LIMITS
) -> Reply:
    """Assemble the reply from a stream of this API: bytes, chunks of bytes, or decoded payloads.

    The turn key of its calls is `turn-0`. `tool_format` is the text tool format of the model, if it has no tool API. A
    reply above the `limits` is cut off there, with the finish `error`.
    """
    require_limits(limits)
    wire = find_wire(api, argument="api")
    find_tool_format(tool_format)
    # An iterator can be read only once, and detecting another API reads the stream again.
    stream: object = list(events) if isinstance(events, Iterator) else events
    try:
        reply = _assemble(wire, stream, limits)
    except RemoteProtocolError as error:
        other = _detect_other_api(wire, stream, limits) if error.kind is None else None
        if other is None:
            raise
        raise RemoteProtocolError(f"not a stream of {wire.name}; this looks like one of {other}") from None
    require_call_names(reply, wire)
    return extract_from_reply(reply, choose_extractor(wire, reply.model, tool_format, turn_key=DEFAULT_TURN_KEY))


def _assemble(wire: Wire, events: object, limits: ReplyLimits) -> Reply:
    parser = wire.open_stream(DEFAULT_TURN_KEY)
    parser.set_limits(limits)
    _feed(parser, events)
    return parser.close()


def _detect_other_api(wire: Wire, events: object, limits: ReplyLimits) -> str | None:
    """Return another API that the stream can be parsed as, or None."""
    for other in WIRES.values():
        if other.on is None and other.name not in (wire.name, wire.on):
            with suppress(RemoteProtocolError):
                return other.name if _assemble(other, events, limits).blocks else None
    return None


def render_reply_body(reply: Reply, api: str) -> tuple[dict[str, Any], Report]:
    """Render a reply as a whole body of an API; also return the report of what was dropped."""
    wire = find_wire(api, argument="api")
    report = Report(target=wire.name)
    return render_reply(reply, wire, report), report


def _feed(parser: StreamParser, events: object) -> None:
    if isinstance(events, _Bytes):
        parser.feed(_bytes(events))
        return
    if isinstance(events, Mapping) or not isinstance(events, Iterable):
        raise InputError("bytes, chunks of bytes, or a list of payloads were expected", path="events")
    items = list(cast("Iterable[object]", events))
    chunks = [_bytes(item) for item in items if isinstance(item, _Bytes)]
    # Some clients split a stream into lines without the line ends.
    end = b"\n" if chunks and not any(b"\n" in chunk or b"\r" in chunk for chunk in chunks) else b""
    for position, item in enumerate(items):
        if isinstance(item, _Bytes):
            parser.feed(_bytes(item) + end)
            continue
        payload = to_plain_json(item)
        if not isinstance(payload, dict):
            raise InputError("a payload must be an object", path=f"events[{position}]")
        parser.feed_payload(cast("dict[str, Any]", payload))


def _bytes(chunk: bytes | bytearray | str) -> bytes:
    return chunk.encode("utf-8", "replace") if isinstance(chunk, str) else bytes(chunk)


class ReplyStream:
    """Converts the target's stream to the caller's API. After `close`, `reply` is the canonical reply."""

    def __init__(
        self, sent: SentRequest, report: Report, *, turn_key: str, limits: ReplyLimits = DEFAULT_LIMITS
    ) -> None:
        source = sent.source
        assert source is not None
        self.report = Report(target=source.name)
        self.reply: Reply | None = None
        self.has_content = False
        """Whether the caller's stream has more than the starts of the reply and of blocks.

        Before that, another reply can take its place.
        """
        self._closed = False
        self._request_report = report
        self._sent = sent
        self._source = source
        self._turn_key = turn_key
        self._parser = sent.wire.open_stream(turn_key)
        self._parser.set_limits(limits)
        self._extractor: TextExtractor | None = sent.build_extractor(self.report, turn_key)
        ids = sent.build_id_map(source)
        self._mapper = _EventMapper(sent, ids, self.report)
        context = RenderContext(ids, NameMap(ANY_NAME), self.report, request=sent.caller_request)
        self._renderer = source.stream_renderer(context, sent.model)
        self._last_delta: Delta | None = None
        """The last event, if it was alone in a read and is a delta."""
        self._newest_block = -1
        """Index of the newest block with such a delta."""
        self._format: DeltaFormat | None = None
        """Renders more deltas of the same block, each alone in a read."""
        self._run: DeltaRun | None = None
        """Converts those deltas, with the function beside it."""
        self._convert_delta: Callable[[bytes], bytes | None] | None = None

    def feed(self, data: object) -> bytes:
        """Convert the next bytes of the target's stream to bytes for the caller; after `close`, return no bytes.

        At a limit of the reply, return the end of the caller's stream: an error that clients do not retry.
        """
        if not isinstance(data, bytes):
            if not isinstance(data, bytearray):
                raise InputError(f"bytes were expected, not {type(data).__name__}", path="data")
            data = bytes(data)
        convert = self._convert_delta
        if convert is not None and (converted := convert(data)) is not None:
            return converted
        self._close_run()
        return b"" if self._closed else self._feed(data)

    def _feed(self, data: bytes) -> bytes:
        parser = self._parser
        parser.feed(data)
        rendered = self._render_events(parser.events())
        if parser.limit_error is not None:
            return rendered + self.close()
        if self._format is not None and self._last_delta is not None:
            self._run = parser.open_run(data, self._last_delta, self._format)
            self._convert_delta = self._run and self._run.convert
        return rendered

    def _close_run(self) -> None:
        if self._run is not None:
            self._parser.close_run(self._run)
            self._run = self._convert_delta = None

    def close(self) -> bytes:
        """Return the end of the caller's stream. Closing twice has no effect.

        A stream that was cut off ends with only an error of the caller's API, of a kind that clients retry; so does a
        reply that is not valid, with an error that they do not retry. Blocks that are open then do not end.
        """
        if self._closed:
            return b""
        self._closed = True
        self._close_run()
        self.reply = reply = self._read_reply()
        data = self._render_events(self._parser.events())
        if self._mapper.failure is not None:
            self._renderer.render(self._mapper.usage)
            data = self._render_failure(self._mapper.failure)
        report_dropped(reply, self._source, self.report, sealed=self._sent.options.reasoning is not None)
        if reply.native is not None and reply.native.api == self._source.name:
            # A same-API reply keeps all choices, but a converted stream has only the first.
            report_extra_choices(reply.other_choices, self.report)
        self._request_report.extend(self.report.findings)
        return data

    @property
    def is_complete(self) -> bool:
        """Whether the target's last event was received: nothing that follows is part of the reply."""
        return self._parser.is_done

    def fail(self, error: ApiError | RemoteProtocolError | str, *, retry: bool | None = None) -> bytes:
        """Return the end of the caller's stream: this error, in the form of the caller's API.

        `retry` states whether clients should send the request again. By default they should after a text, which is the
        cause of a failed transport, and not after the `RemoteProtocolError` of an invalid stream.
        """
        if not self._closed:
            self._closed = True
            self._close_run()
            with suppress(RemoteProtocolError):
                self.reply = self._read_reply()
        return self._render_failure(_to_api_error(error, retry=retry))

    def _read_reply(self) -> Reply:
        return map_reply(self._sent.with_defaults(self._parser.close()), self._sent, turn_key=self._turn_key)

    def _render_failure(self, error: ApiError) -> bytes:
        fitted = fit_error(error, self._source, is_same_api=not self._sent.is_cross_api)
        return self._renderer.render_failure(fitted)

    def _render_events(self, events: list[Event]) -> bytes:
        delta = events[0] if len(events) == 1 and self._extractor is None else None
        if not isinstance(delta, _DELTAS) or (type(delta) is TextDelta and delta.extras is not None):
            self._last_delta = self._format = None
            return self._render_each(events)
        last, self._last_delta = self._last_delta, delta
        is_same_block = last is not None and last.index == delta.index and type(last) is type(delta)
        if self._format is not None and is_same_block:
            return self._format.render(delta.text)
        rendered = self._render_each(events)
        # More deltas of the block probably follow, unless blocks take turns.
        is_run = is_same_block or delta.index > self._newest_block
        self._newest_block = max(self._newest_block, delta.index)
        self._format = self._renderer.open_run(delta) if is_run and self._mapper.can_pass_through(delta) else None
        return rendered

    def _render_each(self, events: list[Event]) -> bytes:
        if self._extractor is not None:
            events = self._extractor.feed(events)
            if self._extractor.is_idle:
                self._extractor = None
        mapped = self._mapper.map_events(events)
        self.has_content = self.has_content or any(not isinstance(event, _OPENINGS) for event in mapped)
        return self._renderer.render(mapped)

    @property
    def failure(self) -> ApiError | None:
        """The error that the provider sent, or for which the reply is not valid; None so far."""
        return self._mapper.failure or self._parser.error

    @property
    def usage(self) -> Usage | None:
        """The token counts so far."""
        update = self._mapper.usage[0] if self._mapper.usage else None
        return update.usage if isinstance(update, UsageUpdate) else None


def _to_api_error(error: ApiError | RemoteProtocolError | str, *, retry: bool | None) -> ApiError:
    if isinstance(error, ApiError) and retry is None:
        return error
    if isinstance(error, RemoteProtocolError) and retry is None:
        own_error = ApiError(error.status or 0, error.message, error.kind or "api_error", error.code)
        if own_error.status or classify_error(own_error) == "overloaded":
            return own_error
    message = error if isinstance(error, str) else error.message
    retry = isinstance(error, str) if retry is None else retry
    return retryable_error(message) if retry else permanent_error(message)


def _view_with_model(native: Native | None, model: str) -> Native | None:
    """Return a view of the fields of a reply with another model name. They change until the stream ends."""
    named = {} if native is None else find_model_fields(native.fragment, model)
    if native is None or not named:
        return native
    return msgspec.structs.replace(native, fragment=ChainMap(named, cast("dict[str, Any]", native.fragment)))


class _EventMapper:
    """Maps events to the caller's names and new ids, and drops what only the target API has.

    A call that must be rewritten, or that the caller needs whole, is held back until it is complete. A call that was
    cut off or is not valid JSON never ends. That is valid only for the last block of a reply that reached a limit; any
    other such reply fails.
    """

    def __init__(self, sent: SentRequest, ids: IdMap, report: Report) -> None:
        self._sent = sent
        self._calls = sent.build_call_mapper()
        self._ids = ids
        self._report = report
        self._reasoning = sent.options.reasoning
        self._held: set[int] = set()
        self._cut_call: ToolCall | None = None
        self._cut_is_last = True
        self.usage: list[Event] = []
        self.failure: ApiError | None = None
        """The error that a failed reply ends with; the events before it that are not rendered yet are dropped."""

    def map_events(self, events: list[Event]) -> list[Event]:
        mapped: list[Event] = []
        for event in events:
            if self.failure is not None:
                break
            self._cut_is_last = self._cut_is_last and (self._cut_call is None or isinstance(event, _ENDINGS))
            if isinstance(event, TextDelta):
                mapped.append(event)
            elif isinstance(event, InputDelta):
                if event.index not in self._held:
                    mapped.append(event)
            elif isinstance(event, BlockEnd | WholeBlock) and is_unnamed_call(event.block):
                self.failure = unnamed_call_error(self._sent.wire.name)
            elif isinstance(event, BlockStart | BlockEnd):
                mapped += self._map_block_event(event)
            elif isinstance(event, WholeBlock):
                mapped += self._map_whole(event)
            elif isinstance(event, ReplyStart):
                mapped.append(self._map_reply_start(event))
                opening = self._sent.options.opening
                mapped += [] if opening is None else [WholeBlock(0, opening)]
            elif (error := self._find_error(event)) is not None:
                self.failure = error
            else:
                self.usage = [event] if isinstance(event, UsageUpdate) else self.usage
                mapped.append(event)
        return mapped

    def can_pass_through(self, delta: Delta) -> bool:
        """Return whether this and all further deltas of its block are mapped to themselves."""
        return self.failure is None and self._cut_call is None and delta.index not in self._held

    def _find_error(self, event: Event) -> ApiError | None:
        """Return the error that the reply ends with; None if this is not its end, or it ends regularly."""
        if isinstance(event, Failed):
            return event.error
        if not isinstance(event, Finished):
            return None
        return self._sent.find_error(event.finish, event.raw_finish, self._cut_call, cut_is_last=self._cut_is_last)

    def _map_reply_start(self, event: ReplyStart) -> ReplyStart:
        name = self._sent.options.model
        if name is not None:
            opening = None if event.opening is None else {**event.opening, **find_model_fields(event.opening, name)}
            event = msgspec.structs.replace(event, native=_view_with_model(event.native, name), opening=opening)
        model = name or event.model or self._sent.model
        created = self._sent.options.created if event.created is None else event.created
        return msgspec.structs.replace(event, id=self._sent.assign_reply_id(event.id), model=model, created=created)

    def _map_block_event(self, event: BlockStart | BlockEnd) -> list[Event]:
        block, reasoning = event.block, self._reasoning
        if isinstance(block, ToolCall):
            return self._map_start(event, block) if isinstance(event, BlockStart) else self._map_end(event, block)
        if reasoning is None:
            return [event]
        if not isinstance(block, Thinking):
            return [*self._insert_before(event.index, block), event] if isinstance(event, BlockStart) else [event]
        if isinstance(event, BlockStart):
            return [BlockStart(event.index, reasoning.map_start(block))]
        # A block that was started has an end, even if it is not passed on.
        mapped = reasoning.map_block(block) or Thinking(block.text, origin=block.origin)
        return [BlockEnd(event.index, mapped)]

    def _insert_before(self, index: int, block: Block) -> list[Event]:
        blocks = [] if self._reasoning is None else self._reasoning.blocks_before(block)
        return [WholeBlock(index, new) for new in blocks]

    def _start_call(self, index: int, call: ToolCall) -> list[Event]:
        """Return the start of a call with an id for the caller, after the blocks that belong before it."""
        self._ids.assign(call, call.name)
        return [*self._insert_before(index, call), BlockStart(index, call)]

    def _end_call(self, index: int, call: ToolCall) -> BlockEnd:
        if self._reasoning is not None:
            self._reasoning.add_call(call, self._ids.render(call.id))
        return BlockEnd(index, call)

    def _map_start(self, event: BlockStart, call: ToolCall) -> list[Event]:
        if self._sent.options.buffer_tool_calls or not call.name or self._calls.needs_whole_call(call):
            self._held.add(event.index)
            return []
        return self._start_call(event.index, self._name_call(call))

    def _name_call(self, call: ToolCall) -> ToolCall:
        return self._sent.salt_id(msgspec.structs.replace(call, name=self._calls.map_name(call.name)))

    def _map_end(self, event: BlockEnd, call: ToolCall) -> list[Event]:
        if self._sent.is_incomplete(call):
            self._report.add("dropped", f"incomplete call of {call.name} dropped: it was cut off", subject=call.name)
            self._cut_is_last = self._cut_call is None
            self._cut_call = call
            return []
        if event.index not in self._held:
            return [self._end_call(event.index, self._name_call(call))]
        call = self._sent.salt_id(self._calls.map_complete_call(call))
        start = msgspec.structs.replace(call, arguments={}, arguments_text=None)
        index = event.index
        return [*self._start_call(index, start), InputDelta(index, arguments_text(call)), self._end_call(index, call)]

    def _map_whole(self, event: WholeBlock) -> list[Event]:
        blocks = [event.block]
        if self._sent.is_cross_api:
            blocks = drop_omitted_blocks(approvals_to_text(blocks, self._report), self._report)
        mapped: list[Event] = []
        for block in blocks:
            if isinstance(block, Text):
                mapped += (
                    BlockStart(event.index, Text("")),
                    TextDelta(event.index, block.text),
                    BlockEnd(event.index, block),
                )
                continue
            if isinstance(block, ToolCall):
                block = self._sent.salt_id(self._calls.map_complete_call(block))
                mapped += self._start_call(event.index, block)[:-1]
                self._end_call(event.index, block)
            elif isinstance(block, Thinking) and self._reasoning is not None:
                sealed = self._reasoning.map_block(block)
                if sealed is None:
                    continue
                block = sealed
            mapped.append(WholeBlock(event.index, block))
        return mapped

"""Public stream functions: assemble a recorded stream, and convert the target's stream to the caller's API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Text, ToolCall
from segue.canonical.jsontext import plain
from segue.canonical.request import Reply, Request
from segue.errors import InputError, RemoteProtocolError
from segue.models import identify
from segue.render.content import heard
from segue.render.hosted import asked_in_words
from segue.render.report import Report
from segue.replies import CallersCalls, report_unsaid
from segue.wire.base import ApiError, Projection, Wire
from segue.wire.events import End, Event, Failed, InputDelta, Opened, Start, TextDelta, Whole, arguments_text
from segue.wire.formats import known_format
from segue.wire.idmap import IdMap
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.registry import WIRES, find
from segue.wire.replies import report_others
from segue.wire.stream import TURN_KEY, StreamParser
from segue.wire.text.hearing import Hearing, heard_reply
from segue.wire.text.leaks import hearing_of

__all__ = ["ReplyStream", "assemble", "reply_body"]

# Chunks of bytes or text, mappings, and objects of the vendors' SDKs.
Stream = bytes | bytearray | str | Iterable[object]
_Bytes = bytes | bytearray | str


def assemble(events: Stream, api: str, *, tool_format: str = "auto") -> Reply:
    """Assemble the reply from a stream of this API: bytes, chunks of bytes, or decoded payloads.

    The turn key of its calls is `turn-0`. `tool_format` names the text format that the model writes calls in.
    """
    wire = find(api, argument="api")
    known_format(tool_format)
    given: object = events
    if isinstance(given, Iterator):
        given = list(given)
    try:
        reply = _assembled(wire, given)
    except RemoteProtocolError as error:
        other = _other_api(wire, given) if error.kind is None else None
        if other is None:
            raise
        raise RemoteProtocolError(f"not a stream of {wire.name}; this looks like one of {other}") from None
    return heard_reply(reply, hearing_of(wire, reply.model, tool_format, turn_key=TURN_KEY))


def _assembled(wire: Wire, events: object) -> Reply:
    parser = wire.open_stream(TURN_KEY)
    _feed(parser, events)
    return parser.close()


def _other_api(wire: Wire, events: object) -> str | None:
    """Return the API that the stream can be parsed as, if it is not one of the given API."""
    for other in WIRES.values():
        if other.on is None and other.name not in (wire.name, wire.on):
            with suppress(RemoteProtocolError):
                return other.name if _assembled(other, events).blocks else None
    return None


def reply_body(reply: Reply, api: str) -> tuple[dict[str, Any], Report]:
    """Render a reply as a whole body of an API; also return the report of what was dropped."""
    wire = find(api, argument="api")
    report = Report(target=wire.name)
    report_unsaid(reply, wire, report)
    if reply.native is None or reply.native.api != wire.name:
        reply = msgspec.structs.replace(reply, blocks=tuple(heard(asked_in_words(reply.blocks, report), report)))
    elif not reply.native.intact:
        cut = (heard((block,), report) if isinstance(block, ToolCall) else (block,) for block in reply.blocks)
        reply = msgspec.structs.replace(reply, blocks=tuple(block for blocks in cut for block in blocks))
    ids, names = IdMap(wire.ids(identify(reply.model)), provider=wire.provider), NameMap(ANY_NAME)
    for call in reply.calls:
        ids.assign(call, call.name)
    return wire.render_reply(reply, Projection(ids, names, report)), report


def _feed(parser: StreamParser, events: object) -> None:
    if isinstance(events, _Bytes):
        parser.feed(_bytes(events))
        return
    if isinstance(events, Mapping) or not isinstance(events, Iterable):
        raise InputError("bytes, chunks of bytes, or a list of payloads were expected", path="events")
    given = list(cast("Iterable[object]", events))
    chunks = [_bytes(event) for event in given if isinstance(event, _Bytes)]
    # Some clients split a stream into lines without the line ends.
    end = b"\n" if chunks and not any(b"\n" in chunk or b"\r" in chunk for chunk in chunks) else b""
    for place, event in enumerate(given):
        if isinstance(event, _Bytes):
            parser.feed(_bytes(event) + end)
            continue
        payload = plain(event)
        if not isinstance(payload, dict):
            raise InputError("a payload must be an object", path=f"events[{place}]")
        parser.take(cast("dict[str, Any]", payload))


def _bytes(chunk: bytes | bytearray | str) -> bytes:
    return chunk.encode("utf-8", "replace") if isinstance(chunk, str) else bytes(chunk)


class ReplyStream:
    """The target's stream in, the caller's stream out. After `close`, `reply` is the canonical reply."""

    def __init__(
        self,
        request: Request,
        *,
        source: Wire,
        target: Wire,
        names: NameMap,
        report: Report,
        turn_key: str,
        model: str | None = None,
        hear: Callable[..., Hearing] | None = None,
    ) -> None:
        self.report = Report(target=source.name)
        self.reply: Reply | None = None
        self._closed = False
        self._whole_report = report
        self._source = source
        self._model = model
        self._parser = target.open_stream(turn_key)
        self._hearing = None if hear is None else hear(self.report, turn_key=turn_key)
        ids = IdMap(source.ids(identify(request.model)), provider=source.provider)
        caller_names = NameMap(ANY_NAME)
        ids.add_messages(request.messages, caller_names.render)
        own = CallersCalls(request, names, custom_tools=source.custom_tools)
        self._caller = _Caller(own, ids, self.report, abroad=source.name != target.name, model=model)
        self._renderer = source.stream_renderer(Projection(ids, caller_names, self.report), model, request)

    def feed(self, data: object) -> bytes:
        """Convert more bytes of the target's stream to bytes for the caller; empty once it is closed."""
        if not isinstance(data, bytes | bytearray):
            raise InputError(f"bytes were expected, not {type(data).__name__}", path="data")
        if self._closed:
            return b""
        self._parser.feed(bytes(data))
        return self._told(self._parser.events())

    def close(self) -> bytes:
        """Finish the stream; if it was cut off, with an error of the caller's API. Closing twice has no effect."""
        if self._closed:
            return b""
        self._closed = True
        reply = self._parser.close()
        data = self._told(self._parser.events())
        if reply.model is None:
            reply = msgspec.structs.replace(reply, model=self._model)
        self.reply = reply
        report_unsaid(reply, self._source, self.report)
        if reply.native is not None and reply.native.api == self._source.name:
            # A whole reply has all choices; a stream of the caller's API has only one.
            report_others(reply.others, self.report)
        self._whole_report.findings.extend(self.report.findings)
        return data

    def fail(self, error: ApiError | str) -> bytes:
        """End the stream with an error, given as a value or a message."""
        self._closed = True
        return self._told([Failed(ApiError(502, error, kind="api_error") if isinstance(error, str) else error)])

    def _told(self, events: list[Event]) -> bytes:
        if self._hearing is not None:
            events = self._hearing.events(events)
            if self._hearing.idle:
                self._hearing = None
        return self._renderer.render(self._caller.events(events))


class _Caller:
    """Maps events to the caller's names and new ids, and drops what only the target API has.

    A call that must be rewritten is held back until it is complete.
    """

    def __init__(self, own: CallersCalls, ids: IdMap, report: Report, *, abroad: bool, model: str | None) -> None:
        self._own = own
        self._ids = ids
        self._report = report
        self._abroad = abroad
        self._model = model
        self._held: set[int] = set()

    def events(self, events: list[Event]) -> list[Event]:
        mapped: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                mapped.append(event)
            elif isinstance(event, InputDelta):
                if event.index not in self._held:
                    mapped.append(event)
            elif isinstance(event, Start) and isinstance(event.block, ToolCall):
                mapped += self._begun(event, event.block)
            elif isinstance(event, End) and isinstance(event.block, ToolCall):
                mapped += self._ended(event, event.block)
            elif isinstance(event, Whole):
                mapped += self._whole(event)
            elif isinstance(event, Opened) and event.model is None:
                mapped.append(msgspec.structs.replace(event, model=self._model))
            else:
                mapped.append(event)
        return mapped

    def _begun(self, event: Start, call: ToolCall) -> list[Event]:
        if self._own.changes(call):
            self._held.add(event.index)
            return []
        call = msgspec.structs.replace(call, name=self._own.name(call.name))
        self._ids.assign(call, call.name)
        return [Start(event.index, call)]

    def _ended(self, event: End, call: ToolCall) -> list[Event]:
        if event.index not in self._held:
            return [End(event.index, msgspec.structs.replace(call, name=self._own.name(call.name)))]
        if call.broken:
            self._report.add("dropped", f"incomplete call of {call.name} dropped: it was cut off", subject=call.name)
            return []
        call = self._own.whole(call)
        self._ids.assign(call, call.name)
        start = msgspec.structs.replace(call, arguments={}, arguments_text=None)
        index = event.index
        return [Start(index, start), InputDelta(index, arguments_text(call)), End(index, call)]

    def _whole(self, event: Whole) -> list[Event]:
        blocks = [event.block]
        if self._abroad:
            blocks = heard(asked_in_words(blocks, self._report), self._report)
        mapped: list[Event] = []
        for block in blocks:
            if isinstance(block, Text):
                mapped += (Start(event.index, Text("")), TextDelta(event.index, block.text), End(event.index, block))
                continue
            if isinstance(block, ToolCall):
                block = self._own.whole(block)
                self._ids.assign(block, block.name)
            mapped.append(Whole(event.index, block))
        return mapped

"""The stream parser of all APIs: bytes in, events out, sans-IO.

The `PayloadReader` of a wire is in its module `stream_in` (payloads to events and to the complete reply), its
`StreamRenderer` in `stream_out` (events to payloads).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from segue.canonical.json import MAX_DEPTH, estimate_depth
from segue.canonical.request import Reply
from segue.errors import InputError, RemoteProtocolError
from segue.wire.base import JsonObject
from segue.wire.events import (
    Event,
)
from segue.wire.framing import EXCEPTION_PREFIX, FrameDecoder
from segue.wire.stream_reader import PayloadReader

__all__ = ["DEFAULT_TURN_KEY", "StreamParser"]

DEFAULT_TURN_KEY = "turn-0"
"""The turn key of a stream that belongs to no conversation."""
_DONE = b"[DONE]"
_RECORDED_KEYS = frozenset({"data", "event", "id", "retry", "time", "timestamp"})

_decode = msgspec.json.Decoder().decode


class StreamParser:
    """Bytes of one reply in, events out; `close` returns the reply. Invalid input raises `RemoteProtocolError`."""

    def __init__(self, reader: PayloadReader) -> None:
        self._reader = reader
        self._frames = FrameDecoder()

    def feed(self, data: bytes) -> None:
        reader = self._reader
        if reader.delta_template is not None and (partial := self._frames.take_partial()) is not None:
            data = reader.delta_template.consume_stream(partial + data)
            if not data:
                return
        for name, payload in self._frames.feed(data):
            template = reader.delta_template
            if template is None:
                self._parse_payload(name, payload)
            elif not template.consume_payload(payload):
                reader.template_misses += 1
                self._parse_payload(name, payload)

    def feed_payload(self, payload: Mapping[str, Any], name: str | None = None) -> None:
        """Parses a decoded payload, also in a recorded form: an object with `event` and `data`."""
        value = cast("JsonObject", payload)
        if "data" in value and value.keys() <= _RECORDED_KEYS and isinstance(value["data"], dict):
            name = value["event"] if isinstance(value.get("event"), str) else None
            value = cast("JsonObject", value["data"])
        try:
            self._reader.read(value, name)
        except (InputError, RecursionError) as error:
            raise RemoteProtocolError(f"not a stream of this API: {error}") from None

    def events(self) -> list[Event]:
        """The events since the last call."""
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
        """Decodes a payload that msgspec rejects. It may end in half of a surrogate pair completed by the next one."""
        if payload.strip() in (b"", _DONE):
            self._reader.done = self._reader.done or bool(payload.strip())
            return {}
        try:
            value = json.loads(payload.decode("utf-8"))
        except (ValueError, RecursionError):
            raise RemoteProtocolError(f"not JSON: {payload[:64].decode('utf-8', 'replace')}") from None
        self._reader.has_split_surrogates = True
        return value

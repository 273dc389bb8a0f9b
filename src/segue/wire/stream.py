"""The stream parser of all APIs: bytes in, events out, sans-IO.

A wire's `stream_in` has its `PayloadReader` (payloads to events and to the complete reply), its `stream_out` the
`StreamRenderer` (events to payloads).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from segue.canonical.jsontext import MAX_DEPTH, depth_of
from segue.canonical.request import Reply
from segue.errors import InputError, RemoteProtocolError
from segue.wire.base import JsonObject
from segue.wire.events import (
    Event,
)
from segue.wire.framing import EXCEPTION, Frames
from segue.wire.stream_reader import Reader

__all__ = ["TURN_KEY", "StreamParser"]

TURN_KEY = "turn-0"
"""The turn key of a stream that belongs to no conversation."""
_DONE = b"[DONE]"
_RECORDED = frozenset({"data", "event", "id", "retry", "time", "timestamp"})

_decode = msgspec.json.Decoder().decode


class StreamParser:
    """Bytes of one reply in, events out; `close` returns the reply. Invalid input raises `RemoteProtocolError`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._frames = Frames()

    def feed(self, data: bytes) -> None:
        reader = self._reader
        if reader.alike is not None and (held := self._frames.held()) is not None:
            data = reader.alike.run(held + data)
            if not data:
                return
        for name, payload in self._frames.feed(data):
            alike = reader.alike
            if alike is None:
                self._read(name, payload)
            elif not alike.take(payload):
                reader.unlike += 1
                self._read(name, payload)

    def take(self, payload: Mapping[str, Any], name: str | None = None) -> None:
        """Parses a decoded payload, also in a recorded form: an object with `event` and `data`."""
        value = cast("JsonObject", payload)
        if "data" in value and value.keys() <= _RECORDED and isinstance(value["data"], dict):
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
                self._read(name, payload)
            except RemoteProtocolError:
                # The stream ended in the middle of a payload.
                if not reader.opened:
                    raise
        if not reader.opened:
            error = reader.failed
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

    def _read(self, name: str | None, payload: bytes) -> None:
        if payload == _DONE:
            self._reader.done = True
            return
        if not payload:
            if name is None or not name.startswith(EXCEPTION):
                return
            payload = b"{}"
        if len(payload) > MAX_DEPTH and depth_of(payload) > MAX_DEPTH:
            raise RemoteProtocolError("not a stream of this API: nested too deep")
        try:
            value = _decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            value = self._with_halves(payload)
        if isinstance(value, dict):
            self._reader.payload, self._reader.name = payload, name
            self.take(cast("JsonObject", value), name)
            self._reader.payload = b""
            return
        # Some servers send payloads in a list.
        for one in cast("list[object]", value) if isinstance(value, list) else [value]:
            if not isinstance(one, dict):
                raise RemoteProtocolError("not a stream of this API: expected JSON objects")
            self.take(cast("JsonObject", one), name)

    def _with_halves(self, payload: bytes) -> object:
        """Decodes a payload that msgspec rejects, which may end in half of a surrogate pair continued in the next."""
        if payload.strip() in (b"", _DONE):
            self._reader.done = self._reader.done or bool(payload.strip())
            return {}
        try:
            value = json.loads(payload.decode("utf-8"))
        except (ValueError, RecursionError):
            raise RemoteProtocolError(f"not JSON: {payload[:64].decode('utf-8', 'replace')}") from None
        self._reader.halves = True
        return value

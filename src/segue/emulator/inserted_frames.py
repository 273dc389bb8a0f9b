"""A stream with more events after its first ones, and changed payloads after these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from segue.emulator.faults import map_payloads
from segue.wire.json_values import JsonObject
from segue.wire.stream.framing import encode_sse


class InsertedFrames:
    """Adds `events`, each with its type as its name, after the first chunk of a stream of server-sent events."""

    media_type = "text/event-stream; charset=utf-8"

    def __init__(
        self, events: Sequence[JsonObject], *, change_first: Callable[[Any], Any], change_rest: Callable[[Any], Any]
    ) -> None:
        self._events: Sequence[JsonObject] | None = events
        self._change_first = change_first
        self._change_rest = change_rest

    def feed(self, data: bytes) -> bytes:
        if self._events is None:
            return map_payloads(data, self._change_rest)
        events, self._events = self._events, None
        return map_payloads(data, self._change_first) + b"".join(
            encode_sse(msgspec.json.encode(event), event["type"]) for event in events
        )

    def close(self) -> bytes:
        return b""

"""Fast parsing of runs of deltas that differ only in one text.

Streams consist mostly of such runs. The first delta of a run is parsed in full and becomes the template; of the
following deltas only the text is decoded. A delta that does not match the template is parsed in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

_Emit = Callable[[str], object]

_decode = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PROBE = "\u00b6probe"
_END = b"\n\n"
# Fields that may differ between deltas without effect: sequence numbers, padding, and token counts (the last one is
# used).
_VARIABLE_FIELDS = re.compile(
    rb'("(?:sequence_number|[a-zA-Z]+TokenCount)":\s*)\d+|("(?:obfuscation|p)":\s*)"[^"\\]*"', re.DOTALL
)
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError)


class DeltaTemplate:
    """`head` and `tail` are the bytes around the text in each payload; `lead` are those of an event before its payload.

    `last_payload` is the last payload that matched, if payloads differ in more than their text.
    """

    __slots__ = (
        *("_suffix", "_event", "_head", "_prefix", "_line", "_lines", "_payload"),
        *("_separator", "_start", "_stop", "_tail", "_emit", "last_payload"),
    )

    def __init__(self, lead: bytes, head: bytes, tail: bytes, emit: _Emit) -> None:
        self._emit = emit
        self._head, self._tail = head, tail
        self._prefix = lead + head
        self._suffix = tail + _END
        self._separator = self._suffix + self._prefix
        self._lines = self._prefix.count(b"\n") + len(_END)
        self._line = self._lines - len(_END)
        self._start, self._stop = len(self._prefix.rpartition(b"\n")[2]), -len(tail) or None
        self._payload = self._event = None
        self.last_payload = b""
        if _VARIABLE_FIELDS.search(head) or _VARIABLE_FIELDS.search(tail):
            payload = _flexible_pattern(head) + b"(" + _STRING.pattern + b")" + _flexible_pattern(tail)
            self._payload = re.compile(payload, re.DOTALL)
            self._event = re.compile(re.escape(lead) + payload + _END, re.DOTALL)

    @staticmethod
    def has_variable_fields(payload: bytes) -> bool:
        """Return whether a payload has fields besides its text that differ from one delta to the next."""
        return _VARIABLE_FIELDS.search(payload) is not None

    @classmethod
    def from_payload(cls, payload: bytes, name: str | None, key: str, text: str, emit: _Emit) -> DeltaTemplate | None:
        """Return the template for payloads that differ from this only in the text under `key`; None if ambiguous."""
        position = payload.rfind(b'"%b"' % key.encode())
        match = _STRING.search(payload, payload.find(b":", position)) if position >= 0 else None
        if match is None:
            return None
        head, tail = payload[: match.start()], payload[match.end() :]
        try:
            if _decode_text(match[0]) != text:
                return None
            probe = _decode(head + b'"%b"' % _PROBE.encode() + tail)
        except _DECODE_ERRORS:
            return None
        if _replace_text(probe, key, _PROBE, text) != _decode(payload):
            return None
        lead = b"data: " if name is None else b"event: %b\ndata: " % name.encode()
        return cls(lead, head, tail, emit)

    def consume_payload(self, payload: bytes) -> bool:
        """Emit the text of one payload and return True, or return False if the payload does not match."""
        if self._payload is not None:
            match = self._payload.fullmatch(payload)
            encoded = None if match is None else match[1]
        elif payload.startswith(self._head) and payload.endswith(self._tail):
            encoded = payload[len(self._head) : len(payload) - len(self._tail)]
        else:
            encoded = None
        if encoded is None:
            return False
        try:
            text = _decode_text(encoded)
        except _DECODE_ERRORS:
            return False
        self.last_payload = payload
        self._emit(text)
        return True

    def consume_stream(self, stream: bytes) -> bytes:
        """Emit the texts of the matching events at the start of a stream and return the remaining bytes."""
        encoded, rest = self._split_exact(stream) if self._event is None else self._split_variable(stream)
        if not encoded:
            return stream
        try:
            texts = _decode_texts(b"[%b]" % b",".join(encoded))
        except _DECODE_ERRORS:
            return stream
        if len(texts) != len(encoded):
            return stream
        self._emit("".join(texts))
        return rest

    def _split_exact(self, stream: bytes) -> tuple[list[bytes], bytes]:
        """Return the encoded texts and the remaining bytes: split as if all events matched, then verify."""
        end = stream.rfind(_END)
        events = stream[: end + len(_END)]
        lines = events.split(b"\n")[self._line : -1 : self._lines]
        encoded = [line[self._start : self._stop] for line in lines]
        if end < 0 or events != self._prefix + self._separator.join(encoded) + self._suffix:
            return [], stream
        return encoded, stream[len(events) :]

    def _split_variable(self, stream: bytes) -> tuple[list[bytes], bytes]:
        parts = self._event.split(stream) if self._event is not None else []
        between, encoded = parts[:-1:2], parts[1::2]
        if any(between) or not encoded:
            return [], stream
        rest = parts[-1]
        events = stream[: len(stream) - len(rest) - len(_END)]
        self.last_payload = events[events.rfind(_END) + 1 :].partition(b"data: ")[2]
        return encoded, rest


def _flexible_pattern(encoded: bytes) -> bytes:
    """Return a pattern for these bytes in which the variable fields may have any value."""
    parts: list[bytes] = []
    position = 0
    for match in _VARIABLE_FIELDS.finditer(encoded):
        number, padding = match.groups()
        parts += [re.escape(encoded[position : match.start()]), re.escape(number or padding)]
        parts.append(rb"\d+" if number else rb'"[^"\\]*"')
        position = match.end()
    return b"".join([*parts, re.escape(encoded[position:])])


def _replace_text(value: Any, key: str, text: str, other: str) -> Any:
    """Return the value with this text under this key replaced."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: other if name == key and member == text else _replace_text(member, key, text, other)
            for name, member in members.items()
        }
    if isinstance(value, list):
        return [_replace_text(member, key, text, other) for member in cast("list[Any]", value)]
    return value

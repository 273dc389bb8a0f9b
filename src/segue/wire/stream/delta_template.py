"""Fast parsing of runs of deltas that differ only in one text.

Streams consist mostly of such runs. The first delta of a run is parsed in full and becomes the template; of the
following deltas only the text is decoded. A delta that does not match the template is parsed in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

_Emit = Callable[[str], object]
Frame: TypeAlias = tuple[str | None, bytes]
"""The name of an event, where the framing has names, and its payload undecoded."""
FindText: TypeAlias = Callable[[bytes], bytes | None]

_decode = msgspec.json.Decoder().decode
decode_text = msgspec.json.Decoder(str).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PROBE = "\u00b6probe"
_END, _CRLF_END = b"\n\n", b"\r\n\r\n"
# Values of fields that may differ between deltas, and of the text. Zero and no padding are not among them: a reader may
# replace such a value by that of a later delta.
_PATTERNS = {
    "number": rb"[1-9]\d{0,15}+(?!\d)",
    "padding": rb'"[ !#-\[\]-~]++"',
    "text": rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")',
    "": b"",
}
# Those fields: sequence numbers, padding, and token counts (the last one is used).
_VARIABLE_FIELDS = re.compile(
    rb'"(?:sequence_number|[a-zA-Z]+TokenCount)":\s*(?P<number>%b)|"(?:obfuscation|p)":\s*(?P<padding>%b)'
    % (_PATTERNS["number"], _PATTERNS["padding"])
)
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError)


class TextFinder(NamedTuple):
    """Finds the text in bytes that match a template, still encoded as a JSON string.

    `find_text` returns None for other bytes. It is None where the text simply stands between `head` and `tail`.
    """

    find_text: FindText | None
    head: bytes = b""
    tail: bytes = b""

    def find(self, data: bytes) -> bytes | None:
        if self.find_text is not None:
            return self.find_text(data)
        encoded = data[len(self.head) : len(data) - len(self.tail)]
        return encoded if self.head + encoded + self.tail == data else None

    def find_decoded(self, data: bytes) -> str | None:
        encoded = self.find(data)
        try:
            return decode_text(encoded) if encoded is not None else None
        except DECODE_ERRORS:
            return None


class DeltaTemplate:
    """`head` and `tail` are the bytes around the text in each payload.

    `name` is the name of the events, `emit` passes a text on to the reader. `last_payload` is the last payload that
    matched, if payloads differ in more than their text.
    """

    def __init__(self, name: str | None, head: bytes, tail: bytes, emit: _Emit) -> None:
        lead = b"data: " if name is None else b"event: %b\ndata: " % name.encode()
        self.name = name
        self.emit = emit
        self._head, self._tail = head, tail
        self._prefix = lead + head
        self._suffix = tail + _END
        self._separator = self._suffix + self._prefix
        self._lead = lead
        self._lines = self._prefix.count(b"\n") + len(_END)
        self._line = self._lines - len(_END)
        self._start, self._stop = len(self._prefix.rpartition(b"\n")[2]), -len(tail) or None
        self.is_variable = _VARIABLE_FIELDS.search(head) is not None or _VARIABLE_FIELDS.search(tail) is not None
        self.last_payload = b""

    @classmethod
    def from_payload(cls, payload: bytes, name: str | None, key: str, text: str, emit: _Emit) -> DeltaTemplate | None:
        """Return the template for payloads that differ from this only in the text under `key`; None if ambiguous."""
        quoted_key = b'"%b"' % key.encode()
        match = _STRING.search(payload, payload.find(b":", payload.find(quoted_key)))
        if match is None or payload.count(quoted_key) != 1:
            return None
        head, tail = payload[: match.start()], payload[match.end() :]
        try:
            if decode_text(match[0]) != text:
                return None
            value, probe = _decode(payload), _decode(head + b'"%b"' % _PROBE.encode() + tail)
        except DECODE_ERRORS:
            return None
        if probe == value or _replace_text(probe, key, _PROBE, text) != value:
            return None
        return cls(name, head, tail, emit)

    @cached_property
    def _payload_finder(self) -> TextFinder:
        return self.build_finder(b"", b"")

    @cached_property
    def _event_finder(self) -> TextFinder:
        return self.build_finder(self._lead, b"")

    def build_finder(self, lead: bytes, end: bytes) -> TextFinder:
        """Return the finder of the text of a payload between these bytes."""
        head, tail = lead + self._head, self._tail + end
        return TextFinder(_variable_finder(head, tail)) if self.is_variable else TextFinder(None, head, tail)

    def consume_frames(self, frames: Sequence[Frame], start: int, stop: int) -> int:
        """Emit the texts of the frames from `start` on as one, up to a frame that does not match; return its index."""
        texts: list[str] = []
        for position in range(start, stop):
            name, payload = frames[position]
            text = self._payload_finder.find_decoded(payload) if name == self.name else None
            if text is None:
                break
            texts.append(text)
        if texts:
            start += len(texts)
            self.last_payload = frames[start - 1][1]
            self.emit("".join(texts))
        return start

    def consume_stream(self, stream: bytes) -> bytes:
        """Emit the texts of the events in a stream, if all of them match, and return the remaining bytes."""
        if self.is_variable or stream.find(_END) == stream.rfind(_END):
            return self._consume_events(stream)
        encoded, rest = self._split_exact(stream)
        text = _join_texts(encoded)
        if text is None:
            return stream
        self.emit(text)
        return rest

    def _consume_events(self, stream: bytes) -> bytes:
        # Some services end lines with CR and LF.
        *events, rest = stream.split(_CRLF_END if _CRLF_END in stream else _END)
        find_text = self._event_finder.find
        encoded = [found for event in events if (found := find_text(event)) is not None]
        text = _join_texts(encoded) if len(encoded) == len(events) else None
        if text is None:
            return stream
        self.last_payload = events[-1][len(self._lead) :]
        self.emit(text)
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


def _join_texts(encoded: list[bytes]) -> str | None:
    """Decode and join texts; None if there are none, or if one is not a JSON string."""
    try:
        texts = _decode_texts(b"[%b]" % b",".join(encoded))
    except DECODE_ERRORS:
        return None
    return "".join(texts) if encoded and len(texts) == len(encoded) else None


def _variable_finder(head: bytes, tail: bytes) -> FindText:
    """Return a finder for data in which the variable fields of `head` and `tail` may have other values.

    Its pattern has only the lengths of the fixed bytes, which are compared after the match: so the streams of one API
    share a few patterns, and none is compiled for each block.
    """
    before, after = _find_values(head), _find_values(tail)
    fixed = (*_split_at(head, before), *_split_at(tail, after))
    kinds = [*(kind for kind, _, _ in before), "text", *(kind for kind, _, _ in after), ""]
    pattern = b"".join(b"(.{%d})%b" % (len(part), _PATTERNS[kind]) for part, kind in zip(fixed, kinds, strict=True))
    match_data = re.compile(pattern, re.DOTALL).fullmatch
    # The group of the text, and those of the fixed bytes.
    group = len(before) + 2
    get_fixed = itemgetter(*range(1, group), *range(group + 1, len(fixed) + 2))

    def find_text(data: bytes) -> bytes | None:
        match = match_data(data)
        return match[group] if match is not None and get_fixed(match) == fixed else None

    return find_text


def _find_values(encoded: bytes) -> list[tuple[str, int, int]]:
    """Return the kind, start and end of each value that may differ."""
    return [
        (kind, *match.span(kind))
        for match in _VARIABLE_FIELDS.finditer(encoded)
        if (kind := match.lastgroup) is not None
    ]


def _split_at(encoded: bytes, values: list[tuple[str, int, int]]) -> list[bytes]:
    """Return the bytes before, between and after the values."""
    starts, stops = [0, *(stop for _, _, stop in values)], [*(start for _, start, _ in values), len(encoded)]
    return [encoded[start:stop] for start, stop in zip(starts, stops, strict=True)]


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

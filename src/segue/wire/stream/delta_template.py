"""Fast parsing of runs of deltas that differ only in one text.

Streams consist mostly of such runs. The first delta of a run is parsed in full and becomes the template; of the
following deltas only the text is decoded. A delta that does not match the template is parsed in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from segue.canonical.json import encode_json

_Emit = Callable[[str], object]
Frame: TypeAlias = tuple[str | None, bytes]
"""The name of an event, where the framing has names, and its payload undecoded."""
FindText: TypeAlias = Callable[[bytes], bytes]
"""Returns the text in bytes that match a template, encoded as in JSON; for other bytes, something else or nothing."""

_decode = msgspec.json.Decoder().decode
decode_text = msgspec.json.Decoder(str).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PROBE = b'"probe of a text"'
_END, _CRLF_END = b"\n\n", b"\r\n\r\n"
# Fields that may differ between deltas: sequence numbers, token counts (the last ones are used), and padding. Zero and
# no padding are fixed: a reader may replace such a value by that of a later delta.
_VARIABLE_FIELDS = re.compile(
    rb'"(?:sequence_number|[a-zA-Z]+TokenCount)":\s*(?P<number>[1-9]\d*+)|"(?:obfuscation|p)":\s*"(?P<padding>[a-zA-Z\d]++)"'
)
_ValueCheck: TypeAlias = tuple[bytes, Callable[[bytes], bool]]
"""The least of the values of a field, and a function that returns whether a value has no other characters."""
_VALUE_CHECKS: dict[str | None, _ValueCheck] = {"number": (b"1", bytes.isdigit), "padding": (b"", bytes.isalnum)}
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError)


class TextFinder(NamedTuple):
    """Finds the text in bytes that match a template; without `find_text` it stands between `head` and `tail`."""

    find_text: FindText | None
    head: bytes = b""
    tail: bytes = b""

    def find(self, data: bytes) -> bytes:
        if self.find_text is not None:
            encoded = self.find_text(data)
        else:
            encoded = data.removeprefix(self.head).removesuffix(self.tail)
            if len(self.head) + len(encoded) + len(self.tail) != len(data):
                return b""
        return encoded if has_quotes(encoded) else b""

    def find_decoded(self, data: bytes) -> str | None:
        try:
            return decode_text(self.find(data))
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
        self._before, self._after = _split_at_values(head), _split_at_values(tail)
        self.is_variable = bool(self._before.checks or self._after.checks)
        self._opening = lead + self._before.fixed[0]
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
            normal, probe = (encode_json(_decode(data)) for data in (payload, head + _PROBE + tail))
        except DECODE_ERRORS:
            return None
        # In another place, or under another key, the probe is not the text that the reader found.
        before, found, after = probe.partition(b"%b:%b" % (quoted_key, _PROBE))
        if not found or probe == normal or before + b"%b:%b" % (quoted_key, encode_json(text)) + after != normal:
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
        if self.is_variable:
            return TextFinder(_variable_finder(lead, self._before, self._after, end))
        return TextFinder(None, lead + self._head, self._tail + end)

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
        if not stream.startswith(self._opening):
            return stream
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
        text = _join_texts([find_text(event) for event in events])
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


class FrameTemplate:
    """The bytes of a read around the payload of its only frame, the same in the next reads."""

    def __init__(self, lead: bytes, end: bytes) -> None:
        self._lead, self._end = lead, end

    @staticmethod
    def from_read(read: bytes, payload: bytes) -> FrameTemplate | None:
        """Return the template of a read that contains its payload once, in one line; else None."""
        lead, _, end = read.partition(payload)
        return FrameTemplate(lead, end) if read.count(payload) == 1 and b"\n" not in payload else None

    def build_finder(self, template: DeltaTemplate) -> TextFinder:
        """Return the finder of the text of a read with one delta."""
        return template.build_finder(self._lead, self._end)


def has_quotes(encoded: bytes) -> bool:
    """Return whether a text has no blanks around its quotes; a line break there would be the end of a data line."""
    return encoded[:1] == encoded[-1:] == b'"'


def _join_texts(encoded: list[bytes]) -> str | None:
    """Decode and join texts; None if there are none, or if one is not a JSON string."""
    try:
        texts = _decode_texts(b"[%b]" % b",".join(encoded))
    except DECODE_ERRORS:
        return None
    return "".join(texts) if encoded and len(texts) == len(encoded) else None


class _Pieces(NamedTuple):
    """The bytes before, between and after values that may differ, and how those values are checked."""

    fixed: list[bytes]
    checks: list[_ValueCheck]


def _split_at_values(encoded: bytes) -> _Pieces:
    fixed: list[bytes] = []
    checks: list[_ValueCheck] = []
    position = 0
    for match in _VARIABLE_FIELDS.finditer(encoded):
        start, stop = match.span(match.lastgroup or 0)
        fixed.append(encoded[position:start])
        checks.append(_VALUE_CHECKS[match.lastgroup])
        position = stop
    return _Pieces([*fixed, encoded[position:]], checks)


def _variable_finder(lead: bytes, before: _Pieces, after: _Pieces, end: bytes) -> FindText:
    """Return the finder of the text between these pieces, in data that begin with `lead` and end with `end`."""
    (first, *ends), (*starts, last) = before.fixed, after.fixed
    fixed_size = sum(map(len, (lead, *before.fixed, *after.fixed, end)))
    first, last = lead + first, last + end
    # A value is cut off at the byte next to it, which is quicker than a search for all of the fixed bytes.
    cuts_before = [(*check, fixed[:1], fixed[1:]) for check, fixed in zip(before.checks, ends, strict=True)]
    cuts_after = [(*check, fixed[-1:], fixed[:-1]) for check, fixed in zip(after.checks, starts, strict=True)]
    cuts_after.reverse()

    def find_text(data: bytes) -> bytes:
        rest = data.removeprefix(first).removesuffix(last)
        size = fixed_size
        for least, is_valid, byte, fixed in cuts_before:
            value, _, rest = rest.partition(byte)
            if value < least or not is_valid(value):
                return b""
            rest = rest.removeprefix(fixed)
            size += len(value)
        for least, is_valid, byte, fixed in cuts_after:
            rest, _, value = rest.rpartition(byte)
            if value < least or not is_valid(value):
                return b""
            rest = rest.removesuffix(fixed)
            size += len(value)
        # Where other bytes stand in place of the fixed ones, nothing was removed.
        return rest if size + len(rest) == len(data) else b""

    return find_text

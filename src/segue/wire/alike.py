"""Deltas that differ in one text and nothing that matters: a run of them is read by its texts alone, all at once.

Most of a stream are such runs. The first of a run is read in full, and shows what the others look like; what does not
look so is read in full again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

__all__ = ["Alike"]

Tell = Callable[[str], object]

_decode = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PROBE = "\u00b6probe"
_END = b"\n\n"
# What may differ from delta to delta and says nothing: their number, padding, and counts of which the last is told.
_VARIES = re.compile(
    rb'("(?:sequence_number|[a-zA-Z]+TokenCount)":\s*)\d+|("(?:obfuscation|p)":\s*)"[^"\\]*"', re.DOTALL
)
_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError)


class Alike:
    """`head` and `tail` stand around the text in each payload; `lead` is what an event puts before a payload.

    `last` is the last payload that was taken, where they differ in more than their text.
    """

    __slots__ = (
        *("_close", "_event", "_head", "_lead", "_line", "_lines", "_payload"),
        *("_seam", "_start", "_stop", "_tail", "_tell", "last"),
    )

    def __init__(self, lead: bytes, head: bytes, tail: bytes, tell: Tell) -> None:
        self._tell = tell
        self._head, self._tail = head, tail
        self._lead = lead + head
        self._close = tail + _END
        self._seam = self._close + self._lead
        self._lines = self._lead.count(b"\n") + len(_END)
        self._line = self._lines - len(_END)
        self._start, self._stop = len(self._lead.rpartition(b"\n")[2]), -len(tail) or None
        self._payload = self._event = None
        self.last = b""
        if _VARIES.search(head) or _VARIES.search(tail):
            payload = _loose(head) + b"(" + _STRING.pattern + b")" + _loose(tail)
            self._payload = re.compile(payload, re.DOTALL)
            self._event = re.compile(re.escape(lead) + payload + _END, re.DOTALL)

    @staticmethod
    def varies(payload: bytes) -> bool:
        """Whether there is more in a payload than its text that differs from one to the next."""
        return _VARIES.search(payload) is not None

    @classmethod
    def of(cls, payload: bytes, name: str | None, key: str, text: str, tell: Tell) -> Alike | None:
        """Those that are like this payload but for the text under this key; None if that can't be told for sure."""
        place = payload.rfind(b'"%b"' % key.encode())
        found = _STRING.search(payload, payload.find(b":", place)) if place >= 0 else None
        if found is None:
            return None
        head, tail = payload[: found.start()], payload[found.end() :]
        try:
            if _decode_text(found[0]) != text:
                return None
            probe = _decode(head + b'"%b"' % _PROBE.encode() + tail)
        except _BROKEN:
            return None
        if _swapped(probe, key, _PROBE, text) != _decode(payload):
            return None
        lead = b"data: " if name is None else b"event: %b\ndata: " % name.encode()
        return cls(lead, head, tail, tell)

    def take(self, payload: bytes) -> bool:
        """Whether one payload is alike, and was told."""
        if self._payload is not None:
            found = self._payload.fullmatch(payload)
            written = None if found is None else found[1]
        elif payload.startswith(self._head) and payload.endswith(self._tail):
            written = payload[len(self._head) : len(payload) - len(self._tail)]
        else:
            written = None
        if written is None:
            return False
        try:
            text = _decode_text(written)
        except _BROKEN:
            return False
        self.last = payload
        self._tell(text)
        return True

    def run(self, stream: bytes) -> bytes:
        """Tells the events that a stream begins with, as far as they are alike, and gives the rest of it."""
        written, rest = self._apart(stream) if self._event is None else self._apart_loosely(stream)
        if not written:
            return stream
        try:
            texts = _decode_texts(b"[%b]" % b",".join(written))
        except _BROKEN:
            return stream
        if len(texts) != len(written):
            return stream
        self._tell("".join(texts))
        return rest

    def _apart(self, stream: bytes) -> tuple[list[bytes], bytes]:
        """The texts as they are written, and the rest. All events are taken to be alike, and then it is seen if so."""
        end = stream.rfind(_END)
        told = stream[: end + len(_END)]
        lines = told.split(b"\n")[self._line : -1 : self._lines]
        written = [line[self._start : self._stop] for line in lines]
        if end < 0 or told != self._lead + self._seam.join(written) + self._close:
            return [], stream
        return written, stream[len(told) :]

    def _apart_loosely(self, stream: bytes) -> tuple[list[bytes], bytes]:
        parts = self._event.split(stream) if self._event is not None else []
        between, written = parts[:-1:2], parts[1::2]
        if any(between) or not written:
            return [], stream
        rest = parts[-1]
        told = stream[: len(stream) - len(rest) - len(_END)]
        self.last = told[told.rfind(_END) + 1 :].partition(b"data: ")[2]
        return written, rest


def _loose(written: bytes) -> bytes:
    """A pattern of these bytes in which what may differ does."""
    made: list[bytes] = []
    position = 0
    for found in _VARIES.finditer(written):
        number, padding = found.groups()
        made += [re.escape(written[position : found.start()]), re.escape(number or padding)]
        made.append(rb"\d+" if number else rb'"[^"\\]*"')
        position = found.end()
    return b"".join([*made, re.escape(written[position:])])


def _swapped(value: Any, key: str, text: str, other: str) -> Any:
    """The value with this text under this key exchanged."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: other if name == key and member == text else _swapped(member, key, text, other)
            for name, member in members.items()
        }
    if isinstance(value, list):
        return [_swapped(member, key, text, other) for member in cast("list[Any]", value)]
    return value

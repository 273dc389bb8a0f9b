"""The payloads in the bytes of a response, and edits of them that keep the framing and the chunk boundaries."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

_DATA_FIELD = re.compile(rb"(?m)^data: ?")
_LINE = re.compile(rb"(?:data: ?)?([^\r\n]+)")
_PRELUDE = struct.Struct("!III")
_LENGTHS = struct.Struct("!II")
_CHECKSUM = struct.Struct("!I")


class Payload(NamedTuple):
    """The payload of an event: JSON or text. `start` and `end` are the place of the whole event, or of its text.

    `headers` are those of an AWS message.
    """

    data: bytes
    start: int
    end: int
    headers: bytes | None = None

    def encode(self, data: bytes) -> bytes:
        """Return the event with other data."""
        if self.headers is None:
            return data
        lengths = _LENGTHS.pack(_PRELUDE.size + len(self.headers) + len(data) + _CHECKSUM.size, len(self.headers))
        message = lengths + _CHECKSUM.pack(zlib.crc32(lengths)) + self.headers + data
        return message + _CHECKSUM.pack(zlib.crc32(message))


def find_payloads(data: bytes) -> list[Payload]:
    """Return the payloads of server-sent events or AWS messages; the whole of any other body is one."""
    if data[:1] == b"\0":
        return list(_find_messages(data))
    if _DATA_FIELD.search(data) is not None and data.lstrip()[:1] not in (b"{", b"["):
        return [Payload(match[1], *match.span(1)) for match in _LINE.finditer(data)]
    return [Payload(data, 0, len(data))] if data else []


def _find_messages(data: bytes) -> Iterator[Payload]:
    start = 0
    while len(data) - start >= _PRELUDE.size:
        length, header_length, _ = _PRELUDE.unpack_from(data, start)
        end, payload_start = start + length, start + _PRELUDE.size + header_length
        payload_end = end - _CHECKSUM.size
        if end > len(data) or payload_start > payload_end:
            break
        headers = data[start + _PRELUDE.size : payload_start]
        yield Payload(data[payload_start:payload_end], start, end, headers)
        start = end
    if start < len(data):
        # A message that was cut off, or no message.
        yield Payload(data[start:], start, len(data))


def join_edits(data: bytes, edits: Sequence[tuple[Payload, bytes]], lengths: Sequence[int]) -> list[bytes]:
    """Return the chunks of these lengths with other payloads. A boundary in a changed event keeps its offset there."""
    output = bytearray()
    boundaries = [0]
    ends = iter(accumulate(lengths))
    next_end = next(ends, None)
    position = 0
    for payload, clean in [*edits, (Payload(b"", len(data), len(data)), b"")]:
        output += data[position : payload.start]
        while next_end is not None and next_end <= payload.start:
            boundaries.append(len(output) - (payload.start - next_end))
            next_end = next(ends, None)
        new = payload.encode(clean)
        while next_end is not None and next_end < payload.end:
            boundaries.append(len(output) + min(next_end - payload.start, len(new)))
            next_end = next(ends, None)
        output += new
        position = payload.end
    whole = bytes(output)
    return [whole[start:end] for start, end in pairwise(boundaries)]

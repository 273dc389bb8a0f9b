"""AWS event streams: messages with headers and checksums, of which a stream of Converse consists."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from segue.errors import RemoteProtocolError
from segue.wire.stream.delta_template import DeltaTemplate, Frame, FrameTemplate, TextFinder

_PRELUDE = struct.Struct(">III")
_CHECKSUM_SIZE = 4
_pack_checksum = struct.Struct(">I").pack
_MESSAGE_LIMIT = 1 << 25
# The length of a header value by its type; strings and byte arrays carry their own length.
_HEADER_VALUE_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES, _STRING = 6, 7
EXCEPTION_PREFIX = "exception:"
_HEADER_CACHE_SIZE = 32
_LEAD_CACHE_SIZE = 256
# The headers of an event are shorter; longer ones would take much memory.
_CACHED_HEADERS_SIZE = 256


class _AwsTemplate(FrameTemplate):
    """Messages with the same headers: length and checksums are verified for each."""

    def __init__(self, headers: bytes) -> None:
        self._layouts = _find_layouts(headers) if len(headers) <= _CACHED_HEADERS_SIZE else _Layouts(headers)

    def build_finder(self, template: DeltaTemplate) -> TextFinder:
        finder = template.build_finder(b"", b"")
        find_text = finder.find_text or finder.find
        layouts, crc32 = self._layouts, zlib.crc32
        least_size = layouts.overhead

        def find_in_message(message: bytes) -> bytes:
            size = len(message)
            if size < least_size:
                return b""
            unpack, lead, lead_checksum = layouts[size]
            actual_lead, payload, checksum = unpack(message)
            is_valid = actual_lead == lead and crc32(payload, lead_checksum) == checksum
            return find_text(payload) if is_valid else b""

        return TextFinder(find_in_message)


_Layout: TypeAlias = tuple[Callable[[bytes], tuple[bytes, bytes, int]], bytes, int]
"""Splits a message into the bytes before its payload, the payload and its checksum. Then the bytes expected before the
payload, and their checksum."""


class _Layouts(dict[int, _Layout]):
    """The layouts of messages with these headers, by the size of the message."""

    def __init__(self, headers: bytes) -> None:
        super().__init__()
        self._headers = headers
        self.overhead = _PRELUDE.size + len(headers) + _CHECKSUM_SIZE

    def __missing__(self, size: int) -> _Layout:
        if len(self) >= _LEAD_CACHE_SIZE:
            self.clear()
        payload_size = size - self.overhead
        lead = _encode_lead(self._headers, payload_size)
        unpack = struct.Struct(f">{len(lead)}s{payload_size}sI").unpack
        self[size] = found = unpack, lead, zlib.crc32(lead)
        return found


_find_layouts = lru_cache(maxsize=8)(_Layouts)


class AwsDecoder:
    """AWS event-stream messages with headers and checksums. The name of an exception begins with `exception:`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = _PRELUDE.size
        # Header blocks repeat, so parsed ones are cached by their bytes.
        self._header_cache: dict[bytes, dict[str, str]] = {}

    def feed(self, data: bytes) -> list[Frame]:
        self._buffer += data
        if len(self._buffer) < self._needed:
            return []
        buffer = bytes(self._buffer)
        frames: list[Frame] = []
        position = 0
        self._needed = _PRELUDE.size
        while len(buffer) - position >= _PRELUDE.size:
            total, headers, check = _PRELUDE.unpack_from(buffer, position)
            if zlib.crc32(buffer[position : position + 8]) != check or not 16 + headers <= total <= _MESSAGE_LIMIT:
                raise RemoteProtocolError("not an AWS event stream: invalid message prelude")
            if len(buffer) - position < total:
                self._needed = total
                break
            frames.append(self._decode_message(buffer[position : position + total], headers))
            position += total
        del self._buffer[:position]
        return frames

    @property
    def is_between_frames(self) -> bool:
        return not self._buffer

    def frame_template(self, read: bytes, payload: bytes) -> FrameTemplate | None:
        return _AwsTemplate(read[_PRELUDE.size : len(read) - len(payload) - _CHECKSUM_SIZE])

    def close(self) -> list[Frame]:
        return []

    def _decode_message(self, message: bytes, headers: int) -> Frame:
        if zlib.crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
            raise RemoteProtocolError("not an AWS event stream: message checksum mismatch")
        start = _PRELUDE.size
        headers_data, payload = message[start : start + headers], message[start + headers : -4]
        fields = self._header_cache.get(headers_data)
        if fields is None:
            fields = _parse_headers(headers_data)
            if len(self._header_cache) < _HEADER_CACHE_SIZE:
                self._header_cache[headers_data] = fields
        kind = fields.get(":message-type")
        if kind == "event":
            return fields.get(":event-type"), payload
        if not payload and ":error-message" in fields:
            payload = json.dumps({"message": fields[":error-message"]}).encode()
        return EXCEPTION_PREFIX + (
            fields.get(":exception-type") or fields.get(":error-code") or kind or "error"
        ), payload


def _parse_headers(data: bytes) -> dict[str, str]:
    """Return the headers of type string."""
    fields: dict[str, str] = {}
    position = 0
    try:
        while position < len(data):
            size = data[position]
            name = data[position + 1 : position + 1 + size].decode()
            position += 1 + size
            kind = data[position]
            position += 1
            if kind in (_BYTES, _STRING):
                length = int.from_bytes(data[position : position + 2], "big")
                value = data[position + 2 : position + 2 + length]
                position += 2 + length
                if kind == _STRING:
                    fields[name] = value.decode()
            else:
                position += _HEADER_VALUE_SIZES[kind]
    except (IndexError, KeyError, UnicodeDecodeError):
        raise RemoteProtocolError("not an AWS event stream: invalid message headers") from None
    return fields


class AwsMessageEncoder:
    """Encodes AWS event-stream messages with these headers; `event_type` becomes `:event-type`."""

    def __init__(self, **headers: str) -> None:
        self._headers = b"".join(
            bytes([len(name)]) + name + bytes([_STRING]) + len(value).to_bytes(2, "big") + value
            for name, value in ((f":{key.replace('_', '-')}".encode(), text.encode()) for key, text in headers.items())
        )
        self._leads = _Leads(self._headers)

    def __call__(self, payload: bytes) -> bytes:
        lead, checksum = self._leads[len(payload)]
        return lead + payload + _pack_checksum(zlib.crc32(payload, checksum))

    def encode_text(self, head: bytes, tail: bytes) -> Callable[[str, bytes], bytes]:
        """Return a function that encodes messages with an encoded text between `head` and `tail`."""
        leads, size, crc32, pack = _Leads(self._headers, head), len(head) + len(tail), zlib.crc32, _pack_checksum

        def encode(_text: str, encoded: bytes) -> bytes:
            lead, checksum = leads[size + len(encoded)]
            rest = encoded + tail
            return lead + rest + pack(crc32(rest, checksum))

        return encode


class _Leads(dict[int, tuple[bytes, int]]):
    """By the size of a payload: the bytes of a message before it and its `head`, and their checksum."""

    def __init__(self, headers: bytes, head: bytes = b"") -> None:
        super().__init__()
        self._headers, self._head = headers, head

    def __missing__(self, size: int) -> tuple[bytes, int]:
        if len(self) >= _LEAD_CACHE_SIZE:
            self.clear()
        lead = _encode_lead(self._headers, size) + self._head
        self[size] = found = lead, zlib.crc32(lead)
        return found


def _encode_lead(headers: bytes, payload_size: int) -> bytes:
    """Return the bytes of a message before its payload."""
    total = _PRELUDE.size + len(headers) + payload_size + _CHECKSUM_SIZE
    lengths = struct.pack(">II", total, len(headers))
    return lengths + _pack_checksum(zlib.crc32(lengths)) + headers


def encode_aws_message(payload: bytes, **headers: str) -> bytes:
    """Encode one AWS event-stream message."""
    return AwsMessageEncoder(**headers)(payload)

"""Splits bytes into frames: server-sent events, concatenated or listed JSON values, and AWS event streams.

`FrameDecoder` detects the framing from the first bytes, so it also decodes a server that answers in another framing
than requested. Bytes may be split anywhere; the cost is linear in the bytes fed.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Protocol, cast

from segue.errors import RemoteProtocolError
from segue.wire.stream.aws_events import AwsDecoder
from segue.wire.stream.delta_template import Frame, FrameTemplate

_BOM = b"\xef\xbb\xbf"
_HTTP_PREFIX = b"HTTP/"
_HTTP_HEADER_LIMIT = 1 << 16
_LF = 0x0A
# No API has this many event names.
_NAME_CACHE_SIZE = 256
_PARTIAL_LIMIT = 1 << 14


class _Decoder(Protocol):
    @property
    def is_between_frames(self) -> bool: ...
    def feed(self, data: bytes) -> list[Frame]: ...
    def close(self) -> list[Frame]: ...
    def frame_template(self, read: bytes, payload: bytes) -> FrameTemplate | None: ...


class FrameDecoder:
    """Decodes any framing. HTTP headers as recorded by `curl -i` may precede it."""

    def __init__(self) -> None:
        self._framing: _Decoder | None = None
        self._head = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        if self._framing is not None:
            return self._framing.feed(data)
        self._head += data
        if self._head.startswith(_HTTP_PREFIX) and b"\n" not in data and len(self._head) <= _HTTP_HEADER_LIMIT:
            return []
        return self._detect_framing(ended=False)

    def take_partial(self) -> bytes | None:
        """Remove and return the incomplete server-sent event in the buffer, to be fed again with what follows.

        None in another framing, and where the buffer is so long that feeding it again would be slow.
        """
        framing = self._framing
        return framing.take_partial() if isinstance(framing, _SseDecoder) else None

    def frame_template(self, read: bytes, name: str | None) -> FrameTemplate | None:
        """Return the template of reads with one frame of this name, if this was one and nothing else is buffered."""
        if self._framing is None or not self._framing.is_between_frames:
            return None
        decoder = type(self._framing)()
        try:
            frames = decoder.feed(read)
        except RemoteProtocolError:
            # The read is not the whole of a frame.
            return None
        if len(frames) != 1 or frames[0][0] != name or not decoder.is_between_frames:
            return None
        return decoder.frame_template(read, frames[0][1])

    def close(self) -> list[Frame]:
        """Return the last frame, if it is complete except for its terminator."""
        frames = self._detect_framing(ended=True) if self._framing is None else []
        return frames + self._framing.close() if self._framing is not None else frames

    def _detect_framing(self, *, ended: bool) -> list[Frame]:
        data = _skip_http_headers(bytes(self._head), ended=ended)
        if data is None:
            return []
        body = data.removeprefix(_BOM).lstrip(b" \t\r\n")
        if not body and data:
            # Blank lines are keep-alives; keep only one.
            self._head = bytearray(b"\n")
        if not body or (not ended and (_BOM.startswith(body) or _HTTP_PREFIX.startswith(body))):
            return []
        self._framing = _JsonDecoder() if body[:1] in b"{[" else AwsDecoder() if body[0] == 0 else _SseDecoder()
        self._head = bytearray()
        return self._framing.feed(body)


def _skip_http_headers(data: bytes, *, ended: bool) -> bytes | None:
    """Return the bytes after recorded HTTP headers, of one response or several; None while they are incomplete."""
    while data.startswith(_HTTP_PREFIX):
        match = re.search(rb"\r?\n\r?\n", data)
        if match is None:
            if len(data) > _HTTP_HEADER_LIMIT or ended:
                raise RemoteProtocolError("not a stream: HTTP headers without an end")
            return None
        data = data[match.end() :]
    return data


# -------------------------------------------------------------------------------------------------- server-sent events


_COMMENT_OR_BLANK = b":\n"
_COMMENTS = re.compile(rb"(?:(?::[^\n]*+)?+\n)*+")
_BLANK_LINES = re.compile(rb"\n{3,}+")
# An event with one line of data, with or without a name; the bytes around each of the two.
_USUAL_EVENT = re.compile(rb"(?:event: ([^\n]*+)\n)?+data: ([^\n]*+)\n(?:\n|\Z)")
_LABEL_SIZE = len(b"event: \n")
# All data lines up to another line, all comments up to another line, or one other line.
_LINES = re.compile(rb"data:[^\n]*+(?:\ndata:[^\n]*+)*+|(?::[^\n]*+\n?+)++|[^\n]++")


class _SseDecoder:
    """Lines end with LF, CR or CRLF; an event ends with an empty line, or with the stream.

    Some services send an error between the events as JSON alone, without `data:`; its payload is a frame too.
    """

    def __init__(self) -> None:
        # A buffer and not a list of chunks, each of which would take the memory of an object.
        self._buffer = bytearray()
        self._after_cr = False
        self._names: dict[bytes, str] = {}
        self._bare_json: _JsonDecoder | None = None
        """Decoder of a JSON value outside of the events that is not complete yet."""

    def feed(self, data: bytes) -> list[Frame]:
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not data:
            return []
        buffer = self._buffer
        ends = b"\n\n" in data or (data[0] == _LF and bool(buffer) and buffer[-1] == _LF)
        if not buffer and ends:
            # Most chunks are whole events.
            events, _, rest = data.rpartition(b"\n\n")
            buffer += rest
            return self._split_events(events + b"\n")
        buffer += data
        if not ends:
            if buffer[0] in _COMMENT_OR_BLANK and b"\n" in data:
                self._drop_comments()
            return []
        end = buffer.rfind(b"\n\n")
        events = bytes(buffer[: end + 1])
        del buffer[: end + 2]
        return self._split_events(events)

    def _drop_comments(self) -> None:
        """Drop keep-alive comments and blank lines before an event."""
        comments = _COMMENTS.match(self._buffer)
        if comments is not None:
            end = comments.end()
            del comments
            del self._buffer[:end]

    @property
    def is_between_frames(self) -> bool:
        return not self._buffer and not self._after_cr and self._bare_json is None

    def frame_template(self, read: bytes, payload: bytes) -> FrameTemplate | None:
        return FrameTemplate.from_read(read, payload)

    def take_partial(self) -> bytes | None:
        if self._after_cr or self._bare_json is not None or len(self._buffer) > _PARTIAL_LIMIT:
            return None
        return self._take_buffer()

    def _take_buffer(self) -> bytes:
        buffered = bytes(self._buffer)
        self._buffer.clear()
        return buffered

    def close(self) -> list[Frame]:
        return self._split_events(self._take_buffer())

    def _split_events(self, events: bytes) -> list[Frame]:
        """Return the frames of complete events, the last one without its empty line.

        The two usual layouts are split without a loop over lines.
        """
        if b"\n\n\n" in events:
            events = _BLANK_LINES.sub(b"\n\n", events)
        found: list[tuple[bytes, bytes]] = [] if self._bare_json is not None else _USUAL_EVENT.findall(events)
        names = [name for name, _ in found]
        label_count = 2 * len(names) - names.count(b"")
        if len(b"".join(chain.from_iterable(found))) + label_count * _LABEL_SIZE == len(events) + 1:
            return [(self._cached_name(name) if name else None, payload) for name, payload in found]
        return [frame for event in events.split(b"\n\n") for frame in self._parse_event_lines(event)]

    def _parse_event_lines(self, event: bytes) -> list[Frame]:
        """Return the frame of an event with any layout (several lines of data, comments, other fields), and errors."""
        name: str | None = None
        payload: bytes | bytearray | None = None
        errors: list[Frame] = []
        for match in _LINES.finditer(event):
            lines = match[0]
            if lines.startswith(b"data:"):
                data = _join_data_lines(lines)
                # A buffer and not a list of lines, each of which would take the memory of an object.
                payload = data if payload is None else _append_line(payload, data)
                self._bare_json = None
            elif lines.startswith(b"event:"):
                name = _decode_name(lines[6:])
                self._bare_json = None
            elif not lines.startswith(b":"):
                errors += self._parse_bare_line(lines)
        return errors if payload is None else [(name, bytes(payload)), *errors]

    def _parse_bare_line(self, line: bytes) -> list[Frame]:
        """Return the errors that a line outside of the events completes."""
        if self._bare_json is None:
            line = line.lstrip(b" \t")
            if line[:1] not in (b"{", b"["):
                return []
            self._bare_json = _JsonDecoder()
        values = self._bare_json.feed(line + b"\n")
        if not self._bare_json.is_inside_value:
            self._bare_json = None
        return [value for value in values if _has_error(value[1])]

    def _cached_name(self, encoded: bytes) -> str:
        name = self._names.get(encoded)
        if name is None:
            name = _decode_name(encoded)
            if len(self._names) < _NAME_CACHE_SIZE:
                self._names[encoded] = name
        return name


def _has_error(payload: bytes) -> bool:
    """Return whether a JSON value is an error, or a list with one."""
    try:
        value: object = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    objects = [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]
    return any(item.get("error") or "error" in (item.get("type"), item.get("object")) for item in objects)


def _join_data_lines(lines: bytes) -> bytes:
    """Return the values of data lines, without one blank after the colon."""
    return (b"\n" + lines).replace(b"\ndata:", b"\n").replace(b"\n ", b"\n")[1:]


def _append_line(payload: bytes | bytearray, line: bytes) -> bytearray:
    buffer = payload if isinstance(payload, bytearray) else bytearray(payload)
    buffer += b"\n"
    buffer += line
    return buffer


def _decode_name(encoded: bytes) -> str:
    return encoded.strip().decode("utf-8", "replace")


def encode_sse(payload: bytes, name: str | None = None) -> bytes:
    """Encode the payload as one server-sent event."""
    return b"data: %b\n\n" % payload if name is None else b"event: %b\ndata: %b\n\n" % (name.encode(), payload)


# ---------------------------------------------------------------------------------------------------------- JSON values

_STRUCTURAL_CHARACTER = re.compile(rb'["{}\[\]]')
_STRING_BODY = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


class _JsonDecoder:
    """JSON values in sequence (one per line or not), or as the items of one list."""

    def __init__(self) -> None:
        self._partial = bytearray()
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._is_list = False
        self._started = False

    @property
    def is_inside_value(self) -> bool:
        return self._depth > 0

    @property
    def is_between_frames(self) -> bool:
        return self._depth == 0 and not self._in_string

    def frame_template(self, read: bytes, payload: bytes) -> FrameTemplate | None:
        return FrameTemplate.from_read(read, payload)

    def feed(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        start = position = 0
        if not self._started and data:
            self._started = True
            self._is_list = data[:1] == b"["
            start = position = int(self._is_list)
        while position < len(data):
            if self._in_string:
                position = self._skip_string(data, position)
                continue
            match = _STRUCTURAL_CHARACTER.search(data, position)
            if match is None:
                break
            position = match.end()
            character = match[0]
            if character == b'"':
                self._in_string = True
            elif character in b"{[":
                if self._depth == 0:
                    start = match.start()
                    self._partial.clear()
                self._depth += 1
            elif self._depth == 0:
                # The end of the list, or a stray bracket.
                continue
            else:
                self._depth -= 1
                if self._depth == 0:
                    frames.append((None, bytes(self._partial) + data[start:position]))
                    self._partial.clear()
        if self._depth and start < len(data):
            self._partial += data[start:]
        return frames

    def _skip_string(self, data: bytes, position: int) -> int:
        if self._escaped:
            self._escaped = False
            position += 1
        match = _STRING_BODY.match(data, position)
        stop = match.end() if match is not None else position
        if stop < len(data) and data[stop : stop + 1] == b'"':
            self._in_string = False
            return stop + 1
        self._escaped = stop < len(data)
        return len(data)

    def close(self) -> list[Frame]:
        """Discard an incomplete value."""
        return []

"""`RequestReader`: the bytes of one client's connection as requests of strict HTTP/1.1, without IO.

What two parsers could read differently is refused: both framing headers, repeated or odd lengths, line ends other than
CRLF, folded lines, characters that no header has. Accepted requests are written again in one plain form, which every
parser reads alike. The result is the same however the bytes are split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
_REQUEST_LINE = re.compile(rb"([A-Z]+) ([\x21\x22\x24-\x7e]+) HTTP/([0-9]\.[0-9])")
_URL = re.compile(rb"https?://([^/?@]+)(/[^?]*)?(\?.*)?", re.IGNORECASE)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile(rb"[0-9]{1,19}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_MAX_CHUNK_LINE = 1024
_CHUNKS_REASON = "the body's chunks are invalid"


class RefusalError(Exception):
    """Why a request is refused. Nothing of the connection is read after it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class RequestReader:
    """Reads the requests of a connection one after the other, each in pieces: the head, then parts of the body.

    `part` is what the next piece belongs to: the head of a request, or the body of the one whose head was read.
    """

    def __init__(self, max_head: int, max_body: int | None = None) -> None:
        self.part: Literal["head", "body"] = "head"
        self._max_head = max_head
        self._max_body = max_body
        self._buffer = bytearray()
        self._searched = 0
        self._lines: list[bytes] = []
        self._line_bytes = 0
        self._body_bytes = 0
        self._left: int | None = None
        """The bytes that are left of a body with a length, or of a chunk; None before the size of a chunk."""
        self._is_chunked = False
        self._is_trailer = False

    @property
    def has_data(self) -> bool:
        """Whether there are bytes that belong to no piece yet."""
        return bool(self._buffer or self._lines)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def read(self) -> bytes | None:
        """Return the next piece; None if more bytes are needed. Raise `RefusalError` for all that is not strict."""
        if self.part == "head":
            return self._read_head()
        return self._read_chunks() if self._is_chunked else self._read_rest()

    # ------------------------------------------------------------------------------------------------------------- head

    def _read_head(self) -> bytes | None:
        if self._buffer and not self._lines and not self._buffer[:1].isupper():
            raise RefusalError(400, "illegal request line")
        while (line := self._take_line(self._max_head)) is not None:
            if not line and self._lines:
                lines, self._lines, self._line_bytes = self._lines, [], 0
                return self._open_body(lines[0], lines[1:])
            if self._lines:
                _check_header(line)
            else:
                _check_request_line(line)
            self._lines.append(line)
        return None

    def _take_line(self, limit: int) -> bytes | None:
        """Remove a line from the buffer and return it without its end; None if it is not complete."""
        end = self._buffer.find(b"\n", self._searched)
        size = self._line_bytes + (end + 1 if end >= 0 else len(self._buffer))
        if size > limit:
            raise RefusalError(431, f"the request line and headers have more than {self._max_head:,} bytes")
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self._searched = 0
        self._line_bytes = size
        if line[-2:-1] != b"\r" or b"\r" in line[:-2]:
            raise RefusalError(400, "a line has a bare CR or LF; CRLF is required")
        return line[:-2]

    def _open_body(self, request_line: bytes, lines: Iterable[bytes]) -> bytes:
        """Find out where the body ends, and return the head."""
        method, target, version = request_line.split(b" ")
        is_old = version == b"HTTP/1.0"
        headers = [(name.lower(), value.strip(b" \t")) for name, _, value in (line.partition(b":") for line in lines)]
        self._open_framing(headers, is_old=is_old)
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) > 1 or not (hosts or is_old):
            raise RefusalError(400, "multiple Host headers" if hosts else "the Host header is missing")
        head = [b"%b %b %b" % (method, _origin_form(method, target, hosts), version)]
        for name, value in headers:
            if name == b"connection":
                # A parser that upgrades would read what follows as another protocol.
                tokens = [token.strip() for token in value.split(b",")]
                value = b", ".join(token for token in tokens if token and token.lower() != b"upgrade")
            if (name == b"connection" and not value) or (name == b"expect" and is_old):
                continue
            if name == b"content-length":
                value = b"%d" % int(value)
            head.append(b"%b: %b" % (name, value))
        return b"\r\n".join((*head, b"", b""))

    def _open_framing(self, headers: Iterable[tuple[bytes, bytes]], *, is_old: bool) -> None:
        lengths = [value for name, value in headers if name == b"content-length"]
        encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if lengths and encodings:
            raise RefusalError(400, "Content-Length and Transfer-Encoding can't be sent together")
        if len(lengths) > 1:
            raise RefusalError(400, "Content-Length is sent more than once")
        if lengths and not _LENGTH.fullmatch(lengths[0]):
            raise RefusalError(400, "Content-Length is not a number of bytes, written in digits")
        if encodings and is_old:
            raise RefusalError(400, "Transfer-Encoding is not part of HTTP/1.0")
        if encodings and encodings != [b"chunked"]:
            raise RefusalError(501, "the only supported Transfer-Encoding is chunked")
        self._is_chunked, self._is_trailer = bool(encodings), False
        self._left = None if encodings else int(lengths[0]) if lengths else 0
        self._body_bytes = 0
        self._count_body(self._left or 0)
        self.part = "body" if self._left != 0 else "head"

    def _count_body(self, size: int) -> None:
        self._body_bytes += size
        if self._max_body is not None and self._body_bytes > self._max_body:
            raise RefusalError(413, f"the body has more than {self._max_body:,} bytes")

    # ------------------------------------------------------------------------------------------------------------- body

    def _read_rest(self) -> bytes | None:
        data = self._take(self._left or 0)
        if not data:
            return None
        if not self._left:
            self._end_body()
        return data

    def _take(self, size: int) -> bytes:
        if size >= len(self._buffer):
            data, self._buffer = bytes(self._buffer), bytearray()
        else:
            data = bytes(self._buffer[:size])
            del self._buffer[:size]
        self._left = size - len(data)
        return data

    def _read_chunks(self) -> bytes | None:
        """Return all chunks that have arrived as one, without extensions; the last one without trailers."""
        found: list[bytes] = []
        while True:
            if self._left:
                data = self._take(self._left)
                self._count_body(len(data))
                found.append(data)
                if self._left:
                    break
            try:
                line = self._take_line(self._max_head if self._is_trailer else _MAX_CHUNK_LINE)
                if line is None:
                    break
                self._read_chunk_line(line)
            except RefusalError as refusal:
                raise RefusalError(400, f"{_CHUNKS_REASON}: {refusal.reason}") from None
            if self.part == "head":
                break
        data = b"".join(found)
        chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        return (chunk if self.part == "body" else chunk + b"0\r\n\r\n") or None

    def _read_chunk_line(self, line: bytes) -> None:
        if self._is_trailer:
            if line:
                _check_header(line)
            else:
                self._end_body()
            return
        self._line_bytes = 0
        if self._left == 0:
            if line:
                raise RefusalError(400, "a chunk is longer than its size")
            self._left = None
            return
        size = _CHUNK.fullmatch(line)
        if size is None:
            raise RefusalError(400, "illegal chunk size")
        self._left = int(size[1], 16)
        self._is_trailer = self._left == 0

    def _end_body(self) -> None:
        self.part, self._left, self._line_bytes = "head", None, 0


def _check_request_line(line: bytes) -> None:
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise RefusalError(400, "illegal request line")
    if found[3] not in (b"1.1", b"1.0"):
        raise RefusalError(505, "the version is neither HTTP/1.0 nor HTTP/1.1")
    if found[1] not in _METHODS:
        raise RefusalError(501, f"the method {found[1].decode()[:40]} is not supported")


def _origin_form(method: bytes, target: bytes, hosts: list[bytes]) -> bytes:
    """Return the path and query of a target. A whole URL is one only for the host that the request is sent to."""
    if target.startswith(b"/") or (target == b"*" and method == b"OPTIONS"):
        return target
    url = _URL.fullmatch(target)
    if url is None or [url[1].lower()] != [host.lower() for host in hosts]:
        raise RefusalError(400, "the target is neither a path nor a URL with the host of the Host header")
    return (url[2] or b"/") + (url[3] or b"")


def _check_header(line: bytes) -> None:
    if line[:1] in (b" ", b"\t"):
        raise RefusalError(400, "a header is folded over several lines, or begins with a space")
    name, colon, value = line.partition(b":")
    if not colon or name != name.rstrip(b" \t"):
        raise RefusalError(400, "a header line has no colon, or a space before it")
    if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
        raise RefusalError(400, "illegal header line")

"""One client's connection to the emulator: strict HTTP/1.1, with limits on the size and the time of a request.

Requests that two parsers could read differently are refused: both framing headers, repeated or odd lengths, line ends
other than CRLF, folded lines. A refusal is an HTTP error with a reason in plain words; then the connection closes.
"""

from __future__ import annotations

import asyncio
import http
import logging
import re
import socket
from collections.abc import Sequence
from typing import Any, Literal, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_HEAD_BYTES = 2**16
"""The maximum size of request line and headers."""
MAX_BODY_BYTES = 2**28
"""The maximum size of a body that is read. The limits of the providers are smaller; their error is sent at its end."""
HEAD_SECONDS = 30.0
BODY_SECONDS = 300.0
LINGER_SECONDS = 2.0
"""The time a refused client has to read the error before the connection is reset."""

_TOO_LARGE = f"the body has more than {MAX_BODY_BYTES:,} bytes"
_DIGITS = re.compile(rb"[0-9]{1,19}")
_BAD_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)")

# What segue logs is printed only if the program configures logging.
logging.getLogger("segue").addHandler(logging.NullHandler())
# Malformed requests and disconnected clients are not logged.
_QUIET_LOGGER = logging.getLogger("segue.emulator")
_QUIET_LOGGER.setLevel(logging.CRITICAL + 1)


def check_head(data: bytes) -> None:
    """Raise `h11.RemoteProtocolError` if the bytes received so far can't begin a request that is accepted.

    h11 checks the rest: the request line, the names and characters of headers, Host.
    """
    if data[:1] <= b" " and data:
        raise _refusal(400, "illegal request line")
    end = data.find(b"\r\n\r\n")
    head = data if end < 0 else data[:end]
    if len(head) > MAX_HEAD_BYTES:
        raise _refusal(431, f"the request line and headers have more than {MAX_HEAD_BYTES:,} bytes")
    if _BAD_LINE_END.search(head):
        raise _refusal(400, "a line ends with a bare CR or LF; CRLF is required")
    request_line, *lines = (head if end >= 0 else head[: head.rfind(b"\r\n") + 2]).split(b"\r\n")
    if any(line[:1] in (b" ", b"\t") for line in lines):
        raise _refusal(400, "a header is folded over several lines, or begins with a space")
    headers = [line.partition(b":") for line in lines if line]
    if any(not colon or name != name.rstrip(b" \t") for name, colon, _ in headers):
        raise _refusal(400, "a header line has no colon, or a space before it")
    if end < 0:
        # The other refusals have several statuses: a later line must not change which one is sent.
        return
    if b"HTTP/" in request_line and not request_line.endswith((b" HTTP/1.1", b" HTTP/1.0")):
        raise _refusal(505, "the only supported versions are HTTP/1.1 and HTTP/1.0")
    _check_framing(
        [value.strip(b" \t") for name, _, value in headers if name.lower() == b"content-length"],
        [value.strip(b" \t") for name, _, value in headers if name.lower() == b"transfer-encoding"],
        is_old=request_line.endswith(b"HTTP/1.0"),
    )


def _check_framing(lengths: Sequence[bytes], encodings: Sequence[bytes], *, is_old: bool) -> None:
    if lengths and encodings:
        raise _refusal(400, "Content-Length and Transfer-Encoding can't be sent together")
    if len(lengths) > 1:
        raise _refusal(400, "Content-Length is sent more than once")
    if lengths and not _DIGITS.fullmatch(lengths[0]):
        raise _refusal(400, "Content-Length is not a number of bytes, written in digits")
    if lengths and int(lengths[0]) > MAX_BODY_BYTES:
        raise _refusal(413, _TOO_LARGE)
    if encodings and is_old:
        raise _refusal(400, "Transfer-Encoding is not part of HTTP/1.0")
    if encodings and [value.lower() for value in encodings] != [b"chunked"]:
        raise _refusal(501, "the only supported Transfer-Encoding is chunked")


def _refusal(status: int, reason: str) -> h11.RemoteProtocolError:
    return h11.RemoteProtocolError(reason, error_status_hint=status)


class StrictParser(h11.Connection):
    """An h11 parser that checks each head before h11 does. `refusal` is the status and reason of the last error."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self.refusal = (400, "")

    def next_event(self) -> Any:
        state = self.their_state
        try:
            if state is h11.IDLE:
                check_head(self.trailing_data[0])
            return super().next_event()
        except h11.RemoteProtocolError as error:
            is_chunk = state is h11.SEND_BODY
            reason = f"the body's chunks are invalid: {error}" if is_chunk else str(error)
            self.refusal = (400 if is_chunk else error.error_status_hint, reason)
            raise


class Connection(H11Protocol):
    """uvicorn's protocol with a strict parser and time limits."""

    conn: StrictParser
    logger: logging.Logger

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.conn = StrictParser()
        self.logger = _QUIET_LOGGER
        self._receiving: Literal["head", "body"] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_refused = False
        self._body_bytes = 0
        self._answer, self.app = self.app, self._run_app
        self._answering: asyncio.Task[Any] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        # asyncio sets this only for sockets created with an explicit protocol.
        raw_socket: socket.socket = transport.get_extra_info("socket")
        raw_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._set_deadline("head")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)
        # The client does not wait for the response any more.
        if self._answering is not None:
            self._answering.cancel()

    async def _run_app(self, *arguments: Any) -> None:
        self._answering = asyncio.current_task()
        try:
            await self._answer(*arguments)
        finally:
            self._answering = None

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._body_bytes = self._body_bytes + len(data) if self._receiving == "body" else 0
        if self._body_bytes > MAX_BODY_BYTES:
            self._refuse(413, _TOO_LARGE)
        else:
            super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self._is_refused:
            return
        if self.conn.their_state is h11.IDLE:
            self._set_deadline("head" if self.conn.trailing_data[0] else None)
        else:
            self._set_deadline("body" if self.conn.their_state is h11.SEND_BODY else None)

    # ----------------------------------------------------------------------------------------------------- time limits

    def _set_deadline(self, receiving: Literal["head", "body"] | None) -> None:
        """Start the time limit of a part of a request, unless it runs already."""
        if receiving == self._receiving:
            return
        self._receiving = receiving
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if receiving is not None:
            seconds = HEAD_SECONDS if receiving == "head" else BODY_SECONDS
            self._deadline = self.loop.call_later(seconds, self._end_at_deadline)

    def _end_at_deadline(self) -> None:
        if self._receiving == "head" and not self.conn.trailing_data[0]:
            self.transport.close()
        else:
            name = "headers" if self._receiving == "head" else "body"
            self._refuse(408, f"the {name} did not arrive in time")

    # -------------------------------------------------------------------------------------------------------- refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse(*self.conn.refusal)

    def _refuse(self, status: int, reason: str) -> None:
        """Send an error and close. What the client still sends is dropped: unread, it would reset the connection."""
        self._is_refused = True
        self._set_deadline(None)
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        text = f"{reason}\n".encode("ascii", "backslashreplace")
        headers = [
            ("content-type", "text/plain; charset=utf-8"),
            ("content-length", str(len(text))),
            ("connection", "close"),
        ]
        phrase = http.HTTPStatus(status).phrase
        for event in (
            h11.Response(status_code=status, headers=headers, reason=phrase),
            h11.Data(data=text),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.write_eof()
        self.flow.resume_reading()
        self._deadline = self.loop.call_later(LINGER_SECONDS, self.transport.close)

"""The bodies of requests to a gateway: decoded, with limits on their size, on that of all bodies, and on their time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import contextmanager

from segue.bridge.content_encoding import EncodingError, open_decoder
from segue.gateway.responses import Receive

BODY_SECONDS = 60.0
_RETRY_SECONDS = 1.0
_TRIM_SECONDS = 5.0
_TRIM_SIZE = 8 * 2**20


class DisconnectedError(Exception):
    """The client closed the connection before its request was complete."""


class BodyError(Exception):
    """The body of a request is too large or damaged, did not arrive in time, or there are too many others."""

    def __init__(self, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class BodyMemory:
    """The memory for all bodies of a process that are read and not yet converted: `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._released = 0

    @contextmanager
    def open(self) -> Generator[BodyReservation]:
        """Give one request a share of the memory, until its body is converted."""
        share = BodyReservation(self)
        try:
            yield share
        finally:
            self.used -= share.size
            self._released += share.size

    async def keep_trimmed(self) -> None:
        """Return free memory to the system from time to time."""
        trim = find_trim()
        while trim is not None:
            await asyncio.sleep(_TRIM_SECONDS)
            self.trim(trim)

    def trim(self, trim: Callable[[int], object]) -> None:
        """Return free memory to the system if enough bodies have been converted since the last time."""
        if self._released >= _TRIM_SIZE:
            # Several times, because what a body was converted to is released after it.
            self._released = self._released * 3 // 4
            trim(0)


def find_trim() -> Callable[[int], object] | None:
    """Return the function of glibc, which keeps what large bodies have used; None where there is another allocator."""
    try:
        import ctypes

        return ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):
        return None


class BodyReservation:
    """The part of the memory that one body uses."""

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self.size = 0

    def check(self, size: int) -> None:
        """Raise `BodyError` if there is no memory for so many more bytes."""
        if self._memory.used + size > self._memory.limit:
            message = "the gateway has no memory left for another body; send the request again"
            raise BodyError(503, message, retry_after=_RETRY_SECONDS)

    def add(self, size: int) -> None:
        self.check(size)
        self._memory.used += size
        self.size += size


async def iter_body(receive: Receive, limit: int, *, silence: float = BODY_SECONDS) -> AsyncGenerator[bytes]:
    """Yield a body as it arrives; raise if nothing arrives for `silence` seconds, or more than `limit` bytes."""
    size = 0
    while True:
        try:
            async with asyncio.timeout(silence):
                event = await receive()
        except TimeoutError:
            raise BodyError(408, "the body did not arrive in time") from None
        if event["type"] == "http.disconnect":
            raise DisconnectedError
        data: bytes = event.get("body", b"")
        size += len(data)
        if size > limit:
            raise _size_error(limit)
        if data:
            yield data
        if not event.get("more_body"):
            return


def _size_error(limit: int) -> BodyError:
    return BodyError(413, f"the body has more than {limit:,} bytes")


async def read_body(
    receive: Receive, headers: Mapping[str, str], share: BodyReservation, limit: int, *, seconds: float = BODY_SECONDS
) -> bytes:
    """Return a whole body, decoded; raise `BodyError` if it is too large, or does not arrive within `seconds`.

    Neither what arrives nor what it is decoded to is ever more than `limit` bytes.
    """
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdecimal():
        # A client that waits for the response before it sends the body can spare it.
        if int(declared) > limit:
            raise _size_error(limit)
        share.check(int(declared))
    chunks: list[bytes] = []
    try:
        decoder = open_decoder(headers.get("content-encoding"))
        async with asyncio.timeout(seconds):
            async for data in iter_body(receive, limit, silence=seconds):
                if decoder is None:
                    share.add(len(data))
                    chunks.append(data)
                    continue
                for piece in decoder.decode(data):
                    if share.size + len(piece) > limit:
                        raise _size_error(limit)
                    share.add(len(piece))
                    chunks.append(piece)
                    # Few bytes can be decoded to many.
                    await asyncio.sleep(0)
        if decoder is not None:
            decoder.close()
    except TimeoutError:
        raise BodyError(408, "the body did not arrive in time") from None
    except EncodingError as error:
        raise BodyError(error.status, str(error)) from None
    return b"".join(chunks)

"""The bodies of requests to a gateway, with limits on their size and on the time they take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from segue.gateway.responses import Receive

BODY_SECONDS = 60.0


class DisconnectedError(Exception):
    """The client closed the connection before its request was complete."""


class BodyError(Exception):
    """The body of a request is too large, or did not arrive in time."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


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
            raise BodyError(413, f"the body has more than {limit:,} bytes")
        if data:
            yield data
        if not event.get("more_body"):
            return


async def read_body(receive: Receive, limit: int, *, seconds: float = BODY_SECONDS) -> bytes:
    """Return a whole body; raise if it does not arrive within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return b"".join([chunk async for chunk in iter_body(receive, limit, silence=seconds)])
    except TimeoutError:
        raise BodyError(408, "the body did not arrive in time") from None

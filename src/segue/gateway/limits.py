"""The limits of client keys: requests and tokens a minute, and requests at once, counted in this process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol

from msgspec import Struct

from segue.gateway.client_keys import ClientKey
from segue.gateway.client_uses import WINDOW, UseCounts

_OPEN_WAIT = 1.0


class Denied(Struct, frozen=True):
    """Why a request is not admitted. `client` is the name of its key, if it has a valid one."""

    status: int
    message: str
    client: str = ""
    retry_after: float | None = None
    reason: str = ""
    """The reason in the log and the metrics; without one, the kind of the error."""
    is_busy: bool = False
    """Whether another request of the client has to end first."""


class Admission:
    """One admitted request. As a context manager it counts as open until it ends."""

    def __init__(self, client: str, end: Callable[[int], Awaitable[None]] | None = None) -> None:
        self.client = client
        self.tokens = 0
        self._end = end

    async def __aenter__(self) -> Admission:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end is not None:
            await self._end(self.tokens)


class Limits(Protocol):
    """Counts the uses of clients, and admits requests that are within the limits of their key."""

    async def admit(self, client: ClientKey) -> Admission | Denied: ...


def find_denial(client: ClientKey, counts: UseCounts) -> Denied | None:
    """Return why a request of a client with these uses is denied; None if it is within the limits."""
    name = client.name
    concurrent, requests, tokens = client.concurrent, client.requests_per_minute, client.tokens_per_minute
    if concurrent is not None and counts.open >= concurrent:
        message = f"{name} has {counts.open} requests open, and its limit is {concurrent}"
        return Denied(429, message, name, _OPEN_WAIT, "concurrent", is_busy=True)
    if requests is not None and counts.requests >= requests:
        message = f"{name} has reached its limit of {requests:,} request{'s' * (requests > 1)} a minute"
        return Denied(429, message, name, WINDOW - counts.oldest_request, "requests-a-minute")
    if tokens is not None and counts.tokens >= tokens:
        message = f"{name} has reached its limit of {tokens:,} tokens a minute"
        return Denied(429, message, name, WINDOW - counts.oldest_tokens, "tokens-a-minute")
    return None


class _Uses:
    """The requests and tokens of a client in the last minute, and its open requests."""

    def __init__(self) -> None:
        self.open = 0
        self.requests: deque[float] = deque()
        self.tokens: deque[tuple[float, int]] = deque()

    def count(self, now: float) -> UseCounts:
        while self.requests and self.requests[0] <= now - WINDOW:
            self.requests.popleft()
        while self.tokens and self.tokens[0][0] <= now - WINDOW:
            self.tokens.popleft()
        return UseCounts(
            self.open,
            len(self.requests),
            sum(number for _, number in self.tokens),
            now - self.requests[0] if self.requests else 0.0,
            now - self.tokens[0][0] if self.tokens else 0.0,
        )


class ProcessLimits:
    """`Limits` that are counted in this process. `now` returns seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._uses: dict[str, _Uses] = {}

    async def admit(self, client: ClientKey) -> Admission | Denied:
        uses, now = self._uses.setdefault(client.name, _Uses()), self._now()
        denial = find_denial(client, uses.count(now))
        if denial is not None:
            return denial
        uses.requests.append(now)
        uses.open += 1

        async def end(tokens: int) -> None:
            uses.open -= 1
            if tokens:
                uses.tokens.append((self._now(), tokens))

        return Admission(client.name, end)

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
    if client.concurrent is not None and counts.open >= client.concurrent:
        return Denied(429, f"{name} has {counts.open} requests open, the limit", name, _OPEN_WAIT, is_busy=True)
    if client.requests_per_minute is not None and counts.requests >= client.requests_per_minute:
        return Denied(429, f"{name} has reached its requests a minute", name, WINDOW - counts.oldest_request)
    if client.tokens_per_minute is not None and counts.tokens >= client.tokens_per_minute:
        return Denied(429, f"{name} has reached its tokens a minute", name, WINDOW - counts.oldest_tokens)
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

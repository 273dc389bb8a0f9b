"""The limits of client keys and groups: requests and tokens a minute, requests at once, and budgets.

`ProcessLimits` counts in this process; it has no budgets, because what was spent must outlive it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from segue.bridge.caller import own_error
from segue.error_kinds import ErrorKind
from segue.errors import format_count
from segue.gateway.budgets import BudgetLine
from segue.gateway.client_keys import Scope
from segue.gateway.client_uses import WINDOW, UseCounts
from segue.wire.base import ApiError, Wire

_OPEN_WAIT = 1.0


class Denied(Struct, frozen=True):
    """Why a request is not admitted. `client` is the name of its key, if it has a valid one."""

    status: int
    message: str
    client: str = ""
    retry_after: float | None = None
    reason: str = ""
    """The reason in the log and the metrics; without one, the kind of the error."""
    kind: ErrorKind | None = None
    """The kind of the error; None: that of the status."""
    is_busy: bool = False
    """Whether another request of the client has to end first."""
    group: str = ""

    def to_error(self, wire: Wire) -> ApiError:
        """Return the error in the form for clients of an API."""
        error = own_error(self.status, self.message, wire, self.kind)
        status = error.status if self.kind is None else wire.error_forms[self.kind].status
        return replace(error, status=status, wait=self.retry_after)


class Admission:
    """One admitted request. As a context manager it counts as open until it ends.

    `tokens` and `cost` are what it used so far, `reserved` what it has reserved of its budgets in billionths of a
    dollar, and `stored` the part of that which the store has. `is_local`: its requests are counted in this process,
    because the store failed.
    """

    def __init__(
        self,
        client: str,
        group: str = "",
        scopes: Sequence[Scope] = (),
        limits: Limits | None = None,
        use: str = "",
        *,
        is_local: bool = False,
    ) -> None:
        self.client = client
        self.group = group
        self.scopes = scopes
        self.use = use
        self.is_local = is_local
        self.tokens = 0
        self.cost = 0
        self.reserved = self.stored = 0
        self.lines: Sequence[BudgetLine] = ()
        """The budgets of which it has reserved."""
        self._limits = limits

    @property
    def has_budgets(self) -> bool:
        return any(scope.limits.budgets for scope in self.scopes)

    async def reserve(self, amount: int) -> Denied | None:
        """Reserve an amount of all budgets, or return why that can't be."""
        return None if self._limits is None else await self._limits.reserve(self, amount)

    async def __aenter__(self) -> Admission:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._limits is not None:
            await self._limits.end(self)


class Limits(Protocol):
    """Counts the uses of clients and groups, and admits requests that are within all limits."""

    async def admit(self, client: str, group: str, scopes: Sequence[Scope]) -> Admission | Denied: ...
    async def reserve(self, admission: Admission, amount: int) -> Denied | None: ...
    async def end(self, admission: Admission) -> None: ...
    async def describe_budgets(self, scopes: Sequence[Scope]) -> list[Mapping[str, Any]]: ...


def rated(scopes: Sequence[Scope]) -> list[Scope]:
    """Return the scopes whose requests are counted."""
    return [scope for scope in scopes if scope.limits.has_rates]


def find_denial(client: str, scope: Scope, counts: UseCounts) -> Denied | None:
    """Return why a request of a client is denied, where a scope has these uses; None if it is within the limits."""
    name, limits = scope.label, scope.limits
    concurrent, requests, tokens = limits.concurrent, limits.requests_per_minute, limits.tokens_per_minute
    if concurrent is not None and counts.open >= concurrent:
        message = f"{name} has {format_count(counts.open, 'request')} open, and its limit is {concurrent}"
        return Denied(429, message, client, _OPEN_WAIT, "concurrent", is_busy=True)
    if requests is not None and counts.requests >= requests:
        message = f"{name} has reached its limit of {requests:,} request{'s' * (requests > 1)} a minute"
        return Denied(429, message, client, WINDOW - counts.oldest_request, "requests-a-minute")
    if tokens is not None and counts.tokens >= tokens:
        message = f"{name} has reached its limit of {format_count(tokens, 'token')} a minute"
        return Denied(429, message, client, WINDOW - counts.oldest_tokens, "tokens-a-minute")
    return None


class _Uses:
    """The requests and tokens of a scope in the last minute, and its open requests."""

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

    async def admit(self, client: str, group: str, scopes: Sequence[Scope]) -> Admission | Denied:
        now = self._now()
        uses = [self._uses.setdefault(scope.key, _Uses()) for scope in rated(scopes)]
        for scope, one in zip(rated(scopes), uses, strict=True):
            denial = find_denial(client, scope, one.count(now))
            if denial is not None:
                return denial
        for one in uses:
            one.requests.append(now)
            one.open += 1
        return Admission(client, group, scopes, self)

    async def reserve(self, admission: Admission, amount: int) -> Denied | None:
        message = f"the budget of {admission.client} can't be kept: this gateway has no store; set --store FILE"
        return Denied(503, message, admission.client, reason="store", kind="failed")

    async def end(self, admission: Admission) -> None:
        for scope in rated(admission.scopes):
            uses = self._uses[scope.key]
            uses.open -= 1
            if admission.tokens:
                uses.tokens.append((self._now(), admission.tokens))

    async def describe_budgets(self, scopes: Sequence[Scope]) -> list[Mapping[str, Any]]:
        return []

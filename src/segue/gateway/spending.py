"""What requests cost: their reservation before each is sent to a provider, and their cost afterwards.

`MeteredShell` reserves in place of the relay: whatever it sends, also for summaries and to other targets, is reserved
before. It measures the time in which the gateway waits for providers, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from segue.bridge.bounds import bound_input, bound_output, bound_written
from segue.bridge.driver import UpstreamError
from segue.bridge.entries import AsyncEntries
from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import RefusedError
from segue.bridge.providers import Endpoint
from segue.bridge.relay import Relay
from segue.bridge.reply_relay import ReplyRelay
from segue.canonical.request import Usage
from segue.gateway.budgets import NANO
from segue.gateway.conversations import ConversationMemory
from segue.gateway.limits import Admission, Denied
from segue.http_client import HttpClient
from segue.runtime.http_shell import HttpShell, HttpUpstream

CostLookup: TypeAlias = Callable[[str, str, Usage], float | None]
"""Maps provider, model and usage to dollars; None where no price is known."""
DEFAULT_OUTPUT = 32_000
"""The tokens that are reserved for a reply without a limit, of a model whose limit is not known."""


class Spending:
    """The prices of a gateway. `unknown_price` is in dollars per million tokens; None: such models are refused."""

    def __init__(self, cost: CostLookup, unknown_price: float | None = None) -> None:
        self.cost = cost
        self.unknown_price = unknown_price

    def find_cost(self, provider: str, model: str, usage: Usage) -> int | None:
        """Return the cost in billionths of a dollar; None if no price is known."""
        dollars = self.cost(provider, model, usage)
        if dollars is None and self.unknown_price is not None:
            dollars = (usage.input + usage.output) * self.unknown_price / 1_000_000
        return None if dollars is None else round(dollars * NANO)

    def has_price(self, endpoint: Endpoint) -> bool:
        return self.find_cost(endpoint.provider, endpoint.model, Usage(1, 1)) is not None

    def describe_missing_price(self, endpoint: Endpoint) -> str:
        return f'no price is known for {endpoint.name}; the gateway needs [prices."{endpoint.name}"], or unknown_price'

    def bound(self, endpoint: Endpoint, body: bytes, cached: int) -> int | None:
        """Return what a request can cost at most; None if no price is known.

        All input has the dearest price, except for the tokens that were in the cache at the last request.
        """
        tokens, output = bound_input(body), bound_output(body, endpoint.max_output or DEFAULT_OUTPUT)
        cached = min(cached, tokens)
        find_cost, rest = partial(self.find_cost, endpoint.provider, endpoint.model), tokens - cached
        plain = find_cost(Usage(tokens, output, cached))
        dearest = find_cost(Usage(tokens, output, cached, rest, cache_write_1h=rest))
        if plain is None or dearest is None or dearest <= plain:
            return plain
        written, hour = bound_written(body, rest)
        return max(plain, find_cost(Usage(tokens, output, cached, written, cache_write_1h=hour)) or 0)

    def settle(self, spending: Sequence[tuple[Endpoint, Usage]]) -> int | None:
        """Return what requests cost, None if no price is known."""
        total: int | None = 0
        for endpoint, usage in spending:
            if endpoint.has_caller_key:
                continue
            cost = self.find_cost(endpoint.provider, endpoint.model, usage)
            total = None if total is None or cost is None else total + cost
        return total


class MeteredShell(HttpShell):
    """The shell of one exchange. It reserves what a request can cost before it is sent.

    `waited` are the seconds in which it waited for providers.
    """

    def __init__(
        self,
        client: HttpClient,
        entries: AsyncEntries,
        timeout: float,
        relay: Relay,
        admission: Admission,
        spending: Spending,
        conversations: ConversationMemory,
    ) -> None:
        super().__init__(client, entries, timeout=timeout)
        self._relay = relay
        self._admission = admission
        self._spending = spending
        self._conversations = conversations
        self.waited = 0.0
        self.denied: Denied | None = None
        """Why a request was not sent."""

    async def send(self, request: HttpRequest) -> HttpUpstream:
        if self._admission.has_budgets and isinstance(self._relay, ReplyRelay):
            self.denied = await self._reserve(self._relay, request)
            if self.denied is not None:
                raise UpstreamError(RefusedError(self.denied.to_error(self._relay.wire)))
        started = time.monotonic()
        try:
            return _MeteredUpstream(await super().send(request), self)
        finally:
            self.waited += time.monotonic() - started

    async def _reserve(self, relay: ReplyRelay, request: HttpRequest) -> Denied | None:
        endpoint, admission, spending = relay.endpoint, self._admission, self._spending
        if endpoint is None or endpoint.has_caller_key:
            return None
        cached = self._conversations.find_cached(admission.client, relay, endpoint)
        amount = spending.bound(endpoint, b"".join(request.body), cached)
        if amount is None:
            why = spending.describe_missing_price(endpoint)
            message = f"the budget of {admission.client} can't be kept: {why}"
            return Denied(403, message, admission.client, reason="no-price", kind="client-access")
        before = spending.settle(relay.former_spending) or 0
        return await admission.reserve(before + amount - admission.reserved)

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        self.waited += seconds


class _MeteredUpstream(HttpUpstream):
    """A provider's response whose time is measured."""

    def __init__(self, upstream: HttpUpstream, shell: MeteredShell) -> None:
        super().__init__(upstream.response, upstream.timeout)
        self._metered = shell

    async def read(self) -> bytes:
        started = time.monotonic()
        try:
            return await super().read()
        finally:
            self._metered.waited += time.monotonic() - started

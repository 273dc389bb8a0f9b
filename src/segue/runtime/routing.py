"""Routes, which choose the endpoint of each request: fixed, round-robin, failover, or by rules.

A session calls `choose` before each request, and `on_success` or `on_failure` after it. A choice takes effect at the
next request; a reply in flight is not affected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from segue._conversation import Conversation
from segue.bridge.providers import Endpoint
from segue.canonical.blocks import Media, ToolResponse
from segue.errors import InputError, ProviderError

# Causes for which another provider may succeed. Other errors would occur there too.
_FAILOVER_CAUSES = frozenset({"rate-limited", "overloaded", "network", "timeout", "broken"})
_FIRST_PAUSE = 15.0
_MAX_PAUSE = 600.0

Clock: TypeAlias = Callable[[], float]


class RouteContext:
    """The input for the choice of an endpoint, computed on demand. `exchange` counts from 1."""

    def __init__(self, chat: Conversation, exchange: int = 1) -> None:
        self.exchange = exchange
        self._chat = chat

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens in the conversation."""
        return self._chat.tokens

    @cached_property
    def has_images(self) -> bool:
        """Whether the conversation has media, also in tool results."""
        return any(
            isinstance(block, Media) or (isinstance(block, ToolResponse) and _has_images(block))
            for message in self._chat.messages
            for block in message.blocks
        )


def _has_images(response: ToolResponse) -> bool:
    return any(isinstance(block, Media) for block in response.content or ())


class Choice(Struct, frozen=True):
    """The chosen endpoint, and the reason."""

    endpoint: Endpoint
    why: str


class Route(Protocol):
    """Chooses the endpoint of each request."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """All endpoints of the route."""
        ...

    def start_exchange(self) -> None:
        """Called when an exchange starts."""
        ...

    def choose(self, context: RouteContext) -> Choice:
        """Return the endpoint of the next request, and the reason."""
        ...

    def on_failure(self, endpoint: Endpoint, error: ProviderError) -> bool:
        """Record a failed request; return whether to send it to another choice at once."""
        ...

    def on_success(self, endpoint: Endpoint) -> None:
        """Called when a reply is complete."""
        ...

    def for_subagent(self) -> Route:
        """Return a route for a subagent, whose requests do not advance this one."""
        ...


class _RouteDefaults:
    """Default methods of routes, which ignore exchanges, failures and successes."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        if not endpoints:
            raise InputError("a route needs at least one model", path="models")
        self.endpoints: Sequence[Endpoint] = tuple(endpoints)

    def start_exchange(self) -> None:
        """Called when an exchange starts."""

    def on_failure(self, endpoint: Endpoint, error: ProviderError) -> bool:
        return False

    def on_success(self, endpoint: Endpoint) -> None:
        """Called when a reply is complete."""


class Fixed(_RouteDefaults):
    """Always the same model."""

    def __init__(self, endpoint: Endpoint, why: str = "chosen") -> None:
        super().__init__([endpoint])
        self._why = why

    def choose(self, context: RouteContext) -> Choice:
        return Choice(self.endpoints[0], self._why)

    def for_subagent(self) -> Fixed:
        return self


class RoundRobin(_RouteDefaults):
    """The next model in turn for each exchange."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        super().__init__(endpoints)
        self._index = -1

    def start_exchange(self) -> None:
        self._index += 1

    def choose(self, context: RouteContext) -> Choice:
        place = max(self._index, 0) % len(self.endpoints)
        return Choice(self.endpoints[place], f"round-robin, {place + 1} of {len(self.endpoints)}")

    def for_subagent(self) -> Fixed:
        return Fixed(self.endpoints[max(self._index, 0) % len(self.endpoints)], "round-robin")


class _CircuitBreaker:
    """The failures of one endpoint. After each failure the endpoint is paused, twice as long each time."""

    def __init__(self) -> None:
        self.failures = 0
        self.open_until = 0.0

    def open(self, now: float, error: ProviderError) -> None:
        self.failures += 1
        pause = max(error.retry_after or 0.0, min(_MAX_PAUSE, _FIRST_PAUSE * 2 ** (self.failures - 1)))
        self.open_until = now + pause

    def close(self) -> None:
        self.failures, self.open_until = 0, 0.0


class Failover(_RouteDefaults):
    """The first endpoint that succeeds, in order; it is used until it fails.

    A failed endpoint is paused, twice as long each time. If all are paused, the one whose pause ends first is used.
    """

    def __init__(self, endpoints: Sequence[Endpoint], *, clock: Clock = time.monotonic) -> None:
        super().__init__(endpoints)
        self._clock = clock
        self._breakers = [_CircuitBreaker() for _ in self.endpoints]
        self._current = 0
        self._why = "first choice"
        self._tried: set[int] = set()

    def choose(self, context: RouteContext) -> Choice:
        return Choice(self.endpoints[self._current], self._why)

    def on_failure(self, endpoint: Endpoint, error: ProviderError) -> bool:
        if error.cause not in _FAILOVER_CAUSES or endpoint not in self.endpoints:
            self._tried = set()
            return False
        place = self.endpoints.index(endpoint)
        self._breakers[place].open(self._clock(), error)
        self._tried.add(place)
        untried = [other for other in range(len(self.endpoints)) if other not in self._tried]
        if not untried:
            # All endpoints failed: the request fails, and the next one starts with the endpoint whose pause ends first.
            self._current = min(range(len(self.endpoints)), key=lambda other: self._breakers[other].open_until)
            self._why, self._tried = "first to be available again", set()
            return False
        now = self._clock()
        in_order = untried[next((at for at, other in enumerate(untried) if other > place), 0) :] + untried
        free = next((other for other in in_order if self._breakers[other].open_until <= now), None)
        self._current = free if free is not None else min(untried, key=lambda other: self._breakers[other].open_until)
        self._why = f"{endpoint.name} {error.brief}"
        return True

    def on_success(self, endpoint: Endpoint) -> None:
        self._tried = set()
        if endpoint not in self.endpoints:
            return
        place = self.endpoints.index(endpoint)
        self._breakers[place].close()
        self._current = place

    def for_subagent(self) -> Failover:
        """Return a separate route that shares the circuit breakers of the endpoints."""
        route = Failover(self.endpoints, clock=self._clock)
        route._breakers, route._current = self._breakers, self._current
        return route


class RoutingRule(Struct, frozen=True):
    """If `when` applies, one of these endpoints is used: the cheapest by known prices, else the first.

    `limit` is the number of tokens from which a conversation counts as long.
    """

    when: Literal["long", "images", "otherwise"]
    endpoints: tuple[Endpoint, ...]
    limit: int = 0

    def matches(self, context: RouteContext) -> bool:
        match self.when:
            case "long":
                return context.tokens >= self.limit
            case "images":
                return context.has_images
            case "otherwise":
                return True

    @property
    def why(self) -> str:
        match self.when:
            case "long":
                return f"the conversation has over {self.limit:,} tokens"
            case "images":
                return "the conversation has images"
            case "otherwise":
                return "no other rule applies"


PriceLookup: TypeAlias = Callable[[Endpoint], float | None]
"""The price of a token, in any unit; None if unknown."""


class ByRule(_RouteDefaults):
    """The first rule that applies decides, at each request."""

    def __init__(self, rules: Sequence[RoutingRule], *, price: PriceLookup = lambda endpoint: None) -> None:
        super().__init__([endpoint for rule in rules for endpoint in rule.endpoints])
        self.rules = tuple(rules)
        self._price = price

    def choose(self, context: RouteContext) -> Choice:
        rule = next((rule for rule in self.rules if rule.matches(context)), self.rules[-1])
        priced = [(cost, at) for at, each in enumerate(rule.endpoints) if (cost := self._price(each)) is not None]
        place = min(priced)[1] if priced else 0
        return Choice(rule.endpoints[place], f"{rule.why}; cheapest" if len(priced) > 1 else rule.why)

    def for_subagent(self) -> ByRule:
        return self

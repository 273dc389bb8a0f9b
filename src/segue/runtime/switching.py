"""Which model is asked next: by hand, in turn, by who answers, or by a rule.

A route is asked before each request and told how the last one went. It never sees a reply in flight: what it says takes
effect at the next request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from segue.errors import InputError, UpstreamError
from segue.runtime.providers import Endpoint

__all__ = ["ByRule", "Choice", "Failover", "Fixed", "RoundRobin", "Route", "Rule", "Situation"]

# Faults that another provider need not have. Anything else is as wrong there as here.
_ELSEWHERE = frozenset({"rate-limited", "overloaded", "network", "timeout", "broken"})
_PAUSE = 15.0
_LONGEST = 600.0

Clock: TypeAlias = Callable[[], float]


class Situation(Struct, frozen=True):
    """What a route may go by. `tokens` is an estimate of the conversation; `exchange` counts from 1."""

    tokens: int = 0
    images: bool = False
    exchange: int = 1


class Choice(Struct, frozen=True):
    """Whom to ask, and why."""

    endpoint: Endpoint
    why: str


class Route(Protocol):
    """Tells whom to ask. `failed` says whether the same request should be tried with another choice at once."""

    @property
    def endpoints(self) -> Sequence[Endpoint]: ...
    def exchange(self) -> None: ...
    def choose(self, situation: Situation) -> Choice: ...
    def failed(self, endpoint: Endpoint, error: UpstreamError) -> bool: ...
    def succeeded(self, endpoint: Endpoint) -> None: ...


class _Plain:
    """A route that goes by nothing that happens."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        if not endpoints:
            raise InputError("a route needs a model at least", path="models")
        self.endpoints: Sequence[Endpoint] = tuple(endpoints)

    def exchange(self) -> None:
        """The beginning of an exchange."""

    def failed(self, endpoint: Endpoint, error: UpstreamError) -> bool:
        return False

    def succeeded(self, endpoint: Endpoint) -> None:
        """A whole reply came."""


class Fixed(_Plain):
    """One model, until somebody names another."""

    def __init__(self, endpoint: Endpoint, why: str = "chosen") -> None:
        super().__init__([endpoint])
        self._why = why

    def choose(self, situation: Situation) -> Choice:
        return Choice(self.endpoints[0], self._why)


class RoundRobin(_Plain):
    """One model after the other, a new one for each exchange."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        super().__init__(endpoints)
        self._turn = -1

    def exchange(self) -> None:
        self._turn += 1

    def choose(self, situation: Situation) -> Choice:
        place = max(self._turn, 0) % len(self.endpoints)
        return Choice(self.endpoints[place], f"turn {place + 1} of {len(self.endpoints)}")


class _Breaker:
    """What is known of one endpoint's health. After a fault it is let alone for a while, longer each time."""

    def __init__(self) -> None:
        self.faults = 0
        self.until = 0.0

    def open(self, now: float, error: UpstreamError) -> None:
        self.faults += 1
        pause = max(error.retry_after or 0.0, min(_LONGEST, _PAUSE * 2 ** (self.faults - 1)))
        self.until = now + pause

    def close(self) -> None:
        self.faults, self.until = 0, 0.0


class Failover(_Plain):
    """The first that answers, in this order; it stays with the one that did until that fails too.

    One that failed is let alone for a while, twice as long each time. Where all are, the one that is free first is
    asked.
    """

    def __init__(self, endpoints: Sequence[Endpoint], *, clock: Clock = time.monotonic) -> None:
        super().__init__(endpoints)
        self._clock = clock
        self._breakers = [_Breaker() for _ in self.endpoints]
        self._current = 0
        self._why = "first choice"
        self._tried: set[int] = set()

    def choose(self, situation: Situation) -> Choice:
        return Choice(self.endpoints[self._current], self._why)

    def failed(self, endpoint: Endpoint, error: UpstreamError) -> bool:
        place = self.endpoints.index(endpoint)
        if error.cause not in _ELSEWHERE:
            return False
        self._breakers[place].open(self._clock(), error)
        self._tried.add(place)
        left = [other for other in range(len(self.endpoints)) if other not in self._tried]
        if not left:
            # Everybody was asked: the request has failed, and the next one begins with whoever is free first.
            self._current = min(range(len(self.endpoints)), key=lambda other: self._breakers[other].until)
            self._why, self._tried = "first to be free again", set()
            return False
        now = self._clock()
        after = left[next((at for at, other in enumerate(left) if other > place), 0) :] + left
        free = next((other for other in after if self._breakers[other].until <= now), None)
        self._current = free if free is not None else min(left, key=lambda other: self._breakers[other].until)
        self._why = f"{endpoint.name} {error.brief}"
        return True

    def succeeded(self, endpoint: Endpoint) -> None:
        place = self.endpoints.index(endpoint)
        self._breakers[place].close()
        self._current, self._tried = place, set()


class Rule(Struct, frozen=True):
    """Where `when` holds, ask `endpoint`. `limit` is the number of tokens from which a conversation is long."""

    when: Literal["long", "images", "always", "cheapest"]
    endpoint: Endpoint
    limit: int = 0

    def holds(self, situation: Situation) -> bool:
        match self.when:
            case "long":
                return situation.tokens >= self.limit
            case "images":
                return situation.images
            case "always" | "cheapest":
                return True

    @property
    def why(self) -> str:
        told = {"long": f"over {self.limit:,} tokens", "images": "there are pictures", "cheapest": "cheapest"}
        return told.get(self.when, "otherwise")


class ByRule(_Plain):
    """The first rule that holds decides, at each request."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__([rule.endpoint for rule in rules])
        self.rules = tuple(rules)

    def choose(self, situation: Situation) -> Choice:
        rule = next((rule for rule in self.rules if rule.holds(situation)), self.rules[-1])
        return Choice(rule.endpoint, rule.why)

"""Routes, which choose the endpoint of each request: fixed, round-robin, failover, or by rules.

A session calls `choose` before each request, and `on_success` or `on_failure` after it. A choice takes effect at the
next request; a reply in flight is not affected. Which endpoint takes a failed request over, and which ones are paused,
is decided by `segue.bridge.failover`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias, cast

from msgspec import Struct

from segue._conversation import Conversation
from segue.bridge.failover import (
    FIRST_BYTE,
    KEY_CAUSES,
    Clock,
    Conditions,
    Preference,
    TargetPauses,
    TargetSequence,
    rotate,
    sort_by_cost,
)
from segue.bridge.providers import Endpoint
from segue.canonical.blocks import Media, ToolCall, ToolResponse, responses_of, state_of
from segue.errors import InputError, ProviderError, format_count
from segue.runtime.permission_rules import SHELL_TOOLS, PermissionRule


class RouteContext:
    """The input for the choice of an endpoint, the `RequestFacts` of conditions."""

    def __init__(self, chat: Conversation) -> None:
        self.chat = chat

    @property
    def tokens(self) -> int:
        """The estimated number of tokens in the conversation."""
        return self.chat.tokens

    @property
    def has_images(self) -> bool:
        """Whether the conversation has media, also in tool results."""
        return any(
            isinstance(block, Media) or (isinstance(block, ToolResponse) and _has_images(block))
            for message in self.chat.messages
            for block in message.blocks
        )

    @property
    def has_reasoning(self) -> bool:
        """Whether the options of the conversation request reasoning."""
        return self.chat.options.reasoning is not None

    def has_failed(self, count: int, command: str | None = None) -> bool:
        """Return whether the last `count` tool calls failed; with a `command`, those whose command it matches.

        Calls without an outcome of their own do not count: those that were denied, cancelled or interrupted.
        """
        failures = 0
        for message in reversed(self.chat.messages):
            for response in reversed(responses_of(message)):
                state = state_of(response)
                if state not in ("complete", "error") or response.hosted or response.synthetic:
                    continue
                if command is not None and not self._is_run_of(response, command):
                    continue
                failures += 1
                if state == "complete" or failures == count:
                    return state == "error"
        return False

    def _is_run_of(self, response: ToolResponse, command: str) -> bool:
        interaction = self.chat.state.history.ledger.get(response.call_id)
        return interaction is not None and _runs(interaction.call, command)


def _runs(call: ToolCall, command: str) -> bool:
    arguments = cast("dict[str, object]", call.arguments) if isinstance(call.arguments, dict) else {}
    given = arguments.get("command", arguments.get("cmd", ""))
    return _matches(" ".join(map(str, cast("list[object]", given))) if isinstance(given, list) else str(given), command)


@lru_cache(maxsize=4_096)
def _matches(text: str, command: str) -> bool:
    """Return whether a command or a part of it matches a pattern, as in permission rules."""
    from segue.runtime.tools.shell_commands import find_commands, list_forms, split_simple_commands

    parts = split_simple_commands(text)
    forms = (form.text for part in parts or () for form in list_forms(part))
    rule = PermissionRule(SHELL_TOOLS[0], command)
    return any(map(rule.matches_subject, (text, *forms, *(find_commands(text) if parts is None else ()))))


def _has_images(response: ToolResponse) -> bool:
    return any(isinstance(block, Media) for block in response.content or ())


class Choice(Struct, frozen=True):
    """The chosen endpoint, and the reason.

    `first_byte` is the longest wait for the head of the response in seconds; None where no other endpoint is free.
    """

    endpoint: Endpoint
    why: str
    first_byte: float | None = None


class Route(ABC):
    """Chooses the endpoint of each request. Routes with the same `pauses` share the pauses of their endpoints."""

    def __init__(
        self, endpoints: Sequence[Endpoint], *, clock: Clock = time.monotonic, pauses: TargetPauses | None = None
    ) -> None:
        if not endpoints:
            raise InputError("a route needs at least one model", path="models")
        self.endpoints: Sequence[Endpoint] = tuple(endpoints)
        self._pauses = pauses or TargetPauses(clock)
        self._selection: TargetSequence | None = None
        """The choice for the request that failed last, if another endpoint takes it over."""
        self._order: Sequence[Endpoint] = self.endpoints
        self._why = ""

    @abstractmethod
    def order(self, context: RouteContext) -> tuple[Sequence[Endpoint], str]:
        """Return the endpoints for the next request in order, and the reason."""

    @abstractmethod
    def for_subagent(self) -> Route:
        """Return a route for a subagent, whose requests do not advance this one."""

    def start_exchange(self) -> None:
        """Called when an exchange starts."""
        self._selection = None

    def choose(self, context: RouteContext) -> Choice:
        """Return the endpoint of the next request, and the reason."""
        if self._selection is not None:
            current, why, others = self._selection.current, self._why, self._selection.has_successor
        else:
            self._order, why = self.order(context)
            current = self._pauses.choose(self._order)
            if current is not self._order[0]:
                why = self._why or "the models before it failed"
            others = any(not self._pauses.is_paused(end) for end in self._order if end is not current)
        return Choice(current, why, FIRST_BYTE if others else None)

    def on_failure(self, endpoint: Endpoint, error: ProviderError) -> bool:
        """Record a failed request; return whether to send it to another choice at once."""
        if endpoint not in self._order:
            return False
        selection = self._selection or TargetSequence(self._order, self._pauses, endpoint)
        self._selection = selection if selection.fail(error) else None
        if self._selection is None:
            return False
        self._why = error.message if error.cause in KEY_CAUSES else f"{endpoint.name} {error.brief}"
        return True

    def on_success(self, endpoint: Endpoint) -> None:
        """Called when a reply is complete."""
        self._selection = None
        self._pauses.succeed(endpoint)


class Fixed(Route):
    """Always the same model."""

    def __init__(self, endpoint: Endpoint, why: str = "chosen") -> None:
        super().__init__([endpoint])
        self._reason = why

    def order(self, context: RouteContext) -> tuple[Sequence[Endpoint], str]:
        return self.endpoints, self._reason

    def for_subagent(self) -> Fixed:
        return self


class RoundRobin(Route):
    """The next model in turn for each exchange; the others if it fails."""

    _turn = -1

    def start_exchange(self) -> None:
        super().start_exchange()
        self._turn += 1

    def order(self, context: RouteContext) -> tuple[Sequence[Endpoint], str]:
        place = max(self._turn, 0) % len(self.endpoints)
        return rotate(self.endpoints, place), f"round-robin, {place + 1} of {len(self.endpoints)}"

    def for_subagent(self) -> Route:
        return Failover(rotate(self.endpoints, max(self._turn, 0)), pauses=self._pauses)


class Failover(Route):
    """The first endpoint that succeeds, in order; it is used until it fails."""

    _current = 0

    def order(self, context: RouteContext) -> tuple[Sequence[Endpoint], str]:
        return rotate(self.endpoints, self._current), self._why or "first choice"

    def on_success(self, endpoint: Endpoint) -> None:
        super().on_success(endpoint)
        if endpoint in self.endpoints:
            self._current = self.endpoints.index(endpoint)

    def for_subagent(self) -> Failover:
        """Return a separate route that shares the pauses of the endpoints."""
        route = Failover(self.endpoints, pauses=self._pauses)
        route._current = self._current
        return route


class RoutingRule(Struct, frozen=True):
    """If `when` applies, one of these endpoints is used: the cheapest by known prices, or the first.

    `limit` is the number of tokens from which a conversation counts as long, or of tool calls that failed in a row: of
    those that run the `command`, a pattern as in permission rules, where it is given.
    """

    when: Literal["long", "images", "failed", "otherwise"]
    endpoints: tuple[Endpoint, ...]
    limit: int = 0
    command: str | None = None
    prefer: Preference = "cheapest"

    def matches(self, context: RouteContext) -> bool:
        match self.when:
            case "long":
                return Conditions(min_tokens=self.limit).match(context)
            case "images":
                return Conditions(images=True).match(context)
            case "failed":
                return context.has_failed(self.limit, self.command)
            case "otherwise":
                return True

    @property
    def why(self) -> str:
        match self.when:
            case "long":
                return f"the conversation has over {format_count(self.limit, 'token')}"
            case "images":
                return "the conversation has images"
            case "failed":
                runs = f"{'run' if self.limit == 1 else 'runs'} of {self.command}"
                what = "tool call" if self.limit == 1 else "tool calls"
                return f"the last {self.limit:,} {what if self.command is None else runs} failed"
            case "otherwise":
                return "no other rule applies"


RouteCost: TypeAlias = Callable[[Endpoint, Conversation], float | None]
"""What the next requests of a conversation to an endpoint cost, in any unit; None if unknown."""


class ByRule(Route):
    """The first rule that applies decides, at each request, else the last one; its other models if the first fails.

    What a rule depends on is in the conversation, so that it decides in the same way when one is resumed.
    """

    def __init__(self, rules: Sequence[RoutingRule], *, cost: RouteCost = lambda endpoint, chat: None) -> None:
        super().__init__([endpoint for rule in rules for endpoint in rule.endpoints])
        self.rules = tuple(rules)
        self._cost = cost

    def order(self, context: RouteContext) -> tuple[Sequence[Endpoint], str]:
        rule = next((rule for rule in self.rules if rule.matches(context)), None)
        why = "no rule applies" if rule is None else rule.why
        rule = rule or self.rules[-1]
        if rule.prefer == "first" or len(rule.endpoints) == 1:
            return rule.endpoints, why
        costs = [self._cost(endpoint, context.chat) for endpoint in rule.endpoints]
        by_name = dict(zip((endpoint.name for endpoint in rule.endpoints), costs, strict=True))
        endpoints = sort_by_cost(rule.endpoints, context.tokens, lambda endpoint: by_name[endpoint.name])
        return endpoints, f"{why}; cheapest" if len(costs) - costs.count(None) > 1 else why

    def for_subagent(self) -> ByRule:
        return self

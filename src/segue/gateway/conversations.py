"""What the targets of a gateway replied in each conversation: for reservations, the choice of a target, and the log.

A conversation is known by its client and the user's first words. It is kept in memory only: after a restart, a target
has no known cache.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from msgspec import Struct

from segue._switch_cost import CostOf, Prompt, SwitchCost, predict, predict_requests
from segue.bridge.failover import REQUESTS, sort_by_cost
from segue.bridge.providers import Endpoint
from segue.bridge.reply_relay import ReplyRelay
from segue.canonical.request import Usage

# Providers keep a cached prompt for five minutes at least.
_CACHE_SECONDS = 300.0
_MAX_CONVERSATIONS = 10_000
_BYTES_PER_TOKEN = 4
# A much shorter body is not the continuation of a longer one.
_SHORTEST_PART = 0.9


class _Reply(Struct, frozen=True):
    """The last reply of a target: its usage, the size of the caller's body, the route, and the time."""

    target: Endpoint
    usage: Usage
    size: int
    route: str
    model: str
    at: float


class Switch(Struct, frozen=True):
    """Another target than before replied in a conversation."""

    source: str
    why: str
    cost: SwitchCost

    def __str__(self) -> str:
        return f"switched from {self.source}: {self.why}, {self.cost.brief}"


class ConversationMemory:
    """The last replies of each target, by conversation; the newest last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._replies: OrderedDict[tuple[str, str], dict[str, _Reply]] = OrderedDict()

    def add(self, client: str, relay: ReplyRelay, target: Endpoint, usage: Usage) -> None:
        """Remember the usage of a reply."""
        replies = self._replies.setdefault((client, relay.opening), {})
        self._replies.move_to_end((client, relay.opening))
        replies.pop(target.name, None)
        route = relay.route.name if relay.route is not None else ""
        replies[target.name] = _Reply(target, usage, relay.size, route, relay.model or "", self._clock())
        if len(self._replies) > _MAX_CONVERSATIONS:
            self._replies.popitem(last=False)

    def find_cached(self, client: str, relay: ReplyRelay, target: Endpoint) -> int:
        """Return how many tokens the last request of a conversation read from the provider's cache."""
        reply = self._replies.get((client, relay.opening), {}).get(target.name) if self._replies else None
        return reply.usage.cache_read if reply is not None and self._clock() - reply.at < _CACHE_SECONDS else 0

    def find_switch(self, client: str, relay: ReplyRelay, cost_of: CostOf) -> Switch | None:
        """Return the switch of a request that is not remembered yet; None if the same target replied before."""
        target, replies = relay.endpoint, self._find(client, relay.opening, relay.size)
        last = next(reversed(replies.values()), None)
        if target is None or relay.finish is None or last is None or last.target.name == target.name:
            return None
        if relay.failed:
            why = "failover"
        elif relay.model != last.model:
            why = "the client asks for another model"
        elif relay.route is not None and relay.route.name != last.route:
            why = f"by route {relay.route.name}"
        else:
            why = "cheapest" if relay.route is not None and relay.route.order is not None else "by route"
        here, there = (self._predict(each, replies, relay.size) for each in (last.target, target))
        return Switch(last.target.name, why, predict(here, there, cost_of, output=last.usage.output))

    def predict_newest(
        self, target: Endpoint, cost_of: CostOf, is_switched: Callable[[str], bool], above: int
    ) -> SwitchCost | None:
        """Predict what it costs that the conversation which was answered last goes on with a target.

        None if its model name is not switched, or if it has no more than `above` tokens.
        """
        if not self._replies:
            return None
        replies = next(reversed(self._replies.values()))
        last = next(reversed(replies.values()), None)
        if last is None or last.target.name == target.name or not is_switched(last.model) or last.usage.input < above:
            return None
        here, there = (self._predict(each, replies, last.size) for each in (last.target, target))
        return predict(here, there, cost_of, output=last.usage.output)

    def sort(
        self, client: str, cost_of: CostOf, targets: Sequence[Endpoint], opening: str, size: int
    ) -> Sequence[Endpoint]:
        """Return the targets of a request, the cheapest for the next requests of its conversation first."""
        replies = self._find(client, opening, size)
        last = next(reversed(replies.values()), None)
        prompts = {target.name: self._predict(target, replies, size) for target in targets}

        def cost(target: Endpoint) -> float | None:
            output = last.usage.output if last is not None else None
            return predict_requests(prompts[target.name], cost_of, output=output, count=REQUESTS)

        return sort_by_cost(targets, max(prompt.tokens for prompt in prompts.values()), cost)

    def _find(self, client: str, opening: str, size: int) -> dict[str, _Reply]:
        # A copy: large requests are converted in threads.
        replies = dict(self._replies.get((client, opening), {}))
        longest = max((reply.size for reply in replies.values()), default=0)
        return replies if size >= longest * _SHORTEST_PART else {}

    def _predict(self, target: Endpoint, replies: dict[str, _Reply], size: int) -> Prompt:
        """Return the next request to a target; its tokens by the ratio of its own last reply, else of the newest."""
        own = replies.get(target.name)
        known = own or next(reversed(replies.values()), None)
        ratio = known.usage.input / known.size if known is not None and known.size else 1 / _BYTES_PER_TOKEN
        return Prompt(
            target.provider,
            target.model,
            round(size * ratio),
            own.usage if own is not None else None,
            self._clock() - own.at if own is not None else None,
            is_measured=own is not None,
        )

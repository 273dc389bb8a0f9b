"""What a switch of the model costs: the next request now and after the switch, the way back, and when it pays.

The first request to another model reads nothing from a cache. All is computed: the tokens from the usage that providers
reported and, for a model without a reply so far, from an estimate; what is cached by the vendors' rules
(`segue.specs.caches`); the prices by a table. An unknown price or life of a cache leaves a result unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Literal, TypeAlias

from msgspec import Struct

from segue.canonical.request import Usage
from segue.errors import format_count
from segue.specs.caches import CacheRule, find_cache_rule
from segue.specs.prices import find_model, find_prices

CostOf: TypeAlias = Callable[[str, str, Usage], float | None]
"""Maps provider, model and usage to dollars; None where no price is known."""
CacheState: TypeAlias = Literal["warm", "partly warm", "expired", "unknown", "below minimum", "cold"]
SHOWN_ABOVE = 20_000
"""From how many tokens on the price of a switch is shown, if no setting says otherwise."""
# The tokens of a reply, as a part of its prompt: an agent reads much more than it writes.
_TYPICAL_OUTPUT = 0.05
# Of no hour that has prices of its own.
_NO_MINUTE = -1


def cost_by_table(provider: str, model: str, usage: Usage) -> float | None:
    """Return the cost of a usage by the table of public prices, at the prices outside of peak hours."""
    row = find_model(provider, model)
    return None if row is None else find_prices(row.tiers_at(_NO_MINUTE), usage.input).cost(usage)


_STATE_TEXTS: dict[CacheState, str] = {
    "expired": "the cache that it leaves has expired",
    "unknown": "whether the cache that it leaves is alive is not known",
    "below minimum": "the prompt is too short for a cache",
}


class Prompt(Struct, frozen=True):
    """The next request to a model. `last` is the usage of its last reply, `age` the seconds since then if known.

    `is_measured` is whether the tokens follow from a reply of this model, and not from an estimate alone.
    """

    provider: str
    model: str
    tokens: int
    last: Usage | None = None
    age: float | None = None
    is_measured: bool = False

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def rule(self) -> CacheRule | None:
        return find_cache_rule(self.provider, self.model)

    def find_cached(self) -> tuple[int, CacheState]:
        """Return how many tokens of the prompt are cached, and the state of the cache."""
        rule, last = self.rule, self.last
        if last is None:
            return 0, "cold"
        if rule is None:
            # Only what was reported proves that there is a cache.
            cached = min(self.tokens, last.cache_read + last.cache_write)
            return cached, "unknown"
        ends = rule.longest or rule.seconds
        if self.age is not None and ends is not None and self.age > ends:
            return 0, "expired"
        cached = rule.round(min(self.tokens, last.cache_read + last.cache_write if rule.marked else last.input))
        if not cached:
            return 0, "below minimum"
        if self.age is None or rule.seconds is None or self.age > rule.seconds:
            return cached, "unknown"
        # The last reply and what the user said are always new.
        return cached, "warm" if cached >= rule.round(last.input) else "partly warm"

    def usage(self, cached: int, output: int, *, extra: int = 0) -> Usage:
        """Return the usage of a request whose first tokens are cached; the others are written where writes count."""
        total = self.tokens + extra
        is_written = self.rule is not None and total >= self.rule.minimum
        return Usage(total, output, cache_read=cached, cache_write=total - cached if is_written else 0)


class SwitchCost(Struct, frozen=True):
    """The price of a switch, in dollars. `now` is `go` less `stay`; negative if the switch is cheaper at once.

    `back` is what the return after one request costs more than staying would have, while the cache lives, and
    `back_expired` after its end. `saving` is what each later request saves, and `turns` after how many of them the
    switch has paid; None if it never does. `is_measured`: the tokens of both follow from replies of both models.
    """

    source: str
    target: str
    state: CacheState
    tokens: int
    target_tokens: int
    cached: int
    stay: float | None
    go: float | None
    now: float | None
    back: float | None
    back_expired: float | None
    saving: float | None
    turns: int | None
    is_measured: bool

    @property
    def brief(self) -> str:
        """What the next request costs more or less, in a few words."""
        if self.now is None:
            return "at an unknown price"
        about = "" if self.is_measured else "about "
        pays = f", pays after {format_count(self.turns, 'request')}" if self.turns and self.now > 0 else ""
        return f"{about}{format_cents(abs(self.now))} {'more' if self.now >= 0 else 'less'} for the next request{pays}"

    def __str__(self) -> str:
        """Return one sentence."""
        if self.now is None or self.go is None:
            missing = self.source if self.stay is None else self.target
            return f"what the switch costs is not known: segue has no price of {missing}"
        about = "" if self.is_measured else "about "
        difference = f"{format_cents(abs(self.now))} {'more' if self.now >= 0 else 'less'} than with {self.source}"
        text = f"the next request costs {about}{format_cents(self.go)}, {difference}"
        if self.now > 0:
            pays = f"pays after {format_count(self.turns, 'request')}" if self.turns else "never pays"
            text += f", which {pays}"
        if self.state in _STATE_TEXTS:
            text += f"; {_STATE_TEXTS[self.state]}"
        if self.back_expired is not None:
            cold = format_cents(self.back_expired)
            while_warm = f"{format_cents(self.back)} while its cache lives, " if self.back is not None else ""
            text += f"; the way back costs {while_warm}{cold} without"
        return text


def predict_requests(prompt: Prompt, cost_of: CostOf, *, output: int | None, count: int) -> float | None:
    """Predict what the next requests to a model cost, if the prompt stays as long as it is; None if unknown.

    `output` is how many tokens a reply has, None before there is one.
    """
    cached, _ = prompt.find_cached()
    output = ceil(prompt.tokens * _TYPICAL_OUTPUT) if output is None else output
    costs = [
        cost_of(prompt.provider, prompt.model, prompt.usage(part, output))
        for part in (cached, _round(prompt, prompt.tokens) or cached)
    ]
    return None if costs[0] is None or costs[1] is None else costs[0] + (count - 1) * costs[1]


def predict(current: Prompt, target: Prompt, cost_of: CostOf, *, output: int = 0) -> SwitchCost:
    """Predict the price of a switch. `output` is how many tokens a reply has."""

    def cost(prompt: Prompt, cached: int, extra: int = 0) -> float | None:
        return cost_of(prompt.provider, prompt.model, prompt.usage(cached, output, extra=extra))

    cached, state = current.find_cached()
    there, _ = target.find_cached()
    stay, go = cost(current, cached), cost(target, there)
    now = None if stay is None or go is None else go - stay
    # Later requests: all of the prompt before the newest turn is cached with both.
    warm, warm_there = (_round(prompt, prompt.tokens) for prompt in (current, target))
    later, later_there = cost(current, warm), cost(target, warm_there)
    saving = None if later is None or later_there is None else later - later_there
    # On return the prompt has one more reply; what the current model has cached is what it has cached now.
    stayed, back, cold = (cost(current, part, output) for part in (warm, cached, 0))
    life = current.rule.seconds if current.rule is not None else None
    return SwitchCost(
        current.name,
        target.name,
        state,
        current.tokens,
        target.tokens,
        cached,
        stay,
        go,
        now,
        None if back is None or stayed is None or life is None else max(0.0, back - stayed),
        None if cold is None or stayed is None else cold - stayed,
        saving,
        max(1, ceil(now / saving)) if now is not None and saving is not None and now > 0 and saving > 0 else None,
        current.is_measured and target.is_measured,
    )


def _round(prompt: Prompt, tokens: int) -> int:
    return prompt.rule.round(tokens) if prompt.rule is not None else 0


def format_cents(amount: float) -> str:
    """Format dollars; less than one as cents."""
    if amount >= 1:
        return f"${amount:.2f}"
    text = f"{100 * amount:.1f}".removesuffix(".0") if amount >= 0.001 else "0" if amount < 0.00005 else "<0.1"
    return f"{text} cent{'' if text == '1' else 's'}"

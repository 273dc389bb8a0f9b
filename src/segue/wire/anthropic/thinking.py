"""How much to think: `thinking` and `output_config.effort` ⇄ `Reasoning`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.request import Effort, Reasoning
from segue.models import identify
from segue.render.report import Report
from segue.wire.anthropic.traits import Traits, traits_of
from segue.wire.effort import budget_of, effort_of, nearest
from segue.wire.fields import JsonObject, integer_or_none, object_or_none

__all__ = ["fit_budget", "is_thinking", "parse_reasoning", "render_reasoning"]

_LEAST = 1024
_STEPS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")


def parse_reasoning(body: Mapping[str, Any]) -> Reasoning | None:
    thinking = object_or_none(body.get("thinking")) or {}
    effort = _parse_effort(body)
    match thinking.get("type"):
        case "enabled":
            return Reasoning(enabled=True, effort=effort, budget=integer_or_none(thinking.get("budget_tokens")))
        case "adaptive":
            return Reasoning(enabled=True, effort=effort, adaptive=True)
        case "disabled" | "between_tools":
            return Reasoning(enabled=False, effort=effort)
        case _ if effort is None:
            return None
        case _:
            # Effort steers all output; by itself it wakes no thinking in a model that does not think unasked.
            model = identify(body.get("model") if isinstance(body.get("model"), str) else None)
            asleep = model.family == "claude" and bool(model.version) and not traits_of(model).thinks_unasked
            return Reasoning(enabled=False if asleep else None, effort=effort)


def _parse_effort(body: Mapping[str, Any]) -> Effort | None:
    effort = (object_or_none(body.get("output_config")) or {}).get("effort")
    return next((known for known in _STEPS if known == effort), None)


def render_reasoning(
    reasoning: Reasoning | None, traits: Traits, report: Report
) -> tuple[JsonObject | None, Effort | None]:
    """The values of `thinking` and of `output_config.effort`."""
    if reasoning is None:
        return None, None
    if reasoning.enabled is False or reasoning.effort == "none":
        return _render_off(reasoning, traits, report)
    if traits.adaptive and (reasoning.budget is None or not traits.budgets):
        effort = reasoning.effort
        if reasoning.budget is not None and effort is None:
            effort = effort_of(reasoning.budget, known=traits.efforts)
            report.add("adjusted", f"the model takes no thinking budget: sent as effort {effort}", subject="reasoning")
        return {"type": "adaptive"}, nearest(effort, traits.efforts)
    if not traits.budgets:
        report.add("adjusted", "the model can't be asked to think: left out", subject="reasoning")
        return None, None
    budget = reasoning.budget or budget_of(reasoning.effort or "medium")
    effort = nearest(reasoning.effort, traits.efforts) if reasoning.budget is not None else None
    return {"type": "enabled", "budget_tokens": max(_LEAST, budget)}, effort


def _render_off(reasoning: Reasoning, traits: Traits, report: Report) -> tuple[JsonObject | None, Effort | None]:
    if traits.off is not None:
        # While thinking is off, efforts above `high` are refused.
        return {"type": traits.off}, nearest(reasoning.effort, traits.efforts[:3])
    if traits.thinks_unasked:
        report.add("adjusted", "the model always thinks: asked for the lowest effort instead", subject="reasoning")
        return None, "low"
    return None, None


def is_thinking(thinking: JsonObject | None) -> bool:
    return thinking is not None and thinking["type"] in ("enabled", "adaptive")


def fit_budget(thinking: JsonObject | None, max_tokens: int, report: Report) -> JsonObject | None:
    """A budget is at least 1024 and less than `max_tokens`; what leaves no room for both is left out."""
    if thinking is None or thinking.get("budget_tokens", 0) < max_tokens:
        return thinking
    if max_tokens <= _LEAST:
        report.add("adjusted", f"no room to think in {max_tokens} tokens: left out", subject="reasoning")
        return None
    budget = max(_LEAST, max_tokens // 2)
    report.add("adjusted", f"the thinking budget is cut to {budget} to fit `max_tokens`", subject="reasoning")
    return {**thinking, "budget_tokens": budget}

"""Reasoning options: `thinking` and `output_config.effort` ⇄ `Reasoning`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.request import Effort, Reasoning
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.anthropic.capabilities import Capabilities, capabilities_of
from segue.wire.effort import budget_for_effort, clamp_effort, effort_for_budget
from segue.wire.json_values import JsonObject, integer_or_none, object_or_none

_MIN_BUDGET = 1024
_EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")


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
            # Effort applies to all output; alone it does not enable thinking where that is off by default.
            model = parse_model(body.get("model") if isinstance(body.get("model"), str) else None)
            disabled = model.family == "claude" and bool(model.version) and not capabilities_of(model).thinks_by_default
            return Reasoning(enabled=False if disabled else None, effort=effort)


def _parse_effort(body: Mapping[str, Any]) -> Effort | None:
    effort = (object_or_none(body.get("output_config")) or {}).get("effort")
    return next((known for known in _EFFORTS if known == effort), None)


def render_reasoning(
    reasoning: Reasoning | None, capabilities: Capabilities, report: Report
) -> tuple[JsonObject | None, Effort | None]:
    """The values of `thinking` and of `output_config.effort`."""
    if reasoning is None:
        return None, None
    if reasoning.enabled is False or reasoning.effort == "none":
        return _render_disabled(reasoning, capabilities, report)
    if capabilities.adaptive and (reasoning.budget is None or not capabilities.budgets):
        effort = reasoning.effort
        if reasoning.budget is not None and effort is None:
            effort = effort_for_budget(reasoning.budget, available=capabilities.efforts)
            report.add(
                "adjusted", f"thinking budget sent as effort {effort}: the model has no budgets", subject="reasoning"
            )
        return {"type": "adaptive"}, clamp_effort(effort, capabilities.efforts)
    if not capabilities.budgets:
        report.add("adjusted", "`reasoning` dropped: the model does not support reasoning", subject="reasoning")
        return None, None
    budget = reasoning.budget or budget_for_effort(reasoning.effort or "medium")
    effort = clamp_effort(reasoning.effort, capabilities.efforts) if reasoning.budget is not None else None
    return {"type": "enabled", "budget_tokens": max(_MIN_BUDGET, budget)}, effort


def _render_disabled(
    reasoning: Reasoning, capabilities: Capabilities, report: Report
) -> tuple[JsonObject | None, Effort | None]:
    if capabilities.disabled_type is not None:
        # While thinking is off, efforts above `high` are rejected.
        return {"type": capabilities.disabled_type}, clamp_effort(reasoning.effort, capabilities.efforts[:3])
    if capabilities.thinks_by_default:
        report.add(
            "adjusted", "reasoning effort set to low: thinking cannot be disabled on this model", subject="reasoning"
        )
        return None, "low"
    return None, None


def is_thinking(thinking: JsonObject | None) -> bool:
    return thinking is not None and thinking["type"] in ("enabled", "adaptive")


def fit_budget(thinking: JsonObject | None, max_tokens: int, report: Report) -> JsonObject | None:
    """Reduces the budget below `max_tokens`, or drops thinking where less than the minimum of 1024 would be left."""
    if thinking is None or thinking.get("budget_tokens", 0) < max_tokens:
        return thinking
    if max_tokens <= _MIN_BUDGET:
        report.add(
            "adjusted", f"thinking dropped: `max_tokens` {max_tokens} is too small for a budget", subject="reasoning"
        )
        return None
    budget = max(_MIN_BUDGET, max_tokens // 2)
    report.add("adjusted", f"thinking budget reduced to {budget} to fit `max_tokens`", subject="reasoning")
    return {**thinking, "budget_tokens": budget}

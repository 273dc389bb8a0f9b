"""`thinkingConfig` ⇄ `Reasoning`: thinking levels from Gemini 3 on, a token budget before that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from segue.canonical.request import Effort, Reasoning
from segue.render.report import Report
from segue.wire.effort import budget_for_effort, clamp_effort, effort_for_budget
from segue.wire.gemini.capabilities import Capabilities
from segue.wire.gemini.fields import JsonObject, get_int, get_text

_EFFORTS: tuple[Effort, ...] = get_args(Effort)
_DYNAMIC_BUDGET = -1


def parse_reasoning(config: Mapping[str, Any]) -> Reasoning | None:
    level = (get_text(config, "thinkingLevel") or "").lower()
    effort: Effort | None = next((known for known in _EFFORTS if known == level), None)
    budget = get_int(config, "thinkingBudget")
    match budget:
        case None:
            return None if effort is None else Reasoning(effort=effort)
        case 0:
            return Reasoning(enabled=False, effort=effort)
        case _ if budget < 0:
            return Reasoning(enabled=True, effort=effort, adaptive=True)
        case _:
            return Reasoning(enabled=True, effort=effort, budget=budget)


def render_reasoning(reasoning: Reasoning | None, capabilities: Capabilities, report: Report) -> JsonObject | None:
    """The value of `thinkingConfig`."""
    if reasoning is None or reasoning == Reasoning():
        return None
    disabled = reasoning.enabled is False or reasoning.effort == "none"
    if capabilities.thinking_levels:
        return _render_level(reasoning, disabled, capabilities.thinking_levels, report)
    if capabilities.thinking_budget is not None:
        return _render_budget(reasoning, disabled, capabilities, capabilities.thinking_budget, report)
    if not disabled:
        report.add("adjusted", "`reasoning` dropped: the model does not support reasoning", subject="reasoning")
    return None


def _render_level(
    reasoning: Reasoning, disabled: bool, levels: tuple[Effort, ...], report: Report
) -> JsonObject | None:
    if disabled:
        report.add(
            "adjusted",
            f"thinking level set to {levels[0]}: thinking cannot be disabled on this model",
            subject="reasoning",
        )
        return {"thinkingLevel": levels[0].upper()}
    effort = reasoning.effort
    if effort is None and reasoning.budget is not None:
        effort = effort_for_budget(reasoning.budget, available=levels)
        report.add("adjusted", f"thinking budget sent as level {effort}: the model has no budgets", subject="reasoning")
    # Without a level the model chooses how much to think.
    level = clamp_effort(effort, levels)
    if level is not None and level != effort:
        report.add("adjusted", f"reasoning effort {effort} sent as thinking level {level}", subject="reasoning")
    return None if level is None else {"thinkingLevel": level.upper()}


def _render_budget(
    reasoning: Reasoning, disabled: bool, capabilities: Capabilities, limits: tuple[int, int], report: Report
) -> JsonObject | None:
    minimum, maximum = limits
    if disabled:
        if capabilities.can_disable_thinking:
            return {"thinkingBudget": 0}
        report.add(
            "adjusted",
            f"thinking budget set to {minimum}: thinking cannot be disabled on this model",
            subject="reasoning",
        )
        return {"thinkingBudget": minimum}
    if reasoning.budget is None and reasoning.effort is None:
        return {"thinkingBudget": _DYNAMIC_BUDGET}
    requested = reasoning.budget or budget_for_effort(reasoning.effort or "medium")
    budget = max(minimum, min(requested, maximum))
    if reasoning.budget is not None and budget != requested:
        report.add("adjusted", f"thinking budget limited to the range {minimum} to {maximum}", subject="reasoning")
    return {"thinkingBudget": budget}

"""Reasoning effort ⇄ budget of thinking tokens by one table, and the closest effort that a model supports."""

from __future__ import annotations

from segue.canonical.request import Effort

_BUDGETS: dict[Effort, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 65536,
}


def budget_for_effort(effort: Effort) -> int:
    """Thinking tokens for an effort; 0 for `none`."""
    return _BUDGETS.get(effort, 0)


def effort_for_budget(budget: int, *, available: tuple[Effort, ...] = ("low", "medium", "high")) -> Effort:
    """The smallest `available` effort whose budget covers this one, else the largest."""
    if budget <= 0:
        return "none"
    for effort in available:
        if _BUDGETS[effort] >= budget:
            return effort
    return available[-1]


def clamp_effort(effort: Effort | None, available: tuple[Effort, ...]) -> Effort | None:
    """The effort itself, or the highest `available` one below it, or the lowest."""
    if effort is None or effort == "none" or not available:
        return None
    below: list[Effort] = [step for step in available if _BUDGETS[step] <= _BUDGETS[effort]]
    return below[-1] if below else available[0]


def closest_effort(budget: int, available: tuple[Effort, ...]) -> Effort:
    """The `available` effort whose budget is nearest, which may be `none`; of two equally near ones the higher."""
    return min(available, key=lambda effort: (abs(budget_for_effort(effort) - budget), -budget_for_effort(effort)))

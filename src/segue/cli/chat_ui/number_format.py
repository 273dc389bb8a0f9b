"""Formats numbers, durations and money in few columns."""

from __future__ import annotations

__all__ = ["format_ago", "format_count", "format_duration", "format_money", "format_short"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def format_short(number: int) -> str:
    """A number with k or M: 12345 is 12.3k."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return str(number)


def format_duration(span: float) -> str:
    """A duration: 0.2 s, 12 s, 2 min 5 s."""
    if span < 10:
        return f"{span:.1f} s"
    if span < _MINUTE:
        return f"{span:.0f} s"
    return f"{int(span) // _MINUTE} min {int(span) % _MINUTE} s"


def format_money(amount: float) -> str:
    """Dollars, with more decimals for amounts below one."""
    return f"${amount:.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def format_count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def format_ago(span: float) -> str:
    """The age of something, rounded."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if span >= size:
            return f"{int(span // size)} {unit} ago"
    return "just now"

"""Numbers outside of a range that the target accepts: moved to its nearest end, and reported."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from msgspec import Struct

from segue.canonical.json import are_identical
from segue.render.report import Report

_Number = TypeVar("_Number", int, float)
NO_MAXIMUM = 2**53


class BodyRange(Struct, frozen=True):
    """The range of a number in bodies of an API. Lists on the path are entered; with `type`, only its objects."""

    path: tuple[str, ...]
    least: int
    most: int = NO_MAXIMUM
    type: str | None = None


def move_into_range(name: str, value: _Number, least: float, most: float, report: Report, subject: str) -> float:
    """Return the value, or the end of the range that it is beyond."""
    if least <= value <= most:
        return value
    limit, change = (
        (most, "reduced to {:.15g}, the maximum") if value > most else (least, "raised to {:.15g}, the minimum")
    )
    report.add("adjusted", f"`{name}` {change.format(limit)}", subject=subject)
    return limit


def fit_body(body: dict[str, Any], ranges: tuple[BodyRange, ...], report: Report) -> dict[str, Any]:
    """Return the body with its numbers in their ranges; the same object if they are."""
    for each in ranges:
        if each.path[0] in body:
            body = _fit(body, each.path, each, report)
    return body


def _fit(node: Any, path: tuple[str, ...], to: BodyRange, report: Report) -> Any:
    """Return the node with the numbers below it at the path in their range."""
    if isinstance(node, list):
        items = cast("list[Any]", node)
        fitted = [_fit(item, path, to, report) if _is_meant(item, to) else item for item in items]
        return items if are_identical(fitted, items) else fitted
    if not path:
        is_number = isinstance(node, int | float) and not isinstance(node, bool)
        return move_into_range(to.path[-1], node, to.least, to.most, report, to.path[0]) if is_number else node
    if not isinstance(node, dict) or path[0] not in node:
        return cast("Any", node)
    inner = cast("dict[str, Any]", node)
    value = _fit(inner[path[0]], path[1:], to, report)
    return inner if value is inner[path[0]] else {**inner, path[0]: value}


def _is_meant(item: Any, to: BodyRange) -> bool:
    return to.type is None or (isinstance(item, dict) and cast("dict[str, Any]", item).get("type") == to.type)

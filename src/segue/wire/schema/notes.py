"""Records the changes made to a schema and where, and reports each kind of change once."""

from __future__ import annotations

from msgspec import Struct

from segue.render.report import Kind, Report

__all__ = ["Here", "Notes"]

_SHOWN = 3


class Notes:
    """`widened` counts the changes after which a schema accepts more values; equivalent rewriting does not count."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}
        self.lost = 0

    def add(self, message: str, path: str, *, loss: bool = True) -> None:
        self._places.setdefault(message, []).append(path or "the top")
        self.lost += loss

    def __contains__(self, message: str) -> bool:
        return message in self._places

    def extend(self, other: Notes) -> None:
        for message, places in other._places.items():
            self._places.setdefault(message, []).extend(places)
        self.lost += other.lost

    def report(self, report: Report, *, subject: str, kind: Kind) -> None:
        for message, found in self._places.items():
            places = list(dict.fromkeys(found))
            more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
            report.add(kind, f"schema: {message} (at {', '.join(places[:_SHOWN])}{more})", subject=subject)


class Here(Struct, frozen=True):
    """A place in the schema: its path, its depth, and the definitions it was reached through."""

    path: str = ""
    level: int = 0
    objects: int = 0
    trail: tuple[str, ...] = ()

    def inner(self, step: str, *, objects: int = 0) -> Here:
        path = f"{self.path}.{step}" if self.path else step
        return Here(path, self.level + 1, self.objects + objects, self.trail)

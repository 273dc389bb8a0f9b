"""Records the changes made to a schema and where, and reports each kind of change once."""

from __future__ import annotations

from msgspec import Struct

from segue.render.report import FindingKind, Report

FORCED_NULL_CHANGE = "optional properties made required and nullable"
_MAX_SHOWN = 3


class SchemaChanges:
    """`widened` counts the changes after which a schema accepts more values; equivalent rewriting does not count."""

    def __init__(self) -> None:
        self._paths: dict[str, list[str]] = {}
        self.widened = 0

    def add(self, message: str, path: str, *, widens: bool = True) -> None:
        self._paths.setdefault(message, []).append(path or "the top")
        self.widened += widens

    def __contains__(self, message: str) -> bool:
        return message in self._paths

    def extend(self, other: SchemaChanges) -> None:
        for message, paths in other._paths.items():
            self._paths.setdefault(message, []).extend(paths)
        self.widened += other.widened

    def report(self, report: Report, *, subject: str, kind: FindingKind) -> None:
        for message, paths in self._paths.items():
            unique_paths = list(dict.fromkeys(paths))
            more = f" and {len(unique_paths) - _MAX_SHOWN} more" if len(unique_paths) > _MAX_SHOWN else ""
            report.add(kind, f"schema: {message} (at {', '.join(unique_paths[:_MAX_SHOWN])}{more})", subject=subject)


class Location(Struct, frozen=True):
    """A position in a schema. `level` is its depth, `objects` the number of enclosing objects, `trail` the definitions
    that lead to it.
    """

    path: str = ""
    level: int = 0
    objects: int = 0
    trail: tuple[str, ...] = ()

    def child(self, step: str, *, objects: int = 0) -> Location:
        path = f"{self.path}.{step}" if self.path else step
        return Location(path, self.level + 1, self.objects + objects, self.trail)

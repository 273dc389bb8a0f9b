"""A row of the tables of bodies: a body that breaks exactly one rule, and its valid twin."""

from __future__ import annotations

from typing import NamedTuple

from tests.bodies import Body

ENVELOPE = "segueSealedReasoning" + "AAAA" * 20
"""The form of an envelope, which no provider accepts."""


class Case(NamedTuple):
    """`paths` are all places where the violating body is to be reported; the twin is to be clean."""

    rule: str
    about: str
    violating: Body
    valid: Body
    paths: tuple[str, ...]
    severity: str = "reject"
    model: str | None = None

    @property
    def name(self) -> str:
        return f"{self.rule} {self.about}"

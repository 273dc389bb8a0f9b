"""A case and its conversions: converted once for each target, shared by all tests."""

from __future__ import annotations

from typing import Any

import segue
from tests.conversations.build import Case


def convert(case: Case, target: str, **policy: Any) -> Any:
    return segue.convert(case.body, source=case.source, target=target, model=case.models.get(target), **policy)


class Conversions:
    def __init__(self, case: Case) -> None:
        self.case = case
        self._made: dict[str, Any] = {}

    def to(self, target: str) -> Any:
        """The conversion with the default policy. It is shared: tests must not change it."""
        if target not in self._made:
            self._made[target] = convert(self.case, target)
        return self._made[target]

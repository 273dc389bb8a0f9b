"""The one table of conversations. Every wire runs all of it: a new wire is done when its column is reviewed."""

from __future__ import annotations

from . import content, gemini, ids, pairing, reasoning, requests, switching, tools
from .build import Case

CASES: tuple[Case, ...] = (
    *pairing.CASES,
    *ids.CASES,
    *reasoning.CASES,
    *content.CASES,
    *tools.CASES,
    *requests.CASES,
    *switching.CASES,
    *gemini.CASES,
)
BY_NAME = {case.name: case for case in CASES}
assert len(BY_NAME) == len(CASES), "two conversations share a name"

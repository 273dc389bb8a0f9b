"""Every render pass is needed: with one of them left out, a judge, a vendor's type or a property must notice.

The bodies are the table of conversations and a fixed set of stories. A pass that nobody notices is either dead or
unguarded; the test names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import segue
from segue.conformance import judge
from segue.render import passes
from tests.conversations.sdk import complaints
from tests.conversations.table import CASES

from . import checks
from .generators import source_models, stories
from .spell import SPELLINGS, spell
from .story import Story

NAMES = [one.__name__ for one in passes.PASSES]


def _fixed_stories() -> list[tuple[Story, str]]:
    told: list[tuple[Story, str]] = []

    @settings(max_examples=120, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(story=stories(), source=st.sampled_from(sorted(SPELLINGS)))
    def collect(story: Story, source: str) -> None:
        told.append((story, source))

    collect()
    return told


def _conversations() -> Iterator[str]:
    """What the judges say about the table, and whether a lawful body still goes home."""
    for case in CASES:
        for target in checks.TARGETS:
            model = case.models.get(target)
            place = f"{case.name} → {target}"
            try:
                out = segue.convert(case.body, source=case.source, target=target, model=model).body
                again = segue.convert(out, source=target, target=target, model=model).body
            except Exception as error:  # noqa: BLE001 - whatever it raises, it was noticed
                yield f"{place}: {error!r}"
                continue
            home = case.source == target
            verdict = segue.check(out, target, model=model or (case.body.get("model") if home else None))
            if not verdict or any(violation.rule == "KIM-01" for violation in verdict):
                yield f"{place}: {verdict!r}"
            elif not home and complaints(out, target):
                yield f"{place}: the types of the SDK"
            elif json.dumps(again) != json.dumps(out):
                yield f"{place}: not idempotent"
            elif home and not model and judge(case.body, target) and json.dumps(out) != json.dumps(case.body):
                yield f"{place}: a lawful body was changed at home"


def _stories(told: list[tuple[Story, str]]) -> Iterator[str]:
    """What the properties say about a fixed set of stories."""
    for story, source in told:
        for target in checks.TARGETS:
            try:
                model = (*source_models(story, source), None)[-2]
                body = spell(story, source, model)
                out: Any = segue.convert(body, source=source, target=target)
                checks.converted(story, body, out, source, target, model if source == target else None)
            except Exception as error:  # noqa: BLE001
                yield f"a story in {source} → {target}: {str(error)[:200]}"


@pytest.fixture(scope="module")
def told() -> list[tuple[Story, str]]:
    return _fixed_stories()


@pytest.fixture(scope="module")
def known(told: list[tuple[Story, str]]) -> set[str]:
    """What is noticed with all passes in place: nothing, or a fault that other tests report."""
    return {*_conversations(), *_stories(told)}


def test_there_are_passes() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 3


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_a_missing_pass_is_noticed(
    index: int, told: list[tuple[Story, str]], known: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(draft: Any) -> Any:
        return draft

    original = passes.PASSES
    monkeypatch.setattr(passes, "PASSES", (*original[:index], left_out, *original[index + 1 :]))
    noticed = next((one for one in _conversations() if one not in known), None)
    noticed = noticed or next((one for one in _stories(told) if one not in known), None)
    assert noticed, f"nobody notices when the pass {NAMES[index]!r} does nothing"

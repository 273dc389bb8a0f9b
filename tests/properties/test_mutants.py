"""Every render pass is needed: with one of them left out, a judge, a vendor's type or a property must notice.

The bodies are the table of conversations and a fixed set of stories. A pass that nobody notices is either dead or
unguarded; the test names it. A pass that changes nothing for any wire there is stands in `WAITING` with the reason,
and leaves that list on the day a wire needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import segue
from segue.conformance import apis, judge
from segue.render import passes
from tests.conversations.build import Case
from tests.conversations.sdk import complaints
from tests.conversations.table import CASES

from . import checks
from .generators import source_models, stories
from .spell import SPELLINGS, spell
from .story import Story

NAMES = [one.__name__ for one in passes.PASSES]
WAITING: dict[str, str] = {}

Told = list[tuple[Story, str, dict[str, Any]]]


@pytest.fixture(scope="module")
def told() -> Told:
    """Stories that are the same in every run, each with a source and its body."""
    found: Told = []

    @settings(
        max_examples=150, database=None, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(story=stories(), source=st.sampled_from(sorted(SPELLINGS)))
    def collect(story, source) -> None:
        found.append((story, source, spell(story, source, (*source_models(story, source), None)[-2])))

    collect()
    return found


def _converted(body: dict[str, Any], source: str, target: str, model: str | None) -> Any:
    try:
        return segue.convert(body, source=source, target=target, model=model)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it was noticed
        return error


def _of_conversations() -> Iterator[str]:
    """What the judges say about the table, and whether a lawful body still goes home."""
    for case in CASES:
        for target in checks.TARGETS:
            model, home = case.models.get(target), case.source == target
            place = f"{case.name} → {target}"
            out = _converted(case.body, case.source, target, model)
            if isinstance(out, Exception):
                yield f"{place}: {out!r}"
                continue
            again = _converted(out.body, target, target, model)
            verdict = segue.check(out.body, target, model=model or (checks.model_of(case.body) if home else None))
            if not verdict or any(violation.rule == "KIM-01" for violation in verdict):
                yield f"{place}: {verdict!r}"
            elif not home and complaints(out.body, target):
                yield f"{place}: the types of the SDK"
            elif isinstance(again, Exception) or json.dumps(again.body) != json.dumps(out.body):
                yield f"{place}: not idempotent"
            else:
                yield from _by_property(case, out.body, target, place)


def _by_property(case: Case, body: dict[str, Any], target: str, place: str) -> Iterator[str]:
    home = case.source == target and target not in case.models
    try:
        if home and target in apis() and judge(case.body, target):
            assert json.dumps(body) == json.dumps(case.body), "a lawful body was changed at home"
        if home and case.body.get("model") == "claude-fable-5-1":
            checks.still_bound(case.body, body)
        if target == "anthropic":
            checks.results_together(body)
        checks.in_nobodys_voice(body)
        if case.source != target:
            checks.asks_in_words(body, target)
    except AssertionError as error:
        yield f"{place}: {error}"


def _of_stories(told: Told) -> Iterator[str]:
    """What the properties say about the fixed stories."""
    for number, (story, source, body) in enumerate(told):
        for target in checks.TARGETS:
            out = _converted(body, source, target, None)
            try:
                if isinstance(out, Exception):
                    raise out
                checks.converted(story, body, out, source, target, checks.model_of(body) if source == target else None)
            except Exception as error:  # noqa: BLE001
                yield f"story {number}, {source} → {target}: {str(error)[:200]}"


def _outputs(told: Told) -> list[str]:
    """Everything that is made of the set."""
    found: list[str] = []
    bodies = [(case.body, case.source, case.models) for case in CASES]
    for body, source, models in [*bodies, *((body, source, {}) for _, source, body in told)]:
        for target in checks.TARGETS:
            out = _converted(body, source, target, models.get(target))
            found.append(repr(out) if isinstance(out, Exception) else out.data.decode())
    return found


@pytest.fixture(scope="module")
def known(told: Told) -> set[str]:
    """What is noticed with all passes in place: nothing, or a fault that other tests report."""
    return {*_of_conversations(), *_of_stories(told)}


@pytest.fixture(scope="module")
def outputs(told: Told) -> list[str]:
    return _outputs(told)


def test_there_are_passes() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 3
    assert set(WAITING) <= set(NAMES)


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_a_missing_pass_is_noticed(
    index: int, told: Told, known: set[str], outputs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(draft: Any) -> Any:
        return draft

    name, original = NAMES[index], passes.PASSES
    monkeypatch.setattr(passes, "PASSES", (*original[:index], left_out, *original[index + 1 :]))
    if _outputs(told) == outputs:
        assert name in WAITING, (
            f"the pass {name!r} changes nothing in the whole set: it is dead, or the set lacks a case"
        )
        return
    assert name not in WAITING, f"the pass {name!r} does something now: take it from the list"
    noticed = next((one for one in _of_conversations() if one not in known), None)
    noticed = noticed or next((one for one in _of_stories(told) if one not in known), None)
    assert noticed, f"nobody notices when the pass {name!r} does nothing"

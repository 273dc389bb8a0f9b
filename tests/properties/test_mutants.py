"""Every render pass is needed: with one of them left out, a judge, a vendor's type or a property must notice.

The bodies are the table of conversations and a fixed set of stories. A pass that nobody notices is either dead or
unguarded; the test names it. A pass that changes nothing for any wire there is stands in `WAITING` with the reason,
and leaves that list on the day a wire needs it.

Outputs that changed are judged first, and all the others only if nobody noticed anything in those. What is noticed with
all passes in place as well is a fault that other tests report.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import segue
from segue.conformance import apis, judge
from segue.render import passes
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


class Place(NamedTuple):
    """One body on its way to one target, and who looks at what comes out."""

    name: str
    body: dict[str, Any]
    source: str
    target: str
    model: str | None
    notice: Callable[[Place, Any], str | None]


@pytest.fixture(scope="module")
def places(told: Told) -> list[Place]:
    found = [
        Place(case.name, case.body, case.source, target, case.models.get(target), _of_a_conversation)
        for case in CASES
        for target in checks.TARGETS
    ]
    for number, (story, source, body) in enumerate(told):
        found += [
            Place(f"story {number}", body, source, target, None, functools.partial(_of_a_story, story))
            for target in checks.TARGETS
        ]
    return found


def _converted(body: dict[str, Any], source: str, target: str, model: str | None) -> Any:
    try:
        return segue.convert(body, source=source, target=target, model=model)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it was noticed
        return error


def _made(place: Place) -> Any:
    return _converted(place.body, place.source, place.target, place.model)


def _data(out: Any) -> str:
    return repr(out) if isinstance(out, Exception) else out.data.decode()


def _of_a_conversation(place: Place, out: Any) -> str | None:
    """What the judges say about a conversation of the table, and whether a lawful body still goes home."""
    _, body, source, target, model, _ = place
    if isinstance(out, Exception):
        return repr(out)
    again = _converted(out.body, target, target, model)
    verdict = segue.check(out.body, target, model=model or (checks.model_of(body) if source == target else None))
    if not verdict or any(violation.rule == "KIM-01" for violation in verdict):
        return repr(verdict)
    if source != target and complaints(out.body, target):
        return "the types of the SDK"
    if isinstance(again, Exception) or json.dumps(again.body) != json.dumps(out.body):
        return "not idempotent"
    return _by_property(place, out.body)


def _by_property(place: Place, body: dict[str, Any]) -> str | None:
    given, target = place.body, place.target
    home = place.source == target and place.model is None
    try:
        if home and target in apis() and judge(given, target):
            assert json.dumps(body) == json.dumps(given), "a lawful body was changed at home"
        if home and given.get("model") == "claude-fable-5-1":
            checks.still_bound(given, body)
        if target == "anthropic":
            checks.results_together(body)
        checks.in_nobodys_voice(body)
        if place.source != target:
            checks.asks_in_words(body, target)
    except AssertionError as error:
        return str(error)
    return None


def _of_a_story(story: Story, place: Place, out: Any) -> str | None:
    """What the properties say about a story."""
    _, body, source, target, _, _ = place
    try:
        if isinstance(out, Exception):
            raise out
        checks.converted(story, body, out, source, target, checks.model_of(body) if source == target else None)
    except Exception as error:  # noqa: BLE001
        return str(error)[:200]
    return None


class Whole:
    """What comes out with all passes in place, and what is noticed there; both only where somebody asks."""

    def __init__(self, original: tuple[Any, ...]) -> None:
        self._original = original
        self._outputs: dict[tuple[str, str], Any] = {}

    def output(self, place: Place) -> str:
        key = (place.name, place.target)
        if key not in self._outputs:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(passes, "PASSES", self._original)
                self._outputs[key] = _data(_made(place))
        return self._outputs[key]

    def noticed(self, place: Place) -> str | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(passes, "PASSES", self._original)
            return place.notice(place, _made(place))


@pytest.fixture(scope="module")
def whole() -> Whole:
    return Whole(passes.PASSES)


def _noticed(places: Iterable[Place], whole: Whole) -> bool:
    for place in places:
        found = place.notice(place, _made(place))
        if found is not None and found != whole.noticed(place):
            return True
    return False


def test_there_are_passes() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 3
    assert set(WAITING) <= set(NAMES)


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_a_missing_pass_is_noticed(
    index: int, places: list[Place], whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(draft: Any) -> Any:
        return draft

    name, original = NAMES[index], passes.PASSES
    monkeypatch.setattr(passes, "PASSES", (*original[:index], left_out, *original[index + 1 :]))
    changed = (place for place in places if _data(_made(place)) != whole.output(place))
    first = next(changed, None)
    if first is None:
        assert name in WAITING, (
            f"the pass {name!r} changes nothing in the whole set: it is dead, or the set lacks a case"
        )
        return
    assert name not in WAITING, f"the pass {name!r} does something now: take it from the list"
    noticed = _noticed([first], whole) or _noticed(changed, whole) or _noticed(places, whole)
    assert noticed, f"nobody notices when the pass {name!r} does nothing"

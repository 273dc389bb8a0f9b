"""Every render pass is needed: without one of them, the checker, a vendor's type or a property must fail.

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
from segue.conformance import apis, check_body
from segue.render import passes
from tests.conversations.sdk import complaints
from tests.conversations.table import CASES
from tests.properties import checks
from tests.properties.bodies import BUILDERS, build_body
from tests.properties.generators import scenarios, source_models
from tests.properties.scenario import Scenario

NAMES = [one.__name__ for one in passes.PASSES]
WAITING: dict[str, str] = {}

Scenarios = list[tuple[Scenario, str, dict[str, Any]]]


@pytest.fixture(scope="module")
def fixed_scenarios() -> Scenarios:
    """Scenarios that are the same in every run, each with a source and its body."""
    found: Scenarios = []

    @settings(
        max_examples=150, database=None, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(scenario=scenarios(), source=st.sampled_from(sorted(BUILDERS)))
    def collect(scenario, source) -> None:
        found.append((scenario, source, build_body(scenario, source, (*source_models(scenario, source), None)[-2])))

    collect()
    return found


class Place(NamedTuple):
    """One conversion of a body to a target, and the check of its output."""

    name: str
    body: dict[str, Any]
    source: str
    target: str
    model: str | None
    notice: Callable[[Place, Any], str | None]


@pytest.fixture(scope="module")
def places(fixed_scenarios: Scenarios) -> list[Place]:
    found = [
        Place(case.name, case.body, case.source, target, case.models.get(target), _check_conversation)
        for case in CASES
        for target in checks.TARGETS
    ]
    for number, (scenario, source, body) in enumerate(fixed_scenarios):
        found += [
            Place(f"story {number}", body, source, target, None, functools.partial(_check_scenario, scenario))
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


def _check_conversation(place: Place, out: Any) -> str | None:
    """The violations of a conversation of the table, and whether a valid body is unchanged for the same API."""
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
    same_api = place.source == target and place.model is None
    try:
        if same_api and target in apis() and check_body(given, target):
            assert json.dumps(body) == json.dumps(given), "a lawful body was changed at home"
        if same_api and given.get("model") == "claude-fable-5-1":
            checks.check_thinking_prefix(given, body)
        if target == "anthropic":
            checks.check_results_together(body)
        checks.check_no_api_items_as_text(body)
        if place.source != target:
            checks.check_json_instruction(body, target)
            checks.check_compaction(given, body)
    except AssertionError as error:
        return str(error)
    return None


def _check_scenario(scenario: Scenario, place: Place, out: Any) -> str | None:
    """The failed properties of a scenario."""
    _, body, source, target, _, _ = place
    try:
        if isinstance(out, Exception):
            raise out
        checks.check_conversion(
            scenario, body, out, source, target, checks.model_of(body) if source == target else None
        )
    except Exception as error:  # noqa: BLE001
        return str(error)[:200]
    return None


class Baseline:
    """The output and its failures with all passes in place, computed on demand."""

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
def baseline() -> Baseline:
    return Baseline(passes.PASSES)


def _noticed(places: Iterable[Place], baseline: Baseline) -> bool:
    for place in places:
        found = place.notice(place, _made(place))
        if found is not None and found != baseline.noticed(place):
            return True
    return False


def test_there_are_passes() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 3
    assert set(WAITING) <= set(NAMES)


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_a_missing_pass_is_noticed(
    index: int, places: list[Place], baseline: Baseline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(draft: Any) -> Any:
        return draft

    name, original = NAMES[index], passes.PASSES
    monkeypatch.setattr(passes, "PASSES", (*original[:index], left_out, *original[index + 1 :]))
    changed = (place for place in places if _data(_made(place)) != baseline.output(place))
    first = next(changed, None)
    if first is None:
        assert name in WAITING, (
            f"the pass {name!r} changes nothing in the whole set: it is dead, or the set lacks a case"
        )
        return
    assert name not in WAITING, f"the pass {name!r} does something now: take it from the list"
    noticed = _noticed([first], baseline) or _noticed(changed, baseline) or _noticed(places, baseline)
    assert noticed, f"nobody notices when the pass {name!r} does nothing"

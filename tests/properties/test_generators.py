"""The generators themselves: valid scenarios are valid, broken ones occur often, and the pairing is known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.conformance import check_body
from tests.budget import examples
from tests.properties.bodies import BUILDERS, build_body
from tests.properties.generators import MODELS, scenarios, source_models, valid_scenarios
from tests.properties.readers import READERS
from tests.properties.scenario import Result, Scenario, find_marker


@pytest.mark.parametrize("api", BUILDERS)
@examples(1, items=len(BUILDERS))
@given(data=st.data())
def test_valid_scenario_is_accepted_unchanged(api: str, data: st.DataObject) -> None:
    scenario = data.draw(valid_scenarios(api))
    model = data.draw(st.sampled_from(MODELS[api]))
    body = build_body(scenario, api, model)
    verdict = check_body(body, api)
    assert verdict, str(verdict)
    assert not [violation for violation in verdict if violation.rule == "KIM-01"]
    assert json.loads(json.dumps(body)) == body


@pytest.mark.parametrize("api", BUILDERS)
@examples(1, items=len(BUILDERS))
@given(data=st.data())
def test_reader_finds_the_expected_pairs_of_a_valid_scenario(api: str, data: st.DataObject) -> None:
    scenario = data.draw(valid_scenarios(api))
    found = {interaction.marker: interaction for interaction in READERS[api](build_body(scenario, api)).interactions}
    assert found.keys() == scenario.results.keys()
    for marker, result in scenario.results.items():
        assert isinstance(result, Result)
        expected = find_marker(result.text)
        assert find_marker(found[marker].text or "") == expected


@examples(1)
@given(scenario=scenarios())
def test_any_scenario_can_be_built_and_checked(scenario: Scenario) -> None:
    for api in BUILDERS:
        body = build_body(scenario, api)
        assert json.loads(json.dumps(body)) == body
        check_body(body, api)
        assert source_models(scenario, api)
    assert {call.marker for call in scenario.calls} == scenario.results.keys()


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(story=scenarios())
def _count(story: Scenario) -> None:
    rejected = [api for api in BUILDERS if not check_body(build_body(story, api), api)]
    COUNTS["stories"] += 1
    COUNTS["broken"] += bool(rejected)
    COUNTS[story.style] = COUNTS.get(story.style, 0) + 1
    COUNTS["losers"] += bool(story.discarded_results)
    COUNTS["orphans"] += bool(story.orphans)
    COUNTS["missing"] += None in story.results.values()


COUNTS: dict[str, int] = dict.fromkeys(("stories", "broken", "losers", "orphans", "missing"), 0)


def test_broken_scenarios_are_generated_often() -> None:
    _count()
    assert COUNTS["broken"] > COUNTS["stories"] / 3
    for fault in ("losers", "orphans", "missing"):
        assert COUNTS[fault] >= 5, (fault, COUNTS)

"""The generators themselves: valid scenarios are valid, broken ones occur often, and the pairing is known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.conformance import check_body
from tests.budget import examples

from .generators import MODELS, lawful_stories, source_models, stories
from .readers import READERS
from .spell import SPELLINGS, spell
from .story import Result, Story, word_of


@pytest.mark.parametrize("api", SPELLINGS)
@examples(1, items=len(SPELLINGS))
@given(data=st.data())
def test_valid_scenario_is_accepted_unchanged(api: str, data: st.DataObject) -> None:
    scenario = data.draw(lawful_stories(api))
    model = data.draw(st.sampled_from(MODELS[api]))
    body = spell(scenario, api, model)
    verdict = check_body(body, api)
    assert verdict, str(verdict)
    assert not [violation for violation in verdict if violation.rule == "KIM-01"]
    assert json.loads(json.dumps(body)) == body


@pytest.mark.parametrize("api", SPELLINGS)
@examples(1, items=len(SPELLINGS))
@given(data=st.data())
def test_reader_finds_the_expected_pairs_of_a_valid_scenario(api: str, data: st.DataObject) -> None:
    scenario = data.draw(lawful_stories(api))
    found = {interaction.word: interaction for interaction in READERS[api](spell(scenario, api)).interactions}
    assert found.keys() == scenario.answers.keys()
    for marker, result in scenario.answers.items():
        assert isinstance(result, Result)
        expected = word_of(result.text)
        assert word_of(found[marker].text or "") == expected


@examples(1)
@given(scenario=stories())
def test_any_scenario_can_be_built_and_checked(scenario: Story) -> None:
    for api in SPELLINGS:
        body = spell(scenario, api)
        assert json.loads(json.dumps(body)) == body
        check_body(body, api)
        assert source_models(scenario, api)
    assert {call.word for call in scenario.calls} == scenario.answers.keys()


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(story=stories())
def _count(story: Story) -> None:
    rejected = [api for api in SPELLINGS if not check_body(spell(story, api), api)]
    COUNTS["stories"] += 1
    COUNTS["broken"] += bool(rejected)
    COUNTS[story.style] = COUNTS.get(story.style, 0) + 1
    COUNTS["losers"] += bool(story.losers)
    COUNTS["orphans"] += bool(story.orphans)
    COUNTS["missing"] += None in story.answers.values()


COUNTS: dict[str, int] = dict.fromkeys(("stories", "broken", "losers", "orphans", "missing"), 0)


def test_broken_scenarios_are_generated_often() -> None:
    _count()
    assert COUNTS["broken"] > COUNTS["stories"] / 3
    for fault in ("losers", "orphans", "missing"):
        assert COUNTS[fault] >= 5, (fault, COUNTS)

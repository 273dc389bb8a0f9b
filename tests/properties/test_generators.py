"""The generators themselves: clean stories are lawful, broken ones are broken often, and each knows its truth."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.conformance import judge
from tests.budget import examples

from .generators import MODELS, lawful_stories, source_models, stories
from .readers import READERS
from .spell import SPELLINGS, spell
from .story import Result, Story, word_of


@pytest.mark.parametrize("api", SPELLINGS)
@examples(1, items=len(SPELLINGS))
@given(data=st.data())
def test_a_clean_story_is_accepted_as_it_is(api: str, data: st.DataObject) -> None:
    story = data.draw(lawful_stories(api))
    model = data.draw(st.sampled_from(MODELS[api]))
    body = spell(story, api, model)
    verdict = judge(body, api)
    assert verdict, str(verdict)
    assert not [violation for violation in verdict if violation.rule == "KIM-01"]
    assert json.loads(json.dumps(body)) == body


@pytest.mark.parametrize("api", SPELLINGS)
@examples(1, items=len(SPELLINGS))
@given(data=st.data())
def test_the_reader_finds_the_truth_of_a_clean_story(api: str, data: st.DataObject) -> None:
    story = data.draw(lawful_stories(api))
    found = {interaction.word: interaction for interaction in READERS[api](spell(story, api)).interactions}
    assert found.keys() == story.answers.keys()
    for word, result in story.answers.items():
        assert isinstance(result, Result)
        expected = word_of(result.text)
        assert word_of(found[word].text or "") == expected


@examples(1)
@given(story=stories())
def test_any_story_can_be_spelled_and_judged(story: Story) -> None:
    for api in SPELLINGS:
        body = spell(story, api)
        assert json.loads(json.dumps(body)) == body
        judge(body, api)
        assert source_models(story, api)
    assert {call.word for call in story.calls} == story.answers.keys()


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(story=stories())
def _count(story: Story) -> None:
    rejected = [api for api in SPELLINGS if not judge(spell(story, api), api)]
    COUNTS["stories"] += 1
    COUNTS["broken"] += bool(rejected)
    COUNTS[story.style] = COUNTS.get(story.style, 0) + 1
    COUNTS["losers"] += bool(story.losers)
    COUNTS["orphans"] += bool(story.orphans)
    COUNTS["missing"] += None in story.answers.values()


COUNTS: dict[str, int] = dict.fromkeys(("stories", "broken", "losers", "orphans", "missing"), 0)


def test_broken_stories_are_told_often() -> None:
    _count()
    assert COUNTS["broken"] > COUNTS["stories"] / 3
    for fault in ("losers", "orphans", "missing"):
        assert COUNTS[fault] >= 5, (fault, COUNTS)

"""Any value in any place gives rows or rejects, never another error; and everything is still accounted for."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.corpora import Counts, Reject, Settings
from segue.corpora.output import render_row
from segue.corpora.reading import plan_data
from segue.corpora.units import read_unit
from segue.errors import InputError
from tests.budget import examples
from tests.corpora.samples import session
from tests.corpora.test_nothing_lost import BATCHES, CLIENTS, REQUESTS, ROW_FORMATS, TARGETS, encode_lines
from tests.corpora.test_rows import BATCHES as RESULTS
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios
from tests.properties.scenario import Scenario
from tests.sessions.test_properties import build_lines

ODD_VALUES = (
    None,
    True,
    0,
    -1,
    1e99,
    2**70,
    "",
    "null",
    "data:,x",
    [],
    {},
    [1],
    [None],
    [[]],
    {"a": 1},
    [{"type": "x"}],
)


RECORDED = {file.name: file for file in sorted((Path(__file__).parents[1] / "data/sessions").iterdir())}


def build(source: str, scenario: Scenario) -> list[dict[str, Any]]:
    from segue.corpora import convert_session

    if source in RECORDED:
        return [json.loads(line) for line in RECORDED[source].read_text().split("\n") if line]
    if source in CLIENTS:
        return build_lines(CLIENTS[source], scenario)
    if source in BATCHES:
        _, result, failure = RESULTS[source]
        request = REQUESTS[source](build_body(scenario, BATCHES[source]))
        return [request, {**result, **{key: "a" for key in ("custom_id", "key") if key in result}}, failure]
    return convert_session(session(), to=source)


def places(value: Any, *before: Any) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*before, key), *places(item, *before, key))]


@pytest.mark.parametrize("source", [*CLIENTS, *ROW_FORMATS, *BATCHES, *RECORDED])
def test_any_value_in_any_place_is_read_or_rejected(source: str):
    @given(scenario=scenarios(), data=st.data())
    @examples(20, items=15)
    def check(scenario: Scenario, data: st.DataObject) -> None:
        try:
            lines = copy.deepcopy(build(source, scenario))
        except KeyError:
            return
        place = data.draw(st.sampled_from(places(lines)))
        if len(place) < 2:
            return
        above: Any = lines
        for key in place[:-1]:
            above = above[key]
        above[place[-1]] = data.draw(st.sampled_from(ODD_VALUES))
        counts = Counts()
        try:
            named = None if source in RECORDED else data.draw(st.sampled_from([source, None]))
            unit = plan_data(encode_lines(lines), named)
        except InputError:
            return
        for found in read_unit(unit, counts):
            if isinstance(found, Reject):
                assert found.reason
                continue
            for target in data.draw(st.lists(st.sampled_from(TARGETS), max_size=2)):
                try:
                    rendered = render_row(found, Settings(target), Counts(), "1")
                except InputError:
                    continue
                json.dumps(rendered)
        counts.verify()

    check()

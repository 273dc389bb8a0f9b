"""Properties of every source, target and history: the guarantees of design §4, on random scenarios.

Each parameter is a pair of wires from the registry; the models of source and target are drawn. `checks` says what is
looked at, `readers` reads the output without segue.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import segue
from segue.conformance import check_body
from segue.errors import InputError
from tests.budget import examples, sample_pairs
from tests.properties import checks
from tests.properties.bodies import BUILDERS, build_body
from tests.properties.chaos import CHAOS, JSON_VALUES, damaged
from tests.properties.generators import MODELS as SOURCE_MODELS
from tests.properties.generators import scenarios, source_models, valid_scenarios
from tests.properties.readers import read
from tests.properties.scenario import Event, Reply, Result, Scenario, System, UserText, find_marker

PAIRS = [sample_pairs(checks.TARGETS, start=start) for start in range(3)]
SOME_PAIRS = [pytest.mark.parametrize(("source", "target"), pairs) for pairs in PAIRS]
EVERY_TARGET = pytest.mark.parametrize("target", checks.TARGETS)


def scenarios_with_body(
    data: st.DataObject, source: str, strategy: st.SearchStrategy[Scenario] | None = None
) -> tuple[Scenario, Any]:
    """A scenario and its body at the source."""
    scenario = data.draw(strategy or scenarios())
    assume(source != "gemini" or not scenario.is_ambiguous_when_joined())
    model = data.draw(st.sampled_from((None, *source_models(scenario, source))))
    body = build_body(scenario, source, model)
    note(f"body: {checks.dump_json(body)}")
    return scenario, body


def target_model(data: st.DataObject, target: str) -> str | None:
    return data.draw(st.sampled_from(checks.models(target)))


@SOME_PAIRS[0]
@examples(35, items=len(PAIRS[0]))
@given(data=st.data())
def test_scenario_keeps_its_content(source: str, target: str, data: st.DataObject) -> None:
    """Valid, paired, nothing lost, ids valid and unique, the input unchanged, idempotent."""
    scenario, body = scenarios_with_body(data, source)
    model = target_model(data, target)
    before = copy.deepcopy(body)
    out = segue.convert(body, source=source, target=target, model=model)
    assert checks.dump_json(body) == checks.dump_json(before), "the input was changed"
    assert json.loads(out.data) == out.body
    judged = model or (checks.model_of(body) if source == target else None)
    checks.check_conversion(scenario, body, out, source, target, judged)
    if source == target and not model:
        checks.check_same_api(body, out.body, target)
    again = segue.convert(out.body, source=target, target=target, model=model)
    assert checks.dump_json(again.body) == checks.dump_json(out.body), "a second conversion changed it"


@EVERY_TARGET
@examples(10, items=len(checks.TARGETS))
@given(data=st.data())
def test_repeated_item_is_sent_once(target: str, data: st.DataObject) -> None:
    """Responses: each item has an id of its own, so the same one again changes nothing (OAI-RESP-13)."""
    _, body = scenarios_with_body(data, "openai-responses")
    named = [item for item in body["input"] if "id" in item]
    assume(named and len({item["id"] for item in named}) == len(named))
    again = data.draw(st.lists(st.sampled_from(range(len(named))), min_size=1, max_size=3, unique=True))
    doubled = [one for item in body["input"] for one in [item] * (2 if item in [named[i] for i in again] else 1)]
    out = segue.convert({**body, "input": doubled}, source="openai-responses", target=target)
    once = segue.convert(body, source="openai-responses", target=target)
    assert checks.dump_json(out.body) == checks.dump_json(once.body)
    assert out.report.findings_of("dedupe")


# Gemini and Mistral refuse keys that they do not know (MIS-13).
EXTRAS: dict[str, dict[str, Any]] = {
    "": {"temperature": 1.0, "top_p": 1, "metadata": {"k": "v", "": 0}, "x_unknown": [1, 1.0, {}]},
    "mistral": {"temperature": 1.0, "top_p": 1, "metadata": {"k": "v", "": 0}},
    "bedrock": {"requestMetadata": {"k": "v"}, "serviceTier": {"type": "flex"}, "performanceConfig": {}},
    "azure-foundry": {"temperature": 1.0, "top_p": 1, "metadata": {"k": "v"}, "x_unknown": [1, 1.0, {}]},
    "gemini": {"safety_settings": [{"threshold": 1.0}, {}], "labels": {"k": 1, "": 1.0}, "store": [1, 1.0, {}]},
}


@EVERY_TARGET
@examples(10, items=len(checks.TARGETS))
@given(data=st.data())
def test_valid_body_is_unchanged_for_same_api(target: str, data: st.DataObject) -> None:
    """A valid body keeps every field, the order of keys, and int and float for the same API."""
    scenario = data.draw(valid_scenarios(target) if target in BUILDERS else scenarios())
    body = build_body(scenario, target, data.draw(st.sampled_from(SOURCE_MODELS.get(target, (None,)))))
    extras = EXTRAS.get(target, EXTRAS[""])
    chosen = data.draw(st.lists(st.sampled_from(sorted(extras)), unique=True, max_size=3))
    body = {**{key: extras[key] for key in chosen[:1]}, **body, **{key: extras[key] for key in chosen[1:]}}
    assert target not in BUILDERS or check_body(body, target)
    checks.check_same_api(body, segue.convert(body, source=target, target=target).body, target)


CAREFUL = ("own", "unique", "kimi", "restarting")  # styles in which a late duplicate or an orphan is plain


def _closed(scenario: Scenario) -> bool:
    """Whether every call of the last turn has a result."""
    last = next((event for event in reversed(scenario.events) if isinstance(event, Reply) and event.calls), None)
    return last is None or all(scenario.results[call.marker] for call in last.calls)


def _appendix(data: st.DataObject, scenario: Scenario, source: str, source_model: str | None) -> list[Event]:
    """What may follow a closed turn without changing it: text, system text, a repeated result, an orphan.

    Gemini and K3 pair by position: there a result that nobody asked for answers an older call.
    """
    appended: list[Event] = [
        UserText(("Next w9001q.",)),
        System("Also w9002q."),
        UserText(("And w9003q.",), joined=True),
    ]
    last = scenario.results[scenario.calls[-1].marker] if scenario.calls else None
    plain = scenario.style in CAREFUL and source != "gemini"
    if last and not last.error and last.kind != "legacy" and plain and data.draw(st.booleans()):
        appended.insert(data.draw(st.integers(0, 1)), last)
    if plain and source_model != "kimi-k3" and data.draw(st.booleans()):
        appended.insert(data.draw(st.integers(0, 1)), Result(None, "Lost w9004q", "nobody_9004"))
    return appended[: data.draw(st.integers(1, len(appended)))]


BRIDGES = ([], ["[continued]"], [[{"text": "[continued]"}]])


@SOME_PAIRS[1]
@examples(14, items=len(PAIRS[1]))
@given(data=st.data())
def test_prefix_is_stable_when_messages_are_appended(source: str, target: str, data: st.DataObject) -> None:
    """Prefix-stable: with a closed last turn, appending leaves everything up to the last reply byte-equal."""
    scenario = data.draw(scenarios())
    assume(_closed(scenario))
    model, source_model = (
        target_model(data, target),
        data.draw(st.sampled_from((None, *source_models(scenario, source)))),
    )
    longer = copy.copy(scenario)
    longer.events = [*scenario.events, *_appendix(data, scenario, source, source_model)]
    first = segue.convert(build_body(scenario, source, source_model), source=source, target=target, model=model)
    second = segue.convert(build_body(longer, source, source_model), source=source, target=target, model=model)
    before, after = checks.up_to_last_reply(first.body), checks.up_to_last_reply(second.body)
    assert after[: len(before)] == before
    # MIS-07, BED-07: only a bridge may have come in behind them.
    assert [json.loads(one)["content"] for one in after[len(before) :] if '"assistant"' in one] in BRIDGES
    assert target in ("mistral", "bedrock") or after == before
    for key in ("system", "instructions", "systemInstruction", "tools", "toolConfig"):
        assert checks.dump_json(first.body.get(key)) == checks.dump_json(second.body.get(key))


POLICIES: tuple[dict[str, Any], ...] = (
    {"reasoning": "text"},
    {"reasoning": "none"},
    {"hosted": "text"},
    {"hosted": "drop"},
    {"pending": "keep"},
    {"orphans": "drop"},
    {"ids": "canonical"},
    {"ids": "native"},
    {"ids": "canonical", "reasoning": "text", "orphans": "drop"},
)


@SOME_PAIRS[2]
@examples(12, items=len(PAIRS[2]))
@given(data=st.data())
def test_every_policy_gives_a_valid_body(source: str, target: str, data: st.DataObject) -> None:
    scenario, body = scenarios_with_body(data, source)
    model, policy = target_model(data, target), data.draw(st.sampled_from(POLICIES))
    out = segue.convert(body, source=source, target=target, model=model, **policy)
    judged = model or (checks.model_of(body) if source == target else None)
    native = policy.get("ids") == "native"
    if not native:
        checks.check_accepted(out.body, target, judged, pending=policy.get("pending") == "keep")
    body_text = checks.dump_json(out.body)
    if policy.get("reasoning") == "none":
        assert not [thought for thought in scenario.thoughts() if str(find_marker(thought)) in body_text]
    if policy.get("reasoning") == "text":
        assert not [thought for thought in scenario.thoughts() if str(find_marker(thought)) not in body_text]
    if policy.get("orphans") == "drop":
        assert not [orphan for orphan in scenario.orphans if str(find_marker(orphan.text)) in body_text]
    if not native and "pending" not in policy:
        checks.check_pairing(read(out.body, target), scenario)
    if policy.get("pending") == "keep":
        for one in read(out.body, target).interactions:
            expected = scenario.results[str(one.marker)]
            if expected is not None and one.text is not None:
                checks.check_result_text(one.text, expected)


@SOME_PAIRS[0]
@examples(8, items=len(PAIRS[0]))
@given(data=st.data())
def test_round_trip_keeps_every_interaction(source: str, target: str, data: st.DataObject) -> None:
    """A → B → A keeps every interaction: arguments, result, pairing."""
    scenario, body = scenarios_with_body(data, source)
    there = segue.convert(body, source=source, target=target)
    back = segue.convert(there.body, source=target, target=source)
    checks.check_accepted(back.body, source, None)
    reading = read(back.body, source)
    checks.check_pairing(reading, scenario)
    assert [one.marker for one in reading.interactions] == [one.marker for one in read(there.body, target).interactions]


@SOME_PAIRS[1]
@examples(5, items=len(PAIRS[1]))
@given(data=st.data())
def test_chaotic_body_becomes_valid(source: str, target: str, data: st.DataObject) -> None:
    assume(source in CHAOS)
    body, model = data.draw(CHAOS[source]), target_model(data, target)
    assume(checks.messages_of(body))
    out = segue.convert(body, source=source, target=target, model=model)
    checks.check_accepted(out.body, target, model or (checks.model_of(body) if source == target else None))
    again = segue.convert(out.body, source=target, target=target, model=model)
    assert checks.dump_json(again.body) == checks.dump_json(out.body), "a second conversion changed it"


@SOME_PAIRS[2]
@examples(4, items=len(PAIRS[2]))
@given(data=st.data())
def test_a_damaged_body_is_converted_or_refused(source: str, target: str, data: st.DataObject) -> None:
    """One of two: a body that the target accepts, or an `InputError`. Never anything else."""
    _, body = scenarios_with_body(data, source)
    broken = data.draw(damaged(body))
    before = copy.deepcopy(broken)
    try:
        out = segue.convert(broken, source=source, target=target)
    except InputError:
        pass
    else:
        assert json.loads(out.data) == out.body
        checks.check_accepted(out.body, target, checks.model_of(out.body), typed=False)
    assert checks.dump_json(broken) == checks.dump_json(before)


@EVERY_TARGET
@examples(2, items=len(checks.TARGETS))
@given(value=JSON_VALUES, source=st.sampled_from((None, *checks.TARGETS)), as_bytes=st.booleans())
def test_any_value_is_converted_or_refused(target: str, value: Any, source: str | None, as_bytes: bool) -> None:
    given_body: Any = json.dumps(value).encode() if as_bytes else value
    try:
        out = segue.convert(given_body, source=source, target=target)
    except InputError:
        pass
    else:
        assert json.loads(out.data) == out.body

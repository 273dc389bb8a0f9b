"""A pass that is not run, because the draft has none of its traits, would have changed and reported nothing.

Each request is rendered twice: with the passes that have work, and with all passes. A pass adds no other traits than
those that are listed for it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.contents import summarize
from segue.canonical.request import Request
from segue.conversion.convert import render_for
from segue.errors import SegueError
from segue.render import passes
from segue.render.constraints import Policy
from segue.render.draft import Draft
from segue.render.report import Report
from segue.render.traits import Trait, find_traits
from segue.wire.registry import WIRES
from tests.budget import examples, sample
from tests.conversations.table import CASES
from tests.properties import checks
from tests.properties.chaos import CHAOS, damaged
from tests.properties.test_properties import scenarios_with_body

POLICIES = (
    Policy(),
    Policy(reasoning="text", hosted="text", pending="keep"),
    Policy(ids="canonical", reasoning="none", hosted="drop", orphans="drop"),
)
SOURCES = sorted(CHAOS)


def rendered(request: Request, target: str, model: str | None, policy: Policy) -> Any:
    report = Report()
    try:
        transcript, output = render_for(request, WIRES[target], report, policy, model=model)
    except SegueError as error:
        return repr(error), report.to_dict()
    return transcript, json.dumps(output.body), report.to_dict()


def traits_of(draft: Draft) -> set[Trait]:
    return find_traits(draft, summarize(draft.messages))


def check_added_traits(step: passes.Pass, added: frozenset[Trait]) -> passes.Pass:
    """Return the pass with a check that it adds no other traits which later passes need."""
    later = passes.PASSES[passes.PASSES.index(step) + 1 :]
    needed = frozenset[Trait]().union(*(passes.TRAITS_NEEDED.get(other, ()) for other in later))

    def run(draft: Draft) -> Draft:
        changed = step(draft)
        assert traits_of(changed) & needed <= traits_of(draft) | added, step.__name__
        return changed

    return run


CHECKED = {step: check_added_traits(step, added) for step, added in passes.TRAITS_ADDED.items()}


def assert_equal_with_all_passes(request: Request, target: str, model: str | None, policy: Policy) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TRAITS_NEEDED", "TRAITS_ADDED"):
            patch.setattr(passes, name, {CHECKED.get(step, step): row for step, row in getattr(passes, name).items()})
        patch.setattr(passes, "PASSES", tuple(CHECKED.get(step, step) for step in passes.PASSES))
        selected = rendered(request, target, model, policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "TRAITS_NEEDED", {})
        assert rendered(request, target, model, policy) == selected


def parsed(body: dict[str, Any], source: str) -> Request | None:
    try:
        return WIRES[source].parse_request(body)
    except SegueError:
        return None


def test_each_pass_states_its_traits_or_runs_always() -> None:
    assert set(passes.PASSES) - passes.TRAITS_NEEDED.keys() == {passes.insert_captions}
    assert passes.TRAITS_NEEDED.keys() <= set(passes.PASSES)


def test_passes_without_work_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}]}
    run: list[str] = []

    def record(step: passes.Pass) -> passes.Pass:
        return lambda draft: run.append(step.__name__) or step(draft)

    recorders = {step: record(step) for step in passes.PASSES}
    needed = {recorders[step]: traits for step, traits in passes.TRAITS_NEEDED.items()}
    monkeypatch.setattr(passes, "PASSES", tuple(recorders.values()))
    monkeypatch.setattr(passes, "TRAITS_NEEDED", needed)
    for target in checks.TARGETS:
        render_for(WIRES["openai-chat"].parse_request(body), WIRES[target], Report(), Policy())
    assert set(run) == {"insert_captions"}


@pytest.mark.parametrize("target", checks.TARGETS)
def test_conversations_equal_those_of_all_passes(target: str) -> None:
    start = checks.TARGETS.index(target)
    for index, case in enumerate(sample(CASES, 3, start=start)):
        request = WIRES[case.source].parse_request(case.body)
        models = (case.models.get(target), *checks.MODELS.get(target, ()))
        assert_equal_with_all_passes(request, target, models[index % len(models)], POLICIES[index % len(POLICIES)])


@pytest.mark.parametrize("target", checks.TARGETS)
@examples(8, items=len(checks.TARGETS))
@given(data=st.data())
def test_any_body_equals_that_of_all_passes(target: str, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(SOURCES))
    kind = data.draw(st.sampled_from(("chaos", "damaged", "scenario")))
    body = scenarios_with_body(data, source)[1] if kind == "scenario" else data.draw(CHAOS[source])
    request = parsed(data.draw(damaged(body)) if kind == "damaged" else body, source)
    if request is not None:
        model = data.draw(st.sampled_from((None, *checks.MODELS.get(target, ()))))
        assert_equal_with_all_passes(request, target, model, data.draw(st.sampled_from(POLICIES)))

"""A body that is converted in slices of any size gives the bytes and findings of the whole, or is converted whole."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.conversion import sessions, slices
from segue.wire.registry import WIRES
from tests.budget import examples, sample
from tests.conversations.build import Case, function_call, item, output, output_text, reasoning, responses
from tests.conversations.table import CASES
from tests.each import for_each
from tests.properties import checks
from tests.properties.bodies import BUILDERS, build_body
from tests.properties.chaos import CHAOS, damaged
from tests.properties.generators import scenarios, source_models, valid_scenarios
from tests.properties.test_properties import PAIRS, POLICIES, SOME_PAIRS, target_model
from tests.properties.whole import compare

STYLES: dict[str, Callable[[Any], str]] = {
    "compact": lambda body: json.dumps(body, ensure_ascii=False, separators=(",", ":")),
    "loose": lambda body: json.dumps(body, ensure_ascii=False),
    "ascii": json.dumps,
    "indented": lambda body: json.dumps(body, indent=1),
    "slashes": lambda body: json.dumps(body).replace("/", "\\/"),
    "sorted": lambda body: json.dumps(body, ensure_ascii=False, sort_keys=True),
}
# Defaults that the SDKs always send, and cache markers of real bodies.
USUAL: dict[str, dict[str, Any]] = {
    "assistant": {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": "hm"},
    "text": {"cache_control": {"type": "ephemeral"}, "citations": None},
    "tool_use": {"cache_control": {"type": "ephemeral"}, "caller": None},
    "toolUse": {"type": "tool_use"},
    "tool_result": {"cache_control": {"type": "ephemeral"}, "is_error": False},
    "function_call": {"id": "fc_1", "status": "completed"},
    "output_text": {"annotations": [], "logprobs": []},
}
EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.5, "stream": True, "x_unknown": [1, {}]},
    {"store": False, "metadata": {"k": "v"}},
    {"max_tokens": 2048, "thinking": {"type": "enabled", "budget_tokens": 1024}},
    {"reasoning_effort": "high", "tool_choice": "required", "tools": []},
)


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_in(child)


def as_sent(data: st.DataObject, body: dict[str, Any]) -> dict[str, Any]:
    """The body with some of what clients add."""
    body = {**copy.deepcopy(body), **data.draw(st.sampled_from(EXTRAS))}
    if data.draw(st.booleans()):
        for entry in objects_in([body.get("messages"), body.get("input"), body.get("contents")]):
            kind = "toolUse" if "toolUseId" in entry and "input" in entry else entry.get("type") or entry.get("role")
            usual = USUAL.get(str(kind), {})
            for key in usual:
                if key not in entry and data.draw(st.integers(0, 3)) == 0:
                    entry[key] = usual[key]
    return body


def repeated(data: st.DataObject, body: dict[str, Any]) -> dict[str, Any]:
    """The conversation repeated several times with other texts and ids, so that no sample covers all of it."""
    key = next(key for key in ("messages", "input", "contents") if key in body)
    items = body[key]
    for copy_ in range(1, data.draw(st.sampled_from((1, 1, 3, 6)))):
        text = re.sub(r"w(\d{4})q", lambda found, n=copy_: f"w{int(found[1]) + 1000 * n:04}q", json.dumps(body[key]))
        text = re.sub(r"functions\.([\w-]+):(\d+)", lambda found, n=copy_: _counted_on(found, n), text)
        items = items + [item for item in json.loads(text) if item.get("role") not in ("system", "developer")]
    return {**body, key: items}


def _counted_on(found: re.Match[str], copy_: int) -> str:
    return f"functions.{found[1]}:{int(found[2]) + 100 * copy_}"


@pytest.fixture(autouse=True)
def cleared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sessions.conversations, "max_whole", 0)
    sessions.clear()
    yield
    sessions.clear()


def compare_slices(data: bytes, size: int, **job: Any) -> bool:
    """Return whether the body was converted in slices of this size, after comparing its conversion."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_SLICE_SIZE", size)
        return compare(data, **job)


SLICE_SIZES = st.sampled_from((1, 300, 1000, 4000))


@SOME_PAIRS[1]
def test_slices_equal_the_whole(source: str, target: str) -> None:
    taken: Counter[bool] = Counter()

    @examples(20, items=len(PAIRS[1]))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        plain = source in BUILDERS and data.draw(st.integers(0, 3)) > 0
        scenario = data.draw(valid_scenarios(source) if plain else scenarios())
        model = data.draw(st.sampled_from((None, *source_models(scenario, source))))
        body = as_sent(data, repeated(data, build_body(scenario, source, model)))
        note(checks.dump_json(body))
        text = STYLES[data.draw(st.sampled_from(sorted(STYLES)))](body)
        job = {
            "source": data.draw(st.sampled_from((source, source, None))),
            "target": target,
            "model": target_model(data, target),
            **data.draw(st.sampled_from(({}, {}, *POLICIES))),
        }
        taken[compare_slices(text.encode(), data.draw(SLICE_SIZES), **job)] += 1

    run()
    # Few examples give no share.
    assert taken.total() < 200 or taken[True] > taken[False] / 10, "hardly any body is converted in slices"


@pytest.mark.parametrize(("number", "case"), [*enumerate(CASES)], ids=[case.name for case in CASES])
def test_every_conversation_of_the_table_comes_out_the_same(number: int, case: Case) -> None:
    data = json.dumps(case.body).encode()
    for target, size in sample(product(WIRES, (1, 400)), 6, start=number):
        compare_slices(data, size, target=target, source=case.source, model=case.models.get(target))


@pytest.mark.parametrize("source", [name for name in WIRES if name in CHAOS])
@examples(10, items=len(CHAOS))
@given(data=st.data())
def test_odd_bodies_come_out_the_same(source: str, data: st.DataObject) -> None:
    body = data.draw(CHAOS[source])
    if data.draw(st.booleans()):
        body = data.draw(damaged(body))
    target = data.draw(st.sampled_from(sorted(WIRES)))
    compare_slices(json.dumps(body).encode(), data.draw(SLICE_SIZES), target=target, source=source)


@pytest.mark.parametrize("source", sorted(BUILDERS))
@examples(10, items=len(BUILDERS))
@given(data=st.data())
def test_damaged_bodies_come_out_the_same(source: str, data: st.DataObject) -> None:
    """Regular bodies with a few wrong, missing or misplaced values."""
    body = data.draw(damaged(build_body(data.draw(valid_scenarios(source)), source)))
    note(checks.dump_json(body))
    job = {
        "target": data.draw(st.sampled_from(sorted(WIRES))),
        "source": data.draw(st.sampled_from((source, None))),
        **data.draw(st.sampled_from(({}, *POLICIES))),
    }
    compare_slices(json.dumps(body).encode(), data.draw(SLICE_SIZES), **job)


def test_ids_are_numbered_over_all_slices() -> None:
    rounds: list[dict[str, Any]] = []
    for number in range(40):
        index = {0: 0, 1: 1, 39: 2}.get(number, number + 5)
        function = {"name": "f", "arguments": "{}"}
        call = {"id": f"functions.f:{index}", "type": "function", "function": function}
        rounds.append({"role": "assistant", "content": "I look.", "tool_calls": [call]})
        rounds.append({"role": "tool", "tool_call_id": call["id"], "content": "found " * 40})
    body = {"messages": [{"role": "user", "content": "Go."}, *rounds, {"role": "user", "content": "And?"}]}
    quick = segue.convert(json.dumps(body).encode(), source="kimi", target="kimi", ids="canonical")
    assert quick.body == segue.convert(body, source="kimi", target="kimi", ids="canonical").body
    sent = [message["tool_call_id"] for message in quick.body["messages"] if message["role"] == "tool"]
    assert sent == [f"functions.f:{number}" for number in range(40)]


@pytest.mark.parametrize("target", WIRES)
def test_failures_without_text(target: str) -> None:
    """It gets a text, and each one a finding."""
    rounds: list[dict[str, Any]] = []
    for number in range(40):
        response = {"error": ""} if number == 20 else {"output": "found " * 40}
        rounds.append({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": number}}}]})
        rounds.append({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]})
    body = {"contents": [{"role": "user", "parts": [{"text": "Go."}]}, *rounds]}
    quick = segue.convert(json.dumps(body).encode(), source="gemini", target=target)
    whole = segue.convert(body, source="gemini", target=target)
    assert quick.body == whole.body
    assert quick.report.to_dict() == whole.report.to_dict()


@pytest.mark.parametrize("item_id", [True, False])
@pytest.mark.parametrize("order", ["rco", "cro", "rcro", "comr", "corm"])
@for_each("target", ["openai-responses", "azure-foundry", "openai-chat", "anthropic"])
def test_reasoning_anywhere_in_a_turn(order: str, item_id: bool, target: str) -> None:
    """OAI-RESP-07: same-API, only reasoning right before a message or a call of its reply is sent."""
    items = [item("user", "go")]
    for number in range(3):
        for place, kind in enumerate(order):
            thought = reasoning(f"rs_{number}{place}", summary="hm")
            made = {
                "r": thought if item_id else {key: value for key, value in thought.items() if key != "id"},
                "c": function_call(f"call_{number}", id=f"fc_{number}", status="completed"),
                "o": output(f"call_{number}", "found"),
                "m": output_text("So.", f"msg_{number}"),
            }
            items.append(made[kind])
        items.append(item("user", "more"))
    data = json.dumps(responses(*items, model=None, store=False)).encode()
    compare_slices(data, 300, target=target, source="openai-responses")
    converted = segue.convert(data, target=target, source="openai-responses").body
    sent = converted.get("input", []) if target == "openai-responses" else []
    for before, after in pairwise([*sent, {}]):
        has_id = before.get("type") == "reasoning" and "id" in before
        assert not has_id or after.get("type") == "function_call" or after.get("role") == "assistant"

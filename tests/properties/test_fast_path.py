"""The fast path gives the same bytes and findings as the full pipeline, or declines."""

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
from segue._convert import build_policy
from segue.canonical.json import encode_json, parse_json_object
from segue.errors import SegueError
from segue.fast import FastConversion, clear, convert_regular
from segue.pipeline import Conversion, ConvertJob, convert_request
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


def agree(data: bytes, job: ConvertJob, *, cold: bool = False) -> bool:
    """Return whether the fast path was taken, after comparing its output; `cold` without templates of other bodies."""
    if cold:
        clear()
    fast = convert_regular(data, job)
    if isinstance(fast, Conversion):
        # The body was converted as a whole for a new template, which the second conversion uses.
        full = convert_whole(data, job)
        assert _outcome(fast) == _outcome(full)
        assert fast.source is full.source
        fast = convert_regular(data, job)
    if not isinstance(fast, FastConversion):
        return False
    full = convert_whole(data, job)
    assert (fast.data, fast.report.to_dict()) == _outcome(full)
    assert fast.source is full.source
    assert fast.sent_body.fields.names.changed == full.rendered.names.changed
    return True


def convert_whole(data: bytes, job: ConvertJob) -> Conversion:
    value, surrogates = parse_json_object(data)
    return convert_request(value, job, replaced_surrogates=surrogates)


def _outcome(conversion: Conversion) -> tuple[bytes, dict[str, Any]]:
    return encode_json(conversion.rendered.body), conversion.rendered.report.to_dict()


@SOME_PAIRS[1]
def test_fast_path_equals_full_pipeline(source: str, target: str) -> None:
    taken: Counter[bool] = Counter()

    @examples(20, items=len(PAIRS[1]))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        plain = source in BUILDERS and data.draw(st.integers(0, 3)) > 0
        scenario = data.draw(valid_scenarios(source) if plain else scenarios())
        model = data.draw(st.sampled_from((None, *source_models(scenario, source))))
        body = as_sent(data, repeated(data, build_body(scenario, source, model)))
        note(checks.dump_json(body))
        policy = data.draw(st.sampled_from(({}, {}, *POLICIES)))
        job = ConvertJob(
            target=WIRES[target],
            source=data.draw(st.sampled_from((WIRES[source], WIRES[source], None))),
            model=target_model(data, target),
            policy=build_policy(**policy),
        )
        text = STYLES[data.draw(st.sampled_from(sorted(STYLES)))](body)
        taken[agree(text.encode(), job, cold=data.draw(st.booleans()))] += 1

    run()
    # Few examples give no share; tests/test_transcripts.py checks that each pair takes the fast path.
    few = taken.total() < 200 or WIRES[source].fast_path is None or WIRES[target].fast_path is None
    assert few or taken[True] > taken[False] / 10, "the fast path is hardly ever taken"


@pytest.mark.parametrize("source", sorted(BUILDERS))
@examples(10, items=len(BUILDERS))
@given(data=st.data())
def test_cached_frames_hold_for_the_next_conversation(source: str, data: st.DataObject) -> None:
    """Several conversations with the same tools, options and target, one after the other."""
    clear()
    first: dict[str, Any] = {}
    target = data.draw(st.sampled_from(sorted(WIRES)))
    model = target_model(data, target)
    for _ in range(data.draw(st.integers(2, 5))):
        body = as_sent(data, repeated(data, build_body(data.draw(valid_scenarios(source)), source)))
        first = first or body
        body = {**first, **{key: body[key] for key in ("messages", "input", "contents") if key in body}}
        note(checks.dump_json(body))
        job = ConvertJob(target=WIRES[target], source=WIRES[source], model=model)
        agree(json.dumps(body).encode(), job)


@pytest.mark.parametrize(("number", "case"), [*enumerate(CASES)], ids=[case.name for case in CASES])
def test_every_conversation_of_the_table_comes_out_the_same(number: int, case: Case) -> None:
    data = json.dumps(case.body).encode()
    for target, cold in sample(product(WIRES, (True, False)), 2, start=number):
        model = case.models.get(target)
        agree(data, ConvertJob(target=WIRES[target], source=WIRES[case.source], model=model), cold=cold)


@pytest.mark.parametrize("source", [name for name in WIRES if name in CHAOS])
@examples(10, items=len(CHAOS))
@given(data=st.data())
def test_odd_bodies_skip_the_fast_path_or_come_out_the_same(source: str, data: st.DataObject) -> None:
    body = data.draw(CHAOS[source])
    if data.draw(st.booleans()):
        body = data.draw(damaged(body))
    target = data.draw(st.sampled_from(sorted(WIRES)))
    try:
        job = ConvertJob(target=WIRES[target], source=WIRES[source])
        agree(json.dumps(body).encode(), job, cold=data.draw(st.booleans()))
    except SegueError:
        pytest.fail("the fast path accepted a body that the full pipeline rejects")


@pytest.mark.parametrize("source", sorted(BUILDERS))
@examples(10, items=len(BUILDERS))
@given(data=st.data())
def test_damaged_bodies_skip_the_fast_path_or_come_out_the_same(source: str, data: st.DataObject) -> None:
    """Regular bodies with a few wrong, missing or misplaced values."""
    body = data.draw(damaged(build_body(data.draw(valid_scenarios(source)), source)))
    note(checks.dump_json(body))
    job = ConvertJob(
        target=WIRES[data.draw(st.sampled_from(sorted(WIRES)))],
        source=data.draw(st.sampled_from((WIRES[source], None))),
        policy=build_policy(**data.draw(st.sampled_from(({}, *POLICIES)))),
    )
    try:
        agree(json.dumps(body).encode(), job, cold=data.draw(st.booleans()))
    except SegueError:
        pytest.fail("the fast path accepted a body that the full pipeline rejects")


def test_renumbered_ids_skip_the_fast_path() -> None:
    """A sample does not show the number of a call."""
    rounds: list[dict[str, Any]] = []
    for number in range(40):
        # Those that a sample takes are numbered as if there were no others.
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
def test_failures_without_text_skip_the_fast_path(target: str) -> None:
    """It gets a text, and each one a finding."""
    rounds: list[dict[str, Any]] = []
    for number in range(40):
        response = {"error": ""} if number == 20 else {"output": "found " * 40}
        rounds.append({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": number}}}]})
        rounds.append({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]})
    body = {"contents": [{"role": "user", "parts": [{"text": "Go."}]}, *rounds]}
    quick = segue.convert(json.dumps(body).encode(), source="gemini", target=target)
    whole = segue.convert(body, source="gemini", target=target)
    assert quick.data == whole.data
    assert quick.report.to_dict() == whole.report.to_dict()


UNTYPED_PARTS = [{"text": "found"}]
UNTYPED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": UNTYPED_PARTS}]},
    ],
    "openai-chat": [{"role": "assistant", "content": "ok"}, {"role": "user", "content": UNTYPED_PARTS}],
    "openai-responses": [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": UNTYPED_PARTS},
    ],
}


@pytest.mark.parametrize("is_detected", [False, True])
@pytest.mark.parametrize("source", UNTYPED)
def test_parts_without_a_type_skip_the_fast_path(source: str, is_detected: bool) -> None:
    key = WIRES[source].conversation_key
    data = encode_json({key: [{"role": "user", "content": "Go."}, *UNTYPED[source]]})
    job = ConvertJob(target=WIRES["gemini"], source=None if is_detected else WIRES[source])
    assert convert_regular(data, job) is None


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
    job = ConvertJob(target=WIRES[target], source=WIRES["openai-responses"])
    agree(data, job)
    converted = convert_whole(data, job).rendered.body
    sent = converted.get("input", []) if target == "openai-responses" else []
    for before, after in pairwise([*sent, {}]):
        has_id = before.get("type") == "reasoning" and "id" in before
        assert not has_id or after.get("type") == "function_call" or after.get("role") == "assistant"

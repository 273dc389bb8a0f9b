"""The express lane says what the long way says, to the byte, or it says nothing.

Here the lane is tried on everything, however small and odd, and what it was found right about before counts for
nothing: each example is on its own.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.canonical.jsontext import read_object, write
from segue.carry import Asked, carry
from segue.convert import policy_of
from segue.errors import SegueError
from segue.express import around, express
from segue.express.sample import sample_places
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.conversations.build import Case
from tests.conversations.table import CASES

from . import checks
from .chaos import CHAOS, damaged
from .generators import lawful_stories, source_models, stories
from .spell import SPELLINGS, spell
from .test_properties import EVERY_PAIR, PAIRS, POLICIES, target_model

STYLES: dict[str, Callable[[Any], str]] = {
    "compact": lambda body: json.dumps(body, ensure_ascii=False, separators=(",", ":")),
    "loose": lambda body: json.dumps(body, ensure_ascii=False),
    "ascii": json.dumps,
    "indented": lambda body: json.dumps(body, indent=1),
    "slashes": lambda body: json.dumps(body).replace("/", "\\/"),
    "sorted": lambda body: json.dumps(body, ensure_ascii=False, sort_keys=True),
}
# What the SDKs write down whether it says anything or not, and marks that real bodies carry.
USUAL: dict[str, dict[str, Any]] = {
    "assistant": {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": "hm"},
    "text": {"cache_control": {"type": "ephemeral"}, "citations": None},
    "tool_use": {"cache_control": {"type": "ephemeral"}, "caller": None},
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
            usual = USUAL.get(str(entry.get("type") or entry.get("role")), {})
            for key in usual:
                if key not in entry and data.draw(st.integers(0, 3)) == 0:
                    entry[key] = usual[key]
    return body


WAYS = st.sampled_from(["wary", "trusting", "remembering"])


def repeated(data: st.DataObject, body: dict[str, Any]) -> dict[str, Any]:
    """The conversation told several times over, with other words and ids, so that no sample shows all of it."""
    key = next(key for key in ("messages", "input", "contents") if key in body)
    items = body[key]
    for copy_ in range(1, data.draw(st.sampled_from((1, 1, 3, 6)))):
        text = re.sub(r"w(\d{4})q", lambda found, n=copy_: f"w{int(found[1]) + 1000 * n:04}q", json.dumps(body[key]))
        text = re.sub(r"functions\.([\w-]+):(\d+)", lambda found, n=copy_: _counted_on(found, n), text)
        items = items + [item for item in json.loads(text) if item.get("role") not in ("system", "developer")]
    return {**body, key: items}


def _counted_on(found: re.Match[str], copy_: int) -> str:
    return f"functions.{found[1]}:{int(found[2]) + 100 * copy_}"


class Everything(set[object]):
    def __contains__(self, _item: object) -> bool:
        return True

    def issuperset(self, _others: Any) -> bool:
        return True


def agree(data: bytes, asked: Asked, way: str) -> bool:
    """Whether the lane was taken; if so, it must have said the same.

    `wary`: each example on its own; `trusting`: the sample is as small as it can be, save at home, where nothing but
    the sample tells what has to be mended; `remembering`: as in real life.
    """
    with pytest.MonkeyPatch.context() as patch:
        if way != "remembering":
            patch.setattr(around, "_remembered", lambda *_: around._Memory())
        if way == "trusting" and asked.source is not None and asked.source is not asked.target:
            patch.setattr(
                around,
                "sample_places",
                lambda whole, shapes, length, _: sample_places(whole, shapes, length, Everything()),
            )
        quick = express(data, asked, least=0)
    if quick is None:
        return False
    value, surrogates = read_object(data)
    carried = carry(value, asked, surrogates=surrogates)
    assert quick.data == write(carried.said.body)
    assert quick.report.to_dict() == carried.said.report.to_dict()
    assert quick.source is carried.source
    assert quick.names.changed == carried.said.names.changed
    return True


@EVERY_PAIR
def test_the_lane_says_what_the_long_way_says(source: str, target: str) -> None:
    taken: Counter[bool] = Counter()

    @examples(20, items=len(PAIRS))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        plain = source in SPELLINGS and data.draw(st.integers(0, 3)) > 0
        story = data.draw(lawful_stories(source) if plain else stories())
        model = data.draw(st.sampled_from((None, *source_models(story, source))))
        body = as_sent(data, repeated(data, spell(story, source, model)))
        note(checks.dumped(body))
        policy = data.draw(st.sampled_from(({}, {}, *POLICIES)))
        asked = Asked(
            target=WIRES[target],
            source=data.draw(st.sampled_from((WIRES[source], WIRES[source], None))),
            model=target_model(data, target),
            policy=policy_of(**policy),
        )
        text = STYLES[data.draw(st.sampled_from(sorted(STYLES)))](body)
        taken[agree(text.encode(), asked, data.draw(WAYS))] += 1

    run()
    # Of few examples no share can be told; tests/test_transcripts.py holds each pair to the lane.
    few = taken.total() < 200 or WIRES[source].lane is None or WIRES[target].lane is None
    assert few or taken[True] > taken[False] / 10, "the lane is hardly ever taken"


@pytest.mark.parametrize("source", sorted(SPELLINGS))
@examples(10, items=len(SPELLINGS))
@given(data=st.data())
def test_what_is_remembered_is_true_of_the_next_conversation(source: str, data: st.DataObject) -> None:
    """Several conversations with the same tools, options and target, one after the other."""
    around._remembered.cache_clear()
    first: dict[str, Any] = {}
    target = data.draw(st.sampled_from(sorted(WIRES)))
    model = target_model(data, target)
    for _ in range(data.draw(st.integers(2, 5))):
        body = as_sent(data, repeated(data, spell(data.draw(lawful_stories(source)), source)))
        first = first or body
        body = {**first, **{key: body[key] for key in ("messages", "input", "contents") if key in body}}
        note(checks.dumped(body))
        asked = Asked(target=WIRES[target], source=WIRES[source], model=model)
        agree(json.dumps(body).encode(), asked, "remembering")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_conversation_of_the_table_comes_out_the_same(case: Case) -> None:
    data = json.dumps(case.body).encode()
    for target, way in product(WIRES, ("wary", "trusting", "remembering")):
        model = case.models.get(target)
        agree(data, Asked(target=WIRES[target], source=WIRES[case.source], model=model), way)


@pytest.mark.parametrize("source", [name for name in WIRES if name in CHAOS])
@examples(10, items=len(CHAOS))
@given(data=st.data())
def test_odd_bodies_go_the_long_way_or_come_out_the_same(source: str, data: st.DataObject) -> None:
    body = data.draw(CHAOS[source])
    if data.draw(st.booleans()):
        body = data.draw(damaged(body))
    target = data.draw(st.sampled_from(sorted(WIRES)))
    try:
        asked = Asked(target=WIRES[target], source=WIRES[source])
        agree(json.dumps(body).encode(), asked, data.draw(WAYS))
    except SegueError:
        pytest.fail("the lane took what the long way refuses")


def test_ids_that_are_numbered_anew_at_home_go_the_long_way() -> None:
    """Which number a call gets, a sample can't show."""
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
def test_what_failed_without_a_word_goes_the_long_way(target: str) -> None:
    """It is given a word, and the report a line for each."""
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

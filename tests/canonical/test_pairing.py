"""Which result belongs to which call, rule by rule (the numbers are those of `canonical/pairing.py`)."""

from __future__ import annotations

import gc
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical import pairing
from segue.canonical.blocks import Message, Origin, Text, ToolCall, ToolResponse, calls_of, responses_of
from segue.canonical.ids import is_canonical, raw_id_or_none
from segue.canonical.pairing import pair
from tests.budget import examples


def call(raw_id: str | None, marker: str, name: str = "look") -> ToolCall:
    return ToolCall(name, {"q": marker}, origin=Origin("openai", raw_id=raw_id))


def result(raw_id: str | None, marker: str, name: str | None = None) -> ToolResponse:
    return ToolResponse(name=name, content=(Text(marker),), is_complete=True, origin=Origin("openai", raw_id=raw_id))


def ai(*calls: ToolCall) -> Message:
    return Message("ai", calls)


def tool(*results: ToolResponse) -> Message:
    return Message("tool", results)


def human(text: str = "go on") -> Message:
    return Message("human", (Text(text),))


def pairings(*messages: Message, positional: bool = False) -> list[tuple[str, str | None]]:
    """Each result's marker with the marker of its call; None for an orphan."""
    paired = pair(messages, positional=positional)
    text = {found.id: found.arguments["q"] for message in paired for found in calls_of(message)}
    assert len(text) == sum(len(calls_of(message)) for message in paired), "ids are unique"
    assert all(is_canonical(call_id) for call_id in text)
    return [
        (found.content[0].text, text.get(found.call_id))  # pyright: ignore[reportOptionalSubscript, reportAttributeAccessIssue]
        for message in paired
        for found in responses_of(message)
    ]


def test_by_id_whatever_the_order():
    assert pairings(ai(call("a", "1"), call("b", "2")), tool(result("b", "two")), tool(result("a", "one"))) == [
        ("two", "2"),
        ("one", "1"),
    ]


def test_the_same_id_in_two_turns_is_two_calls():
    assert pairings(ai(call("x", "1")), tool(result("x", "one")), ai(call("x", "2")), tool(result("x", "two"))) == [
        ("one", "1"),
        ("two", "2"),
    ]


def test_never_past_the_newest_turn_that_bears_the_id():
    paired = pairings(
        ai(call("x", "1")), human(), ai(call("x", "2")), tool(result("x", "two")), tool(result("x", "late"))
    )
    assert paired == [("two", "2"), ("late", "2")]


def test_the_same_id_twice_in_one_turn_is_answered_in_order():
    assert pairings(ai(call("x", "1"), call("x", "2")), tool(result("x", "one")), tool(result("x", "two"))) == [
        ("one", "1"),
        ("two", "2"),
    ]


def test_a_constant_id_for_ever():
    turns = [m for n in "12345" for m in (ai(call("call_0", n)), tool(result("call_0", f"r{n}")))]
    assert pairings(*turns) == [(f"r{n}", n) for n in "12345"]


@pytest.mark.parametrize("raw_ids", [("call_0",) * 3, (None,) * 3, ("a", "b", "c"), ("late", "x", "late")])
@pytest.mark.parametrize("positional", [False, True])
def test_pairing_leaves_nothing_for_the_collector(raw_ids: tuple[str | None, ...], positional: bool):
    """A search for cycles stops all threads, for as long as the objects of a large body take."""
    turns = [m for n in raw_ids for m in (tool(result("late", "0")), ai(call(n, "1")), tool(result(n, "r")), human())]
    pair(turns, positional=positional)
    gc.collect()
    gc.disable()
    try:
        paired = pair(turns, positional=positional)
        assert gc.collect() == 0
        assert len(paired) == len(turns)
    finally:
        gc.enable()


@pytest.mark.parametrize("nothing", [None, "", "null"])
def test_absent_null_and_empty_ids_are_none(nothing: str | None):
    raw = raw_id_or_none(nothing)
    assert raw is None
    assert pairings(ai(call(raw, "1"), call(raw, "2")), tool(result(raw, "one")), tool(result(raw, "two"))) == [
        ("one", "1"),
        ("two", "2"),
    ]


def test_without_an_id_by_name_then_by_order():
    assert pairings(
        ai(call(None, "1", "read"), call(None, "2", "glob"), call(None, "3", "read")),
        tool(result(None, "g", "glob")),
        tool(result(None, "r1", "read")),
        tool(result(None, "r2", "read")),
    ) == [("g", "2"), ("r1", "1"), ("r2", "3")]


def test_without_an_id_to_calls_without_an_id_first():
    assert pairings(ai(call("a", "1"), call(None, "2")), tool(result(None, "x")), tool(result(None, "y"))) == [
        ("x", "2"),
        ("y", "1"),
    ]


def test_a_name_that_no_open_call_has_makes_an_orphan():
    assert pairings(ai(call(None, "1", "read")), tool(result(None, "x", "write"))) == [("x", None)]


def test_unknown_id_pairs_with_calls_without_id():
    assert pairings(ai(call(None, "1"), call("b", "2")), tool(result("made-up", "x")), tool(result("other", "y"))) == [
        ("x", "1"),
        ("y", None),
    ]


def test_on_positional_wires_to_any_open_call():
    assert pairings(ai(call("a", "1")), tool(result("made-up", "x")), positional=True) == [("x", "1")]


def misnamed(marker: str, name: str, raw_id: str | None = None) -> ToolResponse:
    return result(raw_id, marker, name)


def test_on_positional_wires_a_result_of_another_name_goes_by_its_place():
    bare = ai(call(None, "1", "f"))
    assert pairings(bare, tool(misnamed("x", "default_api:f")), positional=True) == [("x", "1")]
    assert pairings(bare, tool(misnamed("x", "default_api:f"))) == [("x", None)]
    assert pairings(bare, human(""), tool(misnamed("x", "g")), positional=True) == [("x", "1")]
    assert pairings(ai(call("a", "1", "f")), tool(misnamed("x", "g", "b")), positional=True) == [("x", "1")]
    (_, answered) = pair([bare, tool(misnamed("x", "default_api:f"))], positional=True)
    assert responses_of(answered)[0].name == "f"


def test_results_of_the_right_name_come_first_to_their_calls():
    two = ai(call(None, "1", "f"), call(None, "2", "g"))
    for results in ((misnamed("x", "F"), misnamed("y", "g")), (misnamed("y", "g"), misnamed("x", "F"))):
        assert sorted(pairings(two, tool(*results), positional=True)) == [("x", "1"), ("y", "2")]
    reversed_names = tool(misnamed("y", "F"), misnamed("x", "f"))
    assert pairings(two, reversed_names, positional=True) == [("y", "2"), ("x", "1")]


def test_misnamed_result_is_an_orphan_on_id_wires():
    bare = ai(call(None, "1", "f"))
    assert pairings(bare, human("wait"), tool(misnamed("x", "g")), positional=True) == [("x", None)]
    surplus = tool(misnamed("x", "f"), misnamed("y", "g"))
    assert pairings(bare, surplus, positional=True) == [("x", "1"), ("y", None)]
    again = tool(misnamed("x", "g"), misnamed("x", "g"))
    assert pairings(bare, again, positional=True) == [("x", "1"), ("x", "1")]


def test_a_late_result_goes_to_its_call():
    assert pairings(ai(call("a", "1")), human(), tool(result("a", "late"))) == [("late", "1")]


def test_a_result_before_its_call_is_paired_with_it():
    assert pairings(tool(result("a", "early")), human(), ai(call("a", "1"))) == [("early", "1")]


def test_a_result_before_a_call_that_has_its_own_is_an_orphan():
    assert pairings(tool(result("x", "old")), ai(call("x", "1")), tool(result("x", "own"))) == [
        ("old", None),
        ("own", "1"),
    ]


def test_a_surplus_with_equal_content_is_a_duplicate_else_an_orphan():
    turn = (ai(call(None, "1")), tool(result(None, "x")))
    assert pairings(*turn, tool(result(None, "x"))) == [("x", "1"), ("x", "1")]
    assert pairings(*turn, tool(result(None, "y"))) == [("x", "1"), ("y", None)]


def test_a_repetition_does_not_answer_an_older_open_call():
    assert pairings(
        ai(call(None, "1")), human(), ai(call(None, "2")), tool(result(None, "x")), tool(result(None, "x"))
    ) == [("x", "2"), ("x", "2")]


def test_ids_that_differ_only_after_sanitising_or_truncation_are_different():
    long = "c" * 60
    assert pairings(
        ai(call("a.b", "1"), call("a:b", "2"), call(long + "1", "3"), call(long + "2", "4")),
        tool(result(long + "2", "r4"), result("a:b", "r2"), result("a.b", "r1"), result(long + "1", "r3")),
    ) == [("r4", "4"), ("r2", "2"), ("r1", "1"), ("r3", "3")]


def test_canonical_ids_stay_once_and_are_hashed_when_repeated():
    messages = pair(
        [ai(call("hist_tool_abc", "1")), tool(result("hist_tool_abc", "r")), ai(call("hist_tool_abc", "2"))]
    )
    first, second = (calls_of(messages[0])[0].id, calls_of(messages[2])[0].id)
    assert first == "hist_tool_abc"
    assert second != first


def test_pruning_earlier_turns_changes_no_later_id():
    turns = [m for n in "123" for m in (ai(call("same", n)), tool(result("same", n)))]
    whole, cut = pair(turns), pair(turns[2:])
    assert [calls_of(m)[0].id for m in whole[2::2]] == [calls_of(m)[0].id for m in cut[::2]]


def test_texts_positions_and_results_never_count():
    plain = pair([ai(call("a", "1")), tool(result("a", "x"))])
    other = pair([human(), human(), Message("ai", (Text("hm"), call("a", "1"))), tool(result("a", "y"))])
    assert calls_of(plain[0])[0].id == calls_of(other[2])[0].id


def test_results_carry_the_key_of_their_turn():
    messages = pair([ai(call("a", "1")), human(), tool(result("a", "x"))])
    assert messages[2].turn_key == messages[0].turn_key is not None


def test_a_reply_that_begins_with_a_result_keeps_its_own_calls_open():
    late = ToolResponse(content=(Text("run"),), hosted=True, origin=Origin("gemini", identity="synthetic"))
    running = ToolCall("code", {"q": "0"}, kind="hosted", origin=Origin("gemini", identity="synthetic"))
    assert pairings(
        Message("ai", (running, call(None, "1"))),
        tool(result(None, "same", "look")),
        Message("ai", (late, call(None, "2"))),
        tool(result(None, "same", "look")),
    ) == [("same", "1"), ("run", "0"), ("same", "2")]


def test_a_hosted_output_under_the_canonical_id_of_a_clients_call_is_no_result_of_it() -> None:
    call = {"type": "function_call", "call_id": "hist_tool_1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "hist_tool_1", "output": "hello"}
    hosted = {"type": "a2a_preview_call_output", "call_id": "hist_tool_1", "output": {}, "status": "completed"}
    body = {"input": [{"role": "user", "content": "hello"}, call, output, hosted]}
    made = segue.convert(body, source="azure-foundry", target="azure-foundry")
    assert segue.check(made.body, "azure-foundry")
    assert [finding.kind for finding in made.report.findings] == ["orphan"]


def test_orphans_with_one_canonical_id_get_two_ids():
    paired = pair([tool(result("hist_tool_1", "one")), human(), tool(result("hist_tool_1", "two"))])
    first, second = (found.call_id for message in paired for found in responses_of(message))
    assert first == "hist_tool_1"
    assert is_canonical(second)
    assert second != first


RAW_IDS = st.sampled_from(("a", "b", "c", "d", None, "hist_tool_a"))
CALLS = st.builds(
    ToolCall,
    st.sampled_from(("look", "read")),
    st.just({}),
    kind=st.sampled_from(("function", "function", "hosted")),
    origin=st.builds(Origin, st.just("openai"), raw_id=RAW_IDS),
)
RESULTS = st.builds(
    ToolResponse,
    st.sampled_from(("", "", "", "hist_tool_a")),
    st.sampled_from((None, "look")),
    hosted=st.booleans(),
    origin=st.builds(Origin, st.just("openai"), raw_id=RAW_IDS),
)


@examples(20)
@given(st.lists(st.tuples(st.sampled_from((None, None, "key")), st.lists(st.one_of(CALLS, RESULTS), max_size=3))))
def test_a_regular_body_is_paired_as_by_all_rules(rows) -> None:
    messages = [Message("ai", tuple(blocks), turn_key=turn_key) for turn_key, blocks in rows]
    paired = pair(messages)
    with patch.object(pairing, "_pair_regular", return_value=None):
        assert pair(messages) == paired

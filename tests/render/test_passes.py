"""The passes with constraints that no current wire has, and invariants of all passes."""

from __future__ import annotations

import msgspec
import pytest

from segue.canonical.blocks import Message, Native, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.pairing import pair
from segue.canonical.request import Options, Reasoning, Request, ToolChoice
from segue.render.constraints import TEXTS, Constraints, Policy
from segue.render.passes import PASSES, render
from segue.render.report import Report

ANYTHING = Constraints("elsewhere", "elsewhere")


def call(raw_id: str) -> ToolCall:
    return ToolCall("look", {"q": raw_id}, origin=Origin("openai", raw_id=raw_id))


def result(raw_id: str, text: str = "found", *, error: bool = False) -> ToolResponse:
    origin = Origin("openai", raw_id=raw_id)
    return ToolResponse(content=(Text(text),), is_complete=True, error=error, origin=origin)


def run_passes(*messages: Message, constraints: Constraints = ANYTHING, policy: Policy | None = None, **more: object):
    request = msgspec.structs.replace(Request(pair(messages)), **more)
    report = Report()
    return render(request, constraints, policy or Policy(), report), report


def shape(messages: tuple[Message, ...]) -> list[tuple[str, ...]]:
    return [(message.speaker, *(type(block).__name__ for block in message.blocks)) for message in messages]


HUMAN = Message("human", (Text("hi"),))
CALL_MESSAGE = Message("ai", (call("a"), call("b")))
FOUND = Message("tool", (result("a"), result("b")))


def test_bridge_message_is_inserted_if_required():
    constraints = msgspec.structs.replace(ANYTHING, filler_after_results=True)
    transcript, report = run_passes(HUMAN, CALL_MESSAGE, FOUND, HUMAN, constraints=constraints)
    assert [message.speaker for message in transcript.messages] == ["human", "ai", "tool", "tool", "ai", "human"]
    assert transcript.messages[4].blocks == (Text(TEXTS.filler),)
    assert [finding.kind for finding in report.findings] == ["inserted"]


def test_system_text_behind_a_reply_where_none_may_stand():
    system = Message("system", (Text("s"),))
    constraints = msgspec.structs.replace(ANYTHING, allows_system_after_reply=False, filler_after_results=True)
    transcript, _ = run_passes(
        system, HUMAN, system, CALL_MESSAGE, FOUND, system, Message("ai", (Text("x"),)), system, constraints=constraints
    )
    speakers = [message.speaker for message in transcript.messages]
    assert speakers == ["system", "human", "system", "ai", "tool", "tool", "ai", "human", "ai", "human"]
    assert transcript.messages[7].blocks == (Text("[system] s"),)


def test_text_and_calls_are_split_if_required():
    constraints = msgspec.structs.replace(ANYTHING, calls_without_text=True)
    asks = Message("ai", (Text("I look."), call("a"), Text("")))
    transcript, report = run_passes(HUMAN, asks, Message("tool", (result("a"),)), constraints=constraints)
    assert shape(transcript.messages)[1:] == [("ai", "Text"), ("ai", "ToolCall"), ("tool", "ToolResponse")]
    assert report.findings_of("moved")
    bare = Message("ai", (Text(""), call("a")))
    transcript, report = run_passes(HUMAN, bare, Message("tool", (result("a"),)), constraints=constraints)
    assert shape(transcript.messages)[1:] == [("ai", "ToolCall"), ("tool", "ToolResponse")]
    assert not report.findings_of("moved")


def test_neighbours_that_are_refused_become_one_but_results_do_not():
    constraints = msgspec.structs.replace(ANYTHING, alternation="strict")
    transcript, _ = run_passes(HUMAN, HUMAN, CALL_MESSAGE, FOUND, HUMAN, constraints=constraints)
    assert [message.speaker for message in transcript.messages] == ["human", "ai", "tool", "tool", "human"]


def test_user_message_is_inserted_if_required():
    constraints = msgspec.structs.replace(ANYTHING, needs_user_message=True)
    transcript, _ = run_passes(CALL_MESSAGE, FOUND, constraints=constraints)
    assert transcript.messages[-1].blocks == (Text(TEXTS.last_user_message),)
    transcript, _ = run_passes(HUMAN, CALL_MESSAGE, FOUND, constraints=constraints)
    assert transcript.messages[-1].speaker == "tool"


def test_a_marked_beginning_of_an_answer():
    constraints = msgspec.structs.replace(ANYTHING, ending="marked")
    native = Native("elsewhere", {})
    half = Message("ai", (Text("ha"),), prefill=True, native=native)
    transcript, _ = run_passes(HUMAN, half, HUMAN, half, constraints=constraints)
    assert [message.prefill for message in transcript.messages] == [False, False, False, True]
    for ending in (msgspec.structs.replace(half, prefill=False), msgspec.structs.replace(half, native=None)):
        transcript, _ = run_passes(HUMAN, ending, constraints=constraints)
        assert transcript.messages[-1].blocks == (Text(TEXTS.last_user_message),)
    system = Message("system", (Text("s"),), native=native)
    for system_last, ending in ((True, "s"), (False, TEXTS.last_user_message)):
        row = msgspec.structs.replace(constraints, allows_system_last=system_last)
        transcript, _ = run_passes(HUMAN, system, constraints=row)
        assert transcript.messages[-1].blocks == (Text(ending),)


def test_an_empty_reply_where_none_may_be_empty():
    constraints = msgspec.structs.replace(ANYTHING, empty_message_speakers=frozenset({"human"}))
    own = [Message(speaker, (Text(""),), native=Native(ANYTHING.api, {})) for speaker in ("human", "ai")]
    transcript, _ = run_passes(*own, HUMAN, constraints=constraints)
    assert [message.speaker for message in transcript.messages] == ["human", "human"]


def test_empty_texts_are_kept_same_api_only():
    constraints = msgspec.structs.replace(ANYTHING, empty_message_speakers=frozenset({"human", "ai"}))
    for api, expected in ((ANYTHING.api, ["", "", "x"]), ("abroad", ["x"])):
        native = Native(api, {})
        alone, beside = (Text(""),), (Text(""), Text("x"))
        given = [Message("ai", blocks, native=native) for blocks in (alone, beside)]
        transcript, report = run_passes(HUMAN, *given, HUMAN, constraints=constraints)
        assert [block for message in transcript.messages[1:-1] for block in message.blocks] == [*map(Text, expected)]
        assert len(report.findings_of("dropped")) == (api == "abroad")


def test_reasoning_rejected_by_its_own_api():
    own = Message("ai", (Thinking("hm", origin=Origin("elsewhere")), Text("x")), native=Native("elsewhere", {}))
    for kind, kept in (("none", True), ("refused", False)):
        transcript, _ = run_passes(
            HUMAN, own, HUMAN, constraints=msgspec.structs.replace(ANYTHING, reasoning_replay=kind)
        )
        assert (len(transcript.messages[1].blocks) == 2) is kept


def test_placeholders_where_every_reply_must_carry_reasoning():
    constraints = msgspec.structs.replace(ANYTHING, reasoning_replay="plain", reasoning_required_on_calls="default")
    history = (HUMAN, CALL_MESSAGE, FOUND, Message("ai", (Text("x"),)), HUMAN)
    for on_words, found in ((False, [True, False]), (True, [True, True])):
        row = msgspec.structs.replace(constraints, reasoning_required_on_text=on_words)
        transcript, _ = run_passes(*history, constraints=row)
        replies = [message for message in transcript.messages if message.speaker == "ai"]
        assert [isinstance(message.blocks[0], Thinking) for message in replies] == found


def test_a_forced_choice_beside_reasoning_by_default():
    constraints = msgspec.structs.replace(
        ANYTHING, reasoning_by_default=True, reasoning_forbids_forced_choice=True, reasoning_required_on_calls="default"
    )
    options = Options(tool_choice=ToolChoice("required"))
    transcript, _ = run_passes(HUMAN, CALL_MESSAGE, FOUND, constraints=constraints, options=options)
    assert transcript.options.reasoning == Reasoning(enabled=False, effort="none")
    assert transcript.options.tool_choice == ToolChoice("required")
    assert not any(isinstance(block, Thinking) for message in transcript.messages for block in message.blocks)
    row = msgspec.structs.replace(constraints, can_disable_reasoning=False)
    transcript, _ = run_passes(HUMAN, constraints=row, options=options)
    assert transcript.options == Options(tool_choice=ToolChoice("auto"))


def test_leading_user_message_is_inserted_if_required():
    constraints = msgspec.structs.replace(ANYTHING, first_speaker="human")
    transcript, _ = run_passes(Message("system", (Text("s"),)), CALL_MESSAGE, FOUND, constraints=constraints)
    assert [message.speaker for message in transcript.messages] == ["system", "human", "ai", "tool", "tool"]
    assert transcript.messages[1].blocks == (Text(TEXTS.first_user_message),)
    at_home = Message("ai", (call("a"),), native=Native("elsewhere", {}))
    found = Message("tool", (result("a"),), native=Native("elsewhere", {}))
    for first_calls, head in ((True, []), (False, ["human"])):
        row = msgspec.structs.replace(constraints, first_can_call=first_calls)
        transcript, _ = run_passes(at_home, found, constraints=row)
        assert [message.speaker for message in transcript.messages] == [*head, "ai", "tool"]


def test_one_message_a_result_or_all_in_one():
    each, _ = run_passes(CALL_MESSAGE, FOUND)
    assert shape(each.messages)[1:] == [("tool", "ToolResponse")] * 2
    constraints = msgspec.structs.replace(ANYTHING, result_grouping="joint", alternation="merged")
    joint, _ = run_passes(
        CALL_MESSAGE, Message("tool", (result("b"),)), Message("tool", (result("a"),)), HUMAN, constraints=constraints
    )
    assert shape(joint.messages)[1:] == [("tool", "ToolResponse", "ToolResponse", "Text")]


def test_error_is_marked_in_text_without_flag():
    transcript, _ = run_passes(Message("ai", (call("a"),)), Message("tool", (result("a", "boom", error=True),)))
    (response,) = transcript.messages[1].blocks
    assert isinstance(response, ToolResponse)
    assert response.content == (Text("[error] boom"),)


def test_stub_tool_is_declared_if_required():
    for wanted, tools in (("never", 0), ("cross-api", 1), ("always", 1)):
        transcript, _ = run_passes(
            CALL_MESSAGE, FOUND, constraints=msgspec.structs.replace(ANYTHING, tools_required=wanted)
        )
        assert len(transcript.tools) == tools


def test_reasoning_goes_back_to_its_maker_only():
    constraints = msgspec.structs.replace(ANYTHING, reasoning_replay="plain")
    own = Thinking("mine", origin=Origin("elsewhere"))
    foreign = Thinking("theirs", origin=Origin("openai"))
    for thought, kept in ((own, True), (foreign, False)):
        transcript, report = run_passes(HUMAN, Message("ai", (thought, Text("x"))), HUMAN, constraints=constraints)
        assert (thought in transcript.messages[1].blocks) is kept
        assert bool(report.findings_of("reasoning")) is not kept
    result_request, _ = run_passes(
        HUMAN, Message("ai", (foreign,)), HUMAN, constraints=constraints, policy=Policy(reasoning="text")
    )
    assert result_request.messages[1].blocks == (Text("[reasoning] theirs"),)


def test_an_open_exchange_without_reasoning_switches_it_off():
    constraints = msgspec.structs.replace(ANYTHING, open_exchange_needs_reasoning=True)
    options = Options(reasoning=Reasoning(enabled=True, budget=2000))
    for messages, on in (((HUMAN, CALL_MESSAGE, FOUND), False), ((HUMAN, CALL_MESSAGE, FOUND, HUMAN), True)):
        transcript, _ = run_passes(*messages, constraints=constraints, options=options)
        assert (transcript.options.reasoning == options.reasoning) is on


MESSY = (
    FOUND,
    Message("human", (Text(""), call("x"))),
    CALL_MESSAGE,
    HUMAN,
    Message("tool", (result("b", "late"), Text("by the way"))),
    Message("ai", (Thinking("hm"), Text("so"))),
    Message("system", (Text("later"),)),
    Message("tool", (result("nobody"),)),
)
ROWS = [
    ANYTHING,
    Constraints(
        "strict",
        "strict",
        result_grouping="joint",
        alternation="merged",
        first_speaker="human",
        ending="human",
        system_position="top",
        later_system="text",
        empty_text="refused",
        allows_blank_messages=False,
        has_error_flag=True,
        tools_required="always",
    ),
    msgspec.structs.replace(ANYTHING, filler_after_results=True, later_system="text", reasoning_replay="plain"),
    msgspec.structs.replace(
        ANYTHING,
        filler_after_results=True,
        alternation="strict",
        calls_without_text=True,
        first_speaker="human",
        first_can_call=False,
        needs_user_message=True,
        ending="marked",
        allows_system_after_reply=False,
        reasoning_replay="plain",
        reasoning_required_on_calls="default",
        reasoning_required_on_text=True,
        empty_message_speakers=frozenset({"human"}),
    ),
]


@pytest.mark.parametrize("constraints", ROWS)
def test_run_again_the_passes_change_nothing(constraints: Constraints):
    first, _ = run_passes(*MESSY, constraints=constraints)
    again = Request(first.messages, first.system, first.tools, first.options)
    second = render(again, constraints, Policy(), Report())
    assert (second.messages, second.system, second.tools) == (first.messages, first.system, first.tools)


@pytest.mark.parametrize("constraints", ROWS)
def test_input_is_not_mutated(constraints: Constraints):
    request = Request(pair(MESSY))
    before = repr(request)
    render(request, constraints, Policy(), Report())
    assert repr(request) == before


@pytest.mark.parametrize(("given", "sent"), [(-1, 0), (-0.0, 0), (0, 0), (0.7, 0.7), (1, 1), (1.01, 1), (1e300, 1)])
def test_number_outside_its_range_becomes_the_nearest_and_is_reported(given, sent):
    row, report = Constraints("a", "a", option_ranges={"top_p": (0, 1)}), Report()
    out = render(Request((), options=Options(top_p=given, temperature=given)), row, Policy(), report)
    assert (out.options.top_p, out.options.temperature) == (sent, given)
    assert [finding.subject for finding in report.findings] == ([] if given == sent else ["top_p"])


def test_every_pass_has_its_place_in_the_theory():
    from segue.render import passes

    assert passes.__doc__ is not None
    for step in PASSES:
        name = step.__name__.removesuffix("_and_regroup")
        assert f"`{name}`" in passes.__doc__, f"{name} is not explained"

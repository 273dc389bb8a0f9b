"""The passes on demands that no wire of today has, and the promises that hold for all of them."""

from __future__ import annotations

import msgspec
import pytest

from segue.canonical.blocks import Message, Native, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.pairing import pair
from segue.canonical.request import Options, Reasoning, Request, ToolChoice
from segue.render.demands import TEXTS, Demands, Policy
from segue.render.passes import PASSES, render
from segue.render.report import Report

ANYTHING = Demands("elsewhere", "elsewhere")


def call(raw_id: str) -> ToolCall:
    return ToolCall("look", {"q": raw_id}, origin=Origin("openai", raw_id=raw_id))


def result(raw_id: str, text: str = "found", *, error: bool = False) -> ToolResponse:
    origin = Origin("openai", raw_id=raw_id)
    return ToolResponse(content=(Text(text),), is_complete=True, error=error, origin=origin)


def said(*messages: Message, demands: Demands = ANYTHING, policy: Policy | None = None, **more: object):
    request = msgspec.structs.replace(Request(pair(messages)), **more)
    report = Report()
    return render(request, demands, policy or Policy(), report), report


def shape(messages: tuple[Message, ...]) -> list[tuple[str, ...]]:
    return [(message.speaker, *(type(block).__name__ for block in message.blocks)) for message in messages]


HUMAN = Message("human", (Text("hi"),))
ASKS = Message("ai", (call("a"), call("b")))
FOUND = Message("tool", (result("a"), result("b")))


def test_a_bridge_where_the_target_wants_one():
    demands = msgspec.structs.replace(ANYTHING, bridge=True)
    transcript, report = said(HUMAN, ASKS, FOUND, HUMAN, demands=demands)
    assert [message.speaker for message in transcript.messages] == ["human", "ai", "tool", "tool", "ai", "human"]
    assert transcript.messages[4].blocks == (Text(TEXTS.bridge),)
    assert [finding.kind for finding in report.findings] == ["inserted"]


def test_system_text_behind_a_reply_where_none_may_stand():
    system = Message("system", (Text("s"),))
    demands = msgspec.structs.replace(ANYTHING, system_after_reply=False, bridge=True)
    transcript, _ = said(
        system, HUMAN, system, ASKS, FOUND, system, Message("ai", (Text("x"),)), system, demands=demands
    )
    speakers = [message.speaker for message in transcript.messages]
    assert speakers == ["system", "human", "system", "ai", "tool", "tool", "ai", "human", "ai", "human"]
    assert transcript.messages[7].blocks == (Text("[system] s"),)


def test_words_apart_from_calls_where_they_cant_stand_together():
    demands = msgspec.structs.replace(ANYTHING, calls_alone=True)
    asks = Message("ai", (Text("I look."), call("a"), Text("")))
    transcript, report = said(HUMAN, asks, Message("tool", (result("a"),)), demands=demands)
    assert shape(transcript.messages)[1:] == [("ai", "Text"), ("ai", "ToolCall"), ("tool", "ToolResponse")]
    assert report.of("moved")
    bare = Message("ai", (Text(""), call("a")))
    transcript, report = said(HUMAN, bare, Message("tool", (result("a"),)), demands=demands)
    assert shape(transcript.messages)[1:] == [("ai", "ToolCall"), ("tool", "ToolResponse")]
    assert not report.of("moved")


def test_neighbours_that_are_refused_become_one_but_results_do_not():
    demands = msgspec.structs.replace(ANYTHING, alternation="strict")
    transcript, _ = said(HUMAN, HUMAN, ASKS, FOUND, HUMAN, demands=demands)
    assert [message.speaker for message in transcript.messages] == ["human", "ai", "tool", "tool", "human"]


def test_a_human_where_one_is_wanted():
    demands = msgspec.structs.replace(ANYTHING, human_wanted=True)
    transcript, _ = said(ASKS, FOUND, demands=demands)
    assert transcript.messages[-1].blocks == (Text(TEXTS.tail),)
    transcript, _ = said(HUMAN, ASKS, FOUND, demands=demands)
    assert transcript.messages[-1].speaker == "tool"


def test_a_marked_beginning_of_an_answer():
    demands = msgspec.structs.replace(ANYTHING, ending="marked")
    native = Native("elsewhere", {})
    half = Message("ai", (Text("ha"),), prefill=True, native=native)
    transcript, _ = said(HUMAN, half, HUMAN, half, demands=demands)
    assert [message.prefill for message in transcript.messages] == [False, False, False, True]
    for ending in (msgspec.structs.replace(half, prefill=False), msgspec.structs.replace(half, native=None)):
        transcript, _ = said(HUMAN, ending, demands=demands)
        assert transcript.messages[-1].blocks == (Text(TEXTS.tail),)
    system = Message("system", (Text("s"),), native=native)
    for system_last, ending in ((True, "s"), (False, TEXTS.tail)):
        row = msgspec.structs.replace(demands, system_last=system_last)
        transcript, _ = said(HUMAN, system, demands=row)
        assert transcript.messages[-1].blocks == (Text(ending),)


def test_an_empty_reply_where_none_may_be_empty():
    demands = msgspec.structs.replace(ANYTHING, empty_messages=frozenset({"human"}))
    own = [Message(speaker, (Text(""),), native=Native(ANYTHING.api, {})) for speaker in ("human", "ai")]
    transcript, _ = said(*own, HUMAN, demands=demands)
    assert [message.speaker for message in transcript.messages] == ["human", "human"]


def test_empty_texts_stay_at_home_and_go_abroad_nowhere():
    demands = msgspec.structs.replace(ANYTHING, empty_messages=frozenset({"human", "ai"}))
    for api, expected in ((ANYTHING.api, ["", "", "x"]), ("abroad", ["x"])):
        native = Native(api, {})
        alone, beside = (Text(""),), (Text(""), Text("x"))
        given = [Message("ai", blocks, native=native) for blocks in (alone, beside)]
        transcript, report = said(HUMAN, *given, HUMAN, demands=demands)
        assert [block for message in transcript.messages[1:-1] for block in message.blocks] == [*map(Text, expected)]
        assert len(report.of("dropped")) == (api == "abroad")


def test_reasoning_that_is_refused_even_at_home():
    own = Message("ai", (Thinking("hm", origin=Origin("elsewhere")), Text("x")), native=Native("elsewhere", {}))
    for kind, kept in (("none", True), ("refused", False)):
        transcript, _ = said(HUMAN, own, HUMAN, demands=msgspec.structs.replace(ANYTHING, reasoning=kind))
        assert (len(transcript.messages[1].blocks) == 2) is kept


def test_placeholders_where_every_reply_must_carry_reasoning():
    demands = msgspec.structs.replace(ANYTHING, reasoning="plain", reasoning_on_calls="default")
    history = (HUMAN, ASKS, FOUND, Message("ai", (Text("x"),)), HUMAN)
    for on_words, found in ((False, [True, False]), (True, [True, True])):
        row = msgspec.structs.replace(demands, reasoning_on_words=on_words)
        transcript, _ = said(*history, demands=row)
        replies = [message for message in transcript.messages if message.speaker == "ai"]
        assert [isinstance(message.blocks[0], Thinking) for message in replies] == found


def test_a_forced_choice_beside_reasoning_by_default():
    demands = msgspec.structs.replace(
        ANYTHING, reasoning_by_default=True, reasoning_forbids_forced_choice=True, reasoning_on_calls="default"
    )
    options = Options(tool_choice=ToolChoice("required"))
    transcript, _ = said(HUMAN, ASKS, FOUND, demands=demands, options=options)
    assert transcript.options.reasoning == Reasoning(enabled=False, effort="none")
    assert transcript.options.tool_choice == ToolChoice("required")
    assert not any(isinstance(block, Thinking) for message in transcript.messages for block in message.blocks)
    row = msgspec.structs.replace(demands, reasoning_switch=False)
    transcript, _ = said(HUMAN, demands=row, options=options)
    assert transcript.options == Options(tool_choice=ToolChoice("auto"))


def test_a_head_where_a_human_must_come_first():
    demands = msgspec.structs.replace(ANYTHING, first="human")
    transcript, _ = said(Message("system", (Text("s"),)), ASKS, FOUND, demands=demands)
    assert [message.speaker for message in transcript.messages] == ["system", "human", "ai", "tool", "tool"]
    assert transcript.messages[1].blocks == (Text(TEXTS.head),)
    at_home = Message("ai", (call("a"),), native=Native("elsewhere", {}))
    found = Message("tool", (result("a"),), native=Native("elsewhere", {}))
    for first_calls, head in ((True, []), (False, ["human"])):
        row = msgspec.structs.replace(demands, first_calls=first_calls)
        transcript, _ = said(at_home, found, demands=row)
        assert [message.speaker for message in transcript.messages] == [*head, "ai", "tool"]


def test_one_message_a_result_or_all_in_one():
    each, _ = said(ASKS, FOUND)
    assert shape(each.messages)[1:] == [("tool", "ToolResponse")] * 2
    demands = msgspec.structs.replace(ANYTHING, results="joint", alternation="merged")
    joint, _ = said(ASKS, Message("tool", (result("b"),)), Message("tool", (result("a"),)), HUMAN, demands=demands)
    assert shape(joint.messages)[1:] == [("tool", "ToolResponse", "ToolResponse", "Text")]


def test_an_error_says_so_where_there_is_no_flag():
    transcript, _ = said(Message("ai", (call("a"),)), Message("tool", (result("a", "boom", error=True),)))
    (response,) = transcript.messages[1].blocks
    assert isinstance(response, ToolResponse)
    assert response.content == (Text("[error] boom"),)


def test_a_stub_tool_where_one_is_wanted():
    for wanted, tools in (("never", 0), ("abroad", 1), ("always", 1)):
        transcript, _ = said(ASKS, FOUND, demands=msgspec.structs.replace(ANYTHING, tools_wanted=wanted))
        assert len(transcript.tools) == tools


def test_reasoning_goes_back_to_its_maker_only():
    demands = msgspec.structs.replace(ANYTHING, reasoning="plain")
    own = Thinking("mine", origin=Origin("elsewhere"))
    foreign = Thinking("theirs", origin=Origin("openai"))
    for thought, kept in ((own, True), (foreign, False)):
        transcript, report = said(HUMAN, Message("ai", (thought, Text("x"))), HUMAN, demands=demands)
        assert (thought in transcript.messages[1].blocks) is kept
        assert bool(report.of("reasoning")) is not kept
    told, _ = said(HUMAN, Message("ai", (foreign,)), HUMAN, demands=demands, policy=Policy(reasoning="text"))
    assert told.messages[1].blocks == (Text("[reasoning] theirs"),)


def test_an_open_exchange_without_reasoning_switches_it_off():
    demands = msgspec.structs.replace(ANYTHING, reasoning_opens_loop=True)
    options = Options(reasoning=Reasoning(enabled=True, budget=2000))
    for messages, on in (((HUMAN, ASKS, FOUND), False), ((HUMAN, ASKS, FOUND, HUMAN), True)):
        transcript, _ = said(*messages, demands=demands, options=options)
        assert (transcript.options.reasoning == options.reasoning) is on


MESSY = (
    FOUND,
    Message("human", (Text(""), call("x"))),
    ASKS,
    HUMAN,
    Message("tool", (result("b", "late"), Text("by the way"))),
    Message("ai", (Thinking("hm"), Text("so"))),
    Message("system", (Text("later"),)),
    Message("tool", (result("nobody"),)),
)
ROWS = [
    ANYTHING,
    Demands(
        "strict",
        "strict",
        results="joint",
        alternation="merged",
        first="human",
        ending="human",
        system="top",
        later_system="text",
        empty_text="refused",
        blank_messages=False,
        error_flag=True,
        tools_wanted="always",
    ),
    msgspec.structs.replace(ANYTHING, bridge=True, later_system="text", reasoning="plain"),
    msgspec.structs.replace(
        ANYTHING,
        bridge=True,
        alternation="strict",
        calls_alone=True,
        first="human",
        first_calls=False,
        human_wanted=True,
        ending="marked",
        system_after_reply=False,
        reasoning="plain",
        reasoning_on_calls="default",
        reasoning_on_words=True,
        empty_messages=frozenset({"human"}),
    ),
]


@pytest.mark.parametrize("demands", ROWS)
def test_run_again_the_passes_change_nothing(demands: Demands):
    first, _ = said(*MESSY, demands=demands)
    again = Request(first.messages, first.system, first.tools, first.options)
    second = render(again, demands, Policy(), Report())
    assert (second.messages, second.system, second.tools) == (first.messages, first.system, first.tools)


@pytest.mark.parametrize("demands", ROWS)
def test_what_is_put_in_is_not_changed(demands: Demands):
    request = Request(pair(MESSY))
    before = repr(request)
    render(request, demands, Policy(), Report())
    assert repr(request) == before


def test_every_pass_has_its_place_in_the_theory():
    from segue.render import passes

    assert passes.__doc__ is not None
    for step in PASSES:
        name = step.__name__.removesuffix("_and_regroup")
        assert f"`{name}`" in passes.__doc__, f"{name} is not explained"

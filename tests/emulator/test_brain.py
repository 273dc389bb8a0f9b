"""The built-in model: it calls the sensible tools, says what came back, and always comes to an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from segue.canonical.blocks import Media, Message, Text, ToolCall, ToolResponse
from segue.canonical.request import Options, Reasoning, Request, ResponseFormat, Tool, ToolChoice
from segue.emulator.model.brain import answer
from segue.emulator.turns import Call, End, Say, Think, Turn
from segue.wire.registry import WIRES
from segue.wire.schema import read_schema
from tests.budget import examples
from tests.conversations.build import Case
from tests.conversations.table import CASES

from . import schemas

STRING = {"type": "string"}


def takes(*optional: str, **properties: Any) -> dict[str, Any]:
    needed = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": needed}


WEATHER = Tool("get_weather", "Get the current weather for a city.", takes(city=STRING))
TIME = Tool("get_time", "Tells the local time in a time zone.", takes(zone=STRING))
READ = Tool("read_file", "Reads a file.", takes(path=STRING))
WRITE = Tool("write_file", "Writes a file.", takes(path=STRING, content=STRING))
SEARCH = Tool("webSearch", "Search the web.", takes(query=STRING))
SUM = Tool("calculator", "Evaluates arithmetic.", takes(expression=STRING))
PATCH = Tool("apply_patch", "Applies a patch to files.", kind="custom")
HOSTED = Tool("web_search", kind="hosted")
ALL = (WEATHER, TIME, READ, WRITE, SEARCH, SUM, HOSTED)


def asked(words: str, *tools: Tool, **options: Any) -> Request:
    return Request((Message("human", (Text(words),)),), tools=tools, options=Options(**options))


def calls(turn: Turn) -> list[tuple[str, Any]]:
    return [(step.name, step.arguments) for step in turn if isinstance(step, Call)]


def said(turn: Turn) -> str:
    return "".join(step.text for step in turn if isinstance(step, Say))


Answer = Callable[[ToolCall], ToolResponse]


def answered(request: Request, turn: Turn, result: Answer) -> Request:
    """The request after this one: with the calls of the turn and their results."""
    made = [
        ToolCall(
            step.name,
            step.text if step.arguments is UNSET else step.arguments,
            id=f"hist_tool_{len(request.messages)}_{index}",
        )
        for index, step in enumerate(turn)
        if isinstance(step, Call)
    ]
    told = (Message("ai", tuple(made)), Message("tool", tuple(map(result, made))))
    return replace(request, messages=(*request.messages, *told))


def fine(call: ToolCall) -> ToolResponse:
    return call.respond(f"{call.name} is done")


def broken(call: ToolCall) -> ToolResponse:
    return call.respond("timed out", error=True)


# --------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("What is the weather in Lisbon?", [("get_weather", {"city": "Lisbon"})]),
        ("Weather in Lisbon and Oslo?", [("get_weather", {"city": "Lisbon"}), ("get_weather", {"city": "Oslo"})]),
        (
            "What is the weather in Lisbon, and what time is it there?",
            [("get_weather", {"city": "Lisbon"}), ("get_time", {"zone": "Lisbon"})],
        ),
        ("Read the file src/x.py", [("read_file", {"path": "src/x.py"})]),
        ("Open src/x.py and README.md", [("read_file", {"path": "src/x.py"}), ("read_file", {"path": "README.md"})]),
        ("Save 'hi' to a.txt", [("write_file", {"path": "a.txt", "content": "hi"})]),
        ("Search the web for whales.", [("webSearch", {"query": "whales"})]),
        ("What is 12 * 7?", [("calculator", {"expression": "12 * 7"})]),
        ("Lisbon?", [("get_weather", {"city": "Lisbon"})]),
        ("Hello, tell me something.", [("webSearch", {"query": "Hello, tell me something"})]),
        ("<reminder>Read the file b.py</reminder>\n12 * 7?", [("calculator", {"expression": "12 * 7"})]),
    ],
)
def test_the_sensible_tools_are_called(words: str, made: Any) -> None:
    turn = answer(asked(words, *ALL))
    assert calls(turn) == made
    assert isinstance(turn[0], Think)


@pytest.mark.parametrize(
    "words", ["Hello!", "hi there", "Thanks a lot!", "Thank you so much for your help", "Good morning"]
)
def test_small_talk_gets_words(words: str) -> None:
    turn = answer(asked(words, *ALL))
    assert not calls(turn)
    assert said(turn)
    assert calls(answer(asked(words, *ALL, tool_choice=ToolChoice("required"))))


def test_any_question_gets_a_call() -> None:
    odd = Tool("frobnicate")
    assert calls(answer(asked("Qué tal el tiempo en Lisboa?", odd))) == [("frobnicate", {})]
    picture = Request((Message("human", (Media("image"), Text("?"))),), tools=(odd,))
    assert calls(answer(picture)) == [("frobnicate", {})]


def test_no_more_than_four_and_each_tool_once_before_any_twice() -> None:
    made = calls(answer(asked("Weather and time in Rome, Oslo, Bonn, Turin and Bergen?", WEATHER, TIME)))
    assert [name for name, _ in made] == ["get_weather", "get_weather", "get_weather", "get_time"]


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({"parallel": False}, ["get_weather"]),
        ({"tool_choice": ToolChoice("none")}, []),
        ({"tool_choice": ToolChoice("required")}, ["get_weather", "get_weather"]),
        ({"tool_choice": ToolChoice("tool", "get_time")}, ["get_time", "get_time"]),
        ({"tool_choice": ToolChoice("auto", allowed=("get_time", "web_search"))}, ["get_time", "get_time"]),
        ({"tool_choice": ToolChoice("required", allowed=("read_file",)), "parallel": False}, ["read_file"]),
        ({"tool_choice": ToolChoice("tool", "web_search")}, []),
    ],
)
def test_what_is_asked_for_is_obeyed(options: Any, made: list[str]) -> None:
    turn = answer(asked("Weather in Lisbon and Oslo?", *ALL, **options))
    assert [name for name, _ in calls(turn)] == made


def test_a_tool_of_free_text_gets_text() -> None:
    assert answer(asked("Apply this patch: `*** Begin`", PATCH))[-1] == Call("apply_patch", text="*** Begin")
    bound = replace(PATCH, grammar={"syntax": "regex", "definition": r"^v\d\.\d$"})
    assert answer(asked("Apply a patch", bound))[-1] == Call("apply_patch", text="v0.0")


def test_who_is_not_to_think_does_not() -> None:
    for reasoning in (Reasoning(enabled=False), Reasoning(effort="none")):
        assert not any(isinstance(step, Think) for step in answer(asked("Lisbon?", *ALL, reasoning=reasoning)))
    assert isinstance(answer(asked("Hello!", reasoning=Reasoning(effort="low")))[0], Think)


def test_the_seed_changes_words_and_nothing_else() -> None:
    request = asked("Weather in Lisbon?", *ALL)
    turns = [answer(request, seed=seed) for seed in range(20)]
    assert len({str(turn) for turn in turns}) > 1
    assert {str(calls(turn)) for turn in turns} == {"[('get_weather', {'city': 'Lisbon'})]"}
    assert answer(request, seed=7) == answer(request, seed=7)


# ------------------------------------------------------------------------------------------------------------- results


def weather(call: ToolCall) -> ToolResponse:
    return call.respond({"Lisbon": "18 °C,\n  light rain", "Oslo": "x" * 300}[call.arguments["city"]])


def test_one_result_is_told() -> None:
    request = asked("Weather in Lisbon?", WEATHER)
    assert said(answer(answered(request, answer(request), weather))) == (
        "Here is what get_weather (Lisbon) gave: 18 °C, light rain"
    )


def test_all_results_are_told_in_short() -> None:
    request = asked("Weather in Lisbon and Oslo?", WEATHER)
    opening, *lines = said(answer(answered(request, answer(request), weather))).split("\n")
    assert opening.endswith(":")
    assert lines == ["- get_weather (Lisbon): 18 °C, light rain", f"- get_weather (Oslo): {'x' * 199}…"]


def test_what_failed_is_tried_once_more_and_then_named() -> None:
    request = asked("Weather in Lisbon and the time?", WEATHER, TIME)
    second = answered(request, answer(request), lambda call: broken(call) if call.name == "get_time" else weather(call))
    again = answer(second)
    assert calls(again) == [("get_time", {"zone": "Lisbon"})]
    assert said(answer(answered(second, again, broken))).split("\n")[1:] == [
        "- get_weather (Lisbon): 18 °C, light rain",
        "- get_time (Lisbon), at the second try, failed: timed out",
    ]
    assert said(answer(answered(second, again, fine))).split("\n")[1:] == [
        "- get_weather (Lisbon): 18 °C, light rain",
        "- get_time (Lisbon), at the second try: get_time is done",
    ]


@pytest.mark.parametrize(
    "result",
    [
        lambda call: call.respond("file not found", error=True),
        lambda call: call.respond("cancelled by the user", outcome="cancelled"),
        lambda call: call.respond("Error: permission denied"),
    ],
)
def test_what_will_not_change_is_not_tried_again(result: Answer) -> None:
    request = asked("Read src/x.py", READ)
    told = answer(answered(request, answer(request), result))
    assert not calls(told)
    assert "read_file (src/x.py) failed: " in said(told)


def test_nothing_is_tried_again_where_no_call_may_be_made() -> None:
    request = asked("Read src/x.py", READ)
    second = answered(request, answer(request), broken)
    second = replace(second, options=Options(tool_choice=ToolChoice("none")))
    assert said(answer(second)).endswith("read_file (src/x.py) failed: timed out")


def test_a_remark_after_results_begins_nothing_new() -> None:
    request = asked("Read src/x.py", READ)
    second = answered(request, answer(request), fine)
    for words in (
        "<reminder>You have a to-do list.</reminder>",
        '<env files="2">a.py, b.py</env>\n\n<note>Go on.</note>',
        "[Interrupted by the user]",
        "Read src/x.py",
    ):
        for messages in beside_and_after(second, words):
            assert "read_file is done" in said(answer(replace(second, messages=messages)))


def beside_and_after(request: Request, words: str) -> list[tuple[Message, ...]]:
    """The messages with these words right after the results: in their message, and in one of their own."""
    *earlier, results = request.messages
    beside = replace(results, blocks=(*results.blocks, Text(words)))
    return [(*earlier, beside), (*request.messages, Message("human", (Text(words),)))]


def test_a_question_after_results_begins_anew() -> None:
    request = asked("Weather in Lisbon?", WEATHER)
    second = answered(request, answer(request), fine)
    for messages in beside_and_after(second, "<env>Oslo</env>and in Rome?"):
        third = replace(second, messages=messages)
        assert calls(answer(third)) == [("get_weather", {"city": "Rome"})]
        told = said(answer(answered(third, answer(third), fine)))
        assert "Rome" in told
        assert "Lisbon" not in told


def test_a_reminder_without_a_mark_does_not_go_on_for_ever() -> None:
    request = asked("Weather in Lisbon?", WEATHER)
    left = 9
    while left and calls(turn := answer(request)):
        left -= 1
        request = answered(request, turn, fine)
        told = Message("human", (Text(f"You have {left} turns left."),))
        request = replace(request, messages=(*request.messages, told))
    assert left >= 7


def test_the_next_question_begins_anew() -> None:
    request = asked("Read src/x.py", READ)
    second = answered(request, answer(request), fine)
    more = (Message("ai", (Text("There."),)), Message("human", (Text("And b.md?"),)))
    assert calls(answer(replace(second, messages=(*second.messages, *more)))) == [("read_file", {"path": "b.md"})]


def test_a_result_whose_call_is_elsewhere_is_told() -> None:
    request = Request((Message("tool", (ToolResponse("x", content=(Text("14:05"),)),)),), tools=(TIME,), continues="r1")
    assert "14:05" in said(answer(request))


def test_a_demand_is_obeyed_each_time() -> None:
    request = asked("Weather in Lisbon and Oslo?", WEATHER, tool_choice=ToolChoice("required"))
    assert len(calls(answer(answered(request, answer(request), weather)))) == 1


# --------------------------------------------------------------------------------------------------------------- words


def test_without_tools_it_speaks_of_the_words() -> None:
    assert "What is the capital of France?" in said(answer(asked("What is the capital of France?")))
    assert said(answer(Request(())))


def test_json_is_what_the_schema_says() -> None:
    schema = takes(city=STRING, days={"type": "integer"})
    form = ResponseFormat("schema", schema)
    assert answer(asked("Lisbon, 3 days", response_format=form)) == (Say('{"city":"Lisbon","days":3}'),)
    assert said(answer(asked("Hm", response_format=ResponseFormat("json")))).startswith('{"answer":"')
    request = asked("Weather in Lisbon?", WEATHER, response_format=ResponseFormat("schema", takes(temperature=STRING)))
    assert not said(answer(request))
    assert calls(answer(request))


def test_words_end_at_a_stop() -> None:
    whole = said(answer(asked("What is new?")))
    assert said(answer(asked("What is new?", stop=("new", "?")))) == whole[: whole.index("new")]
    assert answer(asked("What is new?", stop=("new", "?")))[-1] == End("stop", "new")
    assert answer(asked("What is new?", stop=(whole[:3],))) == (End("stop", whole[:3]),)
    request = asked("Lisbon?", WEATHER, stop=("e", "o"))
    assert calls(answer(request)), "a stop in the words before calls would keep them away"


def test_what_is_too_long_is_cut() -> None:
    whole = said(answer(asked("What is new?")))
    assert answer(asked("What is new?", max_tokens=3)) == (Say(whole[:12]), End("length"))
    assert answer(asked("What is new?", max_tokens=100)) == (Say(whole),)
    assert answer(asked("What is new?", max_tokens=0)) == (End("length"),)
    call = '{"path":"src/x.py"}'
    assert answer(asked("Read src/x.py", READ, max_tokens=5)) == (Call("read_file", text=call[:11]), End("length"))
    assert answer(asked("Read src/x.py", READ, max_tokens=2)) == (End("length"),)


# --------------------------------------------------------------------------------------------------------- any request


def check(request: Request, turn: Turn) -> None:
    """Only tools that are there, with arguments that they take; and something is always done."""
    assert turn
    tools = {tool.name: tool for tool in reversed(request.tools) if tool.kind != "hosted"}
    for step in turn:
        if not isinstance(step, Call) or turn[-1] == End("length"):
            continue
        tool = tools[step.name]
        if tool.kind == "custom":
            assert step.text is not None
            continue
        schema = read_schema(tool.parameters or {})
        jsonschema.Draft202012Validator(schema).validate(step.arguments)


def rounds(request: Request, result: Answer) -> int:
    """How many turns it takes until there are words. A demand for calls is lifted once it was met, as clients do."""
    for count in range(6):
        turn = answer(request, seed=count)
        check(request, turn)
        assert turn == answer(request, seed=count)
        if not calls(turn):
            assert said(turn) or isinstance(turn[-1], End)
            return count
        request = answered(request, turn, result)
        request = replace(request, options=replace(request.options, tool_choice=None))
    raise AssertionError(f"it never ends: {request.messages[-4:]}")


def picture(call: ToolCall) -> ToolResponse:
    return call.respond((Media("image", mime="image/png", data="AAAA"),))


def nothing(call: ToolCall) -> ToolResponse:
    return call.respond(structured={"error": {"code": 5}}, error=True)


RESULTS: tuple[Answer, ...] = (fine, broken, picture, nothing)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_conversation_comes_to_an_end(case: Case) -> None:
    request = WIRES[case.source].parse_request(case.body)
    for result in RESULTS:
        rounds(request, result)
        again = replace(request, messages=(*request.messages, Message("human", (Text("Once more, in Lisbon?"),))))
        assert rounds(again, result) <= 2


def test_all_apis_are_among_them() -> None:
    assert {case.source for case in CASES} == set(WIRES)


@examples(1.5)
@given(
    st.lists(
        st.builds(Tool, st.sampled_from(["get_weather", "readFile", "x-1"]), parameters=schemas.tools()), max_size=3
    ),
    schemas.WORDS,
    st.sampled_from(RESULTS),
    st.builds(
        Options,
        max_tokens=st.none() | st.integers(0, 60),
        stop=st.none() | st.just(("e", "")),
        parallel=st.none() | st.booleans(),
        response_format=st.none() | st.builds(ResponseFormat, st.just("schema"), schemas.tools()),
        tool_choice=st.none() | st.builds(ToolChoice, st.sampled_from(["auto", "none", "required"])),
    ),
)
def test_any_tools_are_called_as_they_are_declared(
    tools: list[Tool], words: str, result: Answer, options: Options
) -> None:
    request = replace(asked(words, *tools), options=options)
    turn = answer(request)
    if options.parallel is False:
        assert len(calls(turn)) <= 1
    if options.tool_choice == ToolChoice("none") or not tools:
        assert not calls(turn)
    assert rounds(request, result) <= 2

"""The built-in model: it calls matching tools, reports their results and always ends."""

from __future__ import annotations

import json
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
from segue.emulator.model.responder import make_reply_steps
from segue.emulator.steps import CallStep, EndStep, ReplySteps, TextStep, ThinkStep
from segue.wire.registry import WIRES
from segue.wire.schema.root import normalize_schema
from tests.budget import examples, sample
from tests.conversations.build import Case
from tests.conversations.table import CASES
from tests.emulator import schemas

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


def make_request(prompt: str, *tools: Tool, **options: Any) -> Request:
    return Request((Message("human", (Text(prompt),)),), tools=tools, options=Options(**options))


def calls(turn: ReplySteps) -> list[tuple[str, Any]]:
    return [(step.name, step.arguments) for step in turn if isinstance(step, CallStep)]


def reply_text(turn: ReplySteps) -> str:
    return "".join(step.text for step in turn if isinstance(step, TextStep))


Answer = Callable[[ToolCall], ToolResponse]


def add_results(request: Request, turn: ReplySteps, result: Answer) -> Request:
    """The request after this one: with the calls of the turn and their results."""
    made = [
        ToolCall(
            step.name,
            step.text if step.arguments is UNSET else step.arguments,
            id=f"hist_tool_{len(request.messages)}_{index}",
        )
        for index, step in enumerate(turn)
        if isinstance(step, CallStep)
    ]
    output = (Message("ai", tuple(made)), Message("tool", tuple(map(result, made))))
    return replace(request, messages=(*request.messages, *output))


def fine(call: ToolCall) -> ToolResponse:
    return call.respond(f"{call.name} is done")


def broken(call: ToolCall) -> ToolResponse:
    return call.respond("timed out", error=True)


# --------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("prompt", "made"),
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
def test_the_sensible_tools_are_called(prompt: str, made: Any) -> None:
    turn = make_reply_steps(make_request(prompt, *ALL))
    assert calls(turn) == made
    assert isinstance(turn[0], ThinkStep)


@pytest.mark.parametrize(
    "prompt", ["Hello!", "hi there", "Thanks a lot!", "Thank you so much for your help", "Good morning"]
)
def test_small_talk_gets_text(prompt: str) -> None:
    turn = make_reply_steps(make_request(prompt, *ALL))
    assert not calls(turn)
    assert reply_text(turn)
    assert calls(make_reply_steps(make_request(prompt, *ALL, tool_choice=ToolChoice("required"))))


def test_a_client_that_asks_for_a_title_gets_one() -> None:
    prompt = "Generate a concise, single-line task title. Do not answer the request.\n\nUser prompt:\nRead notes.txt"
    form = ResponseFormat("json_schema", schema=takes(title={"type": "string", "maxLength": 36}))
    turn = make_reply_steps(make_request(prompt, *ALL, response_format=form))
    assert (calls(turn), json.loads(reply_text(turn))) == ([], {"title": "Read notes.txt"})


def test_a_schema_in_the_prompt_gets_a_value_of_it_and_not_its_own_words() -> None:
    schema = json.dumps(takes(name={"type": "string"}, kind={"enum": ["person", "place"]}))
    turn = make_reply_steps(make_request(f'Thanks, "Anna". Reply with a value of this JSON Schema: {schema}'))
    assert json.loads(reply_text(turn)) == {"name": "Anna", "kind": "person"}


def test_any_question_gets_a_call() -> None:
    odd = Tool("frobnicate")
    assert calls(make_reply_steps(make_request("Qué tal el tiempo en Lisboa?", odd))) == [("frobnicate", {})]
    picture = Request((Message("human", (Media("image"), Text("?"))),), tools=(odd,))
    assert calls(make_reply_steps(picture)) == [("frobnicate", {})]


def test_no_more_than_four_and_each_tool_once_before_any_twice() -> None:
    made = calls(
        make_reply_steps(make_request("Weather and time in Rome, Oslo, Bonn, Turin and Bergen?", WEATHER, TIME))
    )
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
def test_tool_choice_is_followed(options: Any, made: list[str]) -> None:
    turn = make_reply_steps(make_request("Weather in Lisbon and Oslo?", *ALL, **options))
    assert [name for name, _ in calls(turn)] == made


def test_a_tool_of_free_text_gets_text() -> None:
    assert make_reply_steps(make_request("Apply this patch: `*** Begin`", PATCH))[-1] == CallStep(
        "apply_patch", text="*** Begin"
    )
    bound = replace(PATCH, grammar={"syntax": "regex", "definition": r"^v\d\.\d$"})
    assert make_reply_steps(make_request("Apply a patch", bound))[-1] == CallStep("apply_patch", text="v0.0")


def test_disabled_reasoning_is_respected() -> None:
    for reasoning in (Reasoning(enabled=False), Reasoning(effort="none")):
        assert not any(
            isinstance(step, ThinkStep) for step in make_reply_steps(make_request("Lisbon?", *ALL, reasoning=reasoning))
        )
    assert isinstance(make_reply_steps(make_request("Hello!", reasoning=Reasoning(effort="low")))[0], ThinkStep)


def test_seed_changes_only_the_text() -> None:
    request = make_request("Weather in Lisbon?", *ALL)
    turns = [make_reply_steps(request, seed=seed) for seed in range(20)]
    assert len({str(turn) for turn in turns}) > 1
    assert {str(calls(turn)) for turn in turns} == {"[('get_weather', {'city': 'Lisbon'})]"}
    assert make_reply_steps(request, seed=7) == make_reply_steps(request, seed=7)


# ------------------------------------------------------------------------------------------------------------- results


def weather(call: ToolCall) -> ToolResponse:
    return call.respond({"Lisbon": "18 °C,\n  light rain", "Oslo": "x" * 300}[call.arguments["city"]])


def test_one_result_is_reported() -> None:
    request = make_request("Weather in Lisbon?", WEATHER)
    assert reply_text(make_reply_steps(add_results(request, make_reply_steps(request), weather))) == (
        "Here you are. Lisbon: 18 °C, light rain"
    )


def test_all_results_are_summarized() -> None:
    request = make_request("Weather in Lisbon and Oslo?", WEATHER)
    opening, *lines = reply_text(make_reply_steps(add_results(request, make_reply_steps(request), weather))).split("\n")
    assert opening.endswith(":")
    assert lines == ["- Lisbon: 18 °C, light rain", f"- Oslo: {'x' * 199}…"]


def test_failed_call_is_retried_once_then_named() -> None:
    request = make_request("Weather in Lisbon and the time?", WEATHER, TIME)
    second = add_results(
        request, make_reply_steps(request), lambda call: broken(call) if call.name == "get_time" else weather(call)
    )
    again = make_reply_steps(second)
    assert calls(again) == [("get_time", {"zone": "Lisbon"})]
    assert reply_text(make_reply_steps(add_results(second, again, broken))).split("\n")[1:] == [
        "- get_weather (Lisbon): 18 °C, light rain",
        "- get_time (Lisbon), at the second try, failed: timed out",
    ]
    assert reply_text(make_reply_steps(add_results(second, again, fine))).split("\n")[1:] == [
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
def test_permanent_failure_is_not_retried(result: Answer) -> None:
    request = make_request("Read src/x.py", READ)
    output = make_reply_steps(add_results(request, make_reply_steps(request), result))
    assert not calls(output)
    assert "read_file (src/x.py) failed: " in reply_text(output)


def test_no_retry_if_calls_are_disabled() -> None:
    request = make_request("Read src/x.py", READ)
    second = add_results(request, make_reply_steps(request), broken)
    second = replace(second, options=Options(tool_choice=ToolChoice("none")))
    assert reply_text(make_reply_steps(second)).endswith("read_file (src/x.py) failed: timed out")


def test_remark_after_results_starts_no_new_call() -> None:
    request = make_request("Read src/x.py", READ)
    second = add_results(request, make_reply_steps(request), fine)
    for prompt in (
        "<reminder>You have a to-do list.</reminder>",
        '<env files="2">a.py, b.py</env>\n\n<note>Go on.</note>',
        "[Interrupted by the user]",
        "Read src/x.py",
    ):
        for messages in beside_and_after(second, prompt):
            assert "read_file is done" in reply_text(make_reply_steps(replace(second, messages=messages)))


def beside_and_after(request: Request, prompt: str) -> list[tuple[Message, ...]]:
    """The messages with these words right after the results: in their message, and in one of their own."""
    *earlier, results = request.messages
    beside = replace(results, blocks=(*results.blocks, Text(prompt)))
    return [(*earlier, beside), (*request.messages, Message("human", (Text(prompt),)))]


def test_question_after_results_starts_over() -> None:
    request = make_request("Weather in Lisbon?", WEATHER)
    second = add_results(request, make_reply_steps(request), fine)
    for messages in beside_and_after(second, "<env>Oslo</env>and in Rome?"):
        third = replace(second, messages=messages)
        assert calls(make_reply_steps(third)) == [("get_weather", {"city": "Rome"})]
        output = reply_text(make_reply_steps(add_results(third, make_reply_steps(third), fine)))
        assert "Rome" in output
        assert "Lisbon" not in output


def test_unmarked_reminder_ends() -> None:
    request = make_request("Weather in Lisbon?", WEATHER)
    left = 9
    while left and calls(turn := make_reply_steps(request)):
        left -= 1
        request = add_results(request, turn, fine)
        output = Message("human", (Text(f"You have {left} turns left."),))
        request = replace(request, messages=(*request.messages, output))
    assert left >= 7


def test_next_question_starts_over() -> None:
    request = make_request("Read src/x.py", READ)
    second = add_results(request, make_reply_steps(request), fine)
    more = (Message("ai", (Text("There."),)), Message("human", (Text("And b.md?"),)))
    assert calls(make_reply_steps(replace(second, messages=(*second.messages, *more)))) == [
        ("read_file", {"path": "b.md"})
    ]


def test_orphan_result_is_reported() -> None:
    request = Request((Message("tool", (ToolResponse("x", content=(Text("14:05"),)),)),), tools=(TIME,), continues="r1")
    assert "14:05" in reply_text(make_reply_steps(request))


@pytest.mark.parametrize("choice", [ToolChoice("required"), ToolChoice("tool", "get_weather")])
def test_no_text_precedes_a_forced_call(choice: ToolChoice) -> None:
    prompts = [f"Weather in Lisbon, please, for day {day}?" for day in range(8)]
    forced = [make_reply_steps(make_request(prompt, WEATHER, tool_choice=choice)) for prompt in prompts]
    free = [make_reply_steps(make_request(prompt, WEATHER)) for prompt in prompts]
    assert not any(isinstance(step, TextStep) for steps in forced for step in steps)
    assert any(isinstance(step, TextStep) for steps in free for step in steps)


def test_loop_under_any_reaches_the_tool_that_ends_it() -> None:
    answer = Tool("final_result", "The final answer.", takes(answer=STRING))
    request = make_request("Weather and time in Lisbon?", WEATHER, TIME, answer, tool_choice=ToolChoice("required"))
    made: list[str] = []
    for _ in range(4):
        turn = make_reply_steps(request)
        made += [name for name, _ in calls(turn)]
        if "final_result" in made:
            return
        request = add_results(request, turn, fine)
    raise AssertionError(f"the loop does not end: {made}")


def test_required_tool_choice_is_followed_each_time() -> None:
    request = make_request("Weather in Lisbon and Oslo?", WEATHER, tool_choice=ToolChoice("required"))
    assert len(calls(make_reply_steps(add_results(request, make_reply_steps(request), weather)))) == 1


# --------------------------------------------------------------------------------------------------------------- words


def test_reply_without_tools_quotes_the_prompt() -> None:
    assert "What is the capital of France?" in reply_text(
        make_reply_steps(make_request("What is the capital of France?"))
    )
    assert reply_text(make_reply_steps(Request(())))


def test_json_reply_matches_the_schema() -> None:
    schema = takes(city=STRING, days={"type": "integer"})
    form = ResponseFormat("schema", schema)
    assert make_reply_steps(make_request("Lisbon, 3 days", response_format=form)) == (
        TextStep('{"city":"Lisbon","days":3}'),
    )
    written = make_request("Lisbon, 3 days", response_format=ResponseFormat("json"))
    rules = Text(f"Answer in JSON that fits this {{schema}}: {json.dumps(schema)}")
    for changed in (
        replace(written, messages=(Message("system", (rules,)), *written.messages)),
        replace(written, system=(rules,)),
        replace(written, messages=(Message("human", (rules,)), *written.messages)),
    ):
        assert make_reply_steps(changed) == make_reply_steps(make_request("Lisbon, 3 days", response_format=form))
    assert reply_text(make_reply_steps(make_request("Hm", response_format=ResponseFormat("json")))).startswith(
        '{"answer":"'
    )
    request = make_request(
        "Weather in Lisbon?", WEATHER, response_format=ResponseFormat("schema", takes(temperature=STRING))
    )
    assert not reply_text(make_reply_steps(request))
    assert calls(make_reply_steps(request))


def test_text_ends_at_a_stop_sequence() -> None:
    whole = reply_text(make_reply_steps(make_request("What is new?")))
    assert reply_text(make_reply_steps(make_request("What is new?", stop=("new", "?")))) == whole[: whole.index("new")]
    assert make_reply_steps(make_request("What is new?", stop=("new", "?")))[-1] == EndStep("stop", "new")
    assert make_reply_steps(make_request("What is new?", stop=(whole[:3],))) == (EndStep("stop", whole[:3]),)
    request = make_request("Lisbon?", WEATHER, stop=("e", "o"))
    assert calls(make_reply_steps(request)), "a stop in the words before calls would keep them away"


def test_overlong_text_is_truncated() -> None:
    whole = reply_text(make_reply_steps(make_request("What is new?")))
    assert make_reply_steps(make_request("What is new?", max_tokens=3)) == (TextStep(whole[:12]), EndStep("length"))
    assert make_reply_steps(make_request("What is new?", max_tokens=100)) == (TextStep(whole),)
    assert make_reply_steps(make_request("What is new?", max_tokens=0)) == (EndStep("length"),)
    call = '{"path":"src/x.py"}'
    assert make_reply_steps(make_request("Read src/x.py", READ, max_tokens=5)) == (
        CallStep("read_file", text=call[:11]),
        EndStep("length"),
    )
    assert make_reply_steps(make_request("Read src/x.py", READ, max_tokens=2)) == (EndStep("length"),)


# --------------------------------------------------------------------------------------------------------- any request


def check(request: Request, turn: ReplySteps) -> None:
    """Only tools that are there, with arguments that they take; and something is always done."""
    assert turn
    tools = {tool.name: tool for tool in reversed(request.tools) if tool.kind != "hosted"}
    for step in turn:
        if not isinstance(step, CallStep) or turn[-1] == EndStep("length"):
            continue
        tool = tools[step.name]
        if tool.kind == "custom":
            assert step.text is not None
            continue
        schema = normalize_schema(tool.parameters or {})
        jsonschema.Draft202012Validator(schema).validate(step.arguments)


def rounds(request: Request, result: Answer) -> int:
    """How many turns it takes until there are words. A demand for calls is lifted once it was met, as clients do."""
    for count in range(6):
        turn = make_reply_steps(request, seed=count)
        check(request, turn)
        assert turn == make_reply_steps(request, seed=count)
        if not calls(turn):
            assert reply_text(turn) or isinstance(turn[-1], EndStep)
            return count
        request = add_results(request, turn, result)
        request = replace(request, options=replace(request.options, tool_choice=None))
    raise AssertionError(f"it never ends: {request.messages[-4:]}")


def picture(call: ToolCall) -> ToolResponse:
    return call.respond((Media("image", mime="image/png", data="AAAA"),))


def nothing(call: ToolCall) -> ToolResponse:
    return call.respond(structured={"error": {"code": 5}}, error=True)


RESULTS: tuple[Answer, ...] = (fine, broken, picture, nothing)


@pytest.mark.parametrize("case", [*sample(CASES, 4)], ids=lambda case: case.name)
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
    schemas.SAMPLE_TEXTS,
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
    tools: list[Tool], prompt: str, result: Answer, options: Options
) -> None:
    request = replace(make_request(prompt, *tools), options=options)
    turn = make_reply_steps(request)
    if options.parallel is False:
        assert len(calls(turn)) <= 1
    if options.tool_choice == ToolChoice("none") or not tools:
        assert not calls(turn)
    assert rounds(request, result) <= 2

"""Scripts: parsed steps, and errors with their line."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from segue.canonical.blocks import Media, Message, Text, ToolCall, ToolResponse
from segue.canonical.request import Request, Tool
from segue.emulator.model.script import Script, fill_placeholders
from segue.emulator.steps import CallStep, CutStep, EndStep, ErrorStep, ReplySteps, TextStep, ThinkStep, WaitStep
from segue.errors import InputError

WHOLE = """
# comments and blank lines are skipped; `---` parts the turns
think  Two lookups, none needs the other.
say    Let me look.
call   get_weather {"city": "Lisbon"}
call   get_time {"zone": "Europe/Lisbon"}
---
wait   0.5
say    In Lisbon it is {get_weather}, at {get_time}.
---
error  429 Slow down, please. (retry after 2)
---
say    This will be cut o
cut                      # or: cut reset
---
call   write_file {"path": "a
end    length
"""


def only(text: str) -> ReplySteps:
    (turn,) = Script.parse(text).turns
    return turn


def request(*results: tuple[str, str]) -> Request:
    calls = [ToolCall(name, id=f"hist_tool_{index}") for index, (name, _) in enumerate(results)]
    answers = [call.respond(text) for call, (_, text) in zip(calls, results, strict=True)]
    return Request((Message("ai", tuple(calls)), Message("tool", tuple(answers))))


def test_a_whole_script() -> None:
    script = Script.parse(WHOLE, "weather.txt")
    assert script.name == "weather.txt"
    assert script.turns == (
        (
            ThinkStep("Two lookups, none needs the other."),
            TextStep("Let me look."),
            CallStep("get_weather", {"city": "Lisbon"}),
            CallStep("get_time", {"zone": "Europe/Lisbon"}),
        ),
        (WaitStep(0.5), TextStep("In Lisbon it is {get_weather}, at {get_time}.")),
        (ErrorStep(429, "Slow down, please.", 2.0),),
        (TextStep("This will be cut o"), CutStep("end")),
        (CallStep("write_file", text='{"path": "a'), EndStep("length")),
    )


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("say", TextStep("")),
        ("say  # is no comment here", TextStep("# is no comment here")),
        ("say a {not_known} b", TextStep("a {not_known} b")),
        ("call stop", CallStep("stop", {})),
        ("call stop   ", CallStep("stop", {})),
        ('call f{"a": 1}', CallStep("f", {"a": 1})),
        ("call f [1, 2]", CallStep("f", [1, 2])),
        ("call f null", CallStep("f", None)),
        ("call run print('x')  # kept", CallStep("run", text="print('x')  # kept")),
        ('call[call_1] get_weather {"a": "x]"}', CallStep("get_weather", {"a": "x]"}, id="call_1")),
        ('call get_weather {"id": "[a]"}', CallStep("get_weather", {"id": "[a]"})),
        ("error 503", ErrorStep(503)),
        ("error 529 (retry after 0.5)", ErrorStep(529, None, 0.5)),
        ("error 400 No (really) no.", ErrorStep(400, "No (really) no.")),
        ("cut reset  # now", CutStep("reset")),
        ("cut end", CutStep("end")),
        ("end pause # later", EndStep("pause")),
        ("wait 2 # seconds", WaitStep(2.0)),
    ],
)
def test_a_line(line: str, step: object) -> None:
    assert only(line) == (step,)


def test_indented_lines_go_on_with_the_one_before() -> None:
    text = """
    say   Here it is:

            def f():
                return 1

          That is all.
    call  write {"a": 1,
            "b": 2}
    """
    assert only(text) == (
        TextStep("Here it is:\n\n  def f():\n      return 1\n\nThat is all."),
        CallStep("write", {"a": 1, "b": 2}),
    )


def test_any_line_ending_is_accepted() -> None:
    assert Script.parse("\ufeffsay a\r\n---\r\nsay b\r\n---\r\n").turns == ((TextStep("a"),), (TextStep("b"),))


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("", None, "the script has no turns"),
        ("# nothing\n", None, "`say Hello.` was expected"),
        ("say a\nsya b", 2, "unknown step `sya`; did you mean `say`?"),
        ("say: a", 1, "did you mean `say`?"),
        ("Hello there", 1, "known steps: `say`, `think`, `call`, `wait`, `error`, `cut` and `end`"),
        ("\n  \n---\nsay a", 3, "has no steps"),
        ("say a\n---\n---\nsay b", 3, "has no steps"),
        ("say a\n---\n  b", 3, "this line is indented"),
        ("call", 1, "the name of a tool was expected"),
        ('call {"a": 1}', 1, "the name of a tool was expected"),
        ("call[] f", 1, "as in `call[call_1] get_weather {}`"),
        ("say[1] f", 1, "only `call` takes an id"),
        ("wait", 1, "a number of seconds was expected, as in"),
        ("wait soon", 1, "a number of seconds was expected, not `soon`"),
        ("wait -1", 1, "not `-1`"),
        ("wait nan", 1, "not `nan`"),
        ("wait 1\n  2", 1, "`wait` takes one line"),
        ("error", 1, "an HTTP status from 400 to 599 was expected, as in"),
        ("error 200 Fine", 1, "not `200`"),
        ("error Slow down", 1, "not `Slow`"),
        ("error 429 Slow (retry after soon)", 1, "not `soon`"),
        ("cut rest", 1, "not `cut rest`; did you mean `reset`?"),
        ("end", 1, "`stop`, `length`, `filter` or `pause` was expected after `end`"),
        ("end lenght", 1, "not `lenght`; did you mean `length`?"),
        ("say a\ncut\nsay b", 3, "nothing can follow `cut` in its turn"),
        ("error 500\nwait 1", 2, "nothing can follow `error`"),
        ("end stop\ncut", 2, "nothing can follow `end`"),
    ],
)
def test_invalid_scripts(text: str, line: int | None, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        Script.parse(text, "tale")
    assert caught.value.path == ("tale" if line is None else f"tale, line {line}")
    assert expected in caught.value.message


# --------------------------------------------------------------------------------------------------------------- holes


def test_results_come_into_their_places() -> None:
    asked = request(("get_weather", "3 °C"), ("get_time", "14:05"), ("get_weather", "18 °C"))
    turn = (
        ThinkStep("{get_time}!"),
        TextStep("It is {get_weather}, {{really}}, {other} {}."),
        CallStep("f", {"a": "{get_time}"}),
    )
    assert fill_placeholders(turn, asked) == (
        ThinkStep("14:05!"),
        TextStep("It is 18 °C, {really}, {other} {}."),
        CallStep("f", {"a": "{get_time}"}),
    )


def test_a_result_is_not_filled_again() -> None:
    assert fill_placeholders((TextStep("{a} {b}"),), request(("a", "{b}"), ("b", "{{x}}"))) == (TextStep("{b} {{x}}"),)


@pytest.mark.parametrize(
    ("response", "expected_text"),
    [
        (ToolResponse(name="f", content=(Text("a"), Media("image"), Text("b"))), "a\n[image]\nb"),
        (ToolResponse(name="f", structured={"result": "a"}), "a"),
        (ToolResponse(name="f", structured={"city": "a"}), '{"city":"a"}'),
        (ToolResponse(name="f", structured={}), "{}"),
        (ToolResponse(name="f", structured=[1]), "[1]"),
        (ToolResponse(name="f", content=()), ""),
        (ToolResponse(name="f"), "{f}"),
        (ToolResponse(content=(Text("a"),)), "{f}"),
    ],
)
def test_any_result_has_a_text(response: ToolResponse, expected_text: str) -> None:
    assert fill_placeholders((TextStep("{f}"),), Request((Message("tool", (response,)),))) == (TextStep(expected_text),)


def test_a_tool_of_free_text_gets_text() -> None:
    asked = Request((), tools=(Tool("run", kind="custom"), Tool("f")))
    turn = only('call run {"a": 1}\ncall run print()\ncall f {"a": 1}')
    assert fill_placeholders(turn, asked) == (
        CallStep("run", UNSET, '{"a":1}'),
        CallStep("run", text="print()"),
        CallStep("f", {"a": 1}),
    )

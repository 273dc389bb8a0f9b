"""The built-in model with the file and shell tools of an agent: its calls and its replies."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from segue.canonical.blocks import Message, Text, ToolCall, ToolResponse
from segue.canonical.request import Options, Request, Tool, ToolChoice
from segue.emulator.model.responder import make_reply_steps
from segue.emulator.steps import CallStep, ReplySteps, TextStep
from segue.runtime.tool_types import Context, Result
from segue.runtime.tools import standard_tools
from segue.runtime.tools.task import SubagentTask
from tests.work import count_work

DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n+read_file('notes.txt')\n"


async def _spawn(order: SubagentTask, context: Context) -> Result:
    raise NotImplementedError


TOOLS = tuple(
    Tool(tool.name, tool.description, dict(tool.parameters or {}))
    for tool in sorted(standard_tools(spawn=_spawn), key=lambda tool: tool.name)
)
WEATHER = Tool(
    "get_weather",
    "Get the current weather for a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def make_request(prompt: str, *more: Tool, **options: Any) -> Request:
    return Request((Message("human", (Text(prompt),)),), tools=(*TOOLS, *more), options=Options(**options))


def calls(turn: ReplySteps) -> list[tuple[str, Any]]:
    return [(step.name, step.arguments) for step in turn if isinstance(step, CallStep)]


def reply_text(turn: ReplySteps) -> str:
    return "".join(step.text for step in turn if isinstance(step, TextStep))


def add_results(request: Request, turn: ReplySteps, text: str, *, error: bool = False) -> Request:
    made = [
        ToolCall(step.name, step.arguments, id=f"call_{len(request.messages)}_{index}")
        for index, step in enumerate(turn)
        if isinstance(step, CallStep)
    ]

    def result(call: ToolCall) -> ToolResponse:
        return call.respond(text, error=error)

    output = (Message("ai", tuple(made)), Message("tool", tuple(map(result, made))))
    return replace(request, messages=(*request.messages, *output))


def read(*paths: str) -> list[tuple[str, Any]]:
    return [("read_file", {"path": path}) for path in paths]


HERE = [("list_dir", {})]


@pytest.mark.parametrize(
    ("prompt", "made"),
    [
        # The commands of README.
        ('Write "Buy bread" to notes.txt', [("write_file", {"path": "notes.txt", "content": "Buy bread"})]),
        (
            'Replace "bread" with "milk" in notes.txt',
            [("edit_file", {"path": "notes.txt", "old_string": "bread", "new_string": "milk"})],
        ),
        ("Read notes.txt", read("notes.txt")),
        # Files and folders that the text names.
        ("What is in notes.txt?", read("notes.txt")),
        ("Compare a.py with `src/b.py`.", read("a.py", "src/b.py")),
        ("What is in .gitignore?", read(".gitignore")),
        ("read Makefile", read("Makefile")),
        ("What does src/ contain?", [("list_dir", {"path": "src/"})]),
        ("list src", [("list_dir", {"path": "src"})]),
        # Questions about the project.
        ("list the files", HERE),
        ("What files are in this folder?", HERE),
        ("What does this project do?", HERE),
        ("look around", HERE),
        ("show me the readme", HERE),
        # Searches and commands.
        ('Search for "def roll" in src/a.py', [("grep", {"pattern": "def roll", "path": "src/a.py"})]),
        ("Where is roll defined?", [("grep", {"pattern": "roll"})]),
        ("find *.md", [("glob", {"pattern": "*.md"})]),
        ("Run git status", [("shell", {"command": "git status"})]),
        ("Please run `make test`.", [("shell", {"command": "make test"})]),
        ("git log --oneline", [("shell", {"command": "git log --oneline"})]),
        ("What does https://example.org/a say?", [("fetch_url", {"url": "https://example.org/a"})]),
        # Only a complete command changes something.
        ("Write 'hello' to a.txt", [("write_file", {"path": "a.txt", "content": "hello"})]),
        ("Create a file b.txt with 'hi you'", [("write_file", {"path": "b.txt", "content": "hi you"})]),
        ("How do I write 'x' to a.txt?", read("a.txt")),
        ("Fix the typo in notes.txt", read("notes.txt")),
    ],
)
def test_a_first_question(prompt: str, made: Any) -> None:
    turn = make_reply_steps(make_request(prompt))
    assert calls(turn) == made
    schemas = {tool.name: tool.parameters for tool in TOOLS}
    for name, arguments in calls(turn):
        jsonschema.Draft202012Validator(schemas[name] or {}).validate(arguments)
    assert {str(calls(make_reply_steps(make_request(prompt), seed=seed))) for seed in range(4)} == {str(made)}


@pytest.mark.parametrize(
    "prompt",
    [
        *("Hi", "Hello there!", "What is 12 * 7?", "Write code in Python.", "Which model are you?"),
        *("What can you do?", "run the tests", "What's the capital of France?", "And how is it tested?"),
        *(f"Write a commit message\n\n{DIFF}", f"Write a commit message:\n{DIFF}", "Explain this code\n\nx = 1\n"),
    ],
)
def test_request_without_matching_tool_gets_text(prompt: str) -> None:
    for seed in range(4):
        turn = make_reply_steps(make_request(prompt), seed=seed)
        assert not calls(turn)
        assert "emulated model" in reply_text(turn)
    assert calls(make_reply_steps(make_request(prompt, tool_choice=ToolChoice("required"))))


def test_piped_input_is_quoted_by_its_first_line() -> None:
    output = reply_text(make_reply_steps(make_request(f"Write a commit message\n\n{DIFF}")))
    assert "“Write a commit message”" in output
    assert "5 lines, the first: “diff --git a/x.py b/x.py”" in output


def test_thanks_need_no_introduction() -> None:
    assert "emulated" not in reply_text(make_reply_steps(make_request("Thanks a lot!")))


# ------------------------------------------------------------------------------------------------------- what follows


LISTING = "src/\nnotes.txt (18 bytes)\nREADME.md (84 bytes)\nreadme_old.txt (1 byte)"


@pytest.mark.parametrize("prompt", ["What does this project do?", "look around", "show me the readme"])
def test_readme_describes_the_folder(prompt: str) -> None:
    request = make_request(prompt)
    second = add_results(request, make_reply_steps(request), LISTING)
    follows = make_reply_steps(second)
    assert calls(follows) == read("README.md")
    assert not reply_text(follows)
    lines = "\n".join(f"{number:>2}\t{line}" for number, line in enumerate(["# Marbles", "", *"abcdefghijklmn"], 1))
    output = reply_text(make_reply_steps(add_results(second, follows, lines)))
    assert "notes.txt" in output
    assert "README.md begins:\n\n# Marbles\n\na\n" in output
    assert output.endswith("\nj\n… and 4 more lines")


@pytest.mark.parametrize("listing", ["src/\nnotes.txt (18 bytes)", "README/", "readme_old.txt (1 byte)", ". is empty"])
def test_folder_without_readme_is_shown(listing: str) -> None:
    request = make_request("What does this project do?")
    output = make_reply_steps(add_results(request, make_reply_steps(request), listing))
    assert not calls(output)
    assert listing in reply_text(output)


def test_listing_is_shown() -> None:
    request = make_request("list the files")
    output = make_reply_steps(add_results(request, make_reply_steps(request), LISTING))
    assert not calls(output)
    assert LISTING in reply_text(output)


@pytest.mark.parametrize("why", ["there is no gone.txt", "timed out", "denied: it needs approval"])
@pytest.mark.parametrize("prompt", ["read gone.txt", "run git status", "Write 'x' to gone.txt", "look around"])
def test_failure_is_reported_and_not_retried(prompt: str, why: str) -> None:
    request = make_request(prompt)
    output = make_reply_steps(add_results(request, make_reply_steps(request), why, error=True))
    assert not calls(output)
    assert why in reply_text(output)


def test_unsupported_change_is_reported() -> None:
    for prompt, is_told in (("Delete notes.txt", True), ("Read notes.txt", False)):
        request = make_request(prompt)
        output = reply_text(make_reply_steps(add_results(request, make_reply_steps(request), "1\tbuy milk")))
        assert output.startswith("notes.txt says:\n\nbuy milk")
        assert ("Nothing was changed" in output) is is_told


# ------------------------------------------------------------------------------------------------------- other tools


def test_other_tool_is_called_by_its_name() -> None:
    assert calls(make_reply_steps(make_request("What is the weather in Lisbon?", WEATHER))) == [
        ("get_weather", {"city": "Lisbon"})
    ]
    assert calls(make_reply_steps(make_request("What is in notes.txt?", WEATHER))) == read("notes.txt")
    assert not calls(make_reply_steps(make_request("Tell me a joke", WEATHER)))


def test_file_tools_of_other_agents_are_recognised() -> None:
    text = {"type": "string"}
    tools = (
        Tool("Read", "Reads.", {"type": "object", "properties": {"file_path": text}, "required": ["file_path"]}),
        Tool(
            "Bash",
            "Runs.",
            {
                "type": "object",
                "properties": {"command": text, "description": text},
                "required": ["command", "description"],
            },
        ),
    )
    request = replace(make_request("What is in notes.txt?"), tools=tools)
    assert calls(make_reply_steps(request)) == [("Read", {"file_path": "notes.txt"})]
    ((name, arguments),) = calls(make_reply_steps(replace(make_request("run git status"), tools=tools)))
    assert name == "Bash"
    assert arguments["command"] == "git status"
    assert isinstance(arguments["description"], str)


COMMAND = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}
INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
WAIT = Tool("functions::wait", "Waits.", {"type": "object", "properties": {"cell_id": {"type": "string"}}})


@pytest.mark.parametrize(
    ("prompt", "command"),
    [
        ("Read notes.txt", "cat notes.txt"),
        ("list the files", "ls ."),
        ("grep port in src", "grep -rn port src"),
        ('Write "Buy bread" to list.txt', "printf '%s\\n' 'Buy bread' > list.txt && echo wrote list.txt"),
        ("run git status", "git status"),
        ("Hello!", None),
        ("Replace a with b in x.txt", None),
    ],
)
def test_shell_alone_does_the_work_of_file_tools(prompt: str, command: str | None) -> None:
    """Codex has a shell and no tool that reads: by itself, or inside of a tool whose text is a program."""
    script = f"const r = await tools.exec_command({{cmd: {json.dumps(command)}}});\ntext(r.output ?? r);\n"
    for tool, arguments in (
        (Tool("exec_command", "Runs.", COMMAND), {"cmd": command}),
        (Tool("functions__exec_w56kxlfq", "Runs a program.", INPUT), {"input": script}),
        (Tool("functions::exec", "Runs a program.", kind="custom"), UNSET),
    ):
        turn = make_reply_steps(replace(make_request(prompt), tools=(tool, WAIT)))
        assert calls(turn) == ([(tool.name, arguments)] if command else [])
        assert tool.kind != "custom" or [step.text for step in turn if isinstance(step, CallStep)] == (
            [script] if command else []
        )


def test_report_of_a_program_has_its_command_and_output() -> None:
    tool = Tool("functions::exec", "Runs a program.", kind="custom")
    request = replace(make_request("Read notes.txt"), tools=(tool, WAIT))
    (step,) = [step for step in make_reply_steps(request) if isinstance(step, CallStep)]
    call = ToolCall(tool.name, step.text, id="hist_tool_1", kind="custom")
    result = call.respond("Script completed\nWall time 0.2 seconds\nOutput:\nbuy milk\n")
    done = replace(request, messages=(*request.messages, Message("ai", (call,)), Message("tool", (result,))))
    assert make_reply_steps(done)[-1] == TextStep("`cat notes.txt` printed: buy milk")


def test_only_what_is_allowed_is_called() -> None:
    choice = ToolChoice("auto", allowed=("list_dir",))
    assert not calls(make_reply_steps(make_request("What is in notes.txt?", tool_choice=choice)))
    assert calls(make_reply_steps(make_request("look around", tool_choice=choice))) == HERE


@pytest.mark.parametrize("prompt", ["run", "write x to", "replace a", "find a", "read", "list", "a."])
@pytest.mark.parametrize("filling", [" ", " \n", "a.", "a/", "what ", "make "])
def test_work_grows_with_the_length_of_the_text(prompt: str, filling: str) -> None:
    text = f"{prompt}{filling * 3_000}x"
    make_reply_steps(make_request(prompt))  # now all is imported
    count_work(lambda: make_reply_steps(make_request(text)), limit=20 * len(text))

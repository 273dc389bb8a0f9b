"""The built-in model with an agent's standard tools: its calls for a first question, and its replies."""

from __future__ import annotations

import time
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from segue.canonical.blocks import Message, Text, ToolCall, ToolResponse
from segue.canonical.request import Options, Request, Tool, ToolChoice
from segue.emulator.model.responder import make_reply_steps
from segue.emulator.steps import CallStep, ReplySteps, TextStep
from segue.runtime.tool_types import Context, Result
from segue.runtime.tools import standard_tools
from segue.runtime.tools.task import SubagentTask

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
SRC = [("list_dir", {"path": "src"})]


@pytest.mark.parametrize(
    ("prompt", "made"),
    [
        # A file that is named is read.
        ("What is in notes.txt?", read("notes.txt")),
        ("notes.txt", read("notes.txt")),
        ("Was steht in notes.txt?", read("notes.txt")),
        ("Summarise src/marbles.py in one sentence.", read("src/marbles.py")),
        ("Compare a.py with b.py", read("a.py", "b.py")),
        ("Is there a bug in src/marbles.py?", read("src/marbles.py")),
        ("What is in .gitignore?", read(".gitignore")),
        ("Open ~/x.md", read("~/x.md")),
        ("What is in the file data.xyz?", read("data.xyz")),
        ("read src", read("src")),
        ("Hi!\n\nread notes.txt", read("notes.txt")),
        # Who asks about all of it gets a look at the folder.
        ("What does this project do?", HERE),
        ("what is here", HERE),
        ("What is in this folder?", HERE),
        ("Look around and tell me what you see.", HERE),
        ("Was macht dieses Projekt?", HERE),
        ("How do I run the tests?", HERE),
        ("list the files", HERE),
        ("show me the readme", HERE),
        ("What does src/ contain?", [("list_dir", {"path": "src/"})]),
        ("What is in the src directory?", SRC),
        ("what's in src?", SRC),
        # A text that is looked for is a pattern, the sentence is not.
        ("Where is roll defined?", [("grep", {"pattern": "roll"})]),
        ("What does the function roll do?", [("grep", {"pattern": "roll"})]),
        ("find all TODOs", [("grep", {"pattern": "TODO"})]),
        ("grep for roll in src", [("grep", {"pattern": "roll", "path": "src"})]),
        ('Search for "def roll" in src/a.py', [("grep", {"pattern": "def roll", "path": "src/a.py"})]),
        ("where do we call `roll()`?", [("grep", {"pattern": "roll()", "literal": True})]),
        ("Which files mention marbles?", [("grep", {"pattern": "marbles"})]),
        ("Find all python files", [("glob", {"pattern": "**/*.py"})]),
        ("find *.md", [("glob", {"pattern": "*.md"})]),
        ("where is marbles.py?", [("glob", {"pattern": "**/marbles.py"})]),
        # Nothing is changed or run but on demand.
        ("Run git status", [("shell", {"command": "git status"})]),
        ("Can you run pytest -x and tell me what fails?", [("shell", {"command": "pytest -x"})]),
        ("run `make test` please", [("shell", {"command": "make test"})]),
        ("Write 'hello' to a.txt", [("write_file", {"path": "a.txt", "content": "hello"})]),
        ("put hello into a.txt", [("write_file", {"path": "a.txt", "content": "hello"})]),
        ("Create a file b.txt with the text hi you", [("write_file", {"path": "b.txt", "content": "hi you"})]),
        ("Save this as out.txt\n\none\ntwo", [("write_file", {"path": "out.txt", "content": "one\ntwo\n"})]),
        ("Write a test for src/marbles.py", read("src/marbles.py")),
        ("Fix the typo in notes.txt", read("notes.txt")),
        (
            "Replace milk with bread in notes.txt",
            [("edit_file", {"path": "notes.txt", "old_string": "milk", "new_string": "bread"})],
        ),
        ("What does https://example.org/a say?", [("fetch_url", {"url": "https://example.org/a"})]),
        (
            "Make a todo list: buy milk and call Ann",
            [("todo", {"items": [{"text": "buy milk", "state": "open"}, {"text": "call Ann", "state": "open"}]})],
        ),
        (
            "Use a subagent to find all uses of roll",
            [("task", {"description": "find all uses of roll", "prompt": "find all uses of roll"})],
        ),
        (
            "Use a subagent with openai/gpt-4.1 to read notes.txt",
            [("task", {"description": "read notes.txt", "prompt": "read notes.txt", "model": "openai/gpt-4.1"})],
        ),
        # Several at once.
        ("List the files and read notes.txt", [*HERE, *read("notes.txt")]),
        ("Read notes.txt and run git status", [*read("notes.txt"), ("shell", {"command": "git status"})]),
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
        *("Hi", "Hello there!", "What is 12 * 7?", "what is 1/2 + 3/4?", "Is 7 prime?", "Write a haiku about the sea."),
        *("Which model are you?", "What can you do?", "Talk about whales", "What's the capital of France?"),
        *("Why does os.path.join drop a part?", "What is Node.js?", "Explain and/or in logic", "run the tests"),
        *("Search the web for whales", "find me a good restaurant in Lisbon", "What's new in version 3.11?"),
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


@pytest.mark.parametrize("prompt", ["What does this project do?", "look around", "what is here", "show me the readme"])
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


def test_folder_readme_is_read_from_the_folder() -> None:
    request = make_request("Show me the README in the docs folder")
    assert calls(make_reply_steps(add_results(request, make_reply_steps(request), "readme.rst (3 bytes)"))) == read(
        "docs/readme.rst"
    )


@pytest.mark.parametrize("listing", ["src/\nnotes.txt (18 bytes)", "README/", "readme_old.txt (1 byte)", ". is empty"])
def test_without_a_readme_the_folder_is_all(listing: str) -> None:
    request = make_request("What does this project do?")
    output = make_reply_steps(add_results(request, make_reply_steps(request), listing))
    assert not calls(output)
    assert listing in reply_text(output)


def test_a_list_is_a_list() -> None:
    request = make_request("list the files")
    output = make_reply_steps(add_results(request, make_reply_steps(request), LISTING))
    assert not calls(output)
    assert LISTING in reply_text(output)


def test_missing_file_is_reported() -> None:
    request = make_request("What is in the Makefile?")
    assert "No makefile is among them." in reply_text(
        make_reply_steps(add_results(request, make_reply_steps(request), LISTING))
    )


@pytest.mark.parametrize("why", ["there is no gone.txt", "timed out", "denied: it needs leave"])
@pytest.mark.parametrize("prompt", ["read gone.txt", "run git status", "Write 'x' to gone.txt", "what is here"])
def test_failure_is_reported_and_not_retried(prompt: str, why: str) -> None:
    request = make_request(prompt)
    output = make_reply_steps(add_results(request, make_reply_steps(request), why, error=True))
    assert not calls(output)
    assert why in reply_text(output)


def test_folder_read_as_file_is_listed_and_vice_versa() -> None:
    for prompt, why, made in (
        ("read src", "src is a folder; list_dir shows what is in it", SRC),
        ("What is in bin/tool?", "a part of the path, or the whole, is not a folder", read("bin/tool")),
    ):
        request = make_request(prompt)
        second = add_results(request, make_reply_steps(request), why, error=True)
        assert calls(make_reply_steps(second)) == made
        assert not calls(make_reply_steps(add_results(second, make_reply_steps(second), why, error=True)))


def test_unsupported_change_is_reported() -> None:
    for prompt, is_told in (("Delete notes.txt", True), ("Append 'x' to notes.txt", True), ("Read notes.txt", False)):
        request = make_request(prompt)
        output = reply_text(make_reply_steps(add_results(request, make_reply_steps(request), "1\tbuy milk")))
        assert output.startswith("notes.txt says:\n\nbuy milk")
        assert ("nothing was changed" in output) is is_told


# ------------------------------------------------------------------------------------------------------- other tools


def test_a_tool_beside_the_bench_is_called_by_its_name() -> None:
    assert calls(make_reply_steps(make_request("What is the weather in Lisbon?", WEATHER))) == [
        ("get_weather", {"city": "Lisbon"})
    ]
    assert calls(make_reply_steps(make_request("What is in notes.txt?", WEATHER))) == read("notes.txt")
    assert not calls(make_reply_steps(make_request("Tell me a joke", WEATHER)))


def test_another_agents_tools_are_a_bench_too() -> None:
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


def test_only_what_is_allowed_is_called() -> None:
    choice = ToolChoice("auto", allowed=("list_dir",))
    assert not calls(make_reply_steps(make_request("What is in notes.txt?", tool_choice=choice)))
    assert calls(make_reply_steps(make_request("what is here", tool_choice=choice))) == HERE


@pytest.mark.parametrize("prompt", ["run", "write x to", "replace a", "find a", "read", "list", "a."])
@pytest.mark.parametrize("filling", [" ", " \n", "a.", "a/", "what ", "make "])
def test_long_text_is_read_quickly(prompt: str, filling: str) -> None:
    start = time.process_time()
    make_reply_steps(make_request(f"{prompt}{filling * 3_000}x"))
    assert time.process_time() - start < 2

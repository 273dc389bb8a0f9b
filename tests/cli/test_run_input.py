"""Input and output of `segue run`: attachments, mentions, templates, functions, schemas, and what stdout gets."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import segue.emulator
from segue.emulator import Emulator
from tests.cli.process import is_one_line_error
from tests.cli.project import KEY, Project

MODEL = ("-m", "anthropic/claude-sonnet-5")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
PDF = b"%PDF-1.7\n%%EOF\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    (made.folder / "notes.txt").write_text("Buy bread.\n")
    (made.folder / "cat.png").write_bytes(PNG)
    (made.folder / "paper.pdf").write_bytes(PDF)
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def start_emulator(project: Project) -> Iterator[Callable[..., Emulator]]:
    started: list[Emulator] = []

    def play(script: str, **more: Any) -> Emulator:
        started.append(segue.emulator.start("anthropic", script=script, keys=[KEY], **more))
        project.configure_providers(anthropic=started[-1])
        return started[-1]

    yield play
    for emulator in started:
        emulator.stop()


def first_message(emulator: Emulator) -> str:
    return json.dumps((emulator.requests[0].body or {})["messages"][0])


def test_several_words_in_one_argument_are_a_prompt(project: Project, start_emulator):
    start_emulator("say Hello to you.")
    ended = project.run("greet the whole world", *MODEL)
    assert (ended.code, ended.out) == (0, b"Hello to you.\n")


@pytest.mark.parametrize(("word", "expected"), [("covert", "did you mean convert?"), ("zzzz", "commands: chat, run")])
def test_one_unknown_word_stays_a_usage_error(project: Project, word: str, expected: str):
    ended = project.run(word, "body.json")
    assert is_one_line_error(ended)
    assert expected in ended.err


def test_attached_and_mentioned_files_are_sent(project: Project, start_emulator):
    emulator = start_emulator("say Seen.")
    ended = project.run("run", *MODEL, "-a", "cat.png", "-a", "paper.pdf", "Look at @notes.txt, @cat.png and @nobody.")
    assert ended.code == 0
    sent = first_message(emulator)
    assert sent.count(base64.b64encode(PNG).decode()) == 1
    assert base64.b64encode(PDF).decode() in sent
    assert "Buy bread." in sent
    assert "@nobody" in sent
    assert emulator.requests[0].accepted


def test_attachment_needs_no_prompt(project: Project, start_emulator):
    emulator = start_emulator("say Seen.")
    assert project.run("run", *MODEL, "-a", "notes.txt").code == 0
    assert "Buy bread." in first_message(emulator)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("gone.png", None, "can't read gone.png"),
        ("x.bin", b"\xff\x00\x01", "x.bin can't be attached: pictures"),
        ("long.txt", b"a" * ((1 << 20) + 1), "long.txt is too large to attach as text"),
    ],
)
def test_bad_attachment_is_named(project: Project, name: str, data: bytes | None, expected: str):
    if data is not None:
        (project.folder / name).write_bytes(data)
    ended = project.run("run", "--emulated", "-a", name, "look")
    assert is_one_line_error(ended)
    assert expected in ended.err
    assert not project.run("log").out


def test_template_is_filled(project: Project, start_emulator):
    folder = project.folder / ".segue" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("---\ndescription: Greets\n---\nGreet $1 in $2 ($ARGUMENTS).\n")
    emulator = start_emulator("say Bonjour.")
    assert project.run("run", *MODEL, "-t", "greet", "Bob", "French").code == 0
    assert "Greet Bob in French (Bob French)." in first_message(emulator)
    wrong = project.run("run", "--emulated", "-t", "gret", "x")
    assert is_one_line_error(wrong)
    assert "known templates: greet" in wrong.err


def test_functions_of_a_file_are_tools(project: Project, start_emulator):
    (project.folder / "sums.py").write_text(
        'def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n\n\ndef _hidden():\n    pass\n'
    )
    emulator = start_emulator('call add {"a": 40, "b": 2}\n---\nsay It is {add}.')
    ended = project.run("run", *MODEL, "--functions", "sums.py", "--tools", "add", "--allow", "add", "What is 40 + 2?")
    assert ended.out == b"It is 42.\n"
    assert [tool["name"] for tool in (emulator.requests[0].body or {})["tools"]] == ["add"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, "there is no file sums.py"), ("x = (", "can't be imported: SyntaxError"), ("x = 1", "has no functions")],
)
def test_bad_file_of_functions_is_named(project: Project, text: str | None, expected: str):
    if text is not None:
        (project.folder / "sums.py").write_text(text)
    ended = project.run("run", "--emulated", "--functions", "sums.py", "add")
    assert is_one_line_error(ended)
    assert expected in ended.err


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def test_answer_matches_the_schema_after_a_correction(project: Project, start_emulator):
    (project.folder / "schema.json").write_text(json.dumps(SCHEMA))
    emulator = start_emulator('say Well, three.\n---\nsay {"n": "three"}\n---\nsay {"n": 3}')
    ended = project.run("run", *MODEL, "--schema", "schema.json", "How many?")
    assert (ended.code, ended.out) == (0, b'{"n":3}\n')
    assert [request.accepted for request in emulator.requests] == [True] * 3
    assert "not JSON" in json.dumps(emulator.requests[1].body)
    assert "does not match the schema at n" in json.dumps(emulator.requests[2].body)


def test_answer_that_never_matches_fails(project: Project, start_emulator):
    (project.folder / "schema.json").write_text(json.dumps(SCHEMA))
    emulator = start_emulator("say No.\n---\nsay No.\n---\nsay No.")
    ended = project.run("run", *MODEL, "--no-tools", "--schema", "schema.json", "How many?")
    assert (ended.code, ended.out) == (1, b"")
    assert "the answer is not JSON" in ended.err
    assert len(emulator.requests) == 3


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "nope"}'])
def test_bad_schema_is_named(project: Project, text: str):
    (project.folder / "schema.json").write_text(text)
    ended = project.run("run", "--emulated", "--schema", "schema.json", "How many?")
    assert is_one_line_error(ended)
    assert "schema.json" in ended.err
    assert not project.run("log").out


def test_pipe_gets_only_the_complete_answer(project: Project, start_emulator):
    script = 'say I look.\ncall read_file {"path": "notes.txt"}\n---\nsay Half of it.\n---\nsay The answer.'
    emulator = start_emulator(script, faults=["reset-in-stream@2"])
    ended = project.run("run", *MODEL, "What is there?")
    assert (ended.code, ended.out) == (0, b"The answer.\n")
    assert "interrupted" in ended.err
    assert len(emulator.requests) == 3


def test_options_without_a_command_are_those_of_run(project: Project, start_emulator):
    start_emulator("say Hello.")
    ended = project.run(*MODEL, "greet the whole world")
    assert (ended.code, ended.out) == (0, b"Hello.\n")
    assert is_one_line_error(project.run("--nonsense"))


def test_emulated_models_are_those_of_the_configuration(project: Project):
    project.write_user_config('model = "moonshot/kimi-k2.6"')
    assert "moonshot/kimi-k2.6 (emulated)" in project.run("run", "--emulated", "--no-store", "hello there").err


def test_key_on_the_command_line_is_not_repeated(project: Project):
    ended = project.run("keys", "set", "anthropic", "sk-ant-secret")
    assert is_one_line_error(ended)
    assert "sk-ant-secret" not in ended.err
    assert "stdin" in ended.err

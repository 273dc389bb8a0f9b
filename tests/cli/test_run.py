"""`segue run` as a process against emulated providers: its output and the stored conversation."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import segue.emulator
import tests.runtime.mcp_odd_server
from segue.cli import app
from segue.cli.reporters import RunResult
from segue.emulator import Emulator
from segue.errors import InputError
from segue.runtime.events import ExchangeOutcome
from segue.runtime.tools import standard_names
from segue.runtime.tools.switch_model import SWITCH_MODEL
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore
from tests.cli.process import SEGUE, environment, is_one_line_error
from tests.cli.project import KEY, Project
from tests.cli.terminal import run_in_terminal
from tests.interrupts import default_interrupt, ignored_interrupt

READ = 'say I look.\ncall read_file {"path": "notes.txt"}\n---\nsay There is bread: {read_file}\n'
WRITE = 'call write_file {"path": "new.txt", "content": "hello"}\n---\nsay It said: {write_file}\n'
PATIENCE = 100
MODEL = ("-m", "anthropic/claude-sonnet-5")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    (made.folder / "notes.txt").write_text("Buy bread.\n")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def start_emulator(project: Project) -> Iterator[Callable[..., Emulator]]:
    """An emulated Anthropic that follows a script, and is what the project's user has set."""
    started: list[Emulator] = []

    def play(script: str, **more: Any) -> Emulator:
        started.append(segue.emulator.start("anthropic", script=script, keys=[KEY], **more))
        project.configure_providers(anthropic=started[-1])
        return started[-1]

    yield play
    for emulator in started:
        emulator.stop()


@contextmanager
def load_conversation(project: Project, number: int = 0) -> Generator[StoredConversation]:
    """A conversation of the store, the latest first."""
    with SqliteStore(project.store) as store:
        yield StoredConversation(store, store.list()[number].id)


def user_text(emulator: Emulator, number: int = -1) -> str:
    """The newest user's words in a request."""
    body = emulator.requests[number].body
    assert body is not None
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


# ------------------------------------------------------------------------------------------------------- what comes out


def test_the_answer_goes_to_stdout_and_all_else_to_stderr(project: Project, start_emulator):
    start_emulator(READ)
    ended = project.run("run", *MODEL, "What shall I buy?")
    assert ended.code == 0, ended.err
    assert ended.lines[0].startswith("There is bread: ")
    first, second = ended.err.splitlines()
    with load_conversation(project) as chat:
        assert first == f"segue: anthropic/claude-sonnet-5; conversation {chat.id}"
    assert second.startswith("segue: read_file notes.txt (")


def test_a_new_process_does_the_same_and_quiet_is_quiet(project: Project, start_emulator):
    start_emulator(READ)
    ended = project.run_new("run", *MODEL, "-q", "What shall I buy?")
    assert (ended.code, ended.err) == (0, "")
    assert "Buy bread." in ended.out.decode()


def test_json_is_one_object_with_everything(project: Project, start_emulator):
    start_emulator(READ)
    with (project.home / ".config" / "segue" / "config.toml").open("a") as file:
        file.write('[prices."anthropic/claude-sonnet-5"]\ninput = 1_000_000\noutput = 2_000_000\n')
    ended = project.run("run", *MODEL, "--json", "What shall I buy?")
    assert (ended.code, ended.err) == (0, "")
    output = ended.json
    assert output["text"].startswith("There is bread: ")
    assert "I look." not in output["text"]
    assert (output["outcome"], output["error"], output["finish"]) == ("answered", None, "stop")
    assert (output["model"], output["turns"], output["emulated"]) == ("anthropic/claude-sonnet-5", 2, False)
    assert [(call["tool"], call["outcome"]) for call in output["calls"]] == [("read_file", "complete")]
    usage = output["usage"]
    assert usage["input"] > 0
    assert usage["output"] > 0
    assert output["cost"] == pytest.approx(usage["input"] + 2 * usage["output"])
    with load_conversation(project) as chat:
        assert output["conversation"] == chat.id


def test_jsonl_is_every_event_in_its_order(project: Project, start_emulator):
    start_emulator(READ)
    ended = project.run("run", *MODEL, "--jsonl", "What shall I buy?")
    assert (ended.code, ended.err) == (0, "")
    events = [msgspec.json.decode(line) for line in ended.out.splitlines()]
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[1], kinds[-1]) == ("run-started", "exchange-started", "exchange-ended")
    assert [kind for kind in kinds if kind.startswith("call-")] == ["call-queued", "call-started", "call-ended"]
    assert kinds.count("request-sent") == kinds.count("reply-received") == 2
    assert events[0]["version"] == 1
    assert "".join(event["text"] for event in events if event["type"] == "text-delta").startswith("I look.There is")
    assert events[-1]["outcome"] == "answered"


def test_json_and_jsonl_exclude_each_other(project: Project):
    assert is_one_line_error(project.run("run", "--json", "--jsonl", "x"))


def test_control_characters_are_sanitized_on_a_terminal_only(project: Project, start_emulator):
    escape = "say \x1b]0;owned\x07\x1b[31mred\u202e\n"
    start_emulator(escape)
    variables: dict[str, Any] = {**project.variables, "NO_COLOR": "1"}
    shown = run_in_terminal("run", *MODEL, "-q", "Hi", **variables)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "red" in shown
    start_emulator(escape)
    assert b"\x1b[31mred" in project.run("run", *MODEL, "-q", "Hi").out


def test_call_lines_are_sanitized_on_a_terminal(project: Project, start_emulator):
    start_emulator('call read_file {"path": "a\\u202eb\\u001bc"}\n---\nsay Done.\n')
    variables: dict[str, Any] = {**project.variables, "NO_COLOR": "1"}
    shown = run_in_terminal("run", *MODEL, "Hi", **variables)
    assert "read_file" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "\\x1b" not in shown


def test_rejected_request_names_its_conversation(project: Project, start_emulator):
    start_emulator("error 400 Strange\n")
    ended = project.run("run", *MODEL, "-q", "Hi")
    with load_conversation(project) as chat:
        assert f"segue diag {chat.id} shows" in ended.err


def test_a_model_that_is_not_there_is_looked_for_where_models_are_listed(project: Project):
    with segue.emulator.start("mistral") as emulator:
        place: dict[str, Any] = {"MISTRAL_API_KEY": "k", "MISTRAL_BASE_URL": emulator.base_url}
        ended = project.run("run", "-m", "mistral/claude-9-nope", "-q", "Hi", **place)
    assert is_one_line_error(ended, 1)
    assert "segue models mistral lists" in ended.err
    assert "doctor" not in ended.err


def test_emulated_model_has_no_price(project: Project, start_emulator):
    start_emulator("say Yes.\n")
    assert project.run("run", *MODEL, "--json", "Hi").json["cost"] is None


def test_missing_folder_is_reported(project: Project, tmp_path: Path):
    gone = tmp_path / "gone"
    for command in (("run", "Hi"), ("doctor",), ("log",)):
        line = " ".join(["mkdir", str(gone), "&&", "cd", str(gone), "&&", "rmdir", str(gone), "&&", *SEGUE, *command])
        ended = subprocess.run(
            ["sh", "-c", line],
            capture_output=True,
            env=environment(**{**project.variables, "PYTHONPATH": str(Path(segue.__file__).parent.parent)}),
            timeout=100,
            check=False,
        )
        output = ended.stdout + ended.stderr
        assert b"stdout" not in ended.stderr
        if command != ("log",):
            assert b"the current folder no longer exists" in output, output


# ------------------------------------------------------------------------------------------------------- what is asked


def test_stdin_comes_after_the_prompt(project: Project, start_emulator):
    emulator = start_emulator("\n---\n".join(["say Yes."] * 7))
    project.run("run", *MODEL, "Explain", "this", stdin=b"x = 1\n")
    assert user_text(emulator) == "Explain this\n\nx = 1\n"
    project.run("run", *MODEL, stdin=b"x = 2")
    assert user_text(emulator) == "x = 2"
    project.run("run", *MODEL, "-", stdin="é".encode())
    assert user_text(emulator) == "é"
    for words in (("-", "x"), ("x", "-")):
        project.run("run", *MODEL, *words, stdin=b"given")
        assert user_text(emulator) == "x\n\ngiven"
        assert is_one_line_error(project.run("run", *MODEL, *words, stdin=b""))
    project.run("run", *MODEL, "3", "-", "2")
    assert user_text(emulator) == "3 - 2"
    project.run("run", *MODEL, "Alone", stdin=b" \n")
    assert user_text(emulator) == "Alone"


@pytest.mark.parametrize("given", [b"", b"  \n", b"\xff\xfe\x00", b"caf\xe9"])
def test_missing_or_binary_prompt_is_rejected(project: Project, given):
    assert is_one_line_error(project.run("run", stdin=given))
    assert not project.store.exists()


def test_binary_behind_a_prompt_is_refused(project: Project):
    assert is_one_line_error(project.run("run", "Explain", stdin=b"\x00\x01"))


def test_system_is_given_as_text_or_in_a_file(project: Project, start_emulator):
    emulator = start_emulator("say Yes.\n---\nsay Yes.\n---\nsay Yes.\n")
    (project.folder / "system.txt").write_text("Speak French.")

    def system() -> str:
        body = emulator.requests[-1].body
        assert body is not None
        return str(body["system"])

    project.run("run", *MODEL, "--system", "Be brief.", "Hi")
    assert "Be brief." in system()
    project.run("run", *MODEL, "--system", "@system.txt", "Hi")
    assert "Speak French." in system()
    project.run("run", *MODEL, "-c", "--system", "Speak Danish.", "Hi")
    assert "Speak Danish." in system()
    assert "French" not in system()
    assert is_one_line_error(project.run("run", *MODEL, "--system", "@missing.txt", "Hi"))


def test_tools_can_be_declared_as_prompt_text(project: Project, start_emulator):
    emulator = start_emulator("say Yes.\n")
    project.run("run", *MODEL, "--tool-format", "hermes", "Hi")
    body = emulator.requests[-1].body
    assert body is not None
    assert "tools" not in body
    assert "read_file" in str(body["system"])
    for given in (
        project.run("run", *MODEL, "--tool-format", "hermess", "Hi"),
        project.run("run", "Hi", SEGUE_TOOL_FORMAT="x"),
    ):
        assert is_one_line_error(given)
        assert "known formats: auto, openai" in given.err


# ------------------------------------------------------------------------------------------------------------ the tools


def names_of(emulator: Emulator) -> list[str]:
    body = emulator.requests[-1].body
    assert body is not None
    return [tool["name"] for tool in body.get("tools", [])]


def test_the_tools_can_be_chosen(project: Project, start_emulator):
    emulator = start_emulator("say Yes.\n---\nsay Yes.\n---\nsay Yes.\n")
    project.run("run", *MODEL, "Hi")
    assert {"read_file", "shell", "task"} <= set(names_of(emulator))
    project.run("run", *MODEL, "--tools", "glob, read_file", "Hi")
    assert names_of(emulator) == ["glob", "read_file"]
    project.run("run", *MODEL, "--no-tools", "Hi")
    assert names_of(emulator) == []
    assert is_one_line_error(project.run("run", *MODEL, "--tools", "globb", "Hi"))
    assert is_one_line_error(project.run("run", *MODEL, "--tools", "glob", "--no-tools", "Hi"))


def test_call_without_rule_is_denied_to_the_model(project: Project, start_emulator):
    start_emulator(WRITE)
    ended = project.run("run", *MODEL, "Write")
    assert ended.code == 0
    assert ended.lines[0].startswith("It said: denied: ")
    assert not (project.folder / "new.txt").exists()


def test_denied_call_is_shown_as_denied_everywhere(project: Project, start_emulator):
    start_emulator(f"{WRITE}---\n{WRITE}")
    ended = project.run("run", *MODEL, "Write")
    assert "write_file new.txt: denied: create new.txt needs approval" in ended.err
    [call] = project.run("run", *MODEL, "--json", "Write").json["calls"]
    assert call["outcome"] == "denied"
    shown = project.run("log", "show", "1").out.decode()
    assert "← write_file (denied) denied: create new.txt" in shown
    page = project.run("export", "1", "--format", "html").out.decode()
    assert 'class="call denied"' in page
    assert '<em class="state">denied</em>' in page
    assert "denied" in project.run("export", "1", "--format", "md").out.decode()
    with load_conversation(project) as stored:
        assert [entry.state for entry in stored.chat.state.history.ledger.values()] == ["denied"]
    # An export is read again with the same states.
    export = project.run("export", "1", "--format", "json").out
    made = project.run("import", stdin=export).lines[0]
    assert "(denied)" in project.run("log", "show", made).out.decode()


@pytest.mark.parametrize(
    "allowing", [("--allow", "write_file"), ("--allow", "write_file(*.txt)"), ("--dangerously-allow-all",)]
)
def test_a_rule_allows(project: Project, start_emulator, allowing):
    start_emulator(WRITE)
    assert project.run("run", *MODEL, *allowing, "Write").code == 0
    assert (project.folder / "new.txt").read_text() == "hello"


def test_deny_rule_overrides_everything(project: Project, start_emulator):
    start_emulator(WRITE)
    project.write_config('[tools]\ndeny = ["write_file"]\n')
    ended = project.run("run", *MODEL, "--dangerously-allow-all", "Write")
    assert "denied" in ended.lines[0]
    assert not (project.folder / "new.txt").exists()


def test_a_projects_rule_allows_only_when_its_file_is_trusted(project: Project, start_emulator):
    start_emulator(WRITE)
    project.write_config('[tools]\nallow = ["write_file"]\n')
    ended = project.run("run", *MODEL, "Write")
    assert f"segue: {project.file} is not trusted; ignored settings: tools.allow;" in ended.err
    assert not (project.folder / "new.txt").exists()
    start_emulator(WRITE)
    assert "not trusted" not in project.run("run", *MODEL, "--trust", "Write").err
    assert (project.folder / "new.txt").exists()


def test_a_bad_rule_is_refused(project: Project, start_emulator):
    start_emulator("say Yes.\n")
    ended = project.run("run", *MODEL, "--allow", "shell(", "Hi")
    assert is_one_line_error(ended)
    assert ended.err.startswith("segue: --allow: ")
    unknown = project.run("run", *MODEL, "--allow", "read_file", "--allow", "shel", "Hi")
    assert unknown.err.startswith('segue: --allow: unknown tool in allow rule "shel": did you mean shell')
    project.write_config('[tools]\ndeny = ["read_file", "shel"]\n')
    assert f"{project.file}: tools.deny: unknown tool" in project.run("run", *MODEL, "--allow", "shell", "Hi").err
    project.write_config('[tools]\ndeny = ["shell("]\n')
    for command in (("run", *MODEL, "Hi"), ("doctor",)):
        ended = project.run(*command)
        assert f"{project.file}: tools.deny: " in ended.err + ended.out.decode()


@pytest.mark.parametrize(
    "flags",
    [
        ("--tool-format", "bogus"),
        ("--allow", "bogus"),
        ("--allow", "shell("),
        ("--tools", "bogus"),
        ("--system", "@missing"),
        ("-m", "bogus/model"),
    ],
)
def test_bad_flags_are_refused_before_a_conversation_is_stored(project: Project, flags):
    ended = project.run("run", "--emulated", *flags, "Hi")
    assert is_one_line_error(ended)
    assert project.run("log", "--json").json == []


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("trial", log_level="CRITICAL")
@server.tool()
def add(a: int, b: int) -> str:
    return str(a + b)
open("started", "w").close()
server.run("stdio")
"""
ADD = 'call sums__add {"a": 20, "b": 22}\n---\nsay It is {sums__add}\n'


def test_the_tools_of_a_server_are_there_once_its_file_is_trusted(project: Project, start_emulator):
    pytest.importorskip("mcp")
    (project.folder / "server.py").write_text(SERVER)
    project.write_config(
        f'[tools]\nallow = ["sums__add"]\n[mcp.sums]\ncommand = ["{sys.executable}", "server.py"]\nstart = 240\n'
    )
    start_emulator(ADD)
    ended = project.run("run", *MODEL, "Add")
    assert "ignored settings: tools.allow, mcp.sums;" in ended.err
    assert "It is 42" not in ended.out.decode()
    assert not (project.folder / "started").exists()
    start_emulator(ADD)
    assert project.run("trust").code == 0
    ended = project.run("run", *MODEL, "-q", "Add")
    assert (ended.code, ended.lines, ended.err) == (0, ["It is 42"], "")


def test_failed_mcp_server_is_reported_and_ignored(project: Project, start_emulator):
    pytest.importorskip("mcp")
    start_emulator("say Yes.\n")
    config = project.home / ".config" / "segue" / "config.toml"
    config.write_text(config.read_text() + '[mcp.gone]\ncommand = ["no-such-program"]\n')
    ended = project.run("run", *MODEL, "-q", "Hi")
    assert (ended.code, ended.lines) == (0, ["Yes."])
    assert ended.err.startswith("segue: MCP server gone is not available: ")


def test_tools_of_a_server_that_are_left_out_are_reported(project: Project, start_emulator, tmp_path):
    pytest.importorskip("mcp")
    emulator = start_emulator("say Yes.\n")
    tools = [{"name": f"t{number:02}", "inputSchema": {"type": "object"}} for number in range(40)]
    page = {"tools": [*tools, {"name": "bad", "inputSchema": 5}]}
    (tmp_path / "pages").write_text(f'"result": {json.dumps(page)}')
    command = json.dumps([sys.executable, str(Path(tests.runtime.mcp_odd_server.__file__)), str(tmp_path / "pages")])
    config = project.home / ".config" / "segue" / "config.toml"
    config.write_text(config.read_text() + f"[tools]\nmax_declared = 30\n[mcp.odd]\ncommand = {command}\nstart = 240\n")
    ended = project.run("run", *MODEL, "--jsonl", "-q", "Hi")
    first, second = ended.err.splitlines()
    assert first.startswith("segue: tools of the MCP server odd: 1 left out: 'bad' (inputSchema: ")
    assert len(emulator.requests[0].body["tools"]) == 30
    left_out = 40 + len(standard_names() - {SWITCH_MODEL}) - 30
    assert second.startswith(f"segue: more than 30 tools: {left_out} left out: odd__t")
    assert second.endswith(" more; max_declared in [tools] sets the limit, only selects tools")
    [sent] = [event for event in map(json.loads, ended.lines) if event["type"] == "request-sent"]
    assert sent["findings"][0].startswith(f"lost: more than 30 tools: {left_out} left out: odd__t")


def test_subagent_runs_and_is_not_resumed(project: Project, start_emulator):
    start_emulator(
        'call task {"description": "look into it", "prompt": "Read notes.txt"}\n---\nsay Bread, said the other.\n'
        "---\nsay So: {task}\n---\nsay Again.\n"
    )
    output = project.run("run", *MODEL, "--json", "What shall I buy?").json
    assert output["text"] == "So: Bread, said the other."
    assert project.run("run", *MODEL, "-c", "--json", "Again?").json["conversation"] == output["conversation"]


def test_task_for_another_provider_needs_permission(project: Project, start_emulator):
    order = '{"description": "look", "prompt": "Read notes.txt", "model": "kimi/kimi-k2.6"}'
    script = f"call task {order}\n---\nsay It said: {{task}}\n"
    with segue.emulator.start("kimi", script="say From the moon.\n") as moon:
        place: dict[str, Any] = {"MOONSHOT_API_KEY": "k", "MOONSHOT_BASE_URL": moon.base_url}
        start_emulator(script)
        denied = project.run("run", *MODEL, "Go", **place)
        assert "denied: send a task to moonshot/kimi-k2.6" in denied.lines[0]
        assert list(moon.requests) == []
        start_emulator(script)
        allowed = project.run("run", *MODEL, "--allow", "task(moonshot/*)", "Go", **place)
        assert allowed.lines == ["It said: From the moon."]
        assert "task look → kimi/kimi-k2.6 (" in allowed.err
    with segue.emulator.start("kimi", script="say From the moon.\n") as moon:
        place = {"MOONSHOT_API_KEY": "k", "MOONSHOT_BASE_URL": moon.base_url}
        start_emulator(script)
        route = (*MODEL, "-m", "kimi/kimi-k2.6")
        output = project.run("run", *route, "--json", "Go", **place).json
    assert output["text"] == "It said: From the moon."
    assert output["models"] == ["anthropic/claude-sonnet-5", "moonshot/kimi-k2.6"]


def test_task_for_the_same_provider_needs_no_permission(project: Project, start_emulator):
    order = '{"description": "look", "prompt": "Read notes.txt", "model": "anthropic/claude-haiku-4-5"}'
    start_emulator(f"call task {order}\n---\nsay Small.\n---\nsay It said: {{task}}\n")
    assert project.run("run", *MODEL, "Go").lines == ["It said: Small."]


# ------------------------------------------------------------------------------------------------------ conversations


def test_conversation_is_resumed(project: Project, start_emulator):
    emulator = start_emulator("say One.\n---\nsay Two.\n---\nsay Three.\n---\nsay Four.\n")
    first = project.run("run", *MODEL, "--json", "First").json["conversation"]
    assert project.run("run", *MODEL, "-c", "--json", "Second").json["conversation"] == first
    body = emulator.requests[-1].body
    assert body is not None
    assert len(body["messages"]) == 3
    other = project.run("run", *MODEL, "--json", "Other").json["conversation"]
    assert other != first
    again = project.run("run", *MODEL, "-s", first[:8], "--json", "Third")
    assert again.json["conversation"] == first
    with SqliteStore(project.store) as store:
        assert [message.speaker for message in StoredConversation(store, first).messages] == ["human", "ai"] * 3


def test_each_folder_has_its_own_latest_conversation(project: Project, start_emulator, tmp_path, monkeypatch):
    start_emulator("\n---\n".join(f"say {number}." for number in range(9)))
    ask = ("run", *MODEL, "--json")
    here = project.run(*ask, "First").json["conversation"]
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    monkeypatch.chdir(other_folder)
    ended = project.run(*ask, "-c", "Which?")
    assert is_one_line_error(ended)
    assert "belongs to this folder; -c --all-folders continues the latest of all" in ended.err
    there = project.run(*ask, "Second").json["conversation"]
    assert there != here
    link = tmp_path / "link"
    link.symlink_to(project.folder)
    monkeypatch.chdir(link)
    assert project.run(*ask, "-c", "Third").json["conversation"] == here
    monkeypatch.chdir(other_folder)
    assert project.run(*ask, "-c", "--all-folders", "Fourth").json["conversation"] == here
    assert project.run(*ask, "-s", "2", "Fifth").json["conversation"] == there
    assert project.run(*ask, "-s", here[-5:], "Sixth").json["conversation"] == here
    forked = project.run(*ask, "-s", here, "--fork", "Seventh").json["conversation"]
    with SqliteStore(project.store) as store:
        folders = {row.id: Path(row.folder or "").name for row in store.list()}
    assert folders == {here: "project", there: "other", forked: "other"}


def test_conversation_of_a_moved_folder_belongs_to_the_new_one(project: Project, start_emulator, tmp_path, monkeypatch):
    start_emulator("say One.\n---\nsay Two.\n---\nsay Three.\n")
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    monkeypatch.chdir(before)
    made = project.run("run", *MODEL, "--json", "First").json["conversation"]
    before.rename(after)
    monkeypatch.chdir(after)
    assert project.run("run", *MODEL, "-c", "Second").code == 2
    assert project.run("run", *MODEL, "-s", "1", "Second").lines == ["Two."]
    assert project.run("run", *MODEL, "-c", "--json", "Third").json["conversation"] == made


def test_imported_conversation_belongs_to_the_folder(project: Project, start_emulator):
    start_emulator("say Rain.\n")
    body = json.dumps({"model": "gpt-4.1", "messages": [{"role": "user", "content": "Weather?"}]})
    made = project.run("import", stdin=body.encode()).lines[0]
    assert project.run("run", *MODEL, "-c", "--json", "Well?").json["conversation"] == made


def test_agent_that_can_not_start_leaves_no_conversation(project: Project, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise InputError("not today")

    monkeypatch.setattr("segue.cli.agent.Agent._build_session", fail)
    monkeypatch.setenv("HOME", str(project.home))
    monkeypatch.setenv("SEGUE_STORE", str(project.store))
    assert app.run(["run", "--emulated", "Hi"]) == 2
    with SqliteStore(project.store) as store:
        assert list(store.list()) == []


def test_resumed_conversation_keeps_its_model(project: Project, start_emulator):
    start_emulator("say One.\n---\nsay Two.\n---\nsay Six.\n")
    with segue.emulator.start("anthropic", script="say Three.\n---\nsay Four.\n---\nsay Five.\n", keys=[KEY]) as mine:
        config = project.home / ".config" / "segue" / "config.toml"
        own = f'[providers.mine]\napi = "anthropic"\nbase_url = "{mine.base_url}"\nkey_variable = "TEST_KEY"\n'
        config.write_text(f'model = "anthropic/claude-sonnet-5"\n{config.read_text()}{own}')
        first = project.run("run", "--json", "First").json
        assert first["model"] == "anthropic/claude-sonnet-5"
        assert project.run("run", "-c", "--json", "Second").json["model"] == "anthropic/claude-sonnet-5"
        project.run("run", "-c", "-m", "mine/claude-haiku-4-5", "Third")
        ended = project.run("run", "-c", "Fourth")
        assert ended.lines == ["Four."]
        assert "mine/claude-haiku-4-5 (last used in this conversation)" in ended.err
        output = project.run("run", "-s", first["conversation"], "--fork", "--json", "Fifth").json
        assert (output["text"], output["model"]) == ("Five.", "mine/claude-haiku-4-5")
        config.write_text(config.read_text().replace(own, ""))
        ended = project.run("run", "-c", "Sixth")
        assert ended.lines == ["Six."]
        assert "the conversation's last model can't be used: " in ended.err


@pytest.fixture
def long_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int) -> Generator[Project]:
    """A project in a folder whose path has `length` characters, with a conversation whose model is gone."""
    folder = tmp_path
    while (room := length - len(str(folder))) > 1:
        folder /= "x" * min(40, room - 1)
    folder.mkdir(parents=True, exist_ok=True)
    project = Project(folder)
    monkeypatch.chdir(project.folder)
    with segue.emulator.start("anthropic", script="say One.\n---\nsay Two.\n", keys=[KEY]) as emulator:
        own = f'[providers.mine]\napi = "anthropic"\nbase_url = "{emulator.base_url}"\nkey_variable = "TEST_KEY"\n'
        project.configure_providers(anthropic=emulator)
        config = project.home / ".config" / "segue" / "config.toml"
        other = f'model = "anthropic/claude-sonnet-5"\n{config.read_text()}'
        config.write_text(other + own)
        project.run("run", "-m", "mine/claude-haiku-4-5", "First")
        config.write_text(other)
        yield project


UNUSABLE = (
    "/config.toml; the conversation's last model can't be used: model: 'mine' is not a known provider; expected one"
)


@pytest.mark.parametrize("length", [100, 200, 230])
def test_the_start_line_keeps_its_sentence_in_a_long_path(long_project: Project, length: int):
    ended = long_project.run("run", "-c", "Second")
    assert ended.lines == ["Two."]
    start = ended.err.splitlines()[0]
    assert UNUSABLE in start
    assert "; conversation " in start


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("length", [200])
def test_the_head_of_a_chat_keeps_its_sentence_in_a_long_path(long_project: Project, length: int, columns: int):
    from tests.cli.terminal_session import PROMPT, TerminalSession

    variables = environment(**long_project.variables)
    with TerminalSession("chat", "-c", environment=variables, folder=long_project.folder, columns=columns) as seat:
        seat.wait_for_text(PROMPT)
        assert UNUSABLE in " ".join(seat.text.split())


def test_a_fork_leaves_the_other_as_it_is(project: Project, start_emulator):
    start_emulator("say One.\n---\nsay Two.\n")
    first = project.run("run", *MODEL, "--json", "First").json["conversation"]
    forked = project.run("run", *MODEL, "-c", "--fork", "--json", "Second").json["conversation"]
    assert forked != first
    with SqliteStore(project.store) as store:
        assert len(StoredConversation(store, first).messages) == 2
        assert len(StoredConversation(store, forked).messages) == 4


def test_nothing_is_kept_without_a_store(project: Project, start_emulator):
    start_emulator("say One.\n")
    output = project.run("run", *MODEL, "--no-store", "--json", "First").json
    assert (output["text"], output["conversation"]) == ("One.", None)
    assert not project.store.exists()


@pytest.mark.parametrize(
    "flags",
    [
        ("-c",),
        ("-c", "--all-folders"),
        ("--all-folders",),
        ("-s", "zzz"),
        ("-s", "1"),
        ("--fork",),
        ("-c", "-s", "x"),
        ("-c", "--no-store"),
        ("-s", "x", "--no-store"),
    ],
)
def test_missing_conversation_cannot_be_resumed(project: Project, flags):
    assert is_one_line_error(project.run("run", *MODEL, *flags, "Hi"))
    assert project.run("log", "--json").json == []


# ------------------------------------------------------------------------------------------------------------ the model


def test_missing_key_uses_the_emulator_and_reports_it(project: Project):
    ended = project.run("run", "-q", "Read notes.txt")
    assert ended.code == 0
    ended = project.run("run", "--no-tools", "Hi")
    assert (ended.code, bool(ended.out.strip())) == (0, True)
    assert "emulated: no API key is set" in ended.err.splitlines()[0]
    assert project.run("run", "--no-tools", "--json", "Hi").json["emulated"] is True


def test_emulated_uses_no_key_and_keeps_the_model(project: Project):
    first = project.run("run", "--emulated", "-m", "moonshot", "--no-tools", "Hi", ANTHROPIC_API_KEY="k")
    assert first.code == 0
    assert first.err.startswith("segue: moonshot/kimi-k2.6 (emulated); conversation ")
    again = project.run("run", "--emulated", "-c", "--no-tools", "Hi", ANTHROPIC_API_KEY="k")
    assert again.code == 0
    assert again.err.startswith("segue: moonshot/kimi-k2.6 (emulated; last used in this conversation); ")
    without_key = project.run("run", "-c", "--no-tools", "Hi")
    assert without_key.err.startswith("segue: moonshot/kimi-k2.6 (emulated: no API key is set, see segue models; last ")


def test_emulated_conversation_continues_in_another_process(project: Project):
    """The reasoning of the first process is referenced by id in the second."""
    for prompt in (["Read notes.txt"], ["-c", "Read notes.txt"], ["-c", "Read notes.txt"]):
        ended = project.run_new("run", "-m", "openai", "--emulated", *prompt)
        assert ended.code == 0, ended.err


@pytest.mark.parametrize("provider", ["openai-chat", "groq", "azure", "bedrock", "openrouter"])
def test_provider_with_its_own_path_is_emulated(project: Project, provider: str):
    ended = project.run("run", "--emulated", "-m", provider, "--no-tools", "Hi")
    assert (ended.code, bool(ended.out.strip())) == (0, True), ended.err


def test_selected_model_and_reason(project: Project):
    with segue.emulator.start("mistral", script="say Yes.\n---\nsay Yes.\n---\nsay Yes.\n") as emulator:
        place: dict[str, Any] = {"MISTRAL_API_KEY": "k", "MISTRAL_BASE_URL": emulator.base_url}
        by_key = project.run("run", "Hi", **place)
        assert by_key.err.startswith("segue: mistral/mistral-medium-latest (MISTRAL_API_KEY is set);")
        project.write_config('model = "mistral/devstral-2512"')
        # A long path is shortened.
        assert re.search(r"mistral/devstral-2512 \(.*\.segue\.toml\);", project.run("run", "Hi", **place).err)
        by_variable = project.run("run", "Hi", SEGUE_MODEL="mistral/codestral-2508", **place)
        assert "mistral/codestral-2508 (SEGUE_MODEL)" in by_variable.err
        assert [record.model for record in emulator.requests] == [
            "mistral-medium-latest",
            "devstral-2512",
            "codestral-2508",
        ]


def test_the_second_model_answers_where_the_first_does_not(project: Project, start_emulator):
    start_emulator("error 529 Overloaded (retry after 100)\n")
    with segue.emulator.start("kimi", script="say From the moon.\n") as moon:
        place: dict[str, Any] = {"MOONSHOT_API_KEY": "k", "MOONSHOT_BASE_URL": moon.base_url}
        ended = project.run("run", *MODEL, "-m", "kimi/kimi-k2.6", "--debug", "Hi", **place)
    assert (ended.code, ended.lines) == (0, ["From the moon."])
    assert "segue: switched to moonshot/kimi-k2.6: anthropic/claude-sonnet-5" in ended.err
    with load_conversation(project) as chat:
        assert [message.speaker for message in chat.messages] == ["human", "ai"]


def test_failed_failover_reports_the_last_error_without_turn(project: Project, start_emulator):
    start_emulator("error 529 Overloaded (retry after 100)\n")
    with segue.emulator.start("kimi", script="error 529 Overloaded (retry after 100)\n") as moon:
        place: dict[str, Any] = {"MOONSHOT_API_KEY": "k", "MOONSHOT_BASE_URL": moon.base_url}
        output = project.run("run", *MODEL, "-m", "kimi/kimi-k2.6", "--json", "Hi", **place).json
    assert output["error"].startswith("moonshot/kimi-k2.6 ")
    assert (output["model"], output["turns"]) == ("moonshot/kimi-k2.6", 0)
    assert output["models"] == ["anthropic/claude-sonnet-5", "moonshot/kimi-k2.6"]


def test_rule_selects_the_model(project: Project, start_emulator):
    start_emulator("say Short.\n")
    with segue.emulator.start("kimi", script="say Long.\n") as moon:
        place: dict[str, Any] = {"MOONSHOT_API_KEY": "k", "MOONSHOT_BASE_URL": moon.base_url}
        project.write_config(
            'strategy = "rules"\n[[rules]]\nwhen = "long"\ntokens = 500\nmodel = "kimi/kimi-k2.6"\n'
            '[[rules]]\nwhen = "otherwise"\nmodel = "anthropic/claude-sonnet-5"\n'
        )
        assert project.run("run", "-q", "--no-tools", "Hi", **place).lines == ["Short."]
        ended = project.run("run", "--json", "--no-tools", "-c", "Explain", stdin=b"word " * 2000, **place)
    assert (ended.json["text"], ended.json["model"]) == ("Long.", "moonshot/kimi-k2.6")


def test_a_conversation_that_fills_the_context_is_made_to_fit(project: Project, start_emulator):
    emulator = start_emulator("say One.\n---\nsay Two.\n---\nsay Three.\n")
    config = project.home / ".config" / "segue" / "config.toml"
    small = '[providers.anthropic.models."claude-sonnet-5"]\ncontext = 1200\n'
    config.write_text(f'compress = "drop-oldest"\n{config.read_text()}{small}')
    project.run("run", *MODEL, "First", stdin=b"word " * 600)
    project.run("run", *MODEL, "-c", "Second", stdin=b"word " * 600)
    ended = project.run("run", *MODEL, "-c", "Third")
    assert ended.code == 0
    assert "segue: compressed (drop-oldest): " in ended.err
    body = emulator.requests[-1].body
    assert body is not None
    assert "First" not in str(body["messages"])
    assert "Second" in str(body["messages"])


@pytest.mark.parametrize("name", ["antropic/claude", "nobody", "anthropic/"])
def test_unknown_model_is_usage_error(project: Project, name):
    assert is_one_line_error(project.run("run", "-m", name, "Hi"))
    assert not project.store.exists()


# ---------------------------------------------------------------------------------------------------------- how it ends


def test_a_model_without_a_key_fails_and_names_the_variable(project: Project):
    ended = project.run("run", *MODEL, "-q", "Hi")
    assert is_one_line_error(ended, 1)
    assert "ANTHROPIC_API_KEY" in ended.err


def test_unsent_conversation_is_not_resumed(project: Project, start_emulator):
    start_emulator("say One.\n---\nsay Two.\n")
    first = project.run("run", *MODEL, "--json", "First").json["conversation"]
    for form in ("--json", "-q", "--jsonl"):
        ended = project.run("run", "-m", "openai/gpt-4.1", form, "Lost")
        assert ended.code == 1
        if form == "--json":
            assert (ended.json["outcome"], ended.json["conversation"]) == ("failed", None)
    assert "conversation" not in project.run("run", "-m", "openai/gpt-4.1", "Lost").err
    with SqliteStore(project.store) as store:
        assert [row.id for row in store.list()] == [first]
    assert project.run("run", "-m", "openai/gpt-4.1", "-c", "Kept").code == 1
    assert project.run("run", *MODEL, "-c", "--json", "Second").json["conversation"] == first


def test_a_refused_key_fails_and_is_not_shown(project: Project, start_emulator):
    start_emulator("say Yes.\n")
    for form in ("-q", "--json", "--jsonl"):
        ended = project.run("run", *MODEL, form, "Hi", TEST_KEY="sk-wrong-987654321")
        assert ended.code == 1
        assert "sk-wrong" not in ended.out.decode() + ended.err
    output = project.run("run", *MODEL, "--json", "Hi", TEST_KEY="sk-wrong-987654321").json
    assert (output["outcome"], output["text"]) == ("failed", "")
    assert "TEST_KEY" in output["error"]


def test_temporary_failure_exits_75(project: Project, start_emulator):
    start_emulator("error 429 Slow down (retry after 100)\n")
    ended = project.run("run", *MODEL, "-q", "Hi")
    assert is_one_line_error(ended, 75)


def test_leased_conversation_exits_75(project: Project, start_emulator):
    start_emulator("say One.\n---\nsay Two.\n")
    project.run("run", *MODEL, "First")
    with load_conversation(project) as chat:
        chat.rename("Mine")
        ended = project.run("run", *MODEL, "-q", "-c", "Second")
        assert is_one_line_error(ended, 75)
        assert "open in another process" in ended.err
        chat.close()
        assert project.run("run", *MODEL, "-q", "-c", "Second").code == 0


def test_a_limit_of_steps_is_1(project: Project, start_emulator):
    start_emulator(READ)
    ended = project.run("run", *MODEL, "-q", "--max-turns", "1", "Hi")
    assert ended.code == 1
    with load_conversation(project) as chat:
        assert f"stopped after 1 turn, the limit for one prompt; to continue: segue run -s {chat.id}" in ended.err
        assert chat.pending == []
    start_emulator(READ)
    output = project.run("run", *MODEL, "--json", "--no-store", "--max-turns", "1", "Hi").json
    assert output["error"] == "stopped after 1 turn, the limit for one prompt; raise --max-turns to allow more"


def test_truncated_reply_is_reported(project: Project, start_emulator):
    start_emulator("say To be cont\nend length\n")
    ended = project.run("run", *MODEL, "-q", "Hi")
    assert (ended.code, ended.lines) == (0, ["To be cont"])
    assert "incomplete (length)" in ended.err


def test_broken_reply_is_retried(project: Project, start_emulator):
    start_emulator("say This will be cut o\ncut\n---\nsay Whole.\n")
    ended = project.run("run", *MODEL, "Hi")
    assert ended.code == 0
    assert ended.lines[-1] == "Whole."
    assert "interrupted: " in ended.err
    with load_conversation(project) as chat:
        assert len(chat.messages) == 2


# -------------------------------------------------------------------------------------------------------------- signals


@contextmanager
def start_run(
    project: Project, *arguments: str, interrupt: Callable[[], AbstractContextManager[None]] = default_interrupt
) -> Generator[subprocess.Popen[bytes]]:
    with interrupt():
        process = subprocess.Popen(
            [*SEGUE, "run", *MODEL, "--jsonl", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**project.variables),
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[bytes], kind: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if msgspec.json.decode(line)["type"] == kind:
            return
    raise AssertionError(f"no {kind}: {process.stderr.read() if process.stderr else b''}")


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "the state never came"
        time.sleep(0.01)


def test_an_interrupt_in_a_reply_cancels_it_and_leaves_all_whole(project: Project, start_emulator):
    start_emulator("say Let me\nwait 1000\nsay see.\n---\nsay Two.\n")
    with start_run(project, "Hi") as process:
        wait_for(process, "text-delta")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, b"")
    assert msgspec.json.decode(out.splitlines()[-1])["outcome"] == "cancelled"
    again = project.run("run", *MODEL, "-q", "-c", "Go on")
    assert (again.code, again.lines) == (0, ["Two."])


def test_an_interrupt_that_was_ignored_at_the_start_stays_ignored(project: Project, start_emulator):
    command = json.dumps({"command": "touch began; until [ -e go ]; do sleep 0.01; done"})
    start_emulator(f"call shell {command}\n---\nsay Two.\n")
    with start_run(project, "--allow", "shell", "Hi", interrupt=ignored_interrupt) as process:
        wait_until((project.folder / "began").exists)
        process.send_signal(signal.SIGINT)
        (project.folder / "go").touch()
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert msgspec.json.decode(out.splitlines()[-1])["outcome"] == "answered"


def test_an_interrupt_in_a_tool_gives_every_call_its_outcome(project: Project, start_emulator):
    command = json.dumps({"command": "touch began; exec sleep 1000"})
    start_emulator(f'call shell {command}\ncall read_file {{"path": "notes.txt"}}\n---\nsay Two.\n')
    with start_run(project, "--allow", "shell", "Hi") as process:
        wait_for(process, "call-started")
        wait_until((project.folder / "began").exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    with load_conversation(project) as chat:
        assert chat.pending == []
        assert [message.speaker for message in chat.messages] == ["human", "ai", "tool", "tool"]
    assert project.run("run", *MODEL, "-q", "-c", "Go on").lines == ["Two."]


def test_a_second_interrupt_leaves_at_once(project: Project, start_emulator):
    start_emulator("wait 60\nsay Hi.\n")
    with start_run(project, "Hi") as process:
        wait_for(process, "request-sent")
        os.kill(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 130


def test_to_be_ended_is_to_be_cancelled(project: Project, start_emulator):
    start_emulator("wait 60\nsay Hi.\n")
    with start_run(project, "Hi") as process:
        wait_for(process, "request-sent")
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 143
    with load_conversation(project) as chat:
        assert len(chat.messages) == 1


def test_closed_reader_ends_the_run_quietly(project: Project, start_emulator):
    # more text than a pipe holds: the run is still writing it when the reader closes
    start_emulator(f'say {"word " * 20_000}\nwait 1000\ncall read_file {{"path": "notes.txt"}}\n---\nsay Two.\n')
    with start_run(project, "Hi") as process:
        wait_for(process, "text-delta")
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=PATIENCE) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
    with load_conversation(project) as chat:
        assert chat.pending == []
    ended = project.run("run", *MODEL, "-q", "-c", "Go on")
    assert (ended.code, ended.lines) == (0, ["Two."])


def test_closed_stdout_is_reported_before_any_request(project: Project, start_emulator):
    emulator = start_emulator("say Hi.\n")
    command = " ".join(["exec", *SEGUE, "run", *MODEL, "Hi", ">&-"])
    ended = subprocess.run(
        ["sh", "-c", command], capture_output=True, env=environment(**project.variables), timeout=100, check=False
    )
    assert ended.returncode == 1
    assert b"stdout" in ended.stderr
    assert list(emulator.requests) == []


def test_help_and_page_name_the_keys_and_outcomes_of_the_json_value(project: Project):
    page = (Path(__file__).parents[2] / "docs" / "agent.md").read_text().split("For scripts there is `--json`")[1]
    text, shell, outcomes = (
        page.split("```")[2].split("`--jsonl`")[0],
        page.split("```")[1],
        re.findall(r"\((.+?)\)", page)[0],
    )
    listed = re.search(r"JSON value at the end: (.+?)\.", " ".join(project.run("run", "--help").out.decode().split()))
    assert listed is not None
    keys = {*listed[1].split(", "), *re.findall(r"[ ']\.(\w+)", shell)}
    assert keys <= {*RunResult.__struct_fields__}
    assert {*re.findall(r"`(\S+?)`", outcomes)} == {*get_args(ExchangeOutcome)}
    assert {*re.findall(r"`(\w+)`", text.replace(outcomes, ""))} <= {*RunResult.__struct_fields__}


@pytest.mark.parametrize("flags", [(), ("--no-tools",)])
def test_an_emulated_model_answers_by_a_schema(project: Project, flags: tuple[str, ...]):
    (project.folder / "notes.txt").write_text("Buy bread")
    (project.folder / "schema.json").write_text(
        '{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}'
    )
    ended = project.run("run", "-q", "--emulated", "--schema", "schema.json", *flags, "What is in notes.txt?")
    assert (ended.code, ended.err, [*ended.json]) == (0, "", ["title"])


def test_a_name_of_an_emulated_model_is_one_with_the_option_too(project: Project):
    ended = project.run("run", "--emulated", "-m", "emulated/claude-sonnet-5", "Hello")
    assert (ended.code, "anthropic/claude-sonnet-5 (emulated)" in ended.err) == (0, True)


def test_a_function_that_is_no_tool_is_named_with_its_file(project: Project):
    (project.folder / "sums.py").write_text("def add(a) -> int:\n    return a\n")
    ended = project.run("run", "--emulated", "--functions", "sums.py", "Hello")
    assert is_one_line_error(ended)
    assert ended.err.startswith("segue: functions: sums.py: the parameter 'a' of the tool 'add' needs a type hint")


def test_a_limited_run_of_an_emulated_model_is_continued_with_one(project: Project):
    (project.folder / "notes.txt").write_text("Buy bread")
    ended = project.run("run", "--emulated", "--max-turns", "1", "Read notes.txt")
    [chat] = project.run("log", "--json").json
    assert ended.err.endswith(f"; to continue: segue run --emulated -s {chat['id']}\n")

"""Sessions of Gemini CLI and Qwen Code: what their readers take, and where their writers write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from segue.errors import InputError
from segue.sessions.client import SessionFile
from tests.cli.client_logs import ClaudeCode, Contents
from tests.cli.process import run
from tests.sessions.record import WORK
from tests.sessions.world import World, client, texts


def read_texts(world: World, name: str, lines: list[dict[str, Any]]) -> list[str]:
    """Return the texts of all messages of a session."""
    return texts(world.read(world.add_lines(name, lines)), "human", "ai")


# ---------------------------------------------------------------------------------------------------------- Gemini CLI


def test_context_and_commands_of_gemini_are_not_carried(world: World):
    log = Contents("gemini")
    log.user("<session_context>\nFACTS")
    log.user("/stats model")
    log.user("/home/me/a.py has a bug.")
    log.line(type="info", content="NOTICE")
    log.answer("Done.")
    assert read_texts(world, "gemini", log.lines) == ["/home/me/a.py has a bug.", "Done."]


def test_messages_that_gemini_rewound_are_not_carried(world: World):
    log = Contents("gemini")
    log.user("First.")
    log.answer("One.")
    log.user("Second.")
    log.answer("Two.")
    log.lines.append({"$rewindTo": "m3"})
    log.user("Third.")
    session = world.add_lines("gemini", log.lines)
    assert texts(world.read(session), "human", "ai") == ["First.", "One.", "Third."]
    assert [line.text for line in world.plan(session, "claude").report.lost] == ["messages that were rewound"]


def test_a_message_of_gemini_replaces_an_earlier_one(world: World):
    log = Contents("gemini")
    log.user("Hello.")
    log.line(type="gemini", content="", id="r")
    calls = [{"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, "result": "RESULT"}]
    log.line(type="gemini", content="Wait.", id="r", thoughts=[{"subject": "A", "description": "b"}], toolCalls=calls)
    log.result("c1", "RESULT")
    session = world.add_lines("gemini", log.lines)
    parts = world.read(session).log.body["contents"][1]["parts"]
    assert [list(part) for part in parts] == [["text", "thought"], ["text"], ["functionCall"]]
    assert parts[0]["text"] == "**A** b"
    assert [result for *_, result in world.calls(session)] == ["RESULT"]
    assert world.violations(session) == []


def test_each_result_that_gemini_wrote_again_is_taken_once(world: World):
    log = Contents("gemini")
    log.user("Hello.")
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}}
    response = {"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": "RESULT"}}}
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    # As after a resume: the call in the parts and in `toolCalls`, the result there and in two messages.
    calls = [{**call, "result": [response, picture]}]
    log.line(type="gemini", content=[{"functionCall": call}], toolCalls=calls)
    log.content("user", response, picture)
    log.content("user", response, picture)
    log.answer("Done.")
    session = world.add_lines("gemini", log.lines)
    contents = world.read(session).log.body["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "model"]
    assert contents[2]["parts"] == [{"functionResponse": {**response["functionResponse"], "parts": [picture]}}]
    assert world.violations(session) == []


def test_a_prompt_that_gemini_would_ignore_reaches_the_model(world: World):
    log = ClaudeCode()
    for prompt in ("/home/me/a.py has a bug.", "?"):
        log.user(prompt)
        log.reply(f"m{prompt}", {"type": "text", "text": "Done."})
    session = world.move(world.add_lines("claude", log.lines), "gemini").session
    assert texts(world.read(session), "human") == ["/home/me/a.py has a bug.", "?"]
    lines = [json.loads(line) for line in world.load(session).splitlines()]
    prompts = [line["content"][0]["text"] for line in lines if line.get("type") == "user"]
    assert not any(prompt.strip().startswith(("/", "?")) for prompt in prompts)


def test_results_out_of_order_keep_their_order(world: World):
    log = Contents("qwen")
    log.user("Do it.")
    log.call(("c1", "echo ONE"), ("c2", "echo TWO"))
    log.result("c2", "RESULT-TWO")
    log.result("c1", "RESULT-ONE")
    session = world.move(world.add_lines("qwen", log.lines), "gemini").session
    for word, (_, arguments, result) in zip(("ONE", "TWO"), world.calls(session), strict=True):
        assert word in arguments
        assert f"RESULT-{word}" in result


@pytest.mark.parametrize("indent", [None, 2])
def test_an_older_session_of_gemini_is_one_object(world: World, indent: int | None):
    log = Contents("gemini")
    log.user("Hello.")
    log.answer("Done.")
    record = {**log.lines[0], "messages": log.lines[1:]}
    path = world.home.path / ".gemini" / "tmp" / "project" / "chats" / "session-2025-10-01T10-00-0a1b2c3d.json"
    path.parent.mkdir(parents=True)
    (path.parent.parent / ".project_root").write_text(WORK)
    path.write_text(json.dumps(record, indent=indent))
    (found,) = client("gemini").find(world.home, Path(WORK))
    assert (found.title, found.cwd) == ("Hello.", WORK)
    before = world.load(found)
    away = world.move(found, "claude").session
    world.resume(away)
    # Nothing can be appended to an object: the client itself goes on in lines, too.
    back = world.move(away, "gemini")
    assert (back.report.action, back.session.path.suffix) == ("copied", ".jsonl")
    assert world.load(found) == before
    assert texts(world.read(back.session), "human")[0] == "Hello."
    assert len(texts(world.read(back.session), "human")) == 2


def test_a_new_session_of_gemini_is_where_the_client_looks(world: World):
    root = world.home.path / ".gemini"

    def move(id: str) -> Path:
        log = ClaudeCode()
        log.user(f"Hello {id}.")
        log.reply("m1", {"type": "text", "text": "Done."})
        data = b"".join(json.dumps(line).encode() + b"\n" for line in log.lines)
        return world.move(world.add("claude", data.replace(b'"s"', f'"{id}"'.encode()), id), "gemini").session.path

    # The name of the folder belongs to another folder, by the registry and by the file in it.
    root.mkdir(parents=True)
    (root / "projects.json").write_text('{"projects": {"/other/project": "project"}}')
    taken = root / "history" / "project-1" / ".project_root"
    taken.parent.mkdir(parents=True)
    taken.write_text("/another/project")
    first = move("a")
    assert first.parent.parent == root / "tmp" / "project-2"
    assert (root / "tmp" / "project-2" / ".project_root").read_text() == WORK
    assert move("b").parent == first.parent
    (root / "projects.json").write_text(json.dumps({"projects": {WORK: "named"}}))
    assert move("c").parent.parent.name == "named"


def test_sessions_of_subagents_of_gemini_are_not_listed(world: World):
    log = Contents("gemini")
    log.lines[0]["kind"] = "subagent"
    log.user("Hello.")
    with pytest.raises(InputError, match="not a session of Gemini CLI"):
        world.add_lines("gemini", log.lines)
    assert list(client("gemini").find(world.home, None)) == []


# ----------------------------------------------------------------------------------------------------------- Qwen Code


def test_the_branch_that_qwen_would_continue_is_carried(world: World):
    log = Contents("qwen")
    log.user("First.")
    log.answer("One.")
    log.user("Second.")
    log.answer("Two.")
    log.user("Third.")
    log.lines[-1]["parentUuid"] = log.lines[1]["uuid"]
    log.lines.append({**log.lines[-1], "uuid": "side", "type": "system", "subtype": "session_artifact_event"})
    session = world.add_lines("qwen", log.lines)
    assert texts(world.read(session), "human", "ai") == ["First.", "One.", "Third."]
    lost = world.plan(session, "claude").report.lost
    assert [(line.text, line.count) for line in lost] == [("lines on branches that were left", 2)]


def test_the_title_of_qwen_is_carried(world: World):
    log = Contents("qwen")
    log.user("Hello.")
    log.answer("Done.")
    log.line(type="system", subtype="custom_title", systemPayload={"customTitle": "The title"})
    session = world.add_lines("qwen", log.lines)
    assert session.title == "The title"
    moved = world.move(session, "gemini").session
    (found,) = client("gemini").find(world.home, Path(WORK))
    assert (found.id, found.title) == (moved.id, "The title")


def test_a_locked_session_of_qwen_is_not_extended(world: World):
    session = world.add_recorded("qwen")
    away = world.move(session, "claude").session
    world.resume(away)
    lock = world.home.path / ".qwen" / "tmp" / "session-writer-locks" / f"{session.id}.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"pid": os.getpid(), "session_id": session.id}))
    assert world.plan(away, "qwen").action == "copied"
    lock.unlink()
    assert world.plan(away, "qwen").action == "extended"


# ---------------------------------------------------------------------------------------------------------------- both


@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_a_recorded_session_is_imported(world: World, tmp_path: Path, name: str):
    session = world.add_recorded(name)
    store = str(tmp_path / "imported.db")
    ended = run("import", str(session.path), SEGUE_STORE=store)
    assert ended.code == 0, ended.err
    (row,) = run("log", "--json", SEGUE_STORE=store).json
    assert row["messages"] == len(world.read(session).entries) > 8


@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_a_file_of_one_client_is_not_one_of_another(world: World, name: str):
    session = world.add_recorded(name)
    for other in ("claude", "codex", "gemini", "qwen"):
        if other != name:
            file = SessionFile(other, session.id, session.path)
            with pytest.raises(InputError, match="not a session of"):
                world._mover().plan(client(other), file, client("segue"), WORK)

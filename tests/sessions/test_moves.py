"""Recorded sessions of real clients, moved to every other client."""

from __future__ import annotations

import json
import re
import stat

import pytest

from segue.errors import InputError
from segue.sessions.rendering import CLOSING_TEXT
from tests.cli.client_logs import Codex
from tests.sessions.world import World, client, texts

IN_FILES = ("claude", "codex", "gemini", "qwen", "pi")
RECORDED = (*IN_FILES, "opencode")
PAIRS = [(source, target) for source in RECORDED for target in (*RECORDED, "segue") if source != target]
BETWEEN_CLIENTS = [(source, target) for source, target in PAIRS if target != "segue"]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_prompt_call_and_result_is_carried(world: World, source: str, target: str):
    moved = world.move(world.add_recorded(source), target)
    session = world.read(moved.session)
    # opencode quotes a prompt of its command line.
    prompts = [text.strip('"').partition(":")[0] for text in texts(session, "human")]
    assert prompts == ["TASK-ONE", "TASK-TWO"]
    assert [text for text in texts(session, "ai") if text != CLOSING_TEXT] == ["First answer.", "Third answer."]
    calls = world.calls(moved.session)
    # Gemini CLI records a call when it has ended.
    words = ("alpha.txt", "red.png", "EDITED-GAMMA", "RESULT-one", *(("endless",) if source != "gemini" else ()))
    assert all(word in arguments for word, (_, arguments, _) in zip(words, calls, strict=True))
    assert "CONTENT-ALPHA" in calls[0][2]
    assert "RESULT-ONE" in calls[3][2]
    pictures = [line.count for line in moved.report.carried if line.text == "pictures and files"]
    assert pictures == [1]


@pytest.mark.parametrize(("source", "target"), BETWEEN_CLIENTS)
def test_the_next_request_is_valid(world: World, source: str, target: str):
    moved = world.move(world.add_recorded(source), target)
    assert world.violations(moved.session) == []
    assert moved.report.action == "created"


@pytest.mark.parametrize(("source", "target"), [pair for pair in BETWEEN_CLIENTS if pair[1] in IN_FILES])
def test_a_session_ends_on_a_reply_and_keeps_order_and_times(world: World, source: str, target: str):
    session = world.add_recorded(source)
    lines = [json.loads(line) for line in world.load(world.move(session, target).session).splitlines()]
    times = [line["timestamp"] for line in lines[1:] if "timestamp" in line]
    assert times == sorted(times)
    first = next(entry.at for entry in world.read(session).entries)
    assert first is not None
    assert times[0].startswith("2026-11-")
    if target == "claude":
        last = [line for line in lines if line["type"] in ("user", "assistant")][-1]
        assert last["message"]["model"] == "<synthetic>"
        assert last["message"]["content"] == [{"type": "text", "text": CLOSING_TEXT}]
    elif target == "pi":
        last = lines[-1]
        assert (last["message"]["content"], last["segue"]) == ([{"type": "text", "text": CLOSING_TEXT}], "added")
    elif target == "codex":
        items = [line["payload"] for line in lines if line["type"] == "response_item"]
        assert (items[-1]["role"], items[-1]["content"][0]["text"]) == ("assistant", CLOSING_TEXT)
    elif target == "gemini":
        last = [line for line in lines if line.get("type") == "gemini"][-1]
        assert (last["content"], last["segue"]) == (CLOSING_TEXT, "added")
    else:
        last = [line for line in lines if line["type"] == "assistant"][-1]
        assert (last["message"]["parts"], last["segue"]) == ([{"text": CLOSING_TEXT}], "added")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_moving_twice_changes_nothing(world: World, source: str, target: str):
    session = world.add_recorded(source)
    first = world.move(session, target)
    before = world.load(first.session), world.load(session)
    again = world.move(session, target)
    assert again.report.action == "unchanged"
    assert again.command == first.command
    assert (world.load(first.session), world.load(session)) == before


@pytest.mark.parametrize("target", IN_FILES)
def test_files_are_for_their_owner_only(world: World, target: str):
    source = "codex" if target == "claude" else "claude"
    moved = world.move(world.add_recorded(source), target)
    assert stat.S_IMODE(moved.session.path.stat().st_mode) == 0o600
    assert [path.name for path in moved.session.path.parent.iterdir()] == [moved.session.path.name]


def test_a_plan_writes_nothing(world: World):
    session = world.add_recorded("claude")
    world.plan(session, "codex")
    assert not (world.home.path / ".codex").exists()
    assert not list(world.home.path.parent.glob("moves.db*"))


@pytest.mark.parametrize("target", RECORDED)
def test_a_moved_session_is_found_with_its_title(world: World, target: str):
    source = "codex" if target == "claude" else "claude"
    moved = world.move(world.add_recorded(source), target)
    (found,) = client(target).find(world.home, None)
    assert (found.id, found.path) == (moved.session.id, moved.session.path)
    assert found.title is not None
    assert found.title.startswith("TASK-ONE")
    assert moved.command[-1] == moved.session.id


def test_the_report_names_what_was_carried_changed_and_lost(world: World):
    report = world.move(world.add_recorded("claude"), "codex").report
    assert {line.text: line.count for line in report.carried} == {
        "messages": 11,
        "tool calls": 5,
        "results": 4,
        "pictures and files": 1,
    }
    changed = {line.text: line.count for line in report.changed}
    assert changed["tool Bash became exec_command"] == 2
    assert changed["tool Read became view_image"] == 1
    assert changed["text added at the end, where the last reply is missing"] == 1
    assert changed["added an error result for a tool call without a result"] == 1
    (lost,) = report.lost
    assert lost.count == 2
    assert lost.text.endswith("it is restored when the session is moved back")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_the_report_names_clients_and_no_apis(world: World, source: str, target: str):
    report = world.plan(world.add_recorded(source), target).report
    text = "\n".join(line.text for line in (*report.changed, *report.lost))
    assert not re.search(r"\b(anthropic|openai|gemini|openai-responses|function response|target|detail)\b", text)


def test_a_session_of_another_client_is_refused(world: World):
    session = world.add_recorded("claude")
    with pytest.raises(InputError, match="not a session of Codex"):
        world._mover().plan(client("codex"), session, client("claude"), "/home/me/project")


def test_an_unknown_format_is_refused_with_its_place(world: World):
    session = world.add("codex", b'{"timestamp":"x","type":"session_meta","payload":{"id":"a","cwd":"/x"}}\n')
    with pytest.raises(InputError, match="no messages") as raised:
        world.plan(session, "claude")
    assert str(session.path) in raised.value.path


def test_codex_lists_a_session_of_its_configured_provider(world: World):
    config = world.home.path / ".codex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model_provider = "acme"\n')
    lines = world.load(world.move(world.add_recorded("claude"), "codex").session).splitlines()
    assert json.loads(lines[0])["payload"]["model_provider"] == "acme"


def test_a_text_that_is_repeated_is_carried_twice(world: World):
    log = Codex()
    log.user("Hello.")
    log.answer("Working on it.")
    log.answer("Working on it.")
    moved = world.move(world.add_lines("codex", log.lines), "claude")
    assert "\n".join(texts(world.read(moved.session), "ai")).count("Working on it.") == 2
    assert world.violations(moved.session) == []

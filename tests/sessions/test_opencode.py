"""Sessions of opencode: what it sends of them, its settings, and its own command, which a script stands in for.

Each expected history is what the real client sent, with such a session and another prompt, to an emulated provider.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from segue.errors import InputError
from segue.sessions.any_provider import result_unit
from segue.sessions.client import ClientHome, NewSession, SessionItem
from segue.sessions.lines import decode_lines
from segue.sessions.opencode import writer
from segue.sessions.parsed_log import LogLine
from segue.sessions.rendering import CLOSING_TEXT, split_body
from segue.sessions.tools import MCP_NAMES
from tests.cli.client_logs import ClaudeCode, Opencode
from tests.sessions.test_moving_back import signatures
from tests.sessions.world import START, World, client, texts

STEP = {"type": "step-start"}
ABORTED = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
FAILED = {"name": "APIError", "data": {"message": "Overloaded", "isRetryable": False}}
PICTURE = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"}
ASKED = "user: What did we do so far?"


def thought(text: str, **metadata: Any) -> dict[str, Any]:
    return {"type": "reasoning", "text": text, "time": {"start": 1, "end": 2}, "metadata": metadata}


def marked(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **fields}


def compaction(**fields: Any) -> dict[str, Any]:
    return {"type": "compaction", "auto": True, **fields}


def reverted(log: Opencode) -> None:
    log.user("P1")
    log.reply("A1")
    log.info["revert"] = {"messageID": log.user("P2")}
    log.reply("A2")


def reverted_part(log: Opencode) -> None:
    log.user("P1")
    reply = log.reply("A1", log.call("c1", "x", output="R1"), STEP, "A2")
    log.info["revert"] = {"messageID": reply, "partID": log.messages[-1]["parts"][3]["id"]}
    log.user("P2")


def compacted(log: Opencode) -> None:
    log.user("P1")
    log.reply("A1")
    log.user(compaction())
    log.reply("SUMMARY", summary=True)
    log.user("P2")


def compacted_with_tail(log: Opencode) -> None:
    log.user("P1")
    log.reply("A1", log.call("c1", "x", output="R1"))
    tail = log.reply("A2", log.call("c2", "x", output="R2"))
    log.reply("A3")
    log.user(compaction(tail_start_id=tail))
    log.reply("SUMMARY", summary=True)
    log.user("P2")


def compacted_twice(log: Opencode) -> None:
    log.user("P1")
    tail = log.user("P2")
    for number in (1, 2):
        log.user(compaction(tail_start_id=tail))
        log.reply(f"SUMMARY{number}", summary=True)
    log.user("P3")


def compaction_failed(log: Opencode) -> None:
    log.user("P1")
    log.reply("A1")
    log.user(compaction())
    log.reply("PARTIAL", summary=True, error=FAILED)
    log.user("P2")


def compaction_without_tail(log: Opencode) -> None:
    log.user("P1")
    log.user(compaction(tail_start_id="msg_gone"))
    log.reply("SUMMARY", summary=True)


def texts_of_all_kinds(log: Opencode) -> None:
    agent = {"type": "agent", "name": "general"}
    log.user("P1", marked("SYNTHETIC", synthetic=True), marked("IGNORED", ignored=True), marked(""), agent)
    log.reply({"type": "snapshot", "snapshot": "a"}, "A1", {"type": "patch", "hash": "h", "files": ["a"]})
    log.user(marked("IGNORED", ignored=True))
    log.user({"type": "subtask", "prompt": "p", "description": "d", "agent": "general"})


def files(log: Opencode) -> None:
    source = {"type": "file", "mime": "text/plain", "url": "file:///a.txt", "filename": "a.txt"}
    folder = {"type": "file", "mime": "application/x-directory", "url": "file:///a", "filename": "a"}
    document = {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,BBBB", "filename": "b"}
    remote = {"type": "file", "mime": "image/png", "url": "https://example.org/c.png"}
    log.user("P1", marked("the content", synthetic=True), source, folder, PICTURE, document, remote)


def failed_replies(log: Opencode) -> None:
    log.user("P1")
    log.reply("A1", log.call("c1", "x", output="R1"), error=FAILED)
    log.user("P2")
    log.reply("A2", error=ABORTED)
    log.user("P3")
    log.reply(thought("T3"), error=ABORTED)


def results_of_all_kinds(log: Opencode) -> None:
    log.user("P1")
    attachment = {"id": "prt_a", "sessionID": "ses_s", "messageID": "msg_a", **PICTURE}
    lost = {**attachment, "url": "file:///a.png"}
    pruned = log.call("c6", "x", output="BIG", attachments=[attachment])
    pruned["state"]["time"]["compacted"] = 1791049772002
    log.reply(
        log.call("c1", "x", output="R1", attachments=[attachment, lost]),
        log.call("c2", "x", "error", error="E2"),
        log.call("c3", "x", "error", error="E3", metadata={"interrupted": True, "output": "PARTIAL"}),
        log.call("c4", "x", "running"),
        log.call("c5", "x", "pending", raw=""),
        pruned,
    )


def reasoning(log: Opencode) -> None:
    log.user("P1")
    log.reply(thought("T1", anthropic={"signature": "s1"}), "", STEP, thought("", anthropic={"redactedData": "d1"}))
    log.reply(thought("T2", openai={"itemId": "rs_1"}), thought(" "), "A1", providerID="openai", modelID="gpt-5")


HISTORIES: dict[str, tuple[Callable[[Opencode], None], list[str]]] = {
    "revert": (reverted, ["user: P1", "assistant: A1"]),
    "revert of a part": (reverted_part, ["user: P1", "assistant: A1", "assistant: call c1", "user: result c1 R1"]),
    "compaction": (compacted, [ASKED, "assistant: SUMMARY", "user: P2"]),
    "compaction with a tail": (
        compacted_with_tail,
        [
            ASKED,
            "assistant: SUMMARY",
            "assistant: A2",
            "assistant: call c2",
            "user: result c2 R2",
            "assistant: A3",
            "user: P2",
        ],
    ),
    "two compactions": (
        compacted_twice,
        [ASKED, "assistant: SUMMARY2", "user: P2", ASKED, "assistant: SUMMARY1", "user: P3"],
    ),
    "failed compaction": (compaction_failed, ["user: P1", "assistant: A1", ASKED, "user: P2"]),
    "compaction without its tail": (compaction_without_tail, ["user: P1", ASKED, "assistant: SUMMARY"]),
    "texts": (
        texts_of_all_kinds,
        ["user: P1", "user: SYNTHETIC", "assistant: A1", "user: The following tool was executed by the user"],
    ),
    "files": (
        files,
        [
            "user: P1",
            "user: the content",
            "user: image AAAA",
            "user: document BBBB b",
            "user: image https://example.org/c.png",
        ],
    ),
    "failed replies": (failed_replies, ["user: P1", "user: P2", "assistant: A2", "user: P3"]),
    "results": (
        results_of_all_kinds,
        [
            "user: P1",
            *(f"assistant: call c{number}" for number in range(1, 7)),
            "user: result c1 R1 image AAAA",
            "user: result c2 E2 error",
            "user: result c3 PARTIAL",
            "user: result c4 [Tool execution was interrupted] error",
            "user: result c5 [Tool execution was interrupted] error",
            "user: result c6 [Old tool result content cleared]",
        ],
    ),
    # The client sends reasoning of another model as text.
    "reasoning": (
        reasoning,
        ["user: P1", "assistant: thinking T1 s1", "assistant: redacted d1", "assistant: thinking T2", "assistant: A1"],
    ),
}


def summarize(block: dict[str, Any]) -> str:
    """Return a block in words."""
    match block["type"]:
        case "text":
            words = [block["text"]]
        case "tool_use":
            words = ["call", block["id"]]
        case "tool_result":
            content = map(summarize, block["content"])
            words = ["result", block["tool_use_id"], *content, "error" if block.get("is_error") else ""]
        case "thinking":
            words = ["thinking", block["thinking"], block.get("signature", "")]
        case "redacted_thinking":
            words = ["redacted", block["data"]]
        case kind:
            source = block["source"]
            words = [kind, source.get("data") or source["url"], block.get("title", "")]
    return " ".join(filter(None, words))


@pytest.mark.parametrize("name", HISTORIES)
def test_the_history_is_what_the_client_sends(world: World, name: str):
    build, expected = HISTORIES[name]
    log = Opencode()
    build(log)
    body = world.read(world.add_lines("opencode", log.lines)).log.body
    found = [f"{each['role']}: {summarize(block)}" for each in body["messages"] for block in each["content"]]
    assert found == expected


def test_what_is_not_sent_is_counted(world: World):
    log = Opencode()
    compacted(log)
    log.reply("A2", error=FAILED)
    log.user("P3", {"type": "file", "mime": "image/png", "url": "file:///gone.png"})
    log.info["revert"] = {"messageID": log.user("P4")}
    dropped = world.read(world.add_lines("opencode", log.lines)).log.dropped
    assert dropped == {
        "messages that the user took back": 1,
        "messages before the client's own compaction": 2,
        "replies that failed": 1,
        "files whose content is not in the session": 1,
    }


def test_a_message_of_an_unknown_role_is_refused_with_its_place():
    log = Opencode()
    log.user("P1")
    log.messages.append({"info": {"id": "msg_x", "role": "tool"}, "parts": []})
    with pytest.raises(InputError, match="unsupported message role 'tool'") as raised:
        client("opencode").reader.parse_log([LogLine(1, log.lines[0])])
    assert raised.value.path == "messages[1]"


# ------------------------------------------------------------------------------------------------------------- writing


def test_a_session_ends_on_a_reply_that_is_marked_for_the_providers_sdk(world: World):
    moved = world.move(world.add_recorded("claude"), "opencode")
    assert moved.command == ("opencode", "--session", moved.session.id)
    messages = json.loads(world.load(moved.session))["messages"]
    last = messages[-1]["parts"][1]
    # The client passes metadata on, and rejects other values than objects.
    assert (last["text"], last["metadata"]) == (CLOSING_TEXT, {"segue": {"added": True}})
    times = [message["info"]["time"]["created"] for message in messages]
    assert times == sorted(set(times))
    assert CLOSING_TEXT not in texts(world.read(moved.session), "ai")


def test_messages_without_a_time_are_older_than_the_next_prompt(world: World):
    log = ClaudeCode()
    for number in range(20):
        log.user(f"P{number}")
        log.reply(f"m{number}", {"type": "text", "text": f"A{number}"})
    lines = [{key: value for key, value in line.items() if key != "timestamp"} for line in log.lines]
    moved = world.move(world.add_lines("claude", lines), "opencode").session
    times = [message["info"]["time"]["created"] for message in json.loads(world.load(moved))["messages"]]
    assert times[-1] <= moved.updated // 1000
    assert moved.updated // 1000 - times[0] < 1000


def test_the_screen_shows_what_the_calls_did(world: World):
    log = ClaudeCode()
    log.user("Do it.")
    edit = {"file_path": "/a.py", "old_string": "one\ntwo", "new_string": "three"}
    todos = [{"content": "Read", "status": "completed"}]
    for number, (name, arguments) in enumerate(
        [("Bash", {"command": "ls"}), ("Edit", edit), ("TodoWrite", {"todos": todos})]
    ):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        log.reply(f"m{number}", block)
        log.result(f"toolu_{number}", "RESULT")
    session = world.move(world.add_lines("claude", log.lines), "opencode").session
    parts = [part for message in json.loads(world.load(session))["messages"] for part in message["parts"]]
    metadata = [part["state"]["metadata"] for part in parts if part["type"] == "tool"]
    diff = "--- /a.py\n+++ /a.py\n@@ -1,2 +1,1 @@\n-one\n-two\n+three\n"
    assert metadata == [{"output": "RESULT"}, {"diff": diff}, {"todos": todos}]


def test_results_are_read_in_the_order_in_which_they_were_written():
    calls = [{"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {}} for number in range(3)]
    results = [result_unit(f"c{number}", [{"type": "text", "text": "R"}], is_error=number == 1) for number in (2, 0, 1)]
    prompt = {"role": "user", "content": [{"type": "text", "text": "Do it."}]}
    items = [prompt, *({"role": "assistant", "content": [call]} for call in calls), *results]
    draft = NewSession("ses_s", tuple(map(SessionItem, items)), "/work", START)
    (value,) = decode_lines(writer.encode(draft))
    body = client("opencode").reader.parse_log([LogLine(1, value)]).body
    assert list(split_body(body, "anthropic")) == items


def test_what_the_client_rejects_is_an_error(world: World):
    log = Opencode()
    log.user("P1")
    log.reply({"type": "text", "text": None})
    with pytest.raises(ValueError, match=r"Expected string at messages\[1\]"):
        world.add_lines("opencode", log.lines)


def test_without_the_program_the_error_has_the_command_that_installs_it(world: World):
    world.home = ClientHome(world.home.path, {**world.home.environ, "PATH": "/nothing"}, "linux", world.home.store)
    with pytest.raises(InputError, match="npm install -g opencode-ai"):
        world.move(world.add_recorded("claude"), "opencode")


@pytest.mark.parametrize("script", ["echo Imported session: x; exit 1", "exit 0"])
def test_an_import_that_fails_is_an_error(world: World, script: str):
    session = world.add_recorded("claude")
    (world.folder / "bin" / "opencode").write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(InputError, match="opencode import failed"):
        world.move(session, "opencode")


def test_a_session_that_can_not_be_removed_is_an_error_with_its_id(world: World):
    session = world.add_recorded("opencode")
    (world.folder / "bin" / "opencode").write_text("#!/bin/sh\necho Database is locked\nexit 1\n")
    with pytest.raises(InputError, match=f"session delete {session.id} failed: Database is locked"):
        client("opencode").remove(world.home, session)


# ------------------------------------------------------------------------------------------------------------ way home


def test_a_session_with_a_revert_is_not_extended(world: World):
    log = Opencode()
    reverted(log)
    session = world.add_lines("opencode", log.lines)
    away = world.move(session, "claude").session
    world.resume(away)
    back = world.move(away, "opencode")
    # At the next prompt, the client removes all messages of the first session after the one that was taken back.
    assert (back.report.action, back.session.id != session.id) == ("copied", True)
    value = json.loads(world.load(back.session))
    assert "revert" not in value["info"]
    assert "P2" not in json.dumps(value)
    assert texts(world.read(back.session), "human")[0] == "P1"
    assert texts(world.read(back.session), "ai")[-1] == "leg1 answer."


def test_signed_reasoning_is_there_after_moving_back(world: World):
    log = Opencode()
    reasoning(log)
    session = world.add_lines("opencode", log.lines)
    away = world.move(session, "codex").session
    world.resume(away)
    assert world.move(away, "opencode").report.action == "extended"
    assert signatures(world, session) == ["s1"]


def test_a_session_is_not_extended_while_the_client_works_on_it(world: World):
    log = Opencode()
    log.user("P1")
    log.reply("A1")
    prompt = log.user("P2")
    session = world.add_lines("opencode", log.lines)
    away = world.move(session, "claude").session
    world.resume(away)
    # A client that was killed leaves a prompt without a reply, too.
    assert world.plan(away, "opencode").action == "extended"
    with session.path.open("rb"):
        assert world.plan(away, "opencode").action == "copied"
        with closing(sqlite3.connect(session.path)) as database, database:
            database.execute("DELETE FROM part WHERE message_id = ?", (prompt,))
            database.execute("DELETE FROM message WHERE id = ?", (prompt,))
        away = world.move(session, "codex").session
        world.resume(away)
        assert world.plan(away, "opencode").action == "extended"


def test_a_file_of_an_export_is_continued_in_a_new_session(world: World):
    path = world.folder / "export.json"
    log = Opencode()
    log.user("P1")
    log.reply("A1")
    path.write_text(json.dumps(log.lines[0], indent=2))
    session = client("opencode").describe(path)
    assert (session.id, session.size, session.model) == ("ses_s", path.stat().st_size, "claude-opus-4-6")
    away = world.move(session, "claude").session
    world.resume(away)
    back = world.move(away, "opencode")
    assert (back.report.action, back.session.path.name) == ("copied", "opencode.db")
    assert len(texts(world.read(back.session), "human")) == 2


# ------------------------------------------------------------------------------------------------------------- listing


def test_sessions_are_listed_with_their_size(world: World):
    log = Opencode()
    log.user("P1")
    log.reply("é" * 1000)
    session = world.add_lines("opencode", log.lines)
    stored = json.loads(world.load(session))
    assert 2000 < session.size < len(json.dumps(stored, ensure_ascii=False).encode())
    (found,) = client("opencode").find(world.home, world.folder)
    assert found == session
    assert list(client("opencode").find(world.home, Path("/elsewhere"))) == []


def test_archived_sessions_and_those_of_subagents_are_not_listed(world: World):
    for number, fields in enumerate([{"parentID": "ses_0"}, {"time": {"created": 1, "updated": 1, "archived": 2}}]):
        log = Opencode()
        log.info = {**fields, "id": f"ses_{number}"}
        log.user("P1")
        with pytest.raises(StopIteration):
            world.add_lines("opencode", log.lines)


def test_a_database_of_an_older_version_is_read(world: World):
    session = world.add_recorded("opencode")
    with closing(sqlite3.connect(session.path)) as database, database:
        for column in ("metadata", "revert", "agent", "model", "time_archived"):
            database.execute(f"ALTER TABLE session DROP COLUMN {column}")
    (found,) = client("opencode").find(world.home, None)
    assert (found.id, found.model) == (session.id, None)
    assert world.move(found, "claude").report.action == "created"


@pytest.mark.parametrize("model", ["{", "\ud800", b"\xff", 5, "[" * 100_000])
def test_a_session_whose_model_can_not_be_parsed_is_listed_without_it(world: World, model: object):
    session = world.add_recorded("opencode")
    with closing(sqlite3.connect(session.path)) as database, database:
        value = model.encode("utf-8", "replace") if isinstance(model, str) else model
        database.execute("UPDATE session SET model = ?, time_updated = 'x'", (value,))
    (found,) = client("opencode").find(world.home, None)
    assert (found.id, found.model, found.updated) == (session.id, None, 0)
    log = ClaudeCode()
    log.user("P1")
    assert world.plan(world.add_lines("claude", log.lines), "opencode").action == "created"


def test_a_database_in_a_relative_folder_is_read(world: World, monkeypatch: pytest.MonkeyPatch):
    session = world.add_recorded("opencode")
    monkeypatch.chdir(world.folder)
    home = ClientHome(world.home.path, {**world.home.environ, "XDG_DATA_HOME": "data"}, "linux", world.home.store)
    assert list(client("opencode").find(home, None)) == [session]
    assert json.loads(client("opencode").load(home, session))["info"]["id"] == session.id


def test_a_file_that_is_not_a_database_hides_no_other_sessions(world: World):
    session = world.add_recorded("opencode")
    session.path.write_bytes(b"not a database" * 100)
    assert list(client("opencode").find(world.home, None)) == []
    with pytest.raises(InputError, match="can't be read") as raised:
        world.load(session)
    assert raised.value.path == str(session.path)


# ------------------------------------------------------------------------------------------------------------ settings

CONFIG = '{"model": "acme/%s"}'
DEFAULTS: dict[str, tuple[dict[str, str], tuple[str, str]]] = {
    "user": ({"home/.config/opencode/opencode.json": CONFIG % "m-1"}, ("acme", "m-1")),
    "slash in the name": ({"home/.config/opencode/config.json": CONFIG % "org/m"}, ("acme", "org/m")),
    "comments": (
        {"home/.config/opencode/opencode.jsonc": '// "a"\n{"a": "//",\n/* b */ "model": "acme/m", // c\n}'},
        ("acme", "m"),
    ),
    "project": (
        {"home/.config/opencode/opencode.json": CONFIG % "user", "opencode.json": CONFIG % "project"},
        ("acme", "project"),
    ),
    "folder of the project": (
        {"opencode.json": CONFIG % "project", ".opencode/opencode.jsonc": CONFIG % "folder"},
        ("acme", "folder"),
    ),
    "last chosen": (
        {"home/.local/state/opencode/model.json": '{"recent": [5, {"providerID": "acme", "modelID": "m"}]}'},
        ("acme", "m"),
    ),
    "only provider": (
        {"home/.config/opencode/opencode.json": '{"provider": {"acme": {"models": {"m": {}}}}}'},
        ("acme", "m"),
    ),
    "damaged": (
        {"home/.config/opencode/opencode.json": CONFIG % "m", "opencode.json": "{", "opencode.jsonc": "[]"},
        ("acme", "m"),
    ),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_moved_session_names_the_default_model(world: World, name: str):
    contents, expected = DEFAULTS[name]
    (world.folder / ".git").mkdir()
    for path, content in contents.items():
        (world.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (world.folder / path).write_text(content)
    moved = world.move(world.add_recorded("claude"), "opencode")
    assert moved.report.warnings == ()
    value = json.loads(world.load(moved.session))
    assert value["info"]["model"] == {"id": expected[1], "providerID": expected[0]}
    prompt = value["messages"][0]["info"]
    assert prompt["model"] == {"providerID": expected[0], "modelID": expected[1]}


def test_a_moved_session_names_the_model_that_was_used_last(world: World):
    world.add_recorded("opencode")
    moved = world.move(world.add_recorded("claude"), "opencode")
    model = json.loads(world.load(moved.session))["info"]["model"]
    assert (model["providerID"], model["id"]) == ("segue", "up/claude-sonnet-5")


def test_without_any_model_the_report_has_a_warning(world: World):
    moved = world.move(world.add_recorded("claude"), "opencode")
    (warning,) = moved.report.warnings
    assert warning == (
        "opencode has no default model: choose one in opencode, pass --model PROVIDER/MODEL to opencode run, "
        "or start it with segue with opencode"
    )
    assert "model" not in json.loads(world.load(moved.session))["info"]


def test_the_names_of_mcp_servers_are_those_of_the_settings(world: World):
    log = Opencode()
    log.user("P1")
    log.reply({**log.call("c1", "x", output="R1"), "tool": "my_files_read_it"})
    session = world.add_lines("opencode", log.lines)
    (world.folder / "opencode.json").write_text('{"mcp": {"my": {}, "my.files": {"type": "remote"}}}')
    world.home = ClientHome(
        world.home.path,
        {**world.home.environ, "OPENCODE_CONFIG": str(world.folder / "opencode.json")},
        "linux",
        world.home.store,
    )
    ((name, _, _),) = world.calls(world.move(session, "claude").session)
    assert name == MCP_NAMES["claude"].form.format(server="my_files", tool="read_it")

"""Odd content and places: calls without ids, odd arguments, damaged lines, paths of Windows, a record that can't be
written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from segue.bridge.envelope_keys import load_envelope_keys
from segue.canonical.blocks import Message, ToolCall
from segue.errors import InputError
from segue.sessions.claude.attachments import order_as_sent
from segue.sessions.client import ClientHome
from segue.sessions.codex.writer import display_call
from segue.sessions.move_record import MoveRecord
from segue.sessions.mover import Mover
from segue.sessions.parsed_log import LogLine
from segue.sessions.registry import CLIENTS
from segue.sessions.rendering import split_body
from segue.sessions.session_search import list_sessions
from segue.sessions.translation import Translated, Translator
from tests.cli.client_logs import ClaudeCode, Codex, Contents, Pi
from tests.sessions.record import FOLDER, WORK
from tests.sessions.world import START, World, texts


def translate(source: str, target: str, name: str, arguments: Any, cwd: str = "/w") -> tuple[ToolCall, Translated]:
    translated = Translator(source, target, cwd).translate(Message("ai", (ToolCall(name, arguments, "hist_tool_1"),)))
    (call,) = translated.message.blocks
    assert isinstance(call, ToolCall)
    return call, translated


# --------------------------------------------------------------------------------------------------------------- calls


def test_quoted_arguments_of_a_command_keep_their_white_space():
    call, _ = translate("claude", "codex", "Grep", {"pattern": "a  b\n\tc", "path": "/w/x  y"})
    assert call.arguments == {"cmd": "rg -n --regexp='a  b\n\tc' -- '/w/x  y'"}


def test_numbers_of_lines_that_are_not_numbers_keep_their_place():
    call, _ = translate("claude", "codex", "Read", {"file_path": "/w/a", "offset": 3, "limit": "10"})
    assert call.arguments == {"cmd": "cat -n -- /w/a | sed -n '3,$p'", "limit": "10"}


def test_the_reason_of_an_edit_is_reported_where_a_patch_has_no_place_for_it():
    arguments = {"file_path": "/w/a", "old_string": "x", "new_string": "y", "instruction": "WHY"}
    call, translated = translate("gemini", "codex", "replace", arguments)
    assert call.name == "apply_patch"
    assert translated.removed == ("the reason of an edit removed: a patch has no place for it",)
    call, translated = translate("gemini", "codex", "replace", {**arguments, "old_string": ""})
    assert (call.arguments["instruction"], translated.removed) == ("WHY", ())


def test_output_that_begins_like_a_header_is_kept(world: World):
    log = Codex()
    log.user("Do it.")
    log.line("response_item", type="function_call", name="exec_command", arguments='{"cmd":"x"}', call_id="c1")
    log.line("response_item", type="function_call_output", call_id="c1", output="Output:\nWORDS")
    moved = world.move(world.add_lines("codex", log.lines), "claude").session
    assert world.calls(moved)[0][2] == "Output:\nWORDS"


@pytest.mark.parametrize("id", ["", None])
def test_calls_without_ids_get_ids(world: World, id: str | None):
    log = Contents("qwen")
    log.user("Do it.")
    own = {} if id is None else {"id": id}
    calls = [{"functionCall": {**own, "name": "glob", "args": {"pattern": word}}} for word in ("ONE", "TWO")]
    log.content("model", *calls, {"functionCall": {"id": "c3", "name": "glob", "args": {"pattern": "THREE"}}})
    for word, given in (("ONE", own), ("TWO", own), ("THREE", {"id": "c3"})):
        log.content("user", {"functionResponse": {**given, "name": "glob", "response": {"output": f"RESULT-{word}"}}})
    moved = world.move(world.add_lines("qwen", log.lines), "gemini").session
    assert world.violations(moved) == []
    parts = [item["parts"][0] for item in split_body(world.read(moved).log.body, "gemini")]
    ids = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    assert len(set(filter(None, ids))) == 3
    assert [result for *_, result in world.calls(moved)] == ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]


def test_an_old_call_without_a_result_stays_as_it_is_at_home(world: World):
    log = Contents("gemini")
    log.user("Do it.")
    log.call(("c1", "echo ONE"), ("c2", "echo TWO"))
    log.result("c2", "RESULT-TWO")
    log.answer("Stopped.")
    log.user("Again.")
    log.call(("c1", "echo THREE"))
    log.result("c1", "RESULT-THREE")
    log.answer("Done.")
    home = world.add_lines("gemini", log.lines)
    away = world.move(home, "claude").session
    world.resume(away)
    assert world.move(away, "gemini").report.action == "extended"
    assert [result for *_, result in world.calls(home)][1:3] == ["RESULT-TWO", "RESULT-THREE"]
    assert texts(world.read(home), "ai")[-1] == "leg1 answer."


def test_replies_of_white_space_are_not_written(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    log.reply("m1", {"type": "text", "text": "\n"}, {"type": "tool_use", "id": "t1", "name": "x", "input": {}})
    log.result("t1", "RESULT")
    log.reply("m2", {"type": "text", "text": "Done."})
    moved = world.move(world.add_lines("claude", log.lines), "codex").session
    assert texts(world.read(moved), "ai") == ["Done."]


def test_the_name_of_a_document_is_carried_to_opencode_and_back(tmp_path: Path):
    world = World(tmp_path)
    log = Codex()
    data = "data:application/pdf;base64,JVBERi0="
    content = [
        {"type": "input_text", "text": "Read it."},
        {"type": "input_file", "filename": "a.pdf", "file_data": data},
    ]
    log.line("response_item", type="message", role="user", content=content)
    log.answer("Done.")
    moved = world.move(world.add_lines("codex", log.lines), "opencode").session
    (item,) = [item for item in split_body(world.read(moved).log.body, "anthropic") if "source" in item["content"][0]]
    assert item["content"][0]["title"] == "a.pdf"


@pytest.mark.parametrize("target", ["pi", "opencode"])
def test_documents_of_text_become_text(tmp_path: Path, target: str):
    world = World(tmp_path)
    source = {"type": "text", "media_type": "text/plain", "data": "NOTES"}
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "FOUND"}]}
    log = ClaudeCode()
    log.user([{"type": "text", "text": "Read it."}, {"type": "document", "title": "n.txt", "source": source}])
    log.reply("m1", {"type": "tool_use", "id": "t1", "name": "x", "input": {}})
    log.user([{"type": "tool_result", "tool_use_id": "t1", "content": [found]}])
    log.reply("m2", {"type": "text", "text": "Done."})
    moved = world.move(world.add_lines("claude", log.lines), target).session
    assert "NOTES" in "".join(texts(world.read(moved), "human"))
    assert "FOUND" in world.calls(moved)[0][2]


def test_an_exported_session_of_opencode_is_continued_in_a_copy(tmp_path: Path):
    world = World(tmp_path)
    file = tmp_path / "export.json"
    content = (FOLDER / "opencode.json").read_text().replace(WORK, str(tmp_path))
    file.write_text(content)
    away = world.move(CLIENTS["opencode"].describe(file), "claude").session
    world.resume(away)
    back = world.move(away, "opencode")
    assert (back.report.action, back.session.path) == ("copied", tmp_path / "data" / "opencode" / "opencode.db")
    assert file.read_text() == content
    assert "First answer." in texts(world.read(back.session), "ai")
    assert texts(world.read(back.session), "ai")[-1] == "leg1 answer."


# ------------------------------------------------------------------------------------------------------------- Windows


@pytest.mark.parametrize(
    ("path", "cwd", "absolute"),
    [
        ("a.txt", "/w", "/w/a.txt"),
        ("/x/a.txt", "/w", "/x/a.txt"),
        ("src\\a.txt", "C:\\Users\\me", "C:\\Users\\me\\src\\a.txt"),
        ("a.txt", "C:\\", "C:\\a.txt"),
        ("D:\\a.txt", "C:\\Users\\me", "D:\\a.txt"),
        ("d:/a.txt", "C:\\Users\\me", "d:/a.txt"),
        ("\\\\host\\share\\a.txt", "C:\\Users\\me", "\\\\host\\share\\a.txt"),
        ("C:\\a.txt", "/w", "C:\\a.txt"),
    ],
)
def test_paths_of_patches_become_absolute(path: str, cwd: str, absolute: str):
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"
    call, _ = translate("codex", "claude", "apply_patch", patch, cwd)
    assert call.arguments == {"file_path": absolute, "content": "x\n"}


@pytest.mark.parametrize(
    "words",
    [
        ["bash", "-lc"],
        ["/usr/bin/zsh", "-c"],
        ["C:\\Program Files\\Git\\bin\\bash.exe", "-lc"],
        ["powershell.exe", "-NoProfile", "-Command"],
        ["C:\\Windows\\System32\\cmd.exe", "/c"],
    ],
)
def test_the_script_of_a_shell_is_the_command(words: list[str]):
    call, _ = translate("codex", "claude", "shell", {"command": [*words, "dir  /b"]})
    assert call.arguments == {"command": "dir  /b"}
    call, _ = translate("codex", "claude", "shell", {"command": ["git", "-c", "a b"]})
    assert call.arguments == {"command": "git -c 'a b'"}


def test_the_screen_of_codex_gets_urls_of_windows_paths():
    call = {"name": "view_image", "call_id": "c1", "arguments": '{"path":"C:\\\\a b\\\\x.png"}'}
    shown = display_call(call, {"output": ""}, "C:\\")
    assert shown is not None
    assert shown["path"] == "file:///C:/a%20b/x.png"


@pytest.mark.parametrize("recorded", ["C:\\Users\\me", "c:\\users\\me", "C:/Users/me/", "\\\\?\\C:\\Users\\me"])
def test_folders_of_windows_are_compared_without_case_and_slashes(recorded: str):
    assert ClientHome(Path("/h"), {}, "win32").is_same_folder(recorded, "C:\\Users\\me")
    assert ClientHome(Path("/h"), {}, "linux").is_same_folder(recorded, "C:\\Users\\me") == (
        recorded == "C:\\Users\\me"
    )
    assert not ClientHome(Path("/h"), {}, "win32").is_same_folder(None, "C:\\Users\\me")


def test_gemini_records_folders_of_windows_in_lower_case(world: World):
    world.home = ClientHome(world.home.path, {}, "win32")
    session = world.add_recorded("claude")
    mover = Mover(world.home, world.record, START)
    plan = mover.plan(CLIENTS["claude"], session, CLIENTS["gemini"], "C:\\Users\\Me\\My Project")
    moved = mover.write(plan).session
    assert moved.path.parent.parent.name == "my-project"
    assert (moved.path.parent.parent / ".project_root").read_text() == "c:\\users\\me\\my project"


# -------------------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("client", "line"),
    [
        ("claude", {"type": "user", "uuid": ["u"], "parentUuid": None, "sessionId": "s", "message": {"role": "user"}}),
        ("claude", {"type": ["user"], "message": "text"}),
        ("codex", {"type": {}, "payload": {"type": "message"}}),
        ("gemini", {"type": ["user"], "id": "m1"}),
        ("qwen", {"type": "user", "uuid": "u", "parentUuid": {}}),
        ("pi", {"type": "message", "id": "e1", "parentId": []}),
    ],
)
def test_a_line_with_another_value_than_a_name_is_refused_with_its_place(
    world: World, client: str, line: dict[str, Any]
):
    home = world.add_recorded(client)
    count = len(home.path.read_bytes().splitlines())
    damaged = world.add_lines(client, [*map(json.loads, home.path.read_bytes().splitlines()), line])
    assert damaged in list_sessions(CLIENTS.values(), world.home, None)
    target = "codex" if client == "claude" else "claude"
    with pytest.raises(InputError) as caught:
        world.move(damaged, target)
    assert caught.value.path.startswith(f"{damaged.path}: line {count + 1}: ")
    assert [each.client for each in list_sessions(CLIENTS.values(), world.home, None)] == [client]


BAD_JSON = [b"", b"{", b'{"pid": "\xff"}', b"[" * 100_000]


@pytest.mark.parametrize("data", BAD_JSON)
def test_a_file_of_gemini_that_is_not_json_hides_no_sessions(world: World, data: bytes):
    session = world.add_recorded("gemini")
    session.path.with_name("session-2026-11-18T05-01-0a1b2c3e.json").write_bytes(data)
    assert list_sessions(CLIENTS.values(), world.home, None) == [session]


@pytest.mark.parametrize("data", BAD_JSON)
def test_a_registry_of_gemini_that_is_not_json_is_ignored(world: World, data: bytes):
    (world.home.path / ".gemini").mkdir(parents=True)
    (world.home.path / ".gemini" / "projects.json").write_bytes(data)
    assert world.move(world.add_recorded("claude"), "gemini").report.action == "created"


@pytest.mark.parametrize("data", BAD_JSON)
@pytest.mark.parametrize(
    ("client", "file"), [("claude", ".claude/sessions/1.json"), ("qwen", ".qwen/tmp/session-writer-locks/{id}.lock")]
)
def test_a_record_of_open_sessions_that_is_not_json_is_ignored(world: World, client: str, file: str, data: bytes):
    session = world.add_recorded(client)
    path = world.home.path / file.format(id=session.id)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert not CLIENTS[client].is_open(world.home, session)


@pytest.mark.parametrize("arguments", ["", "{", "[]", "[" * 100_000, '{"cmd": "\ud800'])
def test_the_screen_of_codex_shows_calls_whose_arguments_are_not_json(arguments: str):
    call = {"name": "exec_command", "call_id": "c1", "arguments": arguments}
    shown = display_call(call, {"output": "out"}, "/w")
    assert shown is not None
    assert (shown["command"], shown["aggregated_output"]) == (["bash", "-lc", ""], "out")


@pytest.mark.parametrize("kind", [["file"], {}, 5, None])
def test_an_attachment_of_an_odd_type_keeps_its_place(kind: object):
    lines = [LogLine(number, {"attachment": {"type": each}}) for number, each in enumerate(["none", kind])]
    assert order_as_sent(lines) == lines


def test_summaries_of_pi_have_headings_by_their_kind(world: World):
    log = Pi()
    log.message("compactionSummary", None, summary="S1")
    log.message("branchSummary", None, summary="S2")
    log.user("P1")
    found = texts(world.read(world.add_lines("pi", log.lines)), "human")
    assert found[:2] == ["Summary of the conversation before:\n\nS1", "Summary of a branch that was left:\n\nS2"]


@pytest.mark.parametrize(
    ("role", "content", "message"),
    [
        ("tool", [], "unsupported message role 'tool'"),
        ("user", [{"type": "video"}], "unsupported content type 'video'"),
    ],
)
def test_messages_of_pi_that_are_not_supported_are_refused(world: World, role: str, content: Any, message: str):
    log = Pi()
    log.user("P1")
    log.message(role, content)
    with pytest.raises(InputError, match=message) as raised:
        world.read(world.add_lines("pi", log.lines))
    assert raised.value.message == message


def test_a_message_that_is_no_object_does_not_prevent_the_list(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    log.lines.append({"type": "user", "uuid": "u9", "sessionId": "s", "message": "text"})
    session = world.add_lines("claude", log.lines)
    assert session in list_sessions(CLIENTS.values(), world.home, None)


def test_a_pipe_in_the_folder_of_sessions_is_not_read(world: World):
    session = world.add_recorded("claude")
    os.mkfifo(session.path.with_name("pipe.jsonl"))
    assert list_sessions(CLIENTS.values(), world.home, Path(WORK)) == [session]


def test_a_folder_with_characters_of_patterns_has_its_sessions(world: World):
    mover = Mover(world.home, world.record, START)
    session = world.add_recorded("claude")
    moved = mover.write(mover.plan(CLIENTS["claude"], session, CLIENTS["pi"], "/home/me/[a]*?")).session
    assert [each.id for each in CLIENTS["pi"].find(world.home, Path("/home/me/[a]*?"))] == [moved.id]


def test_nothing_is_written_if_the_move_can_not_be_recorded(world: World, tmp_path: Path):
    (tmp_path / "file").write_text("")
    world.record = MoveRecord(tmp_path / "file" / "moves.db")
    session = world.add_recorded("claude")
    with pytest.raises(InputError, match="the record of moved sessions can't be written"):
        world.move(session, "codex")
    assert [each.client for each in list_sessions(CLIENTS.values(), world.home, None)] == ["claude"]


def test_a_key_whose_place_can_not_be_read_is_an_error_with_its_place(tmp_path: Path):
    path = tmp_path / ("x" * 300)
    with pytest.raises(InputError, match="the envelope key can't be written") as caught:
        load_envelope_keys(path)
    assert caught.value.path == str(path)

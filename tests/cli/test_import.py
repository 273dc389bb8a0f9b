"""`segue import`: bodies, exports and client logs become conversations; on errors nothing is written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Message, Text, Thinking, ToolCall, ToolResponse, text_of
from segue.store.events import Renamed
from segue.store.replay import replay_events
from segue.view.format import format_result
from segue.wire.registry import WIRES
from tests.bodies.anthropic import text
from tests.cli.bodies import CALL_MESSAGE, GOOD, OPEN, QUESTION, RESULT
from tests.cli.client_logs import ClaudeCode, Codex, use
from tests.cli.process import SEGUE, environment, is_one_line_error, run
from tests.cli.store_cli import StoreCli, json_lines
from tests.work import count_work


def messages_of(store_cli: StoreCli, id: str) -> tuple[Message, ...]:
    with store_cli.store() as store:
        return replay_events(store.events(id)).chat.messages


def import_messages(store_cli: StoreCli, data: bytes, *options: str) -> list[str]:
    """The imported messages, one line per block."""
    ended = store_cli("import", *options, stdin=data)
    assert ended.code == 0, ended.err
    lines: list[str] = []
    for message in messages_of(store_cli, ended.out.strip()):
        for block in message.blocks:
            match block:
                case Text():
                    lines.append(f"{message.speaker}: {block.text}")
                case ToolCall():
                    lines.append(f"call {block.raw_id}")
                case ToolResponse():
                    lines.append(f"result {block.origin.raw_id}: {format_result(block)}")
                case Thinking():
                    lines.append(f"thinking: {block.text}")
                case _:
                    lines.append(type(block).__name__)
    return lines


# ------------------------------------------------------------------------------------------------------------ bodies


def test_imported_body_is_stored_and_its_id_printed(store_cli: StoreCli):
    ended = store_cli("import", "--title", "Weather", stdin=GOOD)
    assert (ended.code, ended.err) == (0, "")
    [row] = store_cli("log", "--json").json
    assert (ended.out, row["title"], row["messages"]) == (f"{row['id']}\n", "Weather", 3)
    assert store_cli.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("api", WIRES)
def test_body_of_every_api_round_trips(store_cli: StoreCli, api: str):
    body = segue.convert(GOOD, target=api).data
    id = store_cli("import", "--from", api, stdin=body).out.strip()
    assert json.loads(store_cli("export", id, "--format", api).out) == json.loads(body)


def test_api_is_detected_and_model_kept(store_cli: StoreCli):
    body = segue.convert(GOOD, target="anthropic", model="claude-sonnet-4-5").data
    output = store_cli("import", "--json", stdin=body).json
    assert (output["kind"], output["messages"], output["left_out"]) == ("body", 3, {})
    [row] = store_cli("log", "--json").json
    assert row["model"] == "claude-sonnet-4-5"


def test_pending_calls_stay_pending(store_cli: StoreCli):
    body = json.dumps({"messages": [QUESTION, CALL_MESSAGE]}).encode()
    id = store_cli("import", stdin=body).out.strip()
    with store_cli.store() as store:
        assert len(replay_events(store.events(id)).chat.pending) == 1
        assert store.lease(id) is None


def test_a_list_of_messages_and_lines_of_messages_are_the_same(store_cli: StoreCli):
    messages = [QUESTION, CALL_MESSAGE, RESULT]
    wanted = import_messages(store_cli, json.dumps({"messages": messages}).encode())
    assert import_messages(store_cli, json.dumps(messages).encode()) == wanted
    assert import_messages(store_cli, json_lines(messages)) == wanted
    assert import_messages(store_cli, b"\n\n" + json_lines(messages).replace(b"\n", b"\r\n")) == wanted
    assert import_messages(store_cli, json_lines(messages), "--from", "kimi") == wanted


def test_lines_of_different_apis_are_detected(store_cli: StoreCli):
    contents = segue.convert(GOOD, target="gemini").body["contents"]
    items = segue.convert(GOOD, target="openai-responses").body["input"]
    for lines in (contents, items):
        first, *_, result = import_messages(store_cli, json_lines(lines))
        assert first == "human: How is the weather in Lisbon?"
        assert result.endswith(": sunny")


# ----------------------------------------------------------------------------------------------------------- exports


def test_export_round_trips_all_events(store_cli: StoreCli):
    id = store_cli.add_conversation()
    store_cli("compress", id, "--strategy", "drop-oldest", "--budget", "10")
    exported = store_cli("export", id, "--format", "json").out
    copy = store_cli("import", stdin=exported.encode()).out.strip()
    assert copy != id
    with store_cli.store() as store:
        assert [r.event for r in store.events(copy)] == [r.event for r in store.events(id)]
        assert store.get(copy).title == "Shopping"
    assert store_cli("compress", copy, "--undo").code == 0
    assert len(messages_of(store_cli, copy)) == 4


def test_given_title_overrides_and_moves_no_event(store_cli: StoreCli):
    exported = store_cli("export", store_cli.add_conversation(), "--format", "json").out
    copy = store_cli("import", "--title", "Mine", stdin=exported.encode()).out.strip()
    with store_cli.store() as store:
        assert store.get(copy).title == "Mine"
        assert store.get(copy).seq == len(json.loads(exported)["events"]) + 1


def test_conversation_dump_is_imported(store_cli: StoreCli):
    chat = segue.Conversation.from_body(GOOD)
    assert len(import_messages(store_cli, chat.dump())) == 3


# ------------------------------------------------------------------------------------------------------- Claude Code


def test_claude_code_blocks_on_lines_of_their_own_are_one_reply(store_cli: StoreCli):
    log = ClaudeCode()
    log.other(type="file-history-snapshot", messageId="m", snapshot={}, isSnapshotUpdate=False)
    log.other(type="ai-title", aiTitle="Reading", sessionId="s")
    log.user("Read a and b")
    log.reply("msg_1", {"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    log.reply("msg_1", text("I read."))
    log.reply("msg_1", use("toolu_1", file_path="a"))
    log.entry("progress", data={"type": "hook_progress"})
    log.result("toolu_1", "A")
    log.reply("msg_2", text("Done."))
    data = json_lines(log.lines)
    assert import_messages(store_cli, data) == [
        *("human: Read a and b", "thinking: hm", "ai: I read.", "call toolu_1", "result toolu_1: A", "ai: Done.")
    ]
    [row] = store_cli("log", "--json").json
    assert (row["title"], row["model"], row["messages"]) == ("Reading", "claude-opus-4-6", 4)


def test_claude_code_results_of_parallel_calls_are_all_there(store_cli: StoreCli):
    """Each hangs below its own call: the way up from the last one passes only that."""
    log = ClaudeCode()
    log.user("Read a, b and c")
    one = log.reply("msg_1", use("toolu_1", file_path="a"))
    two = log.reply("msg_1", use("toolu_2", file_path="b"))
    three = log.reply("msg_1", use("toolu_3", file_path="c"))
    log.result("toolu_1", "A", below=one)
    log.result("toolu_3", "C", below=three)
    log.result("toolu_2", "B", below=two)
    log.reply("msg_2", text("Done."))
    lines = import_messages(store_cli, json_lines(log.lines))
    assert lines[1:4] == ["call toolu_1", "call toolu_2", "call toolu_3"]
    assert sorted(lines[4:7]) == ["result toolu_1: A", "result toolu_2: B", "result toolu_3: C"]
    [row] = store_cli("log", "--json").json
    body = store_cli("export", row["id"], "--format", "anthropic").out
    assert segue.check(body, "anthropic")


def test_claude_code_abandoned_branches_are_skipped(store_cli: StoreCli):
    log = ClaudeCode()
    first = log.user("One")
    log.reply("msg_1", text("Left."), below=first)
    log.user("Never mind")
    log.reply("msg_2", text("Taken."), below=first)
    ended = store_cli("import", "--json", stdin=json_lines(log.lines))
    assert ended.json["left_out"] == {"lines on branches that were left": 2}
    assert [text_of(m.blocks) for m in messages_of(store_cli, ended.json["id"])] == ["One", "Taken."]
    assert "not imported: 2 lines on branches" in store_cli("import", stdin=json_lines(log.lines)).err


def test_claude_code_subagents_are_conversations_of_their_own(store_cli: StoreCli):
    log = ClaudeCode()
    log.user("Main")
    main = log.last
    log.user("Side", below=None, isSidechain=True, agentId="a")
    log.reply("msg_9", text("Side answer"), isSidechain=True, agentId="a")
    log.reply("msg_1", text("Main answer"), below=main)
    assert import_messages(store_cli, json_lines(log.lines)) == ["human: Main", "ai: Main answer"]
    side = [line for line in log.lines if line["isSidechain"]]
    assert import_messages(store_cli, json_lines(side)) == ["human: Side", "ai: Side answer"]


def test_claude_code_compaction_is_the_starting_point(store_cli: StoreCli):
    log = ClaudeCode()
    log.user("Old")
    log.reply("msg_1", text("Old answer"))
    boundary: Any = {"subtype": "compact_boundary", "content": "Conversation compacted"}
    log.entry("system", below=None, logicalParentUuid=log.last, **boundary)
    log.user("This is the summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    log.reply("msg_2", text("New answer"))
    assert import_messages(store_cli, json_lines(log.lines)) == ["human: This is the summary", "ai: New answer"]


def test_claude_code_keeps_what_a_compaction_preserves(store_cli: StoreCli):
    log = ClaudeCode()
    log.user("Old")
    log.reply("msg_1", text("Old answer"))
    preserved = log.user("Kept over")
    about = {"trigger": "auto", "preservedMessages": {"anchorUuid": "u2", "uuids": [preserved]}}
    boundary = log.entry("system", below=None, subtype="compact_boundary", compactMetadata=about)
    log.user("Summary", below=boundary, isCompactSummary=True)
    log.reply("msg_2", text("New answer"), below=preserved)
    assert import_messages(store_cli, json_lines(log.lines)) == ["human: Summary", "human: Kept over", "ai: New answer"]


def test_claude_code_error_lines_are_not_replies(store_cli: StoreCli):
    log = ClaudeCode()
    log.user("Hi")
    log.reply("x", text("API Error: 529"), isApiErrorMessage=True)
    log.lines[-1]["message"]["model"] = "<synthetic>"
    log.user("Again")
    log.reply("msg_1", text("Hello"))
    assert import_messages(store_cli, json_lines(log.lines)) == ["human: Hi", "human: Again", "ai: Hello"]


def test_claude_code_repeated_reply_lines_add_nothing(store_cli: StoreCli):
    log = ClaudeCode()
    log.user("Hi")
    log.reply("msg_1", text("I read."))
    log.reply("msg_1", text("I read."), use("toolu_1", file_path="a"))
    log.result("toolu_1", "A")
    log.lines.append(log.lines[-1])
    assert import_messages(store_cli, json_lines(log.lines)) == [
        "human: Hi",
        "ai: I read.",
        "call toolu_1",
        "result toolu_1: A",
    ]


def test_claude_code_prints_the_same_without_parents(store_cli: StoreCli):
    assistant: Any = {"type": "assistant", "session_id": "s", "parent_tool_use_id": None}
    user: Any = {**assistant, "type": "user"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"}
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Read"]},
        {**assistant, "message": {"id": "msg_1", "role": "assistant", "content": [text("I read.")]}},
        {**assistant, "message": {"id": "msg_1", "role": "assistant", "content": [use("toolu_1", file_path="a")]}},
        {**user, "parent_tool_use_id": "toolu_1", "message": {"role": "user", "content": "to a subagent"}},
        {**user, "message": {"role": "user", "content": [result]}},
        {"type": "result", "subtype": "success", "session_id": "s", "result": "Done."},
    ]
    assert import_messages(store_cli, json_lines(lines)) == ["ai: I read.", "call toolu_1", "result toolu_1: A"]


def test_work_grows_with_the_length_of_a_claude_code_session(store_cli: StoreCli):
    def import_session(exchanges: int) -> None:
        log = ClaudeCode()
        for number in range(exchanges):
            log.user(f"Read {number}")
            log.reply(f"msg_{number}", use(f"toolu_{number}", file_path="a"))
            log.result(f"toolu_{number}", "A")
            log.reply(f"msg_{number}b", text("Done."))
        assert store_cli("import", "--json", stdin=json_lines(log.lines)).json["messages"] == 4 * exchanges

    import_session(10)
    once, short, long = (count_work(lambda count=count: import_session(count)) for count in (10, 40, 130))
    assert long - once < 4.3 * (short - once), (once, short, long)


# ------------------------------------------------------------------------------------------------------------- Codex


def test_codex_items_are_the_conversation_and_events_are_not(store_cli: StoreCli):
    log = Codex(base_instructions={"text": "You are Codex."}, model_provider="openai")
    log.line("turn_context", model="gpt-5.5", cwd="/work")
    log.user("List the files")
    log.line("event_msg", type="agent_reasoning", text="Look")
    summary = [{"type": "summary_text", "text": "Look"}]
    log.line("response_item", type="reasoning", summary=summary, content=None, encrypted_content="gAAA")
    log.call("call_1", "a.txt")
    log.line("response_item", type="ghost_snapshot", ghost_commit={"id": "x"})
    log.answer("One file.")
    log.line("event_msg", type="token_count", info=None)
    wanted = ["human: List the files", "thinking: Look", "call call_1", "result call_1: a.txt", "ai: One file."]
    assert import_messages(store_cli, json_lines(log.lines)) == wanted
    [row] = store_cli("log", "--json").json
    assert row["model"] == "gpt-5.5"
    body = json.loads(store_cli("export", row["id"], "--format", "openai-responses").out)
    assert (body["instructions"], body["model"]) == ("You are Codex.", "gpt-5.5")
    assert segue.check(body, "openai-responses")


def test_codex_rolled_back_turns_are_skipped(store_cli: StoreCli):
    log = Codex()
    log.user("<environment_context>cwd</environment_context>")
    log.user("One")
    log.answer("Answer one")
    log.user("Two")
    log.call("call_1", "x")
    log.user("Three")
    log.line("event_msg", type="thread_rolled_back", num_turns=2)
    log.user("Four")
    lines = import_messages(store_cli, json_lines(log.lines))
    assert lines[1:] == ["human: One", "ai: Answer one", "human: Four"]


def test_codex_compaction_is_the_starting_point(store_cli: StoreCli):
    log = Codex()
    log.user("One")
    log.answer("Answer one")
    log.line("compacted", message="What went before: one.")
    log.user("Two")
    assert import_messages(store_cli, json_lines(log.lines)) == [
        "human: One",
        "human: What went before: one.",
        "human: Two",
    ]
    instead = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Short"}]}]
    log.line("compacted", message="", replacement_history=instead)
    log.answer("Answer two")
    assert import_messages(store_cli, json_lines(log.lines)) == ["human: Short", "ai: Answer two"]


def test_codex_oldest_logs_have_their_items_bare(store_cli: StoreCli):
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    head = {"id": "s", "timestamp": "2025-07-01T00:00:00Z", "instructions": "Be brief."}
    lines = [head, {"record_type": "state"}, item, call]
    assert import_messages(store_cli, json_lines(lines)) == ["human: Hi", "call c"]


# ----------------------------------------------------------------------------------------------------- when and what


def times(store_cli: StoreCli, id: str) -> list[str]:
    return [event["at"] for event in store_cli("log", "show", id, "--all", "--json").json["events"]]


def list_imported(store_cli: StoreCli, data: bytes, *arguments: str) -> Any:
    id = store_cli("import", *arguments, stdin=data).out.strip()
    [row] = [row for row in store_cli("log", "--json").json if row["id"] == id]
    return row


def test_a_session_of_claude_code_is_as_old_as_it_is(store_cli: StoreCli):
    log = ClaudeCode()
    log.user("Read", timestamp="2025-10-01T08:00:00.000Z")
    log.reply("msg_1", text("I read."), timestamp="2025-10-01T08:00:05.000Z")
    log.reply("msg_1", use("toolu_1", file_path="a"), timestamp="2025-10-01T08:00:06.000Z")
    log.result("toolu_1", "A")
    log.lines[-1]["timestamp"] = "2025-10-01T10:01:00.000+02:00"
    log.reply("msg_2", text("Done."), timestamp="2025-10-01T08:02:00.000Z")
    row = list_imported(store_cli, json_lines(log.lines), "--title", "Old")
    assert (row["created"], row["updated"]) == ("2025-10-01T08:00:00.000Z", "2025-10-01T08:02:00.000Z")
    assert [at[11:19] for at in times(store_cli, row["id"])] == [
        *("08:00:00", "08:00:00", "08:00:00", "08:00:06", "08:01:00", "08:02:00", "08:02:00")
    ]
    today = store_cli.add_conversation()
    assert [line.split()[0] for line in store_cli("log").lines[1:]] == [today, row["id"]]


def test_a_session_of_codex_is_as_old_as_it_is(store_cli: StoreCli):
    log = Codex()
    log.user("List")
    log.call("call_1", "a.txt")
    log.answer("One file.")
    log.answer("One file.")
    for minute, line in enumerate(log.lines):
        line["timestamp"] = f"2025-10-01T08:{minute:02}:00Z"
    row = list_imported(store_cli, json_lines(log.lines))
    assert (row["created"][:16], row["updated"][:16]) == ("2025-10-01T08:01", "2025-10-01T08:08")


@pytest.mark.parametrize("stamp", ["yesterday", "", 5, None, "9999-01-01T00:00:00Z"])
def test_missing_or_future_time_becomes_now(store_cli: StoreCli, stamp: Any):
    log = ClaudeCode()
    log.user("Hi", timestamp=stamp)
    log.reply("msg_1", text("Hello"), timestamp=stamp)
    row = list_imported(store_cli, json_lines(log.lines))
    assert row["messages"] == 2
    assert row["updated"][:4] == row["created"][:4] != "9999"


def test_export_keeps_its_times(store_cli: StoreCli):
    with store_cli.store() as store:
        old = store.create("old", at=1_600_000_000_000_001)
        store.append(old, 1, [Renamed("a"), Renamed("b")], at=[1_600_000_001_000_000, 1_600_000_002_123_456])
        new = store.create("new", at=1_700_000_000_000_000)
    copies = [
        store_cli("import", stdin=store_cli("export", id, "--format", "json").out.encode()).out.strip()
        for id in (new, old)
    ]
    with store_cli.store() as store:
        assert [record.at for record in store.events(copies[1])] == [record.at for record in store.events(old)]
        assert store.get(copies[1]).created == store.get(old).created
        assert [row.title for row in store.list()] == ["new", "new", "b", "b"]
        assert [record.event for record in store.events(copies[1])] == [record.event for record in store.events(old)]


def test_export_without_times_uses_the_conversation_time(store_cli: StoreCli):
    exported = json.loads(store_cli("export", store_cli.add_conversation(), "--format", "json").out)
    for event in exported["events"]:
        del event["at"]
    exported |= {"created": "2025-10-01T08:00:00.000Z", "updated": "2025-10-02T08:00:00.000Z"}
    row = list_imported(store_cli, json.dumps(exported).encode())
    assert (row["created"], row["updated"]) == (exported["created"], exported["updated"])
    del exported["created"], exported["updated"]
    assert list_imported(store_cli, json.dumps(exported).encode())["messages"] == 4


def test_the_titles_of_other_sessions_are_not_this_ones(store_cli: StoreCli):
    log = ClaudeCode()
    log.other(type="summary", summary="Another session", leafUuid="elsewhere")
    log.other(type="ai-title", aiTitle="Nor this", sessionId="other")
    log.user("Mine")
    log.reply("msg_1", text("Yes"))
    row = list_imported(store_cli, json_lines(log.lines))
    assert (row["title"], row["opening"]) == (None, "Mine")
    log.other(type="summary", summary="This session", leafUuid=log.last)
    assert list_imported(store_cli, json_lines(log.lines))["title"] == "This session"


def test_session_title_is_the_first_user_text(store_cli: StoreCli):
    log = Codex()
    log.user("<environment_context>\n<cwd>/work</cwd></environment_context>")
    log.user("# AGENTS.md instructions for /work")
    log.user("<skill>\nsomething new</skill>")
    log.user("Mend the  login\nplease")
    assert list_imported(store_cli, json_lines(log.lines))["title"] == "Mend the login please"
    instead = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What went before"}]}]
    log.line("compacted", message="", replacement_history=instead)
    log.user("Go on")
    assert list_imported(store_cli, json_lines(log.lines))["title"] == "Mend the login please"

    session = ClaudeCode()
    session.user("Caveat: what follows was typed into a shell", isMeta=True)
    session.user("<command-name>/clear</command-name>")
    session.user([text("Write a poem " + "about trees " * 20)])
    session.reply("msg_1", text("Trees."))
    assert list_imported(store_cli, json_lines(session.lines))["title"].startswith("Write a poem about trees")
    assert len(list_imported(store_cli, json_lines(session.lines))["title"]) == 80
    session.entry("system", below=None, subtype="compact_boundary")
    session.user("This session is being continued from a previous conversation", isCompactSummary=True)
    session.reply("msg_2", text("On."))
    assert list_imported(store_cli, json_lines(session.lines))["title"].startswith("Write a poem about trees")


TORN = [b'{"type":"assist', b'{"type":"user","message":{"content":"\xc3']


@pytest.mark.parametrize("torn", TORN)
def test_truncated_log_is_imported_up_to_the_cut(store_cli: StoreCli, torn: bytes):
    log = ClaudeCode()
    log.user("Hi")
    log.reply("msg_1", text("Hello"))
    ended = store_cli("import", stdin=json_lines(log.lines) + torn)
    assert ended.code == 0
    assert "not imported: 1 line at the end that is cut off (line 3)" in ended.err
    assert len(messages_of(store_cli, ended.out.strip())) == 2
    codex = Codex()
    codex.user("Hi")
    assert store_cli("import", "--json", stdin=json_lines(codex.lines) + torn).json["left_out"]
    assert store_cli("import", stdin=json_lines([QUESTION]) + torn).code == 0
    assert store_cli("import", stdin=json_lines([{"messages": [QUESTION]}]) + torn).code == 0


def test_a_line_has_one_number(store_cli: StoreCli):
    ended = store_cli("import", stdin=json_lines([QUESTION]) + b'{"role": oops}\n' + json_lines([QUESTION]))
    assert ended.is_one_line_error
    assert "line 2: " in ended.err
    assert "line 1" not in ended.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_import_is_reported_when_stdout_is_full(store_cli: StoreCli):
    def full(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
        with Path("/dev/full").open("wb") as out:
            variables = environment(SEGUE_STORE=str(store_cli.path))
            ended = subprocess.run(
                [*SEGUE, *arguments], input=stdin, stdout=out, stderr=subprocess.PIPE, env=variables, check=False
            )
        return ended.returncode, ended.stderr.decode()

    code, output = full("import", stdin=OPEN)
    [row] = store_cli("log", "--json").json
    assert (code, output.splitlines()[0]) == (
        1,
        f"segue: stored, although the output could not be written: {row['id']}",
    )
    id = store_cli.add_conversation()
    code, output = full("compress", id, "--strategy", "drop-oldest", "--budget", "5")
    assert (code, output.splitlines()[0]) == (1, f"segue: compressed, although the output could not be written: {id}")
    code, output = full("log", "delete", id, "--yes")
    assert (code, output.splitlines()[0]) == (1, f"segue: deleted, although the output could not be written: {id}")


# ------------------------------------------------------------------------------------------------------ what is wrong

CLAUDE = ClaudeCode()
CLAUDE.user("Hi")
CLAUDE.reply("msg_1", text("Hello"))
WRONG: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "empty"),
    "no JSON": (b"hello", ""),
    "a number": (b"5", "expected a request body or a list"),
    "no messages": (b"[]", "expected a request body or a list"),
    "a list of words": (b'["a"]', "expected a request body or a list"),
    "no body": (b'{"a": 1}', "messages"),
    "a torn line in the middle": (
        json_lines(CLAUDE.lines) + b'{"type":"assist\n' + json_lines(CLAUDE.lines),
        "line 3: ",
    ),
    "a last line of something else": (json_lines(CLAUDE.lines) + b"the end", "line 3: "),
    "a line of something else": (json_lines([QUESTION, {"a": 1}]), "line 2: "),
    "a line that is no object": (json_lines([QUESTION, 5]), "line 2: expected a JSON object"),
    "bodies": (json_lines([{"messages": [QUESTION]}, {"messages": [QUESTION]}]), "lines is a request body"),
    "a wrong role": (json_lines([QUESTION, {"role": "wizard", "content": "x"}]), "line 2: messages[1]"),
    "an empty session": (json_lines([{"type": "session_meta", "payload": {}}] * 2), "this session has no messages"),
    "an item without a type": (json_lines([{"type": "response_item", "payload": {}}] * 2), "line 1: "),
    "turns that are none": (
        json_lines([{"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": "x"}}] * 2),
        "line 1: expected a number of turns",
    ),
    "another version": (b'{"segue": 99, "kind": "events", "events": []}', "version"),
    "no events": (b'{"segue": 1, "kind": "events"}', "events"),
    "an event that is none": (b'{"segue": 1, "kind": "events", "events": [{"type": "added"}]}', "events[0]"),
    "events that do not go together": (
        b'{"segue": 1, "kind": "events", "events": [{"type": "rewound", "turn": "turn-9"}]}',
        "turn-9",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_unreadable_input_names_its_place_and_writes_nothing(store_cli: StoreCli, name: str):
    data, words = WRONG[name]
    file = store_cli.write_file("log.jsonl", data)
    ended = store_cli("import", file)
    assert (ended.code, ended.is_one_line_error) == (2, True), ended
    assert words in ended.err
    assert file in ended.err
    assert not store_cli.path.exists()


def test_failed_store_keeps_no_partial_import(store_cli: StoreCli, monkeypatch: pytest.MonkeyPatch):
    from segue.errors import StoreError
    from segue.store.sqlite import SqliteStore

    exported = store_cli("export", store_cli.add_conversation(), "--format", "json").out.encode()

    def full(*_: object, **__: object) -> int:
        raise StoreError("no room", cause="full")

    monkeypatch.setattr(SqliteStore, "_insert_events", full)
    ended = store_cli("import", stdin=exported)
    assert (ended.code, ended.err) == (1, "segue: no room\n")
    monkeypatch.undo()
    assert len(store_cli("log", "--json").json) == 1


def test_client_log_has_its_own_api(store_cli: StoreCli):
    ended = store_cli("import", "--from", "kimi", stdin=json_lines(CLAUDE.lines))
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert "Claude Code" in ended.err
    assert store_cli("import", "--from", "anthropic", stdin=json_lines(CLAUDE.lines)).code == 0


def test_as_a_process(store_cli: StoreCli):
    ended = run("import", stdin=OPEN, SEGUE_STORE=str(store_cli.path))
    assert ended.code == 0
    assert is_one_line_error(run("import", stdin=b"{", SEGUE_STORE=str(store_cli.path)))
    shown = run("log", "show", ended.out.decode().strip(), SEGUE_STORE=str(store_cli.path))
    assert b"Never mind." in shown.out


def test_dropped_credentials_are_reported(store_cli: StoreCli):
    server = {"type": "url", "url": "https://me:hunter2@x/?token=t0ken", "name": "n", "authorization_token": "t0ken"}
    body = {"model": "claude-sonnet-4-5", "mcp_servers": [server], "messages": [QUESTION]}
    data = json.dumps(body).encode()
    ended = store_cli("import", stdin=data)
    assert ended.code == 0
    output = (
        "segue: not stored because it may be a secret: part of url, authorization_token; set it again to continue\n"
    )
    assert ended.err == output
    assert store_cli("import", "--json", stdin=data).json["secrets"] == ["part of url", "authorization_token"]
    assert store_cli("import", stdin=segue.Conversation.from_body(body).dump()).err == output
    for form in ("json", "anthropic"):
        out = store_cli("export", ended.out.strip(), "--format", form).out
        assert "hunter2" not in out
        assert "t0ken" not in out
    assert store_cli("import", stdin=GOOD).err == ""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"messages": "hi"}', "messages: a list was expected, not a string"),
        (b'{"contents": 3}', "contents: a list was expected, not a number"),
        (b"[]", "expected a request body or a list of messages; this list is empty"),
        (b"[3]", "expected a request body or a list of messages"),
        (b'"hi"', "expected a request body or a list of messages"),
        (b"{}", "no `messages`, `input` or `contents`: not a request body of a known API"),
    ],
)
def test_import_faults_are_reported(store_cli: StoreCli, body: bytes, words: str):
    ended = store_cli("import", stdin=body)
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert f"stdin: {words}" in ended.err

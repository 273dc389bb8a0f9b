"""`segue import`: bodies, exports and the logs of clients become conversations, or nothing is written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Message, Text, Thinking, ToolCall, ToolResponse, text_of
from segue.store.events import Titled
from segue.store.timeline import replayed
from segue.view.words import result_text
from segue.wire.registry import WIRES
from tests.cli.bodies import ASKS, GOOD, OPEN, QUESTION, RESULT
from tests.cli.client_logs import ClaudeCode, Codex, text, use
from tests.cli.kept import Kept, json_lines
from tests.cli.process import SEGUE, environment, is_one_line, run


def messages_of(kept: Kept, id: str) -> tuple[Message, ...]:
    with kept.store() as store:
        return replayed(store.events(id)).chat.messages


def told(kept: Kept, data: bytes, *options: str) -> list[str]:
    """What was imported, a line for each thing that was said."""
    ended = kept("import", *options, stdin=data)
    assert ended.code == 0, ended.err
    lines: list[str] = []
    for message in messages_of(kept, ended.out.strip()):
        for block in message.blocks:
            match block:
                case Text():
                    lines.append(f"{message.speaker}: {block.text}")
                case ToolCall():
                    lines.append(f"call {block.raw_id}")
                case ToolResponse():
                    lines.append(f"result {block.origin.raw_id}: {result_text(block)}")
                case Thinking():
                    lines.append(f"thinking: {block.text}")
                case _:
                    lines.append(type(block).__name__)
    return lines


# ------------------------------------------------------------------------------------------------------------ bodies


def test_a_body_is_kept_and_its_id_told(kept: Kept):
    ended = kept("import", "--title", "Weather", stdin=GOOD)
    assert (ended.code, ended.err) == (0, "")
    [row] = kept("log", "--json").json
    assert (ended.out, row["title"], row["messages"]) == (f"{row['id']}\n", "Weather", 3)
    assert kept.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("api", WIRES)
def test_a_body_of_every_api_comes_back_as_it_was(kept: Kept, api: str):
    body = segue.convert(GOOD, target=api).data
    id = kept("import", "--from", api, stdin=body).out.strip()
    assert json.loads(kept("export", id, "--format", api).out) == json.loads(body)


def test_the_api_is_told_by_the_shape_and_the_model_is_kept(kept: Kept):
    body = segue.convert(GOOD, target="anthropic", model="claude-sonnet-4-5").data
    said = kept("import", "--json", stdin=body).json
    assert (said["kind"], said["messages"], said["left_out"]) == ("body", 3, {})
    [row] = kept("log", "--json").json
    assert row["model"] == "claude-sonnet-4-5"


def test_calls_that_wait_are_left_waiting(kept: Kept):
    body = json.dumps({"messages": [QUESTION, ASKS]}).encode()
    id = kept("import", stdin=body).out.strip()
    with kept.store() as store:
        assert len(replayed(store.events(id)).chat.pending) == 1
        assert store.lease(id) is None


def test_a_list_of_messages_and_lines_of_messages_are_the_same(kept: Kept):
    messages = [QUESTION, ASKS, RESULT]
    wanted = told(kept, json.dumps({"messages": messages}).encode())
    assert told(kept, json.dumps(messages).encode()) == wanted
    assert told(kept, json_lines(messages)) == wanted
    assert told(kept, b"\n\n" + json_lines(messages).replace(b"\n", b"\r\n")) == wanted
    assert told(kept, json_lines(messages), "--from", "kimi") == wanted


def test_lines_of_other_apis_are_told_apart(kept: Kept):
    contents = segue.convert(GOOD, target="gemini").body["contents"]
    items = segue.convert(GOOD, target="openai-responses").body["input"]
    for lines in (contents, items):
        first, *_, result = told(kept, json_lines(lines))
        assert first == "human: How is the weather in Lisbon?"
        assert result.endswith(": sunny")


# ----------------------------------------------------------------------------------------------------------- exports


def test_an_export_comes_back_with_all_that_happened(kept: Kept):
    id = kept.talk()
    kept("compress", id, "--strategy", "drop-oldest", "--budget", "10")
    exported = kept("export", id, "--format", "json").out
    copy = kept("import", stdin=exported.encode()).out.strip()
    assert copy != id
    with kept.store() as store:
        assert [r.event for r in store.events(copy)] == [r.event for r in store.events(id)]
        assert store.get(copy).title == "Shopping"
    assert kept("compress", copy, "--undo").code == 0
    assert len(messages_of(kept, copy)) == 4


def test_a_title_of_ones_own_wins_and_moves_no_event(kept: Kept):
    exported = kept("export", kept.talk(), "--format", "json").out
    copy = kept("import", "--title", "Mine", stdin=exported.encode()).out.strip()
    with kept.store() as store:
        assert store.get(copy).title == "Mine"
        assert store.get(copy).seq == len(json.loads(exported)["events"]) + 1


def test_what_a_conversation_dumps_is_taken_too(kept: Kept):
    chat = segue.Conversation.from_body(GOOD)
    assert len(told(kept, chat.dump())) == 3


# ------------------------------------------------------------------------------------------------------- Claude Code


def test_claude_code_blocks_on_lines_of_their_own_are_one_reply(kept: Kept):
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
    assert told(kept, data) == [
        *("human: Read a and b", "thinking: hm", "ai: I read.", "call toolu_1", "result toolu_1: A", "ai: Done.")
    ]
    [row] = kept("log", "--json").json
    assert (row["title"], row["model"], row["messages"]) == ("Reading", "claude-opus-4-6", 4)


def test_claude_code_results_of_parallel_calls_are_all_there(kept: Kept):
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
    lines = told(kept, json_lines(log.lines))
    assert lines[1:4] == ["call toolu_1", "call toolu_2", "call toolu_3"]
    assert sorted(lines[4:7]) == ["result toolu_1: A", "result toolu_2: B", "result toolu_3: C"]
    [row] = kept("log", "--json").json
    body = kept("export", row["id"], "--format", "anthropic").out
    assert segue.check(body, "anthropic")


def test_claude_code_branches_that_were_left_stay_out(kept: Kept):
    log = ClaudeCode()
    first = log.user("One")
    log.reply("msg_1", text("Left."), below=first)
    log.user("Never mind")
    log.reply("msg_2", text("Taken."), below=first)
    ended = kept("import", "--json", stdin=json_lines(log.lines))
    assert ended.json["left_out"] == {"lines on branches that were left": 2}
    assert [text_of(m.blocks) for m in messages_of(kept, ended.json["id"])] == ["One", "Taken."]
    assert "not imported: 2 lines on branches" in kept("import", stdin=json_lines(log.lines)).err


def test_claude_code_subagents_are_conversations_of_their_own(kept: Kept):
    log = ClaudeCode()
    log.user("Main")
    main = log.last
    log.user("Side", below=None, isSidechain=True, agentId="a")
    log.reply("msg_9", text("Side answer"), isSidechain=True, agentId="a")
    log.reply("msg_1", text("Main answer"), below=main)
    assert told(kept, json_lines(log.lines)) == ["human: Main", "ai: Main answer"]
    side = [line for line in log.lines if line["isSidechain"]]
    assert told(kept, json_lines(side)) == ["human: Side", "ai: Side answer"]


def test_claude_code_goes_on_from_its_own_compaction(kept: Kept):
    log = ClaudeCode()
    log.user("Old")
    log.reply("msg_1", text("Old answer"))
    boundary: Any = {"subtype": "compact_boundary", "content": "Conversation compacted"}
    log.entry("system", below=None, logicalParentUuid=log.last, **boundary)
    log.user("This is the summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    log.reply("msg_2", text("New answer"))
    assert told(kept, json_lines(log.lines)) == ["human: This is the summary", "ai: New answer"]


def test_claude_code_keeps_what_a_compaction_preserves(kept: Kept):
    log = ClaudeCode()
    log.user("Old")
    log.reply("msg_1", text("Old answer"))
    preserved = log.user("Kept over")
    about = {"trigger": "auto", "preservedMessages": {"anchorUuid": "u2", "uuids": [preserved]}}
    boundary = log.entry("system", below=None, subtype="compact_boundary", compactMetadata=about)
    log.user("Summary", below=boundary, isCompactSummary=True)
    log.reply("msg_2", text("New answer"), below=preserved)
    assert told(kept, json_lines(log.lines)) == ["human: Summary", "human: Kept over", "ai: New answer"]


def test_claude_code_errors_that_it_shows_are_no_replies(kept: Kept):
    log = ClaudeCode()
    log.user("Hi")
    log.reply("x", text("API Error: 529"), isApiErrorMessage=True)
    log.lines[-1]["message"]["model"] = "<synthetic>"
    log.user("Again")
    log.reply("msg_1", text("Hello"))
    assert told(kept, json_lines(log.lines)) == ["human: Hi", "human: Again", "ai: Hello"]


def test_claude_code_lines_that_tell_a_reply_once_more_add_nothing(kept: Kept):
    log = ClaudeCode()
    log.user("Hi")
    log.reply("msg_1", text("I read."))
    log.reply("msg_1", text("I read."), use("toolu_1", file_path="a"))
    log.result("toolu_1", "A")
    log.lines.append(log.lines[-1])
    assert told(kept, json_lines(log.lines)) == ["human: Hi", "ai: I read.", "call toolu_1", "result toolu_1: A"]


def test_claude_code_prints_the_same_without_parents(kept: Kept):
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
    assert told(kept, json_lines(lines)) == ["ai: I read.", "call toolu_1", "result toolu_1: A"]


def test_claude_code_sessions_may_be_long(kept: Kept):
    """Twenty thousand entries: whoever compares each with each is still at it tomorrow."""
    log = ClaudeCode()
    for number in range(5_000):
        log.user(f"Read {number}")
        log.reply(f"msg_{number}", use(f"toolu_{number}", file_path="a"))
        log.result(f"toolu_{number}", "A")
        log.reply(f"msg_{number}b", text("Done."))
    assert kept("import", "--json", stdin=json_lines(log.lines)).json["messages"] == 20_000


# ------------------------------------------------------------------------------------------------------------- Codex


def test_codex_items_are_the_conversation_and_events_are_not(kept: Kept):
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
    assert told(kept, json_lines(log.lines)) == wanted
    [row] = kept("log", "--json").json
    assert row["model"] == "gpt-5.5"
    body = json.loads(kept("export", row["id"], "--format", "openai-responses").out)
    assert (body["instructions"], body["model"]) == ("You are Codex.", "gpt-5.5")
    assert segue.check(body, "openai-responses")


def test_codex_what_was_rolled_back_did_not_happen(kept: Kept):
    log = Codex()
    log.user("<environment_context>cwd</environment_context>")
    log.user("One")
    log.answer("Answer one")
    log.user("Two")
    log.call("call_1", "x")
    log.user("Three")
    log.line("event_msg", type="thread_rolled_back", num_turns=2)
    log.user("Four")
    lines = told(kept, json_lines(log.lines))
    assert lines[1:] == ["human: One", "ai: Answer one", "human: Four"]


def test_codex_goes_on_from_its_own_compaction(kept: Kept):
    log = Codex()
    log.user("One")
    log.answer("Answer one")
    log.line("compacted", message="What went before: one.")
    log.user("Two")
    assert told(kept, json_lines(log.lines)) == ["human: One", "human: What went before: one.", "human: Two"]
    instead = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Short"}]}]
    log.line("compacted", message="", replacement_history=instead)
    log.answer("Answer two")
    assert told(kept, json_lines(log.lines)) == ["human: Short", "ai: Answer two"]


def test_codex_oldest_logs_have_their_items_bare(kept: Kept):
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    head = {"id": "s", "timestamp": "2025-07-01T00:00:00Z", "instructions": "Be brief."}
    lines = [head, {"record_type": "state"}, item, call]
    assert told(kept, json_lines(lines)) == ["human: Hi", "call c"]


# ----------------------------------------------------------------------------------------------------- when and what


def times(kept: Kept, id: str) -> list[str]:
    return [event["at"] for event in kept("log", "show", id, "--all", "--json").json["events"]]


def listed(kept: Kept, data: bytes, *arguments: str) -> Any:
    id = kept("import", *arguments, stdin=data).out.strip()
    [row] = [row for row in kept("log", "--json").json if row["id"] == id]
    return row


def test_a_session_of_claude_code_is_as_old_as_it_is(kept: Kept):
    log = ClaudeCode()
    log.user("Read", timestamp="2025-10-01T08:00:00.000Z")
    log.reply("msg_1", text("I read."), timestamp="2025-10-01T08:00:05.000Z")
    log.reply("msg_1", use("toolu_1", file_path="a"), timestamp="2025-10-01T08:00:06.000Z")
    log.result("toolu_1", "A")
    log.lines[-1]["timestamp"] = "2025-10-01T10:01:00.000+02:00"
    log.reply("msg_2", text("Done."), timestamp="2025-10-01T08:02:00.000Z")
    row = listed(kept, json_lines(log.lines), "--title", "Old")
    assert (row["created"], row["updated"]) == ("2025-10-01T08:00:00.000Z", "2025-10-01T08:02:00.000Z")
    assert [at[11:19] for at in times(kept, row["id"])] == [
        *("08:00:00", "08:00:00", "08:00:00", "08:00:06", "08:01:00", "08:02:00", "08:02:00")
    ]
    today = kept.talk()
    assert [line.split()[0] for line in kept("log").lines[1:]] == [today, row["id"]]


def test_a_session_of_codex_is_as_old_as_it_is(kept: Kept):
    log = Codex()
    log.user("List")
    log.call("call_1", "a.txt")
    log.answer("One file.")
    log.answer("One file.")
    for minute, line in enumerate(log.lines):
        line["timestamp"] = f"2025-10-01T08:{minute:02}:00Z"
    row = listed(kept, json_lines(log.lines))
    assert (row["created"][:16], row["updated"][:16]) == ("2025-10-01T08:01", "2025-10-01T08:08")


@pytest.mark.parametrize("stamp", ["yesterday", "", 5, None, "9999-01-01T00:00:00Z"])
def test_a_time_that_is_none_or_not_yet_is_now(kept: Kept, stamp: Any):
    log = ClaudeCode()
    log.user("Hi", timestamp=stamp)
    log.reply("msg_1", text("Hello"), timestamp=stamp)
    row = listed(kept, json_lines(log.lines))
    assert row["messages"] == 2
    assert row["updated"][:4] == row["created"][:4] != "9999"


def test_an_export_comes_back_as_old_as_it_is(kept: Kept):
    with kept.store() as store:
        old = store.create("old", at=1_600_000_000_000_001)
        store.append(old, 1, [Titled("a"), Titled("b")], at=[1_600_000_001_000_000, 1_600_000_002_123_456])
        new = store.create("new", at=1_700_000_000_000_000)
    copies = [
        kept("import", stdin=kept("export", id, "--format", "json").out.encode()).out.strip() for id in (new, old)
    ]
    with kept.store() as store:
        assert [record.at for record in store.events(copies[1])] == [record.at for record in store.events(old)]
        assert store.get(copies[1]).created == store.get(old).created
        assert [row.title for row in store.list()] == ["new", "new", "b", "b"]
        assert [record.event for record in store.events(copies[1])] == [record.event for record in store.events(old)]


def test_an_export_without_times_is_as_old_as_the_conversation(kept: Kept):
    exported = json.loads(kept("export", kept.talk(), "--format", "json").out)
    for event in exported["events"]:
        del event["at"]
    exported |= {"created": "2025-10-01T08:00:00.000Z", "updated": "2025-10-02T08:00:00.000Z"}
    row = listed(kept, json.dumps(exported).encode())
    assert (row["created"], row["updated"]) == (exported["created"], exported["updated"])
    del exported["created"], exported["updated"]
    assert listed(kept, json.dumps(exported).encode())["messages"] == 4


def test_the_titles_of_other_sessions_are_not_this_ones(kept: Kept):
    log = ClaudeCode()
    log.other(type="summary", summary="Another session", leafUuid="elsewhere")
    log.other(type="ai-title", aiTitle="Nor this", sessionId="other")
    log.user("Mine")
    log.reply("msg_1", text("Yes"))
    row = listed(kept, json_lines(log.lines))
    assert (row["title"], row["opening"]) == (None, "Mine")
    log.other(type="summary", summary="This session", leafUuid=log.last)
    assert listed(kept, json_lines(log.lines))["title"] == "This session"


def test_a_session_goes_by_what_the_user_said_first(kept: Kept):
    log = Codex()
    log.user("<environment_context>\n<cwd>/work</cwd></environment_context>")
    log.user("# AGENTS.md instructions for /work")
    log.user("<skill>\nsomething new</skill>")
    log.user("Mend the  login\nplease")
    assert listed(kept, json_lines(log.lines))["title"] == "Mend the login please"
    instead = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What went before"}]}]
    log.line("compacted", message="", replacement_history=instead)
    log.user("Go on")
    assert listed(kept, json_lines(log.lines))["title"] == "Mend the login please"

    session = ClaudeCode()
    session.user("Caveat: what follows was typed into a shell", isMeta=True)
    session.user("<command-name>/clear</command-name>")
    session.user([text("Write a poem " + "about trees " * 20)])
    session.reply("msg_1", text("Trees."))
    assert listed(kept, json_lines(session.lines))["title"].startswith("Write a poem about trees")
    assert len(listed(kept, json_lines(session.lines))["title"]) == 80
    session.entry("system", below=None, subtype="compact_boundary")
    session.user("This session is being continued from a previous conversation", isCompactSummary=True)
    session.reply("msg_2", text("On."))
    assert listed(kept, json_lines(session.lines))["title"].startswith("Write a poem about trees")


TORN = [b'{"type":"assist', b'{"type":"user","message":{"content":"\xc3']


@pytest.mark.parametrize("torn", TORN)
def test_of_a_log_that_was_cut_the_rest_is_taken(kept: Kept, torn: bytes):
    log = ClaudeCode()
    log.user("Hi")
    log.reply("msg_1", text("Hello"))
    ended = kept("import", stdin=json_lines(log.lines) + torn)
    assert ended.code == 0
    assert "not imported: 1 line at the end that is cut off (line 3)" in ended.err
    assert len(messages_of(kept, ended.out.strip())) == 2
    codex = Codex()
    codex.user("Hi")
    assert kept("import", "--json", stdin=json_lines(codex.lines) + torn).json["left_out"]
    assert kept("import", stdin=json_lines([QUESTION]) + torn).code == 0
    assert kept("import", stdin=json_lines([{"messages": [QUESTION]}]) + torn).code == 0


def test_a_line_has_one_number(kept: Kept):
    ended = kept("import", stdin=json_lines([QUESTION]) + b'{"role": oops}\n' + json_lines([QUESTION]))
    assert ended.refused
    assert "line 2: " in ended.err
    assert "line 1" not in ended.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_what_was_done_is_told_also_where_stdout_is_full(kept: Kept):
    def full(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
        with Path("/dev/full").open("wb") as out:
            variables = environment(SEGUE_STORE=str(kept.path))
            ended = subprocess.run(
                [*SEGUE, *arguments], input=stdin, stdout=out, stderr=subprocess.PIPE, env=variables, check=False
            )
        return ended.returncode, ended.stderr.decode()

    code, said = full("import", stdin=OPEN)
    [row] = kept("log", "--json").json
    assert (code, said.splitlines()[0]) == (1, f"segue: stored, although the output could not be written: {row['id']}")
    id = kept.talk()
    code, said = full("compress", id, "--strategy", "drop-oldest", "--budget", "5")
    assert (code, said.splitlines()[0]) == (1, f"segue: compressed, although the output could not be written: {id}")
    code, said = full("log", "delete", id, "--yes")
    assert (code, said.splitlines()[0]) == (1, f"segue: deleted, although the output could not be written: {id}")


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
    "an event that is none": (b'{"segue": 1, "kind": "events", "events": [{"type": "said"}]}', "events[0]"),
    "events that do not go together": (
        b'{"segue": 1, "kind": "events", "events": [{"type": "rewound", "turn": "turn-9"}]}',
        "turn-9",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_one_line_with_its_place_and_nothing_is_written(kept: Kept, name: str):
    data, words = WRONG[name]
    file = kept.file("log.jsonl", data)
    ended = kept("import", file)
    assert (ended.code, ended.refused) == (2, True), ended
    assert words in ended.err
    assert file in ended.err
    assert not kept.path.exists()


def test_a_store_that_fails_half_way_has_nothing_of_it(kept: Kept, monkeypatch: pytest.MonkeyPatch):
    from segue.errors import StoreError
    from segue.store.sqlite import SqliteStore

    exported = kept("export", kept.talk(), "--format", "json").out.encode()

    def full(*_: object, **__: object) -> int:
        raise StoreError("no room", cause="full")

    monkeypatch.setattr(SqliteStore, "append", full)
    ended = kept("import", stdin=exported)
    assert (ended.code, ended.err) == (1, "segue: no room\n")
    monkeypatch.undo()
    assert len(kept("log", "--json").json) == 1


def test_a_log_of_a_client_is_of_its_own_api(kept: Kept):
    ended = kept("import", "--from", "kimi", stdin=json_lines(CLAUDE.lines))
    assert (ended.code, ended.refused) == (2, True)
    assert "Claude Code" in ended.err
    assert kept("import", "--from", "anthropic", stdin=json_lines(CLAUDE.lines)).code == 0


def test_as_a_process(kept: Kept):
    ended = run("import", stdin=OPEN, SEGUE_STORE=str(kept.path))
    assert ended.code == 0
    assert is_one_line(run("import", stdin=b"{", SEGUE_STORE=str(kept.path)))
    shown = run("log", "show", ended.out.decode().strip(), SEGUE_STORE=str(kept.path))
    assert b"Never mind." in shown.out


def test_what_is_not_kept_since_it_proves_who_asks_is_told(kept: Kept):
    server = {"type": "url", "url": "https://me:hunter2@x/?token=t0ken", "name": "n", "authorization_token": "t0ken"}
    body = {"model": "claude-sonnet-4-5", "mcp_servers": [server], "messages": [QUESTION]}
    data = json.dumps(body).encode()
    ended = kept("import", stdin=data)
    assert ended.code == 0
    said = "segue: not stored because it may be a secret: part of url, authorization_token; set it again to continue\n"
    assert ended.err == said
    assert kept("import", "--json", stdin=data).json["secrets"] == ["part of url", "authorization_token"]
    assert kept("import", stdin=segue.Conversation.from_body(body).dump()).err == said
    for form in ("json", "anthropic"):
        out = kept("export", ended.out.strip(), "--format", form).out
        assert "hunter2" not in out
        assert "t0ken" not in out
    assert kept("import", stdin=GOOD).err == ""


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
def test_what_is_wrong_with_it_is_said(kept: Kept, body: bytes, words: str):
    ended = kept("import", stdin=body)
    assert (ended.code, ended.refused) == (2, True)
    assert f"stdin: {words}" in ended.err

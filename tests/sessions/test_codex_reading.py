"""Sessions of Codex are read as the client sends them, and tools of servers written as it writes them."""

from __future__ import annotations

import json

import pytest

from tests.cli.client_logs import ClaudeCode, Codex
from tests.sessions.world import World, texts


def _add_harness_message(log: Codex, text: str, kind: str, **provenance: object) -> None:
    notes = {"content_item_kinds": [kind], "content_item_metadata": [{"provenance": {"type": "harness", **provenance}}]}
    log.line(
        "response_item",
        type="message",
        role="user",
        content=[{"type": "input_text", "text": text}],
        internal_chat_message_metadata_passthrough=notes,
    )


def test_messages_that_codex_wrote_into_the_conversation_are_read(world: World):
    log = Codex()
    log.user("Hello.")
    log.answer("Done.")
    _add_harness_message(log, "<user_shell_command>ls</user_shell_command>", "shell.user_command")
    _add_harness_message(log, "<turn_aborted>stopped</turn_aborted>", "generic.turn_aborted")
    _add_harness_message(log, "<hook_prompt>not yet</hook_prompt>", "unknown", hook=True)
    _add_harness_message(log, "<current_time_reminder/>", "current_time.reminder")
    session = world.read(world.add_lines("codex", log.lines))
    assert [text.partition(">")[0] for text in texts(session, "human")] == [
        "Hello.",
        "<user_shell_command",
        "<turn_aborted",
        "<hook_prompt",
    ]


def test_the_summary_of_a_compaction_is_read(world: World):
    log = Codex()
    log.user("Hello.")
    notes = {
        "content_item_kinds": ["compaction.summary"],
        "content_item_metadata": [{"provenance": {"type": "harness"}}],
    }
    summary = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "SUMMARY"}],
        "internal_chat_message_metadata_passthrough": notes,
    }
    log.line("compacted", message="SUMMARY", replacement_history=[summary])
    log.answer("Done.")
    assert texts(world.read(world.add_lines("codex", log.lines)), "human") == ["SUMMARY"]


def test_prompts_after_a_compaction_are_not_taken_for_context(world: World):
    log = Codex()
    for number in range(20):
        _add_harness_message(log, f"<current_time_reminder>{number}</current_time_reminder>", "current_time.reminder")
    prompts = [f"Prompt {number}." for number in range(20)]
    messages = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]} for text in prompts
    ]
    noted = [{**message, "internal_chat_message_metadata_passthrough": {}} for message in messages]
    log.line("compacted", message="", replacement_history=noted)
    log.answer("Done.")
    assert texts(world.read(world.add_lines("codex", log.lines)), "human") == prompts


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_items_before_a_compaction_that_only_the_provider_can_read_are_moved(world: World, kind: str):
    log = Codex()
    log.user("One.")
    log.answer("First.")
    sealed = {"type": kind, "encrypted_content": "sealed"}
    for text in ("Two.", "Three."):
        log.user(text)
        log.line("response_item", **sealed)
        kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        log.line("compacted", message="", replacement_history=[kept, sealed])
        log.answer(f"Answer to {text}")
    session = world.add_lines("codex", log.lines)
    moved = world.move(session, "claude")
    written = texts(world.read(moved.session), "human", "ai")
    assert written == ["One.", "First.", "Two.", "Answer to Two.", "Three.", "Answer to Three."]
    assert moved.report.lost == ()


def test_a_compaction_without_the_items_before_it_is_moved_as_it_is(world: World):
    log = Codex()
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "One."}]}
    sealed = {"type": "compaction", "encrypted_content": "sealed"}
    log.line("compacted", message="", replacement_history=[kept, sealed])
    log.answer("First.")
    assert texts(world.read(world.add_lines("codex", log.lines)), "human", "ai")[0] == "One."


def test_a_session_with_declared_tools_is_copied(world: World):
    log = Codex()
    log.user("Hello.")
    log.line("response_item", type="additional_tools", id="at_1", role="developer", tools=[])
    log.answer("Done.")
    session = world.add_lines("codex", log.lines)
    away = world.move(session, "claude").session
    world.resume(away)
    session.path.unlink()
    back = world.move(away, "codex")
    assert (back.report.action, back.report.original) == ("copied", f"{session.id} was deleted")
    assert texts(world.read(back.session), "human")[0] == "Hello."


def test_commands_of_the_user_are_no_turns_to_roll_back(world: World):
    log = Codex()
    log.user("One.")
    log.answer("First.")
    log.user("Two.")
    log.answer("Second.")
    log.user("<user_shell_command>ls</user_shell_command>")
    log.line("event_msg", type="thread_rolled_back", num_turns=1)
    log.user("Three.")
    assert texts(world.read(world.add_lines("codex", log.lines)), "human", "ai") == ["One.", "First.", "Three."]


def test_calls_of_a_server_are_written_and_shown_as_those_of_codex(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    call = {"type": "tool_use", "id": "toolu_1", "name": "mcp__desk__stamp_word", "input": {"word": "one"}}
    log.reply("m1", call)
    log.result("toolu_1", "RESULT")
    log.reply("m2", {"type": "text", "text": "Done."})
    moved = world.move(world.add_lines("claude", log.lines), "codex").session
    payloads = [json.loads(line)["payload"] for line in world.load(moved).splitlines()]
    (written,) = [payload for payload in payloads if payload.get("type") == "function_call"]
    assert (written["namespace"], written["name"]) == ("mcp__desk", "stamp_word")
    (shown,) = [item for payload in payloads if (item := payload.get("item", {})).get("type") == "McpToolCall"]
    assert (shown["server"], shown["tool"], shown["arguments"]) == ("desk", "stamp_word", {"word": "one"})
    assert shown["result"]["content"] == [{"type": "text", "text": "RESULT"}]
    world.resume(moved)
    world.move(moved, "claude")
    assert next(name for name, _, _ in world.calls(moved)) == "mcp__desk::stamp_word"

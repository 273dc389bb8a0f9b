"""What the readers take from a session: attachments, instructions of the client, reasoning sealed by the gateway."""

from __future__ import annotations

import json

from segue.canonical.blocks import Media, Text, Thinking
from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.sessions.client import SessionFile
from tests.cli.client_logs import ClaudeCode, Codex, use
from tests.sessions.world import World, client, texts


def _find(world: World) -> list[SessionFile]:
    return list(client("codex").find(world.place, None))


def test_attachments_of_the_user_are_carried_and_those_of_the_client_are_not(world: World):
    log = ClaudeCode()
    log.user("Look at @notes.txt.")
    log.entry("attachment", attachment={"type": "file"}, rendered=[{"content": "NOTES of the user"}])
    log.entry("attachment", attachment={"type": "environment"}, rendered=[{"content": "FACTS of the machine"}])
    log.entry("attachment", attachment={"type": "queued_command", "prompt": "And be QUICK."})
    log.reply("m1", {"type": "text", "text": "Done."})
    moved = world.move(world.add_lines("claude", log.lines), "codex").session
    text = "\n".join(texts(world.read(moved), "human"))
    assert "NOTES of the user" in text
    assert "And be QUICK." in text
    assert "FACTS" not in world.load(moved).decode()


def test_an_attachment_without_text_is_left_out(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    log.entry("attachment", attachment={"type": "file"})
    log.entry("attachment", attachment={"type": "file"}, rendered=[{"content": None}])
    log.reply("m1", {"type": "text", "text": "Done."})
    moved = world.move(world.add_lines("claude", log.lines), "codex").session
    assert texts(world.read(moved), "human") == ["Hello."]


def test_instructions_of_codex_are_not_carried(world: World):
    log = Codex()
    content = [{"type": "input_text", "text": "DEVELOPER instructions"}]
    log.line("response_item", type="message", role="developer", content=content)
    log.user("<environment_context>FACTS</environment_context>")
    notes = {"content_item_metadata": [{"provenance": {"type": "harness"}}]}
    content = [{"type": "input_text", "text": "HARNESS text"}]
    log.line(
        "response_item",
        type="message",
        role="user",
        content=content,
        internal_chat_message_metadata_passthrough=notes,
    )
    log.user("Hello.")
    log.answer("Done.")
    moved = world.move(world.add_lines("codex", log.lines), "claude").session
    assert texts(world.read(moved), "human") == ["Hello."]
    data = world.load(moved).decode()
    assert not any(word in data for word in ("DEVELOPER", "FACTS", "HARNESS"))


def test_sessions_of_subagents_are_not_listed(world: World):
    log = Codex()
    log.lines[0]["payload"]["source"] = {"subagent": "review"}
    log.user("Hello.")
    log.answer("Done.")
    world.add_recorded("codex")
    path = world.place.home / ".codex/sessions/2026/11/18/rollout-2026-11-18T06-00-00-sub.jsonl"
    recorded = [found.id for found in _find(world)]
    path.write_text("".join(f"{line}\n" for line in map(json.dumps, log.lines)))
    assert [found.id for found in _find(world)] == recorded


def test_envelopes_of_the_gateway_are_removed(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    thinking = {"type": "thinking", "thinking": "A thought.", "signature": f"{ENVELOPE_PREFIX}{'A' * 40}"}
    log.reply("m1", thinking, {"type": "text", "text": "Done."})
    home = world.add_lines("claude", log.lines)
    before = world.load(home)
    moved = world.move(home, "codex")
    assert [line.count for line in moved.report.lost if "gateway" in line.text] == [1]
    world.resume(moved.session)
    world.move(moved.session, "claude")
    assert world.is_continued(home, before)
    added = world.load(home)[len(before) :].decode()
    assert ENVELOPE_PREFIX not in added
    assert "leg1 answer." in added


# ------------------------------------------------------------------------------------- as the client sends it: Claude


def _prompts(world: World, log: ClaudeCode) -> list[str]:
    return texts(world.read(world.add_lines("claude", log.lines)), "human")


def test_a_file_that_a_prompt_names_is_read_before_it(world: World):
    log = ClaudeCode()
    log.user("Look at @notes.txt.")
    log.entry("attachment", attachment={"type": "file"}, rendered=[{"content": "NOTES"}])
    log.reply("m1", {"type": "text", "text": "Done."})
    assert _prompts(world, log) == ["NOTES", "Look at @notes.txt."]


def test_a_picture_that_a_prompt_names_is_read(world: World):
    log = ClaudeCode()
    log.user("Look at @red.png.")
    file = {"base64": "iVBORw0KGgo=", "type": "image/png"}
    content = {"type": "image", "file": file}
    log.entry("attachment", attachment={"type": "file", "filename": "/p/red.png", "content": content})
    log.reply("m1", {"type": "text", "text": "Done."})
    session = world.read(world.add_lines("claude", log.lines))
    blocks = [block for entry in session.entries for block in entry.message.blocks]
    assert [block.data for block in blocks if isinstance(block, Media)] == ["iVBORw0KGgo="]
    assert '{"file_path":"/p/red.png"}' in texts(session, "human")[0]


def test_a_queued_prompt_is_read_in_the_words_of_the_user(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    attachment = {
        "type": "queued_command",
        "prompt": [{"type": "text", "text": "And be QUICK."}],
        "commandMode": "prompt",
    }
    log.entry("attachment", attachment=attachment, rendered=[{"content": "The user sent a new message: And be QUICK."}])
    log.reply("m1", {"type": "text", "text": "Done."})
    assert _prompts(world, log) == ["Hello.", "And be QUICK."]


def test_a_notice_of_a_background_task_is_read_as_it_was_sent(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    attachment = {"type": "queued_command", "prompt": "<task-notification/>", "commandMode": "task-notification"}
    log.entry("attachment", attachment=attachment, rendered=[{"content": "NOT USER INPUT <task-notification/>"}])
    log.reply("m1", {"type": "text", "text": "Done."})
    assert _prompts(world, log) == ["Hello.", "NOT USER INPUT <task-notification/>"]


def test_texts_of_hooks_are_read_after_the_results_of_parallel_calls(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    first = log.reply("m1", use("c1", path="a"))
    second = log.reply("m1", use("c2", path="b"))
    hook = {"type": "hook_additional_context", "hookEvent": "PreToolUse"}
    start = {"type": "hook_additional_context", "hookEvent": "SessionStart"}
    log.entry("attachment", attachment={**start, "toolUseID": "SessionStart"}, rendered=[{"content": "START"}])
    log.entry("attachment", second, attachment={**hook, "toolUseID": "c1"}, rendered=[{"content": "BEFORE c1"}])
    log.result("c1", "one", first)
    log.result("c2", "two", second)
    log.entry("attachment", attachment={**hook, "toolUseID": "c2"}, rendered=[{"content": "AFTER c2"}])
    log.reply("m2", {"type": "text", "text": "Done."})
    session = world.read(world.add_lines("claude", log.lines))
    assert [entry.message.speaker for entry in session.entries] == [
        "human",
        "ai",
        "tool",
        "tool",
        "human",
        "human",
        "ai",
    ]
    assert texts(session, "human") == ["Hello.", "BEFORE c1", "AFTER c2"]


def test_outputs_of_commands_of_the_client_are_read(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    log.reply("m1", {"type": "text", "text": "Done."})
    log.user("<command-name>/cost</command-name>")
    log.entry("system", subtype="local_command", content="<local-command-stdout>COST</local-command-stdout>")
    assert _prompts(world, log)[-1] == "<local-command-stdout>COST</local-command-stdout>"


def test_a_reply_that_is_only_reasoning_is_not_read(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    thinking = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    log.reply("m1", thinking)
    log.user("No visible output.", isMeta=True)
    log.reply("m2", thinking)
    log.reply("m2", {"type": "text", "text": "Done."})
    session = world.read(world.add_lines("claude", log.lines))
    assert [[type(block) for block in entry.message.blocks] for entry in session.entries][-1] == [Thinking, Text]
    assert [entry.message.speaker for entry in session.entries] == ["human", "human", "ai"]


def test_reasoning_that_the_client_removed_is_not_read(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    for number in (1, 2):
        log.reply(f"m{number}", {"type": "thinking", "thinking": f"{number}", "signature": "c2ln"})
        log.reply(f"m{number}", {"type": "text", "text": "Done."})
        log.user("Go on.")
        if number == 1:
            log.entry("attachment", attachment={"type": "thinking_stripped", "scope": "all"})
    session = world.read(world.add_lines("claude", log.lines))
    blocks = [block for entry in session.entries for block in entry.message.blocks]
    assert [block.text for block in blocks if isinstance(block, Thinking)] == ["2"]


# -------------------------------------------------------------------------------------- as the client sends it: Codex


def _add_harness_message(log: Codex, text: str, kind: str, **provenance: object) -> None:
    notes = {
        "content_item_kinds": [kind],
        "content_item_metadata": [{"provenance": {"type": "harness", **provenance}}],
    }
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

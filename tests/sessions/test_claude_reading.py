"""Sessions of Claude Code are read as the client sends them: attachments, hooks, commands, removed reasoning."""

from __future__ import annotations

from segue.canonical.blocks import Media, Text, Thinking
from tests.cli.client_logs import ClaudeCode, use
from tests.sessions.world import World, texts


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


def test_reasoning_is_read_if_it_was_removed_on_another_branch(world: World):
    log = ClaudeCode()
    log.user("Hello.")
    log.reply("m1", {"type": "thinking", "thinking": "1", "signature": "c2ln"})
    last = log.reply("m1", {"type": "text", "text": "Done."})
    log.user("Go on.")
    log.entry("attachment", attachment={"type": "thinking_stripped", "scope": "all"})
    log.reply("m2", {"type": "text", "text": "Left."})
    log.user("Another way.", below=last)
    session = world.read(world.add_lines("claude", log.lines))
    blocks = [block for entry in session.entries for block in entry.message.blocks]
    assert [block.text for block in blocks if isinstance(block, Thinking)] == ["1"]


def test_a_branch_that_was_left_is_not_read_beside_a_call_with_the_id_none(world: World):
    log = ClaudeCode()
    log.user("First.")
    log.reply("m1", use("None", command="ls"))
    result = log.result("None", "Output.")
    log.user("Left.", below=result)
    log.reply("m2", {"type": "text", "text": "Left, too."})
    log.user("Second.", below=result)
    log.reply("m3", {"type": "text", "text": "Done."})
    assert _prompts(world, log) == ["First.", "Second."]

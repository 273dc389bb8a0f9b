"""What the readers take from a session: attachments, instructions of the client, reasoning sealed by the gateway."""

from __future__ import annotations

import json

from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.sessions.client import SessionFile
from tests.cli.client_logs import ClaudeCode, Codex
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

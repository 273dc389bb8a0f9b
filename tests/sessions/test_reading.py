"""What the readers take from a session: what the client would send when it resumes it, without its own instructions."""

from __future__ import annotations

import json

from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.sessions.client import SessionFile
from tests.cli.client_logs import ClaudeCode, Codex, Contents, Pi
from tests.sessions.world import World, client, texts


def _find(world: World) -> list[SessionFile]:
    return list(client("codex").find(world.home, None))


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
        "response_item", type="message", role="user", content=content, internal_chat_message_metadata_passthrough=notes
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
    path = world.home.path / ".codex/sessions/2026/11/18/rollout-2026-11-18T06-00-00-sub.jsonl"
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


def test_a_prompt_in_one_message_with_the_context_of_gemini_is_carried(world: World):
    log = Contents("gemini")
    log.content("user", {"text": "<session_context>\nFACTS of the machine"}, {"text": "Hello."})
    log.answer("Done.")
    session = world.add_lines("gemini", log.lines)
    assert session.title == "Hello."
    assert texts(world.read(session), "human") == ["Hello."]


def test_a_session_of_gemini_that_was_killed_while_it_was_resumed_is_read(world: World):
    log = Contents("gemini")
    log.user("Hello.")
    log.answer("Done.")
    log.compact({"role": "user", "parts": [{"text": "<session_context>\nFACTS of the machine"}]})
    assert texts(world.read(world.add_lines("gemini", log.lines)), "human", "ai") == ["Hello.", "Done."]


def test_a_command_that_qwen_answered_itself_is_not_carried(world: World):
    log = Contents("qwen")
    log.user("Hello.")
    log.answer("Done.")
    for text, kind in (("/about", "assistant"), ("/greet", "info"), ("/review", "assistant")):
        log.user(text)
        payload = {"phase": "result", "rawCommand": text, "outputHistoryItems": [{"type": kind, "text": "x"}]}
        is_sent = text == "/review"
        log.line(type="system", subtype="slash_command", systemPayload={**payload, "sentToModel": is_sent})
    session = world.add_lines("qwen", log.lines)
    assert texts(world.read(session), "human") == ["Hello.", "/greet", "/review"]


def test_a_compaction_of_qwen_to_nothing_replaces_the_history(world: World):
    log = Contents("qwen")
    log.user("Before.")
    log.compact()
    log.user("After.")
    assert texts(world.read(world.add_lines("qwen", log.lines)), "human") == ["After."]


def test_reminders_of_qwen_in_a_compacted_history_are_not_carried(world: World):
    log = Contents("qwen")
    log.user("Before.")
    reminder = {"text": "<system-reminder>\nThe current date is: today.\n</system-reminder>"}
    log.compact(
        {"role": "user", "parts": [{"text": "SUMMARY"}]}, {"role": "user", "parts": [reminder, {"text": "Next."}]}
    )
    log.answer("Done.")
    assert texts(world.read(world.add_lines("qwen", log.lines)), "human") == ["SUMMARY", "Next."]


def test_summaries_of_pi_that_were_removed_are_not_carried(world: World):
    log = Pi()
    log.user("First.")
    log.compact("SHORTENED")
    log.entry("branch_summary", fromId="e1", summary="LEFT")
    log.entry("branch_summary", fromId="e1", summary="")
    log.answer("Done.")
    assert len(texts(world.read(world.add_lines("pi", log.lines)), "human")) == 2
    for target in ("e2", "e3"):
        log.entry("context_edit", targetId=target, replacement=None)
    log.user("Last.")
    assert texts(world.read(world.add_lines("pi", log.lines)), "human") == ["Last."]


def test_a_compaction_of_the_first_version_of_pi_keeps_entries_by_their_number(world: World):
    log = Pi()
    log.user("First.")
    log.user("Kept.")
    log.entry("compaction", summary="SHORTENED", firstKeptEntryIndex=2, tokensBefore=1)
    log.user("Last.")
    lines = [{key: item for key, item in line.items() if key not in ("id", "parentId")} for line in log.lines[1:]]
    header = {key: item for key, item in log.lines[0].items() if key != "version"}
    summary, *prompts = texts(world.read(world.add_lines("pi", [header, *lines])), "human")
    assert "SHORTENED" in summary
    assert prompts == ["Kept.", "Last."]


def test_a_command_of_the_user_in_pi_names_the_file_with_its_whole_output(world: World):
    log = Pi()
    log.user("Hello.")
    facts = {"command": "ls", "output": "a", "exitCode": 2, "cancelled": False}
    log.message("bashExecution", None, **facts, truncated=True, fullOutputPath="/tmp/pi-bash.log")
    log.message("bashExecution", None, **facts, excludeFromContext=True)
    _, command = texts(world.read(world.add_lines("pi", log.lines)), "human")
    assert all(word in command for word in ("`ls`", "Exit code 2", "/tmp/pi-bash.log"))

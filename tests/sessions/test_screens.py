"""What a client's screen shows of a moved session: the diff of an edit, output without labels, no parts as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from segue.sessions.client import NewSession, SessionFile, SessionItem
from segue.sessions.registry import CLIENTS
from tests.cli.client_logs import ClaudeCode
from tests.sessions.world import START, World


def _lines(world: World, session: SessionFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in world.load(session).splitlines()]


def _gemini_calls(world: World, session: SessionFile) -> Iterator[dict[str, Any]]:
    for line in _lines(world, session):
        yield from line.get("toolCalls", ())


def _use(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def test_gemini_shows_its_own_names_diffs_and_output(world: World):
    session = world.move(world.add_recorded("claude"), "gemini").session
    calls = list(_gemini_calls(world, session))
    assert [call["displayName"] for call in calls] == ["ReadFile", "ReadFile", "Edit", "Shell", "Shell"]
    edit, command = calls[2]["resultDisplay"], calls[3]["resultDisplay"]
    assert edit["fileName"] == "beta.txt"
    assert "-CONTENT-BETA\n+EDITED-GAMMA\n" in edit["fileDiff"]
    # With it, a rewind of the client would change the file.
    assert "diffStat" not in edit
    assert command == "RESULT-ONE"


def test_qwen_shows_diffs_and_output(world: World):
    session = world.move(world.add_recorded("claude"), "qwen").session
    shown = [line["toolCallResult"]["resultDisplay"] for line in _lines(world, session) if "toolCallResult" in line]
    assert "-CONTENT-BETA\n+EDITED-GAMMA\n" in shown[2]["fileDiff"]
    assert shown[3] == "RESULT-ONE"


def test_pi_shows_diffs(world: World):
    session = world.move(world.add_recorded("claude"), "pi").session
    details = [line["message"]["details"] for line in _lines(world, session) if "details" in line.get("message", {})]
    assert details == [{"diff": "-1 CONTENT-BETA\n+1 EDITED-GAMMA"}]


def test_an_edit_that_failed_is_shown_as_its_error(world: World):
    log = ClaudeCode()
    log.user("Edit it.")
    log.reply("m1", _use("toolu_1", "Edit", file_path="/w/a.py", old_string="a", new_string="b"))
    failed = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such text", "is_error": True}
    log.user([failed])
    log.reply("m2", {"type": "text", "text": "Done."})
    session = world.add_lines("claude", log.lines)
    (call,) = _gemini_calls(world, world.move(session, "gemini").session)
    assert (call["status"], call["resultDisplay"]) == ("error", "no such text")
    assert b'"details"' not in world.load(world.move(session, "pi").session)


def test_gemini_shows_only_the_text_of_a_reply_whose_calls_are_not_at_its_end(world: World):
    log = ClaudeCode()
    log.user("Run them.")
    log.reply("m1", _use("toolu_1", "Bash", command="ls"), {"type": "text", "text": "And then."})
    log.result("toolu_1", "out")
    log.reply("m2", {"type": "text", "text": "Done."})
    session = world.move(world.add_lines("claude", log.lines), "gemini").session
    (reply,) = [line for line in _lines(world, session) if line.get("toolCalls")]
    assert [*map(list, reply["content"])] == [["functionCall"], ["text"]]
    assert reply["displayContent"] == [{"text": "And then."}]


def test_gemini_shows_nothing_for_results_in_a_message_of_their_own(world: World):
    calls = [{"functionCall": {"id": id, "name": "glob", "args": {}}} for id in ("a", "b")]
    results = [{"functionResponse": {"id": id, "name": "glob", "response": {"output": id}}} for id in ("b", "a")]
    items = [SessionItem({"role": "model", "parts": [call]}) for call in calls]
    items += [SessionItem({"role": "user", "parts": [result]}) for result in results]
    data = CLIENTS["gemini"].writer.encode(NewSession("s", tuple(items), "/w", START))
    (message,) = [line for line in map(json.loads, data.splitlines()) if line.get("content") == results]
    assert message["displayContent"] == [{"text": " "}]

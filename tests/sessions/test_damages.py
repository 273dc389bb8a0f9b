"""Sessions as they are in real life: killed, with repeated, long and foreign ids, orphans, cut arguments, compactions.

Each is moved to the other clients and judged by the request that these would send next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from segue.canonical.blocks import ToolCall
from segue.sessions.client import SessionFile
from tests.budget import SOAK, sample
from tests.cli.client_logs import ClaudeCode, Codex, Contents, Opencode, Pi
from tests.sessions.world import World, texts

LONG_ID = "x" * 96


def call(id: str, word: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": f"echo {word}"}}


def claude_killed() -> list[dict[str, Any]]:
    log = ClaudeCode()
    log.user("Do it.")
    first = log.reply("m1", call("toolu_1", "ONE"))
    log.reply("m1", call("toolu_2", "TWO"))
    log.result("toolu_1", "RESULT-ONE", first)
    return log.lines


def claude_repeated_ids() -> list[dict[str, Any]]:
    log = ClaudeCode()
    for number, word in enumerate(("ONE", "TWO")):
        log.user(f"Do {word}.")
        log.reply(f"m{number}", call("toolu_1", word))
        log.result("toolu_1", f"RESULT-{word}")
        log.reply(f"n{number}", {"type": "text", "text": "Done."})
    return log.lines


def claude_with_id(id: str) -> Callable[[], list[dict[str, Any]]]:
    def build() -> list[dict[str, Any]]:
        log = ClaudeCode()
        log.user("Do it.")
        log.reply("m1", call(id, "ONE"))
        log.result(id, "RESULT-ONE")
        log.reply("m2", {"type": "text", "text": "Done."})
        return log.lines

    return build


def claude_orphan() -> list[dict[str, Any]]:
    log = ClaudeCode()
    log.user("Do it.")
    log.result("toolu_9", "RESULT-ORPHAN")
    log.reply("m1", call("toolu_1", "ONE"))
    log.result("toolu_1", "RESULT-ONE")
    return log.lines


def claude_unparsed() -> list[dict[str, Any]]:
    log = ClaudeCode()
    log.user("Do it.")
    raw = '{"command": "echo ONE'
    block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"__unparsedToolInput": {"raw": raw, "len": 21}}}
    log.reply("m1", block)
    log.result("t1", "RESULT-ONE")
    return log.lines


def claude_compacted() -> list[dict[str, Any]]:
    log = ClaudeCode()
    log.user("Before.")
    log.reply("m1", call("toolu_1", "BEFORE"))
    log.result("toolu_1", "RESULT-BEFORE")
    log.entry("system", None, subtype="compact_boundary", content="Conversation compacted")
    log.user("SUMMARY of the work so far.", isCompactSummary=True)
    log.user("Go on.")
    log.reply("m2", call("toolu_2", "ONE"))
    log.result("toolu_2", "RESULT-ONE")
    return log.lines


def codex_call(log: Codex, id: str, word: str) -> None:
    arguments = f'{{"cmd":"echo {word}"}}'
    log.line("response_item", type="function_call", name="exec_command", arguments=arguments, call_id=id)


def codex_output(log: Codex, id: str, word: str) -> None:
    log.line("response_item", type="function_call_output", call_id=id, output=f"RESULT-{word}")


def codex_killed() -> list[dict[str, Any]]:
    log = Codex()
    log.user("Do it.")
    codex_call(log, "call_1", "ONE")
    codex_call(log, "call_2", "TWO")
    codex_output(log, "call_2", "TWO")
    return log.lines


def codex_repeated_ids() -> list[dict[str, Any]]:
    log = Codex()
    for word in ("ONE", "TWO"):
        log.user(f"Do {word}.")
        codex_call(log, "call_0", word)
        codex_output(log, "call_0", word)
        log.answer("Done.")
    return log.lines


def codex_with_id(id: str) -> Callable[[], list[dict[str, Any]]]:
    def build() -> list[dict[str, Any]]:
        log = Codex()
        log.user("Do it.")
        codex_call(log, id, "ONE")
        codex_output(log, id, "ONE")
        log.answer("Done.")
        return log.lines

    return build


def codex_orphan() -> list[dict[str, Any]]:
    log = Codex()
    log.user("Do it.")
    codex_output(log, "call_9", "ORPHAN")
    codex_call(log, "call_1", "ONE")
    codex_output(log, "call_1", "ONE")
    return log.lines


def codex_cut() -> list[dict[str, Any]]:
    log = Codex()
    log.user("Do it.")
    arguments = '{"cmd":"echo ONE'
    log.line("response_item", type="function_call", name="exec_command", arguments=arguments, call_id="call_1")
    codex_output(log, "call_1", "ONE")
    return log.lines


def codex_compacted() -> list[dict[str, Any]]:
    log = Codex()
    log.user("Before.")
    codex_call(log, "call_1", "BEFORE")
    codex_output(log, "call_1", "BEFORE")
    content = [{"type": "input_text", "text": "SUMMARY of the work so far."}]
    log.line("compacted", message="", replacement_history=[{"type": "message", "role": "user", "content": content}])
    log.user("Go on.")
    codex_call(log, "call_2", "ONE")
    codex_output(log, "call_2", "ONE")
    return log.lines


def contents_killed(client: str) -> list[dict[str, Any]]:
    log = Contents(client)
    log.user("Do it.")
    log.call(("c1", "echo ONE"), ("c2", "echo TWO"))
    log.result("c2", "RESULT-TWO")
    return log.lines


def contents_repeated_ids(client: str) -> list[dict[str, Any]]:
    log = Contents(client)
    for word in ("ONE", "TWO"):
        log.user(f"Do {word}.")
        log.call(("c0", f"echo {word}"))
        log.result("c0", f"RESULT-{word}")
        log.answer("Done.")
    return log.lines


def contents_with_id(id: str) -> Callable[[str], list[dict[str, Any]]]:
    def build(client: str) -> list[dict[str, Any]]:
        log = Contents(client)
        log.user("Do it.")
        log.call((id, "echo ONE"))
        log.result(id, "RESULT-ONE")
        log.answer("Done.")
        return log.lines

    return build


def contents_empty_ids(client: str) -> list[dict[str, Any]]:
    log = Contents(client)
    log.user("Do it.")
    log.call(("", "echo ONE"), ("", "echo TWO"))
    responses = [{"id": "", "name": "run_shell_command", "response": {"output": f"RESULT-{w}"}} for w in ("ONE", "TWO")]
    log.content("user", *({"functionResponse": response} for response in responses))
    return log.lines


def contents_orphan(client: str) -> list[dict[str, Any]]:
    log = Contents(client)
    log.user("Do it.")
    log.result("c9", "RESULT-ORPHAN")
    log.call(("c1", "echo ONE"))
    log.result("c1", "RESULT-ONE")
    return log.lines


def contents_compacted(client: str) -> list[dict[str, Any]]:
    log = Contents(client)
    log.user("Before.")
    log.call(("c1", "echo BEFORE"))
    log.result("c1", "RESULT-BEFORE")
    log.compact({"role": "user", "parts": [{"text": "SUMMARY of the work so far."}]})
    log.user("Go on.")
    log.call(("c2", "echo ONE"))
    log.result("c2", "RESULT-ONE")
    return log.lines


CONTENTS_DAMAGES: dict[str, tuple[Callable[[str], list[dict[str, Any]]], tuple[str, ...]]] = {
    "killed in mid-call": (contents_killed, ("TWO",)),
    "repeated ids": (contents_repeated_ids, ("ONE", "TWO")),
    "long id": (contents_with_id(LONG_ID), ("ONE",)),
    "K2 id": (contents_with_id("functions.run_shell_command:0"), ("ONE",)),
    "empty ids": (contents_empty_ids, ("ONE", "TWO")),
    "orphan result": (contents_orphan, ("ONE",)),
    "compaction": (contents_compacted, ("ONE",)),
}


def pi_killed() -> list[dict[str, Any]]:
    log = Pi()
    log.user("Do it.")
    log.call(("c1", "echo ONE"), ("c2", "echo TWO"))
    log.result("c2", "RESULT-TWO")
    return log.lines


def pi_repeated_ids() -> list[dict[str, Any]]:
    log = Pi()
    for word in ("ONE", "TWO"):
        log.user(f"Do {word}.")
        log.call(("call_0", f"echo {word}"))
        log.result("call_0", f"RESULT-{word}")
        log.answer("Done.")
    return log.lines


def pi_with_id(id: str) -> Callable[[], list[dict[str, Any]]]:
    def build() -> list[dict[str, Any]]:
        log = Pi()
        log.user("Do it.")
        log.call((id, "echo ONE"))
        log.result(id, "RESULT-ONE")
        log.answer("Done.")
        return log.lines

    return build


def pi_orphan() -> list[dict[str, Any]]:
    log = Pi()
    log.user("Do it.")
    log.result("c9", "RESULT-ORPHAN")
    log.call(("c1", "echo ONE"))
    log.result("c1", "RESULT-ONE")
    return log.lines


def pi_cut() -> list[dict[str, Any]]:
    log = Pi()
    log.user("Do it.")
    block = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "echo BEF"}}
    log.reply(block, stopReason="aborted")
    log.user("Again.")
    log.call(("c2", "echo ONE"))
    log.result("c2", "RESULT-ONE")
    return log.lines


def pi_compacted() -> list[dict[str, Any]]:
    log = Pi()
    log.user("Before.")
    log.call(("c1", "echo BEFORE"))
    log.result("c1", "RESULT-BEFORE")
    log.compact("SUMMARY of the work so far.")
    log.user("Go on.")
    log.call(("c2", "echo ONE"))
    log.result("c2", "RESULT-ONE")
    return log.lines


def opencode_killed() -> list[dict[str, Any]]:
    log = Opencode()
    log.user("Do it.")
    log.reply(log.call("c1", "echo ONE", "running"), log.call("c2", "echo TWO", output="RESULT-TWO"))
    return log.lines


def opencode_with_ids(*ids: str) -> Callable[[], list[dict[str, Any]]]:
    def build() -> list[dict[str, Any]]:
        log = Opencode()
        for id, word in zip(ids, ("ONE", "TWO"), strict=False):
            log.user(f"Do {word}.")
            log.reply(log.call(id, f"echo {word}", output=f"RESULT-{word}"))
            log.reply("Done.")
        return log.lines

    return build


def opencode_failed() -> list[dict[str, Any]]:
    log = Opencode()
    log.user("Do it.")
    error = {"name": "APIError", "data": {"message": "Overloaded", "isRetryable": True}}
    log.reply(log.call("c1", "echo BEFORE", "pending", input={}, raw='{"command": "echo BEF'), error=error)
    log.user("Again.")
    log.reply(log.call("c2", "echo ONE", output="RESULT-ONE"))
    return log.lines


def opencode_compacted() -> list[dict[str, Any]]:
    log = Opencode()
    log.user("Before.")
    log.reply(log.call("c1", "echo BEFORE", output="RESULT-BEFORE"))
    tail = log.user("Kept.")
    log.reply(log.call("c2", "echo ONE", output="RESULT-ONE"))
    log.user({"type": "compaction", "auto": True, "tail_start_id": tail})
    log.reply("SUMMARY of the work so far.", summary=True)
    log.user("Go on.")
    log.reply(log.call("c3", "echo TWO", output="RESULT-TWO"))
    return log.lines


# The words that must be in the moved session, each call's at its result.
DAMAGES: dict[str, tuple[str, Callable[[], list[dict[str, Any]]], tuple[str, ...]]] = {
    "claude killed in mid-call": ("claude", claude_killed, ("ONE",)),
    "claude repeated ids": ("claude", claude_repeated_ids, ("ONE", "TWO")),
    "claude long id": ("claude", claude_with_id(LONG_ID), ("ONE",)),
    "claude K2 id": ("claude", claude_with_id("functions.Bash:0"), ("ONE",)),
    "claude orphan result": ("claude", claude_orphan, ("ONE",)),
    "claude cut arguments": ("claude", claude_unparsed, ("ONE",)),
    "claude compaction": ("claude", claude_compacted, ("ONE",)),
    "codex killed in mid-call": ("codex", codex_killed, ("TWO",)),
    "codex repeated ids": ("codex", codex_repeated_ids, ("ONE", "TWO")),
    "codex long id": ("codex", codex_with_id(LONG_ID), ("ONE",)),
    "codex K2 id": ("codex", codex_with_id("functions.exec_command:0"), ("ONE",)),
    "codex orphan result": ("codex", codex_orphan, ("ONE",)),
    "codex cut arguments": ("codex", codex_cut, ("ONE",)),
    "codex compaction": ("codex", codex_compacted, ("ONE",)),
    **{
        f"{client} {name}": (client, partial(build, client), words)
        for client in ("gemini", "qwen")
        for name, (build, words) in CONTENTS_DAMAGES.items()
    },
    "pi killed in mid-call": ("pi", pi_killed, ("TWO",)),
    "pi repeated ids": ("pi", pi_repeated_ids, ("ONE", "TWO")),
    "pi long id": ("pi", pi_with_id(LONG_ID), ("ONE",)),
    "pi K2 id": ("pi", pi_with_id("functions.bash:0"), ("ONE",)),
    "pi orphan result": ("pi", pi_orphan, ("ONE",)),
    "pi stopped reply": ("pi", pi_cut, ("ONE",)),
    "pi compaction": ("pi", pi_compacted, ("ONE",)),
    "opencode killed in mid-call": ("opencode", opencode_killed, ("TWO",)),
    "opencode repeated ids": ("opencode", opencode_with_ids("c1", "c1"), ("ONE", "TWO")),
    "opencode long id": ("opencode", opencode_with_ids(LONG_ID), ("ONE",)),
    "opencode K2 id": ("opencode", opencode_with_ids("functions.bash:0"), ("ONE",)),
    "opencode failed reply": ("opencode", opencode_failed, ("ONE",)),
    "opencode compaction": ("opencode", opencode_compacted, ("ONE", "TWO")),
}
TARGETS = ("claude", "codex", "gemini", "qwen", "pi", "opencode")


def moved(world: World, name: str, target: str) -> SessionFile:
    client, build, _ = DAMAGES[name]
    return world.move(world.add_lines(client, build()), target).session


_MOVES = [(name, target) for name in DAMAGES for target in TARGETS if target != DAMAGES[name][0]]


@pytest.mark.parametrize(("name", "target"), [*sample(_MOVES, 2)])
def test_the_next_request_is_valid_and_results_are_at_their_calls(world: World, name: str, target: str):
    session = moved(world, name, target)
    assert world.violations(session) == []
    calls = world.calls(session)
    for word in DAMAGES[name][2]:
        (found,) = [result for _, arguments, result in calls if word in arguments]
        assert f"RESULT-{word}" in found
    text = world.load(session).decode()
    assert ("RESULT-ORPHAN" in text) == ("orphan" in name)
    assert ("SUMMARY" in text) == ("compaction" in name)
    assert "BEFORE" not in text


@pytest.mark.parametrize(("name", "abroad"), [*sample(_MOVES, 2, start=1)])
def test_it_comes_home_as_it_was(world: World, name: str, abroad: str):
    client, build, _ = DAMAGES[name]
    home = world.add_lines(client, build())
    before = world.load(home)
    away = world.move(home, abroad).session
    world.resume(away)
    back = world.move(away, client)
    assert back.report.action == "extended"
    # What this client's own file had wrong is still wrong in it; the new turns are right.
    assert world.is_continued(home, before)
    assert texts(world.read(home), "ai")[-1] == "leg1 answer."
    assert b"RESULT-LEG1" in world.load(home)


@pytest.mark.parametrize("target", TARGETS[1:])
def test_long_ids_are_short_enough_for_every_provider(world: World, target: str):
    """pi cuts ids at 64 characters: these two would be equal."""
    log = ClaudeCode()
    log.user("Do it.")
    log.reply("m1", call(f"{LONG_ID}1", "ONE"), call(f"{LONG_ID}2", "TWO"))
    log.result(f"{LONG_ID}2", "RESULT-TWO")
    log.result(f"{LONG_ID}1", "RESULT-ONE")
    session = world.move(world.add_lines("claude", log.lines), target).session
    blocks = [block for entry in world.read(session).entries for block in entry.message.blocks]
    ids = {block.raw_id for block in blocks if isinstance(block, ToolCall)}
    assert len(ids) == 2
    assert all(id is not None and len(id) <= 64 for id in ids)


_LARGE = [
    ("claude", "codex"),
    ("codex", "claude"),
    ("gemini", "qwen"),
    ("qwen", "gemini"),
    ("opencode", "claude"),
    ("claude", "opencode"),
]


@pytest.mark.parametrize(("source", "target"), list(sample(_LARGE, 3)))
def test_five_thousand_messages(world: World, source: str, target: str):
    """1,250 exchanges of four messages; with `make soak`, of all rows, and there and back."""
    count = 1250
    if source == "claude":
        log = ClaudeCode()
        for number in range(count):
            log.user(f"Do {number}.")
            log.reply(f"m{number}", call(f"toolu_{number}", f"W{number}"))
            log.result(f"toolu_{number}", f"RESULT-W{number}")
            log.reply(f"n{number}", {"type": "text", "text": f"Done {number}."})
        lines = log.lines
    elif source == "opencode":
        session = Opencode()
        for number in range(count):
            session.user(f"Do {number}.")
            session.reply(session.call(f"c{number}", f"echo W{number}", output=f"RESULT-W{number}"))
            session.reply(f"Done {number}.")
        lines = session.lines
    elif source != "codex":
        contents = Contents(source)
        for number in range(count):
            contents.user(f"Do {number}.")
            contents.call((f"c{number}", f"echo W{number}"))
            contents.result(f"c{number}", f"RESULT-W{number}")
            contents.answer(f"Done {number}.")
        lines = contents.lines
    else:
        rollout = Codex()
        for number in range(count):
            rollout.user(f"Do {number}.")
            codex_call(rollout, f"call_{number}", f"W{number}")
            codex_output(rollout, f"call_{number}", f"W{number}")
            rollout.answer(f"Done {number}.")
        lines = rollout.lines
    home = world.add_lines(source, lines)
    away = world.move(home, target).session
    assert world.violations(away) == []
    calls = world.calls(away)
    assert len(calls) == count
    assert all(f"RESULT-W{number}" in result for number, (_, _, result) in enumerate(calls))
    if SOAK:
        world.resume(away)
        assert world.move(away, source).report.action == "extended"

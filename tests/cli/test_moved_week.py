"""A week of a session that moves between six coding clients and segue, is edited by hand, and comes back.

Every day a client continues it. Judged by the request that each client would send next, which breaks no rule and has
each prompt once and each call with its result, and by the bytes of the first session, which only grows.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.sessions.client import SessionFile
from segue.sessions.mover import MoveResult
from tests.cli.process import run
from tests.sessions.test_moving_back import signatures
from tests.sessions.world import World, texts

DAY = 24 * 3600 * 1_000_000


class Week:
    """The session of today, and the prompts so far."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.folder = folder
        self.session = self.world.add_recorded("claude")
        self.prompts = ["TASK-ONE", "TASK-TWO"]
        self.calls = len(self.world.calls(self.session))

    def move(self, target: str, action: str = "created") -> MoveResult:
        """Move the session on the next day."""
        self.world._now += DAY
        moved = self.world.move(self.session, target)
        assert moved.report.action == action
        self.session = moved.session
        self.compare()
        return moved

    def work(self) -> None:
        """Let today's client continue the session as recorded: a prompt, a call with its result, a reply."""
        self.world.resume(self.session)
        self.prompts.append("TASK-leg1")
        self.calls += 1
        self.compare()

    def work_with_segue(self, prompt: str) -> None:
        (self.folder / "notes.txt").write_text("Buy bread.\n")
        variables = {"SEGUE_STORE": self.world.home.store, "HOME": str(self.folder)}
        done = run(
            "run", "--emulated", "-m", "moonshot/kimi-k2.6", "--conversation", self.session.id, prompt, **variables
        )
        assert done.code == 0, done.err
        self.prompts.append(prompt)
        self.calls += 1
        self.compare()

    def compare(self) -> None:
        # The requests of segue itself are judged by the strict emulator.
        assert self.session.client == "segue" or self.world.violations(self.session) == []
        session = self.world.read(self.session)
        assert [text.strip('"').partition(":")[0] for text in texts(session, "human")] == self.prompts
        blocks = [block for entry in session.entries for block in entry.message.blocks]
        calls = [block.id for block in blocks if isinstance(block, ToolCall)]
        assert len(set(calls)) == len(calls) == self.calls
        results = [block.call_id for block in blocks if isinstance(block, ToolResponse)]
        # One call was interrupted; segue's own store has no result of it.
        assert len(results) >= self.calls - (self.session.client == "segue")
        assert len(set(results)) == len(results)
        assert set(results) <= set(calls)


@pytest.fixture
def week(tmp_path: Path) -> Week:
    return Week(tmp_path)


def test_a_week_of_a_moved_session(week: Week) -> None:
    world, first = week.world, week.session
    before, reasoning = world.load(first), signatures(world, first)
    week.move("codex")
    week.work()
    in_codex = week.session
    week.move("segue")
    week.work_with_segue("Read notes.txt")
    week.move("gemini")
    week.work()
    # By hand, a turn is undone in the session that Codex still has: it is left alone, and a new one names it.
    _undo_in_codex(in_codex)
    edited = world.load(in_codex)
    assert week.move("codex", "copied").session.id != in_codex.id
    assert world.load(in_codex) == edited
    assert f"codex:{in_codex.id}".encode() in world.load(week.session)
    week.work()
    for client in ("opencode", "pi", "qwen"):
        week.move(client)
        week.work()
    week.move("claude", "extended")
    assert week.session.id == first.id
    assert world.is_continued(first, before)
    assert signatures(world, first) == reasoning
    week.work()


def _undo_in_codex(session: SessionFile) -> None:
    line = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}, "timestamp": "x"}
    with session.path.open("a") as file:
        file.write(json.dumps(line) + "\n")

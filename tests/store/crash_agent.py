"""Agents that are killed: whole turns through `StoredConversation`, each step acknowledged once it is kept.

Whoever comes next finds each step that was acknowledged, a history that every provider takes, and goes on: calls whose
outcome nobody wrote down are ended as interruptions with its first write, all others never.

    python -m tests.store.crash_agent KIND PLACE SCHEMA KILLS SEED
"""

from __future__ import annotations

import json
import os
from typing import Any

import segue
from segue.canonical.blocks import ToolCall
from segue.errors import SegueError
from segue.store.conversation import StoredConversation
from segue.store.sql import SqlStore
from segue.wire.registry import WIRES
from tests.store.crash_writer import WriterKiller, main
from tests.store.engines import open_store
from tests.store.reply_bodies import reply_body

TARGETS = list(WIRES)
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("look", "run")]
HOUR = 3_600_000_000


def outcome(call: ToolCall) -> str:
    return f"what {call.id} found: " + "word " * (len(call.id) * (call.arguments["n"] + 1))


class AgentKiller(WriterKiller):
    """`facts` are what was acknowledged of each conversation: calls made, and calls that came to their end."""

    def __init__(self, kind: str, place: str, schema: str, seed: int) -> None:
        super().__init__(kind, place, schema, seed)
        self.facts: dict[str, dict[str, set[str]]] = {}

    def record_fields(self, fields: dict[str, Any]) -> None:
        facts = self.facts.setdefault(fields["conversation"], {"called": set(), "ended": set()})
        facts["called"] |= set(fields.get("called", ()))
        facts["ended"] |= set(fields.get("ended", ()))

    def check(self, store: SqlStore, conversation: str, acknowledged: int) -> int:
        kept = StoredConversation(store, conversation)
        assert kept.state.seq >= acknowledged, f"{acknowledged} acknowledged, {kept.state.seq} there"
        ledger = kept.chat.state.history.ledger
        facts = self.facts.get(conversation, {"called": set(), "ended": set()})
        assert facts["called"] <= set(ledger), "a call is gone"
        for call_id in facts["ended"]:
            assert ledger[call_id].state == "complete", f"{call_id} came to its end and is {ledger[call_id].state}"
        for entry in ledger.values():
            held = entry.original or entry.completion
            content = held.content if held is not None and entry.state == "complete" else None
            assert content is None or content[0].text == outcome(entry.call), (  # pyright: ignore[reportAttributeAccessIssue]
                f"{entry.call.id} has the result of another"
            )
        waiting = [call.id for call in kept.pending]
        assert set(waiting) <= {call.id for call in kept.chat.state.history.newest_calls}, "an older call still waits"
        for wire in TARGETS:
            verdict = segue.check(kept.render(wire).data, wire)
            assert verdict, f"{wire}: {[str(violation) for violation in verdict]}"
        assert [call.id for call in kept.pending] == waiting, "reading ended a call"
        return kept.state.seq

    def run_child(self, at: tuple[str, str, str], conversation: str | None, pipe: int, number: int) -> None:
        """Runs an agent until it is killed or done."""

        def acknowledge(kept: StoredConversation, **fields: object) -> None:
            line = {"conversation": kept.id, "seq": kept.state.seq, **fields}
            os.write(pipe, json.dumps(line).encode() + b"\n")

        try:
            # Each comes when the lease of the one before has run out.
            store = open_store(*at, clock=lambda: 10**15 + number * HOUR)
            if conversation is None:
                kept = StoredConversation.create(store, segue.Conversation(system="Be brief.", tools=TOOLS))
                acknowledge(kept)
            else:
                self.check(store, conversation, self.acknowledged[" ".join(at)].get(conversation, 0))
                kept = StoredConversation(store, conversation)
            self.work(kept, acknowledge)
        except (AssertionError, SegueError) as error:
            os.write(pipe, json.dumps({"bad": f"{type(error).__name__}: {error}"}).encode() + b"\n")

    @staticmethod
    def work(kept: StoredConversation, acknowledge: Any) -> None:
        for _ in range(20):
            turn = kept.chat.state.history.turns
            wire = TARGETS[turn % len(TARGETS)]
            left = [call.id for call in kept.pending]
            if turn % 3 == 0 or left:
                kept.add_user(f"question {turn}")
                acknowledge(kept)
            assert all(kept.chat.state.history.ledger[call_id].state == "interrupted" for call_id in left)
            kept.render(wire)
            calls = [(("look", "run")[n % 2], f"call_{n}") for n in range(turn % 4)]
            thought = "hm" if turn % 2 else ""
            reply = kept.add_reply(reply_body(wire, thought=thought, text=f"turn {turn}", calls=calls), source=wire)
            acknowledge(kept, called=[call.id for call in reply.calls])
            for call in reply.calls:
                kept.add_result(call, outcome(call))
                acknowledge(kept, ended=[call.id])
            if turn % 5 == 4:
                kept.compress("truncate-results", 300)
                acknowledge(kept)
            if turn % 10 == 9 and kept.state.compressions:
                kept.undo_compression()
                acknowledge(kept)
            turn_keys = [message.turn_key for message in kept.messages if message.speaker == "ai"]
            if turn % 7 == 6:
                kept.rewind(turn_keys[-2] or "")
                acknowledge(kept)


if __name__ == "__main__":
    main(AgentKiller)

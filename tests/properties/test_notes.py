"""The notes of a compression are true in every render, and no result is lost without a note or a finding.

Random operations on a stored conversation; all ten APIs are rendered after them, and the results in each body are
compared with the texts that were given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.blocks import ToolCall, calls_of, responses_of, text_of
from segue.canonical.compress import STRATEGIES
from segue.store.conversation import StoredConversation
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.store.event_lists import EventLists
from tests.store.reply_bodies import reply_body

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("read", "write")]
NOTE = re.compile(r"\[(repeated|superseded|stale): .+ further on\]")
REMOVED = "[result removed to save space]"
OPERATIONS = (
    *("turn", "turn", "turn", "turn", "result", "result", "pin", "pin"),
    *("dense", "dense", "dense", "compress", "compress", "rewind", "fork", "fork_whole", "undo"),
)


class Conversations:
    """A conversation, and every text that was given as the result of a call."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self.draw = draw
        self.log = StoredConversation.create(EventLists(), title=None)
        self.log.update_settings(tools=TOOLS)
        self.given: dict[str, list[str]] = {}
        self.summarised: set[str] = set()

    def turn(self) -> None:
        """A reply with up to three calls, whose results come in any order, late or not at all."""
        if not self.draw(3):
            self.log.add_user(("go on", "[summary of 3 earlier messages] by the user")[self.draw(2)])
        wire = sorted(WIRES)[self.draw(len(WIRES))]
        self.log.render(wire)
        named = [(("read", "write")[self.draw(4) == 3], f"c{i}") for i in range(1 + self.draw(3))]
        calls = list(self.log.add_reply(reply_body(wire, text="so", calls=named), source=wire).calls)
        while calls:
            call = calls.pop(self.draw(len(calls)))
            if self.draw(5):
                self.add(call)

    def result(self) -> None:
        """A late result of any call."""
        pending = self.log.pending
        if pending:
            self.add(pending[self.draw(len(pending))])

    def add(self, call: ToolCall) -> None:
        text = f"text {self.draw(3)} " + "word " * 120
        self.log.add_result(call, text)
        self.given.setdefault(call.id, []).append(text)

    def pin(self) -> None:
        messages = self.log.messages
        if messages:
            self.log.pin(messages[self.draw(len(messages))])

    def dense(self) -> None:
        self.log.compress("dense", self.log.chat.tokens * self.draw(4) // 4)

    def compress(self) -> None:
        strategy = sorted(STRATEGIES)[self.draw(len(STRATEGIES))]
        self.log.compress(strategy, self.log.chat.tokens * self.draw(4) // 4, summarise=self.summarise)

    def summarise(self, messages: Any) -> str:
        self.summarised |= {call.id for message in messages for call in calls_of(message)}
        return "in short"

    def rewind(self) -> None:
        turns = self.turns()
        if turns:
            self.log.rewind(turns[self.draw(len(turns))])

    def fork(self) -> None:
        turns = self.turns()
        if turns:
            self.log = self.log.fork(turns[self.draw(len(turns))])

    def fork_whole(self) -> None:
        self.log = StoredConversation(self.log._store, self.log.fork().id)

    def undo(self) -> None:
        if self.log.state.compressions:
            self.log.undo_compression()

    def turns(self) -> list[str]:
        return list(dict.fromkeys(m.turn_key for m in self.log.messages if m.turn_key and m.speaker == "ai"))

    # ----------------------------------------------------------------------------------------------------------- checks

    def check(self, wire: str) -> None:
        rendered = self.log.render(wire)
        request = WIRES[wire].parse_request(rendered.body)
        results = [response for message in request.messages for response in responses_of(message)]
        texts = [text_of(response.content) for response in results]
        ids = [call_id for call_id, _ in rendered.report.emitted_results]
        assert len(ids) == len(texts)
        calls = {c.id: c for m in self.log.messages for c in calls_of(m)}
        for place, (call_id, text) in enumerate(zip(ids, texts, strict=True)):
            note = NOTE.fullmatch(text)
            if note is None:
                continue
            later = [*zip(ids[place + 1 :], texts[place + 1 :], strict=True)]
            if note[1] == "repeated":
                assert self.given[call_id][0] in [other for _, other in later], "the same result is not further on"
            else:
                path = calls[call_id].arguments["path"]
                newer = [i for i, other in later if i in calls and other in self.given.get(i, ())]
                assert any(calls[i].arguments["path"] == path for i in newer), "no newer result is further on"
        for call_id, given_texts in self.given.items():
            if call_id in ids:
                text = texts[ids.index(call_id)]
                is_cut = REMOVED in text or "characters left out" in text or NOTE.fullmatch(text)
                assert text in given_texts or is_cut or "[interrupted" in text, "a text that was not given"

    def check_covered(self) -> None:
        """Each call is in the messages, or rewound, or in a summary, or reported as dropped."""
        history = self.log.chat.state.history
        present = {call.id for message in self.log.messages for call in calls_of(message)}
        reported = {call_id for change in self.log.chat.state.compression_changes for call_id in change.calls}
        for call_id, entry in history.ledger.items():
            assert call_id in present or entry.rewound or call_id in reported
        for entry in history.ledger.values():
            shortened = entry.completion.shortened if entry.completion is not None else None
            if shortened is not None and entry.call.id in present:
                assert entry.call.id in reported
                assert entry.original is not None


@examples(0.2)
@given(names=st.lists(st.sampled_from(OPERATIONS), min_size=4, max_size=12), data=st.data())
def test_notes_are_true_in_every_render(names: list[str], data: st.DataObject) -> None:
    run(names, lambda count: data.draw(st.integers(0, count - 1)))


def run(names: list[str], draw: Callable[[int], int]) -> None:
    chats = Conversations(draw)
    chats.turn()
    for name in names:
        getattr(chats, name)()
        if name != "turn":
            for wire in WIRES:
                chats.check(wire)
            chats.check_covered()

"""Random days of a client whose conversation is compacted, pruned and switched between upstreams.

Whatever happens, an upstream that is sent the conversation has every fact of it, or the report says that something is
lost. A provider's compaction goes to the provider that made it only.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.bridge.entries import EntryMemory
from tests.bridge.exchanges import MODELS
from tests.bridge.test_compaction import HOME, PRUNINGS, compact, items_at_home, reply_items, said, send

STEPS = st.one_of(
    st.tuples(st.just("switch"), st.sampled_from(sorted(MODELS))),
    st.tuples(st.just("compact"), st.sampled_from(sorted(PRUNINGS))),
    st.tuples(st.just("evict"), st.integers(0, 9)),
    st.tuples(st.just("account"), st.integers(1, 2)),
)


class Day:
    """The client's conversation, the facts in it, and the store of the gateway."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.items: list[Any] = []
        self.facts: list[str] = []
        self.blobs: list[str] = []
        self.memory = EntryMemory()
        self.is_evicted = False

    def say(self) -> None:
        for role in ("assistant", "user") if self.items else ("user",):
            self.facts.append(f"FACT-{len(self.facts)}.")
            self.items.append(said(role, self.facts[-1]))

    def compact(self, pruning: str) -> None:
        self.say()
        blob = f"gAAAA{len(self.blobs)}sealed"
        item = {**HOME[self.api], "encrypted_content": blob}
        if "id" in item:
            item["id"] = f"cmp_{len(self.blobs)}"
        compact(self.api, self.memory, self.items, item)
        self.blobs.append(blob)
        self.items = PRUNINGS[pruning](self.items, reply_items(self.api, item))

    def evict(self, place: int) -> None:
        keys = sorted(self.memory._entries)
        if keys:
            self.memory.delete([keys[place % len(keys)]])
            self.is_evicted = True

    def switch(self, target: str, account: int = 0) -> None:
        self.say()
        answer = send(self.api, target, self.memory, self.items, account)
        sent = json.dumps(answer.sent_bodies[0])
        if target == self.api and not account:
            given = items_at_home(self.api, self.items)
            assert answer.sent_bodies[0]["input" if self.api == "openai-responses" else "messages"] == given
            return
        assert target == self.api or not [blob for blob in self.blobs if blob in sent]
        # Without the entry that says who made it, an item is sent to its own API.
        assert self.is_evicted or not [blob for blob in self.blobs if blob in sent]
        missing = [fact for fact in self.facts if fact not in sent]
        assert answer.relay.report is not None
        told = {finding.level for finding in answer.relay.report.findings} & {"lost", "changed"}
        assert not missing or (self.is_evicted and (told or target == self.api)), missing
        assert self.is_evicted or all(sent.count(fact) == 1 for fact in self.facts)


@pytest.mark.parametrize("api", HOME)
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, min_size=2, max_size=9))
def test_nothing_is_lost_unless_it_is_said(api: str, steps: list[tuple[str, Any]]) -> None:
    day = Day(api)
    day.say()
    for name, value in steps:
        match name:
            case "switch":
                day.switch(value)
            case "account":
                day.switch(api, value)
            case "compact":
                day.compact(value)
            case _:
                day.evict(value)
    for target in ("kimi", "gemini", api):
        day.switch(target)

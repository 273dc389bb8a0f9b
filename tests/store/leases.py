"""A leased conversation and a second owner."""

from __future__ import annotations

import segue
from segue.store.conversation import StoredConversation
from segue.store.sql import SqlStore
from segue.wire.registry import WIRES
from tests.store.reply_bodies import reply_body

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("look", "run")]
TTL = 60


class Clock:
    def __init__(self, now: int = 1_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1_000_000)


def create_with_open_calls(store: SqlStore) -> StoredConversation:
    kept = StoredConversation.create(store, segue.Conversation(tools=TOOLS), owner="the first", ttl=TTL)
    kept.add_user("go")
    kept.render("anthropic")
    kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1"), ("run", "toolu_2")]))
    return kept


def open_as_second(stores: tuple[SqlStore, SqlStore], kept: StoredConversation) -> StoredConversation:
    return StoredConversation(stores[1], kept.id, owner="the second", ttl=TTL)


def call_states(kept: StoredConversation) -> list[str]:
    return [entry.state for entry in kept.chat.state.history.ledger.values()]


def event_kinds(kept: StoredConversation) -> list[str]:
    return [type(record.event).__name__ for record in kept._store.events(kept.id)]


def check_renders(kept: StoredConversation) -> None:
    """It renders to a valid body for every wire, and a reader renders the same."""
    reader = StoredConversation(kept._store, kept.id)
    assert reader.messages == kept.messages
    for wire in WIRES:
        data = kept.render(wire).data
        assert segue.check(data, wire)
        assert reader.render(wire).data == data

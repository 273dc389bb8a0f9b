"""Pins of a stored conversation: every reader gets the same pinned messages."""

from __future__ import annotations

import segue
from segue.canonical.blocks import text_of
from segue.store.conversation import StoredConversation
from segue.store.sql import SqlStore
from tests.store.reply_bodies import reply_body


def long(store: SqlStore) -> StoredConversation:
    kept = StoredConversation.create(store)
    for number in range(10):
        kept.add_user(f"question {number} " + "word " * 50)
        kept.add_reply(reply_body("anthropic", text="yes"), source="anthropic")
    return kept


def pinned(kept: StoredConversation) -> list[str]:
    reader = StoredConversation(kept._store, kept.id)
    assert reader.messages == kept.messages
    return [text_of(message.blocks).split(" word")[0] for message in kept.messages if message.pinned]


def test_pin_holds_for_every_reader(store: SqlStore) -> None:
    kept = long(store)
    assert kept.pin(kept.messages[4]).pinned
    kept.close()
    again = StoredConversation(store, kept.id)
    assert pinned(again) == ["question 2"]
    again.compress("drop-oldest", 100)
    assert "question 2" in pinned(again)


def test_a_pin_stays_with_its_message_when_a_compression_before_it_is_undone(store: SqlStore) -> None:
    kept = long(store)
    kept.compress("drop-oldest", 300)
    place = next(place for place, message in enumerate(kept.messages) if "question 8" in text_of(message.blocks))
    kept.pin(kept.messages[place])
    kept.rewind(kept.messages[place + 1].turn_key or "")
    kept.add_user("and then")
    kept.pin(kept.messages[-1])
    assert pinned(kept) == ["question 8", "and then"]
    kept.undo_compression()
    assert pinned(kept) == ["question 8", "and then"]
    assert len(kept.messages) == 19


def test_pin_of_a_compressed_message_is_undone_with_it(store: SqlStore) -> None:
    kept = long(store)
    kept.compress("middle-out", 300, summarise=lambda _: "much was asked")
    made = next(message for message in kept.messages if "much was asked" in text_of(message.blocks))
    kept.pin(made)
    assert len(pinned(kept)) == 1
    kept.undo_compression()
    assert pinned(kept) == []


def test_stored_conversation_has_every_conversation_method(store: SqlStore) -> None:
    """But those that make one, and what is looked at through `chat`."""
    kept = long(store)
    others = {"from_body", "load"}
    wanted = {name for name in vars(segue.Conversation) if not name.startswith("_") and name not in others}
    methods = {name for name in wanted if callable(getattr(segue.Conversation, name))}
    assert methods <= set(dir(kept))
    assert {"pin", "dump", "compress", "add_user"} <= methods
    loaded = segue.Conversation.load(kept.dump())
    assert loaded.messages == kept.messages

"""Each request is stored as sent once, whatever is written between the request and its reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Text
from segue.canonical.request import Reply
from segue.errors import StoreError
from segue.store.conversation import StoredConversation
from segue.store.events import Sent
from segue.store.sqlite import SqliteStore
from tests.store.leases import TOOLS, check_renders, event_kinds
from tests.store.reply_bodies import reply_body


@pytest.fixture
def kept(quick_folder: Path) -> Iterator[StoredConversation]:
    """A conversation whose last request is marked as sent; one call of its newest turn is pending."""
    with SqliteStore(quick_folder / "history.db") as store:
        stored = StoredConversation.create(store, segue.Conversation(tools=TOOLS))
        stored.add_user("go")
        stored.render("anthropic", "claude-sonnet-4-5")
        look, _ = stored.add_reply(reply_body("anthropic", calls=[("look", "a"), ("run", "b")])).calls
        stored.record_result(look, "one")
        stored.render("openai-chat", "gpt-4.1")
        stored.mark_sent()
        assert event_kinds(stored).count("Sent") == 2
        yield stored


def fail_to_write(kept: StoredConversation) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def full(*_: object, **more: object) -> int:
            raise StoreError("no room", cause="full")

        patch.setattr(kept._store, "append", full)
        with pytest.raises(StoreError):
            kept.rename("x")


BETWEEN: dict[str, Callable[[StoredConversation], object]] = {
    "nothing": lambda kept: None,
    "a switch": lambda kept: kept.switch("kimi", "kimi-k2"),
    "a title": lambda kept: kept.rename("a title"),
    "settings": lambda kept: kept.update_settings(system="Be brief."),
    "a broken reply": lambda kept: kept.record_broken(Reply((Text("half"),))),
    "a second result": lambda kept: kept.add_result("a", "two"),
    "a user message": lambda kept: kept.add_user("wait"),
    "a pin": lambda kept: kept.pin(kept.messages[0]),
    "a compression": lambda kept: kept.compress("truncate-results", 0),
    "a renewal": lambda kept: kept.renew_lease(),
    "a reload": lambda kept: kept.reload(),
    "a failed write": fail_to_write,
    "all": lambda kept: [write(kept) for name, write in BETWEEN.items() if name != "all"],
}


def test_sent_is_stored_once_if_its_commit_was_not_confirmed(kept: StoredConversation) -> None:
    append = kept._store.append

    def lost(*given: Any, **more: Any) -> int:
        append(*given, **more)
        raise StoreError("the connection broke", cause="lost", retryable=True)

    kept.add_reply(reply_body("openai-chat", text="fine"))
    for write in (kept.mark_sent, lambda: kept.add_reply(reply_body("kimi", text="well"))):
        kept.add_user("and?")
        kept.render("kimi")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kept._store, "append", lost)
            with pytest.raises(StoreError):
                write()
        if write == kept.mark_sent:
            kept.add_reply(reply_body("kimi", text="well"))
    assert event_kinds(kept).count("Sent") == 4
    kept.add_user("and?")
    kept.render("kimi")
    kept.mark_sent()
    kept.add_reply(reply_body("kimi", text="well"))
    assert event_kinds(kept).count("Sent") == 5
    check_renders(kept)


@pytest.mark.parametrize("name", BETWEEN)
def test_sent_is_stored_once(kept: StoredConversation, name: str) -> None:
    BETWEEN[name](kept)
    kept.add_reply(reply_body("openai-chat", text="fine"))
    sent = [record.event for record in kept._store.events(kept.id) if isinstance(record.event, Sent)]
    assert [(event.target, event.model) for event in sent] == [
        ("anthropic", "claude-sonnet-4-5"),
        ("openai-chat", "gpt-4.1"),
    ]
    ledger = StoredConversation(kept._store, kept.id).chat.state.history.ledger
    assert ledger == kept.chat.state.history.ledger
    if name in ("a switch", "all"):
        # The reply to an earlier request does not undo the switch.
        assert (kept.state.target, kept.state.model) == ("kimi", "kimi-k2")
    check_renders(kept)


def test_a_reply_without_mark_is_stored_with_sent(kept: StoredConversation) -> None:
    kept.add_reply(reply_body("openai-chat", text="fine"))
    for _ in range(2):
        kept.add_user("and?")
        kept.render("kimi")
        kept.add_reply(reply_body("kimi", text="well"))
    assert event_kinds(kept).count("Sent") == 4


def test_nothing_is_stored_without_a_new_request(kept: StoredConversation) -> None:
    reopened = StoredConversation(kept._store, kept.id, owner=kept._owner)
    for stored in (kept, reopened):
        before = event_kinds(stored)
        stored.mark_sent()
        assert event_kinds(stored) == before
    kept.add_reply(reply_body("openai-chat", text="fine"))
    kept.mark_sent()
    assert event_kinds(kept).count("Sent") == 2
    for _ in range(2):
        # A request that is rendered again may be a retry, which is another request.
        kept.render("kimi")
        kept.mark_sent()
        kept.mark_sent()
    assert event_kinds(kept).count("Sent") == 4


def test_request_that_was_rendered_before_the_conversation_was_stored_is_stored_as_sent(quick_folder: Path) -> None:
    chat = segue.Conversation()
    chat.add_user("go")
    chat.render("kimi")
    with SqliteStore(quick_folder / "history.db") as store:
        stored = StoredConversation.create(store, chat)
        stored.mark_sent()
        stored.mark_sent()
        assert event_kinds(stored).count("Sent") == 1


def test_nothing_is_stored_without_any_request(quick_folder: Path) -> None:
    with SqliteStore(quick_folder / "history.db") as store:
        stored = StoredConversation.create(store, segue.Conversation(tools=TOOLS))
        stored.add_user("go")
        stored.mark_sent()
        assert "Sent" not in event_kinds(stored)

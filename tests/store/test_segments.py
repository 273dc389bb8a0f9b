"""The segments of a conversation, joined, are its messages."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Message, Text, ToolCall, calls_of, responses_of
from segue.store import segments
from segue.store.conversation import StoredConversation
from segue.store.events import CallCompleted, Event, MessageAdded, Renamed, Rewound, Switched
from segue.store.export import save_events
from segue.store.replay import replay_events
from segue.store.segments import read_segments
from segue.store.sqlite import SqliteStore
from tests.store.freeze_conversations import FROZEN_CONVERSATIONS
from tests.store.leases import TOOLS
from tests.store.reply_bodies import reply_body
from tests.store.sample_events import user_event


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_MIN_LENGTH", 1)


@pytest.fixture
def store(quick_folder: Path) -> Iterator[SqliteStore]:
    with SqliteStore(quick_folder / "history.db") as opened:
        yield opened


def check_segments(store: SqliteStore, id: str) -> int:
    """Compare with the replayed conversation; return the number of segments."""
    replayed = replay_events(store.events(id))
    read = read_segments(store, id)
    found = list(read.segments())
    for segment in found:
        results = {response.call_id for message in segment for response in responses_of(message)}
        assert results <= {call.id for message in segment for call in calls_of(message)} or len(found) == 1
    assert tuple(message for segment in found for message in segment) == replayed.chat.messages
    assert read.facts.messages == len(replayed.chat.messages)
    history = replayed.chat.state.history
    assert read.facts.call_states == Counter(entry.state for entry in history.ledger.values())
    assert read.facts.conflicting == history.conflicting
    assert read.state.chat.pending == replayed.chat.pending
    for name in ("seq", "title", "target", "model", "provider", "compressions", "broken_replies"):
        assert getattr(read.state, name) == getattr(replayed, name)
    assert read.state.chat.state.request == replayed.chat.state.request
    return len(found)


def add_exchange(kept: StoredConversation, number: int) -> None:
    kept.add_user(f"question {number}")
    kept.render("anthropic")
    for call in kept.add_reply(reply_body("anthropic", calls=[("look", f"toolu_{number}"), ("run", None)])).calls:
        kept.add_result(call, "result")
    kept.render("anthropic")
    kept.add_reply(reply_body("anthropic", text="well"))


def rewind_often(kept: StoredConversation, count: int) -> None:
    for number in range(count):
        kept.rewind([*dict.fromkeys(message.turn_key for message in kept.messages if message.turn_key)][-2])
        add_exchange(kept, number + 3)


# A change after three exchanges, and the number of segments after it and one more user message.
CHANGES: dict[str, tuple[Callable[[StoredConversation], Any], int]] = {
    "nothing": (lambda kept: None, 7),
    "settings": (lambda kept: kept.update_settings(system="Be brief."), 7),
    "a title and a switch": (lambda kept: (kept.rename("x"), kept.switch("kimi", "kimi-k2")), 7),
    "a pending call": (lambda kept: kept.add_reply(reply_body("kimi", calls=[("look", "a")])), 6),
    "a late result": (lambda kept: kept.add_result(next(iter(kept.chat.state.history.ledger)), "another"), 1),
    "a rewind": (lambda kept: kept.rewind("turn-2"), 3),
    "a rewind to the first turn": (lambda kept: kept.rewind("turn-1"), 2),
    "several rewinds": (lambda kept: rewind_often(kept, 3), 10),
    "a rewind and a compression": (lambda kept: (kept.rewind("turn-2"), kept.compress("drop-oldest", 1)), 1),
    "a compression": (lambda kept: kept.compress("drop-oldest", 1), 1),
    "an undone compression": (lambda kept: (kept.compress("drop-oldest", 1), kept.undo_compression()), 1),
    "a pin": (lambda kept: kept.pin(kept.messages[0]), 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_segments_are_the_messages(store: SqliteStore, name: str) -> None:
    change, count = CHANGES[name]
    with StoredConversation.create(store, segue.Conversation(tools=TOOLS), title="x") as kept:
        for number in range(3):
            add_exchange(kept, number)
        change(kept)
        kept.add_user("more")
        assert check_segments(store, kept.id) == count


def test_frozen_conversations(tmp_path: Path) -> None:
    for version in FROZEN_CONVERSATIONS.glob("*.db"):
        shutil.copy(version, tmp_path / "frozen.db")
        with SqliteStore(tmp_path / "frozen.db") as store:
            assert max(check_segments(store, row.id) for row in store.list()) > 1


CALLS = [ToolCall("look", {"n": number}, id=f"hist_tool_{number}") for number in range(3)]
EVENTS: st.SearchStrategy[list[Event]] = st.lists(
    st.sampled_from(
        [
            user_event("a"),
            MessageAdded(Message("ai", (Text("b"),))),
            *(MessageAdded(Message("ai", (call,), turn_key=f"turn-{call.arguments['n'] + 1}")) for call in CALLS),
            MessageAdded(Message("ai", tuple(CALLS[:2]), turn_key="turn-9")),
            *(CallCompleted(Message("tool", (call.respond(text),))) for call in CALLS for text in ("one", "two")),
            CallCompleted(Message("tool", (CALLS[0].respond("x"), CALLS[1].respond("y")))),
            *(Rewound(f"turn-{number}") for number in (1, 2, 3, 9)),
            Renamed("title"),
            Switched("kimi"),
        ]
    ),
    max_size=12,
)


@given(events=EVENTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_order_of_events(store: SqliteStore, events: list[Event]) -> None:
    id = save_events(store, events)
    try:
        replay_events(store.events(id))
    except segue.StoreError:
        with pytest.raises(segue.StoreError):
            read_segments(store, id)
    else:
        check_segments(store, id)


def exchange_events(number: int) -> list[Event]:
    """A user message, a call, its result and an answer: two turns."""
    call = ToolCall("look", {"n": number}, id=f"hist_tool_x{number}")
    return [
        user_event(f"question {number}"),
        MessageAdded(Message("ai", (call,), turn_key=f"turn-{2 * number + 1}")),
        CallCompleted(Message("tool", (call.respond("result"),), turn_key=f"turn-{2 * number + 1}")),
        MessageAdded(Message("ai", (Text("well"),), turn_key=f"turn-{2 * number + 2}")),
    ]


@given(rewinds=st.lists(st.none() | st.integers(0, 5), min_size=6, max_size=24))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_rewinds(store: SqliteStore, rewinds: list[int | None]) -> None:
    """An exchange for each None, and for each number a rewind to the turn before so many."""
    events: list[Event] = [*exchange_events(0)]
    turns = [1, 2]
    for number, count in enumerate(rewinds, 1):
        if count is None:
            events += exchange_events(number)
            turns += [2 * number + 1, 2 * number + 2]
        else:
            turns = turns[: max(1, len(turns) - count)]
            events.append(Rewound(f"turn-{turns[-1]}"))
    id = save_events(store, [*events, user_event("more")])
    check_segments(store, id)
    read = read_segments(store, id)
    assert not read.is_whole
    assert all(start < end for start, end in read.facts.rewinds)
    assert all(before[1] < after[0] for before, after in pairwise(read.facts.rewinds))

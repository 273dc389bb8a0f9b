"""The messages of a stored conversation in segments, so that a long conversation is never in memory at once.

A segment is a part of the history that later events do not change: it ends before a user message, where no call is
pending. Invariant: the segments, joined, are the messages of the replayed conversation. A conversation in which an
event changes an earlier segment (a rewind, a compression, a late result) is one segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from segue._conversation import Conversation
from segue.canonical.blocks import Message, calls_of, responses_of
from segue.canonical.history import History
from segue.store.base import ConversationStore, StoredEvent
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    CompressionApplied,
    Event,
    MessageAdded,
    Restored,
    ResultRecorded,
    Rewound,
)
from segue.store.replay import ReplayState, apply_event, replay_events

_MIN_LENGTH = 64
"""A shorter segment is continued after the next user message."""


class SegmentedConversation(Struct, frozen=True):
    """A replayed conversation without its messages, their number, and the function that reads them again."""

    state: ReplayState
    messages: int
    records: int
    store: ConversationStore
    id: str
    whole: tuple[Message, ...] | None = None
    """All messages, if they are one segment."""

    def segments(self) -> Iterator[Sequence[Message]]:
        """Yield the messages in order, read from the store again."""
        if self.whole is not None:
            yield self.whole
            return
        yield from _split(self.store.events(self.id, until=self.records), ReplayState(Conversation()), set())


class _RefersBackError(Exception):
    """An event changes messages of an earlier segment, or may do so."""


def read_segments(store: ConversationStore, conversation: str) -> SegmentedConversation:
    """Read a conversation once to count its messages and find its current settings, target and model."""
    state = ReplayState(Conversation())
    try:
        count = sum(len(segment) for segment in _split(store.events(conversation), state, set()))
    except _RefersBackError:
        state = replay_events(store.events(conversation))
        messages = state.chat.messages
        return SegmentedConversation(state, len(messages), state.seq, store, conversation, messages)
    return SegmentedConversation(state, count, state.seq, store, conversation)


def _split(records: Iterator[StoredEvent], state: ReplayState, call_ids: set[int]) -> Iterator[Sequence[Message]]:
    """Replay the events and yield each segment when it ends. `call_ids` are digests of the ids of earlier calls."""
    for record in records:
        event = record.event
        if _starts_exchange(event) and len(state.chat.state.history) >= _MIN_LENGTH and _is_settled(state):
            yield state.chat.messages
            _start_segment(state)
        _raise_if_refers_back(event, state, call_ids)
        apply_event(record, state)
        state.track_event(event)
    yield state.chat.messages


def _starts_exchange(event: Event) -> bool:
    return isinstance(event, MessageAdded) and event.message.speaker == "human"


def _is_settled(state: ReplayState) -> bool:
    return not state.recorded_results and not state.chat.pending


def _start_segment(state: ReplayState) -> None:
    state.chat.state.history = History()
    state.turn_ends = {}


def _raise_if_refers_back(event: Event, state: ReplayState, call_ids: set[int]) -> None:
    match event:
        case MessageAdded(message) | CallCompleted(message) | CallCancelled(message) | ResultRecorded(message):
            calls = calls_of(message)
            new_ids = {hash(call.id) for call in calls}
            ledger = state.chat.state.history.ledger
            own_ids = {call.id for call in calls}
            results = [response.call_id for response in responses_of(message)]
            if (
                len(new_ids) < len(calls)
                or not new_ids.isdisjoint(call_ids)
                or any(not call.id for call in calls)
                or any(call_id not in ledger and call_id not in own_ids for call_id in results)
            ):
                raise _RefersBackError
            call_ids |= new_ids
        case Restored() if not event.ledger and not event.pins:
            return
        case CompressionApplied() | Rewound() | Restored():
            raise _RefersBackError
        case _:
            return

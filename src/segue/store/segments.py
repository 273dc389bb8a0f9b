"""The messages of a stored conversation in segments, so that a long conversation is never in memory at once.

A segment is a part of the history that later events do not change: it ends before a user message, or between results
and a reply, where no call is pending. Between a turn and the rewind to it no segment ends. Invariant: the segments,
joined, are the messages of the replayed conversation. A conversation in which another event changes an earlier segment
(a compression, a late result) is one segment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter

from msgspec import Struct, field

from segue._conversation import Conversation
from segue.canonical.blocks import Message, Origin, State, calls_of, origins_of, responses_of
from segue.canonical.history import History, Interaction
from segue.store.base import ConversationStore, StoredEvent
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    CompressionApplied,
    Event,
    MessageAdded,
    Restored,
    ResultPublished,
    ResultRecorded,
    Rewound,
)
from segue.store.replay import ReplayState, apply_event, replay_events

_MIN_LENGTH = 64
"""A shorter segment is continued."""

_Observe = Callable[[Iterator[StoredEvent]], Iterator[StoredEvent]]


class HistoryFacts(Struct):
    """Values collected from all segments: messages, calls by state, calls with several results, models of replies."""

    messages: int = 0
    call_states: Counter[State] = field(default_factory=Counter[State])
    conflicting: dict[str, Interaction] = {}
    origins: dict[tuple[str, str | None], Origin] = {}
    """One origin for each provider and model, the newest last."""
    is_unchanged: bool = True
    """Whether the messages of the history are those of the events: no result was repeated, no call got another id."""
    rewinds: list[tuple[int, int]] = []
    """The event numbers of rewinds and of the turns that they return to, joined where they overlap, in order."""

    def add(self, history: History) -> None:
        self.messages += len(history)
        self.call_states.update(entry.state for entry in history.ledger.values())
        self.conflicting |= history.conflicting
        for message in history.slice(0):
            for origin in origins_of(message):
                key = origin.provider, origin.model
                self.origins.pop(key, None)
                self.origins[key] = origin


class SegmentedConversation(Struct, frozen=True):
    """A replayed conversation without its messages, and the function that reads them again."""

    state: ReplayState
    facts: HistoryFacts
    store: ConversationStore
    id: str
    is_whole: bool = False
    """Whether all messages are one segment, which is the history of `state`."""

    def segments(self) -> Iterator[Sequence[Message]]:
        """Yield the messages in order, read from the store again."""
        if self.is_whole:
            yield self.state.chat.messages
            return
        records = self.store.events(self.id, until=self.state.seq)
        state = ReplayState(Conversation())
        is_unchanged, rewinds = self.facts.is_unchanged, self.facts.rewinds
        replayed = _read_unchanged(records, state) if is_unchanged else _replay(records, state, rewinds)
        yield from (messages for messages, _ in replayed)


class _RefersBackError(Exception):
    """An event changes messages of an earlier segment, or may do so."""


class _RewindError(Exception):
    """The events before a rewind are not known yet."""


def read_segments(
    store: ConversationStore,
    conversation: str,
    *,
    until: int | None = None,
    min_messages: int = 0,
    observe: _Observe = iter,
) -> SegmentedConversation:
    """Read the events up to `until` once, to find the current settings, target and model, and facts of the history.

    A conversation with less than `min_messages` stored messages is one segment. `observe` wraps the events while they
    are read; if an event refers to an earlier segment, they are read again.
    """
    if store.get(conversation).messages >= min_messages:
        try:
            return _read_facts(store, conversation, until, observe, [])
        except _RewindError:
            rewinds = _find_rewinds(store.events(conversation, until=until))
        except _RefersBackError:
            rewinds = []
        if rewinds:
            with suppress(_RefersBackError):
                return _read_facts(store, conversation, until, observe, rewinds)
    state, facts = replay_events(observe(store.events(conversation, until=until))), HistoryFacts()
    facts.add(state.chat.state.history)
    return SegmentedConversation(state, facts, store, conversation, is_whole=True)


def _read_facts(
    store: ConversationStore, conversation: str, until: int | None, observe: _Observe, rewinds: list[tuple[int, int]]
) -> SegmentedConversation:
    state, facts = ReplayState(Conversation()), HistoryFacts(is_unchanged=not rewinds, rewinds=rewinds)
    for messages, written in _replay(observe(store.events(conversation, until=until)), state, rewinds, set()):
        facts.add(state.chat.state.history)
        facts.is_unchanged = facts.is_unchanged and messages == tuple(written)
    return SegmentedConversation(state, facts, store, conversation)


def _find_rewinds(records: Iterator[StoredEvent]) -> list[tuple[int, int]]:
    """Return the ranges of `HistoryFacts.rewinds`; none if a rewind returns to an unknown turn."""
    starts: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for record in records:
        match record.event:
            case MessageAdded(message) | CallCompleted(message) | CallCancelled(message) | ResultRecorded(message):
                if message.turn_key is not None:
                    starts.setdefault(message.turn_key, record.seq)
            case Rewound(turn):
                if turn not in starts:
                    return []
                start = starts[turn]
                while found and found[-1][1] >= start:
                    start = min(start, found.pop()[0])
                found.append((start, record.seq))
            case _:
                pass
    return found


def _is_rewound(seq: int, rewinds: Sequence[tuple[int, int]]) -> bool:
    """Return whether the event is after a turn's first one, up to the rewind to that turn."""
    at = bisect_left(rewinds, seq, key=itemgetter(1))
    return at < len(rewinds) and rewinds[at][0] < seq


def _replay(
    records: Iterator[StoredEvent],
    state: ReplayState,
    rewinds: Sequence[tuple[int, int]],
    call_ids: set[int] | None = None,
) -> Iterator[tuple[Sequence[Message], Sequence[Message]]]:
    """Replay the events and yield each segment when it ends, and the messages of its events.

    `call_ids` are digests of the ids of earlier calls, None if no event refers to an earlier segment.
    """
    written: list[Message] = []
    for record in records:
        event = record.event
        if (
            len(written) >= _MIN_LENGTH
            and _starts_segment(event, state, written)
            and not state.chat.pending
            and not _is_rewound(record.seq, rewinds)
        ):
            yield state.chat.messages, written
            state.chat.state.history, state.turn_ends, written = History(), {}, []
        if call_ids is not None:
            _raise_if_refers_back(event, state, call_ids)
            if isinstance(event, Rewound) and not rewinds:
                raise _RewindError
        apply_event(record, state)
        written += _written_messages(event, state)
        if isinstance(event, Rewound):
            written = list(state.chat.messages)
        state.track_event(event, record.at)
    yield state.chat.messages, written


def _read_unchanged(
    records: Iterator[StoredEvent], state: ReplayState
) -> Iterator[tuple[Sequence[Message], Sequence[Message]]]:
    """Yield the messages of the events in segments, without replaying them."""
    written: list[Message] = []
    open_ids: set[str] = set()
    for record in records:
        event = record.event
        if len(written) >= _MIN_LENGTH and _starts_segment(event, state, written) and not open_ids:
            yield written, written
            state.turn_ends, written = {}, []
        for message in _written_messages(event, state):
            written.append(message)
            open_ids.update(call.id for call in calls_of(message) if call.kind != "hosted" and not call.broken)
            open_ids.difference_update(response.call_id for response in responses_of(message))
        state.track_event(event, record.at)
    yield written, written


def _starts_segment(event: Event, state: ReplayState, written: Sequence[Message]) -> bool:
    """Return whether the event adds a user message, or a reply after results, and no result has yet to be published."""
    if not isinstance(event, MessageAdded) or state.recorded_results:
        return False
    speaker = event.message.speaker
    return speaker == "human" or (speaker == "ai" and written[-1].speaker == "tool")


def _written_messages(event: Event, state: ReplayState) -> Sequence[Message]:
    """Return the messages that an event adds to the history."""
    match event:
        case MessageAdded(message) | CallCompleted(message) | CallCancelled(message):
            return (message,)
        case ResultPublished():
            return [state.recorded_results[call_id] for call_id in event.calls]
        case _:
            return ()


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
        case CompressionApplied() | Restored():
            raise _RefersBackError
        case _:
            return

"""Replay: rebuilding a conversation from its events; and the events that store a message or a whole conversation.

Invariant: every process gets the same ids, turn keys and rendered bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from segue._conversation import Conversation
from segue.canonical.blocks import Message, responses_of
from segue.canonical.compress.diff import diff_messages
from segue.canonical.history import History, Interaction
from segue.canonical.request import Reply
from segue.canonical.tokens import TokenEstimator
from segue.canonical.type_warmup import warm_type
from segue.errors import InputError, StoreError
from segue.store.base import StoredEvent
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    CompressionApplied,
    CompressionUndone,
    Event,
    MessageAdded,
    Renamed,
    ReplyBroken,
    Restored,
    ResultPublished,
    ResultRecorded,
    Rewound,
    Sent,
    SettingsChanged,
    Switched,
    event_kind,
)

_SETTINGS = ("system", "tools", "options")
_LIVE_TURN_KEY = re.compile(r"turn-([0-9]{1,18})")


class ReplayState(Struct):
    """A conversation rebuilt from its events, and the state that the events record besides its messages."""

    chat: Conversation
    seq: int = 0
    title: str | None = None
    target: str | None = None
    model: str | None = None
    provider: str | None = None
    is_emulated: bool = False
    compressions: list[int] = []
    """The event numbers of the compressions in effect, latest last."""
    undone_compressions: list[int] = []
    """The event numbers of the compressions that were undone."""
    turn_ends: dict[str, int] = {}
    """The number of each turn's last event before the next turn started, rewound turns included."""
    newest_turn: str | None = None
    broken_replies: int = 0
    """The number of incomplete replies."""
    recorded_results: dict[str, Message] = {}
    """Stored results that are not in the history yet, by call id."""
    unanswered_request: int = 0
    """The event number of the last request that was sent, 0 if a reply followed it."""
    sent_to: tuple[str, str | None] | None = None
    """Target and model of the last request that was sent."""
    replied_at: dict[str, int] = {}
    """When each `provider/model` replied with a usage, in microseconds since 1970; the newest last."""

    def track_event(self, event: Event, at: int) -> None:
        """Update everything except the messages for the next event, which has this time."""
        self.seq += 1
        match event:
            case MessageAdded() | CallCompleted() | CallCancelled():
                self._track_turn(event.message.turn_key)
                if event.message.speaker == "ai":
                    self.unanswered_request = 0
                if isinstance(event, MessageAdded) and event.usage is not None and self.provider is not None:
                    name = f"{self.provider}/{self.model}"
                    self.replied_at.pop(name, None)
                    self.replied_at[name] = at
            case ResultRecorded() | ResultPublished():
                self._track_result(event)
            case Rewound():
                self.newest_turn = event.turn
            case Sent():
                self.unanswered_request, self.sent_to = self.seq, (event.target, event.model)
                self.target, self.model = event.target or self.target, event.model or self.model
            case Switched():
                self.target, self.model, self.provider = event.target, event.model, event.provider
                self.is_emulated = bool((event.extra or {}).get("emulated"))
            case CompressionApplied():
                self.compressions.append(self.seq)
            case CompressionUndone():
                self.undone_compressions.append(event.seq)
                self.compressions = [seq for seq in self.compressions if seq != event.seq]
            case Renamed():
                self.title = event.text or None
            case ReplyBroken():
                self.broken_replies += 1
            case _:
                # Unknown events of other versions, and `Forked`.
                return

    def _track_result(self, event: ResultRecorded | ResultPublished) -> None:
        if isinstance(event, ResultRecorded):
            self.recorded_results[result_call_id(event.message)] = event.message
            self._track_turn(event.message.turn_key)
            return
        for call_id in event.calls:
            if (message := self.recorded_results.pop(call_id, None)) is not None:
                self._track_turn(message.turn_key)

    def _track_turn(self, turn: str | None) -> None:
        if turn is None:
            return
        if turn not in self.turn_ends:
            self.newest_turn = turn
        if turn == self.newest_turn:
            self.turn_ends[turn] = self.seq

    @property
    def latest_compression(self) -> int:
        if not self.compressions:
            raise InputError("there is no compression to undo")
        return self.compressions[-1]


def replay_events(records: Iterable[StoredEvent]) -> ReplayState:
    """Replay all events of a conversation in order, except undone ones. `StoreError` if they contradict each other."""
    state = ReplayState(Conversation())
    undone: set[int] | None = None
    remaining = iter(records)
    while (record := next(remaining, None)) is not None:
        if undone is None and isinstance(record.event, CompressionApplied):
            # A later event may undo it: only from here on all events are held in memory.
            rest = list(remaining)
            undone = {other.event.seq for other in rest if isinstance(other.event, CompressionUndone)}
            remaining = iter(rest)
        if undone is None or record.seq not in undone:
            apply_event(record, state)
        state.track_event(record.event, record.at)
    return state


def apply_event(record: StoredEvent, state: ReplayState) -> None:
    """Apply an event to the messages and settings. `StoreError` if it contradicts the events before it."""
    try:
        _apply_event(record.event, state)
    except InputError as error:
        message = f"event {record.seq} ({event_kind(record.event)!r}) contradicts the events before it: {error}"
        raise StoreError(message, cause="corrupt") from None


def result_call_id(message: Message) -> str:
    """Return the id of the call that this message is the result of."""
    responses = responses_of(message)
    if len(responses) != 1 or not responses[0].call_id:
        raise InputError("expected the result of one tool call", path="message")
    return responses[0].call_id


def publish_result(history: History, recorded: Mapping[str, Message], message: Message) -> list[Message]:
    """Return the results that enter the history with this one; none as long as an earlier call has no result."""
    call_id = result_call_id(message)
    if call_id in recorded:
        raise InputError(f"the result of {call_id} is already recorded", path="call")
    ready: list[Message] = []
    for call in history.open_calls(message.turn_key or ""):
        if call.id == call_id or call.id in recorded:
            ready.append(message if call.id == call_id else recorded[call.id])
        elif call.kind != "hosted" and not call.broken:
            break
    # Only results that waited for this one: the others are in the history already.
    return ready if ready and ready[0] is message else []


def change_settings(chat: Conversation, settings: Mapping[str, Any]) -> None:
    """Change `system`, `tools` or `options`."""
    if unknown := set(settings).difference(_SETTINGS):
        raise InputError(f"unknown setting {min(unknown)!r}; known settings: {', '.join(_SETTINGS)}")
    for name, value in settings.items():
        setattr(chat, name, value)


def _apply_event(event: Event, state: ReplayState) -> None:
    chat, history = state.chat, state.chat.state.history
    match event:
        case MessageAdded() | CallCompleted() | CallCancelled():
            message = event.message
            if isinstance(event, MessageAdded):
                chat.state.calibrate_tokens(event.usage, event.model)
            history.add(message)
            live = _LIVE_TURN_KEY.fullmatch(message.turn_key) if message.turn_key is not None else None
            history.turns = max(history.turns, int(live[1]) if live is not None else 0)
        case SettingsChanged():
            chat.state.request = event.request
        case ResultRecorded() | ResultPublished():
            _apply_result(event, state)
        case Sent():
            history.mark_sent()
        case Restored():
            _apply_restored(event, chat)
        case CompressionApplied():
            before, after = history.complete_from_ledger()[0], event.apply(history.messages)
            chat.state.compression_changes.extend(diff_messages(before, after, chat.state.token_estimator))
            new = (index for index, _ in event.replaced)
            history.replace_messages(after, dict(zip(new, event.places, strict=False)))
        case CompressionUndone():
            _restore_tokens(chat, event.tokens)
        case Rewound():
            history.rewind(event.turn)
        case _:
            return


def _apply_restored(event: Restored, chat: Conversation) -> None:
    history = chat.state.history
    history.turns = max(history.turns, event.turns)
    if event.ledger:
        history.restore(event.ledger)
    for pin in event.pins:
        if (position := pin.find(history)) is not None:
            history.pin_at(position)
    _restore_tokens(chat, event.tokens)


def _restore_tokens(chat: Conversation, tokens: Mapping[str, Any] | None) -> None:
    if tokens is not None:
        chat.state.token_estimator = msgspec.convert(tokens, warm_type(TokenEstimator))


def _apply_result(event: ResultRecorded | ResultPublished, state: ReplayState) -> None:
    if isinstance(event, ResultRecorded):
        call_id = result_call_id(event.message)
        if call_id not in state.chat.state.history.ledger or call_id in state.recorded_results:
            raise InputError(f"unexpected result for call {call_id}", path="message")
        return
    for call_id in event.calls:
        if call_id not in state.recorded_results:
            raise InputError(f"there is no stored result for call {call_id}", path="calls")
        state.chat.state.history.add(state.recorded_results[call_id])


# --------------------------------------------------------------------------------- events of messages and conversations


def message_event(message: Message) -> Event:
    """Return the event for a message: a completed or cancelled call, or any other message.

    A denied call is a completed one: its result is the denial.
    """
    responses = responses_of(message)
    if not responses or message.speaker != "tool":
        return MessageAdded(message)
    is_cancelled = all(response.outcome in ("cancelled", "interrupted") for response in responses)
    return CallCancelled(message) if is_cancelled else CallCompleted(message)


def add_usage(events: list[Event], reply: Reply) -> Sequence[Event]:
    """Add usage and model to the last event, which is the reply."""
    last = events[-1] if events else None
    if not isinstance(last, MessageAdded):
        return events
    return [*events[:-1], msgspec.structs.replace(last, usage=reply.usage, model=reply.model)]


def encode_tokens(chat: Conversation) -> dict[str, Any] | None:
    """Return the token estimator in its stored form, None if it learned nothing."""
    return msgspec.to_builtins(chat.state.token_estimator) if chat.state.token_estimator.learned else None


def find_new_evidence(copied: Conversation, ledger: Mapping[str, Interaction]) -> Iterator[Interaction]:
    """Yield the entries of a copy that lack evidence in the ledger of the original, with that evidence.

    A result that was not sent in the copy yet is final if it is in the original, because the evidence came later.
    """
    for call_id, known in copied.state.history.ledger.items():
        entry = ledger[call_id]
        if known.evidence != entry.evidence:
            yield msgspec.structs.replace(known, evidence=entry.evidence, sent=entry.sent)


def conversation_events(chat: Conversation) -> list[Event]:
    """Return the events of a whole conversation: settings, messages, and state that can't be derived from them."""
    history = chat.state.history
    events: list[Event] = [SettingsChanged.from_request(chat.state.request), *map(message_event, history.messages)]
    if any(entry.sent for entry in history.ledger.values()):
        events.append(Sent(""))
    replayed = replay_events(StoredEvent(seq, 0, event) for seq, event in enumerate(events, 1)).chat.state.history
    # If calls are no longer in any message, the whole ledger is stored, to keep its order.
    has_lost_calls = len(replayed.ledger) < len(history.ledger)
    missing = tuple(
        entry for call_id, entry in history.ledger.items() if has_lost_calls or replayed.ledger.get(call_id) != entry
    )
    tokens = encode_tokens(chat)
    if missing or tokens is not None or replayed.turns != history.turns:
        events.append(Restored(history.turns, missing, tokens))
    return events

"""Replay of events into a conversation: the same ids, turn keys and rendered bytes in every process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Message, responses_of
from segue.canonical.history import History
from segue.canonical.learning import learnt
from segue.canonical.request import Request
from segue.canonical.retold import notes_between
from segue.canonical.tokens import Estimate
from segue.conversation import Conversation
from segue.errors import InputError, StoreError
from segue.store.base import Record
from segue.store.events import (
    Broke,
    Cancelled,
    Completed,
    Compressed,
    Event,
    Known,
    Opened,
    Published,
    Recalled,
    Rewound,
    Said,
    Sent,
    Switched,
    Titled,
    Undone,
    kind_of,
)

__all__ = ["Timeline", "call_answered", "due", "replayed"]

_LIVE = re.compile(r"turn-([0-9]{1,18})")


class Timeline(Struct):
    """A conversation rebuilt from its events, and what the events record besides the messages."""

    chat: Conversation
    seq: int = 0
    title: str | None = None
    target: str | None = None
    model: str | None = None
    provider: str | None = None
    compressions: list[int] = []
    """The event numbers of the compressions in effect, latest last."""
    undone: list[int] = []
    turns: dict[str, int] = {}
    """The number of each turn's last event before the next turn started, rewound turns included."""
    newest: str | None = None
    broken: int = 0
    """How many replies were incomplete."""
    known: dict[str, Message] = {}
    """Stored results that are not in the history yet, by call id."""

    def note(self, event: Event) -> None:
        """Updates everything except the messages for the next event."""
        self.seq += 1
        match event:
            case Said(message) | Completed(message) | Cancelled(message):
                self._note_turn(message.turn_key)
            case Known() | Published():
                self._note_outcome(event)
            case Rewound():
                self.newest = event.turn
            case Sent():
                self.target, self.model = event.target or self.target, event.model or self.model
            case Switched():
                self.target, self.model, self.provider = event.target, event.model, event.provider
            case Compressed():
                self.compressions.append(self.seq)
            case Undone():
                self.undone.append(event.seq)
                self.compressions = [seq for seq in self.compressions if seq != event.seq]
            case Titled():
                self.title = event.text or None
            case Broke():
                self.broken += 1
            case _:
                # Unknown events of other versions, and `Forked`.
                return

    def _note_outcome(self, event: Known | Published) -> None:
        if isinstance(event, Known):
            self.known[call_answered(event.message)] = event.message
            self._note_turn(event.message.turn_key)
            return
        for call_id in event.calls:
            if (message := self.known.pop(call_id, None)) is not None:
                self._note_turn(message.turn_key)

    def _note_turn(self, turn: str | None) -> None:
        if turn is None:
            return
        if turn not in self.turns:
            self.newest = turn
        if turn == self.newest:
            self.turns[turn] = self.seq

    @property
    def latest_compression(self) -> int:
        if not self.compressions:
            raise InputError("there is no compression to undo")
        return self.compressions[-1]


def replayed(records: Iterable[Record]) -> Timeline:
    """Replays all events of a conversation in order, except undone ones. `StoreError` if they contradict each other."""
    stored = list(records)
    undone = {record.event.seq for record in stored if isinstance(record.event, Undone)}
    state = Timeline(Conversation.resumed(Request(()), History()))
    for record in stored:
        if record.seq not in undone:
            try:
                _play(record.event, state)
            except InputError as error:
                message = f"event {record.seq} ({kind_of(record.event)!r}) contradicts the events before it: {error}"
                raise StoreError(message, cause="corrupt") from None
        state.note(record.event)
    return state


def call_answered(message: Message) -> str:
    """The id of the call that this message is the result of."""
    responses = responses_of(message)
    if len(responses) != 1 or not responses[0].call_id:
        raise InputError("expected the result of one tool call", path="message")
    return responses[0].call_id


def due(history: History, known: Mapping[str, Message], turn: str) -> list[Message]:
    """The stored results of this turn that can enter the history in call order: those before the first open call."""
    found: list[Message] = []
    for call in history.open_calls(turn):
        if call.id in known:
            found.append(known[call.id])
        elif call.kind != "hosted" and not call.broken:
            break
    return found


def _play(event: Event, state: Timeline) -> None:
    chat, history = state.chat, state.chat.history
    match event:
        case Opened():
            chat.request = event.request
        case Said(message) | Completed(message) | Cancelled(message):
            if isinstance(event, Said):
                chat.learn(event.usage, event.model)
            history.add(message)
            live = _LIVE.fullmatch(message.turn_key or "")
            history.turns = max(history.turns, int(live[1]) if live is not None else 0)
        case Known() | Published():
            _play_outcome(event, state)
        case Sent():
            history.mark_sent()
        case Recalled():
            _recall(event, chat)
        case Compressed():
            before, after = history.supplied()[0], event.applied(history.messages)
            chat.compressed.extend(notes_between(before, after, chat.estimate))
            history.reduce(after)
        case Rewound():
            history.rewind(event.turn)
        case _:
            return


def _recall(event: Recalled, chat: Conversation) -> None:
    history = chat.history
    history.turns = max(history.turns, event.turns)
    if event.ledger:
        history.restore(event.ledger)
    for pin in event.pins:
        if (message := pin.found(history.messages)) is not None:
            history.pin(message)
    if event.tokens is not None:
        chat.estimate = msgspec.convert(event.tokens, learnt(Estimate))


def _play_outcome(event: Known | Published, state: Timeline) -> None:
    if isinstance(event, Known):
        call_id = call_answered(event.message)
        if call_id not in state.chat.history.ledger or call_id in state.known:
            raise InputError(f"unexpected result for call {call_id}", path="message")
        return
    for call_id in event.calls:
        if call_id not in state.known:
            raise InputError(f"there is no stored result for call {call_id}", path="calls")
        state.chat.history.add(state.known[call_id])

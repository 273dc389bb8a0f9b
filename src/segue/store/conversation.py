"""`StoredConversation`: a conversation whose every change is written to the store first.

Reading never writes. The first write acquires the lease, and records an outcome for calls that the previous process
left open. After a failed write the in-memory conversation is discarded and replayed from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import msgspec

from segue.canonical.blocks import Block, Message, ToolCall, responses_of
from segue.canonical.compress import Compressed as CompressionResult
from segue.canonical.request import Reply, Request
from segue.conversation import Conversation, Rendered
from segue.errors import InputError, LeaseError, RemoteProtocolError, StoreError
from segue.store.base import HistoryStore, Record
from segue.store.events import (
    Broke,
    Cancelled,
    Completed,
    Compressed,
    Event,
    Known,
    Opened,
    Pin,
    Published,
    Recalled,
    Rewound,
    Said,
    Sent,
    Switched,
    Titled,
    Undone,
    dump_event,
)
from segue.store.owners import own_name
from segue.store.portable import filled
from segue.store.timeline import Timeline, call_answered, due, replayed

__all__ = ["StoredConversation"]

T = TypeVar("T")

_TTL = 60.0
_SETTINGS = ("system", "tools", "options")


class StoredConversation:
    """A `Conversation` in a store: the same methods, and those for leases, results in flight and undo."""

    def __init__(self, store: HistoryStore, conversation: str, *, owner: str | None = None, ttl: float = _TTL) -> None:
        self.id = conversation
        self._store = store
        self._owner = owner or own_name()
        self._ttl = ttl
        self._held = False
        self._left_open = False
        """Whether the pending calls were started by a process that has ended."""
        self._stale = False
        self._rendered: tuple[str, str | None] = "", None
        self._line = self._read()

    @classmethod
    def create(
        cls,
        store: HistoryStore,
        chat: Conversation | None = None,
        *,
        title: str | None = None,
        at: Sequence[int | None] = (),
        **more: Any,
    ) -> StoredConversation:
        """Stores a conversation with its messages so far, and acquires its lease.

        `at` gives the time of each message, None where it is not known.
        """
        chat = chat if chat is not None else Conversation()
        events = _all_of(chat)
        # The settings come before the messages, restored state after them.
        times = filled([None, *at], len(events))
        made = cls(store, store.create(title, at=times[0] if times else None), **more)
        try:
            store.acquire(made.id, made._owner, made._ttl)
            made._append(events, times)
        except BaseException:
            with suppress(StoreError):
                store.delete(made.id, owner=made._owner)
            raise
        made._held = made._stale = True
        made._line.chat.request, made._line.chat.asked = chat.request, chat.asked
        return made

    # ---------------------------------------------------------------------------------------------------------- looking

    @property
    def timeline(self) -> Timeline:
        """The replayed state; replayed again after a failed write."""
        if self._stale:
            line, before = self._read(), self._line.chat
            line.chat.asked = before.asked
            # Credentials are not stored: a request that still has them in memory is kept.
            if _settings(before) == _settings(line.chat):
                line.chat.request = before.request
            self._line, self._stale = line, False
        return self._line

    @property
    def chat(self) -> Conversation:
        """The conversation, for reading only: changes made to it directly are not stored."""
        return self.timeline.chat

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.chat.messages

    @property
    def pending(self) -> list[ToolCall]:
        return self.chat.pending

    def render(self, target: str, model: str | None = None, **policy: Any) -> Rendered:
        """Renders the request for the target. Nothing is written."""
        rendered = self.chat.render(target, model, **policy)
        self._rendered = target, model
        return rendered

    def dump(self) -> bytes:
        """The current state for `Conversation.load`; the events are exported by `segue export`."""
        return self.chat.dump()

    def reload(self) -> None:
        """Replays the conversation, with events that other processes appended."""
        self._stale = True
        _ = self.timeline

    def _read(self) -> Timeline:
        return replayed(self._store.events(self.id))

    # ---------------------------------------------------------------------------------------------------------- writing

    def add_user(self, content: Any) -> None:
        self._write(lambda chat: chat.add_user(content), goes_on=True)

    def add_reply(self, reply: Any, *, source: str | None = None) -> Reply:
        return self._write(lambda chat: chat.add_reply(reply, source=source), _counted, goes_on=True)

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        self._write(lambda chat: chat.add_result(call, content, error=error), ends=call)

    def cancel(self, call: ToolCall | str) -> None:
        self._write(lambda chat: chat.cancel(call), ends=call)

    def interrupt(self, call: ToolCall | str, why: str) -> None:
        self._write(lambda chat: chat.interrupt(call, why), ends=call)

    def add_blocks(self, *blocks: Block, **more: Any) -> tuple[Message, ...]:
        return self._write(lambda chat: chat.add_blocks(*blocks, **more))

    def may_start(self, call: ToolCall) -> bool:
        """Whether this call may be run: it is pending, and no previous process may have started it."""
        entry = self.chat.history.ledger.get(call.id)
        is_pending = entry is not None and entry.state == "pending" and not entry.taken_back
        return is_pending and call.id not in self._line.known and self._held and not self._left_open

    def know(
        self,
        call: ToolCall | str,
        content: object = None,
        *,
        error: bool = False,
        outcome: Literal["cancelled"] | None = None,
    ) -> None:
        """Stores the result of a call. It enters the history at once if all earlier calls of the turn have results,
        together with later results that waited for it; otherwise when it is flushed."""

        def change(chat: Conversation) -> Event | None:
            message = chat.outcome_of(call, content, error=error, outcome=outcome)
            call_id = call_answered(message)
            if call_id in self._line.known:
                raise InputError(f"the result of {call_id} is already recorded", path="call")
            ready = due(chat.history, {**self._line.known, call_id: message}, message.turn_key or "")
            # Only results that waited for this one: the others are in the history already.
            if not ready or ready[0] is not message:
                return Known(message)
            chat.history.add(*ready)
            return None

        self._write(change, _and_told, ends=call)

    def publish(self, *calls: ToolCall | str) -> None:
        """Adds the stored results of these calls to the history, in this order."""
        known = self.timeline.known
        call_ids = [call_id for call in calls if (call_id := self.chat.call_of(call).id) in known]
        if call_ids:
            self._write(lambda chat: chat.history.add(*(known[call_id] for call_id in dict.fromkeys(call_ids))))

    def sent(self) -> None:
        """Records that the last rendered request was sent: its results are final from now on."""
        self._write(lambda chat: chat.settle(), goes_on=True)

    def broke(self, reply: Reply) -> None:
        """Stores an incomplete reply as evidence; it does not enter the history."""
        self._note(Broke(reply))

    def set(self, **settings: Any) -> None:
        """Changes `system`, `tools` or `options`."""
        if unknown := set(settings).difference(_SETTINGS):
            raise InputError(f"unknown setting {min(unknown)!r}; known are {', '.join(_SETTINGS)}")

        def change(chat: Conversation) -> Event:
            for name, value in settings.items():
                setattr(chat, name, value)
            return Opened.of(chat.request)

        self._write(change, _and_told)

    def switch(self, target: str, model: str | None = None, *, provider: str | None = None) -> None:
        """Records another target or model, used from the next request on."""
        self._note(Switched(target, model, provider))

    def rename(self, title: str) -> None:
        self._note(Titled(title))

    def pin(self, message: Message) -> Message:
        """Protects a message from compression, and returns the pinned message."""

        def change(chat: Conversation) -> tuple[Message, Event]:
            pinned = chat.pin(message)
            return pinned, Recalled(pins=(Pin.of(chat.messages, pinned),))

        return self._write(change, lambda events, done: _and_told(events, done[1]))[0]

    def compress(self, strategy: str, budget: int, **more: Any) -> CompressionResult:
        """Compresses the history to a token budget; the original messages stay in the store."""

        def change(chat: Conversation) -> tuple[CompressionResult, Event | None]:
            before = chat.messages
            result = chat.compress(strategy, budget, **more)
            event = Compressed.between(before, chat.messages, strategy=strategy, budget=budget)
            return result, event if result.notes else None

        return self._write(change, lambda events, done: _and_told(events, done[1]))[0]

    def undo(self) -> None:
        """Undoes the latest compression: the messages it dropped or shortened are restored."""
        self._note(Undone(self.timeline.latest_compression))
        self._stale = True

    def rewind(self, turn: str) -> None:
        """Removes all messages after the turn with this key."""
        self._write(lambda chat: chat.history.rewind(turn), lambda events, _: [*events, Rewound(turn)])

    def fork(self, turn: str | None = None) -> StoredConversation:
        """Creates a copy of this conversation up to and including this turn, or of all of it.

        Results of that turn's calls that arrived later are copied too.
        """
        line = self.timeline
        if turn is not None and turn not in line.turns:
            raise InputError(f"there is no turn {turn!r}", path="turn")
        seq = line.turns[turn] if turn is not None else line.seq
        made = StoredConversation(self._store, self._store.fork(self.id, seq), ttl=self._ttl)
        undone = [Undone(number) for number in line.undone if number <= seq and number not in made._line.undone]
        entries = [line.chat.history.ledger[call.id] for call in made.pending]
        late = [
            Message("tool", (entry.original or entry.completion,), turn_key=entry.turn_key)
            for entry in entries
            if entry.completion is not None
        ]
        made._append([*undone, *map(_event, late)])
        made._stale = bool(undone or late)
        return made

    def child(self, chat: Conversation, title: str) -> StoredConversation:
        """Creates a subagent's conversation in the same store, and acquires its lease."""
        return StoredConversation.create(self._store, chat, title=title, ttl=self._ttl)

    def keep(self) -> None:
        """Renews the lease if it is held."""
        if self._held:
            self._renew()

    def close(self) -> None:
        """Releases the lease. A conversation that was deleted meanwhile is not an error."""
        if self._held:
            self._held = False
            try:
                self._store.release(self.id, self._owner)
            except StoreError as error:
                if error.cause != "missing":
                    raise

    def __enter__(self) -> StoredConversation:
        return self

    def __exit__(self, *_: object) -> None:
        # A lease that can't be released expires.
        with suppress(StoreError):
            self.close()

    def _note(self, event: Event) -> None:
        """Appends an event that does not change the messages."""
        self._write(lambda _: event, _and_told)

    def _write(
        self,
        change: Callable[[Conversation], T],
        make_events: Callable[[list[Event], T], Sequence[Event]] = lambda events, _: events,
        *,
        ends: ToolCall | str | None = None,
        goes_on: bool = False,
    ) -> T:
        """Applies a change to the conversation and appends its events in one write.

        `make_events` gets the events of the messages that were added and the return value of `change`. `ends` is the
        call whose result this is. If the conversation `goes_on` (new message or request), stored results are flushed
        first.
        """
        chat = self.chat
        before, asked = _state(chat), chat.asked
        journal: list[Message | None] = []
        chat.history.journal = journal
        try:
            self._take_in_hand(chat, ends, goes_on=goes_on)
            done = change(chat)
            self._append(make_events(self._told(journal, asked[1]), done))
        except BaseException as error:
            # A change that was not stored is discarded.
            chat.asked = asked
            refused = isinstance(error, InputError | RemoteProtocolError)
            self._stale = not refused or bool(journal) or _state(chat) != before
            chat.request = before[0]
            raise
        finally:
            chat.history.journal = None
        self._left_open = False
        return done

    def _take_in_hand(self, chat: Conversation, ends: ToolCall | str | None, *, goes_on: bool) -> None:
        """Acquires or renews the lease; on the first write, completes the calls that another process left open.

        Stored results of those calls enter the history; calls without one are recorded as interrupted.
        """
        if self._held:
            self._renew()
        else:
            self._store.acquire(self.id, self._owner, self._ttl)
            self._held = self._left_open = True
        if not self._left_open and not (goes_on and self._line.known):
            return
        ending = chat.call_of(ends).id if ends is not None else None
        for call in chat.pending:
            if call.id == ending:
                continue
            if call.id in self._line.known:
                chat.history.add(self._line.known[call.id])
            elif self._left_open:
                chat.interrupt(call, "interrupted: the process that ran it is gone")

    def _renew(self) -> None:
        try:
            self._store.renew(self.id, self._owner, self._ttl)
        except LeaseError:
            # Another process held the lease meanwhile, and may have completed calls or added messages.
            self._held, self._stale = False, True
            raise

    def _append(self, events: Sequence[Event], at: Sequence[int] | None = None) -> None:
        if events:
            self._store.append(self.id, self._line.seq, events, **({} if at is None else {"at": at}))
        for event in events:
            self._line.note(event)

    def _told(self, journal: Sequence[Message | None], made_up: Sequence[str]) -> list[Event]:
        """The events for messages that entered the history; a result that is stored already is only published."""
        events: list[Event] = []
        for message in journal:
            call_id = self._known_as(message)
            last = events[-1] if events else None
            if message is None:
                events.append(self._sent(made_up))
            elif call_id is None:
                events.append(_event(message))
            elif isinstance(last, Published):
                events[-1] = Published((*last.calls, call_id))
            else:
                events.append(Published((call_id,)))
        return events

    def _known_as(self, message: Message | None) -> str | None:
        """The call id if this message is a stored result, else None."""
        responses = responses_of(message) if message is not None and message.speaker == "tool" else []
        call_id = responses[0].call_id if len(responses) == 1 else ""
        return call_id if call_id in self._line.known and self._line.known[call_id] == message else None

    def _sent(self, made_up: Sequence[str]) -> Sent:
        target, model = self._rendered
        return Sent(target, model, tuple(made_up))


def _state(chat: Conversation) -> tuple[Request, int, int, int]:
    """State that a failed change may have modified in memory, besides the journal."""
    return chat.request, chat.history.edits, chat.history.turns, len(chat.history)


def _settings(chat: Conversation) -> bytes:
    """The settings in their stored form, for comparison."""
    return dump_event(Opened.of(chat.request))


def _event(message: Message) -> Event:
    """The event for a message: a completed or cancelled call, or any other message."""
    responses = responses_of(message)
    if not responses or message.speaker != "tool":
        return Said(message)
    return Cancelled(message) if all(response.outcome for response in responses) else Completed(message)


def _and_told(events: list[Event], event: Event | None) -> Sequence[Event]:
    return events if event is None else [*events, event]


def _counted(events: list[Event], reply: Reply) -> Sequence[Event]:
    """Adds usage and model to the last event, which is the reply."""
    last = events[-1]
    if not isinstance(last, Said):
        return events
    return [*events[:-1], msgspec.structs.replace(last, usage=reply.usage, model=reply.model)]


def _all_of(chat: Conversation) -> list[Event]:
    """The events of a whole conversation: settings, messages, and the state that these do not show."""
    history = chat.history
    events: list[Event] = [Opened.of(chat.request), *map(_event, history.messages)]
    if any(entry.seen for entry in history.ledger.values()):
        events.append(Sent(""))
    shown = replayed(Record(seq, 0, event) for seq, event in enumerate(events, 1)).chat.history
    # If calls are no longer in any message, the whole ledger is stored, to keep its order.
    gone = len(shown.ledger) < len(history.ledger)
    missing = tuple(entry for call_id, entry in history.ledger.items() if gone or shown.ledger.get(call_id) != entry)
    tokens = msgspec.to_builtins(chat.estimate) if chat.estimate.learned else None
    if missing or tokens is not None or shown.turns != history.turns:
        events.append(Recalled(history.turns, missing, tokens))
    return events

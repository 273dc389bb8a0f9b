"""A conversation that is kept: each change is in the store before it counts.

Reading never writes. The first write takes the conversation in hand (the lease), and ends calls that whoever had it
before left without an outcome. What the store does not take is not there: after a failed write the conversation is what
the store says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import msgspec

from segue.canonical.blocks import Block, Message, ToolCall, responses_of
from segue.canonical.compress import Compressed as Made
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
    """The methods of `Conversation`, and those of a conversation that lasts."""

    def __init__(self, store: HistoryStore, conversation: str, *, owner: str | None = None, ttl: float = _TTL) -> None:
        self.id = conversation
        self._store = store
        self._owner = owner or own_name()
        self._ttl = ttl
        self._held = False
        self._left_open = False
        """Whether calls that wait are those of a process that is gone."""
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
        """Keeps a conversation from now on, with all that was said in it so far. It is in hand at once.

        `at` is when each of its messages was said, as far as that is known.
        """
        chat = chat if chat is not None else Conversation()
        events = _all_of(chat)
        # What the model was given stands before the messages, and what else is known after them.
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

    # ------------------------------------------------------------------------------------------------------- looking

    @property
    def timeline(self) -> Timeline:
        """What the events tell: read again where a write failed."""
        if self._stale:
            line, before = self._read(), self._line.chat
            line.chat.asked = before.asked
            # Keys are not kept, and whoever has them goes on with them.
            if _settings(before) == _settings(line.chat):
                line.chat.request = before.request
            self._line, self._stale = line, False
        return self._line

    @property
    def chat(self) -> Conversation:
        """The conversation itself, to be looked at: what is added to it is not kept."""
        return self.timeline.chat

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.chat.messages

    @property
    def pending(self) -> list[ToolCall]:
        return self.chat.pending

    def render(self, target: str, model: str | None = None, **policy: Any) -> Rendered:
        """The request that continues this conversation on the target. Nothing is written."""
        rendered = self.chat.render(target, model, **policy)
        self._rendered = target, model
        return rendered

    def dump(self) -> bytes:
        """The conversation as it is now, as `Conversation.load` reads it; `segue export` has all that led to it."""
        return self.chat.dump()

    def reload(self) -> None:
        """Reads what others have written."""
        self._stale = True
        _ = self.timeline

    def _read(self) -> Timeline:
        return replayed(self._store.events(self.id))

    # ------------------------------------------------------------------------------------------------------- writing

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
        """Whether this call may be run: it waits, and was not left by whoever had the conversation before."""
        entry = self.chat.history.ledger.get(call.id)
        waits = entry is not None and entry.state == "pending" and not entry.taken_back
        return waits and call.id not in self._line.known and self._held and not self._left_open

    def know(
        self,
        call: ToolCall | str,
        content: object = None,
        *,
        error: bool = False,
        outcome: Literal["cancelled"] | None = None,
    ) -> None:
        """Keeps the outcome of a call. It is said at once where all calls before it have theirs, with those behind it
        that waited for this one; else when it is published."""

        def keep(chat: Conversation) -> Event | None:
            message = chat.outcome_of(call, content, error=error, outcome=outcome)
            call_id = call_answered(message)
            if call_id in self._line.known:
                raise InputError(f"the outcome of {call_id} is known already", path="call")
            ready = due(chat.history, {**self._line.known, call_id: message}, message.turn_key or "")
            # Only what this one held up: others would be said already.
            if not ready or ready[0] is not message:
                return Known(message)
            chat.history.add(*ready)
            return None

        self._write(keep, _and_told, ends=call)

    def publish(self, *calls: ToolCall | str) -> None:
        """What is known of these calls is said, in this order."""
        known = self.timeline.known
        wanted = [call_id for call in calls if (call_id := self.chat.call_of(call).id) in known]
        if wanted:
            self._write(lambda chat: chat.history.add(*(known[call_id] for call_id in dict.fromkeys(wanted))))

    def sent(self) -> None:
        """What was rendered last goes out: from now on that is what the model was told."""
        self._write(lambda chat: chat.settle(), goes_on=True)

    def broke(self, reply: Reply) -> None:
        """A reply that came to no end: kept as evidence."""
        self._note(Broke(reply))

    def set(self, **settings: Any) -> None:
        """Other `system`, `tools` or `options` from now on."""
        if unknown := set(settings).difference(_SETTINGS):
            raise InputError(f"{min(unknown)!r} can't be set; {', '.join(_SETTINGS)} can")

        def change(chat: Conversation) -> Event:
            for name, value in settings.items():
                setattr(chat, name, value)
            return Opened.of(chat.request)

        self._write(change, _and_told)

    def switch(self, target: str, model: str | None = None, *, provider: str | None = None) -> None:
        """Another target from the next request on."""
        self._note(Switched(target, model, provider))

    def rename(self, title: str) -> None:
        self._note(Titled(title))

    def pin(self, message: Message) -> Message:
        """Keeps a message of this conversation from every compression; gives it back as it is held now."""

        def change(chat: Conversation) -> tuple[Message, Event]:
            pinned = chat.pin(message)
            return pinned, Recalled(pins=(Pin.of(chat.messages, pinned),))

        return self._write(change, lambda events, done: _and_told(events, done[1]))[0]

    def compress(self, strategy: str, budget: int, **more: Any) -> Made:
        """Makes the conversation fit; the original stays in the store."""

        def change(chat: Conversation) -> tuple[Made, Event | None]:
            before = chat.messages
            made = chat.compress(strategy, budget, **more)
            told = Compressed.between(before, chat.messages, strategy=strategy, budget=budget)
            return made, told if made.notes else None

        return self._write(change, lambda events, done: _and_told(events, done[1]))[0]

    def undo(self) -> None:
        """Takes the latest compression back: what it left out is there again."""
        self._note(Undone(self.timeline.latest_compression))
        self._stale = True

    def rewind(self, turn: str) -> None:
        """Takes back all that was said after this turn, by its key."""
        self._write(lambda chat: chat.history.rewind(turn), lambda events, _: [*events, Rewound(turn)])

    def fork(self, turn: str | None = None) -> StoredConversation:
        """Another conversation that has all up to and with this turn, or all there is.

        What is known by now of that turn's calls, the other one is told too.
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
        """Another conversation in the same store, in hand at once: that of a subagent."""
        return StoredConversation.create(self._store, chat, title=title, ttl=self._ttl)

    def keep(self) -> None:
        """The heartbeat: keeps the conversation in hand."""
        if self._held:
            self._renew()

    def close(self) -> None:
        """Lets the conversation go. One that was deleted meanwhile is nobody's already."""
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
        # A lease that can't be given back runs out.
        with suppress(StoreError):
            self.close()

    def _note(self, event: Event) -> None:
        """Writes an event that changes nothing that was said."""
        self._write(lambda _: event, _and_told)

    def _write(
        self,
        do: Callable[[Conversation], T],
        tell: Callable[[list[Event], T], Sequence[Event]] = lambda events, _: events,
        *,
        ends: ToolCall | str | None = None,
        goes_on: bool = False,
    ) -> T:
        """Does something to the conversation and writes it down: what it said, made events by `tell`, in one append.

        `ends` is the call that this is the end of. Before the conversation `goes_on`, all that is known is said.
        """
        chat = self.chat
        before, asked = _state(chat), chat.asked
        journal: list[Message | None] = []
        chat.history.journal = journal
        try:
            self._take_in_hand(chat, ends, goes_on=goes_on)
            done = do(chat)
            self._append(tell(self._told(journal, asked[1]), done))
        except BaseException as error:
            # What was said in memory and is not kept did not happen.
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
        """The lease; and with the first write the end of calls that another process left open.

        What it knew of them is said, and only the others were interrupted.
        """
        if self._held:
            self._renew()
        else:
            self._store.acquire(self.id, self._owner, self._ttl)
            self._held = self._left_open = True
        if not self._left_open and not (goes_on and self._line.known):
            return
        named = chat.call_of(ends).id if ends is not None else None
        for call in chat.pending:
            if call.id == named:
                continue
            if call.id in self._line.known:
                chat.history.add(self._line.known[call.id])
            elif self._left_open:
                chat.interrupt(call, "interrupted: the process that ran it is gone")

    def _renew(self) -> None:
        try:
            self._store.renew(self.id, self._owner, self._ttl)
        except LeaseError:
            # Somebody else had it since, and may have ended calls and gone on.
            self._held, self._stale = False, True
            raise

    def _append(self, events: Sequence[Event], at: Sequence[int] | None = None) -> None:
        if events:
            self._store.append(self.id, self._line.seq, events, **({} if at is None else {"at": at}))
        for event in events:
            self._line.note(event)

    def _told(self, journal: Sequence[Message | None], made_up: Sequence[str]) -> list[Event]:
        """What entered the history, as events: what is kept already is named and not written twice."""
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
        """The id of the call whose known outcome this is."""
        responses = responses_of(message) if message is not None and message.speaker == "tool" else []
        call_id = responses[0].call_id if len(responses) == 1 else ""
        return call_id if call_id in self._line.known and self._line.known[call_id] == message else None

    def _sent(self, made_up: Sequence[str]) -> Sent:
        target, model = self._rendered
        return Sent(target, model, tuple(made_up))


def _state(chat: Conversation) -> tuple[Request, int, int, int]:
    """What a failed attempt may have left in memory, beside what is in the journal."""
    return chat.request, chat.history.edits, chat.history.turns, len(chat.history)


def _settings(chat: Conversation) -> bytes:
    """What is given beside the messages, as it is kept."""
    return dump_event(Opened.of(chat.request))


def _event(message: Message) -> Event:
    """A message as an event: an outcome, or anything else that was said."""
    responses = responses_of(message)
    if not responses or message.speaker != "tool":
        return Said(message)
    return Cancelled(message) if all(response.outcome for response in responses) else Completed(message)


def _and_told(events: list[Event], told: Event | None) -> Sequence[Event]:
    return events if told is None else [*events, told]


def _counted(events: list[Event], reply: Reply) -> Sequence[Event]:
    """The events of a reply, the last of which is the reply itself: with what the provider said of it."""
    last = events[-1]
    if not isinstance(last, Said):
        return events
    return [*events[:-1], msgspec.structs.replace(last, usage=reply.usage, model=reply.model)]


def _all_of(chat: Conversation) -> list[Event]:
    """A conversation as events: its messages, and what else is known that they do not tell."""
    history = chat.history
    events: list[Event] = [Opened.of(chat.request), *map(_event, history.messages)]
    if any(entry.seen for entry in history.ledger.values()):
        events.append(Sent(""))
    told = replayed(Record(seq, 0, event) for seq, event in enumerate(events, 1)).chat.history
    # Calls that no message has any more have their place among the others.
    gone = len(told.ledger) < len(history.ledger)
    untold = tuple(entry for call_id, entry in history.ledger.items() if gone or told.ledger.get(call_id) != entry)
    tokens = msgspec.to_builtins(chat.estimate) if chat.estimate.learned else None
    if untold or tokens is not None or told.turns != history.turns:
        events.append(Recalled(history.turns, untold, tokens))
    return events

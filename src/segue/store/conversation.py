"""A conversation that is kept: each change is in the store before it counts.

Reading never writes. The first write takes the conversation in hand (the lease), and ends calls that whoever had it
before left without an outcome. What the store does not take is not there: after a failed write the conversation is what
the store says.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from segue.canonical.blocks import Block, Message, ToolCall, ToolResponse
from segue.canonical.compress import Compressed as Made
from segue.canonical.request import Reply
from segue.conversation import Conversation, Rendered
from segue.errors import ConflictError, StoreError
from segue.store.base import HistoryStore
from segue.store.events import (
    Broke,
    Cancelled,
    Completed,
    Compressed,
    Event,
    Opened,
    Rewound,
    Said,
    Sent,
    Switched,
    Titled,
    Undone,
)
from segue.store.timeline import Timeline, latest_compression, replayed

__all__ = ["StoredConversation"]

T = TypeVar("T")

_TTL = 60.0


class StoredConversation:
    """The methods of `Conversation`, and those of a conversation that lasts."""

    def __init__(self, store: HistoryStore, conversation: str, *, owner: str | None = None, ttl: float = _TTL) -> None:
        self.id = conversation
        self._store = store
        self._owner = owner or f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._ttl = ttl
        self._held = False
        self._stale = False
        self._rendered: tuple[str, str | None] = "", None
        self._line = self._read()

    @classmethod
    def create(
        cls, store: HistoryStore, chat: Conversation | None = None, *, title: str | None = None, **more: Any
    ) -> StoredConversation:
        """Keeps a conversation from now on, with all that was said in it so far."""
        chat = chat if chat is not None else Conversation()
        made = cls(store, store.create(title), **more)
        history = chat.history
        sent = any(entry.seen for entry in history.ledger.values())
        events: list[Event] = [Opened.of(chat.request), *map(_event, history.messages)]
        made._append([*events, *([Sent("")] if sent else [])])
        made._line = made._read()
        return made

    # ------------------------------------------------------------------------------------------------------- looking

    @property
    def chat(self) -> Conversation:
        """The conversation itself, to be looked at: what is added to it is not kept."""
        if self._stale:
            self._line, self._stale = self._read(), False
        return self._line.chat

    @property
    def timeline(self) -> Timeline:
        return self._line

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.chat.messages

    @property
    def pending(self) -> list[ToolCall]:
        return self.chat.pending

    def render(self, target: str, model: str | None = None, **policy: Any) -> Rendered:
        """The request that continues this conversation on the target. Nothing is written."""
        self._rendered = target, model
        return self.chat.render(target, model, **policy)

    def _read(self) -> Timeline:
        return replayed(self._store.events(self.id))

    # ------------------------------------------------------------------------------------------------------- writing

    def add_user(self, content: Any) -> None:
        self._write(lambda chat: chat.add_user(content))

    def add_reply(self, reply: Any, *, source: str | None = None) -> Reply:
        return self._write(lambda chat: chat.add_reply(reply, source=source))

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        self._write(lambda chat: chat.add_result(call, content, error=error), ends=call)

    def cancel(self, call: ToolCall | str) -> None:
        self._write(lambda chat: chat.cancel(call), ends=call)

    def add_blocks(self, *blocks: Block, **more: Any) -> tuple[Message, ...]:
        return self._write(lambda chat: chat.add_blocks(*blocks, **more))

    def sent(self) -> None:
        """What was rendered last goes out: from now on that is what the model was told."""
        self._write(lambda chat: chat.settle())

    def broke(self, reply: Reply) -> None:
        """A reply that came to no end: kept as evidence."""
        self._write(_nothing, Broke(reply))

    def set(self, **settings: Any) -> None:
        """Other `system`, `tools` or `options` from now on."""

        def change(chat: Conversation) -> None:
            for name, value in settings.items():
                setattr(chat, name, value)

        self._write(change, lambda chat: Opened.of(chat.request))

    def switch(self, target: str, model: str | None = None) -> None:
        """Another target from the next request on."""
        self._write(_nothing, Switched(target, model))
        self._line.target, self._line.model = target, model

    def rename(self, title: str) -> None:
        self._write(_nothing, Titled(title))
        self._line.title = title or None

    def compress(self, strategy: str, budget: int, **more: Any) -> Made:
        """Makes the conversation fit; the original stays in the store."""
        before, edits = self.chat.messages, self.chat.history.edits

        def told(chat: Conversation) -> Event | None:
            changed = chat.history.edits != edits
            return Compressed.between(before, chat.messages, strategy=strategy, budget=budget) if changed else None

        made = self._write(lambda chat: chat.compress(strategy, budget, **more), told)
        if self.chat.history.edits != edits:
            self._line.compressions.append(self._line.seq)
        return made

    def undo(self) -> None:
        """Takes the latest compression back: what it left out is there again."""
        seq = latest_compression(self._line)
        self._write(_nothing, Undone(seq))
        self._line = self._read()

    def rewind(self, turn: str) -> None:
        """Takes back all that was said after this turn, by its key."""
        self._write(lambda chat: chat.history.rewind(turn), Rewound(turn))

    def fork(self, turn: str | None = None) -> StoredConversation:
        """Another conversation that has all up to and with this turn, or all there is."""
        seq = self._line.seq if turn is None else self._line.turns.get(turn, 0)
        copy = self._store.fork(self.id, seq or self._line.seq)
        return StoredConversation(self._store, copy, ttl=self._ttl)

    def keep(self) -> None:
        """The heartbeat: keeps the conversation in hand."""
        if self._held:
            self._store.renew(self.id, self._owner, self._ttl)

    def close(self) -> None:
        """Lets the conversation go."""
        if self._held:
            self._held = False
            self._store.release(self.id, self._owner)

    def __enter__(self) -> StoredConversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(
        self,
        do: Callable[[Conversation], T],
        *more: Event | Callable[[Conversation], Event | None],
        ends: ToolCall | str | None = None,
    ) -> T:
        chat = self.chat
        journal: list[Message | None] = []
        chat.history.journal = journal
        try:
            self._take_in_hand(chat, ends)
            done = do(chat)
            events = [self._sent() if message is None else _event(message) for message in journal]
            told = [event(chat) if callable(event) else event for event in more]
            self._append([*events, *(event for event in told if event is not None)])
        except BaseException:
            # What was said in memory and is not kept did not happen.
            self._stale = bool(journal) or self._stale
            raise
        finally:
            chat.history.journal = None
        return done

    def _take_in_hand(self, chat: Conversation, ends: ToolCall | str | None) -> None:
        """On the first write: the lease, and the end of calls that another process left open."""
        if self._held:
            self._store.renew(self.id, self._owner, self._ttl)
            return
        self._store.acquire(self.id, self._owner, self._ttl)
        self._held = True
        if self._store.get(self.id).seq != self._line.seq:
            self._stale = True
            raise ConflictError(self.id, self._line.seq, self._store.get(self.id).seq)
        named = ends.id if isinstance(ends, ToolCall) else ends
        for call in chat.pending:
            if named not in (call.id, call.raw_id):
                chat.interrupt(call, "interrupted: the process that ran it is gone")

    def _append(self, events: Sequence[Event]) -> None:
        if not events:
            return
        try:
            last = self._store.append(self.id, self._line.seq, events)
        except StoreError:
            self._stale = True
            raise
        for number, event in enumerate(events, self._line.seq + 1):
            if isinstance(event, Said | Completed | Cancelled) and event.message.turn_key is not None:
                self._line.turns[event.message.turn_key] = number
        self._line.seq = last

    def _sent(self) -> Sent:
        target, model = self._rendered
        return Sent(target, model)


def _nothing(_: Conversation) -> None:
    return None


def _event(message: Message) -> Event:
    """A message as an event: an outcome, or anything else that was said."""
    responses = [block for block in message.blocks if isinstance(block, ToolResponse)]
    if not responses or message.speaker != "tool":
        return Said(message)
    return Cancelled(message) if all(response.outcome for response in responses) else Completed(message)

"""The model, tokens and cost of each reply of a stored conversation, and the switches between models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from segue.canonical.blocks import Message, calls_of, origins_of
from segue.canonical.request import Usage, UsageSum
from segue.errors import format_count
from segue.store.base import StoredEvent
from segue.store.events import Event, MessageAdded, Sent, Switched
from segue.view.format import format_money

Cost: TypeAlias = Callable[[str, str, Usage], float | None]
"""Returns the dollars for the tokens of a provider's model; None if no price is known."""


class Switch(Struct, frozen=True):
    """A reply of another model than the one before. `findings` are the losses and changes of its first request."""

    before: str
    after: str
    findings: tuple[str, ...] = ()


class ReplyNote(Struct, frozen=True):
    """The model, tokens and cost of a reply, and the switch to its model, if there was one."""

    model: str
    usage: Usage | None = None
    cost: float | None = None
    switch: Switch | None = None

    def __str__(self) -> str:
        """Return tokens and cost in one line; empty if the provider returned no token counts."""
        if self.usage is None:
            return ""
        cached = f" ({self.usage.cache_read:,} cached)" if self.usage.cache_read else ""
        price = f" · {format_money(self.cost)}" if self.cost is not None else ""
        return f"{format_count(self.usage.input, 'token')} in{cached}, {self.usage.output:,} out{price}"


class ReplyNotes:
    """Notes by turn, collected while the events of a conversation are read."""

    def __init__(self, cost: Cost | None = None) -> None:
        self._cost = cost
        self._reset()

    def _reset(self) -> None:
        self._by_turn: dict[str, ReplyNote] = {}
        self._sent, self._switched = Sent(""), Switched("")
        self._findings: tuple[str, ...] = ()
        self._last_model = ""
        self._models: dict[str, int] = {}

    def observe(self, records: Iterator[StoredEvent]) -> Iterator[StoredEvent]:
        """Yield the events unchanged, and collect their notes. Each call starts anew."""
        self._reset()
        for record in records:
            self._add_event(record.event)
            yield record

    def _add_event(self, event: Event) -> None:
        match event:
            case Switched():
                self._switched = event
            case Sent():
                if (event.target, event.model) != (self._sent.target, self._sent.model):
                    self._findings = event.findings
                self._sent = event
            case MessageAdded() if event.message.speaker == "ai":
                self._add_reply(event)
            case _:
                return

    def _add_reply(self, event: MessageAdded) -> None:
        model = self._sent.model or event.model or _origin_model(event.message) or self._sent.target
        if not model:
            return
        self._models.setdefault(model, len(self._models))
        turn = event.message.turn_key
        if turn is not None:
            switch = Switch(self._last_model, model, self._findings) if self._last_model not in ("", model) else None
            self._by_turn[turn] = ReplyNote(model, event.usage, self._reply_cost(model, event.usage), switch)
        self._last_model = model

    def _reply_cost(self, model: str, usage: Usage | None) -> float | None:
        if usage is None or self._cost is None:
            return None
        if (self._switched.extra or {}).get("emulated"):
            return 0.0
        is_configured = self._switched.provider is not None and self._switched.model == model
        return self._cost(self._switched.provider or "" if is_configured else self._sent.target, model, usage)

    def of(self, message: Message) -> ReplyNote | None:
        """Return the note of a reply; for a message of an unknown turn, the model that its blocks name, if any."""
        if message.speaker != "ai":
            return None
        note = self._by_turn.get(message.turn_key or "")
        if note is None and (model := _origin_model(message)) is not None:
            note = ReplyNote(model)
        return note

    def number_of(self, model: str) -> int:
        """Return the position of a model in the order in which the models first replied."""
        return self._models.setdefault(model, len(self._models))

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self._models)

    def total(self) -> ReplyNote:
        """Return the sums of all replies. The cost is None unless the price of each reply is known."""
        total, notes = UsageSum(), [note for note in self._by_turn.values() if note.usage is not None]
        for note in notes:
            total.add(note.usage, note.cost)
        return ReplyNote("", total.usage if notes else None, total.cost)


def _origin_model(message: Message) -> str | None:
    return next((origin.model for origin in origins_of(message) if origin.model), None)


class Carried(Struct):
    """Counts the messages and calls before a switch."""

    messages: int = 0
    calls: int = 0

    def add(self, message: Message) -> None:
        self.messages += 1
        self.calls += len(calls_of(message))

    def __str__(self) -> str:
        calls = f" and {format_count(self.calls, 'tool call')}" if self.calls else ""
        return f"{format_count(self.messages, 'message')}{calls} carried"

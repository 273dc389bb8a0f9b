"""The compression plan: messages, their token cost, and which of them are kept or dropped together.

A group holds a model reply (all its neighbouring messages, so that reasoning is never separated from its content) and
every result of its calls, wherever that is. It is dropped whole or not at all. Groups with a pinned message, system
text, or a pending call are protected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from segue.canonical.blocks import (
    Block,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolResponse,
    calls_of,
    responses_of,
    state_of,
)
from segue.canonical.texts import SUMMED
from segue.canonical.tokens import Count
from segue.errors import InputError

__all__ = ["Note", "Sheet", "Unit", "What", "summed"]

What: TypeAlias = Literal["shortened", "dropped", "summarised"]


class Note(msgspec.Struct, frozen=True):
    """The change of one message: its index before, and its tokens before and after. `calls` are canonical ids."""

    what: What
    place: int
    before: int
    after: int
    calls: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"message {self.place + 1:,} was {self.what}: {self.before:,} → {self.after:,} tokens"


class Unit(msgspec.Struct, frozen=True):
    """Messages that are kept or dropped together. It belongs to the exchange of its last message."""

    places: tuple[int, ...]
    exchange: int
    held: bool
    words: bool
    """Whether this is a user message, and not a summary."""


class Sheet:
    """Messages under compression. They are changed by `shorten`, `drop` and `summarise` only."""

    def __init__(self, messages: Sequence[Message], count: Count, *, elsewhere: bool = False) -> None:
        self.given = tuple(messages)
        self.elsewhere = elsewhere
        """Whether results without a call belong to calls that the provider holds."""
        self.now: list[Message | None] = list(messages)
        self._count = count
        self._costs = [self.cost(message) for message in messages]
        self._before = tuple(self._costs)
        self._fates: dict[int, What] = {}
        self.total = sum(self._costs)
        self._calls = {call.id: place for place, message in enumerate(messages) for call in calls_of(message)}
        answered = {r.call_id for message in messages for r in responses_of(message) if state_of(r) != "pending"}
        self.open = {call.id for message in messages for call in calls_of(message) if _waits(call)} - answered
        self.units = tuple(self._bound())
        """All groups, in the order of their last message."""

    def cost(self, message: Message) -> int:
        tokens = self._count(message)
        if not isinstance(tokens, int) or tokens < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a number of tokens was expected, not {tokens!r}", path="count")
        return tokens

    # --------------------------------------------------------------------------------------------------------- grouping

    def _bound(self) -> list[Unit]:
        exchanges = _exchanges(self.given)
        groups: dict[int, list[int]] = {}
        for place, root in enumerate(self._roots()):
            groups.setdefault(root, []).append(place)
        units = [
            Unit(
                tuple(places), exchanges[places[-1]], any(map(self._is_held, places)), _is_words(self.given[places[-1]])
            )
            for places in groups.values()
        ]
        return sorted(units, key=lambda unit: unit.places[-1])

    def _roots(self) -> list[int]:
        """Return for each message the index of the first message of its group."""
        parents = list(range(len(self.given)))

        def root(place: int) -> int:
            while parents[place] != place:
                parents[place] = place = parents[parents[place]]
            return place

        for place, other in self._links():
            one, two = sorted((root(place), root(other)))
            parents[two] = one
        return [root(place) for place in range(len(parents))]

    def _links(self) -> Iterator[tuple[int, int]]:
        bearing: dict[str, int] = {}
        for place, message in enumerate(self.given):
            if place and message.speaker == "ai" == self.given[place - 1].speaker:
                yield place - 1, place
            for block in message.blocks:
                if isinstance(block, ToolResponse) and block.call_id in self._calls:
                    yield self._calls[block.call_id], place
                elif (named := _made_for(block)) in bearing:
                    yield bearing[named], place
            bearing.update((call.origin.raw_id, place) for call in calls_of(message) if call.origin.raw_id)

    def _is_held(self, place: int) -> bool:
        message = self.given[place]
        if message.pinned or message.speaker == "system" or any(call.id in self.open for call in calls_of(message)):
            return True
        return self.elsewhere and any(response.call_id not in self._calls for response in responses_of(message))

    @property
    def newest(self) -> Unit | None:
        """The group of the last reply."""
        last = max((place for place, message in enumerate(self.given) if message.speaker == "ai"), default=None)
        return next((unit for unit in self.units if last in unit.places), None)

    def responses(self) -> Iterator[tuple[int, ToolResponse]]:
        """Yield results that may be shortened, in order, with their indexes: not pinned, hosted or pending ones."""
        for place, message in enumerate(self.given):
            for response in () if message.pinned else responses_of(message):
                lies_elsewhere = self.elsewhere and response.call_id not in self._calls
                if not response.hosted and state_of(response) != "pending" and not lies_elsewhere:
                    yield place, response

    # --------------------------------------------------------------------------------------------------------- changing

    def shorten(self, place: int, response: ToolResponse, shorter: ToolResponse) -> bool:
        """Replace a result by a shorter one if that costs less; return whether it was replaced."""
        message = self.now[place]
        if message is None or shorter is response:
            return False
        made = message.holding(tuple(shorter if block is response else block for block in message.blocks))
        cost = self.cost(made)
        if cost >= self._costs[place]:
            return False
        self._set(place, made, cost, "shortened")
        return True

    def drop(self, units: Iterable[Unit]) -> None:
        for unit in units:
            for place in unit.places:
                self._set(place, None, 0, "dropped")

    def fold(self, places: Sequence[int], summary: Message) -> bool:
        """Replace messages by a summary if that costs less; return whether they were replaced."""
        cost = self.cost(summary)
        if cost >= sum(self._costs[place] for place in places):
            return False
        for place in places:
            self._set(place, None, 0, "summarised")
        self._set(places[0], summary, cost, "summarised")
        return True

    def _set(self, place: int, message: Message | None, cost: int, what: What) -> None:
        self.total += cost - self._costs[place]
        self.now[place], self._costs[place], self._fates[place] = message, cost, what

    # -------------------------------------------------------------------------------------------------------- reporting

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for message in self.now if message is not None)

    def notes(self) -> tuple[Note, ...]:
        return tuple(
            Note(what, place, self._before[place], self._costs[place], self._touched(place))
            for place, what in sorted(self._fates.items())
        )

    def _touched(self, place: int) -> tuple[str, ...]:
        """Return the ids of the calls and results that were changed or dropped in this message."""
        left = self.now[place]
        kept = {id(block) for block in left.blocks} if left is not None else set[int]()
        gone = (block for block in self.given[place].blocks if id(block) not in kept)
        ids = (b.id if isinstance(b, ToolCall) else b.call_id for b in gone if isinstance(b, ToolCall | ToolResponse))
        return tuple(dict.fromkeys(ids))

    def held(self) -> str:
        """Describe what may not be changed, for the user."""
        pinned = sum(message.pinned for message in self.given)
        parts = [(pinned, "pinned messages"), (len(self.open), "pending calls")]
        return ", ".join(f"{number} {name}" for number, name in parts if number)


def summed(message: Message) -> int:
    """Return how many messages this is the summary of: 0 where it is not a summary."""
    first = message.blocks[0] if message.speaker == "human" and message.blocks else None
    found = SUMMED.match(first.text) if isinstance(first, Text) else None
    return int(found[1]) if found is not None else 0


def _waits(call: ToolCall) -> bool:
    return call.kind != "hosted" and not call.broken


def _made_for(block: Block) -> str | None:
    """Return the raw id of the call that made this call, or of the approval request that this answers."""
    if isinstance(block, ToolCall):
        return block.origin.parent
    return block.origin.raw_id if isinstance(block, Opaque) and block.origin.is_approval else None


def _is_words(message: Message) -> bool:
    only_approvals = all(isinstance(block, Opaque) and block.origin.is_approval for block in message.blocks)
    return message.speaker == "human" and not summed(message) and not (message.blocks and only_approvals)


def _exchanges(messages: Sequence[Message]) -> list[int]:
    """Return the exchange number of each message. An exchange begins with a user message after another speaker's.

    Messages before the first user message belong to the first exchange. System text never begins or ends one.
    """
    numbers: list[int] = []
    number, begun, answered = 0, False, False
    for message in messages:
        if from_user := _is_words(message):
            number += begun and answered
            begun = True
        if message.speaker != "system":
            answered = not from_user
        numbers.append(number)
    return numbers

"""The compression plan: messages, their token cost, and which of them are kept or dropped together.

A group holds a model reply (all its neighbouring messages, so that reasoning is never separated from its content) and
every result of its calls, wherever that is. It is dropped whole or not at all. Groups with a pinned message, system
text, a pending call, or the result that a note in a pinned message refers to are protected.

A note in place of a result refers to a later result. `settle_notes` changes the notes whose result was shortened or
dropped since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, TypeAlias

import msgspec

from segue.canonical.blocks import (
    Block,
    Message,
    Opaque,
    Shortening,
    Text,
    ToolCall,
    ToolResponse,
    calls_of,
    edit_block,
    responses_of,
    state_of,
)
from segue.canonical.placeholders import REMOVED, format_note
from segue.canonical.tokens import TokenCounter
from segue.errors import InputError, format_count

ChangeAction: TypeAlias = Literal["shortened", "dropped", "summarised"]
Edit: TypeAlias = tuple[ToolResponse, ToolResponse]
"""A result and its shorter form."""


class MessageChange(msgspec.Struct, frozen=True):
    """The change of one message: its index before, and its tokens before and after. `calls` are canonical ids."""

    action: ChangeAction = msgspec.field(name="what")
    index: int = msgspec.field(name="place")
    before: int
    after: int
    calls: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"message {self.index + 1:,} was {self.action}: {self.before:,} → {format_count(self.after, 'token')}"


class Group(msgspec.Struct, frozen=True):
    """Messages that are kept or dropped together. It belongs to the exchange of its last message."""

    indexes: tuple[int, ...]
    exchange: int
    is_protected: bool
    is_user_message: bool
    """Whether this is a user message, and not a summary."""


class Plan:
    """Messages under compression. They are changed by `shorten`, `drop` and `summarise` only."""

    def __init__(self, messages: Sequence[Message], count: TokenCounter, *, has_provider_state: bool = False) -> None:
        self.original = tuple(messages)
        self.has_provider_state = has_provider_state
        """Whether results without a call belong to calls that the provider holds."""
        self.current: list[Message | None] = list(messages)
        self._count = count
        self._costs = [self.cost(message) for message in messages]
        self._before = tuple(self._costs)
        self._actions: dict[int, ChangeAction] = {}
        self.total = sum(self._costs)
        self.edit_count = 0
        """How often a message was changed."""
        self.calls = {call.id: call for message in messages for call in calls_of(message)}
        self._call_indexes = {call.id: index for index, message in enumerate(messages) for call in calls_of(message)}
        answered = {r.call_id for message in messages for r in responses_of(message) if state_of(r) != "pending"}
        self.open_calls = {
            call.id for message in messages for call in calls_of(message) if _needs_result(call)
        } - answered
        pinned = (response for message in messages if message.pinned for response in responses_of(message))
        self._needed_by_pins = {response.shortened.call_id for response in pinned if response.shortened is not None}
        self._needed_by_pins.discard("")
        self.groups = tuple(self._build_groups())
        """All groups, in the order of their last message."""

    def cost(self, message: Message) -> int:
        tokens = self._count(message)
        if not isinstance(tokens, int) or tokens < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a number of tokens was expected, not {tokens!r}", path="count")
        return tokens

    # --------------------------------------------------------------------------------------------------------- grouping

    def _build_groups(self) -> list[Group]:
        exchanges = _number_exchanges(self.original)
        indexes_by_root: dict[int, list[int]] = {}
        for index, root in enumerate(self._group_roots()):
            indexes_by_root.setdefault(root, []).append(index)
        groups = [
            Group(
                tuple(indexes),
                exchanges[indexes[-1]],
                any(map(self._is_protected, indexes)),
                _is_user_message(self.original[indexes[-1]]),
            )
            for indexes in indexes_by_root.values()
        ]
        return sorted(groups, key=lambda group: group.indexes[-1])

    def _group_roots(self) -> list[int]:
        """Return for each message the index of the first message of its group."""
        parents = list(range(len(self.original)))
        for index, other in self._links():
            one, two = sorted((find_root(parents, index), find_root(parents, other)))
            parents[two] = one
        return [find_root(parents, index) for index in range(len(parents))]

    def _links(self) -> Iterator[tuple[int, int]]:
        index_by_raw_id: dict[str, int] = {}
        for index, message in enumerate(self.original):
            if index and message.speaker == "ai" == self.original[index - 1].speaker:
                yield index - 1, index
            for block in message.blocks:
                if isinstance(block, ToolResponse) and block.call_id in self._call_indexes:
                    yield self._call_indexes[block.call_id], index
                elif (parent_id := _parent_raw_id(block)) in index_by_raw_id:
                    yield index_by_raw_id[parent_id], index
            index_by_raw_id.update((call.origin.raw_id, index) for call in calls_of(message) if call.origin.raw_id)

    def _is_protected(self, index: int) -> bool:
        message = self.original[index]
        if (
            message.pinned
            or message.speaker == "system"
            or any(call.id in self.open_calls or call.id in self._needed_by_pins for call in calls_of(message))
        ):
            return True
        return self.has_provider_state and any(
            response.call_id not in self._call_indexes for response in responses_of(message)
        )

    @property
    def newest_group(self) -> Group | None:
        """The group of the last reply."""
        last = max((index for index, message in enumerate(self.original) if message.speaker == "ai"), default=None)
        return next((group for group in self.groups if last in group.indexes), None)

    def shortenable_results(self, index: int) -> list[ToolResponse]:
        """Return the results of a message that may be shortened: not pinned, hosted or pending ones."""
        message = self.current[index]
        return [
            response
            for response in (responses_of(message) if message is not None and not message.pinned else ())
            if not (
                response.hosted
                or state_of(response) == "pending"
                or response.call_id in self._needed_by_pins
                or (self.has_provider_state and response.call_id not in self._call_indexes)
            )
        ]

    # --------------------------------------------------------------------------------------------------------- changing

    def shorten(self, edits: Iterable[tuple[int, Edit]], budget: int) -> None:
        """Shorten results in this order until the total is within the budget. Edits that save nothing are skipped."""
        for index, run in groupby(edits, key=lambda edit: edit[0]):
            if self.total <= budget:
                return
            changed = [edit for _, edit in run if edit[0] is not edit[1]]
            useful = [edit for edit in changed if self._saves_tokens(edit)] if len(changed) > 1 else changed
            self._shorten_message(index, useful, budget)

    def _saves_tokens(self, edit: Edit) -> bool:
        before, after = (self.cost(Message("tool", (response,))) for response in edit)
        return after < before

    def _shorten_message(self, index: int, edits: Sequence[Edit], budget: int) -> None:
        """Apply as few of the edits of one message as the budget needs, found by bisection; all if that is not enough.

        The message is counted a few times, however many results it has.
        """
        message = self.current[index]
        if message is None or not edits:
            return
        target = budget - (self.total - self._costs[index])
        fewest, most = 1, len(edits)
        edited = _replace_results(message, edits)
        cost = self.cost(edited)
        while cost <= target and fewest < most:
            middle = (fewest + most) // 2
            candidate = _replace_results(message, edits[:middle])
            if (candidate_cost := self.cost(candidate)) <= target:
                most, edited, cost = middle, candidate, candidate_cost
            else:
                fewest = middle + 1
        if cost < self._costs[index]:
            self._replace_message(index, edited, cost, "shortened")

    def settle_notes(self) -> bool:
        """Change the notes whose result is no longer in the messages in full; return whether there were any.

        Where that result became a note itself, they refer to the same result as it does. Otherwise they no longer refer
        to any.
        """
        edit_count = self.edit_count
        present = {response.call_id: response for message in self.messages for response in responses_of(message)}
        # From the end, since a note refers to a later result.
        for index, message in reversed([*enumerate(self.current)]):
            edits: list[Edit] = []
            for note in reversed(responses_of(message) if message is not None and not message.pinned else ()):
                settled = self._settle_note(note, present)
                if settled is not note:
                    present[note.call_id] = settled
                    edits.append((note, settled))
            if edits and message is not None:
                edited = _replace_results(message, edits)
                self._replace_message(index, edited, self.cost(edited), "shortened")
        return self.edit_count > edit_count

    def _settle_note(self, note: ToolResponse, present: Mapping[str, ToolResponse]) -> ToolResponse:
        shortening = note.shortened
        if shortening is None or not shortening.call_id:
            return note
        target = present.get(shortening.call_id)
        if target is not None and target.shortened is None:
            return note
        removed = edit_block(note, content=(Text(REMOVED),), shortened=Shortening("removed"))
        later = target.shortened if target is not None else None
        if later is None or later.call_id not in self.calls:
            return removed
        # Equal to an equal result, or outdated by a result that is outdated.
        if (shortening.reason == "repeated") is not (later.reason == "repeated"):
            return removed
        call = self.calls[later.call_id]
        moved_to = Shortening(shortening.reason, call.id, shortening.path)
        moved = edit_block(note, content=(format_note(moved_to, call),), shortened=moved_to)
        return removed if self._saves_tokens((moved, note)) else moved

    def drop(self, groups: Iterable[Group]) -> None:
        for group in groups:
            for index in group.indexes:
                if self.current[index] is not None:
                    self._replace_message(index, None, 0, "dropped")

    def summarise(self, indexes: Sequence[int], summary: Message) -> bool:
        """Replace messages by a summary if that costs less; return whether they were replaced."""
        cost = self.cost(summary)
        if cost >= sum(self._costs[index] for index in indexes):
            return False
        for index in indexes:
            self._replace_message(index, None, 0, "summarised")
        self._replace_message(indexes[0], summary, cost, "summarised")
        return True

    def _replace_message(self, index: int, message: Message | None, cost: int, action: ChangeAction) -> None:
        self.total += cost - self._costs[index]
        self.edit_count += 1
        self.current[index], self._costs[index], self._actions[index] = message, cost, action

    # -------------------------------------------------------------------------------------------------------- reporting

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for message in self.current if message is not None)

    @property
    def places(self) -> tuple[int, ...]:
        """The index of each remaining message before the compression."""
        return tuple(index for index, message in enumerate(self.current) if message is not None)

    def changes(self) -> tuple[MessageChange, ...]:
        return tuple(
            MessageChange(action, index, self._before[index], self._costs[index], self._touched_calls(index))
            for index, action in sorted(self._actions.items())
        )

    def _touched_calls(self, index: int) -> tuple[str, ...]:
        """Return the ids of the calls and results that were changed or dropped in this message."""
        remaining = self.current[index]
        kept = {id(block) for block in remaining.blocks} if remaining is not None else set[int]()
        removed = (block for block in self.original[index].blocks if id(block) not in kept)
        ids = (
            b.id if isinstance(b, ToolCall) else b.call_id for b in removed if isinstance(b, ToolCall | ToolResponse)
        )
        return tuple(dict.fromkeys(ids))

    def describe_protected(self, fixed: int) -> str:
        """Describe what may not be changed, for the user. `fixed` are the tokens of system text and tools."""
        pinned = sum(message.pinned for message in self.original)
        parts = [(pinned, "pinned message"), (len(self.open_calls), "pending call")]
        described = [format_count(number, name) for number, name in parts if number]
        return ", ".join([*described, *([f"{format_count(fixed, 'token')} of system text and tools"] if fixed else [])])


def find_root(parents: list[int], index: int) -> int:
    """Return the root of a set in a union-find forest, and shorten the path to it."""
    while parents[index] != index:
        parents[index] = index = parents[parents[index]]
    return index


def _replace_results(message: Message, edits: Iterable[Edit]) -> Message:
    shorter = {id(before): after for before, after in edits}
    return message.with_blocks(tuple(shorter.get(id(block), block) for block in message.blocks))


def _needs_result(call: ToolCall) -> bool:
    return call.kind != "hosted" and not call.broken


def _parent_raw_id(block: Block) -> str | None:
    """Return the raw id of the call that made this call, or of the approval request that this answers."""
    if isinstance(block, ToolCall):
        return block.origin.parent
    return block.origin.raw_id if isinstance(block, Opaque) and block.origin.is_approval else None


def _is_user_message(message: Message) -> bool:
    only_approvals = all(isinstance(block, Opaque) and block.origin.is_approval for block in message.blocks)
    return message.speaker == "human" and not message.summarised and not (message.blocks and only_approvals)


def _number_exchanges(messages: Sequence[Message]) -> list[int]:
    """Return the exchange number of each message. An exchange begins with a user message after another speaker's.

    Messages before the first user message belong to the first exchange. System text never begins or ends one.
    """
    numbers: list[int] = []
    number, begun, answered = 0, False, False
    for message in messages:
        if from_user := _is_user_message(message):
            number += begun and answered
            begun = True
        if message.speaker != "system":
            answered = not from_user
        numbers.append(number)
    return numbers

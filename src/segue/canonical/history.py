"""The history of a conversation: its messages, and the ledger of all tool calls with their results.

Messages are added by `History.add` only. A call that was added stays in the ledger, also when its message is dropped;
a result that was sent to a model is final; the turn counter never goes back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from segue.canonical.blocks import (
    Block,
    Message,
    State,
    Thinking,
    ToolCall,
    ToolResponse,
    calls_of,
    responses_of,
    state_of,
)
from segue.canonical.json import to_plain_json
from segue.canonical.pairing import Pairer, has_same_content
from segue.errors import InputError

_NO_PLACES: Mapping[int, int] = {}
_STATE_RANK: dict[State, int] = {"complete": 0, "error": 1, "denied": 2, "cancelled": 3, "interrupted": 4, "pending": 5}


class Interaction(msgspec.Struct, gc=False):
    """A tool call and all its results. `completion` is the result that is rendered; other results are in `evidence`.

    `original` is the full result where a compression has shortened it. A call that was `rewound` is no longer part of
    the conversation: it is not pending, and its results are not rendered.
    """

    call: ToolCall
    turn_key: str
    completion: ToolResponse | None = None
    evidence: list[ToolResponse] = []
    sent: bool = False
    original: ToolResponse | None = None
    rewound: bool = False

    @property
    def state(self) -> State:
        return state_of(self.completion) if self.completion is not None else "pending"

    def record(self, response: ToolResponse) -> bool:
        """Record a result; return whether it is rendered from now on."""
        current = self.completion
        if _is_repeat(response, current) or _is_repeat(response, self.original):
            return False
        if state_of(response) == "pending":
            self.evidence.append(response)
            return False
        if current is not None and (self.sent or _STATE_RANK[state_of(response)] >= _STATE_RANK[state_of(current)]):
            self.evidence.append(response)
            return False
        if current is not None:
            self.evidence.append(current)
        self.completion, self.original = response, None
        return True

    def replace_completion(self, response: ToolResponse) -> None:
        """Replace the rendered result by a shorter version of it, or by the original."""
        if self.original is not None and has_same_content(self.original, response):
            self.original = None
        elif self.completion is not None and self.original is None and not has_same_content(self.completion, response):
            self.original = self.completion
        self.completion = response


def _is_repeat(response: ToolResponse, known: ToolResponse | None) -> bool:
    return known is not None and has_same_content(known, response) and known.is_complete == response.is_complete


class History:
    """Messages in the order in which they were added, and the ledger: all interactions by call id."""

    def __init__(self, messages: Iterable[Message] = (), *, turns: int = 0) -> None:
        self.turns = turns
        self.ledger: dict[str, Interaction] = {}
        self.journal: list[Message | None] | None = None
        """If set: receives each message as it is added, and None each time the history was sent."""
        self.edit_count = 0
        """How often messages already added were changed, moved or removed."""
        self._messages: list[Message] = []
        self._numbers: list[int] = []
        self._added_count = 0
        self._open: dict[str, Interaction] = {}
        self._unsent: list[Interaction] = []
        self._conflicting: dict[str, Interaction] = {}
        self._has_gaps = False
        self._pairer = Pairer()
        self._early_results: dict[str, ToolResponse] = {}
        self.add(*messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def slice(self, start: int, end: int | None = None) -> list[Message]:
        """Return the messages from `start` to `end`."""
        return self._messages[start:end]

    @property
    def pending(self) -> list[ToolCall]:
        """Calls without a result, in call order."""
        return [entry.call for entry in self._open.values() if entry.call.kind != "hosted" and not entry.call.broken]

    def is_pending(self, call_id: str) -> bool:
        """Return whether a call has no result and was not rewound."""
        entry = self.ledger.get(call_id)
        return entry is not None and entry.state == "pending" and not entry.rewound

    def open_calls(self, turn_key: str) -> list[ToolCall]:
        """Return the calls of a turn that have no outcome, in call order, including hosted and broken calls."""
        return [entry.call for entry in self._open.values() if entry.turn_key == turn_key]

    @property
    def has_gaps(self) -> bool:
        """Whether a call or result in the ledger may be missing in the messages."""
        return self._has_gaps

    @property
    def conflicting(self) -> Mapping[str, Interaction]:
        """Interactions with more than one result, by call id."""
        return self._conflicting

    def is_rewound(self, call_ids: Sequence[str]) -> bool:
        """Return whether all these calls are in the ledger and were rewound; False for an empty list."""
        entries = [self.ledger.get(call_id) for call_id in call_ids]
        return bool(entries) and all(entry is not None and entry.rewound for entry in entries)

    def open_turn(self) -> str:
        """Open the next live turn and return its key."""
        self.turns += 1
        return f"turn-{self.turns}"

    def add(self, *messages: Message) -> tuple[Message, ...]:
        """Add messages and return them with their ids. A result that is already there is added once."""
        added: list[Message] = []
        for message in messages:
            message = self._pairer.feed(_validate_message(message))
            if self.journal is not None:
                self.journal.append(message)
            for call in calls_of(message):
                entry = self.ledger[call.id] = self._open[call.id] = Interaction(call, message.turn_key or "")
                if call.id in self._early_results:
                    entry.record(self._early_results.pop(call.id))
                    self._index_interaction(entry)
                    # The early result is rendered after this call now.
                    self.edit_count += 1
                    # A compression may have dropped the result in the meantime.
                    self._has_gaps = self._has_gaps or call.id not in self._answered_ids()
            kept = self._record_results(message)
            if kept is not None:
                self._messages.append(kept)
                self._numbers.append(self._added_count)
                added.append(kept)
            self._added_count += 1
        return tuple(added)

    def _record_results(self, message: Message) -> Message | None:
        """Return the message without results that change nothing; None if nothing else is left."""
        if ToolResponse not in map(type, message.blocks):
            return message
        blocks: list[Block] = []
        for block in message.blocks:
            entry = self.ledger.get(block.call_id) if isinstance(block, ToolResponse) else None
            if isinstance(block, ToolResponse) and entry is not None:
                earlier = entry.completion
                is_rendered = entry.record(block)
                self._index_interaction(entry)
                if not is_rendered or entry.rewound:
                    continue
                if earlier is not None:
                    self._replace_result(block)
                    continue
            elif isinstance(block, ToolResponse):
                # An imported result may stand before its call.
                self._early_results.setdefault(block.call_id, block)
            blocks.append(block)
        if not blocks and message.blocks:
            return None
        return message if len(blocks) == len(message.blocks) else message.with_blocks(tuple(blocks))

    def restore(self, entries: Iterable[Interaction]) -> None:
        """Restore stored ledger entries, in their order; they replace what was inferred from the messages."""
        stored = {entry.call.id: entry for entry in entries}
        self.ledger = stored if stored.keys() >= self.ledger.keys() else {**self.ledger, **stored}
        for entry in stored.values():
            self._pairer.restore_call(entry.call, entry.turn_key, entry.completion, match_raw_id=not entry.rewound)
        self._open, self._unsent, self._conflicting = {}, [], {}
        for entry in self.ledger.values():
            self._index_interaction(entry)
        self._has_gaps = True
        self._has_gaps = bool(self.complete_from_ledger()[1])

    def _index_interaction(self, entry: Interaction) -> None:
        """Update the indexes of open, unsent and conflicting interactions."""
        if entry.rewound:
            return
        if entry.state == "pending":
            self._open[entry.call.id] = entry
        else:
            self._open.pop(entry.call.id, None)
            if not entry.sent:
                self._unsent.append(entry)
        if entry.evidence:
            self._conflicting[entry.call.id] = entry

    def _replace_result(self, new: ToolResponse) -> None:
        """Replace the result of the same call in the messages."""

        def is_old(block: Block) -> bool:
            return isinstance(block, ToolResponse) and block.call_id == new.call_id

        for position in range(len(self._messages) - 1, -1, -1):
            message = self._messages[position]
            if any(map(is_old, message.blocks)):
                self._messages[position] = message.with_blocks(tuple(new if is_old(b) else b for b in message.blocks))
                self.edit_count += 1
                return

    def mark_sent(self) -> None:
        """Mark everything in the history as sent: its results are final from now on."""
        for entry in self._unsent:
            entry.sent = True
        self._unsent = []
        if self.journal is not None:
            self.journal.append(None)

    def complete_from_ledger(self) -> tuple[tuple[Message, ...], list[str]]:
        """Return the messages with missing calls and results restored from the ledger, and the ids of those calls.

        Messages may have been dropped since they were added; the ledger still has their calls and results.
        """
        if not self._has_gaps:
            return self.messages, []
        called = {call.id for message in self._messages for call in calls_of(message)}
        answered = self._answered_ids()
        messages: list[Message] = []
        completed_ids: list[str] = []
        for message in self._messages:
            missing_calls = [
                r.call_id for r in responses_of(message) if r.call_id not in called and r.call_id in self.ledger
            ]
            if missing_calls:
                calls = tuple(self.ledger[call_id].call for call_id in dict.fromkeys(missing_calls))
                messages.append(Message("ai", calls, turn_key=message.turn_key))
                called.update(missing_calls)
                completed_ids += missing_calls
            messages.append(message)
            unanswered = [call.id for call in calls_of(message) if call.id not in answered]
            results = [
                entry.completion for entry in map(self.ledger.__getitem__, unanswered) if entry.completion is not None
            ]
            if results:
                messages.append(Message("tool", tuple(results), turn_key=message.turn_key))
                completed_ids += [response.call_id for response in results]
        return (tuple(messages), completed_ids) if completed_ids else (self.messages, [])

    def _answered_ids(self) -> set[str]:
        return {response.call_id for message in self._messages for response in responses_of(message)}

    def _set_messages(self, numbered: Iterable[tuple[int, Message | None]]) -> None:
        pairs = [(number, message) for number, message in numbered if message is not None]
        self._numbers = [number for number, _ in pairs]
        self._messages = [message for _, message in pairs]

    def rewind(self, turn_key: str) -> None:
        """Drop everything after this turn, except for results of calls that are kept.

        Dropped calls stay in the ledger as rewound and are no longer pending. The turn counter does not go back.
        """
        end = self._find_turn_end(turn_key)
        kept_ids = {call.id for message in self._messages[:end] for call in calls_of(message)}
        dropped_ids = {call.id for message in self._messages[end:] for call in calls_of(message)}
        before = (_without_results(message, dropped_ids) for message in self._messages[:end])
        late = (_only_results(message, kept_ids) for message in self._messages[end:])
        restored = (self._restore_results(message, dropped_ids) if message else None for message in (*before, *late))
        self._set_messages([*zip(self._numbers, restored, strict=True)])
        self.edit_count += 1
        for call_id in dropped_ids:
            self.ledger[call_id].rewound = True
            self._open.pop(call_id, None)
            self._conflicting.pop(call_id, None)
        self._unsent = [entry for entry in self._unsent if not entry.rewound]
        answered = self._answered_ids()
        self._early_results = {
            call_id: response for call_id, response in self._early_results.items() if call_id in answered
        }
        self._pairer.forget_turns(dropped_ids)
        self._has_gaps = self._has_gaps and bool(self.complete_from_ledger()[1])

    def _restore_results(self, message: Message, dropped_ids: Container[str]) -> Message:
        """Return the message with full results in place of notes that refer to results of dropped calls."""

        def restore(block: Block) -> Block:
            if not isinstance(block, ToolResponse) or block.shortened is None:
                return block
            entry = self.ledger.get(block.call_id)
            if block.shortened.call_id not in dropped_ids or entry is None or entry.original is None:
                return block
            original = entry.original
            entry.replace_completion(original)
            return original

        blocks = tuple(map(restore, message.blocks))
        is_same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
        return message if is_same else message.with_blocks(blocks)

    def _find_turn_end(self, turn_key: str) -> int:
        """Return the index after the last message of a turn, or after its last before another turn began."""
        positions = [position for position, message in enumerate(self._messages) if message.turn_key == turn_key]
        if not positions:
            raise InputError(f"there is no turn {turn_key!r}", path="turn")
        end = positions[0]
        for position in range(end, len(self._messages)):
            message = self._messages[position]
            if message.turn_key == turn_key:
                end = position
            elif message.speaker == "ai":
                break
        return end + 1

    @property
    def newest_calls(self) -> list[ToolCall]:
        """The calls of the last turn that has any."""
        newest = (calls for message in reversed(self._messages) if (calls := calls_of(message)))
        return next(newest, list[ToolCall]())

    def replace_messages(self, messages: Sequence[Message], places: Mapping[int, int] = _NO_PLACES) -> None:
        """Replace all messages: by what a compression left, or by those from before it.

        The ledger keeps every call. Results that differ from the ledger replace those in it. `places` maps the indexes
        of new messages to those of the messages of `complete_from_ledger` that they stand for.
        """
        numbers = self._number_messages(messages, places)
        called = {call.id for message in messages for call in calls_of(message)}
        if unknown := called - self.ledger.keys():
            raise InputError(f"{min(unknown)} is not a tool call of this history", path="messages")
        waiting = {call.id for call in self.pending}
        dropped_pending = [c.id for m in self._messages for c in calls_of(m) if c.id in waiting and c.id not in called]
        if dropped_pending:
            raise InputError(f"tool call {dropped_pending[0]} has no result yet and can't be dropped", path="messages")
        for message in messages:
            for response in responses_of(message):
                if response.call_id in self.ledger:
                    self.ledger[response.call_id].replace_completion(response)
        self._set_messages(zip(numbers, messages, strict=True))
        self.edit_count += 1
        self._has_gaps = True
        self._has_gaps = bool(self.complete_from_ledger()[1])

    def _number_messages(self, messages: Sequence[Message], places: Mapping[int, int]) -> list[int]:
        """Return the numbers of messages that replace those of `complete_from_ledger`.

        A message that was restored from the ledger, or stands for an unknown one, has the number of the one before it.
        """
        numbers: list[int] = []
        known: dict[int, int] = {}
        position = 0
        for message in self.complete_from_ledger()[0]:
            position += position < len(self._messages) and message is self._messages[position]
            numbers.append(self._numbers[position - 1] if position else -1)
            known[id(message)] = numbers[-1]
        found: list[int] = []
        for index, message in enumerate(messages):
            place = places.get(index, -1)
            before = found[-1] if found else -1
            found.append(known.get(id(message), numbers[place] if 0 <= place < len(numbers) else before))
        return found

    def number_of(self, position: int) -> int:
        """Return the number of a message: how many were added before it, dropped ones included."""
        return self._numbers[position]

    def find_number(self, number: int) -> int | None:
        """Return the position of the message with this number, None if it was dropped."""
        position = bisect_left(self._numbers, number)
        is_found = position < len(self._numbers) and self._numbers[position] == number
        return position if is_found else None

    def find_message(self, message: Message) -> int:
        """Return the position of a message: of this object, or else of the first that is equal."""
        positions = [position for position, stored in enumerate(self._messages) if stored is message]
        positions = positions or [position for position, stored in enumerate(self._messages) if stored == message]
        if not positions:
            raise InputError("the message is not in this history", path="message")
        return positions[0]

    def pin(self, message: Message) -> Message:
        """Exclude a message from compression; return it as it is stored now."""
        return self.pin_at(self.find_message(message))

    def pin_at(self, position: int) -> Message:
        pinned = self._messages[position] = msgspec.structs.replace(self._messages[position], pinned=True)
        return pinned


def _validate_message(message: Message) -> Message:
    """Return the message with plain JSON arguments; raise for cycles and values that are not JSON."""
    if message.speaker not in ("system", "human", "ai", "tool"):
        raise InputError(f"unknown speaker {message.speaker!r}", path="speaker")
    # Arguments of a call with a fragment were parsed from JSON.
    calls = {
        index: block
        for index, block in enumerate(message.blocks)
        if isinstance(block, ToolCall) and block.native is None
    }
    if not calls:
        return message
    blocks = list(message.blocks)
    for index, call in calls.items():
        blocks[index] = _validate_arguments(call, index)
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def _validate_arguments(call: ToolCall, index: int) -> ToolCall:
    try:
        return msgspec.structs.replace(call, arguments=to_plain_json(call.arguments))
    except InputError as error:
        raise error.with_prefix(f"blocks[{index}].arguments") from None


def _only_results(message: Message, calls: Container[str]) -> Message | None:
    """Return the message with only the results of these calls; None if it has none."""
    kept = tuple(response for response in responses_of(message) if response.call_id in calls)
    return message.with_blocks(kept, speaker="tool") if kept and kept != message.blocks else message if kept else None


def _without_results(message: Message, calls: Container[str]) -> Message | None:
    """Return the message without the results of these calls; None if nothing else is left."""
    if all(response.call_id not in calls for response in responses_of(message)):
        return message
    kept = tuple(b for b in message.blocks if not isinstance(b, ToolResponse) or b.call_id not in calls)
    return message.with_blocks(kept) if kept else None


def bind_reasoning(blocks: Sequence[Block], digest: str) -> tuple[Block, ...]:
    """Return the blocks of a reply with the prefix digest recorded on their reasoning."""
    return tuple(
        msgspec.structs.replace(block, prefix=digest) if isinstance(block, Thinking) and block.prefix is None else block
        for block in blocks
    )

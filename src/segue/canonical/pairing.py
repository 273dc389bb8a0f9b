"""Pairs tool results with tool calls and assigns canonical ids, for all wires.

Raw ids are not unique. Servers restart them in every reply, always send the same one, leave it empty, or send the text
`null`; clients send results late, twice, before their call, or with an id that no call has. So raw ids alone do not
decide; these rules do:

1. A result with an id is paired by that id, in the newest turn before it that contains the id: with the first open
   call of that id; if all are answered, the result is a duplicate. Older turns are never considered, since a restarted
   id counter would mix two turns up.
2. A result without an id goes to the newest turn that has open calls, by name where it has one, then by order,
   calls without an id first.
3. A result whose id no call of the history has goes to the calls of that turn that have no id. On wires that pair by
   position it goes to any call that is still open there; so does a result whose name none of these calls has, if no
   other message is in between, after the results with matching names have been paired.
4. A result that finds no open call is a duplicate if its content equals that of a result already there, else an orphan.
5. A result before its call is paired last: with that call, if no other result was. Otherwise its turn was probably
   removed by the client: the result is a duplicate if its content is equal, else an orphan.
6. A result that has a canonical id already, as in a stored history, is paired by ids only.

Canonical ids are assigned here too, since they need the turn: a call's id is made of its provider, raw id, name, turn
key and index. A turn key is the message's own, or else a hash of the reply's calls with the occurrence counted.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import count, takewhile
from operator import is_
from typing import TypeAlias

from msgspec.structs import replace

from segue.canonical.blocks import Block, Message, Text, ToolCall, ToolResponse, calls_of, responses_of
from segue.canonical.ids import (
    format_turn_key,
    has_canonical,
    hash_calls,
    hash_replies,
    hash_reply,
    hash_tool_id,
    is_canonical,
)

_PAIRED_TYPES = frozenset({ToolCall, ToolResponse})


class _Slot:
    """One call, its turn, and its first result."""

    __slots__ = ("call", "result", "turn")

    def __init__(self, call: ToolCall, turn: _Turn) -> None:
        self.call = call
        self.turn = turn
        self.result: ToolResponse | None = None


# Calls and results are paired by the raw id and by whether the provider runs the tool itself.
_PairKey: TypeAlias = tuple[str | None, bool]


def _pair_key(block: ToolCall | ToolResponse) -> _PairKey:
    return block.origin.raw_id, block.hosted if isinstance(block, ToolResponse) else block.kind == "hosted"


def has_own_calls(blocks: Iterable[Block]) -> bool:
    """Return whether each result in these blocks of a reply has the id of a call before it, so is paired with that."""
    keys: set[_PairKey] = set()
    for block in blocks:
        if isinstance(block, ToolCall):
            keys.update([] if block.origin.is_approval or block.origin.raw_id is None else [_pair_key(block)])
        elif isinstance(block, ToolResponse) and (block.call_id or _pair_key(block) not in keys):
            return False
    return True


class _Turn:
    """The calls of one message, with queues of open calls so that the next one is found in constant time.

    `reply` numbers the replies: messages of the model without any other in between have the same number. Indexes and
    queues are built on first use: a result of a stored history has the id of its call, and for most other results there
    is exactly one call with their id.
    """

    __slots__ = ("_index", "_queues", "_tool_names", "key", "open_count", "reply", "slots")

    def __init__(self, key: str, reply: int = -1) -> None:
        self.key = key
        self.reply = reply
        self.slots: list[_Slot] = []
        self.open_count = 0
        self._tool_names: set[str] | None = None
        self._index: defaultdict[_PairKey, list[_Slot]] | None = None
        self._queues: dict[tuple[object, ...], deque[_Slot]] | None = None

    @property
    def tool_names(self) -> set[str]:
        if self._tool_names is None:
            self._tool_names = {slot.call.name for slot in self.slots}
        return self._tool_names

    @property
    def slots_by_key(self) -> defaultdict[_PairKey, list[_Slot]]:
        if self._index is None:
            self._index = defaultdict(list)
            for slot in self.slots:
                self._index[_pair_key(slot.call)].append(slot)
        return self._index

    def add_slot(self, slot: _Slot, key: _PairKey) -> None:
        self.slots.append(slot)
        self.open_count += 1
        if self._tool_names is not None:
            self._tool_names.add(slot.call.name)
        if self._index is not None:
            self._index[key].append(slot)
        if self._queues is not None:
            raw_id, hosted = key
            for queue in (key, (hosted, raw_id is None, None), (hosted, raw_id is None, slot.call.name)):
                if queue in self._queues:
                    self._queues[queue].append(slot)

    def forget_slots(self) -> None:
        """Drop the slots, which hold this turn: without the cycle the collector has nothing to search."""
        self.slots.clear()
        self._index = self._queues = None

    def first_open(self, key: _PairKey) -> _Slot | None:
        """Return the first open call with this key."""
        slots = self.slots_by_key[key]
        if len(slots) == 1:
            return slots[0] if slots[0].result is None else None
        return self._next_in_queue(key, slots)

    def first_open_by_position(self, *, hosted: bool, without_id: bool, tool: str | None) -> _Slot | None:
        """Return the first open call with or without an id, of this tool where given."""

        def fits(slot: _Slot) -> bool:
            raw_id, is_hosted = _pair_key(slot.call)
            return (raw_id is None) is without_id and is_hosted is hosted and tool in (None, slot.call.name)

        return self._next_in_queue((hosted, without_id, tool), filter(fits, self.slots))

    def _next_in_queue(self, queue: tuple[object, ...], members: Iterable[_Slot]) -> _Slot | None:
        if self._queues is None:
            self._queues = {}
        slots = self._queues.get(queue)
        if slots is None:
            slots = self._queues[queue] = deque(members)
        while slots and slots[0].result is not None:
            slots.popleft()
        return slots[0] if slots else None


class Pairer:
    """Assigns canonical ids to calls and results, message by message.

    `call_keys` are the keys of all calls, also later ones: they distinguish a result before its call from one whose id
    no call has. `result_keys` are the keys of the results, one for each: a result with the call's own id has priority
    over one that is paired by position. `used_ids` are canonical ids that no call gets.
    """

    def __init__(
        self,
        *,
        positional: bool = False,
        call_keys: Iterable[_PairKey] = (),
        result_keys: Iterable[_PairKey] = (),
        used_ids: Iterable[str] = (),
    ) -> None:
        self._positional = positional
        self._call_keys = frozenset(call_keys)
        self._remaining_results: defaultdict[_PairKey, int] = defaultdict(int)
        for key in result_keys:
            self._remaining_results[key] += 1
        self._newest_turn_by_key: dict[_PairKey, _Turn] = {}
        self._turns: list[_Turn] = []
        self._open_turns: list[_Turn] = []
        self._last_turn: _Turn | None = None
        self._reply_number = 0
        self._answers_reply = False
        self._reply_counts: defaultdict[str, int] = defaultdict(int)
        self._orphan_counts: defaultdict[tuple[str | None, str | None], int] = defaultdict(int)
        self._orphan_ids: set[str] = set()
        self._ids: set[str] = set(used_ids)
        self._slots: dict[str, _Slot] = {}
        self._unanswered: defaultdict[_PairKey, deque[_Slot]] | None = None
        self.has_early_results = False

    def feed(self, message: Message) -> Message:
        """Return the message with the ids of its calls and results, and the key of its turn."""
        if message.speaker != "ai":
            self._reply_number += 1
        if _PAIRED_TYPES.isdisjoint(map(type, message.blocks)):
            if any(not isinstance(block, Text) or block.text for block in message.blocks):
                self._last_turn = None
            return message
        calls = calls_of(message)
        self._answers_reply = self._positional and not calls and self._answers_whole_reply(message)
        turn = self._open_turn(message, calls) if calls else None
        blocks: list[Block] = []
        misnamed: list[tuple[int, ToolResponse]] = []
        index = 0
        turn_key = turn.key if turn is not None else message.turn_key
        for block in message.blocks:
            if isinstance(block, ToolCall) and turn is not None:
                block = self._add_call(block, turn, index)
                index += 1
            elif isinstance(block, ToolResponse):
                if self._is_misnamed(block):
                    misnamed.append((len(blocks), block))
                else:
                    block, result_turn_key = self._pair_result(block)
                    turn_key = turn_key or result_turn_key
            blocks.append(block)
        for position, response in misnamed:
            blocks[position], result_turn_key = self._pair_with_next_open(response)
            turn_key = turn_key or result_turn_key
        # A stored message has its ids already.
        if turn_key == message.turn_key and all(map(is_, blocks, message.blocks)):
            return message
        return replace(message, blocks=tuple(blocks), turn_key=turn_key)

    def close(self) -> None:
        """Release the memory of all turns; nothing can be paired afterwards."""
        for turn in self._turns:
            turn.forget_slots()

    def forget_turns(self, calls: Container[str]) -> None:
        """Exclude the turns of these calls from pairing. Their canonical ids stay in use."""
        self._turns = [turn for turn in self._turns if not any(slot.call.id in calls for slot in turn.slots)]
        remaining = set(map(id, self._turns))
        self._open_turns = [turn for turn in self._open_turns if id(turn) in remaining]
        self._last_turn = None
        self._newest_turn_by_key = {
            key: turn
            for turn in self._turns
            for key, slots in turn.slots_by_key.items()
            if slots and key[0] is not None
        }

    def restore_call(self, call: ToolCall, turn_key: str, result: ToolResponse | None, *, match_raw_id: bool) -> None:
        """Add a call whose message was dropped. With `match_raw_id`, results are paired with it by raw id too."""
        if call.id in self._ids:
            return
        self._ids.add(call.id)
        if call.origin.is_approval:
            return
        turn = _Turn(turn_key)
        slot = self._slots[call.id] = _Slot(call, turn)
        turn.add_slot(slot, _pair_key(call))
        if result is not None:
            slot.result, turn.open_count = result, 0
        if match_raw_id and call.origin.raw_id is not None:
            self._newest_turn_by_key.setdefault(_pair_key(call), turn)

    def _open_turn(self, message: Message, calls: Sequence[ToolCall]) -> _Turn:
        if message.turn_key is None:
            digest = hash_reply(calls)
            turn = _Turn(format_turn_key(digest, self._reply_counts[digest]), self._reply_number)
            self._reply_counts[digest] += 1
        else:
            turn = _Turn(message.turn_key, self._reply_number)
        self._turns.append(turn)
        self._last_turn = turn
        return turn

    def _add_call(self, call: ToolCall, turn: _Turn, index: int) -> ToolCall:
        raw_id = call.origin.raw_id
        call_id = call.id or (raw_id if raw_id is not None and is_canonical(raw_id) else "")
        if not call_id or call_id in self._ids:
            call_id = hash_tool_id(call.origin.provider, raw_id or call.id, call.name, turn.key, index)
            salt = 0
            while call_id in self._ids:
                salt += 1
                call_id = hash_tool_id(call.origin.provider, raw_id, call.name, f"{turn.key}+{salt}", index)
        self._ids.add(call_id)
        call = call if call.id == call_id else replace(call, id=call_id)
        if call.origin.is_approval:
            return call
        slot = self._slots[call_id] = _Slot(call, turn)
        key = _pair_key(call)
        turn.add_slot(slot, key)
        if not self._open_turns or self._open_turns[-1] is not turn:
            self._open_turns.append(turn)
        if raw_id is not None:
            self._newest_turn_by_key[key] = turn
        return call

    def _pair_result(self, response: ToolResponse) -> tuple[ToolResponse, str | None]:
        """Return the result with its call's id, and the key of that call's turn (None for an orphan)."""
        if response.call_id and response.call_id in self._slots:
            return self._assign_result(self._slots[response.call_id], response)
        key = _pair_key(response)
        if key in self._newest_turn_by_key:
            self._remaining_results[key] -= 1
            turn = self._newest_turn_by_key[key]
            return self._assign_result(turn.first_open(key) or turn.slots_by_key[key][-1], response)
        if key in self._call_keys:
            self.has_early_results = True
            return response, None
        if response.call_id:
            return self._make_orphan(response), None
        slot = self._find_by_content(response, self._turns[-1:]) or self._find_by_position(response)
        slot = slot or self._find_by_content(response, reversed(self._turns[-2:]))
        return self._assign_result(slot, response) if slot is not None else (self._make_orphan(response), None)

    def _find_by_position(self, response: ToolResponse) -> _Slot | None:
        while self._open_turns and not self._open_turns[-1].open_count:
            self._open_turns.pop()
        if not self._open_turns:
            return None
        tool = response.name or None
        for turn in self._turns_of_reply(self._open_turns[-1]):
            slot = turn.first_open_by_position(hosted=response.hosted, without_id=True, tool=tool)
            if slot is None and (response.origin.raw_id is None or self._positional):
                slot = turn.first_open_by_position(hosted=response.hosted, without_id=False, tool=tool)
                if slot is not None and self._remaining_results[_pair_key(slot.call)] > 0:
                    return None
            if slot is not None:
                return slot
        return None

    def _answers_whole_reply(self, message: Message) -> bool:
        """Return whether the message has a result for every open call of the newest reply, also of several messages."""
        turns = self._newest_reply()
        return len(turns) > 1 and len(responses_of(message)) >= sum(turn.open_count for turn in turns)

    def _newest_reply(self) -> list[_Turn]:
        """Return the turns of the newest reply in order: its messages have no other message in between."""
        turns = self._turns[-1:]
        return [*takewhile(lambda other: other.reply == turns[0].reply, reversed(self._turns))][::-1]

    def _turns_of_reply(self, turn: _Turn) -> list[_Turn]:
        """Return the turns that a result may belong to: this one, or all of the reply if all are answered at once."""
        return self._newest_reply() if self._answers_reply and turn.reply == self._turns[-1].reply else [turn]

    def _is_misnamed(self, response: ToolResponse) -> bool:
        """Return whether a result can be paired by position only: neither its id nor its name matches a call."""
        turn = self._last_turn
        if turn is None or not turn.open_count or not self._positional or response.hosted or not response.name:
            return False
        key = _pair_key(response)
        known = response.call_id in self._slots or key in self._newest_turn_by_key or key in self._call_keys
        return not known and all(response.name not in other.tool_names for other in self._turns_of_reply(turn))

    def _pair_with_next_open(self, response: ToolResponse) -> tuple[ToolResponse, str | None]:
        turn = self._last_turn
        if turn is None or not turn.open_count:
            return self._pair_result(response)
        slot = turn.first_open_by_position(hosted=False, without_id=True, tool=None)
        slot = slot or turn.first_open_by_position(hosted=False, without_id=False, tool=None)
        if slot is None or self._remaining_results[_pair_key(slot.call)] > 0:
            return self._pair_result(response)
        paired, key = self._assign_result(slot, response)
        return replace(paired, name=slot.call.name), key

    def _find_by_content(self, response: ToolResponse, turns: Iterable[_Turn]) -> _Slot | None:
        """Return a call of a closed turn whose result has the same content: this one is its duplicate."""
        for turn in turns:
            if turn.open_count:
                continue
            for slot in turn.slots:
                if (
                    slot.result is not None
                    and _can_be_duplicate(response, slot)
                    and has_same_content(response, slot.result)
                ):
                    return slot
        return None

    def _assign_result(self, slot: _Slot, response: ToolResponse) -> tuple[ToolResponse, str | None]:
        if slot.result is None:
            slot.result = response
            slot.turn.open_count -= 1
        name, call_id = response.name or slot.call.name, slot.call.id
        if response.name != name or response.call_id != call_id:
            response = replace(response, call_id=call_id, name=name)
        return response, slot.turn.key

    def _make_orphan(self, response: ToolResponse) -> ToolResponse:
        origin = response.origin
        kind = (origin.raw_id, response.name)
        index = self._orphan_counts[kind]
        # One that has its id already is counted too, so that parsing the history again numbers the next one the same.
        self._orphan_counts[kind] += 1
        call_id = response.call_id
        # A canonical id is kept unless a call or another orphan has it.
        is_free = origin.raw_id not in self._ids and origin.raw_id not in self._orphan_ids
        if not call_id and is_canonical(origin.raw_id) and is_free:
            call_id = origin.raw_id or ""
        call_id = call_id or hash_tool_id(origin.provider, origin.raw_id, response.name, "orphan", index)
        self._orphan_ids.add(call_id)
        return replace(response, call_id=call_id)

    def pair_early_results(self, message: Message) -> Message:
        """Pair results that precede their call: with that call if it is open, else as duplicates or orphans."""
        if ToolResponse not in map(type, message.blocks):
            return message
        if not any(isinstance(block, ToolResponse) and not block.call_id for block in message.blocks):
            return message
        turn_key = message.turn_key
        blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ToolResponse) and not block.call_id:
                block, result_turn_key = self._pair_early_result(block)
                turn_key = turn_key or result_turn_key
            blocks.append(block)
        return replace(message, blocks=tuple(blocks), turn_key=turn_key)

    def _pair_early_result(self, response: ToolResponse) -> tuple[ToolResponse, str | None]:
        if self._unanswered is None:
            self._unanswered = defaultdict(deque)
            for slot in self._slots.values():
                if slot.result is None and slot.call.origin.raw_id is not None:
                    self._unanswered[_pair_key(slot.call)].append(slot)
        waiting = self._unanswered[_pair_key(response)]
        if waiting:
            return self._assign_result(waiting.popleft(), response)
        for slot in self._newest_turn_by_key[_pair_key(response)].slots_by_key[_pair_key(response)]:
            if slot.result is not None and has_same_content(response, slot.result):
                return self._assign_result(slot, response)
        return self._make_orphan(response), None


def _can_be_duplicate(response: ToolResponse, slot: _Slot) -> bool:
    raw_id = response.origin.raw_id
    if (raw_id is not None and slot.call.origin.raw_id is not None) or _pair_key(slot.call)[1] != response.hosted:
        return False
    result_name = slot.result.name if slot.result is not None else None
    return response.name in (None, slot.call.name, result_name)


def pair(messages: Sequence[Message], *, positional: bool = False) -> tuple[Message, ...]:
    """Return all messages of a body with the ids of their calls and results."""
    blocks = [block for message in messages for block in message.blocks if type(block) in _PAIRED_TYPES]
    regular = _pair_regular(messages) if blocks else tuple(messages)
    if regular is not None:
        return regular
    call_keys = {_pair_key(block) for block in blocks if isinstance(block, ToolCall) and _can_have_result(block)}
    result_keys = (
        [_pair_key(block) for block in blocks if isinstance(block, ToolResponse) and block.origin.raw_id]
        if positional
        else ()
    )
    pairer = Pairer(positional=positional, call_keys=call_keys, result_keys=result_keys)
    paired = [pairer.feed(message) for message in messages]
    paired = list(map(pairer.pair_early_results, paired)) if pairer.has_early_results else paired
    pairer.close()
    return tuple(paired)


def _pair_regular(messages: Sequence[Message]) -> tuple[Message, ...] | None:
    """Pair messages where each call has a raw id of its own, and each result that of a call before it; None for others.

    Or no call has one, and each result is that of an open call of the newest reply with calls, none before it being
    open. Only the beginnings of the first two rules apply to these. Most bodies are like that.
    """
    replies = [message for message in messages if ToolCall in map(type, message.blocks)]
    calls_of_replies = list(map(calls_of, replies))
    calls = [call for given in calls_of_replies for call in given]
    raw_ids = [call.origin.raw_id for call in calls]
    has_ids = None not in raw_ids
    if len(set(raw_ids)) != (len(calls) if has_ids else 1) or not all(map(_is_new, calls)) or has_canonical(raw_ids):
        return None
    if [None for message in replies if message.turn_key is not None]:
        return None
    occurrences: defaultdict[str, Iterator[int]] = defaultdict(count)
    turn_keys = [format_turn_key(digest, next(occurrences[digest])) for digest in hash_replies(calls_of_replies)]
    counts = map(len, calls_of_replies)
    places = [(key, index) for key, size in zip(turn_keys, counts, strict=True) for index in range(size)]
    new_calls = zip(calls, hash_calls(calls, places), [turn_key for turn_key, _ in places], strict=True)
    paired_calls: dict[str | None, tuple[ToolCall, str]] = {}
    open_calls: list[tuple[ToolCall, str]] = []
    paired: list[Message] = []
    for message in messages:
        if _PAIRED_TYPES.isdisjoint(map(type, message.blocks)):
            paired.append(message)
            continue
        turn_key = None
        result_turn_key = message.turn_key
        blocks: list[Block] = []
        for block in message.blocks:
            if type(block) is ToolCall:
                if open_calls and turn_key is None:
                    return None
                _, call_id, turn_key = next(new_calls)
                block = replace(block, id=call_id)
                if has_ids:
                    paired_calls[block.origin.raw_id] = block, turn_key
                else:
                    open_calls.append((block, turn_key))
            elif type(block) is ToolResponse:
                raw_id = block.origin.raw_id
                found = paired_calls.get(raw_id) if raw_id is not None else _take_call(open_calls, block.name)
                if found is None or block.call_id or block.hosted != (found[0].kind == "hosted"):
                    return None
                call, call_turn_key = found
                block = replace(block, call_id=call.id, name=block.name or call.name)
                result_turn_key = result_turn_key or call_turn_key
            blocks.append(block)
        paired.append(replace(message, blocks=tuple(blocks), turn_key=turn_key or result_turn_key))
    return tuple(paired)


def _take_call(open_calls: list[tuple[ToolCall, str]], name: str | None) -> tuple[ToolCall, str] | None:
    """Remove the first open call of a tool, or of any without a name, and return it with its turn key."""
    place = next((place for place, (call, _) in enumerate(open_calls) if name in (None, "", call.name)), None)
    return None if place is None else open_calls.pop(place)


def _is_new(call: ToolCall) -> bool:
    """Return whether the call has no canonical id yet, and may have a result."""
    return not call.id and (call.origin.family is None or not call.origin.is_approval)


def _can_have_result(call: ToolCall) -> bool:
    """Return whether a result may have the id of this call. An approval request has no result."""
    return call.origin.raw_id is not None and not call.origin.is_approval


def has_same_content(one: ToolResponse, other: ToolResponse) -> bool:
    """Return whether two results have the same content, whatever their native fragments."""
    return (
        one.error == other.error
        and one.outcome == other.outcome
        and one.structured == other.structured
        and [_comparable_block(block) for block in one.content or ()]
        == [_comparable_block(block) for block in other.content or ()]
    )


def _comparable_block(block: Block) -> object:
    return block.text if isinstance(block, Text) else replace(block, native=None)

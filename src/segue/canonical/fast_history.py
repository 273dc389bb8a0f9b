"""The fast path's form of a regular history: one in which every result directly follows its calls.

It has user messages, replies, and system text between them; either every call has a unique id or none has an id. Calls
and results are stored in parallel columns, in the order of the calls, and a turn is a slice of them. Any other history
raises `FastPathUnsupportedError` and is converted by the full pipeline.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, UnsetType

from segue.canonical.envelope import is_envelope
from segue.canonical.ids import (
    NO_IDS,
    encode_reply_calls,
    format_turn_key,
    has_canonical,
    hash_tool_ids,
    short_hashes,
)
from segue.canonical.json import MAX_DEPTH, estimate_depth, find_duplicate_key, has_key_count

_INVALID_IDS = frozenset({None, *NO_IDS})
# Random, so that no text of a body can contain it.
_SEPARATOR = os.urandom(12).hex()
_separated_decoder = msgspec.json.Decoder(list[dict[str, Any] | str])

Content: TypeAlias = str | list[str]
"""A text, or the texts of a list of parts."""


REORDERED = "results in another order than the calls"
DUPLICATE = "a second, equal result"
STRUCTURED = "a result that is a JSON value"
SYSTEM = "system text between messages"
REASONING = "reasoning"
CACHED = "a cache marker"


class FastPathUnsupportedError(Exception):
    """The request needs the full pipeline."""


class FastTurn(Struct, gc=False):
    """A reply and the results of its calls: the slice from `start` to `stop` of the columns.

    Reasoning is not kept: cross-API it is dropped, same-API the items are copied unchanged. `placeholder` is sent in
    its place where the target requires reasoning. `is_reordered`: the results are not in the order of the calls.
    `variant` holds what else distinguishes the turn in its own API.
    """

    content: Content | None
    start: int
    stop: int
    variant: object = None
    is_reordered: bool = False
    placeholder: str | None = None


class FastUserMessage(Struct, gc=False):
    """A user message."""

    content: Content


class FastSystemMessage(Struct, gc=False):
    """System text after the first message."""

    content: Content


FastEvent: TypeAlias = FastUserMessage | FastTurn | FastSystemMessage


class FastHistory(Struct, gc=False):
    """Events, the index in the body where each begins, and a column for each property of a call.

    The first `system_count` items of the body are system text. `marks` has the first event with each property that a
    finding may depend on, such as reasoning. `error_results` are the indexes of results that are errors,
    `result_order` those of all results in the order of the body, if it is not the order of the calls, and `duplicates`
    those of calls with a second, equal result. `item_ids` are the ids of items, which must be unique in a body, each
    with the index of the item. `ids` (canonical), `turn_keys` (of turns whose calls have no ids), `sent_ids` and
    `sent_names` (projected) are filled in by later steps.
    """

    events: list[FastEvent] = []
    starts: list[int] = []
    raw_ids: list[str | None] = []
    names: list[str] = []
    arguments: list[dict[str, Any]] = []
    results: list[Content] = []
    error_results: list[int] = []
    result_order: list[int] | None = None
    duplicates: list[int] = []
    marks: dict[Hashable, int] = {}
    system_count: int = 0
    item_ids: dict[str, int] = {}
    ids: list[str] = []
    turn_keys: list[str] = []
    sent_ids: list[str] = []
    sent_names: list[str] = []

    def add(self, event: FastEvent, start: int, *marks: Hashable) -> None:
        """Append an event that begins at item `start`."""
        for mark in marks:
            self.marks.setdefault(mark, len(self.events))
        self.events.append(event)
        self.starts.append(start)

    def mark_last(self, mark: Hashable) -> None:
        """Record a property of the last event."""
        self.marks.setdefault(mark, len(self.events) - 1)

    def find_cut(self, stop: int) -> int:
        """Return the last cut before `stop`, 0 if there is none.

        A cut is the index of a reply that is rendered apart from the events before it: none of them is merged with it,
        because the last one is no reply, or one with results.
        """
        events = self.events
        for index in range(stop - 1, 0, -1):
            before = events[index - 1]
            if isinstance(events[index], FastTurn) and (not isinstance(before, FastTurn) or before.start < before.stop):
                return index
        return 0

    def find_calls(self, start: int, stop: int) -> tuple[int, int]:
        """Return the start and the stop of the calls of the events from `start` to `stop`."""
        events = self.events
        turns = (event for event in events[stop:] if isinstance(event, FastTurn))
        last_call = next((turn.start for turn in turns), len(self.names))
        turns = (event for event in events[start:stop] if isinstance(event, FastTurn))
        return next((turn.start for turn in turns), last_call), last_call

    def divide(self, cuts: Sequence[int]) -> list[FastHistory]:
        """Return the events up to each cut, to be rendered apart. Each part has columns of its own.

        It leaves this history empty, so call it after all other steps.
        """
        parts = [self._take(start, stop) for start, stop in zip([0, *cuts], cuts, strict=False)]
        for column in (self.events, self.arguments, self.results):
            column.clear()
        return parts

    def _take(self, start: int, stop: int) -> FastHistory:
        events = self.events[start:stop]
        first_call, last_call = self.find_calls(start, stop)
        for event in events:
            if isinstance(event, FastTurn):
                event.start -= first_call
                event.stop -= first_call
        start, stop = first_call, last_call
        return FastHistory(
            events=events,
            arguments=self.arguments[start:stop],
            results=self.results[start:stop],
            error_results=[call - start for call in self.error_results if start <= call < stop],
            marks=self.marks,
            sent_ids=self.sent_ids[start:stop],
            sent_names=self.sent_names[start:stop],
        )


def require_text(content: Content) -> Content:
    """Return the content if no part of it is blank, so every target accepts it; raise otherwise."""
    if isinstance(content, str):
        if not content or content.isspace():
            raise FastPathUnsupportedError
    elif not content or any(not text or text.isspace() for text in content):
        raise FastPathUnsupportedError
    return content


def reject_envelopes(texts: Iterable[str | UnsetType | None]) -> None:
    """Raise if one of these signatures or encrypted contents is an envelope: it must not be sent unchanged."""
    for text in texts:
        if text and is_envelope(text):
            raise FastPathUnsupportedError


def add_results(
    history: FastHistory, result_ids: Sequence[str | None], contents: Sequence[Content], failed: Sequence[bool]
) -> None:
    """Add the results of the last turn, in any order; a second result of a call must equal the first."""
    turn = history.events[-1]
    if not isinstance(turn, FastTurn):
        raise FastPathUnsupportedError
    call_ids = history.raw_ids[turn.start : turn.stop]
    if result_ids == call_ids and history.result_order is None and True not in failed:
        history.results += contents
        return
    positions = range(len(result_ids))
    if result_ids != call_ids:
        first_positions = {result_ids[position]: position for position in reversed(positions)}
        if None in first_positions or len(call_ids) != len(first_positions) or set(call_ids) != set(first_positions):
            raise FastPathUnsupportedError
        for position, result_id in enumerate(result_ids):
            first = first_positions[result_id]
            if contents[first] != contents[position] or failed[first] != failed[position]:
                raise FastPathUnsupportedError
            if first != position:
                history.duplicates.append(turn.start + call_ids.index(result_id))
                history.mark_last(DUPLICATE)
        positions = [first_positions[call_id] for call_id in call_ids]
        if positions != sorted(positions):
            turn.is_reordered = True
            history.mark_last(REORDERED)
            history.result_order = [*(history.result_order or range(turn.start))]
    if history.result_order is not None:
        history.result_order += [
            turn.start + index for index in sorted(range(len(positions)), key=positions.__getitem__)
        ]
    for index, position in enumerate(positions, turn.start):
        history.results.append(contents[position])
        if failed[position]:
            history.error_results.append(index)


def order_results(history: FastHistory, result_ids: Sequence[str | None]) -> Sequence[int]:
    """Return the position of each call's result. Each turn has one result for each of its calls, in any order."""
    if result_ids == history.raw_ids:
        return range(len(result_ids))
    positions: list[int] = []
    order: list[int] = []
    for event_index, turn in enumerate(history.events):
        if not isinstance(turn, FastTurn):
            continue
        call_ids, turn_ids = history.raw_ids[turn.start : turn.stop], result_ids[turn.start : turn.stop]
        if call_ids != turn_ids:
            if sorted(map(str, call_ids)) != sorted(map(str, turn_ids)):
                raise FastPathUnsupportedError
            turn.is_reordered = True
            history.marks.setdefault(REORDERED, event_index)
        positions += [turn.start + turn_ids.index(call_id) for call_id in call_ids]
        order += [turn.start + call_ids.index(result_id) for result_id in turn_ids]
    history.result_order = order
    return positions


def parse_argument_texts(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Parse all argument texts with one call of the decoder; raise if any text is not exactly one JSON object."""
    joined = f',"{_SEPARATOR}",'.join(texts)
    values = _separated_decoder.decode(f"[{joined}]")
    arguments = [value for value in values if isinstance(value, dict)]
    if len(arguments) != len(texts) or values[1::2] != [_SEPARATOR] * (len(texts) - 1):
        raise FastPathUnsupportedError
    if not has_key_count(joined, sum(map(len, arguments))) and any(map(find_duplicate_key, texts, arguments)):
        raise FastPathUnsupportedError
    return arguments


def assign_ids(
    history: FastHistory,
    provider: str,
    earlier_ids: Sequence[str | None] = (),
    earlier_replies: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Assign the canonical ids that pairing would assign: every raw id is unique, or no call has one.

    `earlier_ids` are the raw ids of all calls before those of the history. `earlier_replies` has the number of equal
    replies before it, if calls have no ids.
    """
    raw_ids, names, arguments = history.raw_ids, history.names, history.arguments
    unique_ids = set(raw_ids)
    has_ids = unique_ids != {None}
    if has_ids and (
        len(unique_ids) < len(raw_ids) or not unique_ids.isdisjoint(_INVALID_IDS) or has_canonical(raw_ids)
    ):
        raise FastPathUnsupportedError
    if raw_ids and earlier_ids and not _follows(unique_ids, earlier_ids):
        raise FastPathUnsupportedError
    turns = [event for event in history.events if type(event) is FastTurn and event.start < event.stop]
    calls = list(zip(raw_ids, names, arguments, strict=True))
    replies = [encode_reply_calls(calls[turn.start : turn.stop]) for turn in turns]
    if any(len(reply) > MAX_DEPTH and estimate_depth(reply) > MAX_DEPTH // 2 for reply in replies):
        raise FastPathUnsupportedError
    hashes = short_hashes(replies, 16)
    if has_ids:
        keys = [format_turn_key(key, 0) for key in hashes]
    else:
        keys = _count_turn_keys(hashes, earlier_replies)
        history.turn_keys = keys
    counts = [turn.stop - turn.start for turn in turns]
    history.ids = hash_tool_ids(
        provider,
        [raw_id or "" for raw_id in raw_ids],
        names,
        [key for key, count in zip(keys, counts, strict=True) for _ in range(count)],
        [index for count in counts for index in range(count)],
    )


def _follows(raw_ids: set[str | None], earlier: Sequence[str | None]) -> bool:
    """Return whether calls with these raw ids may follow earlier ones: all are different, or none of both has one."""
    return None in earlier if None in raw_ids else None not in earlier and raw_ids.isdisjoint(earlier)


def _count_turn_keys(replies: list[str], earlier: Mapping[str, int]) -> list[str]:
    """Return turn keys with the occurrence counted: replies whose calls have no ids may be equal."""
    seen = Counter({reply: earlier[reply] for reply in replies if reply in earlier})
    keys: list[str] = []
    for reply in replies:
        keys.append(format_turn_key(reply, seen[reply]))
        seen[reply] += 1
    return keys

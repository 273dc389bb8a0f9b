"""`Progress`: the first events of a conversation, as far as its report and the conversion of later events need them."""

from __future__ import annotations

from msgspec import Struct

from segue.canonical.blocks import join_texts
from segue.canonical.fast_history import Content, FastHistory, FastPathUnsupportedError, FastTurn, assign_ids
from segue.canonical.ids import split_turn_key


class Progress(Struct, frozen=True):
    """Columns of the calls of these events: canonical, raw and sent ids, and names. None of the lists is ever changed.

    `result_order` has the indexes of their results in the order of the body, None if it is that of the calls.
    `turn_ids` and `reordered_ids` are the first calls of all turns, and of those with results in another order,
    `duplicates` the calls with a second, equal result, each after its text. `replies` has the number of equal replies,
    if calls have no ids.
    """

    ids: list[str] = []
    raw_ids: list[str | None] = []
    names: list[str] = []
    sent_ids: list[str] = []
    result_order: list[int] | None = None
    turn_ids: list[str] = []
    reordered_ids: list[str] = []
    duplicates: list[tuple[str, str]] = []
    item_ids: list[str] = []
    replies: dict[str, int] = {}

    def assign_ids(self, history: FastHistory, provider: str) -> None:
        """Assign canonical ids to the calls of a history that follows."""
        if history.item_ids and not history.item_ids.keys().isdisjoint(self.item_ids):
            raise FastPathUnsupportedError
        assign_ids(history, provider, self.raw_ids, self.replies)

    def extend(self, history: FastHistory, start: int, stop: int) -> Progress:
        """Return the progress after the events from `start` to `stop` of a history, whose ids are assigned."""
        if start == stop:
            return self
        first, last = history.find_calls(start, stop)
        ids = history.ids
        turns = [event for event in history.events[start:stop] if isinstance(event, FastTurn)]
        first_ids = [ids[turn.start] for turn in turns if turn.start < turn.stop]
        offset = len(self.ids) - first
        order = self.result_order
        if history.result_order is not None and any(turn.is_reordered for turn in turns):
            earlier = range(len(self.ids)) if order is None else order
            order = [*earlier, *[call + offset for call in history.result_order[first:last]]]
        elif order is not None:
            order = [*order, *range(first + offset, last + offset)]
        duplicates = [(_join(history.results[call]), ids[call]) for call in history.duplicates if first <= call < last]
        return Progress(
            [*self.ids, *ids[first:last]],
            [*self.raw_ids, *history.raw_ids[first:last]],
            [*self.names, *history.names[first:last]],
            [*self.sent_ids, *history.sent_ids[first:last]],
            order,
            [*self.turn_ids, *first_ids],
            [*self.reordered_ids, *[ids[turn.start] for turn in turns if turn.is_reordered]],
            [*self.duplicates, *duplicates],
            [*self.item_ids, *_find_item_ids(history, start, stop)] if history.item_ids else self.item_ids,
            self._count_replies(history, start, stop) if history.turn_keys else self.replies,
        )

    def _count_replies(self, history: FastHistory, start: int, stop: int) -> dict[str, int]:
        turns = [index for index, event in enumerate(history.events) if _has_calls(event)]
        keys = [key for index, key in zip(turns, history.turn_keys, strict=True) if start <= index < stop]
        counts = map(split_turn_key, keys)
        return self.replies | {reply: occurrence + 1 for reply, occurrence in counts}


def _find_item_ids(history: FastHistory, start: int, stop: int) -> list[str]:
    first = history.starts[start] if start else 0
    last = history.starts[stop] if stop < len(history.starts) else None
    return [item_id for item_id, index in history.item_ids.items() if first <= index and (last is None or index < last)]


def _has_calls(event: object) -> bool:
    return isinstance(event, FastTurn) and event.start < event.stop


def _join(content: Content) -> str:
    return join_texts([content] if isinstance(content, str) else content).strip()

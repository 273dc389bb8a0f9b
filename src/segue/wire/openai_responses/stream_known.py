"""Finds the item of a streamed response that an event refers to.

Some servers give all items the same index, or an item another id in each event. So an item is found by its id, else by
its index, else it is the last open one of its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from segue.canonical.ids import raw_id_or_none
from segue.wire.fields import JsonObject, integer_or_none, object_or_none
from segue.wire.openai_responses.items import item_kind_or_none
from segue.wire.openai_responses.stream_parts import GrowingItem

__all__ = ["KnownItems"]

# Number of ids remembered per item; servers that send a new id in each delta also send an index.
_IDS = 8


class KnownItems:
    def __init__(self) -> None:
        self.items: list[GrowingItem] = []
        self._by_id: dict[str, GrowingItem] = {}
        self._by_index: dict[int, GrowingItem] = {}

    def _found(self, item_id: object, index: object, kind: str | None) -> GrowingItem | None:
        known = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if known is not None and known.kind in (kind, None):
            return known
        place = integer_or_none(index)
        if place is not None:
            known = self._by_index.get(place)
            return known if known is not None and not known.ended and known.kind in (kind, None) else None
        last = (item for item in reversed(self.items) if not item.ended and item.kind in (kind, None))
        return next(last, None) if known is None else None

    def meant(self, item_id: object, index: object, kind: str | None) -> GrowingItem:
        known = self._found(item_id, index, kind)
        if known is None:
            known = GrowingItem(kind, integer_or_none(index))
            self.items.append(known)
            if known.index is not None:
                self._by_index[known.index] = known
        if known.kind is None:
            known.kind = kind
        if isinstance(item_id, str) and item_id and known.ids < _IDS and item_id not in self._by_id:
            self._by_id[item_id] = known
            known.ids += 1
        return known

    def state_of(self, item: JsonObject, index: object) -> GrowingItem:
        """The item that `item` is a newer state of; created if there is none."""
        kind, item_id = item_kind_or_none(item), item.get("id")
        known = self._found(item_id, index, kind)
        call_id = raw_id_or_none(item.get("call_id"))
        if known is not None and call_id and raw_id_or_none(known.fragment.get("call_id")) not in (None, call_id):
            return self.anew(kind, index, item_id)
        known = self.meant(item_id, index, kind)
        if isinstance(item_id, str) and item_id:
            self._by_id.setdefault(item_id, known)
        return known

    def anew(self, kind: str | None, index: object, item_id: object) -> GrowingItem:
        place = integer_or_none(index)
        if place is not None:
            self._by_index.pop(place, None)
        if isinstance(item_id, str):
            self._by_id.pop(item_id, None)
        made = GrowingItem(kind, place)
        self.items.append(made)
        if place is not None:
            self._by_index[place] = made
        if isinstance(item_id, str) and item_id:
            self._by_id[item_id] = made
        return made

    def matched(self, output: Iterable[object]) -> Iterator[tuple[GrowingItem, JsonObject]]:
        """Pair the final output items with the streamed ones; items that were not streamed are created."""
        emitted = list(self.items)
        by_call = {call_id: item for item in emitted if (call_id := raw_id_or_none(item.fragment.get("call_id")))}
        by_index = {item.index: item for item in emitted if item.index is not None}
        unnumbered = iter([item for item in emitted if item.index is None])
        taken: set[int] = set()
        for index, made in enumerate(map(object_or_none, output)):
            if made is None:
                continue
            kind, item_id, call_id = item_kind_or_none(made), made.get("id"), raw_id_or_none(made.get("call_id"))
            known = [
                self._by_id.get(item_id) if isinstance(item_id, str) else None,
                by_call.get(call_id) if call_id else None,
                by_index.get(index),
            ]
            alike = (one for one in (*known, next(unnumbered, None)) if one and one.kind in (kind, None))
            item = next((one for one in alike if id(one) not in taken), None) or self.anew(kind, index, item_id)
            taken.add(id(item))
            yield item, made

    def in_order(self) -> list[GrowingItem]:
        """All items by index, or as received if indexes are missing or repeated."""
        numbers = [item.index for item in self.items]
        if None in numbers or len(set(numbers)) < len(numbers):
            return self.items
        return sorted(self.items, key=lambda item: item.index or 0)

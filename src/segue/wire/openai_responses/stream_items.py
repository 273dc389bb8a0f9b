"""Items and parts of a streamed response while they are incomplete, and their lookup by id and index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

import msgspec

from segue.canonical.blocks import ToolCall
from segue.canonical.ids import raw_id_or_none
from segue.wire.json_values import JsonObject, integer_or_none, object_or_none, string_or_none
from segue.wire.openai_responses.item_types import item_type_or_none
from segue.wire.stream.deltas import TextBuffer
from segue.wire.stream.parse import join_surrogates

# The key of the streamed text of a call.
INPUT_KEYS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
# Number of ids remembered per item; servers that send a new id in each delta also send an index.
_MAX_IDS = 8


class TextKind(msgspec.Struct, frozen=True):
    """A kind of streamed text: item type, list and type of its part, and the keys of text and index."""

    item_type: str
    list_key: str
    part_type: str
    text_key: str = "text"
    index_key: str = "content_index"


def join_buffer(buffer: TextBuffer) -> TextBuffer:
    """Return the buffer with split surrogate pairs joined."""
    text = buffer.text()
    joined = join_surrogates(text)
    return buffer if len(joined) == len(text) and joined == text else TextBuffer(joined)


class PartialPart:
    """`block_index` is set if the part is a block of its own."""

    __slots__ = ("annotations", "block_index", "closed", "fragment", "kind", "logprobs", "received")

    def __init__(self, kind: TextKind) -> None:
        self.kind = kind
        self.fragment: JsonObject = {}
        self.received = TextBuffer()
        self.annotations: list[object] = []
        self.logprobs: list[object] = []
        self.block_index: int | None = None
        self.closed = False

    def text(self) -> str:
        self.received = join_buffer(self.received)
        return self.received.text()

    def build(self) -> JsonObject:
        """Return the part as it would be in a whole response."""
        kind = self.kind
        received = self.text() or string_or_none(self.fragment.get(kind.text_key)) or ""
        defaults: JsonObject = {"annotations": []} if kind.part_type == "output_text" else {}
        part: JsonObject = {"type": kind.part_type, **defaults, **self.fragment, kind.text_key: received}
        if self.annotations and not part.get("annotations"):
            part["annotations"] = self.annotations
        if self.logprobs and not part.get("logprobs"):
            part["logprobs"] = self.logprobs
        return part


class PartialItem:
    """`received_input` is the streamed text of a call; `id_count` the number of ids that events gave this item."""

    __slots__ = (
        "block_index",
        "call",
        "emitted_calls",
        "ended",
        "fragment",
        "id_count",
        "index",
        "input_done",
        "is_inconsistent",
        "kind",
        "open_part",
        "parts",
        "position",
        "received_input",
    )

    def __init__(self, kind: str | None, index: int | None, position: int) -> None:
        self.kind = kind
        self.position = position
        self.index = index
        self.id_count = 0
        self.fragment: JsonObject = {}
        self.parts: dict[tuple[str, int], PartialPart] = {}
        self.open_part: PartialPart | None = None
        self.received_input = TextBuffer()
        self.block_index: int | None = None
        self.call: ToolCall | None = None
        self.emitted_calls: list[ToolCall] = []
        self.input_done = self.ended = self.is_inconsistent = False

    def input(self) -> str:
        self.received_input = join_buffer(self.received_input)
        return self.received_input.text()

    def build_fields(self) -> JsonObject:
        """Return the item without its streamed parts and input."""
        item: JsonObject = {**({"type": self.kind} if self.kind is not None else {}), **self.fragment}
        if self.kind == "message":
            item.setdefault("role", "assistant")
        return item

    def build(self) -> JsonObject:
        """Return the item as it would be in a whole response, as far as it was received."""
        item = self.build_fields()
        for list_key in ("summary", "content"):
            if received := [self.parts[key] for key in sorted(self.parts) if key[0] == list_key]:
                item[list_key] = [part.build() for part in received]
        if self.kind == "reasoning":
            item.setdefault("summary", [])
        if self.kind in INPUT_KEYS and self.received_input:
            item[INPUT_KEYS[self.kind]] = self.input()
        if self.kind == "code_interpreter_call" and self.received_input:
            item["code"] = self.input()
        return item


class ItemLookup:
    """Finds the item that an event refers to.

    Some servers give all items the same index, or an item another id in each event. So an item is found by its id, else
    by its index, else it is the last open one of its type.
    """

    def __init__(self) -> None:
        self.items: list[PartialItem] = []
        self._by_id: dict[str, PartialItem] = {}
        self._by_index: dict[int, PartialItem] = {}
        self._by_call: dict[tuple[str | None, str], PartialItem] = {}
        # The open items of each kind, the last one first; ended ones are removed when they are found.
        self._open: dict[str | None, list[tuple[int, PartialItem]]] = {}

    def _find(self, item_id: object, index: object, kind: str | None) -> PartialItem | None:
        found = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if found is not None and found.kind in (kind, None):
            return found
        position = integer_or_none(index)
        if position is not None:
            found = self._by_index.get(position)
            return found if found is not None and not found.ended and found.kind in (kind, None) else None
        return self._last_open(kind) if found is None else None

    def _last_open(self, kind: str | None) -> PartialItem | None:
        """Return the last open item of this kind, or of none yet."""
        last: PartialItem | None = None
        for each in (kind, None):
            heap = self._open.get(each, [])
            while heap and (heap[0][1].ended or heap[0][1].kind != each):
                heappop(heap)
            if heap and (last is None or heap[0][1].position > last.position):
                last = heap[0][1]
        return last

    def _set_kind(self, item: PartialItem, kind: str | None) -> None:
        item.kind = kind
        heappush(self._open.setdefault(kind, []), (-item.position, item))

    def _add(self, kind: str | None, index: int | None) -> PartialItem:
        item = PartialItem(kind, index, len(self.items))
        self.items.append(item)
        self._set_kind(item, kind)
        if index is not None:
            self._by_index[index] = item
        return item

    def find_or_create(self, item_id: object, index: object, kind: str | None) -> PartialItem:
        item = self._find(item_id, index, kind)
        if item is None:
            item = self._add(kind, integer_or_none(index))
        if item.kind is None and kind is not None:
            self._set_kind(item, kind)
        if isinstance(item_id, str) and item_id and item.id_count < _MAX_IDS and item_id not in self._by_id:
            self._by_id[item_id] = item
            item.id_count += 1
        return item

    def find_or_create_for(self, item: JsonObject, index: object, *, done: bool) -> PartialItem:
        """Find the partial item that `item` is a newer state of, or create it.

        Servers change the call id between the events of an item; others give all items the same index.
        """
        kind, call_id = item_type_or_none(item), raw_id_or_none(item.get("call_id"))
        found = self._find_or_create_for(item, index, kind, call_id, done=done)
        if call_id is not None:
            self._by_call[kind, call_id] = found
        return found

    def _find_or_create_for(
        self, item: JsonObject, index: object, kind: str | None, call_id: str | None, *, done: bool
    ) -> PartialItem:
        item_id = item.get("id")
        existing = self._find(item_id, index, kind)
        if existing is not None and call_id and raw_id_or_none(existing.fragment.get("call_id")) not in (None, call_id):
            other = self._by_call.get((kind, call_id))
            if other is not None and not other.ended and raw_id_or_none(other.fragment.get("call_id")) == call_id:
                return other
            own_id = existing.fragment.get("id")
            has_same_id = item_id is not None and own_id == item_id
            if not (has_same_id or (done and None in (own_id, item_id))):
                return self.create(kind, index, item_id)
        existing = self.find_or_create(item_id, index, kind)
        if isinstance(item_id, str) and item_id:
            self._by_id.setdefault(item_id, existing)
        return existing

    def create(self, kind: str | None, index: object, item_id: object) -> PartialItem:
        position = integer_or_none(index)
        if isinstance(item_id, str):
            self._by_id.pop(item_id, None)
        item = self._add(kind, position)
        if isinstance(item_id, str) and item_id:
            self._by_id[item_id] = item
        return item

    def match_output(self, output: Iterable[object]) -> Iterator[tuple[PartialItem, JsonObject]]:
        """Pair the final output items with the streamed ones; items that were not streamed are created."""
        emitted = list(self.items)
        by_call = {call_id: item for item in emitted if (call_id := raw_id_or_none(item.fragment.get("call_id")))}
        by_index = {item.index: item for item in emitted if item.index is not None}
        unnumbered = iter([item for item in emitted if item.index is None])
        matched: set[int] = set()
        for index, final_item in enumerate(map(object_or_none, output)):
            if final_item is None:
                continue
            kind, item_id, call_id = (
                item_type_or_none(final_item),
                final_item.get("id"),
                raw_id_or_none(final_item.get("call_id")),
            )
            candidates = [
                self._by_id.get(item_id) if isinstance(item_id, str) else None,
                by_call.get(call_id) if call_id else None,
                by_index.get(index),
            ]
            matching = (
                candidate
                for candidate in (*candidates, next(unnumbered, None))
                if candidate and candidate.kind in (kind, None)
            )
            item = next((candidate for candidate in matching if id(candidate) not in matched), None) or self.create(
                kind, index, item_id
            )
            matched.add(id(item))
            yield item, final_item

    def in_order(self) -> list[PartialItem]:
        """Return all items by index, or as received if indexes are missing or repeated."""
        numbers = [item.index for item in self.items]
        if None in numbers or len(set(numbers)) < len(numbers):
            return self.items
        return sorted(self.items, key=lambda item: item.index or 0)

"""Items and parts of a streamed response while they are incomplete."""

from __future__ import annotations

import msgspec

from segue.canonical.blocks import ToolCall
from segue.wire.json_values import JsonObject, string_or_none
from segue.wire.stream.deltas import TextBuffer
from segue.wire.stream.parse import join_surrogates

__all__ = ["INPUT_KEYS", "PartialItem", "PartialPart", "TextKind"]

# The key of the streamed text of a call.
INPUT_KEYS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}


class TextKind(msgspec.Struct, frozen=True):
    """A kind of streamed text: item type, list and type of its part, and the keys of text and index."""

    item_type: str
    list_key: str
    part_type: str
    text_key: str = "text"
    index_key: str = "content_index"


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
        self.received = TextBuffer(join_surrogates(self.received.text()))
        return self.received.text()

    def build(self) -> JsonObject:
        """The part as it would be in a whole response."""
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
        "parts",
        "received_input",
    )

    def __init__(self, kind: str | None, index: int | None) -> None:
        self.kind = kind
        self.index = index
        self.id_count = 0
        self.fragment: JsonObject = {}
        self.parts: dict[tuple[str, int], PartialPart] = {}
        self.received_input = TextBuffer()
        self.block_index: int | None = None
        self.call: ToolCall | None = None
        self.emitted_calls: list[ToolCall] = []
        self.input_done = self.ended = self.is_inconsistent = False

    def input(self) -> str:
        self.received_input = TextBuffer(join_surrogates(self.received_input.text()))
        return self.received_input.text()

    def build(self) -> JsonObject:
        """The item as it would be in a whole response, as far as it was received."""
        item: JsonObject = {**({"type": self.kind} if self.kind is not None else {}), **self.fragment}
        if self.kind == "message":
            item.setdefault("role", "assistant")
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

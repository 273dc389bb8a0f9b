"""Items and parts of a streamed response while they are incomplete."""

from __future__ import annotations

import msgspec

from segue.canonical.blocks import ToolCall
from segue.wire.fields import JsonObject, string_or_none
from segue.wire.stream_pieces import GrowingText
from segue.wire.stream_reader import mended

__all__ = ["INPUTS", "Family", "GrowingItem", "GrowingPart"]

# The key of the streamed text of a call.
INPUTS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}


class Family(msgspec.Struct, frozen=True):
    """A kind of streamed text: item type, list and type of its part, and the keys of text and index."""

    item: str
    listed: str
    part: str
    key: str = "text"
    numbered: str = "content_index"


class GrowingPart:
    """`block_index` is set if the part is a block of its own."""

    __slots__ = ("annotations", "closed", "family", "fragment", "logprobs", "pieces", "place")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.fragment: JsonObject = {}
        self.pieces = GrowingText()
        self.annotations: list[object] = []
        self.logprobs: list[object] = []
        self.place: int | None = None
        self.closed = False

    def text(self) -> str:
        self.pieces = GrowingText(mended(self.pieces.text()))
        return self.pieces.text()

    def whole(self) -> JsonObject:
        """The part as it would be in a whole response."""
        family = self.family
        received = self.text() or string_or_none(self.fragment.get(family.key)) or ""
        bare: JsonObject = {"annotations": []} if family.part == "output_text" else {}
        made: JsonObject = {"type": family.part, **bare, **self.fragment, family.key: received}
        if self.annotations and not made.get("annotations"):
            made["annotations"] = self.annotations
        if self.logprobs and not made.get("logprobs"):
            made["logprobs"] = self.logprobs
        return made


class GrowingItem:
    """`received_input` is the streamed text of a call; `id_count` the number of ids that events gave this item."""

    __slots__ = (
        "call",
        "calls",
        "ended",
        "fragment",
        "ids",
        "index",
        "input_done",
        "kind",
        "parts",
        "pieces",
        "place",
        "torn",
    )

    def __init__(self, kind: str | None, index: int | None) -> None:
        self.kind = kind
        self.index = index
        self.ids = 0
        self.fragment: JsonObject = {}
        self.parts: dict[tuple[str, int], GrowingPart] = {}
        self.pieces = GrowingText()
        self.place: int | None = None
        self.call: ToolCall | None = None
        self.calls: list[ToolCall] = []
        self.input_done = self.ended = self.torn = False

    def input(self) -> str:
        self.pieces = GrowingText(mended(self.pieces.text()))
        return self.pieces.text()

    def whole(self) -> JsonObject:
        """The item as it would be in a whole response, as far as it was received."""
        made: JsonObject = {**({"type": self.kind} if self.kind is not None else {}), **self.fragment}
        if self.kind == "message":
            made.setdefault("role", "assistant")
        for listed in ("summary", "content"):
            if received := [self.parts[key] for key in sorted(self.parts) if key[0] == listed]:
                made[listed] = [part.whole() for part in received]
        if self.kind == "reasoning":
            made.setdefault("summary", [])
        if self.kind in INPUTS and self.pieces:
            made[INPUTS[self.kind]] = self.input()
        if self.kind == "code_interpreter_call" and self.pieces:
            made["code"] = self.input()
        return made

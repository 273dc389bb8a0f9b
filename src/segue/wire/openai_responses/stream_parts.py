"""An item of a response while it is told: what it is, its parts, and the text of its input so far."""

from __future__ import annotations

import msgspec

from segue.canonical.blocks import ToolCall
from segue.wire.fields import JsonObject, string_or_none
from segue.wire.stream_pieces import GrowingText
from segue.wire.stream_reader import mended

__all__ = ["INPUTS", "Family", "GrowingItem", "GrowingPart"]

# What the text of a call stands under, where it is streamed.
INPUTS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}


class Family(msgspec.Struct, frozen=True):
    """A kind of text that grows: the type of its item, the list and the type of its part, and the part's key."""

    item: str
    listed: str
    part: str
    key: str = "text"
    numbered: str = "content_index"


class GrowingPart:
    """`place` is the number of its block, where it is a block of its own."""

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
        """The part as it would stand in an answer at once."""
        family = self.family
        told = self.text() or string_or_none(self.fragment.get(family.key)) or ""
        bare: JsonObject = {"annotations": []} if family.part == "output_text" else {}
        made: JsonObject = {"type": family.part, **bare, **self.fragment, family.key: told}
        if self.annotations and not made.get("annotations"):
            made["annotations"] = self.annotations
        if self.logprobs and not made.get("logprobs"):
            made["logprobs"] = self.logprobs
        return made


class GrowingItem:
    """An item. `pieces` is the text of its input; `calls` are those in it, as they were told; `ids` counts its ids."""

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
        """The item as it would stand in an answer at once, as far as it is known."""
        made: JsonObject = {**({"type": self.kind} if self.kind is not None else {}), **self.fragment}
        if self.kind == "message":
            made.setdefault("role", "assistant")
        for listed in ("summary", "content"):
            if told := [self.parts[key] for key in sorted(self.parts) if key[0] == listed]:
                made[listed] = [part.whole() for part in told]
        if self.kind == "reasoning":
            made.setdefault("summary", [])
        if self.kind in INPUTS and self.pieces:
            made[INPUTS[self.kind]] = self.input()
        if self.kind == "code_interpreter_call" and self.pieces:
            made["code"] = self.input()
        return made

"""Evidence of an incomplete reply keeps head and tail, and is bounded."""

from __future__ import annotations

import pytest

from segue.canonical.blocks import Block, Media, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.json import encode_json
from segue.canonical.request import Reply
from segue.runtime.evidence import shorten_evidence

ORIGIN = Origin("p", raw_id="c1")
LONG = "head" + "x" * 1_000_000 + "tail"
BLOCKS: dict[str, tuple[Block, ...]] = {
    "text": (Text(LONG, native=Native("anthropic", {"text": LONG})),),
    "reasoning": (Thinking(LONG, signature="x" * 300_000, origin=ORIGIN),),
    "broken call": (ToolCall("f", None, "hist_tool_1", LONG, origin=ORIGIN, broken=True),),
    "call": (ToolCall("f", {"head": LONG}, "hist_tool_1", origin=ORIGIN),),
    "media": (Media("image", data="x" * 1_000_000),),
    "blocks": tuple(Text(f"block {number}") for number in range(100_000)),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_long_evidence_keeps_head_and_tail(kind: str) -> None:
    reply = Reply(BLOCKS[kind], "error", native=Native("anthropic", {"content": [LONG]}))
    kept = encode_json(shorten_evidence(reply))
    assert len(kept) < 100_000
    assert b"omitted]" in kept
    if kind in ("text", "reasoning", "broken call", "call"):
        assert b"head" in kept
        assert b"tail" in kept
    if kind == "blocks":
        assert b'block 0"' in kept
        assert b'block 99999"' in kept


def test_short_evidence_stays() -> None:
    reply = Reply((Text("Hello", native=Native("anthropic", {"text": "Hello"})),), "error")
    assert shorten_evidence(reply) is reply

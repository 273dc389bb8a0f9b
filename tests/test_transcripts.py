"""The benchmark's transcripts take the express lane, for every pair of wires that have one, and come out as by the long
way."""

from __future__ import annotations

import msgspec
import pytest

import segue
from benchmarks._transcripts import SPELLINGS, body
from segue.carry import Asked, carry
from segue.express import express
from segue.wire.registry import WIRES

LANES = [name for name, wire in WIRES.items() if wire.lane is not None]
BODIES = {api: body(api, 120) for api in SPELLINGS}


def test_every_lane_is_measured():
    assert set(SPELLINGS) == set(LANES)


@pytest.mark.parametrize("target", LANES)
@pytest.mark.parametrize("source", LANES)
def test_a_transcript_takes_the_express_lane(source: str, target: str):
    asked = Asked(target=WIRES[target], source=WIRES[source], home=WIRES[target])
    quick = express(BODIES[source], asked)
    assert quick is not None
    carried = carry(msgspec.json.decode(BODIES[source]), asked)
    assert quick.data == msgspec.json.encode(carried.said.body)
    assert quick.report.to_dict() == carried.said.report.to_dict()


@pytest.mark.parametrize("source", LANES)
def test_what_is_asked_for_later_is_the_same_by_either_way(source: str):
    given = BODIES[source]
    target = "anthropic" if source != "anthropic" else "openai-chat"
    quick = segue.convert(given, source=source, target=target)
    slow = segue.convert(msgspec.json.decode(given), source=source, target=target)
    assert quick.body == slow.body
    reply = {
        "anthropic": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"path": "a"}}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        "openai-chat": {
            "id": "c",
            "object": "chat.completion",
            "model": "gpt-4.1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],
        },
    }[target]
    assert quick.reply(reply) == slow.reply(reply)
    assert segue.convert(given, target=target).data == quick.data

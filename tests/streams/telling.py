"""What every test of streams needs: bytes from payloads, bytes in pieces, and the rules that events keep."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

from segue.canonical.blocks import Text, Thinking, ToolCall
from segue.canonical.request import Reply
from segue.wire.events import (
    End,
    Event,
    Failed,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    UsageTold,
    Whole,
    arguments_text,
)
from segue.wire.registry import WIRES

TURN = "turn-7"


def sse(payloads: Iterable[Any], *, done: bool = True, named: bool = False) -> bytes:
    """Payloads as server-sent events; `named` where each is told by its type, too."""
    told = [
        (f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one, ensure_ascii=True)}\n\n"
        for one in payloads
    ]
    return "".join([*told, "data: [DONE]\n\n" if done else ""]).encode()


def heard(api: str, data: bytes, cuts: Sequence[int] = ()) -> tuple[Reply, list[Event]]:
    """The reply and the events of a stream that comes in pieces, cut at these places."""
    parser = WIRES[api].open_stream(TURN)
    events: list[Event] = []
    for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
        parser.feed(data[start:stop])
        events += parser.events()
    reply = parser.close()
    events += parser.events()
    obey_the_rules(events, reply)
    return reply, events


def one_by_one(data: bytes) -> list[int]:
    return list(range(1, len(data)))


def at_random(data: bytes, seed: int) -> list[int]:
    drawn = random.Random(seed)
    return sorted(drawn.sample(range(1, len(data)), min(len(data) - 1, drawn.randint(0, 40))))


def obey_the_rules(events: Sequence[Event], reply: Reply) -> None:
    """What holds of the events of every reply."""
    assert isinstance(events[0], Opened)
    assert sum(isinstance(event, Opened) for event in events) == 1
    assert isinstance(events[-1], Finished | Failed)
    assert sum(isinstance(event, Finished | Failed) for event in events) == 1
    assert sum(isinstance(event, UsageTold) for event in events) <= 1
    begun = [event.index for event in events if isinstance(event, Start | Whole)]
    assert begun == list(range(len(begun)))
    open_blocks: dict[int, tuple[type, list[str]]] = {}
    for event in events:
        match event:
            case Start():
                open_blocks[event.index] = (type(event.block), [])
            case TextDelta() | ThinkingDelta() | InputDelta():
                kind = {TextDelta: Text, ThinkingDelta: Thinking, InputDelta: ToolCall}[type(event)]
                assert open_blocks[event.index][0] is kind
                open_blocks[event.index][1].append(event.text)
            case End():
                kind, told = open_blocks.pop(event.index)
                assert isinstance(event.block, kind)
                if isinstance(event.block, ToolCall):
                    if told:
                        assert "".join(told).strip() in (arguments_text(event.block).strip(), _given(event.block))
                else:
                    assert "".join(told) == event.block.text
            case _:
                pass
    assert not open_blocks
    started = {
        event.block.id for event in events if isinstance(event, Start | Whole) and isinstance(event.block, ToolCall)
    }
    ended = {event.block.id for event in events if isinstance(event, End | Whole) and isinstance(event.block, ToolCall)}
    assert started == ended == {call.id for call in reply.calls}
    assert all(started) or not started
    if isinstance(events[-1], Finished):
        assert events[-1].finish == reply.finish
    else:
        assert reply.finish == "error"


def _given(call: ToolCall) -> str:
    """Arguments as they stood on the wire, where a fragment tells."""
    fragment = call.native.fragment if call.native is not None else {}
    return str(fragment.get("arguments", json.dumps(call.arguments)))

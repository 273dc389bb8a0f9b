"""What tests of streams have in common: recorded payloads to bytes, bytes in any pieces to events, and the rules."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from segue.canonical.blocks import Block, ToolCall, ToolResponse
from segue.canonical.request import Reply
from segue.models import identify
from segue.render.report import Report
from segue.wire.base import Projection, Wire
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
from segue.wire.idmap import IdMap
from segue.wire.names import NameMap, NameRule

Body = dict[str, Any]


def sse(*payloads: Body, named: bool = False) -> bytes:
    """The payloads as server-sent events, under the name of their type where they are to be named."""
    heads = [f"event: {payload['type']}\n" if named and "type" in payload else "" for payload in payloads]
    return "".join(f"{head}data: {json.dumps(one)}\n\n" for head, one in zip(heads, payloads, strict=True)).encode()


def pieces(data: bytes, seed: int | None) -> list[bytes]:
    """The data one byte at a time, or cut at random places."""
    if seed is None:
        return [data[at : at + 1] for at in range(len(data))]
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(len(data) + 1), min(12, len(data))))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def flow(wire: Wire, data: bytes | Sequence[bytes], turn_key: str = "turn-1") -> tuple[list[Event], Reply]:
    parser = wire.open_stream(turn_key)
    events: list[Event] = []
    for piece in [data] if isinstance(data, bytes) else data:
        parser.feed(piece)
        events += parser.events()
    reply = parser.close()
    events += parser.events()
    check(events)
    return events, reply


def check(events: Sequence[Event]) -> None:
    """The rules of `wire/events.py`."""
    assert isinstance(events[0], Opened)
    assert isinstance(events[-1], Finished | Failed)
    assert sum(isinstance(event, Opened) for event in events) == 1
    assert sum(isinstance(event, Finished | Failed) for event in events) == 1
    assert all(at == len(events) - 2 for at, event in enumerate(events) if isinstance(event, UsageTold))
    open_blocks: dict[int, tuple[Block, list[str]]] = {}
    begun = 0
    for event in events:
        match event:
            case Start(index, block):
                assert index == begun
                begun += 1
                open_blocks[index] = (block, [])
                if isinstance(block, ToolCall):
                    assert block.id.startswith("hist_tool_")
            case Whole(index, block):
                assert index == begun
                begun += 1
            case TextDelta(index, text) | ThinkingDelta(index, text) | InputDelta(index, text):
                open_blocks[index][1].append(text)
            case End(index, block):
                first, told = open_blocks.pop(index)
                assert type(first) is type(block)
                if isinstance(block, ToolCall) and isinstance(first, ToolCall):
                    assert (first.id, first.name, first.kind) == (block.id, block.name, block.kind)
                    assert _value("".join(told)) == _value(arguments_text(block))
                else:
                    assert "".join(told) == block.text
            case _:
                pass
    assert not open_blocks


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def plainly(reply: Reply) -> list[Body]:
    """The blocks of a reply without ids, fragments, and what only the end of a stream can know."""
    return [_plain(block) for block in reply.blocks]


def _plain(block: Block) -> Body:
    made = msgspec.to_builtins(block)
    made = {
        key: value for key, value in made.items() if key not in ("native", "id", "call_id", "extra", "broken", "origin")
    }
    return made | {"kind": type(block).__name__}


def calls_of(reply: Reply) -> list[ToolCall]:
    return [block for block in reply.blocks if isinstance(block, ToolCall)]


def written(wire: Wire, events: Iterable[Event], report: Report | None = None, step: int = 1) -> bytes:
    """What the wire's renderer makes of the events, given so many at a time."""
    told = list(events)
    calls = [event.block for event in told if isinstance(event, Start | Whole) and isinstance(event.block, ToolCall)]
    renderer = wire.stream_renderer(_projection(wire, calls, report), "a-model", None)
    return b"".join(renderer.render(told[at : at + step]) for at in range(0, len(told), step))


def at_once(wire: Wire, reply: Reply) -> Body:
    """What the wire makes of the whole reply."""
    return wire.render_reply(reply, _projection(wire, reply.calls, None))


def _projection(wire: Wire, calls: Iterable[ToolCall], report: Report | None) -> Projection:
    ids = IdMap(wire.ids(identify(None)), provider=wire.provider)
    for call in calls:
        ids.assign(call, call.name)
    names = NameMap(NameRule(allowed=r"\s\S", limit=1_000_000))
    return Projection(ids, names, report or Report(target=wire.name))


def payloads(data: bytes) -> list[Body]:
    """What stands behind `data:` in server-sent events."""
    lines = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def is_open(block: Block) -> bool:
    """Whether a client is told of this block abroad."""
    hosted = (isinstance(block, ToolCall) and block.kind == "hosted") or isinstance(block, ToolResponse)
    return not hosted

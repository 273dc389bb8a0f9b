"""What tests of streams have in common: recorded payloads to bytes, bytes in any pieces to events, and the rules."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from segue.canonical.blocks import Block, ToolCall
from segue.canonical.request import Reply
from segue.errors import RemoteProtocolError
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
                if isinstance(block, ToolCall):
                    assert isinstance(first, ToolCall)
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


_ODD = [
    *("null", "0", "-1", "1" + "0" * 30, "1.5", "true", '""', '"x"', '"\\ud800"'),
    *("[]", "{}", "[{}]", "[null]", "[[]]", '{"type":"message"}', '{"text":"x"}'),
]


def garbled(wire: Wire, told: Sequence[Body], times: int, *abroad: Wire, seed: int = 7) -> int:
    """Reads streams of some of these payloads with odd values in them; gives how many of them were replies."""
    chance = random.Random(seed)
    read = 0
    for _ in range(times):
        some = [json.loads(json.dumps(one)) for one in chance.sample(told, chance.randrange(1, min(12, len(told)) + 1))]
        for _ in range(chance.randrange(1, 4)):
            _garble(chance.choice(some), chance)
        parser = wire.open_stream("turn-1")
        try:
            parser.feed(sse(*some))
            parser.close()
        except RemoteProtocolError:
            continue
        events = parser.events()
        check(events)
        # What was read can be written, at home and abroad.
        for one in (wire, *abroad):
            assert written(one, events)
        read += 1
    return read


def _garble(target: Any, chance: random.Random) -> None:
    """Puts an odd value somewhere into this one."""
    while target and isinstance(target, dict | list):
        key = chance.choice(list(target)) if isinstance(target, dict) else chance.randrange(len(target))
        if not isinstance(target[key], dict | list) or chance.random() < 0.2:
            target[key] = json.loads(chance.choice(_ODD))
            return
        target = target[key]


def random_bytes(wire: Wire) -> None:
    chance = random.Random(3)
    for size in range(300):
        parser = wire.open_stream("turn-1")
        with pytest.raises(RemoteProtocolError):  # noqa: PT012
            parser.feed(chance.randbytes(size))
            parser.close()

"""Test helpers that parse streams: payloads to bytes, bytes in any split to events, and the event rules."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Reply
from segue.wire.base import Wire
from segue.wire.registry import WIRES
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    WholeBlock,
    arguments_text,
)

Body = dict[str, Any]
TURN = "turn-7"
_KINDS = {TextDelta: Text, ThinkingDelta: Thinking, InputDelta: ToolCall}

# ---------------------------------------------------------------------------------------------------------------- bytes


def sse(*payloads: Any, named: bool = False, done: bool = False) -> bytes:
    """Payloads as server-sent events, optionally with event names and the `[DONE]` marker."""
    deltas = [
        (f"event: {payload['type']}\n" if named and "type" in payload else "") + f"data: {json.dumps(payload)}\n\n"
        for payload in payloads
    ]
    return "".join([*deltas, "data: [DONE]\n\n" if done else ""]).encode()


def payloads_of(data: bytes) -> list[Body]:
    """The decoded `data:` payloads of server-sent events."""
    lines = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def one_by_one(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def splits(data: bytes) -> Iterator[list[bytes]]:
    """The data one byte at a time, and cut at random places."""
    yield one_by_one(data)
    for seed in range(5):
        chance = random.Random(seed)
        cuts = sorted(chance.sample(range(len(data)), min(len(data) - 1, 3 + 9 * seed)))
        yield [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


# --------------------------------------------------------------------------------------------------------------- events


def read(wire: Wire | str, data: bytes | Iterable[bytes], turn_key: str = TURN) -> tuple[list[Event], Reply]:
    """Events and reply of a stream; the event rules are checked. `wire` may be its name."""
    parser = (WIRES[wire] if isinstance(wire, str) else wire).open_stream(turn_key)
    events: list[Event] = []
    for piece in [data] if isinstance(data, bytes) else data:
        parser.feed(piece)
        events += parser.events()
    reply = parser.close()
    events += parser.events()
    check_event_rules(events, reply)
    return events, reply


def read_payloads(wire: Wire, payloads: Iterable[Any]) -> tuple[list[Event], Reply]:
    """The same for decoded payloads."""
    parser = wire.open_stream(TURN)
    for payload in payloads:
        parser.feed_payload(payload)
    reply = parser.close()
    events = parser.events()
    check_event_rules(events, reply)
    return events, reply


def read_in_any_split(wire: Wire, data: bytes) -> tuple[list[Event], Reply]:
    """Events and reply of a stream, checked block by block, and equal when fed byte by byte."""
    events, reply = read(wire, data)
    check_blocks(events, reply)
    assert read(wire, one_by_one(data)) == (events, reply)
    return events, reply


def join_deltas(found: tuple[list[Event], Reply]) -> tuple[list[Event], Reply]:
    """The events with adjacent deltas joined: their number depends on the split of the bytes."""
    events: list[Event] = []
    for event in found[0]:
        last: Any = events[-1] if events else None
        if _continues(last, event):
            events[-1] = msgspec.structs.replace(last, text=last.text + getattr(event, "text", ""))
        else:
            events.append(event)
    return events, found[1]


def _continues(last: Any, event: Any) -> bool:
    if type(event) not in _KINDS or type(last) is not type(event) or last.index != event.index:
        return False
    return not (isinstance(event, TextDelta) and (event.extras or last.extras))


def check_event_rules(events: Sequence[Event], reply: Reply | None = None) -> None:
    """Checks the rules of `segue.wire.stream.events`, and that the events match this reply."""
    assert isinstance(events[0], ReplyStart)
    assert isinstance(events[-1], Finished | Failed)
    assert sum(isinstance(event, ReplyStart) for event in events) == 1
    assert sum(isinstance(event, Finished | Failed) for event in events) == 1
    assert all(at == len(events) - 2 for at, event in enumerate(events) if isinstance(event, UsageUpdate))
    grown: dict[int, tuple[Block, list[str]]] = {}
    begun = 0
    for event in events:
        match event:
            case BlockStart(index, block):
                assert index == begun
                begun += 1
                grown[index] = (block, [])
            case WholeBlock(index):
                assert index == begun
                begun += 1
            case TextDelta() | ThinkingDelta() | InputDelta():
                block, deltas = grown[event.index]
                assert isinstance(block, _KINDS[type(event)])
                deltas.append(event.text)
            case BlockEnd(index, block):
                first, deltas = grown.pop(index)
                _check_end(first, block, "".join(deltas))
            case _:
                pass
    assert not grown
    if reply is not None:
        _check_reply(reply, events)


def _check_end(begun: Block, block: Text | Thinking | ToolCall, deltas: str) -> None:
    assert type(begun) is type(block)
    if not isinstance(block, ToolCall) or not isinstance(begun, ToolCall):
        assert deltas == getattr(block, "text", None)
        return
    assert (begun.id, begun.name, begun.kind) == (block.id, block.name, block.kind)
    assert begun.id.startswith("hist_tool_")
    if block.broken and block.kind != "custom":
        assert (block.arguments, block.arguments_text) == (None, deltas)
    else:
        assert _value(deltas) == _value(arguments_text(block))


def _value(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text


def _check_reply(reply: Reply, events: Sequence[Event]) -> None:
    for kinds in ((BlockStart, WholeBlock), (BlockEnd, WholeBlock)):
        deltas = [event.block for event in events if isinstance(event, kinds)]
        calls = [block.id for block in deltas if isinstance(block, ToolCall)]
        assert sorted(calls) == sorted(call.id for call in reply.calls)
    assert [event.usage for event in events if isinstance(event, UsageUpdate)] == ([reply.usage] if reply.usage else [])
    if isinstance(events[-1], Finished):
        assert (events[-1].finish, events[-1].raw_finish) == (reply.finish, reply.raw_finish)
    else:
        assert reply.finish == "error"


def check_blocks(events: Sequence[Event], reply: Reply) -> None:
    """Checks that the finished blocks equal the reply's, and that a call's origin is set from its start."""
    begun = {event.index: event.block for event in events if isinstance(event, BlockStart)}
    deltas = {event.index: event.block for event in events if isinstance(event, BlockEnd | WholeBlock)}
    assert [deltas[index] for index in range(len(deltas))] == list(reply.blocks)
    for index, first in begun.items():
        last = deltas[index]
        assert not isinstance(first, ToolCall) or (isinstance(last, ToolCall) and first.origin == last.origin)


def started_call(event: Event) -> ToolCall:
    assert isinstance(event, BlockStart)
    assert isinstance(event.block, ToolCall)
    return event.block


# -------------------------------------------------------------------------------------------------------------- replies


def only_call(reply: Reply) -> ToolCall:
    (call,) = reply.calls
    return call


def strip_ids(reply: Reply) -> Reply:
    """A reply without ids and without unknown fields."""

    def plain(block: Any) -> Any:
        if isinstance(block, ToolCall):
            return msgspec.structs.replace(block, id="")
        return msgspec.structs.replace(block, call_id="") if isinstance(block, ToolResponse) else block

    native = reply.native and Native(reply.native.api, {}, reply.native.intact)
    return msgspec.structs.replace(reply, blocks=tuple(map(plain, reply.blocks)), native=native, unknown_fields=())


_IGNORED = ("native", "id", "call_id", "extra", "broken", "origin")


def content_of(reply: Reply) -> list[Body]:
    """The blocks of a reply without ids, native fragments, and fields known only at the end of a stream."""
    made = [(type(block).__name__, msgspec.to_builtins(block)) for block in reply.blocks]
    return [{"kind": kind, **{key: fields[key] for key in fields if key not in _IGNORED}} for kind, fields in made]

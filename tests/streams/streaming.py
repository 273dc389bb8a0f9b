"""What tests of streams share: bytes to events and back, and the rules that every stream of events keeps."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from segue.canonical.blocks import Native, Text, Thinking, ToolCall, ToolResponse
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
from segue.wire.names import NameMap

TURN = "turn-7"


def served(*payloads: Any, named: bool = True) -> bytes:
    """Payloads as server-sent events, with or without their names."""
    return b"".join(
        (f"event: {payload['type']}\n" if named else "").encode() + f"data: {json.dumps(payload)}\n\n".encode()
        for payload in payloads
    )


def read(wire: Wire, data: bytes | Iterable[bytes]) -> tuple[list[Event], Reply]:
    parser = wire.open_stream(TURN)
    events: list[Event] = []
    for piece in [data] if isinstance(data, bytes) else data:
        parser.feed(piece)
        events += parser.events()
    reply = parser.close()
    return events + parser.events(), reply


def taken(wire: Wire, payloads: Iterable[Any]) -> tuple[list[Event], Reply]:
    parser = wire.open_stream(TURN)
    for payload in payloads:
        parser.take(payload)
    reply = parser.close()
    return parser.events(), reply


def written(wire: Wire, events: Sequence[Event], *, at_once: bool = True) -> tuple[bytes, Report]:
    """The stream that a client of this API reads, and what its report says."""
    report = Report(target=wire.name)
    ids = IdMap(wire.ids(identify(wire.default_model)), provider=wire.provider, repeats=True)
    renderer = wire.stream_renderer(Projection(ids, names := NameMap(wire.names(identify(None))), report), None, None)
    for event in events:
        if isinstance(event, Start | Whole) and isinstance(event.block, ToolCall):
            hosted = event.block.kind == "hosted"
            ids.assign(event.block, event.block.name if hosted else names.render(event.block.name))
    if at_once:
        return renderer.render(events), report
    return b"".join(renderer.render([event]) for event in events), report


def live(source: Wire, target: Wire, data: bytes) -> bytes:
    """A stream written while it is read, one byte at a time."""
    ids = IdMap(target.ids(identify(target.default_model)), provider=target.provider, repeats=True)
    names = NameMap(target.names(identify(None)))
    renderer = target.stream_renderer(Projection(ids, names, Report()), None, None)
    parser = source.open_stream(TURN)
    out: list[bytes] = []

    def pass_on() -> None:
        events = parser.events()
        for event in events:
            if isinstance(event, Start | Whole) and isinstance(event.block, ToolCall):
                ids.assign(event.block, event.block.name)
        out.append(renderer.render(events))

    for at in range(len(data)):
        parser.feed(data[at : at + 1])
        pass_on()
    parser.close()
    pass_on()
    return b"".join(out)


def splits(data: bytes) -> Iterator[list[bytes]]:
    yield [data[at : at + 1] for at in range(len(data))]
    for seed in range(5):
        chance = random.Random(seed)
        cuts = sorted(chance.sample(range(len(data)), min(len(data) - 1, 3 + 9 * seed)))
        yield [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def keeps_the_rules(events: Sequence[Event], reply: Reply) -> None:
    """The rules of `segue.wire.events`, and that what was told is what the reply holds."""
    assert isinstance(events[0], Opened)
    assert isinstance(events[-1], Finished | Failed)
    told: dict[int, list[str]] = {}
    begun: dict[int, Any] = {}
    finished: dict[int, Any] = {}
    for place, event in enumerate(events[1:-1], 1):
        match event:
            case Start(index=index, block=block):
                assert index == len(told)
                told[index], begun[index] = [], block
            case TextDelta() | ThinkingDelta() | InputDelta():
                kinds = {TextDelta: Text, ThinkingDelta: Thinking, InputDelta: ToolCall}
                assert isinstance(begun[event.index], kinds[type(event)])
                assert event.index not in finished
                told[event.index].append(event.text)
            case End(index=index, block=block):
                assert index not in finished
                finished[index] = block
                same_words(begun[index], block, "".join(told[index]))
            case Whole(index=index, block=block):
                assert index == len(told)
                told[index] = []
                finished[index] = block
            case UsageTold(usage=usage):
                assert place == len(events) - 2
                assert usage == reply.usage
            case _:
                raise AssertionError(event)
    assert [finished[index] for index in range(len(told))] == list(reply.blocks)
    assert len(finished) == len(told)
    for call in reply.calls:
        assert call.id.startswith("hist_tool_")
    if isinstance(events[-1], Finished):
        assert (events[-1].finish, events[-1].cause) == (reply.finish, reply.cause)
    else:
        assert reply.finish == "error"


def same_words(begun: Any, block: Any, told: str) -> None:
    assert type(begun) is type(block)
    if not isinstance(block, ToolCall):
        assert told == block.text
        return
    assert (begun.id, begun.name, begun.kind, begun.origin) == (block.id, block.name, block.kind, block.origin)
    if block.broken:
        assert (block.arguments, block.arguments_text) == (None, told)
    elif told.strip():
        assert msgspec.json.decode(told) == block.arguments
    else:
        assert block.arguments == {}
        assert arguments_text(block) == "{}"


def bare(reply: Reply) -> Reply:
    """A reply without ids, and of what its API said around it only what is not odd."""

    def plain(block: Any) -> Any:
        if isinstance(block, ToolCall):
            return msgspec.structs.replace(block, id="")
        return msgspec.structs.replace(block, call_id="") if isinstance(block, ToolResponse) else block

    native = reply.native and Native(reply.native.api, {}, reply.native.intact)
    return msgspec.structs.replace(reply, blocks=tuple(map(plain, reply.blocks)), native=native, beside=())


def gives_a_value_or_a_remote_error(run: Callable[[], object]) -> None:
    with suppress(RemoteProtocolError):
        run()


def mutants(payloads: Sequence[Any], seed: int) -> list[Any]:
    """The payloads with a value somewhere replaced, some left out, some told twice or in another place."""
    chance = random.Random(seed)
    odd: list[Any] = [None, True, -1, 1.5, "", "x", [], {}, [None], {"type": 3}, {"text": []}, 10**30, ["a"]]
    odd += ["\ud83d", {"\ud83d": "\ude00"}]
    changed: list[Any] = json.loads(json.dumps(payloads))
    for _ in range(chance.randint(1, 4)):
        spot = chance.randrange(len(changed)) if changed else 0
        match chance.randrange(6):
            case 0 if changed:
                del changed[spot]
            case 1 if changed:
                changed.insert(chance.randrange(len(changed) + 1), changed[spot])
            case 2 if changed:
                changed.insert(0, changed.pop(spot))
            case _ if changed:
                _spoil(changed[spot], chance, odd)
            case _:
                pass
    return changed


def _spoil(value: Any, chance: random.Random, odd: Sequence[Any]) -> None:
    while isinstance(value, dict | list) and value:
        key: Any = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.4 or not isinstance(value[key], dict | list) or not value[key]:
            if isinstance(value, dict) and chance.random() < 0.3:
                del value[key]
            else:
                value[key] = copy.deepcopy(chance.choice(odd))
            return
        value = value[key]

"""Test helpers that render events to the bytes of an API's stream."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from segue.canonical.blocks import Block, Media, Opaque, Origin, Text, ToolCall, ToolResponse
from segue.canonical.request import Reply, Usage
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import ApiError, RenderContext, Wire
from segue.wire.ids import IdMap
from segue.wire.names import ANY_NAME, NameMap
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
    WholeBlock,
    reply_events,
)
from tests.streams.parsing import TURN, Body, check_blocks, read, strip_ids

AT_ONCE = 1_000_000
CALL = ToolCall("read_file", {"path": "a"}, "hist_tool_1", origin=Origin("openai", raw_id="call_1"))
FREE = ToolCall("patch", 'a "quoted"\nline', "hist_tool_1", kind="custom", origin=Origin("openai"))
# Blocks that clients of other APIs do not support, except the call.
FROM_OPENAI: tuple[Block, ...] = (
    Text(""),
    ToolCall("web_search", {}, "hist_tool_2", kind="hosted", origin=Origin("openai")),
    ToolResponse("hist_tool_2", "web_search", (Text("sky"),), hosted=True, origin=Origin("openai")),
    Media("image", url="https://a.example/b.png"),
    Opaque("melody", text="do re"),
    CALL,
)

json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def cross_api_events(*blocks: Any, finish: Any = "stop", **fields: Any) -> list[Event]:
    """The events of a reply of another API."""
    return reply_events(Reply(blocks, finish, Usage(11, 7, 4), "chatcmpl-1", "gpt-4.1", **fields))


def call_events(call: ToolCall, pieces: Sequence[str], finish: Any = "tool_calls") -> list[Event]:
    """A reply of one call, its arguments in these deltas."""
    begun = msgspec.structs.replace(call, arguments={}, arguments_text=None, broken=False)
    deltas = [InputDelta(0, piece) for piece in pieces]
    return [ReplyStart(), BlockStart(0, begun), *deltas, BlockEnd(0, call), Finished(finish)]


def broken_call(pieces: Sequence[str]) -> ToolCall:
    """A call whose arguments were cut off."""
    return msgspec.structs.replace(CALL, arguments=None, arguments_text="".join(pieces), broken=True)


def failing_events(error: ApiError) -> list[Event]:
    """A short text, and then an error."""
    return [ReplyStart(), BlockStart(0, Text("")), TextDelta(0, "Hm."), BlockEnd(0, Text("Hm.")), Failed(error)]


def cut_text(fields: str, chance: random.Random) -> list[str]:
    """A text in chunks of a few characters."""
    pieces: list[str] = []
    while fields:
        size = chance.randint(1, 4)
        pieces, fields = [*pieces, fields[:size]], fields[size:]
    return pieces


def render_stream(
    wire: Wire | str, events: Iterable[Event], report: Report | None = None, *, step: int = 1, ids: str = "auto"
) -> bytes:
    """The stream rendered from the events, `step` at a time. `wire` may be its name."""
    return b"".join(render_in_steps(wire, events, report, step=step, ids=ids))


def render_in_steps(
    wire: Wire | str, events: Iterable[Event], report: Report | None = None, *, step: int = 1, ids: str = "auto"
) -> list[bytes]:
    wire = WIRES[wire] if isinstance(wire, str) else wire
    deltas = list(events)
    projection = _projection(wire, report, ids)
    _name_calls(projection.ids, deltas)
    renderer = wire.stream_renderer(projection, "a-model")
    return [renderer.render(deltas[at : at + step]) for at in range(0, len(deltas), step)]


def stream_reply(api: str, reply: Reply, size: int = 7) -> bytes:
    """A reply as the API streams it, a few characters at a time, with the API's own call ids."""
    return render_stream(api, split_deltas(reply_events(reply), size), ids="native")


def split_deltas(events: Iterable[Event], size: int) -> Iterator[Event]:
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta | InputDelta):
            for start in range(0, max(len(event.text), 1), size):
                yield type(event)(event.index, event.text[start : start + size])
        else:
            yield event


def convert_live(source: Wire, target: Wire, data: bytes) -> bytes:
    """A stream rendered while it is parsed, one byte at a time."""
    projection = _projection(target, None, "auto")
    renderer = target.stream_renderer(projection, None)
    parser = source.open_stream(TURN)
    out: list[bytes] = []

    def pass_on() -> None:
        events = parser.events()
        _name_calls(projection.ids, events)
        out.append(renderer.render(events))

    for at in range(len(data)):
        parser.feed(data[at : at + 1])
        pass_on()
    parser.close()
    pass_on()
    return b"".join(out)


def round_trip(wire: Wire, reply: Reply) -> tuple[bytes, list[Reply]]:
    """The stream of a reply and the replies parsed from it, rendered at once and event by event."""
    streams = [render_stream(wire, reply_events(reply), step=step) for step in (1, AT_ONCE)]
    found = [read(wire, data) for data in streams]
    for events, again in found:
        check_blocks(events, again)
    return streams[-1], [again for _, again in found]


def check_same_reply(wire: Wire, data: bytes, body: Body) -> None:
    """A stream parses to the same reply as this body, also after rendering it again."""
    events, reply = read(wire, data)
    check_blocks(events, reply)
    at_once = wire.parse_reply(body)
    assert strip_ids(reply) == strip_ids(at_once)
    assert reply.native == at_once.native
    assert read(wire, render_stream(wire, events))[1] == reply


def render_whole_reply(wire: Wire, reply: Reply) -> Body:
    """The whole reply rendered by the wire."""
    projection = _projection(wire, None, "auto")
    for call in reply.calls:
        projection.ids.assign(call, call.name)
    return wire.render_reply(reply, projection)


def _projection(wire: Wire, report: Report | None, policy: str) -> RenderContext:
    ids = IdMap(wire.id_scheme(parse_model(wire.default_model)), provider=wire.provider, policy=policy)
    return RenderContext(ids, NameMap(ANY_NAME), report if report is not None else Report(target=wire.name))


def _name_calls(ids: IdMap, events: Iterable[Event]) -> None:
    for event in events:
        if isinstance(event, BlockStart | WholeBlock) and isinstance(event.block, ToolCall):
            ids.assign(event.block, event.block.name)

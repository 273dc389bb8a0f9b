"""The memory of a stream is bounded by its reply: not by the number of payloads, nor by payloads that carry
nothing."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.wire.registry import WIRES
from segue.wire.stream.aws_events import encode_aws_message
from segue.wire.stream.events import reply_events
from tests.streams.parsing import TURN, sse
from tests.streams.rendering import render_in_steps, split_deltas
from tests.streams.test_api_pairs import request_body

Idle = Callable[[int], bytes]
PIECE = "word, "
FAMILIES = {name: wire.on or name for name, wire in WIRES.items()}
_OURS = Path(segue.__file__).parent
# The interpreter remembers attribute names by their address, up to 4096: `finditer` makes a new one for each call.
_forget_names = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache


@contextmanager
def traced() -> Generator[Callable[[], int], None, None]:
    """Gives how many bytes segue holds by now that it did not hold at the beginning, whatever other threads do."""
    gc.collect(1)
    tracemalloc.start()
    try:

        def held() -> int:
            gc.collect(1)
            _forget_names()
            ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, f"{_OURS}/*")])
            return sum(row.size for row in ours.statistics("filename"))

        yield held
    finally:
        tracemalloc.stop()


def parsing(api: str) -> Callable[[bytes], object]:
    """A parser of this API's streams, as a caller feeds and drains it."""
    parser = WIRES[api].open_stream(TURN)

    def feed(data: bytes) -> None:
        parser.feed(data)
        parser.events()

    return feed


@cache
def converted(client: str, server: str) -> segue.Converted:
    return segue.convert(request_body(client), source=client, target=server)


def bridging(client: str, server: str) -> Callable[[bytes], object]:
    return converted(client, server).stream().feed


# -------------------------------------------------------------------------------------------- ignored payloads


def framed(kind: str, **fields: Any) -> bytes:
    return encode_aws_message(json.dumps(fields).encode(), event_type=kind, message_type="event")


def chunk(number: int, *choices: Any, **fields: Any) -> bytes:
    return sse({"id": "r1", "object": "chat.completion.chunk", "model": "m", "choices": choices, **fields})


def anthropic_delta(kind: str, key: str) -> bytes:
    delta = {"type": kind, key: ""}
    return sse({"type": "content_block_delta", "index": 0, "delta": delta}, named=True)


def responses_delta(number: int, item_id: str) -> bytes:
    at = {"item_id": item_id, "output_index": 0, "content_index": 0, "sequence_number": number}
    return sse({"type": "response.output_text.delta", **at, "delta": "", "logprobs": []}, named=True)


def counted(number: int) -> dict[str, int]:
    return {"prompt_tokens": 3, "completion_tokens": number, "total_tokens": 3 + number}


LINES: dict[str, Idle] = {
    "comments": lambda _: b": keep-alive\n\n",
    "comments without an end": lambda _: b": keep-alive\n",
    "halves of comments": lambda number: (b": keep", b"-alive\n")[number % 2],
    "comments behind line ends": lambda _: b"\n: keep-alive",
    "blank lines": lambda _: b"\r\n" * 8,
    "events without data": lambda _: b"event: ping\n\n",
    "empty data": lambda _: b"data:\n\n",
}
SAY_NOTHING: dict[str, dict[str, Idle]] = {
    "openai-chat": {
        "counts": lambda number: chunk(number, usage=counted(number)),
        "empty deltas": lambda number: chunk(number, {"index": 0, "delta": {}, "finish_reason": None}),
        "empty words": lambda number: chunk(number, {"index": 0, "delta": {"role": "assistant", "content": ""}}),
        "other choices": lambda number: chunk(number, {"index": 1, "delta": {"content": str(number)}}),
    },
    "openai-responses": {
        "keep-alives": lambda number: sse({"type": "keepalive", "sequence_number": number}, named=True),
        "states": lambda number: sse({"type": "response.in_progress", "response": {"id": "r1"}, "n": number}),
        "empty words": lambda number: responses_delta(number, "msg_1"),
        "empty words under an id each": lambda number: responses_delta(number, f"msg_{number}"),
    },
    "anthropic": {
        "pings": lambda _: sse({"type": "ping"}, named=True),
        "counts": lambda number: sse({"type": "message_delta", "delta": {}, "usage": {"output_tokens": number}}),
        "unknown events": lambda number: sse({"type": "vault_opened", "number": number}, named=True),
        "empty words": lambda _: anthropic_delta("text_delta", "text"),
    },
    "gemini": {
        "counts": lambda number: sse({"usageMetadata": {"candidatesTokenCount": number}, "modelVersion": "m"}),
        "empty words": lambda number: sse(
            {"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "index": 0}], "number": number}
        ),
    },
    "bedrock": {
        "counts": lambda number: framed("metadata", usage={"inputTokens": 3, "outputTokens": number}),
        "unknown events": lambda number: framed("weather", number=number),
        "empty words": lambda _: framed("contentBlockDelta", contentBlockIndex=0, delta={"text": ""}),
    },
}
CASES = [
    pytest.param(api, idle, id=f"{api}-{name}")
    for api, family in FAMILIES.items()
    for name, idle in {**(LINES if family != "bedrock" else {}), **SAY_NOTHING[family]}.items()
]
# What remembers names, headers and shapes has seen them all by then.
WARM = 150
MANY = 1_000
# Not so much as a pointer for each of them.
LITTLE = 4 * MANY


def begun(api: str) -> list[bytes]:
    """The beginning of a reply, up to the middle of its text."""
    reply = Reply((Text("A few words. " * 8),), "stop", Usage(3, 7), "r1", "m")
    return render_in_steps(api, split_deltas(reply_events(reply), 9))[:9]


@pytest.mark.parametrize(("api", "idle"), CASES)
def test_ignored_payloads_take_no_memory(api: str, idle: Idle) -> None:
    payloads = list(map(idle, range(WARM + MANY)))
    ways = [([], parsing(api)), (begun(api), parsing(api)), (begun(api), bridging("openai-chat", api))]
    for beginning, feed in ways:
        for data in (*beginning, *payloads[:WARM]):
            feed(data)
        with traced() as held:
            for data in payloads[WARM:]:
                feed(data)
            assert held() < LITTLE


# ----------------------------------------------------------------------------------------------- replies of many deltas


DELTAS = 2_000
SIZE = DELTAS * len(PIECE)
# Each delta as an object of its own would be more than ten times the text.
BOUND = 7 * SIZE + 16_000


def replies(provider: str) -> dict[str, Block]:
    text = PIECE * DELTAS
    return {
        "words": Text(text),
        "reasoning": Thinking(text, signature="c2ln", origin=Origin(provider, identity="absent")),
        "a call": ToolCall("read_file", {"path": text}, "hist_tool_1", origin=Origin(provider, raw_id="call_9")),
    }


@cache
def streamed(api: str, kind: str) -> list[bytes]:
    block = replies(WIRES[api].provider)[kind]
    reply = Reply((block,), "tool_calls" if kind == "a call" else "stop", Usage(3, 7), "r1", "m")
    return render_in_steps(api, split_deltas(reply_events(reply), len(PIECE)), ids="native")


def most_held(open_feed: Callable[[], Callable[[bytes], object]], pieces: Sequence[bytes]) -> int:
    """The peak memory held between two chunks, sampled. Types that the first stream loads do not count."""
    feed = open_feed()
    for piece in pieces:
        feed(piece)
    feed = open_feed()
    most = 0
    with traced() as held:
        for number, piece in enumerate(pieces):
            feed(piece)
            if number % 500 == 499:
                most = max(most, held())
        return max(most, held())


@pytest.mark.parametrize("kind", replies(""))
@pytest.mark.parametrize("api", WIRES)
def test_reply_in_many_deltas_takes_little_more_memory_than_itself(api: str, kind: str) -> None:
    pieces = streamed(api, kind)
    assert sum(map(len, pieces)) > SIZE
    assert SIZE / 2 < most_held(lambda: parsing(api), pieces) < BOUND


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("api", WIRES)
def test_converted_stream_takes_little_more_memory_than_the_reply(api: str, client: str) -> None:
    assert most_held(lambda: bridging(client, api), streamed(api, "words")) < BOUND

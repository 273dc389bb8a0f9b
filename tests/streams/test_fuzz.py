"""Spoiled streams and replies of every API: each gives a value or a `RemoteProtocolError`, with work in proportion to
its length.

The inputs are streams and bodies of each API, changed as bytes and as JSON: parts are repeated, cut out, spliced and
moved, values replaced by odd ones. `make test` counts lines run; `make soak` also measures seconds, which shows what a
line costs.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.errors import RemoteProtocolError
from segue.render.report import Report
from segue.reply import render_reply
from segue.wire.registry import WIRES
from segue.wire.stream.events import reply_events
from tests.budget import SOAK, examples
from tests.streams.rendering import render_stream, split_deltas
from tests.streams.test_api_pairs import request_body
from tests.streams.test_complexity import STREAMS, Payload, encode, parse
from tests.work import count_work

FAMILIES = tuple(STREAMS)
# Lines for each byte of an input, and for an input of no length. Streams of the smallest events take five.
LINES_PER_BYTE, LINES = 8, 40_000
# What a line of the input costs more, in bytes: the smallest payload has two.
_LINE_COST = 20
SECONDS_PER_BYTE, SECONDS = 1e-4, 1.0

DEEP: Any = json.loads("[" * 600 + "]" * 600)
ODD: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        1.5,
        10**30,
        1e308,
        "",
        "x",
        "\ud83d",
        "\0\x1b\u202e",
        [],
        {},
        ["a"],
        [None],
        [{}],
        [[]],
        DEEP,
    ),
    *({"type": 3}, {"type": "message"}, {"text": []}, {"text": "x"}, {"\ud83d": "\ude00"}, {"x" * 5_000: 1}),
    *("9" * 5_000, "{" * 600, '{"a":' * 600, "hist_tool_0123456789abcdef01234567", "\\" * 99, "}" * 99, " " * 300),
]


def make_reply(provider: str) -> Reply:
    def call(number: int, **arguments: Any) -> Block:
        origin = Origin(provider, raw_id=f"call_{number}")
        return ToolCall("f", arguments, f"hist_tool_{number:024}", origin=origin)

    thinking = Thinking("I think of it. ", signature="c2ln", origin=Origin(provider, identity="absent"))
    blocks = (thinking, Text("Let me see: ä 😀. "), call(1, path="a.py"), call(2, lines=[1, 2], deep={"x": "y"}))
    return Reply(blocks, "tool_calls", Usage(3, 7), "r1", "m")


@cache
def payload_lists(api: str) -> list[list[Payload]]:
    """The payloads of streams of this API, in the number of a real reply."""
    return [list(make(6)) for make in STREAMS[api].values()]


@cache
def byte_streams(api: str) -> list[bytes]:
    events = split_deltas(reply_events(make_reply(WIRES[api].provider)), 7)
    return [render_stream(api, events), *(encode(api, iter(payloads)) for payloads in payload_lists(api))]


@cache
def body(api: str) -> Payload:
    return render_reply(make_reply(WIRES[api].provider), WIRES[api], Report(target=api))


# -------------------------------------------------------------------------------------------------------------- changes


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def spoil_value(value: Any, chance: random.Random) -> None:
    """Change one place of a JSON value: replace, remove or repeat what is there, or rename its key."""
    while isinstance(value, dict | list) and value:
        key: Any = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.6 and isinstance(value[key], dict | list) and value[key]:
            value = value[key]
            continue
        match chance.randrange(5):
            case 0:
                del value[key]
            case 1 if isinstance(value, list):
                value[key:key] = [_copy(value[key]) for _ in range(chance.choice([1, 50]))]
            case 1 | 2 if isinstance(value, dict):
                value[chance.choice(["index", "id", "type", "x" * 5_000, "\0"])] = value.pop(key)
            case 3 if isinstance(value[key], str):
                value[key] = chance.choice([value[key] * 300, value[key][::-1], value[key][: len(value[key]) // 2]])
            case _:
                value[key] = _copy(chance.choice(ODD))
        return


def spoil_payloads(payloads: list[Payload], chance: random.Random) -> list[Payload]:
    changed: list[Payload] = _copy(payloads)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(changed)) if changed else 0
        match chance.randrange(6):
            case 0:
                del changed[at : at + chance.randint(1, 3)]
            case 1:
                changed[at:at] = _repeat(changed[at : at + chance.randint(1, 3)], chance)
            case 2:
                chance.shuffle(changed)
            case _ if changed:
                spoil_value(changed[at], chance)
            case _:
                pass
    return [payload for payload in changed if isinstance(payload, dict)]


def _repeat(payloads: list[Payload], chance: random.Random) -> list[Payload]:
    """Repeat payloads, half of the time with other numbers and ids in each copy."""
    times = chance.choice([1, 10, 60, 1500])
    if chance.random() < 0.5:
        return payloads * times
    text = json.dumps(payloads, ensure_ascii=False)
    return [payload for number in range(times) for payload in json.loads(_NUMBER.sub(str(number), text))]


# Not the index of a choice or candidate: only the first of them is parsed.
_NUMBER = re.compile(r'(?<=[iI]ndex": )\d++(?!, "delta"|\}\])|(?<=[a-z_])(?<!\\u)\d+(?=")')


def spoil_bytes(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data) + 1)
        stop = min(len(data), start + chance.choice([1, 5, 40, 400]))
        piece = data[start:stop]
        match chance.randrange(7):
            case 0:
                data = data[:start]
            case 1:
                data = data[:start] + data[stop:]
            case 2:
                data = data[:start] + piece * chance.choice([2, 30]) + data[stop:]
            case 3:
                data = data[:start] + chance.randbytes(len(piece)) + data[stop:]
            case 4:
                data = (
                    data[:start] + chance.choice([b"[" * 700, b"9" * 5_000, b"\r", b"\n\n", b"\\", b'"']) + data[start:]
                )
            case 5:
                data = data.replace(b"\n", chance.choice([b"\r", b"\r\n", b"\n:\n"]))
            case _:
                data = data[stop:] + data[:start]
    return data


# --------------------------------------------------------------------------------------------------------------- limits


def run_limited(action: Callable[[], object], data: bytes, steps: int = 1) -> None:
    """Run a parser on this input in one or more steps; any exception but `RemoteProtocolError` is raised."""
    size = steps * (len(data) + _LINE_COST * data.count(b"\n"))

    def run() -> None:
        with suppress(RemoteProtocolError):
            action()

    count_work(run, LINES + LINES_PER_BYTE * size)
    if SOAK:
        start = time.process_time()
        run()
        assert time.process_time() - start < SECONDS + SECONDS_PER_BYTE * size


def bridge(api: str, client: str, data: bytes) -> None:
    stream = segue.convert(request_body(client), source=client, target=api).stream()
    stream.feed(data)
    stream.close()


every_family = pytest.mark.parametrize("api", FAMILIES)
seeds = st.integers(0, 2**32)


def encode_odd(api: str, payloads: list[Payload]) -> bytes:
    """The payloads as a stream; Bedrock's also as JSON lines, since an event name must be text."""
    if api == "bedrock":
        return b"\n".join(json.dumps(payload).encode() for payload in payloads)
    return encode(api, iter(payloads))


@every_family
@examples(15, items=len(FAMILIES))
@given(seed=seeds)
def test_spoiled_payloads(api: str, seed: int) -> None:
    chance = random.Random(seed)
    data = encode_odd(api, spoil_payloads(chance.choice(payload_lists(api)), chance))
    run_limited(lambda: parse(api, data, chance.choice([10**9, 97])), data)


@every_family
@examples(15, items=len(FAMILIES))
@given(seed=seeds)
def test_spoiled_bytes(api: str, seed: int) -> None:
    chance = random.Random(seed)
    data = spoil_bytes(chance.choice(byte_streams(api)), chance)
    run_limited(lambda: parse(api, data, chance.choice([10**9, 97])), data)


@every_family
@examples(5, items=len(FAMILIES))
@given(seed=seeds, client=st.sampled_from(FAMILIES))
def test_spoiled_streams_are_converted(api: str, seed: int, client: str) -> None:
    chance = random.Random(seed)
    data = encode_odd(api, spoil_payloads(chance.choice(payload_lists(api)), chance))
    run_limited(lambda: bridge(api, client, data), data, steps=4)


@every_family
@examples(10, items=len(FAMILIES))
@given(seed=seeds, client=st.sampled_from(FAMILIES))
def test_spoiled_whole_replies(api: str, seed: int, client: str) -> None:
    chance = random.Random(seed)
    changed = _copy(body(api))
    for _ in range(chance.randint(1, 4)):
        spoil_value(changed, chance)
    data = json.dumps(changed).encode()
    data = spoil_bytes(data, chance) if chance.random() < 0.3 else data
    converted = segue.convert(request_body(client), source=client, target=api)
    run_limited(lambda: converted.reply(data), data, steps=4)

"""Chat completions that no server should send: a value or a `RemoteProtocolError`, and a value can be rendered."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.wire.registry import WIRES
from tests.budget import examples
from tests.streams.chat_events import calls, chunk, encode_chunks, entry
from tests.streams.corruption import mutants, read_or_reject
from tests.streams.parsing import payloads_of, read
from tests.streams.rendering import render_stream
from tests.streams.test_chat import QUIRKS

CHATS = ("openai-chat", "kimi", "deepseek", "qwen", "mistral")
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


@cache
def recorded(api: str) -> list[list[Any]]:
    """Streams of this dialect: each quirk, a reply with all that a delta can hold, one at once, and an error."""
    free = {"index": 1, "id": "b", "type": "custom"}
    everything = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "Hm."}),
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}),
        chunk({"content": [{"type": "text", "text": "Hello "}]}),
        chunk({"content": "wörld"}, logprobs={"content": [{"token": "wörld", "logprob": -1}]}),
        chunk({"refusal": "No."}),
        calls(entry(0, "a", "f", '{"x":')),
        calls(entry(0, arguments="1}"), {**free, "custom": {"name": "g", "input": ""}}),
        calls({"index": 1, "custom": {"input": "*** Begin"}}),
        chunk({"function_call": {"name": "h", "arguments": "{}"}}),
        chunk({"annotations": [{"type": "url_citation"}], "audio": {"id": "x", "data": "eA=="}}),
        chunk({}, "tool_calls", usage=USAGE),
        {**chunk({}), "choices": [], "usage": USAGE},
    ]
    message = {"role": "assistant", "content": "hi", "tool_calls": [entry(None, "a", "f", '{"x":1}')]}
    at_once = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    failed = [chunk({"content": "Hel"}), {"error": {"message": "overloaded", "type": "server_error", "code": 503}}]
    streams = [everything, everything, everything, [at_once], failed, *(chunks for chunks, _ in QUIRKS.values())]
    # Also as rendered by this dialect's own renderer.
    rendered = [render_stream(api, read(api, encode_chunks(chunks))[0]) for chunks in streams if chunks != failed]
    return [*streams, *map(payloads_of, rendered)]


def spoiled(api: str, seed: int) -> bytes:
    chance = random.Random(seed)
    return encode_chunks(mutants(chance.choice(recorded(api)), seed), done=chance.random() < 0.7)


@pytest.mark.parametrize("api", CHATS)
def test_spoiled_streams_give_a_value_or_a_remote_error(api: str) -> None:
    """And a value can be rendered for a client of every API."""
    rendered = 0
    for seed in range(150):
        found = read_or_reject(api, spoiled(api, seed))
        if found is None:
            continue
        rendered += 1
        for target in WIRES:
            assert render_stream(target, found[0])
    assert rendered > 100


@examples(100, items=len(CHATS))
@given(data=st.binary(max_size=300), api=st.sampled_from(CHATS))
def test_random_bytes_give_a_value_or_a_remote_error(data: bytes, api: str) -> None:
    read_or_reject(api, data)
    read_or_reject(api, b"data: " + data + b"\n\n")


@pytest.mark.parametrize("api", CHATS)
def test_flipped_bytes_give_a_value_or_a_remote_error(api: str) -> None:
    chance = random.Random(5)
    data = bytearray(encode_chunks(recorded(api)[0]))
    for _ in range(200):
        place = chance.randrange(len(data))
        before, data[place] = data[place], chance.randrange(256)
        read_or_reject(api, bytes(data))
        data[place] = before

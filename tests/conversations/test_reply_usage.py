"""Token counts of replies: the same sums whole and streamed, for callers of every API."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue import Usage
from segue.wire.registry import WIRES
from tests.conversations.replies import chat_reply, responses_reply
from tests.conversations.reply_shapes import encode_stream, request_of, stream_payloads
from tests.each import for_each

# What providers answer, and what it counts: the input with its cached tokens, the output with its reasoning.
CASES: dict[str, tuple[str, dict[str, Any], Usage]] = {
    "mistral": (
        "mistral",
        {"prompt_tokens": 175, "completion_tokens": 39, "total_tokens": 214, "num_cached_tokens": 174},
        Usage(175, 39, cache_read=174),
    ),
    "groq": (
        "openai-chat",
        {"prompt_tokens": 343, "completion_tokens": 180, "completion_tokens_details": {"reasoning_tokens": 153}},
        Usage(343, 180, reasoning=153),
    ),
    "xai": (
        "openai-chat",
        {
            "prompt_tokens": 20,
            "completion_tokens": 9,
            "total_tokens": 129,
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
        Usage(20, 109, reasoning=100),
    ),
    "xai cached": (
        "openai-chat",
        {
            "prompt_tokens": 20,
            "completion_tokens": 9,
            "total_tokens": 129,
            "prompt_tokens_details": {"cached_tokens": 16},
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
        Usage(20, 109, cache_read=16, reasoning=100),
    ),
    "reasoning within the output": (
        "openai-chat",
        {
            "prompt_tokens": 20,
            "completion_tokens": 109,
            "total_tokens": 129,
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
        Usage(20, 109, reasoning=100),
    ),
    "gemini by Chat Completions": (
        "openai-chat",
        {"prompt_tokens": 66, "completion_tokens": 6, "total_tokens": 100},
        Usage(66, 34, reasoning=28),
    ),
    "no total": ("openai-chat", {"prompt_tokens": 66, "completion_tokens": 6}, Usage(66, 6)),
    "cached tokens counted twice in the total": (
        "openai-chat",
        {"prompt_tokens": 60, "completion_tokens": 4, "total_tokens": 124, "cached_tokens": 60},
        Usage(60, 4, cache_read=60),
    ),
    "xai by Responses": (
        "openai-responses",
        {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 100},
            "total_tokens": 129,
        },
        Usage(20, 109, reasoning=100),
    ),
}


def _reply(name: str) -> tuple[str, dict[str, Any], list[dict[str, Any]], Usage]:
    """The API, the whole reply and its stream, and what they count."""
    api, usage, expected = CASES[name]
    if api == "openai-responses":
        body = {**responses_reply({**_MESSAGE}, model="grok-4"), "usage": usage}
        return api, body, stream_payloads(api, body), expected
    body = {**chat_reply(content="Hi."), "usage": usage}
    payloads = stream_payloads(api, body)
    if name == "groq":
        del payloads[-1]["usage"]
        payloads[0]["x_groq"] = {"id": "req_1"}
        payloads[-1]["x_groq"] = {"id": "req_1", "usage": usage}
    return api, body, payloads, expected


_TEXT = {"type": "output_text", "text": "Hi.", "annotations": []}
_MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [_TEXT]}


@pytest.mark.parametrize("name", CASES)
def test_counts_of_a_reply(name: str) -> None:
    api, body, payloads, expected = _reply(name)
    assert WIRES[api].parse_reply(body).usage == expected
    assert segue.assemble(payloads, api).usage == expected


@pytest.mark.parametrize("name", CASES)
@for_each("caller", WIRES)
def test_counts_given_to_a_caller(name: str, caller: str) -> None:
    """Every API has these counts but for one: those of Anthropic and Converse have no reasoning tokens."""
    api, body, payloads, expected = _reply(name)
    converted = segue.convert(request_of(caller), source=caller, target=api)
    stream = converted.stream()
    streamed = segue.assemble(stream.feed(encode_stream(api, payloads)) + stream.close(), caller).usage
    whole = WIRES[caller].parse_reply(converted.reply(body)).usage
    for usage in (whole, streamed):
        assert usage is not None
        assert (usage.input, usage.output) == (expected.input, expected.output)
        assert (usage.cache_read, usage.reasoning) in (
            (expected.cache_read, expected.reasoning),
            (expected.cache_read, 0),
        )
    assert whole == streamed

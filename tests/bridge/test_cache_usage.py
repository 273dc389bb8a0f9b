"""The tokens read from a prompt cache and written to it, from every provider to the client of every API."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue._stream import render_reply_body
from segue.canonical.blocks import Text
from segue.canonical.request import Reply, Usage
from segue.wire.registry import WIRES
from tests.streams.rendering import stream_reply
from tests.streams.test_api_pairs import request_body

USAGE = Usage(input=1200, output=30, cache_read=900, cache_write=200)
REPLY = Reply((Text("Sun."),), "stop", USAGE, "r1", "m")
# Gemini reports no written tokens.
WITHOUT_WRITES = "gemini"
PAIRS = [(client, server) for client in WIRES for server in WIRES]
# Usage as the providers document it.
VENDOR_USAGE: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "prompt_tokens": 1200,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 200},
    },
    "deepseek": {
        "prompt_tokens": 1200,
        "completion_tokens": 30,
        "prompt_cache_hit_tokens": 900,
        "prompt_cache_miss_tokens": 300,
    },
    "kimi": {"prompt_tokens": 1200, "completion_tokens": 30, "cached_tokens": 900},
    "qwen": {
        "prompt_tokens": 1200,
        "completion_tokens": 30,
        "prompt_tokens_details": {
            "cached_tokens": 900,
            "cache_creation_input_tokens": 200,
            "cache_creation": {"ephemeral_5m_input_tokens": 200},
        },
    },
    "openai-responses": {
        "input_tokens": 1200,
        "input_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 200},
        "output_tokens": 30,
    },
    "anthropic": {
        "input_tokens": 100,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 200,
        "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 30,
    },
    "bedrock": {
        "inputTokens": 100,
        "cacheReadInputTokens": 900,
        "cacheWriteInputTokens": 200,
        "outputTokens": 30,
        "totalTokens": 1230,
    },
    "gemini": {"promptTokenCount": 1200, "cachedContentTokenCount": 900, "candidatesTokenCount": 30},
}
WITHOUT_VENDOR_WRITES = ("deepseek", "kimi", "gemini")


def expected_usage(*apis: str) -> Usage:
    return Usage(1200, 30, 900, 0 if WITHOUT_WRITES in apis else 200)


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_whole_reply(client: str, server: str) -> None:
    converted = segue.convert(request_body(client), source=client, target=server)
    reply = converted.reply(render_reply_body(REPLY, server)[0])
    assert WIRES[client].parse_reply(reply).usage == expected_usage(client, server)


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_streamed_reply(client: str, server: str) -> None:
    stream = segue.convert(request_body(client), source=client, target=server).stream()
    data = stream.feed(stream_reply(server, REPLY, 5)) + stream.close()
    assert segue.assemble(data, client).usage == expected_usage(client, server)


@pytest.mark.parametrize("api", VENDOR_USAGE)
def test_usage_as_the_provider_sends_it(api: str) -> None:
    key = "usageMetadata" if api == "gemini" else "usage"
    body = {**render_reply_body(REPLY, api)[0], key: VENDOR_USAGE[api]}
    usage = WIRES[api].parse_reply(body).usage
    assert usage == Usage(1200, 30, 900, 0 if api in WITHOUT_VENDOR_WRITES else 200)

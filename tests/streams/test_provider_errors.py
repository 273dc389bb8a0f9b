"""Errors that a provider sends in its stream: an overload is each caller's own, and no error loses its cause."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Text
from segue.canonical.request import Reply, Usage
from segue.errors import RemoteProtocolError
from segue.wire.registry import WIRES
from segue.wire.stream.aws_events import AwsMessageEncoder
from tests.streams.parsing import sse
from tests.streams.rendering import stream_reply
from tests.streams.test_failed_replies import RETRIED, last_frame, open_stream, read_error

OVERLOADS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gemini", {"error": {"code": 503, "message": "M", "status": "UNAVAILABLE"}}),
    ("gemini", {"error": {"code": 503, "message": "M"}}),
    ("gemini", {"error": {"message": "M", "status": "UNAVAILABLE"}}),
    ("openai-chat", {"error": {"code": 503, "message": "M"}}),
    ("openai-chat", {"error": {"type": "overloaded_error", "message": "M"}}),
    ("kimi", {"error": {"type": "engine_overloaded_error", "message": "M"}}),
    ("openai-responses", {"type": "error", "code": "server_is_overloaded", "message": "M", "param": None}),
    ("openai-responses", {"error": {"code": "server_is_overloaded", "message": "M"}}),
    ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "M"}}),
    ("bedrock", {"message": "M"}),
)
OVERLOAD_PAIRS = [
    pytest.param(client, server, error, id=f"{client}-{server}-{number}")
    for number, (server, error) in enumerate(OVERLOADS)
    for client in WIRES
    if client != server
]


def encode_error(server: str, error: dict[str, Any]) -> bytes:
    if server != "bedrock":
        return sse(error)
    encode = AwsMessageEncoder(
        exception_type="serviceUnavailableException", content_type="application/json", message_type="exception"
    )
    return encode(json.dumps(error).encode())


def begin_reply(server: str) -> bytes:
    """The first bytes of a reply, up to its text."""
    data = stream_reply(server, Reply((Text("I look."),), "stop", Usage(1, 1), "r1", "m"))
    if server == "bedrock":
        return data[: int.from_bytes(data[:4], "big")]
    return data[: data.index(b"\n\n", data.index(b"I look")) + 2]


@pytest.mark.parametrize(("client", "server", "error"), OVERLOAD_PAIRS)
def test_an_overload_is_the_error_of_the_callers_api(client: str, server: str, error: dict[str, Any]) -> None:
    stream = open_stream(client, server)
    stream.feed(begin_reply(server))
    stream.feed(encode_error(server, error))
    assert read_error(client, stream.close()) == (RETRIED[WIRES[client].base_api], "M")


@pytest.mark.parametrize(("client", "server", "error"), OVERLOAD_PAIRS)
def test_an_overload_before_the_reply_too(client: str, server: str, error: dict[str, Any]) -> None:
    stream = open_stream(client, server)
    stream.feed(encode_error(server, error))
    with pytest.raises(RemoteProtocolError) as caught:
        stream.close()
    assert read_error(client, last_frame(client, stream.fail(caught.value))) == (RETRIED[WIRES[client].base_api], "M")


@pytest.mark.parametrize("server", ["gemini", "anthropic", "openai-chat", "mistral"])
@pytest.mark.parametrize("client", WIRES)
def test_an_error_that_is_a_text_is_the_message(client: str, server: str) -> None:
    stream = open_stream(client, server)
    stream.feed(begin_reply(server) + sse({"error": "MSGX"}))
    assert read_error(client, stream.close())[1] == "MSGX"
    converted = segue.convert(
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, source="openai-chat", target=server
    )
    with pytest.raises(RemoteProtocolError, match="MSGX"):
        converted.reply({"error": "MSGX"})

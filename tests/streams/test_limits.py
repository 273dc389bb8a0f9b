"""A reply above a limit ends with an error that names the limit and that clients do not retry; nothing is kept of what
follows."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Block, Origin, Text, ToolCall
from segue.canonical.request import Reply, Usage
from segue.errors import InputError, RemoteProtocolError
from segue.render.report import Report
from segue.reply import render_reply
from segue.wire.limits import ReplyLimits
from segue.wire.registry import WIRES
from segue.wire.stream.events import reply_events
from tests.streams.parsing import TURN, check_event_rules
from tests.streams.rendering import render_in_steps, split_deltas
from tests.streams.test_api_pairs import request_body

LIMITS = {
    "bytes": (ReplyLimits(bytes=3_000), "larger than 3000 bytes"),
    "calls": (ReplyLimits(calls=3), "more than 3 tool calls"),
    "arguments": (ReplyLimits(arguments=500), "longer than 500 characters"),
}
MANY = 6


def large_reply(provider: str) -> Reply:
    """A reply above each of the limits."""

    def call(number: int) -> Block:
        origin = Origin(provider, raw_id=f"call_{number}")
        return ToolCall("read_file", {"path": "x" * 600}, f"hist_tool_{number}", origin=origin)

    blocks = (Text("On it. " * 20), *map(call, range(MANY)))
    return Reply(blocks, "tool_calls", Usage(3, 7), "r1", "m")


def streamed(api: str) -> list[bytes]:
    reply = large_reply(WIRES[api].provider)
    return render_in_steps(api, split_deltas(reply_events(reply), 50), ids="native")


def whole(api: str) -> dict[str, Any]:
    return render_reply(large_reply(WIRES[api].provider), WIRES[api], Report(target=api))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("api", WIRES)
def test_stream_above_a_limit_fails(api: str, limit: str) -> None:
    limits, message = LIMITS[limit]
    parser = WIRES[api].open_stream(TURN)
    parser.set_limits(limits)
    events = []
    for data in streamed(api):
        parser.feed(data)
        events += parser.events()
    reply = parser.close()
    events += parser.events()
    check_event_rules(events, reply)
    error = parser.limit_error
    assert error is not None
    assert (error.status, error.kind) == (400, "invalid_request_error")
    assert message in error.message
    assert f"limit `{limit}`" in error.message
    assert (reply.finish, reply.raw_finish) == ("error", error.message)
    assert len(reply.calls) <= MANY


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("api", WIRES)
@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"])
def test_caller_gets_the_error_at_once(client: str, api: str, limit: str) -> None:
    limits, message = LIMITS[limit]
    stream = segue.convert(request_body(client), source=client, target=api).stream(limits=limits)
    written: list[bytes] = []
    for data in streamed(api):
        written.append(stream.feed(data))
        if stream.reply is not None:
            break
    assert message.encode() in written[-1]
    assert stream.reply is not None
    assert stream.reply.finish == "error"
    assert stream.close() == stream.feed(b"more") == b""


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("api", WIRES)
def test_whole_reply_above_a_limit_is_refused(api: str, limit: str) -> None:
    limits, message = LIMITS[limit]
    converted = segue.convert(request_body("openai-chat"), source="openai-chat", target=api)
    with pytest.raises(RemoteProtocolError, match=message):
        converted.reply(json.dumps(whole(api)), limits=limits)
    assert converted.reply(json.dumps(whole(api)))


def test_event_without_an_end_is_bounded() -> None:
    parser = WIRES["anthropic"].open_stream(TURN)
    parser.set_limits(ReplyLimits(bytes=10_000))
    for _ in range(100):
        parser.feed(b"data: " + b"x" * 1_000)
    with pytest.raises(RemoteProtocolError, match="larger than 10000 bytes"):
        parser.close()


@pytest.mark.parametrize("api", WIRES)
def test_assemble_takes_limits(api: str) -> None:
    reply = segue.assemble(streamed(api), api, limits=segue.ReplyLimits(calls=3))
    assert reply.finish == "error"
    assert "more than 3 tool calls" in str(reply.raw_finish)
    assert segue.assemble(streamed(api), api).finish == "tool_calls"


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "many"])
def test_invalid_limits_are_an_input_error(value: Any) -> None:
    with pytest.raises(InputError, match=r"limits\.calls: a positive integer"):
        ReplyLimits(calls=value)
    with pytest.raises(InputError, match="limits: ReplyLimits were expected"):
        segue.assemble(b"", "anthropic", limits=value)

"""Replies that fail: a call that is not complete never ends, and the error is one that clients retry, or do not."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import msgspec
import pytest

import segue
from segue._stream import render_reply_body
from segue.canonical.blocks import Origin, Text, ToolCall
from segue.canonical.request import Finish, Reply, Usage
from segue.errors import RemoteProtocolError
from segue.wire.base import ApiError
from segue.wire.registry import WIRES
from segue.wire.stream.framing import FrameDecoder
from tests.budget import sample_pairs
from tests.streams.chat_events import TOOLS, calls, entry
from tests.streams.parsing import sse
from tests.streams.rendering import stream_reply
from tests.streams.test_api_pairs import request_body

PAIRS = sample_pairs(WIRES, start=2)
# Gemini sends arguments as an object, and Mistral only valid JSON.
TEXT_PAIRS = tuple(pair for pair in product(WIRES, repeat=2) if pair[1] not in ("gemini", "mistral"))
ARGUMENTS = {"path": "a" * 40}
CUT = '{"path": "a'
# The texts after which pi and opencode send a request again.
RETRIED_TEXT = re.compile(
    r"429|50[0234]|524|overloaded|rate.?limit|unavailable|exhausted|server.?error|internal.?error|connection.?error"
    r"|connection.?refused|terminated|fetch failed|network error|upstream.?connect|timed? ?out",
    re.IGNORECASE,
)
CALL_ENDS = re.compile(
    rb'"type":"content_block_stop"|contentBlockStop|_arguments\.done|"functionCall":|"output_item\.done"'
)


def a_call(server: str, text: str | None = None) -> ToolCall:
    origin = Origin(WIRES[server].provider, raw_id="call_9")
    arguments = ARGUMENTS if text is None else None
    return ToolCall("read_file", arguments, id="hist_tool_a", arguments_text=text, origin=origin)


def open_stream(client: str, server: str) -> segue.ReplyStream:
    return segue.convert(request_body(client), source=client, target=server).stream()


def read_error(client: str, data: bytes) -> tuple[str, str]:
    """The kind (or code) and the message of an error in a stream. Nothing but the error may be in it."""
    base = WIRES[client].base_api
    if base == "gemini":
        error = json.loads(data)["error"]
        return f"{error['code']} {error['status']}", error["message"]
    *opening, (name, payload) = FrameDecoder().feed(data)
    # A response that has not begun begins with its failure.
    assert [event for event, _ in opening] in ([], ["response.created", "response.in_progress"])
    body = json.loads(payload)
    if base == "bedrock":
        return str(name), body["message"]
    if base == "openai-responses":
        error = body["response"]["error"] if body["type"] == "response.failed" else body
        return error["code"], error["message"]
    error = body.get("error", body)
    return str(error.get("type") or error.get("code")), error["message"]


RETRIED = {
    "anthropic": "overloaded_error",
    "openai-chat": "overloaded_error",
    "openai-responses": "server_error",
    "gemini": "503 UNAVAILABLE",
    "bedrock": "exception:serviceUnavailableException",
}
NOT_RETRIED = {
    "anthropic": "invalid_request_error",
    "openai-chat": "invalid_request_error",
    "openai-responses": "invalid_prompt",
    "gemini": "400 INVALID_ARGUMENT",
    "bedrock": "exception:validationException",
}


def check_retried(client: str, data: bytes) -> str:
    kind, message = read_error(client, data)
    assert kind == RETRIED[WIRES[client].base_api]
    assert RETRIED_TEXT.search(message)
    return message


def check_not_retried(client: str, data: bytes) -> str:
    kind, message = read_error(client, data)
    assert kind == NOT_RETRIED[WIRES[client].base_api]
    assert not RETRIED_TEXT.search(message)
    return message


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_a_stream_that_broke_ends_with_only_an_error_that_clients_retry(client: str, server: str) -> None:
    reply = Reply((Text("I look."), a_call(server)), "tool_calls", Usage(1, 1), "r1", "m")
    data = stream_reply(server, reply)
    for stop in range(0, len(data), max(1, len(data) // 25)):
        stream = open_stream(client, server)
        sent = stream.feed(data[:stop])
        try:
            end = stream.close()
        except RemoteProtocolError:
            # Nothing was sent yet.
            assert not sent
            continue
        assert stream.reply is not None
        if stream.reply.finish != "error":
            continue
        assert "the stream ended before the reply did" in check_retried(client, end)
        call = next(iter(stream.reply.calls), None)
        if call is not None and call.broken:
            # The text may have ended.
            assert len(CALL_ENDS.findall(sent)) <= 1
            assert not re.search(rb'"functionCall":|_arguments\.done', sent)


@pytest.mark.parametrize(("client", "server"), TEXT_PAIRS)
def test_invalid_arguments_at_a_regular_end_are_an_error_that_clients_do_not_retry(client: str, server: str) -> None:
    reply = Reply((a_call(server, CUT),), "tool_calls", Usage(1, 1), "r1", "m")
    stream = open_stream(client, server)
    sent = stream.feed(stream_reply(server, reply))
    end = stream.close()
    if WIRES[client].base_api == WIRES[server].base_api and WIRES[client].invalid_json_arguments:
        # Its own clients validate the text.
        assert [call.arguments_text for call in segue.assemble(sent + end, client).calls] == [CUT]
        return
    assert "not valid JSON" in check_not_retried(client, end)
    assert not CALL_ENDS.search(sent)
    assert b"_raw" not in sent


@pytest.mark.parametrize(("client", "server"), TEXT_PAIRS)
def test_a_call_that_the_length_limit_cut_off_does_not_end(client: str, server: str) -> None:
    cut = msgspec.structs.replace(a_call(server, CUT), broken=True)
    reply = Reply((cut,), "length", Usage(1, 1), "r1", "m")
    stream = open_stream(client, server)
    sent = stream.feed(stream_reply(server, reply)) + stream.close()
    assert not CALL_ENDS.search(sent)
    assert b"_raw" not in sent
    client_reply = segue.assemble(sent, client)
    assert client_reply.finish == "length"
    assert all(call.arguments is None for call in client_reply.calls)
    assert any("cut off" in finding.message for finding in stream.report.findings)


@pytest.mark.parametrize("client", [api for api in WIRES if not api.startswith("openai")])
@pytest.mark.parametrize("server", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("finish", ["tool_calls", "length"])
def test_whole_replies_follow_the_same_rules(client: str, server: str, finish: Finish) -> None:
    reply = Reply((Text("I look."), a_call(server, CUT)), finish, Usage(1, 1), "r1", "m")
    body, _ = render_reply_body(reply, server)
    converted = segue.convert(request_body(client), source=client, target=server)
    if (client, server, finish) == ("azure-foundry", "openai-responses", "tool_calls"):
        # Its own clients validate the text.
        assert [call.arguments_text for call in WIRES[client].parse_reply(converted.reply(body)).calls] == [CUT]
    elif finish == "length":
        client_reply = WIRES[client].parse_reply(converted.reply(body))
        assert (client_reply.finish, client_reply.calls, client_reply.text) == ("length", (), "I look.")
    else:
        with pytest.raises(RemoteProtocolError, match="not valid JSON") as raised:
            converted.reply(body)
        assert raised.value.kind == "invalid_request_error"


def test_an_invalid_call_before_the_last_block_fails_the_reply() -> None:
    calls = (a_call("openai-chat", CUT), ToolCall("search", {"q": 1}, id="hist_tool_b", origin=Origin("x")))
    data = stream_reply("openai-chat", Reply(calls, "length", Usage(1, 1), "r1", "m"))
    stream = open_stream("anthropic", "openai-chat")
    stream.feed(data)
    check_not_retried("anthropic", stream.close())


FAILED_BODIES: dict[str, dict[str, Any]] = {
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hm"}]}, "finishReason": "MALFORMED_FUNCTION_CALL"}]},
    "bedrock": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hm"}]}},
        "stopReason": "malformed_model_output",
    },
    "deepseek": {
        "id": "x",
        "choices": [
            {"message": {"role": "assistant", "content": "Hm"}, "finish_reason": "insufficient_system_resource"}
        ],
    },
}


@pytest.mark.parametrize("client", WIRES)
@pytest.mark.parametrize("server", FAILED_BODIES)
def test_a_failed_reply_is_an_error_and_never_one_that_reached_a_limit(client: str, server: str) -> None:
    body = FAILED_BODIES[server]
    converted = segue.convert(request_body(client), source=client, target=server)
    stream = converted.stream()
    sent = stream.feed(json.dumps(body).encode()) + stream.close()
    if client == server:
        assert converted.reply(body)
        return
    end = sent[sent.rindex(b'{"error"') :] if client == "gemini" else last_frame(client, sent)
    check = check_retried if server == "deepseek" else check_not_retried
    assert "the provider ended the reply with" in check(client, end)
    with pytest.raises(RemoteProtocolError, match="the provider ended the reply with"):
        converted.reply(body)


def last_frame(client: str, data: bytes) -> bytes:
    if client == "bedrock":
        position = 0
        while position + (size := int.from_bytes(data[position : position + 4], "big")) < len(data):
            position += size
        return data[position:]
    return data.removesuffix(b"\n\n").rsplit(b"\n\n", 1)[-1] + b"\n\n"


@pytest.mark.parametrize("client", WIRES)
def test_fail_distinguishes_transport_and_content(client: str) -> None:
    def fail(error: Any, **options: Any) -> bytes:
        stream = open_stream(client, "anthropic")
        stream.feed(stream_reply("anthropic", Reply((Text("Hi"),), "stop", Usage(1, 1), "r1", "m"))[:200])
        return stream.fail(error, **options)

    assert "the socket was closed" in check_retried(client, fail("the socket was closed"))
    assert (
        check_not_retried(client, fail("the reply has too many calls", retry=False)) == "the reply has too many calls"
    )
    assert check_not_retried(client, fail(RemoteProtocolError("not JSON: x")))
    assert check_retried(client, fail(RemoteProtocolError("not JSON: x"), retry=True))
    assert "Slow down." in read_error(client, fail(ApiError(429, "Slow down.", kind="rate_limit_error")))[1]
    assert "Busy." in read_error(client, fail(RemoteProtocolError("Busy.", status=529, kind="overloaded_error")))[1]


UNNAMED_CALLS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [calls(entry(0, "c", "", "{}")), TOOLS],
    "mistral": [calls({"index": 0, "id": "c", "function": {"name": None, "arguments": '{"a": 1}'}}), TOOLS],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "resp_1", "object": "response", "output": []}},
        {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1", "arguments": "{}"},
        {"type": "response.completed", "response": {"id": "resp_1", "object": "response", "status": "completed"}},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "", "args": {}}}]}, "finishReason": "STOP"}]}
    ],
}


@pytest.mark.parametrize("client", WIRES)
@pytest.mark.parametrize("server", UNNAMED_CALLS)
def test_a_streamed_call_without_a_name_fails_as_in_a_whole_reply(client: str, server: str) -> None:
    data = sse(*UNNAMED_CALLS[server])
    message = f"not a reply of {server}: a tool call without a name"
    stream = open_stream(client, server)
    sent = stream.feed(data)
    assert check_not_retried(client, stream.close()) == message
    assert not re.search(rb'"tool_use"|"tool_calls"|"function_call"|"functionCall"|"toolUse"', sent)
    with pytest.raises(RemoteProtocolError, match=message):
        segue.assemble(data, server)


CUT_ITEMS: list[dict[str, Any]] = [
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "search", "arguments": "{}"},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "search", "input": "a"},
    {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "action": {"commands": ["ls"]}},
    {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "actions": [], "pending_safety_checks": []},
]


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("item", CUT_ITEMS, ids=[item["type"] for item in CUT_ITEMS])
def test_an_incomplete_item_is_no_call_whole_or_streamed(client: str, item: dict[str, Any]) -> None:
    response = {"id": "resp_1", "object": "response", "model": "gpt-5.5"}
    for status, fails in (("incomplete", True), ("completed", False)):
        done = {**item, "status": status}
        stream = open_stream(client, "openai-responses")
        events = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": done},
            {"type": "response.completed", "response": {**response, "status": "completed", "output": [done]}},
        ]
        end = stream.feed(sse(*events)) + stream.close()
        assert (segue.assemble(end, client).finish == "error") is fails
        converted = segue.convert(request_body(client), source=client, target="openai-responses")
        body = {**response, "status": "completed", "output": [done]}
        if fails:
            with pytest.raises(RemoteProtocolError, match="not valid JSON"):
                converted.reply(body)
        else:
            assert len(WIRES[client].parse_reply(converted.reply(body)).calls) == 1

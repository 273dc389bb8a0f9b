"""Relays without IO: every caller's API on every upstream's, whole and streamed, in any split of the bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue.bridge.actions import EndExchange, Respond, ResponseHead, Send, Write
from segue.bridge.provider_errors import TransportError
from segue.bridge.relay import Relay
from segue.wire.limits import ReplyLimits
from segue.wire.registry import WIRES
from segue.wire.stream.parse import DEFAULT_TURN_KEY
from tests.bridge.exchanges import (
    ALIAS,
    CALLER_APIS,
    MODELS,
    Response,
    Shell,
    endpoint,
    make_reply,
    path_of,
    request_body,
    split,
    stream_bytes,
    streamed,
    whole,
)

EVERY_PAIR = pytest.mark.parametrize(("caller", "api"), [(caller, api) for caller in CALLER_APIS for api in MODELS])
CALLS = [("call_1", "look", {"n": 1}), ("call_1", "look", {"n": 2})]


def parse_stream(api: str, data: bytes) -> Any:
    parser = WIRES[api].open_stream(DEFAULT_TURN_KEY)
    parser.feed(data)
    return parser.close()


def model_names(data: bytes) -> set[str]:
    """Return all values of fields that name a model, at any depth of a body or a stream."""
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.update(str(value[key]) for key in ("model", "modelVersion") if isinstance(value.get(key), str))
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(inner)

    for line in data.decode("utf-8", "replace").splitlines():
        text = line.removeprefix("data:").strip()
        if text.startswith(("{", "[")) and text != "[DONE]":
            walk(json.loads(text.removesuffix(",")))
    return found


@EVERY_PAIR
def test_whole_reply(caller: str, api: str) -> None:
    shell = Shell(endpoint(api))
    answer = shell.run(path_of(caller), request_body(caller), [whole(api, make_reply(api, calls=CALLS))])
    assert answer.status == 200, answer.data
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.data)
    reply = WIRES[caller].parse_reply(answer.body)
    assert (reply.text, reply.finish) == ("Hello back.", "tool_calls")
    assert [call.arguments for call in reply.calls] == [{"n": 1}, {"n": 2}]
    assert model_names(answer.data) <= {ALIAS}
    relay = answer.relay
    assert (relay.finish, relay.target, relay.error) == ("tool_calls", f"p0/{MODELS[api]}", None)
    assert relay.usage is not None
    assert (relay.usage.input, relay.usage.output) == (11, 7)
    assert relay.report is not None


@EVERY_PAIR
def test_streamed_reply_in_any_split(caller: str, api: str) -> None:
    reply = make_reply(api, thought="Hm.", calls=CALLS)
    results: list[tuple[str, Any]] = []
    for size in (0, 1, 7, 100):
        shell = Shell(endpoint(api))
        answer = shell.run(
            path_of(caller, stream=True), request_body(caller, stream=True), [streamed(api, reply, size)]
        )
        assert answer.status == 200, answer.data
        parsed = parse_stream(caller, answer.data)
        assert (parsed.text, parsed.finish) == ("Hello back.", "tool_calls")
        assert [call.arguments for call in parsed.calls] == [{"n": 1}, {"n": 2}]
        raw_ids = [call.origin.raw_id for call in parsed.calls]
        assert len(set(raw_ids)) == 2
        assert caller == "bedrock" or model_names(answer.data) <= {ALIAS}
        assert answer.relay.finish == "tool_calls"
        assert answer.relay.usage is not None
        assert answer.relay.usage.output == 7
        # Envelopes hold the time, which is fixed here, so all splits have equal bytes but for where deltas end.
        results.append((parsed.text, (raw_ids, parsed.usage)))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("api", MODELS)
def test_calls_have_the_ids_that_the_caller_gets(api: str) -> None:
    for stream in (False, True):
        shell = Shell(endpoint(api))
        reply = make_reply(api, calls=CALLS)
        response = streamed(api, reply) if stream else whole(api, reply)
        answer = shell.run("/v1/chat/completions", request_body("openai-chat", stream=stream), [response])
        wire = WIRES["openai-chat"]
        parsed = parse_stream("openai-chat", answer.data) if stream else wire.parse_reply(answer.body)
        given = [(call.name, call.origin.raw_id) for call in parsed.calls]
        assert [(call.name, given_id) for call, given_id in answer.relay.calls] == given


def test_gemini_stream_without_sse_is_a_json_array() -> None:
    for api in MODELS:
        for size in (0, 1, 50):
            shell = Shell(endpoint(api))
            path = path_of("gemini", stream=True, sse=False)
            answer = shell.run(path, request_body("gemini"), [streamed(api, make_reply(api, calls=CALLS), size)])
            assert answer.headers["content-type"] == "application/json"
            chunks = answer.body
            texts = [part.get("text", "") for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
            assert "".join(texts) == "Hello back."
            assert {chunk["modelVersion"] for chunk in chunks} == {ALIAS}


def test_broken_array_ends_with_the_error() -> None:
    data = stream_bytes("anthropic")
    shell = Shell(endpoint("anthropic"))
    answer = shell.run(path_of("gemini", stream=True, sse=False), request_body("gemini"), [Response([data[:-120]])])
    assert answer.status == 200
    assert "error" in answer.body[-1]


# ----------------------------------------------------------------------------------------------------- invalid requests


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"model": 3}', b"[" * 100_000, b'{"a":' * 5000]
)
@pytest.mark.parametrize("caller", CALLER_APIS)
def test_body_that_is_not_a_request(caller: str, body: bytes) -> None:
    answer = Shell(endpoint("anthropic")).run(path_of(caller), body)
    assert answer.status == 400
    assert WIRES[caller].parse_error(answer.status, answer.body).message
    assert answer.sent == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/threads/thread_1/messages"),
        ("POST", "/v1/messages/batches"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/messages"),
        ("GET", "/"),
        ("PUT", "/v1/chat/completions"),
        ("POST", "/v1beta/models/m:embedContent"),
        ("POST", ""),
    ],
)
def test_unknown_path(method: str, path: str) -> None:
    answer = Shell(endpoint("anthropic")).run(path, {}, method=method)
    assert answer.status == 404
    assert "does not translate" in answer.body["error"]["message"]
    assert answer.sent == []


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-5", "a/b/c", "arn:aws:x/y", "v1:0"])
def test_model_name_with_a_slash_or_colon(name: str) -> None:
    for path in (f"/v1beta/models/{name}:generateContent", f"/model/{name.replace('/', '%2F')}/converse"):
        shell = Shell(endpoint("anthropic"))
        caller = "gemini" if "models" in path else "bedrock"
        answer = shell.run(path, request_body(caller), [whole("anthropic")])
        assert answer.status == 200, answer.data
        assert shell.queries[0].model == name


def test_large_body_is_converted() -> None:
    text = "x" * 5_000_000
    answer = Shell(endpoint("anthropic")).run(
        "/v1/chat/completions", request_body("openai-chat", text=text), [whole("anthropic")]
    )
    assert answer.status == 200
    assert text in json.dumps(answer.sent_bodies[0])


def test_reply_above_the_limit_is_not_read_to_its_end() -> None:
    """The response has no end: more chunks than the relay reads would fail the test."""
    for caller in CALLER_APIS:
        shell = Shell(endpoint("anthropic"), limits=ReplyLimits(bytes=1000))
        relay = shell.open(path_of(caller), request_body(caller))
        assert isinstance(relay.actions[-1], Send)
        relay.feed(head())
        actions = []
        for _ in range(3):
            actions = relay.feed(b" " * 500)
            if actions:
                break
        assert isinstance(actions[0], Respond)
        assert actions[0].status >= 400
        assert relay.is_done


def head(status: int = 200) -> ResponseHead:
    return ResponseHead(status, {})


# --------------------------------------------------------------------------------------------------- a relay by itself


def _attributes(relay: Relay) -> None:
    """Read everything that can be read at any time."""
    _ = (relay.usage, relay.finish, relay.calls, relay.report, relay.target, relay.error)
    str(relay.report)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("caller", CALLER_APIS)
def test_attributes_can_be_read_at_any_time(caller: str, stream: bool) -> None:
    shell = Shell(endpoint("anthropic"))
    relay = shell.open(path_of(caller, stream=stream), request_body(caller, stream=stream))
    _attributes(relay)
    relay.feed(head())
    _attributes(relay)
    reply = make_reply("anthropic", thought="Hm.", calls=CALLS)
    data = stream_bytes("anthropic", reply) if stream else whole("anthropic", reply).chunks[0]
    for chunk in split(data, 40):
        relay.feed(chunk)
        _attributes(relay)
    relay.close()
    _attributes(relay)
    assert relay.finish == "tool_calls"
    assert relay.close() == relay.feed(b"more") == relay.fail("late") == relay.keep_alive() == []


@pytest.mark.parametrize("caller", CALLER_APIS)
def test_connection_lost_in_the_middle(caller: str) -> None:
    shell = Shell(endpoint("anthropic"))
    relay = shell.open(path_of(caller, stream=True), request_body(caller, stream=True))
    relay.feed(head())
    data = stream_bytes("anthropic", make_reply("anthropic", text="A longer text. " * 20))
    data = data.replace(b'"input_tokens":0', b'"input_tokens":11', 1)
    written = [action for chunk in split(data[: len(data) // 2], 60) for action in relay.feed(chunk)]
    actions = relay.fail("connection reset")
    assert isinstance(actions[-1], EndExchange)
    assert sum(isinstance(action, Respond) for action in [*written, *actions]) == 1
    assert relay.error is not None
    assert relay.error.retryable
    assert relay.usage is not None
    assert relay.usage.input == 11
    assert relay.finish == "error"
    _attributes(relay)


@pytest.mark.parametrize("api", MODELS)
def test_connection_lost_after_the_end_of_the_reply(api: str) -> None:
    """The reply is complete, however its connection ended."""
    broken = streamed(api, failure=TransportError("lost", "connection reset"))
    answer = Shell(endpoint(api)).run(path_of("openai-chat"), request_body("openai-chat", stream=True), [broken])
    parsed = parse_stream("openai-chat", answer.data)
    assert (parsed.text, parsed.finish) == ("Hello back.", "stop")
    assert answer.relay.error is None


# ---------------------------------------------------------------------------------------------------------- keep-alives


@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("caller", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_keep_alives_before_and_after_the_head(caller: str, api: str) -> None:
    shell = Shell(endpoint(api))
    relay = shell.open(path_of(caller, stream=True), request_body(caller, stream=True))
    actions = [*relay.actions, *relay.keep_alive(), *relay.keep_alive(), *relay.feed(head())]
    for chunk in split(stream_bytes(api), 50):
        actions += relay.feed(chunk)
        actions += relay.keep_alive()
    actions += relay.close()
    actions += relay.keep_alive()
    assert sum(isinstance(action, Respond) for action in actions) == 1
    data = b"".join(action.data for action in actions if isinstance(action, Write))
    parsed = parse_stream(caller, data)
    assert (parsed.text, parsed.finish) == ("Hello back.", "stop")


def test_no_keep_alive_where_the_api_has_none() -> None:
    whole_reply = Shell(endpoint("anthropic")).open(path_of("openai-chat"), request_body("openai-chat"))
    array = Shell(endpoint("anthropic")).open(path_of("gemini", stream=True, sse=False), request_body("gemini"))
    bedrock = Shell(endpoint("anthropic")).open(path_of("bedrock", stream=True), request_body("bedrock"))
    assert whole_reply.keep_alive() == array.keep_alive() == bedrock.keep_alive() == []


@pytest.mark.parametrize("caller", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_error_after_a_keep_alive_is_part_of_the_stream(caller: str) -> None:
    shell = Shell(endpoint("anthropic"))
    relay = shell.open(path_of(caller, stream=True), request_body(caller, stream=True))
    first = relay.keep_alive()
    assert isinstance(first[0], Respond)
    relay.feed(head(529))
    relay.feed(b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    actions = relay.close()
    assert not any(isinstance(action, Respond) for action in actions)
    data = b"".join(action.data for action in [*first, *actions] if isinstance(action, Write))
    assert b"verload" in data
    if caller == "gemini":
        # Clients of Gemini parse an error only as JSON in a write of its own.
        assert json.loads(data.splitlines()[-1])["error"]
        return
    parser = WIRES[caller].open_stream(DEFAULT_TURN_KEY)
    parser.feed(data)
    assert parser.error is not None


def test_fallback_after_a_keep_alive() -> None:
    shell = Shell(endpoint("anthropic"), endpoint("gemini", 1))
    relay = shell.open("/v1/chat/completions", request_body("openai-chat", stream=True))
    actions = relay.keep_alive()
    relay.feed(head(500))
    actions += relay.close()
    assert isinstance(actions[-1], Send)
    relay.feed(head())
    actions += relay.feed(stream_bytes("gemini"))
    actions += relay.close()
    assert sum(isinstance(action, Respond) for action in actions) == 1
    data = b"".join(action.data for action in actions if isinstance(action, Write))
    assert parse_stream("openai-chat", data).text == "Hello back."
    assert relay.target == f"p1/{MODELS['gemini']}"


# ------------------------------------------------------------------------------------------- fields of same-API streams


def test_same_api_stream_keeps_fields_that_come_late() -> None:
    """The caller's model name is set without a copy of fields that the stream still changes."""
    events = [
        (
            "message_start",
            {
                "message": {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-sonnet-5",
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {"input_tokens": 11, "output_tokens": 1},
                }
            },
        ),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "Hi."}}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {
                "delta": {"stop_reason": "end_turn", "stop_sequence": None, "container": {"id": "c_1"}},
                "usage": {"output_tokens": 42},
                "context_management": {"applied_edits": []},
            },
        ),
        ("message_stop", {}),
    ]
    data = b"".join(
        f"event: {name}\ndata: {json.dumps({'type': name, **value})}\n\n".encode() for name, value in events
    )
    for size in (0, 30):
        answer = Shell(endpoint("anthropic")).run(
            "/v1/messages", request_body("anthropic", stream=True), [Response(split(data, size))]
        )
        assert model_names(answer.data) == {ALIAS}
        end = next(
            json.loads(line[6:])
            for line in answer.data.decode().splitlines()
            if '"message_delta"' in line and line.startswith("data:")
        )
        assert end["usage"]["output_tokens"] == 42
        assert end["delta"]["container"] == {"id": "c_1"}
        assert end["context_management"] == {"applied_edits": []}

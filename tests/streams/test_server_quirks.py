"""Undocumented server behaviour seen in practice, and how it is converted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue._stream import ReplyStream, assemble, render_reply_body
from segue.render.report import Report
from segue.reply import SentRequest
from segue.wire.base import ApiError
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.registry import WIRES
from segue.wire.stream.events import Failed, ReplyStart
from tests.conversations.replies import responses_reply
from tests.streams.chat_events import STOP, TOOLS, calls, chunk, encode_chunks, entry
from tests.streams.parsing import Body, payloads_of, read, splits, sse
from tests.streams.rendering import render_stream
from tests.streams.responses_events import function, item_events, message, reasoning

NO_JSON = "{'city': 'Rome'}"


def converted_input(*pieces: str) -> tuple[str, list[str]]:
    """The input of a chat call streamed in these deltas as an Anthropic client gets it, and the findings."""
    report = Report(target="anthropic")
    chunks = [calls(entry(0, "call_1", "weather", "")), *(calls(entry(0, arguments=piece)) for piece in pieces), TOOLS]
    events, _ = read("openai-chat", encode_chunks(chunks))
    payloads = payloads_of(render_stream("anthropic", events, report))
    deltas = [payload["delta"] for payload in payloads if payload["type"] == "content_block_delta"]
    return "".join(delta["partial_json"] for delta in deltas), [finding.message for finding in report.findings]


@pytest.mark.parametrize(
    "pieces",
    [[NO_JSON], list(NO_JSON), ["{", "'city': 'Rome'}"], ["{\"city\": 'Rome'}"], ["{city:", "'Rome'}"], ["Ro", "me"]],
)
def test_non_json_arguments_are_sent_as_raw_text(pieces: list[str]) -> None:
    payloads, reported = converted_input(*pieces)
    assert json.loads(payloads) == {"_raw": "".join(pieces)}
    assert reported == ["arguments wrapped in an object as `_raw`: they are not valid JSON"]


@pytest.mark.parametrize("pieces", [['{"a":{"b":1}', "}"], list('{ "a" : {"b":1}}'), ["{", "}"], [' {"a":"}', '"}']])
def test_json_arguments_are_unchanged(pieces: list[str]) -> None:
    assert converted_input(*pieces) == ("".join(pieces), [])


def test_arguments_found_invalid_later_are_reported() -> None:
    payloads, reported = converted_input('{"city": "Rome", ', "'unit': 'C'}")
    assert payloads == "{\"city\": \"Rome\", 'unit': 'C'}"
    assert reported == ["arguments are not valid JSON; they were already streamed to the client"]


def test_an_error_beside_choices_is_an_error() -> None:
    failed = chunk({"content": ""}, "error", error={"code": 502, "message": "Provider disconnected"})
    events, reply = read("openai-chat", encode_chunks([chunk({"content": "Hel"}), failed]))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.status, events[-1].error.message) == (502, "Provider disconnected")
    assert (reply.text, reply.finish, reply.raw_finish) == ("Hel", "error", "Provider disconnected")
    assert reply.native is not None
    assert "error" not in reply.native.fragment


def test_error_in_the_first_chunk_is_sent_once_for_same_api() -> None:
    failed = chunk({"role": "assistant", "content": ""}, "error", error={"code": 502, "message": "gone"})
    events, _ = read("openai-chat", encode_chunks([failed, STOP]))
    payloads = payloads_of(render_stream("openai-chat", events))
    assert [payload.get("error", {}).get("message") for payload in payloads] == [None, "gone"]


def test_a_choice_that_ends_with_an_error_is_one() -> None:
    events, reply = read("openai-chat", encode_chunks([chunk({"content": "Hel"}), chunk({}, "error")]))
    assert isinstance(events[-1], Failed)
    assert (reply.finish, reply.raw_finish) == ("error", "the provider ended the reply with `error`")


def test_a_first_chunk_without_a_name_does_not_name_the_reply() -> None:
    filtered: Any = [{"prompt_index": 0, "content_filter_results": {}}]
    first = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": filtered}
    events, reply = read("openai-chat", encode_chunks([first, chunk({"content": "Hi"}), STOP]))
    assert isinstance(events[0], ReplyStart)
    assert (events[0].id, events[0].model, events[0].created) == ("chatcmpl-1", "gpt-4.1", 17)
    assert (reply.id, reply.model, reply.created) == ("chatcmpl-1", "gpt-4.1", 17)
    assert reply.native is not None
    assert reply.native.fragment["prompt_filter_results"] == filtered


def test_audio_deltas_are_joined() -> None:
    pieces = [{"id": "audio_1", "transcript": "Hel"}, {"transcript": "lo"}, {"data": "AA"}, {"data": "BB"}]
    chunks = [*(chunk({"audio": piece}) for piece in pieces), chunk({"audio": {"expires_at": 7}}), STOP]
    _, reply = read("openai-chat", encode_chunks(chunks))
    assert reply.native is not None
    audio = reply.native.fragment["choices"][0]["message"]["audio"]
    assert audio == {"id": "audio_1", "transcript": "Hello", "data": "AABB", "expires_at": 7}


def test_deepseek_cache_hits_are_counted() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4}
    _, reply = read("openai-chat", encode_chunks([chunk({"content": "Hi"}), {**STOP, "usage": usage}]))
    assert reply.usage is not None
    assert reply.usage.cache_read == 5


# --------------------------------------------------------------------------------------------------------- broken off

THOUGHT = reasoning("Think.", encrypted_content="gAAA")


def broken_off(*ending: Body) -> bytes:
    """A response with complete reasoning, half a message and half a call, and this ending."""
    body = responses_reply(THOUGHT, message("Hello there"), function('{"path": "a"}'))
    opening = {**body, "output": [], "usage": None, "status": "in_progress"}
    payloads = [{"type": "response.created", "response": opening}, *item_events(THOUGHT, 0, 3)]
    payloads += item_events(message("Hello there"), 1, 3)[:4]
    payloads += item_events(function('{"path": "a"}'), 2, 3)[:3]
    return sse(*payloads, *ending)


@pytest.mark.parametrize("ending", ["response.failed", "error", "no more"])
def test_broken_response_uses_the_providers_reason(ending: str) -> None:
    content = {"code": "rate_limit_exceeded", "message": "No."}
    failed = {**responses_reply(status="failed"), "error": content, "usage": None}
    ends: dict[str, list[Body]] = {
        "response.failed": [{"type": "response.failed", "response": failed}],
        "error": [{"type": "error", **content, "param": None}],
        "no more": [],
    }
    body, report = render_reply_body(assemble(broken_off(*ends[ending]), "openai-responses"), "openai-responses")
    early = {"code": "server_error", "message": "upstream connection error: the stream ended before the reply did"}
    assert (body["id"], body["status"], body["error"]) == (failed["id"], "failed", content if ends[ending] else early)
    thought, text = body["output"]
    assert thought == THOUGHT
    assert (text["id"], text["status"], text["content"][0]["text"]) == ("msg_1", "incomplete", "Hello ")
    assert [finding.message for finding in report.findings] == ["incomplete call of read_file dropped: it was cut off"]


def test_an_item_of_a_failed_response_that_is_in_progress_is_incomplete() -> None:
    half = {**message("Hel"), "status": "in_progress"}
    failed = {**responses_reply(half, status="failed"), "error": {"code": "server_error", "message": "No."}}
    reply = assemble(sse({"type": "response.failed", "response": failed}), "openai-responses")
    body, _ = render_reply_body(reply, "openai-responses")
    assert [item["status"] for item in body["output"]] == ["incomplete"]


HALF_CALLS: dict[str, bytes] = {
    "bedrock": sse(
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "weather"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"city": "Ro'}}}},
    ),
    "anthropic": sse(
        {"type": "message_start", "message": {"id": "msg_1", "model": "claude-sonnet-4-5", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"city": "Ro'},
        },
    ),
    "openai-chat": encode_chunks(
        [chunk({"content": "Hi"}), calls(entry(0, "c1", "weather", '{"city": "Ro'))], done=False
    ),
}


@pytest.mark.parametrize("api", HALF_CALLS)
def test_truncated_call_is_dropped_for_same_api(api: str) -> None:
    body, report = render_reply_body(assemble(HALF_CALLS[api], api), api)
    assert [finding.message for finding in report.findings] == ["incomplete call of weather dropped: it was cut off"]
    payloads = json.dumps(body)
    assert "Hi" in payloads
    assert not [word for word in ("weather", "_raw", "usage", "latency") if word in payloads]


# --------------------------------------------------------------------------------------------------------- beside words


def test_unknown_fields_are_kept_for_same_api() -> None:
    beside: list[Body] = [
        {"annotations": [{"type": "url_citation"}]},
        {"images": [{"type": "image_url"}]},
        {"audio": {"id": "audio_1", "transcript": "Hel"}},
        {"audio": {"transcript": "lo"}, "odd": 1},
    ]
    events, _ = read("openai-chat", encode_chunks([chunk({"content": "Hi"}), *map(chunk, beside), STOP]))
    payloads = payloads_of(render_stream("openai-chat", events))
    deltas = [payload["choices"][0]["delta"] for payload in payloads if payload["choices"]]
    audio = {"id": "audio_1", "transcript": "Hello"}
    assert {**beside[0], **beside[1], "audio": audio, "odd": 1} in deltas
    assert deltas[-1] == {}
    assert not [payload for payload in payloads if "audio" in payload]


def test_whole_chat_completion_is_streamed_for_same_api_without_its_choices() -> None:
    content = {"role": "assistant", "content": "Hi", "annotations": [{"type": "url_citation"}]}
    whole = {**chunk({}), "choices": [{"index": 0, "message": content, "finish_reason": "stop"}], "usage": None}
    events, _ = read("openai-chat", encode_chunks([whole]))
    data = render_stream("openai-chat", events)
    assert b'"message"' not in data
    assert {"annotations": content["annotations"]} in [one["choices"][0]["delta"] for one in payloads_of(data)]


def test_additional_choices_are_reported_for_same_api() -> None:
    second = {**STOP, "choices": [{"index": 1, "delta": {"content": "Ho"}, "finish_reason": "stop"}]}
    data = encode_chunks([chunk({"content": "Hi"}), second, STOP])
    content = ["1 more choice dropped: only the first is returned"]
    _, report = render_reply_body(assemble(data, "openai-chat"), "openai-chat")
    assert [finding.message for finding in report.findings] == content
    wire = WIRES["openai-chat"]
    request = wire.parse_request({"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}], "n": 2})
    sent = SentRequest(wire, request, NameMap(ANY_NAME), None, "auto", wire)
    stream = ReplyStream(sent, Report(target=wire.name), turn_key="turn-0")
    stream.feed(data)
    stream.close()
    assert [finding.message for finding in stream.report.findings] == content


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("api", sorted(set(WIRES) - {"bedrock"}))
def test_a_bare_error_between_the_events_is_an_error(api: str, indent: int | None) -> None:
    """Gemini and some servers send errors in mid-stream as JSON alone, without `data:`."""
    events, _ = read("openai-chat", encode_chunks([chunk({"content": "Hel"}), chunk({"content": "lo"})]))
    begun = render_stream(api, [event for event in events if not isinstance(event, Failed)])
    begun = begun.partition(b"event: response.output_text.done")[0]
    error = WIRES[api].render_error(ApiError(503, "Too busy.", "overloaded"))
    data = begun + json.dumps(error, indent=indent).encode()
    expected, reply = read(api, data)
    assert isinstance(expected[-1], Failed)
    assert (expected[-1].error.message, reply.text) == ("Too busy.", "Hello")
    for pieces in splits(data):
        assert read(api, pieces)[0][-1] == expected[-1]

"""Streams of Gemini: parsing every form of chunk, and rendering chunks that clients accept."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Media, Text, Thinking, ToolCall
from segue.errors import RemoteProtocolError
from segue.render.constraints import PLACEHOLDER_SIGNATURE
from segue.render.report import Report
from segue.wire.base import ApiError
from segue.wire.gemini import WIRE as GEMINI
from segue.wire.openai_responses import WIRE as OPENAI_RESPONSES
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    WholeBlock,
    reply_events,
)
from tests.bodies import gemini
from tests.catalog.vendor_catalog import samples
from tests.conversations.replies import gemini_reply
from tests.streams.corruption import read_garbled, reject_random_bytes
from tests.streams.parsing import Body, check_event_rules, content_of, join_deltas, payloads_of, read, splits, sse
from tests.streams.rendering import cross_api_events, render_stream, render_whole_reply

WIRE = GEMINI
USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}


def chunk(*parts: Body, finish: str | None = None, **around: Any) -> Body:
    candidate: Body = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    usage = {"usageMetadata": USAGE} if finish is not None else {"usageMetadata": {"promptTokenCount": 11}}
    return {"candidates": [candidate], **usage, "modelVersion": "gemini-3-pro", "responseId": "r1", **around}


def call(name: str, arguments: Body, signature: str | None = None, **more: Any) -> Body:
    return gemini.call(name=name, args=arguments, signature=signature, **more)


CHUNKS = [
    chunk({"text": "**Plan**\n", "thought": True}),
    chunk({"text": "Read it.", "thought": True}),
    chunk({"text": "Let me "}),
    chunk({"text": "look, wörld 😀."}),
    chunk(call("read_file", {"path": "a"}, "c2ln", id="call_1")),
    chunk(call("read_file", {"path": "b"}), call("read_file", {"path": "c"})),
    chunk({"text": ""}, finish="STOP"),
]


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def read_chunks(*chunks: Body) -> tuple[list[Event], Any]:
    return read(WIRE, sse(*chunks))


# ------------------------------------------------------------------------------------------------------------- reading


def test_a_reply_in_chunks() -> None:
    events, reply = read_chunks(*CHUNKS)
    assert reply.thinking == "**Plan**\nRead it."
    assert reply.text == "Let me look, wörld 😀."
    assert [one.arguments["path"] for one in reply.calls] == ["a", "b", "c"]
    assert (reply.finish, reply.raw_finish, reply.id, reply.model) == ("tool_calls", "STOP", "r1", "gemini-3-pro")
    assert texts(events) == ["Let me ", "look, wörld 😀."]
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["**Plan**\n", "Read it."]
    assert isinstance(events[0], ReplyStart)


@pytest.mark.parametrize("pieces", list(splits(sse(*CHUNKS))))
def test_any_split_of_the_bytes_gives_the_same(pieces: list[bytes]) -> None:
    assert join_deltas(read(WIRE, pieces)) == join_deltas(read(WIRE, sse(*CHUNKS)))


@pytest.mark.parametrize("pieces", list(splits(json.dumps(CHUNKS, indent=2).encode())))
def test_a_list_of_chunks(pieces: list[bytes]) -> None:
    """Without `alt=sse` the stream is one JSON list that grows."""
    assert join_deltas(read(WIRE, pieces)) == join_deltas(read(WIRE, sse(*CHUNKS)))


def test_body_equals_the_whole_reply() -> None:
    _, reply = read_chunks(*CHUNKS)
    assert reply.native is not None
    assert reply.native.fragment == {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "**Plan**\nRead it.", "thought": True},
                        {"text": "Let me look, wörld 😀."},
                        call("read_file", {"path": "a"}, "c2ln", id="call_1"),
                        call("read_file", {"path": "b"}),
                        call("read_file", {"path": "c"}),
                    ],
                },
                "index": 0,
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-3-pro",
        "responseId": "r1",
    }


def test_snake_case_is_read_as_well() -> None:
    """As clients of the vendor dump it."""
    one = {"candidates": [{"content": {"parts": [{"text": "Hm", "thought": True}]}, "index": 0}], "response_id": "r1"}
    signed = {"function_call": {"name": "f", "args": {"a": 1}}, "thought_signature": "c2ln"}
    two = {
        "candidates": [{"content": {"parts": [signed]}, "finish_reason": "STOP"}],
        "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 4},
        "model_version": "gemini-3-pro",
    }
    _, reply = read_chunks(one, two)
    assert [type(block) for block in reply.blocks] == [Thinking, Thinking, ToolCall]
    assert reply.blocks[1].signature == "c2ln"
    assert (reply.usage.input, reply.usage.output, reply.id, reply.finish) == (3, 4, "r1", "tool_calls")


def test_whole_calls_have_an_id_of_their_own_each() -> None:
    """GEM-25: one a chunk or several in one; the same call twice is two calls."""
    same = call("f", {"a": 1})
    events, reply = read_chunks(chunk(same), chunk(same, same), chunk(finish="STOP"))
    ids = [one.id for one in reply.calls]
    assert len(set(ids)) == 3
    assert [
        event.block.id for event in events if isinstance(event, BlockEnd) and isinstance(event.block, ToolCall)
    ] == ids


def test_a_call_that_is_repeated_under_its_id_is_one() -> None:
    one = call("f", {"a": 1}, id="call_1")
    _, reply = read_chunks(chunk(one), chunk(one), chunk(finish="STOP"))
    assert len(reply.calls) == 1


def test_parts_of_one_chunk_stay_apart() -> None:
    _, reply = read_chunks(chunk({"text": "a"}, {"text": "b"}), chunk({"text": "c"}, finish="STOP"))
    assert [block.text for block in reply.blocks] == ["a", "bc"]


def test_server_that_repeats_its_text() -> None:
    growing = ["I", "I will", "I will look", "I will look at it."]
    events, reply = read_chunks(
        *(chunk({"text": text}) for text in growing), chunk({"text": growing[-1]}, finish="STOP")
    )
    assert reply.text == "I will look at it."
    assert texts(events) == ["I", " will look", " at it."]


def test_a_server_that_repeats_a_long_text_and_a_call() -> None:
    long = "The quick brown fox jumps over the lazy dog"
    one = call("f", {"a": 1})
    _, reply = read_chunks(
        chunk({"text": long}),
        chunk({"text": f"{long} twice."}, one),
        chunk({"text": f"{long} twice."}, one, finish="STOP"),
    )
    assert reply.text == f"{long} twice."
    assert len(reply.calls) == 1


@pytest.mark.parametrize(
    "content",
    [
        ["ha", "haha", "hahaha"],
        ["-", "---", "-----"],
        ["I", "In the beginning", " was the word"],
        ["no", "no", "no"],
        ["Once", "Once upon a time"],
        ["a" * 40, "a" * 50],
    ],
)
def test_a_text_that_only_looks_repeated_is_kept(content: list[str]) -> None:
    _, reply = read_chunks(*(chunk({"text": text}) for text in content), chunk(finish="STOP"))
    assert reply.text == "".join(content)


def test_a_signature_on_an_empty_text_at_the_end() -> None:
    """GEM-21: it is a part of its own, and never moves to another one."""
    last = {"text": "", "thoughtSignature": "c2ln"}
    events, reply = read_chunks(chunk({"text": "Hi"}), chunk(last, finish="STOP"))
    assert [type(block) for block in reply.blocks] == [Text, Thinking]
    assert reply.blocks[1].signature == "c2ln"
    assert payloads_of(render_stream(WIRE, events))[-1]["candidates"][0]["content"]["parts"] == [last]


def test_signed_and_unsigned_texts_are_never_one() -> None:
    signed = {"text": "b", "thoughtSignature": "c2ln"}
    _, reply = read_chunks(
        chunk({"text": "a"}), chunk(signed), chunk({"text": "c"}), chunk({"text": "d"}, finish="STOP")
    )
    assert reply.native.fragment["candidates"][0]["content"]["parts"] == [{"text": "a"}, signed, {"text": "cd"}]


def test_a_signed_thought() -> None:
    signed = {"text": "so", "thought": True, "thoughtSignature": "c2ln"}
    _, reply = read_chunks(chunk({"text": "Hm, ", "thought": True}), chunk(signed, finish="STOP"))
    assert [(block.text, block.signature) for block in reply.blocks] == [("Hm, ", None), ("so", "c2ln")]


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
def test_a_call_that_went_wrong(reason: str) -> None:
    """GEM-26: there may be no content at all."""
    last = {"candidates": [{"finishReason": reason, "index": 0, "finishMessage": "bad"}], "usageMetadata": USAGE}
    events, reply = read_chunks(last)
    assert (reply.finish, reply.raw_finish, reply.blocks) == ("error", reason, ())
    assert events[-1] == Finished("error", reason)
    assert payloads_of(render_stream(WIRE, events))[-1]["candidates"][0]["finishReason"] == reason


def test_a_prompt_that_was_blocked() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}
    events, reply = read_chunks(blocked)
    assert (reply.finish, reply.blocks, reply.usage.input) == ("filter", (), 3)
    again = payloads_of(render_stream(WIRE, events))
    assert again[-1]["promptFeedback"] == {"blockReason": "SAFETY"}
    assert "candidates" not in again[-1]


def test_of_all_usage_the_last_counts() -> None:
    events, reply = read_chunks(*CHUNKS)
    assert (reply.usage.input, reply.usage.output) == (11, 7)
    assert sum(isinstance(event, UsageUpdate) for event in events) == 1


def test_a_last_chunk_without_parts() -> None:
    for last in (chunk(finish="STOP"), {"candidates": [{"finishReason": "STOP"}], "usageMetadata": USAGE}):
        _, reply = read_chunks(chunk({"text": "Hi"}), last)
        assert (reply.text, reply.finish, reply.usage.output) == ("Hi", "stop", 7)


def test_usage_alone_in_the_last_chunk() -> None:
    _, reply = read_chunks(
        chunk({"text": "Hi"}, finish="STOP"), {"usageMetadata": {**USAGE, "candidatesTokenCount": 9}}
    )
    assert reply.usage.output == 9


def test_an_empty_reply() -> None:
    _, reply = read_chunks(chunk({"text": ""}, finish="STOP"))
    assert [block.text for block in reply.blocks] == [""]


def test_arguments_in_pieces() -> None:
    """Vertex streams them by path on request."""
    grown = [
        {"functionCall": {"name": "book", "id": "call_1", "willContinue": True}, "thoughtSignature": "c2ln"},
        _piece("$.city", stringValue="Lis", willContinue=True),
        _piece("$.city", stringValue="bon", willContinue=True),
        _piece("$.city", stringValue=""),
        _piece("$.days[0].n", numberValue=1),
        _piece("$.days[1].n", numberValue=2.5),
        _piece("$['a b'].ok", boolValue=True),
        _piece("$.none", nullValue="NULL_VALUE"),
        {"functionCall": {}},
    ]
    events, reply = read_chunks(*map(chunk, grown), chunk(call("f", {"x": 1})), chunk(finish="STOP"))
    first, second = reply.calls
    assert first.arguments == {"city": "Lisbon", "days": [{"n": 1}, {"n": 2.5}], "a b": {"ok": True}, "none": None}
    assert (first.name, first.origin.raw_id, first.broken, second.arguments) == ("book", "call_1", False, {"x": 1})
    assert [type(block) for block in reply.blocks] == [Thinking, ToolCall, ToolCall]
    assert [type(event) for event in events[:4]] == [ReplyStart, BlockStart, BlockEnd, BlockStart]


def _piece(path: str, **value: Any) -> Body:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


def test_arguments_in_pieces_in_snake_case() -> None:
    pieces = [
        {"function_call": {"name": "f", "will_continue": True}},
        {"function_call": {"partial_args": [{"json_path": "$.a", "string_value": "x"}]}},
    ]
    _, reply = read_chunks(*map(chunk, pieces), chunk(finish="STOP"))
    assert [one.arguments for one in reply.calls] == [{"a": "x"}]


@pytest.mark.parametrize("finish", [None, "MAX_TOKENS", "STOP"])
def test_arguments_in_pieces_that_were_cut_off(finish: str | None) -> None:
    pieces = [{"functionCall": {"name": "f", "willContinue": True}}, _piece("$.a", stringValue="x", willContinue=True)]
    events, reply = read_chunks(*map(chunk, pieces), *([chunk(finish=finish)] if finish else []))
    (one,) = reply.calls
    assert (one.broken, one.arguments, one.arguments_text) == (True, None, '{"a":"x"')
    assert isinstance(events[-1], Finished if finish else Failed)


@pytest.mark.parametrize("caller", ["gemini", "openai-chat"])
def test_cut_off_call_is_never_complete(caller: str) -> None:
    """A call with `willContinue` in its last part is cut off, in a whole reply as in a stream."""
    declared = {"functionDeclarations": [{"name": "f"}]}
    body: Body = {"contents": [{"role": "user", "parts": [{"text": "q"}]}], "tools": [declared]}
    if caller != "gemini":
        body = segue.convert(body, source="gemini", target=caller).body
    made = segue.convert(body, source=caller, target="gemini", model="gemini-3-pro")
    part = {"functionCall": {"name": "f", "args": {"a": 1}, "willContinue": True}}
    with pytest.raises(RemoteProtocolError, match="not valid JSON"):
        made.reply(chunk(part, finish="STOP"))
    at_limit = chunk(part, finish="MAX_TOKENS")
    whole = str(made.reply(at_limit))
    assert "functionCall" not in whole
    assert "tool_calls" not in whole
    stream = made.stream()
    stream.feed(sse(at_limit))
    stream.close()
    assert stream.reply is not None
    assert [(call.broken, call.arguments_text) for call in stream.reply.calls] == [(True, '{"a":1')]


@pytest.mark.parametrize("path", ["$.a[7]", "a b", "$.a.b", "$[0]", "$" + ".a" * 600, "$.a[99999999999999999999]"])
def test_paths_that_lead_nowhere(path: str) -> None:
    parser = WIRE.open_stream("turn-1")
    with pytest.raises(RemoteProtocolError):  # noqa: PT012
        parser.feed(sse(chunk({"functionCall": {"name": "f", "willContinue": True, "args": {"a": "x"}}})))
        parser.feed(sse(chunk(_piece(path, stringValue="x"))))
        parser.close()


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "x"}, "id": "s1"}},
        {"novelty": {"a": 1}},
    ],
    ids=lambda part: next(iter(part)),
)
def test_non_streaming_parts_are_emitted_whole(part: Body) -> None:
    events, reply = read_chunks(chunk({"text": "a"}), chunk(part), chunk({"text": "b"}), chunk(finish="STOP"))
    (whole,) = [event.block for event in events if isinstance(event, WholeBlock)]
    assert whole.native is not None
    assert whole.native.fragment == part
    assert [type(block).__name__ for block in reply.blocks][::2] == ["Text", "Text"]


def test_of_several_candidates_the_first_is_read() -> None:
    both: Body = {
        "candidates": [
            {"content": {"parts": [{"text": "a"}]}, "index": 0},
            {"content": {"parts": [{"text": "x"}]}, "index": 1},
        ]
    }
    other = {"candidates": [{"content": {"parts": [{"text": "y"}]}, "index": 1, "finishReason": "STOP"}]}
    _, reply = read_chunks(both, other, chunk({"text": "b"}, finish="STOP"))
    assert (reply.text, reply.other_choices) == ("ab", 1)


def test_grounding_is_kept_for_same_api() -> None:
    last = chunk({"text": "b"}, finish="STOP")
    last["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["x"]}
    _, reply = read_chunks(chunk({"text": "a"}), last)
    assert reply.unknown_fields == ("groundingMetadata",)
    assert render_whole_reply(WIRE, reply)["candidates"][0]["groundingMetadata"] == {"webSearchQueries": ["x"]}


def test_chunks_in_an_envelope() -> None:
    """As the endpoint behind the vendor's terminal client sends them."""
    assert read(WIRE, sse(*({"response": one, "traceId": "t"} for one in CHUNKS)))[1].text == "Let me look, wörld 😀."


ERROR = {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize("data", [sse(ERROR), json.dumps([ERROR]).encode()])
def test_an_error_instead_of_a_stream(data: bytes) -> None:
    parser = WIRE.open_stream("turn-1")
    parser.feed(data)
    with pytest.raises(RemoteProtocolError, match=r"Slow down\.") as caught:
        parser.close()
    assert (caught.value.status, caught.value.code) == (429, "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize(
    "last",
    [
        sse(ERROR),
        b"data: " + json.dumps([ERROR]).encode() + b"\n\n",
        json.dumps(ERROR).encode(),
        json.dumps(ERROR, indent=2).encode() + b"\n",
        json.dumps([ERROR], indent=2).encode() + b"\n\n",
    ],
)
def test_an_error_in_the_stream(last: bytes) -> None:
    events, reply = read(WIRE, sse(*CHUNKS[:5]) + last)
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.status, events[-1].error.message) == (429, "Slow down.")
    assert (reply.finish, reply.text) == ("error", "Let me look, wörld 😀.")


@pytest.mark.parametrize("stop", range(1, len(CHUNKS)))
def test_a_stream_that_is_cut_off_anywhere(stop: int) -> None:
    events, reply = read_chunks(*CHUNKS[:stop])
    assert reply.finish == "error"
    assert isinstance(events[-1], Failed)
    assert not any(one.broken for one in reply.calls)


def test_characters_cut_in_two() -> None:
    events, reply = read_chunks(chunk({"text": "a \ud83d"}), chunk({"text": "\ude00 b"}, finish="STOP"))
    assert (reply.text, texts(events)) == ("a 😀 b", ["a ", "😀 b"])
    assert reply.native.fragment["candidates"][0]["content"]["parts"] == [{"text": "a 😀 b"}]


def test_garbage_is_a_value_or_a_remote_protocol_error() -> None:
    grown = [chunk({"functionCall": {"name": "f", "willContinue": True}}), chunk(_piece("$.a", stringValue="x"))]
    assert read_garbled(WIRE, [*CHUNKS, *grown, ERROR], 3000, OPENAI_RESPONSES) > 300


def test_random_bytes() -> None:
    reject_random_bytes(WIRE)


# ------------------------------------------------------------------------------------------------------------- writing


def test_stream_is_unchanged_for_same_api() -> None:
    events, reply = read_chunks(*CHUNKS)
    for step in (1, 4, 100):
        data = render_stream(WIRE, events, step=step)
        assert read(WIRE, data)[1] == reply
        assert [part for one in payloads_of(data) for part in one["candidates"][0]["content"]["parts"]] == [
            part for one in CHUNKS for part in one["candidates"][0]["content"]["parts"] if part != {"text": ""}
        ]


def test_whole_reply_is_unchanged_for_same_api() -> None:
    body = gemini_reply(
        {"text": "Hm", "thought": True, "thoughtSignature": "YQ=="},
        {"text": "Hi", "thoughtSignature": "Yg=="},
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "Yw=="},
        call("f", {"a": 1}, "ZA=="),
        call("g", {}),
        {"text": "", "thoughtSignature": "ZQ=="},
    )
    reply = read(WIRE, json.dumps(body).encode())[1]
    assert content_of(reply) == content_of(WIRE.parse_reply(body))
    again = read(WIRE, render_stream(WIRE, reply_events(reply)))[1]
    assert again.native is not None
    assert again.native.fragment["candidates"][0]["content"]["parts"] == body["candidates"][0]["content"]["parts"]


def test_first_cross_api_call_is_signed() -> None:
    """GEM-15, GEM-17: the client sends it back, and the API rejects it unsigned."""
    calls = [ToolCall("f", {"a": at}, id=f"hist_tool_{at}") for at in range(2)]
    data = render_stream(WIRE, cross_api_events(Text("Hi"), *calls, finish="tool_calls"))
    parts = [part for one in payloads_of(data) for part in one["candidates"][0]["content"]["parts"]]
    assert [part.get("thoughtSignature") for part in parts] == [None, PLACEHOLDER_SIGNATURE, None]
    assert parts[1]["functionCall"] == {"id": "call_0", "name": "f", "args": {"a": 0}}


def test_the_end_comes_with_the_last_call() -> None:
    """An empty text behind a call would be sent back by clients."""
    data = render_stream(WIRE, cross_api_events(ToolCall("f", {}, id="hist_tool_0"), finish="tool_calls"))
    (one,) = payloads_of(data)
    assert one["candidates"][0]["finishReason"] == "STOP"
    assert "functionCall" in one["candidates"][0]["content"]["parts"][0]


def test_a_broken_call_is_left_out_and_reported() -> None:
    report = Report(target=WIRE.name)
    half = ToolCall("f", None, id="hist_tool_0", arguments_text='{"a', broken=True)
    data = render_stream(WIRE, cross_api_events(Text("Hi"), half, finish="length"), report)
    assert read(WIRE, data)[1].calls == ()
    assert payloads_of(data)[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert ["cut off" in finding.message for finding in report.findings] == [True]


def test_reasoning_of_other_providers_is_never_signed() -> None:
    report = Report(target=WIRE.name)
    data = render_stream(
        WIRE, cross_api_events(Thinking("Hm", signature="sig"), Thinking(signature="sig"), Text("Hi")), report
    )
    parts = [part for one in payloads_of(data) for part in one["candidates"][0]["content"]["parts"]]
    assert parts == [{"text": "Hm", "thought": True}, {"text": "Hi"}, {"text": ""}]
    assert len(report.findings) == 1


def test_failure_is_rendered_as_an_error() -> None:
    events = [*cross_api_events(Text("Hi"))[:-1], Failed(ApiError(429, "Slow down."))]
    data = render_stream(WIRE, events)
    assert payloads_of(data)[-1] == {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}
    assert isinstance(read(WIRE, data)[0][-1], Failed)


def test_hosted_call_of_another_provider_is_dropped_and_reported() -> None:
    report = Report(target=WIRE.name)
    hosted = ToolCall("web_search", {"q": 1}, id="hist_tool_0", kind="hosted")
    data = render_stream(WIRE, cross_api_events(hosted, hosted.respond("found"), Text("Hi")), report)
    reply = read(WIRE, data)[1]
    assert (len(reply.blocks), reply.text) == (1, "Hi")
    assert [finding.subject for finding in report.findings] == ["web_search"]


def test_image_is_emitted_whole() -> None:
    data = render_stream(WIRE, cross_api_events(Text("Look"), Media("image", mime="image/png", data="aGk=")))
    assert {"inlineData": {"mimeType": "image/png", "data": "aGk="}} in [
        part for one in payloads_of(data) for part in one["candidates"][0]["content"]["parts"]
    ]


def test_calls_that_grow_at_once_keep_their_order() -> None:
    events: list[Event] = [
        ReplyStart("x", "m"),
        BlockStart(0, ToolCall("f", id="hist_tool_0")),
        BlockStart(1, Text("")),
        TextDelta(1, "Hi"),
        InputDelta(0, '{"a":1}'),
        BlockEnd(1, Text("Hi")),
        BlockEnd(0, ToolCall("f", {"a": 1}, id="hist_tool_0")),
        Finished("tool_calls"),
    ]
    for step in (1, 3, 8):
        reply = read(WIRE, render_stream(WIRE, events, step=step))[1]
        assert [type(block) for block in reply.blocks] == [Thinking, ToolCall, Text]


# What of the catalogue is a part of a content, and whole.
PARTS = [
    sample
    for sample in samples()
    if sample.provider == "gemini" and "type" not in sample.payload and sample.case != "streamed arguments"
]
assert len(PARTS) >= 19


@pytest.mark.parametrize("sample", PARTS, ids=str)
def test_catalog_parts_survive_a_round_trip(sample: Any) -> None:
    body = gemini_reply(sample.payload, {"text": "Hi"})
    whole = WIRE.parse_reply(body)
    events, reply = read(WIRE, json.dumps(body).encode())
    assert content_of(reply) == content_of(whole)
    for some in (events, reply_events(reply)):
        check_event_rules(some)
        again = read(WIRE, render_stream(WIRE, some))[1]
        assert content_of(again) == content_of(whole)


def test_a_response_of_another_api_becomes_the_same_reply() -> None:
    items = [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a": 1}'},
    ]
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": items}
    events, reply = read(OPENAI_RESPONSES, json.dumps(body).encode())
    again = read(WIRE, render_stream(WIRE, events))[1]
    assert again.thinking == "Hm"
    assert [(one.name, one.arguments) for one in again.calls] == [(one.name, one.arguments) for one in reply.calls]

"""Parsing streams of Converse."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.blocks import Media, Native, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Usage
from segue.errors import RemoteProtocolError
from segue.wire.base import ApiError
from segue.wire.bedrock import WIRE as BEDROCK
from segue.wire.stream.aws_events import encode_aws_message
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    WholeBlock,
)
from tests.budget import examples
from tests.conversations.build import PNG, thought, tool_use
from tests.conversations.replies import bedrock_reply
from tests.each import for_each
from tests.streams.bedrock_events import (
    CITATION,
    META,
    RECORDED,
    START,
    USAGE,
    block_start,
    block_stop,
    call_start,
    delta,
    encode_events,
    input_delta,
    message_stop,
    read_reply,
    read_stream,
    reasoning_delta,
    text_delta,
)
from tests.streams.corruption import mutants, read_or_reject, round_trip_or_reject
from tests.streams.parsing import (
    check_blocks,
    join_deltas,
    only_call,
    read,
    read_payloads,
    splits,
    started_call,
    strip_ids,
)
from tests.streams.rendering import render_stream


def test_recorded_stream_equals_the_whole_reply() -> None:
    events, reply = read_stream(*RECORDED)
    content = [
        thought("Let me see. 🌍"),
        {"text": "Reading it… é"},
        tool_use("tooluse_1", value={"path": "ä\n", "n": [1]}),
    ]
    body = bedrock_reply(*content)
    assert reply.native == Native("bedrock", body)
    assert strip_ids(reply) == strip_ids(BEDROCK.parse_reply(body))
    assert [type(event) for event in events if not isinstance(event, InputDelta)] == [
        *(ReplyStart, BlockStart, ThinkingDelta, ThinkingDelta, BlockEnd, BlockStart, TextDelta, TextDelta, BlockEnd),
        *(BlockStart, BlockEnd, UsageUpdate, Finished),
    ]


@pytest.mark.parametrize("pieces", list(splits(encode_events(*RECORDED))))
def test_any_split_gives_the_same_events(pieces: list[bytes]) -> None:
    assert join_deltas(read(BEDROCK, pieces)) == join_deltas(read(BEDROCK, encode_events(*RECORDED)))


def test_call_has_its_canonical_id_from_the_start() -> None:
    parser = BEDROCK.open_stream("turn-7")
    parser.feed(encode_events(START, call_start(0)))
    begun = started_call(parser.events()[-1])
    assert (begun.name, begun.origin.raw_id) == ("read_file", "tooluse_1")
    parser.feed(encode_events(input_delta(0, "{}"), block_stop(0), message_stop("tool_use"), META))
    assert only_call(parser.close()).id == begun.id


def test_text_is_emitted_as_it_arrives() -> None:
    parser = BEDROCK.open_stream("turn-7")
    parser.feed(encode_events(START, text_delta(0, "Hel")))
    parser.events()
    parser.feed(encode_events(text_delta(0, "lo")))
    assert parser.events() == [TextDelta(0, "lo")]


@pytest.mark.parametrize("pieces", [["", '{"path": "a"}'], list('{"path": "a"}'), ['{"path":', "", ' "a"}']])
def test_input_in_fragments(pieces: list[str]) -> None:
    reply = read_reply(
        call_start(0), *[input_delta(0, piece) for piece in pieces], block_stop(0), message_stop("tool_use")
    )
    assert only_call(reply).arguments == {"path": "a"}


def test_no_input_means_no_arguments() -> None:
    assert only_call(read_reply(call_start(0), block_stop(0), message_stop("tool_use"))).arguments == {}
    assert (
        only_call(read_reply(call_start(0), input_delta(0, ""), block_stop(0), message_stop("tool_use"))).arguments
        == {}
    )


@pytest.mark.parametrize("given", [{"path": "a"}, '{"path": "a"}'])
def test_input_that_is_an_object_or_stands_in_the_first_event(given: Any) -> None:
    assert only_call(read_reply(call_start(0, input=given), block_stop(0), message_stop("tool_use"))).arguments == {
        "path": "a"
    }
    assert only_call(
        read_reply(call_start(0), input_delta(0, given), block_stop(0), message_stop("tool_use"))
    ).arguments == {"path": "a"}


def test_text_without_a_block_start() -> None:
    reply = read_reply(
        text_delta(0, "Hel"),
        text_delta(0, "lo"),
        block_stop(0),
        call_start(1),
        block_stop(1),
        text_delta(2, "."),
        block_stop(2),
        message_stop("tool_use"),
    )
    assert [type(block) for block in reply.blocks] == [Text, ToolCall, Text]
    assert reply.text == "Hello."


def test_text_with_a_block_start() -> None:
    assert read_reply(block_start(0), text_delta(0, "Hello."), block_stop(0), message_stop()).text == "Hello."
    assert read_reply(block_start(0, text=""), text_delta(0, "Hello."), block_stop(0), message_stop()).text == "Hello."


def test_reasoning_and_its_signature() -> None:
    block = read_reply(
        reasoning_delta(0, text="Hm."), reasoning_delta(0, signature="c2ln"), block_stop(0), message_stop()
    ).blocks[0]
    assert isinstance(block, Thinking)
    assert (block.text, block.signature) == ("Hm.", "c2ln")
    block = read_reply(
        reasoning_delta(0, text="Hm."),
        reasoning_delta(0, signature="c2"),
        reasoning_delta(0, signature="ln"),
        block_stop(0),
        message_stop(),
    ).blocks[0]
    assert isinstance(block, Thinking)
    assert block.signature == "c2ln"


def test_redacted_reasoning() -> None:
    sealed = base64.b64encode(b"sealed").decode()
    reply = read_reply(
        reasoning_delta(0, redactedContent=sealed), block_stop(0), text_delta(1, "So."), block_stop(1), message_stop()
    )
    assert isinstance(reply.blocks[0], Thinking)
    assert reply.blocks[0].encrypted == sealed
    payloads = [
        START,
        reasoning_delta(0, redactedContent=b"sea"),
        reasoning_delta(0, redactedContent=b"led"),
        block_stop(0),
        message_stop(),
    ]
    (block,) = read_payloads(BEDROCK, payloads)[1].blocks
    assert isinstance(block, Thinking)
    assert block.encrypted == sealed


def test_reasoning_and_redacted_reasoning_under_one_index() -> None:
    reply = read_reply(
        reasoning_delta(0, text="Hm."), reasoning_delta(0, redactedContent="c2VhbGVk"), block_stop(0), message_stop()
    )
    assert [(block.text, block.encrypted) for block in reply.blocks if isinstance(block, Thinking)] == [
        ("Hm.", None),
        ("", "c2VhbGVk"),
    ]


def test_usage_and_metrics_come_after_the_stop() -> None:
    used = {**USAGE, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 2}
    meta = {"metadata": {**META["metadata"], "usage": used}}
    events, reply = read_stream(START, text_delta(0, "Hm."), block_stop(0), message_stop(), meta)
    assert reply.usage == Usage(16, 7, 3, 2)
    assert events[-2] == UsageUpdate(Usage(16, 7, 3, 2))
    assert reply.native is not None
    assert reply.native.fragment["metrics"] == {"latencyMs": 551}


EXCEPTIONS = {
    "throttlingException": (429, "ThrottlingException"),
    "modelStreamErrorException": (424, "ModelStreamErrorException"),
    "validationException": (400, "ValidationException"),
    "serviceUnavailableException": (503, "ServiceUnavailableException"),
    "internalServerException": (500, "InternalServerException"),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_inside_the_reply(name: str) -> None:
    payloads = [START, text_delta(0, "Hm."), block_stop(0), call_start(1), input_delta(1, '{"path": "a')]
    events, reply = read_stream(*payloads, {name: {"message": "No more."}})
    status, kind = EXCEPTIONS[name]
    assert events[-1] == Failed(ApiError(status, "No more.", kind=kind))
    assert (reply.text, reply.finish, reply.raw_finish) == ("Hm.", "error", "No more.")
    assert only_call(reply).broken
    assert only_call(reply).arguments_text == '{"path": "a'


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_before_the_reply(name: str) -> None:
    for data in (encode_events({name: {"message": "No."}}), json.dumps({name: {"message": "No."}}).encode()):
        with pytest.raises(RemoteProtocolError) as caught:
            read(BEDROCK, data)
        assert (caught.value.status, caught.value.kind) == EXCEPTIONS[name]


def test_an_error_that_stands_in_the_headers() -> None:
    data = encode_aws_message(b"", message_type="error", error_code="InternalFailure", error_message="Out of order.")
    events, reply = read(BEDROCK, encode_events(START, text_delta(0, "Hm.")) + data)
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, reply.raw_finish) == ("InternalFailure", "Out of order.")


def test_an_exception_without_a_payload() -> None:
    data = encode_aws_message(b"", message_type="exception", exception_type="throttlingException")
    events, _ = read(BEDROCK, encode_events(START, text_delta(0, "Hm.")) + data)
    assert isinstance(events[-1], Failed)
    assert events[-1].error.status == 429


def test_an_error_body_at_once_instead_of_a_stream() -> None:
    with pytest.raises(RemoteProtocolError, match="The model is gone"):
        read(BEDROCK, b'{"message": "The model is gone."}')


def test_a_reply_at_once_instead_of_a_stream() -> None:
    body = bedrock_reply(thought("Hm."), {"text": "Hello."}, tool_use("tooluse_1", value={"path": "a"}))
    events, reply = read(BEDROCK, json.dumps(body).encode())
    check_blocks(events, reply)
    assert strip_ids(reply) == strip_ids(BEDROCK.parse_reply(body))


def test_missing_stops() -> None:
    reply = read_reply(text_delta(0, "Hm."), call_start(1), input_delta(1, '{"path": "a"}'), message_stop("tool_use"))
    assert (reply.text, only_call(reply).arguments) == ("Hm.", {"path": "a"})


def test_a_missing_message_start_and_missing_metadata() -> None:
    _, reply = read_stream(text_delta(0, "Hm."), block_stop(0), message_stop())
    assert (reply.text, reply.finish, reply.usage) == ("Hm.", "stop", None)


def test_several_blocks_open_at_once() -> None:
    payloads = [
        call_start(0, "a"),
        call_start(1, "b"),
        input_delta(1, '{"n": '),
        input_delta(0, '{"n": '),
        input_delta(1, "1}"),
        input_delta(0, "0}"),
    ]
    reply = read_reply(
        *payloads, text_delta(2, "Both."), block_stop(1), block_stop(0), block_stop(2), message_stop("tool_use")
    )
    assert [(call.origin.raw_id, call.arguments) for call in reply.calls] == [("a", {"n": 0}), ("b", {"n": 1})]


def test_missing_and_repeated_indexes() -> None:
    payloads = [
        text_delta(None, "Hm."),
        block_stop(None),
        call_start(None, "a"),
        input_delta(None, '{"n": 0}'),
        block_stop(None),
    ]
    assert only_call(read_reply(*payloads, message_stop("tool_use"))).arguments == {"n": 0}
    payloads = [
        call_start(0, "a"),
        input_delta(0, '{"n": 0}'),
        call_start(0, "b"),
        input_delta(0, '{"n": 1}'),
        text_delta(0, "Hm."),
    ]
    reply = read_reply(*payloads, message_stop("tool_use"))
    assert [call.arguments for call in reply.calls] == [{"n": 0}, {"n": 1}]
    assert reply.text == "Hm."


def test_input_without_a_call_is_not_added_to_another_call() -> None:
    ended = [call_start(0, "a"), input_delta(0, '{"n": 0}'), block_stop(0), call_start(1, "b")]
    for payloads in ([input_delta(0, "{}")], [*ended, input_delta(0, '{"n": 1}')]):
        with pytest.raises(RemoteProtocolError, match="not started or has ended"):
            read(BEDROCK, encode_events(START, *payloads))


@pytest.mark.parametrize("pieces", [[], ['{"path": "a'], ["{"]])
@pytest.mark.parametrize("stopped", [True, False])
def test_a_call_that_the_length_limit_cut_off_is_broken(pieces: list[str], stopped: bool) -> None:
    payloads = [call_start(0), *[input_delta(0, piece) for piece in pieces], *([block_stop(0)] if stopped else [])]
    call = only_call(read_reply(*payloads, message_stop("max_tokens")))
    assert (call.broken, call.arguments, call.arguments_text) == (True, None, "".join(pieces))


@pytest.mark.parametrize("at", range(2, len(RECORDED) - 2))
def test_a_stream_that_ends_early_keeps_what_arrived(at: int) -> None:
    events, reply = read(BEDROCK, encode_events(*RECORDED[:at]))
    check_blocks(events, reply)
    assert (reply.finish, isinstance(events[-1], Failed)) == ("error", True)
    assert [call.broken for call in reply.calls] in ([], [reply.calls and reply.calls[0].arguments is None])
    assert "Reading it… é".startswith(reply.text)


def test_citations() -> None:
    payloads = [
        text_delta(0, "Sky."),
        delta(0, citation=CITATION),
        delta(0, citation={**CITATION, "title": "B"}),
        block_stop(0),
    ]
    events, reply = read_stream(START, *payloads, message_stop(), META)
    cited = {"citationsContent": {"content": [{"text": "Sky."}], "citations": [CITATION, {**CITATION, "title": "B"}]}}
    assert reply.text == "Sky."
    assert reply.blocks[0].native == Native("bedrock", cited)
    assert read(BEDROCK, render_stream(BEDROCK, events))[1] == reply


def test_hosted_blocks_are_emitted_whole() -> None:
    payloads = [
        call_start(0, "tooluse_s1", "nova_grounding", type="server_tool_use"),
        input_delta(0, '{"query": '),
        input_delta(0, '"sky"}'),
        block_stop(0),
        block_start(1, toolResult={"toolUseId": "tooluse_s1", "status": "success"}),
        delta(1, toolResult=[{"text": "blue"}]),
        delta(1, toolResult=[{"json": {"a": 1}}]),
        block_stop(1),
    ]
    events, reply = read_stream(START, *payloads, message_stop(), META)
    assert [type(event) for event in events[1:-2]] == [WholeBlock, WholeBlock]
    call, result = reply.blocks
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResponse)
    assert (call.kind, call.arguments, result.hosted) == ("hosted", {"query": "sky"}, True)
    assert result.native is not None
    assert result.native.fragment["toolResult"]["content"] == [{"text": "blue"}, {"json": {"a": 1}}]
    assert reply.finish == "stop"


def test_a_picture() -> None:
    payloads = [block_start(0, image={"format": "png"}), delta(0, image={"source": {"bytes": PNG}}), block_stop(0)]
    (block,) = read_reply(*payloads, message_stop()).blocks
    assert isinstance(block, Media)
    assert (block.mime, block.data) == ("image/png", PNG)
    given = [
        START,
        payloads[0],
        delta(0, image={"source": {"bytes": base64.b64decode(PNG)}}),
        block_stop(0),
        message_stop(),
        META,
    ]
    assert read_payloads(BEDROCK, given)[1].blocks == (block,)


def test_incomplete_image_is_kept_but_is_no_image() -> None:
    _, reply = read_stream(START, text_delta(0, "See:"), block_stop(0), block_start(1, image={"format": "png"}))
    assert (reply.text, reply.finish) == ("See:", "error")
    assert isinstance(reply.blocks[1], Opaque)


@pytest.mark.parametrize("reason", [[], {}, 3, ["max_tokens"]])
def test_unknown_stop_reason(reason: Any) -> None:
    payloads = [START, call_start(0), {"messageStop": {"stopReason": reason}}]
    assert read_stream(*payloads)[1].finish == "tool_calls"
    assert BEDROCK.parse_reply({**bedrock_reply(), "stopReason": reason}).finish == "stop"


def test_unknown_block_kinds_are_kept_for_same_api() -> None:
    payloads = [
        block_start(0, melody={"key": "C"}),
        delta(0, melody={"notes": ["c"]}),
        delta(0, melody={"notes": ["d"]}),
    ]
    (block,) = read_reply(*payloads, block_stop(0), message_stop()).blocks
    assert isinstance(block, Opaque)
    assert block.native is not None
    assert block.native.fragment == {"melody": {"key": "C", "notes": ["c", "d"]}}


def test_unknown_events_are_ignored() -> None:
    odd = {"weather": {"message": "sunny"}}
    assert read_reply(odd, text_delta(0, "Hm."), odd, block_stop(0), message_stop()).text == "Hm."


@for_each("seed", range(300))
def test_mutated_streams_give_a_value_or_a_remote_error(seed: int) -> None:
    server = [
        call_start(3, type="server_tool_use"),
        input_delta(3, "{}"),
        block_stop(3),
        block_start(4, image={"format": "png"}),
    ]
    payloads = mutants([*RECORDED[:-2], *server, delta(4, image={"source": {"bytes": PNG}}), *RECORDED[-2:]], seed)
    round_trip_or_reject(BEDROCK, "\n".join(json.dumps(payload) for payload in payloads if payload).encode())


@given(st.binary(max_size=200))
@examples(5)
def test_random_bytes_give_a_value_or_a_remote_error(data: bytes) -> None:
    read_or_reject(BEDROCK, data)
    read_or_reject(BEDROCK, encode_events(START, call_start(0)) + data)
    headers = {"event_type": "contentBlockDelta", "message_type": "event"}
    read_or_reject(BEDROCK, encode_events(START) + encode_aws_message(data, **headers))


def test_a_damaged_message_is_a_remote_error() -> None:
    data = encode_events(*RECORDED)
    for at in range(0, len(data), 7):
        spoiled = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        read_or_reject(BEDROCK, spoiled)

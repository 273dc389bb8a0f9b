"""Parsing streams of Converse."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.canonical.blocks import Media, Native, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Usage
from segue.errors import RemoteProtocolError
from segue.wire.base import ApiError
from segue.wire.bedrock import BEDROCK
from segue.wire.events import (
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
from segue.wire.framing import encode_aws_message
from tests.conversations.build import PNG, thought, tool_use
from tests.conversations.replies import bedrock_reply
from tests.each import for_each

from .bedrock_events import (
    CITATION,
    META,
    RECORDED,
    START,
    USAGE,
    begin,
    begin_call,
    delta,
    end,
    framed,
    put,
    say,
    spoken,
    stop,
    think,
    told,
)
from .reading import (
    bare,
    call_begun,
    joined,
    only_call,
    read,
    splits,
    taken,
    tell_each_block,
)
from .spoiling import mutants, read_and_write_or_refuse, read_or_refuse
from .writing import written


def test_recorded_stream_equals_the_whole_reply() -> None:
    events, reply = told(*RECORDED)
    content = [
        thought("Let me see. 🌍"),
        {"text": "Reading it… é"},
        tool_use("tooluse_1", value={"path": "ä\n", "n": [1]}),
    ]
    body = bedrock_reply(*content)
    assert reply.native == Native("bedrock", body)
    assert bare(reply) == bare(BEDROCK.parse_reply(body))
    assert [type(event) for event in events if not isinstance(event, InputDelta)] == [
        *(ReplyStart, BlockStart, ThinkingDelta, ThinkingDelta, BlockEnd, BlockStart, TextDelta, TextDelta, BlockEnd),
        *(BlockStart, BlockEnd, UsageUpdate, Finished),
    ]


@pytest.mark.parametrize("pieces", list(splits(framed(*RECORDED))))
def test_any_split_gives_the_same_events(pieces: list[bytes]) -> None:
    assert joined(read(BEDROCK, pieces)) == joined(read(BEDROCK, framed(*RECORDED)))


def test_call_has_its_canonical_id_from_the_start() -> None:
    parser = BEDROCK.open_stream("turn-7")
    parser.feed(framed(START, begin_call(0)))
    begun = call_begun(parser.events()[-1])
    assert (begun.name, begun.origin.raw_id) == ("read_file", "tooluse_1")
    parser.feed(framed(put(0, "{}"), stop(0), end("tool_use"), META))
    assert only_call(parser.close()).id == begun.id


def test_text_is_emitted_as_it_arrives() -> None:
    parser = BEDROCK.open_stream("turn-7")
    parser.feed(framed(START, say(0, "Hel")))
    parser.events()
    parser.feed(framed(say(0, "lo")))
    assert parser.events() == [TextDelta(0, "lo")]


@pytest.mark.parametrize("pieces", [["", '{"path": "a"}'], list('{"path": "a"}'), ['{"path":', "", ' "a"}']])
def test_input_in_fragments(pieces: list[str]) -> None:
    reply = spoken(begin_call(0), *[put(0, piece) for piece in pieces], stop(0), end("tool_use"))
    assert only_call(reply).arguments == {"path": "a"}


def test_no_input_means_no_arguments() -> None:
    assert only_call(spoken(begin_call(0), stop(0), end("tool_use"))).arguments == {}
    assert only_call(spoken(begin_call(0), put(0, ""), stop(0), end("tool_use"))).arguments == {}


@pytest.mark.parametrize("given", [{"path": "a"}, '{"path": "a"}'])
def test_input_that_is_an_object_or_stands_in_the_first_event(given: Any) -> None:
    assert only_call(spoken(begin_call(0, input=given), stop(0), end("tool_use"))).arguments == {"path": "a"}
    assert only_call(spoken(begin_call(0), put(0, given), stop(0), end("tool_use"))).arguments == {"path": "a"}


def test_text_without_a_block_start() -> None:
    reply = spoken(say(0, "Hel"), say(0, "lo"), stop(0), begin_call(1), stop(1), say(2, "."), stop(2), end("tool_use"))
    assert [type(block) for block in reply.blocks] == [Text, ToolCall, Text]
    assert reply.text == "Hello."


def test_text_with_a_block_start() -> None:
    assert spoken(begin(0), say(0, "Hello."), stop(0), end()).text == "Hello."
    assert spoken(begin(0, text=""), say(0, "Hello."), stop(0), end()).text == "Hello."


def test_reasoning_and_its_signature() -> None:
    block = spoken(think(0, text="Hm."), think(0, signature="c2ln"), stop(0), end()).blocks[0]
    assert isinstance(block, Thinking)
    assert (block.text, block.signature) == ("Hm.", "c2ln")
    block = spoken(think(0, text="Hm."), think(0, signature="c2"), think(0, signature="ln"), stop(0), end()).blocks[0]
    assert isinstance(block, Thinking)
    assert block.signature == "c2ln"


def test_redacted_reasoning() -> None:
    sealed = base64.b64encode(b"sealed").decode()
    reply = spoken(think(0, redactedContent=sealed), stop(0), say(1, "So."), stop(1), end())
    assert isinstance(reply.blocks[0], Thinking)
    assert reply.blocks[0].encrypted == sealed
    payloads = [START, think(0, redactedContent=b"sea"), think(0, redactedContent=b"led"), stop(0), end()]
    (block,) = taken(BEDROCK, payloads)[1].blocks
    assert isinstance(block, Thinking)
    assert block.encrypted == sealed


def test_reasoning_and_redacted_reasoning_under_one_index() -> None:
    reply = spoken(think(0, text="Hm."), think(0, redactedContent="c2VhbGVk"), stop(0), end())
    assert [(block.text, block.encrypted) for block in reply.blocks if isinstance(block, Thinking)] == [
        ("Hm.", None),
        ("", "c2VhbGVk"),
    ]


def test_usage_and_metrics_come_after_the_stop() -> None:
    used = {**USAGE, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 2}
    meta = {"metadata": {**META["metadata"], "usage": used}}
    events, reply = told(START, say(0, "Hm."), stop(0), end(), meta)
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
    payloads = [START, say(0, "Hm."), stop(0), begin_call(1), put(1, '{"path": "a')]
    events, reply = told(*payloads, {name: {"message": "No more."}})
    status, kind = EXCEPTIONS[name]
    assert events[-1] == Failed(ApiError(status, "No more.", kind=kind))
    assert (reply.text, reply.finish, reply.raw_finish) == ("Hm.", "error", "No more.")
    assert only_call(reply).broken
    assert only_call(reply).arguments_text == '{"path": "a'


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_before_the_reply(name: str) -> None:
    for data in (framed({name: {"message": "No."}}), json.dumps({name: {"message": "No."}}).encode()):
        with pytest.raises(RemoteProtocolError) as caught:
            read(BEDROCK, data)
        assert (caught.value.status, caught.value.kind) == EXCEPTIONS[name]


def test_an_error_that_stands_in_the_headers() -> None:
    data = encode_aws_message(b"", message_type="error", error_code="InternalFailure", error_message="Out of order.")
    events, reply = read(BEDROCK, framed(START, say(0, "Hm.")) + data)
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, reply.raw_finish) == ("InternalFailure", "Out of order.")


def test_an_exception_without_a_payload() -> None:
    data = encode_aws_message(b"", message_type="exception", exception_type="throttlingException")
    events, _ = read(BEDROCK, framed(START, say(0, "Hm.")) + data)
    assert isinstance(events[-1], Failed)
    assert events[-1].error.status == 429


def test_an_error_body_at_once_instead_of_a_stream() -> None:
    with pytest.raises(RemoteProtocolError, match="The model is gone"):
        read(BEDROCK, b'{"message": "The model is gone."}')


def test_a_reply_at_once_instead_of_a_stream() -> None:
    body = bedrock_reply(thought("Hm."), {"text": "Hello."}, tool_use("tooluse_1", value={"path": "a"}))
    events, reply = read(BEDROCK, json.dumps(body).encode())
    tell_each_block(events, reply)
    assert bare(reply) == bare(BEDROCK.parse_reply(body))


def test_missing_stops() -> None:
    reply = spoken(say(0, "Hm."), begin_call(1), put(1, '{"path": "a"}'), end("tool_use"))
    assert (reply.text, only_call(reply).arguments) == ("Hm.", {"path": "a"})


def test_a_missing_message_start_and_missing_metadata() -> None:
    _, reply = told(say(0, "Hm."), stop(0), end())
    assert (reply.text, reply.finish, reply.usage) == ("Hm.", "stop", None)


def test_several_blocks_open_at_once() -> None:
    payloads = [begin_call(0, "a"), begin_call(1, "b"), put(1, '{"n": '), put(0, '{"n": '), put(1, "1}"), put(0, "0}")]
    reply = spoken(*payloads, say(2, "Both."), stop(1), stop(0), stop(2), end("tool_use"))
    assert [(call.origin.raw_id, call.arguments) for call in reply.calls] == [("a", {"n": 0}), ("b", {"n": 1})]


def test_missing_and_repeated_indexes() -> None:
    payloads = [say(None, "Hm."), stop(None), begin_call(None, "a"), put(None, '{"n": 0}'), stop(None)]
    assert only_call(spoken(*payloads, end("tool_use"))).arguments == {"n": 0}
    payloads = [begin_call(0, "a"), put(0, '{"n": 0}'), begin_call(0, "b"), put(0, '{"n": 1}'), say(0, "Hm.")]
    reply = spoken(*payloads, end("tool_use"))
    assert [call.arguments for call in reply.calls] == [{"n": 0}, {"n": 1}]
    assert reply.text == "Hm."


def test_input_without_a_call_is_not_added_to_another_call() -> None:
    ended = [begin_call(0, "a"), put(0, '{"n": 0}'), stop(0), begin_call(1, "b")]
    for payloads in ([put(0, "{}")], [*ended, put(0, '{"n": 1}')]):
        with pytest.raises(RemoteProtocolError, match="not started or has ended"):
            read(BEDROCK, framed(START, *payloads))


@pytest.mark.parametrize("pieces", [[], ['{"path": "a'], ["{"]])
@pytest.mark.parametrize("stopped", [True, False])
def test_a_call_that_the_length_limit_cut_off_is_broken(pieces: list[str], stopped: bool) -> None:
    payloads = [begin_call(0), *[put(0, piece) for piece in pieces], *([stop(0)] if stopped else [])]
    call = only_call(spoken(*payloads, end("max_tokens")))
    assert (call.broken, call.arguments, call.arguments_text) == (True, None, "".join(pieces))


@pytest.mark.parametrize("at", range(2, len(RECORDED) - 2))
def test_a_stream_that_ends_early_keeps_what_arrived(at: int) -> None:
    events, reply = read(BEDROCK, framed(*RECORDED[:at]))
    tell_each_block(events, reply)
    assert (reply.finish, isinstance(events[-1], Failed)) == ("error", True)
    assert [call.broken for call in reply.calls] in ([], [reply.calls and reply.calls[0].arguments is None])
    assert "Reading it… é".startswith(reply.text)


def test_citations() -> None:
    payloads = [say(0, "Sky."), delta(0, citation=CITATION), delta(0, citation={**CITATION, "title": "B"}), stop(0)]
    events, reply = told(START, *payloads, end(), META)
    cited = {"citationsContent": {"content": [{"text": "Sky."}], "citations": [CITATION, {**CITATION, "title": "B"}]}}
    assert reply.text == "Sky."
    assert reply.blocks[0].native == Native("bedrock", cited)
    assert read(BEDROCK, written(BEDROCK, events))[1] == reply


def test_hosted_blocks_are_emitted_whole() -> None:
    payloads = [
        begin_call(0, "tooluse_s1", "nova_grounding", type="server_tool_use"),
        put(0, '{"query": '),
        put(0, '"sky"}'),
        stop(0),
        begin(1, toolResult={"toolUseId": "tooluse_s1", "status": "success"}),
        delta(1, toolResult=[{"text": "blue"}]),
        delta(1, toolResult=[{"json": {"a": 1}}]),
        stop(1),
    ]
    events, reply = told(START, *payloads, end(), META)
    assert [type(event) for event in events[1:-2]] == [WholeBlock, WholeBlock]
    call, result = reply.blocks
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResponse)
    assert (call.kind, call.arguments, result.hosted) == ("hosted", {"query": "sky"}, True)
    assert result.native is not None
    assert result.native.fragment["toolResult"]["content"] == [{"text": "blue"}, {"json": {"a": 1}}]
    assert reply.finish == "stop"


def test_a_picture() -> None:
    payloads = [begin(0, image={"format": "png"}), delta(0, image={"source": {"bytes": PNG}}), stop(0)]
    (block,) = spoken(*payloads, end()).blocks
    assert isinstance(block, Media)
    assert (block.mime, block.data) == ("image/png", PNG)
    given = [START, payloads[0], delta(0, image={"source": {"bytes": base64.b64decode(PNG)}}), stop(0), end(), META]
    assert taken(BEDROCK, given)[1].blocks == (block,)


def test_incomplete_image_is_kept_but_is_no_image() -> None:
    _, reply = told(START, say(0, "See:"), stop(0), begin(1, image={"format": "png"}))
    assert (reply.text, reply.finish) == ("See:", "error")
    assert isinstance(reply.blocks[1], Opaque)


@pytest.mark.parametrize("reason", [[], {}, 3, ["max_tokens"]])
def test_unknown_stop_reason(reason: Any) -> None:
    payloads = [START, begin_call(0), {"messageStop": {"stopReason": reason}}]
    assert told(*payloads)[1].finish == "tool_calls"
    assert BEDROCK.parse_reply({**bedrock_reply(), "stopReason": reason}).finish == "stop"


def test_unknown_block_kinds_are_kept_for_same_api() -> None:
    payloads = [begin(0, melody={"key": "C"}), delta(0, melody={"notes": ["c"]}), delta(0, melody={"notes": ["d"]})]
    (block,) = spoken(*payloads, stop(0), end()).blocks
    assert isinstance(block, Opaque)
    assert block.native is not None
    assert block.native.fragment == {"melody": {"key": "C", "notes": ["c", "d"]}}


def test_unknown_events_are_ignored() -> None:
    odd = {"weather": {"message": "sunny"}}
    assert spoken(odd, say(0, "Hm."), odd, stop(0), end()).text == "Hm."


@for_each("seed", range(300))
def test_mutated_streams_give_a_value_or_a_remote_error(seed: int) -> None:
    server = [begin_call(3, type="server_tool_use"), put(3, "{}"), stop(3), begin(4, image={"format": "png"})]
    payloads = mutants([*RECORDED[:-2], *server, delta(4, image={"source": {"bytes": PNG}}), *RECORDED[-2:]], seed)
    read_and_write_or_refuse(BEDROCK, "\n".join(json.dumps(payload) for payload in payloads if payload).encode())


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes_give_a_value_or_a_remote_error(data: bytes) -> None:
    read_or_refuse(BEDROCK, data)
    read_or_refuse(BEDROCK, framed(START, begin_call(0)) + data)
    headers = {"event_type": "contentBlockDelta", "message_type": "event"}
    read_or_refuse(BEDROCK, framed(START) + encode_aws_message(data, **headers))


def test_a_damaged_message_is_a_remote_error() -> None:
    data = framed(*RECORDED)
    for at in range(0, len(data), 7):
        spoiled = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        read_or_refuse(BEDROCK, spoiled)

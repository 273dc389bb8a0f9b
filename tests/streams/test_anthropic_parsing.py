"""Parsing streams of Anthropic and of servers with the same API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.blocks import Native, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Usage
from segue.errors import RemoteProtocolError
from segue.wire.anthropic import WIRE as ANTHROPIC
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
from tests.bodies.anthropic import text
from tests.budget import examples
from tests.conversations.build import thinking, use
from tests.conversations.replies import anthropic_reply
from tests.each import for_each
from tests.streams.anthropic_events import (
    CITATION,
    ERROR,
    RECORDED,
    START,
    STOP,
    block_start,
    block_stop,
    call_start,
    delta,
    encode_events,
    input_delta,
    message_delta,
    read_reply,
    read_stream,
    text_delta,
    text_start,
)
from tests.streams.corruption import mutants, read_or_reject, round_trip_or_reject
from tests.streams.parsing import (
    check_blocks,
    join_deltas,
    only_call,
    read,
    read_payloads,
    splits,
    sse,
    started_call,
    strip_ids,
)
from tests.streams.rendering import render_stream


def test_recorded_stream_equals_the_whole_reply() -> None:
    events, reply = read_stream(*RECORDED)
    body = {
        **START["message"],
        "content": [
            thinking("Let me see. 🌍"),
            {"type": "text", "text": "Reading it… é", "citations": [CITATION]},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "sky"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            use("toolu_1", "read_file", {"path": "ä\n", "n": [1]}),
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 12, "cache_read_input_tokens": 4, "output_tokens": 7},
    }
    assert reply.native == Native("anthropic", body)
    assert strip_ids(reply) == strip_ids(ANTHROPIC.parse_reply(body))
    assert [type(event) for event in events if not isinstance(event, InputDelta)] == [
        *(ReplyStart, BlockStart, ThinkingDelta, ThinkingDelta, BlockEnd, BlockStart, TextDelta, TextDelta, BlockEnd),
        *(WholeBlock, WholeBlock, BlockStart, BlockEnd, UsageUpdate, Finished),
    ]


@pytest.mark.parametrize("pieces", list(splits(encode_events(*RECORDED))))
def test_any_split_gives_the_same_events(pieces: list[bytes]) -> None:
    assert join_deltas(read(ANTHROPIC, pieces)) == join_deltas(read(ANTHROPIC, encode_events(*RECORDED)))


def test_call_has_its_canonical_id_from_the_start() -> None:
    parser = ANTHROPIC.open_stream("turn-7")
    parser.feed(encode_events(START, call_start(0)))
    begun = started_call(parser.events()[-1])
    assert (begun.name, begun.kind) == ("read_file", "function")
    assert begun.origin.raw_id == "toolu_1"
    parser.feed(encode_events(input_delta(0, "{}"), block_stop(0), message_delta("tool_use"), STOP))
    assert only_call(parser.close()).id == begun.id
    assert only_call(read(ANTHROPIC, encode_events(START, call_start(0), block_stop(0), STOP))[1]).id == begun.id


def test_text_is_emitted_as_it_arrives() -> None:
    parser = ANTHROPIC.open_stream("turn-7")
    parser.feed(encode_events(START, text_start(0)))
    parser.events()
    parser.feed(encode_events(text_delta(0, "Hel")))
    assert parser.events() == [TextDelta(0, "Hel")]


@pytest.mark.parametrize(
    "pieces", [["", '{"path": "a"}'], list('{"path": "a"}'), ['{"path":', "", ' "a"}'], [" ", '{"path": "a"}', " \n"]]
)
def test_input_in_odd_pieces(pieces: list[str]) -> None:
    reply = read_reply(
        call_start(0), *[input_delta(0, piece) for piece in pieces], block_stop(0), message_delta("tool_use"), STOP
    )
    assert only_call(reply).arguments == {"path": "a"}
    assert only_call(reply).arguments_text is None


@pytest.mark.parametrize("pieces", [[], [""], ["{}"], ["{", "}"]])
def test_no_input_means_no_arguments(pieces: list[str]) -> None:
    reply = read_reply(
        call_start(0), *[input_delta(0, piece) for piece in pieces], block_stop(0), message_delta("tool_use"), STOP
    )
    assert only_call(reply).arguments == {}
    assert not only_call(reply).broken


@pytest.mark.parametrize("given", [{"path": "a"}, '{"path": "a"}'])
@pytest.mark.parametrize("pieces", [[], [""], ["{}"], ['{"path": "a"}'], list('{"path": "a"}')])
def test_the_whole_input_in_the_first_event_with_or_without_deltas_after_it(given: Any, pieces: list[str]) -> None:
    later = [input_delta(0, piece) for piece in pieces]
    reply = read_reply(call_start(0, given=given), *later, block_stop(0), message_delta("tool_use"), STOP)
    assert only_call(reply).arguments == {"path": "a"}


def test_deltas_win_over_input_in_the_first_event() -> None:
    reply = read_reply(
        call_start(0, given={"path": ""}),
        input_delta(0, '{"path": "b"}'),
        block_stop(0),
        message_delta("tool_use"),
        STOP,
    )
    assert only_call(reply).arguments == {"path": "b"}


def test_an_empty_object_first_and_then_the_real_input() -> None:
    reply = read_reply(
        call_start(0),
        input_delta(0, "{}"),
        input_delta(0, '{"path": '),
        input_delta(0, '"b"}'),
        block_stop(0),
        message_delta("tool_use"),
        STOP,
    )
    assert only_call(reply).arguments == {"path": "b"}


def test_missing_block_stops() -> None:
    reply = read_reply(
        text_start(0),
        text_delta(0, "Hm."),
        call_start(1),
        input_delta(1, '{"path": "a"}'),
        message_delta("tool_use"),
        STOP,
    )
    assert reply.text == "Hm."
    assert only_call(reply).arguments == {"path": "a"}
    assert reply.finish == "tool_calls"


def test_a_missing_message_stop() -> None:
    reply = read_reply(text_start(0), text_delta(0, "Hm."), block_stop(0), message_delta())
    assert (reply.text, reply.finish, reply.raw_finish) == ("Hm.", "stop", "end_turn")


@pytest.mark.parametrize(("block", "finish"), [(text_start(0), "stop"), (call_start(0), "tool_calls")])
def test_a_missing_message_delta(block: Any, finish: str) -> None:
    assert read_reply(block, block_stop(0), STOP).finish == finish


def test_a_missing_message_start() -> None:
    _, reply = read_stream(text_start(0), text_delta(0, "Hm."), block_stop(0), message_delta(), STOP)
    assert (reply.text, reply.id, reply.finish) == ("Hm.", None, "stop")


def test_missing_block_starts_of_text_and_reasoning() -> None:
    reply = read_reply(
        delta(0, "thinking_delta", thinking="Hm."),
        text_delta(1, "He"),
        text_delta(1, "llo"),
        block_stop(1),
        message_delta(),
        STOP,
    )
    assert [type(block) for block in reply.blocks] == [Thinking, Text]
    assert (reply.thinking, reply.text) == ("Hm.", "Hello")


def test_several_blocks_open_at_once_by_index() -> None:
    pieces = [
        input_delta(1, '{"path": '),
        input_delta(0, '{"path": '),
        text_delta(2, "Bo"),
        input_delta(0, '"a"}'),
        text_delta(2, "th."),
        input_delta(1, '"b"}'),
    ]
    begun = [call_start(0, "toolu_a"), call_start(1, "toolu_b"), text_start(2)]
    reply = read_reply(*begun, *pieces, block_stop(1), block_stop(2), block_stop(0), message_delta("tool_use"), STOP)
    assert [call.arguments for call in reply.calls] == [{"path": "a"}, {"path": "b"}]
    assert [call.origin.raw_id for call in reply.calls] == ["toolu_a", "toolu_b"]
    assert reply.text == "Both."


def test_indexes_out_of_order() -> None:
    reply = read_reply(
        call_start(5),
        input_delta(5, '{"path": "a"}'),
        block_stop(5),
        text_start(2),
        text_delta(2, "Hm."),
        block_stop(2),
        message_delta(),
        STOP,
    )
    assert [type(block) for block in reply.blocks] == [ToolCall, Text]


def test_missing_indexes() -> None:
    payloads = [text_start(None), text_delta(None, "Hm."), block_stop(None), call_start(None, "toolu_a")]
    payloads += [
        input_delta(None, '{"path": '),
        input_delta(None, '"a"}'),
        block_stop(None),
        call_start(None, "toolu_b"),
        block_stop(None),
    ]
    reply = read_reply(*payloads, message_delta("tool_use"), STOP)
    assert reply.text == "Hm."
    assert [call.arguments for call in reply.calls] == [{"path": "a"}, {}]


def test_the_same_index_for_every_block() -> None:
    payloads = [text_start(0), text_delta(0, "Hm."), call_start(0, "toolu_a"), input_delta(0, '{"path": "a"}')]
    reply = read_reply(
        *payloads, call_start(0, "toolu_b"), input_delta(0, '{"path": "b"}'), message_delta("tool_use"), STOP
    )
    assert [call.arguments for call in reply.calls] == [{"path": "a"}, {"path": "b"}]


def test_input_without_a_call_is_not_added_to_another_call() -> None:
    ended = [call_start(0, "toolu_a"), input_delta(0, '{"path": "a"}'), block_stop(0), call_start(1, "toolu_b")]
    for payloads in ([input_delta(0, "{}x")], [*ended, input_delta(0, '{"path": "b"}')]):
        with pytest.raises(RemoteProtocolError, match="not started or has ended"):
            read(ANTHROPIC, encode_events(START, *payloads))


@pytest.mark.parametrize("index", [0, 1, None])
def test_text_after_a_call(index: int | None) -> None:
    """Under any index, with a block start or without."""
    reply = read_reply(
        call_start(0),
        input_delta(0, '{"path": "a"}'),
        block_stop(0),
        text_delta(index, "And"),
        text_delta(index, " so."),
        message_delta(),
        STOP,
    )
    assert [type(block) for block in reply.blocks] == [ToolCall, Text]
    assert (reply.text, only_call(reply).arguments) == ("And so.", {"path": "a"})


def test_text_under_the_index_of_an_open_call() -> None:
    payloads = [
        call_start(0),
        input_delta(0, '{"path": '),
        text_delta(0, "And"),
        input_delta(0, '"a"}'),
        text_delta(0, " so."),
        block_stop(0),
    ]
    reply = read_reply(*payloads, message_delta("tool_use"), STOP)
    assert (reply.text, only_call(reply).arguments) == ("And so.", {"path": "a"})


def test_pings_and_unknown_events_are_ignored() -> None:
    beside = [{"type": "ping"}, {"type": "vault_opened", "x": 1}, {"type": "ping", "cost": "0"}]
    assert (
        read_reply(
            *beside,
            text_start(0),
            *beside,
            text_delta(0, "Hm."),
            *beside,
            block_stop(0),
            message_delta(),
            STOP,
            *beside,
        ).text
        == "Hm."
    )


def test_an_error_before_the_reply() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read(ANTHROPIC, encode_events(ERROR))
    assert (caught.value.status, caught.value.kind, caught.value.message) == (529, "overloaded_error", "Overloaded")


@pytest.mark.parametrize("error", [ERROR, {**ERROR, "type": None}, {"type": "error", "error": "Overloaded"}])
def test_an_error_inside_the_reply(error: Any) -> None:
    payloads = [START, text_start(0), text_delta(0, "Hm."), block_stop(0), call_start(1), input_delta(1, '{"path": "a')]
    events, reply = read(ANTHROPIC, encode_events(*payloads) + b"data: " + json.dumps(error).encode() + b"\n\n")
    check_blocks(events, reply)
    assert isinstance(events[-1], Failed)
    assert events[-1].error.message == "Overloaded"
    assert (reply.text, reply.finish, reply.raw_finish) == ("Hm.", "error", "Overloaded")
    assert only_call(reply).broken
    assert only_call(reply).arguments_text == '{"path": "a'


@pytest.mark.parametrize("pieces", [[], [""], ['{"path": "a'], ["{"]])
@pytest.mark.parametrize("stopped", [True, False])
def test_a_call_that_the_length_limit_cut_off_is_broken(pieces: list[str], stopped: bool) -> None:
    payloads = [call_start(0), *[input_delta(0, piece) for piece in pieces], *([block_stop(0)] if stopped else [])]
    call = only_call(read_reply(*payloads, message_delta("max_tokens"), STOP))
    assert (call.broken, call.arguments, call.arguments_text) == (True, None, "".join(pieces))


def test_only_the_last_call_can_be_cut_off_by_the_length_limit() -> None:
    payloads = [
        call_start(0, "toolu_a"),
        block_stop(0),
        call_start(1, "toolu_b"),
        input_delta(1, '{"a": 1}'),
        block_stop(1),
    ]
    assert [call.broken for call in read_reply(*payloads, message_delta("max_tokens"), STOP).calls] == [False, False]


@pytest.mark.parametrize("at", range(2, len(RECORDED) - 1))
def test_a_stream_that_ends_early_keeps_what_arrived(at: int) -> None:
    events, reply = read(ANTHROPIC, encode_events(*RECORDED[:at]))
    check_blocks(events, reply)
    whole = read(ANTHROPIC, encode_events(*RECORDED))[1]
    assert whole.text.startswith(reply.text)
    # Only an event with a stop reason is an end.
    assert (reply.finish == "error") is (at < len(RECORDED) - 1)
    for call in reply.calls:
        ended = call.arguments in ({"query": "sky"}, {"path": "ä\n", "n": [1]})
        assert call.broken is not ended


def test_reasoning_that_is_redacted_comes_whole() -> None:
    events, reply = read_stream(
        START, block_start(0, type="redacted_thinking", data="c2VhbGVk"), block_stop(0), message_delta(), STOP
    )
    assert [type(event) for event in events] == [ReplyStart, BlockStart, BlockEnd, UsageUpdate, Finished]
    assert isinstance(reply.blocks[0], Thinking)
    assert reply.blocks[0].encrypted == "c2VhbGVk"


def test_reasoning_that_is_not_shown_has_a_signature_only() -> None:
    block = read_reply(
        block_start(0, type="thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="c2ln"),
        block_stop(0),
        message_delta(),
        STOP,
    ).blocks[0]
    assert isinstance(block, Thinking)
    assert (block.text, block.signature) == ("", "c2ln")


def test_citations_grow() -> None:
    cited = [delta(0, "citations_delta", citation={**CITATION, "end_char_index": at}) for at in (1, 2)]
    block = read_reply(
        block_start(0, type="text", text="", citations=None),
        text_delta(0, "Sky."),
        *cited,
        block_stop(0),
        message_delta(),
        STOP,
    ).blocks[0]
    assert block.native is not None
    assert [citation["end_char_index"] for citation in block.native.fragment["citations"]] == [1, 2]


def test_hosted_blocks_are_emitted_whole() -> None:
    found = {"type": "web_search_result", "title": "Sky", "url": "https://a.example", "encrypted_content": "c2k="}
    blocks = [
        block_start(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        input_delta(0, '{"query": "sky"}'),
        block_stop(0),
        block_start(1, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[found]),
        block_stop(1),
        block_start(2, type="mcp_tool_use", id="mcptoolu_1", name="echo", server_name="s", input={"a": 1}),
        block_stop(2),
    ]
    events, reply = read_stream(START, *blocks, message_delta("pause_turn"), STOP)
    assert [type(event) for event in events[1:-2]] == [WholeBlock, WholeBlock, WholeBlock]
    search, results, echo = reply.blocks
    assert isinstance(search, ToolCall)
    assert isinstance(results, ToolResponse)
    assert isinstance(echo, ToolCall)
    assert (search.kind, search.arguments) == ("hosted", {"query": "sky"})
    assert results.hosted
    assert (echo.name, echo.arguments) == ("s.echo", {"a": 1})
    assert reply.finish == "pause"


def test_a_compaction() -> None:
    payloads = [
        block_start(0, type="compaction", content=None),
        delta(0, "compaction_delta", content="So far: sky."),
        block_stop(0),
    ]
    events, reply = read_stream(START, *payloads, message_delta("compaction"), STOP)
    assert isinstance(events[1], WholeBlock)
    assert reply.blocks[0].native is not None
    assert reply.blocks[0].native.fragment == {"type": "compaction", "content": "So far: sky."}
    assert reply.finish == "pause"


def test_a_stop_sequence() -> None:
    events, reply = read_stream(
        START, text_start(0), text_delta(0, "Hm."), block_stop(0), message_delta("stop_sequence", "###"), STOP
    )
    assert (reply.finish, reply.stop_sequence) == ("stop", "###")
    assert events[-1] == Finished("stop", "stop_sequence", "###")


@pytest.mark.parametrize("reason", [[], {}, 3, ["max_tokens"]])
def test_unknown_stop_reason(reason: Any) -> None:
    assert read_reply(call_start(0), message_delta(reason), STOP).finish == "tool_calls"
    assert ANTHROPIC.parse_reply({**anthropic_reply(), "stop_reason": reason}).finish == "stop"


def test_usage_is_put_together_from_beginning_and_end() -> None:
    events, reply = read_stream(START, text_start(0), block_stop(0), message_delta(cache_read_input_tokens=None), STOP)
    used = Usage(input=15, output=7, cache_read=4)
    assert reply.usage == used
    assert [event for event in events if isinstance(event, UsageUpdate)] == [UsageUpdate(used)]
    reply = read_reply(
        message_delta(input_tokens=20, cache_read_input_tokens=0, output_tokens_details={"thinking_tokens": 3}), STOP
    )
    assert reply.usage == Usage(input=20, output=7, reasoning=3)


def test_a_message_at_once_instead_of_a_stream() -> None:
    body = anthropic_reply(thinking("Hm."), text("Hello."), use("toolu_1", "read_file", {"path": "a"}))
    events, reply = read(ANTHROPIC, json.dumps(body, indent=1).encode())
    check_blocks(events, reply)
    assert strip_ids(reply) == strip_ids(ANTHROPIC.parse_reply(body))
    assert only_call(reply).id == only_call(read_reply(call_start(0), block_stop(0), STOP)).id


def test_an_error_body_at_once_instead_of_a_stream() -> None:
    with pytest.raises(RemoteProtocolError, match="overloaded_error: Overloaded"):
        read(ANTHROPIC, json.dumps(ERROR).encode())


def test_events_without_names() -> None:
    assert read(ANTHROPIC, encode_events(*RECORDED, named=False)) == read(ANTHROPIC, encode_events(*RECORDED))


def test_payloads_without_types_under_names() -> None:
    named = [
        f"event: {payload['type']}\ndata: {json.dumps({**payload, 'type': None})}\n\n".encode() for payload in RECORDED
    ]
    assert read(ANTHROPIC, named) == read(ANTHROPIC, encode_events(*RECORDED))


def test_decoded_payloads() -> None:
    assert read_payloads(ANTHROPIC, RECORDED) == read(ANTHROPIC, encode_events(*RECORDED))


def test_a_payload_is_not_changed_by_being_read() -> None:
    payloads = json.loads(json.dumps(RECORDED))
    read_payloads(ANTHROPIC, payloads)
    assert payloads == RECORDED


def test_unknown_delta_types_are_kept_for_same_api() -> None:
    payloads = [block_start(0, type="melody", key="C"), delta(0, "note_delta", notes=["c"], score="do "), block_stop(0)]
    payloads[2:2] = [delta(0, "note_delta", notes=["d"], score="re", beat=[1])]
    events, reply = read_stream(START, *payloads, message_delta(), STOP)
    kept = {"type": "melody", "key": "C", "notes": ["c", "d"], "score": "do re", "beat": [1]}
    assert isinstance(reply.blocks[0], Opaque)
    assert reply.blocks[0].native == Native("anthropic", kept)
    data = render_stream(ANTHROPIC, events)
    assert read(ANTHROPIC, data)[1].blocks == reply.blocks


def test_envelope_fields_are_kept() -> None:
    content = {**message_delta(), "context_management": {"applied_edits": [{"type": "x"}]}}
    content["delta"] = {**content["delta"], "container": {"id": "c_1", "expires_at": "2026-01-01T00:00:00Z"}}
    events, reply = read_stream(
        START, text_start(0), text_delta(0, "Hm."), block_stop(0), content, {**STOP, "metrics": {"ms": 3}}
    )
    assert reply.native is not None
    assert {"context_management", "container", "metrics"} <= reply.native.fragment.keys()
    again = read(ANTHROPIC, render_stream(ANTHROPIC, events))[1]
    assert (strip_ids(again), again.native) == (strip_ids(reply), reply.native)


def test_content_in_the_first_event() -> None:
    start = {**START, "message": {**START["message"], "content": [text("He"), use("toolu_1", "f", {"a": 1})]}}
    _, reply = read_stream(start, text_delta(0, "llo"), block_stop(0), message_delta("tool_use"), STOP)
    assert (reply.text, only_call(reply).arguments) == ("Hello", {"a": 1})


def test_text_in_the_first_event_of_a_block() -> None:
    assert (
        read_reply(block_start(0, **text("He")), text_delta(0, "llo"), block_stop(0), message_delta(), STOP).text
        == "Hello"
    )


def test_done_marker_of_other_apis_ends_the_stream() -> None:
    _, reply = read(ANTHROPIC, encode_events(START, text_start(0), text_delta(0, "Hm.")) + b"data: [DONE]\n\n")
    assert (reply.text, reply.finish) == ("Hm.", "stop")


def test_half_a_character_in_each_of_two_deltas() -> None:
    data = encode_events(START, text_start(0)) + b"".join(
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}\n\n' % half
        for half in (rb"a\ud83c", rb"\udf0db")
    )
    assert read(ANTHROPIC, data + encode_events(block_stop(0), message_delta(), STOP))[1].text == "a🌍b"


@for_each("seed", range(400))
def test_mutated_streams_give_a_value_or_a_remote_error(seed: int) -> None:
    round_trip_or_reject(ANTHROPIC, sse(*mutants(RECORDED, seed)))


@given(st.binary(max_size=200))
@examples(5)
def test_random_bytes_give_a_value_or_a_remote_error(data: bytes) -> None:
    read_or_reject(ANTHROPIC, data)
    read_or_reject(ANTHROPIC, encode_events(START, call_start(0)) + data)
    read_or_reject(ANTHROPIC, encode_events(START, text_start(0)) + b"data: " + data + b"\n\n")


def test_the_cost_of_a_call_in_a_hundred_thousand_pieces_is_linear() -> None:
    """With joining at each delta this would take minutes."""
    parser = ANTHROPIC.open_stream("turn-7")
    parser.feed(encode_events(START, call_start(0), input_delta(0, '{"a": "')))
    piece = encode_events(input_delta(0, "x" * 50), delta(0, "odd_delta", more="y" * 50)) * 100
    for _ in range(1000):
        parser.feed(piece)
        parser.events()
    parser.feed(encode_events(input_delta(0, '"}'), block_stop(0), message_delta("tool_use"), STOP))
    assert len(only_call(parser.close()).arguments["a"]) == 5_000_000

"""Streams of the Messages API: every way in which servers tell a reply, and what the vendor's own client reads back."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.canonical.blocks import Media, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Reply, Usage
from segue.errors import RemoteProtocolError
from segue.models import identify
from segue.render.report import Report
from segue.wire.anthropic import ANTHROPIC
from segue.wire.base import ApiError, Projection
from segue.wire.events import (
    End,
    Failed,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    UsageTold,
    Whole,
    events_of,
)
from segue.wire.idmap import IdMap
from segue.wire.names import NameMap
from tests.conversations.build import text, thinking, use
from tests.conversations.replies import anthropic_reply
from tests.wire.carrying import told as told_at_once

from .serving import Streaming, streaming
from .streaming import (
    bare,
    gives_a_value_or_a_remote_error,
    keeps_the_rules,
    live,
    mutants,
    read,
    served,
    splits,
    taken,
    written,
)

SAMPLES = Path(__file__).parent.parent / "catalog" / "samples" / "anthropic"
CITATION = {
    "type": "char_location",
    "cited_text": "the sky",
    "document_index": 0,
    "document_title": "Sky",
    "start_char_index": 0,
    "end_char_index": 7,
}
START = {
    "type": "message_start",
    "message": {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "cache_read_input_tokens": 4, "output_tokens": 1},
    },
}
STOP = {"type": "message_stop"}


def begin(index: Any, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any, kind: str, **said: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **said}}


def say(index: Any, words: str) -> dict[str, Any]:
    return delta(index, "text_delta", text=words)


def put(index: Any, piece: str) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=piece)


def stop(index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", sequence: str | None = None, **usage: Any) -> dict[str, Any]:
    delta = {"stop_reason": reason, "stop_sequence": sequence}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7, **usage}}


def begin_text(index: Any) -> dict[str, Any]:
    return begin(index, type="text", text="")


def begin_call(index: Any, call_id: str = "toolu_1", name: str = "read_file", given: Any = None) -> dict[str, Any]:
    return begin(index, type="tool_use", id=call_id, name=name, input={} if given is None else given)


RECORDED = [
    START,
    begin(0, type="thinking", thinking="", signature=""),
    {"type": "ping"},
    delta(0, "thinking_delta", thinking="Let me "),
    delta(0, "thinking_delta", thinking="see. 🌍"),
    delta(0, "signature_delta", signature="RXFRQkNnSVlBaElN"),
    stop(0),
    begin(1, type="text", text="", citations=[]),
    say(1, "Reading"),
    say(1, " it… é"),
    delta(1, "citations_delta", citation=CITATION),
    stop(1),
    begin(2, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    put(2, ""),
    put(2, '{"query": "sk'),
    put(2, 'y"}'),
    stop(2),
    begin(3, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
    stop(3),
    begin_call(4),
    put(4, ""),
    *[put(4, sign) for sign in '{"path": "ä\\n", "n": [1]}'],
    stop(4),
    end("tool_use", input_tokens=12, cache_creation_input_tokens=None),
    STOP,
]


def told(*payloads: Any) -> tuple[Any, Reply]:
    """What is read of a stream, which is the same however its bytes are cut; it keeps the rules of events."""
    data = served(*payloads)
    events, reply = read(ANTHROPIC, data)
    keeps_the_rules(events, reply)
    assert read(ANTHROPIC, [data[at : at + 1] for at in range(len(data))]) == (events, reply)
    return events, reply


def spoken(*payloads: Any) -> Reply:
    return told(START, *payloads)[1]


def only_call(reply: Reply) -> ToolCall:
    (call,) = reply.calls
    return call


# ------------------------------------------------------------------------------------------------------------- reading


def test_a_recorded_stream_is_the_reply_that_would_have_come_at_once() -> None:
    events, reply = told(*RECORDED)
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
    assert bare(reply) == bare(ANTHROPIC.parse_reply(body))
    assert [type(event) for event in events if not isinstance(event, InputDelta)] == [
        *(Opened, Start, ThinkingDelta, ThinkingDelta, End, Start, TextDelta, TextDelta, End),
        *(Whole, Whole, Start, End, UsageTold, Finished),
    ]


@pytest.mark.parametrize("pieces", list(splits(served(*RECORDED))))
def test_any_split_gives_the_same_events(pieces: list[bytes]) -> None:
    assert read(ANTHROPIC, pieces) == read(ANTHROPIC, served(*RECORDED))


def test_a_call_is_known_by_its_canonical_id_from_the_first_moment() -> None:
    parser = ANTHROPIC.open_stream("turn-7")
    parser.feed(served(START, begin_call(0)))
    start = parser.events()[-1]
    assert isinstance(start, Start)
    assert isinstance(start.block, ToolCall)
    assert (start.block.name, start.block.kind) == ("read_file", "function")
    assert start.block.origin.raw_id == "toolu_1"
    parser.feed(served(put(0, "{}"), stop(0), end("tool_use"), STOP))
    assert only_call(parser.close()).id == start.block.id
    assert only_call(read(ANTHROPIC, served(START, begin_call(0), stop(0), STOP))[1]).id == start.block.id


def test_words_are_told_as_they_come() -> None:
    parser = ANTHROPIC.open_stream("turn-7")
    parser.feed(served(START, begin_text(0)))
    parser.events()
    parser.feed(served(say(0, "Hel")))
    assert parser.events() == [TextDelta(0, "Hel")]


@pytest.mark.parametrize(
    "pieces", [["", '{"path": "a"}'], list('{"path": "a"}'), ['{"path":', "", ' "a"}'], [" ", '{"path": "a"}', " \n"]]
)
def test_input_in_odd_pieces(pieces: list[str]) -> None:
    reply = spoken(begin_call(0), *[put(0, piece) for piece in pieces], stop(0), end("tool_use"), STOP)
    assert only_call(reply).arguments == {"path": "a"}
    assert only_call(reply).arguments_text is None


@pytest.mark.parametrize("pieces", [[], [""], ["{}"], ["{", "}"]])
def test_no_input_means_no_arguments(pieces: list[str]) -> None:
    reply = spoken(begin_call(0), *[put(0, piece) for piece in pieces], stop(0), end("tool_use"), STOP)
    assert only_call(reply).arguments == {}
    assert not only_call(reply).broken


@pytest.mark.parametrize("given", [{"path": "a"}, '{"path": "a"}'])
@pytest.mark.parametrize("pieces", [[], [""], ["{}"], ['{"path": "a"}'], list('{"path": "a"}')])
def test_the_whole_input_in_the_first_event_with_or_without_deltas_after_it(given: Any, pieces: list[str]) -> None:
    later = [put(0, piece) for piece in pieces]
    reply = spoken(begin_call(0, given=given), *later, stop(0), end("tool_use"), STOP)
    assert only_call(reply).arguments == {"path": "a"}


def test_deltas_win_over_input_in_the_first_event() -> None:
    reply = spoken(begin_call(0, given={"path": ""}), put(0, '{"path": "b"}'), stop(0), end("tool_use"), STOP)
    assert only_call(reply).arguments == {"path": "b"}


def test_an_empty_object_first_and_then_the_real_input() -> None:
    reply = spoken(begin_call(0), put(0, "{}"), put(0, '{"path": '), put(0, '"b"}'), stop(0), end("tool_use"), STOP)
    assert only_call(reply).arguments == {"path": "b"}


def test_missing_block_stops() -> None:
    reply = spoken(begin_text(0), say(0, "Hm."), begin_call(1), put(1, '{"path": "a"}'), end("tool_use"), STOP)
    assert reply.text == "Hm."
    assert only_call(reply).arguments == {"path": "a"}
    assert reply.finish == "tool_calls"


def test_a_missing_message_stop() -> None:
    reply = spoken(begin_text(0), say(0, "Hm."), stop(0), end())
    assert (reply.text, reply.finish, reply.cause) == ("Hm.", "stop", "end_turn")


@pytest.mark.parametrize(("block", "finish"), [(begin_text(0), "stop"), (begin_call(0), "tool_calls")])
def test_a_missing_message_delta(block: Any, finish: str) -> None:
    assert spoken(block, stop(0), STOP).finish == finish


def test_a_missing_message_start() -> None:
    _, reply = told(begin_text(0), say(0, "Hm."), stop(0), end(), STOP)
    assert (reply.text, reply.id, reply.finish) == ("Hm.", None, "stop")


def test_missing_block_starts_of_words_and_reasoning() -> None:
    reply = spoken(delta(0, "thinking_delta", thinking="Hm."), say(1, "He"), say(1, "llo"), stop(1), end(), STOP)
    assert [type(block) for block in reply.blocks] == [Thinking, Text]
    assert (reply.thinking, reply.text) == ("Hm.", "Hello")


def test_several_blocks_open_at_once_by_index() -> None:
    pieces = [put(1, '{"path": '), put(0, '{"path": '), say(2, "Bo"), put(0, '"a"}'), say(2, "th."), put(1, '"b"}')]
    begun = [begin_call(0, "toolu_a"), begin_call(1, "toolu_b"), begin_text(2)]
    reply = spoken(*begun, *pieces, stop(1), stop(2), stop(0), end("tool_use"), STOP)
    assert [call.arguments for call in reply.calls] == [{"path": "a"}, {"path": "b"}]
    assert [call.origin.raw_id for call in reply.calls] == ["toolu_a", "toolu_b"]
    assert reply.text == "Both."


def test_indexes_out_of_order() -> None:
    reply = spoken(begin_call(5), put(5, '{"path": "a"}'), stop(5), begin_text(2), say(2, "Hm."), stop(2), end(), STOP)
    assert [type(block) for block in reply.blocks] == [ToolCall, Text]


def test_missing_indexes() -> None:
    payloads = [begin_text(None), say(None, "Hm."), stop(None), begin_call(None, "toolu_a")]
    payloads += [put(None, '{"path": '), put(None, '"a"}'), stop(None), begin_call(None, "toolu_b"), stop(None)]
    reply = spoken(*payloads, end("tool_use"), STOP)
    assert reply.text == "Hm."
    assert [call.arguments for call in reply.calls] == [{"path": "a"}, {}]


def test_the_same_index_for_every_block() -> None:
    payloads = [begin_text(0), say(0, "Hm."), begin_call(0, "toolu_a"), put(0, '{"path": "a"}')]
    reply = spoken(*payloads, begin_call(0, "toolu_b"), put(0, '{"path": "b"}'), end("tool_use"), STOP)
    assert [call.arguments for call in reply.calls] == [{"path": "a"}, {"path": "b"}]


def test_input_for_no_call_is_not_given_to_another() -> None:
    ended = [begin_call(0, "toolu_a"), put(0, '{"path": "a"}'), stop(0), begin_call(1, "toolu_b")]
    for payloads in ([put(0, "{}x")], [*ended, put(0, '{"path": "b"}')]):
        with pytest.raises(RemoteProtocolError, match="not begun or has ended"):
            read(ANTHROPIC, served(START, *payloads))


@pytest.mark.parametrize("index", [0, 1, None])
def test_words_after_a_call(index: int | None) -> None:
    """Whatever index they are told under, with a beginning of their own or without."""
    reply = spoken(begin_call(0), put(0, '{"path": "a"}'), stop(0), say(index, "And"), say(index, " so."), end(), STOP)
    assert [type(block) for block in reply.blocks] == [ToolCall, Text]
    assert (reply.text, only_call(reply).arguments) == ("And so.", {"path": "a"})


def test_words_under_the_index_of_an_open_call() -> None:
    payloads = [begin_call(0), put(0, '{"path": '), say(0, "And"), put(0, '"a"}'), say(0, " so."), stop(0)]
    reply = spoken(*payloads, end("tool_use"), STOP)
    assert (reply.text, only_call(reply).arguments) == ("And so.", {"path": "a"})


def test_pings_and_unknown_events_say_nothing() -> None:
    beside = [{"type": "ping"}, {"type": "vault_opened", "x": 1}, {"type": "ping", "cost": "0"}]
    assert spoken(*beside, begin_text(0), *beside, say(0, "Hm."), *beside, stop(0), end(), STOP, *beside).text == "Hm."


ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_an_error_before_the_reply() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read(ANTHROPIC, served(ERROR))
    assert (caught.value.status, caught.value.kind, caught.value.message) == (529, "overloaded_error", "Overloaded")


@pytest.mark.parametrize("error", [ERROR, {**ERROR, "type": None}, {"type": "error", "error": "Overloaded"}])
def test_an_error_inside_the_reply(error: Any) -> None:
    payloads = [START, begin_text(0), say(0, "Hm."), stop(0), begin_call(1), put(1, '{"path": "a')]
    events, reply = read(ANTHROPIC, served(*payloads) + b"data: " + json.dumps(error).encode() + b"\n\n")
    keeps_the_rules(events, reply)
    assert isinstance(events[-1], Failed)
    assert events[-1].error.message == "Overloaded"
    assert (reply.text, reply.finish, reply.cause) == ("Hm.", "error", "Overloaded")
    assert only_call(reply).broken
    assert only_call(reply).arguments_text == '{"path": "a'


@pytest.mark.parametrize("pieces", [[], [""], ['{"path": "a'], ["{"]])
@pytest.mark.parametrize("stopped", [True, False])
def test_a_call_that_the_length_limit_cut_off_is_broken(pieces: list[str], stopped: bool) -> None:
    payloads = [begin_call(0), *[put(0, piece) for piece in pieces], *([stop(0)] if stopped else [])]
    call = only_call(spoken(*payloads, end("max_tokens"), STOP))
    assert (call.broken, call.arguments, call.arguments_text) == (True, None, "".join(pieces))


def test_only_the_last_call_can_be_cut_off_by_the_length_limit() -> None:
    payloads = [begin_call(0, "toolu_a"), stop(0), begin_call(1, "toolu_b"), put(1, '{"a": 1}'), stop(1)]
    assert [call.broken for call in spoken(*payloads, end("max_tokens"), STOP).calls] == [False, False]


@pytest.mark.parametrize("at", range(2, len(RECORDED) - 1))
def test_a_stream_that_ends_early_keeps_what_arrived(at: int) -> None:
    events, reply = read(ANTHROPIC, served(*RECORDED[:at]))
    keeps_the_rules(events, reply)
    whole = read(ANTHROPIC, served(*RECORDED))[1]
    assert whole.text.startswith(reply.text)
    # Only what says how it ended is an end.
    assert (reply.finish == "error") is (at < len(RECORDED) - 1)
    for call in reply.calls:
        ended = call.arguments in ({"query": "sky"}, {"path": "ä\n", "n": [1]})
        assert call.broken is not ended


def test_a_reply_that_ended_early_says_so_at_home() -> None:
    _, reply = read(ANTHROPIC, served(START, begin_text(0), say(0, "Hm.")))
    data, _ = written(ANTHROPIC, events_of(reply))
    assert sdk(data)[-1].stop_reason == "max_tokens"


def test_reasoning_that_is_redacted_comes_whole() -> None:
    events, reply = told(START, begin(0, type="redacted_thinking", data="c2VhbGVk"), stop(0), end(), STOP)
    assert [type(event) for event in events] == [Opened, Start, End, UsageTold, Finished]
    assert isinstance(reply.blocks[0], Thinking)
    assert reply.blocks[0].sealed == "c2VhbGVk"


def test_reasoning_that_is_not_shown_has_a_signature_only() -> None:
    block = spoken(
        begin(0, type="thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        end(),
        STOP,
    ).blocks[0]
    assert isinstance(block, Thinking)
    assert (block.text, block.signature) == ("", "c2ln")


def test_citations_grow() -> None:
    cited = [delta(0, "citations_delta", citation={**CITATION, "end_char_index": at}) for at in (1, 2)]
    block = spoken(begin(0, type="text", text="", citations=None), say(0, "Sky."), *cited, stop(0), end(), STOP).blocks[
        0
    ]
    assert block.native is not None
    assert [citation["end_char_index"] for citation in block.native.fragment["citations"]] == [1, 2]


def test_what_the_provider_ran_is_told_whole() -> None:
    found = {"type": "web_search_result", "title": "Sky", "url": "https://a.example", "encrypted_content": "c2k="}
    blocks = [
        begin(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        put(0, '{"query": "sky"}'),
        stop(0),
        begin(1, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[found]),
        stop(1),
        begin(2, type="mcp_tool_use", id="mcptoolu_1", name="echo", server_name="s", input={"a": 1}),
        stop(2),
    ]
    events, reply = told(START, *blocks, end("pause_turn"), STOP)
    assert [type(event) for event in events[1:-2]] == [Whole, Whole, Whole]
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
        begin(0, type="compaction", content=None),
        delta(0, "compaction_delta", content="So far: sky."),
        stop(0),
    ]
    events, reply = told(START, *payloads, end("compaction"), STOP)
    assert isinstance(events[1], Whole)
    assert reply.blocks[0].native is not None
    assert reply.blocks[0].native.fragment == {"type": "compaction", "content": "So far: sky."}
    assert reply.finish == "pause"


def test_a_stop_sequence() -> None:
    events, reply = told(START, begin_text(0), say(0, "Hm."), stop(0), end("stop_sequence", "###"), STOP)
    assert (reply.finish, reply.stop_sequence) == ("stop", "###")
    assert events[-1] == Finished("stop", "stop_sequence", "###")


@pytest.mark.parametrize("reason", [[], {}, 3, ["max_tokens"]])
def test_a_stop_reason_that_is_none(reason: Any) -> None:
    assert spoken(begin_call(0), end(reason), STOP).finish == "tool_calls"
    assert ANTHROPIC.parse_reply({**anthropic_reply(), "stop_reason": reason}).finish == "stop"


def test_usage_is_put_together_from_beginning_and_end() -> None:
    events, reply = told(START, begin_text(0), stop(0), end(cache_read_input_tokens=None), STOP)
    used = Usage(input=15, output=7, cache_read=4)
    assert reply.usage == used
    assert [event for event in events if isinstance(event, UsageTold)] == [UsageTold(used)]
    reply = spoken(end(input_tokens=20, cache_read_input_tokens=0, output_tokens_details={"thinking_tokens": 3}), STOP)
    assert reply.usage == Usage(input=20, output=7, reasoning=3)


def test_a_message_at_once_instead_of_a_stream() -> None:
    body = anthropic_reply(thinking("Hm."), text("Hello."), use("toolu_1", "read_file", {"path": "a"}))
    events, reply = read(ANTHROPIC, json.dumps(body, indent=1).encode())
    keeps_the_rules(events, reply)
    assert bare(reply) == bare(ANTHROPIC.parse_reply(body))
    assert only_call(reply).id == only_call(spoken(begin_call(0), stop(0), STOP)).id


def test_an_error_body_at_once_instead_of_a_stream() -> None:
    with pytest.raises(RemoteProtocolError, match="overloaded_error: Overloaded"):
        read(ANTHROPIC, json.dumps(ERROR).encode())


def test_events_without_names() -> None:
    assert read(ANTHROPIC, served(*RECORDED, named=False)) == read(ANTHROPIC, served(*RECORDED))


def test_payloads_without_types_under_names() -> None:
    named = [
        f"event: {payload['type']}\ndata: {json.dumps({**payload, 'type': None})}\n\n".encode() for payload in RECORDED
    ]
    assert read(ANTHROPIC, named) == read(ANTHROPIC, served(*RECORDED))


def test_payloads_that_somebody_decoded() -> None:
    assert taken(ANTHROPIC, RECORDED) == read(ANTHROPIC, served(*RECORDED))


def test_a_payload_is_not_changed_by_being_read() -> None:
    payloads = json.loads(json.dumps(RECORDED))
    taken(ANTHROPIC, payloads)
    assert payloads == RECORDED


def test_deltas_of_unknown_types_are_kept_at_home() -> None:
    payloads = [begin(0, type="melody", key="C"), delta(0, "note_delta", notes=["c"], score="do "), stop(0)]
    payloads[2:2] = [delta(0, "note_delta", notes=["d"], score="re", beat=[1])]
    events, reply = told(START, *payloads, end(), STOP)
    kept = {"type": "melody", "key": "C", "notes": ["c", "d"], "score": "do re", "beat": [1]}
    assert isinstance(reply.blocks[0], Opaque)
    assert reply.blocks[0].native == Native("anthropic", kept)
    data, _ = written(ANTHROPIC, events)
    assert read(ANTHROPIC, data)[1].blocks == reply.blocks


def test_what_is_said_around_the_reply_is_kept() -> None:
    said = {**end(), "context_management": {"applied_edits": [{"type": "x"}]}}
    said["delta"] = {**said["delta"], "container": {"id": "c_1", "expires_at": "2026-01-01T00:00:00Z"}}
    events, reply = told(START, begin_text(0), say(0, "Hm."), stop(0), said, {**STOP, "metrics": {"ms": 3}})
    assert reply.native is not None
    assert {"context_management", "container", "metrics"} <= reply.native.fragment.keys()
    again = read(ANTHROPIC, written(ANTHROPIC, events)[0])[1]
    assert (bare(again), again.native) == (bare(reply), reply.native)


def test_content_in_the_first_event() -> None:
    start = {**START, "message": {**START["message"], "content": [text("He"), use("toolu_1", "f", {"a": 1})]}}
    _, reply = told(start, say(0, "llo"), stop(0), end("tool_use"), STOP)
    assert (reply.text, only_call(reply).arguments) == ("Hello", {"a": 1})


def test_words_in_the_first_event_of_a_block() -> None:
    assert spoken(begin(0, **text("He")), say(0, "llo"), stop(0), end(), STOP).text == "Hello"


def test_the_mark_that_ends_streams_of_other_apis_is_an_end() -> None:
    _, reply = read(ANTHROPIC, served(START, begin_text(0), say(0, "Hm.")) + b"data: [DONE]\n\n")
    assert (reply.text, reply.finish) == ("Hm.", "stop")


def test_another_model_goes_on() -> None:
    block = {"type": "fallback", "from": {"model": "claude-opus-4-6"}, "to": {"model": "claude-haiku-4-5"}}
    events, reply = told(START, begin(0, **block), stop(0), begin_call(1), stop(1), end("tool_use"), STOP)
    assert (reply.model, only_call(reply).origin.model) == ("claude-haiku-4-5", "claude-haiku-4-5")
    assert sdk(written(ANTHROPIC, events)[0], beta=True)[-1].model == "claude-haiku-4-5"


def test_half_a_character_in_each_of_two_deltas() -> None:
    data = served(START, begin_text(0)) + b"".join(
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}\n\n' % half
        for half in (rb"a\ud83c", rb"\udf0db")
    )
    assert read(ANTHROPIC, data + served(stop(0), end(), STOP))[1].text == "a🌍b"


@pytest.mark.parametrize("seed", range(400))
def test_mutated_streams_give_a_value_or_a_remote_error(seed: int) -> None:
    payloads = mutants(RECORDED, seed)

    def run() -> None:
        frames = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)
        events, reply = read(ANTHROPIC, frames)
        keeps_the_rules(events, reply)
        written(ANTHROPIC, events)

    gives_a_value_or_a_remote_error(run)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes_give_a_value_or_a_remote_error(data: bytes) -> None:
    gives_a_value_or_a_remote_error(lambda: read(ANTHROPIC, data))
    gives_a_value_or_a_remote_error(lambda: read(ANTHROPIC, served(START, begin_call(0)) + data))
    gives_a_value_or_a_remote_error(lambda: read(ANTHROPIC, served(START, begin_text(0)) + b"data: " + data + b"\n\n"))


def test_the_cost_of_a_call_in_a_hundred_thousand_pieces_is_linear() -> None:
    """With joining at each piece this would take minutes."""
    parser = ANTHROPIC.open_stream("turn-7")
    parser.feed(served(START, begin_call(0), put(0, '{"a": "')))
    piece = served(put(0, "x" * 50), delta(0, "odd_delta", more="y" * 50)) * 100
    for _ in range(1000):
        parser.feed(piece)
        parser.events()
    parser.feed(served(put(0, '"}'), stop(0), end("tool_use"), STOP))
    assert len(only_call(parser.close()).arguments["a"]) == 5_000_000


# ------------------------------------------------------------------------------------------------------------- writing


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    with streaming() as made:
        _SERVER.append(made)
        yield
        _SERVER.clear()


_SERVER: list[Streaming] = []
ASKED: dict[str, Any] = {
    "model": "claude-opus-4-6",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Go."}],
}


def sdk(data: bytes, *, beta: bool = False) -> list[Any]:
    """The events that the vendor's client fires, and at the end the message that it put together."""
    (server,) = _SERVER
    server.answer = data
    client = anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0, timeout=10)
    with client, (client.beta if beta else client).messages.stream(**ASKED) as stream:
        fired: list[Any] = list(stream)
        return [*fired, stream.get_final_message()]


def contents(message: Any) -> list[dict[str, Any]]:
    """The blocks of a message as the client has them, without what says nothing."""
    blocks = [block.to_dict() for block in message.content]
    return [{key: value for key, value in block.items() if key != "parsed_output"} for block in blocks]


def same_to_the_client(body: dict[str, Any], *, beta: bool = False) -> None:
    """A body in the wire's own stream: read back by segue it is the same reply, and by the vendor's client too."""
    reply = read(ANTHROPIC, json.dumps(body).encode())[1]
    for at_once in (True, False):
        data, _ = written(ANTHROPIC, events_of(reply), at_once=at_once)
        events, again = read(ANTHROPIC, data)
        keeps_the_rules(events, again)
        assert again == reply
    message = sdk(data, beta=beta)[-1]
    assert contents(message) == body["content"]
    assert (message.id, message.model) == (body["id"], body["model"])
    assert (message.stop_reason, message.stop_sequence) == (body["stop_reason"], body["stop_sequence"])
    used = message.usage.to_dict()
    assert {key: used[key] for key in body["usage"]} == body["usage"]


BODIES: dict[str, dict[str, Any]] = {
    "text": anthropic_reply(text('Hello. \n"\\ é🌍')),
    "nothing": anthropic_reply(),
    "call": anthropic_reply(text("Reading."), use("toolu_1", "read_file", {"path": "a"})),
    "no arguments": anthropic_reply(use("toolu_1", "now", {})),
    "two calls": anthropic_reply(use("toolu_1", "f", {"a": [1, {"b": None}]}), use("toolu_2", "f", {"a": "ü"})),
    "text after a call": anthropic_reply(use("toolu_1", "f", {"a": 1}), text("And so.")),
    "caller": anthropic_reply(
        use("toolu_1", "f", {"a": 1}, caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_1"})
    ),
    "thinking": anthropic_reply(thinking("Hm.\nHm."), text("So."), stop="end_turn"),
    "thinking not shown": anthropic_reply(thinking(""), text("So.")),
    "redacted": anthropic_reply({"type": "redacted_thinking", "data": "c2VhbGVk"}, text("So.")),
    "citations": anthropic_reply({"type": "text", "text": "Sky.", "citations": [CITATION, CITATION]}),
    "citations none": anthropic_reply({"type": "text", "text": "Sky.", "citations": None}),
    "length": anthropic_reply(text("Hello"), stop="max_tokens"),
    "refusal": anthropic_reply(text("No."), stop="refusal"),
    "pause": anthropic_reply(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "sky"}},
        stop="pause_turn",
    ),
    "stop sequence": {**anthropic_reply(text("Hm."), stop="stop_sequence"), "stop_sequence": "###"},
    "usage": {
        **anthropic_reply(text("Hm.")),
        "usage": {
            "input_tokens": 3,
            "output_tokens": 5,
            "cache_creation_input_tokens": 7,
            "cache_read_input_tokens": 9,
            "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0},
            "service_tier": "standard",
            "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
        },
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_the_vendors_client_reads_the_same_reply(name: str) -> None:
    same_to_the_client(BODIES[name])


def test_a_compaction_goes_home() -> None:
    compaction = {"type": "compaction", "content": "So far: sky.", "encrypted_content": "c2k="}
    same_to_the_client(anthropic_reply(compaction, text("Hm.")), beta=True)


def sampled() -> Iterator[Any]:
    for path in sorted(SAMPLES.glob("*.json")):
        for sample in json.loads(path.read_text()):
            kind = sample["payload"].get("type", "")
            on_messages = kind.endswith(("tool_use", "_tool_result")) and not kind.startswith(("agent.", "user."))
            if sample["boundary"] == "response" and on_messages:
                yield pytest.param(sample["payload"], id=f"{path.stem}-{sample['case']}")


@pytest.mark.parametrize("block", list(sampled()))
def test_every_catalogued_block_of_a_reply(block: dict[str, Any]) -> None:
    same_to_the_client(anthropic_reply(text("Hm."), block, stop="end_turn"), beta=True)


def test_there_are_catalogued_blocks() -> None:
    assert len(list(sampled())) > 15


def test_the_client_fires_what_happened() -> None:
    data, _ = written(ANTHROPIC, read(ANTHROPIC, served(*RECORDED))[0])
    fired = [event.type for event in sdk(data)[:-1]]
    assert [kind for kind in fired if kind not in ("content_block_delta", "input_json")] == [
        "message_start",
        *("content_block_start", "thinking", "thinking", "signature", "content_block_stop"),
        *("content_block_start", "text", "text", "citation", "content_block_stop"),
        *("content_block_start", "content_block_stop"),
        *("content_block_start", "content_block_stop"),
        *("content_block_start", "content_block_stop"),
        *("message_delta", "message_stop"),
    ]


def test_a_stream_passed_on_while_it_comes_is_the_stream() -> None:
    out = live(ANTHROPIC, ANTHROPIC, served(*RECORDED))
    assert read(ANTHROPIC, out)[1] == read(ANTHROPIC, served(*RECORDED))[1]
    first, last = sdk(out)[0].message, sdk(out)[-1]
    # What was not known at the beginning is not said there.
    assert (first.usage.input_tokens, first.usage.output_tokens, first.stop_reason) == (11, 1, None)
    assert (last.usage.input_tokens, last.usage.output_tokens, last.stop_reason) == (12, 7, "tool_use")


def test_the_asynchronous_client_reads_the_same() -> None:
    (server,) = _SERVER
    server.answer, _ = written(ANTHROPIC, read(ANTHROPIC, served(*RECORDED))[0])

    async def ask() -> Any:
        async with (
            anthropic.AsyncAnthropic(api_key="none", base_url=server.url, max_retries=0) as client,
            client.messages.stream(**ASKED) as stream,
        ):
            return await stream.get_final_message()

    assert contents(asyncio.run(ask())) == contents(sdk(server.answer)[-1])


def from_abroad(*blocks: Any, finish: Any = "stop", **said: Any) -> list[Any]:
    return events_of(Reply(blocks, finish, Usage(11, 7, 4), "chatcmpl-1", "gpt-4.1", **said))


CALL = ToolCall("read_file", {"path": "a"}, "hist_tool_1", origin=Origin("openai", raw_id="call_1"))


def test_a_reply_from_abroad() -> None:
    data, report = written(ANTHROPIC, from_abroad(Text("Hm."), CALL, finish="tool_calls"))
    message = sdk(data)[-1]
    assert message.id.startswith("msg_")
    assert message.model == "gpt-4.1"
    (said, used) = contents(message)
    assert said == {"type": "text", "text": "Hm."}
    assert used == {"type": "tool_use", "id": used["id"], "name": "read_file", "input": {"path": "a"}}
    assert used["id"].startswith("toolu_")
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("tool_use", 7, 7)
    assert not report.findings


def test_what_a_client_cant_be_told_is_left_out_as_of_a_whole_reply() -> None:
    blocks = (
        Thinking("Hm.", origin=Origin("deepseek")),
        Text(""),
        ToolCall("web_search", {}, "hist_tool_2", kind="hosted", origin=Origin("openai")),
        ToolResponse("hist_tool_2", "web_search", (Text("sky"),), hosted=True, origin=Origin("openai")),
        Media("image", url="https://a.example/b.png"),
        Opaque("melody", text="do re"),
        CALL,
    )
    events = from_abroad(*blocks, finish="tool_calls")
    data, report = written(ANTHROPIC, events)
    whole, expected = told_at_once(Reply(blocks, "tool_calls", Usage(11, 7, 4)), ANTHROPIC)
    assert [finding.message for finding in report.findings] == [finding.message for finding in expected.findings]
    said = contents(sdk(data)[-1])
    for block in [*said, *whole["content"]]:
        block.pop("id", None)
    assert said == whole["content"]


def test_keys_that_blocks_do_not_have_are_named_as_of_a_whole_reply() -> None:
    body = anthropic_reply({**text("Hm."), "mood": "blue"}, use("toolu_1", "f", {"a": 1}, mood="red"))
    reply = read(ANTHROPIC, json.dumps(body).encode())[1]
    data, report = written(ANTHROPIC, events_of(reply))
    _, expected = told_at_once(reply, ANTHROPIC)
    assert [finding.message for finding in report.findings] == [finding.message for finding in expected.findings]
    assert len(report.findings) == 2
    assert b"mood" not in data


def test_blocks_that_came_at_once_follow_one_another() -> None:
    first, second = (msgspec.structs.replace(CALL, id=f"hist_tool_{at}") for at in "ab")
    bare_call = [msgspec.structs.replace(call, arguments={}) for call in (first, second)]
    events = [
        Opened(None, "m"),
        *(Start(0, bare_call[0]), Start(1, bare_call[1]), InputDelta(1, '{"path":'), InputDelta(0, '{"path"')),
        *(InputDelta(1, '"a"}'), End(1, second), InputDelta(0, ':"a"}'), End(0, first)),
        Finished("tool_calls"),
    ]
    for at_once in (True, False):
        message = sdk(written(ANTHROPIC, events, at_once=at_once)[0])[-1]
        assert [block.input for block in message.content] == [{"path": "a"}, {"path": "a"}]


FREE = ToolCall("patch", 'a "quoted"\nline', "hist_tool_1", kind="custom", origin=Origin("openai"))


@pytest.mark.parametrize(
    ("call", "pieces", "expected"),
    [
        (FREE, ['a "quo', 'ted"\nline'], {"input": 'a "quoted"\nline'}),
        (FREE, [], {"input": ""}),
        (msgspec.structs.replace(CALL, arguments=[1, 2]), ["[1, ", "2]"], {"value": [1, 2]}),
        (msgspec.structs.replace(CALL, arguments=None, arguments_text="oops"), ["oo", "ps"], {"_raw": "oops"}),
        (msgspec.structs.replace(CALL, arguments={}), [], {}),
        (CALL, ["\n ", '{"path": ', '"a"}'], {"path": "a"}),
    ],
)
def test_arguments_are_an_object(call: ToolCall, pieces: list[str], expected: Any) -> None:
    begun = msgspec.structs.replace(call, arguments={}, arguments_text=None)
    told = [InputDelta(0, piece) for piece in pieces]
    data, report = written(ANTHROPIC, [Opened(), Start(0, begun), *told, End(0, call), Finished("tool_calls")])
    assert sdk(data)[-1].content[0].input == expected
    assert bool(report.of("argument")) is ("path" not in expected and expected != {})


@pytest.mark.parametrize("pieces", [[], ['{"path": "a'], ['{"a": 1, "pa']])
@pytest.mark.parametrize("finish", ["length", "tool_calls", "error"])
def test_a_broken_call_ends_as_the_length_limit_leaves_it(pieces: list[str], finish: Any) -> None:
    broken = msgspec.structs.replace(CALL, arguments=None, arguments_text="".join(pieces), broken=True)
    begun = msgspec.structs.replace(CALL, arguments={})
    told = [InputDelta(0, piece) for piece in pieces]
    data, _ = written(ANTHROPIC, [Opened(), Start(0, begun), *told, End(0, broken), Finished(finish)])
    message = sdk(data)[-1]
    assert message.stop_reason == "max_tokens"
    assert read(ANTHROPIC, data)[1].calls[0].broken
    assert read(ANTHROPIC, data)[1].calls[0].arguments_text == "".join(pieces)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ApiError(529, "Overloaded", kind="overloaded_error"), "overloaded_error"),
        (ApiError(429, "Slow down."), "rate_limit_error"),
        (ApiError(0, "the stream ended before the reply did", kind="stream_ended"), "api_error"),
    ],
)
def test_a_failure_is_an_error_event_and_no_end(error: ApiError, kind: str) -> None:
    events = [Opened(), Start(0, Text("")), TextDelta(0, "Hm."), End(0, Text("Hm.")), Failed(error)]
    data, _ = written(ANTHROPIC, events)
    assert b"message_stop" not in data
    assert b"message_delta" not in data
    with pytest.raises(anthropic.APIStatusError) as caught:
        sdk(data)
    assert caught.value.body == {"type": "error", "error": {"type": kind, "message": error.message}}
    assert read(ANTHROPIC, data)[0][-1] == Failed(
        ApiError({"api_error": 500}.get(kind, error.status), error.message, kind=kind)
    )


def test_a_stop_sequence_from_abroad() -> None:
    data, _ = written(ANTHROPIC, from_abroad(Text("Hm."), stop_sequence="###"))
    message = sdk(data)[-1]
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "###")


def test_the_model_that_was_asked_where_the_reply_names_none() -> None:
    projection = Projection(
        IdMap(ANTHROPIC.ids(identify(None)), provider="x"), NameMap(ANTHROPIC.names(identify(None))), Report()
    )
    renderer = ANTHROPIC.stream_renderer(projection, "claude-haiku-4-5", None)
    assert b'"model":"claude-haiku-4-5"' in renderer.render([Opened()])


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
blocks: Any = st.one_of(
    st.text(min_size=1, max_size=30).map(text),
    st.text(max_size=30).map(thinking),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3).map(lambda value: use("toolu_x", "f", value)),
)


def in_pieces(body: dict[str, Any], chance: random.Random) -> list[Any]:
    """A body as its server would stream it, cut anywhere."""

    def cut(said: str) -> list[str]:
        pieces: list[str] = []
        while said:
            size = chance.randint(1, 4)
            pieces, said = [*pieces, said[:size]], said[size:]
        return pieces

    message = {**body, "content": [], "stop_reason": None, "usage": {"input_tokens": 11, "output_tokens": 1}}
    payloads: list[Any] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(body["content"]):
        kind = block["type"]
        if kind == "tool_use":
            spaced = json.dumps(block["input"], ensure_ascii=chance.random() < 0.5)
            payloads += [begin(index, **{**block, "input": {}}), *[put(index, piece) for piece in cut(spaced)]]
        elif kind == "text":
            payloads += [begin(index, **{**block, "text": ""}), *[say(index, piece) for piece in cut(block["text"])]]
        else:
            payloads.append(begin(index, type="thinking", thinking="", signature=""))
            payloads += [delta(index, "thinking_delta", thinking=piece) for piece in cut(block["thinking"])]
            payloads.append(delta(index, "signature_delta", signature=block["signature"]))
        payloads.append(stop(index))
    return [*payloads, end(body["stop_reason"], **body["usage"]), STOP]


@given(st.lists(blocks, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_reply_in_any_pieces(content: Sequence[Any], chance: random.Random) -> None:
    body = anthropic_reply(*content)
    events, reply = read(ANTHROPIC, served(*in_pieces(body, chance)))
    keeps_the_rules(events, reply)
    at_once = ANTHROPIC.parse_reply(body)
    assert bare(reply) == bare(at_once)
    assert reply.native == at_once.native
    assert read(ANTHROPIC, written(ANTHROPIC, events)[0])[1] == reply

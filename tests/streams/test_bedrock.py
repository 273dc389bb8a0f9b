"""Streams of Converse: how the service tells a reply, and what botocore's own parser reads back."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import botocore.session
import msgspec
import pytest
from botocore.config import Config
from botocore.exceptions import EventStreamError
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.canonical.blocks import Media, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Reply, Usage
from segue.errors import RemoteProtocolError
from segue.wire.anthropic import ANTHROPIC
from segue.wire.base import ApiError
from segue.wire.bedrock import BEDROCK
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
from segue.wire.framing import event_message
from tests.conversations.build import PNG, thought, tool_result, tool_use
from tests.conversations.replies import bedrock_reply
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
from .test_anthropic import CALL, FREE, from_abroad, json_values
from .test_anthropic import RECORDED as THEIRS

SAMPLES = Path(__file__).parent.parent / "catalog" / "samples" / "bedrock"
START = {"messageStart": {"role": "assistant", "p": "abc"}}
USAGE = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
META = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 551}, "p": "abcdefgh"}}
CITATION = {
    "title": "Sky",
    "sourceContent": [{"text": "the sky"}],
    "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 7}},
}


def delta(index: Any, **said: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": said, "p": "ab"}}


def say(index: Any, words: str) -> dict[str, Any]:
    return delta(index, text=words)


def put(index: Any, piece: Any) -> dict[str, Any]:
    return delta(index, toolUse={"input": piece})


def think(index: Any, **said: Any) -> dict[str, Any]:
    return delta(index, reasoningContent=said)


def begin(index: Any, **start: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"start": start, "contentBlockIndex": index, "p": "a"}}


def begin_call(index: Any, call_id: str = "tooluse_1", name: str = "read_file", **more: Any) -> dict[str, Any]:
    return begin(index, toolUse={"toolUseId": call_id, "name": name, **more})


def stop(index: Any) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index, "p": "abcd"}}


def end(reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {"messageStop": {"stopReason": reason, "p": "abc", **more}}


RECORDED = [
    START,
    think(0, text="Let me "),
    think(0, text="see. 🌍"),
    think(0, signature="RXFRQkNnSVlBaElN"),
    stop(0),
    say(1, "Reading"),
    say(1, " it… é"),
    stop(1),
    begin_call(2),
    put(2, ""),
    *[put(2, piece) for piece in '{"path": "ä\\n", "n": [1]}'],
    stop(2),
    end("tool_use"),
    META,
]


def framed(*payloads: Any) -> bytes:
    """Payloads as the service sends them; exceptions are messages of their own kind."""
    messages: list[bytes] = []
    for payload in payloads:
        ((kind, said),) = payload.items()
        headers = {"event_type": kind, "content_type": "application/json", "message_type": "event"}
        if kind.endswith("Exception"):
            headers = {"exception_type": kind, "content_type": "application/json", "message_type": "exception"}
        messages.append(event_message(json.dumps(said).encode(), **headers))
    return b"".join(messages)


def told(*payloads: Any) -> tuple[Any, Reply]:
    """What is read of a stream: the same whether it is framed, cut anywhere, or given as boto3 decodes it."""
    data = framed(*payloads)
    events, reply = read(BEDROCK, data)
    keeps_the_rules(events, reply)
    assert read(BEDROCK, [data[at : at + 1] for at in range(len(data))]) == (events, reply)
    assert taken(BEDROCK, payloads) == (events, reply)
    lines = "\n".join(json.dumps(payload) for payload in payloads).encode()
    assert read(BEDROCK, lines) == (events, reply)
    return events, reply


def spoken(*payloads: Any) -> Reply:
    return told(START, *payloads, META)[1]


def only_call(reply: Reply) -> ToolCall:
    (call,) = reply.calls
    return call


# ------------------------------------------------------------------------------------------------------------- reading


def test_a_recorded_stream_is_the_reply_that_would_have_come_at_once() -> None:
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
        *(Opened, Start, ThinkingDelta, ThinkingDelta, End, Start, TextDelta, TextDelta, End),
        *(Start, End, UsageTold, Finished),
    ]


@pytest.mark.parametrize("pieces", list(splits(framed(*RECORDED))))
def test_any_split_gives_the_same_events(pieces: list[bytes]) -> None:
    assert read(BEDROCK, pieces) == read(BEDROCK, framed(*RECORDED))


def test_a_call_is_known_by_its_canonical_id_from_the_first_moment() -> None:
    parser = BEDROCK.open_stream("turn-7")
    parser.feed(framed(START, begin_call(0)))
    start = parser.events()[-1]
    assert isinstance(start, Start)
    assert isinstance(start.block, ToolCall)
    assert (start.block.name, start.block.origin.raw_id) == ("read_file", "tooluse_1")
    parser.feed(framed(put(0, "{}"), stop(0), end("tool_use"), META))
    assert only_call(parser.close()).id == start.block.id


def test_words_are_told_as_they_come() -> None:
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


def test_words_without_a_beginning_as_the_service_tells_them() -> None:
    reply = spoken(say(0, "Hel"), say(0, "lo"), stop(0), begin_call(1), stop(1), say(2, "."), stop(2), end("tool_use"))
    assert [type(block) for block in reply.blocks] == [Text, ToolCall, Text]
    assert reply.text == "Hello."


def test_words_with_a_beginning() -> None:
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
    assert reply.blocks[0].sealed == sealed
    payloads = [START, think(0, redactedContent=b"sea"), think(0, redactedContent=b"led"), stop(0), end()]
    (block,) = taken(BEDROCK, payloads)[1].blocks
    assert isinstance(block, Thinking)
    assert block.sealed == sealed


def test_reasoning_and_redacted_reasoning_under_one_index() -> None:
    reply = spoken(think(0, text="Hm."), think(0, redactedContent="c2VhbGVk"), stop(0), end())
    assert [(block.text, block.sealed) for block in reply.blocks if isinstance(block, Thinking)] == [
        ("Hm.", None),
        ("", "c2VhbGVk"),
    ]


def test_usage_and_metrics_come_after_the_stop() -> None:
    used = {**USAGE, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 2}
    meta = {"metadata": {**META["metadata"], "usage": used}}
    events, reply = told(START, say(0, "Hm."), stop(0), end(), meta)
    assert reply.usage == Usage(16, 7, 3, 2)
    assert events[-2] == UsageTold(Usage(16, 7, 3, 2))
    assert reply.native is not None
    assert reply.native.fragment["metrics"] == {"latencyMs": 551}


TRACE = {"guardrail": {"inputAssessment": {"g1": {"topicPolicy": {"topics": []}}}, "actionReason": "blocked"}}


def test_the_trace_of_a_guardrail_is_kept() -> None:
    meta = {"metadata": {**META["metadata"], "trace": TRACE, "performanceConfig": {"latency": "standard"}}}
    events, reply = told(START, say(0, "No."), stop(0), end("guardrail_intervened"), meta)
    assert reply.finish == "filter"
    assert reply.native is not None
    assert reply.native.fragment["trace"] == TRACE
    data, _ = written(BEDROCK, events)
    assert read(BEDROCK, data)[1] == reply
    assert sdk(data)[-1]["metadata"]["trace"] == TRACE


def test_a_stop_sequence_in_the_fields_of_the_model() -> None:
    fields = {"additionalModelResponseFields": {"stop_sequence": "###"}}
    events, reply = told(START, say(0, "Hm."), stop(0), end("stop_sequence", **fields), META)
    assert (reply.finish, reply.stop_sequence) == ("stop", "###")
    data, _ = written(BEDROCK, events)
    assert sdk(data)[-2]["messageStop"] == {"stopReason": "stop_sequence", **fields}


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
    assert (reply.text, reply.finish, reply.cause) == ("Hm.", "error", "No more.")
    assert only_call(reply).broken
    assert only_call(reply).arguments_text == '{"path": "a'


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_before_the_reply(name: str) -> None:
    for data in (framed({name: {"message": "No."}}), json.dumps({name: {"message": "No."}}).encode()):
        with pytest.raises(RemoteProtocolError) as caught:
            read(BEDROCK, data)
        assert (caught.value.status, caught.value.kind) == EXCEPTIONS[name]


def test_an_error_that_stands_in_the_headers() -> None:
    data = event_message(b"", message_type="error", error_code="InternalFailure", error_message="Out of order.")
    events, reply = read(BEDROCK, framed(START, say(0, "Hm.")) + data)
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, reply.cause) == ("InternalFailure", "Out of order.")


def test_an_exception_without_a_payload() -> None:
    data = event_message(b"", message_type="exception", exception_type="throttlingException")
    events, _ = read(BEDROCK, framed(START, say(0, "Hm.")) + data)
    assert isinstance(events[-1], Failed)
    assert events[-1].error.status == 429


def test_an_error_body_at_once_instead_of_a_stream() -> None:
    with pytest.raises(RemoteProtocolError, match="The model is gone"):
        read(BEDROCK, b'{"message": "The model is gone."}')


def test_a_reply_at_once_instead_of_a_stream() -> None:
    body = bedrock_reply(thought("Hm."), {"text": "Hello."}, tool_use("tooluse_1", value={"path": "a"}))
    events, reply = read(BEDROCK, json.dumps(body).encode())
    keeps_the_rules(events, reply)
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


def test_input_for_no_call_is_not_given_to_another() -> None:
    ended = [begin_call(0, "a"), put(0, '{"n": 0}'), stop(0), begin_call(1, "b")]
    for payloads in ([put(0, "{}")], [*ended, put(0, '{"n": 1}')]):
        with pytest.raises(RemoteProtocolError, match="not begun or has ended"):
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
    keeps_the_rules(events, reply)
    assert (reply.finish, isinstance(events[-1], Failed)) == ("error", True)
    assert [call.broken for call in reply.calls] in ([], [reply.calls and reply.calls[0].arguments is None])
    assert "Reading it… é".startswith(reply.text)


def test_citations() -> None:
    payloads = [say(0, "Sky."), delta(0, citation=CITATION), delta(0, citation={**CITATION, "title": "B"}), stop(0)]
    events, reply = told(START, *payloads, end(), META)
    cited = {"citationsContent": {"content": [{"text": "Sky."}], "citations": [CITATION, {**CITATION, "title": "B"}]}}
    assert reply.text == "Sky."
    assert reply.blocks[0].native == Native("bedrock", cited)
    assert read(BEDROCK, written(BEDROCK, events)[0])[1] == reply


def test_what_the_provider_ran_is_told_whole() -> None:
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
    assert [type(event) for event in events[1:-2]] == [Whole, Whole]
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


def test_half_a_picture_is_kept_and_no_picture() -> None:
    _, reply = told(START, say(0, "See:"), stop(0), begin(1, image={"format": "png"}))
    assert (reply.text, reply.finish) == ("See:", "error")
    assert isinstance(reply.blocks[1], Opaque)


@pytest.mark.parametrize("reason", [[], {}, 3, ["max_tokens"]])
def test_a_stop_reason_that_is_none(reason: Any) -> None:
    payloads = [START, begin_call(0), {"messageStop": {"stopReason": reason}}]
    assert told(*payloads)[1].finish == "tool_calls"
    assert BEDROCK.parse_reply({**bedrock_reply(), "stopReason": reason}).finish == "stop"


def test_blocks_of_unknown_kinds_are_kept_at_home() -> None:
    payloads = [begin(0, melody={"key": "C"}), delta(0, melody={"notes": ["c"]}), delta(0, melody={"notes": ["d"]})]
    (block,) = spoken(*payloads, stop(0), end()).blocks
    assert isinstance(block, Opaque)
    assert block.native is not None
    assert block.native.fragment == {"melody": {"key": "C", "notes": ["c", "d"]}}


def test_unknown_events_say_nothing() -> None:
    odd = {"weather": {"message": "sunny"}}
    assert spoken(odd, say(0, "Hm."), odd, stop(0), end()).text == "Hm."


@pytest.mark.parametrize("seed", range(300))
def test_mutated_streams_give_a_value_or_a_remote_error(seed: int) -> None:
    server = [begin_call(3, type="server_tool_use"), put(3, "{}"), stop(3), begin(4, image={"format": "png"})]
    payloads = mutants([*RECORDED[:-2], *server, delta(4, image={"source": {"bytes": PNG}}), *RECORDED[-2:]], seed)

    def run() -> None:
        events, reply = read(BEDROCK, "\n".join(json.dumps(payload) for payload in payloads if payload).encode())
        keeps_the_rules(events, reply)
        written(BEDROCK, events)

    gives_a_value_or_a_remote_error(run)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes_give_a_value_or_a_remote_error(data: bytes) -> None:
    gives_a_value_or_a_remote_error(lambda: read(BEDROCK, data))
    gives_a_value_or_a_remote_error(lambda: read(BEDROCK, framed(START, begin_call(0)) + data))
    headers = {"event_type": "contentBlockDelta", "message_type": "event"}
    gives_a_value_or_a_remote_error(lambda: read(BEDROCK, framed(START) + event_message(data, **headers)))


def test_a_damaged_message_is_a_remote_error() -> None:
    data = framed(*RECORDED)
    for at in range(0, len(data), 7):
        spoiled = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        gives_a_value_or_a_remote_error(lambda spoiled=spoiled: read(BEDROCK, spoiled))


# ------------------------------------------------------------------------------------------------------------- writing


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    with streaming("application/vnd.amazon.eventstream") as made:
        client = botocore.session.get_session().create_client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=made.url,
            aws_access_key_id="nobody",
            aws_secret_access_key="nothing",
            config=Config(retries={"max_attempts": 0}),
        )
        _SERVER.append((made, client))
        yield
        _SERVER.clear()


_SERVER: list[tuple[Streaming, Any]] = []


def sdk(data: bytes) -> list[dict[str, Any]]:
    """The events that botocore's client reads."""
    ((server, client),) = _SERVER
    server.answer = data
    messages = [{"role": "user", "content": [{"text": "Go."}]}]
    return list(client.converse_stream(modelId="a-model", messages=messages)["stream"])


def put_together(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks as a client of boto3 puts them together; nothing that the service model does not know."""
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        assert len(event) == 1
        assert "SDK_UNKNOWN_MEMBER" not in event
        if "contentBlockStart" in event:
            said = event["contentBlockStart"]
            assert said["contentBlockIndex"] == len(blocks)
            blocks[said["contentBlockIndex"]] = {key: dict(value) for key, value in said["start"].items()}
        elif "contentBlockDelta" in event:
            said = event["contentBlockDelta"]
            block = blocks.setdefault(said["contentBlockIndex"], {})
            ((kind, value),) = said["delta"].items()
            match kind:
                case "text":
                    block["text"] = block.get("text", "") + value
                case "toolUse":
                    block[kind]["input"] = block[kind].get("input", "") + value["input"]
                case "toolResult":
                    block[kind]["content"] = [*block[kind].get("content", []), *value]
                case "reasoningContent":
                    inner = block.setdefault(kind, {})
                    for key, piece in value.items():
                        inner[key] = inner.get(key, type(piece)()) + piece
                case "citation":
                    block.setdefault("citations", []).append(value)
                case _:
                    block[kind].update(value)
    return [block for _, block in sorted(blocks.items())]


def as_streamed(block: dict[str, Any]) -> dict[str, Any]:
    """A block of an answer at once, as it is when its stream is put together."""
    match block:
        case {"toolUse": used}:
            return {"toolUse": {**used, "input": used["input"]}}
        case {"reasoningContent": {"reasoningText": thinking}}:
            return {"reasoningContent": thinking}
        case {"reasoningContent": {"redactedContent": sealed}}:
            return {"reasoningContent": {"redactedContent": base64.b64decode(sealed)}}
        case {"citationsContent": cited}:
            return {"text": cited["content"][0]["text"], "citations": cited["citations"]}
        case {"image": {"format": kind, "source": source}}:
            return {"image": {"format": kind, "source": {"bytes": base64.b64decode(source["bytes"])}}}
        case _:
            return block


def with_values(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"toolUse": {**block["toolUse"], "input": json.loads(block["toolUse"].get("input") or "{}")}}
        if "toolUse" in block
        else block
        for block in blocks
    ]


def same_to_the_client(body: dict[str, Any]) -> None:
    """A body in the wire's own stream: read back by segue it is the same reply, and by botocore too."""
    reply = read(BEDROCK, json.dumps(body).encode())[1]
    for at_once in (True, False):
        data, _ = written(BEDROCK, events_of(reply), at_once=at_once)
        events, again = read(BEDROCK, data)
        keeps_the_rules(events, again)
        assert (bare(again), again.native) == (bare(reply), reply.native)
    fired = sdk(data)
    assert with_values(put_together(fired)) == [as_streamed(block) for block in body["output"]["message"]["content"]]
    assert fired[0] == {"messageStart": {"role": "assistant"}}
    assert fired[-2]["messageStop"]["stopReason"] == body["stopReason"]
    assert fired[-1] == {"metadata": {"usage": body["usage"], "metrics": body["metrics"]}}


BODIES: dict[str, dict[str, Any]] = {
    "text": bedrock_reply({"text": 'Hello. \n"\\ é🌍'}),
    "nothing": bedrock_reply(),
    "call": bedrock_reply({"text": "Reading."}, tool_use("tooluse_1", value={"path": "a"})),
    "no arguments": bedrock_reply(tool_use("tooluse_1", "now")),
    "two calls": bedrock_reply(tool_use("a", value={"a": [1, {"b": None}]}), tool_use("b", value={"a": "ü"})),
    "reasoning": bedrock_reply(thought("Hm.\nHm."), {"text": "So."}),
    "reasoning without a signature": bedrock_reply({"reasoningContent": {"reasoningText": {"text": "Hm."}}}),
    "redacted": bedrock_reply({"reasoningContent": {"redactedContent": "c2VhbGVk"}}, {"text": "So."}),
    "citations": bedrock_reply({"citationsContent": {"content": [{"text": "Sky."}], "citations": [CITATION]}}),
    "length": bedrock_reply({"text": "Hello"}, stop="max_tokens"),
    "filter": bedrock_reply({"text": "No."}, stop="guardrail_intervened"),
    "malformed": bedrock_reply({"text": "No."}, stop="malformed_tool_use"),
    "picture": bedrock_reply({"image": {"format": "png", "source": {"bytes": PNG}}}),
    "server": bedrock_reply(
        tool_use("s1", "nova_grounding", {"q": "sky"}, type="server_tool_use"),
        tool_result("s1", "blue", {"json": {"a": 1}}, type="nova_grounding_result"),
        stop="end_turn",
    ),
    "usage": {
        **bedrock_reply({"text": "Hm."}),
        "usage": {**USAGE, "cacheReadInputTokens": 3, "cacheDetails": [{"ttl": "5m", "inputTokens": 3}]},
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_botocore_reads_the_same_reply(name: str) -> None:
    same_to_the_client(BODIES[name])


def sampled() -> list[Any]:
    return [
        pytest.param(sample["payload"], id=f"{path.stem}-{sample['case']}")
        for path in sorted(SAMPLES.glob("*.json"))
        for sample in json.loads(path.read_text())
        if sample["boundary"] == "response"
    ]


@pytest.mark.parametrize("block", sampled())
def test_every_catalogued_block_of_a_reply(block: dict[str, Any]) -> None:
    same_to_the_client(bedrock_reply({"text": "Hm."}, block))


def test_a_stream_passed_on_while_it_comes_is_the_stream() -> None:
    out = live(BEDROCK, BEDROCK, framed(*RECORDED))
    assert read(BEDROCK, out)[1] == read(BEDROCK, framed(*RECORDED))[1]


def test_events_as_the_service_orders_them() -> None:
    data, _ = written(BEDROCK, read(BEDROCK, framed(*RECORDED))[0])
    kinds = [next(iter(event)) for event in sdk(data)]
    assert list(dict.fromkeys(pairwise(kinds))) == [
        ("messageStart", "contentBlockDelta"),
        ("contentBlockDelta", "contentBlockDelta"),
        ("contentBlockDelta", "contentBlockStop"),
        ("contentBlockStop", "contentBlockDelta"),
        ("contentBlockStop", "contentBlockStart"),
        ("contentBlockStart", "contentBlockDelta"),
        ("contentBlockStop", "messageStop"),
        ("messageStop", "metadata"),
    ]


def test_a_reply_from_abroad() -> None:
    data, report = written(BEDROCK, from_abroad(Text(" \n"), Text("Hm."), CALL, finish="tool_calls"))
    fired = sdk(data)
    said, used = with_values(put_together(fired))
    assert said == {"text": "Hm."}
    assert used["toolUse"]["toolUseId"].startswith("tooluse_")
    assert (used["toolUse"]["name"], used["toolUse"]["input"]) == ("read_file", {"path": "a"})
    assert fired[-2] == {"messageStop": {"stopReason": "tool_use"}}
    assert fired[-1]["metadata"]["usage"] == {**USAGE, "inputTokens": 7, "cacheReadInputTokens": 4}
    assert not report.findings


def test_a_stream_from_anthropic_while_it_comes() -> None:
    out = live(ANTHROPIC, BEDROCK, served(*THEIRS))
    said, used = with_values(put_together(sdk(out)))
    assert said == {"text": "Reading it… é"}
    assert used["toolUse"]["input"] == {"path": "ä\n", "n": [1]}


def test_blank_words_wait_for_others() -> None:
    events = [
        Opened(),
        Start(0, Text("")),
        TextDelta(0, "\n"),
        TextDelta(0, " "),
        TextDelta(0, "Hm."),
        TextDelta(0, " "),
    ]
    data, _ = written(BEDROCK, [*events, End(0, Text("\n Hm. ")), Finished("stop")], at_once=False)
    assert put_together(sdk(data)) == [{"text": "\n Hm. "}]


def test_what_a_client_cant_be_told_is_left_out_as_of_a_whole_reply() -> None:
    blocks = (
        Thinking("Hm.", "c2ln", origin=Origin("anthropic")),
        Text(""),
        ToolCall("web_search", {}, "hist_tool_2", kind="hosted", origin=Origin("openai")),
        ToolResponse("hist_tool_2", "web_search", (Text("sky"),), hosted=True, origin=Origin("openai")),
        Media("image", url="https://a.example/b.png"),
        Opaque("melody", text="do re"),
        CALL,
    )
    data, report = written(BEDROCK, from_abroad(*blocks, finish="tool_calls"))
    whole, expected = told_at_once(Reply(blocks, "tool_calls", Usage(11, 7, 4)), BEDROCK)
    assert [finding.message for finding in report.findings] == [finding.message for finding in expected.findings]
    said = with_values(put_together(sdk(data)))
    content = whole["output"]["message"]["content"]
    for block in [*said, *content]:
        block.get("toolUse", {}).pop("toolUseId", None)
    assert said == content


@pytest.mark.parametrize(
    ("call", "pieces", "expected"),
    [
        (FREE, ['a "quo', 'ted"\nline'], {"input": 'a "quoted"\nline'}),
        (msgspec.structs.replace(CALL, arguments=[1, 2]), ["[1, ", "2]"], {"value": [1, 2]}),
        (msgspec.structs.replace(CALL, arguments={}), [], {}),
    ],
)
def test_arguments_are_an_object(call: ToolCall, pieces: list[str], expected: Any) -> None:
    begun = msgspec.structs.replace(call, arguments={}, arguments_text=None)
    told = [InputDelta(0, piece) for piece in pieces]
    data, _ = written(BEDROCK, [Opened(), Start(0, begun), *told, End(0, call), Finished("tool_calls")])
    assert with_values(put_together(sdk(data)))[0]["toolUse"]["input"] == expected


def test_a_broken_call_ends_as_the_length_limit_leaves_it() -> None:
    broken = msgspec.structs.replace(CALL, arguments=None, arguments_text='{"pa', broken=True)
    begun = msgspec.structs.replace(CALL, arguments={})
    events = [Opened(), Start(0, begun), InputDelta(0, '{"pa'), End(0, broken), Finished("tool_calls")]
    data, _ = written(BEDROCK, events)
    assert {"messageStop": {"stopReason": "max_tokens"}} in sdk(data)
    assert read(BEDROCK, data)[1].calls[0].broken


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "validationException"),
        (401, "validationException"),
        (424, "modelStreamErrorException"),
        (429, "throttlingException"),
        (500, "internalServerException"),
        (529, "serviceUnavailableException"),
        (0, "modelStreamErrorException"),
    ],
)
def test_a_failure_is_an_exception_and_no_end(status: int, code: str) -> None:
    events = [Opened(), Start(0, Text("")), TextDelta(0, "Hm."), End(0, Text("Hm.")), Failed(ApiError(status, "No."))]
    data, _ = written(BEDROCK, events)
    assert b"messageStop" not in data
    with pytest.raises(EventStreamError) as caught:
        sdk(data)
    error: Any = caught.value.response
    assert error["Error"] == {"Code": code, "Message": "No."}
    assert isinstance(read(BEDROCK, data)[0][-1], Failed)


blocks: Any = st.one_of(
    st.text(min_size=1, max_size=30).filter(str.strip).map(lambda words: {"text": words}),
    st.text(min_size=1, max_size=30).map(thought),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3).map(lambda value: tool_use("tooluse_x", "f", value)),
)


def in_pieces(body: dict[str, Any], chance: random.Random) -> list[Any]:
    """A body as the service would stream it, cut anywhere."""

    def cut(said: str) -> list[str]:
        pieces: list[str] = []
        while said:
            size = chance.randint(1, 4)
            pieces, said = [*pieces, said[:size]], said[size:]
        return pieces

    payloads: list[Any] = [START]
    for index, block in enumerate(body["output"]["message"]["content"]):
        match block:
            case {"toolUse": used}:
                payloads.append(begin_call(index, used["toolUseId"], used["name"]))
                payloads += [put(index, piece) for piece in cut(json.dumps(used["input"], ensure_ascii=False))]
            case {"text": words}:
                payloads += [say(index, piece) for piece in cut(words)]
            case {"reasoningContent": {"reasoningText": thinking}}:
                payloads += [think(index, text=piece) for piece in cut(thinking["text"])]
                payloads.append(think(index, signature=thinking["signature"]))
            case _:
                raise AssertionError(block)
        payloads.append(stop(index))
    return [*payloads, end(body["stopReason"]), META]


@given(st.lists(blocks, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_reply_in_any_pieces(content: Sequence[Any], chance: random.Random) -> None:
    body = bedrock_reply(*content)
    events, reply = read(BEDROCK, framed(*in_pieces(body, chance)))
    keeps_the_rules(events, reply)
    at_once = BEDROCK.parse_reply(body)
    assert bare(reply) == bare(at_once)
    assert reply.native == at_once.native
    assert read(BEDROCK, written(BEDROCK, events)[0])[1] == reply

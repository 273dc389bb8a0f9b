"""Rendering streams of Converse: botocore's own parser reads back the same reply."""

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
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.blocks import Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.render.report import Report
from segue.wire.anthropic import WIRE as ANTHROPIC
from segue.wire.base import ApiError
from segue.wire.bedrock import WIRE as BEDROCK
from segue.wire.stream.events import BlockEnd, BlockStart, Failed, Finished, ReplyStart, TextDelta
from tests.budget import examples
from tests.conversations.build import PNG, thought, tool_result, tool_use
from tests.conversations.replies import bedrock_reply
from tests.streams.anthropic_events import RECORDED as THEIRS
from tests.streams.bedrock_events import (
    CITATION,
    META,
    RECORDED,
    START,
    USAGE,
    block_stop,
    call_start,
    encode_events,
    input_delta,
    message_stop,
    read_stream,
    reasoning_delta,
    text_delta,
)
from tests.streams.parsing import read, sse, strip_ids
from tests.streams.rendering import (
    CALL,
    FREE,
    FROM_OPENAI,
    broken_call,
    call_events,
    check_same_reply,
    convert_live,
    cross_api_events,
    cut_text,
    failing_events,
    json_values,
    render_stream,
    round_trip,
)
from tests.vendors.server import CannedServer, serve_canned
from tests.wire.conversion import render_client_reply as told_at_once

SAMPLES = Path(__file__).parent.parent / "catalog" / "samples" / "bedrock"


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    with serve_canned([], "application/vnd.amazon.eventstream") as made:
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


_SERVER: list[tuple[CannedServer, Any]] = []


def sdk(data: bytes) -> list[dict[str, Any]]:
    """The events that botocore's client reads."""
    ((server, client),) = _SERVER
    server.answers = [data]
    messages = [{"role": "user", "content": [{"text": "Go."}]}]
    return list(client.converse_stream(modelId="a-model", messages=messages)["stream"])


def put_together(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks as a boto3 client assembles them; only members of the service model."""
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        assert len(event) == 1
        assert "SDK_UNKNOWN_MEMBER" not in event
        if "contentBlockStart" in event:
            content = event["contentBlockStart"]
            assert content["contentBlockIndex"] == len(blocks)
            blocks[content["contentBlockIndex"]] = {key: dict(value) for key, value in content["start"].items()}
        elif "contentBlockDelta" in event:
            content = event["contentBlockDelta"]
            block = blocks.setdefault(content["contentBlockIndex"], {})
            ((kind, value),) = content["delta"].items()
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
    """A block of a whole reply, as it is when assembled from its stream."""
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
    """A body rendered as a stream is the same reply when read by segue and by botocore."""
    reply = read(BEDROCK, json.dumps(body).encode())[1]
    data, replies = round_trip(BEDROCK, reply)
    for again in replies:
        assert (strip_ids(again), again.native) == (strip_ids(reply), reply.native)
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


def test_live_conversion_equals_the_whole_stream() -> None:
    out = convert_live(BEDROCK, BEDROCK, encode_events(*RECORDED))
    assert read(BEDROCK, out)[1] == read(BEDROCK, encode_events(*RECORDED))[1]


def test_events_as_the_service_orders_them() -> None:
    data = render_stream(BEDROCK, read(BEDROCK, encode_events(*RECORDED))[0])
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


def test_cross_api_reply() -> None:
    report = Report(target=BEDROCK.name)
    data = render_stream(BEDROCK, cross_api_events(Text(" \n"), Text("Hm."), CALL, finish="tool_calls"), report)
    fired = sdk(data)
    content, used = with_values(put_together(fired))
    assert content == {"text": "Hm."}
    assert used["toolUse"]["toolUseId"].startswith("tooluse_")
    assert (used["toolUse"]["name"], used["toolUse"]["input"]) == ("read_file", {"path": "a"})
    assert fired[-2] == {"messageStop": {"stopReason": "tool_use"}}
    assert fired[-1]["metadata"]["usage"] == {**USAGE, "inputTokens": 7, "cacheReadInputTokens": 4}
    assert not report.findings


def test_live_stream_from_anthropic() -> None:
    out = convert_live(ANTHROPIC, BEDROCK, sse(*THEIRS, named=True))
    content, used = with_values(put_together(sdk(out)))
    assert content == {"text": "Reading it… é"}
    assert used["toolUse"]["input"] == {"path": "ä\n", "n": [1]}


def test_blank_text_is_held_back() -> None:
    events = [
        ReplyStart(),
        BlockStart(0, Text("")),
        TextDelta(0, "\n"),
        TextDelta(0, " "),
        TextDelta(0, "Hm."),
        TextDelta(0, " "),
    ]
    data = render_stream(BEDROCK, [*events, BlockEnd(0, Text("\n Hm. ")), Finished("stop")])
    assert put_together(sdk(data)) == [{"text": "\n Hm. "}]


def test_unsupported_blocks_are_dropped_as_in_a_whole_reply() -> None:
    blocks = (Thinking("Hm.", "c2ln", origin=Origin("anthropic")), *FROM_OPENAI)
    report = Report(target=BEDROCK.name)
    data = render_stream(BEDROCK, cross_api_events(*blocks, finish="tool_calls"), report)
    whole, expected = told_at_once(Reply(blocks, "tool_calls", Usage(11, 7, 4)), BEDROCK)
    assert [finding.message for finding in report.findings] == [finding.message for finding in expected.findings]
    value = with_values(put_together(sdk(data)))
    content = whole["output"]["message"]["content"]
    for block in [*value, *content]:
        block.get("toolUse", {}).pop("toolUseId", None)
    assert value == content


@pytest.mark.parametrize(
    ("call", "pieces", "expected"),
    [
        (FREE, ['a "quo', 'ted"\nline'], {"input": 'a "quoted"\nline'}),
        (msgspec.structs.replace(CALL, arguments=[1, 2]), ["[1, ", "2]"], {"value": [1, 2]}),
        (msgspec.structs.replace(CALL, arguments={}), [], {}),
    ],
)
def test_arguments_are_an_object(call: ToolCall, pieces: list[str], expected: Any) -> None:
    data = render_stream(BEDROCK, call_events(call, pieces))
    assert with_values(put_together(sdk(data)))[0]["toolUse"]["input"] == expected


def test_a_broken_call_ends_as_the_length_limit_leaves_it() -> None:
    data = render_stream(BEDROCK, call_events(broken_call(['{"pa']), ['{"pa']))
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
    data = render_stream(BEDROCK, failing_events(ApiError(status, "No.")))
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
    """A body as the service would stream it, split anywhere."""
    payloads: list[Any] = [START]
    for index, block in enumerate(body["output"]["message"]["content"]):
        match block:
            case {"toolUse": used}:
                payloads.append(call_start(index, used["toolUseId"], used["name"]))
                payloads += [
                    input_delta(index, piece)
                    for piece in cut_text(json.dumps(used["input"], ensure_ascii=False), chance)
                ]
            case {"text": text}:
                payloads += [text_delta(index, piece) for piece in cut_text(text, chance)]
            case {"reasoningContent": {"reasoningText": thinking}}:
                payloads += [reasoning_delta(index, text=piece) for piece in cut_text(thinking["text"], chance)]
                payloads.append(reasoning_delta(index, signature=thinking["signature"]))
            case _:
                raise AssertionError(block)
        payloads.append(block_stop(index))
    return [*payloads, message_stop(body["stopReason"]), META]


def call_id_of(block: Any) -> object:
    return block.get("toolUse", {}).get("toolUseId", id(block))


@given(st.lists(blocks, max_size=4, unique_by=call_id_of), st.randoms(use_true_random=False))
@examples(2)
def test_any_reply_in_any_pieces(content: Sequence[Any], chance: random.Random) -> None:
    body = bedrock_reply(*content)
    check_same_reply(BEDROCK, encode_events(*in_pieces(body, chance)), body)


TRACE = {"guardrail": {"inputAssessment": {"g1": {"topicPolicy": {"topics": []}}}, "actionReason": "blocked"}}


def test_the_trace_of_a_guardrail_is_kept() -> None:
    meta = {"metadata": {**META["metadata"], "trace": TRACE, "performanceConfig": {"latency": "standard"}}}
    events, reply = read_stream(START, text_delta(0, "No."), block_stop(0), message_stop("guardrail_intervened"), meta)
    assert reply.finish == "filter"
    assert reply.native is not None
    assert reply.native.fragment["trace"] == TRACE
    data = render_stream(BEDROCK, events)
    assert read(BEDROCK, data)[1] == reply
    assert sdk(data)[-1]["metadata"]["trace"] == TRACE


def test_a_stop_sequence_in_the_fields_of_the_model() -> None:
    fields = {"additionalModelResponseFields": {"stop_sequence": "###"}}
    events, reply = read_stream(
        START, text_delta(0, "Hm."), block_stop(0), message_stop("stop_sequence", **fields), META
    )
    assert (reply.finish, reply.stop_sequence) == ("stop", "###")
    data = render_stream(BEDROCK, events)
    assert sdk(data)[-2]["messageStop"] == {"stopReason": "stop_sequence", **fields}

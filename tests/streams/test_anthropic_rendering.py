"""Rendering streams of Anthropic: the vendor's client reads back the same reply."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.anthropic import WIRE as ANTHROPIC
from segue.wire.base import ApiError, RenderContext
from segue.wire.ids import IdMap
from segue.wire.names import NameMap
from segue.wire.stream.events import BlockEnd, BlockStart, Failed, Finished, InputDelta, ReplyStart, reply_events
from tests.bodies.anthropic import text
from tests.budget import examples
from tests.conversations.build import thinking, use
from tests.conversations.replies import anthropic_reply
from tests.streams.anthropic_events import (
    CITATION,
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
    read_stream,
    text_delta,
    text_start,
)
from tests.streams.parsing import only_call, payloads_of, read, splits
from tests.streams.rendering import (
    AT_ONCE,
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

SAMPLES = Path(__file__).parent.parent / "catalog" / "samples" / "anthropic"


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    with serve_canned([]) as made:
        _SERVER.append(made)
        yield
        _SERVER.clear()


_SERVER: list[CannedServer] = []
REQUEST: dict[str, Any] = {
    "model": "claude-opus-4-6",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Go."}],
}


def sdk(data: bytes, *, beta: bool = False) -> list[Any]:
    """The events that the vendor's client fires, and the message that it assembles."""
    (server,) = _SERVER
    server.answers = [data]
    client = anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0, timeout=100)
    with client, (client.beta if beta else client).messages.stream(**REQUEST) as stream:
        fired: list[Any] = list(stream)
        return [*fired, stream.get_final_message()]


def contents(message: Any) -> list[dict[str, Any]]:
    """The blocks of a message as the client has them, without empty ones."""
    blocks = [block.to_dict() for block in message.content]
    return [{key: value for key, value in block.items() if key != "parsed_output"} for block in blocks]


def same_to_the_client(body: dict[str, Any], *, beta: bool = False) -> None:
    """A body rendered as a stream is the same reply when read by segue and by the vendor's client."""
    reply = read(ANTHROPIC, json.dumps(body).encode())[1]
    data, replies = round_trip(ANTHROPIC, reply)
    for again in replies:
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


def test_compaction_is_kept_for_same_api() -> None:
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
    data = render_stream(ANTHROPIC, read(ANTHROPIC, encode_events(*RECORDED))[0])
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


def test_live_conversion_equals_the_whole_stream() -> None:
    out = convert_live(ANTHROPIC, ANTHROPIC, encode_events(*RECORDED))
    assert read(ANTHROPIC, out)[1] == read(ANTHROPIC, encode_events(*RECORDED))[1]
    first, last = sdk(out)[0].message, sdk(out)[-1]
    # Fields not known at the start are absent there.
    assert (first.usage.input_tokens, first.usage.output_tokens, first.stop_reason) == (11, 1, None)
    assert (last.usage.input_tokens, last.usage.output_tokens, last.stop_reason) == (12, 7, "tool_use")


def test_no_event_but_the_deltas_depends_on_how_the_bytes_are_split() -> None:
    fallback = {"type": "fallback", "from": {"model": "claude-opus-4-6"}, "to": {"model": "claude-haiku-4-5"}}
    ending = {**message_delta(output_tokens=9), "service_tier": "batch"}
    for payloads in (RECORDED, [START, block_start(0, **fallback), block_stop(0), ending, STOP]):
        data = encode_events(*payloads)
        whole = convert_stream([data])
        assert whole[0]["type"] == "message_start"
        assert whole[0]["message"]["usage"]["output_tokens"] == START["message"]["usage"]["output_tokens"]
        assert all(convert_stream(chunks) == whole for chunks in splits(data))


def convert_stream(chunks: Iterable[bytes]) -> list[dict[str, Any]]:
    """The events of a same-API stream; without its deltas, which may be joined."""
    body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    stream = segue.convert(body, source="anthropic", target="anthropic").stream()
    events = payloads_of(b"".join([*map(stream.feed, chunks), stream.close()]))
    return [event for event in events if event["type"] != "content_block_delta"]


def test_the_asynchronous_client_reads_the_same() -> None:
    (server,) = _SERVER
    data = render_stream(ANTHROPIC, read(ANTHROPIC, encode_events(*RECORDED))[0])
    server.answers = [data]

    async def ask() -> Any:
        async with (
            anthropic.AsyncAnthropic(api_key="none", base_url=server.url, max_retries=0) as client,
            client.messages.stream(**REQUEST) as stream,
        ):
            return await stream.get_final_message()

    assert contents(asyncio.run(ask())) == contents(sdk(data)[-1])


def test_cross_api_reply() -> None:
    report = Report(target=ANTHROPIC.name)
    data = render_stream(ANTHROPIC, cross_api_events(Text("Hm."), CALL, finish="tool_calls"), report)
    message = sdk(data)[-1]
    assert message.id.startswith("msg_")
    assert message.model == "gpt-4.1"
    (content, used) = contents(message)
    assert content == {"type": "text", "text": "Hm."}
    assert used == {"type": "tool_use", "id": used["id"], "name": "read_file", "input": {"path": "a"}}
    assert used["id"].startswith("toolu_")
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("tool_use", 7, 7)
    assert not report.findings


def test_unsupported_blocks_are_dropped_as_in_a_whole_reply() -> None:
    blocks = (Thinking("Hm.", origin=Origin("deepseek")), *FROM_OPENAI)
    events = cross_api_events(*blocks, finish="tool_calls")
    report = Report(target=ANTHROPIC.name)
    data = render_stream(ANTHROPIC, events, report)
    whole, expected = told_at_once(Reply(blocks, "tool_calls", Usage(11, 7, 4)), ANTHROPIC)
    assert [finding.message for finding in report.findings] == [finding.message for finding in expected.findings]
    content = contents(sdk(data)[-1])
    for block in [*content, *whole["content"]]:
        block.pop("id", None)
    assert content == whole["content"]


def test_unknown_block_keys_are_reported_as_in_a_whole_reply() -> None:
    body = anthropic_reply({**text("Hm."), "mood": "blue"}, use("toolu_1", "f", {"a": 1}, mood="red"))
    reply = read(ANTHROPIC, json.dumps(body).encode())[1]
    report = Report(target=ANTHROPIC.name)
    data = render_stream(ANTHROPIC, reply_events(reply), report)
    _, expected = told_at_once(reply, ANTHROPIC)
    assert [finding.message for finding in report.findings] == [finding.message for finding in expected.findings]
    assert len(report.findings) == 2
    assert b"mood" not in data


def test_parallel_blocks_are_rendered_in_sequence() -> None:
    first, second = (msgspec.structs.replace(CALL, id=f"hist_tool_{at}") for at in "ab")
    bare_call = [msgspec.structs.replace(call, arguments={}) for call in (first, second)]
    events = [
        ReplyStart(None, "m"),
        *(
            BlockStart(0, bare_call[0]),
            BlockStart(1, bare_call[1]),
            InputDelta(1, '{"path":'),
            InputDelta(0, '{"path"'),
        ),
        *(InputDelta(1, '"a"}'), BlockEnd(1, second), InputDelta(0, ':"a"}'), BlockEnd(0, first)),
        Finished("tool_calls"),
    ]
    for step in (1, AT_ONCE):
        message = sdk(render_stream(ANTHROPIC, events, step=step))[-1]
        assert [block.input for block in message.content] == [{"path": "a"}, {"path": "a"}]


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
    report = Report(target=ANTHROPIC.name)
    data = render_stream(ANTHROPIC, call_events(call, pieces), report)
    assert sdk(data)[-1].content[0].input == expected
    assert bool(report.findings_of("argument")) is ("path" not in expected and expected != {})


@pytest.mark.parametrize("pieces", [[], ['{"path": "a'], ['{"a": 1, "pa']])
@pytest.mark.parametrize("finish", ["length", "tool_calls", "error"])
def test_a_broken_call_ends_as_the_length_limit_leaves_it(pieces: list[str], finish: Any) -> None:
    data = render_stream(ANTHROPIC, call_events(broken_call(pieces), pieces, finish))
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
    data = render_stream(ANTHROPIC, failing_events(error))
    assert b"message_stop" not in data
    assert b"message_delta" not in data
    with pytest.raises(anthropic.APIStatusError) as caught:
        sdk(data)
    assert caught.value.body == {"type": "error", "error": {"type": kind, "message": error.message}}
    assert read(ANTHROPIC, data)[0][-1] == Failed(
        ApiError({"api_error": 500}.get(kind, error.status), error.message, kind=kind)
    )


def test_cross_api_stop_sequence() -> None:
    data = render_stream(ANTHROPIC, cross_api_events(Text("Hm."), stop_sequence="###"))
    message = sdk(data)[-1]
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "###")


def test_requested_model_where_the_reply_has_none() -> None:
    projection = RenderContext(
        IdMap(ANTHROPIC.id_scheme(parse_model(None)), provider="x"),
        NameMap(ANTHROPIC.name_rule(parse_model(None))),
        Report(),
    )
    renderer = ANTHROPIC.stream_renderer(projection, "claude-haiku-4-5")
    assert b'"model":"claude-haiku-4-5"' in renderer.render([ReplyStart()])


blocks: Any = st.one_of(
    st.text(min_size=1, max_size=30).map(text),
    st.text(max_size=30).map(thinking),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3).map(lambda value: use("toolu_x", "f", value)),
)


def in_pieces(body: dict[str, Any], chance: random.Random) -> list[Any]:
    """A body as its server would stream it, split anywhere."""
    message = {**body, "content": [], "stop_reason": None, "usage": {"input_tokens": 11, "output_tokens": 1}}
    payloads: list[Any] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(body["content"]):
        kind = block["type"]
        if kind == "tool_use":
            spaced = json.dumps(block["input"], ensure_ascii=chance.random() < 0.5)
            payloads += [
                block_start(index, **{**block, "input": {}}),
                *[input_delta(index, piece) for piece in cut_text(spaced, chance)],
            ]
        elif kind == "text":
            payloads += [
                block_start(index, **{**block, "text": ""}),
                *[text_delta(index, piece) for piece in cut_text(block["text"], chance)],
            ]
        else:
            payloads.append(block_start(index, type="thinking", thinking="", signature=""))
            payloads += [
                delta(index, "thinking_delta", thinking=piece) for piece in cut_text(block["thinking"], chance)
            ]
            payloads.append(delta(index, "signature_delta", signature=block["signature"]))
        payloads.append(block_stop(index))
    return [*payloads, message_delta(body["stop_reason"], **body["usage"]), STOP]


def call_id_of(block: Any) -> object:
    return block.get("id", id(block))


@given(st.lists(blocks, max_size=4, unique_by=call_id_of), st.randoms(use_true_random=False))
@examples(2)
def test_any_reply_in_any_pieces(content: Sequence[Any], chance: random.Random) -> None:
    body = anthropic_reply(*content)
    check_same_reply(ANTHROPIC, encode_events(*in_pieces(body, chance)), body)


def test_fallback_model_is_recorded() -> None:
    block = {"type": "fallback", "from": {"model": "claude-opus-4-6"}, "to": {"model": "claude-haiku-4-5"}}
    events, reply = read_stream(
        START, block_start(0, **block), block_stop(0), call_start(1), block_stop(1), message_delta("tool_use"), STOP
    )
    assert (reply.model, only_call(reply).origin.model) == ("claude-haiku-4-5", "claude-haiku-4-5")
    assert sdk(render_stream(ANTHROPIC, events), beta=True)[-1].model == "claude-haiku-4-5"


def test_truncated_reply_ends_with_max_tokens() -> None:
    _, reply = read(ANTHROPIC, encode_events(START, text_start(0), text_delta(0, "Hm.")))
    data = render_stream(ANTHROPIC, reply_events(reply))
    assert sdk(data)[-1].stop_reason == "max_tokens"

"""Runs of deltas, one a read: each costs little, and the result is that of the same stream parsed event by event."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue._stream import ReplyStream
from segue.canonical.request import Reply
from segue.errors import RemoteProtocolError
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits
from segue.wire.registry import WIRES
from segue.wire.stream.delta_run import DeltaRun
from segue.wire.stream.events import Delta, Event, InputDelta, TextDelta, ThinkingDelta
from segue.wire.stream.framing import encode_sse
from segue.wire.stream.render import DeltaFormat
from tests.budget import examples, sample_pairs
from tests.streams.odd_streams import APIS, build_reads
from tests.streams.test_api_pairs import request_body
from tests.work import count_work

MAX_LINES = 20
TEXTS = ("the ", 'quick "brown" ', "f\\ox\n", "東京 ", "jumps ") * 6


def chat_chunk(delta: dict[str, Any]) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    payload = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: %b\n\n" % json.dumps(payload).encode()


def arguments_chunk(index: int, text: str, **fields: Any) -> bytes:
    function = {"arguments": text, **fields.pop("function", {})}
    return chat_chunk({"tool_calls": [{"index": index, "function": function, **fields}]})


def text_run() -> list[bytes]:
    return [chat_chunk({"content": text}) for text in TEXTS]


def call_start(index: int) -> bytes:
    return arguments_chunk(index, '{"query":"', id=f"call_{index}", type="function", function={"name": "search"})


def open_stream(client: str) -> ReplyStream:
    return segue.convert(request_body(client), source=client, target="openai-chat").stream()


@pytest.mark.parametrize("client", WIRES)
def test_delta_of_a_run_costs_little(client: str) -> None:
    stream = open_stream(client)
    for event in text_run():
        stream.feed(event)
    events = text_run()
    assert count_work(lambda: [stream.feed(event) for event in events]) < MAX_LINES * len(events)


def convert_chunks(reads: list[bytes]) -> Reply:
    """The reply of a stream of chat completion chunks, with its end."""
    stream = open_stream("anthropic")
    end = chat_chunk({}).replace(b'"finish_reason": null', b'"finish_reason": "tool_calls"')
    for read in [*reads, end]:
        stream.feed(read)
    stream.close()
    assert stream.reply is not None
    return stream.reply


def test_arguments_keep_their_order_around_a_chunk_of_another_form() -> None:
    odd = arguments_chunk(0, " ").replace(b'"choices"', b'"x_unknown": 1, "choices"')
    reads = [call_start(0), arguments_chunk(0, "a"), arguments_chunk(0, "b"), odd, arguments_chunk(0, 'c"}')]
    assert [call.arguments for call in convert_chunks(reads).calls] == [{"query": "ab c"}]


@pytest.mark.parametrize("differ", [False, True])
def test_empty_object_inside_of_arguments_is_no_placeholder(differ: bool) -> None:
    texts = ("a", "{}", "{}", "{ }", '"}')
    chunks = [arguments_chunk(0, text, x_unknown=number * differ) for number, text in enumerate(texts)]
    assert [call.arguments for call in convert_chunks([call_start(0), *chunks]).calls] == [{"query": "a{}{}{ }"}]


def test_text_of_another_choice_is_not_that_of_the_first() -> None:
    def chunk(first: str, second: str) -> bytes:
        choices = [{"index": index, "delta": {"content": text}} for index, text in enumerate((first, second))]
        return b"data: %b\n\n" % json.dumps({"id": "chatcmpl-1", "model": "m", "choices": choices}).encode()

    assert convert_chunks([chunk("a", "a"), chunk("a", "b"), chunk("a", "c")]).text == "aaa"


def test_reasoning_beside_arguments_is_read_each_time() -> None:
    delta = {"reasoning_content": "hm ", "tool_calls": [{"index": 0, "function": {"arguments": "a"}}]}
    reply = convert_chunks([call_start(0), *[chat_chunk(delta)] * 4, arguments_chunk(0, '"}')])
    assert reply.thinking == "hm " * 4
    assert [call.arguments for call in reply.calls] == [{"query": "aaaa"}]


def test_last_of_two_members_with_one_name_is_the_text() -> None:
    def chunk(text: bytes) -> bytes:
        return chat_chunk({"content": "a"}).replace(b'"content": "a"', rb'"content": "%b", "c\u006fntent": "a"' % text)

    assert convert_chunks([chunk(b"a"), chunk(b"a"), chunk(b"b"), chunk(b"b")]).text == "aaaa"


def test_name_of_an_event_is_not_that_of_the_next_one() -> None:
    """The last event has no name; so it is no delta."""
    name = b"event: contentBlockDelta\n"
    data = encode_sse(b'{"contentBlockIndex": 0, "delta": {"text": "a"}}')
    stream = segue.convert(request_body("openai-chat"), source="openai-chat", target="bedrock").stream()
    for read in (name + data, name + data, name + data + name, data, data):
        stream.feed(read)
    stream.close()
    assert stream.reply is not None
    assert stream.reply.text == "aaaa"


def test_line_break_before_a_text_is_the_end_of_the_data_line() -> None:
    stream = open_stream("anthropic")
    for event in text_run():
        stream.feed(event)
    with pytest.raises(RemoteProtocolError, match="not JSON"):
        stream.feed(chat_chunk({"content": "a"}).replace(b'"content": "a"', b'"content": \n"a"'))


def test_text_of_a_long_run_is_complete() -> None:
    reads = [chat_chunk({"content": f"{number} "}) for number in range(3_000)]
    assert sum(map(len, reads)) > 3 << 17
    assert convert_chunks(reads).text == "".join(f"{number} " for number in range(3_000))


@pytest.mark.parametrize("value", [b"0", b"07", b"-7", b"7.5", b'"7"'])
def test_number_of_another_form_is_not_part_of_a_run(value: bytes) -> None:
    """The token count of the last chunk is used, in whatever form it is."""

    def chunk(count: bytes) -> bytes:
        head = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":'
        return b'%b{"promptTokenCount":9,"candidatesTokenCount":%b}}\r\n\r\n' % (head, count)

    def convert(*, runs: bool) -> tuple[bytes, object]:
        converted = segue.convert(request_body("openai-chat"), source="openai-chat", target="gemini")
        stream = converted.stream() if runs else open_general_stream(converted.stream(), templates=False)
        read: list[bytes] = []
        try:
            read += [stream.feed(chunk(count)) for count in (b"1", b"2", b"3", b"4", value, b"5")]
        except RemoteProtocolError as error:
            return b"".join(read), str(error)
        end = stream.close()
        return b"".join([*read, end]), stream.reply

    assert convert(runs=True) == convert(runs=False)


def test_stream_with_a_number_in_each_event_opens_few_runs() -> None:
    stream = open_stream("anthropic")
    opened: list[DeltaRun | None] = []
    open_run = stream._parser.open_run

    def count_run(read: bytes, delta: Delta, delta_format: DeltaFormat) -> DeltaRun | None:
        opened.append(open_run(read, delta, delta_format))
        return opened[-1]

    stream._parser.open_run = count_run
    for number, event in enumerate(text_run()):
        stream.feed(b"id: %d\n%b" % (number, event))
    assert len(opened) > sum(run is not None for run in opened) == 8


def test_blocks_that_take_turns_open_few_runs() -> None:
    def event(kind: str, index: int, **fields: Any) -> bytes:
        return encode_sse(json.dumps({"type": kind, "index": index, **fields}).encode(), kind)

    text = event("content_block_start", 0, content_block={"type": "text", "text": "Yes."})
    call = {"type": "tool_use", "name": "search", "input": {}}
    starts = [event("content_block_start", index, content_block={**call, "id": f"toolu_{index}"}) for index in (1, 2)]
    delta = {"type": "input_json_delta", "partial_json": "1"}
    deltas = [event("content_block_delta", 1 + number % 2, delta=delta) for number in range(20)]
    stream = segue.convert(request_body("openai-chat"), source="openai-chat", target="anthropic").stream()
    opened: list[int] = []
    stream._renderer.open_run = lambda delta: opened.append(delta.index)
    for read in (text, event("content_block_stop", 0), *starts, *deltas):
        stream.feed(read)
    assert opened == [1, 2]


# ---------------------------------------------------------------------------------- compared with the general path

DELTAS = (TextDelta, ThinkingDelta, InputDelta)
PAIRS = sorted({*sample_pairs(APIS), *sample_pairs(WIRES, start=1)})
LIMITS = st.sampled_from([DEFAULT_LIMITS] * 4 + [ReplyLimits(bytes=4_000), ReplyLimits(calls=1)])


def open_general_stream(stream: ReplyStream, *, templates: bool) -> ReplyStream:
    """A stream without runs; without templates each payload is decoded in full."""
    stream._parser.open_run = lambda read, delta, delta_format: None
    stream._renderer.open_run = lambda delta: None
    if not templates:
        stream._parser._reader.set_delta_template = lambda key, text, emit: None
    return stream


def convert_reads(stream: ReplyStream, reads: list[bytes]) -> tuple[list[bytes], list[object]]:
    """The bytes of each read, and the result: an error that ended the stream, the reply, and its report."""
    converted: list[bytes] = []
    error: str | None = None
    try:
        converted.extend(stream.feed(read) for read in reads)
        converted.append(stream.close())
    except RemoteProtocolError as failure:
        error = str(failure)
        converted.append(stream.fail(failure))
    return converted, [error, stream.reply, stream.report.findings]


@pytest.mark.parametrize(("client", "server"), PAIRS)
@examples(8, items=len(PAIRS))
@given(seed=st.integers(0, 2**32), limits=LIMITS | st.just(ReplyLimits(arguments=20)))
def test_runs_change_no_byte(client: str, server: str, seed: int, limits: ReplyLimits) -> None:
    reads = build_reads(server, random.Random(seed))
    converted = segue.convert(request_body(client), source=client, target=server)
    expected = convert_reads(open_general_stream(converted.stream(limits=limits), templates=True), reads)
    assert convert_reads(converted.stream(limits=limits), reads) == expected


@pytest.mark.parametrize(("client", "server"), PAIRS)
@examples(8, items=len(PAIRS))
@given(seed=st.integers(0, 2**32), limits=LIMITS)
def test_runs_and_templates_change_no_result(client: str, server: str, seed: int, limits: ReplyLimits) -> None:
    """Compared with each payload decoded in full, only the deltas of one read may be joined."""
    reads = build_reads(server, random.Random(seed))
    converted = segue.convert(request_body(client), source=client, target=server)
    data, result = convert_reads(converted.stream(limits=limits), reads)
    expected, expected_result = convert_reads(
        open_general_stream(converted.stream(limits=limits), templates=False), reads
    )
    assert result == expected_result
    assert data == expected or parse_output(client, data) == parse_output(client, expected)


def parse_output(client: str, data: list[bytes]) -> list[Event]:
    """The events of the client's stream, with consecutive deltas of a block joined."""
    parser = WIRES[client].open_stream("turn-0")
    parser.feed(b"".join(data))
    joined: list[Event] = []
    for event in parser.events():
        last = joined[-1] if joined else None
        if isinstance(event, DELTAS) and isinstance(last, DELTAS) and type(last) is type(event):
            assert last.index == event.index
            joined[-1] = type(event)(event.index, last.text + event.text)
        else:
            joined.append(event)
    return joined


@pytest.mark.parametrize("client", WIRES)
def test_runs_are_rendered_as_single_events(client: str) -> None:
    """A run ends where the kind of a delta or its block changes, and begins again after it."""
    words = [text.replace('"', "").replace("\\", "").strip() for text in TEXTS]
    first = [arguments_chunk(0, word) for word in words]
    second = [arguments_chunk(1, word) for word in words]
    thoughts = [chat_chunk({"reasoning_content": text}) for text in TEXTS]
    ends = [arguments_chunk(0, '"}'), arguments_chunk(1, '"}')]
    reads = [*thoughts, *text_run(), call_start(0), *first, call_start(1), *second[:9]]
    reads += [read for pair in zip(first[:9], second[9:], strict=False) for read in pair]
    reads += [*first[9:], *ends, chat_chunk({}).replace(b'"finish_reason": null', b'"finish_reason": "tool_calls"')]

    runs, events = open_stream(client), open_stream(client)
    for read in reads:
        expected = events._renderer.render(events._mapper.map_events(parse(events, read)))
        assert runs.feed(read) == expected


def parse(stream: ReplyStream, read: bytes) -> list[Any]:
    stream._parser.feed(read)
    events = stream._parser.events()
    if stream._extractor is not None:
        events = stream._extractor.feed(events)
    return events

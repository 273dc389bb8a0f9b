"""Bytes to payloads: every framing, in every split."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from segue.errors import RemoteProtocolError
from segue.wire.stream.aws_events import encode_aws_message
from segue.wire.stream.framing import Frame, FrameDecoder, encode_sse
from tests.work import count_work


def framed(data: bytes, cuts: list[int] | None = None) -> list[Frame]:
    frames = FrameDecoder()
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    found_frames: list[Frame] = []
    for start, stop in pairwise(places):
        found_frames += frames.feed(data[start:stop])
    return found_frames + frames.close()


SSE = {
    "line feeds": (b"data: 1\n\ndata: 2\n\n", [(None, b"1"), (None, b"2")]),
    "carriage returns": (b"data: 1\r\rdata: 2\r\r", [(None, b"1"), (None, b"2")]),
    "both": (b"data: 1\r\n\r\ndata: 2\r\n\r\n", [(None, b"1"), (None, b"2")]),
    "both, in one event": (b"event: a\r\ndata: 1\r\ndata: 2\r\n\r\n", [("a", b"1\n2")]),
    "mixed": (b"data: 1\r\n\ndata: 2\r\r\n", [(None, b"1"), (None, b"2")]),
    "comments": (b": hello\n\ndata: 1\n: again\n\n", [(None, b"1")]),
    "comments on lines of their own": (b":\n: a\n\n\n: b\nevent: x\n: c\ndata: 1\n:\n\n\n:\n", [("x", b"1")]),
    "blank lines before": (b"\r\n \n\n\ndata: 1\n\n", [(None, b"1")]),
    "blank lines behind headers": (b"HTTP/1.1 200\r\n\r\n\n\ndata: 1\n\n", [(None, b"1")]),
    "several lines": (b"data: {\ndata: }\n\n", [(None, b"{\n}")]),
    "a byte order mark": (b"\xef\xbb\xbfdata: 1\n\n", [(None, b"1")]),
    "no last empty line": (b"data: 1\n\ndata: 2", [(None, b"1"), (None, b"2")]),
    "names": (b"event: a\ndata: 1\n\ndata: 2\n\n", [("a", b"1"), (None, b"2")]),
    "no blank behind the colon": (b"data:1\n\nevent:b\ndata:  2\n\n", [(None, b"1"), ("b", b" 2")]),
    "other fields": (b"id: 7\nretry: 10\ndata: 1\n\nid\n\n", [(None, b"1")]),
    "an end": (b"data: 1\n\ndata: [DONE]\n\n", [(None, b"1"), (None, b"[DONE]")]),
    "empty data": (b"data:\n\ndata: 1\n\n", [(None, b""), (None, b"1")]),
    "the middle of a character": ("data: é😀\n\n".encode(), [(None, "é😀".encode())]),
    "a bare error": (b'data: 1\n\n{"error": {"code": 503}}\n', [(None, b"1"), (None, b'{"error": {"code": 503}}')]),
    "a bare error without a line break": (b'data: 1\n\n{"error": 1}', [(None, b"1"), (None, b'{"error": 1}')]),
    "a bare error on several lines": (
        b'data: 1\r\n\r\n{\r\n  "error": {\r\n    "message": "{no}"\r\n  }\r\n}\r\n\r\ndata: 2\r\n\r\n',
        [(None, b"1"), (None, b'{\n  "error": {\n    "message": "{no}"\n  }\n}'), (None, b"2")],
    ),
    "a bare error with empty lines in it": (
        b'data: 1\n\n{\n\n"error":\n\n: alive\n\n{"a": 1}\n\n}\n\n',
        [(None, b"1"), (None, b'{\n"error":\n{"a": 1}\n}')],
    ),
    "a bare error right after data": (b'data: 1\n{"error": 1}\n\n', [(None, b"1"), (None, b'{"error": 1}')]),
    "bare errors in a list": (
        b'data: 1\n\n[{"a": 1},\n{"error": 1}\n]\n\n[\n{"error": 2}]',
        [(None, b"1"), (None, b'{"error": 1}'), (None, b'{"error": 2}')],
    ),
    "a bare error after named events": (
        b'event: a\ndata: 1\n\n{"error": "no", "type": "error"}\n\n',
        [("a", b"1"), (None, b'{"error": "no", "type": "error"}')],
    ),
    "a bare value that is no error": (b'data: 1\n\n{"a": {"error": 1}}\n\n[DONE]\n{x}\n\n', [(None, b"1")]),
    "a bare error that is cut off": (b'data: 1\n\n{"error": {\n\ndata: 2\n\n}}\n', [(None, b"1"), (None, b"2")]),
    "headers before": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\r\nx: y\r\n\r\ndata: 1\n\n", [(None, b"1")]),
}


@pytest.mark.parametrize("case", SSE)
def test_server_sent_events_in_every_split(case: str) -> None:
    data, expected = SSE[case]
    assert framed(data) == expected
    assert framed(data, list(range(len(data)))) == expected
    for cut in range(len(data)):
        assert framed(data, [cut]) == expected


LINES = ["data: a", "data:", "data:  b", "data:data: c", "data", "event: x", "event:", ":", ": d", "id: 1", ""]


def parse_line_by_line(lines: list[str]) -> list[Frame]:
    """The events as the WHATWG standard describes them, except that the last one needs no empty line."""
    frames: list[Frame] = []
    name, data = None, list[str]()
    for line in [*lines, ""]:
        field, _, value = line.partition(":")
        if not line:
            frames += [(name, "\n".join(data).encode())] if data else []
            name, data = None, []
        elif line.startswith("data:"):
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.strip()
    return frames


@given(
    st.lists(st.sampled_from(LINES), max_size=30), st.sampled_from(["\n", "\r", "\r\n"]), st.lists(st.integers(0, 300))
)
def test_any_layout_of_lines(lines: list[str], end: str, cuts: list[int]) -> None:
    data = "".join(line + end for line in ["data: 0", *lines]).encode()
    assert framed(data, cuts) == parse_line_by_line(["data: 0", *lines])


MANY_LINES = {
    "empty data lines": b"data:\n" * 50_000 + b"\n",
    "data lines": b"data: ab\n" * 50_000 + b"\n",
    "data lines after a name": b"event: x\n" + b"data: ab\n" * 50_000 + b"\n",
    "comments": b"data: 1\n" + b":\n" * 50_000 + b"\n",
    "carriage returns": b"data: 1" + b"\r" * 200_000,
    "line feeds": b"data: 1" + b"\n" * 200_000 + b"data: 2\n\n",
}


def peak_memory(data: bytes, cuts: list[int] | None = None) -> int:
    """The most bytes that are allocated at once while the data is split."""
    tracemalloc.start()
    try:
        framed(data, cuts)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", MANY_LINES)
@pytest.mark.parametrize("chunk", [1 << 14, 1 << 20])
def test_many_lines_cost_little(case: str, chunk: int) -> None:
    data = MANY_LINES[case]
    cuts = list(range(0, len(data), chunk))
    assert count_work(lambda: framed(data, cuts)) < 200 + 60 * len(cuts)
    assert peak_memory(data, cuts) < 6 * len(data) + 100_000


def test_data_lines_between_other_lines_are_kept_compactly() -> None:
    data = b"data: ab\n:\n" * 20_000 + b"\n"
    assert framed(data) == [(None, b"\n".join([b"ab"] * 20_000))]
    assert peak_memory(data) < 6 * len(data)


JSON = {
    "lines": b'{"a":1}\n{"b":[2]}\n',
    "carriage returns": b'{"a":1}\r\n{"b":[2]}',
    "a list": b'[{"a":1},\n{"b":[2]}]',
    "a list on many lines": b'[\n  {\n    "a": 1\n  }\n  ,\n  {"b": [2]}\n]\n',
    "one after another": b'{"a":1}{"b":[2]}',
    "signs in strings": b'{"a":"}{]\\"[\\\\"}\n{"b":"\xc3\xa9"}',
}


@pytest.mark.parametrize("case", JSON)
def test_json_values_in_every_split(case: str) -> None:
    data = JSON[case]
    expected = framed(data)
    assert [list(json.loads(payload)) for _, payload in expected] == [["a"], ["b"]]
    assert framed(data, list(range(len(data)))) == expected
    for cut in range(len(data)):
        assert framed(data, [cut]) == expected


def test_truncated_value_is_ignored() -> None:
    assert framed(b'{"a":1}\n{"b":') == [(None, b'{"a":1}')]


def test_event_streams_as_botocore_reads_them_in_every_split() -> None:
    data = b"".join(
        [
            encode_aws_message(
                b'{"a":1}', event_type="messageStart", content_type="application/json", message_type="event"
            ),
            encode_aws_message(
                b'{"b":2}', event_type="messageStop", content_type="application/json", message_type="event"
            ),
            encode_aws_message(b'{"message":"slow"}', exception_type="throttlingException", message_type="exception"),
        ]
    )
    theirs = EventStreamBuffer()
    theirs.add_data(data)
    assert [(event.headers.get(":event-type"), event.payload) for event in theirs][:2] == [
        ("messageStart", b'{"a":1}'),
        ("messageStop", b'{"b":2}'),
    ]
    expected = [
        ("messageStart", b'{"a":1}'),
        ("messageStop", b'{"b":2}'),
        ("exception:throttlingException", b'{"message":"slow"}'),
    ]
    assert framed(data) == expected
    assert framed(data, list(range(len(data)))) == expected


@pytest.mark.parametrize("place", [3, 9, 20, -2])
def test_damaged_event_stream_is_a_remote_protocol_error(place: int) -> None:
    data = bytearray(encode_aws_message(b'{"a":1}', event_type="messageStart", message_type="event"))
    data[place] ^= 1
    with pytest.raises(RemoteProtocolError):
        framed(bytes(data))


payloads = st.lists(
    st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.lists(st.text(max_size=5), max_size=3)),
    min_size=1,
    max_size=6,
)


@given(payloads, st.lists(st.integers(0, 5000), max_size=20))
def test_any_payloads_in_any_framing_and_split(values: list[dict[str, Any]], cuts: list[int]) -> None:
    texts = [json.dumps(value, ensure_ascii=False).encode() for value in values]
    assert [payload for _, payload in framed(b"".join(encode_sse(text, "x") for text in texts), cuts)] == texts
    assert [payload for _, payload in framed(b"\n".join(texts), cuts)] == texts
    assert [payload for _, payload in framed(b"[" + b" ,\n".join(texts) + b"]", cuts)] == texts
    messages = [encode_aws_message(text, event_type="x", message_type="event") for text in texts]
    assert framed(b"".join(messages), cuts) == [("x", text) for text in texts]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_give_frames_or_a_remote_protocol_error(data: bytes, cuts: list[int]) -> None:
    with suppress(RemoteProtocolError):
        assert isinstance(framed(data, cuts), list)

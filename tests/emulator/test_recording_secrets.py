"""No secret of an exchange reaches a recording: headers, queries, bodies, streams, and keys split over deltas."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import segue
from segue.emulator import post, start
from segue.emulator.http_messages import HttpRequest
from segue.emulator.recording_secrets import SecretRemover
from segue.redaction import find_secrets
from segue.wire.stream.framing import FrameDecoder
from tests.budget import examples
from tests.emulator.http_requests import APIS, body_of
from tests.emulator.test_recordings import get_raw, recordings, with_upstream
from tests.runtime.raw_server import RawServer, chunked_response, http_response

KEY = "plain-credential-0123456789"
"""Nothing in it looks like a key: it can be found as the key of the request only."""
SECRET = "sk-ant-api03-a1B2c3D4e5F6g7H8i9J0"


def remover(**headers: str) -> SecretRemover:
    return SecretRemover(HttpRequest("POST", "/", {}, {name.replace("_", "-"): headers[name] for name in headers}, b""))


def stored_text(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.iterdir())


SECRET_HEADERS = {
    "authorization": f"Bearer {KEY}",
    "x-api-key": KEY,
    "x-goog-api-key": KEY,
    "api-key": KEY,
    "cookie": f"theme=dark; session={KEY}",
    "proxy-authorization": f"Basic {KEY}",
    "x-amz-security-token": KEY,
    "ocp-apim-subscription-key": KEY,
    "openai-organization": "org-0123456789",
}


@pytest.mark.parametrize("name", SECRET_HEADERS)
def test_credentials_in_headers_are_removed(name: str, tmp_path: Path) -> None:
    value = SECRET_HEADERS[name]
    echo = json.dumps({"echo": f"your key is {KEY}", "authorization": "abc"}).encode()

    def use(server: RawServer) -> None:
        with start("openai-chat", record=tmp_path, upstream=server.url) as recorder:
            sent = json.dumps({"model": "m", "note": f"my key is {KEY}"}).encode()
            seen = get_raw(recorder, "/v1/chat/completions", body=sent, **{name: value, "x-kept": "yes"})
            assert seen.chunks == [echo]
            assert (name == "proxy-authorization") == (server.header(name) is None)
            assert server.bodies == [sent]

    with_upstream(http_response(echo, f"set-cookie: id={KEY}", "set-cookie: b=1", "x-kept: too"), use)
    text = stored_text(tmp_path)
    if name != "openai-organization":
        assert KEY not in text
    assert value not in text
    (recording,) = recordings(tmp_path)
    assert recording.request.headers.get("x-kept") == "yes"
    assert [pair for pair in recording.response.headers if "kept" in pair[0]] == [("x-kept", "too")]
    assert not any("cookie" in header for header, _ in recording.response.headers)


def test_aws_signatures_are_removed() -> None:
    signed = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261118/eu/bedrock/aws4_request, Signature=abc123"
    query = "X-Amz-Signature=abc123&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE&X-Amz-Security-Token=tok&prefix=a"
    secrets = remover(authorization=signed)
    assert secrets.clean_request_headers({"authorization": signed}) == {"authorization": "[removed]"}
    cleaned = secrets.clean_query(query)
    assert cleaned.endswith("prefix=a")
    assert not any(part in cleaned for part in ("abc123", "AKIA", "tok&"))


@pytest.mark.parametrize("query", ["key=K", "alt=sse&key=K", "access_token=K&x=1", "api_key=K", "sig=K&se=2"])
def test_keys_in_queries_are_removed(query: str, tmp_path: Path) -> None:
    def use(server: RawServer) -> None:
        with start("gemini", record=tmp_path, upstream=server.url) as recorder:
            get_raw(recorder, f"/v1beta/models?{query.replace('K', KEY)}")
            assert server.heads[0].startswith(f"GET /v1beta/models?{query.replace('K', KEY)} ")

    with_upstream(http_response(KEY.encode()), use)
    assert KEY not in stored_text(tmp_path)
    (recording,) = recordings(tmp_path)
    assert recording.request.query == query.replace("K", "[removed]")


def test_secrets_in_bodies_are_removed_and_still_match(tmp_path: Path) -> None:
    prompt = f"Write {SECRET} and postgresql://me:hunter2@db/x to .env"
    with (
        start("anthropic", script=f"say Wrote {SECRET}.") as upstream,
        start("anthropic", record=tmp_path, upstream=upstream.url) as recorder,
    ):
        recorded = post(recorder, body_of("anthropic", prompt))
        assert SECRET in recorded.data.decode()
        assert SECRET not in repr(recorder.requests)
    assert SECRET not in stored_text(tmp_path)
    assert "hunter2" not in stored_text(tmp_path)
    with start("anthropic", replay=tmp_path) as replayer:
        replayed = post(replayer, body_of("anthropic", prompt))
        assert replayed.body == json.loads(recorded.data.decode().replace(SECRET, "[Anthropic key removed]"))
        assert post(replayer, body_of("anthropic", prompt + "!")).status == 404


@pytest.mark.parametrize("api", APIS)
def test_a_key_that_is_split_over_deltas_is_removed(api: str, tmp_path: Path) -> None:
    """The emulator streams text by words and arguments in pieces of twelve characters."""
    arguments = json.dumps({"city": f"see {SECRET} here"})
    script = f"say The authorization: Bearer {KEY} is set.\ncall get_weather {arguments}"
    with start(api, script=script) as upstream, start(api, record=tmp_path, upstream=upstream.url) as recorder:
        recorded = post(recorder, body_of(api), stream=True, key=KEY)
    with start(api, replay=tmp_path) as replayer:
        replayed = post(replayer, body_of(api), stream=True)
    before, after = segue.assemble(recorded.data, api), segue.assemble(replayed.data, api)
    assert before.calls[0].arguments == {"city": f"see {SECRET} here"}
    assert after.calls[0].arguments == {"city": "see [Anthropic key removed] here"}
    assert KEY in before.text
    assert KEY not in after.text
    assert after.text.startswith("The authorization: Bearer [")
    (recording,) = recordings(tmp_path)
    whole = b"".join(recording.response.pieces)
    assert SECRET.encode() not in whole
    assert b"D4e5F6" not in whole


def test_a_list_of_streamed_events_is_cleaned() -> None:
    """Gemini sends it if the client does not request server-sent events."""
    events = [
        {"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in ("see sk-ant-", "api03-a1B2c3D4", " ok")
    ]
    (cleaned,) = remover().clean_chunks([json.dumps(events).encode()])
    texts = [event["candidates"][0]["content"]["parts"][0]["text"] for event in json.loads(cleaned)]
    assert "".join(texts) == "see [Anthropic key removed] ok"


def test_text_without_secrets_keeps_every_byte() -> None:
    chunks = [b'data: { "id" : "chatcmpl-1", "text":"a" }\r\n\r\n', b"event: x\ndata: [DO", b"NE]\n\n", b"\xff\x00"]
    assert remover(authorization="Bearer k").clean_chunks(chunks) == chunks


@pytest.mark.parametrize(
    "body", [f"<html>{SECRET}</html>", f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"]
)
def test_other_text_is_cleaned_too(body: str) -> None:
    (cleaned,) = remover().clean_chunks([body.encode()])
    assert SECRET.encode() not in cleaned
    assert b"removed]" in cleaned


def test_a_message_that_was_cut_off_is_cleaned() -> None:
    (cleaned,) = remover().clean_chunks([b"\0\0\1\0\0\0\0\x10 key: " + SECRET.encode()])
    assert SECRET.encode() not in cleaned


_EVENTS = st.lists(
    st.fixed_dictionaries({"index": st.integers(0, 1), "text": st.text(max_size=8)})
    | st.sampled_from([SECRET, SECRET[:9], SECRET[9:], "x"]).map(lambda text: {"index": 0, "text": text}),
    max_size=8,
)


@examples(10)
@given(_EVENTS, st.lists(st.integers(0, 500), max_size=6))
@example([{"index": 0, "text": text} for text in ("0", SECRET, SECRET[:9], SECRET[:9])], [])
@example([{"index": 0, "text": text} for text in (SECRET[:20], SECRET[20:])], [40])
def test_chunk_boundaries_never_change_the_cleaned_stream(events: list[dict[str, Any]], cuts: list[int]) -> None:
    data = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    chunks = [data[start:end] for start, end in pairwise(bounds)]
    whole = b"".join(remover().clean_chunks([data]))
    parts = remover().clean_chunks(chunks)
    assert b"".join(parts) == whole
    assert len(parts) == len(chunks)
    assert b"".join(remover().clean_chunks(parts)) == whole
    decoder = FrameDecoder()
    payloads = [json.loads(payload) for _, payload in (*decoder.feed(whole), *decoder.close())]
    assert [payload["index"] for payload in payloads] == [event["index"] for event in events]
    for index in (0, 1):
        texts = [payload["text"] for payload in payloads if payload["index"] == index]
        # The same text in every event is no delta.
        assert len(set(texts)) == 1 or find_secrets("".join(texts)) == []


def test_chunked_boundaries_around_a_removed_key_stay(tmp_path: Path) -> None:
    chunks = (b'data: {"a":"x"}\n\n', b'data: {"a":"sk-ant-', b'api03-a1B2c3D4e5F6"}\n\n', b'data: {"b":1}\n\n')

    def use(server: RawServer) -> None:
        with start("openai-chat", record=tmp_path, upstream=server.url) as recorder:
            assert b"".join(get_raw(recorder).chunks) == b"".join(chunks)

    with_upstream(chunked_response(*chunks), use)
    (recording,) = recordings(tmp_path)
    pieces = recording.response.pieces
    assert (pieces[0], pieces[-1], len(pieces)) == (chunks[0], chunks[-1], 4)
    assert b"".join(pieces[1:3]) == b'data: {"a":"[Anthropic key removed]"}\n\n'

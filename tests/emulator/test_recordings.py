"""Exchanges are recorded between a vendor's client and its provider, and replayed without the provider."""

from __future__ import annotations

import asyncio
import http.client
import json
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anthropic
import msgspec
import openai
import pytest
from botocore.exceptions import ClientError
from google.genai.errors import ClientError as GeminiError
from mistralai.client.errors import SDKError

from segue.emulator import Emulator, post, start
from segue.emulator.client import build_request
from segue.emulator.http_messages import HttpRequest
from segue.emulator.recorder import Upstream, parse_upstreams
from segue.emulator.recordings import Recording, RecordingFolder
from segue.emulator.replayer import VOLATILE_FIELDS
from segue.errors import InputError
from tests.emulator.http_requests import APIS, TIMEOUT, body_of
from tests.emulator.prefixed import one_api
from tests.emulator.test_all_apis import MODELS, MODES
from tests.emulator.vendor_chats import VENDOR_CHATS, RequestMode
from tests.runtime.raw_server import HANG, RESET, RawServer, chunked_response, http_response, serve_raw

QUESTION = "What is the weather in Lisbon and in Oslo?"
KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0"
T = TypeVar("T")
BROKEN = (http.client.IncompleteRead, ConnectionResetError, ValueError)
every_api = pytest.mark.parametrize("api", APIS)


def recordings(folder: Path) -> list[Recording]:
    return [msgspec.json.decode(path.read_bytes(), type=Recording) for path in sorted(folder.glob("*.json"))]


def with_upstream(answer: bytes, use: Callable[[RawServer], T]) -> T:
    """Runs a function in a thread beside a server that sends these bytes."""

    async def run() -> T:
        async with serve_raw(answer) as server:
            return await asyncio.to_thread(use, server)

    return asyncio.run(run())


class RawResponse(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    chunks: list[bytes]


def get_raw(emulator: Emulator, path: str = "/v1/models", *, body: bytes | None = None, **headers: str) -> RawResponse:
    """A response with the chunks of its framing; a body that is not chunked is one."""
    connection = http.client.HTTPConnection("127.0.0.1", emulator.port, timeout=TIMEOUT)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        if not answer.chunked:
            return RawResponse(answer.status, answer.getheaders(), [answer.read()])
        chunks: list[bytes] = []
        assert answer.fp is not None
        while size := int(answer.fp.readline(), 16):
            chunks.append(answer.fp.read(size))
            answer.fp.readline()
        answer.fp.readline()
        answer.close()
        return RawResponse(answer.status, answer.getheaders(), chunks)
    finally:
        connection.close()


# ----------------------------------------------------------------------------------------------------- vendors' clients


@pytest.mark.parametrize("how", MODES)
@every_api
def test_a_tool_loop_is_recorded_and_replayed(api: str, how: RequestMode, tmp_path: Path) -> None:
    def run(emulator: Emulator) -> Any:
        with closing(VENDOR_CHATS[api](one_api(emulator, api), model=MODELS[api])) as chat:
            return chat.exchange(QUESTION, how), chat.exchange("And in Bergen?", how)

    with start(api) as upstream:
        with start(api, record=tmp_path, upstream=upstream.url) as recorder:
            recorded = run(recorder)
        assert len(upstream.requests) == len(recorder.requests) >= 4
        assert [record.recording for record in recorder.requests] == sorted(path.name for path in tmp_path.iterdir())
    with start(api, replay=tmp_path) as replayer:
        assert run(replayer) == recorded
        assert [record.recording for record in replayer.requests] == [row.recording for row in recorder.requests]
        assert run(replayer) == recorded, "from the first recording again"


def test_all_apis_are_recorded_and_replayed_on_one_port(tmp_path: Path) -> None:
    def run(emulator: Emulator) -> list[Any]:
        return [post(emulator, body_of(api), api=api, stream=stream) for api in APIS for stream in (False, True)]

    with start("all") as upstream, start("all", record=tmp_path, upstream=upstream.url) as recorder:
        recorded = run(recorder)
        assert {response.status for response in recorded} == {200}
        assert [record.api for record in upstream.requests] == [record.api for record in recorder.requests]
    with start("all", replay=tmp_path) as replayer:
        assert run(replayer) == recorded
    with start("gemini", replay=tmp_path) as single:
        assert post(single, body_of("gemini")).data == recorded[APIS.index("gemini") * 2].data


def test_each_api_can_have_its_own_upstream(tmp_path: Path) -> None:
    with start("anthropic") as first, start("openai-chat") as second:
        upstream = {"anthropic": first.base_url, "openai-chat": second.base_url}
        with start("all", record=tmp_path, upstream=upstream) as recorder:
            assert post(recorder, body_of("anthropic"), api="anthropic").status == 200
            client = openai.OpenAI(base_url=f"{recorder.url}/v1", api_key=KEY, max_retries=0)
            assert client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "Hello!"}])
            refused = post(recorder, body_of("gemini"), api="gemini")
            assert (refused.status, refused.body["error"]["message"]) == (404, "no upstream is given for gemini")
        assert [record.path for record in (*first.requests, *second.requests)] == [
            "/v1/messages",
            "/v1/chat/completions",
        ]
    assert [(one.api, one.request.path) for one in recordings(tmp_path)] == [
        ("anthropic", "/v1/messages"),
        ("openai-chat", "/v1/chat/completions"),
    ]


# -------------------------------------------------------------------------------------------------------- transparency


def test_the_response_reaches_the_client_unchanged(tmp_path: Path) -> None:
    body = b'{ "error" : {"type": "rate_limit_error", "message": "Gr\\u00fc\xc3\x9f"} }\n'
    answer = http_response(body, "Retry-After: 7", "X-Odd: a", "X-Odd: b", "date: today", status="429 Slow Down")

    def use(server: RawServer) -> None:
        with start("anthropic", record=tmp_path, upstream=server.url) as recorder:
            seen = get_raw(recorder, "/v1/models?limit=3&after=a%2Fb", **{"x-api-key": KEY, "x-own": "1"})
        assert (seen.status, seen.chunks) == (429, [body])
        expected = {"retry-after": "7", "date": "today", "content-type": "application/json"}
        assert expected.items() <= {name.lower(): value for name, value in seen.headers}.items()
        assert [value for name, value in seen.headers if name.lower() == "x-odd"] == ["a", "b"]
        assert server.heads[0].startswith("GET /v1/models?limit=3&after=a%2Fb HTTP/1.1\r\n")
        assert (server.header("x-api-key"), server.header("x-own")) == (KEY, "1")
        assert server.header("host") == server.url.removeprefix("http://")
        with start("anthropic", replay=tmp_path) as replayer:
            assert get_raw(replayer, "/v1/models?after=a%2Fb&limit=3") == seen

    with_upstream(answer, use)


CHUNKS = (b'data: {"a": "Gr\xc3', b'\xbc\xc3\x9f"}\n\n', b": keep-alive\n\n", b"data: [DONE]\n", b"\n")


def test_a_stream_is_replayed_with_its_chunks(tmp_path: Path) -> None:
    def use(server: RawServer) -> None:
        with start("openai-chat", record=tmp_path, upstream=server.url) as recorder:
            assert b"".join(get_raw(recorder).chunks) == b"".join(CHUNKS)
        (recording,) = recordings(tmp_path)
        assert tuple(recording.response.pieces) == CHUNKS
        with start("openai-chat", replay=tmp_path) as replayer:
            assert tuple(get_raw(replayer).chunks) == CHUNKS

    with_upstream(chunked_response(*CHUNKS), use)


def test_a_stream_is_passed_on_as_it_arrives_and_a_disconnect_too(tmp_path: Path) -> None:
    """The upstream sends the first half and no more, until the client disconnects."""

    async def run() -> None:
        async with serve_raw(chunked_response(b"data: 1\n\n", end=HANG)) as server:
            recorded = threading.Event()

            def use() -> None:
                connection = http.client.HTTPConnection("127.0.0.1", recorder.port, timeout=TIMEOUT)
                connection.request("GET", "/v1/models")
                answer = connection.getresponse()
                assert answer.read1() == b"data: 1\n\n"
                answer.close()
                connection.close()

            with start(
                "openai-chat", record=tmp_path, upstream=server.url, on_request=lambda _: recorded.set()
            ) as recorder:
                await asyncio.to_thread(use)
                await asyncio.wait_for(server.disconnected.wait(), TIMEOUT)
                assert await asyncio.to_thread(recorded.wait, TIMEOUT)

    asyncio.run(run())
    (recording,) = recordings(tmp_path)
    assert (recording.response.broken, recording.response.pieces) == (True, [b"data: 1\n\n"])


def test_a_client_that_leaves_before_the_response_cancels_the_request(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        async with serve_raw(HANG) as server:
            ended = threading.Event()
            with start(
                "openai-chat", record=tmp_path, upstream=server.url, on_request=lambda _: ended.set()
            ) as recorder:
                connection = http.client.HTTPConnection("127.0.0.1", recorder.port, timeout=TIMEOUT)
                await asyncio.to_thread(connection.request, "GET", "/v1/models")
                await asyncio.wait_for(server.request_received.wait(), TIMEOUT)
                connection.close()
                await asyncio.wait_for(server.disconnected.wait(), TIMEOUT)
                assert await asyncio.to_thread(ended.wait, TIMEOUT)
                return recorder.requests

    (record,) = asyncio.run(run())
    assert (record.status, record.unrecorded) == (0, "the client disconnected before the response")
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_breaks_off_breaks_off_again(tmp_path: Path) -> None:
    def use(server: RawServer) -> None:
        recording: dict[str, Any] = {"record": tmp_path, "upstream": server.url}
        for options in (recording, {"replay": tmp_path}):
            with start("openai-chat", **options) as emulator, pytest.raises(BROKEN):
                get_raw(emulator)

    with_upstream(chunked_response(b"data: 1\n\n", end=RESET), use)
    (recording,) = recordings(tmp_path)
    assert (recording.response.broken, recording.response.pieces) == (True, [b"data: 1\n\n"])


@every_api
def test_an_upstream_that_fails_is_an_error_in_the_form_of_the_api(api: str, port: int, tmp_path: Path) -> None:
    with start(api, record=tmp_path, upstream=f"http://127.0.0.1:{port}") as recorder:
        failed = post(recorder, body_of(api))
        assert failed.status == 502
        assert "the upstream failed: can't connect to 127.0.0.1" in failed.data.decode()
        assert recorder.requests[0].refused
    assert list(tmp_path.iterdir()) == []


def test_a_compressed_response_is_refused(tmp_path: Path) -> None:
    def use(server: RawServer) -> None:
        with start("anthropic", record=tmp_path, upstream=server.url) as recorder:
            seen = get_raw(recorder)
        assert seen.status == 502
        assert b"the content encoding gzip" in seen.chunks[0]
        assert server.header("accept-encoding") == "identity"

    with_upstream(http_response(b"\x1f\x8b", "content-encoding: gzip"), use)


def test_a_response_without_a_body(tmp_path: Path) -> None:
    def use(server: RawServer) -> None:
        with start("openai-chat", record=tmp_path, upstream=server.url) as recorder:
            assert get_raw(recorder).chunks == [b""]
        with start("openai-chat", replay=tmp_path) as replayer:
            assert get_raw(replayer).status == 204

    with_upstream(b"HTTP/1.1 204 No Content\r\n\r\n", use)


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://h", "/v1/messages", "https://h/v1/messages"),
        ("https://h/v1", "/v1/messages", "https://h/v1/messages"),
        ("https://h/api/v1", "/v1/chat/completions", "https://h/api/v1/chat/completions"),
        ("https://h/openai/v1", "/openai/v1/responses", "https://h/openai/v1/responses"),
        ("https://h/v1", "/v1beta/models", "https://h/v1/v1beta/models"),
        ("https://h/team", "/v1/messages", "https://h/team/v1/messages"),
        ("https://h", "/model/a%3A0/converse", "https://h/model/a%3A0/converse"),
    ],
)
def test_the_url_of_a_request(base: str, path: str, url: str) -> None:
    request = HttpRequest("POST", path, {}, {}, b"", raw_path=path, raw_query="a=1")
    assert Upstream(base).build_url(request) == f"{url}?a=1"
    prefixed = HttpRequest("POST", path, {}, {}, b"", raw_path=f"/kimi{path}", prefix="/kimi")
    assert Upstream(base).build_url(prefixed) == url
    assert Upstream(base, with_prefix=True).build_url(prefixed) == f"{base}/kimi{path}"


# --------------------------------------------------------------------------------------------------------------- files


def test_files_are_numbered_and_only_for_their_owner(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with start("anthropic") as upstream:
        for _ in range(2):
            with start("anthropic", record=folder, upstream=upstream.url) as recorder:
                for _ in range(2):
                    assert post(recorder, body_of("anthropic")).status == 200
    files = sorted(folder.iterdir())
    assert [path.name[:17] for path in files] == [f"{number:06}-anthropic-" for number in (1, 2, 3, 4)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_exchange_that_can_not_be_stored_does_not_harm_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordingFolder, "store", fail)
    with start("anthropic") as upstream, start("anthropic", record=tmp_path, upstream=upstream.url) as recorder:
        assert post(recorder, body_of("anthropic"), stream=True).status == 200
        assert [record.unrecorded for record in recorder.requests] == ["no space left on device"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", fail)
    with start("anthropic") as upstream, start("anthropic", record=tmp_path, upstream=upstream.url) as recorder:
        assert post(recorder, body_of("anthropic")).status == 200
        assert [record.unrecorded for record in recorder.requests] == ["input/output error"]
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------------- matching


def record_chat(folder: Path, *texts: str, **fields: Any) -> None:
    with start("openai-chat") as upstream, start("openai-chat", record=folder, upstream=upstream.url) as recorder:
        for text in texts:
            assert post(recorder, {**body_of("openai-chat", text), **fields}).status == 200


def test_several_recordings_of_a_request_are_replayed_in_order(tmp_path: Path) -> None:
    record_chat(tmp_path, "Hello!", "Bye!", "Hello!")
    with start("openai-chat", replay=tmp_path) as replayer:
        for text in ("Hello!", "Hello!", "Hello!", "Bye!"):
            assert post(replayer, body_of("openai-chat", text)).status == 200
        numbers = [int((record.recording or "")[:6]) for record in replayer.requests]
    assert numbers == [1, 3, 1, 2]


def test_what_varies_from_run_to_run_is_ignored(tmp_path: Path) -> None:
    text = "Today is {date}, session {uuid}, x-anthropic-billing-header: cc_version=2; cch={nonce};"
    before = {"date": "2026-11-18", "uuid": "0b7e1a52-3f0c-4f0e-9c51-5d0f8c3f1a11", "nonce": "a1b2c"}
    after = {"date": "November 19, 2026", "uuid": "00000000-3f0c-4f0e-9c51-5d0f8c3f1a11", "nonce": "99999"}
    record_chat(tmp_path, text.format(**before), user="one", metadata={"run": "1"}, prompt_cache_key="a")
    with start("openai-chat", replay=tmp_path) as replayer:
        later = {**body_of("openai-chat", text.format(**after)), "metadata": {"run": "2"}, "safety_identifier": "b"}
        assert post(replayer, later, key="other").status == 200
        assert post(replayer, body_of("openai-chat", text.format(**after) + "!")).status == 404
        reordered = dict(reversed(later.items()))
        assert post(replayer, json.dumps(reordered, indent=2).encode()).status == 200


def test_the_docs_list_what_is_ignored() -> None:
    text = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8").partition("**Ignored**")[2]
    assert all(f"`{name}`" in text for name in VOLATILE_FIELDS)


def test_an_equal_request_is_preferred_to_a_similar_one(tmp_path: Path) -> None:
    record_chat(tmp_path, "It is 2026-11-17.", "It is 2026-11-18.")
    with start("openai-chat", replay=tmp_path) as replayer:
        for day in (18, 18, 17):
            assert post(replayer, body_of("openai-chat", f"It is 2026-11-{day}.")).status == 200
        assert [int((record.recording or "")[:6]) for record in replayer.requests] == [2, 2, 1]


@every_api
def test_a_request_without_a_recording_names_the_nearest_and_the_difference(api: str, tmp_path: Path) -> None:
    def ask(emulator: Emulator, text: str) -> None:
        with closing(VENDOR_CHATS[api](emulator, model=MODELS[api])) as chat:
            chat.add_user(text)
            chat.request("at once")

    with start(api) as upstream, start(api, record=tmp_path, upstream=upstream.url) as recorder:
        for text in ("What is the weather in Lisbon?", "Hello!"):
            ask(recorder, text)
    nearest = recorder.requests[0].recording
    errors = (openai.NotFoundError, anthropic.NotFoundError, GeminiError, ClientError, SDKError)
    with start(api, replay=tmp_path) as replayer:
        with pytest.raises(errors) as caught:
            ask(replayer, "What is the weather in Oslo?")
        (record,) = replayer.requests
    assert record.status == 404
    message = f"no recording matches POST {record.path}; the nearest is {nearest}, which differs in "
    assert message in (record.refused or "")
    assert message in str(caught.value)
    difference = 'recorded "What is the weather in Lisbon?", received "What is the weather in Oslo?"'
    assert (record.refused or "").endswith(difference)


def test_the_first_difference_can_be_the_path_or_a_missing_field(tmp_path: Path) -> None:
    record_chat(tmp_path, "Hello!")
    body = body_of("openai-chat", "Hello!")
    with start("openai-chat", replay=tmp_path) as replayer:
        assert (
            "differs in method: recorded POST, received GET"
            in get_raw(replayer, "/v1/chat/completions").chunks[0].decode()
        )
        assert "differs in path: recorded /v1/chat/completions, received /v1/models" in (
            get_raw(replayer, "/v1/models", body=b"{}").chunks[0].decode()
        )
        for changed, difference in (
            ({**body, "temperature": 1}, "temperature: recorded nothing, received 1"),
            ({**body, "messages": []}, "messages[0]: recorded {"),
            ({key: value for key, value in body.items() if key != "tools"}, "tools: recorded ["),
        ):
            assert f"which differs in {difference}" in post(replayer, changed).body["error"]["message"]


def test_bodies_that_are_not_json_are_matched_too(tmp_path: Path) -> None:
    bodies = (b"plain text", b"\xff\xfe binary", b"--x\r\ncontent-disposition: form-data\r\n\r\n1\r\n--x--")

    def use(server: RawServer) -> None:
        with start("openai-chat", record=tmp_path, upstream=server.url) as recorder:
            for body in bodies:
                assert get_raw(recorder, "/v1/files", body=body).status == 200
            assert server.bodies == list(bodies)
        with start("openai-chat", replay=tmp_path) as replayer:
            for body in bodies:
                assert get_raw(replayer, "/v1/files", body=body).status == 200
            assert get_raw(replayer, "/v1/files", body=b"other").status == 404

    with_upstream(http_response(b"{}"), use)


# ------------------------------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"record": "DIR"}, "upstream: the URL of the real provider is needed with `record`"),
        ({"upstream": "https://h"}, "upstream: it is used only with `record`"),
        ({"record": "DIR", "upstream": "http://example.com"}, "upstream: http is allowed for this machine only"),
        ({"record": "DIR", "upstream": "ftp://example.com"}, "upstream: a URL such as https://"),
        ({"record": "DIR", "upstream": "example.com"}, "upstream: a URL such as https://"),
        ({"record": "DIR", "upstream": "https://h:99999"}, "upstream: a URL such as https://"),
        ({"record": "DIR", "upstream": "https://[::1"}, "upstream: a URL such as https://"),
        ({"record": "DIR", "upstream": "https://h/a b"}, "upstream: a URL such as https://"),
        ({"record": "DIR", "upstream": "https://me:secret@h"}, "upstream: a URL without user name, query"),
        ({"record": "DIR", "upstream": "https://h?key=1"}, "upstream: a URL without user name, query"),
        ({"record": "DIR", "upstream": 5}, "upstream: a string was expected, not int"),
        ({"record": "DIR", "upstream": {}}, "upstream: the URL of at least one API is needed"),
        ({"record": "DIR", "upstream": {"gemini": "https://h"}}, "upstream: unknown API 'gemini'"),
        ({"record": "FILE", "upstream": "https://h"}, "record: can't write to .*FILE: not a directory"),
        ({"record": "FILE/x", "upstream": "https://h"}, "record: can't write to .*FILE/x: not a directory"),
        ({"record": "none/x", "upstream": "https://h"}, "record: can't write to .*none/x: no such file or directory"),
        ({"record": "\0", "upstream": "https://h"}, "record: can't write to .*: .*null"),
        ({"replay": "none"}, "replay: can't read .*none: no such file or directory"),
        ({"replay": "FILE"}, "replay: can't read .*FILE: not a directory"),
        ({"replay": "DIR"}, "replay: .*DIR has no recordings"),
        ({"replay": "DIR", "record": "DIR", "upstream": "https://h"}, "replay: it can't be combined with `record`"),
        ({"replay": "DIR", "faults": ["reset"]}, "faults: it can't be combined with `record` or `replay`"),
        ({"replay": "DIR", "strict": False}, "strict: it can't be combined with `record` or `replay`"),
        ({"replay": "DIR", "keys": ["k"]}, "keys: it can't be combined with `record` or `replay`"),
    ],
)
def test_bad_arguments_are_rejected(arguments: dict[str, Any], expected: str, tmp_path: Path) -> None:
    (tmp_path / "DIR").mkdir()
    (tmp_path / "FILE").touch()
    given = {name: tmp_path / value if name in ("record", "replay") else value for name, value in arguments.items()}
    with pytest.raises(InputError, match=expected):
        start("anthropic", **given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "not a valid recording: Input data was truncated"),
        (b"{", "not a valid recording: "),
        (b"[]", "not a valid recording: Expected `object`, got `array`"),
        (b"\xff", "not a valid recording: "),
        (b'{"segue_recording": 2}', "not a valid recording: Invalid enum value 2"),
        (b'{"segue_recording": 1, "api": "x"}', "not a valid recording: Object missing required field `request`"),
    ],
)
def test_a_damaged_recording_is_named(text: bytes, expected: str, tmp_path: Path) -> None:
    record_chat(tmp_path, "Hello!")
    (tmp_path / "000002-openai-chat-x.json").write_bytes(text)
    with pytest.raises(InputError, match=f"replay: .*000002-openai-chat-x.json is {expected}"):
        start("openai-chat", replay=tmp_path)


def test_recordings_of_other_apis_only(tmp_path: Path) -> None:
    record_chat(tmp_path, "Hello!")
    with pytest.raises(InputError, match="has no recordings of gemini"):
        start("gemini", replay=tmp_path)
    with start("all", replay=tmp_path) as replayer:
        refused = post(replayer, body_of("gemini"), api="gemini")
        assert (refused.status, refused.body["error"]["status"]) == (404, "NOT_FOUND")
        assert "there are no recordings of gemini" in refused.body["error"]["message"]


def test_an_upstream_on_this_machine_may_use_http() -> None:
    for url in ("http://127.0.0.1:1", "http://localhost:8080/v1/", "http://[::1]:1", "https://api.example.com/"):
        assert parse_upstreams(url, ["kimi"]) == {"kimi": Upstream(url.rstrip("/"))}


def test_a_stored_request_is_the_one_that_a_client_sent(tmp_path: Path) -> None:
    with start("gemini") as upstream, start("gemini", record=tmp_path, upstream=upstream.url) as recorder:
        path, data, headers = build_request("gemini", body_of("gemini"), stream=True)
        get_raw(recorder, path, body=data, **headers)
    (recording,) = recordings(tmp_path)
    assert recording.request.body.json == json.loads(data)
    assert f"{recording.request.path}?{recording.request.query}" == path
    assert recording.request.method == "POST"

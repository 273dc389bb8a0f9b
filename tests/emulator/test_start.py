"""`start`: its arguments, rejected arguments, and the recorded requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from segue import conformance
from segue.emulator import start
from segue.emulator.client import post
from segue.errors import InputError
from tests.emulator.http_requests import APIS, body_of


def test_one_key_may_be_given_as_it_is() -> None:
    with start("openai-chat", keys="k1") as provider:
        body = body_of("openai-chat", "Hello!")
        assert [post(provider, body, key=key).status for key in ("k1", "k", "1", "")] == [200, 401, 401, 401]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_key_need_not_be_ascii(encoding: str) -> None:
    with start("anthropic", keys=["schlüssel"]) as provider:
        sent = {"x-api-key": "schlüssel".encode(encoding)}
        assert post(provider, body_of("anthropic", "Hello!"), key=None, headers=sent).status == 200


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"keys": [1]}, "keys: a string was expected, not int"),
        ({"patience": "x"}, "patience: a number of seconds was expected, not 'x'"),
        ({"patience": -1}, "patience: a number of seconds was expected, not -1"),
        ({"script": "turns.txt"}, r"script: unknown step `turns.txt`.*pass Path\('turns.txt'\)"),
        ({"script": "sing La la."}, "script, line 1: unknown step `sing`"),
        ({"script": Path("/no/such")}, "script: can't read the script /no/such: no such file or directory$"),
    ],
)
def test_contradictory_arguments_are_rejected(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        start("anthropic", **given)


def test_script_text_is_not_taken_for_a_file() -> None:
    with pytest.raises(InputError) as caught:
        start("anthropic", script="sing La la.")
    assert "Path" not in str(caught.value)


def test_provider_describes_itself_and_is_single_use() -> None:
    provider = start("kimi")
    assert repr(provider) == f"<Emulator kimi on {provider.url}>"
    provider.stop()
    assert repr(provider) == f"<Emulator kimi on {provider.url}, stopped>"
    with pytest.raises(InputError, match="was stopped"), provider:
        pass


def test_a_request_is_listed_when_its_record_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[object] = []
    check_body = conformance.check_body

    def list_requests(*args: Any, **options: Any) -> Any:
        listed.extend(provider.requests)
        return check_body(*args, **options)

    with start("anthropic") as provider:
        monkeypatch.setattr(conformance, "check_body", list_requests)
        post(provider, body_of("anthropic", "Hello!"))
        assert listed == []
        assert [request.status for request in provider.requests] == [200]


def test_the_body_of_a_request_is_kept_whatever_came_of_it() -> None:
    with start("gemini", keys=["k1"], faults=["rate-limit@1", "reset@2"]) as provider:
        body = body_of("gemini", "Hello!")
        assert post(provider, body, key="k1").status == 429
        with pytest.raises(ConnectionResetError):
            post(provider, body, key="k1")
        assert post(provider, body, key="k2").status == 400
        assert post(provider, body, key=None).status == 403
        assert post(provider, b"[]", key="k1").status == 400
        *kept, unread = provider.requests
        for record in kept:
            assert record.body is not None
            assert record.body["contents"] == body["contents"]
            assert record.model == body["model"]
        assert unread.body is None
        assert "k2" not in repr(kept)


@pytest.mark.parametrize("api", ["openai-chat", "mistral", "kimi", "deepseek", "qwen"])
def test_openais_client_works_on_the_base_url_with_and_without_v1(api: str) -> None:
    with start(api) as provider:
        bare = provider.base_url.removesuffix("/v1")
        for base in (provider.base_url, bare, f"{bare}/v1"):
            client = openai.OpenAI(base_url=base, api_key="k")
            expected = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello!"}])
            assert expected.choices[0].message.content
            assert list(client.models.list())


@pytest.mark.parametrize("api", APIS)
def test_a_body_that_is_too_large_is_refused_at_once(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(api) as provider:
        largest = provider._router.max_body_bytes
        assert largest >= 20 * 2**20
        monkeypatch.setattr(type(provider._router), "max_body_bytes", 200_000)
        sent = post(provider, body_of(api, "x" * 250_000))
        assert sent.status == (400 if api == "gemini" else 413)
        assert sent.body
        assert provider.requests[-1].body is None
        assert post(provider, body_of(api, "Hello!")).status == 200


def test_anthropic_takes_32_mb() -> None:
    with start("anthropic") as provider:
        refused = post(provider, body_of("anthropic", "x" * (32 * 2**20)))
        error = {"type": "request_too_large", "message": "Request exceeds the maximum size"}
        assert (refused.status, refused.body["error"]) == (413, error)


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
def test_the_wait_that_openai_names_is_the_one_of_its_header(api: str) -> None:
    with start(api, faults=["rate-limit"]) as provider:
        limited = post(provider, body_of(api))
        assert limited.headers["retry-after"] == "1"
        assert "try again in 1s." in limited.body["error"]["message"]

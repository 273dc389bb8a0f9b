"""All APIs on one port: by prefix, by path and headers; options apply to all."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import Any

import openai
import pytest

from segue.emulator import post, start
from segue.emulator.client import build_request
from segue.errors import InputError
from tests.budget import sample
from tests.emulator.http_requests import APIS, TIMEOUT, body_of
from tests.emulator.prefixed import one_api
from tests.emulator.vendor_chats import VENDOR_CHATS, RequestMode
from tests.vendors import boto

QUESTION = "What is the weather in Lisbon and in Oslo?"
MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.1",
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-2.5-flash",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "azure-foundry": "gpt-5",
    "mistral": "mistral-medium-latest",
    "kimi": "kimi-k2-0905-preview",
    "deepseek": "deepseek-chat",
    "qwen": "qwen-plus",
}
every_api = pytest.mark.parametrize("api", APIS)
MODES: tuple[RequestMode, ...] = ("at once", "streamed")


def send(url: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


# ------------------------------------------------------------------------------------------------------------- prefixes


@pytest.mark.parametrize(
    ("api", "how"), [(api, how) for number, api in enumerate(APIS) for how in sample(MODES, 2, start=number)]
)
def test_each_vendors_client_works_on_its_prefix(api: str, how: RequestMode) -> None:
    with start("all") as emulator, closing(VENDOR_CHATS[api](one_api(emulator, api), model=MODELS[api])) as chat:
        turns, text = chat.exchange(QUESTION, how)
        assert len(turns[0]) > 1
        assert text
        assert [(record.api, record.status) for record in emulator.requests] == [(api, 200)] * (len(turns) + 1)
        assert emulator.base_urls[api].startswith(f"{emulator.url}/{api}")


@pytest.mark.parametrize("api", ["openai-chat", "mistral", "kimi", "deepseek", "qwen"])
@pytest.mark.parametrize("base", ["", "/v1"])
def test_openais_client_works_on_the_prefix_with_and_without_v1(api: str, base: str) -> None:
    with start("all") as emulator:
        client = openai.OpenAI(base_url=f"{emulator.url}/{api}{base}", api_key="k", max_retries=0)
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello!"}])
        assert list(client.models.list())
        assert {record.api for record in emulator.requests} == {api}


@pytest.mark.parametrize("api", ["openai-responses", "azure-foundry"])
def test_responses_work_on_the_prefix_with_v1(api: str) -> None:
    with start("all") as emulator:
        client = openai.OpenAI(base_url=f"{emulator.url}/{api}/v1", api_key="k", max_retries=0)
        assert client.responses.create(model="gpt-5", input="Hello!").output_text
        assert [record.api for record in emulator.requests] == [api]


@every_api
def test_a_prefix_changes_no_byte_of_a_response(api: str) -> None:
    with start("all") as emulator, start(api) as single:
        for stream in (False, True):
            responses = [
                post(emulator, body_of(api), api=api, stream=stream),
                post(single, body_of(api), stream=stream),
            ]
            assert responses[0] == responses[1]


def test_signed_requests_are_verified_under_a_prefix() -> None:
    with start("all", keys=["nobody:right"]) as emulator:
        messages = [{"role": "user", "content": [{"text": "Hello!"}]}]
        for secret, status in (("right", 200), ("wrong", 403)):
            client = boto.connect(emulator.base_urls["bedrock"], secret=secret)
            try:
                client.converse(modelId=MODELS["bedrock"], messages=messages)
            except client.exceptions.ClientError:
                assert secret == "wrong"
            assert emulator.requests[-1].status == status


# ------------------------------------------------------------------------------------------------------------ no prefix


@pytest.mark.parametrize("api", [api for api in APIS if api != "azure-foundry"])
def test_without_a_prefix_the_path_selects_the_api(api: str) -> None:
    """With the base URL that a client would use for the emulator of this API alone."""
    with start("all") as emulator:
        base_url = emulator.base_urls[api].replace(f"/{api}", "", 1)
        with closing(VENDOR_CHATS[api](one_api(emulator, api, base_url), model=MODELS[api])) as chat:
            _, text = chat.exchange(QUESTION, "streamed")
        assert text
        assert {record.api for record in emulator.requests} == {api}


@pytest.mark.parametrize(
    ("path", "headers", "model", "api"),
    [
        ("/v1/chat/completions", {}, "gpt-5", "openai-chat"),
        ("/v1/chat/completions", {}, "o3", "openai-chat"),
        ("/chat/completions", {}, "some-model", "openai-chat"),
        ("/v1/chat/completions", {}, None, "openai-chat"),
        ("/v1/chat/completions", {}, "claude-sonnet-5", "openai-chat"),
        ("/v1/chat/completions", {}, "kimi-k2.6", "kimi"),
        ("/v1/chat/completions", {}, "deepseek-reasoner", "deepseek"),
        ("/v1/chat/completions", {}, "qwen3-max", "qwen"),
        ("/v1/chat/completions", {}, "mistral-large-latest", "mistral"),
        ("/v1/chat/completions", {}, "codestral-latest", "mistral"),
        ("/compatible-mode/v1/chat/completions", {}, "x", "qwen"),
        ("/v1/responses", {}, "gpt-5", "openai-responses"),
        ("/v1/responses", {"api_key": "k"}, "gpt-5", "azure-foundry"),
        ("/openai/v1/responses", {}, "gpt-5", "azure-foundry"),
        ("/v1/messages", {}, "kimi-k2.6", "anthropic"),
        ("/v1/messages/count_tokens", {}, "claude-sonnet-5", "anthropic"),
        ("/v1beta/models/gemini-3-pro:generateContent", {}, None, "gemini"),
        ("/v1/models/gemini-3-pro:streamGenerateContent", {}, None, "gemini"),
        ("/model/anthropic.claude%3A0/converse", {}, None, "bedrock"),
    ],
)
def test_the_api_of_a_path(path: str, headers: dict[str, str], model: str | None, api: str) -> None:
    with start("all") as emulator:
        send(emulator.url, "POST", path, {"model": model} if model else {}, **headers)
        assert emulator.requests[-1].api == api


@pytest.mark.parametrize(
    ("headers", "api"),
    [
        ({"authorization": "Bearer k"}, "openai-chat"),
        ({"x_api_key": "k"}, "anthropic"),
        ({"authorization": "Bearer k", "anthropic_version": "2023-06-01"}, "anthropic"),
        ({"x_goog_api_key": "k"}, "gemini"),
    ],
)
def test_headers_select_the_list_of_models(headers: dict[str, str], api: str) -> None:
    with start("all") as emulator:
        assert send(emulator.url, "GET", "/v1/models", **headers)[0] == 200
        assert emulator.requests[-1].api == api


@pytest.mark.parametrize("path", ["/", "/v1", "/nobody/v1/messages", "*"])
def test_an_unknown_path_names_the_prefixes(path: str) -> None:
    with start("all") as emulator:
        status, body = send(emulator.url, "OPTIONS" if path == "*" else "POST", path, {})
        assert status == 404
        assert "no API has the path" in body["error"]["message"]
        assert all(f"/{api}" in body["error"]["message"] for api in APIS)
        assert [(record.api, record.status) for record in emulator.requests] == [("", 404)]


def test_an_unknown_path_under_a_prefix_is_the_providers_error() -> None:
    with start("all") as emulator:
        status, body = send(emulator.url, "POST", "/anthropic/v1/nothing", {})
        assert (status, body["error"]["type"]) == (404, "not_found_error")


# -------------------------------------------------------------------------------------------------------------- options


def test_a_script_is_shared_in_the_order_of_the_requests() -> None:
    with start("all", script="say One.\n---\nsay Two.\n---\nerror 503") as emulator:
        bodies = [post(emulator, body_of(api), api=api) for api in ("anthropic", "openai-chat", "kimi")]
        assert [record.text for record in emulator.requests] == ["One.", "Two.", ""]
        assert [response.status for response in bodies] == [200, 200, 503]


def test_faults_count_the_requests_of_all_apis() -> None:
    with start("all", faults=["rate-limit@2"]) as emulator:
        statuses = [post(emulator, body_of(api), api=api).status for api in ("gemini", "qwen", "gemini")]
        assert statuses == [200, 429, 200]
        assert [record.number for record in emulator.requests] == [1, 2, 3]


def test_keys_and_leniency_apply_to_all() -> None:
    with start("all", keys=["k1"]) as strict, start("all", strict=False) as lenient:
        for api in APIS:
            assert post(strict, body_of(api), api=api, key="k1").status == 200
            assert post(strict, body_of(api), api=api, key="k2").status in (400, 401, 403)
            assert post(lenient, body_of(api), api=api, key=None).status == 200


def test_a_profile_applies_to_its_api() -> None:
    name = {"role": "user", "content": "Hello!", "name": "Ada"}
    with start("all", profile="groq") as emulator, start("all") as plain, start("openai-chat", profile="groq") as groq:
        orphan = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": "1"}, name]}
        expected = post(groq, orphan)
        assert post(emulator, orphan, api="openai-chat").data == expected.data
        assert post(plain, orphan, api="openai-chat").data != expected.data
        assert post(emulator, body_of("anthropic"), api="anthropic").status == 200


def test_each_api_has_its_own_maximum_size() -> None:
    with start("all") as emulator:
        largest = emulator._router.services["anthropic"].max_body_bytes
        assert emulator._router.max_body_bytes > largest
        refused = post(emulator, body_of("anthropic", "x" * largest), api="anthropic")
        assert (refused.status, refused.body["error"]["type"]) == (413, "request_too_large")
        assert post(emulator, body_of("openai-chat", "x" * largest), api="openai-chat").status == 200


def test_arguments() -> None:
    with pytest.raises(InputError, match="unknown profile 'nobody'"):
        start("all", profile="nobody")
    with start("all") as emulator:
        assert repr(emulator) == f"<Emulator all on {emulator.url}>"
        assert (emulator.api, emulator.base_url) == ("all", emulator.url)
        assert tuple(emulator.base_urls) == APIS
        with pytest.raises(InputError, match="unknown API 'all'; expected one of openai-chat"):
            post(emulator, {})
    with start("anthropic") as single:
        assert single.base_urls == {"anthropic": single.base_url}
        with pytest.raises(InputError, match="unknown API 'gemini'"):
            post(single, {}, api="gemini")


def test_stored_items_are_assumed_for_all() -> None:
    with start("all") as emulator:
        path, data, headers = build_request("openai-responses", {"model": "gpt-5", "input": [ITEM]})
        body = json.loads(data)
        sent = {name.replace("-", "_"): value for name, value in headers.items()}
        assert send(emulator.url, "POST", path, body, **sent)[0] == 404
        emulator.assume_stored()
        assert send(emulator.url, "POST", path, body, **sent)[0] == 200


ITEM = {"type": "item_reference", "id": "msg_68af4030baa48193b0f64a4ac8f1e7a50a1b2c3d4e5f6071"}

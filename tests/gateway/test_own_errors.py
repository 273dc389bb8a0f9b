"""Errors of the gateway itself: vendors' SDKs raise the exception that they have for the status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import botocore.session
import httpx2
import openai
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from google import genai
from google.genai.errors import ClientError as GeminiError
from mistralai.client import Mistral
from mistralai.client.errors import SDKError

from segue.gateway.client_keys import ClientKey, hash_key
from tests.gateway.harness import Running, running_gateway

HELLO = "\n---\n".join(["say Hi there."] * 20)
CLIENTS = (
    ClientKey("ada", hash_key("key-ada")),
    ClientKey("few", hash_key("key-few"), models=("allowed",)),
    ClientKey("full", hash_key("key-full"), requests_per_minute=1),
)
USER: list[Any] = [{"role": "user", "content": "Hello"}]


def ask_chat(url: str, key: str) -> object:
    client = openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0)
    return client.chat.completions.create(model="any", messages=USER)


def ask_responses(url: str, key: str) -> object:
    client = openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0)
    return client.responses.create(model="any", input="Hello")


def ask_anthropic(url: str, key: str) -> object:
    client = anthropic.Anthropic(api_key=key, base_url=url, max_retries=0)
    return client.messages.create(model="any", max_tokens=10, messages=USER)


def ask_gemini(url: str, key: str) -> object:
    client = genai.Client(api_key=key, http_options={"base_url": url})
    return client.models.generate_content(model="any", contents="Hello")


def ask_mistral(url: str, key: str) -> object:
    return Mistral(api_key=key, server_url=url).chat.complete(model="any", messages=USER)


def ask_bedrock(url: str, key: str) -> object:
    session = botocore.session.Session()
    session.set_credentials("id", "secret")
    config = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
    client = session.create_client("bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=config)
    client.meta.events.register("before-sign.*.*", lambda request, **_: request.headers.__setitem__("x-api-key", key))
    return client.converse(modelId="any", messages=[{"role": "user", "content": [{"text": "Hello"}]}])


Ask = Callable[[str, str], object]
OPENAI = {401: openai.AuthenticationError, 404: openai.NotFoundError, 429: openai.RateLimitError}
ANTHROPIC = {401: anthropic.AuthenticationError, 404: anthropic.NotFoundError, 429: anthropic.RateLimitError}
SDKS: dict[str, tuple[Ask, dict[int, type[Exception]]]] = {
    "chat": (ask_chat, OPENAI),
    "responses": (ask_responses, OPENAI),
    "anthropic": (ask_anthropic, ANTHROPIC),
    "gemini": (ask_gemini, dict.fromkeys((401, 404, 429), GeminiError)),
    "mistral": (ask_mistral, dict.fromkeys((401, 404, 429), SDKError)),
    "bedrock": (ask_bedrock, dict.fromkeys((401, 404, 429), ClientError)),
}
AWS_CODES = {401: "UnrecognizedClientException", 404: "ResourceNotFoundException", 429: "ThrottlingException"}


@pytest.mark.parametrize("sdk", SDKS)
def test_sdks_raise_their_exceptions(sdk: str) -> None:
    ask, expected = SDKS[sdk]
    with running_gateway({"anthropic": HELLO}, clients=CLIENTS) as gateway:
        assert ask(gateway.url, "key-full") is not None
        for key, status, text in (
            ("wrong", 401, "a valid client key is needed"),
            ("key-few", 404, "does not allow the model 'any'"),
            ("key-full", 429, "full has reached its limit of 1 request a minute"),
        ):
            with pytest.raises(expected[status]) as raised:
                ask(gateway.url, key)
            assert text in str(raised.value)
            if isinstance(raised.value, ClientError):
                assert raised.value.response["Error"]["Code"] == AWS_CODES[status]
                assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
            if isinstance(raised.value, GeminiError):
                assert raised.value.code == status


def test_errors_of_bodies_hosts_and_paths() -> None:
    def post(gateway: Running, path: str, **headers: str) -> httpx2.Response:
        return httpx2.post(gateway.url + path, content=b"x" * 2000, headers=headers, timeout=100)

    with running_gateway({"anthropic": HELLO}, pending_mb=1000 / 2**20) as gateway:
        forms: dict[str, Callable[[Any], Any]] = {
            "/v1/chat/completions": lambda body: body["error"]["type"],
            "/v1/messages?beta=true": lambda body: (body["type"], body["error"]["type"]),
            "/v1beta/models/m:generateContent": lambda body: (body["error"]["code"], body["error"]["status"]),
            "/model/m/converse": lambda body: body["__type"],
        }
        found = {path: [post(gateway, path), post(gateway, path, host="evil.example")] for path in forms}
        assert {response.status_code for pair in found.values() for response in pair} == {413, 421}
        kinds = [forms[path](pair[0].json()) for path, pair in found.items()]
        assert kinds == [
            "invalid_request_error",
            ("error", "request_too_large"),
            (413, "INVALID_ARGUMENT"),
            "ValidationException",
        ]
        for path, pair in found.items():
            assert forms[path](pair[1].json())
        missing = httpx2.get(f"{gateway.url}/v1/messages/batches", headers={"anthropic-version": "2023-06-01"})
        assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")
        assert httpx2.get(f"{gateway.url}/v1/files").json()["error"]["code"] == "not_found"
        page = httpx2.post(f"{gateway.url}/v1/messages", headers={"origin": "https://evil.example"})
        assert (page.status_code, page.json()["error"]["type"]) == (403, "permission_error")


def test_log_line_of_a_limit_has_the_client() -> None:
    with running_gateway({"anthropic": HELLO}, clients=CLIENTS) as gateway:
        ask_chat(gateway.url, "key-full")
        with pytest.raises(openai.RateLimitError):
            ask_chat(gateway.url, "key-full")
        gateway.wait_for_log("; full; POST /v1/chat/completions; 429;")

"""Rejections, counts and lists of the emulators as the vendors' own clients raise and return them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from time import monotonic
from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from botocore.exceptions import ClientError
from google import genai
from google.genai import errors, types
from mistralai.client.errors import SDKError
from mistralai.client.utils import BackoffStrategy, RetryConfig

from segue.emulator import Emulator, start
from segue.wire.registry import WIRES
from tests.emulator.vendor_chats import KEY, VENDOR_CHATS, VendorChat
from tests.vendors import boto

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.1",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-flash",
    "bedrock": CLAUDE,
    "azure-foundry": "gpt-5",
    "mistral": "mistral-medium-latest",
    "kimi": "kimi-k2-0905-preview",
    "deepseek": "deepseek-chat",
    "qwen": "qwen-plus",
}


def _make_chat(provider: Emulator) -> closing[VendorChat]:
    return closing(VENDOR_CHATS[provider.api](provider, model=MODELS[provider.api]))


class ExpectedError(NamedTuple):
    """The error as the client has it: its class, its status, and words of the provider."""

    kind: type[Exception]
    status: int
    text: str


def _status(error: Any) -> int:
    if isinstance(error, ClientError):
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    return error.code if isinstance(error, errors.APIError) else error.status_code


def _assert_raises(expected: ExpectedError, ask: Callable[[], object]) -> None:
    with pytest.raises(expected.kind) as caught:
        ask()
    assert type(caught.value) is expected.kind or isinstance(caught.value, ClientError)
    assert _status(caught.value) == expected.status
    assert expected.text in str(caught.value)


SHUT_OUT = {
    "openai-chat": ExpectedError(openai.AuthenticationError, 401, "Incorrect API key provided"),
    "openai-responses": ExpectedError(openai.AuthenticationError, 401, "Incorrect API key provided"),
    "azure-foundry": ExpectedError(openai.AuthenticationError, 401, "Access denied due to invalid subscription key"),
    "kimi": ExpectedError(openai.AuthenticationError, 401, "Invalid Authentication"),
    "deepseek": ExpectedError(openai.AuthenticationError, 401, "Authentication Fails"),
    "qwen": ExpectedError(openai.AuthenticationError, 401, "Incorrect API key provided"),
    "anthropic": ExpectedError(anthropic.AuthenticationError, 401, "invalid x-api-key"),
    "gemini": ExpectedError(errors.ClientError, 400, "API key not valid. Please pass a valid API key."),
    "mistral": ExpectedError(SDKError, 401, "Unauthorized"),
    "bedrock": ExpectedError(ClientError, 403, "UnrecognizedClientException"),
}


@pytest.mark.parametrize("api", VENDOR_CHATS)
@pytest.mark.parametrize("how", ["at once", "streamed"])
def test_a_wrong_key_is_the_clients_own_error(api: str, how: Any) -> None:
    right = {"bedrock": "nobody:something else"}.get(api, "another-key")
    with start(api, keys=[right]) as provider, _make_chat(provider) as chat:
        chat.add_user("Hello.")
        _assert_raises(SHUT_OUT[api], lambda: chat.request(how))
    (request,) = provider.requests
    assert request.status == SHUT_OUT[api].status
    assert "Hello." in repr(request.body)
    assert right not in repr(request)


@pytest.mark.parametrize("api", VENDOR_CHATS)
def test_the_right_key_is_let_in(api: str) -> None:
    with start(api, keys=[{"bedrock": "nobody:nothing"}.get(api, KEY)]) as provider, _make_chat(provider) as chat:
        chat.add_user("Hello.")
        assert chat.request("at once").text


# A result that no call asked for.
_CHAT: Any = [{"role": "user", "content": "Hello."}, {"role": "tool", "tool_call_id": "call_none", "content": "x"}]
_MISTRAL: Any = [{"role": "user", "content": "Hello."}, {**_CHAT[1], "tool_call_id": "a1B2c3D4e", "name": "get_time"}]
_OUTPUT: Any = [{"type": "function_call_output", "call_id": "call_none", "output": "x"}]
_RESULT: Any = [{"type": "tool_result", "tool_use_id": "toolu_none", "content": "x"}]
_TOOL_RESULT: Any = [{"toolResult": {"toolUseId": "tooluse_none", "content": [{"text": "x"}]}}]
_RESPONSE = types.Content(role="user", parts=[types.Part.from_function_response(name="get_time", response={"a": 1})])
REFUSED: dict[str, tuple[list[Any], ExpectedError]] = {
    "openai-chat": (_CHAT, ExpectedError(openai.BadRequestError, 400, "must be a response to a preceeding message")),
    "kimi": (_CHAT, ExpectedError(openai.BadRequestError, 400, "tool_call_id call_none is not found")),
    "deepseek": (_CHAT, ExpectedError(openai.BadRequestError, 400, "must be a response to a preceding message")),
    "qwen": (_CHAT, ExpectedError(openai.BadRequestError, 400, "InternalError.Algo.InvalidParameter")),
    "openai-responses": (
        _OUTPUT,
        ExpectedError(openai.BadRequestError, 400, "No tool call found for function call output"),
    ),
    "azure-foundry": (
        _OUTPUT,
        ExpectedError(openai.BadRequestError, 400, "No tool call found for function call output"),
    ),
    "anthropic": (
        [{"role": "user", "content": _RESULT}],
        ExpectedError(
            anthropic.BadRequestError, 400, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_none"
        ),
    ),
    "gemini": ([_RESPONSE], ExpectedError(errors.ClientError, 400, "comes immediately after a function call turn")),
    "mistral": (_MISTRAL, ExpectedError(SDKError, 400, "Unexpected role 'tool' after role 'user'")),
    "bedrock": ([{"role": "user", "content": _TOOL_RESULT}], ExpectedError(ClientError, 400, "ValidationException")),
}


@pytest.mark.parametrize("api", VENDOR_CHATS)
@pytest.mark.parametrize("how", ["at once", "streamed"])
def test_rejection_has_the_provider_message(api: str, how: Any) -> None:
    history, expected = REFUSED[api]
    with start(api) as provider, _make_chat(provider) as chat:
        chat.history.extend(history)
        _assert_raises(expected, lambda: chat.request(how))
    (request,) = provider.requests
    assert [one for one in request.violations if one.severity == "reject"]


def test_an_empty_conversation_is_refused() -> None:
    with start("openai-chat") as provider, _make_chat(provider) as chat:
        _assert_raises(
            ExpectedError(openai.BadRequestError, 400, "Invalid 'messages': empty array"),
            lambda: chat.request("at once"),
        )


# ------------------------------------------------------------------------------------------------------------- retries


def _patient(chat: Any) -> None:
    """The client with one more try, as its vendor has it configured."""
    match chat.emulator.api:
        case "gemini":
            again = types.HttpRetryOptions(attempts=2, initial_delay=0.05, jitter=0)
            options = types.HttpOptions(base_url=chat.emulator.base_url, retry_options=again)
            chat.client = chat.closing.enter_context(genai.Client(api_key=KEY, http_options=options))
        case "mistral":
            backoff = BackoffStrategy(initial_interval=10, max_interval=20, exponent=1.1, max_elapsed_time=2000)
            chat.arguments["retries"] = RetryConfig("backoff", backoff, retry_connection_errors=False)
        case "bedrock":
            chat.client = boto.connect(chat.emulator.base_url, tries=2)
        case _:
            chat.client = chat.client.with_options(max_retries=1)


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "gemini", "mistral", "bedrock"])
def test_a_client_tries_again(api: str) -> None:
    with start(api, script="error 429 Slow down, please. (retry after 0.05)") as provider, _make_chat(provider) as chat:
        _patient(chat)
        chat.add_user("Hello.")
        assert chat.request("at once").text
    assert [request.status for request in provider.requests] == [429, 200]


def test_client_stops_without_retries() -> None:
    with start("anthropic", faults=["rate-limit@1", "overloaded@2"]) as provider, _make_chat(provider) as chat:
        chat.add_user("Hello.")
        with pytest.raises(anthropic.RateLimitError) as caught:
            chat.request("at once")
        assert caught.value.response.headers["retry-after"] == "1"
        with pytest.raises(anthropic.OverloadedError):
            chat.request("at once")
        assert chat.request("at once").text
    assert [request.status for request in provider.requests] == [429, 529, 200]


def test_client_waits_for_retry_after() -> None:
    """The fault says a second."""
    with start("openai-chat", faults=["rate-limit@1"]) as provider, _make_chat(provider) as chat:
        _patient(chat)
        chat.add_user("Hello.")
        began = monotonic()
        assert chat.request("at once").text
        assert monotonic() - began > 0.9
    assert [request.fault for request in provider.requests] == ["rate-limit", None]


# --------------------------------------------------------------------------------------------------- beside the answers


def test_tokens_are_counted() -> None:
    messages: Any = [{"role": "user", "content": "How warm is it in Lisbon?"}]
    with start("anthropic") as provider, _make_chat(provider) as chat:
        counted = chat.client.messages.count_tokens(model="claude-sonnet-5", messages=messages)
        assert 5 < counted.input_tokens < 100
    with start("gemini") as provider, _make_chat(provider) as chat:
        counted = chat.client.models.count_tokens(model="gemini-2.5-flash", contents=messages[0]["content"])
        assert 5 < counted.total_tokens < 100
    with start("bedrock") as provider, _make_chat(provider) as chat:
        converse = {"messages": [{"role": "user", "content": [{"text": messages[0]["content"]}]}]}
        counted = chat.client.count_tokens(modelId=CLAUDE, input={"converse": converse})
        assert 5 < counted["inputTokens"] < 100
        with pytest.raises(chat.client.exceptions.ValidationException):
            chat.client.count_tokens(modelId=CLAUDE, input={"converse": {"messages": []}})


@pytest.mark.parametrize(
    "api", ["openai-chat", "openai-responses", "kimi", "deepseek", "anthropic", "gemini", "mistral"]
)
def test_models_are_listed(api: str) -> None:
    with start(api) as provider, _make_chat(provider) as chat:
        listed = chat.client.models.list()
        named = [getattr(model, "id", None) or model.name for model in (listed.data if api == "mistral" else listed)]
    assert [name.removeprefix("models/") for name in named] == [WIRES[api].default_model]


def test_client_raises_a_bare_error_in_mid_stream() -> None:
    """Google's client parses the error on lines of its own, without `data:`."""
    with start("gemini", script="say Let me\nerror 503") as provider, _make_chat(provider) as chat:
        chat.add_user("Hello.")
        _assert_raises(ExpectedError(errors.ServerError, 503, "high demand"), lambda: chat.request("streamed"))

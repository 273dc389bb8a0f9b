"""The caller's credentials reach no provider; with `pass_credentials` they reach the caller's own vendor alone."""

from __future__ import annotations

import pytest

from segue.bridge.providers import Endpoint, resolve
from segue.wire.registry import WIRES
from tests.bridge.exchanges import CALLER_APIS, MODELS, Shell, endpoint, path_of, request_body, streamed, whole

SECRETS = {
    "Authorization": "Bearer caller-bearer",
    "x-api-key": "caller-key",
    "X-Goog-Api-Key": "caller-goog",
    "api-key": "caller-azure",
    "Cookie": "session=caller-cookie",
    "Proxy-Authorization": "Basic caller-proxy",
    "x-amz-security-token": "caller-token",
    "x-amz-date": "20260101T000000Z",
    "openai-organization": "caller-organization",
    "x-stainless-lang": "python",
}
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=caller-id/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=1"
)
ENVIRON = dict.fromkeys(
    (
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY"),
        *("DEEPSEEK_API_KEY", "DASHSCOPE_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY", "AZURE_OPENAI_API_KEY"),
        "AWS_BEARER_TOKEN_BEDROCK",
    ),
    "upstream-key",
) | {"AWS_REGION": "us-east-1", "AZURE_OPENAI_ENDPOINT": "https://azure.example"}
PROVIDERS = (
    *("anthropic", "openai", "openai-chat", "gemini", "mistral", "moonshot", "deepseek", "dashscope"),
    *("openrouter", "groq", "azure", "bedrock", "ollama", "own"),
)
DIALECTS = (None, "mistral", "kimi", "deepseek", "qwen")
VENDORS = {
    "openai-chat": {"openai", "openai-chat"},
    "openai-responses": {"openai", "openai-chat"},
    "anthropic": {"anthropic"},
    "gemini": {"gemini"},
    "bedrock": {"bedrock"},
    "mistral": {"mistral"},
    "kimi": {"moonshot"},
    "deepseek": {"deepseek"},
    "qwen": {"dashscope"},
}


def target(provider: str) -> Endpoint:
    # A server of the configuration that speaks OpenAI's API is not OpenAI.
    own = {"own": {"api": "openai-chat", "base_url": "https://own.example/v1", "key_variable": "OPENAI_API_KEY"}}
    return resolve(f"{provider}/a-model", ENVIRON, own)


def callers() -> list[tuple[str, str | None]]:
    return [*((api, None) for api in CALLER_APIS), *(("openai-chat", dialect) for dialect in DIALECTS[1:])]


@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("caller", CALLER_APIS)
def test_credentials_of_the_caller_reach_no_provider(caller: str, api: str) -> None:
    for headers in (SECRETS, {**SECRETS, "Authorization": SIGNATURE}):
        for stream in (False, True):
            path = path_of(caller, stream=stream)
            path += ("&" if "?" in path else "?") + "key=caller-query"
            body, response = request_body(caller, stream=stream), streamed(api) if stream else whole(api)
            answer = Shell(endpoint(api)).run(path, body, [response], headers=headers)
            assert answer.status == 200, answer.data
            sent = answer.sent[0]
            assert "caller-" not in str([sent.url, dict(sent.headers), sent.body])
            assert "upstream-0" in str(dict(sent.headers))
            assert not {"cookie", "x-amz-security-token", "x-amz-date", "openai-organization"} & {*sent.headers}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("caller", "dialect"), callers())
def test_key_is_passed_on_to_the_own_vendor_alone(caller: str, dialect: str | None, provider: str) -> None:
    endpoint = target(provider)
    is_vendor = provider in VENDORS[dialect or caller]
    for name, value in (("authorization", "Bearer caller-1"), (WIRES[caller].key_header, "caller-1")):
        value = "Bearer caller-1" if name == "authorization" else value
        shell = Shell(endpoint, pass_credentials=True, caller=dialect)
        answer = shell.run(path_of(caller), request_body(caller), [whole(endpoint.api)], headers={name: value})
        if not is_vendor and endpoint.variables:
            # The key of the gateway is never used in place of the caller's.
            assert answer.status == 401
            assert not answer.sent
            continue
        assert answer.status == 200, answer.data
        headers = {key: str(header) for key, header in answer.sent[0].headers.items()}
        carried = {key for key, header in headers.items() if "caller-1" in header}
        assert len(carried) == is_vendor, (carried, provider)
        # Never two keys.
        assert sum("caller-1" in header or "upstream-key" in header for header in headers.values()) <= 1


def test_signature_is_not_passed_on() -> None:
    shell = Shell(target("bedrock"), pass_credentials=True)
    answer = shell.run(
        path_of("bedrock"), request_body("bedrock"), [whole("bedrock")], headers={"authorization": SIGNATURE}
    )
    assert answer.status == 401
    assert not answer.sent


@pytest.mark.parametrize("caller", CALLER_APIS)
def test_route_with_the_callers_key_needs_one(caller: str) -> None:
    provider = {"openai-chat": "openai", "openai-responses": "openai"}.get(caller, caller)
    shell = Shell(target(provider), pass_credentials=True)
    for headers in ({}, {"authorization": "Basic x"}, {"cookie": "key=caller-1"}):
        answer = shell.run(path_of(caller), request_body(caller), [whole(target(provider).api)], headers=headers)
        assert answer.status == 401
        assert not answer.sent
        assert WIRES[caller].key_header in answer.data.decode().lower()


def test_targets_of_other_vendors_are_left_out() -> None:
    shell = Shell(target("gemini"), target("anthropic"), pass_credentials=True)
    answer = shell.run(
        "/v1/messages", request_body("anthropic"), [whole("anthropic")], headers={"x-api-key": "caller-1"}
    )
    assert answer.status == 200
    assert "anthropic.com" in answer.sent[0].url


def test_trace_reaches_every_provider() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for api in MODELS:
        given = {"traceparent": parent, "tracestate": "vendor=1"}
        answer = Shell(endpoint(api)).run("/v1/messages", request_body("anthropic"), [whole(api)], headers=given)
        assert {name: answer.sent[0].headers[name] for name in given} == given
    for broken in ({"traceparent": "zz"}, {"tracestate": "vendor=1"}):
        answer = Shell(endpoint("gemini")).run(
            "/v1/messages", request_body("anthropic"), [whole("gemini")], headers=broken
        )
        assert not {"traceparent", "tracestate"} & {*answer.sent[0].headers}


def test_vendor_without_a_key_of_its_own() -> None:
    bare = resolve("anthropic/claude-sonnet-5", {})
    shell = Shell(bare, pass_credentials=True)
    answer = shell.run("/v1/messages", request_body("anthropic"), [whole("anthropic")], headers={"X-Api-Key": "mine"})
    assert answer.sent[0].headers["x-api-key"] == "mine"
    for headers in ({}, {"authorization": "Basic x"}):
        assert shell.run("/v1/messages", request_body("anthropic"), headers=headers).status == 401
    other = Shell(resolve("gemini/gemini-3.8-flash", {}), pass_credentials=True)
    assert other.run("/v1/messages", request_body("anthropic"), headers={"x-api-key": "mine"}).status == 401


def test_passed_key_is_masked_in_errors() -> None:
    from tests.bridge.test_fallback import error_response

    shell = Shell(target("anthropic"), pass_credentials=True)
    answer = shell.run(
        "/v1/messages",
        request_body("anthropic"),
        [error_response("anthropic", 401, "the key caller-1 is not valid")],
        headers={"x-api-key": "caller-1"},
    )
    assert answer.status == 401
    assert "caller-1" not in answer.data.decode()


def test_vendor_headers_reach_the_own_vendor_alone() -> None:
    headers = {"anthropic-beta": "context-1m", "anthropic-version": "2023-06-01", "openai-beta": "x=1"}
    own = Shell(endpoint("anthropic")).run(
        "/v1/messages", request_body("anthropic"), [whole("anthropic")], headers=headers
    )
    assert own.sent[0].headers["anthropic-beta"] == "context-1m"
    assert "openai-beta" not in own.sent[0].headers
    other = Shell(endpoint("gemini")).run("/v1/messages", request_body("anthropic"), [whole("gemini")], headers=headers)
    assert not {"anthropic-beta", "anthropic-version"} & {*other.sent[0].headers}

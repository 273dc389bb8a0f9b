"""HTTP requests of each provider: URLs, headers, signatures, bodies without URL parameters."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

import segue
from segue import emulator
from segue.bridge import aws
from segue.bridge.http_requests import models_request, reply_request
from segue.bridge.providers import Endpoint, Secret, resolve
from segue.wire.registry import WIRES

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
KEY = "sk-test-0123456789abcdef"
BODY = [b'{"a":1}']


def render_http_request(name: str, **environ: str) -> Any:
    return reply_request(resolve(name, {"HOME": "/nonexistent", **environ}), BODY, now=NOW)


@pytest.mark.parametrize(
    ("name", "environ", "url", "header"),
    [
        ("openai/m", {"OPENAI_API_KEY": KEY}, "https://api.openai.com/v1/responses", "authorization"),
        ("openai-chat/m", {"OPENAI_API_KEY": KEY}, "https://api.openai.com/v1/chat/completions", "authorization"),
        ("anthropic/m", {"ANTHROPIC_API_KEY": KEY}, "https://api.anthropic.com/v1/messages", "x-api-key"),
        ("anthropic/m", {"ANTHROPIC_AUTH_TOKEN": KEY}, "https://api.anthropic.com/v1/messages", "authorization"),
        (
            "anthropic/m",
            {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://x/v1"},
            "http://x/v1/messages",
            "x-api-key",
        ),
        (
            "gemini/m",
            {"GEMINI_API_KEY": KEY},
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            "x-goog-api-key",
        ),
        (
            "gemini/tunedModels/m",
            {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "http://x/v1alpha"},
            "http://x/v1alpha/tunedModels/m:streamGenerateContent?alt=sse",
            "x-goog-api-key",
        ),
        ("mistral/m", {"MISTRAL_API_KEY": KEY}, "https://api.mistral.ai/v1/chat/completions", "authorization"),
        ("kimi/m", {"MOONSHOT_API_KEY": KEY}, "https://api.moonshot.ai/v1/chat/completions", "authorization"),
        ("deepseek/m", {"DEEPSEEK_API_KEY": KEY}, "https://api.deepseek.com/chat/completions", "authorization"),
        (
            "qwen/m",
            {"DASHSCOPE_API_KEY": KEY},
            "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
            "authorization",
        ),
        ("groq/m", {"GROQ_API_KEY": KEY}, "https://api.groq.com/openai/v1/chat/completions", "authorization"),
        (
            "openrouter/a/m",
            {"OPENROUTER_API_KEY": KEY},
            "https://openrouter.ai/api/v1/chat/completions",
            "authorization",
        ),
        (
            "azure/m",
            {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com"},
            "https://a.openai.azure.com/openai/v1/responses",
            "api-key",
        ),
        (
            "bedrock/us.x.m-v1:0",
            {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "eu-west-1"},
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.x.m-v1%3A0/converse-stream",
            "authorization",
        ),
    ],
)
def test_url_and_credentials(name: str, environ: dict[str, str], url: str, header: str) -> None:
    letter = render_http_request(name, **environ)
    assert (letter.method, letter.url) == ("POST", url)
    assert letter.headers[header] == (f"Bearer {KEY}" if header == "authorization" else KEY)
    assert [name for name, value in letter.headers.items() if KEY in value] == [header]
    assert letter.headers["user-agent"].startswith("segue/")
    assert letter.headers["content-type"] == "application/json"
    assert ("anthropic-version" in letter.headers) == name.startswith("anthropic")
    assert b"".join(letter.body) == b"".join(BODY)
    assert KEY not in repr(letter)


def test_headers_from_variables() -> None:
    headers = render_http_request(
        "openai", OPENAI_API_KEY=KEY, OPENAI_ORG_ID="org-1", OPENAI_PROJECT_ID="proj-1"
    ).headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")
    assert "openai-organization" not in render_http_request("openai", OPENAI_API_KEY=KEY).headers


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("openai", "https://api.openai.com/v1/models"),
        ("anthropic", "https://api.anthropic.com/v1/models?limit=1000"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000"),
        ("bedrock", "https://bedrock.eu-west-1.amazonaws.com/foundation-models"),
        ("openrouter", "https://openrouter.ai/api/v1/key"),
    ],
)
def test_models_request_is_free(name: str, url: str) -> None:
    endpoint = resolve(name, {"AWS_REGION": "eu-west-1", "HOME": "/nonexistent"})
    letter = models_request(endpoint, now=NOW, needs_key=True)
    assert (letter.method, letter.url, letter.body) == ("GET", url, ())


# ------------------------------------------------------------------------------------------------ the model in the path


def conversation(turns: int) -> segue.Conversation:
    tool = {"name": "pick", "description": "Picks a model.", "parameters": {"type": "object", "properties": {}}}
    chat = segue.Conversation(tools=[{"type": "function", "function": tool}], system="Be brief.")
    for turn in range(turns):
        continue_conversation(chat, f'turn {turn}: what is "model": or "modelId":"x"?')
    chat.add_user("and now?")
    return chat


def continue_conversation(chat: segue.Conversation, text: str) -> None:
    chat.add_user(text)
    call = {"id": f"call_{len(chat.messages)}", "type": "function", "function": {"name": "pick", "arguments": "{}"}}
    chat.add_reply({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}, source="openai-chat")
    chat.add_result(call["id"], "picked")
    reply_message = {"role": "assistant", "content": f"You said: {text}"}
    chat.add_reply({"choices": [{"message": reply_message, "finish_reason": "stop"}]}, source="openai-chat")


@pytest.mark.parametrize("turns", [0, 1, 70])
@pytest.mark.parametrize("api", ["gemini", "bedrock"])
def test_url_parameters_are_not_in_the_body(api: str, turns: int) -> None:
    chat = conversation(turns)
    for _ in range(2):
        # From the second time on a body comes in pieces.
        chat.render(api, WIRES[api].default_model)
        continue_conversation(chat, "more")
    chat.add_user("and now?")
    rendered = chat.render(api, WIRES[api].default_model)
    endpoint = Endpoint("p", WIRES[api].default_model, api, "http://127.0.0.1:9", key=Secret(KEY))
    sent = json.loads(b"".join(reply_request(endpoint, rendered.fragments, now=NOW).body))
    wanted = {key: value for key, value in rendered.body.items() if key not in ("model", "modelId")}
    assert sent == wanted
    assert turns == 0 or len(rendered.fragments) > 1


@pytest.mark.parametrize(
    ("api", "body", "wanted"),
    [
        ("bedrock", b'{"modelId":"a\\"b,c"}', {}),
        ("bedrock", b'{ "modelId" : "m" , "messages":[]}', {"messages": []}),
        ("bedrock", b'{"messages":[{"modelId":"inner"}],"modelId":"m"}', {"messages": [{"modelId": "inner"}]}),
        ("bedrock", b'{"messages":[{"modelId":"inner"}]}', {"messages": [{"modelId": "inner"}]}),
        (
            "gemini",
            b'{"contents":[{"role":"model","parts":[]}],"model":"m"}',
            {"contents": [{"role": "model", "parts": []}]},
        ),
        ("openai-chat", b'{"model":"m"}', {"model": "m"}),
    ],
)
def test_bodies_of_any_layout(api: str, body: bytes, wanted: dict[str, Any]) -> None:
    endpoint = Endpoint("p", "m", api, "http://127.0.0.1:9", key=Secret(KEY))
    assert json.loads(b"".join(reply_request(endpoint, [body], now=NOW).body)) == wanted


def test_other_fields_are_unchanged() -> None:
    pieces = [b'{"modelId":"m","messages":[', b'{"role":"user"', b"}", b"]}"]
    endpoint = Endpoint("p", "m", "bedrock", "http://127.0.0.1:9", key=Secret(KEY))
    sent = reply_request(endpoint, pieces, now=NOW).body
    assert sent[0] == b'{"messages":['
    assert all(one is other for one, other in zip(sent[1:], pieces[1:], strict=True))


# ----------------------------------------------------------------------------------------------------------- signatures


@pytest.mark.parametrize("token", [None, "session-token/+="])
@pytest.mark.parametrize(
    "url",
    [
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-sonnet-5/converse-stream",
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.amazon.nova-pro-v1%3A0/converse-stream",
        "https://x.example/model/arn%3Aaws%3Abedrock%3Aeu%3A1%3Ainference-profile%2Fm~1/converse",
        "http://127.0.0.1:8080/foundation-models?b=2&a=1%2F2",
        "http://127.0.0.1:8080",
    ],
)
@pytest.mark.parametrize(("method", "body"), [("POST", [b'{"a":', "ü".encode(), b"}"]), ("GET", [])])
def test_signature_matches_botocore(
    url: str, token: str | None, method: str, body: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"content-type": "application/json", "x-amzn-trace": "  two   words "}
    credentials = aws.Credentials(Secret("AKIDEXAMPLE"), Secret("wJalr/+="), Secret(token) if token else None)
    mine = aws.sign(
        credentials, method=method, url=url, headers=headers, body=body, region="eu-west-1", service="bedrock", now=NOW
    )
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_: NOW.replace(tzinfo=None))
    theirs = AWSRequest(method, url, headers=headers, data=b"".join(body))
    signer = botocore.auth.SigV4Auth(BotoCredentials("AKIDEXAMPLE", "wJalr/+=", token), "bedrock", "eu-west-1")
    signer.add_auth(theirs)
    assert mine["authorization"] == theirs.headers["Authorization"]
    assert mine["x-amz-date"] == theirs.headers["X-Amz-Date"]
    assert mine.get("x-amz-security-token") == theirs.headers.get("X-Amz-Security-Token")


def test_body_with_a_compaction_has_its_betas() -> None:
    """A block goes home whoever asks: a client of another API does not send the header that Claude requires."""
    endpoint = resolve("anthropic/claude-opus-4-6", {"HOME": "/nonexistent", "ANTHROPIC_API_KEY": KEY})
    betas = ["compact-2026-09-04", "compact-2026-01-12"]
    asked = {
        "model": "claude-opus-4-6",
        "max_tokens": 900,
        "messages": [{"role": "user", "content": "The word is OWL."}],
    }
    chat = segue.Conversation()
    chat.add_user("The word is OWL.")
    with emulator.start("anthropic") as provider:
        on_demand = {**asked, "compaction": {"type": "summarize"}}
        made = emulator.post(provider, on_demand, headers={"anthropic-beta": betas[0]}).body
        chat.add_reply(made, source="anthropic")
        chat.add_user("Go on.")
        rendered = chat.render("anthropic", "claude-opus-4-6")
        for given, wanted in (
            ({}, betas),
            ({"anthropic-beta": "a-beta"}, ["a-beta", *betas]),
            ({"anthropic-beta": ",".join(betas)}, betas),
        ):
            request = reply_request(endpoint, rendered.fragments, now=NOW, headers=given)
            assert request.headers["anthropic-beta"].split(",") == wanted
            sent = emulator.post(provider, rendered.body, headers={"anthropic-beta": ",".join(wanted)})
            assert sent.status == 200
    # The caller's own bytes may have white space.
    spaced = reply_request(endpoint, [json.dumps(rendered.body).encode()], now=NOW)
    assert spaced.headers["anthropic-beta"].split(",") == betas
    # Bytes of a user's text are escaped, so they are no block.
    quoted = [b'{"messages":[{"role":"user","content":"{\\"type\\":\\"compaction\\"}"}]}']
    assert "anthropic-beta" not in reply_request(endpoint, quoted, now=NOW).headers
    foreign = resolve("openai/gpt-5", {"HOME": "/nonexistent", "OPENAI_API_KEY": KEY})
    assert "anthropic-beta" not in reply_request(foreign, rendered.fragments, now=NOW).headers

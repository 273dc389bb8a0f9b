"""Token counts and model lists in each API's form, with and without a provider that counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue.bridge.listings import COUNTERS, ModelEntry
from segue.bridge.provider_errors import TransportError
from segue.wire.registry import WIRES
from tests.bridge.exchanges import ALIAS, MODELS, Response, Shell, endpoint, request_body

ENTRIES = (ModelEntry("anthropic/claude-sonnet-5", "anthropic", context=200_000), ModelEntry("fast", "groq"))
COUNT_PATHS = {
    "openai-responses": "/v1/responses/input_tokens",
    "anthropic": "/v1/messages/count_tokens",
    "gemini": f"/v1beta/models/{ALIAS}:countTokens",
    "bedrock": f"/model/{ALIAS}/count-tokens",
}
PAIRS = [(caller, api) for caller in COUNT_PATHS for api in MODELS]


def count_body(caller: str) -> dict[str, Any]:
    body = request_body(caller, text="Some words to count.")
    return {"input": {"converse": body}} if caller == "bedrock" else body


def count_of(caller: str, body: Any) -> int:
    return body[COUNTERS[caller].count_key]


@pytest.mark.parametrize(("caller", "api"), PAIRS)
def test_estimate(caller: str, api: str) -> None:
    answer = Shell(endpoint(api)).run(COUNT_PATHS[caller], count_body(caller))
    assert answer.status == 200
    assert 3 <= count_of(caller, answer.body) <= 30
    assert answer.sent == []


@pytest.mark.parametrize(("caller", "api"), PAIRS)
def test_count_of_the_provider(caller: str, api: str) -> None:
    shell = Shell(endpoint(api), token_counting="upstream")
    base = WIRES[api].base_api
    if base not in COUNTERS:
        assert shell.run(COUNT_PATHS[caller], count_body(caller)).status == 200
        return
    counted = json.dumps({COUNTERS[base].count_key: 1234}).encode()
    answer = shell.run(COUNT_PATHS[caller], count_body(caller), [Response([counted[:5], counted[5:]])])
    assert count_of(caller, answer.body) == 1234
    assert "Some words to count." in json.dumps(answer.sent_bodies[0])


@pytest.mark.parametrize(("caller", "api"), [pair for pair in PAIRS if WIRES[pair[1]].base_api in COUNTERS])
def test_estimate_where_the_provider_does_not_count(caller: str, api: str) -> None:
    failures = [
        Response([b'{"error": {}}'], 404),
        Response([b"{}"]),
        Response([b"<html>"]),
        Response([], 0, failure=TransportError("timeout", "timed out")),
    ]
    for failed in failures:
        answer = Shell(endpoint(api), token_counting="upstream").run(COUNT_PATHS[caller], count_body(caller), [failed])
        assert answer.status == 200
        assert count_of(caller, answer.body) > 0


@pytest.mark.parametrize("caller", COUNT_PATHS)
def test_count_of_an_invalid_body(caller: str) -> None:
    for body in (b"", b"{", b"[]"):
        answer = Shell(endpoint("anthropic")).run(COUNT_PATHS[caller], body)
        assert answer.status == 400


def test_lone_result_is_counted() -> None:
    """As Gemini CLI does. It is no conversation, and is not repaired."""
    part = {"functionResponse": {"id": "read_1", "name": "read", "response": {"output": "words " * 100}}}
    answer = Shell(endpoint("gemini")).run(COUNT_PATHS["gemini"], {"contents": [{"role": "user", "parts": [part]}]})
    assert answer.body["totalTokens"] > 50


MODEL_LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "openai-chat": ("/v1/models", {"authorization": "Bearer x"}),
    "anthropic": ("/v1/models", {"anthropic-version": "2023-06-01", "x-api-key": "x"}),
    "gemini": ("/v1beta/models", {"x-goog-api-key": "x"}),
    "bedrock": ("/foundation-models", {}),
}


@pytest.mark.parametrize("caller", MODEL_LISTS)
def test_model_list(caller: str) -> None:
    path, headers = MODEL_LISTS[caller]
    shell = Shell(endpoint("anthropic"), models=ENTRIES)
    body = shell.run(path, method="GET", headers=headers).body
    rows = body[{"gemini": "models", "bedrock": "modelSummaries"}.get(caller, "data")]
    key = {"gemini": "name", "bedrock": "modelId"}.get(caller, "id")
    assert [row[key].removeprefix("models/") for row in rows] == ["anthropic/claude-sonnet-5", "fast"]
    for name, status in (("fast", 200), ("anthropic/claude-sonnet-5", 200), ("slow", 404)):
        if caller == "bedrock":
            continue
        answer = shell.run(f"{path}/{name}", method="GET", headers=headers)
        assert answer.status == status
        if status == 200:
            assert answer.body[key].removeprefix("models/") == name
        else:
            assert WIRES[caller].parse_error(404, answer.body).message


def test_codex_gets_an_empty_list() -> None:
    shell = Shell(endpoint("anthropic"), models=ENTRIES)
    assert shell.run("/v1/models?client_version=0.166.0", method="GET").body == {"models": []}

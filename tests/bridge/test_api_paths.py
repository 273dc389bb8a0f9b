"""Which API and operation a path belongs to."""

from __future__ import annotations

import pytest

from segue.bridge.api_paths import find_api_path, guess_api

PREFIXES = ("", "/v1", "/compatible-mode/v1", "/a/models/b")


@pytest.mark.parametrize(
    ("method", "path", "api", "operation", "variable"),
    [
        ("POST", "/messages", "anthropic", "reply", None),
        ("POST", "/messages/count_tokens", "anthropic", "count", None),
        ("POST", "/responses", "openai-responses", "reply", None),
        ("GET", "/responses/resp_1", "openai-responses", "retrieve", "resp_1"),
        ("DELETE", "/responses/resp%2F1", "openai-responses", "delete", "resp/1"),
        ("GET", "/responses/resp_1/input_items", "openai-responses", "items", "resp_1"),
        ("POST", "/chat/completions", "openai-chat", "reply", None),
        ("POST", "/models/m:generateContent", "gemini", "reply", "m"),
        ("POST", "/tunedModels/m%2Fn:countTokens", "gemini", "count", "m/n"),
        ("POST", "/model/arn:aws:x/1/converse", "bedrock", "reply", "arn:aws:x/1"),
        ("POST", "/model/m/converse-stream", "bedrock", "reply", "m"),
        ("GET", "/v1beta/models", "gemini", "models", None),
        ("GET", "/v1beta/models/m", "gemini", "model", "m"),
        ("GET", "/models/a/b", "openai-chat", "model", "a/b"),
    ],
)
def test_paths_are_matched_by_their_end(method: str, path: str, api: str, operation: str, variable: str | None) -> None:
    for prefix in PREFIXES:
        for end in ("", "/", "?beta=true"):
            api_path = find_api_path(method, prefix + path + end, {})
            assert api_path is not None
            assert (api_path.api, api_path.operation) == (api, operation)
            assert (api_path.resource or api_path.model) == variable
    assert find_api_path("PUT", path, {}) is None


@pytest.mark.parametrize("path", ["", "v1/messages", "/v1/threads/t/messages", "/v1/embeddings", "/xmessages/y"])
def test_other_paths_are_not_translated(path: str) -> None:
    assert find_api_path("POST", path, {}) is None


@pytest.mark.parametrize("part", ["/model/", "/models/", "/v1beta/models/", "/responses/", "/a"])
def test_long_paths_take_linear_time(part: str) -> None:
    """A path of a megabyte would take hours if each part were tried with each end."""
    for method in ("GET", "POST"):
        for end in ("", ":generateContent", "/converse", "/input_items", "x"):
            find_api_path(method, part * (2**20 // len(part)) + end, {})


@pytest.mark.parametrize(
    ("path", "headers", "api"),
    [
        ("/v1/messages", {}, "anthropic"),
        ("/v1/messages/batches", {}, "anthropic"),
        ("/v1/files", {"anthropic-version": "2023-06-01"}, "anthropic"),
        ("/v1beta/files", {}, "gemini"),
        ("/v1/files", {"x-goog-api-key": "x"}, "gemini"),
        ("/model/m/invoke", {}, "bedrock"),
        ("/v1/responses/r/cancel", {}, "openai-responses"),
        ("/v1/threads/t/messages", {}, "openai-chat"),
        ("/elsewhere", {}, "openai-chat"),
    ],
)
def test_errors_have_the_form_of_the_likely_api(path: str, headers: dict[str, str], api: str) -> None:
    assert guess_api("PUT", path, headers) == api

"""Model lists and token counts: the vendors' own types and the emulators accept what is rendered."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlsplit

import anthropic.types
import botocore.session
import openai.pagination
import openai.types
import openai.types.responses
import pytest
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from botocore.parsers import create_parser
from botocore.validate import validate_parameters
from google.genai.types import CountTokensResponse
from google.genai.types import Model as GeminiModel
from mistralai.client.models import ModelList
from openai.types.responses.input_token_count_params import InputTokenCountParams

import segue
from segue import emulator
from segue.bridge.listings import (
    COUNTERS,
    ModelEntry,
    count_body,
    estimate_tokens,
    parse_count_request,
    parse_token_count,
    render_model,
    render_models,
    render_token_count,
)
from segue.errors import InputError, RemoteProtocolError
from segue.wire.registry import WIRES
from tests.bodies import chat

BIG = ModelEntry("claude-sonnet-5", "anthropic", "Claude Sonnet 5", context=1_000_000, max_output=64_000)
SMALL = ModelEntry("kimi/k2.6", "moonshot")
ENTRIES = [BIG, SMALL]
OPENAI_APIS = [api for api, wire in WIRES.items() if wire.base_api in ("openai-chat", "openai-responses")]


def boto_shape(service: str, operation: str, *, output: bool) -> Any:
    model = botocore.session.get_session().get_service_model(service).operation_model(operation)
    return model.output_shape if output else model.input_shape


# -------------------------------------------------------------------------------------------------------------- models


@pytest.mark.parametrize("api", OPENAI_APIS)
def test_openai_models(api: str) -> None:
    listed = render_models(api, ENTRIES)
    page = openai.pagination.SyncPage[openai.types.Model].model_validate(listed)
    assert [model.id for model in page.data] == [BIG.name, SMALL.name]
    assert listed["data"][0] == render_model(api, BIG)
    assert render_model(api, BIG) == {
        "id": BIG.name,
        "object": "model",
        "type": "base",
        "created": 0,
        "owned_by": "anthropic",
        "capabilities": {"completion_chat": True, "function_calling": True},
        "context_window": 1_000_000,
        "context_length": 1_000_000,
        "max_context_length": 1_000_000,
        "max_completion_tokens": 64_000,
    }
    assert not {"context_window", "context_length", "max_context_length"} & {*render_model(api, SMALL)}
    assert ModelList.model_validate(listed).data


def test_codex_keeps_its_own_models() -> None:
    assert render_models("openai-responses", ENTRIES, for_codex=True) == {"models": []}


def test_anthropic_models() -> None:
    listed = render_models("anthropic", ENTRIES)
    models = [anthropic.types.ModelInfo.model_validate(row) for row in listed["data"]]
    assert [(model.id, model.display_name) for model in models] == [
        (BIG.name, "Claude Sonnet 5"),
        (SMALL.name, SMALL.name),
    ]
    assert (models[0].max_input_tokens, models[0].max_tokens) == (1_000_000, 64_000)
    assert models[1].max_input_tokens is None
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (False, BIG.name, SMALL.name)
    assert listed["data"][0] == render_model("anthropic", BIG)


def test_gemini_models() -> None:
    row = render_models("gemini", ENTRIES)["models"][0]
    assert row == render_model("gemini", BIG)
    assert row["supportedGenerationMethods"] == ["generateContent", "countTokens"]
    typed = {key: value for key, value in row.items() if key != "supportedGenerationMethods"}
    model = GeminiModel.model_validate(typed)
    assert (model.name, model.input_token_limit, model.output_token_limit) == (f"models/{BIG.name}", 1_000_000, 64_000)


@pytest.mark.parametrize(
    ("operation", "body", "path"),
    [
        ("ListFoundationModels", render_models("bedrock", ENTRIES), ("modelSummaries", 0)),
        ("GetFoundationModel", render_model("bedrock", BIG), ("modelDetails",)),
    ],
)
def test_bedrock_models(operation: str, body: dict[str, Any], path: tuple[Any, ...]) -> None:
    response = {"status_code": 200, "headers": {}, "body": json.dumps(body).encode()}
    row: Any = create_parser("rest-json").parse(response, boto_shape("bedrock", operation, output=True))
    for step in path:
        row, body = row[step], body[step]
    assert row["modelId"] == BIG.name
    assert row == body


@pytest.mark.parametrize("api", list(WIRES))
def test_no_models(api: str) -> None:
    listed = render_models(api, [])
    assert all(not value or value == "list" for value in listed.values())


# -------------------------------------------------------------------------------------------------------- token counts


def test_counts_are_of_the_vendors_types() -> None:
    counted = openai.types.responses.InputTokenCountResponse.model_validate(render_token_count("openai-responses", 7))
    assert counted.input_tokens == 7
    assert anthropic.types.MessageTokensCount.model_validate(render_token_count("anthropic", 7)).input_tokens == 7
    assert CountTokensResponse.model_validate(render_token_count("gemini", 7)).total_tokens == 7
    assert render_token_count("bedrock", 7) == {"inputTokens": 7}


@pytest.mark.parametrize("api", COUNTERS)
def test_count_is_parsed(api: str) -> None:
    assert parse_token_count(api, json.dumps(render_token_count(api, 7)).encode()) == 7
    for data in (b"", b"[]", b"{}", json.dumps(render_token_count(api, 7)).replace("7", "null").encode()):
        with pytest.raises(RemoteProtocolError):
            parse_token_count(api, data)


@pytest.mark.parametrize("api", ["openai-chat", "kimi", "mistral"])
def test_chat_has_no_counter(api: str) -> None:
    with pytest.raises(InputError, match="no token counter"):
        render_token_count(api, 7)


def make_body(api: str, question: str = "How warm is it?") -> bytes:
    given = chat.body(
        chat.system("Be brief."),
        chat.user(question),
        chat.assistant_calls(chat.call()),
        chat.result(),
        tools=[chat.tool()],
        max_tokens=100,
        temperature=0.5,
        stream=True,
        tool_choice="auto",
    )
    return segue.convert(given, source="openai-chat", target=api, model=WIRES[api].default_model).data


def test_bodies_of_counters_have_the_keys_of_the_vendors_types() -> None:
    body = json.loads(count_body("anthropic", make_body("anthropic"), "claude-opus-5"))
    assert {"messages", "model", "system", "tools", "tool_choice"} == set(body)
    assert COUNTERS["anthropic"].body_keys is not None
    assert set(MessageCountTokensParams.__annotations__) >= set(body)
    assert body["model"] == "claude-opus-5"
    body = json.loads(count_body("openai-responses", make_body("openai-responses"), "gpt-5"))
    assert {"input", "model", "tools"} <= set(body) <= set(InputTokenCountParams.__annotations__)
    body = json.loads(count_body("bedrock", make_body("bedrock"), "m"))
    shape = boto_shape("bedrock-runtime", "CountTokens", output=False)
    validate_parameters({"modelId": "m", **body}, shape)
    assert set(body["input"]["converse"]) <= set(shape.members["input"].members["converse"].members)


@pytest.mark.parametrize("api", ["anthropic", "gemini", "bedrock"])
def test_provider_counts_a_converted_request(api: str) -> None:
    model = WIRES[api].default_model
    path = COUNTERS[api].path.replace("{model}", quote(model, safe=""))
    with emulator.start(api) as provider:
        counts = [
            parse_token_count(api, post(provider.url + path, count_body(api, make_body(api, question), model)))
            for question in ("Hello?", "How warm is it? " * 50)
        ]
    assert 0 < counts[0] < counts[1]


def post(url: str, data: bytes) -> bytes:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=100)
    keys = {"x-api-key": "k", "x-goog-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}
    try:
        connection.request("POST", parts.path, data, {"content-type": "application/json", **keys})
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        return body
    finally:
        connection.close()


@pytest.mark.parametrize("api", COUNTERS)
def test_request_in_the_body_of_a_counter_is_estimated(api: str) -> None:
    def estimate(question: str) -> int:
        data = count_body(api, make_body(api, question), "m")
        return estimate_tokens(WIRES[api].parse_request(parse_count_request(api, data)))

    assert 20 < estimate("Hello?") < estimate("How warm is it? " * 50) < 500


def test_single_function_response_is_counted_as_it_is() -> None:
    response = {"id": "read_file__read_file_1", "name": "read_file", "response": {"output": "word " * 400}}
    body = {"contents": [{"role": "user", "parts": [{"functionResponse": response}]}]}
    data = json.dumps(body).encode()
    assert parse_count_request("gemini", data) == body
    assert 400 < estimate_tokens(WIRES["gemini"].parse_request(body)) < 900


@pytest.mark.parametrize("data", [b"{}", b'{"input":{"invokeModel":{"body":"e30="}}}', b'{"input":"x"}'])
def test_only_a_request_for_converse_is_counted(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        parse_count_request("bedrock", data)
    assert caught.value.path == "input.converse"

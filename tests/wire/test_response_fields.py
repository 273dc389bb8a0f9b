"""A response of the Responses API has every field that its published schema requires, whatever the upstream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import jsonschema
import pytest

import segue
import segue.emulator
from segue._stream import render_reply_body
from segue.canonical.blocks import Origin, Text, ToolCall
from segue.canonical.request import Finish, Reply, Usage
from segue.emulator.client import post
from segue.wire.registry import WIRES
from tests.budget import sample
from tests.streams.rendering import stream_reply

STRING_OR_NULL = {"type": ["string", "null"]}
INTEGER_OR_NULL = {"type": ["integer", "null"]}


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(fields), "properties": fields}


TOOL = struct(
    type={"const": "function"},
    name={"type": "string"},
    description=STRING_OR_NULL,
    parameters={"type": ["object", "null"]},
    strict={"type": ["boolean", "null"]},
)
FORMAT = {
    "oneOf": [
        struct(type={"enum": ["text", "json_object"]}),
        struct(
            type={"const": "json_schema"},
            name={"type": "string"},
            description=STRING_OR_NULL,
            strict={"type": "boolean"},
        ),
    ]
}
USAGE = struct(
    input_tokens={"type": "integer"},
    output_tokens={"type": "integer"},
    total_tokens={"type": "integer"},
    input_tokens_details=struct(cached_tokens={"type": "integer"}),
    output_tokens_details=struct(reasoning_tokens={"type": "integer"}),
)
# Open Responses, `ResponseResource`: all fields are required, and null only where it says so.
RESPONSE = struct(
    id={"type": "string", "minLength": 1},
    object={"const": "response"},
    created_at={"type": "integer"},
    completed_at=INTEGER_OR_NULL,
    status={"enum": ["in_progress", "completed", "incomplete", "failed"]},
    incomplete_details={"anyOf": [{"type": "null"}, struct(reason={"type": "string"})]},
    model={"type": "string", "minLength": 1},
    previous_response_id=STRING_OR_NULL,
    instructions=STRING_OR_NULL,
    output={"type": "array"},
    error={"anyOf": [{"type": "null"}, struct(code={"type": "string"}, message={"type": "string"})]},
    tools={"type": "array", "items": TOOL},
    tool_choice={
        "anyOf": [{"enum": ["none", "auto", "required"]}, struct(type={"enum": ["function", "allowed_tools"]})]
    },
    truncation={"enum": ["auto", "disabled"]},
    parallel_tool_calls={"type": "boolean"},
    text=struct(format=FORMAT),
    top_p={"type": "number"},
    presence_penalty={"type": "number"},
    frequency_penalty={"type": "number"},
    top_logprobs={"type": "integer"},
    temperature={"type": "number"},
    reasoning={"anyOf": [{"type": "null"}, struct(effort=STRING_OR_NULL, summary=STRING_OR_NULL)]},
    usage={"anyOf": [{"type": "null"}, USAGE]},
    max_output_tokens=INTEGER_OR_NULL,
    max_tool_calls=INTEGER_OR_NULL,
    store={"type": "boolean"},
    background={"type": "boolean"},
    service_tier={"type": "string"},
    metadata={"type": "object"},
    safety_identifier=STRING_OR_NULL,
    prompt_cache_key=STRING_OR_NULL,
)
DECLARED = {"type": "function", "name": "read_file", "parameters": {"type": "object", "properties": {}}}
FORM = {"type": "json_schema", "name": "answer", "schema": {"type": "object", "properties": {}}}
PLAIN: dict[str, Any] = {"model": "gpt-5.5", "input": "Hello"}
FULL: dict[str, Any] = {
    **PLAIN,
    "instructions": "Be brief.",
    "tools": [DECLARED],
    "tool_choice": {"type": "function", "name": "read_file"},
    "truncation": "auto",
    "parallel_tool_calls": False,
    "text": {"format": FORM, "verbosity": "low"},
    "top_p": 0.5,
    "temperature": 0.25,
    "top_logprobs": 2,
    "reasoning": {"effort": "low"},
    "max_output_tokens": 500,
    "max_tool_calls": 3,
    "store": False,
    "service_tier": "flex",
    "metadata": {"run": "7"},
    "safety_identifier": "user-1",
    "prompt_cache_key": "cache-1",
    "user": "u",
}
NULLS: dict[str, Any] = {**PLAIN, **dict.fromkeys(FULL.keys() - PLAIN.keys())}
BODIES = {"plain": PLAIN, "full": FULL, "nulls": NULLS}
SOURCES = ("openai-responses", "azure-foundry")
FINISHES: tuple[Finish, ...] = ("stop", "tool_calls", "length")


def reply_of(api: str, finish: Finish) -> Reply:
    origin = Origin(WIRES[api].provider, raw_id="call_1")
    called = (ToolCall("read_file", {"a": 1}, "hist_tool_1", origin=origin),) if finish == "tool_calls" else ()
    return Reply((Text("Hi there"), *called), finish, Usage(11, 7), "r1", "m")


def responses_in(stream: bytes) -> Iterator[dict[str, Any]]:
    for line in stream.decode().splitlines():
        if line.startswith("data: {") and "response" in (event := json.loads(line.removeprefix("data: "))):
            yield event["response"]


def check_response(response: dict[str, Any], request: dict[str, Any]) -> None:
    jsonschema.validate(response, RESPONSE)
    given = {key: value for key, value in request.items() if value is not None and key not in ("model", "input")}
    shown = {key: response[key] for key in given}
    assert shown == {
        **given,
        **({"tools": [{**DECLARED, "description": None, "strict": None}]} if "tools" in given else {}),
        **({"reasoning": {"effort": "low", "summary": None}} if "reasoning" in given else {}),
        **(
            {"text": {"format": {**FORM, "description": None, "strict": False}, "verbosity": "low"}}
            if "text" in given
            else {}
        ),
    }


@pytest.mark.parametrize(
    ("target", "source", "kind"),
    [
        (target, source, kind)
        for number, target in enumerate(WIRES)
        for source, kind in sample(product(SOURCES, BODIES), 3, start=number)
    ],
)
def test_every_field_on_every_upstream(target: str, source: str, kind: str) -> None:
    if source == target:
        return  # the provider's own response is not changed
    body, history = BODIES[kind], [{"role": "user", "content": "Hello"}]
    for finish in FINISHES:
        # A conversation that continues is converted from what was kept of it; its response has the same fields.
        given = {**body, "input": history} if len(history) > 1 else body
        converted = segue.convert(json.dumps(given).encode(), source=source, target=target)
        provider_reply = reply_of(target, finish)
        whole = converted.reply(render_reply_body(provider_reply, target)[0])
        check_response(whole, given)
        stream = converted.stream()
        responses = list(responses_in(stream.feed(stream_reply(target, provider_reply)) + stream.close()))
        assert len(responses) == 3
        for response in responses:
            check_response(response, given)
        differing = {key for key in whole if whole[key] != responses[-1][key]}
        assert differing <= {"id", "output", "created_at"}
        history = [*history, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": f"More, {finish}"}]


@pytest.mark.parametrize("api", SOURCES)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_emulated_providers_send_every_field(api: str, body: dict[str, Any]) -> None:
    with segue.emulator.start(api) as emulator:
        request = {**body, "top_logprobs": None, "temperature": None, "top_p": None}
        sent = post(emulator, {key: value for key, value in request.items() if value is not None}, key="a-key")
        assert sent.status == 200, sent.body
        jsonschema.validate(sent.body, RESPONSE)
        assert sent.body["completed_at"] == sent.body["created_at"]


def test_a_response_without_a_request_has_the_defaults() -> None:
    body, _ = render_reply_body(reply_of("anthropic", "stop"), "openai-responses")
    jsonschema.validate(body, RESPONSE)
    check_response(body, PLAIN)

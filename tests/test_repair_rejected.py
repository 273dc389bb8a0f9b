"""Same-API bodies that the provider rejects are repaired: valid afterwards, nothing lost, a second repair changes
nothing. Bodies beside them that are valid stay as they are."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import segue

Body = dict[str, Any]
PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
TEXT = {"type": "text", "text": "t"}
SEARCH_RESULT = {"type": "search_result", "source": "s", "title": "u", "content": [{"type": "text", "text": "c"}]}
REFERENCE = {"type": "tool_reference", "tool_name": "f"}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
SERVER_CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def anthropic_body(*messages: Body, **fields: Any) -> Body:
    tools = [
        {"name": "f", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "q"}, *messages]}
    return {**body, "tools": tools, **fields}


def anthropic_result(**fields: Any) -> Body:
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", **fields}
    return anthropic_body({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})


def bedrock_result(*content: Body, **fields: Any) -> Body:
    call = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}
    result = {"toolResult": {"toolUseId": "t1", "content": list(content), **fields}}
    return {
        "modelId": CLAUDE,
        "messages": [
            {"role": "user", "content": [{"text": "q"}]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]},
    }


def call_item(call_id: str | None) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output_item(call_id: str | None, output: str = "r") -> Body:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def responses_body(*items: Body, **fields: Any) -> Body:
    return {"model": "gpt-5", "input": [{"role": "user", "content": "q"}, *items], **fields}


def gemini_body(*contents: Body) -> Body:
    return {"contents": [{"role": "user", "parts": [{"text": "q"}]}, *contents]}


def model_content(*parts: Body) -> Body:
    return {"role": "model", "parts": list(parts)}


def gemini_call(number: int) -> Body:
    return {"functionCall": {"name": "f", "args": {"n": number}}}


def gemini_results(*numbers: int) -> Body:
    responses = [{"functionResponse": {"name": "f", "response": {"output": f"r{number}"}}} for number in numbers]
    return {"role": "user", "parts": responses}


def compaction(content: str | None = "So far.", **fields: Any) -> Body:
    return {"type": "compaction", "content": content, **fields}


def signed(**fields: Any) -> Body:
    return compaction(signature="EqQBCgIYAhIM", **fields)


def reply(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks)}


USER = {"role": "user", "content": "q2"}
SYSTEM = {"role": "system", "content": "Be brief."}
NO_PREFILL = {"model": "claude-opus-4-8"}
SUMMARIZE = {**NO_PREFILL, "compaction": {"type": "summarize"}}
REJECTED: dict[str, tuple[str, Body]] = {
    "error result with an image": ("anthropic", anthropic_result(is_error=True, content=[TEXT, IMAGE])),
    "error result of an image": ("anthropic", anthropic_result(is_error=True, content=[IMAGE])),
    "error result with a tool reference": ("anthropic", anthropic_result(is_error=True, content=[TEXT, REFERENCE])),
    "error result with a search result": ("anthropic", anthropic_result(is_error=True, content=[SEARCH_RESULT, IMAGE])),
    "error result with a document": ("anthropic", anthropic_result(is_error=True, content=[DOCUMENT])),
    "error result without content": ("anthropic", anthropic_result(is_error=True)),
    "error result with empty text": ("anthropic", anthropic_result(is_error=True, content="")),
    "unknown key in a result": ("anthropic", anthropic_result(content=[{**TEXT, "colour": 1}])),
    "signed compaction behind what it summarizes": ("anthropic", anthropic_body(reply(TEXT), reply(signed()), USER)),
    "signed compaction behind a text": ("anthropic", anthropic_body(reply(TEXT, signed()), USER)),
    "signed compaction behind system text": ("anthropic", anthropic_body(SYSTEM, USER, reply(signed(), TEXT), USER)),
    "signed compaction of the user": (
        "anthropic",
        anthropic_body(reply(TEXT), {**reply(signed(), TEXT), "role": "user"}),
    ),
    "signed compaction behind a call": (
        "anthropic",
        anthropic_body(*anthropic_result()["messages"][1:2], reply(signed()), *anthropic_result()["messages"][2:]),
    ),
    "signed compaction in a system message": (
        "anthropic",
        anthropic_body(USER, {**reply(TEXT, signed()), "role": "system"}, USER),
    ),
    "compaction in a system message": ("anthropic", anthropic_body({**reply(compaction()), "role": "system"}, USER)),
    "signed compaction before a newer one": (
        "anthropic",
        {**anthropic_body(), "messages": [reply(signed()), USER, reply(compaction(), TEXT), USER]},
    ),
    "signed compaction behind an older one": (
        "anthropic",
        anthropic_body(reply(compaction(), TEXT), reply(signed()), USER),
    ),
    "empty compaction": ("anthropic", anthropic_body(reply(compaction("")), USER)),
    "empty compaction at the end": ("anthropic", anthropic_body(reply(compaction("")), **NO_PREFILL)),
    "empty compaction before a text": ("anthropic", anthropic_body(reply(compaction(""), TEXT), USER)),
    "empty compaction with encrypted content": (
        "anthropic",
        anthropic_body(reply(compaction("", encrypted_content="abc"), TEXT), USER),
    ),
    "compaction request on an open call": (
        "anthropic",
        anthropic_body(*anthropic_result()["messages"][1:2], **SUMMARIZE),
    ),
    "compaction request on an open server tool call": (
        "anthropic",
        anthropic_body(reply(TEXT, SERVER_CALL), **SUMMARIZE),
    ),
    "unknown key in the system text": ("anthropic", anthropic_body(system=[{**TEXT, "colour": 1}])),
    "server tool call without a result": (
        "anthropic",
        anthropic_body({"role": "assistant", "content": [SERVER_CALL, TEXT]}, USER),
    ),
    "only a server tool call without a result": (
        "anthropic",
        anthropic_body(
            {"role": "assistant", "content": [SERVER_CALL]}, USER, {"role": "assistant", "content": "b"}, USER
        ),
    ),
    "error result with an image, on Bedrock": (
        "bedrock",
        bedrock_result({"text": "t"}, {"image": {"format": "png", "source": {"bytes": PNG}}}, status="error"),
    ),
    "error result without content, on Bedrock": ("bedrock", bedrock_result(status="error")),
    "unknown key of a Converse request": ("bedrock", {**bedrock_result({"text": "r"}), "colour": 1}),
    "null call ids": ("openai-responses", responses_body(call_item(None), output_item(None))),
    "null id of an output": ("openai-responses", responses_body(call_item("a"), output_item(None))),
    "output before its call": ("openai-responses", responses_body(output_item("a"), call_item("a"), USER)),
    "one of two outputs before its call": (
        "openai-responses",
        responses_body(output_item("b"), call_item("a"), call_item("b"), output_item("a", "r0")),
    ),
    "output before its call, on Foundry": ("azure-foundry", responses_body(output_item("a"), call_item("a"), USER)),
    "keys of other APIs": ("openai-responses", responses_body(messages=[], system="s")),
    "long metadata": ("azure-foundry", responses_body(metadata={"a": "x" * 513, "b": "kept"})),
    "calls in two contents": (
        "gemini",
        {"model": "gemini-2.5-flash"}
        | gemini_body(model_content(gemini_call(1)), model_content(gemini_call(2)), gemini_results(1, 2)),
    ),
    "calls in two contents with others between": (
        "gemini",
        {"model": "gemini-2.5-flash"}
        | gemini_body(
            *(
                model_content(part)
                for part in ({"text": "a"}, gemini_call(1), {"text": ""}, gemini_call(2), {"text": ""})
            ),
            gemini_results(1, 2),
        ),
    ),
}
VALID: dict[str, tuple[str, Body]] = {
    "error result of text": ("anthropic", anthropic_result(is_error=True, content=[TEXT, TEXT])),
    "result with an image": ("anthropic", anthropic_result(content=[TEXT, IMAGE, REFERENCE])),
    "empty result": ("anthropic", anthropic_result(content="")),
    "compaction at the start": ("anthropic", {**anthropic_body(), "messages": [reply(signed(), TEXT), USER]}),
    "compaction that failed": ("anthropic", anthropic_body(reply(compaction(None), TEXT), USER)),
    "compactions at thresholds": (
        "anthropic",
        anthropic_body(reply(TEXT, compaction()), USER, reply(compaction(), TEXT), USER),
    ),
    "pause after a compaction": ("anthropic", anthropic_body(reply(compaction()), **NO_PREFILL)),
    "compaction before reasoning and a call": (
        "anthropic",
        anthropic_body(
            reply(
                compaction(),
                {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCgIYAhIM"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
            ),
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
            thinking={"type": "enabled", "budget_tokens": 1024},
            max_tokens=2000,
        ),
    ),
    **{
        f"compaction request, {name}": ("anthropic", anthropic_body(*messages, **SUMMARIZE))
        for name, messages in {
            "on a reply": [reply(TEXT)],
            "on a user message": [reply(TEXT), USER],
            "on a result": anthropic_result(content="r")["messages"][1:],
            "on a summary": [reply(compaction())],
        }.items()
    },
    "open server tool call at the end": ("anthropic", anthropic_body({"role": "assistant", "content": [SERVER_CALL]})),
    "server tool call that waits for a tool": (
        "anthropic",
        anthropic_body(
            {"role": "assistant", "content": [SERVER_CALL, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
        ),
    ),
    "error result of JSON, on Bedrock": ("bedrock", bedrock_result({"json": {"a": 1}}, status="error")),
    "late output": ("openai-responses", responses_body(call_item("a"), USER, output_item("a"))),
    "several contents of one reply": (
        "gemini",
        gemini_body(
            *(model_content(part) for part in ({"text": "a"}, gemini_call(1), {"text": ""})), gemini_results(1)
        ),
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_body_is_repaired(name: str) -> None:
    api, body = REJECTED[name]
    before = copy.deepcopy(body)
    repaired = segue.repair(body, api)
    assert body == before
    assert repaired.changes
    assert not [str(violation) for violation in segue.check(repaired.body, api) if violation.severity == "reject"]
    assert not segue.repair(repaired.body, api).changes


@pytest.mark.parametrize("name", VALID)
def test_valid_body_stays(name: str) -> None:
    api, body = VALID[name]
    assert not segue.repair(body, api).changes


@pytest.mark.parametrize("name", [name for name, (_, body) in REJECTED.items() if PNG in json.dumps(body)])
def test_image_of_an_error_result_is_kept(name: str) -> None:
    api, body = REJECTED[name]
    assert PNG in json.dumps(segue.repair(body, api).body)


@pytest.mark.parametrize("content", [[TEXT, REFERENCE], [SEARCH_RESULT, IMAGE], [DOCUMENT]])
def test_content_that_can_not_be_moved_stays_and_the_error_is_marked(content: list[Body]) -> None:
    body = segue.repair(anthropic_result(is_error=True, content=content), "anthropic").body
    result = body["messages"][2]["content"][0]
    assert "is_error" not in result
    assert result["content"][0]["text"].startswith("[error]")
    assert result["content"][-1] == content[-1]


def test_calls_in_two_contents_keep_their_results() -> None:
    _, body = REJECTED["calls in two contents"]
    out = segue.convert(body, source="gemini", target="openai-chat").body["messages"]
    arguments = [json.loads(call["function"]["arguments"])["n"] for call in out[1]["tool_calls"]]
    results = {message["tool_call_id"]: message["content"] for message in out if message["role"] == "tool"}
    assert arguments == [1, 2]
    assert [results[call["id"]] for call in out[1]["tool_calls"]] == ["r1", "r2"]

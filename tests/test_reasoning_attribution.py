"""Reasoning belongs to the recorded provider and model; the model name in a body or request may be an alias."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.models import is_other_model, resolve_alias

TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
PROFILE_ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123def"
# A model of each API with reasoning that is bound to it, and names that a route, deployment or profile may have.
REAL = {
    "anthropic": "claude-sonnet-4-5-20250929",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-3.8-flash",
    "openai-responses": "gpt-5.6-terra",
}
ALIASES = {
    "anthropic": ["my-sonnet", "team/claude", "coder", "claude-sonnet", "prod/claude-latest"],
    "bedrock": [PROFILE_ARN, "my-profile", "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude"],
    "gemini": ["tunedModels/mine-x7", "my-gemini", "gemini-flash-latest"],
    "openai-responses": ["prod-deployment", "my-gpt", "team/reasoner"],
}
API_ALIASES = [(api, alias) for api, aliases in ALIASES.items() for alias in aliases]


def body_with_reasoning(api: str, model: str) -> dict[str, Any]:
    match api:
        case "anthropic":
            blocks = [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "c2VjcmV0"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}},
            ]
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}
            messages = [("user", "go"), ("assistant", blocks), ("user", [result])]
            return {
                "model": model,
                "max_tokens": 4096,
                "thinking": {"type": "enabled", "budget_tokens": 2048},
                "messages": [{"role": role, "content": content} for role, content in messages],
                "tools": [{"name": "read", "input_schema": {"type": "object"}}],
            }
        case "bedrock":
            blocks = [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "read", "input": {}}},
            ]
            result = {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "a"}]}}
            messages = [("user", [{"text": "go"}]), ("assistant", blocks), ("user", [result])]
            return {
                "modelId": model,
                "messages": [{"role": role, "content": content} for role, content in messages],
                "toolConfig": {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}]},
            }
        case "gemini":
            call = {"functionCall": {"name": "read", "args": {}, "id": "x"}, "thoughtSignature": "c2ln"}
            response = {"functionResponse": {"name": "read", "response": {"output": "a"}, "id": "x"}}
            parts = [("user", {"text": "go"}), ("model", call), ("user", response)]
            return {
                "model": model,
                "contents": [{"role": role, "parts": [part]} for role, part in parts],
                "tools": [{"functionDeclarations": [{"name": "read"}]}],
            }
        case _:
            return {
                "model": model,
                "store": False,
                "input": [
                    {"role": "user", "content": "go"},
                    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA1"},
                    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "call_1", "output": "a"},
                ],
                "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}],
            }


def reply_with_reasoning(api: str, model: str) -> dict[str, Any]:
    body = body_with_reasoning(api, model)
    match api:
        case "anthropic":
            head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "tool_use"}
            return {**head, "content": body["messages"][1]["content"]}
        case "bedrock":
            return {"output": {"message": body["messages"][1]}, "stopReason": "tool_use"}
        case "gemini":
            return {"candidates": [{"content": body["contents"][1], "finishReason": "STOP"}], "modelVersion": model}
        case _:
            return {"id": "resp_1", "object": "response", "model": model, "output": body["input"][1:3]}


def find_reasoning(body: dict[str, Any]) -> list[Any]:
    """Return everything in a body that is reasoning, in order, whatever the API."""
    found: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            if value.get("type") in ("thinking", "redacted_thinking", "reasoning"):
                found.append(value)
            found.extend(value[key] for key in ("reasoningContent", "thoughtSignature") if key in value)
            for item in value.values():
                walk(item)

    walk(body.get("messages") or body.get("contents") or body.get("input"))
    return found


def chat_with_reply(api: str, model: str, sent_as: str) -> segue.Conversation:
    chat = segue.Conversation(tools=[TOOL])
    chat.add_user("go")
    chat.render(api, sent_as)
    chat.add_reply(reply_with_reasoning(api, model), source=api)
    for call in chat.pending:
        chat.add_result(call, "a")
    return chat


# -------------------------------------------------------------------------------------------------------------- bodies


@pytest.mark.parametrize(("api", "alias"), API_ALIASES)
def test_body_under_an_alias_keeps_its_reasoning(api: str, alias: str):
    expected = find_reasoning(body_with_reasoning(api, REAL[api]))
    assert expected
    for before, after in ((alias, None), (alias, REAL[api]), (REAL[api], alias), (alias, "other-alias")):
        converted = segue.convert(body_with_reasoning(api, before), source=api, target=api, model=after)
        assert find_reasoning(converted.body) == expected, (before, after)
        assert not converted.report.findings_of("reasoning")


# Models that their vendors, or servers, also serve by Anthropic's API.
FOREIGN = (
    *("MiniMax-M2", "minimax/minimax-m2.5", "glm-4.6", "zai-org/GLM-5", "kimi-k2-thinking", "kimi-for-coding"),
    *("deepseek-chat", "deepseek-v4", "qwen3-coder-plus", "Qwen/Qwen3-235B-A22B-Thinking-2507", "gpt-oss:120b"),
    *("grok-4", "gemini-3-pro-preview", "mistral-large-latest", "nova-premier"),
)


@pytest.mark.parametrize("api", ["anthropic", "bedrock"])
@pytest.mark.parametrize("model", FOREIGN)
def test_reasoning_of_a_body_belongs_to_the_model_that_the_body_names(api: str, model: str):
    """Claude rejects thinking that another model generated, in Anthropic's form too (ANT-26, ANT-29)."""
    body = body_with_reasoning(api, model)
    for converted in (
        segue.convert(body, source=api, target=api, model=REAL[api]),
        segue.Conversation.from_body(body, source=api).render(api, REAL[api]),
    ):
        assert not find_reasoning(converted.body)
        (finding,) = converted.report.findings_of("reasoning")
        assert finding.level == "lost"
        assert model in finding.message
        assert segue.check(converted.body, api, model=REAL[api])
    home = segue.convert(body, source=api, target=api)
    if api == "anthropic":
        assert find_reasoning(home.body) == find_reasoning(body)


@pytest.mark.parametrize(
    ("api", "other", "is_kept"),
    [
        ("anthropic", "claude-opus-4-1", False),
        ("anthropic", "claude-sonnet-4-6", False),
        ("bedrock", "anthropic.claude-opus-4-1-20250805-v1:0", False),
        ("openai-responses", "gpt-5", True),
        ("gemini", "gemini-3-pro", True),
    ],
)
def test_another_model_keeps_reasoning_of_a_body_that_is_not_bound_to_the_model(api: str, other: str, is_kept: bool):
    """The same as for recorded replies: ANT-29, OAI-RESP-11, GEM-19."""
    converted = segue.convert(body_with_reasoning(api, REAL[api]), source=api, target=api, model=other)
    real = [found for found in find_reasoning(converted.body) if "skip_thought" not in json.dumps(found)]
    assert bool(real) == is_kept
    assert bool(converted.report.findings_of("reasoning")) != is_kept
    assert segue.check(converted.body, api, model=other)


SAME_MODELS = [
    ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
    ("claude-opus-4-0", "claude-opus-4-20250514"),
    ("anthropic/claude-sonnet-4", "claude-sonnet-4-0"),
    ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219"),
]


@pytest.mark.parametrize(("one", "other"), [*SAME_MODELS, *[pair[::-1] for pair in SAME_MODELS]])
def test_two_names_of_one_model_keep_its_reasoning(one: str, other: str):
    body = body_with_reasoning("anthropic", one)
    converted = segue.convert(body, source="anthropic", target="anthropic", model=other)
    assert find_reasoning(converted.body) == find_reasoning(body)
    rendered = chat_with_reply("anthropic", one, sent_as=other).render("anthropic", other)
    assert find_reasoning(rendered.body) == find_reasoning(body)


def test_name_that_a_conversation_asked_for_is_the_model_that_answered():
    """A deployment may serve a newer model of the family than its name says."""
    chat = chat_with_reply("anthropic", "claude-opus-4-1-20250805", sent_as="claude-opus-4")
    again = segue.Conversation.load(chat.dump())
    for each in (chat, again):
        assert find_reasoning(each.render("anthropic", "claude-opus-4").body)
        assert not find_reasoning(each.render("anthropic", "claude-sonnet-4-5").body)
    # Another vendor's model never is.
    foreign = chat_with_reply("anthropic", "glm-4.6", sent_as="claude-sonnet-4-5")
    assert not find_reasoning(foreign.render("anthropic", "claude-sonnet-4-5").body)


@pytest.mark.parametrize("model", ["amazon.nova-pro-v1:0", "openai.gpt-oss-120b-1:0"])
def test_signed_reasoning_does_not_go_to_models_without_signatures(model: str):
    converted = segue.convert(body_with_reasoning("bedrock", REAL["bedrock"]), target="bedrock", model=model)
    assert not find_reasoning(converted.body)
    assert converted.report.findings_of("reasoning")


def test_model_that_cannot_reason_gets_none():
    body = body_with_reasoning("anthropic", "my-sonnet")
    converted = segue.convert(body, target="anthropic", model="claude-3-5-haiku-20241022")
    assert not find_reasoning(converted.body)
    assert converted.report.findings_of("reasoning")


# ------------------------------------------------------------------------------------------------------ conversations


@pytest.mark.parametrize(("api", "alias"), API_ALIASES)
def test_alias_of_the_recorded_model_gets_the_same_reasoning(api: str, alias: str):
    chat = chat_with_reply(api, REAL[api], sent_as=REAL[api])
    real, aliased = chat.render(api, REAL[api]), chat.render(api, alias)
    assert find_reasoning(real.body)
    assert find_reasoning(aliased.body) == find_reasoning(real.body)
    key = "modelId" if api == "bedrock" else "model"
    assert api == "gemini" or aliased.body[key] == alias
    assert {**aliased.body, key: 0} == {**real.body, key: 0}


@pytest.mark.parametrize(("api", "alias"), API_ALIASES)
def test_reply_to_an_alias_keeps_its_reasoning(api: str, alias: str):
    chat = chat_with_reply(api, REAL[api], sent_as=alias)
    assert find_reasoning(chat.render(api, alias).body) == find_reasoning(chat.render(api, REAL[api]).body)
    assert find_reasoning(chat.render(api, alias).body)
    loaded = segue.Conversation.load(chat.dump())
    assert find_reasoning(loaded.render(api, alias).body) == find_reasoning(chat.render(api, alias).body)


@pytest.mark.parametrize(
    ("api", "other", "is_kept"),
    [
        # ANT-29
        ("anthropic", "claude-opus-4-1", False),
        ("anthropic", "claude-sonnet-4-6", False),
        ("bedrock", "anthropic.claude-opus-4-1-20250805-v1:0", False),
        ("bedrock", "amazon.nova-pro-v1:0", False),
        # OAI-RESP-11: bound to the organisation
        ("openai-responses", "gpt-5", True),
        ("openai-responses", "o4-mini", True),
        # GEM-19: bound to the endpoint
        ("gemini", "gemini-3-pro", True),
    ],
)
def test_another_model_keeps_reasoning_that_is_not_bound_to_the_model(api: str, other: str, is_kept: bool):
    chat = chat_with_reply(api, REAL[api], sent_as=REAL[api])
    rendered = chat.render(api, other)
    real = [found for found in find_reasoning(rendered.body) if "skip_thought" not in json.dumps(found)]
    assert bool(real) == is_kept
    assert bool(rendered.report.findings_of("reasoning")) != is_kept
    assert segue.check(rendered.body, api, model=other)


def test_changed_prefix_is_detected_under_an_alias():
    """ANT-28: the recorded model binds reasoning to its prefix, whatever name the request has."""
    chat = chat_with_reply("anthropic", "claude-fable-5-1", sent_as="my-fable")
    assert find_reasoning(chat.render("anthropic", "my-fable").body)
    chat.system = "Something else."
    for name in ("my-fable", "claude-fable-5-1"):
        rendered = chat.render("anthropic", name)
        assert not find_reasoning(rendered.body)
        assert rendered.report.findings_of("reasoning")


words = st.sampled_from(["my", "team", "prod", "coder", "claude", "route", "eu", "fast", "x9", "main"])
aliases = st.lists(words, min_size=1, max_size=4).map("-".join)


@given(api=st.sampled_from(sorted(REAL)), alias=aliases, sent_as_alias=st.booleans())
def test_any_alias_renders_as_the_real_name(api: str, alias: str, sent_as_alias: bool):
    if is_other_model(alias, REAL[api]):
        return
    chat = chat_with_reply(api, REAL[api], sent_as=alias if sent_as_alias else REAL[api])
    real, aliased = chat.render(api, REAL[api]).body, chat.render(api, alias).body
    assert find_reasoning(real)
    assert find_reasoning(aliased) == find_reasoning(real)


# ---------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("claude-sonnet-4-5", "claude-sonnet-4-6", True),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514", False),
        ("claude-sonnet-4-0", "claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", "claude-opus-4-5", True),
        ("claude-sonnet-4-5", "claude-opus", True),
        ("claude-sonnet-4-5", "claude", False),
        ("claude-sonnet-4-5", "my-sonnet", False),
        ("claude-sonnet-4-5", "gpt-5", True),
        ("gemini-3.8-flash", "gemini-flash-latest", False),
        ("gemini-3.8-flash", "gemini-2.5-flash", True),
        ("", "claude-sonnet-4-5", False),
    ],
)
def test_names_of_different_models(one: str, other: str, differ: bool):
    assert is_other_model(one, other) == is_other_model(other, one) == differ


@pytest.mark.parametrize(
    ("name", "recorded", "resolved"),
    [
        ("my-sonnet", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("team/claude", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-opus", "claude-sonnet-4-5", "claude-opus"),
        ("claude-opus-4-1", "claude-sonnet-4-5", "claude-opus-4-1"),
        ("deepseek-reasoner", "deepseek-v3.2", "deepseek-reasoner"),
        ("qwen-plus", "qwen3-32b", "qwen-plus"),
        ("my-sonnet", "other-alias", "my-sonnet"),
        ("my-sonnet", None, "my-sonnet"),
        (None, "claude-sonnet-4-5", None),
    ],
)
def test_alias_resolves_to_the_recorded_model(name: str | None, recorded: str | None, resolved: str | None):
    assert resolve_alias(name, recorded) == resolved


# ------------------------------------------------------------------------------------------------- plain reasoning text

CHAT_TARGETS = {
    "kimi": "kimi-k2-thinking",
    "deepseek": "deepseek-v4",
    "qwen": "qwen3-32b",
    "mistral": "magistral-medium-2509",
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def chat_body(**reasoning: object) -> dict[str, Any]:
    return {
        "model": "my-route",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, **reasoning, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a"},
        ],
        "tools": [TOOL],
    }


def reasoning_text(body: dict[str, Any]) -> str:
    message = body["messages"][1]
    parts = [part for part in message["content"] or () if isinstance(part, dict) and part["type"] == "thinking"]
    return message.get("reasoning_content") or "".join(text["text"] for part in parts for text in part["thinking"])


@pytest.mark.parametrize("api", CHAT_TARGETS)
@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_given_to_a_chat_client_goes_back(api: str, streamed: bool):
    model = CHAT_TARGETS[api]
    first = {"model": "my-route", "messages": [{"role": "user", "content": "go"}], "tools": [TOOL]}
    converted = segue.convert(first, source="openai-chat", target=api, model=model)
    content: Any = None
    reasoning: dict[str, Any] = {"reasoning_content": "because"}
    if api == "mistral":
        content, reasoning = [{"type": "thinking", "thinking": [{"type": "text", "text": "because"}]}], {}
    call = {**CALL, "id": "read:0" if api == "kimi" else "abcdefgh1"}
    message = {"role": "assistant", "content": content, **reasoning, "tool_calls": [call]}
    if streamed:
        stream = converted.stream()
        choice = {"index": 0, "delta": {**message, "tool_calls": [{**call, "index": 0}]}, "finish_reason": "tool_calls"}
        chunk = {"id": "c", "object": "chat.completion.chunk", "model": model, "choices": [choice]}
        data = stream.feed(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()) + stream.close()
        reply = segue.assemble(data, "openai-chat")
        given = {"reasoning_content": reply.thinking, "tool_calls": [{**CALL, "id": reply.calls[0].raw_id}]}
    else:
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        given = converted.reply({"id": "c", "model": model, "choices": [choice]})["choices"][0]["message"]
    assert given["reasoning_content"] == "because"
    result = {"role": "tool", "tool_call_id": given["tool_calls"][0]["id"], "content": "a"}
    history = [*first["messages"], {"role": "assistant", "content": None, **given}, result]
    second = segue.convert({**first, "messages": history}, source="openai-chat", target=api, model=model)
    assert reasoning_text(second.body) == "because"
    assert not second.report.findings_of("reasoning")
    assert segue.check(second.body, api)


@pytest.mark.parametrize("api", CHAT_TARGETS)
@pytest.mark.parametrize(
    ("reasoning", "expected"),
    [
        ({"reasoning_content": "because"}, "because"),
        ({"reasoning": "because"}, "because"),
        ({"reasoning": "because", "reasoning_details": [{"type": "reasoning.text", "text": "because"}]}, "because"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "because", "signature": "s"}]}, "because"),
        ({"reasoning_details": [{"type": "reasoning.summary", "summary": "because"}]}, "because"),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "gAAA"}]}, None),
        ({"reasoning_details": "because"}, None),
        ({"reasoning_content": ""}, None),
        ({}, None),
    ],
)
def test_reasoning_of_a_chat_body_reaches_apis_with_plain_reasoning(
    api: str, reasoning: dict[str, Any], expected: str | None
):
    """DS-01, DS-02, KIM-04: the real reasoning where there is one, else the placeholder where it is required."""
    converted = segue.convert(chat_body(**reasoning), source="openai-chat", target=api, model=CHAT_TARGETS[api])
    required = "." if api in ("kimi", "deepseek") else ""
    assert reasoning_text(converted.body) == (expected or required)
    assert "signature" not in json.dumps(converted.body)
    assert segue.check(converted.body, api)
    is_lost = expected is None and bool(reasoning.get("reasoning_details"))
    lost = [found for found in converted.report.findings_of("reasoning") if "dropped" in found.message]
    assert bool(lost) == is_lost


@pytest.mark.parametrize("target", ["anthropic", "gemini", "bedrock", "openai-responses"])
def test_text_of_an_unknown_model_is_not_sent_as_signed_reasoning(target: str):
    converted = segue.convert(chat_body(reasoning_content="because"), source="openai-chat", target=target)
    assert "because" not in json.dumps(converted.body)
    assert [found.message for found in converted.report.findings_of("reasoning") if "unknown model" in found.message]


@pytest.mark.parametrize("source", ["deepseek", "kimi", "qwen"])
def test_reasoning_of_a_named_provider_stays_with_it(source: str):
    body = chat_body(reasoning_content="because")
    assert reasoning_text(segue.convert(body, source=source, target=source).body) == "because"
    other = "kimi" if source != "kimi" else "qwen"
    assert reasoning_text(segue.convert(body, source=source, target=other).body) != "because"


def test_reasoning_details_of_a_reply_are_thinking():
    message = {
        "role": "assistant",
        "content": "hi",
        "reasoning_details": [{"type": "reasoning.text", "text": "because"}],
    }
    chunks = [
        {"role": "assistant", "reasoning_details": [{"type": "reasoning.text", "text": "be", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "cause", "index": 0}]},
        {"content": "hi"},
    ]
    whole = json.dumps({"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    stream = b"".join(
        b"data: %s\n\n" % json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}).encode()
        for delta in chunks
    )
    for data in (whole, stream + b"data: [DONE]\n\n"):
        assert segue.assemble(data, "openai-chat").thinking == "because"


@pytest.mark.parametrize(("reasoning", "expected"), [("because", "because"), (None, ".")])
def test_deepseek_on_the_anthropic_api_gets_reasoning_beside_calls(reasoning: str | None, expected: str):
    """DS-03: the real one where there is one, else the placeholder; signatures are not checked."""
    body = chat_body(**({} if reasoning is None else {"reasoning_content": reasoning}))
    made = segue.convert(body, source="openai-chat", target="anthropic", model="deepseek-v4").body
    assert made["messages"][1]["content"][0] == {"type": "thinking", "thinking": expected, "signature": ""}
    chat = segue.Conversation.from_body(body, source="openai-chat")
    assert chat.render("anthropic", "deepseek-v4").body["messages"][1] == made["messages"][1]
    claude = segue.convert(made, source="anthropic", target="anthropic", model="claude-sonnet-4-5").body
    assert "thinking" not in json.dumps(claude["messages"]), "ANT-26: unsigned"


def test_own_body_for_deepseek_on_the_anthropic_api_is_not_changed():
    body = body_with_reasoning("anthropic", "deepseek-v4")
    assert segue.convert(body, source="anthropic", target="anthropic").body == body

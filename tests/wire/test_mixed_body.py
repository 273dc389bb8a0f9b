"""Calls, results and tools of one API in a body of another: parsed as such, and valid at every target."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import ToolCall, ToolResponse, calls_of, responses_of, text_of
from segue.canonical.json import encode_json
from segue.wire.registry import WIRES

TARGETS = tuple(row.name for row in segue.formats() if row.kind != "text")
FORMS = ("anthropic", "openai-chat", "openai-responses", "gemini", "bedrock")
ARGUMENTS = {"path": "/etc/hosts", "limit": 3}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}
RESULT = "127.0.0.1 localhost"


def _call(form: str, call_id: str = "toolu_01Abc", name: str = "read") -> dict[str, Any]:
    text = json.dumps(ARGUMENTS)
    return {
        "anthropic": {"type": "tool_use", "id": call_id, "name": name, "input": ARGUMENTS},
        "openai-chat": {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}},
        "openai-responses": {"type": "function_call", "call_id": call_id, "name": name, "arguments": text},
        "gemini": {"functionCall": {"id": call_id, "name": name, "args": ARGUMENTS}},
        "bedrock": {"toolUse": {"toolUseId": call_id, "name": name, "input": ARGUMENTS}},
    }[form]


def _result(form: str, call_id: str = "toolu_01Abc", text: str = RESULT) -> dict[str, Any]:
    return {
        "anthropic": {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": text}]},
        "openai-chat": {"role": "tool", "tool_call_id": call_id, "content": text},
        "openai-responses": {"type": "function_call_output", "call_id": call_id, "output": text},
        "gemini": {"functionResponse": {"id": call_id, "name": "read", "response": {"output": text}}},
        "bedrock": {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}},
    }[form]


def _tool(form: str, name: str = "read") -> dict[str, Any]:
    declared = {"name": name, "description": "Reads a file."}
    return {
        "anthropic": {**declared, "input_schema": SCHEMA},
        "openai-chat": {"type": "function", "function": {**declared, "parameters": SCHEMA}},
        "openai-responses": {"type": "function", **declared, "parameters": SCHEMA},
        "gemini": {"functionDeclarations": [{**declared, "parametersJsonSchema": SCHEMA}]},
        "bedrock": {"toolSpec": {**declared, "inputSchema": {"json": SCHEMA}}},
        "mcp": {**declared, "inputSchema": SCHEMA},
    }[form]


def _text(host: str, side: str, text: str) -> dict[str, Any]:
    if WIRES[host].base_api == "openai-responses":
        return {"type": "output_text" if side == "assistant" else "input_text", "text": text}
    return {"text": text} if host in ("gemini", "bedrock") else {"type": "text", "text": text}


def _message(host: str, side: str, *items: dict[str, Any]) -> dict[str, Any]:
    if host == "gemini":
        return {"role": "model" if side == "assistant" else "user", "parts": [*items]}
    return {"role": side, "content": [*items]}


def _body(host: str, messages: list[dict[str, Any]], *tools: dict[str, Any]) -> dict[str, Any]:
    wire = WIRES[host]
    body: dict[str, Any] = {wire.conversation_key: messages}
    if host == "anthropic":
        body["max_tokens"] = 1024
    if tools:
        body |= {"toolConfig": {"tools": [*tools]}} if host == "bedrock" else {"tools": [*tools]}
    return body


def _own_form(host: str) -> str:
    return WIRES[host].base_api


def _mixed(host: str, call_form: str, result_form: str, tool_form: str) -> dict[str, Any]:
    """Return a conversation of `host` with a call, a result and a tool in the forms of other APIs."""
    call = _message(host, "assistant", _text(host, "assistant", "Let me look."), _call(call_form))
    result = _result(result_form)
    after = _text(host, "user", "And now?")
    is_message = "role" in result or (_own_form(host) == "openai-responses" == result_form)
    rest = [result, _message(host, "user", after)] if is_message else [_message(host, "user", result, after)]
    if _own_form(host) == call_form:
        call = {**_message(host, "assistant", _text(host, "assistant", "Let me look."))}
        if call_form == "openai-chat":
            call["tool_calls"] = [_call(call_form)]
        elif call_form == "openai-responses":
            rest = [_call(call_form), *rest]
        else:
            call = _message(host, "assistant", _text(host, "assistant", "Let me look."), _call(call_form))
    return _body(host, [_message(host, "user", _text(host, "user", "Read it.")), call, *rest], _tool(tool_form))


def _assert_whole(request: Any) -> None:
    """The call has its arguments, the result its text and the id of the call, the tool its schema."""
    calls = [call for message in request.messages for call in calls_of(message)]
    results = [result for message in request.messages for result in responses_of(message)]
    assert [(call.name, call.arguments, call.arguments_text) for call in calls] == [("read", ARGUMENTS, None)]
    assert [(result.call_id, text_of(result.content), result.error) for result in results] == [
        (calls[0].id, RESULT, False)
    ]
    assert [message.speaker for message in request.messages][:3] == ["human", "ai", "tool"]
    assert [(tool.name, tool.description, tool.parameters) for tool in request.tools] == [
        ("read", "Reads a file.", SCHEMA)
    ]


def _rejects(body: dict[str, Any], api: str) -> list[str]:
    return [f"{found.rule} {found.path}" for found in segue.check(body, api) if found.severity == "reject"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("host", TARGETS)
def test_mixed_conversation_is_valid_at_every_target(host: str, form: str) -> None:
    body = _mixed(host, form, form, form)
    _assert_whole(WIRES[host].parse_request(body))
    for target in TARGETS:
        made = segue.convert(body, source=host, target=target)
        assert not _rejects(made.body, target), target
        _assert_whole(WIRES[target].parse_request(made.body))
        assert not made.report.findings_of("orphan", "synthetic", "text", "dropped"), target


@pytest.mark.parametrize("result_form", FORMS)
@pytest.mark.parametrize("call_form", FORMS)
def test_ids_pair_across_forms(call_form: str, result_form: str) -> None:
    for host in FORMS:
        body = _mixed(host, call_form, result_form, host)
        _assert_whole(WIRES[host].parse_request(body))
        assert not _rejects(segue.repair(body, host).body, host), host


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("host", TARGETS)
def test_same_api_output_has_the_own_form_and_is_reported(host: str, form: str) -> None:
    if form == _own_form(host):
        return
    body = _mixed(host, form, form, form)
    repaired = segue.repair(body, host)
    request = WIRES[host].parse_request(repaired.body)
    blocks = [block for message in request.messages for block in message.blocks]
    tool_blocks = [block for block in blocks if isinstance(block, ToolCall | ToolResponse)]
    assert {item.native.api for item in (*tool_blocks, *request.tools) if item.native} == {host}
    assert all(call.origin.raw_id == "toolu_01Abc" for call in tool_blocks) or host in ("kimi", "mistral", "gemini")
    messages = [finding.message for finding in repaired.report.findings_of("tools")]
    assert any(message.startswith("tool call in the form of") for message in messages)
    assert any(message.startswith("result in the form of") for message in messages)
    # The two OpenAI APIs accept each other's declarations.
    if not {form, _own_form(host)} <= {"openai-chat", "openai-responses"}:
        assert any(message.startswith("tool in the form of") for message in messages)
    assert segue.repair(repaired.body, host).changes == ()


@pytest.mark.parametrize("host", TARGETS)
def test_tool_of_an_mcp_server(host: str) -> None:
    body = _mixed(host, _own_form(host), _own_form(host), "mcp")
    _assert_whole(WIRES[host].parse_request(body))
    assert not _rejects(segue.repair(body, host).body, host)


@pytest.mark.parametrize("host", ["anthropic", "bedrock", "openai-responses", "azure-foundry"])
def test_chat_messages_with_tool_calls(host: str) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    reply = {"role": "assistant", "content": "Let me look.", "tool_calls": [_call("openai-chat")]}
    if host == "anthropic":
        reply["content"] = [thinking, {"type": "text", "text": "Let me look."}]
    messages = [_message(host, "user", _text(host, "user", "Read it.")), reply, _result("openai-chat")]
    body = _body(host, messages, _tool("openai-chat"))
    request = WIRES[host].parse_request(body)
    _assert_whole(request)
    repaired = segue.repair(body, host).body
    assert "tool_calls" not in json.dumps(repaired)
    assert not _rejects(repaired, host)
    if host == "anthropic":
        assert repaired["messages"][1]["content"][0] == thinking


@pytest.mark.parametrize("host", ["openai-chat", "anthropic", "bedrock", "openai-responses", "gemini"])
def test_items_in_the_place_of_messages(host: str) -> None:
    """Calls that follow a reply belong to it; results are messages of their own."""
    for form in ("openai-responses", "anthropic"):
        if form == _own_form(host):
            continue
        items = [_call(form, "a"), _call(form, "b"), _result(form, "b", "two"), _result(form, "a", "one")]
        text = _message(host, "assistant", _text(host, "assistant", "Both."))
        body = _body(host, [_message(host, "user", _text(host, "user", "Read.")), text, *items], _tool(host))
        request = WIRES[host].parse_request(body)
        assert [len(calls_of(message)) for message in request.messages] == [0, 2, 0, 0]
        for target in TARGETS:
            made = segue.convert(body, source=host, target=target)
            assert not _rejects(made.body, target)
            assert not made.report.findings_of("orphan", "synthetic")


@pytest.mark.parametrize("host", ["openai-chat", "anthropic", "bedrock", "openai-responses"])
def test_whole_gemini_contents(host: str) -> None:
    call = {"role": "model", "parts": [{"text": "Let me look."}, _call("gemini")]}
    result = {"role": "user", "parts": [_result("gemini")]}
    body = _body(host, [_message(host, "user", _text(host, "user", "Read it.")), call, result], _tool("gemini"))
    _assert_whole(WIRES[host].parse_request(body))
    assert not _rejects(segue.repair(body, host).body, host)


def test_whole_messages_of_other_apis_in_gemini() -> None:
    call = {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, _call("anthropic")]}
    result = {"role": "user", "content": [_result("anthropic")]}
    user = _message("gemini", "user", {"text": "Read it."})
    body = _body("gemini", [user, call, result], _tool("anthropic"))
    _assert_whole(WIRES["gemini"].parse_request(body))
    assert not _rejects(segue.repair(body, "gemini").body, "gemini")


def test_output_without_an_id_is_paired_by_order() -> None:
    reply = {"role": "assistant", "content": None, "tool_calls": [_call("openai-chat")]}
    output = {"type": "function_call_output", "output": RESULT}
    body = _body("openai-chat", [{"role": "user", "content": "Read it."}, reply, output], _tool("openai-chat"))
    _assert_whole(WIRES["openai-chat"].parse_request(body))


@pytest.mark.parametrize("schema", [SCHEMA, {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}])
@pytest.mark.parametrize("host", ["gemini", "bedrock", "anthropic", "openai-chat"])
def test_bare_function_declarations(host: str, schema: dict[str, Any]) -> None:
    tool = {"name": "read", "description": "Reads a file.", "parameters": schema}
    body = _body(host, [_message(host, "user", _text(host, "user", "Read it."))], tool)
    (parsed,) = WIRES[host].parse_request(body).tools
    assert (parsed.name, parsed.kind) == ("read", "function")
    assert parsed.parameters is not None
    assert parsed.parameters["properties"]["path"]["type"] == "string"
    assert not _rejects(segue.repair(body, host).body, host)


def test_errors_and_pictures_of_results_are_kept() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aVZCT1I="}}
    failed = {**_result("anthropic", "a"), "is_error": True}
    seen = {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": RESULT}, picture]}
    messages = [
        {"role": "user", "content": "Read."},
        {"role": "assistant", "content": [_call("anthropic", "a"), _call("anthropic", "b")]},
        {"role": "user", "content": [failed, seen]},
    ]
    body = {"messages": messages, "tools": [_tool("anthropic")]}
    made = segue.convert(body, source="openai-chat", target="anthropic").body
    content = made["messages"][2]["content"]
    assert content[0]["is_error"] is True
    assert content[1]["content"] == [{"type": "text", "text": RESULT}, picture]


def test_results_inside_a_tool_message() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [_call("openai-chat")]}
    nested = {"role": "tool", "tool_call_id": "toolu_01Abc", "content": [_result("anthropic")]}
    user = {"role": "user", "content": "Read it."}
    body = _body("openai-chat", [user, call, nested], _tool("openai-chat"))
    _assert_whole(WIRES["openai-chat"].parse_request(body))


def test_invalid_item_error_names_the_path() -> None:
    call = {"type": "tool_use", "id": "a", "name": 5, "input": {}}
    body = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [call]}]}
    with pytest.raises(segue.InputError) as raised:
        segue.convert(body, source="openai-chat", target="anthropic")
    assert raised.value.path == "messages[1].content[0].name"
    with pytest.raises(segue.InputError) as raised:
        segue.convert({**body, "tools": [{"input_schema": {}, "name": 5}]}, source="gemini", target="anthropic")
    with pytest.raises(segue.InputError) as raised:
        segue.convert(
            {"messages": [], "tools": [{"input_schema": {}, "name": 5}]}, source="openai-chat", target="gemini"
        )
    assert raised.value.path == "tools[0].name"


def test_body_of_another_api_is_still_rejected() -> None:
    claude = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "system": "s",
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [_call("anthropic")]}],
    }
    with pytest.raises(segue.InputError, match="this is a body of anthropic, not of openai-chat"):
        segue.convert(claude, source="openai-chat", target="gemini")


def test_bytes_and_conversation_give_the_same_body() -> None:
    filler = [
        message
        for index in range(60)
        for message in ({"role": "user", "content": f"{index} " * 40}, {"role": "assistant", "content": "ok"})
    ]
    mixed = _mixed("openai-chat", "anthropic", "anthropic", "anthropic")
    body = {**mixed, "messages": [*filler, *mixed["messages"]]}
    for target in ("openai-chat", "anthropic", "gemini"):
        full = segue.convert(body, source="openai-chat", target=target)
        _, fast = (segue.convert(encode_json(body), source="openai-chat", target=target) for _ in range(2))
        assert fast.data == full.data
        assert fast.report.findings == full.report.findings
        rendered = segue.Conversation.from_body(body, source="openai-chat").render(target)
        assert rendered.body["tools"] == full.body["tools"]
        assert len(rendered.body[WIRES[target].conversation_key]) == len(full.body[WIRES[target].conversation_key])


@given(
    host=st.sampled_from(FORMS),
    target=st.sampled_from(TARGETS),
    turns=st.lists(
        st.lists(st.tuples(st.sampled_from(FORMS), st.sampled_from(FORMS)), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    ),
    tools=st.lists(st.sampled_from([*FORMS, "mcp"]), max_size=3),
)
def test_any_mixture_is_valid(host: str, target: str, turns: list[list[tuple[str, str]]], tools: list[str]) -> None:
    messages: list[dict[str, Any]] = [_message(host, "user", _text(host, "user", "Start."))]
    wanted: list[tuple[str, str]] = []
    for turn, forms in enumerate(turns):
        blocks: list[dict[str, Any]] = []
        listed: list[dict[str, Any]] = []
        for index, (call_form, _) in enumerate(forms):
            call = _call(call_form, f"call_{turn}_{index}")
            (listed if call_form == "openai-responses" and _own_form(host) == "openai-responses" else blocks).append(
                call
            )
        messages += [_message(host, "assistant", _text(host, "assistant", "Go."), *blocks), *listed]
        for index, (_, result_form) in enumerate(forms):
            result = _result(result_form, f"call_{turn}_{index}", f"result {turn} {index}")
            wanted.append((f"call_{turn}_{index}", f"result {turn} {index}"))
            alone = "role" in result or (result_form == "openai-responses" == _own_form(host))
            messages.append(result if alone else _message(host, "user", result))
    body = _body(host, messages, *(_tool(form, f"tool_{index}") for index, form in enumerate(tools)))
    request = WIRES[host].parse_request(body)
    raw_ids = {call.id: call.raw_id for message in request.messages for call in calls_of(message)}
    results = [result for message in request.messages for result in responses_of(message)]
    assert [(raw_ids[result.call_id], text_of(result.content)) for result in results] == wanted
    assert [tool.name for tool in request.tools] == [f"tool_{index}" for index in range(len(tools))]
    made = segue.convert(body, source=host, target=target)
    assert not _rejects(made.body, target)
    assert not made.report.findings_of("orphan", "synthetic", "dropped")


# ---------------------------------------------------------------------------------------------------------- tool choice

_HOSTS = ("openai-chat", "mistral", "openai-responses", "anthropic")
_NAMED = {"name": "read"}
_CHOICES: dict[str, dict[str, Any]] = {
    "auto": {"anthropic": {"type": "auto"}, "openai-chat": "auto"},
    "none": {"anthropic": {"type": "none"}, "openai-chat": "none"},
    "required": {"anthropic": {"type": "any"}, "openai-chat": "required"},
    "serial": {"anthropic": {"type": "auto", "disable_parallel_tool_use": True}},
    "serial required": {"anthropic": {"type": "any", "disable_parallel_tool_use": True}},
    "tool": {
        "anthropic": {"type": "tool", **_NAMED},
        "openai-chat": {"type": "function", "function": _NAMED},
        "openai-responses": {"type": "function", **_NAMED},
    },
}


def _choice_body(host: str, form: str, choice: object) -> dict[str, Any]:
    key = "input" if host == "openai-responses" else "messages"
    body: dict[str, Any] = {key: [{"role": "user", "content": "a"}], "tools": [_tool(form)], "tool_choice": choice}
    return body | ({"max_tokens": 99} if host == "anthropic" else {})


@pytest.mark.parametrize("host", _HOSTS)
@pytest.mark.parametrize(("kind", "form"), [(kind, form) for kind, forms in _CHOICES.items() for form in forms])
def test_tool_choice_of_another_api(kind: str, form: str, host: str) -> None:
    body = _choice_body(host, form, _CHOICES[kind][form])
    own = _choice_body(form, form, _CHOICES[kind][form])
    models = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro", "bedrock": "anthropic.claude-sonnet-4-5"}
    for target in TARGETS:
        model = models.get(target)
        expected = segue.convert(own, source=form, target=target, model=model).body
        for data in (body, encode_json({**body, "metadata": {"padding": "x" * 9000}})):
            made = segue.convert(data, source=host, target=target, model=model).body
            for key in ("tool_choice", "parallel_tool_calls", "toolConfig"):
                if key == "toolConfig" and target == "bedrock":
                    assert made[key].get("toolChoice") == expected[key].get("toolChoice")
                else:
                    assert made.get(key) == expected.get(key), (target, key)
    if host != form:
        repaired = segue.repair(body, host).body
        assert segue.check(repaired, host), segue.check(repaired, host).violations


@pytest.mark.parametrize("host", ["openai-chat", "openai-responses", "anthropic"])
def test_invalid_tool_choice_of_another_api(host: str) -> None:
    for choice, path in (
        ({"type": "tool"}, "tool_choice.name"),
        ({"type": "tool", "name": 5}, "tool_choice.name"),
        ({"type": "auto", "disable_parallel_tool_use": "yes"}, "tool_choice.disable_parallel_tool_use"),
    ):
        with pytest.raises(segue.InputError) as raised:
            segue.convert(_choice_body(host, "anthropic", choice), source=host, target="gemini")
        assert raised.value.path == path


REASONING: dict[str, tuple[str, dict[str, Any]]] = {
    "thinking": ("anthropic", {"type": "thinking", "thinking": "THX", "signature": "c2ln"}),
    "redacted_thinking": ("anthropic", {"type": "redacted_thinking", "data": "THX"}),
    "reasoning": (
        "openai-responses",
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "THX"}]},
    ),
    "reasoningContent": ("bedrock", {"reasoningContent": {"reasoningText": {"text": "THX", "signature": "c2ln"}}}),
    "thought": ("gemini", {"text": "THX", "thought": True}),
}


def _body_with_reasoning(host: str, part: dict[str, Any]) -> dict[str, Any]:
    turns = [("user", _text(host, "user", "a")), ("assistant", part), ("user", _text(host, "user", "b"))]
    answer = _text(host, "assistant", "ok")
    messages: list[dict[str, Any]] = []
    for role, first in turns:
        content = [first, answer] if role == "assistant" else [first]
        if host == "gemini":
            messages.append({"role": "model" if role == "assistant" else role, "parts": content})
        else:
            messages.append({"role": role, "content": content})
    key = {"gemini": "contents", "openai-responses": "input"}.get(host, "messages")
    return {key: messages, **({"max_tokens": 9} if host == "anthropic" else {})}


@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("form", REASONING)
@pytest.mark.parametrize("host", FORMS)
def test_reasoning_is_kept_by_its_provider_or_reported(host: str, form: str, target: str) -> None:
    provider, part = REASONING[form]
    converted = segue.convert(_body_with_reasoning(host, part), source=host, target=target)
    losses = [finding for finding in converted.report.findings_of("reasoning") if finding.level == "lost"]
    assert ("THX" in json.dumps(converted.body)) is (target == provider)
    assert bool(losses) is (target != provider)
    assert "not supported here" not in json.dumps(converted.body)

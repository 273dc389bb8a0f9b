"""Messages for users: the object, the place and a helpful text."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.render.report import Report
from segue.wire.registry import WIRES
from tests.bodies import chat
from tests.cli.process import run

USER = chat.user("a")


def _messages(converted: segue.Converted) -> list[str]:
    return [finding.message for finding in converted.report.findings]


def _refused(body: Any, **wishes: Any) -> str:
    with pytest.raises(segue.InputError) as raised:
        segue.convert(body, **{"target": "anthropic", **wishes})
    return str(raised.value)


def _calling(arguments: str) -> dict[str, Any]:
    return chat.body(USER, chat.assistant_calls(chat.call(arguments=arguments)), chat.result())


def test_a_tool_that_is_left_out_is_named() -> None:
    body = {"max_tokens": 9, "messages": [USER], "tools": [{"type": "bash_20250124", "name": "bash"}]}
    for target in ("openai-chat", "openai-responses", "gemini"):
        assert any("bash" in message for message in _messages(segue.convert(body, source="anthropic", target=target)))


def test_dropped_document_is_named() -> None:
    source = {"type": "url", "url": "https://a.example/report.pdf"}
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "document", "source": source}]}]}
    assert any(
        "report.pdf" in message for message in _messages(segue.convert(body, target="deepseek", source="anthropic"))
    )


def test_unrecognized_body() -> None:
    assert _refused({"model": "x"}).startswith("no `messages`, `input` or `contents`: ")
    ended = run("convert", "--to", "kimi", stdin=b'{"model":"x"}')
    assert ended.code == 2
    assert "--from" in ended.err
    assert "`source`" not in ended.err


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"messages":[],\n "n": 1e999}', "not JSON: a number out of range at line 2, column 7"),
        (b'{"messages":["1e999"],\n "n": [', "not JSON: it ends too early, at line 2, column 8"),
        (b'{"a":\n' + b"[" * 600 + b"]" * 600 + b"}", "nested more than 500 levels deep at line 2, column 500"),
    ],
)
def test_the_place_in_bad_json(data: bytes, expected: str) -> None:
    assert _refused(data) == expected


def test_the_place_of_a_value_that_is_nested_too_deep() -> None:
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    assert _refused({"messages": [USER], "metadata": deep}).startswith("metadata[0][0]")


def test_a_tool_format_that_does_not_fit() -> None:
    error_message = _refused({"messages": [USER]}, tool_format="gemini")
    words = ", ".join(row.name for row in segue.formats() if row.kind == "text")
    assert (
        error_message
        == f"tool_format: anthropic does not accept the tool format 'gemini'; it accepts anthropic, {words}"
    )


def test_damaged_signature_is_reported() -> None:
    parts = [{"text": "Hm.", "thought": True, "thoughtSignature": "not base64!"}, {"text": "A."}]
    contents = [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": parts}]
    contents.append({"role": "user", "parts": [{"text": "b"}]})
    made = segue.convert({"contents": contents}, source="gemini", target="gemini", model="gemini-2.5-pro")
    (message,) = [finding.message for finding in made.report.findings_of("reasoning")]
    assert "signature" in message


def test_half_a_character_is_something_to_repair() -> None:
    body = b'{"model":"gpt-4.1","messages":[{"role":"user","content":"\\ud83d"}]}'
    ended = run("repair", "--api", "openai-chat", stdin=body)
    assert "nothing else to repair" in ended.err
    lawful = json.dumps({"messages": [USER]}).encode()
    assert "nothing else" not in run("repair", "--api", "openai-chat", stdin=lawful).err


def test_changed_id_is_a_same_api_finding() -> None:
    body = _calling("{}")
    body["messages"] += body["messages"][1:]
    for call in body["messages"][1]["tool_calls"]:
        call["id"] = body["messages"][2]["tool_call_id"] = "x" * 80
    repaired = segue.repair(body, "openai-chat")
    changed = [change for change in repaired.changes if change.path.endswith(("].id", "tool_call_id"))]
    assert changed
    assert any(line.startswith("# call id 'xxx") for line in str(repaired).splitlines())
    assert segue.convert(body, source="openai-chat", target="openai-chat").report.findings_of("id")
    assert not segue.convert(_calling("{}"), source="openai-chat", target="openai-chat").report.findings_of("id")


@pytest.mark.parametrize(
    "form", [json.dumps, lambda body: json.dumps(body).encode(), dict], ids=["text", "bytes", "dict"]
)
@pytest.mark.parametrize("arguments", ['{"q":"a","q":"b"}', '{"q" : 1,"q":2}', '{"a":[{"q":1,"q":2}]}'])
def test_duplicate_key_in_arguments_is_reported(arguments: str, form: Any) -> None:
    for target in ("openai-responses", "anthropic"):
        made = segue.convert(form(_calling(arguments)), source="openai-chat", target=target)
        (finding,) = made.report.findings_of("argument")
        assert "'q'" in finding.message
    home = segue.convert(form(_calling(arguments)), source="openai-chat", target="openai-chat")
    assert home.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == arguments
    assert not home.report.findings_of("argument")


@pytest.mark.parametrize("arguments", ['{"q":"a \\":b"}', '{"q":{"q":1}}', '{"a":[{"q":1},{"q":2}]}', '{"q": 1.10}'])
def test_keys_that_only_look_repeated_are_not(arguments: str) -> None:
    made = segue.convert(_calling(arguments), source="openai-chat", target="openai-responses")
    assert not made.report.findings_of("argument")


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("openai-chat", b'{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}'),
        ("openai-responses", b'{"input":"a","model":"gpt-5","input":"b"}'),
        ("gemini", b'{"contents":[],"contents":[{"role":"user","parts":[{"text":"a"}]}]}'),
    ],
)
def test_duplicate_conversation_field_is_rejected(api: str, body: bytes) -> None:
    for given in (body, body.decode()):
        for call in (segue.check, segue.repair, lambda data, api: segue.convert(data, target="kimi", source=api)):
            with pytest.raises(segue.InputError, match="duplicate key"):
                call(given, api)


def test_same_key_in_another_place_is_accepted() -> None:
    schema = {"type": "object", "properties": {"messages": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "messages", "parameters": schema}}
    assert segue.convert(json.dumps({"messages": [USER], "tools": [tool]}), target="kimi").body


@pytest.mark.parametrize("long", ["k" * 20_000, "k v " * 5_000], ids=["word", "words"])
@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-chat", "openai-responses", "bedrock", "mistral"])
def test_long_values_are_shortened_in_messages_only(long: str, target: str) -> None:
    body = {
        **chat.body(USER, chat.assistant_calls(chat.call(name=long)), chat.result(), model=long),
        long: 1,
        "tools": [{"type": "function", "function": {"name": long}}],
    }
    findings = segue.convert(body, source="openai-chat", target=target).report.findings
    assert max(len(finding.message) for finding in findings) < 1_000
    assert target == "openai-chat" or any(finding.subject == long for finding in findings)


def test_values_of_usual_length_are_not_shortened() -> None:
    message = f"`{'a' * 100}` dropped: {'the target has no such field, ' * 10}"
    report = Report()
    report.add("dropped", message)
    assert report.findings[0].message == message


@pytest.mark.parametrize("target", [api for api in WIRES if WIRES[api].base_api != "openai-chat"])
def test_one_choice_is_the_default_and_no_loss(target):
    body = {"model": "gpt-4.1", "n": 1, "messages": [{"role": "user", "content": "Hi"}]}
    assert not [finding for finding in segue.convert(body, target=target).report.findings if finding.subject == "n"]
    more = segue.convert({**body, "n": 2}, target=target).report.findings
    assert [finding.level for finding in more if finding.subject == "n"] == ["lost"]


@pytest.mark.parametrize("effort", [None, "high"])
@pytest.mark.parametrize(
    "model", ["gpt-5.6", "claude-sonnet-5", "claude-sonnet-4-5", "us.amazon.nova-2-lite-v1:0", None]
)
def test_an_option_outside_its_range_that_is_dropped_is_reported_once(model: str | None, effort: str | None) -> None:
    numbers = dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), 9)
    body = chat.body(USER, **numbers, **({} if effort is None else {"reasoning_effort": effort}))
    for target in WIRES:
        findings = segue.convert(body, source="openai-chat", target=target, model=model).report.findings
        reported = [finding.subject for finding in findings if finding.subject in numbers]
        assert len(reported) == len(set(reported)), (target, reported)


# Bedrock refuses such numbers with an `InputError`.
@pytest.mark.parametrize("number", [-1, 9])
@pytest.mark.parametrize(
    ("api", "model"),
    [
        (api, model)
        for api, models in {
            "openai-chat": ("gpt-5.6", "gpt-4.1"),
            "openai-responses": ("gpt-5.6", "gpt-4.1"),
            "azure-foundry": ("gpt-5.6",),
            "anthropic": ("claude-sonnet-4-5", "claude-sonnet-5"),
            "gemini": ("gemini-2.5-flash", "gemini-3.6-flash"),
            "mistral": ("mistral-large-latest",),
        }.items()
        for model in models
    ],
)
def test_a_number_outside_its_range_is_repaired_at_home_and_reported(api: str, model: str, number: int) -> None:
    options = {"temperature": number, "reasoning_effort": "high"}
    asked = segue.convert(chat.body(USER, **options), source="openai-chat", target=api, model=model).body
    for thinks in (True, False):
        body = json.loads(json.dumps(asked))
        if not thinks:
            for key in ("thinking", "output_config", "reasoning", "reasoning_effort"):
                body.pop(key, None)
        (body.setdefault("generationConfig", {}) if api == "gemini" else body)["temperature"] = number
        assert not segue.check(body, api)
        repaired = segue.repair(body, api)
        assert segue.check(repaired.body, api)
        assert [finding.subject for finding in repaired.report.findings] == ["temperature"]

"""Request options converted to another API through `segue.convert`: response format, tools, reasoning, media.

Each case covers what the target would reject, or what would be dropped without a finding.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import segue
from segue.canonical.json import encode_json
from segue.conversion import sessions
from segue.render.constraints import TEXTS
from segue.wire.registry import WIRES
from tests.bodies.chat import call, tool
from tests.properties.whole import compare

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": OBJECT}}
JSON = {"type": "json_object"}
PDF = "JVBERi0xLjQK"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
TARGETS = ("openai-chat", "openai-responses", "anthropic", "gemini", "mistral", "kimi", "deepseek", "qwen")


def chat(*text: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": word} if isinstance(word, str) else word for word in text or ("hi",)]
    return {"model": "gpt-4.1", "messages": messages, **more}


def claude(**more: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "system": "s",
        "messages": [{"role": "user", "content": "hi"}],
        **more,
    }


def gemini(**config: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": config}


function = partial(tool, parameters={"type": "object", "properties": {}})


def finding_messages(made: segue.Converted, *kinds: Any) -> list[str]:
    return [finding.message for finding in (made.report.findings_of(*kinds) if kinds else made.report.findings)]


# ---------------------------------------------------------------------------------------------------- the word «json»


@pytest.mark.parametrize("target", ["openai-chat", "qwen", "deepseek"])
def test_json_instruction_is_added_to_the_prompt(target: str) -> None:
    made = segue.convert(gemini(responseMimeType="application/json"), target=target)
    assert made.body["response_format"] == JSON
    assert made.body["messages"][0] == {"role": "system", "content": "Answer in JSON."}
    assert len(made.report.findings_of("inserted")) == 1


@pytest.mark.parametrize(
    ("system", "text", "line"),
    [(None, "hi", True), ("Be brief.", "hi", True), ("Reply in JSON.", "hi", False), (None, "as Json, please", False)],
)
def test_json_instruction_follows_system_text_only_if_missing(system: str | None, text: str, line: bool) -> None:
    messages = [{"role": "system", "content": system}] if system else []
    made = segue.convert(chat(*messages, text, response_format=JSON), target="qwen", model="qwen-plus")
    expected = "\n\n".join(filter(None, [system, TEXTS.json if line else None]))
    system_texts = [message["content"] for message in made.body["messages"] if message["role"] == "system"]
    assert system_texts == ([expected] if expected else [])


def test_responses_instructions_do_not_count_as_json_instruction() -> None:
    body = chat({"role": "system", "content": "Reply in JSON."}, "hi", response_format=JSON)
    made = segue.convert(body, target="openai-responses").body
    assert made["instructions"] == "Reply in JSON."
    assert made["input"][0] == {"role": "developer", "content": TEXTS.json}
    rendered = segue.convert(chat("json?", response_format=JSON), target="openai-responses").body
    assert [item["role"] for item in rendered["input"]] == ["user"]


def test_json_instruction_stays_when_json_is_mentioned_later() -> None:
    begun = chat("hi", {"role": "assistant", "content": "yes"}, response_format=JSON)
    later = chat(*begun["messages"], "now as json", response_format=JSON)
    first, second = (segue.convert(body, target="qwen", model="qwen-plus").body for body in (begun, later))
    assert second["messages"][:3] == first["messages"][:3]


def test_unsupported_response_schema_becomes_text() -> None:
    made = segue.convert(chat(response_format=SCHEMA), target="deepseek", model="deepseek-chat")
    line = made.body["messages"][0]["content"]
    assert line.startswith("Answer in JSON that fits this schema: {")
    assert '"required":["a"]' in line
    assert made.body["response_format"] == JSON
    assert [finding.subject for finding in made.report.findings_of("adjusted")] == ["response_format"]
    array = gemini(responseMimeType="application/json", responseSchema={"type": "ARRAY", "items": {"type": "STRING"}})
    listed = segue.convert(array, target="deepseek", model="deepseek-chat").body
    assert "response_format" not in listed
    assert '"array"' in listed["messages"][0]["content"]


def test_qwen_needs_json_instruction_for_a_schema() -> None:
    made = segue.convert(chat(response_format=SCHEMA), target="qwen", model="qwen-plus")
    assert made.body["response_format"]["type"] == "json_schema"
    assert made.body["messages"][0]["content"].startswith("Answer in JSON that fits this schema: {")
    assert len(made.report.findings_of("inserted")) == 1
    rendered = segue.convert(chat("json?", response_format=SCHEMA), target="qwen", model="qwen-plus").body
    assert [message["role"] for message in rendered["messages"]] == ["user"]


@pytest.mark.parametrize("target", ["openai-chat", "deepseek", "qwen"])
def test_no_json_instruction_for_same_api(target: str) -> None:
    body = {**chat(response_format=JSON), "model": WIRES[target].default_model}
    assert segue.convert(body, target=target, source=target).body == body


@pytest.mark.parametrize("first", ["hi", "json?"])
@pytest.mark.parametrize("target", ["openai-responses", "qwen", "deepseek"])
def test_a_longer_conversation_has_the_same_json_instruction(target: str, first: str) -> None:
    reply = {"role": "assistant", "content": "a"}
    other = "json?" if first == "hi" else "hi"
    sessions.clear()
    for text in (other, first):
        for more in (), (reply, "again"):
            value = chat(text, reply, "more", *more, response_format=JSON)
            compare(encode_json(value), source="openai-chat", target=target)


# --------------------------------------------------------------------------------------------------------- tool choice


@pytest.mark.parametrize(
    ("names", "expected"), [("f", {"type": "function", "function": {"name": "f"}}), ("fg", "auto")]
)
def test_required_tool_choice_for_qwen_names_the_tool_or_is_dropped(names: str, expected: Any) -> None:
    body = chat(tools=[function(name) for name in names], tool_choice="required")
    made = segue.convert(body, target="qwen", model="qwen-plus")
    assert made.body["tool_choice"] == expected
    assert [finding.subject for finding in made.report.findings_of("adjusted")] == ["tool_choice"]
    same_api = {**body, "model": "qwen-plus"}
    assert segue.convert(same_api, target="qwen", source="qwen").body == same_api


CHOICES = [
    ("openai-chat", chat(tools=[function()], tool_choice={"type": "function", "function": {"name": "nope"}})),
    ("openai-chat", chat(functions=[function()["function"]], function_call={"name": "nope"})),
    (
        "anthropic",
        claude(tools=[{"name": "f", "input_schema": {"type": "object"}}], tool_choice={"type": "tool", "name": "nope"}),
    ),
    (
        "anthropic",
        claude(
            tools=[
                {"name": "f", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            tool_choice={"type": "tool", "name": "web_search"},
        ),
    ),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("source", "body"), CHOICES)
def test_a_tool_that_is_not_declared_is_not_forced(source: str, body: dict[str, Any], target: str) -> None:
    if source == target:
        return
    made = segue.convert(body, target=target, source=source)
    assert "tool_choice" not in made.body
    assert "functionCallingConfig" not in made.body.get("toolConfig", {})
    assert any("is not declared" in line for line in finding_messages(made, "adjusted"))


# -------------------------------------------------------------------------------------------------------------- effort


@pytest.mark.parametrize(
    ("target", "model", "expected"),
    [
        ("openai-chat", "gpt-5", {"reasoning_effort": "medium"}),
        ("openai-responses", "gpt-5", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("deepseek", "deepseek-chat", {"reasoning_effort": "medium"}),
    ],
)
def test_a_budget_that_becomes_an_effort_is_reported(target: str, model: str, expected: dict[str, Any]) -> None:
    body = claude(max_tokens=9000, thinking={"type": "enabled", "budget_tokens": 5000})
    made = segue.convert(body, target=target, model=model)
    assert expected.items() <= made.body.items()
    assert "reasoning budget of 5000 tokens converted to effort medium" in finding_messages(made)


def test_no_reasoning_budget_for_model_without_reasoning() -> None:
    body = claude(max_tokens=9000, thinking={"type": "enabled", "budget_tokens": 5000})
    made = segue.convert(body, target="openai-chat", model="gpt-4.1")
    assert "reasoning_effort" not in made.body
    assert finding_messages(made, "adjusted") == ["`reasoning` dropped: the model does not support reasoning"]


# --------------------------------------------------------------------------------------------------- names, arguments


@pytest.mark.parametrize("name", ["1tool", "-x", "_x", "21st_magic"])
def test_names_without_leading_letter_are_projected_for_kimi(name: str) -> None:
    made = segue.convert(chat(tools=[function(name), function("x")]), target="kimi")
    spelled = [tool["function"]["name"] for tool in made.body["tools"]]
    assert spelled[0][0].isalpha()
    assert len(set(spelled)) == 2
    assert made.report.findings_of("name")
    assert segue.check(made.body, "kimi")
    assert not segue.check({"model": "kimi-k2", "messages": [], "tools": [function(name)]}, "kimi")
    reply = {"choices": [{"message": {"role": "assistant", "tool_calls": [call(name=spelled[0])]}}]}
    back = made.reply(reply)["choices"][0]["message"]["tool_calls"][0]["function"]["name"]
    assert back == name


@pytest.mark.parametrize(
    ("target", "profile", "expected"),
    [(target, None, '{"_raw":"{\\"a\\": "}') for target in ("mistral", "kimi", "deepseek", "qwen")]
    + [("openai-chat", "groq", '{"_raw":"{\\"a\\": "}'), ("openai-chat", None, '{"a": ')],
)
def test_non_json_arguments_are_wrapped_except_for_openai(target: str, profile: str | None, expected: str) -> None:
    result = {"type": "function_call_output", "call_id": "c", "output": "r"}
    call_item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": '}
    body = {"model": "gpt-4.1", "input": [{"role": "user", "content": "hi"}, call_item, result]}
    made = segue.convert(body, target=target, profile=profile)
    calls = [entry for message in made.body["messages"] for entry in message.get("tool_calls", ())]
    assert [entry["function"]["arguments"] for entry in calls] == [expected]
    assert bool(made.report.findings_of("argument")) == ("_raw" in expected)


@pytest.mark.parametrize("target", ["mistral", "kimi", "deepseek"])
def test_non_json_arguments_stay_for_same_api(target: str) -> None:
    entry = call("functions.f:0" if target == "kimi" else "abcdefghi", arguments='{"a": ')
    result = {"role": "tool", "tool_call_id": entry["id"], "name": "f", "content": "r"}
    call_item = {"role": "assistant", "content": "", "tool_calls": [entry]}
    body = {"model": WIRES[target].default_model, "messages": [{"role": "user", "content": "a"}, call_item, result]}
    assert segue.convert(body, target=target, source=target).body == body


# --------------------------------------------------------------------------------------------------------------- media


def test_kimi_gets_no_urls() -> None:
    film = {"type": "video_url", "video_url": {"url": "https://e.example/a.mp4"}}
    seen = segue.convert(chat({"role": "user", "content": [film]}), target="kimi").body
    assert seen["messages"][0]["content"] == "[video not supported here] https://e.example/a.mp4"
    picture = {"type": "image_url", "image_url": {"url": "https://e.example/a.png"}}
    body = chat({"role": "user", "content": [picture]})
    made = segue.convert(body, target="kimi")
    assert made.body["messages"][0]["content"] == "[image not supported here] https://e.example/a.png"
    assert made.report.findings_of("text")
    fetched = segue.convert(body, target="kimi", fetch=lambda _url: (b"GIF8", "image/gif")).body
    assert fetched["messages"][0]["content"][0]["image_url"]["url"] == "data:image/gif;base64,R0lGOA=="
    inline = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0K"}}
    whole = segue.convert(chat({"role": "user", "content": [inline]}), target="kimi").body
    assert whole["messages"][0]["content"] == [inline]


@pytest.mark.parametrize("url", ["data:,", "data:image/png;base64,", "data:,hello"])
@pytest.mark.parametrize("target", [target for target in TARGETS if target != "openai-chat"])
def test_image_without_data_becomes_text(target: str, url: str) -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
    made = segue.convert(chat({"role": "user", "content": parts}), target=target)
    assert TEXTS.unsupported.format(kind="image") in made.data.decode()
    assert "data:" not in made.data.decode()
    assert made.report.findings_of("text")


@pytest.mark.parametrize(
    ("title", "mime", "expected"),
    [
        ("Report Q3", "application/pdf", "Report Q3.pdf"),
        ("Release 1.2", "application/pdf", "Release 1.2.pdf"),
        ("a.pdf", "application/pdf", "a.pdf"),
        (None, "application/pdf", "document.pdf"),
    ],
)
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_file_name_has_the_extension_of_its_type(title: str | None, mime: str, expected: str, target: str) -> None:
    document = {"type": "document", "source": {"type": "base64", "media_type": mime, "data": PDF}}
    body = claude(messages=[{"role": "user", "content": [{**document, "title": title} if title else document]}])
    made = segue.convert(body, target=target)
    assert f'"filename":"{expected}"' in made.data.decode()
    assert not made.report.findings_of("dropped")


@pytest.mark.parametrize(
    ("sound", "form"),
    [
        (WAV, "wav"),
        (f"data:audio/mpeg;base64,{WAV}", "mp3"),
        ("SUQzBAAAAAAAI1RTU0UAAAAPAAAD", "mp3"),
        ("//uQxAAAAAAAAAAAAAAAAAAAAAAA", "mp3"),
        ("AAAAAAAAAAAAAAAAAAAAAAAAAAAA", None),
        ("not base64", None),
    ],
)
def test_mistral_audio_is_converted_where_its_format_is_known(sound: str, form: str | None) -> None:
    parts = [{"type": "text", "text": "hear"}, {"type": "input_audio", "input_audio": sound}]
    body = {"model": "voxtral-small-latest", "messages": [{"role": "user", "content": parts}]}
    made = segue.convert(body, target="openai-chat", source="mistral", model="gpt-audio").body["messages"][0][
        "content"
    ][1]
    if form is None:
        assert made["type"] == "text"
    else:
        assert made["input_audio"] == {"data": sound.rpartition(",")[2], "format": form}


# --------------------------------------------------------------------------------------------------- answers by schema


def anthropic_format(schema: dict[str, Any]) -> dict[str, Any]:
    return claude(output_config={"format": {"type": "json_schema", "schema": schema}})


def test_anthropic_response_format_is_strict_where_possible() -> None:
    made = segue.convert(anthropic_format(OBJECT), target="openai-chat")
    assert made.body["response_format"]["json_schema"]["strict"] is True
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    made = segue.convert(anthropic_format(loose), target="openai-chat")
    assert "strict" not in made.body["response_format"]["json_schema"]
    assert any("`strict` dropped from the response format" in line for line in finding_messages(made, "adjusted"))


def test_enum_response_format_is_reported() -> None:
    body = gemini(responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a", "b"]})
    made = segue.convert(body, target="openai-chat")
    assert "response_format" not in made.body
    assert [finding.subject for finding in made.report.findings_of("adjusted")] == ["response_format"]
    assert segue.convert(body, target="gemini").body == body


def test_the_order_of_properties_is_kept() -> None:
    properties = {"a": {"type": "STRING"}, "b": {"type": "STRING"}, "c": {"type": "STRING"}}
    schema = {"type": "OBJECT", "properties": properties, "propertyOrdering": ["c", "a"]}
    body = gemini(responseMimeType="application/json", responseSchema=schema)
    made = segue.convert(body, target="openai-chat").body["response_format"]["json_schema"]["schema"]
    assert list(made["properties"]) == ["c", "a", "b"]


# ---------------------------------------------------------------------------------------- what would be lost in silence


def test_declaration_fields_are_reported_by_place() -> None:
    marked = {"cache_control": {"type": "ephemeral"}}
    tool = {"input_schema": {"type": "object"}, "input_examples": [{}], "defer_loading": True, **marked}
    body = claude(
        system=[{"type": "text", "text": "s", **marked}],
        tools=[{"name": "f", "allowed_callers": ["direct"], **tool}, {"name": "g", **tool}],
    )
    made = segue.convert(body, target="openai-chat")
    messages = finding_messages(made, "dropped")
    assert "`cache_control` of content dropped: not supported by openai-chat" in messages
    for key in ("cache_control", "input_examples", "defer_loading", "allowed_callers"):
        assert f"`{key}` of tools dropped: not supported by openai-chat" in messages
    assert not finding_messages(segue.convert(body, target="anthropic"), "dropped")


def test_search_option_without_settings() -> None:
    made = segue.convert(chat(web_search_options={}, metadata={}), target="anthropic")
    assert made.body["tools"] == [{"type": "web_search_20250305", "name": "web_search"}]
    assert [finding.subject for finding in made.report.findings_of("tools")] == ["web_search_options"]
    assert made.report.findings_of("dropped") == []


@pytest.mark.parametrize(
    ("declaration", "path"),
    [
        ({"name": "a", "input_schema": 5}, "tools[0].input_schema"),
        ({"name": "a", "inputSchema": "x"}, "tools[0].inputSchema"),
        ({"type": "function", "function": {"name": "a", "parameters": []}}, "tools[0].function.parameters"),
        ({"functionDeclarations": [{"name": "a", "parameters": 1}]}, "tools[0].functionDeclarations[0].parameters"),
    ],
)
def test_invalid_schema_error_names_the_path(declaration: dict[str, Any], path: str) -> None:
    with pytest.raises(segue.InputError) as caught:
        segue.convert_tools([declaration], target="anthropic")
    assert caught.value.path == path


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic", "gemini", "kimi"])
@pytest.mark.parametrize("reference", ["#/x", "http://x/y"])
def test_dangling_reference_is_reported_for_every_source(reference: str, target: str) -> None:
    for declaration in (
        {"name": "a", "input_schema": {"$ref": reference}},
        {"name": "a", "inputSchema": {"$ref": reference}},
        function("a", parameters={"$ref": reference}),
    ):
        if target == "openai-chat" and "function" in declaration:
            continue
        made = segue.convert_tools([declaration], target=target)
        assert reference not in made.data.decode()
        assert any("unresolvable reference" in finding.message for finding in made.report.findings)


@pytest.mark.parametrize("target", TARGETS)
def test_non_object_parameters_are_wrapped_and_reported(target: str) -> None:
    listed = {"type": "array", "items": {"type": "string"}}
    made = segue.convert_tools([{"name": "f", "input_schema": listed}], target=target)
    assert '"value"' in made.data.decode()
    assert any("`value`" in finding.message for finding in made.report.findings)


def test_extra_mcp_server_fields_are_reported() -> None:
    listed = {"name": "f", "title": "T", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    made = segue.convert_tools([{**listed, "annotations": {"readOnlyHint": True}}], target="anthropic")
    assert {finding.subject for finding in made.report.findings_of("dropped")} == {
        "annotations",
        "outputSchema",
        "title",
    }


# ------------------------------------------------------------------------------------------------- models and profiles


def test_model_works_on_both_apis_of_its_provider() -> None:
    made = segue.convert(chat(), target="openai-responses")
    assert made.body["model"] == "gpt-4.1"
    assert not made.report.findings_of("model")
    back = segue.convert(made.body, target="openai-chat")
    assert back.body["model"] == "gpt-4.1"
    cross_api = segue.convert(made.body, target="openai-chat", profile="vllm")
    assert "model" not in cross_api.body
    assert cross_api.report.findings_of("model")
    conversation = segue.Conversation.from_body(made.body, source="openai-responses")
    assert conversation.render("openai-chat").body["model"] == "gpt-4.1"


@pytest.mark.parametrize(
    ("profile", "kept"),
    [("vllm", True), ("llama.cpp", True), ("openrouter", True), ("fireworks", True), ("groq", False), ("xai", False)],
)
def test_top_k_is_sent_where_supported(profile: str, kept: bool) -> None:
    made = segue.convert(claude(top_k=3), target="openai-chat", profile=profile, model="m")
    assert (made.body.get("top_k") == 3) is kept
    assert bool([finding for finding in made.report.findings_of("adjusted") if finding.subject == "top_k"]) is not kept


def test_top_k_is_an_option_of_mistral() -> None:
    assert segue.convert(claude(top_k=3), target="mistral").body["top_k"] == 3


@pytest.mark.parametrize(
    ("api", "old", "new", "fields", "dropped"),
    [
        (
            "gemini",
            "gemini-2.5-flash",
            "gemini-3.8-flash",
            {"generationConfig": {"presencePenalty": 0.5, "frequencyPenalty": 0.2}},
            ["presencePenalty", "frequencyPenalty"],
        ),
        ("anthropic", "claude-opus-4-7", "claude-opus-4-8", {"temperature": 0.5, "top_k": 3}, ["temperature", "top_k"]),
    ],
)
def test_options_that_neither_model_takes_do_not_vanish_silently(
    api: str, old: str, new: str, fields: dict[str, Any], dropped: list[str]
) -> None:
    hello = {"gemini": gemini(), "anthropic": claude(max_tokens=9)}[api]
    body = {**hello, **fields, "model": old}
    assert segue.convert(body, source=api, target=api).body == body
    made = segue.convert(body, source=api, target=api, model=new)
    assert not any(name in made.data.decode() for name in dropped)
    assert [finding.subject for finding in made.report.findings if finding.level == "lost"] == dropped


@pytest.mark.parametrize(
    ("model", "heard"),
    [("gpt-5-mini", False), ("o3", False), ("gpt-4o", False), ("gpt-4o-audio-preview", True), ("qwen3-omni", True)],
)
def test_audio_goes_only_to_models_that_take_it(model: str, heard: bool) -> None:
    """OAI-CHAT-11"""
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}
    body = chat({"role": "user", "content": [sound]}, model=model)
    made = segue.convert(body, source="openai-chat", target="openai-chat")
    assert (made.body == body) is heard
    assert [finding.level for finding in made.report.findings] == ([] if heard else ["lost"])
    gemini_body = {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}}]}]}
    foreign = segue.convert(gemini_body, source="gemini", target="openai-chat", model=model)
    assert ("input_audio" in foreign.data.decode()) is heard


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("anthropic", "claude-sonnet-5"),
        ("anthropic", "claude-3-haiku"),
        ("bedrock", "anthropic.claude-sonnet-5"),
        ("bedrock", "amazon.nova-pro-v1:0"),
        ("gemini", "gemini-2.5-pro"),
    ],
)
def test_json_mode_becomes_an_instruction_where_it_is_no_option(target: str, model: str) -> None:
    body = {**chat("q"), "response_format": {"type": "json_object"}, "tools": [function("f")]}
    made = segue.convert(body, target=target, model=model)
    assert TEXTS.json in made.data.decode()
    assert not any(finding.level == "lost" for finding in made.report.findings)


# ------------------------------------------------------------------------------------------ numbers of one API's bodies

_THRESHOLD = {"type": "compaction", "compact_threshold": 1}
_EDIT = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 1}}
_RESPONSES = {"model": "gpt-5", "input": "hi"}


@pytest.mark.parametrize(
    ("api", "body", "message"),
    [
        ("openai-chat", chat(n=0), "`n` raised to 1, the minimum"),
        ("openai-chat", chat(n=129), "`n` reduced to 128, the maximum"),
        ("openai-chat", chat(logprobs=True, top_logprobs=21), "`top_logprobs` reduced to 20, the maximum"),
        ("openai-chat", chat(max_tokens=-1), "`max_tokens` raised to 1, the minimum"),
        ("openai-responses", {**_RESPONSES, "top_logprobs": -1}, "`top_logprobs` raised to 0, the minimum"),
        ("openai-responses", {**_RESPONSES, "max_tool_calls": 0}, "`max_tool_calls` raised to 1, the minimum"),
        (
            "openai-responses",
            {**_RESPONSES, "context_management": [_THRESHOLD]},
            "`compact_threshold` raised to 1000, the minimum",
        ),
        (
            "azure-foundry",
            {**_RESPONSES, "context_management": [{**_THRESHOLD, "type": "x"}]},
            "`compact_threshold` raised to 1000, the minimum",
        ),
        ("anthropic", claude(context_management={"edits": [_EDIT]}), "`value` raised to 50000, the minimum"),
    ],
)
def test_numbers_that_only_one_api_has_are_moved_into_their_range(api: str, body: Any, message: str) -> None:
    assert not segue.check(body, api)
    made = segue.convert(body, source=api, target=api)
    assert segue.check(made.body, api)
    assert finding_messages(made) == [message]
    assert segue.repair(body, api).body == made.body


def test_triggers_of_other_edits_are_not_moved() -> None:
    edit = {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 5}}
    body = claude(context_management={"edits": [edit]})
    assert segue.convert(body, source="anthropic", target="anthropic").body == body

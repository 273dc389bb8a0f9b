"""Amazon Bedrock Converse: blocks, tools, options, replies and errors, held to botocore's service model."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import segue
from segue.models import parse_model
from segue.wire.base import ApiError
from segue.wire.registry import WIRES
from tests import converse
from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.bedrock import assistant as converse_assistant
from tests.bodies.bedrock import user as converse_user
from tests.bodies.chat import user
from tests.conversations.build import (
    PDF,
    PNG,
    anthropic,
    bedrock,
    calls,
    chat,
    function,
    result,
    thought,
    tool,
    tool_result,
    tool_spec,
    tool_use,
    use,
)
from tests.conversations.build import call as chat_call
from tests.conversations.replies import bedrock_reply, chat_reply

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
CLAUDE_5 = "us.anthropic.claude-sonnet-5"
NOVA = "amazon.nova-pro-v1:0"
LLAMA = "meta.llama3-3-70b-instruct-v1:0"
MISTRAL = "mistral.mistral-large-2407-v1:0"
QWEN = "qwen.qwen3-32b-v1:0"
WIRE = WIRES["bedrock"]
CALLED = (user("Read a."), calls(chat_call("call_1", "read_file", {"path": "a"})), tool("call_1", "A"))


def convert_to_bedrock(body: Any, model: str | None = None, **more: Any) -> Any:
    out = segue.convert(body, target="bedrock", model=model, **more)
    assert converse.complaints(out.body) == []
    return out


def convert_same_api(body: Any, model: str | None = None) -> Any:
    return convert_to_bedrock(body, model, source="bedrock")


def messages_of(out: Any) -> Any:
    return [(message["role"], message["content"]) for message in out.body["messages"]]


def finding_messages(out: Any, kind: str) -> list[str]:
    return [finding.message for finding in out.report.findings if finding.kind == kind]


# ------------------------------------------------------------------------------------------------------ ids and names


@pytest.mark.parametrize(
    ("model", "kept"), [(NOVA, True), (LLAMA, True), (CLAUDE, False), (None, False), (MISTRAL, False)]
)
def test_id_valid_only_for_converse(model: str | None, kept: bool) -> None:
    """BED-01: dots and colons are valid, but not for Claude (ANT-01) or Mistral (MIS-01)."""
    body = bedrock(
        converse_user("Go."),
        converse_assistant(tool_use("functions.f:0")),
        converse_user(tool_result("functions.f:0", "A")),
    )
    _, (_, (call,)), (_, (answer,)) = messages_of(convert_same_api(body, model))
    assert call["toolUse"]["toolUseId"] == answer["toolResult"]["toolUseId"]
    assert (call["toolUse"]["toolUseId"] == "functions.f:0") is kept


@pytest.mark.parametrize("call_id", ["a|b", "x" * 65, "é", " "])
@pytest.mark.parametrize("model", [CLAUDE, NOVA])
def test_invalid_id_is_projected(call_id: str, model: str) -> None:
    body = bedrock(
        converse_user("Go."), converse_assistant(tool_use(call_id)), converse_user(tool_result(call_id, "A"))
    )
    _, (_, (call,)), _ = messages_of(convert_same_api(body, model))
    assert call["toolUse"]["toolUseId"].startswith("tooluse_")


def test_a_long_name_is_shortened_and_comes_back() -> None:
    """BED-02"""
    name = "n" * 80
    out = convert_to_bedrock(chat(user("Go."), tools=[function(name)]))
    there = out.body["toolConfig"]["tools"][0]["toolSpec"]["name"]
    assert len(there) <= 64
    reply = out.reply(bedrock_reply(tool_use("tooluse_1", there, {"path": "a"})))
    assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == name


# ------------------------------------------------------------------------------------------------------------ messages


def test_stub_tool_where_none_is_declared() -> None:
    """BED-03, for the same API too"""
    out = convert_to_bedrock(chat(*CALLED, tools=None))
    (entry,) = out.body["toolConfig"]["tools"]
    assert entry["toolSpec"]["name"] == "unavailable_tool"
    body = bedrock(
        converse_user("Go."), converse_assistant(tool_use("t")), converse_user(tool_result("t", "A")), tools=None
    )
    assert convert_same_api(body).body["toolConfig"]["tools"] == [entry]


def test_stub_tool_beside_an_unsupported_hosted_tool() -> None:
    body = anthropic(
        user("Go."),
        anthropic_assistant(use("toolu_1", "bash", {"command": "ls"})),
        anthropic_user(result("toolu_1", "a")),
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    )
    assert [one["toolSpec"]["name"] for one in convert_to_bedrock(body).body["toolConfig"]["tools"]] == [
        "unavailable_tool"
    ]


@pytest.mark.parametrize(("model", "kept"), [(CLAUDE_5, True), (QWEN, True), (NOVA, False), (LLAMA, False)])
def test_first_message_role(model: str, kept: bool) -> None:
    """BED-06"""
    body = bedrock(converse_assistant("Hello."), converse_user("Hi."), model=model)
    assert (convert_same_api(body).body == body) is kept
    assert kept or messages_of(convert_same_api(body))[0] == ("user", [{"text": "[continued]"}])


@pytest.mark.parametrize(("model", "joined"), [(CLAUDE, True), (NOVA, True), (LLAMA, False), (MISTRAL, False)])
def test_text_beside_results(model: str, joined: bool) -> None:
    """BED-07"""
    roles = [role for role, _ in messages_of(convert_to_bedrock(chat(*CALLED, user("And?")), model))]
    assert roles == ["user", "assistant", "user", *([] if joined else ["assistant", "user"])]


@pytest.mark.parametrize("media", ["document", "image"])
@pytest.mark.parametrize("model", [CLAUDE, NOVA])
def test_media_beside_results_stay(model: str, media: str) -> None:
    """BED-07: with text beside them."""
    block = {
        "document": {"format": "pdf", "name": "a", "source": {"bytes": PDF}},
        "image": {"format": "png", "source": {"bytes": PNG}},
    }[media]
    answer = converse_user(tool_result("tooluse_1", "A"), "This:", {media: block})
    body = bedrock(converse_user("Go."), converse_assistant(tool_use("tooluse_1")), answer, model=model)
    assert convert_same_api(body).body == body


@pytest.mark.parametrize("place", ["message", "result"])
def test_no_video_for_claude(place: str) -> None:
    """BED-09"""
    video = {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}}
    content = [tool_result("tooluse_1", "A", video)] if place == "result" else [tool_result("tooluse_1", "A"), video]
    body = bedrock(
        converse_user("Go."), converse_assistant(tool_use("tooluse_1")), converse_user(*content), model=CLAUDE
    )
    made = convert_same_api(body)
    assert "[video not supported here]" in str(made.body)
    assert "AAAA" not in str(made.body)
    assert [finding.level for finding in made.report.findings] == ["lost"]


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("us.mistral.pixtral-large-2502-v1:0", True),
        ("mistral.mistral-large-2402-v1:0", True),
        ("mistral.ministral-3-14b-instruct", False),
    ],
)
def test_ids_of_the_service_for_mistral(model: str, kept: bool) -> None:
    """MIS-01"""
    used = tool_use("tooluse_daIKOZu4g4GrvIIv9wdqy4")
    answer = tool_result("tooluse_daIKOZu4g4GrvIIv9wdqy4", "A")
    body = bedrock(converse_user("Go."), converse_assistant(used), converse_user(answer), model=model)
    assert (convert_same_api(body).body == body) is kept
    short = bedrock(
        converse_user("Go."), converse_assistant(tool_use("a")), converse_user(tool_result("a", "A")), model=model
    )
    assert convert_same_api(short).body != short


def test_media_in_results_of_llama_4_and_pixtral_stay() -> None:
    """BED-09"""
    document = {"document": {"format": "pdf", "name": "a", "source": {"bytes": PDF}}}
    for model in ("us.meta.llama4-maverick-17b-instruct-v1:0", "us.mistral.pixtral-large-2502-v1:0"):
        answer = converse_user(tool_result("tooluse_123456789", document))
        body = bedrock(converse_user("Go."), converse_assistant(tool_use("tooluse_123456789")), answer, model=model)
        assert convert_same_api(body).body == body


def test_blank_text_and_its_cache_point_stay_for_claude() -> None:
    """BED-08"""
    body = bedrock(converse_user("a", "\n", {"cachePoint": {"type": "default"}}, "q"), model=CLAUDE)
    assert convert_same_api(body).body == body


def test_reasoning_of_qwen_is_text() -> None:
    """BED-09"""
    qwen = "qwen.qwen3-32b-v1:0"
    body = {**bedrock(converse_user("q"), model=qwen), "additionalModelRequestFields": {"reasoning_config": "high"}}
    assert convert_same_api(body).body == body
    assert segue.convert(body, source="bedrock", target="openai-chat", model="gpt-5").body["reasoning_effort"] == "high"
    made = convert_to_bedrock({**chat(user("q")), "reasoning_effort": "low"}, qwen).body
    assert made["additionalModelRequestFields"] == {"reasoning_config": "low"}


def test_document_needs_text_beside_it() -> None:
    document = {"document": {"format": "pdf", "name": "a", "source": {"bytes": PDF}}}
    (_, content), *_ = messages_of(convert_same_api(bedrock(converse_user(document), model=NOVA)))
    assert content == [document, {"text": "[document attached]"}]
    worded = bedrock(converse_user(document, "Read."), model=NOVA)
    assert convert_same_api(worded).body == worded


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("My_report.v2.pdf", "My report v2"),
        ("résumé  (final).docx", "r sum (final)"),
        ("分期.pdf", "document"),
        ("x" * 300, "x" * 200),
        ("plain name [1] - (2)", "plain name [1] - (2)"),
        (None, "document"),
    ],
)
def test_document_names(given: str | None, expected: str) -> None:
    part = {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": given}}
    if given is None:
        del part["file"]["filename"]
    out = convert_to_bedrock(chat(user([part, {"type": "text", "text": "Read."}])))
    assert out.body["messages"][0]["content"][0]["document"]["name"] == expected
    assert bool(finding_messages(out, "adjusted")) is (given is not None and given != expected)


def test_document_names_are_unique() -> None:
    part = {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}}
    out = convert_to_bedrock(chat(user([part, part, {"type": "text", "text": "Read."}])))
    names = [block["document"]["name"] for block in out.body["messages"][0]["content"] if "document" in block]
    assert names == ["a", "a 2"]


def test_blank_text_is_left_out_everywhere() -> None:
    """BED-08"""
    body = bedrock(
        converse_user("Go.", " ", ""),
        converse_assistant("\n"),
        converse_user("Well?"),
        model=NOVA,
        system=[{"text": " "}],
    )
    out = convert_same_api(body)
    assert "system" not in out.body
    assert messages_of(out) == [("user", [{"text": "Go."}, {"text": "Well?"}])]


def test_neighbours_of_one_role_are_one_message() -> None:
    """BED-10"""
    body = bedrock(
        converse_user("Go."),
        converse_user("Now."),
        converse_assistant("a"),
        converse_assistant("b"),
        converse_user("c"),
    )
    assert [role for role, _ in messages_of(convert_same_api(body, NOVA))] == ["user", "assistant", "user"]
    assert [role for role, _ in messages_of(convert_to_bedrock(chat(user("a"), user("b"))))] == ["user"]


# ------------------------------------------------------------------------------------------------- results and content


@pytest.mark.parametrize("content", [[], [{"text": ""}]])
def test_empty_error_result_gets_text(content: list[Any]) -> None:
    """«cannot be empty when status value is error»"""
    given = {"toolResult": {"toolUseId": "t", "content": content, "status": "error"}}
    body = bedrock(converse_user("Go."), converse_assistant(tool_use("t")), converse_user(given))
    _, _, (_, (answer,)) = messages_of(convert_same_api(body))
    messages = [{"text": "[failed without a message]"}]
    assert answer["toolResult"] == {"toolUseId": "t", "content": messages, "status": "error"}


def test_arguments_are_objects_and_content_is_a_list() -> None:
    """BED-09"""
    given = {"toolResult": {"toolUseId": "t", "content": "A"}}
    body = bedrock(converse_user("Go."), converse_assistant(tool_use("t", value='{"path": "a"}')), converse_user(given))
    _, (_, (call,)), (_, (answer,)) = messages_of(convert_same_api(body))
    assert call["toolUse"]["input"] == {"path": "a"}
    assert answer["toolResult"]["content"] == [{"text": "A"}]


def test_json_result_survives_a_cross_api_round_trip() -> None:
    value = {"next": "14:05", "rows": [1, 1.0]}
    body = bedrock(
        converse_user("Go."), converse_assistant(tool_use("t")), converse_user(tool_result("t", {"json": value}))
    )
    there = segue.convert(body, source="bedrock", target="gemini")
    assert there.body["contents"][2]["parts"][0]["functionResponse"]["response"] == value
    back = convert_to_bedrock(there.body, source="gemini")
    assert json.dumps(back.body["messages"][2]["content"][0]["toolResult"]["content"]) == json.dumps([{"json": value}])


@pytest.mark.parametrize(
    ("model", "inside"), [(CLAUDE, True), (NOVA, True), (LLAMA, False), ("amazon.nova-micro-v1:0", False)]
)
def test_pictures_in_results(model: str, inside: bool) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    body = anthropic(
        user("Go."), anthropic_assistant(use("toolu_1")), anthropic_user(result("toolu_1", [text("A"), picture]))
    )
    answer = convert_to_bedrock(body, model).body["messages"][2]["content"][0]["toolResult"]["content"]
    assert ({"image": {"format": "png", "source": {"bytes": PNG}}} in answer) is inside


def test_image_url_is_fetched_or_becomes_text() -> None:
    body = chat(user([{"type": "image_url", "image_url": {"url": "https://p.example/a.png"}}]))
    assert "https://p.example/a.png" in convert_to_bedrock(body).body["messages"][0]["content"][0]["text"]
    fetched = convert_to_bedrock(body, fetch=lambda _url: (b"png", "image/png")).body["messages"][0]["content"][0]
    assert fetched == {"image": {"format": "png", "source": {"bytes": base64.b64encode(b"png").decode()}}}


def test_bytes_of_boto3_become_base64() -> None:
    picture = {"image": {"format": "png", "source": {"bytes": base64.b64decode(PNG)}}}
    sealed = {"reasoningContent": {"redactedContent": b"sealed"}}
    body = bedrock(
        converse_user(picture, "What?"), converse_assistant(sealed, "A dot."), converse_user("Thanks."), model=CLAUDE
    )
    out = convert_same_api(body)
    assert out.body["messages"][0]["content"][0]["image"]["source"]["bytes"] == PNG
    assert out.body["messages"][1]["content"][0]["reasoningContent"]["redactedContent"] == "c2VhbGVk"
    claude = segue.convert(body, source="bedrock", target="anthropic").body
    assert claude["messages"][0]["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}


def test_cache_points_stay_with_their_blocks() -> None:
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    body = bedrock(
        converse_user(point, "Go.", point, point),
        converse_assistant(tool_use("tooluse_1"), tool_use("tooluse_2")),
        converse_user(tool_result("tooluse_1", "A"), point),
        model=CLAUDE,
    )
    out = convert_same_api(body)
    assert out.body["messages"][0] == body["messages"][0]
    assert [next(iter(block)) for block in out.body["messages"][2]["content"]] == [
        "toolResult",
        "cachePoint",
        "toolResult",
    ]
    assert "`cachePoint` of content dropped" in str(
        finding_messages(segue.convert(body, source="bedrock", target="openai-chat"), "dropped")
    )


# ----------------------------------------------------------------------------------------------------------- reasoning


@pytest.mark.parametrize("model", [NOVA, "openai.gpt-oss-120b-1:0"])
def test_unsigned_reasoning_goes_only_to_its_own_model(model: str) -> None:
    body = bedrock(
        converse_user("Hi."), converse_assistant(thought("Hm.", ...), "Hello."), converse_user("Well?"), model=model
    )
    del body["messages"][1]["content"][0]["reasoningContent"]["reasoningText"]["signature"]
    assert convert_same_api(body).body == body
    assert "Hm." not in convert_same_api(body, CLAUDE).data.decode()
    assert "Hm." not in convert_same_api(body, LLAMA).data.decode()


def test_reasoning_is_dropped_for_deepseek() -> None:
    body = bedrock(
        converse_user("Hi."),
        converse_assistant(thought("Hm."), "Hello."),
        converse_user("Well?"),
        model="deepseek.r1-v1:0",
    )
    assert "Hm." not in convert_same_api(body).data.decode()


def test_signatures_of_claude_are_not_those_of_anthropic() -> None:
    body = bedrock(
        converse_user("Hi."), converse_assistant(thought("Hm."), "Hello."), converse_user("Well?"), model=CLAUDE
    )
    assert (
        "Hm." not in segue.convert(body, source="bedrock", target="anthropic", model="claude-sonnet-4-5").data.decode()
    )
    same = convert_same_api(body, "global.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert same.body["messages"] == body["messages"]


def test_thinking_excludes_a_forced_choice() -> None:
    """BED-11"""
    tools = {"tools": [tool_spec()], "toolChoice": {"any": {}}}
    thinking_fields = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    body = bedrock(
        converse_user("Go."), model=CLAUDE, tools=tools, additionalModelRequestFields={**thinking_fields, "x": 1}
    )
    out = convert_same_api(body)
    assert out.body["toolConfig"] == tools
    assert out.body["additionalModelRequestFields"] == {"thinking": {"type": "disabled"}, "x": 1}


def test_open_exchange_without_reasoning_disables_thinking() -> None:
    """ANT-24"""
    body = bedrock(
        converse_user("Go."),
        converse_assistant(tool_use("tooluse_1")),
        converse_user(tool_result("tooluse_1", "A")),
        model="us.anthropic.claude-3-7-sonnet-20250219-v1:0",
        additionalModelRequestFields={"reasoning_config": {"type": "enabled", "budget_tokens": 1024}},
    )
    assert convert_same_api(body).body["additionalModelRequestFields"] == {"thinking": {"type": "disabled"}}


def test_reply_without_model_gets_the_requested_model() -> None:
    conversation = segue.Conversation()
    conversation.add_user("Hi.")
    conversation.render("bedrock", model=CLAUDE)
    conversation.add_reply(bedrock_reply(thought("Hm."), {"text": "Hello."}))
    conversation.add_user("Well?")
    assert "Hm." in conversation.render("bedrock", model=CLAUDE).data.decode()
    assert "Hm." not in conversation.render("bedrock", model=NOVA).data.decode()


# ------------------------------------------------------------------------------------------------------------- options

OPTIONS = [
    (CLAUDE, {"temperature": 1.5}, {"inferenceConfig": {"temperature": 1}}),
    (CLAUDE, {"temperature": 0.5, "top_p": 0.5}, {"inferenceConfig": {"temperature": 0.5}}),
    (CLAUDE, {"stop": ["END", " "]}, {"inferenceConfig": {"stopSequences": ["END"]}}),
    (CLAUDE, {"max_completion_tokens": 10**6}, {"inferenceConfig": {"maxTokens": 64_000}}),
    (NOVA, {"temperature": 0.5, "top_p": 0.5}, {"inferenceConfig": {"temperature": 0.5, "topP": 0.5}}),
    (
        CLAUDE,
        {"reasoning_effort": "low"},
        {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2048}}},
    ),
    (
        CLAUDE_5,
        {"reasoning_effort": "high"},
        {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}, "outputConfig": {"effort": "high"}},
    ),
    (
        "us.amazon.nova-2-lite-v1:0",
        {"reasoning_effort": "medium"},
        {"additionalModelRequestFields": {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}}},
    ),
    (
        "us.amazon.nova-2-lite-v1:0",
        {"reasoning_effort": "high", "temperature": 0.5},
        {"additionalModelRequestFields": {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}},
    ),
    (
        "openai.gpt-oss-120b-1:0",
        {"reasoning_effort": "minimal"},
        {"additionalModelRequestFields": {"reasoning_effort": "low"}},
    ),
    (NOVA, {"reasoning_effort": "high"}, {}),
    (LLAMA, {"seed": 1, "user": "u", "stream": True}, {}),
]


@pytest.mark.parametrize(("model", "given", "expected"), OPTIONS)
def test_options(model: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    out = convert_to_bedrock(chat(user("Hi."), tools=None, **given), model)
    assert out.body == {"modelId": model, "messages": [converse_user("Hi.")], **expected}


@pytest.mark.parametrize(
    ("model", "choice", "expected"),
    [
        (CLAUDE, "required", {"any": {}}),
        (CLAUDE, "auto", {"auto": {}}),
        (NOVA, {"type": "function", "function": {"name": "read_file"}}, {"tool": {"name": "read_file"}}),
        (LLAMA, "required", None),
        (LLAMA, "auto", None),
        (CLAUDE, "none", None),
    ],
)
def test_tool_choice(model: str, choice: Any, expected: Any) -> None:
    """BED-09: there is no `none`, and not every model can be forced."""
    out = convert_to_bedrock(chat(user("Go."), tool_choice=choice), model)
    assert out.body["toolConfig"].get("toolChoice") == expected
    assert out.body["toolConfig"]["tools"]
    assert bool(finding_messages(out, "adjusted")) is (expected is None and choice != "auto")


@pytest.mark.parametrize(
    ("model", "expected"), [(CLAUDE, {"top_k": 5}), (NOVA, {"inferenceConfig": {"topK": 5}}), (LLAMA, None)]
)
def test_top_k_is_an_additional_model_field(model: str, expected: Any) -> None:
    out = convert_to_bedrock(anthropic(user("Hi."), top_k=5, tools=None), model)
    assert out.body.get("additionalModelRequestFields") == expected
    back = segue.convert(out.body, source="bedrock", target="anthropic", model="claude-sonnet-4-5").body
    assert back.get("top_k") == (None if expected is None else 5)


def test_response_schema_parses_and_renders() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    out = convert_to_bedrock(chat(user("Hi."), tools=None, response_format=form), CLAUDE)
    inner = out.body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert (inner["name"], json.loads(inner["schema"])) == ("answer", schema)
    back = segue.convert(out.body, source="bedrock", target="openai-chat").body
    assert back["response_format"]["json_schema"]["schema"] == schema


def test_model_fields_are_not_sent_to_another_family() -> None:
    body = bedrock(
        converse_user("Hi."),
        model=CLAUDE,
        tools=None,
        additionalModelRequestFields={"top_k": 5, "anthropic_beta": ["x"]},
    )
    assert convert_same_api(body).body == body
    out = convert_same_api(body, NOVA)
    assert out.body["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 5}}
    assert "anthropic_beta" in str(finding_messages(out, "dropped"))


def test_bedrock_only_options_stay_for_same_api_and_are_reported_cross_api() -> None:
    rest = {"guardrailConfig": {"guardrailIdentifier": "abc"}, "serviceTier": {"type": "flex"}}
    body = bedrock(converse_user("Hi."), tools=None, requestMetadata={"k": "v"}, **rest)
    assert convert_same_api(body).body == body
    lost = str(finding_messages(segue.convert(body, source="bedrock", target="openai-chat"), "dropped"))
    assert all(key in lost for key in (*rest, "requestMetadata"))


# ----------------------------------------------------------------------------------------------------------- tools


def test_nova_schemas_have_a_plain_top_level() -> None:
    schema = {
        "type": "object",
        "description": "Where to.",
        "$defs": {"place": {"type": "string"}},
        "properties": {"to": {"$ref": "#/$defs/place"}},
        "additionalProperties": False,
    }
    spec = convert_to_bedrock(chat(user("Go."), tools=[function(parameters=schema)]), NOVA).body["toolConfig"]["tools"][
        0
    ]["toolSpec"]
    assert spec["inputSchema"]["json"] == {"type": "object", "properties": {"to": {"type": "string"}}}
    assert spec["description"] == "The tool read_file.\nWhere to."


def test_same_api_declarations_are_repaired_only_where_invalid() -> None:
    point = {"cachePoint": {"type": "default"}}
    bad = tool_spec("a", description="", inputSchema={"json": {"type": "string"}}, strict=True)
    body = bedrock(converse_user("Go."), tools={"tools": [tool_spec(), bad, point, tool_spec()]})
    first, second, third = convert_same_api(body).body["toolConfig"]["tools"]
    assert (first, third) == (tool_spec(), point)
    wrapped = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    assert second == {"toolSpec": {"name": "a", "inputSchema": {"json": wrapped}, "strict": True}}


def test_convert_tools() -> None:
    (made,) = segue.convert_tools([function()], target="bedrock")
    assert made == tool_spec()
    (back,) = segue.convert_tools([tool_spec()], target="openai-chat")
    assert back == function()


# ------------------------------------------------------------------------------------------------- replies and errors

STOPS = [
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("max_tokens", "length"),
    ("model_context_window_exceeded", "length"),
    ("guardrail_intervened", "content_filter"),
    ("content_filtered", "content_filter"),
]


@pytest.mark.parametrize(("stop", "expected"), STOPS)
def test_stop_reasons_to_a_chat_client(stop: str, expected: str) -> None:
    """BED-12"""
    reply = convert_to_bedrock(chat(user("Hi."))).reply(bedrock_reply({"text": "Hello."}, stop=stop))
    assert reply["choices"][0]["finish_reason"] == expected


def test_malformed_call_is_an_error() -> None:
    assert WIRE.parse_reply(bedrock_reply({"text": "x"}, stop="malformed_tool_use")).finish == "error"


def test_usage_includes_cached_tokens() -> None:
    given = bedrock_reply({"text": "Hello."})
    given["usage"] |= {"cacheReadInputTokens": 5, "cacheWriteInputTokens": 3}
    reply = convert_to_bedrock(chat(user("Hi."))).reply(given)
    assert reply["usage"]["prompt_tokens"] == 19
    usage = WIRE.parse_reply(given).usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (19, 7, 5, 3)


def test_a_reply_for_a_client_of_converse() -> None:
    out = segue.convert(bedrock(converse_user("Go."), model=CLAUDE), target="openai-chat")
    reply = out.reply(chat_reply(chat_call("call_1", "read_file", {"path": "a"}), content="Well."))
    blocks = reply["output"]["message"]["content"]
    assert blocks[0] == {"text": "Well."}
    assert blocks[1]["toolUse"]["toolUseId"].startswith("tooluse_")
    assert (reply["stopReason"], reply["usage"]["totalTokens"]) == ("tool_use", 18)
    again = segue.convert(
        bedrock(converse_user("Go."), reply["output"]["message"], converse_user("?")), target="bedrock"
    )
    assert converse.complaints(again.body) == []


def test_reply_is_unchanged_for_same_api() -> None:
    given = bedrock_reply(thought("Hm."), {"cachePoint": {"type": "default"}}, tool_use("tooluse_1"))
    assert convert_same_api(bedrock(converse_user("Go."), model=CLAUDE)).reply(given) == given


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"message": "Bad."}, "ValidationException"),
        ({"__type": "com.amazon.coral#ThrottlingException", "message": "Bad."}, "ThrottlingException"),
        ({"Message": "Bad."}, "ValidationException"),
    ],
)
def test_errors(body: dict[str, Any], kind: str) -> None:
    assert WIRE.parse_error(400, body) == ApiError(400, "Bad.", kind)
    with pytest.raises(segue.RemoteProtocolError, match=r"Bad\."):
        convert_to_bedrock(chat(user("Hi."))).reply(body)


def test_errors_out() -> None:
    assert WIRE.render_error(ApiError(429, "Slow.")) == {"__type": "ThrottlingException", "message": "Slow."}
    assert WIRE.render_error(ApiError(418, "Tea."))["__type"] == "ValidationException"
    own = ApiError(400, "No.", "SerializationException")
    assert WIRE.parse_error(400, WIRE.render_error(own)) == own


@pytest.mark.parametrize("body", [{}, {"output": {}}, {"output": {"message": {"content": "x"}}}])
def test_invalid_reply_is_rejected(body: dict[str, Any]) -> None:
    with pytest.raises(segue.RemoteProtocolError):
        convert_to_bedrock(chat(user("Hi."))).reply(body)


# ---------------------------------------------------------------------------------------------------------- telling it


@pytest.mark.parametrize(
    "body",
    [
        bedrock(converse_user("Hi."), tools=None),
        bedrock(converse_user("Hi."), tools=None, system=[{"text": "Be brief."}]),
        bedrock(converse_user({"image": {"format": "png", "source": {"bytes": PNG}}}), tools=None),
        bedrock(converse_user("Hi.")),
        {"modelId": CLAUDE, "messages": []},
        bedrock(converse_assistant(tool_use("t")), converse_user(tool_result("t", "A")), tools=None),
        {"messages": [converse_user("Hi.")], "inferenceConfig": {"maxTokens": 5}},
    ],
)
def test_body_is_detected_by_shape(body: dict[str, Any]) -> None:
    assert segue.convert(body, target="openai-chat").source == "bedrock"


def test_a_body_of_another_api_is_refused() -> None:
    with pytest.raises(segue.InputError, match="of bedrock, not of anthropic"):
        segue.convert(bedrock(converse_user("Hi.")), source="anthropic", target="openai-chat")
    with pytest.raises(segue.InputError, match="of anthropic, not of bedrock"):
        segue.convert(anthropic(user("Hi.")), source="bedrock", target="openai-chat")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"messages": 3}, "messages"),
        ({"messages": [{"role": "tool", "content": []}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [converse_user({})]}, "messages[0].content[0]"),
        ({"messages": [converse_user({"text": 3})]}, "messages[0].content[0].text"),
        ({"messages": [converse_user({"toolUse": {"input": {}}})]}, "messages[0].content[0].toolUse.name"),
        ({"messages": [converse_user({"toolResult": {"content": 3}})]}, "messages[0].content[0].toolResult.content"),
        ({"system": 3}, "system"),
        ({"system": [{"text": 3}]}, "system[0].text"),
        ({"toolConfig": {"tools": [{"toolSpec": {}}]}}, "toolConfig.tools[0].toolSpec.name"),
    ],
)
def test_input_error_names_the_path(change: dict[str, Any], path: str) -> None:
    with pytest.raises(segue.InputError) as caught:
        segue.convert({**bedrock(converse_user("Hi.")), **change}, source="bedrock", target="openai-chat")
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("name", "family", "line", "version"),
    [
        (CLAUDE, "claude", "sonnet", (4, 5)),
        (NOVA, "nova", "pro", ()),
        ("us.amazon.nova-2-lite-v1:0", "nova", "lite", (2,)),
        (LLAMA, "llama", "", (3, 3)),
        ("cohere.command-r-plus-v1:0", "command", "", ()),
        ("writer.palmyra-x5-v1:0", "palmyra", "", (5,)),
        ("ai21.jamba-1-5-large-v1:0", "jamba", "", (1, 5)),
        ("openai.gpt-oss-120b-1:0", "gpt", "", ()),
    ],
)
def test_ids_of_models(name: str, family: str, line: str, version: tuple[int, ...]) -> None:
    model = parse_model(name)
    assert (model.family, model.line, model.version) == (family, line, version)
    assert segue.detect(name).target == "bedrock"


def test_null_signature_counts_as_missing() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": None}}}
    body = {
        "modelId": "amazon.nova-pro-v1:0",
        "messages": [{"role": "user", "content": [{"text": "x"}]}, {"role": "assistant", "content": [thought]}],
    }
    assert "signature" not in json.dumps(segue.convert(body, source="bedrock", target="bedrock").body)

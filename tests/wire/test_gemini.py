"""The wire `gemini`: contents and parts, same-API and cross-API. The output is validated by the vendor's own types.

Options, tools, replies and errors are in `test_gemini_whole.py`.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Media, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.errors import InputError
from segue.models import parse_model
from segue.wire.gemini import WIRE as GEMINI
from segue.wire.gemini import constraints
from tests.bodies import anthropic, chat, gemini
from tests.bodies.chat import result as found
from tests.bodies.gemini import model, user
from tests.budget import examples
from tests.conversations.sdk import complaints

SKIP = "skip_thought_signature_validator"
SIGNED = "c2lnbmVkIQ=="
PNG = "iVBORw0KGgo="
OLD, NEW = "gemini-2.5-flash", "gemini-3.8-flash"


def call(q: Any = 1, name: str = "look", **more: Any) -> dict[str, Any]:
    return gemini.call(name=name, args={"q": q}, **more)


def response(expected: Any = "r", name: str = "look", **more: Any) -> dict[str, Any]:
    value = expected if isinstance(expected, dict) else {"output": expected}
    return gemini.response(name=name, response=value, **more)


def body(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"contents": [user({"text": "go"}), *contents], **more}


def convert_to(target: str, given: dict[str, Any], **options: Any) -> dict[str, Any]:
    made = segue.convert(given, source="gemini", target=target, **options).body
    assert segue.check(made, target, model=options.get("model")), str(segue.check(made, target))
    assert target != "gemini" or not complaints(made, "gemini")
    return made


def convert_same_api(given: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return convert_to("gemini", given, **options)["contents"]


def convert_cross_api(*messages: Any, source: str = "openai-chat", **options: Any) -> dict[str, Any]:
    given = {"messages": list(messages), **options.pop("more", {})}
    made = segue.convert(given, source=source, target="gemini", **options).body
    assert segue.check(made, "gemini", model=options.get("model")), str(segue.check(made, "gemini"))
    assert not complaints(made, "gemini")
    return made


def blocks_of(*parts: Any, role: str = "model") -> tuple[Any, ...]:
    return GEMINI.parse_request({"contents": [{"role": role, "parts": list(parts)}]}).messages[0].blocks


def assistant_calls(*calls: tuple[str, Any], name: str = "look") -> dict[str, Any]:
    return chat.assistant_calls(*(chat.call(call_id, name, json.dumps(value)) for call_id, value in calls))


HI = chat.user("hi")

# ---------------------------------------------------------------------------------------------------------------- home

CLI = {
    "contents": [
        user({"text": "This is the Gemini CLI."}),
        model({"text": "Got it."}),
        user({"text": "read both"}),
        model(
            {"text": "Thinking about files", "thought": True},
            {"text": "I look."},
            call("a", "read_file", id="read_file_1", signature=SIGNED),
            call("b", "read_file", id="read_file_2"),
        ),
        user(
            response("A", "read_file", id="read_file_1"),
            response({"error": "no such file"}, "read_file", id="read_file_2"),
        ),
        model({"text": "One of them"}, {"text": "", "thoughtSignature": SIGNED}),
        user({"text": "and this picture?"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}),
    ],
    "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
    "tools": [
        {"functionDeclarations": [{"name": "read_file", "parametersJsonSchema": {"type": "object", "$schema": "x"}}]},
        {"googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}, "includeServerSideToolInvocations": True},
    "generationConfig": {
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "high"},
        "candidateCount": 1,
        "responseModalities": ["TEXT"],
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "labels": {"team": "a"},
}
SNAKE = {
    "model": "models/gemini-2.5-pro",
    "system_instruction": {"parts": {"text": "Be brief."}},
    "contents": [
        {"parts": [{"text": "look"}]},
        model({"function_call": {"name": "look", "args": {"q": 1}}, "thought_signature": SIGNED}, {"text": ""}),
        {"role": "function", "parts": [{"function_response": {"name": "look", "response": {"name": "x", "n": 1.0}}}]},
        user(
            {"file_data": {"mime_type": "video/mp4", "file_uri": "https://www.youtube.com/watch?v=1"}},
            {"text": "watch"},
        ),
    ],
    "tools": {"function_declarations": {"name": "look", "parameters": {"type": "OBJECT", "properties": {}}}},
    "tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["look"]}},
    "generation_config": {
        "max_output_tokens": 10,
        "stop_sequences": ["END"],
        "thinking_config": {"thinking_budget": -1},
    },
    "cached_content": "cachedContents/1",
}
HOSTED = {
    "contents": [
        user(
            {
                "fileData": {
                    "mimeType": "video/mp4",
                    "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x",
                },
                "videoMetadata": {"startOffset": "1s", "fps": 2},
                "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
            }
        ),
        model(
            {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["kelp"]}}},
            {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": 3}}},
            {"toolCall": {"id": "tc", "toolType": "URL_CONTEXT", "args": {"urls": ["u"]}}, "thoughtSignature": SIGNED},
            {"toolResponse": {"id": "tc", "toolType": "URL_CONTEXT", "response": {"status": "ok"}}},
            {"executableCode": {"language": "PYTHON", "code": "print(45)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "45\n"}},
            {"executableCode": {"id": "ec", "language": "PYTHON", "code": "open('a')"}},
            {"codeExecutionResult": {"id": "ec", "outcome": "OUTCOME_FAILED", "output": "FileNotFoundError"}},
            {"inlineData": {"mimeType": "image/png", "data": PNG}, "thought": True},
            {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": SIGNED},
            {"text": "So.", "partMetadata": {"source": "a"}},
        ),
        user({"text": "click"}),
        model(call({"x": 371}, "click_at", signature=SIGNED)),
        user(
            response(
                {"url": "https://kelp.example", "safety_acknowledgement": "true"},
                "click_at",
                parts=[{"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "panel"}}],
                scheduling="WHEN_IDLE",
            )
        ),
    ],
    "tools": [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}, {"codeExecution": {}, "urlContext": {}}],
}
STREAMED = body(
    model({"text": "I "}),
    model({"text": "look."}),
    model(call(1, signature=SIGNED)),
    model(call(2)),
    user(response("one"), response("two")),
    user({"text": "and"}),
    user({"text": "now?"}),
)
IDS_ANYHOW = body(
    model(call(1, id="x", signature=SIGNED), call(2, id="x"), call(3)),
    user(response("1", id="x"), response("2"), response("3", id="made-up")),
)
BODIES = {"cli": CLI, "snake": SNAKE, "hosted": HOSTED, "streamed": STREAMED, "ids anyhow": IDS_ANYHOW}


@pytest.mark.parametrize("given", [CLI, SNAKE, HOSTED], ids=["cli", "snake", "hosted"])
def test_valid_body_is_unchanged_for_same_api(given: dict[str, Any]):
    before = copy.deepcopy(given)
    made = segue.convert(given, source="gemini", target="gemini")
    assert json.dumps(made.body) == json.dumps(before)
    assert json.dumps(given) == json.dumps(before), "the input was changed"
    assert made.report.findings == []


@pytest.mark.parametrize("given", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai-responses", "kimi"])
def test_every_other_api_accepts_it(given: dict[str, Any], target: str):
    convert_to(target, given)


def test_valid_body_is_detected_by_shape():
    assert segue.convert(CLI, target="gemini").source == "gemini"
    assert segue.convert({"contents": {"parts": {"text": "hi"}}}, target="anthropic").source == "gemini"
    with pytest.raises(InputError, match="this is a body of gemini"):
        segue.convert(CLI, source="anthropic", target="gemini")


@pytest.mark.parametrize(
    ("contents", "path"),
    [
        (None, "contents"),
        ("hi", "contents"),
        ([3], "contents[0]"),
        ([{"role": 3, "parts": []}], "contents[0].role"),
        ([{"role": "assistant", "parts": []}], "contents[0].role"),
        ([{"role": "user", "parts": "hi"}], "contents[0].parts"),
        ([{"role": "user", "parts": [3]}], "contents[0].parts[0]"),
        ([user({"text": 3})], "contents[0].parts[0].text"),
        ([user({"function_response": []})], "contents[0].parts[0].function_response"),
        ([user({"functionResponse": {"name": "f", "parts": [3]}})], "contents[0].parts[0].parts[0]"),
        ([model({"functionCall": {"name": 3}})], "contents[0].parts[0].functionCall.name"),
        ([model({"text": "x", "thoughtSignature": 3})], "contents[0].parts[0].thoughtSignature"),
    ],
)
def test_input_error_names_the_path(contents: Any, path: str):
    with pytest.raises(InputError) as caught:
        segue.convert({"contents": contents}, source="gemini", target="gemini")
    assert caught.value.path == path


# --------------------------------------------------------------------------------------------------- same-API repairs


def test_text_beside_results_gets_its_own_content():
    made = convert_same_api(body(model(call(signature=SKIP)), user(response(), {"text": "note"})))
    assert made[2:] == [user(response()), user({"text": "note"})]


def test_results_in_several_contents_become_one():
    made = convert_same_api(body(model(call(1, signature=SKIP), call(2)), user(response("1")), user(response("2"))))
    assert made[2:] == [user(response("1"), response("2"))]


def test_empty_contents_and_parts_without_data_are_left_out():
    made = convert_same_api(
        {"contents": [user({"text": "a"}, {}), model(), {"role": "model"}, user({"text": None}, {"text": "b"})]}
    )
    assert made == [user({"text": "a"}), user({"text": "b"})]


def test_two_kinds_of_data_in_a_part_become_two_parts():
    made = convert_same_api(body(model({**call(signature=SKIP), "text": "I look."}), user(response())))
    assert made[1]["parts"] == [call(signature=SKIP), {"text": "I look."}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [('{"a": 1}', {"a": 1}), ("[1]", {"value": [1]}), ('{"a":', {"_raw": '{"a":'}), ([1], {"value": [1]})],
)
def test_arguments_are_an_object(given: Any, expected: Any):
    part = {"functionCall": {"name": "look", "args": given, "id": "x"}, "thoughtSignature": SKIP}
    made = convert_same_api(body(model(part), user(response(id="x"))))
    assert made[1]["parts"] == [{**part, "functionCall": {**part["functionCall"], "args": expected}}]


def test_response_is_an_object_with_the_name_of_its_call():
    made = convert_same_api(
        body(model(call(signature=SKIP)), user({"functionResponse": {"response": "text", "willContinue": False}}))
    )
    assert made[2]["parts"] == [
        {"functionResponse": {"response": {"output": "text"}, "willContinue": False, "name": "look"}}
    ]


def test_a_history_begins_and_ends_with_the_user():
    assert convert_same_api(body(model({"text": "hi"})))[-1] == user({"text": "Continue."})
    assert convert_same_api({"contents": [model({"text": "hi"})]})[-1] == user({"text": "Continue."})
    first = [model({"text": "hi"}), user({"text": "hello"})]
    assert convert_same_api({"contents": first}) == first
    assert convert_same_api({"contents": []}) == [user({"text": "Continue."})]
    made = convert_same_api({"contents": [model(call(signature=SKIP)), user(response())]})
    assert made[0] == user({"text": "[continued]"})


def test_missing_result_is_completed_as_an_error():
    made = convert_same_api(body(model(call(1, signature=SKIP), call(2, name="other")), user(response("1"))))
    interrupted = {"name": "other", "response": {"error": "[interrupted: no result was recorded]"}}
    assert made[2]["parts"] == [response("1"), {"functionResponse": interrupted}]


def test_unknown_keys_are_dropped_and_reported():
    given = body(user({"text": "x", "cache_control": {}}, colour="red"), x_unknown=1, safetySettings="none")
    made = segue.convert(given, source="gemini", target="gemini")
    assert made.body == {"contents": [user({"text": "go"}), user({"text": "x"})]}
    assert {finding.subject for finding in made.report.findings_of("dropped")} == {
        "cache_control",
        "colour",
        "x_unknown",
        "safetySettings",
    }


def test_uppercase_roles_are_rendered_lowercase():
    assert convert_same_api({"contents": {"role": "USER", "parts": {"text": "hi"}}}) == [user({"text": "hi"})]


@pytest.mark.parametrize(
    "part", [{"hologram": {"x": 1}}, {"hologram": {"x": 1}, "partMetadata": {"k": "v"}, "text": None}]
)
def test_unknown_part_is_kept_for_same_api(part: Any):
    given = body(user(part), model({**part, "thoughtSignature": SIGNED}), user({"text": "go on"}))
    made = segue.convert(given, source="gemini", target="gemini")
    assert made.body["contents"][1]["parts"] == [part]
    assert made.body["contents"][2]["parts"][0]["hologram"] == {"x": 1}
    assert made.body["contents"][2]["parts"][0]["thoughtSignature"] == SIGNED
    verdict = segue.check(made.body, "gemini")
    assert verdict
    assert {violation.severity for violation in verdict} == {"risk"}
    # Cross-API the label of the model's part stands in a user message, like that of the user's.
    (message,) = convert_to("anthropic", given)["messages"]
    assert message["role"] == "user"
    assert [part["text"] for part in message["content"]].count("[hologram not supported here]") == 2


@pytest.mark.parametrize("part", [{"type": "text"}, {"a": {}, "b": {}}, {"hologram": 1}])
def test_part_without_a_kind_becomes_text(part: Any):
    assert not segue.check(body(user(part)), "gemini")
    made = segue.convert(body(user(part)), source="gemini", target="gemini")
    assert made.body["contents"][1] == user({"text": f"[{next(iter(part))} not supported here]"})
    assert made.report.findings_of("text")


# -------------------------------------------------------------------------------------------------------------- pairing


def test_result_order_is_kept_only_for_same_api():
    given = body(
        model(call(1, "f", signature=SIGNED, id="1"), call(2, "g", id="2")),
        user(response("G", "g", id="2"), response("F", "f", id="1")),
    )
    # GEM-12 is a risk, not a refusal
    assert {violation.severity for violation in segue.check(given, "gemini")} == {"risk"}
    assert convert_same_api(given) == given["contents"]
    assert [message["content"] for message in convert_to("openai-chat", given)["messages"][2:]] == ["F", "G"]
    assert [block["content"] for block in convert_to("anthropic", given)["messages"][2]["content"]] == ["F", "G"]
    assert [item["output"] for item in convert_to("openai-responses", given)["input"][3:]] == ["F", "G"]
    there = convert_to("openai-chat", given)["messages"]
    back = convert_cross_api(*there[:2], there[3], there[2])["contents"][2]["parts"]
    assert [part["functionResponse"]["name"] for part in back] == ["f", "g"]


@pytest.mark.parametrize("name", ["default_api:look", "Look", "else"])
@pytest.mark.parametrize("ids", [{}, {"id": "x"}])
def test_a_result_of_another_name_is_that_of_the_call_before_it(name: str, ids: Any):
    given = body(model(call(1, signature=SIGNED)), user(response("one", name, **ids)))
    made = segue.convert(given, source="gemini", target="gemini")
    assert segue.check(made.body, "gemini")
    assert made.body["contents"][2]["parts"][0]["functionResponse"]["name"] == "look"
    assert [finding.subject for finding in made.report.findings] == [name]
    assert convert_to("anthropic", given)["messages"][2]["content"][0]["content"] == "one"
    assert convert_to("mistral", given)["messages"][2]["name"] == "look"


def test_calls_of_one_function_without_ids_are_paired_in_order():
    given = body(
        model(call(1, signature=SIGNED), call(2), call(3, "other")),
        user(response("for other", "other"), response("one"), response("two")),
    )
    chat = convert_to("openai-chat", given)["messages"]
    ids = [entry["id"] for entry in chat[1]["tool_calls"]]
    assert len(set(ids)) == 3
    assert [(message["tool_call_id"], message["content"]) for message in chat[2:5]] == [
        (ids[0], "one"),
        (ids[1], "two"),
        (ids[2], "for other"),
    ]
    uses = convert_to("anthropic", given)["messages"][1:3]
    assert [block["content"] for block in uses[1]["content"]] == ["one", "two", "for other"]
    assert [block["tool_use_id"] for block in uses[1]["content"]] == [block["id"] for block in uses[0]["content"]]


def test_split_reply_is_merged_cross_api():
    chat = convert_to("openai-chat", STREAMED)["messages"]
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "tool", "user", "user"]
    (reply,) = [message for message in chat if message.get("tool_calls")]
    assert len(reply["tool_calls"]) == 2
    assert [message["content"] for message in chat if message["role"] == "tool"] == ["one", "two"]


def test_empty_part_after_a_call_does_not_break_pairing():
    given = body(model(call(1, signature=SIGNED), {"text": ""}), user({"text": ""}), user(response("one")))
    chat = convert_to("openai-chat", given)["messages"]
    assert [message["role"] for message in chat[:3]] == ["user", "assistant", "tool"]
    assert chat[2]["content"] == "one"
    assert convert_same_api(given)[2] == user(response("one"))


def test_a_signed_call_whose_results_were_lost_is_a_turn_of_its_own():
    given = body(model(call(1, signature=SIGNED)), model(call(2, signature=SIGNED)), user(response("two")))
    chat = convert_to("openai-chat", given)["messages"]
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "assistant", "tool"]
    assert chat[4]["content"] == "two"
    assert "interrupted" in chat[2]["content"]


def test_origin_records_how_the_id_was_found():
    (first,) = blocks_of(call(1))
    (second,) = blocks_of(call(2, id="a"))
    assert (first.origin.identity, first.origin.raw_id) == ("nullable", None)
    assert (second.origin.identity, second.origin.raw_id, second.origin.provider) == ("natural", "a", "gemini")


@pytest.mark.parametrize(("name", "has_ids"), [(OLD, False), (NEW, True), (None, True), ("gemini-2.0-flash", False)])
def test_ids_are_sent_where_the_model_accepts_them(name: str | None, has_ids: bool):
    made = convert_cross_api(
        HI, assistant_calls(("c1", 1), ("c2", 2)), found("c2", "two"), found("c1", "one"), model=name
    )["contents"]
    calls = [part["functionCall"].get("id") for part in made[1]["parts"]]
    results = [part["functionResponse"].get("id") for part in made[2]["parts"]]
    assert calls == results
    assert all((one is not None) == has_ids for one in calls)
    assert [part["functionResponse"]["response"] for part in made[2]["parts"]] == [{"output": "one"}, {"output": "two"}]


def test_pairing_by_position_is_reported_for_older_models():
    assert segue.convert(CLI, target="gemini", model=OLD).report.id_scheme == "position"
    assert segue.convert(CLI, target="gemini", model=NEW).report.id_scheme == "gemini"


def test_canonical_ids_on_request():
    contents = convert_same_api(STREAMED, ids="canonical")
    ids = [part["functionCall"]["id"] for content in contents for part in content["parts"] if "functionCall" in part]
    assert ids
    assert all(one.startswith("call_") for one in ids)


# ----------------------------------------------------------------------------------------------------------- signatures


def test_a_signature_is_a_block_before_the_one_that_it_signs():
    thought, answer, signature, called, sibling, tail = blocks_of(
        {"text": "hm", "thought": True},
        {"text": "I look."},
        call(1, signature=SIGNED),
        call(2),
        {"text": "", "thoughtSignature": SIGNED},
    )
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.signature, thought.origin.provider) == ("hm", None, "gemini")
    assert isinstance(answer, Text)
    assert isinstance(signature, Thinking)
    assert (signature.text, signature.signature, signature.native) == ("", SIGNED, None)
    assert isinstance(called, ToolCall)
    assert isinstance(sibling, ToolCall)
    assert isinstance(tail, Thinking)
    assert tail.native is not None


def test_signature_is_dropped_with_its_reasoning():
    made = convert_same_api(CLI, reasoning="none", model=NEW)
    assert made[3]["parts"] == [
        {"text": "I look."},
        {**CLI["contents"][3]["parts"][2], "thoughtSignature": SKIP},
        CLI["contents"][3]["parts"][3],
    ]
    assert convert_same_api(CLI, reasoning="none", model=OLD)[3]["parts"][1] == {
        "functionCall": CLI["contents"][3]["parts"][2]["functionCall"]
    }


@pytest.mark.parametrize("name", [NEW, "gemini-3-pro-preview", "gemini-4-argon", "gemini-flash-latest", None])
def test_every_unsigned_reply_gets_the_placeholder_on_its_first_call(name: str | None):
    made = convert_cross_api(
        HI,
        assistant_calls(("a", 1), ("b", 2)),
        found("a", "1"),
        found("b", "2"),
        {"role": "user", "content": "on"},
        assistant_calls(("c", 3)),
        found("c", "3"),
        model=name,
    )["contents"]
    assert [part.get("thoughtSignature") for part in made[1]["parts"]] == [SKIP, None]
    assert [part.get("thoughtSignature") for part in made[4]["parts"]] == [SKIP]


@pytest.mark.parametrize("name", [OLD, "gemini-2.0-flash"])
def test_older_models_need_no_placeholder(name: str):
    made = convert_cross_api(HI, assistant_calls(("a", 1)), found("a", "1"), model=name)["contents"]
    assert "thoughtSignature" not in made[1]["parts"][0]


def test_unsigned_call_gets_the_placeholder_for_same_api():
    given = body(
        model({"text": "hm", "thought": True}, {"text": "x", "thoughtSignature": SIGNED}, call(1)), user(response())
    )
    assert convert_same_api(given, model=NEW)[1]["parts"] == [
        *given["contents"][1]["parts"][:2],
        call(1, signature=SKIP),
    ]
    assert convert_same_api(given, model=OLD) == given["contents"]
    # A body has no model, so it may be for an older one.
    assert convert_same_api(given) == given["contents"]


@pytest.mark.parametrize(("signature", "stays"), [("not base64!", False), ("YWI", True), ("YR==", False), (SKIP, True)])
def test_undecodable_signature_is_dropped(signature: str, stays: bool):
    given = body(model(call(signature=signature)), user(response()), user({"text": "x", "thoughtSignature": signature}))
    made = convert_same_api(given, model=NEW)
    assert made[1]["parts"][0]["thoughtSignature"] == (signature if stays else SKIP)
    assert ("thoughtSignature" in made[3]["parts"][0]) is stays


def test_signatures_of_other_providers_are_dropped():
    uses = [
        {"type": "thinking", "thinking": "secret", "signature": SIGNED},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    ]
    given = [
        HI,
        {"role": "assistant", "content": uses},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}]},
    ]
    made = convert_cross_api(*given, source="anthropic", more={"max_tokens": 10})["contents"]
    assert made[1]["parts"][0]["thoughtSignature"] == SKIP
    assert SIGNED not in json.dumps(made)
    assert "secret" not in json.dumps(made)
    converted = convert_cross_api(*given, source="anthropic", more={"max_tokens": 10}, reasoning="text")["contents"]
    assert converted[1]["parts"][0] == {"text": "[reasoning] secret"}


def test_gemini_signatures_are_not_sent_to_other_apis():
    for target in ("anthropic", "openai-chat", "openai-responses"):
        made = segue.convert(CLI, source="gemini", target=target)
        assert SIGNED not in json.dumps(made.body)
        assert made.report.findings_of("reasoning")


# ---------------------------------------------------------------------------------------------------------------- media


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"inlineData": {"mimeType": "image/png", "data": PNG}}, Media("image", "image/png", data=PNG)),
        ({"inline_data": {"mime_type": "audio/wav", "data": PNG}}, Media("audio", "audio/wav", data=PNG)),
        (
            {"inlineData": {"mimeType": "application/pdf", "data": PNG, "displayName": "a.pdf"}},
            Media("document", "application/pdf", data=PNG, name="a.pdf"),
        ),
        (
            {"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}},
            Media("video", url="https://www.youtube.com/watch?v=1"),
        ),
        ({"fileData": {"fileUri": "https://x.example/a.PNG?x=1"}}, Media("image", url="https://x.example/a.PNG?x=1")),
        (
            {"fileData": {"fileUri": "gs://b/a", "mimeType": "image/png"}},
            Media("image", "image/png", file_id="gs://b/a"),
        ),
        (
            {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}},
            Media("document", file_id="https://generativelanguage.googleapis.com/v1beta/files/a"),
        ),
        ({"fileData": {"fileUri": "http://[broken"}}, Media("document", url="http://[broken")),
        ({"inlineData": {}}, Opaque("inlineData")),
        ({"inlineData": {"data": "not base64!"}}, Opaque("inlineData")),
        ({"fileData": {}}, Opaque("fileData")),
    ],
)
def test_media_are_read(part: Any, expected: Any):
    (block,) = blocks_of(part, role="user")
    assert block.native.fragment is part
    for field in ("kind", "mime", "data", "url", "file_id", "name"):
        assert getattr(block, field, None) == getattr(expected, field, None)


def picture(url: str) -> dict[str, Any]:
    return chat.user([{"type": "image_url", "image_url": {"url": url}}])


@pytest.mark.parametrize(
    ("url", "name", "part"),
    [
        (f"data:image/png;base64,{PNG}", NEW, {"inlineData": {"mimeType": "image/png", "data": PNG}}),
        (f"data:image/jpg;base64,{PNG}", NEW, {"inlineData": {"mimeType": "image/jpeg", "data": PNG}}),
        (f"data:image/gif;base64,{PNG}", NEW, {"text": "[image not supported here]"}),
        ("data:image/png;base64,not base64", NEW, {"text": "[image not supported here]"}),
        (
            "https://x.example/a.webp",
            NEW,
            {"fileData": {"mimeType": "image/webp", "fileUri": "https://x.example/a.webp"}},
        ),
        ("https://x.example/a", OLD, {"fileData": {"fileUri": "https://x.example/a"}}),
        ("https://x.example/a.gif", NEW, {"text": "[image not supported here] https://x.example/a.gif"}),
        ("https://x.example/a", "gemini-2.0-flash", {"text": "[image not supported here] https://x.example/a"}),
        ("http://x.example/a", NEW, {"text": "[image not supported here] http://x.example/a"}),
    ],
)
def test_cross_api_images(url: str, name: str, part: Any):
    assert convert_cross_api(picture(url), model=name)["contents"][0]["parts"] == [part]


def test_image_url_is_fetched_where_the_model_cannot():
    made = convert_cross_api(
        picture("https://x.example/a"), model="gemini-2.0-flash", fetch=lambda url: (b"\x89PNG", "image/png")
    )
    assert made["contents"][0]["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}]


def with_picture(source: dict[str, Any]) -> list[dict[str, Any]]:
    content = [{"type": "text", "text": "seen"}, {"type": "image", "source": source}]
    return [HI, anthropic.assistant(anthropic.call(name="look")), anthropic.user(anthropic.result(content=content))]


INLINE = {"type": "base64", "media_type": "image/png", "data": PNG}
BY_URL = {"type": "url", "url": "https://x.example/a.png"}


def test_a_picture_in_a_result_stays_there_for_newer_models():
    made = convert_cross_api(*with_picture(INLINE), source="anthropic", more={"max_tokens": 10})["contents"]
    inner = made[2]["parts"][0]["functionResponse"]
    assert inner["response"] == {"output": "seen"}
    assert inner["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
    back = segue.convert({"contents": made}, target="anthropic").body["messages"][2]["content"][0]["content"]
    assert back == [{"type": "text", "text": "seen"}, {"type": "image", "source": INLINE}]


@pytest.mark.parametrize(("source", "name"), [(INLINE, OLD), (BY_URL, NEW), (BY_URL, OLD)])
def test_image_follows_the_results_for_older_models(source: dict[str, Any], name: str):
    made = convert_cross_api(*with_picture(source), source="anthropic", more={"max_tokens": 10}, model=name)["contents"]
    assert made[2]["parts"][0]["functionResponse"]["response"] == {"output": "seen\n[image follows]"}
    label, shown = made[3]["parts"]
    assert label == {"text": "[image from the result of look]"}
    assert shown.keys() <= {"inlineData", "fileData"}


def test_media_beside_results_move_behind_them():
    shot = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    made = convert_same_api(body(model(call(signature=SKIP)), user(response(), shot)))
    assert made[2:] == [user(response()), user(shot)]


# -------------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize(
    ("given", "text", "error"),
    [
        ({"output": "a"}, "a", False),
        ({"result": "a"}, "a", False),
        ({"content": "a"}, "a", False),
        ({"name": "look", "content": "a"}, "a", False),
        ({"error": "a"}, "a", True),
        ({"error": ""}, "[failed without a message]", True),
        ({"error": {"code": 1}}, '{"code":1}', True),
        ({"output": [1, 2]}, "[1,2]", False),
        ({"result": 5}, "5", False),
        ({"rows": 3, "error": None}, '{"rows":3,"error":null}', False),
        ({"error": "bad", "code": 3}, '{"error":"bad","code":3}', True),
        ({"output": "a", "error": ""}, '{"output":"a","error":""}', False),
        ({}, "", False),
    ],
)
def test_results_rendered_for_other_apis(given: Any, text: str, error: bool):
    block = convert_to("anthropic", body(model(call(signature=SKIP)), user(response(given))))["messages"][2]["content"][
        0
    ]
    assert block.get("content", "") == text
    assert block.get("is_error", False) is error
    chat = convert_to("openai-chat", body(model(call(signature=SKIP)), user(response(given))))["messages"][2]
    assert chat["content"] == (f"[error] {text}".rstrip() if error else text)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": "a"}, {"output": "a"}),
        ({"content": "a", "is_error": True}, {"error": "a"}),
        ({"content": '{"a": 1}'}, {"output": '{"a": 1}'}),
        ({"content": ""}, {"output": ""}),
        ({}, {}),
        ({"is_error": True}, {"error": "[failed without a message]"}),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, {"output": "a\nb"}),
    ],
)
def test_cross_api_results(result: Any, expected: Any):
    given = with_picture(INLINE)
    given[2]["content"] = [{"type": "tool_result", "tool_use_id": "toolu_1", **result}]
    made = convert_cross_api(*given, source="anthropic", more={"max_tokens": 10})
    assert made["contents"][2]["parts"][0]["functionResponse"]["response"] == expected
    back = segue.convert(made, target="anthropic").body["messages"][2]["content"][0]
    assert back.get("is_error", False) is result.get("is_error", False)


@pytest.mark.parametrize(
    ("structured", "error", "expected"),
    [
        ({"a": 1}, False, {"a": 1}),
        ([1], False, {"output": [1]}),
        ({"error": "none"}, False, {"output": {"error": "none"}}),
        ({"a": 1}, True, {"error": {"a": 1}}),
        ({"error": "e"}, True, {"error": "e"}),
    ],
)
def test_json_results_stay_json(structured: Any, error: bool, expected: Any):
    chat = segue.Conversation()
    chat.add_user("go")
    reply = chat.add_reply({"candidates": [{"content": model(call(signature=SIGNED)), "finishReason": "STOP"}]})
    chat.add_result(reply.calls[0], structured, error=error)
    made = chat.render("gemini").body["contents"]
    assert made[2]["parts"][0]["functionResponse"]["response"] == expected
    again = GEMINI.parse_request({"contents": made}).messages[2].blocks[0]
    assert isinstance(again, ToolResponse)
    assert again.error is error


# --------------------------------------------------------------------------------------------------------------- hosted


def test_hosted_tools_become_calls_and_results_cross_api():
    chat = convert_to("openai-chat", HOSTED)["messages"]
    names = [entry["function"]["name"] for message in chat for entry in message.get("tool_calls", ())]
    assert names == ["google_search_web", "url_context", "code_execution", "code_execution", "click_at"]
    results = [message["content"] for message in chat if message["role"] == "tool"]
    assert results[:4] == ['{"hits":3}', '{"status":"ok"}', "45\n", "[error] FileNotFoundError"]


def test_older_models_get_no_server_side_parts():
    made = convert_same_api(HOSTED, model=OLD)
    parts = [part for content in made for part in content["parts"]]
    assert not [part for part in parts if {"toolCall", "toolResponse"} & part.keys()]
    assert [part for part in parts if "executableCode" in part]


@pytest.mark.parametrize("policy", ["text", "drop"])
def test_the_hosted_policy(policy: str):
    body_text = json.dumps(convert_to("openai-chat", HOSTED, hosted=policy))
    assert ("45" in body_text) is (policy == "text")
    assert convert_same_api(HOSTED, hosted=policy) == HOSTED["contents"]


# ---------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "stays"),
    [("ns.tool:a-b_c", True), ("9lives", False), ("with space", False), ("n" * 65, False), ("_ok", True), ("", False)],
)
def test_cross_api_names(name: str, stays: bool):
    declared = [{"type": "function", "function": {"name": name}}] if name else []
    made = convert_cross_api(HI, assistant_calls(("a", 1), name=name), found("a", "1"), more={"tools": declared})
    (part,) = made["contents"][1]["parts"]
    spelled = part["functionCall"]["name"]
    assert (spelled == name) is stays
    assert made["contents"][2]["parts"][0]["functionResponse"]["name"] == spelled
    if name:
        assert made["tools"][0]["functionDeclarations"][0]["name"] == spelled


def test_same_api_only_declared_names_must_be_valid():
    given = body(model(call(1, "with space", signature=SKIP)), user(response("r", "with space")))
    assert convert_same_api(given) == given["contents"]
    declared = convert_to(
        "gemini", {**given, "tools": [{"functionDeclarations": [{"name": "with space"}, {"name": "n" * 128}]}]}
    )
    spelled = declared["contents"][1]["parts"][0]["functionCall"]["name"]
    assert spelled != "with space"
    assert [one["name"] for one in declared["tools"][0]["functionDeclarations"]] == [spelled, "n" * 128]


# -------------------------------------------------------------------------------------------------------------- demands


@pytest.mark.parametrize(
    ("name", "calls", "media", "reasons"),
    [
        ("gemini-2.0-flash", "never", False, False),
        ("gemini-2.5-pro", "never", False, True),
        ("gemini-3-pro-preview", "always", True, True),
        ("gemini-3.1-flash-lite", "always", True, True),
        ("gemini-4-argon", "always", True, True),
        ("gemini-flash-latest", "always", True, True),
        ("a-tuned-model", "always", True, True),
        (None, "always", True, True),
    ],
)
def test_constraints_by_model(name: str | None, calls: str, media: bool, reasons: bool):
    row = constraints(parse_model(name))
    assert (row.reasoning_required_on_calls, bool(row.media_in_results), row.can_reason) == (calls, media, reasons)
    assert (row.api, row.provider, row.result_grouping, row.has_error_flag) == ("gemini", "gemini", "alone", True)


# ----------------------------------------------------------------------------------------------------------------- fuzz

_KEYS = st.sampled_from(
    (
        *("role", "parts", "text", "functionCall", "function_call", "functionResponse", "name", "args", "response"),
        *("id", "thought", "thoughtSignature", "inlineData", "fileData", "data", "fileUri", "mimeType", "toolCall"),
        *("toolType", "toolResponse", "executableCode", "codeExecutionResult", "output", "error"),
    )
)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.just(1.5), st.sampled_from(["", "user", "model", "x"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=14,
)


@examples(5)
@given(
    contents=_VALUES, name=st.sampled_from([None, OLD]), target=st.sampled_from(["gemini", "anthropic", "openai-chat"])
)
def test_any_contents_give_a_body_or_an_input_error(contents: Any, name: str | None, target: str):
    given = {"contents": contents}
    try:
        made = segue.convert(given, source="gemini", target=target, model=name if target == "gemini" else None).body
    except InputError:
        return
    verdict = segue.check(made, target, model=name if target == "gemini" else None)
    assert verdict, f"{verdict}\n{json.dumps(made)}"


def test_dropped_file_names_are_reported():
    named = {"mimeType": "image/png", "data": PNG, "displayName": "a.png"}
    shown = {"functionResponse": {"name": "look", "response": {"output": "x"}, "parts": [{"inlineData": named}]}}
    given = body(user({"inlineData": named}), model(call(1, signature=SIGNED)), user(shown))
    for target, count in (("openai-chat", 1), ("openai-responses", 1), ("anthropic", 1), ("gemini", 0)):
        made = segue.convert(given, source="gemini", target=target)
        assert [finding.subject for finding in made.report.findings_of("dropped")] == ["a.png"] * count, target
    converted = segue.convert(given, source="gemini", target="qwen")
    assert not converted.report.findings_of("dropped")
    assert "a.png" in converted.data.decode()
    paper = {"type": "document", "title": "p", "source": {"type": "base64", "media_type": "application/pdf"}}
    paper["source"] |= {"data": "QUJD"}
    made = segue.convert(
        {"messages": [{"role": "user", "content": [paper]}], "max_tokens": 9}, source="anthropic", target="gemini"
    )
    assert [finding.subject for finding in made.report.findings_of("dropped")] == ["p"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["line one\n", "line two"], "line one\nline two"),
        (["line one", "line two"], "line one\nline two"),
        (["a\n\n", "", "b"], "a\n\nb"),
        (["a", "", "b", ""], "a\nb"),
    ],
)
def test_texts_of_a_result_are_joined_without_doubling_line_breaks(parts: list[str], expected: str):
    content = [{"type": "text", "text": part} for part in parts]
    messages = [HI, assistant_calls(("c1", 1)), found("c1", content)]
    answer = convert_cross_api(*messages)["contents"][2]["parts"][0]["functionResponse"]["response"]
    assert answer == {"output": expected}
    for form in ({"messages": messages}, json.dumps({"messages": messages}).encode()):
        there = segue.convert(form, source="openai-chat", target="gemini").body["contents"][2]["parts"]
        assert there == convert_cross_api(*messages)["contents"][2]["parts"]
        assert segue.convert(form, source="openai-chat", target="deepseek").body["messages"][2]["content"] == expected

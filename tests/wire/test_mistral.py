"""The dialect `mistral`: what differs from the plain chat wire."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Media, Message, Opaque, Origin, Text, Thinking, ToolCall, calls_of
from segue.canonical.pairing import pair
from segue.canonical.request import Options, Reply, ToolChoice
from segue.models import parse_model
from segue.wire import ids
from segue.wire.anthropic import WIRE as ANTHROPIC
from segue.wire.base import ApiError
from segue.wire.dialects.kimi import WIRE as KIMI
from segue.wire.dialects.mistral import WIRE as MISTRAL
from segue.wire.ids import IdMap, mistral_scheme, nine_character_hash
from segue.wire.openai_chat import WIRE as OPENAI_CHAT
from tests.bodies import chat
from tests.bodies.chat import assistant, call, result, system, user
from tests.bodies.chat import compatible_calls as assistant_calls
from tests.streams.rendering import stream_reply
from tests.wire.conversion import convert_body, convert_reply, render_client_reply

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
NINE = re.compile(r"[a-zA-Z0-9]{9}")
A = "abcdefgh1"
body_of = partial(chat.body, model="mistral-medium-latest")


def thinking(text: str = "hm", **more: Any) -> dict:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}


def text_part(text: str = "x") -> dict:
    return {"type": "text", "text": text}


SAME_API = {
    "a whole loop": body_of(
        system(),
        system("more"),
        user(),
        user("again"),
        assistant_calls(call(A), call("abcdefgh2", "list", {"path": "a"}), prefix=False),
        result("abcdefgh2"),
        result(A, name="f"),
        assistant("done"),
        user(),
        system("a word after the user's"),
        assistant("half", prefix=True),
        max_tokens=5,
        temperature=0,
        top_p=0.5,
        random_seed=3,
        safe_prompt=True,
        prompt_mode=None,
        tools=[TOOL],
        tool_choice="any",
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}},
        metadata={"k": 1},
    ),
    "thinking": body_of(
        system([text_part("think"), thinking("like this"), text_part("!")]),
        user(),
        assistant([thinking(closed=True, signature="c2ln"), text_part()]),
        user(),
        assistant_calls(call(A), content=[thinking()]),
        result(A),
        model="magistral-medium-2509",
    ),
    "parts": body_of(
        user(
            [
                text_part("see"),
                {"type": "image_url", "image_url": "https://x/y.png"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
                {"type": "document_url", "document_url": "https://x/y.pdf", "document_name": "y"},
                {"type": "input_audio", "input_audio": "UklGRg=="},
                {"type": "file", "file_id": "f1"},
                {"type": "reference", "reference_ids": [1]},
            ]
        )
    ),
    "system text at the end": body_of(user(), system()),
    "a model of one's own": body_of(user(), assistant([thinking(), text_part()]), user(), model="ft:acme"),
    "a picture in a result of the newest": body_of(
        user(),
        assistant_calls(call(A)),
        result(A, content=[text_part(), {"type": "image_url", "image_url": "https://x/y.png"}]),
        model="mistral-small-2603",
    ),
    "no tools": body_of(user(), tools=None),
    "an empty user": body_of(user("")),
    "only system text": body_of(system()),
    "a reply first": body_of(assistant(), user()),
}


@pytest.mark.parametrize("case", SAME_API)
def test_valid_body_is_unchanged_for_same_api(case: str) -> None:
    body = SAME_API[case]
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    assert json.dumps(made) == json.dumps(body)
    assert made["messages"] is body["messages"]


# ----------------------------------------------------------------------------------------------------------------- ids


def test_nine_characters_of_a_hash() -> None:
    assert nine_character_hash("hist_tool_a|0") == "N5A9s6ZMI"
    made = {nine_character_hash(f"hist_tool_{number}|0") for number in range(1000)}
    assert len(made) == 1000
    assert all(NINE.fullmatch(one) for one in made)


def _assigned(*raw_ids: str, provider: str = "openai") -> list[str]:
    calls = [ToolCall("f", {"n": n}, origin=Origin(provider, raw_id=raw)) for n, raw in enumerate(raw_ids)]
    (message,) = pair([Message("ai", tuple(calls))])
    ids = IdMap(mistral_scheme(), provider="mistral")
    ids.add_calls(calls_of(message), str)
    return [ids.render(block.id) for block in message.blocks if isinstance(block, ToolCall)]


def test_a_collision_counts_the_salt_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "nine_character_hash", lambda text: f"collide0{text.rsplit('|', 1)[1]}")
    assert _assigned("call_a", "call_b", "call_c") == ["collide00", "collide01", "collide02"]


def test_projected_id_avoids_an_existing_id() -> None:
    foreign = _assigned("call_a")[0]
    calls = [
        ToolCall("f", origin=Origin("mistral", raw_id=foreign)),
        ToolCall("f", {"n": 0}, origin=Origin("openai", raw_id="call_a")),
    ]
    (message,) = pair([Message("ai", tuple(calls))])
    ids = IdMap(mistral_scheme(), provider="mistral")
    ids.add_calls(calls_of(message), str)
    first, second = (ids.render(block.id) for block in message.blocks if isinstance(block, ToolCall))
    assert first == foreign
    assert second != foreign
    assert NINE.fullmatch(second)


def test_cross_api_ids_have_nine_characters_and_match() -> None:
    body = {
        "messages": [
            user(),
            assistant_calls(call("call_a"), call("call_b")),
            result("call_b", "B"),
            result("call_a", "A"),
        ],
        "tools": [TOOL],
    }
    made, _ = convert_body(body, OPENAI_CHAT, MISTRAL)
    first, second = (entry["id"] for entry in made["messages"][1]["tool_calls"])
    assert first != second
    assert NINE.fullmatch(first)
    assert made["messages"][2:] == [result(first, "A", name="f"), result(second, "B", name="f")]
    assert convert_body(body, OPENAI_CHAT, MISTRAL)[0] == made


def test_same_api_valid_id_stays_and_invalid_one_is_replaced() -> None:
    body = body_of(user(), assistant_calls(call(A), call("call_2")), result(A), result("call_2"))
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    first, second = (entry["id"] for entry in made["messages"][1]["tool_calls"])
    assert first == "abcdefgh1"
    assert NINE.fullmatch(second)
    assert made["messages"][3]["tool_call_id"] == second
    for lost in ("null", "", None):
        made, _ = convert_body(body_of(user(), assistant_calls(call(lost)), result(lost or "")), MISTRAL, MISTRAL)
        assert NINE.fullmatch(made["messages"][1]["tool_calls"][0]["id"])


def test_repeated_id_in_one_message_is_made_unique() -> None:
    body = body_of(user(), assistant_calls(call(A), call(A)), result(A, content="A"), result(A, content="B"))
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    first, second = (entry["id"] for entry in made["messages"][1]["tool_calls"])
    assert first == "abcdefgh1" != second
    assert [(m["tool_call_id"], m["content"]) for m in made["messages"][2:]] == [(first, "A"), (second, "B")]


def test_round_trip_through_other_wires() -> None:
    body = body_of(
        user(), assistant_calls(call(A), call("abcdefgh2", "list")), result(A, content="A"), result("abcdefgh2", "B")
    )
    for other in ("openai-chat", "anthropic", "kimi"):
        there = segue.convert(body, source="mistral", target=other)
        back = segue.convert(there.body, source=other, target="mistral")
        call_message, first, second = back.body["messages"][1:]
        assert [entry["id"] for entry in call_message["tool_calls"]] == [first["tool_call_id"], second["tool_call_id"]]
        assert (first["content"], second["content"]) == ("A", "B")


# --------------------------------------------------------------------------------------------------------- the sequence


def roles(body: dict) -> list[str]:
    return [message["role"] for message in body["messages"]]


@pytest.mark.parametrize("source", [OPENAI_CHAT, MISTRAL])
@pytest.mark.parametrize("model", ["mistral-large-2407", "mistral-large-2512", "mistral-small-latest"])
def test_bridge_between_a_result_and_user_text(source: Any, model: str) -> None:
    body = body_of(user(), assistant_calls(call(A)), result(A), user("and?"), model=model)
    made, report = convert_body(body, source, MISTRAL, model=model)
    assert roles(made) == ["user", "assistant", "tool", "assistant", "user"]
    assert made["messages"][3] == {"role": "assistant", "content": "[continued]"}
    assert report.findings_of("inserted")
    assert convert_body(made, MISTRAL, MISTRAL)[0] == made


def test_system_text_after_a_reply_or_a_result_becomes_user() -> None:
    body = body_of(
        user(), assistant_calls(call(A)), result(A), system("a"), assistant(), system("b"), system("c"), user()
    )
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    assert roles(made)[3:] == ["assistant", "user", "assistant", "user", "system", "user"]
    assert made["messages"][4] == user("[system] a")
    assert made["messages"][6] == user("[system] b")
    assert made["messages"][7] == system("c")


def test_system_text_after_a_dropped_reply() -> None:
    body = body_of(user(), assistant(), user([]), system("late"))
    assert roles(convert_body(body, MISTRAL, MISTRAL)[0]) == ["user", "assistant", "user"]


@pytest.mark.parametrize("ending", [assistant(), assistant("half", prefix=False), assistant("half", prefix="yes")])
def test_final_reply_is_followed_by_a_user_message(ending: dict) -> None:
    made, _ = convert_body(body_of(user(), ending), MISTRAL, MISTRAL)
    assert roles(made) == ["user", "assistant", "user"]


def test_empty_request_is_rejected() -> None:
    assert convert_body(body_of(), MISTRAL, MISTRAL)[0]["messages"] == [user("Continue.")]


def test_prefix_flag_only_on_the_last_message() -> None:
    body = body_of(user(), assistant("a", prefix=True), user(), assistant("b", prefix=True))
    made, report = convert_body(body, MISTRAL, MISTRAL)
    assert made["messages"] == [user(), assistant("a"), user(), assistant("b", prefix=True)]
    assert report.findings_of("adjusted")
    chat, report = convert_body(body, MISTRAL, OPENAI_CHAT)
    assert "prefix" not in json.dumps(chat)


def test_rewritten_prefill_keeps_its_prefix_flag() -> None:
    body = body_of(user(), assistant("b", prefix=True, reasoning_content="hm", note=1))
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    assert made["messages"][1] == assistant([thinking(), text_part("b")], prefix=True)


def test_leading_calls_get_a_user_message_before_them() -> None:
    made, _ = convert_body(body_of(assistant_calls(call(A)), result(A)), MISTRAL, MISTRAL)
    assert roles(made) == ["user", "assistant", "tool"]
    made, _ = convert_body(body_of(system(), assistant_calls(call(A)), result(A)), MISTRAL, MISTRAL)
    assert roles(made) == ["system", "assistant", "tool"]


@pytest.mark.parametrize(("model", "parted"), [("open-mixtral-8x22b", True), ("mistral-large-2411", False)])
def test_text_and_calls_are_split_for_the_oldest_models(model: str, parted: bool) -> None:
    body = body_of(user(), assistant_calls(call(A), content="I look."), result(A), model=model)
    for source in (MISTRAL, OPENAI_CHAT):
        made, report = convert_body(body, source, MISTRAL, model=model)
        assert roles(made) == ["user", *["assistant"] * (2 if parted else 1), "tool"]
        assert bool(report.findings_of("moved")) is parted
    if parted:
        assert made["messages"][1] == assistant("I look.")
        assert made["messages"][2]["content"] is None
    empty = body_of(user(), assistant_calls(call(A), content=[text_part("")]), result(A), model=model)
    assert len(convert_body(empty, MISTRAL, MISTRAL)[0]["messages"]) == 3


def test_an_empty_reply_is_left_out() -> None:
    for empty in ("", None, []):
        made, _ = convert_body(body_of(user(), assistant(empty), user()), MISTRAL, MISTRAL)
        assert roles(made) == ["user", "user"]


def test_missing_and_surplus_results() -> None:
    body = body_of(
        user(), assistant_calls(call(A), call("abcdefgh2")), result(A), result(A), result("nobody123"), user()
    )
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    assert roles(made) == ["user", "assistant", "tool", "tool", "assistant", "user", "user"]
    assert [m["tool_call_id"] for m in made["messages"][2:4]] == ["abcdefgh1", "abcdefgh2"]


# ----------------------------------------------------------------------------------------------------- what is in them


def test_thinking_is_read_from_the_parts_of_a_reply() -> None:
    body = body_of(user(), assistant([thinking("a"), {"type": "thinking", "thinking": "b"}, text_part()]))
    request = MISTRAL.parse_request(body)
    first, second, text = request.messages[1].blocks
    assert isinstance(first, Thinking)
    assert isinstance(second, Thinking)
    assert (first.text, second.text, first.origin.provider) == ("a", "b", "mistral")
    assert isinstance(text, Text)
    odd = MISTRAL.parse_request(body_of(assistant([{"type": "thinking", "thinking": 3}])))
    assert isinstance(odd.messages[0].blocks[0], Opaque)


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("magistral-medium-latest", True),
        ("mistral-small-latest", True),
        ("mistral-medium-3-5", True),
        ("mistral-large-4-0", True),
        ("mistral-large-2512", False),
        ("mistral-large-latest", False),
        ("devstral-2512", False),
        ("open-mistral-7b", False),
    ],
)
def test_thinking_goes_back_to_models_that_think(model: str, kept: bool) -> None:
    body = body_of(user(), assistant([thinking(), text_part()]), user(), model="magistral-medium-2509")
    made, report = convert_body(body, MISTRAL, MISTRAL, model=model)
    assert made["messages"][1]["content"] == (body["messages"][1]["content"] if kept else [text_part()])
    assert bool(report.findings_of("reasoning")) is not kept


def test_thinking_of_other_providers_is_dropped_or_becomes_text() -> None:
    body = {"messages": [user(), assistant(reasoning_content="hm"), user()]}
    assert "hm" not in json.dumps(convert_body(body, KIMI, MISTRAL)[0])
    made, _ = convert_body(body, KIMI, MISTRAL, reasoning="text")
    assert made["messages"][1]["content"] == [text_part("[reasoning] hm"), text_part("a")]


def test_thinking_is_converted_cross_api() -> None:
    body = body_of(user(), assistant([thinking(), text_part()]), user())
    made, _ = convert_body(body, MISTRAL, ANTHROPIC, reasoning="text")
    assert "[reasoning] hm" in json.dumps(made)
    assert "hm" not in json.dumps(convert_body(body, MISTRAL, ANTHROPIC)[0])


def test_parts_are_read() -> None:
    request = MISTRAL.parse_request(SAME_API["parts"])
    text, first, second, document, audio, file, reference = request.messages[0].blocks
    assert isinstance(text, Text)
    assert isinstance(first, Media)
    assert isinstance(second, Media)
    assert first.url == second.url == "https://x/y.png"
    assert isinstance(document, Media)
    assert (document.kind, document.url, document.name) == ("document", "https://x/y.pdf", "y")
    assert isinstance(audio, Media)
    assert (audio.kind, audio.data) == ("audio", "UklGRg==")
    assert isinstance(file, Media)
    assert file.file_id == "f1"
    assert isinstance(reference, Opaque)


def test_cross_api_media() -> None:
    content = [
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ]
    picture, document, sound = convert_body({"messages": [user(content)]}, OPENAI_CHAT, MISTRAL)[0]["messages"][0][
        "content"
    ]
    assert picture["image_url"] == {"url": "https://x/y.png"}
    assert document == {
        "type": "document_url",
        "document_url": "data:application/pdf;base64,AA==",
        "document_name": "a.pdf",
    }
    assert sound == text_part("[audio not supported here]")
    made, _ = convert_body({"messages": [user(content)]}, OPENAI_CHAT, MISTRAL, model="voxtral-small-2507")
    assert made["messages"][0]["content"][2] == {"type": "input_audio", "input_audio": "UklGRg=="}


def test_unsupported_parts_become_text() -> None:
    picture = {"type": "image_url", "image_url": "https://x/y.png"}
    odd = {"type": "video_url", "video_url": {"url": "https://x/y.mp4"}, "x": 1}
    body = body_of(
        user([text_part(), odd, thinking()]), assistant([text_part(), picture]), user([picture]), system([odd]), user()
    )
    made, report = convert_body(body, MISTRAL, MISTRAL)
    first, reply, second, later, _ = (message["content"] for message in made["messages"])
    assert first == [
        text_part(),
        text_part("[video not supported here] https://x/y.mp4"),
        text_part("[thinking not supported here] hm"),
    ]
    assert reply == [text_part(), text_part("[image not supported here] https://x/y.png")]
    assert second == [picture]
    assert later == [text_part("[video not supported here] https://x/y.mp4")]
    assert report.findings_of("text")
    assert convert_body(made, MISTRAL, MISTRAL)[0] == made


def test_results_are_text_before_the_newest_generation() -> None:
    picture = {"type": "image_url", "image_url": "https://x/y.png"}
    body = body_of(
        user(), assistant_calls(call(A)), result(A, content=[text_part(), picture]), model="mistral-large-2512"
    )
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    assert roles(made) == ["user", "assistant", "tool", "assistant", "user"]
    assert "image_url" not in json.dumps(made["messages"][2])


@pytest.mark.parametrize("arguments", ["{}", '{"a": 1}', {"a": 1}, {}, "{broken"])
def test_arguments_as_text_or_object(arguments: Any) -> None:
    body = body_of(user(), assistant_calls(call(A, arguments=arguments)), result(A))
    assert convert_body(body, MISTRAL, MISTRAL)[0] == body
    made, _ = convert_body(body, MISTRAL, OPENAI_CHAT)
    assert isinstance(made["messages"][1]["tool_calls"][0]["function"]["arguments"], str)


def test_names_are_projected_consistently() -> None:
    tool = {"type": "function", "function": {"name": "a.b", "parameters": {}}}
    body = body_of(
        user(), assistant_calls(call(A, name="a.b")), result(A, name="a.b"), tools=[tool], tool_choice="auto"
    )
    made, _ = convert_body(body, MISTRAL, MISTRAL)
    spelled = made["tools"][0]["function"]["name"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", spelled)
    assert made["messages"][1]["tool_calls"][0]["function"]["name"] == spelled == made["messages"][2]["name"]


# ----------------------------------------------------------------------------------------------------- keys and options


def test_unknown_keys_are_dropped_for_same_api() -> None:
    entry = {**call(A), "extra": 1}
    entry["function"] = {**entry["function"], "parsed_arguments": {}}
    tool = {"type": "function", "function": {"name": "f", "x": 1}}
    body = body_of(
        {"role": "user", "content": [{**text_part(), "cache_control": {}}], "name": "bob"},
        {"role": "assistant", "content": None, "tool_calls": [entry], "refusal": None, "note": 2},
        {**result(A), "status": "ok"},
        stream_options={"include_usage": True},
        max_completion_tokens=7,
        tools=[tool],
        seed=1,
    )
    made, report = convert_body(body, MISTRAL, MISTRAL)
    assert made == {
        "model": "mistral-medium-latest",
        "messages": [user([text_part()]), {"role": "assistant", "content": None, "tool_calls": [call(A)]}, result(A)],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "max_tokens": 7,
    }
    dropped = {finding.subject for finding in report.findings_of("dropped")}
    assert {"cache_control", "name", "note", "status", "stream_options", "extra"} <= dropped
    assert "refusal" not in dropped


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "thing"},
        {"type": "object", "properties": 3},
        {"type": "object", "properties": {"a": {"type": []}}},
        {"type": "object", "properties": {"a": {"anyOf": []}}},
        {"type": "object", "required": ["a", "a"]},
        {"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}},
        {"type": "object", "properties": {"a": {"items": [{"minLength": -1}]}}},
    ],
)
def test_invalid_schema_is_repaired(parameters: Any) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    for source in (MISTRAL, OPENAI_CHAT):
        made, report = convert_body(body_of(user(), tools=[tool]), source, MISTRAL)
        assert made["tools"][0]["function"]["parameters"]["type"] == "object"
        assert report.findings_of("tools") or source is OPENAI_CHAT
        assert segue.check(made, "mistral")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"$defs": {"a": 3}, "type": ["object", "null"], "properties": {"a": True, "b": {"$ref": "#/$defs/a"}}},
        {"type": "object", "dependencies": {"a": ["b"], "c": {"minItems": 1.0}}, "if": {"not": {}}, "x-note": 1},
    ],
)
def test_a_schema_stays_as_it_is(parameters: Any) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    body = body_of(user(), tools=[tool])
    assert convert_body(body, MISTRAL, MISTRAL)[0] == body
    assert segue.check(body, "mistral")


def test_lone_reply_gets_a_user_message() -> None:
    made, _ = convert_body(body_of(assistant("half", prefix=True)), MISTRAL, MISTRAL)
    assert made["messages"] == [user("[continued]"), assistant("half", prefix=True)]


def test_no_empty_list_of_tools() -> None:
    assert "tools" not in convert_body(body_of(user(), tools=[]), MISTRAL, MISTRAL)[0]


def test_cross_api_options() -> None:
    body = {
        "messages": [user()],
        "tools": [TOOL],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_completion_tokens": 9,
        "temperature": 1.9,
        "seed": 3,
        "user": "u",
        "response_format": {"type": "json_object"},
        "stream_options": {"include_usage": True},
    }
    made, report = convert_body(body, OPENAI_CHAT, MISTRAL)
    assert {key: made[key] for key in made if key not in ("messages", "tools")} == {
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_tokens": 9,
        "temperature": 1.5,
        "random_seed": 3,
        "response_format": {"type": "json_object"},
    }
    assert {"temperature", "user"} == {finding.subject for finding in report.findings_of("adjusted")}
    anthropic = {"messages": [user()], "max_tokens": 5, "top_k": 3}
    assert convert_body(anthropic, ANTHROPIC, MISTRAL)[0]["top_k"] == 3


def test_options_are_read() -> None:
    body = body_of(user(), tool_choice="any", random_seed=3, top_k=4, max_tokens=5)
    expected = Options(tool_choice=ToolChoice("required"), seed=3, top_k=4, max_tokens=5)
    assert MISTRAL.parse_request(body).options == expected
    made, _ = convert_body(body, MISTRAL, OPENAI_CHAT)
    assert made["seed"] == 3


def test_greedy_sampling_drops_top_p() -> None:
    made, _ = convert_body({"messages": [user()], "temperature": 0, "top_p": 0.9}, OPENAI_CHAT, MISTRAL)
    assert (made["temperature"], "top_p" in made) == (0, False)


@pytest.mark.parametrize(
    ("effort", "model", "expected"),
    [
        ("high", "mistral-small-2603", "high"),
        ("minimal", "mistral-small-2603", "none"),
        ("low", "mistral-small-2603", "none"),
        ("medium", "mistral-small-2603", "high"),
        ("minimal", "mistral-large-4", "low"),
        ("minimal", "magistral-medium-latest", None),
        ("none", "mistral-small-2603", "none"),
        ("medium", "mistral-large-4", "medium"),
        ("max", "mistral-large-4", "high"),
        ("high", "mistral-large-2512", None),
        ("none", "mistral-large-2512", None),
        ("high", "magistral-medium-latest", None),
        ("none", "magistral-medium-latest", None),
        ("high", None, "high"),
    ],
)
def test_effort_by_model(effort: str, model: str | None, expected: str | None) -> None:
    made, report = convert_body({"messages": [user()], "reasoning_effort": effort}, OPENAI_CHAT, MISTRAL, model=model)
    assert made.get("reasoning_effort") == expected
    silent = (effort, expected) in (("none", "none"), ("none", None), ("high", "high"), ("medium", "medium"))
    silent = silent or (effort, model) == ("high", "magistral-medium-latest")
    silent = silent and (effort, model) != ("none", "magistral-medium-latest")
    assert bool(report.findings_of("adjusted")) is not silent


@pytest.mark.parametrize(
    ("budget", "large", "medium"),
    [
        (100, "none", "none"),
        (1024, "low", "none"),
        (2048, "low", "none"),
        (6000, "medium", "none"),
        (9000, "medium", "high"),
        (12_288, "high", "high"),
        (60_000, "high", "high"),
    ],
)
def test_a_budget_becomes_the_nearest_effort(budget: int, large: str, medium: str) -> None:
    body = {"messages": [user()], "max_tokens": 90_000, "thinking": {"type": "enabled", "budget_tokens": budget}}
    for model, expected in (("mistral-large-4", large), ("mistral-medium-3-5", medium)):
        made, report = convert_body(body, ANTHROPIC, MISTRAL, model=model)
        assert made["reasoning_effort"] == expected
        assert [finding.subject for finding in report.findings_of("adjusted")] == ["reasoning"]


def test_constraints_by_model() -> None:
    def row(name: str) -> Any:
        return MISTRAL.constraints(parse_model(name))

    assert [row(n).calls_without_text for n in ("open-mixtral-8x22b", "mistral-small-2501", "mistral-large")] == [
        1,
        0,
        0,
    ]
    assert [row(n).text_only_results for n in ("mistral-large-2512", "mistral-small-2603")] == [True, False]
    assert not any(
        MISTRAL.id_scheme(parse_model(name)).accepts("call_1") for name in ("devstral-2512", "devstral-latest")
    )
    pictures = {
        name: "image" in row(name).media_in_user for name in ("pixtral-12b-2409", "codestral-2508", "ministral-8b")
    }
    assert pictures == {"pixtral-12b-2409": True, "codestral-2508": False, "ministral-8b": True}


# ------------------------------------------------------------------------------------------------------ replies, errors


def reply_of(message: dict, finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, "created": 0}


def test_a_reply_with_thinking() -> None:
    body = reply_of(assistant([thinking(), text_part("so")]))
    reply = MISTRAL.parse_reply(body)
    assert (reply.thinking, reply.text, reply.finish) == ("hm", "so", "stop")
    assert convert_reply(body, MISTRAL, MISTRAL)[0] is body
    chat, _ = convert_reply(body, MISTRAL, OPENAI_CHAT)
    assert chat["choices"][0]["message"]["reasoning_content"] == "hm"
    assert chat["choices"][0]["message"]["content"] == "so"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("tool_calls", "tool_calls"), ("model_length", "length"), ("error", "error"), ("stop", "stop")],
)
def test_stop_reasons(reason: str, finish: str) -> None:
    message = assistant_calls({**call(A), "index": 0}) if reason == "tool_calls" else assistant()
    reply = MISTRAL.parse_reply(reply_of(message, reason))
    assert reply.finish == finish
    if reason == "tool_calls":
        assert reply.calls[0].origin.raw_id == "abcdefgh1"


def test_a_reply_for_a_client_of_mistral() -> None:
    made, _ = render_client_reply(
        Reply((Thinking("hm"), Text("so"), ToolCall("f", origin=Origin("openai", raw_id="call_1")))), MISTRAL
    )
    message = made["choices"][0]["message"]
    assert message["content"] == [thinking(), text_part("so")]
    assert NINE.fullmatch(message["tool_calls"][0]["id"])
    assert render_client_reply(Reply((Text("a"), Text("b"))), MISTRAL)[0]["choices"][0]["message"]["content"] == "ab"
    broken, _ = render_client_reply(Reply((Text("a"),), finish="error"), MISTRAL)
    assert broken["choices"][0]["finish_reason"] == "error"


FOUND = {"type": "extra_forbidden", "loc": ["body", "messages", 2, "assistant", "x"], "msg": "Extra inputs", "input": 1}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (
            400,
            {"object": "error", "message": "Unexpected role", "type": "invalid_request_message_order", "code": 3230},
            ApiError(400, "Unexpected role", "invalid_request_message_order", "3230"),
        ),
        (422, {"detail": [FOUND, FOUND]}, ApiError(422, "; ".join(["messages.2.assistant.x: Extra inputs"] * 2))),
        (
            422,
            {"object": "Error", "message": {"detail": [FOUND]}, "type": "invalid_request_error", "code": None},
            ApiError(422, "messages.2.assistant.x: Extra inputs"),
        ),
        (422, {"detail": [{"loc": 3}, "odd", None]}, ApiError(422, '{"loc":3}; odd; ')),
        (500, {"message": {}}, ApiError(500, "the provider gave no reason", "server_error")),
        (404, {"detail": "Not Found"}, ApiError(404, "Not Found", "not_found_error")),
    ],
)
def test_errors_are_read(status: int, body: dict, expected: ApiError) -> None:
    assert MISTRAL.parse_error(status, body) == expected


def test_errors_are_written() -> None:
    error = ApiError(400, "no", "invalid_request_message_order", "3230")
    made = MISTRAL.render_error(error)
    assert made == {
        "object": "error",
        "message": "no",
        "type": "invalid_request_message_order",
        "param": None,
        "code": "3230",
    }
    assert MISTRAL.parse_error(400, made) == error


@pytest.mark.parametrize("body", [{"object": "error", "message": "no"}, {"detail": [FOUND]}])
def test_error_body_is_rejected_as_reply(body: dict) -> None:
    converted = segue.convert({"messages": [user()]}, source="openai-chat", target="mistral")
    with pytest.raises(segue.RemoteProtocolError, match="answered with an error"):
        converted.reply(body)


def test_body_is_detected_by_model() -> None:
    assert segue.convert(body_of(user(), assistant_calls(call(A)), result(A)), target="openai-chat").source == "mistral"
    assert segue.convert(body_of(user(), model="devstral-2512"), target="openai-chat").source == "mistral"


def test_a_stream_has_all_calls_of_the_reply_in_one_delta():
    """MIS-16: clients number the calls by their place in the delta."""
    calls = [ToolCall("f", {"n": n}, f"hist_tool_{n}", origin=Origin("openai", raw_id=f"call_{n}")) for n in range(2)]
    reply = Reply((Text("x"), *calls), "tool_calls", None, "reply", "a-model")
    payloads = [json.loads(line[6:]) for line in stream_reply("mistral", reply, 3).splitlines() if line[6:7] == b"{"]
    (delta,) = [found for payload in payloads if (found := payload["choices"][0]["delta"].get("tool_calls"))]
    assert [(entry["index"], json.loads(entry["function"]["arguments"])) for entry in delta] == [
        (0, {"n": 0}),
        (1, {"n": 1}),
    ]


def test_empty_lists_untyped_declarations_and_the_prefill_flag_go_home() -> None:
    """MIS-17"""
    called = {"id": "FI5qQGzDE", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": "mistral-large-latest",
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [], "prefix": False, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "FI5qQGzDE", "content": "r"},
            {"role": "assistant", "content": "a", "tool_calls": [], "prefix": False},
            {"role": "user", "content": "q"},
        ],
        "tools": [{"function": {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}}],
    }
    made = segue.convert(body, source="mistral", target="mistral")
    assert made.body == body
    assert not made.report.findings

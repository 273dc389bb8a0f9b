"""The wire `openai-responses`: items, requests, replies, parsed and rendered. The vendor's types validate it."""

from __future__ import annotations

import copy
import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response

import segue
from segue.canonical.blocks import Code, Media, Message, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.codec import dumps, loads
from segue.canonical.pairing import pair
from segue.canonical.request import Options, Reasoning, Reply, Request, ResponseFormat, Tool, ToolChoice, Usage
from segue.conversion.convert import render_for
from segue.errors import InputError
from segue.models import parse_model
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.wire.base import ApiError
from segue.wire.detect_body import detect_source, find_contradicting_api
from segue.wire.openai_responses import WIRE
from tests.bodies.responses import assistant, reasoning, result, user
from tests.budget import examples
from tests.conversations.sdk import complaints
from tests.wire.bodies_responses import BODIES, SCHEMA, body, call, function
from tests.wire.conversion import render_client_reply

API = "openai-responses"
EVERY = BODIES["every item"]["input"]
everybody = pytest.mark.parametrize("given_body", BODIES.values(), ids=BODIES)


CLOSED = {**SCHEMA, "required": ["q"], "additionalProperties": False}


def convert_same_api(given_body: dict[str, Any], **policy: Any) -> Any:
    return segue.convert(given_body, source=API, target=API, **policy)


def convert_cross_api(given_body: dict[str, Any], target: str = "openai-chat", **policy: Any) -> Any:
    return segue.convert(given_body, source=API, target=target, **policy)


def render_cross_api(*messages: Message, model: str | None = None, **fields: Any) -> tuple[dict[str, Any], Report]:
    report = Report()
    request = Request(pair(messages), **fields)
    _, rendered = render_for(request, WIRE, report, Policy(), model=model)
    assert segue.check(rendered.body, API)
    assert complaints(rendered.body, API) == []
    return rendered.body, report


def parsed(*items: Any, **more: Any) -> Any:
    return WIRE.parse_request(body(*items, **more)).messages


def blocks(*items: Any, **more: Any) -> tuple[Any, ...]:
    (message,) = parsed(*items, **more)
    return message.blocks


# ---------------------------------------------------------------------------------------------------------------- home


@everybody
def test_valid_body_is_unchanged_for_same_api(given_body):
    assert segue.check(given_body, API), str(segue.check(given_body, API))
    before = copy.deepcopy(given_body)
    made = convert_same_api(given_body)
    assert json.dumps(made.body) == json.dumps(before)
    assert json.dumps(given_body) == json.dumps(before), "the input was changed"
    assert made.report.findings == []


@everybody
def test_unchanged_items_are_the_same_objects(given_body):
    request = WIRE.parse_request(given_body)
    _, rendered = render_for(request, WIRE, Report(), Policy(), model=request.model)
    if isinstance(given_body["input"], str):
        assert rendered.body["input"] is given_body["input"]
        return
    # Items with several parts are put together again; all others are not even copied.
    whole = [old for old in given_body["input"] if not isinstance(old.get("content"), list) or len(old["content"]) < 2]
    assert all(any(new is old for new in rendered.body["input"]) for old in whole)


@everybody
def test_same_api_through_the_stored_form(given_body):
    request = WIRE.parse_request(given_body)
    _, rendered = render_for(loads(dumps(request))[0], WIRE, Report(), Policy(), model=request.model)
    assert json.dumps(rendered.body) == json.dumps(given_body)


@everybody
@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "kimi"])
def test_every_body_is_valid_after_a_cross_api_round_trip(given_body, target):
    there = convert_cross_api(given_body, target)
    assert segue.check(there.body, target), str(segue.check(there.body, target))
    assert complaints(there.body, target) == []
    back = segue.convert(there.body, source=target, target=API)
    assert segue.check(back.body, API)
    assert complaints(back.body, API) == []
    assert json.dumps(convert_same_api(back.body).body) == json.dumps(back.body)


def test_only_ids_and_names_are_merged_into_the_original():
    long = "x" * 70
    given_body = body(
        user(),
        call(long, name="read it", id="fc_1", status="completed", unknown=1),
        result(long, "done", id="fco_1", unknown=2),
        tools=[function("read it", defer_loading=True)],
        tool_choice={"type": "function", "name": "read it"},
    )
    made = convert_same_api(given_body).body
    _, item, answer = made["input"]
    assert item == {**given_body["input"][1], "call_id": item["call_id"], "name": made["tools"][0]["name"]}
    assert answer == {**given_body["input"][2], "call_id": item["call_id"]}
    assert item["call_id"].startswith("call_")
    assert made["tools"] == [{**given_body["tools"][0], "name": item["name"]}]
    assert made["tool_choice"] == {"type": "function", "name": item["name"]}
    assert item["name"].startswith("read_it_")


def test_names_are_projected_wherever_they_are_declared():
    tools = [function("a b"), {"type": "custom", "name": "c d"}]
    given_body = body(
        {"type": "additional_tools", "role": "developer", "tools": tools},
        user(),
        call(name="a b"),
        result(),
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "a b"}]},
        tools=[function("e")],
    )
    made = convert_same_api(given_body).body
    names = [tool["name"] for tool in made["input"][0]["tools"]]
    # Whether names of free-text tools are looked at is not known; such stay.
    assert [name[:4] for name in names] == ["a_b_", "c d"]
    assert made["input"][2]["name"] == names[0] == made["tool_choice"]["tools"][0]["name"]
    assert made["tools"] == given_body["tools"]


# -------------------------------------------------------------------------------------------------------------- items


def test_string_input_is_user_text():
    (message,) = WIRE.parse_request({"input": "hello"}).messages
    assert (message.speaker, message.blocks) == ("human", (Text("hello"),))


@pytest.mark.parametrize(("role", "speaker"), [("user", "human"), ("system", "system"), ("developer", "system")])
@pytest.mark.parametrize("content", ["words", [{"type": "input_text", "text": "words"}]])
def test_user_side_messages(role, speaker, content):
    for item in ({"role": role, "content": content}, {"type": "message", "role": role, "content": content}):
        (message,) = parsed(item)
        assert message.speaker == speaker
        assert [block.text for block in message.blocks] == ["words"]


def test_consecutive_model_items_are_one_reply():
    messages = parsed(
        *(user(), reasoning(), assistant("a"), call(id="fc_1"), call("call_2")),
        *(result(), result("call_2"), assistant("b", id="msg_2")),
    )
    assert [message.speaker for message in messages] == ["human", "ai", "tool", "tool", "ai"]
    assert [type(block) for block in messages[1].blocks] == [Thinking, Text, ToolCall, ToolCall]
    first, second = messages[1].blocks[2:]
    assert messages[2].blocks[0].call_id == first.id
    assert messages[3].blocks[0].call_id == second.id
    assert messages[1].turn_key == messages[2].turn_key


def test_both_ids_stay_in_their_own_fields():
    (made,) = blocks(call("call_1", id="fc_1"))
    assert (made.origin.raw_id, made.origin.item_id, made.origin.identity) == ("call_1", "fc_1", "natural")
    assert made.origin.provider == "openai"
    assert made.name == "read"
    assert made.arguments == {"q": "a"}


def test_item_id_is_never_used_as_call_id():
    made = convert_same_api(body(user(), {**call(id="fc_1"), "call_id": None}, {**result(), "call_id": None})).body[
        "input"
    ]
    assert made[1]["call_id"] == made[2]["call_id"] != "fc_1"
    assert made[1]["id"] == "fc_1"
    chat = convert_cross_api(body(user(), {**call(id="fc_1"), "call_id": None}, {**result(), "call_id": None})).body
    assert chat["messages"][1]["tool_calls"][0]["id"].startswith("call_")


def test_parts_of_one_message_are_blocks_of_their_own():
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in "ab"]
    item = assistant("", content=[*parts, {"type": "refusal", "refusal": "no"}])
    made = blocks(item)
    assert [(block.text, block.refusal) for block in made] == [("a", False), ("b", False), ("no", True)]
    assert [block.native.fragment["content"] for block in made] == [[part] for part in item["content"]]
    assert convert_same_api(body(user(), item)).body["input"][1] == item


def test_equal_messages_are_not_merged():
    twins = [
        assistant("same", id=None),
        assistant("same", id=None),
        assistant("", content=[{"type": "output_text", "text": "a"}] * 2),
    ]
    del twins[0]["id"], twins[1]["id"]
    assert convert_same_api(body(user(), *twins)).body["input"][1:] == twins


def test_reasoning_is_thinking():
    item = reasoning(
        summary=[{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        content=[{"type": "reasoning_text", "text": "c"}],
    )
    thought, _ = blocks(item, assistant("x"))
    assert (thought.text, thought.encrypted, thought.signature) == ("a\n\nb\n\nc", "gAAA1", "rs_1")
    assert thought.origin == Origin("openai", None, None, "rs_1", "natural")


def test_pictures_files_and_sound():
    content = [
        {"type": "input_image", "detail": "low", "image_url": "https://x/y.png"},
        {"type": "input_image", "image_url": "data:image/gif;base64,R0lG"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        {"type": "input_file", "file_url": "https://x/y.pdf"},
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        {"type": "input_image"},
        {"type": "telepathy", "text": "hm"},
    ]
    made = blocks(user(content))
    assert [(b.kind, b.mime, b.data, b.url, b.file_id, b.name) for b in made if isinstance(b, Media)] == [
        ("image", None, None, "https://x/y.png", None, None),
        ("image", "image/gif", "R0lG", None, None, None),
        ("image", None, None, None, "file-1", None),
        ("document", "application/pdf", "JVBE", None, None, "a.pdf"),
        ("document", None, None, "https://x/y.pdf", None, None),
        ("audio", "audio/wav", "UklG", None, None, None),
    ]
    assert [(b.kind, b.text) for b in made if isinstance(b, Opaque)] == [("input_image", ""), ("telepathy", "hm")]


def test_outputs_are_text_parts_or_any_value():
    cases: list[tuple[Any, list[Any]]] = [
        ("plain", [Text]),
        ([{"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": "https://x"}], [Text, Media]),
        ([], []),
    ]
    for value, kinds in cases:
        response = parsed(call(), result(output=value))[1].blocks[0]
        assert [type(block) for block in response.content] == kinds
    response = parsed(call(), result(output={"a": 1}))[1].blocks[0]
    assert response.structured == {"a": 1}


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        (EVERY[13], "computer", {"action": {"type": "click", "button": "left", "x": 412, "y": 96}}),
        (EVERY[15], "local_shell", {"type": "exec", "command": ["ls", "-1"], "env": {"LANG": "C"}}),
        (EVERY[17], "shell", {"commands": ["uname -a", "df"], "timeout_ms": 20000}),
        (EVERY[18], "apply_patch", {"type": "delete_file", "path": "quay/old.py"}),
    ],
    ids=["computer", "local_shell", "shell", "apply_patch"],
)
def test_calls_with_a_type_of_their_own(item, name, arguments):
    (made,) = blocks(item)
    assert (made.kind, made.name, made.arguments) == ("function", name, arguments)
    assert made.origin.raw_id == item["call_id"]


def test_typed_pairs_become_calls_and_results_cross_api():
    chat = convert_cross_api(BODIES["every item"]).body
    calls = [call for message in chat["messages"] for call in message.get("tool_calls", ())]
    results = {message["tool_call_id"]: message["content"] for message in chat["messages"] if message["role"] == "tool"}
    rendered = {one["function"]["name"]: results[one["id"]] for one in calls if one["type"] == "function"}
    assert results["call_Ls1"] == rendered["local_shell"] == '{"stdout":"logs\\n"}'
    assert results["call_Ap2"] == rendered["apply_patch"] == "[error] no such file"
    assert results["call_Cu1"] == rendered["computer"] == "[image follows]"
    assert results["call_Sh1"] == "Linux\n\nno such file\n\n[exit code 1]"
    assert rendered["tides_next_high_water_ruxbprtu"].startswith("[error] {")
    assert rendered["file_search"] == "[run by the provider, output not disclosed]"


def test_typed_call_without_output_is_completed_in_its_type_where_possible():
    shell, patch, local, computer = EVERY[17], EVERY[18], EVERY[15], EVERY[13]
    made = convert_same_api(body(user(), shell, patch, local, computer)).body["input"]
    assert [item.get("type") for item in made] == [
        *(None, "shell_call", "apply_patch_call", "local_shell_call", "function_call"),
        *("shell_call_output", "apply_patch_call_output", "local_shell_call_output", "function_call_output"),
    ]
    assert made[1] == shell
    assert made[5]["output"][0]["stdout"] == made[6]["output"] == made[7]["output"] == made[8]["output"]
    assert made[6]["status"] == "failed"
    assert made[7]["id"] == made[7]["call_id"] == "call_Ls1"
    # A screenshot can't be made up: such a call goes as any other tool's.
    assert made[4] == {
        "type": "function_call",
        "call_id": "call_Cu1",
        "name": "computer",
        "arguments": '{"action":{"type":"click","button":"left","x":412,"y":96}}',
    }
    assert complaints(body(*made), API) == []


def test_free_text():
    item = {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "*** x"}
    (made,) = blocks(item)
    assert (made.kind, made.arguments) == ("custom", "*** x")
    broken = convert_same_api(body(user(), {**item, "input": {"a": 1}})).body["input"]
    assert broken[1] == {**item, "input": '{"a":1}'}
    # OAI-RESP-17
    assert broken[2]["type"] == "custom_tool_call_output"


def test_hosted_call_is_one_item_for_same_api_and_a_pair_cross_api():
    item = EVERY[2]
    made = blocks(item)
    assert [type(block) for block in made] == [ToolCall, ToolResponse]
    assert made[0].kind == "hosted"
    assert made[1].hosted
    assert made[0].origin.identity == "conflated"
    there = convert_cross_api(body(user(), item, assistant("so"))).body["messages"]
    assert [message["role"] for message in there] == ["user", "assistant", "tool", "assistant"]
    for policy, expected in (("text", 1), ("drop", 0)):
        text = json.dumps(convert_cross_api(body(user(), item, assistant("so")), hosted=policy).body)
        assert text.count("Reefers first") == expected


def test_api_instruction_items_are_not_messages():
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    out = convert_cross_api(body(user("a"), update, {"type": "compaction_trigger"}))
    assert out.body["messages"] == [{"role": "user", "content": "a"}]
    subjects = [finding.subject for finding in out.report.findings_of("dropped")]
    assert subjects == ["configuration_update", "compaction_trigger"]


def test_output_without_id_and_open_call_is_no_result():
    """The API accepts outputs without an id; one must not replace a result that follows."""
    update = {"type": "function_call_output", "name": "read", "output": "by the way"}
    given_body = body(user(), call(), update, result(output="the real one"))
    assert convert_same_api(given_body).body == given_body
    chat = convert_cross_api(given_body).body["messages"]
    assert chat[2] == {"role": "tool", "tool_call_id": "call_1", "content": "the real one"}
    assert chat[3] == {"role": "user", "content": "[function_call_output not supported here] read: by the way"}


def test_output_without_id_pairs_with_the_open_call():
    made = convert_same_api(body(user(), call(), {"type": "function_call_output", "output": "x"})).body["input"]
    assert made[2] == {"type": "function_call_output", "call_id": "call_1", "output": "x"}


# --------------------------------------------------------------------------------------------------------- namespaces

ASK = {"type": "custom", "name": "ask"}
CRM = {"type": "namespace", "name": "crm", "description": "d", "tools": [function("get"), ASK]}


def test_a_namespace_keeps_tools_of_one_name_apart():
    other = {**CRM, "name": "erp", "tools": [function("get")]}
    given_body = body(user(), tools=[CRM, other, function("get")])
    assert [tool.name for tool in WIRE.parse_request(given_body).tools] == ["crm::get", "crm::ask", "erp::get", "get"]
    names = [tool["name"] for tool in convert_cross_api(given_body, "anthropic").body["tools"]]
    assert len(set(names)) == 4
    assert [name.split("_")[0] for name in names] == ["crm", "crm", "erp", "get"]


def test_call_keeps_its_namespace_for_same_api_and_in_its_name_cross_api():
    # OAI-RESP-18
    given_body = body(user(), call(name="get", namespace="crm"), result(), tools=[CRM])
    assert convert_same_api(given_body).body == given_body
    there = convert_cross_api(given_body).body
    (chat_call,) = there["messages"][1]["tool_calls"]
    assert chat_call["function"]["name"] == there["tools"][0]["function"]["name"]
    assert chat_call["function"]["name"].startswith("crm__get_")


def test_reply_restores_the_namespace():
    given_body = body(user(), tools=[CRM])
    converted = convert_cross_api(given_body, "anthropic")
    get, ask = (tool["name"] for tool in converted.body["tools"])
    uses = [
        {"type": "tool_use", "id": "toolu_1", "name": get, "input": {"q": "x"}},
        {"type": "tool_use", "id": "toolu_2", "name": ask, "input": {"input": "free"}},
    ]
    reply = converted.reply(
        {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": uses}
    )
    Response.model_validate(reply)
    first, second = reply["output"]
    assert (first["type"], first["namespace"], first["name"]) == ("function_call", "crm", "get")
    assert (second["type"], second["namespace"], second["name"]) == ("custom_tool_call", "crm", "ask")
    assert second["input"] == "free"


def test_call_gets_the_namespace_of_its_tool():
    """OAI-RESP-18: a function's call without one is refused. A custom tool call may omit it."""
    item = {"type": "additional_tools", "role": "developer", "tools": [CRM]}
    free = {"type": "custom_tool_call", "call_id": "call_2", "name": "ask", "input": "x"}
    answer = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "y"}
    given_body = body(item, user(), call(name="get"), result(), free, answer)
    made = convert_same_api(given_body).body["input"]
    assert made == [item, user(), call(name="get", namespace="crm"), result(), free, answer]
    there = convert_cross_api(given_body).body
    assert there["messages"][1]["tool_calls"][0]["function"]["name"] == there["tools"][0]["function"]["name"]


def test_invalid_namespace_name_is_projected_with_its_calls():
    given_body = body(user(), call(name="get", namespace="crm x"), result(), tools=[{**CRM, "name": "crm x"}])
    made = convert_same_api(given_body).body
    assert made["input"][1] == call(name="get", namespace=made["tools"][0]["name"])
    assert made["tools"][0]["name"].startswith("crm_x_")
    assert segue.check(made, API)


def test_tools_in_items_count_as_declared_once():
    found = {"type": "tool_search_output", "execution": "server", "tools": [function("late"), function("read")]}
    call_item = {"type": "tool_search_call", "execution": "server", "arguments": {}}
    given_body = body(user(), call_item, found, tools=[function("read")])
    assert [tool["function"]["name"] for tool in convert_cross_api(given_body).body["tools"]] == ["read", "late"]
    assert convert_same_api(given_body).body == given_body


# -------------------------------------------------------------------------------------------------------- from abroad


def test_every_cross_api_block():
    made, report = render_cross_api(
        Message("system", (Text("one"),)),
        Message("system", (Text("two"),)),
        Message(
            "human", (Text("look"), Media("image", "image/gif", data="R0lG"), Media("document", url="https://x/a.pdf"))
        ),
        Message(
            "ai",
            (
                Thinking("secret", signature="sig", origin=Origin("anthropic")),
                Text("I look."),
                Text("Sorry.", refusal=True),
                Code("x = 1", "python"),
                ToolCall("read", {"q": 1}, origin=Origin("anthropic", raw_id="toolu_1")),
                ToolCall("patch", "free", kind="custom", origin=Origin("anthropic", raw_id="toolu_2")),
            ),
        ),
        Message(
            "tool",
            (
                ToolResponse(
                    content=(Text("a"), Media("image", url="https://x/y.png")),
                    origin=Origin("anthropic", raw_id="toolu_1"),
                ),
                ToolResponse(content=(Text("b"),), error=True, origin=Origin("anthropic", raw_id="toolu_2")),
                Text("and?"),
            ),
        ),
        Message("system", (Text("later"),)),
        Message("human", (Media("audio", "audio/wav", data="UklG"),)),
        system=(Text("zero"),),
    )
    ids = [item["call_id"] for item in made["input"] if "call_id" in item]
    assert ids == [ids[0], ids[1], ids[0], ids[1]]
    assert made == {
        "instructions": "zero\n\none\n\ntwo",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/gif;base64,R0lG"},
                    {"type": "input_file", "file_url": "https://x/a.pdf"},
                ],
            },
            {"role": "assistant", "content": "I look."},
            {"role": "assistant", "content": "Sorry."},
            {"role": "assistant", "content": "```python\nx = 1\n```"},
            {"type": "function_call", "call_id": ids[0], "name": "read", "arguments": '{"q":1}'},
            {"type": "custom_tool_call", "call_id": ids[1], "name": "patch", "input": "free"},
            {
                "type": "function_call_output",
                "call_id": ids[0],
                "output": [
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "detail": "auto", "image_url": "https://x/y.png"},
                ],
            },
            {"type": "custom_tool_call_output", "call_id": ids[1], "output": "[error] b"},
            {"role": "user", "content": "and?"},
            {"role": "developer", "content": "later"},
            {"role": "user", "content": "[audio not supported here]"},
        ],
    }
    assert {finding.kind for finding in report.findings} == {"reasoning", "text"}


def test_no_unneeded_state_is_requested():
    made, _ = render_cross_api(Message("human", (Text("hi"),)))
    assert set(made) == {"input"}


def test_files_and_fetched_content():
    pdf = Media("document", "application/pdf", data="JVBE")
    named = Media("document", "text/plain", data="aGk=", name="a.txt")
    held = Media("image", file_id="file-1")
    (item,) = render_cross_api(Message("human", (pdf, named, held)))[0]["input"]
    assert item["content"] == [
        {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="},
        {"type": "input_text", "text": "[image not supported here] file-1"},
    ]
    request = Request((Message("human", (Media("document", url="https://x/y"),)),))
    _, rendered = render_for(request, WIRE, Report(), Policy(), fetch=lambda _url: (b"hi", "text/plain"))
    assert rendered.body["input"][0]["content"][0]["file_data"] == "data:text/plain;base64,aGk="


def test_ids_of_the_same_provider_are_kept():
    chat = {
        "model": "gpt-4.1",
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_abc", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "call_abc", "content": "r"},
        ],
    }
    made = segue.convert(chat, target=API).body
    assert [item.get("call_id") for item in made["input"]] == [None, "call_abc", "call_abc"]
    assert convert_cross_api(made).body["messages"][1]["tool_calls"][0]["id"] == "call_abc"


def test_repeated_call_id_is_made_unique():
    """OAI-RESP-25: Chat pairs within a turn, this API across the whole input."""
    turn = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": "r"},
    ]
    made = segue.convert({"messages": [{"role": "user", "content": "go"}, *turn, *turn]}, target=API).body["input"]
    ids = [item["call_id"] for item in made if "call_id" in item]
    assert ids[0] == ids[1] != ids[2] == ids[3]


def test_a_result_that_is_too_long_is_cut():
    made = convert_same_api(body(user(), call(), result(output="x" * 10_485_761)))
    assert len(made.body["input"][2]["output"]) == 10_485_760
    assert [finding.kind for finding in made.report.findings] == ["dropped"]


def test_declarations():
    made, report = render_cross_api(
        Message("human", (Text("hi"),)),
        tools=(
            Tool("read", "reads", {"type": "object", "properties": {}}, strict=True),
            Tool("bare"),
            Tool("free", kind="custom", grammar={"syntax": "lark", "definition": "start: /a/"}),
            Tool("web_search", kind="hosted"),
        ),
    )
    empty = {"type": "object", "properties": {}}
    closed = {**empty, "required": [], "additionalProperties": False}
    assert made["tools"] == [
        {"type": "function", "name": "read", "description": "reads", "parameters": closed, "strict": True},
        {"type": "function", "name": "bare", "parameters": empty, "strict": False},
        {"type": "custom", "name": "free", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}},
    ]
    assert [finding.subject for finding in report.findings] == ["web_search", "read"]


def test_at_most_128_tools_those_in_use_first():
    tools = tuple(Tool(f"t{index}") for index in range(140))
    used = ToolCall("t139", {}, origin=Origin("x", raw_id="1"))
    made, report = render_cross_api(Message("ai", (used,)), tools=tools)
    assert len(made["tools"]) == 128
    assert made["tools"][-1]["name"] == "t139"
    assert len(report.findings_of("tools")) == 12


def test_grammars_are_the_same_on_both_apis():
    grammar = {"type": "grammar", "syntax": "regex", "definition": "a+"}
    chat = convert_cross_api(body(user(), tools=[{"type": "custom", "name": "g", "format": grammar}])).body
    inner = {"syntax": "regex", "definition": "a+"}
    assert chat["tools"][0]["custom"]["format"] == {"type": "grammar", "grammar": inner}
    assert segue.convert(chat, target=API).body["tools"][0]["format"] == grammar


def test_chat_declarations_are_parsed_and_repaired():
    nested = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    made = convert_same_api(body(user(), tools=[nested, {"name": "g", "parameters": SCHEMA}])).body["tools"]
    assert made == [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in ("f", "g")]


# ------------------------------------------------------------------------------------------------------------ options


def convert_options(
    model: str | None = None, tools: tuple[Tool, ...] = (), **options: Any
) -> tuple[dict[str, Any], list[Any]]:
    made, report = render_cross_api(
        Message("human", (Text("hi"),)), model=model, tools=tools, options=Options(**options)
    )
    return {key: value for key, value in made.items() if key not in ("input", "tools", "model")}, [
        finding.subject for finding in report.findings_of("adjusted")
    ]


READ = (Tool("read"), Tool("free", kind="custom"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_tokens": 100, "stream": True}, {"max_output_tokens": 100, "stream": True}),
        ({"user": "u"}, {"safety_identifier": "u"}),
        ({"temperature": 0.5, "top_p": 0.1}, {"temperature": 0.5, "top_p": 0.1}),
        ({"parallel": False}, {"parallel_tool_calls": False}),
        ({"tool_choice": ToolChoice("required")}, {"tool_choice": "required"}),
        ({"tool_choice": ToolChoice("tool", "read")}, {"tool_choice": {"type": "function", "name": "read"}}),
        ({"tool_choice": ToolChoice("tool", "free")}, {"tool_choice": {"type": "custom", "name": "free"}}),
        ({"reasoning": Reasoning(effort="high")}, {"reasoning": {"effort": "high"}}),
        ({"reasoning": Reasoning(enabled=False)}, {"reasoning": {"effort": "none"}}),
        ({"response_format": ResponseFormat("json")}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"response_format": ResponseFormat("schema", CLOSED, "my_name", True)},
            {"text": {"format": {"type": "json_schema", "name": "my_name", "schema": CLOSED, "strict": True}}},
        ),
    ],
)
def test_cross_api_options(options, expected):
    assert convert_options(tools=READ, **options) == (expected, [])


@pytest.mark.parametrize(
    ("model", "options", "expected", "adjusted"),
    [
        (None, {"top_k": 1, "stop": ("a",), "seed": 1}, {}, ["top_k", "stop", "seed"]),
        (None, {"presence_penalty": 1, "frequency_penalty": 1}, {}, ["presence_penalty", "frequency_penalty"]),
        (None, {"max_tokens": 5}, {"max_output_tokens": 16}, ["max_tokens"]),
        (None, {"reasoning": Reasoning(budget=9000)}, {"reasoning": {"effort": "high"}}, ["reasoning"]),
        (None, {"user": "x" * 65}, {"safety_identifier": sha256(b"x" * 65).hexdigest()}, ["user"]),
        (None, {"tool_choice": ToolChoice("tool", "gone")}, {}, ["tool_choice"]),
        (
            None,
            {"reasoning": Reasoning(enabled=True, adaptive=True)},
            {"reasoning": {"effort": "medium"}},
            ["reasoning"],
        ),
        ("gpt-5", {"reasoning": Reasoning(enabled=True, adaptive=True)}, {}, []),
        (None, {"response_format": ResponseFormat("schema")}, {}, ["response_format"]),
        ("gpt-5", {"temperature": 1, "top_p": 1}, {}, ["temperature", "top_p"]),
        ("gpt-5", {"reasoning": Reasoning(effort="xhigh")}, {"reasoning": {"effort": "high"}}, ["reasoning"]),
        ("gpt-5.1", {"reasoning": Reasoning(effort="minimal")}, {"reasoning": {"effort": "low"}}, ["reasoning"]),
        ("gpt-5.2", {"reasoning": Reasoning(effort="max")}, {"reasoning": {"effort": "xhigh"}}, ["reasoning"]),
        ("gpt-5", {"reasoning": Reasoning(enabled=False)}, {}, ["reasoning"]),
        ("gpt-4.1", {"reasoning": Reasoning(effort="low")}, {}, ["reasoning"]),
        ("gpt-5-chat-latest", {"reasoning": Reasoning(effort="low")}, {}, ["reasoning"]),
        ("gpt-5-chat-latest", {"temperature": 1}, {"temperature": 1}, []),
        ("o3", {"reasoning": Reasoning(effort="minimal")}, {"reasoning": {"effort": "low"}}, ["reasoning"]),
    ],
)
def test_options_that_are_adjusted(model, options, expected, adjusted):
    assert convert_options(model, READ, **options) == (expected, adjusted)


def test_no_choice_without_tools():
    assert convert_options(tool_choice=ToolChoice("auto"), parallel=True) == (
        {},
        ["tool_choice", "parallel_tool_calls"],
    )


def test_options_are_read():
    options = WIRE.parse_request(BODIES["every item"]).options
    assert options == Options(
        max_tokens=900,
        tool_choice=ToolChoice("required", allowed=("run_sql", "tides")),
        user="u1",
        vendor_options={"metadata": {"k": "v"}, "safety_identifier": "u1"},
    )
    options = WIRE.parse_request(BODIES["agent"]).options
    assert options == Options(
        tool_choice=ToolChoice("auto"),
        parallel=True,
        reasoning=Reasoning(effort="medium", visible=True),
        response_format=ResponseFormat("text"),
        stream=True,
        vendor_options={"store": False, "prompt_cache_key": "k", "verbosity": "low"},
    )
    assert WIRE.parse_request(body(reasoning={"effort": "none"})).options.reasoning == Reasoning(False, "none")
    odd = body(temperature=None, reasoning={}, text={"format": {"type": "x"}})
    assert WIRE.parse_request(odd).options == Options()
    assert convert_same_api(odd).body == odd


def test_responses_only_options_are_reported_cross_api():
    shared = {"prompt_cache_key", "text.verbosity", "store"}
    own = {"include", "reasoning.context", "phase", "annotations", "an_unknown_field"}
    findings = convert_cross_api(BODIES["agent"]).report.findings_of("dropped")
    assert {finding.subject for finding in findings} >= own
    assert shared.isdisjoint(finding.subject for finding in findings)
    findings = segue.convert(BODIES["agent"], source=API, target="anthropic").report.findings_of("dropped")
    assert {finding.subject for finding in findings} >= own | shared


def test_options_shared_with_chat_are_converted():
    rendered = {"service_tier": "flex", "prompt_cache_key": "k", "store": True, "metadata": {"a": "b"}, "user": "u"}
    made = convert_cross_api(body(user(), **rendered, safety_identifier="s", text={"verbosity": "low"})).body
    assert {key: value for key, value in made.items() if key not in ("messages", "model")} == {
        **rendered,
        "safety_identifier": "s",
        "verbosity": "low",
    }
    back = segue.convert(made, source="openai-chat", target=API).body
    assert {key: value for key, value in back.items() if key not in ("input", "model")} == {
        **rendered,
        "safety_identifier": "s",
        "text": {"verbosity": "low"},
    }


def test_items_rendered_as_text_are_not_reported_as_dropped():
    approval_request = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "s",
        "name": "f",
        "arguments": "{}",
    }
    given = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    out = convert_cross_api(body(user(), approval_request, given))
    assert out.body["messages"][-1]["content"] == "[answer to the request for approval] approved"
    assert not out.report.findings_of("dropped")


def test_metadata_is_sent_to_chat_only_when_stored():
    out = convert_cross_api(body(user(), metadata={"a": "b"}))
    assert "metadata" not in out.body
    assert [finding.subject for finding in out.report.findings_of("adjusted")] == ["metadata"]


def test_chat_compatible_server_gets_no_openai_only_options():
    part = {"type": "input_file", "file_id": "file-1"}
    out = segue.convert(body(user([part]), store=False, user="u"), source=API, target="openai-chat", profile="vllm")
    assert out.body["messages"][0]["content"] == "[document not supported here] file-1"
    assert out.body.get("user") == "u"
    assert "store" in [finding.subject for finding in out.report.findings_of("dropped")]


def test_tool_rendered_as_text_has_the_projected_name():
    picture = {"type": "input_image", "image_url": "https://x/y.png"}
    tools = [{"type": "namespace", "name": "web", "description": "w", "tools": [function("open")]}]
    lost = result("call_9", "lost", name="find", namespace="web")
    given_body = body(user(), call(name="open", namespace="web"), result(output=[picture]), lost, tools=tools)
    chat = convert_cross_api(given_body).body
    shown = chat["messages"][1]["tool_calls"][0]["function"]["name"]
    text = json.dumps([message["content"] for message in chat["messages"] if message["role"] == "user"])
    assert f"[image from the result of {shown}]" in text
    assert "[result of web.find;" in text
    assert "::" not in json.dumps(chat) + json.dumps(convert_same_api(given_body).body)


def test_codex_placeholder_for_a_killed_call_is_replaced_by_its_output():
    aborted = result("call_1", "aborted")
    for outputs in ((aborted, result("call_1", "A")), (result("call_1", "A"), aborted)):
        for out in (
            convert_same_api(body(user(), call(), *outputs)),
            convert_cross_api(body(user(), call(), *outputs)),
        ):
            assert "aborted" not in json.dumps(out.body)
            assert [finding.subject for finding in out.report.findings_of("dedupe")] == ["aborted"]
    alone = segue.convert(body(user(), call(), aborted), source=API, target="anthropic").body["messages"][-1]
    (answer,) = alone["content"]
    assert (answer["content"], "is_error" in answer) == ("aborted", False)


def test_other_model_of_same_api_gets_only_supported_options():
    given_body = body(user(), reasoning={"effort": "max", "summary": "auto"}, temperature=1, text={"verbosity": "low"})
    out = convert_same_api(given_body, model="gpt-5.1")
    assert out.body == {
        "model": "gpt-5.1",
        "input": [user()],
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"verbosity": "low"},
    }
    assert [finding.subject for finding in out.report.findings_of("adjusted")] == ["temperature", "reasoning"]


def test_instructions():
    assert WIRE.parse_request({"instructions": "be", "input": "x"}).system == (Text("be"),)
    listed = {
        "input": "x",
        "instructions": [{"role": "developer", "content": "a"}, user([{"type": "text", "text": "b"}])],
    }
    assert [text.text for text in WIRE.parse_request(listed).system] == ["a", "b"]
    # A list is how a reply repeats them; a request is refused with one.
    assert convert_same_api(listed).body == {"input": "x", "instructions": "a\n\nb"}
    assert convert_cross_api(listed, "anthropic").body["system"][0]["text"] == "a"


# ------------------------------------------------------------------------------------------------------------ replies


def response(*items: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    made = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5.6-terra",
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 18,
        },
        **more,
    }
    Response.model_validate(made)
    return made


def test_a_reply_is_read():
    reply = WIRE.parse_reply(response(reasoning(), assistant("hi"), call(id="fc_1", status="completed")))
    assert (reply.text, reply.finish, reply.id, reply.model) == ("hi", "tool_calls", "resp_1", "gpt-5.6-terra")
    assert reply.usage == Usage(11, 7, 3, 2, 5)
    assert [call.origin.raw_id for call in reply.calls] == ["call_1"]


@pytest.mark.parametrize(
    ("status", "details", "finish"),
    [
        ("completed", None, "stop"),
        ("incomplete", {"reason": "max_output_tokens"}, "length"),
        ("incomplete", {"reason": "content_filter"}, "filter"),
        ("incomplete", {"reason": "max_messages"}, "length"),
        ("incomplete", None, "length"),
        ("failed", None, "error"),
        ("cancelled", None, "error"),
        ("queued", None, "pause"),
    ],
)
def test_finish_reasons(status, details, finish):
    assert WIRE.parse_reply(response(assistant("hi"), status=status, incomplete_details=details)).finish == finish


def test_hosted_calls_in_a_reply_are_not_client_calls():
    answer = {**EVERY[19], "id": "sho_1", "status": "completed"}
    reply = WIRE.parse_reply(response(EVERY[17], answer))
    assert reply.finish == "stop"
    assert reply.calls[0].kind == "hosted"


def test_reply_is_unchanged_for_same_api():
    given_reply = response(reasoning(encrypted_content=None), assistant("hi"), call(id="fc_1"), store=False)
    given_reply["output"].append({"type": "from_the_future"})
    # A shorter id may be a constant.
    given_reply["id"] = "resp_68f1c0ffee68f1c0ffee"
    converted = convert_same_api(body(user(), tools=[function()]))
    assert converted.reply(given_reply) == given_reply
    assert converted.reply(json.dumps(given_reply).encode()) == given_reply


def test_a_repeated_id_in_a_reply_is_made_unique():
    given_body = body(user(), call(id="fc_1"), result(), tools=[function()])
    given_reply = response(call(id="fc_2", status="completed"), assistant("x", id="msg_2"))
    made = convert_same_api(given_body).reply(given_reply)
    assert made["output"][0] == {**given_reply["output"][0], "call_id": made["output"][0]["call_id"]}
    assert made["output"][0]["call_id"] != "call_1"
    assert made["output"][1] == given_reply["output"][1]


FROM_ABROAD = Reply(
    (
        Thinking("hm", signature="s", origin=Origin("anthropic")),
        Text("a"),
        Text("b"),
        Text("no", refusal=True),
        ToolCall("read", {"q": 1}, id="hist_tool_a", origin=Origin("anthropic", raw_id="toolu_1")),
        ToolCall("free", "text", id="hist_tool_b", kind="custom", origin=Origin("anthropic", raw_id="toolu_2")),
        ToolCall("search", {}, id="hist_tool_c", kind="hosted", origin=Origin("anthropic", raw_id="srvtoolu_1")),
        Code("1"),
    ),
    finish="tool_calls",
    usage=Usage(10, 5, 4, 3, 2),
    id="msg_x",
    model="claude-sonnet-5",
)


def test_cross_api_reply():
    made, report = render_client_reply(FROM_ABROAD, WIRE)
    Response.model_validate(made)
    assert Response.model_validate(made).output_text == "ab```\n1\n```"
    kinds = [item["type"] for item in made["output"]]
    assert kinds == ["reasoning", "message", "function_call", "custom_tool_call", "message"]
    assert [item["id"].split("_")[0] for item in made["output"]] == ["rs", "msg", "fc", "ctc", "msg"]
    assert made["id"].startswith("resp_")
    assert [part["type"] for part in made["output"][1]["content"]] == ["output_text", "output_text", "refusal"]
    assert made["status"] == "completed"
    assert made["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    }
    assert [finding.kind for finding in report.findings] == ["dropped"]
    assert render_client_reply(FROM_ABROAD, WIRE)[0] == made, "made-up ids must be the same each time"


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("filter", "incomplete", "content_filter"),
        ("pause", "incomplete", "max_output_tokens"),
        ("error", "failed", None),
    ],
)
def test_finish_reasons_to_a_client(finish, status, reason):
    made, _ = render_client_reply(Reply((Text("x"),), finish=finish), WIRE)
    Response.model_validate(made)
    assert made["status"] == status
    assert made["incomplete_details"] == (None if reason is None else {"reason": reason})


def test_ids_made_for_a_client_are_never_sent_to_the_provider():
    """The client sends back its reply: the provider has neither the ids nor the reasoning."""
    made, _ = render_client_reply(FROM_ABROAD, WIRE)
    items = [item for item in made["output"] if item["type"] != "custom_tool_call"]
    (function_call,) = [item for item in items if item["type"] == "function_call"]
    next_body = body(user(), *items, result(function_call["call_id"]))
    sent = convert_same_api(next_body).body["input"]
    assert "hist" not in json.dumps(sent)
    assert [item.get("type", "message") for item in sent] == [
        *["message"] * 4,
        *("function_call", "message", "function_call_output"),
    ]
    assert complaints(body(*sent), API) == []


def test_errors_parse_and_render():
    message = "No tool output found for function call call_1."
    given_error = {"error": {"message": message, "type": "x", "param": "input", "code": None}}
    error = WIRE.parse_error(400, given_error)
    assert error == ApiError(400, message, "x", None, "input")
    assert WIRE.render_error(error) == given_error
    assert WIRE.parse_error(429, {}).kind == "rate_limit_error"
    with pytest.raises(segue.RemoteProtocolError, match="boom"):
        convert_same_api(body(user())).reply(
            response(status="failed", error={"code": "server_error", "message": "boom"})
        )


@pytest.mark.parametrize("garbage", [{}, b"{", *({"output": bad} for bad in (1, [1], [{}], [{"type": 1}]))])
def test_invalid_reply_is_a_remote_protocol_error(garbage):
    with pytest.raises(segue.RemoteProtocolError):
        convert_same_api(body(user())).reply(garbage)


# ------------------------------------------------------------------------------------------------- detection, surface


def test_bodies_are_detected_by_shape():
    assert all(detect_source(one) == API for one in BODIES.values())
    assert detect_source({"input": []}) == API
    with pytest.raises(InputError, match="`messages`, `input` or `contents`"):
        detect_source({"model": "gpt-5"})
    chat = {"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}
    assert find_contradicting_api(chat, API) == "openai-chat"
    assert find_contradicting_api({"input": []}, "openai-chat") == API
    assert find_contradicting_api({"input": []}, "kimi") == API
    assert find_contradicting_api({"input": []}, API) is None
    with pytest.raises(InputError, match="a body of openai-responses"):
        segue.convert({"input": "x"}, source="anthropic", target="openai-chat")


def test_conversation_continues_on_this_api():
    chat = segue.Conversation(system="be", tools=[function(), {"type": "custom", "name": "free"}])
    chat.add_user([{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "https://x"}])
    reply = chat.add_reply(response(reasoning(), assistant("a"), call(id="fc_1"), call("call_2", id="fc_2")))
    assert reply.finish == "tool_calls"
    for asked_call in chat.pending:
        chat.add_result(asked_call, "done")
    made = chat.render(API, "gpt-5.6-terra").body
    assert [item.get("id") for item in made["input"]] == [None, "rs_1", "msg_1", "fc_1", "fc_2", None, None]
    # OAI-RESP-11: reasoning is bound to the organisation, not to the model.
    other = chat.render(API, "gpt-5").body
    assert other["input"] == made["input"]
    # A model that can't reason: neither the reasoning nor the ids of items generated with it.
    other = chat.render(API, "gpt-4.1").body
    assert [item.get("id") for item in other["input"]] == [None] * 6
    assert segue.check(chat.render("anthropic").body, "anthropic")
    assert segue.Conversation.load(chat.dump()).render(API, "gpt-5.6-terra").body == made


def test_registry_row():
    (row,) = [row for row in segue.formats() if row.name == API]
    assert (row.provider, row.tool_format, row.default_model) == ("openai", "openai", "gpt-5.6-terra")
    with pytest.raises(InputError, match="it accepts openai"):
        convert_same_api(body(user()), tool_format="kimi")
    assert convert_same_api(body(user()), tool_format="openai").body == body(user())


# --------------------------------------------------------------------------------------------------------------- fuzz


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ({}, "input"),
        ({"input": 7}, "input"),
        ({"input": [7]}, "input[0]"),
        ({"input": [{}]}, "input[0].type"),
        ({"input": [user(), {"type": 7}]}, "input[1].type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": 7, "content": "x"}]}, "input[0].role"),
        ({"input": [user(7)]}, "input[0].content"),
        ({"input": [user([7])]}, "input[0].content[0]"),
        ({"input": [user([{"type": "input_text"}])]}, "input[0].content[0].text"),
        ({"input": [assistant("", content=[{"type": "refusal"}])]}, "input[0].content[0].refusal"),
        ({"input": [assistant("", content={})]}, "input[0].content"),
        ({"input": [{"role": "assistant", "content": "x", "tool_calls": [{}]}]}, "input[0].tool_calls[0].function"),
        ({"input": [call(name=7)]}, "input[0].name"),
        ({"input": [result(output=[7])]}, "input[0].output[0]"),
        ({"input": "x", "tools": 7}, "tools"),
        ({"input": "x", "tools": [7]}, "tools[0]"),
        ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
        ({"input": "x", "tools": [{"type": 7}]}, "tools[0].type"),
        ({"input": "x", "tools": [{**CRM, "tools": [{"type": "custom"}]}]}, "tools[0].tools[0].name"),
        ({"input": [{"type": "additional_tools", "tools": [{"type": "function"}]}]}, "input[0].tools[0].name"),
        ({"input": "x", "instructions": 7}, "instructions"),
        ({"input": "x", "instructions": [{"role": "x", "content": "y"}]}, "instructions[0].role"),
    ],
)
def test_input_error_names_the_path(bad, path):
    with pytest.raises(InputError) as caught:
        segue.convert(bad, source=API, target="anthropic")
    assert caught.value.path == path


KEYS = sorted({key for one in BODIES.values() for item in one["input"] if isinstance(item, dict) for key in item})
TYPES = sorted({str(item.get("type")) for one in BODIES.values() for item in one["input"] if isinstance(item, dict)})
SCALARS = st.sampled_from([None, True, 1, 1.5, "", "x", "call_1", "user", "assistant", "null", *TYPES])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*KEYS, "text", "name", "url"]), inner, max_size=4)
    ),
    max_leaves=8,
)
ITEMS = st.builds(
    lambda kind, rest: {**rest, **kind},
    st.one_of(st.just({}), st.fixed_dictionaries({"type": st.sampled_from(TYPES)}), st.just({"role": "assistant"})),
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
)


@examples(4)
@given(
    items=st.one_of(VALUES, st.lists(st.one_of(ITEMS, VALUES), max_size=6)),
    more=st.dictionaries(st.sampled_from(["tools", "instructions", "tool_choice", "store", "text"]), VALUES),
    target=st.sampled_from([row.name for row in segue.formats() if row.kind != "text"]),
)
def test_any_items_give_a_value_or_an_input_error(items, more, target):
    given_body = {"input": items, **more}
    before = json.dumps(given_body)
    try:
        out = segue.convert(given_body, source=API, target=target)
    except InputError:
        pass
    else:
        assert json.loads(out.data) == out.body
        again = segue.convert(out.body, source=target, target=target)
        assert json.dumps(again.body) == json.dumps(out.body)
    assert json.dumps(given_body) == before


@examples(2)
@given(items=st.lists(st.one_of(ITEMS, VALUES), max_size=5), status=VALUES)
def test_any_reply_gives_a_value_or_a_remote_protocol_error(items, status):
    converted = convert_cross_api(body(user()), "anthropic")
    back = segue.convert({"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}, target=API)
    for one in (converted, back):
        try:
            one.reply({"output": items, "status": status, "usage": status, "object": "response"})
        except segue.RemoteProtocolError:
            continue


def test_model_rows():
    assert WIRE.constraints(parse_model("gpt-4.1")).can_reason is False
    assert WIRE.constraints(parse_model("gpt-5")).can_reason is True
    assert WIRE.constraints(parse_model("who-knows")).can_reason is True

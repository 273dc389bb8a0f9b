"""What the Responses API rejects, by rule, and how same-API conversion repairs it: ids, reasoning, state, pairing."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from tests.bodies import chat
from tests.bodies.responses import assistant, reasoning, result, user
from tests.conversations.sdk import complaints
from tests.wire.bodies_responses import BODIES, body, call, function

API = "openai-responses"
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}


def convert_same_api(*items: Any, model: str | None = None, policy: dict[str, Any] | None = None, **more: Any) -> Any:
    """The same-API conversion of a body of these items; converting the output again changes nothing."""
    out = segue.convert(body(*items, **more), source=API, target=API, model=model, **(policy or {}))
    again = segue.convert(out.body, source=API, target=API, model=model, **(policy or {}))
    assert json.dumps(again.body) == json.dumps(out.body)
    assert segue.check(out.body, API), str(segue.check(out.body, API))
    return out


def kinds(out: Any) -> list[str]:
    return [item.get("type", "message") for item in out.body["input"]]


def ids(out: Any) -> list[Any]:
    return [item.get("id") for item in out.body["input"]]


LOST = "item id dropped: it is invalid or used by another item"


def findings(out: Any) -> list[str]:
    return [finding.kind for finding in out.report.findings if finding.message != LOST]


def dropped_subjects(out: Any) -> list[str | None]:
    return [finding.subject for finding in out.report.findings_of("dropped") if finding.message == LOST]


# ---------------------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize("call_id", ["", None, "x" * 65])
def test_resp_01_a_call_id_has_1_to_64_characters(call_id):
    made = convert_same_api(user(), {**call(), "call_id": call_id}, {**result(), "call_id": call_id}).body["input"]
    assert 1 <= len(made[1]["call_id"]) <= 64
    assert made[2]["call_id"] == made[1]["call_id"]


@pytest.mark.parametrize("call_id", ["x", "x" * 64, "functions.read:0", "toolu_01", "a|fc_b", "ünï"])
def test_resp_01_any_characters_are_valid(call_id):
    given_body = body(user(), call(call_id), result(call_id))
    assert segue.convert(given_body, target=API).body == given_body


@pytest.mark.parametrize("item_id", ["call_1", "item_1", "", "fc_" + "x" * 62, "fc.1"])
def test_resp_02_an_id_of_a_wrong_form_is_left_out(item_id):
    out = convert_same_api(user(), call(id=item_id), result())
    assert out.body["input"][1] == call()
    assert complaints(out.body, API) == []


@pytest.mark.parametrize("item_id", ["item_1", "rs", "msg_" + "x" * 61])
def test_resp_03_message_with_invalid_id_is_sent_without_id(item_id):
    out = convert_same_api(user(id=item_id), assistant("a", id=item_id, phase="commentary"), user("b", id=item_id))
    assert out.body["input"] == [user(), {"role": "assistant", "content": "a", "phase": "commentary"}, user("b")]


@pytest.mark.parametrize("item_id", ["item_1", "", "rs_" + "x" * 70])
def test_resp_03_reasoning_with_invalid_id_is_dropped_with_its_items(item_id):
    out = convert_same_api(user(), reasoning(item_id), assistant("a"), call(id="fc_1"), result())
    assert kinds(out) == ["message", "message", "function_call", "function_call_output"]
    assert ids(out) == [None] * 4
    assert findings(out) == ["reasoning"]
    assert dropped_subjects(out) == ["id"]


def test_encrypted_reasoning_without_an_id_stays():
    """Stateless clients omit the ids; encrypted reasoning needs none."""
    thought = reasoning()
    del thought["id"]
    given_body = body(user(), thought, call(), result(), store=False)
    assert segue.convert(given_body, target=API).body == given_body


def test_resp_13_ids_are_unique():
    out = convert_same_api(
        *(user("a", id="msg_0"), reasoning(), assistant("x"), call(id="fc_1"), result(id="fco_1")),
        *(user("b", id="msg_0"), reasoning(), assistant("y"), call("call_2", id="fc_1"), result("call_2", id="fco_1")),
    )
    assert ids(out)[:5] == ["msg_0", "rs_1", "msg_1", "fc_1", "fco_1"]
    assert ids(out)[5:] == [None] * 4
    assert kinds(out)[5:] == ["message", "message", "function_call", "function_call_output"]
    assert findings(out) == ["dedupe"]


def test_resp_13_repeated_item_is_dropped():
    out = convert_same_api(
        user(), reasoning(), reasoning(), assistant("x"), assistant("x", status="in_progress"), SEARCH, user(), SEARCH
    )
    assert kinds(out) == ["message", "reasoning", "message", "web_search_call", "message"]
    assert [(finding.kind, finding.subject) for finding in out.report.findings] == [
        *(("dedupe", "rs_1"), ("dedupe", "msg_1"), ("dedupe", "ws_1"))
    ]
    chat = segue.convert(body(user(), assistant("x"), assistant("x"), {"id": "msg_1"}), target="openai-chat")
    assert [message["content"] for message in chat.body["messages"]] == ["q", "x"]
    assert [finding.subject for finding in chat.report.findings_of("dedupe")] == ["msg_1", "msg_1"]


def test_resp_13_repeated_output_is_not_paired_with_a_later_call():
    once = (call("call_0", id="fc_1"), result("call_0", "A", id="fco_1"))
    later = (call("call_0", id="fc_2"), result("call_0", "A", id="fco_1"), result("call_0", "B", id="fco_2"))
    out = segue.convert(body(user(), *once, user(), *later), target="openai-chat")
    assert [message["content"] for message in out.body["messages"] if message["role"] == "tool"] == ["A", "B"]


def test_repeated_item_is_parsed_the_same_from_bytes():
    given_body = body(user(), assistant("x"), user(), assistant("x"), user())
    for target in ("openai-chat", API):
        quick = segue.convert(json.dumps(given_body).encode(), source=API, target=target)
        assert quick.body == segue.convert(given_body, source=API, target=target).body
        assert quick.report.findings_of("dedupe")


def test_resp_13_repeated_hosted_item_becomes_a_call():
    again = {**SEARCH, "action": {"type": "search", "query": "another"}}
    out = convert_same_api(user(), SEARCH, assistant("x"), user(), again, assistant("y", id="msg_2"))
    assert kinds(out) == [
        *("message", "web_search_call", "message", "message"),
        *("function_call", "function_call_output", "message"),
    ]


def test_resp_13_applies_to_a_reply_added_twice():
    chat = segue.Conversation()
    reply = {"object": "response", "model": "gpt-5", "output": [reasoning(), assistant("x")]}
    for _ in range(2):
        chat.add_user("go")
        chat.add_reply(reply)
    made = chat.render(API, "gpt-5")
    assert [item.get("id") for item in made.body["input"]] == [None, "rs_1", "msg_1", None, None]
    assert "reasoning" in [finding.kind for finding in made.report.findings]


SOUGHT = {**SEARCH, "action": {"type": "search", "query": "two"}}
CODE = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "container_id": "c",
    "code": "1 + 1",
    "outputs": [{"type": "logs", "logs": "two"}],
}
FOUND = [
    {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server", "arguments": {"goal": "two"}},
    {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server", "tools": [function("two")]},
]
APPROVAL_REQUEST = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "s",
    "name": "f",
    "arguments": '{"x": "two"}',
}
DOUBLED = {
    "search": [SOUGHT],
    "code": [CODE],
    "found": FOUND,
    "asked": [APPROVAL_REQUEST],
    "thought": [reasoning(), CODE],
}


@pytest.mark.parametrize("hosted", ["pair", "text"])
@pytest.mark.parametrize("items", DOUBLED.values(), ids=DOUBLED)
def test_resp_13_hosted_item_is_sent_once_and_then_becomes_text(items, hosted):
    chat = segue.Conversation()
    for turn in (1, 2):
        chat.add_user("go")
        chat.add_reply({"object": "response", "model": "gpt-5", "output": [*items, assistant("x", id=f"msg_{turn}")]})
    made = chat.render(API, "gpt-5", hosted=hosted)
    assert segue.check(made.body, API), str(segue.check(made.body, API))
    first, second = made.body["input"][1 : 1 + len(items)], made.body["input"][1 + len(items) :]
    assert first == items
    assert not {item["type"] for item in items} & {item.get("type") for item in second}
    assert json.dumps(second).count("two") >= json.dumps(items).count("two") > 0


def test_resp_21_approval_response_stays_when_its_request_is_repeated():
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    out = convert_same_api(user(), APPROVAL_REQUEST, user(), {**APPROVAL_REQUEST, "arguments": "{}"}, answer)
    assert kinds(out) == ["message", "mcp_approval_request", "message", "message", "mcp_approval_response"]


# ------------------------------------------------------------------------------------------------------------ pairing


def test_resp_04_every_call_gets_its_output():
    out = convert_same_api(user(), call(id="fc_1"), call("call_2"), result("call_2"), user("next"))
    assert kinds(out) == [
        *("message", "function_call", "function_call", "function_call_output", "function_call_output", "message")
    ]
    assert out.body["input"][1]["id"] == "fc_1"
    assert {item["call_id"] for item in out.body["input"] if "output" in item} == {"call_1", "call_2"}
    assert findings(out) == ["synthetic"]


def test_resp_05_orphan_output_becomes_text():
    out = convert_same_api(user(), result("call_9", "lost"))
    assert out.body["input"][1] == user("[result of a tool; its call is no longer part of this conversation]\nlost")
    assert findings(out) == ["orphan"]


@pytest.mark.parametrize(
    "held",
    [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"conversation": {"id": "conv_1"}}],
    ids=["response", "conversation", "conversation object"],
)
def test_resp_05_orphan_output_stays_where_the_provider_holds_the_call(held):
    given_body = body(result("call_9", "x"), result("call_8", [{"type": "input_text", "text": "y"}]), **held)
    assert segue.convert(given_body, source=API, target=API).body == given_body
    assert convert_same_api(result("call_9", {"a": 1}), **held).body["input"] == [result("call_9", '{"a":1}')]
    out = segue.convert(given_body, source=API, target="anthropic")
    assert segue.check(out.body, "anthropic")
    name = next(iter(held.values()))
    findings_found = [finding.message for finding in out.report.findings_of("dropped")]
    state = name if isinstance(name, str) else "conv_1"
    assert findings_found == [f"earlier history missing: the body refers to it only by {state}"]
    assert "its call is no longer part" in json.dumps(out.body)


def test_resp_05_orphan_output_stays_where_an_item_refers_to_its_call():
    given_body = body(user(), {"type": "item_reference", "id": "fc_9"}, result("call_9"))
    assert segue.convert(given_body, target=API).body == given_body
    out = segue.convert(given_body, target="openai-chat")
    findings_found = [(finding.subject, finding.message) for finding in out.report.findings_of("dropped")]
    assert any("the stored item fc_9" in message for _, message in findings_found)
    assert any(
        subject == "fc_9" and "history that is not in this body" in message for subject, message in findings_found
    )
    assert [message["role"] for message in out.body["messages"]] == ["user", "user"]


def test_api_items_are_not_rendered_as_text():
    listing = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "tides", "tools": []}
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    tools = {"type": "additional_tools", "role": "developer", "tools": [function()]}
    out = segue.convert(body(tools, compaction, user(), listing, assistant("x")), target="openai-chat")
    assert [message["role"] for message in out.body["messages"]] == ["user", "user", "assistant"]
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["read"]
    findings_found = {finding.subject: (finding.kind, finding.message) for finding in out.report.findings}
    assert findings_found["compaction"][0] == findings_found["tides: "][0] == "dropped"
    assert "only the provider that made it can read it" in findings_found["compaction"][1]
    message = "additional_tools: tools declared in mid-conversation moved to the tool declarations"
    assert findings_found["additional_tools"] == ("moved", message)
    assert not any("empty message" in message for _, message in findings_found.values())


def test_tool_listing_in_a_reply_is_not_rendered_as_text():
    call_item = segue.convert({"model": "gpt-4.1", "messages": [user()]}, source="openai-chat", target=API)
    listing = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "tides", "tools": []}
    reply = {"object": "response", "status": "completed", "model": "gpt-5", "output": [listing, assistant("x")]}
    assert call_item.reply(reply)["choices"][0]["message"]["content"] == "x"
    assert "mcp_list_tools" in call_item.report.findings[-1].message


def test_resp_04_no_output_is_added_where_the_provider_may_hold_it():
    given_body = body(user(), call(), {"type": "item_reference", "id": "fco_1"})
    assert segue.convert(given_body, target=API).body == given_body
    running = body(user(), {**call(), "async": True}, assistant("meanwhile"))
    assert segue.convert(running, target=API).body == running
    chat = segue.convert(running, target="openai-chat")
    assert segue.check(chat.body, "openai-chat")
    assert "synthetic" in findings(chat)


def test_body_may_only_refer_to_provider_state():
    for held in ({"previous_response_id": "resp_1"}, {"prompt": {"id": "pmpt_1"}}):
        assert segue.convert(held, source=API, target=API).body == held
        assert segue.check(segue.convert(held, source=API, target="anthropic").body, "anthropic")


def test_resp_06_outputs_keep_their_place_for_same_api_and_follow_calls_cross_api():
    given_body = BODIES["apart"]
    assert segue.convert(given_body, target=API).body == given_body
    chat = segue.convert(given_body, target="openai-chat")
    assert [m["role"] for m in chat.body["messages"]][-7:] == [
        *("assistant", "tool", "user", "assistant", "tool", "assistant", "user")
    ]
    assert "reordered" in findings(chat)


def test_resp_05_output_before_its_call_is_moved():
    given_body = body(user(), result(), call(), user("next"))
    assert segue.convert(given_body, target=API).body == body(user(), call(), result(), user("next"))
    chat = segue.convert(given_body, target="openai-chat").body["messages"]
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "user"]


def test_resp_06_only_the_broken_turn_is_touched():
    out = convert_same_api(
        *(user(), call("call_a"), call("call_b"), user("meanwhile"), result("call_a")),
        *(call("call_c"), user("more"), result("call_c")),
    )
    assert kinds(out) == [
        *("message", "function_call", "function_call", "function_call_output", "message", "function_call_output"),
        *("function_call", "message", "function_call_output"),
    ]
    assert out.body["input"][3]["call_id"] == "call_b"


def test_resp_14_to_16_parts_and_outputs_of_wrong_type_are_repaired():
    out = convert_same_api(
        user([{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}]),
        assistant("", content=[{"type": "input_text", "text": "c"}]),
        call(arguments={"q": 1}),
        result(output=[{"type": "text", "text": "d"}, {"type": "image_url", "image_url": {"url": "https://x"}}]),
        call("call_2"),
        {**result("call_2"), "output": None},
        call("call_3"),
        result("call_3", [{"type": "document", "text": "e"}]),
    )
    picture = {"type": "input_image", "detail": "auto", "image_url": "https://x"}
    assert out.body["input"] == [
        user([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
        {"role": "assistant", "content": "c"},
        call(arguments='{"q":1}'),
        {**result(), "output": [{"type": "input_text", "text": "d"}, picture]},
        call("call_2"),
        result("call_2", ""),
        call("call_3"),
        result("call_3", [{"type": "input_text", "text": "[document not supported here] e"}]),
    ]
    assert complaints(out.body, API) == []


def test_possibly_newer_items_are_kept():
    strange = {"type": "telepathy", "text": "e"}
    given_body = body(
        *(user([strange]), assistant("", content=[strange, {"type": "output_text", "text": "a"}, strange])),
        *(call(), result(output=[strange])),
    )
    assert segue.convert(given_body, target=API).body == given_body
    chat = segue.convert(given_body, target="openai-chat").body["messages"]
    assert "[telepathy not supported here] e" in json.dumps(chat[0])
    assert chat[2]["content"] == "[telepathy not supported here] e"


@pytest.mark.parametrize(
    "item",
    [
        {"type": "shell_call", "call_id": "call_1", "action": "ls"},
        {"type": "shell_call", "call_id": "call_1", "action": {"commands": []}, "status": "weird"},
        {"type": "apply_patch_call", "call_id": "call_1"},
        {"type": "computer_call", "id": "cu_1", "call_id": "", "status": "completed", "action": {"type": "wait"}},
        {"type": "program", "id": "prg_1", "code": "1", "fingerprint": "f"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "web_search_call", "id": "ws 1", "status": "completed", "action": {"type": "search"}},
        {"type": "mcp_call", "id": "mcp_1", "name": "f", "server_label": "s"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", "status": "weird"},
    ],
    ids=lambda item: item["type"],
)
def test_malformed_calls_become_function_calls(item):
    out = convert_same_api(user(), item)
    assert kinds(out) == ["message", "function_call", "function_call_output"]


def test_other_malformed_items_become_text():
    out = convert_same_api(
        *(user(status="weird"), {"type": "compaction"}, {"type": "mcp_approval_request", "id": 7, "name": "f"}),
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_9", "approve": True},
        {"role": "assistant", "content": "a", "tool_calls": None, "function_call": None},
        {"type": "compaction_trigger"},
        {"type": "additional_tools", "tools": [function()], "id": "at 1"},
        user([{"type": "input_image"}]),
    )
    assert out.body["input"] == [
        user(),
        user("[approval asked for f: {}]"),
        user("[answer to the request for approval] approved"),
        {"role": "assistant", "content": "a"},
        {"type": "additional_tools", "tools": [function()], "role": "developer"},
        user([{"type": "input_text", "text": "[input_image not supported here]"}]),
    ]


def test_resp_20_the_local_shell_may_name_its_call_by_the_items_own_id():
    call_item = BODIES["every item"]["input"][15]
    given_body = body(user(), call_item, {"type": "local_shell_call_output", "id": call_item["id"], "output": "x"})
    assert segue.convert(given_body, target=API).body == given_body
    assert segue.convert(given_body, target="openai-chat").body["messages"][2]["content"] == "x"


def test_resp_24_only_one_previous_state():
    out = convert_same_api(result(), previous_response_id="resp_1", conversation="conv_1")
    assert "conversation" not in out.body


def test_resp_25_hosted_calls_have_unique_ids():
    call_item = {"type": "program", "id": "prg_1", "call_id": "call_1", "code": "1", "fingerprint": "f"}
    answer = {"type": "program_output", "id": "pro_1", "call_id": "call_1", "result": "2", "status": "completed"}
    given_body = body(user(), call_item, answer)
    assert segue.convert(given_body, target=API).body == given_body
    convert_same_api(user(), call_item, answer, {**call_item, "id": "prg_2"}, {**answer, "id": "pro_2", "result": "3"})
    convert_same_api(user(), call_item, answer, {**answer, "id": "pro_2", "result": "3"})
    convert_same_api(user(), call(), result(), call_item, answer)


def test_resp_17_an_output_is_of_its_calls_type():
    custom = {"type": "custom_tool_call", "call_id": "call_1", "name": "free", "input": "x"}
    out = convert_same_api(
        user(), custom, result(), call("call_2"), {**result("call_2"), "type": "custom_tool_call_output"}
    )
    assert kinds(out) == [
        *("message", "custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output")
    ]


def test_resp_25_calls_with_one_id_are_made_unique():
    out = convert_same_api(user(), call(), result(output="a"), user(), call(), result(output="b"))
    made = [(item["call_id"], item.get("output")) for item in out.body["input"] if "call_id" in item]
    assert [value for _, value in made] == [None, "a", None, "b"]
    assert made[0][0] == made[1][0] == "call_1" != made[2][0] == made[3][0]


# ---------------------------------------------------------------------------------------------------------- reasoning

REPLY = (reasoning(), assistant("a"), call(id="fc_1"), call("call_2", id="fc_2"))
RESULTS = (result(), result("call_2"))


def test_reasoning_is_sent_back_with_its_items():
    for more in ({}, {"store": True}, {"store": False}):
        given_body = body(user(), *REPLY, *RESULTS, **more)
        assert segue.convert(given_body, target=API).body == given_body


@pytest.mark.parametrize(
    "items",
    [
        (user(), reasoning()),
        (user(), reasoning(), user("next")),
        (user(), assistant("a"), reasoning(), user("next")),
        (user(), assistant("a"), reasoning("rs_0"), reasoning("rs_1")),
    ],
    ids=["at the end", "before the user", "behind what it was not for", "and more of it"],
)
def test_resp_07_reasoning_without_its_item_is_left_out(items):
    out = convert_same_api(*items)
    assert "reasoning" not in kinds(out)
    assert findings(out)[0] == "reasoning"
    # What was made before it keeps its id.
    assert [item["id"] for item in out.body["input"] if item.get("role") == "assistant"] in ([], ["msg_1"])


MESSAGE = {**assistant("a"), "id": "msg_1"}


@pytest.mark.parametrize("store", [None, True])
@pytest.mark.parametrize(
    "items",
    [
        [{"role": "assistant", "content": "a"}],
        [{key: value for key, value in MESSAGE.items() if key != "id"}],
        [{key: value for key, value in call().items() if key != "id"}, result()],
    ],
    ids=["text", "message", "call"],
)
def test_resp_07_stored_reasoning_before_an_item_without_an_id_is_left_out(items, store):
    given = body(user(), reasoning(), *items, user(), store=store)
    for made in (convert_same_api(*given["input"], store=store).body, read_bytes(given)):
        assert "reasoning" not in json.dumps(made["input"])
        assert len(made["input"]) == len(given["input"]) - 1
    assert read_bytes({**given, "store": False})["input"] == given["input"]


@pytest.mark.parametrize(
    "item",
    [
        call(id="fc_1", status="odd"),
        {**call(id="fc_1"), "arguments": {"a": 1}},
        {**MESSAGE, "status": "odd"},
        {**MESSAGE, "content": [{"type": "input_text", "text": "a"}]},
    ],
)
@pytest.mark.parametrize("store", [True, False])
def test_resp_07_repaired_item_behind_reasoning_keeps_its_id(item, store):
    results = [result(item["call_id"])] if "call_id" in item else []
    made = convert_same_api(user(), reasoning(), item, *results, user(), store=store)
    assert ids(made)[1:3] == ["rs_1", item["id"]]
    assert findings(made) == dropped_subjects(made) == []
    bare = convert_same_api(user(), item, *results, user(), store=store)
    assert ids(bare)[1] is None


def read_bytes(given: Any) -> Any:
    return segue.convert(json.dumps(given).encode(), source=API, target=API).body


def test_resp_07_reasoning_not_known_to_be_invalid_stays():
    nameless = reasoning()
    del nameless["id"]
    for items in ((user(), reasoning("rs_0"), reasoning(), assistant("a")), (user(), nameless)):
        assert segue.convert(body(*items), target=API).body == body(*items)


def test_resp_08_item_without_its_reasoning_loses_its_id():
    out = convert_same_api(
        user(), reasoning(), user("in between"), call(id="fc_1"), result(), call("call_2", id="fc_2"), result("call_2")
    )
    assert kinds(out)[:3] == ["message", "message", "function_call"]
    assert ids(out) == [None, None, None, None, "fc_2", None]


def test_resp_08_ids_are_dropped_with_the_reasoning():
    out = convert_same_api(user(), *REPLY, *RESULTS, policy={"reasoning": "none"})
    assert ids(out) == [None] * 6
    assert "reasoning" not in kinds(out)
    assert complaints(out.body, API) == []
    thought = reasoning("item_1", summary=[{"type": "summary_text", "text": "hm"}])
    findings_found = convert_same_api(user(), thought, *REPLY[1:], *RESULTS, policy={"reasoning": "text"})
    assert findings_found.body["input"][1] == {"role": "assistant", "content": "[reasoning] hm"}
    assert ids(findings_found) == [None] * 7


def test_resp_08_item_that_needs_its_id_becomes_a_call():
    computer, shot = BODIES["every item"]["input"][13:15]
    out = convert_same_api(user(), reasoning(), SEARCH, assistant("a"), computer, shot, policy={"reasoning": "none"})
    assert kinds(out) == [
        *("message", "function_call", "function_call_output", "message", "function_call", "function_call_output")
    ]
    assert ids(out) == [None] * 6
    assert out.body["input"][5]["output"][0]["type"] == "input_image"


def test_resp_10_plain_text_or_earlier_reasoning_is_kept():
    plain = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    given_body = body(user(), plain, *REPLY[1:], *RESULTS, store=False)
    assert segue.convert(given_body, target=API).body == given_body
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    given_body = body(user(), bare, *REPLY[1:], *RESULTS, store=False, previous_response_id="resp_1")
    assert segue.convert(given_body, target=API).body == given_body


@pytest.mark.parametrize("stored", [True, False])
def test_resp_10_unencrypted_reasoning_needs_stored_state(stored):
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    out = convert_same_api(user(), bare, *REPLY[1:], *RESULTS, store=stored)
    assert ("reasoning" in kinds(out)) == stored
    assert (ids(out)[-4] == "fc_1") == stored
    assert findings(out) == []


def test_resp_07_reference_to_reasoning_before_a_call_without_id_is_dropped():
    references = [{"type": "item_reference", "id": name} for name in ("rs_1", "fc_0", "rs_2")]
    given = (user(), *references[:2], result("call_0"), references[2], call(), result())
    assert [violation.rule for violation in segue.check(body(*given), API)] == ["OAI-RESP-07"]
    out = convert_same_api(*given)
    assert out.body["input"] == [each for each in given if each is not references[2]]
    assert findings(out) == ["dropped"]
    # With its id, the call is the item that follows the reasoning.
    kept = body(user(), references[0], call(id="fc_1"), result())
    assert segue.convert(kept, target=API).body == kept


def test_resp_10_references_need_stored_state():
    out = convert_same_api(user(), {"type": "item_reference", "id": "rs_1"}, call(id="fc_1"), result(), store=False)
    assert kinds(out) == ["message", "function_call", "function_call_output"]
    assert ids(out) == [None] * 3
    assert findings(out) == ["dropped"]


def test_resp_11_encrypted_reasoning_goes_to_every_reasoning_model():
    same = convert_same_api(user(), *REPLY, *RESULTS, model="gpt-5.6-terra-2026-07-01")
    assert kinds(same)[1] == "reasoning"
    other = convert_same_api(user(), *REPLY, *RESULTS, model="gpt-5")
    assert kinds(other)[1] == "reasoning"
    out = convert_same_api(user(), *REPLY, *RESULTS, model="gpt-4.1")
    assert ids(out) == [None] * 6
    assert findings(out) == ["reasoning"]
    # An unchanged body is kept.
    given_body = body(user(), *REPLY, *RESULTS, model="gpt-4.1")
    assert segue.convert(given_body, target=API).body == given_body


@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "kimi"])
def test_resp_11_encrypted_reasoning_goes_to_no_other_model(target):
    out = segue.convert(body(user(), *REPLY, *RESULTS), target=target)
    assert "gAAA1" not in json.dumps(out.body)
    assert "rs_1" not in json.dumps(out.body)
    assert segue.check(out.body, target)


def test_reasoning_of_other_providers_is_dropped():
    claude = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}]},
        ],
    }
    out = segue.convert(claude, target=API)
    assert kinds(out) == ["message", "function_call", "function_call_output"]
    assert "reasoning" in findings(out)
    findings_found = segue.convert(claude, target=API, reasoning="text").body["input"]
    assert findings_found[1] == {"role": "assistant", "content": "[reasoning] hm"}


def test_a_summary_is_always_there():
    thought = reasoning()
    del thought["summary"]
    assert convert_same_api(user(), thought, assistant("a")).body["input"][1] == {**thought, "summary": []}


# ------------------------------------------------------------------------------------------------------ conversations


def chat_turn(number: int) -> list[dict[str, Any]]:
    call_id = f"call_{number}"
    return [
        chat.assistant_calls(chat.call(call_id, "read", '{"n": 1}'), content="I look."),
        chat.result(call_id, f"r{number}"),
    ]


def test_round_trip_keeps_every_pair():
    chat = {"messages": [{"role": "user", "content": "go"}, *chat_turn(1), *chat_turn(2)]}
    there = segue.convert(chat, target=API).body
    assert kinds(segue.convert(chat, target=API)) == [
        "message",
        *("message", "function_call", "function_call_output") * 2,
    ]
    back = segue.convert(there, target="openai-chat").body
    assert [message.get("content") for message in back["messages"]] == ["go", "I look.", "r1", "I look.", "r2"]
    claude = segue.convert(there, target="anthropic").body
    assert segue.check(claude, "anthropic")
    assert [m["role"] for m in claude["messages"]] == ["user", "assistant", "user", "assistant", "user"]


def test_earlier_items_do_not_change_when_messages_are_added():
    first = body(user(), *REPLY, *RESULTS, tools=[function()])
    longer = {**first, "input": [*first["input"], user("more")]}
    for target in (API, "openai-chat", "anthropic"):
        key = "input" if target == API else "messages"
        one = segue.convert(first, target=target).body[key]
        two = segue.convert(longer, target=target).body[key]
        last = max(index for index, item in enumerate(one) if item.get("role") == "assistant")
        assert one[: last + 1] == two[: last + 1]


def test_repair_reports_its_changes():
    repaired = segue.repair(body(user(), call(id="call_1"), result("call_9", "lost")), API)
    assert {change.path for change in repaired.changes} >= {"input[2]", "input[3]"}
    assert findings(repaired) == ["orphan", "synthetic"]
    assert dropped_subjects(repaired) == ["id"]
    valid = json.dumps(BODIES["agent"]).encode()
    assert segue.repair(valid, API).data == valid


# ------------------------------------------------------------------------------------------------ what bodies also hold


def test_output_for_provider_state_needs_its_own_id():
    items = [result("call_9", "a"), result("call_9", "b"), result("x" * 65, "d")]
    out = convert_same_api(*items, previous_response_id="resp_1")
    assert out.body["input"][0] == result("call_9", "a")
    assert [item.get("role") for item in out.body["input"][1:]] == ["user"] * 2
    assert [len(finding.call_ids) for finding in out.report.findings_of("orphan")] == [2]


@pytest.mark.parametrize(
    "reference",
    [{"type": "item_reference", "id": ""}, {"type": "item_reference", "id": "rs_9"}, {"id": "msg 9"}],
    ids=["no id", "reasoning at the end", "not an id"],
)
def test_dangling_reference_is_dropped(reference):
    out = convert_same_api(user(), reference, user("next"))
    assert out.body["input"] == [user(), user("next")]
    assert findings(out) == ["dropped"]


def test_tool_search_output_without_call_stays_and_is_declared():
    found = {"type": "tool_search_output", "execution": "server", "tools": [function("late")]}
    given_body = body(user(), found)
    assert segue.convert(given_body, target=API).body == given_body
    chat = segue.convert(given_body, target="openai-chat").body
    assert [tool["function"]["name"] for tool in chat["tools"]] == ["late"]


def test_resp_04_only_a_search_that_the_client_runs_needs_an_output():
    call_item = {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {}}
    out = segue.convert(body(user(), call_item, user("next")), target=API).body["input"]
    assert out[1] == call_item
    assert (out[2]["type"], out[2]["call_id"]) == ("function_call_output", "call_1")
    by_provider = body(user(), {**call_item, "execution": "server"}, user("next"))
    assert segue.convert(by_provider, target=API).body == by_provider


@pytest.mark.parametrize("thought", [{}, {"id": "3f2a"}, {"id": "rs_1", "summary": None}], ids=str)
def test_a_repaired_call_keeps_the_text_of_its_arguments(thought):
    item = {**call(), "arguments": '{ "q": 1.0 }'}
    broken = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}], **thought}
    out = segue.convert(body(user(), broken, {**item, "id": "item_1"}, result()), target=API).body["input"]
    assert [entry for entry in out if "name" in entry] == [item]


def test_resp_04_missing_container_shell_output_is_completed():
    call_item = BODIES["every item"]["input"][21]
    out = convert_same_api(user(), call_item)
    assert kinds(out) == ["message", "shell_call", "shell_call_output"]
    assert findings(out) == ["synthetic"]


def test_resp_21_approval_response_needs_its_request():
    call_item, answered = BODIES["every item"]["input"][9:11]
    assert segue.convert(body(user(), call_item, answered), target=API).body == body(user(), call_item, answered)
    alone = convert_same_api(user(), answered)
    assert "[answer to the request for approval] approved" in json.dumps(alone.body)
    assert segue.convert(body(answered, previous_response_id="resp_1"), target=API).body["input"] == [answered]
    twice = convert_same_api(user(), {**call_item, "arguments": {}}, answered)
    assert kinds(twice) == ["message"] * 3


def test_tool_choice_without_a_name_is_dropped():
    out = convert_same_api(user(), tools=[function()], tool_choice={"type": "function"})
    assert "tool_choice" not in out.body
    assert findings(out) == ["adjusted"]


def test_a_tool_without_a_type_is_a_function():
    out = convert_same_api(user(), tools=[{**function(), "type": ""}, {"name": "g"}])
    assert [tool["type"] for tool in out.body["tools"]] == ["function", "function"]

"""Compactions by a provider: a boundary for a target that can read them, and no loss for any other."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.wire.registry import WIRES
from tests.bodies import Body

TARGETS = tuple(WIRES)
FOREIGN = tuple(name for name in TARGETS if name != "openai-responses")
BLOB = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABsealed" * 8}
AT_THRESHOLD = {"type": "compaction", "content": "The codeword is KESTREL."}
SUMMARY = {**AT_THRESHOLD, "signature": "c2lnbmVk"}


def said(role: str, text: str | list[Body]) -> Body:
    return {"role": role, "content": text}


def responses(*items: Body) -> Body:
    return {"model": "gpt-5.6-terra", "input": list(items)}


def messages(*entries: Body, model: str = "claude-opus-5") -> Body:
    return {"model": model, "max_tokens": 500, "messages": list(entries)}


def levels(made: Any) -> set[str]:
    return {finding.level for finding in made.report.findings if finding.subject and "compaction" in finding.subject}


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
@pytest.mark.parametrize("target", FOREIGN)
def test_history_before_a_compaction_is_sent_where_it_cannot_be_read(target: str, kind: str) -> None:
    given = responses(said("user", "FACT"), said("assistant", "NOTED"), {**BLOB, "type": kind}, said("user", "go"))
    made = segue.convert(given, target=target, source="openai-responses", model="m")
    sent = json.dumps(made.body)
    assert sent.index("FACT") < sent.index("NOTED") < sent.index("go")
    assert "gAAAA" not in sent
    assert levels(made) == {"changed"}


@pytest.mark.parametrize("target", FOREIGN)
def test_without_the_history_a_text_says_so_and_the_report_counts_it_as_lost(target: str) -> None:
    given = responses(said("user", "KEPT"), BLOB, said("user", "go"))
    made = segue.convert(given, target=target, source="openai-responses", model="m")
    sent = json.dumps(made.body)
    assert sent.index("KEPT") < sent.index("compacted by its provider") < sent.index('go"')
    assert "gAAAA" not in sent
    [finding] = made.report.findings_of("dropped")
    assert finding.level == "lost"
    assert "unknown number of messages (104 characters of encrypted content)" in finding.message


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "anthropic"])
def test_a_summary_is_sent_as_the_users_text(target: str) -> None:
    given = messages(said("assistant", [SUMMARY, {"type": "text", "text": "Yes."}]), said("user", "go"))
    made = segue.convert(given, target=target, source="anthropic", model="m")
    sent = json.dumps(made.body)
    assert "not supported here" not in sent
    assert "summary of the conversation so far] The codeword is KESTREL." in sent
    assert "c2lnbmVk" not in sent
    assert levels(made) == {"changed"}
    parsed = WIRES[target].parse_request(made.body)
    [speaker] = [one.speaker for one in parsed.messages if "KESTREL" in str(one.blocks)]
    assert speaker == "human"


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("openai-responses", responses(said("user", "a"), said("assistant", "b"), BLOB, BLOB | {"id": "cmp_2"})),
        ("openai-responses", responses(BLOB, said("user", "go"))),
        ("anthropic", messages(said("user", "a"), said("assistant", [AT_THRESHOLD]), said("user", "go"))),
        (
            "anthropic",
            messages(said("assistant", [AT_THRESHOLD]), said("user", "a"), said("assistant", [AT_THRESHOLD])),
        ),
        ("anthropic", messages({"role": "assistant", "content": [SUMMARY]}, said("user", "go"))),
    ],
)
def test_at_home_the_body_is_unchanged(api: str, body: Body) -> None:
    made = segue.convert(body, target=api, source=api)
    assert made.body == body
    assert made.report.findings == []


def test_at_home_only_the_newest_summary_is_sent_before_the_other_blocks() -> None:
    newer = {**SUMMARY, "content": "Newer."}
    text = {"type": "text", "text": "Yes."}
    given = messages(
        {"role": "assistant", "content": [SUMMARY, text]},
        said("user", "go"),
        {"role": "assistant", "content": [text, newer]},
        said("user", "on"),
    )
    repaired = segue.repair(given, "anthropic")
    contents = [entry["content"] for entry in repaired.body["messages"]]
    assert contents == [[newer, text], "on"]
    assert {finding.kind for finding in repaired.report.findings} == {"dropped", "moved"}


def test_a_failed_compaction_stands_for_nothing() -> None:
    failed = {"type": "compaction", "content": None}
    given = messages(said("user", "FACT"), {"role": "assistant", "content": [failed]}, said("user", "go"))
    assert segue.convert(given, target="anthropic", source="anthropic").body == given
    made = segue.convert(given, target="openai-chat", source="anthropic")
    assert [entry["content"] for entry in made.body["messages"]] == ["FACT", "go"]


def test_a_newer_unreadable_compaction_replaces_the_older_one() -> None:
    given = responses(BLOB, BLOB | {"id": "cmp_2"}, said("user", "go"))
    made = segue.convert(given, target="openai-chat", source="openai-responses")
    assert json.dumps(made.body).count("compacted by its provider") == 1


@pytest.mark.parametrize("api", ["openai-responses", "anthropic"])
def test_a_conversation_sends_the_compaction_home_and_the_messages_abroad(api: str) -> None:
    item = BLOB if api == "openai-responses" else SUMMARY
    replies = {
        "openai-responses": lambda *output: {"object": "response", "status": "completed", "output": list(output)},
        "anthropic": lambda *content: {"type": "message", "role": "assistant", "content": list(content)},
    }
    chat = segue.Conversation()
    chat.add_user("FACT")
    chat.render(api)
    chat.add_reply(replies[api](item), source=api)
    for number in range(5):
        chat = segue.Conversation.load(chat.dump())
        chat.add_user(f"question {number}")
        for target in (name for name in TARGETS if name != api):
            sent = chat.render(target, "m").data.decode()
            assert "FACT" in sent
            assert "gAAAA" not in sent
            assert "KESTREL" not in sent
        home = chat.render(api, "gpt-5.6-terra" if api == "openai-responses" else "claude-opus-5")
        sent = home.body["input"] if api == "openai-responses" else home.body["messages"][0]["content"]
        assert sent[0] == item
        assert "FACT" not in home.data.decode()
        assert "lost" not in {finding.level for finding in home.report.findings}
        chat.add_reply({"choices": [{"message": {"role": "assistant", "content": "ok"}}]}, source="openai-chat")


CALL = {"type": "function_call", "call_id": "call_1", "name": "build", "arguments": "{}", "async": True}


@pytest.mark.parametrize("target", FOREIGN)
def test_a_call_in_the_background_is_still_running(target: str) -> None:
    given = responses(said("user", "a"), CALL, said("user", "and?"), said("assistant", "Meanwhile."), said("user", "b"))
    made = segue.convert(given, target=target, source="openai-responses", model="m")
    sent = json.dumps(made.body)
    assert sent.count("[still running: no result yet]") == 1
    assert "interrupted" not in sent
    assert '"is_error": true' not in sent
    assert segue.check(made.body, target)


@pytest.mark.parametrize("target", FOREIGN)
def test_its_result_stands_at_the_call_once(target: str) -> None:
    result = {"type": "function_call_output", "call_id": "call_1", "output": "BUILT"}
    given = responses(
        said("user", "a"), CALL, said("user", "and?"), said("assistant", "Meanwhile."), said("user", "b"), result
    )
    made = segue.convert(given, target=target, source="openai-responses", model="m")
    sent = json.dumps(made.body)
    assert sent.count("BUILT") == 1
    assert sent.index("BUILT") < sent.index("Meanwhile.")
    assert "still running" not in sent


def test_a_conversation_waits_for_the_result_of_a_call_in_the_background() -> None:
    chat = segue.Conversation()
    chat.add_user("a")
    chat.add_reply({"object": "response", "status": "completed", "output": [CALL]}, source="openai-responses")
    for target in ("anthropic", "gemini"):
        assert "still running" in chat.render(target, "m").data.decode()
        chat.add_reply({"choices": [{"message": {"role": "assistant", "content": "Meanwhile."}}]}, source="openai-chat")
        chat.add_user("b")
    chat.add_result("call_1", "BUILT")
    sent = chat.render("openai-chat", "m").data.decode()
    assert sent.count("BUILT") == 1
    assert sent.index("BUILT") < sent.index("Meanwhile.")
    assert "still running" not in sent

"""`Conversation.compress`: its effect on the body, in the report and after a reload."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.canonical.blocks import Message, Text, ToolCall
from tests.bodies.anthropic import call, tool

TOOLS = [tool("read")]
LONG = "word " * 3000


def claude(*content: dict[str, Any], tokens: int = 0, model: str = "claude-sonnet-4-5") -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 1}
    return {"type": "message", "role": "assistant", "model": model, "content": list(content), "usage": usage}


def use(number: int) -> dict[str, Any]:
    return call(f"toolu_{number}", name="read", input={"path": f"{number}.txt"})


def agent(turns: int) -> segue.Conversation:
    """An agent that reads one long file a turn."""
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("read them all")
    for number in range(turns):
        (call,) = chat.add_reply(claude(use(number)), source="anthropic").calls
        chat.add_result(call, f"{number}: {LONG}")
    return chat


def contents(chat: segue.Conversation) -> list[str]:
    body = chat.render("openai-chat").body
    assert segue.check(body, "openai-chat")
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def test_next_report_lists_the_compression():
    chat = agent(4)
    made = chat.compress("truncate-results", 10_000)
    assert made.reached
    assert made.tokens <= 10_000 < made.before
    findings = chat.render("anthropic").report.findings_of("compressed")
    assert [finding.message for finding in findings] == [str(note) for note in made.changes]
    assert findings[0].message.startswith("message 3 was shortened: 3,")
    assert findings[0].call_ids == (chat.messages[1].blocks[0].id,)  # pyright: ignore[reportAttributeAccessIssue]
    assert {finding.fault for finding in findings} == {"canonical"}
    assert chat.render("anthropic").report.findings_of("compressed") == []


def describe_compression(chat: segue.Conversation, *target: str) -> list[str]:
    return [finding.message for finding in chat.render(*target).report.findings_of("compressed")]


def test_compression_is_reported_once_per_target():
    chat = agent(4)
    first = [str(note) for note in chat.compress("truncate-results", 10_000).changes]
    assert (
        describe_compression(chat, "anthropic")
        == describe_compression(chat, "gemini")
        == describe_compression(chat, "anthropic", "claude-sonnet-4-5")
        == first
    )
    assert describe_compression(chat, "gemini") == []
    second = [str(note) for note in chat.compress("truncate-results", 5_000).changes]
    loaded = segue.Conversation.load(chat.dump())
    assert describe_compression(chat, "gemini") == second
    assert describe_compression(chat, "mistral") == describe_compression(loaded, "gemini") == first + second


def test_compression_of_rewound_turns_is_not_reported():
    chat = agent(4)
    made = chat.compress("truncate-results", 2_000)
    chat.state.history.rewind("turn-1")
    assert len(made.changes) == 4
    assert describe_compression(chat, "gemini") == [str(made.changes[0])]


def test_shortened_results_stay_shortened():
    chat = agent(4)
    assert chat.compress("truncate-results", 2_000).reached
    short = contents(chat)
    assert max(map(len, short)) < 5_000
    for message in chat.messages:
        for block in message.blocks:
            if isinstance(block, ToolCall):
                number = block.arguments["path"].partition(".")[0]
                chat.add_result(block, f"{number}: {LONG}")
    assert contents(chat) == short
    loaded = segue.Conversation.load(chat.dump())
    assert contents(loaded) == short
    loaded.add_result(loaded.messages[1].blocks[0].id, f"0: {LONG}")  # pyright: ignore[reportAttributeAccessIssue]
    assert contents(loaded) == short


def test_dropped_turns_do_not_come_back():
    chat = agent(4)
    first = chat.messages[1].blocks[0]
    chat.compress("drop-oldest", 9_000)
    assert [text[0] for text in contents(chat)] == ["2", "3"]
    assert isinstance(first, ToolCall)
    chat.add_result(first, "late")
    assert [text[0] for text in contents(chat)] == ["2", "3"]
    assert first.id in {entry.call.id for entry in chat.state.history.ledger.values()}
    # The counter never goes back.
    chat.add_reply(claude(use(9)), source="anthropic")
    assert chat.messages[-1].turn_key == "turn-5"


def test_a_pinned_message_stays_as_it_is():
    chat = agent(3)
    pinned = chat.pin(chat.messages[2])
    assert pinned.pinned
    assert chat.messages[2] is pinned
    chat.compress("truncate-results", 0)
    chat.compress("drop-oldest", 0)
    assert pinned in chat.messages
    loaded = segue.Conversation.load(chat.dump())
    assert loaded.messages == chat.messages
    assert loaded.pin(pinned) == pinned
    with pytest.raises(segue.InputError, match="not in this history"):
        chat.pin(Message("human", (Text("who?"),)))


def test_an_exact_counter_takes_the_place_of_the_estimate():
    chat = agent(3)
    made = chat.compress("drop-oldest", 5, count=lambda _: 1)
    assert (made.before, made.tokens, len(chat.messages)) == (7, 5, 5)


def test_usage_that_providers_report_draws_the_estimate():
    def describe_compression(tokens: int) -> int:
        chat = segue.Conversation()
        chat.add_user(LONG)
        chat.add_reply(claude({"type": "text", "text": "ok"}, tokens=tokens), source="anthropic")
        loaded = segue.Conversation.load(chat.dump())
        assert loaded.compress("dense", 10**9).before == chat.compress("dense", 10**9).before
        return chat.compress("dense", 10**9).before

    assert 3700 < describe_compression(0) < 3800
    assert describe_compression(3000) < describe_compression(3754) < describe_compression(6000)
    assert describe_compression(3754) == pytest.approx(describe_compression(0), rel=0.01)
    assert describe_compression(10**7) == pytest.approx(2 * describe_compression(0), rel=0.01)


def test_reasoning_bound_to_dropped_messages_is_not_sent():
    model = "claude-opus-5-1"
    chat = segue.Conversation(tools=TOOLS)
    for number in range(3):
        chat.add_user(f"go {number} {LONG}")
        chat.render("anthropic", model=model)
        thinking = {"type": "thinking", "thinking": f"hm {number}", "signature": "c2ln"}
        chat.add_reply(claude(thinking, {"type": "text", "text": "ok"}, model=model), source="anthropic")
    chat.add_user("and?")
    assert chat.render("anthropic", model=model).data.count(b"c2ln") == 3
    chat.compress("drop-oldest", 9_000)
    after = chat.render("anthropic", model=model)
    assert b"c2ln" not in after.data
    assert segue.check(after.body, "anthropic")


def test_a_failed_summary_changes_nothing():
    chat = agent(4)
    before = chat.messages

    def fails(_: object) -> str:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        chat.compress("middle-out", 100, summarise=fails)
    assert chat.messages == before
    assert chat.render("anthropic").report.findings_of("compressed") == []


# ------------------------------------------------------------------------------------------------ notes that stay true


def read(chat: segue.Conversation, text: str, number: int = 0) -> None:
    """An exchange that reads one file."""
    chat.add_user("read it")
    [made] = chat.add_reply(claude(use(number) | {"id": f"toolu_{len(chat.messages)}"}), source="anthropic").calls
    chat.add_result(made, text)


def test_results_out_of_order_get_no_note_about_what_stands_before():
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("read it twice")
    first, second = chat.add_reply(claude(use(0), use(0) | {"id": "toolu_9"})).calls
    chat.add_result(second, LONG)
    chat.add_result(first, LONG)
    chat.compress("dense", 0)
    assert contents(chat) == [LONG, LONG]


@pytest.mark.parametrize("hides", ["rewind", "middle-out", "truncate-results"])
def test_a_note_never_refers_to_a_result_that_is_gone(hides: str):
    chat = segue.Conversation(tools=TOOLS)
    for number, text in enumerate((LONG, LONG, "nothing")):
        read(chat, text, number)
    chat.compress("dense", 0)
    assert "further on" in contents(chat)[0]
    assert contents(chat)[1] == LONG
    if hides == "rewind":
        chat.state.history.rewind("turn-1")
        assert contents(chat) == [LONG]
    else:
        made = chat.compress(hides, 0, summarise=lambda _: "in short")
        assert contents(chat)[0] == "[result removed to save space]"
        assert chat.messages[2].blocks[0].call_id in {i for change in made.changes for i in change.calls}  # pyright: ignore[reportAttributeAccessIssue]
    loaded = segue.Conversation.load(chat.dump())
    assert contents(loaded) == contents(chat)


def test_what_a_pinned_note_refers_to_is_kept():
    chat = segue.Conversation(tools=TOOLS)
    for number, text in enumerate((LONG, LONG, "nothing")):
        read(chat, text, number)
    chat.compress("dense", 0)
    chat.pin(chat.messages[2])
    for strategy in ("truncate-results", "middle-out", "drop-oldest"):
        chat.compress(strategy, 0, summarise=lambda _: "in short")
    assert contents(chat)[0].endswith("further on]")
    assert contents(chat)[1] == LONG


def test_a_note_follows_its_result_to_a_newer_copy():
    chat = segue.Conversation(tools=TOOLS)
    for _ in range(2):
        read(chat, LONG)
    chat.compress("dense", 0)
    read(chat, LONG)
    chat.compress("dense", 0)
    assert [text == LONG for text in contents(chat)] == [False, False, True]
    chat.state.history.rewind("turn-2")
    assert contents(chat) == [LONG, LONG]


def test_equal_results_without_a_call_are_rendered_once():
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("go")
    [lost] = segue.parse_item({"type": "function_call_output", "call_id": "call_7", "output": "found it"}, "openai")
    [other] = segue.parse_item({"type": "function_call_output", "call_id": "call_7", "output": "another"}, "openai")
    for block in (lost, lost, other):
        chat.add_blocks(block)
    rendered = chat.render("openai-chat")
    assert rendered.data.count(b"found it") == rendered.data.count(b"another") == 1
    assert [finding.message for finding in rendered.report.findings_of("dedupe")] == ["identical second result dropped"]
    # Its call comes after it, and the result once more.
    chat.render("openai-responses")
    called = {"type": "function_call", "call_id": "call_7", "name": "read", "arguments": "{}", "id": "fc_7"}
    chat.add_blocks(*segue.parse_item(called, "openai"), lost)
    body = chat.render("openai-chat")
    assert body.data.count(b"found it") == 1
    assert segue.check(body.body, "openai-chat")


def test_the_budget_includes_system_text_and_tools():
    chat = agent(4)
    chat.system = "Be brief. " * 500
    result = chat.compress("truncate-results", 4_000)
    assert result.reached
    assert chat.tokens <= result.tokens <= 4_000
    result = chat.compress("truncate-results", 1_200)
    assert not result.reached
    assert result.reason.endswith("tokens of system text and tools")
    assert result.tokens >= chat.tokens

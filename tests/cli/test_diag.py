"""`segue diag`: any turn for any target, with the layer of each finding and without secrets."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest

from segue._conversation import Conversation
from segue._rendered import Rendered
from segue.canonical.blocks import Message, Text
from segue.canonical.request import Reply
from segue.cli.diagnosis import LAYERS
from segue.store.conversation import StoredConversation
from segue.store.events import MessageAdded, ReplyBroken
from segue.wire.registry import WIRES
from tests.bodies.anthropic import text
from tests.cli.bodies import OPEN
from tests.cli.client_logs import ClaudeCode, Codex
from tests.cli.process import run
from tests.cli.store_cli import StoreCli, json_lines
from tests.store.reply_bodies import reply_body

KEY = "sk-ant-api03-" + "a1B2" * 8


@pytest.mark.parametrize("api", WIRES)
def test_any_turn_renders_for_any_target(store_cli: StoreCli, api: str):
    id = store_cli.add_conversation()
    for turn, calls in (("0", 0), ("1", 1), ("turn-1", 1), ("2", 1)):
        output = store_cli("diag", id, turn, "--to", api, "--json").json
        assert output["verdict"]["accepted"]
        assert (output["target"], output["request"]["calls"]) == (api, calls)
    ended = store_cli("diag", id, "--to", api)
    assert ended.code == 0
    assert ended.lines[-1] == f"accepted: {api} would accept this request"


def test_turn_is_the_request_sent_after_it(store_cli: StoreCli):
    id = store_cli.add_conversation()
    with store_cli.store() as store, StoredConversation(store, id) as chat:
        before = chat.render("anthropic", "claude-sonnet-4-5").body
        chat.add_user("And now?")
        now = chat.render("anthropic", "claude-sonnet-4-5").body
        chat.add_reply({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Later."}]})
    assert store_cli("diag", id, "2", "--body", "--json").json["body"] == now != before
    assert store_cli("diag", id, "--body", "--json").json["body"] != now


def add_exchange(chat: StoredConversation, prompt: str, target: str, model: str) -> None:
    """Words, and a reply of this target without calls."""
    chat.add_user(prompt)
    chat.render(target, model)
    chat.add_reply(reply_body(target, text=f"to {prompt}"))


def test_turn_ends_at_its_rewind(store_cli: StoreCli):
    with store_cli.store() as store, StoredConversation.create(store, Conversation()) as chat:
        for prompt in ("one", "two", "three"):
            add_exchange(chat, prompt, "anthropic", "claude-sonnet-4-5")
        then = chat.render("anthropic", "claude-sonnet-4-5").body
        chat.rewind("turn-1")
        add_exchange(chat, "another way", "openai-chat", "gpt-4.1")
        other = chat.render("openai-chat", "gpt-4.1").body
        chat.rewind("turn-1")
        chat.add_user("and now")
    for turn, target, body in (("3", "anthropic", then), ("turn-4", "openai-chat", other)):
        output = store_cli("diag", chat.id, turn, "--body", "--json").json
        assert (output["target"], output["body"], output["turns"]) == (target, body, 4)
    assert store_cli("diag", chat.id, "1", "--json").json["request"]["messages"] == 3
    assert store_cli("diag", chat.id, "--to", "openai-chat", "--json").json["request"]["messages"] == 3


TALK = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "first"},
    {"role": "user", "content": "two"},
    {"role": "assistant", "content": "second"},
    {"role": "user", "content": "three"},
]


def imports() -> dict[str, tuple[bytes, str, str]]:
    """The same conversation as three files, each with its API."""
    claude, codex = ClaudeCode(), Codex()
    codex.line("turn_context", model="gpt-5.1-codex")
    for number, message in enumerate(TALK):
        if message["role"] == "user":
            claude.user(message["content"])
            codex.user(message["content"])
        else:
            claude.reply(f"msg_{number}", text(message["content"]))
            codex.answer(message["content"])
    body = {"model": "gpt-4.1", "messages": TALK}
    return {
        "body": (json.dumps(body).encode(), "openai-chat", "gpt-4.1"),
        "claude": (json_lines(claude.lines), "anthropic", "claude-opus-4-6"),
        "codex": (json_lines(codex.lines), "openai-responses", "gpt-5.1-codex"),
    }


@pytest.mark.parametrize("name", ["body", "claude", "codex"])
def test_the_turns_of_an_import_are_its_replies(store_cli: StoreCli, name: str):
    data, target, model = imports()[name]
    id = store_cli("import", stdin=data).out.strip()
    assert store_cli("diag", id).lines[1].startswith(f"conversation {id}, 2 turns; now, ")
    for turn, count in (("0", 1), ("1", 3), ("2", 5)):
        output = store_cli("diag", id, turn, "--json").json
        assert (output["request"]["messages"], output["target"], output["model"]) == (count, target, model)
    ended = store_cli("diag", id, "3")
    assert (ended.code, ended.is_one_line_error) == (2, True)


@pytest.mark.parametrize("strategy", ["drop-oldest", "truncate-results", "dense", "middle-out"])
def test_compressions_are_reported(store_cli: StoreCli, strategy: str):
    with store_cli.store() as store, StoredConversation.create(store, Conversation()) as chat:
        for _ in range(6):
            chat.add_user("Read it")
            chat.render("anthropic", "claude-sonnet-4-5")
            for call in chat.add_reply(reply_body("anthropic", calls=[("read", "a")])).calls:
                chat.add_result(call, "words and words " * 300)
        made = chat.compress(strategy, 4000, summarise=lambda _: "in short")
    output = store_cli("diag", chat.id, "--json").json
    findings = [finding["message"] for finding in output["findings"] if finding["kind"] == "compressed"]
    assert findings == [str(note) for note in made.changes] != []
    assert (output["store"]["messages"], output["request"]["messages"]) == (18, len(made.messages))
    lines = store_cli("diag", chat.id).lines
    assert [line for line in lines if line.startswith("  changed: compressed: message")]
    assert not [line for line in lines if line.startswith("nothing had to be decided")]
    store_cli("compress", chat.id, "--undo")
    assert "  compressed: " not in store_cli("diag", chat.id).out


def test_finding_layers_are_named(store_cli: StoreCli):
    id = store_cli("import", stdin=OPEN).out.strip()
    ended = store_cli("diag", id, "--to", "anthropic")
    place = ended.lines.index(f"{LAYERS['canonical']}:")
    assert ended.lines[place + 1].startswith(
        "  changed: synthetic (get_weather): added an error result for a tool call without a result [hist_tool_"
    )
    findings = store_cli("diag", id, "--to", "anthropic", "--json").json["findings"]
    assert {finding["fault"] for finding in findings} > {"canonical"}
    for finding in findings:
        assert finding["layer"] == LAYERS[finding["fault"]]
        place = ended.lines.index(f"{finding['layer']}:")
        assert any(finding["message"] in line for line in ended.lines[place:])


def test_default_target_is_the_last_used(store_cli: StoreCli):
    output = store_cli("diag", store_cli.add_conversation(), "--json").json
    assert (output["target"], output["model"]) == ("anthropic", "claude-sonnet-4-5")
    nobody = store_cli.add_events(MessageAdded(Message("human", (Text("hi"),))))
    ended = store_cli("diag", nobody)
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert "--to" in ended.err


def test_store_facts_are_reported(store_cli: StoreCli):
    id = store_cli.add_conversation()
    with store_cli.store() as store:
        with StoredConversation(store, id) as chat:
            chat.add_user("Again")
            reply = chat.add_reply(
                {"type": "message", "role": "assistant", "content": [{**WAITING, "id": "toolu_7"}]}, source="anthropic"
            )
            chat.add_result(reply.calls[0], "one")
            chat.mark_sent()
            chat.add_result(reply.calls[0], "another")
            chat.record_broken(Reply((Text("half an answ"),), finish="error"))
            chat.add_reply({"type": "message", "role": "assistant", "content": [{**WAITING, "id": "toolu_8"}]})
            chat.compress("drop-oldest", 60)
        store.acquire(id, "somebody", 1000)
    output = store_cli("diag", id, "--json").json["store"]
    assert output["events"]["added"] >= 5
    assert output["lease"].startswith("since ")
    assert output["calls"]["complete"] == 2
    assert output["broken_replies"][0].endswith("error, 'half an answ'")
    assert [line for line in output["compressions"] if "drop-oldest to 60" in line]
    assert [line for line in output["conflicting_results"] if "and 1 more" in line]
    lines = store_cli("diag", id).lines
    assert any(line.startswith("  lease: since ") for line in lines)


COMPACTION = {"type": "compaction", "content": "SUMMARY", "signature": "c2lnbmVk"}


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("kimi", "changed: dropped (compaction): compaction dropped: the messages that it stands for are sent"),
        ("anthropic", "note: dropped (compaction): compaction: the 3 messages before it not sent"),
    ],
)
def test_a_compaction_is_shown_with_what_the_target_gets(store_cli: StoreCli, target: str, what: str):
    with store_cli.store() as store, StoredConversation.create(store, Conversation()) as chat:
        add_exchange(chat, "one", "anthropic", "claude-opus-5")
        chat.add_user("two")
        chat.render("anthropic", "claude-opus-5")
        reply = {**reply_body("anthropic", text="three"), "model": "claude-opus-5"}
        chat.add_reply({**reply, "content": [COMPACTION, *reply["content"]]})
        chat.add_user("four")
    ended = store_cli("diag", chat.id, "--to", target)
    assert [line for line in ended.lines if line.endswith(": compaction in place of the 3 messages before it")]
    assert f"  {what}" in ended.lines
    assert "SUMMARY" not in ended.out


WAITING = {"type": "tool_use", "name": "read_file", "input": {"path": "x"}}


def test_diag_writes_nothing_and_ends_no_call(store_cli: StoreCli):
    id = store_cli("import", stdin=json.dumps({"messages": json.loads(OPEN)["messages"][:2]}).encode()).out.strip()
    before = store_cli("log", "show", id, "--all", "--json").out
    output = store_cli("diag", id, "--to", "gemini", "--json").json
    assert [line.split(" ")[0] for line in output["store"]["pending_calls"]] == ["get_weather"]
    assert store_cli("log", "show", id, "--all", "--json").out == before


# ------------------------------------------------------------------------------------------------------ our own faults


def break_rendering(monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
    """Rendering with a bug in it."""
    whole = Conversation.render

    def render(self: Conversation, *arguments: Any, **more: Any) -> Rendered:
        rendered = whole(self, *arguments, **more)
        body = json.loads(rendered.data)
        spoil(body)
        return Rendered(rendered.report, rendered.sent_request, body=body)

    monkeypatch.setattr(Conversation, "render", render)


def drop_result(body: Any) -> None:
    del body["messages"][2]


def change_id(body: Any) -> None:
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            for key in ("id", "tool_use_id"):
                if key in block:
                    block[key] += " ü!"


@pytest.mark.parametrize(("spoil", "layer"), [(drop_result, "rendering"), (change_id, "projection")])
def test_invalid_body_exits_1_with_its_layer(
    store_cli: StoreCli, monkeypatch: pytest.MonkeyPatch, spoil: Any, layer: Any
):
    id = store_cli.add_conversation()
    break_rendering(monkeypatch, spoil)
    ended = store_cli("diag", id)
    assert ended.code == 1
    assert ended.lines[-2] == "refused: anthropic would reject this request"
    assert ended.lines[-1].endswith(f"layer: {layer}")
    assert [line for line in ended.lines if line.startswith("reject ANT-")]
    output = store_cli("diag", id, "--json")
    assert (output.code, output.json["verdict"]["layer"]) == (1, LAYERS[layer])


# -------------------------------------------------------------------------------------------------------------- secrets


def test_nothing_secret_is_in_it(store_cli: StoreCli):
    call = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "fetch",
        "input": {"headers": {"x-api-key": "0123456789abcdef"}},
    }
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "system": f"The key is {KEY}",
        "messages": [
            {"role": "user", "content": f"Authorization: Bearer {KEY}\nAKIAIOSFODNN7EXAMPLE"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": KEY}]},
        ],
    }
    id = store_cli("import", stdin=json.dumps(body).encode()).out.strip()
    with store_cli.store() as store:
        store.append(id, store.get(id).seq, [ReplyBroken(Reply((Text(f"use {KEY}"),), finish="error"))])
    for arguments in ([], ["--json"], ["--body"], ["--body", "--json"]):
        out = store_cli("diag", id, "--to", "openai-chat", *arguments).out
        for secret in (KEY, "AKIAIOSFODNN7EXAMPLE", "0123456789abcdef"):
            assert secret not in out
    assert "removed]" in store_cli("diag", id, "--body").out
    assert str(store_cli.folder) not in store_cli("diag", id).out


def test_secret_named_values_are_redacted(store_cli: StoreCli):
    secrets = ["s3ssion-abc", "hunter2hunter", "m3tadata"]
    arguments = {"headers": {"Cookie": f"session={secrets[0]}"}, "command": f"mysql --password {secrets[1]} db"}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "metadata": {"token": secrets[2]},
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "run", "input": arguments}]},
        ],
    }
    id = store_cli("import", stdin=json.dumps(body).encode()).out.strip()
    for target in ("anthropic", "openai-chat"):
        for form in ([], ["--json"]):
            out = store_cli("diag", id, "--to", target, "--body", *form).out
            assert "mysql" in out
            assert not [secret for secret in secrets if secret in out]


def test_quoted_findings_are_sanitized(store_cli: StoreCli):
    evil = "\x1b[2Jname\nrefused: x"
    call = {"id": "call_1", "type": "function", "function": {"name": evil, "arguments": "{}"}}
    body = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]}
    id = store_cli("import", "--from", "openai-chat", stdin=json.dumps(body).encode()).out.strip()
    out = store_cli("diag", id, "--to", "anthropic").out
    assert "\x1b" not in out
    assert "refused: x" not in out.splitlines()


@pytest.mark.parametrize("turn", ["3", "turn-9", "x", "-1", "1.5"])
def test_missing_turn_is_usage_error(store_cli: StoreCli, turn: str):
    ended = (
        store_cli("diag", store_cli.add_conversation(), "--", turn)
        if turn.startswith("-")
        else store_cli("diag", store_cli.add_conversation(), turn)
    )
    assert (ended.code, ended.is_one_line_error) == (2, True)


def test_as_a_process(store_cli: StoreCli):
    ended = run("diag", store_cli.add_conversation(), SEGUE_STORE=str(store_cli.path))
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines[0].startswith(f"segue {metadata.version('segue')}, Python ")

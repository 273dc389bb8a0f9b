"""`segue diag`: any turn for any target, with the layer of each fault, and nothing secret in it."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest

from segue.canonical.blocks import Message, Text
from segue.canonical.request import Reply
from segue.cli.diagnosis import LAYERS
from segue.conversation import Conversation, Rendered
from segue.store.conversation import StoredConversation
from segue.store.events import Broke, Said
from segue.wire.registry import WIRES
from tests.cli.bodies import OPEN
from tests.cli.client_logs import ClaudeCode, Codex, text
from tests.cli.kept import Kept, json_lines
from tests.cli.process import run
from tests.store.voices import reply_body

KEY = "sk-ant-api03-" + "a1B2" * 8


@pytest.mark.parametrize("api", WIRES)
def test_any_turn_can_be_told_for_any_target(kept: Kept, api: str):
    id = kept.talk()
    for turn, calls in (("0", 0), ("1", 1), ("turn-1", 1), ("2", 1)):
        told = kept("diag", id, turn, "--to", api, "--json").json
        assert told["verdict"]["accepted"]
        assert (told["target"], told["request"]["calls"]) == (api, calls)
    ended = kept("diag", id, "--to", api)
    assert ended.code == 0
    assert ended.lines[-1] == f"accepted: {api} would accept this request"


def test_a_turn_is_what_was_sent_after_it(kept: Kept):
    id = kept.talk()
    with kept.store() as store, StoredConversation(store, id) as chat:
        before = chat.render("anthropic", "claude-sonnet-4-5").body
        chat.add_user("And now?")
        now = chat.render("anthropic", "claude-sonnet-4-5").body
        chat.add_reply({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Later."}]})
    assert kept("diag", id, "2", "--body", "--json").json["body"] == now != before
    assert kept("diag", id, "--body", "--json").json["body"] != now


def say(chat: StoredConversation, words: str, target: str, model: str) -> None:
    """Words, and a reply of this target without calls."""
    chat.add_user(words)
    chat.render(target, model)
    chat.add_reply(reply_body(target, text=f"to {words}"))


def test_a_turn_ends_where_it_is_taken_back(kept: Kept):
    with kept.store() as store, StoredConversation.create(store, Conversation()) as chat:
        for words in ("one", "two", "three"):
            say(chat, words, "anthropic", "claude-sonnet-4-5")
        then = chat.render("anthropic", "claude-sonnet-4-5").body
        chat.rewind("turn-1")
        say(chat, "another way", "openai-chat", "gpt-4.1")
        other = chat.render("openai-chat", "gpt-4.1").body
        chat.rewind("turn-1")
        chat.add_user("and now")
    for turn, target, body in (("3", "anthropic", then), ("turn-4", "openai-chat", other)):
        told = kept("diag", chat.id, turn, "--body", "--json").json
        assert (told["target"], told["body"], told["turns"]) == (target, body, 4)
    assert kept("diag", chat.id, "1", "--json").json["request"]["messages"] == 3
    assert kept("diag", chat.id, "--to", "openai-chat", "--json").json["request"]["messages"] == 3


TALK = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "first"},
    {"role": "user", "content": "two"},
    {"role": "assistant", "content": "second"},
    {"role": "user", "content": "three"},
]


def imports() -> dict[str, tuple[bytes, str, str]]:
    """The same three times: a file, and whom it was said to."""
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
def test_the_turns_of_an_import_are_its_replies(kept: Kept, name: str):
    data, target, model = imports()[name]
    id = kept("import", stdin=data).out.strip()
    assert kept("diag", id).lines[1].startswith(f"conversation {id}, 2 turns; now, ")
    for turn, count in (("0", 1), ("1", 3), ("2", 5)):
        told = kept("diag", id, turn, "--json").json
        assert (told["request"]["messages"], told["target"], told["model"]) == (count, target, model)
    ended = kept("diag", id, "3")
    assert (ended.code, ended.refused) == (2, True)


@pytest.mark.parametrize("strategy", ["drop-oldest", "truncate-results", "dense", "middle-out"])
def test_what_compressions_did_is_told(kept: Kept, strategy: str):
    with kept.store() as store, StoredConversation.create(store, Conversation()) as chat:
        for _ in range(6):
            chat.add_user("Read it")
            chat.render("anthropic", "claude-sonnet-4-5")
            for call in chat.add_reply(reply_body("anthropic", calls=[("read", "a")])).calls:
                chat.add_result(call, "words and words " * 300)
        made = chat.compress(strategy, 4000, summarise=lambda _: "in short")
    told = kept("diag", chat.id, "--json").json
    findings = [finding["message"] for finding in told["findings"] if finding["kind"] == "compressed"]
    assert findings == [str(note) for note in made.notes] != []
    assert (told["store"]["messages"], told["request"]["messages"]) == (18, len(made.messages))
    lines = kept("diag", chat.id).lines
    assert [line for line in lines if line.startswith("  compressed: message")]
    assert not [line for line in lines if line.startswith("nothing had to be decided")]
    kept("compress", chat.id, "--undo")
    assert "  compressed: " not in kept("diag", chat.id).out


def test_the_layer_of_each_finding_is_told_in_words(kept: Kept):
    id = kept("import", stdin=OPEN).out.strip()
    ended = kept("diag", id, "--to", "anthropic")
    place = ended.lines.index(f"{LAYERS['canonical']}:")
    assert ended.lines[place + 1].startswith(
        "  synthetic (get_weather): interrupted: no result was recorded [hist_tool_"
    )
    findings = kept("diag", id, "--to", "anthropic", "--json").json["findings"]
    assert {finding["fault"] for finding in findings} > {"canonical"}
    for finding in findings:
        assert finding["layer"] == LAYERS[finding["fault"]]
        place = ended.lines.index(f"{finding['layer']}:")
        assert any(finding["message"] in line for line in ended.lines[place:])


def test_the_target_is_the_one_that_was_asked_last(kept: Kept):
    told = kept("diag", kept.talk(), "--json").json
    assert (told["target"], told["model"]) == ("anthropic", "claude-sonnet-4-5")
    nobody = kept.keep(Said(Message("human", (Text("hi"),))))
    ended = kept("diag", nobody)
    assert (ended.code, ended.refused) == (2, True)
    assert "--to" in ended.err


def test_what_the_store_knows_is_told(kept: Kept):
    id = kept.talk()
    with kept.store() as store:
        with StoredConversation(store, id) as chat:
            chat.add_user("Again")
            reply = chat.add_reply(
                {"type": "message", "role": "assistant", "content": [{**WAITING, "id": "toolu_7"}]}, source="anthropic"
            )
            chat.add_result(reply.calls[0], "one")
            chat.sent()
            chat.add_result(reply.calls[0], "another")
            chat.broke(Reply((Text("half an answ"),), finish="error"))
            chat.add_reply({"type": "message", "role": "assistant", "content": [{**WAITING, "id": "toolu_8"}]})
            chat.compress("drop-oldest", 60)
        store.acquire(id, "somebody", 1000)
    told = kept("diag", id, "--json").json["store"]
    assert told["events"]["said"] >= 5
    assert told["in hand"].startswith("since ")
    assert told["calls"]["complete"] == 2
    assert told["broken replies"][0].endswith("error, 'half an answ'")
    assert [line for line in told["compressions"] if "drop-oldest to 60" in line]
    assert [line for line in told["evidence"] if "and 1 more" in line]
    lines = kept("diag", id).lines
    assert any(line.startswith("  lease: since ") for line in lines)


WAITING = {"type": "tool_use", "name": "read_file", "input": {"path": "x"}}


def test_looking_writes_nothing_and_ends_no_call(kept: Kept):
    id = kept("import", stdin=json.dumps({"messages": json.loads(OPEN)["messages"][:2]}).encode()).out.strip()
    before = kept("log", "show", id, "--all", "--json").out
    told = kept("diag", id, "--to", "gemini", "--json").json
    assert [line.split(" ")[0] for line in told["store"]["waiting"]] == ["get_weather"]
    assert kept("log", "show", id, "--all", "--json").out == before


# ------------------------------------------------------------------------------------------------------ our own faults


def spoiled(monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
    """Rendering with a bug in it."""
    whole = Conversation.render

    def render(self: Conversation, *arguments: Any, **more: Any) -> Rendered:
        rendered = whole(self, *arguments, **more)
        body = json.loads(rendered.data)
        spoil(body)
        return Rendered(rendered.report, rendered.asked, body=body)

    monkeypatch.setattr(Conversation, "render", render)


def lose_the_result(body: Any) -> None:
    del body["messages"][2]


def misspell_the_id(body: Any) -> None:
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            for key in ("id", "tool_use_id"):
                if key in block:
                    block[key] += " ü!"


@pytest.mark.parametrize(("spoil", "layer"), [(lose_the_result, "rendering"), (misspell_the_id, "projection")])
def test_a_body_that_would_be_refused_is_1_and_a_bug_in_its_layer(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, spoil: Any, layer: Any
):
    id = kept.talk()
    spoiled(monkeypatch, spoil)
    ended = kept("diag", id)
    assert ended.code == 1
    assert ended.lines[-2] == "refused: anthropic would reject this request"
    assert ended.lines[-1].endswith(f"layer: {layer}")
    assert [line for line in ended.lines if line.startswith("reject ANT-")]
    told = kept("diag", id, "--json")
    assert (told.code, told.json["verdict"]["layer"]) == (1, LAYERS[layer])


# -------------------------------------------------------------------------------------------------------------- secrets


def test_nothing_secret_is_in_it(kept: Kept):
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
    id = kept("import", stdin=json.dumps(body).encode()).out.strip()
    with kept.store() as store:
        store.append(id, store.get(id).seq, [Broke(Reply((Text(f"use {KEY}"),), finish="error"))])
    for arguments in ([], ["--json"], ["--body"], ["--body", "--json"]):
        out = kept("diag", id, "--to", "openai-chat", *arguments).out
        for secret in (KEY, "AKIAIOSFODNN7EXAMPLE", "0123456789abcdef"):
            assert secret not in out
    assert "removed]" in kept("diag", id, "--body").out
    assert str(kept.folder) not in kept("diag", id).out


def test_what_is_only_named_a_secret_is_not_in_it_either(kept: Kept):
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
    id = kept("import", stdin=json.dumps(body).encode()).out.strip()
    for target in ("anthropic", "openai-chat"):
        for form in ([], ["--json"]):
            out = kept("diag", id, "--to", target, "--body", *form).out
            assert "mysql" in out
            assert not [secret for secret in secrets if secret in out]


def test_what_findings_quote_obeys_nobody(kept: Kept):
    evil = "\x1b[2Jname\nrefused: x"
    call = {"id": "call_1", "type": "function", "function": {"name": evil, "arguments": "{}"}}
    body = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]}
    id = kept("import", "--from", "openai-chat", stdin=json.dumps(body).encode()).out.strip()
    out = kept("diag", id, "--to", "anthropic").out
    assert "\x1b" not in out
    assert "refused: x" not in out.splitlines()


@pytest.mark.parametrize("turn", ["3", "turn-9", "x", "-1", "1.5"])
def test_a_turn_that_is_not_there_is_one_line_and_2(kept: Kept, turn: str):
    ended = kept("diag", kept.talk(), "--", turn) if turn.startswith("-") else kept("diag", kept.talk(), turn)
    assert (ended.code, ended.refused) == (2, True)


def test_as_a_process(kept: Kept):
    ended = run("diag", kept.talk(), SEGUE_STORE=str(kept.path))
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines[0].startswith(f"segue {metadata.version('segue')}, Python ")

"""Freezes conversations of the present event format, for every later version to read: run once when there is a new one.

    python -m tests.store.freeze_conversations

It writes `frozen/talks/VERSION.db`, `VERSION.jsonl` (the same events, a line for each) and `VERSION.json`, which says
what they have to be read as; none of these is ever written again. What they are rendered as stands in
`VERSION.bytes.json`: that may change when rendering does, and is then written again (`SEGUE_SNAPSHOTS=write`) and read.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import segue
from segue.canonical.blocks import Code, Media, Opaque, Text, ToolCall, calls_of
from segue.canonical.codec import encode_value
from segue.canonical.request import Reply
from segue.store.conversation import StoredConversation
from segue.store.events import UnknownEvent, decode_event, dump_event
from segue.store.replay import ReplayState
from segue.store.sqlite import SqliteStore
from segue.wire.registry import WIRES
from tests.store.freeze import FROZEN, clock
from tests.store.reply_bodies import MODELS, reply_body

FROZEN_CONVERSATIONS = FROZEN / "talks"
VERSION = 9
"""Counted up when events are written in another way."""
TOOLS = [{"name": name, "description": name, "input_schema": {"type": "object"}} for name in ("look", "run")]
PICTURE = Media("image", "image/png", data="iVBORw0KGgo=")


def add_all_wires(kept: StoredConversation) -> None:
    """Every wire speaks once, with reasoning, repeated ids and none."""
    for number, wire in enumerate(WIRES):
        kept.add_user(f"question {number}" if number % 3 else [Text("see"), PICTURE])
        kept.render(wire, MODELS[wire])
        calls = [("look", "call_1"), ("run", None)][: 1 + number % 2]
        reply = kept.add_reply(reply_body(wire, thought=f"thought {number}", text="I look.", calls=calls, tokens=500))
        for call in reply.calls:
            found = [f"found by {wire}", {"n": [1, 2.5, None]}, (Text("see"), PICTURE, Code("print()", "python"))]
            kept.add_result(call, found[number % 3], error=number % 4 == 3)
        kept.switch(wire, MODELS[wire], provider=f"my {wire}")
    kept.add_reply(reply_body("anthropic", text="So it is."))


def imported(wire: str) -> segue.Conversation:
    """A body of this wire, with all that only it has a word for."""
    chat = segue.Conversation(system="Be brief.", tools=TOOLS, max_tokens=100)
    chat.add_user([Text("see"), PICTURE])
    reply = chat.add_reply(reply_body(wire, thought="so", text="I look.", calls=[("look", "call_1"), ("run", "b")]))
    for call in reply.calls:
        # Long enough to be stored once, although its fragment repeats it.
        chat.add_result(call, f"{call.name} did it, and this is what it found: " + "a line\n" * 9)
    chat.add_user("and?")
    more = {"previous_response_id": "resp_0"} if wire == "openai-responses" else {}
    body = {**chat.render(wire, MODELS[wire]).body, **more}
    return segue.Conversation.from_body(body, source=wire)


def compressed(kept: StoredConversation) -> None:
    for number in range(6):
        kept.add_user(f"question {number}")
        reply = reply_body("kimi", text="yes", calls=[("look", "a"), ("look", "b")], tokens=1500 * (number == 5))
        for call in kept.add_reply(reply).calls:
            kept.add_result(call, f"the same {number // 3} " + "word " * 100)
    # An event without a target, which `mark_sent` wrote without a render.
    kept._record(lambda chat: chat.mark_sent())
    assert kept.compress("dense", 1200).changes
    assert kept.compress("truncate-results", 700).changes
    kept.undo_compression()
    assert kept.compress("middle-out", 500, summarise=lambda messages: f"{len(messages)} messages, in short").changes
    kept.add_user("and now")
    kept.add_reply(reply_body("gemini", text="now", calls=[("run", None)]))
    assert kept.compress("drop-oldest", 200).changes
    kept.undo_compression()
    kept.pin(kept.messages[1])
    kept.add_user("never mind")
    kept.render("openai-chat")
    kept.add_reply(reply_body("qwen", text="then not"))


def rewound(kept: StoredConversation) -> None:
    kept.add_user("go")
    look, run = kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1"), ("run", "toolu_2")])).calls
    kept.add_result(look, "one")
    kept.add_result(look, "another")
    kept.add_user("hurry")
    [gone] = kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1")])).calls
    kept.add_result(run, "late")
    kept.rewind("turn-1")
    kept.add_result(gone, "for nobody")
    kept.add_user("again")
    third = kept.add_reply(reply_body("mistral", calls=[("look", "abcdefghi"), ("run", "abcdefghj")])).calls
    kept.cancel(third[0])
    kept.record_broken(Reply((Text("half an ans"),), finish="error", model="m"))
    kept.update_settings(system="Be long.", tools=TOOLS[:1], options={"temperature": 0.5})
    kept.add_blocks(*segue.parse_item({"type": "function_call_output", "call_id": "who", "output": "lost"}, "openai"))
    kept.add_blocks(ToolCall("run", kind="custom", arguments="free text"), Opaque("odd", text="something odd"))


def scheduled(kept: StoredConversation) -> None:
    """Outcomes that were known in another order than the calls', one after the other and across a fork."""
    kept.add_user("go")
    wanted = [("look", "a"), ("run", "b"), ("look", "a"), ("run", None), ("run", "e")]
    first, second, third, fourth, last = kept.add_reply(reply_body("kimi", calls=wanted)).calls
    kept.record_result(third, (Text("see"), PICTURE))
    kept.record_result(second, {"n": [1, 2.5, None]}, error=True)
    kept.record_result(first, "first")
    kept.record_result(last, outcome="cancelled")
    kept.flush(last)
    kept.record_result(fourth, "fourth")
    kept.add_user("next")
    calls = kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1"), ("run", "toolu_2")])).calls
    kept.record_result(calls[1], "known before the end")


def not_kept_before() -> segue.Conversation:
    """What is known beside messages: other outcomes, calls that are gone, results as they were."""
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("go")
    look, run = chat.add_reply(reply_body("kimi", calls=[("look", "a"), ("run", "b")])).calls
    chat.add_result(look, "word " * 100)
    chat.add_result(look, "another")
    chat.add_user("next " * 50)
    chat.render("kimi")
    chat.add_reply(reply_body("openai-chat", text="fine", tokens=700))
    chat.add_result(run, "late")
    chat.add_user("more")
    chat.add_reply(reply_body("deepseek", thought="hm", text="more", calls=[("look", "c")]))
    chat.compress("truncate-results", 0)
    chat.state.history.rewind("turn-2")
    return chat


def fill_store(store: SqliteStore) -> None:
    add_all_wires(made(store, "voices"))
    for wire in WIRES:
        StoredConversation.create(store, imported(wire), title=f"imported from {wire}", owner="frozen")
    compressed(made(store, "compressed"))
    talk = made(store, "rewound")
    rewound(talk)
    with talk.fork("turn-1") as fork, talk.fork() as whole:
        fork.rename("a fork")
        fork.add_reply(reply_body("bedrock", text="another way"))
        whole.rename("all of it")
    scheduled(made(store, "scheduled"))
    kept = StoredConversation.create(store, not_kept_before(), title="not kept before", owner="frozen")
    kept.add_reply(reply_body("qwen", text="kept", calls=[("look", "q")]))
    store.append(kept.id, kept.state.seq, [UnknownEvent("from-the-future", {"deep": [1, {"a": None}]})])
    [record] = store.tail(kept.id, 1)
    event_fields = json.loads(dump_event(next(record.event for record in store.events(talk.id, after=1))))
    event_fields["message"]["hue"] = event_fields["message"]["blocks"][0]["hue"] = "green"
    store.append(kept.id, record.seq, [decode_event(json.dumps({**event_fields, "mood": "good"}))])


def made(store: SqliteStore, name: str) -> StoredConversation:
    kept = StoredConversation(store, store.create(id=name), owner="frozen")
    kept.update_settings(system="Be brief.", tools=TOOLS, options={"max_tokens": 1000})
    return kept


def expected_state(line: ReplayState) -> dict[str, Any]:
    """What a conversation has to be read as, whatever it is rendered as."""
    history = line.chat.state.history
    known = (
        {"known": [encode_value(message) for message in line.recorded_results.values()]}
        if line.recorded_results
        else {}
    )
    return {
        **known,
        "line": [line.seq, line.title, line.target, line.model, line.compressions, line.turn_ends, line.broken_replies],
        "turns": history.turns,
        "messages": [encode_value(message) for message in history.messages],
        "calls": [call.id for message in history.messages for call in calls_of(message)],
        "pending": [call.id for call in history.pending],
        "ledger": [encode_value(entry) for entry in history.ledger.values()],
        "settings": encode_value(line.chat.state.request),
        "tokens": encode_value(line.chat.state.token_estimator),
    }


def render_all(chat: segue.Conversation) -> dict[str, str]:
    return {wire: chat.render(wire).data.decode() for wire in WIRES}


def lines(store: SqliteStore) -> Iterator[str]:
    for summary in sorted(store.list(1000), key=lambda summary: summary.created):
        for record in store.events(summary.id):
            event = json.loads(dump_event(record.event))
            line = {"conversation": summary.id, "seq": record.seq, "at": record.at, "event": event}
            yield json.dumps(line, ensure_ascii=False) + "\n"


def main() -> None:
    FROZEN_CONVERSATIONS.mkdir(parents=True, exist_ok=True)
    name = FROZEN_CONVERSATIONS / str(VERSION)
    assert not name.with_suffix(".json").exists(), f"version {VERSION} is frozen already"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frozen.db"
        with SqliteStore(path, clock=clock()) as store:
            fill_store(store)
            name.with_suffix(".jsonl").write_text("".join(lines(store)), "utf-8")
            kept = [StoredConversation(store, summary.id) for summary in store.list(1000)]
            states = {one.id: expected_state(one.state) for one in kept}
            bodies = {one.id: render_all(one.chat) for one in kept}
        name.with_suffix(".db").write_bytes(path.read_bytes())
    for suffix, value in ((".json", states), (".bytes.json", bodies)):
        name.with_suffix(suffix).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

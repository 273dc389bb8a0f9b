"""Compactions through a bridge: what a provider's compaction stands for reaches every later target."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from segue.bridge.entries import EntryMemory
from segue.bridge.secret import Secret
from segue.gateway.entry_store import SqliteEntries
from tests.bridge.exchanges import MODELS, Answer, Response, Shell, endpoint, make_reply, path_of, streamed, whole

FACTS = ("KESTREL-7", "OSPREY-9")
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAAsealed" * 9}
BLOCK = {"type": "compaction", "content": "About birds.", "signature": "c2lnbmVk"}
OTHERS = [api for api in MODELS if api not in ("openai-responses", "anthropic")]
HOME = {"openai-responses": ITEM, "anthropic": BLOCK}
Prune = Callable[[list[Any], list[Any]], list[Any]]


def prune_nothing(before: list[Any], reply: list[Any]) -> list[Any]:
    return [*before, *reply]


def prune_all(_before: list[Any], reply: list[Any]) -> list[Any]:
    return reply


def keep_user_messages(before: list[Any], reply: list[Any]) -> list[Any]:
    """What Codex does: other ids, and contents as lists."""
    kept = [item for item in before if item.get("role") == "user"]
    if reply[0].get("role") != "assistant":
        texts = [item["content"] for item in kept]
        parts = [[{"type": "input_text", "text": text}] if isinstance(text, str) else text for text in texts]
        kept = [{**item, "type": "message", "content": part} for item, part in zip(kept, parts, strict=True)]
    return [*kept, *reply]


PRUNINGS: Mapping[str, Prune] = {"nothing": prune_nothing, "all": prune_all, "replies": keep_user_messages}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def body_of(api: str, items: list[Any], **fields: Any) -> dict[str, Any]:
    if api == "anthropic":
        return {"model": "m", "max_tokens": 99, "messages": items, **fields}
    return {"model": "m", "input": items, "store": False, **fields}


def compacted_reply(api: str, item: Mapping[str, Any], *, stream: bool = False, text: str = "") -> Response:
    """Return a provider's reply with a compaction, and a text after it."""
    if api == "anthropic":
        content = [item, *([{"type": "text", "text": text}] if text else [])]
        reply = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": MODELS[api],
            "content": content,
            "stop_reason": "end_turn" if text else "compaction",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not stream:
            return Response([json.dumps(reply).encode()])
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {**reply, "content": []}}]
        for index, block in enumerate(content):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events.append({"type": "content_block_stop", "index": index})
        events.append(
            {"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"]}, "usage": {"output_tokens": 1}}
        )
        events.append({"type": "message_stop"})
    else:
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
        output = [item, *([message] if text else [])]
        reply = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": MODELS[api]}
        reply |= {"output": output, "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
        if not stream:
            return Response([json.dumps(reply).encode()])
        started = {**reply, "status": "in_progress", "output": []}
        events = [{"type": "response.created", "response": started}]
        for index, one in enumerate(output):
            events.append({"type": "response.output_item.added", "output_index": index, "item": one})
            events.append({"type": "response.output_item.done", "output_index": index, "item": one})
        events.append({"type": "response.completed", "response": reply})
        events = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return Response([b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)])


def history(api: str) -> list[Any]:
    return [said("user", f"Remember {FACTS[0]}."), said("assistant", f"Noted, and {FACTS[1]}."), said("user", "More.")]


def reply_items(api: str, item: Mapping[str, Any]) -> list[Any]:
    return [{"role": "assistant", "content": [dict(item)]}] if api == "anthropic" else [dict(item)]


def items_at_home(api: str, items: list[Any]) -> list[Any]:
    """The items that the provider accepts: from Anthropic's newest signed block on, which replaces those before it."""
    blocks = [at for at, item in enumerate(items) if isinstance(item.get("content"), list)]
    return items[blocks[-1] :] if api == "anthropic" and blocks else items


def compact(api: str, memory: Any, items: list[Any], item: Mapping[str, Any], *, stream: bool = False) -> None:
    """Let the provider of this API compact a conversation."""
    body = body_of(api, items, **({"stream": True} if stream else {}))
    answer = Shell(endpoint(api), memory=memory).run(path_of(api), body, [compacted_reply(api, item, stream=stream)])
    assert answer.status == 200, answer.data


def send(api: str, target: str, memory: Any, items: list[Any], number: int = 0, **fields: Any) -> Answer:
    """Send the conversation to a target, with a gateway that was started anew."""
    shell = Shell(endpoint(target, number, **fields), memory=memory, cache="keep")
    answer = shell.run(path_of(api), body_of(api, items), [whole(target)])
    assert answer.status == 200, answer.data
    return answer


def compaction_levels(answer: Answer) -> set[str]:
    assert answer.relay.report is not None
    return {one.level for one in answer.relay.report.findings if one.subject == "compaction"}


def assert_facts(answer: Answer) -> None:
    sent = json.dumps(answer.sent_bodies[0])
    for fact in FACTS:
        assert sent.count(fact) == 1, fact
    assert "gAAAA" not in sent
    assert "c2lnbmVk" not in sent
    assert "lost" not in compaction_levels(answer)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("api", HOME)
def test_facts_reach_every_target_and_the_item_goes_home_unchanged(api: str, pruning: str, stream: bool) -> None:
    memory = EntryMemory()
    compact(api, memory, history(api), HOME[api], stream=stream)
    items = PRUNINGS[pruning](history(api), reply_items(api, HOME[api]))
    for number, target in enumerate([*OTHERS, *(other for other in HOME if other != api)]):
        items = [*items, said("user", f"Question {number}.")]
        assert_facts(send(api, target, memory, items))
        if number % 2:
            home = send(api, api, memory, items)
            assert home.sent_bodies[0] == body_of(api, items_at_home(api, items)) | {"model": MODELS[api]}
            assert json.dumps(HOME[api], separators=(",", ":")) in b"".join(home.sent[0].body).decode()
        items = [*items, said("assistant", f"Answer {number}.")]


@pytest.mark.parametrize("api", HOME)
def test_a_compaction_of_a_compacted_conversation_stands_for_both(api: str) -> None:
    memory = EntryMemory()
    items = history(api)
    for number in range(4):
        item = {**HOME[api], "encrypted_content": f"gAAAA{number}"}
        compact(api, memory, items, item)
        items = [*reply_items(api, item), said("user", f"EXTRA-{number}"), said("assistant", "Yes.")]
    items = [*items, said("user", "And now?")]
    answer = send(api, "kimi", memory, items)
    assert_facts(answer)
    sent = json.dumps(answer.sent_bodies[0])
    assert all(sent.count(f"EXTRA-{number}") == 1 for number in range(4))


@pytest.mark.parametrize("api", HOME)
@pytest.mark.parametrize("change", [{"base_url": "https://elsewhere.example/v1"}, {"key": Secret("another")}])
def test_no_other_account_or_endpoint_gets_the_item(api: str, change: dict[str, Any]) -> None:
    memory = EntryMemory()
    compact(api, memory, history(api), HOME[api])
    items = [*reply_items(api, HOME[api]), said("user", "And now?")]
    assert_facts(send(api, api, memory, items, **change))
    # Also where the history itself is gone.
    values = memory.load(list(memory._entries))
    memory.delete([key for key, value in values.items() if len(value) == max(map(len, values.values()))])
    answer = send(api, api, memory, items, **change)
    sent = json.dumps(answer.sent_bodies[0])
    assert "gAAAA" not in sent
    assert "c2lnbmVk" not in sent
    assert "About birds." in sent or "not available here" in sent
    assert "lost" in compaction_levels(answer)


@pytest.mark.parametrize("api", HOME)
def test_an_evicted_history_is_reported_as_unknown(api: str) -> None:
    items = [*reply_items(api, HOME[api]), said("user", "And now?")]
    answer = send(api, "kimi", EntryMemory(), items)
    sent = json.dumps(answer.sent_bodies[0])
    assert ("About birds." if api == "anthropic" else "not available here") in sent
    assert "gAAAA" not in sent
    # At home nothing need be known.
    assert send(api, api, EntryMemory(), items).sent_bodies[0] == body_of(api, items) | {"model": MODELS[api]}


def test_another_process_reads_the_same_store(tmp_path: Path) -> None:
    first = SqliteEntries(tmp_path / "entries.db")
    compact("openai-responses", first, history("openai-responses"), ITEM)
    second = SqliteEntries(tmp_path / "entries.db")
    try:
        assert_facts(send("openai-responses", "gemini", second, [ITEM, said("user", "And now?")]))
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize("damage", [b"", b"c2VndWU=", "swap"])
def test_a_damaged_entry_is_ignored(damage: Any) -> None:
    memory = EntryMemory()
    compact("openai-responses", memory, history("openai-responses"), ITEM)
    compact("openai-responses", memory, [said("user", "SECRET")], {**ITEM, "encrypted_content": "other"})
    values = memory.load(list(memory._entries))
    if damage == "swap":
        # The entry of another compaction in its place.
        keys = sorted(values, key=lambda key: len(values[key]))
        memory.save({keys[-1]: values[keys[-2]], keys[-2]: values[keys[-1]]})
    else:
        memory.save(dict.fromkeys(values, damage))
    sent = json.dumps(send("openai-responses", "kimi", memory, [ITEM, said("user", "And now?")]).sent_bodies[0])
    assert "SECRET" not in sent
    assert "not available here" in sent
    assert "gAAAA" not in sent


def test_an_item_of_another_client_is_not_found() -> None:
    memory = EntryMemory()
    compact("openai-responses", memory, history("openai-responses"), ITEM)
    shell = Shell(endpoint("kimi"), memory=memory)
    body = body_of("openai-responses", [ITEM, said("user", "And now?")])
    sent = json.dumps(shell.run("/v1/responses", body, [whole("kimi")], client="another").sent_bodies[0])
    assert FACTS[0] not in sent


def test_new_system_text_before_the_item_is_kept() -> None:
    memory = EntryMemory()
    compact("openai-responses", memory, history("openai-responses"), ITEM)
    items = [{"role": "developer", "content": "BE BRIEF"}, said("user", "NEW"), ITEM, said("user", "And now?")]
    answer = send("openai-responses", "kimi", memory, items)
    assert_facts(answer)
    sent = json.dumps(answer.sent_bodies[0])
    assert sent.index("BE BRIEF") < sent.index(FACTS[0]) < sent.index("NEW") < sent.index("And now?")


LONG = 60


def compact_long(api: str, memory: Any) -> None:
    """Compact a conversation that is too long for a context of 16,000 tokens."""
    said_before = [said("user" if at % 2 == 0 else "assistant", f"FACT-{at} " + "words " * 300) for at in range(LONG)]
    compact(api, memory, said_before, HOME[api])


@pytest.mark.parametrize("api", HOME)
def test_a_history_that_is_too_long_is_summarised_once(api: str) -> None:
    memory = EntryMemory()
    compact_long(api, memory)
    items = [*reply_items(api, HOME[api]), said("user", "And now?")]
    target = endpoint("kimi", context=16_000)
    summary = whole("kimi", make_reply("kimi", text="All facts, in short."))
    answer = Shell(target, memory=memory).run(path_of(api), body_of(api, items), [summary] * 9)
    assert answer.status == 200
    *parts, final = answer.sent_bodies
    assert len(parts) > 1
    assert all(any(f"FACT-{at} " in json.dumps(part) for part in parts) for at in range(LONG))
    assert "[summary of the conversation so far] All facts, in short." in json.dumps(final)
    assert "FACT-" not in json.dumps(final)
    assert compaction_levels(answer) == {"changed"}
    assert answer.relay.summary_usage is not None
    assert answer.relay.usage is not None
    assert (answer.relay.summary_usage.output, answer.relay.usage.output) == (7 * len(parts), 7 * len(parts) + 7)
    # Another process uses the same summary, and a model with room for it the history.
    again = Shell(target, memory=memory).run(path_of(api), body_of(api, items), [summary])
    assert "All facts, in short." in json.dumps(again.sent_bodies[0])
    roomy = json.dumps(send(api, "kimi", memory, items, context=1_000_000).sent_bodies[0])
    assert all(f"FACT-{at} " in roomy for at in range(LONG))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", HOME)
def test_without_a_summary_the_oldest_part_is_lost(api: str, stream: bool) -> None:
    memory = EntryMemory()
    compact_long(api, memory)
    items = [*reply_items(api, HOME[api]), said("user", "And now?")]
    failed = Response([b'{"error": {"message": "No.", "type": "server_error"}}'], 500)
    reply = streamed("kimi") if stream else whole("kimi")
    shell = Shell(endpoint("kimi", context=16_000), memory=memory)
    answer = shell.run(path_of(api), body_of(api, items, stream=stream), [failed, reply])
    assert answer.status == 200
    sent = json.dumps(answer.sent_bodies[-1])
    assert f"FACT-{LONG - 1} " in sent
    assert "FACT-0 " not in sent
    assert "not available here" in sent
    assert len(sent) < 16_000 * 4
    assert answer.relay.report is not None
    [finding] = [one for one in answer.relay.report.findings if one.subject == "compaction"]
    assert finding.level == "lost"
    assert f"of {LONG} items" in finding.message

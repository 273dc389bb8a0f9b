"""Without shortcuts a conversion gives the same bytes.

`segue.convert` hands values on without writing them down and compares objects by identity where it can. Here the same
request goes through the stored form (no object is the same afterwards) and through the history (every message written
one by one), and must come out equal to the byte.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.codec import dumps, loads
from segue.canonical.history import History
from segue.canonical.json import encode_json
from segue.canonical.request import Request
from segue.conversion.convert import render_for
from segue.render.constraints import Policy
from segue.render.reasoning_prefix import record_prefixes
from segue.render.report import Report
from segue.wire.registry import WIRES
from tests.bodies import chat
from tests.budget import examples
from tests.properties import checks
from tests.properties.test_properties import PAIRS, SOME_PAIRS, scenarios_with_body, target_model


def through_the_store(request: Request) -> Request:
    return loads(dumps(request))[0]


def through_the_history(request: Request) -> Request:
    messages, supplied = History(record_prefixes(request)).complete_from_ledger()
    assert not supplied
    return msgspec.structs.replace(request, messages=messages)


def bytes_of(request: Request, target: str, model: str | None) -> bytes:
    _, rendered = render_for(request, WIRES[target], Report(), Policy(), model=model)
    return encode_json(rendered.body)


def test_imported_duplicate_does_not_make_reasoning_valid_again() -> None:
    """Reasoning is bound to its original body, not to the history imported from that body."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    body = {
        "model": "claude-opus-5-1",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, result]},
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "done"}]},
            {"role": "user", "content": "and?"},
        ],
    }
    direct = segue.convert(body, source="anthropic", target="anthropic")
    chat = segue.Conversation.from_body(body, source="anthropic")
    assert b"hm" not in direct.data
    assert b"hm" not in chat.render("anthropic", model="claude-opus-5-1").data


@SOME_PAIRS[2]
@examples(4, items=len(PAIRS[2]))
@given(data=st.data())
def test_full_pipeline_gives_the_same_bytes(source: str, target: str, data: st.DataObject) -> None:
    _, body = scenarios_with_body(data, source)
    model = target_model(data, target) or (checks.model_of(body) if checks.is_same_provider(source, target) else None)
    direct = segue.convert(body, source=source, target=target, model=model).data
    request = WIRES[source].parse_request(body)
    assert bytes_of(through_the_store(request), target, model) == direct
    assert bytes_of(through_the_history(through_the_store(request)), target, model) == direct


REPLIES: dict[str, Any] = {
    "openai-chat": lambda calls, text: {
        "id": "c",
        "object": "chat.completion",
        "model": "gpt-4.1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if calls else "stop",
                "message": {
                    "role": "assistant",
                    "content": text,
                    **({"tool_calls": [_chat_call(*call) for call in calls]} if calls else {}),
                },
            }
        ],
    },
    "anthropic": lambda calls, text: {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "stop_reason": "tool_use" if calls else "end_turn",
        "content": [
            {"type": "thinking", "thinking": f"hm {text}", "signature": "c2ln"},
            {"type": "text", "text": text},
            *({"type": "tool_use", "id": i, "name": n, "input": {"q": w}} for i, n, w in calls),
        ],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}
REPLIES["gemini"] = lambda calls, text: {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": f"hm {text}", "thought": True},
                    {"text": text, "thoughtSignature": "c2lnbmVkIQ=="},
                    *({"functionCall": {"id": i, "name": n, "args": {"q": w}}} for i, n, w in calls),
                ],
            },
            "finishReason": "STOP",
        }
    ]
}
REPLIES.update(dict.fromkeys(("kimi", "mistral", "deepseek", "qwen"), REPLIES["openai-chat"]))


def _chat_call(call_id: str, name: str, marker: str) -> dict[str, Any]:
    return chat.call(call_id, name, f'{{"q":"{marker}"}}')


@examples(3)
@given(data=st.data())
def test_a_conversation_that_changes_model_at_every_turn(data: st.DataObject) -> None:
    """Valid at every request, stable canonical ids, the same after storage, no duplicate results."""
    chat = segue.Conversation(system="Be brief.", tools=[{"name": "look", "input_schema": {"type": "object"}}])
    ids: list[str] = []
    for turn in range(data.draw(st.integers(1, 5))):
        if not chat.pending or data.draw(st.booleans()):
            chat.add_user(f"go {turn}")
        target = data.draw(st.sampled_from(sorted(REPLIES)))
        rendered = chat.render(target)
        assert segue.check(rendered.body, target), str(segue.check(rendered.body, target))
        assert rendered.report.seen == ids
        calls = [
            (data.draw(st.sampled_from(("call_0", "x", "functions.look:0"))), "look", f"w{turn}{i}") for i in range(3)
        ]
        reply = chat.add_reply(REPLIES[target](calls, f"answer {turn}"), source=target)
        ids += [call.id for call in reply.calls]
        assert len(set(ids)) == len(ids)
        for call in chat.pending:
            if data.draw(st.booleans()):
                chat.add_result(call, f"result of {call.arguments['q']}")
                chat.add_result(call, f"result of {call.arguments['q']}")
    stored = segue.Conversation.load(chat.dump())
    for target in REPLIES:
        assert stored.render(target).data == chat.render(target).data
        assert segue.check(stored.render(target).body, target)
    body_text = chat.render("anthropic").data.decode()
    assert body_text.count('"type":"tool_result"') == len(ids)

"""After any compression, at any point: every wire renders a valid body, and interactions stay whole.

Histories come from bodies of every API, clean, broken and chaotic, and go on live afterwards. Strategies, budgets, what
is pinned and the moment of the cut are drawn.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Message, Thinking, ToolCall, calls_of, responses_of, state_of
from segue.canonical.compress import STRATEGIES, CompressionResult, compress
from segue.canonical.compress.diff import diff_messages
from segue.canonical.tokens import TokenEstimator, estimate_message, estimate_settings
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.properties import checks
from tests.properties.bodies import build_body
from tests.properties.chaos import CHAOS
from tests.properties.generators import scenarios, source_models
from tests.properties.test_shortcuts import REPLIES

COUNTS: dict[str, Any] = {
    "estimate": None,
    "characters": lambda message: len(repr(without_reasoning_prefix(message).blocks)),
    "blocks": lambda message: len(message.blocks),
    "one": lambda _: 1,
}
LONG = ("word " * 1500, "短い文" * 300, '{"rows": [' + "1, " * 2000 + "2]}", "line\n" * 40)


def summarise(messages: Any) -> str:
    return f"about {len(messages)} things"


def tokens_of(chat: segue.Conversation, count: Any) -> int:
    """By the estimate, system text and tools count too."""
    estimator = chat.state.token_estimator
    settings = 0 if count is not None else ceil(estimate_settings(chat.state.request) * estimator.ratio())
    return settings + sum(map(count or estimator, chat.messages))


def interactions(messages: tuple[Message, ...]) -> dict[str, list[str]]:
    """The state of each result of each call that is there."""
    found: dict[str, list[str]] = {call.id: [] for message in messages for call in calls_of(message)}
    for message in messages:
        for response in responses_of(message):
            found.setdefault(response.call_id, []).append(state_of(response))
    return found


def without_reasoning_prefix(message: Message) -> Message:
    """The message without the recorded prefix of its reasoning."""
    blocks = (msgspec.structs.replace(b, prefix=None) if isinstance(b, Thinking) else b for b in message.blocks)
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def thoughts(messages: tuple[Message, ...]) -> list[Any]:
    return [
        without_reasoning_prefix(Message("ai", (b,))) for m in messages for b in m.blocks if isinstance(b, Thinking)
    ]


def compress_and_check(data: st.DataObject, chat: segue.Conversation) -> CompressionResult:
    """One compression, with all its guarantees checked."""
    strategy = data.draw(st.sampled_from(sorted(STRATEGIES)))
    count = COUNTS[data.draw(st.sampled_from(sorted(COUNTS)))]
    before, total, waiting = chat.messages, tokens_of(chat, count), [call.id for call in chat.pending]
    pinned = [chat.pin(m) for m in before if m.speaker != "system" and data.draw(st.integers(0, 5)) == 0]
    before, supplied = chat.messages, chat.state.history.complete_from_ledger()[0]
    budget = data.draw(st.one_of(st.integers(0, total + 1), st.sampled_from((0, total // 2, total * 3 // 4))))
    note(f"{strategy} to {budget} of {total}, {len(pinned)} pinned")
    made = chat.compress(strategy, budget, summarise=summarise, count=count)
    after = chat.messages
    assert made.before == total
    assert made.tokens == tokens_of(chat, count) <= total
    assert made.reached == (made.tokens <= budget)
    assert made.reached or made.reason
    assert sum(n.before - n.after for n in made.changes) == total - made.tokens
    assert diff_messages(supplied, after, count or chat.state.token_estimator) == made.changes
    kept = [without_reasoning_prefix(message) for message in after]
    for message in before:
        if message.pinned or message.speaker == "system":
            assert without_reasoning_prefix(message) in kept
    assert [call.id for call in chat.pending] == waiting
    had, has = interactions(before), interactions(after)
    for call_id, states in has.items():
        assert states == had[call_id], "half an interaction, or another state"
    assert set(waiting) <= has.keys()
    assert set(chat.state.history.ledger) >= {call_id for call_id in had if call_id in chat.state.history.ledger}
    assert not [thought for thought in thoughts(after) if thought not in thoughts(before)]
    assert chat.state.history.complete_from_ledger() == (after, [])
    again = chat.compress(strategy, budget, summarise=summarise, count=count)
    assert (again.changes, again.tokens, chat.messages) == ((), made.tokens, after)
    return made


def is_paired(call: ToolCall) -> bool:
    """Whether the call needs a result: not for hosted tools, nor for types without an id."""
    return call.kind != "hosted" and call.awaited and call.origin.identity != "absent"


def check_valid_everywhere(data: st.DataObject, chat: segue.Conversation) -> None:
    """Every wire accepts the rest, and each client-run call has exactly one result."""
    kept = {call.id: call for message in chat.messages for call in calls_of(message)}
    for target in WIRES:
        model = data.draw(st.sampled_from(checks.models(target)))
        rendered = chat.render(target, model=model)
        checks.check_accepted(rendered.body, target, model or checks.model_of(rendered.body))
        called = [call_id for call_id, _ in rendered.report.emitted_calls]
        answered = [call_id for call_id, _ in rendered.report.emitted_results]
        assert set(called) <= kept.keys()
        assert len(answered) == len(set(answered))
        assert {call_id for call_id in called if is_paired(kept[call_id])} <= set(answered)


def bodies(data: st.DataObject, source: str) -> Any:
    if source in CHAOS and data.draw(st.integers(0, 3)) == 0:
        body = data.draw(CHAOS[source])
        # Results of Converse's own tools may make a body invalid, compressed or not.
        assume(checks.messages_of(body) and "nova_grounding" not in checks.dump_json(body))
        return body
    scenario = data.draw(scenarios())
    assume(source != "gemini" or not scenario.is_ambiguous_when_joined())
    return build_body(scenario, source, data.draw(st.sampled_from((None, *source_models(scenario, source)))))


def add_turn(data: st.DataObject, chat: segue.Conversation, turn: int) -> None:
    """One more turn, its results long, short, missing or late."""
    for call in chat.pending:
        if data.draw(st.booleans()):
            chat.add_result(call, data.draw(st.sampled_from(LONG)))
    if not chat.pending or data.draw(st.booleans()):
        chat.add_user(f"go {turn}")
    target = data.draw(st.sampled_from(sorted(REPLIES)))
    chat.render(target)
    raw = data.draw(st.sampled_from(("call_0", "x", "functions.look:0")))
    calls = [(f"{raw}{i}", data.draw(st.sampled_from(("read", "write"))), "a.py") for i in range(turn % 3)]
    for call in chat.add_reply(REPLIES[target](calls, f"answer {turn}"), source=target).calls:
        match data.draw(st.sampled_from(("long", "short", "error", "cancel", "open"))):
            case "long":
                chat.add_result(call, data.draw(st.sampled_from(LONG)))
            case "short":
                chat.add_result(call, {"ok": [1, 2.0]})
            case "error":
                chat.add_result(call, data.draw(st.sampled_from(LONG)), error=True)
            case "cancel":
                chat.cancel(call)
            case "open":
                pass


@pytest.mark.parametrize("source", sorted(WIRES))
@examples(3, items=len(WIRES))
@given(data=st.data())
def test_compressed_body_is_valid_everywhere(source: str, data: st.DataObject) -> None:
    body = bodies(data, source)
    note(f"body: {checks.dump_json(body)}")
    chat = segue.Conversation.from_body(body, source=source)
    compress_and_check(data, chat)
    check_valid_everywhere(data, chat)


@examples(1)
@given(data=st.data())
def test_conversation_continues_after_any_compression(data: st.DataObject) -> None:
    """Compressed at any moment, again and again, stored and loaded in between: what follows is valid too."""
    chat = segue.Conversation(system="Be brief.", tools=[{"name": "read", "input_schema": {"type": "object"}}])
    for turn in range(data.draw(st.integers(2, 6))):
        add_turn(data, chat, turn)
        if data.draw(st.booleans()):
            compress_and_check(data, chat)
        if data.draw(st.integers(0, 3)) == 0:
            loaded = segue.Conversation.load(chat.dump())
            assert (loaded.messages, loaded.state.history.ledger) == (chat.messages, chat.state.history.ledger)
            chat = loaded
    compress_and_check(data, chat)
    check_valid_everywhere(data, chat)
    add_turn(data, chat, 2)
    check_valid_everywhere(data, chat)


@examples(0.5)
@given(data=st.data())
def test_compression_is_the_same_in_every_process(data: st.DataObject) -> None:
    """Messages that are equal, but not the same objects, are compressed to equal ones."""
    chat = segue.Conversation.from_body(bodies(data, "anthropic"), source="anthropic")
    strategy, budget = data.draw(st.sampled_from(sorted(STRATEGIES))), data.draw(st.integers(0, 400))
    twin = segue.Conversation.load(chat.dump())
    assert chat.compress(strategy, budget, summarise=summarise) == twin.compress(strategy, budget, summarise=summarise)


@examples(0.5)
@given(
    reports=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20), text=st.text(max_size=200)
)
def test_learned_estimate_stays_within_bounds(reports: list[tuple[int, int]], text: str) -> None:
    estimate = TokenEstimator()
    for estimated, reported in reports:
        estimate.calibrate(estimated, reported, "claude")
    message = segue.Conversation()
    message.add_user(text or "x")
    raw = estimate_message(message.messages[0])
    assert raw / 2 <= estimate.count(message.messages[0]) <= raw * 2 + 1
    assert compress(message.messages, "dense", 10**6, count=estimate).messages == message.messages

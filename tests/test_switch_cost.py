"""The price of a switch, against the arithmetic of the vendors' rules: caches, minimums, lives, tiers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import segue
from segue._switch_cost import Prompt, SwitchCost, cost_by_table, predict, predict_requests
from segue.canonical.request import Usage
from segue.specs.caches import find_cache_rule
from segue.specs.prices import find_model
from segue.store.conversation import StoredConversation
from segue.store.events import Switched
from segue.store.sqlite import SqliteStore

TOKENS = 100_000
CACHED = Usage(TOKENS, 500, cache_read=TOKENS)


def prompt(name: str, tokens: int = TOKENS, last: Usage | None = None, age: float | None = None) -> Prompt:
    provider, _, model = name.partition("/")
    return Prompt(provider, model, tokens, last, age, is_measured=True)


def price_of(name: str) -> Any:
    provider, _, model = name.partition("/")
    row = find_model(provider, model)
    assert row is not None
    return row.tiers[0][1]


def switch(source: str, target: str, age: float | None = 10, **fields: Any) -> SwitchCost:
    return predict(prompt(source, last=CACHED, age=age), prompt(target, **fields), cost_by_table)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("anthropic/claude-sonnet-5", "moonshot/kimi-k2.6"),
        ("anthropic/claude-opus-5", "anthropic/claude-sonnet-5"),
        ("anthropic/claude-fable-5-1", "anthropic/claude-sonnet-5"),
        ("openai/gpt-5.6-sol", "anthropic/claude-opus-5"),
        ("openai/gpt-5.4", "openai/gpt-5.4-mini"),
    ],
)
def test_first_request_writes_all_and_later_ones_read_all(source: str, target: str) -> None:
    here, there, found = price_of(source), price_of(target), switch(source, target)
    write = there.cache_write if there.cache_write is not None else there.input
    stay, go = TOKENS * here.cache_read / 1e6, TOKENS * write / 1e6
    rule = find_cache_rule(*target.split("/"))
    assert rule is not None
    warm = rule.round(TOKENS)
    later = (warm * there.cache_read + (TOKENS - warm) * write) / 1e6
    assert found.stay == pytest.approx(stay)
    assert found.go == pytest.approx(go)
    assert found.now == pytest.approx(go - stay)
    assert found.saving == pytest.approx(stay - later)
    if stay > later and go > stay:
        assert found.turns is not None
        assert (found.turns - 1) * (stay - later) < go - stay <= found.turns * (stay - later) + 1e-12
    else:
        assert found.turns is None


@pytest.mark.parametrize(
    ("source", "target", "age", "stays"),
    [
        ("anthropic/claude-sonnet-5", "moonshot/kimi-k2.6", 10, True),
        ("anthropic/claude-sonnet-5", "moonshot/kimi-k2.6", 301, False),
        ("anthropic/claude-opus-5", "anthropic/claude-sonnet-5", 10, False),
        ("deepseek/deepseek-flash", "gemini/gemini-3-flash-preview", 7_000, True),
    ],
)
def test_ten_requests_to_a_warm_cache_or_to_another_model(source: str, target: str, age: float, *, stays: bool) -> None:
    """Leaving a warm cache has to pay within them."""
    here = predict_requests(prompt(source, last=CACHED, age=age), cost_by_table, output=0, count=10)
    there = predict_requests(prompt(target), cost_by_table, output=0, count=10)
    assert here is not None
    assert there is not None
    assert (here < there) is stays
    found = switch(source, target, age)
    assert found.now is not None
    assert found.saving is not None
    if age < 300:
        assert there - here == pytest.approx(found.now - 9 * found.saving, abs=1e-4)


def test_pays_after_seven_requests() -> None:
    found = switch("anthropic/claude-opus-5", "anthropic/claude-sonnet-5")
    assert (found.now, found.saving, found.turns) == (pytest.approx(0.2), pytest.approx(0.03), 7)
    assert str(found) == (
        "the next request costs 25 cents, 20 cents more than with anthropic/claude-opus-5, which pays after 7 "
        "requests; the way back costs 0 cents while its cache lives, 57.5 cents without"
    )


@pytest.mark.parametrize(
    ("last", "age", "state"),
    [
        (CACHED, 10, "warm"),
        (CACHED, 299, "warm"),
        (CACHED, 301, "expired"),
        (CACHED, None, "unknown"),
        (Usage(TOKENS, 5, cache_read=60_000), 10, "partly warm"),
        (Usage(TOKENS, 5), 10, "below minimum"),  # nothing was marked
        (Usage(900, 5, cache_read=900), 10, "below minimum"),
        (None, 10, "cold"),
    ],
)
def test_state_of_the_cache(last: Usage | None, age: float | None, state: str) -> None:
    found = prompt("anthropic/claude-sonnet-5", last=last, age=age).find_cached()
    assert found[1] == state
    assert (found[0] > 0) == (state in ("warm", "partly warm", "unknown"))


def test_expired_cache_makes_leaving_cheaper() -> None:
    warm, expired = (switch("anthropic/claude-opus-5", "anthropic/claude-sonnet-5", age) for age in (10, 400))
    assert warm.now is not None
    assert expired.now is not None
    assert warm.now > 0 > expired.now
    assert "has expired" in str(expired)


def test_blocks_minimums_and_lives_are_those_of_the_vendor() -> None:
    assert prompt("moonshot/kimi-k2.6", 1_000, Usage(1_000, 1), 1).find_cached()[0] == 768
    assert prompt("deepseek/deepseek-flash", 100, Usage(100, 1), 1).find_cached() == (64, "warm")
    assert prompt("deepseek/deepseek-flash", 100, Usage(100, 1), 7201).find_cached() == (64, "unknown")
    assert prompt("deepseek/deepseek-flash", 100, Usage(100, 1), 86_401).find_cached() == (0, "expired")
    assert prompt("gemini/gemini-3-pro-preview", 4_000, Usage(4_000, 1), 1).find_cached()[1] == "below minimum"
    assert prompt("openai/gpt-5.6-sol", last=CACHED, age=1_000).find_cached()[1] == "warm"
    assert prompt("openai/gpt-5.4", last=CACHED, age=1_000).find_cached()[1] == "expired"
    assert prompt("nobody/x", last=Usage(TOKENS, 1, cache_read=5), age=1).find_cached() == (5, "unknown")


def test_tiers_follow_the_tokens_of_the_target() -> None:
    small, large = (
        switch("anthropic/claude-sonnet-5", "gemini/gemini-3-pro-preview", tokens=size) for size in (1e5, 3e5)
    )
    assert small.go is not None
    assert large.go is not None
    assert large.go > 3 * small.go


@pytest.mark.parametrize(
    ("source", "target", "missing"),
    [("x/y", "anthropic/claude-opus-5", "x/y"), ("anthropic/claude-opus-5", "x/y", "x/y")],
)
def test_unknown_price_says_so(source: str, target: str, missing: str) -> None:
    found = switch(source, target)
    assert (found.now, found.saving, found.turns) == (None, None, None)
    assert str(found) == f"what the switch costs is not known: segue has no price of {missing}"


def test_conversation_predicts_from_its_own_replies() -> None:
    chat = segue.Conversation()
    with pytest.raises(segue.InputError, match="no model has replied yet"):
        chat.switch_cost("kimi-k2.6")
    chat.add_user("Hello! " * 5_000)
    reply = segue.complete(chat, "emulated/claude-sonnet-5")
    assert reply.usage is not None
    ages = {"anthropic/claude-sonnet-5": 10.0}
    found = chat.switch_cost("moonshot/kimi-k2.6", current="anthropic/claude-sonnet-5", ages=ages)
    assert (found.source, found.target) == ("anthropic/claude-sonnet-5", "moonshot/kimi-k2.6")
    assert found.tokens >= reply.usage.input
    assert not found.is_measured
    assert "about" in str(found)
    chat.add_user("And you?")
    segue.complete(chat, "emulated/kimi-k2.6")
    assert chat.switch_cost("claude-sonnet-5", ages={"moonshot/kimi-k2.6": 5.0}).is_measured
    # The same model at another provider has no cache of this conversation.
    elsewhere = chat.switch_cost(
        "bedrock/claude-sonnet-5", current="anthropic/claude-sonnet-5", ages={"bedrock/claude-sonnet-5": 1.0}
    )
    assert elsewhere.cached == found.cached


def test_repeated_prediction_is_the_same_and_changes_nothing() -> None:
    chat = segue.Conversation()
    chat.add_user("Hello! " * 5_000)
    segue.complete(chat, "emulated/claude-sonnet-5")
    before = chat.dump()
    assert chat.switch_cost("kimi-k2.6") == chat.switch_cost("kimi-k2.6")
    assert chat.dump() == before


def test_stored_conversation_knows_the_age_of_its_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"input_tokens": 0, "cache_creation_input_tokens": 100_000, "output_tokens": 500}
    reply = {"role": "assistant", "model": "claude-sonnet-5", "content": [{"type": "text", "text": "Yes."}]}
    with SqliteStore(tmp_path / "a.db") as store:
        written = StoredConversation.create(store, target=Switched("anthropic", "claude-sonnet-5", "anthropic"))
        written.add_user("word " * 80_000)
        written.add_reply({**reply, "usage": usage, "stop_reason": "end_turn"}, source="anthropic")
        now = time.time()
        for stored in (written, StoredConversation(store, written.id)):
            for seconds, state in ((10, "warm"), (100_000, "expired")):
                monkeypatch.setattr("segue.store.conversation.time.time", lambda seconds=seconds: now + seconds)
                assert list(stored.ages) == ["anthropic/claude-sonnet-5"]
                cost = stored.switch_cost("moonshot/kimi-k2.6")
                assert (cost.source, cost.state) == ("anthropic/claude-sonnet-5", state)
        written.close()

"""The next endpoint of each kind of route."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from segue._conversation import Conversation
from segue.bridge.failover import FAILOVER_CAUSES
from segue.bridge.providers import Endpoint
from segue.canonical.blocks import Media, ToolCall, calls_of
from segue.errors import InputError, ProviderError
from segue.runtime.events import CallEnded, ReplyReceived
from segue.runtime.routing import ByRule, Failover, Fixed, RoundRobin, RouteContext, RoutingRule
from tests.budget import examples
from tests.runtime.harness import open_harness

A, B, C = (Endpoint(provider=name, model="m", api="openai-chat", base_url="http://127.0.0.1:1") for name in "abc")
NOW = RouteContext(Conversation())


def fault(cause: Any = "overloaded", retry_after: float | None = None) -> ProviderError:
    return ProviderError("no", cause=cause, provider="a", model="m", brief="is overloaded", retry_after=retry_after)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_route_without_models_is_refused() -> None:
    with pytest.raises(InputError, match="models"):
        Failover([])


def test_a_fixed_route_stays() -> None:
    route = Fixed(A)
    assert not route.on_failure(A, fault())
    assert route.choose(NOW).endpoint is A


def test_round_robin_is_not_moved_by_requests_or_subagents() -> None:
    route = RoundRobin([A, B])
    chosen = []
    for _ in range(4):
        route.start_exchange()
        chosen += [route.choose(NOW).endpoint, route.choose(NOW).endpoint]
        route.for_subagent().start_exchange()
    assert chosen == [A, A, B, B, A, A, B, B]


@pytest.mark.parametrize("cause", sorted(FAILOVER_CAUSES))
def test_failover_stays_at_the_endpoint_that_replied(cause: str) -> None:
    clock = Clock()
    route = Failover([A, B, C], clock=clock)
    assert route.on_failure(A, fault(cause))
    assert route.choose(NOW).endpoint is B
    route.on_success(B)
    clock.now += 3600
    route.start_exchange()
    assert route.choose(NOW).endpoint is B


def test_refused_request_does_not_fail_over() -> None:
    route = Failover([A, B])
    assert not route.on_failure(A, fault("refused"))
    assert route.choose(NOW).endpoint is A


def test_cooldown_of_a_failed_endpoint_grows() -> None:
    clock = Clock()
    route = Failover([A, B, C], clock=clock)
    assert route.on_failure(A, fault())
    route.on_success(B)
    assert route.on_failure(B, fault())
    assert route.choose(NOW).endpoint is C, "A is still let alone"
    route.on_success(C)
    clock.now += 16
    assert route.on_failure(C, fault())
    assert route.choose(NOW).endpoint is A, "A is free again"
    assert route.on_failure(A, fault())
    route.on_success(B)
    clock.now += 16
    assert route.on_failure(B, fault())
    assert route.choose(NOW).endpoint is C, "A is let alone for twice as long now"


def test_retry_after_is_respected() -> None:
    clock = Clock()
    route = Failover([A, B], clock=clock)
    assert route.on_failure(A, fault(retry_after=100))
    route.on_success(B)
    clock.now += 50
    assert route.on_failure(B, fault())
    assert route.choose(NOW).endpoint is A, "there is nobody else to ask"
    assert not route.on_failure(A, fault(retry_after=100)), "everybody was asked"
    assert route.choose(NOW).endpoint is B, "the first to be free again"


@given(st.lists(st.tuples(st.sampled_from(["ok", "overloaded", "refused"]), st.floats(0, 100)), max_size=30))
@examples(5)
def test_failover_tries_each_endpoint_at_most_once(steps: list[tuple[str, float]]) -> None:
    clock = Clock()
    route = Failover([A, B, C], clock=clock)
    asked: list[Endpoint] = []
    for how, passed in steps:
        clock.now += passed
        endpoint = route.choose(NOW).endpoint
        asked.append(endpoint)
        assert len(asked) <= 3
        assert len(set(map(id, asked))) == len(asked), "nobody is asked twice for one request"
        if how == "ok":
            route.on_success(endpoint)
            asked = []
        elif not route.on_failure(endpoint, fault(how)):
            asked = []


def test_rules_decide_by_length_pictures_and_price() -> None:
    prices = {"a": 3.0, "b": 1.0}
    rules = [RoutingRule("long", (C,), limit=2000), RoutingRule("images", (B,)), RoutingRule("otherwise", (A, B, C))]
    route = ByRule(rules, cost=lambda endpoint, chat: prices.get(endpoint.provider))
    chat = Conversation()
    chat.add_user("Hello.")
    choice = route.choose(RouteContext(chat))
    assert (choice.endpoint, "cheapest" in choice.why) == (B, True)
    chat.add_user([Media("image", "image/png", data="AAAA")])
    assert "images" in route.choose(RouteContext(chat)).why
    chat.add_user("word " * 2000)
    assert route.choose(RouteContext(chat)).endpoint is C
    assert (
        ByRule([RoutingRule("long", (A,), limit=10**9), RoutingRule("otherwise", (C,))])
        .choose(RouteContext(chat))
        .endpoint
        is C
    )


# A command of each call, and how it ended.
Runs = Sequence[tuple[str, str]]


def talk(runs: Runs) -> Conversation:
    chat = Conversation()
    for number, (command, outcome) in enumerate(runs):
        chat.add_user(f"Number {number}.")
        chat.add_blocks(ToolCall("shell", {"command": command}))
        if outcome in ("fails", "succeeds"):
            chat.add_result(chat.pending[0], "done", error=outcome == "fails")
        elif outcome == "cancelled":
            chat.cancel(chat.pending[0])
    return chat


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([("pytest -q", "fails")], False),
        ([("pytest -q", "fails"), ("pytest", "fails")], True),
        ([("pytest -q", "fails"), ("pytest", "fails"), ("pytest", "succeeds")], False),
        ([("pytest -q", "succeeds"), ("pytest", "fails"), ("pytest", "fails")], True),
        ([("pytest -q", "fails"), ("ls", "succeeds"), ("pytest", "fails")], True),
        ([("pytest -q", "fails"), ("ls", "fails")], False),
        ([("pytest -q", "fails"), ("pytest", "cancelled"), ("pytest", "fails")], True),
        ([("cd a && pytest -q", "fails"), ("timeout 60 pytest 2>&1 | tail", "fails")], True),
        ([("cat pytest", "fails"), ("echo pytest -q", "fails")], False),
        ([("pytest -q", "fails"), ("pytest", "open")], False),
    ],
)
def test_runs_of_a_command_in_a_row(runs: Runs, expected: bool) -> None:
    rules = [RoutingRule("failed", (B,), limit=2, command="pytest *"), RoutingRule("otherwise", (A,))]
    for chat in (talk(runs), Conversation.load(talk(runs).dump())):
        choice = ByRule(rules).choose(RouteContext(chat))
        assert choice.endpoint is (B if expected else A)
        assert "the last 2 runs of pytest * failed" in choice.why or not expected


def test_any_calls_in_a_row() -> None:
    rules = [RoutingRule("failed", (B,), limit=2), RoutingRule("otherwise", (A,))]
    runs = [("ls", "fails"), ("pytest", "fails"), ("cat x", "succeeds")]
    chosen = [ByRule(rules).choose(RouteContext(talk(runs[:count]))).endpoint for count in range(4)]
    assert chosen == [A, A, B, A]


@pytest.mark.parametrize("apis", [("anthropic", "openai-responses"), ("gemini", "kimi"), ("openai-chat", "bedrock")])
def test_switch_with_parallel_calls_that_failed(apis: tuple[str, str], tmp_path: Path) -> None:
    """The calls of one reply fail, another model goes on, one succeeds, and the first one ends: no body is refused."""
    fail = 'call fail {"words": "a"}\ncall fail {"words": "b"}\n---\nsay Back again.'
    repair = 'call echo {"words": "c"}\ncall echo {"words": "d"}\n---\nsay Never.'

    def route(endpoints: Sequence[Endpoint]) -> ByRule:
        first, second = endpoints
        return ByRule([RoutingRule("failed", (second,), limit=2), RoutingRule("otherwise", (first,))])

    async def play() -> None:
        async with open_harness(dict(zip(apis, (fail, repair), strict=True)), tmp_path, route=route) as harness:
            ended = await harness.session.ask("Do it.")
            assert ended.text == "Back again."
            assert [event.provider for event in harness.events_of(ReplyReceived)] == [*apis, apis[0]]
            assert harness.results == ["no a", "no b", "heard c", "heard d"]
            assert harness.rejections == []

    asyncio.run(play())


def test_cheapest_that_can_serve() -> None:
    small, keyless = (structs.replace(A, **change) for change in ({"context": 10}, {"variables": ("KEY",)}))
    ends = [structs.replace(end, provider=name) for end, name in ((small, "d"), (keyless, "e"), (A, "a"), (B, "b"))]
    chat = Conversation()
    chat.add_user("word " * 100)
    price = {"d": 1.0, "e": 1.0, "a": 3.0, "b": 2.0}

    def order(**known: float) -> str:
        route = ByRule([RoutingRule("otherwise", tuple(ends))], cost=lambda end, chat: known.get(end.provider))
        return "".join(end.provider for end in route.order(RouteContext(chat))[0])

    assert order(**price) == "bade"
    assert order(a=3.0) == "abde", "those without a price come last"
    first = ByRule([RoutingRule("otherwise", tuple(ends), prefer="first")], cost=lambda end, chat: 1.0)
    assert first.order(RouteContext(chat))[0] == tuple(ends)


CHAOS = ["rate-limit=0.15", "overloaded=0.15", "reset=0.15", "reset-in-stream=0.15", "server-error=0.1"]


@pytest.mark.parametrize("seed", range(4))
def test_under_chaos_nothing_is_lost_and_nothing_refused(seed: int, tmp_path: Path) -> None:
    """Every exchange is answered, or ends with a clear error; every call has one result; no body is refused."""

    async def play() -> None:
        apis = ["openai-responses", "anthropic", "kimi", "gemini", "mistral"]
        scripts: dict[str, str | None] = dict.fromkeys(apis[seed % 2 :])
        async with open_harness(
            scripts, tmp_path, route=Failover, faults=dict.fromkeys(scripts, CHAOS), seed=seed
        ) as harness:
            for number in range(6):
                ended = await harness.session.ask(f"Say the words number {number} again, with echo.")
                assert ended.outcome in ("answered", "failed")
                assert ended.outcome == "answered" or ended.retryable
                assert not harness.session.log.pending
            calls = [call.id for message in harness.session.log.messages for call in calls_of(message)]
            assert len(harness.results) == len(calls) == len(set(calls)) == len(harness.events_of(CallEnded))
            assert harness.rejections == []
            assert harness.events_of(ReplyReceived)

    asyncio.run(play())

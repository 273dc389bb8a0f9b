"""The turn loop, over real HTTP and strict providers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from segue.runtime.events import (
    CallEnded,
    ConversationCompressed,
    ExchangeEnded,
    ModelSwitched,
    ReasoningDelta,
    ReplyReceived,
    RequestSent,
    StreamBroken,
    TextDelta,
)
from segue.runtime.routing import Failover, RoundRobin
from segue.runtime.scheduler import Limits
from tests.runtime.harness import APIS, endpoint_of, open_harness

TWO_ROUNDS = """
think  Two things at once.
say    I listen.
call   echo {"words": "one"}
call   fail {"words": "two"}
---
call   echo {"words": "three"}
---
say    Done: {echo}.
"""


@pytest.mark.parametrize("api", APIS)
def test_exchange_ends_with_text(api: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with open_harness({api: TWO_ROUNDS}, tmp_path) as harness:
            ended = await harness.session.ask("Go.")
            assert (ended.outcome, ended.text, ended.turns) == ("answered", "Done: heard three.", 3)
            assert harness.results == ["heard one", "no two", "heard three"]
            outcomes = [(event.tool, event.outcome) for event in harness.events_of(CallEnded)]
            assert sorted(outcomes[:2]) == [("echo", "complete"), ("fail", "error")]  # at once: either may end first
            assert outcomes[2:] == [("echo", "complete")]
            assert "".join(event.text for event in harness.events_of(TextDelta)).endswith("Done: heard three.")
            assert [event.number for event in harness.events_of(RequestSent)] == [1, 2, 3]
            assert ended.usage.input > 0
            assert not harness.session.log.pending
            assert harness.rejections == []

    asyncio.run(play())


def test_a_reply_that_only_pauses_is_sent_on_as_it_is(tmp_path: Path) -> None:
    """ANT-39."""

    async def play() -> None:
        script = "say    Half of it.\nend pause\n---\nsay    The rest."
        async with open_harness({"anthropic": script}, tmp_path) as harness:
            ended = await harness.session.ask("Go.")
            assert (ended.outcome, ended.text, ended.turns) == ("answered", "Half of it.\nThe rest.", 2)
            assert harness.rejections == []

    asyncio.run(play())


def test_session_stops_at_the_turn_limit_and_resumes(tmp_path: Path) -> None:
    async def play() -> None:
        script = "\n---\n".join(f'call   echo {{"words": "{number}"}}' for number in range(4)) + "\n---\nsay    Done."
        async with open_harness({"kimi": script}, tmp_path, limits=Limits(max_turns=3)) as harness:
            ended = await harness.session.ask("Go.")
            assert (ended.outcome, ended.turns) == ("max-turns", 3)
            assert len(harness.results) == 3
            assert (await harness.session.ask("On.")).text == "Done."
            assert harness.rejections == []

    asyncio.run(play())


@pytest.mark.parametrize(
    ("here", "there"),
    [(here, there) for here in ("openai-responses", "kimi", "anthropic") for there in APIS if here != there],
)
def test_a_change_of_model_in_mid_task_takes_effect_at_the_next_request(here: str, there: str, tmp_path: Path) -> None:
    """The reply in flight and its tools stay with the model that began them."""
    first = 'say    I listen.\ncall   echo {"words": "one"}'
    second = 'call   echo {"words": "two"}\n---\nsay    Done: {echo}.'

    async def play() -> None:
        def listen(event: object) -> None:
            if isinstance(event, TextDelta) and len(harness.events_of(RequestSent)) == 1:
                harness.session.switch(endpoint_of(harness.providers[there]))

        async with open_harness({here: first, there: second}, tmp_path, listen=listen) as harness:
            ended = await harness.session.ask("Go.")
            assert ended.text == "Done: heard two."
            assert [event.provider for event in harness.events_of(ReplyReceived)] == [here, there, there]
            assert [(event.provider, event.why) for event in harness.events_of(ModelSwitched)] == [(there, "chosen")]
            assert harness.rejections == []

    asyncio.run(play())


@pytest.mark.parametrize("api", APIS)
def test_broken_reply_is_recorded_and_retried(api: str, tmp_path: Path) -> None:
    script = 'say    I will cal\ncall   echo {"words": "never"}\ncut\n---\nsay    Whole.'

    async def play() -> None:
        async with open_harness({api: script}, tmp_path) as harness:
            ended = await harness.session.ask("Go.")
            assert (ended.outcome, ended.text) == ("answered", "Whole.")
            assert [event.will_retry for event in harness.events_of(StreamBroken)] == [True]
            assert harness.events_of(CallEnded) == []
            assert len(harness.session.log.messages) == 2
            one, two = (provider.body for provider in harness.providers[api].requests)
            assert one == two

    asyncio.run(play())


def test_repeatedly_broken_reply_ends_the_turn(tmp_path: Path) -> None:
    async def play() -> None:
        broken = "say    Onc\ncut"
        async with open_harness({"anthropic": "\n---\n".join([broken] * 5)}, tmp_path) as harness:
            ended = await harness.session.ask("Go.")
            assert ended.outcome == "failed"
            assert ended.retryable
            assert [event.will_retry for event in harness.events_of(StreamBroken)] == [True, True, False]
            assert len(harness.providers["anthropic"].requests) == 3
            assert len(harness.session.log.messages) == 1

    asyncio.run(play())


def test_failover_switches_stays_and_loses_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        scripts = {"openai-responses": None, "kimi": TWO_ROUNDS}
        faults = {"openai-responses": ["overloaded"]}
        async with open_harness(scripts, tmp_path, route=Failover, faults=faults) as harness:
            ended = await harness.session.ask("Go.")
            assert ended.text == "Done: heard three."
            assert {event.provider for event in harness.events_of(ReplyReceived)} == {"kimi"}
            [moved] = harness.events_of(ModelSwitched)
            assert moved.provider == "kimi"
            assert "openai-responses" in moved.why
            assert harness.rejections == []

    asyncio.run(play())


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("error 401 Incorrect API key.", "rejected the key (401): Incorrect API key"),
        ("error 404 No such model.", "has no such model"),
        ("error 503 Later.", "is overloaded"),
        ("error 402 No credit.", "has no credit left"),
    ],
)
@pytest.mark.parametrize("route", [Failover, RoundRobin])
def test_failed_model_is_reported_once_and_left_out(route: Any, error: str, why: str, tmp_path: Path) -> None:
    async def play() -> None:
        scripts = {"openai-responses": "\n---\n".join([error] * 9), "kimi": "\n---\n".join(["say Done."] * 9)}
        async with open_harness(scripts, tmp_path, route=route) as harness:
            for _ in range(3):
                assert (await harness.session.ask("Go.")).text == "Done."
            requests = len(harness.providers["openai-responses"].requests)
            assert requests == (2 if "503" in error else 1), "those of the first exchange"
            [moved] = harness.events_of(ModelSwitched)
            assert why in moved.why

    asyncio.run(play())


@pytest.mark.parametrize("larger", [True, False])
def test_too_long_conversation_goes_to_a_larger_model_before_it_is_compressed(larger: bool, tmp_path: Path) -> None:
    async def play() -> None:
        scripts = {"anthropic": None, "gemini": "say Done."}
        faults = {"anthropic": ["context-length@1"]}

        def route(endpoints: Any) -> Failover:
            first, second = endpoints
            return Failover([replace(first, context=100), replace(second, context=10_000_000 if larger else 50)])

        async with open_harness(scripts, tmp_path, route=route, faults=faults) as harness:
            ended = await harness.session.ask("long " * 500)
            assert len(harness.providers["gemini"].requests) == larger
            assert (ended.outcome == "answered") == larger
            assert not harness.events_of(ConversationCompressed)

    asyncio.run(play())


def test_round_robin_moves_by_exchange(tmp_path: Path) -> None:
    async def play() -> None:
        script = 'call   echo {"words": "x"}\n---\nsay    Done.\n---\nsay    Again.'
        apis = ["anthropic", "gemini", "mistral"]
        async with open_harness(dict.fromkeys(apis, script), tmp_path, route=RoundRobin) as harness:
            for _ in range(4):
                assert (await harness.session.ask("Go.")).outcome == "answered"
            asked = [event.provider for event in harness.events_of(RequestSent)]
            assert asked == [api for api in apis for _ in range(2)] + ["anthropic"]
            assert harness.rejections == []

    asyncio.run(play())


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "gemini"])
def test_cancelling_while_tools_run_gives_every_call_its_outcome(api: str, tmp_path: Path) -> None:
    script = 'call   wait {"words": "a"}\ncall   echo {"words": "b"}\ncall   wait {"words": "c"}\n---\nsay    Later.'

    async def play() -> None:
        def listen(event: object) -> None:
            if isinstance(event, CallEnded) and event.outcome == "complete":
                asyncio.get_running_loop().call_soon(harness.session.cancel)

        async with open_harness({api: script}, tmp_path, listen=listen) as harness:
            ended = await harness.session.ask("Go.")
            assert ended.outcome == "cancelled"
            assert [event.outcome for event in harness.events_of(CallEnded)].count("cancelled") == 2
            assert harness.results[1] == "heard b"
            assert not harness.session.log.pending
            assert (await harness.session.ask("And?")).text == "Later."
            assert harness.rejections == []

    asyncio.run(play())


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "bedrock"])
def test_cancelling_during_a_reply_keeps_no_partial_reply(api: str, tmp_path: Path) -> None:
    script = "say    I begin\nwait 5\nsay and go on.\n---\nsay    Later."

    async def play() -> None:
        def listen(event: object) -> None:
            if isinstance(event, TextDelta | ReasoningDelta) and harness.session.exchanges == 1:
                harness.session.cancel()

        async with open_harness({api: script}, tmp_path, listen=listen) as harness:
            ended = await harness.session.ask("Go.")
            assert ended.outcome == "cancelled"
            assert len(harness.session.log.messages) == 1
            assert (await harness.session.ask("And?")).text == "Later."
            assert harness.rejections == []

    asyncio.run(play())


def test_every_exchange_ends_with_one_event(tmp_path: Path) -> None:
    async def play() -> None:
        async with open_harness({"qwen": "say    Yes."}, tmp_path) as harness:
            ended = await harness.session.ask("Go.")
            assert harness.events_of(ExchangeEnded) == [ended]
            assert harness.events[-1] is ended

    asyncio.run(play())

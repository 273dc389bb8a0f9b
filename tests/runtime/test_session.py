"""The turn loop, over real HTTP and strict providers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from segue.runtime.events import Broke, CallEnded, Ended, Moved, Replied, Requested, Thoughts, Words
from segue.runtime.scheduler import Limits
from segue.runtime.switching import Failover, RoundRobin
from tests.runtime.stage import APIS, endpoint_of, staged

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
def test_an_exchange_is_turns_until_there_are_words(api: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with staged({api: TWO_ROUNDS}, tmp_path) as stage:
            ended = await stage.session.ask("Go.")
            assert (ended.how, ended.text, ended.turns) == ("answered", "Done: heard three.", 3)
            assert stage.results == ["heard one", "no two", "heard three"]
            assert [event.outcome for event in stage.of(CallEnded)] == ["complete", "error", "complete"]
            assert "".join(event.text for event in stage.of(Words)).endswith("Done: heard three.")
            assert [event.number for event in stage.of(Requested)] == [1, 2, 3]
            assert ended.usage.input > 0
            assert not stage.session.book.pending
            assert stage.refused == []

    asyncio.run(play())


def test_a_reply_that_only_pauses_is_sent_on_as_it_is(tmp_path: Path) -> None:
    """ANT-39."""

    async def play() -> None:
        script = "say    Half of it.\nend pause\n---\nsay    The rest."
        async with staged({"anthropic": script}, tmp_path) as stage:
            ended = await stage.session.ask("Go.")
            assert (ended.how, ended.text, ended.turns) == ("answered", "Half of it.\nThe rest.", 2)
            assert stage.refused == []

    asyncio.run(play())


def test_it_stops_after_so_many_turns_and_goes_on_when_asked(tmp_path: Path) -> None:
    async def play() -> None:
        script = "\n---\n".join(f'call   echo {{"words": "{number}"}}' for number in range(4)) + "\n---\nsay    Done."
        async with staged({"kimi": script}, tmp_path, limits=Limits(steps=3)) as stage:
            ended = await stage.session.ask("Go.")
            assert (ended.how, ended.turns) == ("steps", 3)
            assert len(stage.results) == 3
            assert (await stage.session.ask("On.")).text == "Done."
            assert stage.refused == []

    asyncio.run(play())


@pytest.mark.parametrize(
    ("here", "there"),
    [(here, there) for here in ("openai-responses", "kimi", "anthropic") for there in APIS if here != there],
)
def test_a_change_of_model_in_mid_task_takes_effect_at_the_next_request(here: str, there: str, tmp_path: Path) -> None:
    """The reply in flight and its tools stay with whoever began them."""
    first = 'say    I listen.\ncall   echo {"words": "one"}'
    second = 'call   echo {"words": "two"}\n---\nsay    Done: {echo}.'

    async def play() -> None:
        def listen(event: object) -> None:
            if isinstance(event, Words) and len(stage.of(Requested)) == 1:
                stage.session.switch(endpoint_of(stage.providers[there]))

        async with staged({here: first, there: second}, tmp_path, listen=listen) as stage:
            ended = await stage.session.ask("Go.")
            assert ended.text == "Done: heard two."
            assert [event.provider for event in stage.of(Replied)] == [here, there, there]
            assert [(event.provider, event.why) for event in stage.of(Moved)] == [(there, "chosen")]
            assert stage.refused == []

    asyncio.run(play())


@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_breaks_off_is_evidence_and_is_asked_for_again(api: str, tmp_path: Path) -> None:
    script = 'say    I will cal\ncall   echo {"words": "never"}\ncut\n---\nsay    Whole.'

    async def play() -> None:
        async with staged({api: script}, tmp_path) as stage:
            ended = await stage.session.ask("Go.")
            assert (ended.how, ended.text) == ("answered", "Whole.")
            assert [event.again for event in stage.of(Broke)] == [True]
            assert stage.of(CallEnded) == []
            assert len(stage.session.book.messages) == 2
            one, two = (provider.body for provider in stage.providers[api].requests)
            assert one == two

    asyncio.run(play())


def test_a_reply_that_breaks_off_again_and_again_ends_the_turn(tmp_path: Path) -> None:
    async def play() -> None:
        broken = "say    Onc\ncut"
        async with staged({"anthropic": "\n---\n".join([broken] * 5)}, tmp_path) as stage:
            ended = await stage.session.ask("Go.")
            assert ended.how == "failed"
            assert ended.retryable
            assert [event.again for event in stage.of(Broke)] == [True, True, False]
            assert len(stage.providers["anthropic"].requests) == 3
            assert len(stage.session.book.messages) == 1

    asyncio.run(play())


def test_failover_goes_elsewhere_stays_there_and_loses_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        scripts = {"openai-responses": None, "kimi": TWO_ROUNDS}
        faults = {"openai-responses": ["overloaded"]}
        async with staged(scripts, tmp_path, route=Failover, faults=faults) as stage:
            ended = await stage.session.ask("Go.")
            assert ended.text == "Done: heard three."
            assert {event.provider for event in stage.of(Replied)} == {"kimi"}
            [moved] = stage.of(Moved)
            assert moved.provider == "kimi"
            assert "openai-responses" in moved.why
            assert stage.refused == []

    asyncio.run(play())


def test_round_robin_moves_by_exchange(tmp_path: Path) -> None:
    async def play() -> None:
        script = 'call   echo {"words": "x"}\n---\nsay    Done.\n---\nsay    Again.'
        apis = ["anthropic", "gemini", "mistral"]
        async with staged(dict.fromkeys(apis, script), tmp_path, route=RoundRobin) as stage:
            for _ in range(4):
                assert (await stage.session.ask("Go.")).how == "answered"
            asked = [event.provider for event in stage.of(Requested)]
            assert asked == [api for api in apis for _ in range(2)] + ["anthropic"]
            assert stage.refused == []

    asyncio.run(play())


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "gemini"])
def test_cancelling_while_tools_run_gives_every_call_its_outcome(api: str, tmp_path: Path) -> None:
    script = 'call   wait {"words": "a"}\ncall   echo {"words": "b"}\ncall   wait {"words": "c"}\n---\nsay    Later.'

    async def play() -> None:
        def listen(event: object) -> None:
            if isinstance(event, CallEnded) and event.outcome == "complete":
                asyncio.get_running_loop().call_soon(stage.session.cancel)

        async with staged({api: script}, tmp_path, listen=listen) as stage:
            ended = await stage.session.ask("Go.")
            assert ended.how == "cancelled"
            assert [event.outcome for event in stage.of(CallEnded)].count("cancelled") == 2
            assert stage.results[1] == "heard b"
            assert not stage.session.book.pending
            assert (await stage.session.ask("And?")).text == "Later."
            assert stage.refused == []

    asyncio.run(play())


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "bedrock"])
def test_cancelling_while_the_model_speaks_leaves_no_half_reply(api: str, tmp_path: Path) -> None:
    script = "say    I begin\nwait 5\nsay and go on.\n---\nsay    Later."

    async def play() -> None:
        def listen(event: object) -> None:
            if isinstance(event, Words | Thoughts):
                stage.session.cancel()

        async with staged({api: script}, tmp_path, listen=listen) as stage:
            ended = await stage.session.ask("Go.")
            assert ended.how == "cancelled"
            assert len(stage.session.book.messages) == 1
            listening = stage.session
            stage.session._listen = stage.heard.append
            assert (await listening.ask("And?")).text == "Later."
            assert stage.refused == []

    asyncio.run(play())


def test_every_exchange_ends_with_one_event(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged({"qwen": "say    Yes."}, tmp_path) as stage:
            ended = await stage.session.ask("Go.")
            assert stage.of(Ended) == [ended]
            assert stage.heard[-1] is ended

    asyncio.run(play())

"""What an agent's conversation keeps through switches of provider, cancelled calls and long results, one test each.

They are held against the requests that strict providers received, over real HTTP, from sessions that went through all
of them; the readers are a stranger's (`bodies.py`).
"""

from __future__ import annotations

import asyncio
import inspect
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import segue
from segue._conversation import Conversation
from segue.canonical.history import History
from segue.runtime import scheduler
from segue.runtime.events import CallEnded
from segue.runtime.tool_types import Tool
from tests.each import for_each
from tests.runtime import bodies
from tests.runtime.bodies import Body
from tests.runtime.harness import APIS, ECHO, FAIL, TEXT_PARAMETERS, Harness, endpoint_of, open_harness
from tests.runtime.session_checks import LogWithChildren, find_problems, summarize_history

# ------------------------------------------------------------------------------------------------------- what was sent


class Sent(NamedTuple):
    """One request: to whom, how the journey that it is part of began, and its body."""

    api: str
    journey: str
    number: int
    body: Body

    def __str__(self) -> str:
        return f"{self.journey}, request {self.number} to {self.api}"


ROUND = """
think  Two things at once.
say    I listen.
call   echo {"words": "one"}
call   fail {"words": "two"}
call   echo {"words": "one"}
---
think  One more.
call   echo {"words": "three"}
---
think  That is all.
say    Done: {echo}.
"""

# chat -> model -> [thinking] [tool_call] [tool_response] [thinking] [5x tool_calls] [tool_response] [thinking] [text]
SEED = """
think  First look.
call   echo {"words": "C1"}
---
think  Now five at once.
call   wait {"words": "C2"}
call   echo {"words": "C3"}
call   wait {"words": "C4"}
call   wait {"words": "C5"}
call   wait {"words": "C6"}
---
think  It is clear now.
say    There it is.
"""
GOES_ON = "think  It is clear now.\nsay    There it is."
CANCELLED = "[cancelled before it finished]"


def _make_log() -> LogWithChildren:
    return LogWithChildren(Conversation(system="Be brief.", reasoning={"effort": "low"}))


def _record_requests(harness: Harness, journey: str) -> Iterator[Sent]:
    assert harness.rejections == []
    for api, provider in harness.providers.items():
        for request in provider.requests:
            assert request.body is not None
            assert request.accepted, f"{journey}: {request.refused}"
            yield Sent(api, journey, request.number, request.body)


@cache
def _round_trip() -> tuple[list[Sent], bytes]:
    """One conversation through all providers and back: parallel calls, twins, errors, thinking."""

    async def play() -> tuple[list[Sent], bytes]:
        script = f"{ROUND}---{ROUND}"
        with tempfile.TemporaryDirectory() as folder:
            async with open_harness(dict.fromkeys(APIS, script), Path(folder), log=_make_log()) as harness:
                for api in (*APIS, *reversed(APIS)):
                    harness.session.switch(endpoint_of(harness.providers[api]))
                    assert (await harness.session.ask("Go.")).text == "Done: heard three."
                assert find_problems(harness) == []
                return list(_record_requests(harness, "there and back")), harness.session.log.chat.dump()

    return asyncio.run(play())


@cache
def _seed_sequence(here: str) -> tuple[list[Sent], bytes]:
    """§7: five calls and one result, then everybody in turn goes on with it."""

    async def play() -> tuple[list[Sent], bytes]:
        def listen(event: object) -> None:
            if isinstance(event, CallEnded) and event.text == "heard C3":
                asyncio.get_running_loop().call_soon(harness.session.cancel)

        scripts = {here: SEED, **{api: GOES_ON for api in APIS if api != here}}
        with tempfile.TemporaryDirectory() as folder:
            async with open_harness(scripts, Path(folder), log=_make_log(), listen=listen) as harness:
                assert (await harness.session.ask("Go.")).outcome == "cancelled"
                for api in (here, *(api for api in APIS if api != here)):
                    harness.session.switch(endpoint_of(harness.providers[api]))
                    assert (await harness.session.ask("And?")).text == "There it is."
                assert find_problems(harness) == []
                return list(_record_requests(harness, f"§7 from {here}")), harness.session.log.chat.dump()

    return asyncio.run(play())


@cache
def _all_requests() -> list[Sent]:
    return [*_round_trip()[0], *(sent for here in APIS for sent in _seed_sequence(here)[0])]


def _assert_none(find: Callable[[str, Body], list[str]]) -> None:
    found = [f"{sent}: {bad}" for sent in _all_requests() for bad in find(sent.api, sent.body)]
    assert found == []


# ---------------------------------------------------------------------------------------------------------- conditions


def test_recorded_requests_cover_the_cases() -> None:
    """Every API got bodies with calls of every other's making, and all were accepted."""
    most = {api: max(len(bodies.calls(api, sent.body)) for sent in _all_requests() if sent.api == api) for api in APIS}
    assert min(most.values()) >= 4 * len(APIS)


def test_1_pairing_invariant() -> None:
    """1:1 call/result completeness per emitted call set."""
    _assert_none(bodies.unpaired_ids)
    for sent in _all_requests():
        assert len(bodies.calls(sent.api, sent.body)) == len(bodies.results(sent.api, sent.body)), sent


@for_each("here", APIS)
def test_1_pairing_invariant_in_the_sequence_of_section_7(here: str) -> None:
    """One real result of five; the other four are cancelled, at every provider, in call order."""
    later = [sent for sent in _seed_sequence(here)[0] if len(bodies.calls(sent.api, sent.body)) > 1]
    assert {sent.api for sent in later} == {*APIS}
    for api, _, _, body in later:
        called, answered = bodies.calls(api, body), bodies.results(api, body)
        assert [call.value for call in called] == [{"words": f"C{number}"} for number in range(1, 7)]
        assert [call.name for call in called] == ["echo", "wait", "echo", "wait", "wait", "wait"]
        assert [result.value for result in answered] == ["heard C1", CANCELLED, "heard C3", *[CANCELLED] * 3]
        if api in ("anthropic", "bedrock", "gemini"):
            assert [result.error for result in answered] == [False, True, False, True, True, True]


def test_2_placement_invariant() -> None:
    """For the target's protocol, strict adjacency included."""
    _assert_none(bodies.misplaced_results)


def test_3_id_projection_invariant() -> None:
    """Lawful for the provider's format, Kimi's and Mistral's included, and one id for one call."""
    _assert_none(bodies.invalid_ids)
    for sent in _all_requests():
        called = [call.id for call in bodies.calls(sent.api, sent.body)]
        assert len({*called}) == len(called), sent


def test_3_id_projection_invariant_calls_keep_their_ids() -> None:
    """A result sent once is the same in every later request."""
    for journey in {sent.journey for sent in _all_requests()}:
        for api in APIS:
            ids = [
                [call.id for call in bodies.calls(api, sent.body)]
                for sent in _all_requests()
                if (sent.api, sent.journey) == (api, journey)
            ]
            for before, after in pairwise(ids):
                assert after[: len(before)] == before, (api, journey)


def test_3_id_projection_invariant_same_and_cross_api() -> None:
    """A provider gets back the ids it gave; everybody else's calls are in its own form."""
    prefix = {"openai-chat": "call_", "openai-responses": "call_", "anthropic": "toolu_", "bedrock": "tooluse_"}
    for sent in _all_requests():
        for call in bodies.calls(sent.api, sent.body):
            assert call.id is not None
            assert call.id.startswith(prefix.get(sent.api, "")), sent


def test_4_dedup_invariant() -> None:
    """No duplicate effective completion."""
    _assert_none(bodies.repeated_ids)


def test_4_dedup_invariant_late_results(tmp_path: Path) -> None:
    """A tool that ends after its timeout: no second result is sent, before or after the next request."""

    async def play(api: str) -> None:
        begins, ends = asyncio.Event(), asyncio.Event()
        cancels: list[asyncio.Task[None]] = []

        async def stubborn(arguments: Any, context: Any) -> str:
            begins.set()
            while True:
                try:
                    await ends.wait()
                except asyncio.CancelledError:
                    continue
                return "after all"

        async def cancel() -> None:
            # A tool that is cancelled before it begins has no late result.
            await begins.wait()
            harness.session.cancel()

        def listen(event: object) -> None:
            if isinstance(event, CallEnded) and event.tool == "echo":
                cancels.append(asyncio.ensure_future(cancel()))

        late = Tool("late", "Comes late.", TEXT_PARAMETERS, stubborn, blocking=False)
        script = 'call   late {"words": "x"}\ncall   echo {"words": "y"}\n---\nsay    On.\n---\nsay    On.'
        async with open_harness({api: script}, tmp_path, tools=(ECHO, late), listen=listen) as harness:
            assert (await harness.session.ask("Go.")).outcome == "cancelled"
            assert (await harness.session.ask("And?")).outcome == "answered"
            ends.set()
            while not any(type(event).__name__ == "LateResult" for event in harness.events):
                await asyncio.sleep(0)
            assert (await harness.session.ask("And?")).outcome == "answered"
            assert find_problems(harness) == []
            for request in harness.providers[api].requests[1:]:
                assert request.body is not None
                assert [result.value for result in bodies.results(api, request.body)] == [CANCELLED, "heard y"]

    for api in APIS:
        asyncio.run(play(api))


@for_each("reasoning", ["native", "text", "none"])
def test_5_mixed_thinking_tool_text(reasoning: str) -> None:
    """Valid at every target under every reasoning policy, with the same calls and results."""
    for data in (_round_trip()[1], *(_seed_sequence(here)[1] for here in APIS)):
        chat = Conversation.load(data)
        # What is rendered ends where a user speaks.
        chat.add_user("And?")
        history = summarize_history(chat.messages, thinking=True)
        called = [(line[2], line[3]) for line in history if line[1] == "calls"]
        thought = [line[2] for line in history if line[1] == "thinks" and "at once" in line[2]]
        for api in APIS:
            body = chat.render(api, reasoning=reasoning).body
            assert [bad for bad in segue.check(body, api) if bad.severity == "reject"] == [], api
            assert bodies.find_violations(api, body) == [], api
            assert [(call.name, call.value) for call in bodies.calls(api, body)] == called, api
            texts = [part.value for part in bodies.parts(api, body) if part.kind == "text" and "at once" in part.value]
            kept = [part for part in bodies.parts(api, body) if part.kind == "thinking" and "at once" in part.value]
            assert bool(texts) == (reasoning == "text" and len(thought) > len(kept)), api
            assert reasoning != "none" or not kept, api


def test_5_mixed_thinking_tool_text_returns_to_its_api() -> None:
    """Under the policy of a session each provider that signs its thinking gets it back where it stood."""
    for api in ("anthropic", "bedrock", "deepseek", "qwen"):
        [*_, last] = [sent for sent in _round_trip()[0] if sent.api == api]
        own = [part.value for part in bodies.parts(api, last.body) if part.kind == "thinking"]
        assert "Two things at once." in own, api


# ------------------------------------------------------------------------------------------ 6, the one way to run tools


def test_6_tool_execution_path_invariant_subagent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session and its subagent: one scheduler each, every reply's calls one batch, results through `History.add`."""
    from tests.runtime.session_checks import open_with_subagents

    made, batches, singles = _watch_scheduler(monkeypatch)
    child = 'call   echo {"words": "a"}\ncall   fail {"words": "b"}\n---\ncall   echo {"words": "c"}\n---\nsay    Yes.'
    task = '{"description": "x", "prompt": "Do.", "model": "kimi"}'
    parent = f'call   task {task}\ncall   echo {{"words": "d"}}\n---\nsay    Done.'

    async def play() -> None:
        async with open_with_subagents({"gemini": parent, "kimi": child}, tmp_path, tools=(ECHO, FAIL)) as harness:
            assert (await harness.session.ask("Go.")).text == "Done."
            assert find_problems(harness) == []

    asyncio.run(play())
    # One is the stage's own, and is never used.
    assert len(made) == 3
    assert batches == [(made[1], ["task", "echo"]), (made[2], ["echo", "fail"]), (made[2], ["echo"])]
    assert singles == []


def _watch_scheduler(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any], list[Any]]:
    made: list[Any] = []
    batches: list[Any] = []
    singles: list[Any] = []
    new, batch, single = scheduler.Scheduler.__init__, scheduler.Scheduler.run_batch, scheduler.Scheduler.run_one

    def watched_new(self: Any, *given: Any, **more: Any) -> None:
        made.append(self)
        new(self, *given, **more)

    def watched_batch(self: Any, calls: Any, **more: Any) -> Any:
        batches.append((self, [call.name for call in calls]))
        return batch(self, calls, **more)

    def watched_single(self: Any, call: Any) -> Any:
        singles.append(call.name)
        return single(self, call)

    monkeypatch.setattr(scheduler.Scheduler, "__init__", watched_new)
    monkeypatch.setattr(scheduler.Scheduler, "run_batch", watched_batch)
    monkeypatch.setattr(scheduler.Scheduler, "run_one", watched_single)
    return made, batches, singles


def test_6_tool_execution_path_invariant_one_write_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is in the history came by `History.add`, results only from the scheduler, one message a result."""
    added: list[tuple[str, str]] = []
    add = History.add

    def watched(self: History, *messages: Any) -> Any:
        frames = {frame.function for frame in inspect.stack(context=0)}
        by = "door" if frames & {"_finish", "_close_batch"} else "session"
        added.extend((message.speaker, by) for message in messages)
        return add(self, *messages)

    monkeypatch.setattr(History, "add", watched)

    async def play() -> list[Any]:
        def listen(event: object) -> None:
            if isinstance(event, CallEnded) and event.text == "heard C3":
                asyncio.get_running_loop().call_soon(harness.session.cancel)

        async with open_harness({"mistral": SEED}, tmp_path, listen=listen) as harness:
            await harness.session.ask("Go.")
            await harness.session.ask("And?")
            return [message.speaker for message in harness.session.log.messages]

    speakers = asyncio.run(play())
    assert [speaker for speaker, _ in added] == speakers
    assert {by for speaker, by in added if speaker == "tool"} == {"door"}
    assert {by for speaker, by in added if speaker != "tool"} == {"session"}

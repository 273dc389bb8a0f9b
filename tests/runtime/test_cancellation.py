"""Cancelling at every point: each call has one outcome and the conversation continues."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from segue._conversation import Conversation
from segue.runtime.events import (
    ApprovalRequested,
    CallStarted,
    Event,
    ExchangeEnded,
    ExchangeStarted,
    ModelSwitched,
    ReasoningDelta,
    ReplyReceived,
    RequestSent,
    RetryScheduled,
    StreamBroken,
    TextDelta,
)
from segue.runtime.routing import Failover
from segue.runtime.tool_types import ApprovalDecision, ApprovalRequest, Arguments, Context, Result, Tool
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore
from tests.budget import sample
from tests.runtime.harness import ECHO, FAIL, TEXT_PARAMETERS, Harness, open_harness
from tests.runtime.session_checks import (
    LogWithChildren,
    find_invalid_bodies,
    find_problems,
    open_with_subagents,
    summarize_history,
)

How = Literal["at once", "soon", "task"]

SCRIPT = """
think  Three things.
say    I listen, and I listen.
call   echo {"words": "one"}
call   fail {"words": "two"}
call   murmur {"words": "three"}
call   guarded {"words": "four"}
call   nothing {"words": "five"}
call   echo {"word": "six"}
---
say    Never hea
call   echo {"words": "never"}
cut
---
think  One more.
call   echo {"words": "seven"}
---
say    Done: {echo}.
---
say    Later.
"""

SHORT = """
say    I listen.
call   echo {"words": "one"}
call   fail {"words": "two"}
---
say    Done: {echo}.
"""


async def _emit_progress_tool(arguments: Arguments, context: Context) -> Result:
    context.progress("half way")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return Result(f"murmured {arguments['words']}")


def _guard(arguments: Arguments, folder: Path) -> ApprovalRequest:
    return ApprovalRequest("guarded", str(arguments["words"]), "May it?")


async def _approve(question: ApprovalRequest) -> ApprovalDecision:
    await asyncio.sleep(0)
    return "once"


MURMUR = Tool("murmur", "Says the words softly.", TEXT_PARAMETERS, _emit_progress_tool, blocking=False)
GUARDED = Tool(
    "guarded",
    "Says the words if it may.",
    TEXT_PARAMETERS,
    _emit_progress_tool,
    blocking=False,
    approval_request=_guard,
)
TOOLS = (ECHO, FAIL, MURMUR, GUARDED)


class Trap:
    """An event listener that cancels at event number `place`. `after` has the later events."""

    def __init__(self, place: int | None, how: How = "at once", *, of_subagents: bool = False) -> None:
        self.place = place
        self.how = how
        self.after: list[Event] = []
        self.sprung: Event | None = None
        self.is_cancelled = False
        self.stage: Harness | None = None
        self.asking: asyncio.Task[ExchangeEnded] | None = None
        self.of_subagents = of_subagents
        self._count = 0

    def __call__(self, event: Event) -> None:
        if self.is_cancelled:
            self.after.append(event)
        if self.of_subagents and event.task is None:
            return
        if self._count == self.place:
            self.sprung = event
            if self.how == "soon":
                asyncio.get_running_loop().call_soon(self._cancel)
            else:
                self._cancel()
        self._count += 1

    def _cancel(self) -> None:
        assert self.stage is not None
        assert self.asking is not None
        self.is_cancelled = not self.asking.done()
        if self.how == "task":
            self.asking.cancel()
        else:
            self.stage.session.cancel()


async def _request_until_end(harness: Harness, trap: Trap, words: str = "Go.") -> ExchangeEnded | None:
    """How it ended; None where the task itself was cancelled."""
    trap.stage, trap.asking = harness, asyncio.create_task(harness.session.ask(words))
    try:
        return await trap.asking
    except asyncio.CancelledError:
        return None
    finally:
        # There may have been fewer events this time.
        trap.place = None


def _check_end(harness: Harness, trap: Trap, ended: ExchangeEnded | None, where: str) -> None:
    """After a cancel no request is sent, no call is started and no message is lost."""
    conversation_log = harness.session.log
    ends = [event for event in harness.events_of(ExchangeEnded) if event.task is None]
    assert len(ends) == 1, f"{where}: {len(ends)} ends"
    assert find_problems(harness) == [], where
    # A task that is cancelled hears of it where it waits next, and so does a subagent: till then it may begin things.
    on = [event for event in trap.after if isinstance(event, CallStarted | RequestSent) and event.task is None]
    if trap.how != "task" and not trap.of_subagents:
        assert on == [], f"{where}: it goes on with {type(on[0]).__name__}"
    if trap.is_cancelled and any(not isinstance(event, ExchangeEnded) for event in trap.after):
        assert ended is None or ended.outcome == "cancelled", f"{where}: it ended as {ended and ended.outcome}"
    assert ended is not None or trap.how == "task", f"{where}: only the task's own cancellation is raised"
    if (
        isinstance(trap.sprung, TextDelta | ReasoningDelta)
        and trap.sprung.task is None
        and isinstance(conversation_log, LogWithChildren)
    ):
        so_far = harness.events[: harness.events.index(trap.sprung)]
        replied = sum(isinstance(event, ReplyReceived) for event in so_far)
        broke = sum(isinstance(event, StreamBroken) for event in so_far)
        assert len(harness.events_of(ReplyReceived)) > replied or len(conversation_log.broken) > broke, (
            f"{where}: what was said is lost"
        )


def _failures_at(places: Iterable[int], play: Callable[[int], Any]) -> str:
    """What went wrong at any place, in a line each."""
    failed: list[str] = []
    for place in places:
        try:
            asyncio.run(play(place))
        except AssertionError as error:
            failed.append(f"{place}: {error}".splitlines()[0])
    return "\n".join(failed)


@pytest.mark.parametrize(
    ("api", "how", "start"),
    [
        ("openai-responses", "at once", 0),
        ("anthropic", "at once", 1),
        ("kimi", "soon", 0),
        ("gemini", "soon", 1),
        ("anthropic", "task", 0),
        ("mistral", "task", 1),
    ],
)
def test_cancelling_at_every_event_leaves_nothing_open(api: str, how: How, start: int, tmp_path: Path) -> None:
    """Two APIs for each way to cancel, which take the events in turn; in `make soak` each takes all of them."""

    async def play(place: int | None) -> list[Event]:
        trap = Trap(place, how)
        conversation_log = LogWithChildren(Conversation(reasoning={"effort": "low"}))
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        async with open_harness(
            {api: SCRIPT}, tmp_path, log=conversation_log, tools=TOOLS, approve=_approve, listen=trap
        ) as harness:
            ended = await _request_until_end(harness, trap)
            recorded = list(harness.events)
            where = f"{how} at {place}, {type(trap.sprung).__name__}"
            _check_end(harness, trap, ended, where)
            assert place is None or find_invalid_bodies(conversation_log) == [], where
            again = await harness.session.ask("And?")
            assert again.outcome == "answered", f"{where}: then {again.text}"
            assert find_problems(harness) == [], f"{where}, then asked again"
            assert faults == [], where
        return recorded

    recorded = asyncio.run(play(None))
    assert {type(event) for event in recorded} >= {
        ExchangeStarted,
        TextDelta,
        RequestSent,
        ReplyReceived,
        StreamBroken,
        ApprovalRequested,
        CallStarted,
        ExchangeEnded,
    }
    assert _failures_at(sample(range(len(recorded)), 2, start=start), play) == ""


@pytest.mark.parametrize("how", ["at once", "soon", "task"])
def test_cancelling_at_every_event_keeps_the_store_consistent(how: How, tmp_path: Path) -> None:
    async def play(place: int | None) -> int:
        trap = Trap(place, how)
        with SqliteStore(tmp_path / f"{place}.db") as store:
            conversation_log = StoredConversation.create(store, Conversation(), owner="the first")
            async with open_harness({"qwen": SHORT}, tmp_path, log=conversation_log, listen=trap) as harness:
                ended = await _request_until_end(harness, trap)
                recorded = len(harness.events)
                where = f"{how} at {place}, {type(trap.sprung).__name__}"
                _check_end(harness, trap, ended, where)
            stored = StoredConversation(store, conversation_log.id, owner="the next")
            assert summarize_history(stored.messages) == summarize_history(conversation_log.messages), where
            assert stored.pending == [], where
        return recorded

    assert _failures_at(range(asyncio.run(play(None))), play) == ""


def test_cancelling_during_an_outage_does_not_fail_over(tmp_path: Path) -> None:
    scripts = {"openai-chat": None, "anthropic": SHORT}

    async def play(place: int | None) -> list[Event]:
        trap = Trap(place)
        faults = {"openai-chat": ["overloaded"]}
        async with open_harness(
            scripts, tmp_path, route=Failover, faults=faults, log=LogWithChildren(), listen=trap
        ) as harness:
            ended = await _request_until_end(harness, trap)
            recorded = list(harness.events)
            where = f"at {place}, {type(trap.sprung).__name__}"
            _check_end(harness, trap, ended, where)
            again = await harness.session.ask("And?")
            assert again.outcome == "answered", f"{where}: then {again.text}"
            assert find_problems(harness) == [], f"{where}, then asked again"
        return recorded

    recorded = asyncio.run(play(None))
    assert {type(event) for event in recorded} >= {RetryScheduled, ModelSwitched}
    assert _failures_at(range(len(recorded)), play) == ""


# ----------------------------------------------------------------------------------------------------------- subagents

PARENT = """
say    I share it out.
call   task {"description": "the one", "prompt": "Do one.", "model": "kimi"}
call   echo {"words": "meanwhile"}
call   task {"description": "the other", "prompt": "Do the other.", "model": "gemini"}
---
say    Done: {task}.
---
say    Later.
"""
CHILD = """
say    I try.
call   echo {"words": "small"}
call   murmur {"words": "smaller"}
---
say    It is {echo}.
"""


async def _wait_for_subagents(harness: Harness, where: str) -> None:
    """A cancelled exchange ends before its subagents do: wait until each that began has ended."""

    def count(kind: type[Event]) -> Counter[str]:
        return Counter(event.task for event in harness.events_of(kind) if event.task)

    with suppress(TimeoutError):
        async with asyncio.timeout(60):
            while count(ExchangeEnded) < count(ExchangeStarted):
                await asyncio.sleep(0)
    assert count(ExchangeEnded) == count(ExchangeStarted), f"{where}: each subagent that began ends once"


@pytest.mark.parametrize("how", ["at once", "soon", "task"])
def test_cancelling_at_every_event_of_subagents_ends_them_too(how: How, tmp_path: Path) -> None:
    scripts = {"anthropic": PARENT, "kimi": CHILD, "gemini": CHILD}

    async def play(place: int | None) -> int:
        trap = Trap(place, how, of_subagents=True)
        async with open_with_subagents(scripts, tmp_path, tools=TOOLS, listen=trap) as harness:
            ended = await _request_until_end(harness, trap)
            recorded = sum(event.task is not None for event in harness.events)
            where = f"{how} at {place}, {type(trap.sprung).__name__}"
            await _wait_for_subagents(harness, where)
            _check_end(harness, trap, ended, where)
            again = await harness.session.ask("And?")
            assert again.outcome == "answered", f"{where}: then {again.text}"
            assert find_problems(harness) == [], f"{where}, then asked again"
        return recorded

    recorded = asyncio.run(play(None))
    assert recorded > 20
    assert _failures_at(range(recorded), play) == ""

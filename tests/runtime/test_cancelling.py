"""Cancelling at every point: whatever was under way, each call has one outcome and the conversation goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from segue.conversation import Conversation
from segue.runtime.events import (
    Asks,
    Began,
    Broke,
    CallBegan,
    Ended,
    Event,
    Moved,
    Replied,
    Requested,
    Thoughts,
    Waiting,
    Words,
)
from segue.runtime.switching import Failover
from segue.runtime.tooling import Answer, Arguments, Context, Question, Result, Tool
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore
from tests.runtime.stage import ECHO, FAIL, WORDS, Stage, staged
from tests.runtime.watching import Shelf, told, unlawful, with_subagents, wrong

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


async def _murmur(arguments: Arguments, context: Context) -> Result:
    context.progress("half way")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return Result(f"murmured {arguments['words']}")


def _guard(arguments: Arguments, folder: Path) -> Question:
    return Question("guarded", str(arguments["words"]), "May it?")


async def _yes(question: Question) -> Answer:
    await asyncio.sleep(0)
    return "once"


MURMUR = Tool("murmur", "Says the words softly.", WORDS, _murmur, blocking=False)
GUARDED = Tool("guarded", "Says the words if it may.", WORDS, _murmur, blocking=False, question=_guard)
TOOLS = (ECHO, FAIL, MURMUR, GUARDED)


class Trap:
    """Hears events; at the `place`-th it cancels. `after` is what was heard from then on."""

    def __init__(self, place: int | None, how: How = "at once", *, of_subagents: bool = False) -> None:
        self.place = place
        self.how = how
        self.after: list[Event] = []
        self.sprung: Event | None = None
        self.is_cancelled = False
        self.stage: Stage | None = None
        self.asking: asyncio.Task[Ended] | None = None
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


async def _asked(stage: Stage, trap: Trap, words: str = "Go.") -> Ended | None:
    """How it ended; None where the task itself was cancelled."""
    trap.stage, trap.asking = stage, asyncio.create_task(stage.session.ask(words))
    try:
        return await trap.asking
    except asyncio.CancelledError:
        return None
    finally:
        # There may have been fewer events this time.
        trap.place = None


def _judge_the_end(stage: Stage, trap: Trap, ended: Ended | None, where: str) -> None:
    """Cancelled means: nothing more is asked, nothing more is begun, nothing that was said is lost."""
    book = stage.session.book
    ends = [event for event in stage.of(Ended) if event.task is None]
    assert len(ends) == 1, f"{where}: {len(ends)} ends"
    assert wrong(stage) == [], where
    # A task that is cancelled hears of it where it waits next, and so does a subagent: till then it may begin things.
    on = [event for event in trap.after if isinstance(event, CallBegan | Requested) and event.task is None]
    if trap.how != "task" and not trap.of_subagents:
        assert on == [], f"{where}: it goes on with {type(on[0]).__name__}"
    if trap.is_cancelled and any(not isinstance(event, Ended) for event in trap.after):
        assert ended is None or ended.how == "cancelled", f"{where}: it ended as {ended and ended.how}"
    assert ended is not None or trap.how == "task", f"{where}: only the task's own cancellation is raised"
    if isinstance(trap.sprung, Words | Thoughts) and trap.sprung.task is None and isinstance(book, Shelf):
        so_far = stage.heard[: stage.heard.index(trap.sprung)]
        replied = sum(isinstance(event, Replied) for event in so_far)
        broke = sum(isinstance(event, Broke) for event in so_far)
        assert len(stage.of(Replied)) > replied or len(book.broken) > broke, f"{where}: what was said is lost"


def _played(count: int, play: Callable[[int], Any]) -> str:
    """What went wrong at any place, in a line each."""
    failed: list[str] = []
    for place in range(count):
        try:
            asyncio.run(play(place))
        except AssertionError as error:
            failed.append(str(error).splitlines()[0])
    return "\n".join(failed)


@pytest.mark.parametrize(
    ("api", "how"),
    [
        ("openai-responses", "at once"),
        ("anthropic", "at once"),
        ("kimi", "soon"),
        ("anthropic", "task"),
        ("gemini", "soon"),
        ("mistral", "task"),
    ],
)
def test_cancelling_at_every_event_leaves_nothing_open(api: str, how: How, tmp_path: Path) -> None:
    async def play(place: int | None) -> list[Event]:
        trap = Trap(place, how)
        book = Shelf(Conversation(reasoning={"effort": "low"}))
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        async with staged({api: SCRIPT}, tmp_path, book=book, tools=TOOLS, approve=_yes, listen=trap) as stage:
            ended = await _asked(stage, trap)
            heard = list(stage.heard)
            where = f"{how} at {place}, {type(trap.sprung).__name__}"
            _judge_the_end(stage, trap, ended, where)
            assert place is None or unlawful(book) == [], where
            again = await stage.session.ask("And?")
            assert again.how == "answered", f"{where}: then {again.text}"
            assert wrong(stage) == [], f"{where}, then asked again"
            assert faults == [], where
        return heard

    heard = asyncio.run(play(None))
    assert {type(event) for event in heard} >= {Began, Words, Requested, Replied, Broke, Asks, CallBegan, Ended}
    assert _played(len(heard), play) == ""


@pytest.mark.parametrize("how", ["at once", "soon", "task"])
def test_cancelling_at_every_event_leaves_a_store_that_says_the_same(how: How, tmp_path: Path) -> None:
    async def play(place: int | None) -> int:
        trap = Trap(place, how)
        with SqliteStore(tmp_path / f"{place}.db") as store:
            book = StoredConversation.create(store, Conversation(), owner="the first")
            async with staged({"qwen": SHORT}, tmp_path, book=book, listen=trap) as stage:
                ended = await _asked(stage, trap)
                heard = len(stage.heard)
                where = f"{how} at {place}, {type(trap.sprung).__name__}"
                _judge_the_end(stage, trap, ended, where)
            stored = StoredConversation(store, book.id, owner="the next")
            assert told(stored.messages) == told(book.messages), where
            assert stored.pending == [], where
        return heard

    assert _played(asyncio.run(play(None)), play) == ""


def test_cancelling_while_a_provider_is_not_to_be_had_goes_nowhere_else(tmp_path: Path) -> None:
    scripts = {"openai-chat": None, "anthropic": SHORT}

    async def play(place: int | None) -> list[Event]:
        trap = Trap(place)
        faults = {"openai-chat": ["overloaded"]}
        async with staged(scripts, tmp_path, route=Failover, faults=faults, book=Shelf(), listen=trap) as stage:
            ended = await _asked(stage, trap)
            heard = list(stage.heard)
            where = f"at {place}, {type(trap.sprung).__name__}"
            _judge_the_end(stage, trap, ended, where)
            again = await stage.session.ask("And?")
            assert again.how == "answered", f"{where}: then {again.text}"
            assert wrong(stage) == [], f"{where}, then asked again"
        return heard

    heard = asyncio.run(play(None))
    assert {type(event) for event in heard} >= {Waiting, Moved}
    assert _played(len(heard), play) == ""


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


@pytest.mark.parametrize("how", ["at once", "soon", "task"])
def test_cancelling_at_every_event_of_subagents_ends_them_too(how: How, tmp_path: Path) -> None:
    scripts = {"anthropic": PARENT, "kimi": CHILD, "gemini": CHILD}

    async def play(place: int | None) -> int:
        trap = Trap(place, how, of_subagents=True)
        async with with_subagents(scripts, tmp_path, tools=TOOLS, listen=trap) as stage:
            ended = await _asked(stage, trap)
            heard = sum(event.task is not None for event in stage.heard)
            where = f"{how} at {place}, {type(trap.sprung).__name__}"
            # What was given up comes to its end on the loop.
            for _ in range(20):
                await asyncio.sleep(0)
            _judge_the_end(stage, trap, ended, where)
            began = {event.task for event in stage.of(Began) if event.task}
            over = [event.task for event in stage.of(Ended) if event.task]
            assert sorted(over) == sorted(began), f"{where}: each subagent that began ends once"
            again = await stage.session.ask("And?")
            assert again.how == "answered", f"{where}: then {again.text}"
            assert wrong(stage) == [], f"{where}, then asked again"
        return heard

    heard = asyncio.run(play(None))
    assert heard > 20
    assert _played(heard, play) == ""

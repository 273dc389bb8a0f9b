"""Blocking tools: threads of their own, which are given up and never waited for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.blocks import Text
from segue.runtime.book import Book, Memory
from segue.runtime.events import CallBegan, CallEnded, CallProgress, Late
from segue.runtime.scheduler import Scheduler
from segue.runtime.tooling import Context, Tool

from .stand import Box, Ear, asked, run, scheduler, states, told, tool, valid

PATIENCE = 100.0
ROOT = Path(__file__).parents[2]


class Gate:
    """A blocking tool that ignores everybody until it is let go."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.begun = threading.Event()
        self.contexts: list[Context] = []
        self.ran = 0

    def work(self, arguments: Any, context: Context) -> str:
        self.contexts.append(context)
        self.ran += 1
        self.begun.set()
        assert self.opened.wait(PATIENCE)
        return "done after all"


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture(autouse=True)
def _no_thread_raises(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    yield
    assert raised == []


async def until(true: Any) -> None:
    """Waits for what can be seen, not for time."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


def quick(arguments: Any, context: Context) -> str:
    return "quick"


def test_blocking_tools_run_side_by_side(book: Book, tmp_path: Path) -> None:
    barrier = threading.Barrier(4)

    def meet(arguments: Any, context: Context) -> str:
        return f"met {barrier.wait(PATIENCE) >= 0}"

    calls = asked(book, *["meet"] * 4)
    ended = run(scheduler(book, Box(tmp_path, tool("meet", meet, blocking=True))).run_batch(calls), real=True)
    assert [one.text for one in ended] == ["met True"] * 4
    valid(book)


@pytest.mark.parametrize("how", ["cancel", "time", "outer"])
def test_a_thread_that_listens_to_nobody_is_given_up(book: Book, tmp_path: Path, gate: Gate, how: str) -> None:
    ear = Ear()

    async def main() -> None:
        box = Box(
            tmp_path,
            tool("gate", gate.work, blocking=True, timeout=0.05 if how == "time" else None),
            tool("quick", quick, blocking=True),
        )
        runs = scheduler(book, box, ear, parallel=1)
        batch = asyncio.create_task(runs.run_batch(asked(book, "gate", "quick")))
        await until(gate.begun.is_set)
        if how == "time":
            assert [one.outcome for one in await batch] == ["timed-out", "complete"]
        elif how == "cancel":
            runs.cancel()
            assert [one.outcome for one in await batch] == ["cancelled", "cancelled"]
        else:
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch
        assert gate.contexts[0].cancelled.is_set()
        book.render("openai-chat")
        book.sent()
        # Its place is free though it still runs.
        assert [one.outcome for one in await runs.run_batch(asked(book, "quick"))] == ["complete"]
        before = told(book)
        gate.opened.set()
        await until(lambda: ear.of(Late))
        assert told(book) == before

    run(main(), real=True)
    entry = next(iter(book.chat.history.ledger.values()))
    assert [response.content for response in entry.evidence] == [(Text("done after all"),)]
    assert states(book)[0] == ("error" if how == "time" else "cancelled")
    assert len(ear.of(CallEnded)) == 3
    valid(book)


def writer(name: str, work: Any, timeout: float, *, blocking: bool = True) -> Tool:
    return tool(name, work, blocking=blocking, writes="path", timeout=timeout)


def test_a_writer_that_was_given_up_keeps_its_file_locked(book: Book, tmp_path: Path, gate: Gate) -> None:
    ear = Ear()

    async def main() -> None:
        box = Box(tmp_path, writer("gate", gate.work, 0.05), writer("quick", quick, 0.1))
        runs = scheduler(book, box, ear)
        one = ("gate", {"path": "a.txt"})
        same, other = ("quick", {"path": "./a.txt"}), ("quick", {"path": "b.txt"})
        ended = await runs.run_batch(asked(book, one, same, other))
        assert [end.outcome for end in ended] == ["timed-out", "error", "complete"]
        assert "a.txt is still being written by an earlier gate that was given up" in ended[1].text
        ended = await runs.run_batch(asked(book, same, other))
        assert [end.outcome for end in ended] == ["error", "complete"]
        gate.opened.set()
        await until(lambda: ear.of(Late))
        ended = await runs.run_batch(asked(book, same))
        assert [end.outcome for end in ended] == ["complete"]

    run(main(), real=True)
    assert len(ear.of(CallBegan)) == 4
    valid(book)


def test_who_waits_behind_a_writer_that_was_given_up_goes_on_when_it_ends(tmp_path: Path, gate: Gate) -> None:
    book, ear = Memory(), Ear()

    async def main() -> None:
        runs = scheduler(book, Box(tmp_path, writer("gate", gate.work, 0.05), writer("quick", quick, PATIENCE)), ear)
        batch = asyncio.create_task(runs.run_batch(asked(book, ("gate", {"path": "a"}), ("quick", {"path": "a"}))))
        await until(lambda: ear.of(CallEnded))
        assert [event.tool for event in ear.of(CallBegan)] == ["gate"]
        gate.opened.set()
        assert [end.outcome for end in await batch] == ["timed-out", "complete"]

    run(main(), real=True)


def test_a_coroutine_that_a_thread_gives_back_is_run_there(tmp_path: Path) -> None:
    book = Memory()

    async def work(arguments: Any, context: Context) -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    box = Box(tmp_path, tool("work", work, blocking=True))
    assert run(scheduler(book, box).run_batch(asked(book, "work")), real=True)[0].text == "tool work"


def test_calls_within_a_thread(tmp_path: Path) -> None:
    book = Memory()
    calls = asked(book, ("outer", {"path": "a"}), ("quick", {"path": "a"}), ("quick", {}))

    async def main() -> Any:
        loop = asyncio.get_running_loop()

        def outer(arguments: Any, context: Context) -> str:
            refused = asyncio.run_coroutine_threadsafe(runs.run_batch(calls[2:]), loop).exception(PATIENCE)
            one = asyncio.run_coroutine_threadsafe(runs.run_one(calls[1]), loop).result(PATIENCE)
            return f"{one.text}; {refused}"

        runs = scheduler(book, Box(tmp_path, writer("outer", outer, PATIENCE), writer("quick", quick, 1)), parallel=1)
        return await runs.run_batch(calls[:1])

    [ended] = run(main(), real=True)
    assert ended.text.startswith("quick; a tool can't wait for a batch of the scheduler that runs it")


def test_a_call_within_a_thread_that_is_given_up_ends_with_it(tmp_path: Path, gate: Gate) -> None:
    book = Memory()
    calls = asked(book, "outer", "inner", "quick")
    refused: list[Any] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def outer(arguments: Any, context: Context) -> str:
            one = asyncio.run_coroutine_threadsafe(runs.run_one(calls[1]), loop).result(PATIENCE)
            refused.append(asyncio.run_coroutine_threadsafe(runs.run_one(calls[2]), loop).exception(PATIENCE))
            return one.outcome

        async def inner(arguments: Any, context: Context) -> str:
            begun.set()
            await asyncio.sleep(PATIENCE)
            return "never"

        begun = asyncio.Event()
        box = Box(tmp_path, tool("outer", outer, blocking=True), tool("inner", inner), tool("quick", quick))
        runs = scheduler(book, box, ear, parallel=1)
        batch = asyncio.create_task(runs.run_batch(calls[:1]))
        await begun.wait()
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        assert states(book) == ["cancelled", "cancelled", "pending"]
        await until(lambda: ear.of(Late))

    ear = Ear()
    run(main(), real=True)
    assert "was cancelled" in str(refused[0])
    assert len(ear.of(CallEnded)) == 2


def test_whoever_hears_of_an_end_is_not_within_the_call(tmp_path: Path) -> None:
    """A listener that goes on from an event may have batches run."""
    book = Memory()
    calls = asked(book, "task", "thread", "quick", "quick")
    more: list[asyncio.Task[Any]] = []

    async def main() -> None:
        async def task(arguments: Any, context: Context) -> str:
            context.progress("here")
            await asyncio.sleep(0.01)
            return "done"

        def emit(event: Any) -> None:
            if isinstance(event, CallEnded) and event.tool in ("task", "thread"):
                following = calls[2 if event.tool == "task" else 3]
                more.append(asyncio.create_task(runs.run_batch([following])))

        tools = [tool("task", task), tool("thread", lambda a, c: "done", blocking=True), tool("quick", quick)]
        runs = Scheduler(book, Box(tmp_path, *tools), emit=emit)
        await runs.run_batch(calls[:2])
        for following in more:
            assert (await following)[0].outcome == "complete"

    run(main(), real=True)
    assert states(book) == ["complete"] * 4


def test_a_thread_that_talks_all_the_time_is_heard_now_and_then(tmp_path: Path) -> None:
    book, ear = Memory(), Ear()

    def talks(arguments: Any, context: Context) -> str:
        for number in range(20_000):
            context.progress(f"line {number}")
        return "done"

    began = time.monotonic()
    run(
        scheduler(book, Box(tmp_path, tool("talks", talks, blocking=True)), ear).run_batch(asked(book, "talks")),
        real=True,
    )
    assert 1 <= len(ear.of(CallProgress)) <= 2 + (time.monotonic() - began) / 0.1


def test_a_thread_that_ends_after_the_loop_is_nobodys_business(tmp_path: Path, gate: Gate) -> None:
    book = Memory()

    async def main() -> None:
        runs = scheduler(book, Box(tmp_path, tool("gate", gate.work, blocking=True)))
        batch = asyncio.create_task(runs.run_batch(asked(book, "gate")))
        await until(gate.begun.is_set)
        await runs.close()
        await batch

    run(main(), real=True)
    before = book.messages
    gate.contexts[0].progress("hello?")
    gate.opened.set()
    for thread in threading.enumerate():
        if thread.name == "tool gate":
            thread.join(PATIENCE)
    assert book.messages == before


HANGING = """
import asyncio, pathlib, time
from segue.runtime.book import Memory
from tests.runtime.stand import Box, asked, scheduler, tool

book = Memory()
box = Box(pathlib.Path(), tool("hang", lambda arguments, context: time.sleep(3600), blocking=True, timeout=0.05))
print(asyncio.run(scheduler(book, box).run_batch(asked(book, *["hang"] * 40)))[39].outcome)
"""


def test_the_process_leaves_though_threads_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, cwd=ROOT, timeout=100, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("timed-out\n", "", 0)

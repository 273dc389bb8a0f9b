"""Blocking tools: threads that are used again, and that are given up and never waited for."""

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
from segue.runtime import jobs, threads
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
from segue.runtime.events import CallEnded, CallProgress, CallStarted, LateResult
from segue.runtime.function_tools import tool
from segue.runtime.scheduler import Scheduler
from segue.runtime.threads import ThreadPool
from segue.runtime.tool_types import Context, Tool
from segue.runtime.toolbox import Toolbox
from tests.runtime.scheduler_fakes import (
    EventRecorder,
    FakeToolbox,
    add_calls,
    check_renders,
    make_scheduler,
    make_tool,
    recorded_results,
    run,
    states,
)

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


async def wait_until(true: Any) -> None:
    """Waits for what can be seen, not for time."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


class CountingPool(ThreadPool):
    """Counts the threads that it starts."""

    started = 0

    def make_worker(self) -> Any:
        self.started += 1
        return super().make_worker()


def use_pool(monkeypatch: pytest.MonkeyPatch, **limits: int) -> CountingPool:
    pool = CountingPool(**limits)
    monkeypatch.setattr(jobs, "POOL", pool)
    monkeypatch.setattr(threads, "POOL", pool)
    return pool


def quick(arguments: Any, context: Context) -> str:
    return "quick"


def test_blocking_tools_run_side_by_side(conversation_log: ConversationLog, tmp_path: Path) -> None:
    barrier = threading.Barrier(4)

    def meet(arguments: Any, context: Context) -> str:
        return f"met {barrier.wait(PATIENCE) >= 0}"

    calls = add_calls(conversation_log, *["meet"] * 4)
    ended = run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("meet", meet, blocking=True))).run_batch(
            calls
        ),
        real=True,
    )
    assert [one.text for one in ended] == ["met True"] * 4
    check_renders(conversation_log)


@pytest.mark.parametrize("how", ["cancel", "time", "outer"])
def test_thread_ignoring_cancellation_is_abandoned(
    conversation_log: ConversationLog, tmp_path: Path, gate: Gate, how: str
) -> None:
    ear = EventRecorder()

    async def main() -> None:
        box = FakeToolbox(
            tmp_path,
            make_tool("gate", gate.work, blocking=True, timeout=0.05 if how == "time" else None),
            make_tool("quick", quick, blocking=True),
        )
        runs = make_scheduler(conversation_log, box, ear, parallel=1)
        batch = asyncio.create_task(runs.run_batch(add_calls(conversation_log, "gate", "quick")))
        await wait_until(gate.begun.is_set)
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
        conversation_log.render("openai-chat")
        conversation_log.mark_sent()
        # Its place is free though it still runs.
        assert [one.outcome for one in await runs.run_batch(add_calls(conversation_log, "quick"))] == ["complete"]
        before = recorded_results(conversation_log)
        gate.opened.set()
        await wait_until(lambda: ear.of_kind(LateResult))
        assert recorded_results(conversation_log) == before

    run(main(), real=True)
    entry = next(iter(conversation_log.chat.state.history.ledger.values()))
    assert [response.content for response in entry.evidence] == [(Text("done after all"),)]
    assert states(conversation_log)[0] == ("error" if how == "time" else "cancelled")
    assert len(ear.of_kind(CallEnded)) == 3
    check_renders(conversation_log)


def writer(name: str, work: Any, timeout: float, *, blocking: bool = True) -> Tool:
    return make_tool(name, work, blocking=blocking, writes="path", timeout=timeout)


def test_abandoned_writer_keeps_its_file_locked(conversation_log: ConversationLog, tmp_path: Path, gate: Gate) -> None:
    ear = EventRecorder()

    async def main() -> None:
        box = FakeToolbox(tmp_path, writer("gate", gate.work, 0.05), writer("quick", quick, 0.1))
        runs = make_scheduler(conversation_log, box, ear)
        one = ("gate", {"path": "a.txt"})
        same, other = ("quick", {"path": "./a.txt"}), ("quick", {"path": "b.txt"})
        ended = await runs.run_batch(add_calls(conversation_log, one, same, other))
        assert [end.outcome for end in ended] == ["timed-out", "error", "complete"]
        assert "a.txt is still being written by an earlier gate that was given up" in ended[1].text
        ended = await runs.run_batch(add_calls(conversation_log, same, other))
        assert [end.outcome for end in ended] == ["error", "complete"]
        gate.opened.set()
        await wait_until(lambda: ear.of_kind(LateResult))
        ended = await runs.run_batch(add_calls(conversation_log, same))
        assert [end.outcome for end in ended] == ["complete"]

    run(main(), real=True)
    assert len(ear.of_kind(CallStarted)) == 4
    check_renders(conversation_log)


def test_waiter_continues_when_abandoned_writer_ends(tmp_path: Path, gate: Gate) -> None:
    conversation_log, ear = InMemoryLog(), EventRecorder()

    async def main() -> None:
        runs = make_scheduler(
            conversation_log,
            FakeToolbox(tmp_path, writer("gate", gate.work, 0.05), writer("quick", quick, PATIENCE)),
            ear,
        )
        batch = asyncio.create_task(
            runs.run_batch(add_calls(conversation_log, ("gate", {"path": "a"}), ("quick", {"path": "a"})))
        )
        await wait_until(lambda: ear.of_kind(CallEnded))
        assert [event.tool for event in ear.of_kind(CallStarted)] == ["gate"]
        gate.opened.set()
        assert [end.outcome for end in await batch] == ["timed-out", "complete"]

    run(main(), real=True)


def test_a_coroutine_that_a_thread_gives_back_is_run_there(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()

    async def work(arguments: Any, context: Context) -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    box = FakeToolbox(tmp_path, make_tool("work", work, blocking=True))
    assert (
        run(make_scheduler(conversation_log, box).run_batch(add_calls(conversation_log, "work")), real=True)[0].text
        == "tool work"
    )


def test_calls_within_a_thread(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    calls = add_calls(conversation_log, ("outer", {"path": "a"}), ("quick", {"path": "a"}), ("quick", {}))

    async def main() -> Any:
        loop = asyncio.get_running_loop()

        def outer(arguments: Any, context: Context) -> str:
            refused = asyncio.run_coroutine_threadsafe(runs.run_batch(calls[2:]), loop).exception(PATIENCE)
            one = asyncio.run_coroutine_threadsafe(runs.run_one(calls[1]), loop).result(PATIENCE)
            return f"{one.text}; {refused}"

        runs = make_scheduler(
            conversation_log,
            FakeToolbox(tmp_path, writer("outer", outer, PATIENCE), writer("quick", quick, 1)),
            parallel=1,
        )
        return await runs.run_batch(calls[:1])

    [ended] = run(main(), real=True)
    assert ended.text.startswith("quick; a tool can't run a batch on the scheduler that runs it")


def test_nested_call_ends_with_its_abandoned_thread(tmp_path: Path, gate: Gate) -> None:
    conversation_log = InMemoryLog()
    calls = add_calls(conversation_log, "outer", "inner", "quick")
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
        box = FakeToolbox(
            tmp_path, make_tool("outer", outer, blocking=True), make_tool("inner", inner), make_tool("quick", quick)
        )
        runs = make_scheduler(conversation_log, box, ear, parallel=1)
        batch = asyncio.create_task(runs.run_batch(calls[:1]))
        await begun.wait()
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        assert states(conversation_log) == ["cancelled", "cancelled", "pending"]
        await wait_until(lambda: ear.of_kind(LateResult))

    ear = EventRecorder()
    run(main(), real=True)
    assert "was cancelled" in str(refused[0])
    assert len(ear.of_kind(CallEnded)) == 2


def test_end_event_is_emitted_outside_the_call(tmp_path: Path) -> None:
    """A listener that goes on from an event may have batches run."""
    conversation_log = InMemoryLog()
    calls = add_calls(conversation_log, "task", "thread", "quick", "quick")
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

        tools = [
            make_tool("task", task),
            make_tool("thread", lambda a, c: "done", blocking=True),
            make_tool("quick", quick),
        ]
        runs = Scheduler(conversation_log, FakeToolbox(tmp_path, *tools), emit=emit)
        await runs.run_batch(calls[:2])
        for following in more:
            assert (await following)[0].outcome == "complete"

    run(main(), real=True)
    assert states(conversation_log) == ["complete"] * 4


def test_progress_of_a_busy_thread_is_throttled(tmp_path: Path) -> None:
    conversation_log, ear = InMemoryLog(), EventRecorder()

    def talks(arguments: Any, context: Context) -> str:
        for number in range(20_000):
            context.progress(f"line {number}")
        return "done"

    began = time.monotonic()
    run(
        make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("talks", talks, blocking=True)), ear
        ).run_batch(add_calls(conversation_log, "talks")),
        real=True,
    )
    assert 1 <= len(ear.of_kind(CallProgress)) <= 2 + (time.monotonic() - began) / 0.1


def test_thread_ending_after_the_loop_is_ignored(tmp_path: Path, gate: Gate) -> None:
    conversation_log = InMemoryLog()

    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("gate", gate.work, blocking=True)))
        batch = asyncio.create_task(runs.run_batch(add_calls(conversation_log, "gate")))
        await wait_until(gate.begun.is_set)
        await runs.close()
        await batch

    run(main(), real=True)
    before = conversation_log.messages
    gate.contexts[0].progress("hello?")
    gate.opened.set()
    deadline = time.monotonic() + PATIENCE
    while any(thread.name == "tool gate" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert conversation_log.messages == before


def test_calls_share_their_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many threads as calls at once; function tools, built-in tools and their approvals have the same ones."""
    pool = use_pool(monkeypatch, max_shared=4)
    seen: list[threading.Thread] = []

    def note(arguments: Any, context: Context) -> str:
        seen.append(threading.current_thread())
        return "done"

    @tool(needs_approval=False)
    def function() -> str:
        """Note the thread."""
        return note({}, Context(tmp_path))

    async def main(log: ConversationLog, box: Any, name: str, *, parallel: int) -> None:
        runs = make_scheduler(log, box, parallel=parallel)
        for _ in range(10):
            calls = add_calls(log, *[(name, {})] * 10)
            assert {one.outcome for one in await runs.run_batch(calls)} == {"complete"}

    run(
        main(InMemoryLog(), FakeToolbox(tmp_path, make_tool("note", note, blocking=True)), "note", parallel=1),
        real=True,
    )
    assert (len(seen), len(set(seen))) == (100, 1)
    run(main(InMemoryLog(), Toolbox([function], tmp_path), "function", parallel=3), real=True)
    assert len(seen) == 200
    assert pool.started <= 3 + 4


def test_hung_tools_do_not_hold_up_others(tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that hangs after its timeout keeps its thread, not its place; their number is limited."""
    use_pool(monkeypatch, max_abandoned=3)
    log = InMemoryLog()
    tools = [make_tool("gate", gate.work, blocking=True, timeout=0.01), make_tool("quick", quick, blocking=True)]

    async def main() -> None:
        runs = make_scheduler(log, FakeToolbox(tmp_path, *tools), ear, parallel=1)
        for _ in range(2):
            assert [end.outcome for end in await runs.run_batch(add_calls(log, "gate"))] == ["timed-out"]
            assert [end.outcome for end in await runs.run_batch(add_calls(log, "quick"))] == ["complete"]
        assert [end.outcome for end in await runs.run_batch(add_calls(log, "gate"))] == ["timed-out"]
        [refused] = await runs.run_batch(add_calls(log, "quick"))
        assert (refused.outcome, refused.text[:46]) == ("error", "3 earlier calls that were given up are still r")
        gate.opened.set()
        await wait_until(lambda: len(ear.of_kind(LateResult)) == 3)
        assert [end.outcome for end in await runs.run_batch(add_calls(log, "quick"))] == ["complete"]

    ear = EventRecorder()
    run(main(), real=True)
    assert gate.ran == 3


def test_shared_threads_are_waited_for_and_given_up(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    pool = use_pool(monkeypatch, max_shared=1)

    async def main() -> None:
        hung = asyncio.create_task(threads.run_in_thread(gate.work, {}, Context(Path())))
        await wait_until(gate.begun.is_set)
        others = [asyncio.create_task(threads.run_in_thread(str, number)) for number in range(3)]
        await asyncio.sleep(0)
        assert pool.started == 1
        others[1].cancel()
        hung.cancel()
        first, *rest = await asyncio.gather(hung, *others, return_exceptions=True)
        assert isinstance(first, asyncio.CancelledError)
        assert (rest[0], type(rest[1]), rest[2]) == ("0", asyncio.CancelledError, "2")
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.run_in_thread(next, iter(()))
        assert pool.started == 2

    run(main(), real=True)


def test_a_forked_process_begins_without_threads() -> None:
    pool = ThreadPool()
    for _ in range(2):
        ended = threading.Event()
        pool.start("work", int, lambda value, error, ended=ended: ended.set())
        assert ended.wait(PATIENCE)
        # The thread of the first call is idle, and not in the new process.
        pool.forget_threads()


HANGING = """
import asyncio, pathlib, time
from segue.runtime.conversation_log import InMemoryLog
from tests.runtime.scheduler_fakes import FakeToolbox, add_calls, make_scheduler, make_tool

log = InMemoryLog()
hang = make_tool("hang", lambda arguments, context: time.sleep(3600), blocking=True, timeout=0.05)
box = FakeToolbox(pathlib.Path(), hang)
print(asyncio.run(make_scheduler(log, box).run_batch(add_calls(log, *["hang"] * 40)))[39].outcome)
"""


def test_the_process_leaves_though_threads_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, cwd=ROOT, timeout=100, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("timed-out\n", "", 0)

"""Batches that are killed at every point: before and after each append, each event, each beginning and end of a tool.

    python -m tests.runtime.crash_batch FOLDER SCENE

Each tool writes down that it runs. Whoever comes next finds: nothing ran twice; what was kept of an outcome is what
became of the call; the rest was interrupted, and never starts again; every provider takes the history. One line of
JSON says how many points there were.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from segue.canonical.blocks import ToolCall, responses_of, state_of
from segue.errors import InputError
from segue.runtime.events import CallEnded
from segue.runtime.scheduler import Limits, Scheduler
from segue.runtime.tool_types import Context, Tool, ToolError
from segue.store.conversation import StoredConversation
from segue.store.events import CallCancelled, CallCompleted, Event, ResultRecorded
from segue.store.sqlite import SqliteStore
from tests.runtime.scheduler_fakes import (
    EventRecorder,
    FakeToolbox,
    VirtualTimeLoop,
    add_calls,
    check_renders,
    make_scheduler,
    make_tool,
    run,
    states,
)

HOUR = 3_600_000_000
TIMEOUT = 60.0
NAMES = ("first", "second", "third", "fourth", "fifth")


class CrashPoint:
    """Counts crash points and kills the process at one of them."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._count = 0
        self._lock = threading.Lock()

    def pass_point(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == self._at:
                if self._at % 2:
                    os._exit(9)
                os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait()


class CrashingStore(SqliteStore):
    crash_point: CrashPoint | None = None

    def append(self, conversation: str, expected_seq: int, events: Iterable[Event], **more: Any) -> int:
        if self.crash_point is not None:
            self.crash_point.pass_point()
        done = super().append(conversation, expected_seq, events, **more)
        if self.crash_point is not None:
            self.crash_point.pass_point()
        return done


class BatchProcess:
    """A process that runs a batch."""

    def __init__(self, folder: Path, at: int) -> None:
        self.folder = folder
        self.crash_point = CrashPoint(at)
        self.over = {name: threading.Event() for name in NAMES}
        # Its time stands still until a tool advances it: no tool is timed out before it runs.
        self.loop = VirtualTimeLoop(by_itself=False)

    def count_runs(self, name: str, work: Callable[[Context], Any]) -> Callable[..., Any]:
        """A blocking tool that records its run, does its work and sets its event."""

        def body(arguments: Any, context: Context) -> Any:
            self.crash_point.pass_point()
            with (self.folder / "runs").open("a") as file:
                file.write(f"{name}\n")
            self.crash_point.pass_point()
            try:
                return work(context)
            finally:
                self.crash_point.pass_point()
                self.over[name].set()

        return body

    def after(self, name: str, value: Any) -> Callable[[Context], Any]:
        """Work that waits for another tool to end."""

        def work(context: Context) -> Any:
            assert self.over[name].wait(100)
            if isinstance(value, Exception):
                raise value
            return value

        return work

    def tools(self, scene: str) -> list[Tool]:
        """`backwards`: each ends before the one in front of it. `stubborn`: one is timed out and comes late."""

        def build_tool(name: str, work: Any, **more: Any) -> Tool:
            return make_tool(name, self.count_runs(name, work), blocking=True, **more)

        def stubborn(context: Context) -> str:
            self.loop.call_soon_threadsafe(self.loop.advance, TIMEOUT)
            assert context.cancelled.wait(100)
            return "late"

        def waits(context: Context) -> str:
            assert context.cancelled.wait(100)
            raise ToolError("told to stop")

        third: Any = {"backwards": self.after("fourth", {"n": 3}), "stubborn": stubborn, "cancelled": waits}[scene]
        return [
            build_tool("first", self.after("second", "one")),
            build_tool("second", self.after("third", ValueError("two")), writes=["same.txt"]),
            build_tool("third", third, timeout=TIMEOUT),
            build_tool("fourth", lambda context: "four"),
            # Waits for the second, which writes the same.
            build_tool("fifth", lambda context: "five", writes=["same.txt"]),
        ]

    def run_batch_process(self, scene: str) -> None:
        store = CrashingStore(self.folder / "history.db", clock=lambda: 10**15)
        kept = StoredConversation.create(store, owner="mortal")
        calls = add_calls(kept, *NAMES)
        store.crash_point = self.crash_point

        def emit(event: Any) -> None:
            if isinstance(event, CallEnded):
                with (self.folder / "heard").open("a") as file:
                    file.write(f"{event.id}\n")
            self.crash_point.pass_point()

        async def main() -> None:
            runs = Scheduler(kept, FakeToolbox(self.folder, *self.tools(scene)), emit=emit, limits=Limits(parallel=8))
            batch = asyncio.create_task(runs.run_batch(calls))
            if scene == "cancelled":
                assert await asyncio.to_thread(self.over["fourth"].wait, 100)
                runs.cancel()
            ended = await batch
            assert len(ended) == len(NAMES)
            await runs.close()

        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(main())


def is_completed(folder: Path, scene: str, at: int) -> bool:
    """Whether the process completed before it reached this crash point."""
    child = os.fork()
    if not child:
        code = 1
        try:
            BatchProcess(folder, at).run_batch_process(scene)
            code = 0
        except BaseException:  # noqa: BLE001 - a child has to end here
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 9, -signal.SIGKILL), f"{scene}, point {at}: ended with {code}"
    return code == 0


def outcomes(store: SqliteStore, conversation: str) -> dict[str, str]:
    """The recorded outcome of each call."""
    kept: dict[str, str] = {}
    for record in store.events(conversation):
        if isinstance(record.event, ResultRecorded | CallCompleted | CallCancelled):
            for response in responses_of(record.event.message):
                kept.setdefault(response.call_id, state_of(response))
    return kept


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def check_after_crash(folder: Path, *, whole: bool) -> None:
    """Comes next, an hour later. Of a life that came to its end the `whole` is there."""
    ran, heard = lines(folder / "runs"), lines(folder / "heard")
    assert len(set(heard)) == len(heard), "an outcome was heard of twice"
    assert len(set(ran)) == len(ran), f"something ran twice: {ran}"
    with SqliteStore(folder / "history.db", clock=lambda: 10**15 + HOUR) as store:
        [summary] = store.list()
        kept = StoredConversation(store, summary.id)
        persisted = outcomes(store, summary.id)
        assert set(heard) <= persisted.keys(), "heard of before it was kept"
        assert not whole or len(persisted) == len(heard) == len(NAMES)
        calls = [entry.call for entry in kept.chat.state.history.ledger.values()]
        check_not_restarted(kept, calls, folder)
        kept.add_user("go on")
        for call in calls:
            state = kept.chat.state.history.ledger[call.id].state
            wanted = persisted.get(call.id, "interrupted")
            # What came late, and nobody had been told otherwise, took the place of the end that was made for it.
            assert state == wanted or (wanted in ("error", "cancelled") and state in ("complete", "error")), (
                f"{call.name} is {state}, not {wanted}"
            )
            assert wanted == "interrupted" or state != "interrupted"
            assert wanted == "interrupted" or call.name in ran or wanted == "cancelled"
        result_ids = [response.call_id for message in kept.messages for response in responses_of(message)]
        assert result_ids == [call.id for call in calls], "not in call order"
        check_renders(kept)
        again = StoredConversation(store, summary.id)
        assert again.messages == kept.messages
        assert states(again) == states(kept)
        check_not_restarted(kept, calls, folder)
        [ended] = run(
            make_scheduler(kept, FakeToolbox(folder, make_tool("next", lambda arguments, context: "next"))).run_batch(
                add_calls(kept, "next")
            )
        )
        assert ended.outcome == "complete"


def check_not_restarted(kept: StoredConversation, calls: list[ToolCall], folder: Path) -> None:
    """None of these calls can be started again."""
    ear = EventRecorder()
    for call in calls:
        try:
            run(make_scheduler(kept, FakeToolbox(folder), ear).run_one(call))
        except InputError:
            continue
        raise AssertionError(f"{call.name} was started again")
    assert not ear


def main() -> None:
    place, scene = Path(sys.argv[1]), sys.argv[2]
    for at in range(1, 10_000):
        folder = place / str(at)
        folder.mkdir()
        is_over = is_completed(folder, scene, at)
        try:
            check_after_crash(folder, whole=is_over)
        except AssertionError as error:
            raise AssertionError(f"{scene}, point {at}: {error}") from error
        if is_over:
            print(json.dumps({"points": at - 1}))
            return


if __name__ == "__main__":
    main()

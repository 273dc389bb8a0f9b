"""Any order of things: batches, single calls, calls within calls, cancelling, time-outs, questions, a store that fails,
results that come late, and processes that die. What has to hold holds after each step."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from segue.canonical.blocks import Text, ToolCall, responses_of
from segue.canonical.request import Reply
from segue.errors import InputError, StoreError
from segue.runtime import jobs
from segue.runtime.events import ApprovalRequested, CallEnded, CallProgress, CallQueued, CallStarted, LateResult
from segue.runtime.scheduler import Scheduler
from segue.runtime.threads import ThreadPool
from segue.runtime.tool_types import Context, ToolError
from segue.store.conversation import StoredConversation
from segue.store.events import Event
from segue.store.sqlite import SqliteStore
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.runtime.scheduler_fakes import (
    EventRecorder,
    FakeToolbox,
    VirtualTimeLoop,
    add_calls,
    check_renders,
    make_scheduler,
    make_tool,
)

PARALLEL = 2
BUDGET = 600
PATIENCE = 100.0
STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

specs = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["task", "task", "task", "thread", "asks", "strict", "unknown"]),
        "stubborn": st.booleans(),
        "path": st.sampled_from([[], ["a"], ["b"], ["a", "b"], ["b", "a"]]),
    }
)


class FailingStore(SqliteStore):
    """A store that stops taking anything, for so many appends or for ever."""

    failures = 0
    is_dead = False
    failed: Callable[[], None] = staticmethod(lambda: None)

    def append(self, conversation: str, expected_seq: int, events: Iterable[Event], **more: Any) -> int:
        if self.is_dead:
            raise StoreError("this process is dead", cause="lost")
        if self.failures:
            self.failures -= 1
            self.failed()
            raise StoreError("no room", cause="full")
        return super().append(conversation, expected_seq, events, **more)


class Body:
    """A running tool, until the test ends it."""

    def __init__(self, call_id: str, loop: VirtualTimeLoop, context: Context) -> None:
        self.call_id = call_id
        self.context = context
        self.thread: threading.Thread | None = None
        self.opened = threading.Event()
        self.how: Any = None
        """What comes of it, or what is done before it ends."""
        self.gate: asyncio.Future[Any] | None = None
        self.loop = loop

    def open(self, how: Any) -> None:
        self.how = how
        self.opened.set()
        if self.gate is not None and not self.gate.done():
            self.gate.set_result(None)


class Agent(RuleBasedStateMachine):
    @staticmethod
    def place() -> Path:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.path = self.place()
        self.now = 10**15
        self.ran: Counter[str] = Counter()
        self.inside: dict[str, list[str]] = {}
        self.parents: dict[str, str] = {}
        self.lives: list[EventRecorder] = []
        self.disorderly: set[str] = set()
        self.lost: set[str] = set()
        self.store = self.opened()
        self.kept = StoredConversation.create(self.store)
        self.reader_store = SqliteStore(self.path, clock=lambda: self.now)
        self.live()

    def opened(self) -> FailingStore:
        return FailingStore(self.path, clock=lambda: self.now)

    def live(self) -> None:
        self.loop = VirtualTimeLoop(by_itself=False)
        self.raised: list[Any] = []
        self.loop.set_exception_handler(lambda _, context: self.raised.append(context))
        self.ear = EventRecorder()
        self.lives.append(self.ear)
        self.bodies: dict[str, Body] = {}
        self.questions: dict[str, asyncio.Future[Any]] = {}
        self.batches: list[tuple[list[ToolCall], asyncio.Task[Any], bool]] = []
        self.waiting: list[ToolCall] = []
        self.errors: list[str] = []
        self.store.failed = self.all_may_be_lost

        async def make() -> Scheduler:
            box = FakeToolbox(
                Path("/nowhere"),
                make_tool("task", self.task, writes="path", timeout=20),
                make_tool("thread", self.blocks, blocking=True, writes="path", timeout=30),
                make_tool("asks", self.task, writes="path", needs_approval=True),
                make_tool("strict", self.task, parameters=STRICT),
            )
            return make_scheduler(
                self.kept, box, self.ear, parallel=PARALLEL, output=BUDGET, timeout=40, approve=self.approve
            )

        self.runs = self.loop.run_until_complete(make())

    # ----------------------------------------------------------------------------------------------------- the tools

    def enters(self, arguments: Any, context: Context) -> Body:
        call_id = context.call_id
        self.ran[call_id] += 1
        for name in arguments.get("path", ()):
            others = [other for other in self.inside.setdefault(name, []) if other not in self.callers(call_id)]
            if others:
                self.errors.append(f"{call_id} writes {name} beside {others}")
            self.inside[name].append(call_id)
        body = Body(call_id, self.loop, context)
        self.bodies[call_id] = body
        return body

    def callers(self, call_id: str) -> set[str]:
        found: set[str] = set()
        while call_id in self.parents:
            call_id = self.parents[call_id]
            found.add(call_id)
        return found

    def leaves(self, arguments: Any, body: Body) -> None:
        for name in arguments.get("path", ()):
            self.inside[name].remove(body.call_id)

    async def task(self, arguments: Any, context: Context) -> str:
        body = self.enters(arguments, context)
        try:
            while not body.opened.is_set():
                body.gate = asyncio.get_running_loop().create_future()
                try:
                    await body.gate
                except asyncio.CancelledError:
                    if not arguments.get("stubborn") or self.store.is_dead:
                        raise
            if inspect.iscoroutinefunction(body.how):
                return await body.how(body)
            return self.ends(body)
        finally:
            self.leaves(arguments, body)
            self.bodies.pop(body.call_id, None)

    def blocks(self, arguments: Any, context: Context) -> str:
        body = self.enters(arguments, context)
        body.thread = threading.current_thread()
        context.progress(f"{context.call_id} is here")
        try:
            if not body.opened.wait(PATIENCE):
                self.errors.append("nobody opened the gate")
            return self.ends(body)
        finally:
            self.leaves(arguments, body)

    def ends(self, body: Body) -> str:
        if isinstance(body.how, Exception):
            raise body.how
        return str(body.how)

    async def approve(self, question: Any) -> Any:
        answer = self.questions[f"{question.tool} {len(self.questions)}"] = asyncio.get_running_loop().create_future()
        return await answer

    # ---------------------------------------------------------------------------------------------------- the machine

    def settle(self) -> None:
        """Everything happens that can happen without time."""
        for _ in range(500):
            self.loop.run_until_complete(asyncio.sleep(0))
            begun = {event.id for event in self.ear.of_kind(CallStarted) if event.tool == "thread"}
            for call_id in begun:
                self.wait(lambda call_id=call_id: self.ran[call_id])
            if not self.loop._ready:  # pyright: ignore[reportAttributeAccessIssue]
                return
        raise AssertionError("the loop does not come to rest")

    def wait(self, true: Callable[[], Any]) -> None:
        pause = threading.Event()
        deadline = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < deadline, "a thread did not come"
            pause.wait(0.001)

    def all_may_be_lost(self) -> None:
        """The store failed: calls that have no outcome yet may have none."""
        self.lost |= {call.id for calls, _, _ in self.flying() for call in calls}

    def flying(self) -> list[tuple[list[ToolCall], asyncio.Task[Any], bool]]:
        return [batch for batch in self.batches if not batch[1].done()]

    def turn_of(self, call: ToolCall) -> str:
        return self.kept.chat.state.history.ledger[call.id].turn_key

    @precondition(lambda self: not self.flying() and not self.waiting)
    @rule(wanted=st.lists(specs, min_size=1, max_size=5), wire=st.sampled_from(list(WIRES)))
    def the_model_calls(self, wanted: list[dict[str, Any]], wire: str) -> None:
        def ask() -> list[ToolCall]:
            self.kept.render(wire)
            self.kept.mark_sent()
            return add_calls(
                self.kept, *((spec["tool"], {"path": spec["path"], "stubborn": spec["stubborn"]}) for spec in wanted)
            )

        self.store.failures = 0
        self.waiting = ask()
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(count=st.integers(1, 5))
    def a_batch(self, count: int) -> None:
        calls, self.waiting = self.waiting[:count], self.waiting[count:]
        self.batches.append((calls, self.loop.create_task(self.runs.run_batch(calls)), False))
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule()
    def a_single_call(self) -> None:
        call = self.waiting.pop()
        self.disorderly.add(self.turn_of(call))
        self.batches.append(([call], self.loop.create_task(self.runs.run_one(call)), True))
        self.settle()

    @precondition(lambda self: self.bodies)
    @rule(
        which=st.integers(0, 9),
        how=st.sampled_from(["fine", "x" * 2000, "half \ud800", ToolError("no"), ValueError("bad"), SystemExit(1)]),
    )
    def a_tool_ends(self, which: int, how: Any) -> None:
        body = list(self.bodies.values())[which % len(self.bodies)]
        if body.thread is not None and isinstance(how, SystemExit):
            how = KeyboardInterrupt()
        self.finish(body, how)

    def finish(self, body: Body, how: Any) -> None:
        self.bodies.pop(body.call_id)
        body.open(how)
        if body.thread is not None:
            body.thread.join(PATIENCE)
        self.settle()

    @precondition(lambda self: self.waiting and any(body.thread is None for body in self.bodies.values()))
    @rule(which=st.integers(0, 9), batch=st.booleans())
    def a_tool_has_another_call_run(self, which: int, batch: bool) -> None:
        bodies = [body for body in self.bodies.values() if body.thread is None]
        body = bodies[which % len(bodies)]
        call = self.waiting.pop()
        self.disorderly.add(self.turn_of(call))
        self.parents[call.id] = body.call_id

        async def nests(body: Body) -> str:
            if batch:
                with pytest.raises(InputError, match="run_one"):
                    await self.runs.run_batch([call])
                self.parents.pop(call.id)
                self.waiting.append(call)
                return "refused"
            if body.context.cancelled.is_set():
                with pytest.raises(InputError, match="was cancelled"):
                    await self.runs.run_one(call)
                self.waiting.append(call)
                return "refused"
            return (await self.runs.run_one(call)).text

        self.finish(body, nests)

    @precondition(lambda self: any(not answer.done() for answer in self.questions.values()))
    @rule(how=st.sampled_from(["once", "always", "no", KeyError("nobody")]))
    def somebody_answers(self, how: Any) -> None:
        answer = next(answer for answer in self.questions.values() if not answer.done())
        answer.set_exception(how) if isinstance(how, Exception) else answer.set_result(how)
        self.settle()

    @rule(seconds=st.sampled_from([0.2, 5, 15, 25, 45]))
    def time_passes(self, seconds: float) -> None:
        self.loop.advance(seconds)
        self.settle()

    @rule()
    def all_is_cancelled(self) -> None:
        calls = {call.id for calls, _, _ in self.flying() for call in calls}
        self.disorderly |= {self.kept.chat.state.history.ledger[call_id].turn_key for call_id in calls}
        self.runs.cancel()
        # It is written when the method returns.
        assert not {call.id for call in self.fresh().pending} & calls - self.lost
        self.settle()
        assert not self.flying()

    @precondition(lambda self: self.flying())
    @rule(which=st.integers(0, 5))
    def one_who_waits_is_cancelled(self, which: int) -> None:
        calls, task, _ = self.flying()[which % len(self.flying())]
        self.disorderly |= {self.turn_of(call) for call in calls}
        task.cancel()
        self.settle()
        assert task.done()

    @precondition(lambda self: self.flying())
    @rule(times=st.integers(1, 2))
    def the_store_will_fail(self, times: int) -> None:
        self.store.failures = times

    @rule(orderly=st.booleans(), wire=st.sampled_from(list(WIRES)))
    def the_process_dies_and_another_comes(self, orderly: bool, wire: str) -> None:
        self.store.failures = 0
        if orderly and not self.flying():
            self.kept.close()
        kept_before = {entry.call.id: entry.state for entry in self.fresh().chat.state.history.ledger.values()}
        known_before = set(self.fresh().state.recorded_results)
        self.die()
        self.now += 3_600_000_000
        self.store = self.opened()
        self.kept = StoredConversation(self.store, self.kept.id)
        self.live()
        left = self.kept.pending
        for call in left:
            with pytest.raises(InputError):
                self.loop.run_until_complete(self.runs.run_batch([call]))
        self.disorderly |= {self.turn_of(call) for call in left}
        self.kept.add_user("go on")
        for call in left:
            state = self.kept.chat.state.history.ledger[call.id].state
            assert (state == "interrupted") == (call.id not in known_before)
        for call_id, state in kept_before.items():
            assert state == "pending" or self.kept.chat.state.history.ledger[call_id].state == state
        self.kept.render(wire)
        self.kept.mark_sent()
        self.kept.add_reply(Reply((Text("so it is"),)))

    def die(self) -> None:
        """Nothing of this process is written any more; its threads and tasks are let go."""
        self.store.is_dead = True
        for body in list(self.bodies.values()):
            body.open("too late")
            if body.thread is not None:
                body.thread.join(PATIENCE)
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        for _ in range(20):
            self.loop.run_until_complete(asyncio.sleep(0))
        for _, task, _ in self.batches:
            if task.done() and not task.cancelled():
                task.exception()
        self.loop.close()
        self.store.close()
        self.inside.clear()

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        try:
            self.store.failures = 0
            for _ in range(50):
                if not self.bodies:
                    break
                self.finish(next(iter(self.bodies.values())), "at last")
            self.runs.cancel()
            self.settle()
            self.holds()
            self.kept.add_user("the end")
            check_renders(self.kept)
            assert self.fresh().messages == self.kept.messages
        finally:
            self.die()
            self.reader_store.close()

    # ----------------------------------------------------------------------------------------------------- invariants

    def fresh(self) -> StoredConversation:
        return StoredConversation(self.reader_store, self.kept.id)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "loop"):
            return
        assert self.errors == []
        assert [context for context in self.raised if "never retrieved" not in context["message"]] == []
        assert all(count == 1 for count in self.ran.values()), "something ran twice"
        reader = self.fresh()
        self.one_outcome_each(reader)
        self.events_in_order()
        self.results_in_call_order(reader)
        running = {event.id for event in self.ear.of_kind(CallStarted)} - {
            event.id for event in self.ear.of_kind(CallEnded)
        }
        alone = {call.id for calls, _, single in self.batches if single for call in calls} | self.parents.keys()
        assert len(running - alone - self.lost) <= PARALLEL
        for calls, task, _ in self.batches:
            if task.done():
                waiting = {call.id for call in reader.pending} - self.lost
                assert not waiting & {call.id for call in calls}, "a batch is over and a call waits"
                if not task.cancelled() and not _failed(task):
                    ended = task.result()
                    ended = [ended] if isinstance(ended, CallEnded) else ended
                    assert [one.id for one in ended] == [call.id for call in calls]

    def one_outcome_each(self, reader: StoredConversation) -> None:
        """Each emitted outcome was stored before, once and unchanged."""
        heard = Counter(event.id for ear in self.lives for event in ear.of_kind(CallEnded))
        assert all(count == 1 for count in heard.values())
        ledger, known = reader.chat.state.history.ledger, reader.state.recorded_results
        for ear in self.lives:
            late = {event.id for event in ear.of_kind(LateResult)}
            for event in ear.of_kind(CallEnded):
                message = known.get(event.id)
                result = responses_of(message)[0] if message is not None else ledger[event.id].completion
                assert result is not None
                assert result.outcome != "interrupted"
                assert event.outcome != "complete" or len(event.text) <= BUDGET
                if event.id not in late:
                    assert (result.outcome == "cancelled") == (event.outcome == "cancelled")
                    assert result.content == (Text(event.text),)
                    assert result.error == (event.outcome != "complete")

    def events_in_order(self) -> None:
        order = {CallQueued: 0, ApprovalRequested: 1, CallStarted: 2, CallProgress: 3, CallEnded: 4, LateResult: 5}
        for ear in self.lives:
            last: dict[str, int] = {}
            for event in ear:
                rank = order[type(event)]
                before = last.get(event.id, -1)  # pyright: ignore[reportAttributeAccessIssue]
                assert rank > before or rank == before == 3, f"{type(event).__name__} after {before}"
                last[event.id] = rank  # pyright: ignore[reportAttributeAccessIssue]
            for call_id in {event.id for event in ear.of_kind(CallStarted)}:
                assert self.ran[call_id] == 1 or _was_ended(ear, call_id)

    def results_in_call_order(self, reader: StoredConversation) -> None:
        turns: dict[str, list[str]] = {}
        for message in reader.messages:
            for response in responses_of(message):
                turns.setdefault(message.turn_key or "", []).append(response.call_id)
        for turn, completed in turns.items():
            assert len(set(completed)) == len(completed)
            called = [entry.call.id for entry in reader.chat.state.history.ledger.values() if entry.turn_key == turn]
            if turn not in self.disorderly and self.lost.isdisjoint(called):
                assert completed == called[: len(completed)], "not in call order"


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and isinstance(task.exception(), StoreError)


def _was_ended(ear: EventRecorder, call_id: str) -> bool:
    return any(event.id == call_id for event in ear.of_kind(CallEnded))


def test_state_machine(quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Threads end with their work, so that a test can wait for it.
    monkeypatch.setattr(jobs, "POOL", ThreadPool(max_idle=0))
    count = iter(range(10**9))

    class Here(Agent):
        @staticmethod
        def place() -> Path:
            return quick_folder / f"{next(count)}.db"

    some = settings(examples(0.6), stateful_step_count=40)
    run_state_machine_as_test(
        Here, settings=settings(some, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    )

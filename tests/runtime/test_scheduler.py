"""The scheduler: outcomes and order of calls, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.blocks import Code, Media, Origin, Text, Thinking, ToolCall, responses_of
from segue.canonical.placeholders import CUT_PATTERN
from segue.errors import InputError, StoreError
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
from segue.runtime.events import ApprovalRequested, CallEnded, CallProgress, CallQueued, CallStarted, LateResult
from segue.runtime.scheduler import Scheduler
from segue.runtime.tool_types import Context, Result, ToolError
from segue.store.conversation import StoredConversation
from tests.runtime.scheduler_fakes import (
    EventRecorder,
    FakeToolbox,
    add_calls,
    check_renders,
    collect_loop_errors,
    make_scheduler,
    make_tool,
    recorded_results,
    run,
    states,
)


class Log(list[str]):
    """Tools that sleep for a given time and record start and end."""

    async def work(self, arguments: Any, context: Context) -> str:
        name = arguments.get("name", context.call_id)
        self.append(f"{name} begins")
        await asyncio.sleep(arguments.get("seconds", 1))
        self.append(f"{name} ends")
        return f"{name} did it"


def works(*calls: tuple[str, float]) -> list[tuple[str, Any]]:
    return [("work", {"name": name, "seconds": seconds}) for name, seconds in calls]


# -------------------------------------------------------------------------------------------------------- side by side


def test_calls_run_in_parallel_and_results_follow_call_order(conversation_log: ConversationLog, tmp_path: Path) -> None:
    ear = EventRecorder()
    calls = add_calls(conversation_log, *works(("slow", 30), ("quick", 1), ("middle", 2)))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        runs = make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("work", Log().work)), ear, clock=loop.time
        )
        ended = await runs.run_batch(calls)
        assert [one.id for one in ended] == [call.id for call in calls]
        assert [one.outcome for one in ended] == ["complete"] * 3
        assert [one.seconds for one in ended] == [30, 1, 2]
        assert loop.time() == 1030

    run(main())
    assert [words for _, words in recorded_results(conversation_log)] == [
        "slow did it",
        "quick did it",
        "middle did it",
    ]
    assert [event.text for event in ear.of_kind(CallEnded)] == ["quick did it", "middle did it", "slow did it"]
    assert not conversation_log.pending
    check_renders(conversation_log)


def test_no_more_than_the_limit_run_at_once_and_the_first_come_first(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()
    calls = add_calls(conversation_log, *works(*((str(n), 10) for n in range(5))))

    async def main() -> float:
        await make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("work", log.work)), parallel=2
        ).run_batch(calls)
        return asyncio.get_running_loop().time()

    assert run(main()) == 1030
    assert log[:6] == ["0 begins", "1 begins", "0 ends", "1 ends", "2 begins", "3 begins"]


def test_events_of_each_call_are_in_order(tmp_path: Path) -> None:
    conversation_log, ear = InMemoryLog(), EventRecorder()
    shown = make_tool("work", Log().work, needs_approval=True, shown=lambda arguments: f"on {arguments['name']}")

    async def yes(question: Any) -> Any:
        return "once"

    async def main() -> None:
        await make_scheduler(conversation_log, FakeToolbox(tmp_path, shown), ear, approve=yes).run_batch(
            add_calls(conversation_log, *works(("x", 1)))
        )

    run(main())
    assert [type(event) for event in ear] == [CallQueued, ApprovalRequested, CallStarted, CallEnded]
    assert ear.of_kind(CallQueued)[0].summary == "on x"
    assert ear.of_kind(ApprovalRequested)[0].title == "may work?"


def test_empty_batch_does_nothing(tmp_path: Path) -> None:
    assert run(make_scheduler(InMemoryLog(), FakeToolbox(tmp_path)).run_batch([])) == []


# --------------------------------------------------------------------------------------------------- what does not run

STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("dig", {}), "unknown tool 'dig'; known tools: count"),
        (ToolCall("count", {}), "'n' is a required property"),
        (ToolCall("count", {"n": "one"}), "is not of type 'integer'"),
        (ToolCall("count", [1]), "must be a JSON object, not a list"),
        (ToolCall("count", "1", kind="custom"), "must be a JSON object, not text"),
        (ToolCall("count", None), "not null"),
        (
            ToolCall("count", None, arguments_text='{"n": 1'),
            "not valid JSON, and the tool did not run: not JSON: it ends too",
        ),
        (ToolCall("count", None, arguments_text='{"n": ', broken=True), "cut off before it was complete"),
    ],
)
def test_invalid_call_is_an_error_result(
    conversation_log: ConversationLog, tmp_path: Path, call: Any, words: str
) -> None:
    ran: list[Any] = []
    count = make_tool("count", lambda arguments, context: ran.append(arguments) or "counted", parameters=STRICT)
    calls = add_calls(conversation_log, call, ("count", {"n": 3}))
    bad, good = run(make_scheduler(conversation_log, FakeToolbox(tmp_path, count)).run_batch(calls))
    assert (bad.outcome, good.outcome) == ("error", "complete")
    assert words in bad.text
    assert "\n" not in bad.text
    assert ran == [{"n": 3}]
    assert states(conversation_log) == ["error", "complete"]
    assert [text for _, text in recorded_results(conversation_log)] == [bad.text, "counted"]
    check_renders(conversation_log)


def test_empty_argument_text_means_no_arguments(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    calls = add_calls(conversation_log, ToolCall("go", {}, arguments_text=""))
    [ended] = run(
        make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("go", lambda arguments, context: str(arguments)))
        ).run_batch(calls)
    )
    assert (ended.outcome, ended.text) == ("complete", "{}")


def test_tool_mutation_does_not_change_recorded_arguments(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()

    def spoil(arguments: Any, context: Context) -> str:
        arguments["deep"].append("spoilt")
        return "done"

    calls = add_calls(conversation_log, ("spoil", {"deep": [1]}))
    run(make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("spoil", spoil))).run_batch(calls))
    assert conversation_log.messages[1].blocks[0].arguments == {"deep": [1]}  # pyright: ignore[reportAttributeAccessIssue]


def test_a_toolbox_that_fails_fails_the_call_alone(tmp_path: Path) -> None:
    class Bad(FakeToolbox):
        def validate_arguments(self, tool: Any, arguments: Any) -> str | None:
            if arguments.get("name") == "check":
                raise ValueError("no\nsuch schema")
            return super().validate_arguments(tool, arguments)

        async def check_permission(self, tool: Any, arguments: Any, approve: Any) -> str | None:
            if arguments.get("name") == "may":
                raise KeyError("rule")
            return await super().check_permission(tool, arguments, approve)

    conversation_log = InMemoryLog()
    calls = add_calls(conversation_log, *works(("check", 1), ("may", 1), ("fine", 1)), ("stuck", {"path": "\0"}))
    box = Bad(tmp_path, make_tool("work", Log().work), make_tool("stuck", Log().work, writes="path"))
    ended = run(make_scheduler(conversation_log, box).run_batch(calls))
    assert [one.outcome for one in ended] == ["error", "error", "complete", "error"]
    assert ended[0].text == "ValueError: no such schema"
    assert ended[1].text == "KeyError: 'rule'"
    assert ended[3].text.startswith("ValueError: ")


# ----------------------------------------------------------------------------------------------------------- outcomes


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ToolError("no such file: a.txt\nthere is b.txt"), "no such file: a.txt\nthere is b.txt"),
        (ToolError(""), "the tool failed without a message"),
        (ValueError("bad\n  thing"), "ValueError: bad thing"),
        (RuntimeError(), "RuntimeError"),
        (SystemExit(3), "SystemExit: 3"),
        (UnicodeError("half \ud800 a character\0"), "UnicodeError: half \ufffd a character\ufffd"),
    ],
)
def test_tool_exception_is_an_error_result(
    conversation_log: ConversationLog, tmp_path: Path, error: BaseException, words: str, blocking: bool
) -> None:
    def fail(arguments: Any, context: Context) -> str:
        raise error

    calls = add_calls(conversation_log, "fail")
    [ended] = run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("fail", fail, blocking=blocking))).run_batch(
            calls
        ),
        real=blocking,
    )
    assert (ended.outcome, ended.text) == ("error", words)
    assert recorded_results(conversation_log) == [("call_0", words)]
    assert states(conversation_log) == ["error"]
    check_renders(conversation_log)


def test_an_interrupt_in_a_thread_is_the_tools_own(tmp_path: Path) -> None:
    def fail(arguments: Any, context: Context) -> str:
        raise KeyboardInterrupt

    conversation_log = InMemoryLog()
    calls = add_calls(conversation_log, "fail")
    box = FakeToolbox(tmp_path, make_tool("fail", fail, blocking=True))
    assert run(make_scheduler(conversation_log, box).run_batch(calls), real=True)[0].text == "KeyboardInterrupt"


def test_unprintable_exception_is_an_error_result(tmp_path: Path) -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise ValueError

    def fail(arguments: Any, context: Context) -> str:
        raise SilentError

    conversation_log = InMemoryLog()
    [ended] = run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("fail", fail))).run_batch(
            add_calls(conversation_log, "fail")
        )
    )
    assert ended.text == "SilentError: a SilentError"


cyclic: dict[str, Any] = {"a": 1}
cyclic["self"] = cyclic


class Odd:
    def __str__(self) -> str:
        return "something odd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("half \ud83d of it\0", "half \ufffd of it\ufffd"),
        (None, ""),
        (b"\xff bytes", "\ufffd bytes"),
        (7, "7"),
        (True, "true"),
        ({"n": math.nan, "m": math.inf, 3: {1}}, '{"n":"nan","m":"inf","3":[1]}'),
        (Result({"big": 2**70, "odd": Odd(), "raw": b"x"}), f'{{"big":"{2**70}","odd":"something odd","raw":"x"}}'),
        (Result(cyclic), '{"a":1,"self":"…"}'),
        (Result({"\ud800": "\ud800"}), '{"\ufffd":"\ufffd"}'),
        (Result([{"type": "file", "name": "a.txt"}]), '[{"type":"file","name":"a.txt"}]'),
        (Result([1, [2]]), "[1,[2]]"),
        (Result((Text("one \udfff"), Code("x = 1", "python"))), "one \ufffd\nx = 1"),
        (Result((Text("see"), Media("image", "image/png", data="iVBORw0KGgo="))), "see\n[image]"),
        (
            Result((ToolCall("rm", {"path": "/"}), Thinking("hm"))),
            "[a block that a result can't contain was left out]\n" * 2,
        ),
    ],
)
def test_any_return_value_is_serializable(
    conversation_log: ConversationLog, tmp_path: Path, value: Any, text: str
) -> None:
    calls = add_calls(conversation_log, "give")
    [ended] = run(
        make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("give", lambda arguments, context: value))
        ).run_batch(calls)
    )
    assert ended.outcome == "complete"
    assert ended.text.rstrip("\n") == text.rstrip("\n")
    json.dumps(ended.text).encode()
    assert len(conversation_log.chat.state.history.ledger) == 1, "only results go in"
    check_renders(conversation_log)


def test_a_value_that_is_json_stays_one(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    run(
        make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("give", lambda a, c: Result({"n": [1, {"x": None}]})))
        ).run_batch(add_calls(conversation_log, "give"))
    )
    [response] = responses_of(conversation_log.messages[-1])
    assert response.structured == {"n": [1, {"x": None}]}


def test_deep_values_have_an_end(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    conversation_log = InMemoryLog()
    [ended] = run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("give", lambda a, c: Result(deep)))).run_batch(
            add_calls(conversation_log, "give")
        )
    )
    assert "…" in ended.text
    check_renders(conversation_log)


def test_result_may_be_marked_as_error(conversation_log: ConversationLog, tmp_path: Path) -> None:
    calls = add_calls(conversation_log, "give")
    box = FakeToolbox(tmp_path, make_tool("give", lambda a, c: Result({"code": 1}, error=True)))
    [ended] = run(make_scheduler(conversation_log, box).run_batch(calls))
    assert ended.outcome == "error"
    assert states(conversation_log) == ["error"]


# ------------------------------------------------------------------------------------------------------------- budget


def test_budget_is_split_by_call_count(tmp_path: Path) -> None:
    def batch(seconds: list[float]) -> list[tuple[str, str]]:
        async def long(arguments: Any, context: Context) -> str:
            await asyncio.sleep(arguments["seconds"])
            return arguments["letter"] * 10_000

        conversation_log = InMemoryLog()
        wanted = [("long", {"letter": letter, "seconds": s}) for letter, s in zip("abc", seconds, strict=True)]
        ended = run(
            make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("long", long)), output=3_000).run_batch(
                add_calls(conversation_log, *wanted)
            )
        )
        for one, (_, text) in zip(ended, recorded_results(conversation_log), strict=True):
            assert len(text) <= 1_000
            assert one.text == text
            found = CUT_PATTERN.search(text)
            assert found is not None
            assert int(found[1].replace(",", "")) == one.cut == 10_000 - (len(text) - len(found[0]))
        return recorded_results(conversation_log)

    first = batch([1, 2, 3])
    assert first == batch([3, 2, 1]) == batch([2, 2, 2])
    assert sum(len(text) for _, text in first) <= 3_000
    assert first[0][1].startswith("aaa")
    assert first[0][1].endswith("aaa")


def test_calls_that_do_not_run_leave_their_share_to_the_others(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    box = FakeToolbox(tmp_path, make_tool("long", lambda a, c: "x" * 10_000))
    bad, good = run(
        make_scheduler(conversation_log, box, output=1_000).run_batch(add_calls(conversation_log, "no such", "long"))
    )
    assert 900 < len(bad.text) + len(good.text) <= 1_000


@pytest.mark.parametrize("budget", [0, 1, 30, 60, 100])
def test_the_smallest_budget_holds(tmp_path: Path, budget: int) -> None:
    conversation_log = InMemoryLog()
    given = Result((Text("a" * 500), Media("image", "image/png", data="iVBORw0KGgo="), Text("b" * 500)))
    box = FakeToolbox(tmp_path, make_tool("text", lambda a, c: "x" * 500), make_tool("blocks", lambda a, c: given))
    run(
        make_scheduler(conversation_log, box, output=budget).run_batch(
            add_calls(conversation_log, "text", "blocks", "unknown")
        )
    )
    words = "".join(
        block.text
        for message in conversation_log.messages
        for response in responses_of(message)
        for block in response.content or ()
        if isinstance(block, Text)
    )
    assert len(words) <= budget
    check_renders(conversation_log)


# ----------------------------------------------------------------------------------------------------------- approval


def test_approval_decides_and_does_not_use_tool_time(tmp_path: Path) -> None:
    conversation_log, ear, log = InMemoryLog(), EventRecorder(), Log()
    answers = iter(["once", "no"])

    async def slow(question: Any) -> Any:
        await asyncio.sleep(1000)
        return next(answers)

    calls = add_calls(conversation_log, *works(("first", 9), ("second", 9)))
    box = FakeToolbox(tmp_path, make_tool("work", log.work, needs_approval=True, timeout=10))
    ended = run(make_scheduler(conversation_log, box, ear, approve=slow).run_batch(calls))
    outcomes = [(one.outcome, one.text) for one in ended]
    assert outcomes == [("complete", "first did it"), ("denied", "denied by the user")]
    assert [event.id for event in ear.of_kind(ApprovalRequested)] == [call.id for call in calls]
    assert [event.id for event in ear.of_kind(CallStarted)] == [calls[0].id]
    assert log == ["first begins", "first ends"]


def test_call_without_approver_is_denied(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    [ended] = run(
        make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("work", Log().work, needs_approval=True))
        ).run_batch(add_calls(conversation_log, "work"))
    )
    assert (ended.outcome, ended.text) == ("denied", "denied: no prompt")
    assert states(conversation_log) == ["denied"]
    check_renders(conversation_log)


def test_call_that_is_not_possible_is_not_denied(tmp_path: Path) -> None:
    class Box(FakeToolbox):
        async def check_permission(self, tool: Any, arguments: Any, approve: Any) -> str | None:
            raise ToolError("there is no such file")

    conversation_log = InMemoryLog()
    box = Box(tmp_path, make_tool("work", Log().work))
    [ended] = run(make_scheduler(conversation_log, box).run_batch(add_calls(conversation_log, "work")))
    assert (ended.outcome, ended.text) == ("error", "there is no such file")


def test_one_question_at_a_time(tmp_path: Path) -> None:
    conversation_log, asked_for = InMemoryLog(), []
    box = FakeToolbox(tmp_path, make_tool("work", Log().work, needs_approval=True))

    async def always(question: Any) -> Any:
        asked_for.append(question.subject)
        assert len(open_questions) == 0
        open_questions.append(question)
        await asyncio.sleep(5)
        open_questions.pop()
        return "always"

    open_questions: list[Any] = []
    calls = add_calls(conversation_log, ("work", {"path": "a"}), ("work", {"path": "b"}), ("work", {"path": "a"}))
    ended = run(make_scheduler(conversation_log, box, approve=always).run_batch(calls))
    assert [one.outcome for one in ended] == ["complete"] * 3
    assert asked_for == ["a", "b", "a"]


def test_an_answer_after_the_end_starts_nothing(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()

    async def stubborn(question: Any) -> Any:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return "once"

    async def main() -> None:
        runs = make_scheduler(
            conversation_log,
            FakeToolbox(tmp_path, make_tool("work", log.work, needs_approval=True, writes=["a.txt"])),
            approve=stubborn,
        )
        batch = asyncio.create_task(runs.run_batch(add_calls(conversation_log, *works(("first", 1), ("second", 1)))))
        await asyncio.sleep(1)
        runs.cancel()
        assert [one.outcome for one in await batch] == ["cancelled"] * 2
        await asyncio.sleep(10)
        assert len(asyncio.all_tasks()) == 1, "somebody still waits"

    run(main())
    assert log == []


def test_a_tool_that_is_cancelled_before_its_first_step_unlocks_its_files(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()

    def emit(event: Any) -> None:
        if isinstance(event, CallStarted) and event.id == calls[0].id:
            asyncio.get_running_loop().call_soon(runs.cancel)

    async def main() -> None:
        assert [one.outcome for one in await runs.run_batch(calls)] == ["cancelled"]
        assert log == []
        [after] = await runs.run_batch(add_calls(conversation_log, *works(("after", 1))))
        assert (after.outcome, after.text) == ("complete", "after did it")

    calls = add_calls(conversation_log, *works(("before", 1)))
    runs = Scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", log.work, writes=["a.txt"])), emit=emit)
    run(main())


# ----------------------------------------------------------------------------------------------------------- time-outs


@pytest.mark.parametrize(
    ("timing", "set_", "seconds"),
    [("outside", None, 100), ("outside", 5, 5), ("outside", 500, 100), ("own", 5, 100), ("inside", 500, 503)],
)
def test_user_time_limit_overrides_the_tool(
    conversation_log: ConversationLog, tmp_path: Path, timing: Any, set_: float | None, seconds: float
) -> None:
    calls = add_calls(conversation_log, *works(("endless", 10_000)))

    async def main() -> None:
        timed = dataclasses.replace(make_tool("work", Log().work, timeout=100), timeout_mode=timing)
        await make_scheduler(conversation_log, FakeToolbox(tmp_path, timed), timeout=set_).run_batch(calls)
        assert asyncio.get_running_loop().time() == 1000 + seconds

    run(main())


@pytest.mark.parametrize(("own", "seconds"), [(None, 60), (7, 7), (600, 60)])
def test_a_tool_that_takes_too_long_is_timed_out(
    conversation_log: ConversationLog, tmp_path: Path, own: float | None, seconds: float
) -> None:
    calls = add_calls(conversation_log, *works(("endless", 10_000), ("quick", 1)))

    async def main() -> Any:
        ended = await make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("work", Log().work, timeout=own)), timeout=60
        ).run_batch(calls)
        assert asyncio.get_running_loop().time() == 1000 + seconds
        return ended

    ended = run(main())
    assert [one.outcome for one in ended] == ["timed-out", "complete"]
    assert ended[0].text == f"timed out after {seconds} seconds"
    assert states(conversation_log) == ["error", "complete"]
    check_renders(conversation_log)


def test_waiting_for_a_place_or_a_file_is_not_timed(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    box = FakeToolbox(tmp_path, make_tool("work", Log().work, timeout=10, writes="path"))
    wanted = [("work", {"name": str(n), "seconds": 9, "path": "same.txt" if n < 3 else f"{n}.txt"}) for n in range(6)]
    ended = run(make_scheduler(conversation_log, box, parallel=1).run_batch(add_calls(conversation_log, *wanted)))
    assert [one.outcome for one in ended] == ["complete"] * 6


# ------------------------------------------------------------------------------------------------------ the same files


def test_writers_of_one_file_go_in_call_order(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    paths = ["real/a.txt", "link/a.txt", "other.txt", "./real/../link/a.txt"]
    wanted = [("work", {"name": str(n), "seconds": 5 - n, "path": path}) for n, path in enumerate(paths)]
    run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", log.work, writes="path"))).run_batch(
            add_calls(conversation_log, *wanted)
        )
    )
    same = [line for line in log if not line.startswith("2")]
    assert same == ["0 begins", "0 ends", "1 begins", "1 ends", "3 begins", "3 ends"]
    assert log[:2] == ["0 begins", "2 begins"]


def test_writer_waiting_for_approval_keeps_its_place(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()

    async def slow(question: Any) -> Any:
        await asyncio.sleep(50)
        return "once"

    box = FakeToolbox(
        tmp_path,
        make_tool("asks", log.work, writes="path", needs_approval=True),
        make_tool("work", log.work, writes="path"),
    )
    wanted = [
        ("asks", {"name": "0", "path": "a"}),
        ("work", {"name": "1", "path": "a"}),
        ("work", {"name": "2", "path": "b"}),
    ]
    run(make_scheduler(conversation_log, box, approve=slow).run_batch(add_calls(conversation_log, *wanted)))
    assert [line for line in log if "2" not in line] == ["0 begins", "0 ends", "1 begins", "1 ends"]


def test_skipped_writer_blocks_no_one_else(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()
    box = FakeToolbox(
        tmp_path,
        make_tool("asks", log.work, writes="path", needs_approval=True),
        make_tool("work", log.work, writes="path"),
    )
    wanted = [("asks", {"name": "0", "path": "a"}), ("work", {"name": "1", "path": "a"})]
    ended = run(make_scheduler(conversation_log, box).run_batch(add_calls(conversation_log, *wanted)))
    assert [one.outcome for one in ended] == ["denied", "complete"]


def test_writers_of_several_files_never_wait_for_each_other(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()
    rows = [["a", "b"], ["b", "a"], ["b", "c"], ["c", "a"], ["a"], ["c", "b", "a"]]
    wanted = [("work", {"name": str(n), "path": row}) for n, row in enumerate(rows)]
    ended = run(
        make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("work", log.work, writes="path")), parallel=2
        ).run_batch(add_calls(conversation_log, *wanted))
    )
    assert [one.outcome for one in ended] == ["complete"] * 6
    for name in "abc":
        writers = [str(n) for n, row in enumerate(rows) if name in row]
        assert [line.split()[0] for line in log if line.split()[0] in writers and "begins" in line] == writers


# -------------------------------------------------------------------------------------------------------- cancellation


def test_cancelling_ends_running_and_queued_calls_through_the_same_door(
    conversation_log: ConversationLog, tmp_path: Path
) -> None:
    ear, log = EventRecorder(), Log()
    first = add_calls(
        conversation_log, *works(("quick", 1), ("slow", 100), ("waits", 100)), ("work", {"name": "q", "path": "x"})
    )

    async def main() -> None:
        box = FakeToolbox(tmp_path, make_tool("work", log.work))
        runs = make_scheduler(conversation_log, box, ear, parallel=2)
        running = asyncio.create_task(runs.run_batch(first[:3]))
        queued = asyncio.create_task(runs.run_batch(first[3:]))
        await asyncio.sleep(2)
        runs.cancel()
        # It is written when the method returns.
        assert not conversation_log.pending
        runs.cancel()
        assert [one.outcome for one in await running] == ["complete", "cancelled", "cancelled"]
        assert [one.outcome for one in await queued] == ["cancelled"]
        await asyncio.sleep(200)

    run(main())
    assert states(conversation_log) == ["complete", "cancelled", "cancelled", "cancelled"]
    assert [raw_id for raw_id, _ in recorded_results(conversation_log)] == ["call_0", "call_1", "call_2", "call_3"]
    assert "q begins" not in log
    assert len(ear.of_kind(CallEnded)) == 4
    assert ear.of_kind(LateResult) == []
    check_renders(conversation_log)


def test_a_cancelled_scheduler_goes_on_with_the_next_batch(conversation_log: ConversationLog, tmp_path: Path) -> None:
    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", Log().work)))
        runs.cancel()
        task = asyncio.create_task(runs.run_batch(add_calls(conversation_log, *works(("a", 100)))))
        await asyncio.sleep(1)
        runs.cancel()
        await task
        [ended] = await runs.run_batch(add_calls(conversation_log, *works(("b", 1))))
        assert ended.outcome == "complete"

    run(main())
    assert states(conversation_log) == ["cancelled", "complete"]


@pytest.mark.parametrize("queued", [False, True])
def test_cancelled_waiter_still_gets_outcomes_written(
    conversation_log: ConversationLog, tmp_path: Path, queued: bool
) -> None:
    calls = add_calls(conversation_log, *works(("a", 1), ("b", 100)), *works(("c", 1)))

    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", Log().work)))
        running = asyncio.create_task(runs.run_batch(calls[:2]))
        waiting = asyncio.create_task(runs.run_batch(calls[2:]))
        await asyncio.sleep(5)
        (waiting if queued else running).cancel()
        with pytest.raises(asyncio.CancelledError):
            await (waiting if queued else running)
        await (running if queued else waiting)

    run(main())
    assert states(conversation_log) == (
        ["complete", "complete", "cancelled"] if queued else ["complete", "cancelled", "complete"]
    )
    check_renders(conversation_log)


def test_tool_ignoring_cancellation_blocks_nothing(conversation_log: ConversationLog, tmp_path: Path) -> None:
    ear = EventRecorder()

    async def stubborn(arguments: Any, context: Context) -> str:
        for _ in range(30):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                assert context.cancelled.is_set()
        return "done after all"

    async def main() -> None:
        box = FakeToolbox(tmp_path, make_tool("stubborn", stubborn), make_tool("work", Log().work))
        runs = make_scheduler(conversation_log, box, ear, parallel=1)
        task = asyncio.create_task(runs.run_batch(add_calls(conversation_log, "stubborn")))
        await asyncio.sleep(1.5)
        runs.cancel()
        assert [one.outcome for one in await task] == ["cancelled"]
        # A sent result is not replaced.
        conversation_log.render("anthropic")
        conversation_log.mark_sent()
        [ended] = await runs.run_batch(add_calls(conversation_log, *works(("next", 1))))
        assert ended.outcome == "complete"
        assert asyncio.get_running_loop().time() < 1005
        await asyncio.sleep(60)

    run(main())
    assert [event.id for event in ear.of_kind(LateResult)] == [ear.of_kind(CallEnded)[0].id]
    entry = next(iter(conversation_log.chat.state.history.ledger.values()))
    assert entry.state == "cancelled"
    assert [r.content for r in entry.evidence] == [(Text("done after all"),)]
    check_renders(conversation_log)


def test_late_result_waits_for_the_batch_flush(conversation_log: ConversationLog, tmp_path: Path) -> None:
    async def stubborn(arguments: Any, context: Context) -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return "late"

    calls = add_calls(conversation_log, *works(("slow", 100)), "stubborn")
    box = FakeToolbox(tmp_path, make_tool("work", Log().work), make_tool("stubborn", stubborn, timeout=5))
    ended = run(make_scheduler(conversation_log, box).run_batch(calls))
    assert [one.outcome for one in ended] == ["complete", "timed-out"]
    # Nobody has been told that it was timed out, so the real thing takes its place; in call order it stays.
    assert recorded_results(conversation_log) == [("call_0", "slow did it"), ("call_1", "late")]
    check_renders(conversation_log)


def test_a_tool_may_cancel_the_scheduler_that_runs_it(conversation_log: ConversationLog, tmp_path: Path) -> None:
    async def main() -> None:
        async def quit_(arguments: Any, context: Context) -> str:
            runs.cancel()
            return "it is over"

        runs = make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("quit", quit_), make_tool("work", Log().work)), ear
        )
        ended = await runs.run_batch(add_calls(conversation_log, "quit", *works(("other", 9))))
        assert [one.outcome for one in ended] == ["cancelled", "cancelled"]

    ear = EventRecorder()
    run(main())
    assert not conversation_log.pending
    assert len(ear.of_kind(CallEnded)) == 2


def test_a_tool_that_cancels_itself_was_cancelled(tmp_path: Path) -> None:
    async def itself(arguments: Any, context: Context) -> str:
        raise asyncio.CancelledError

    conversation_log = InMemoryLog()
    [ended] = run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("itself", itself))).run_batch(
            add_calls(conversation_log, "itself")
        )
    )
    assert ended.outcome == "cancelled"


# -------------------------------------------------------------------------------------- batches, and calls within calls


def test_a_batch_that_comes_while_another_runs_runs_after_it(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()
    calls = add_calls(conversation_log, *works(("a", 5), ("b", 1), ("c", 1), ("d", 1)))

    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", log.work)))
        both = await asyncio.gather(runs.run_batch(calls[:2]), runs.run_batch(calls[2:3]), runs.run_batch(calls[3:]))
        assert [[one.outcome for one in batch] for batch in both] == [["complete"] * 2, ["complete"], ["complete"]]

    run(main())
    assert log.index("c begins") > log.index("a ends")
    assert log.index("d begins") > log.index("c ends")


def test_a_call_is_never_started_twice(conversation_log: ConversationLog, tmp_path: Path) -> None:
    log = Log()

    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", log.work)))
        calls = add_calls(conversation_log, *works(("a", 1), ("b", 1)))
        with pytest.raises(InputError, match="scheduled before"):
            await runs.run_batch([calls[0], calls[0]])
        await runs.run_batch(calls)
        for again in (
            runs.run_batch(calls[:1]),
            runs.run_one(calls[1]),
            make_scheduler(conversation_log, FakeToolbox(tmp_path)).run_batch(calls),
        ):
            with pytest.raises(InputError):
                await again
        with pytest.raises(InputError, match="by the provider"):
            await runs.run_batch([ToolCall("search", kind="hosted", id="hist_tool_x")])
        with pytest.raises(InputError, match="is not pending"):
            await runs.run_batch([ToolCall("work", id="hist_tool_y")])

    run(main())
    assert log == ["a begins", "b begins", "a ends", "b ends"]


def test_a_single_call_is_outside_of_queue_and_limit(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()
    calls = add_calls(conversation_log, *works(("a", 50), ("b", 1)))

    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", log.work)), parallel=1)
        batch = asyncio.create_task(runs.run_batch(calls[:1]))
        await asyncio.sleep(1)
        assert (await runs.run_one(calls[1])).outcome == "complete"
        assert asyncio.get_running_loop().time() == 1002
        await batch

    run(main())


@pytest.mark.parametrize("path", ["same.txt", "other.txt", "third.txt"])
def test_a_tool_may_have_a_call_run_that_writes_its_own_file(tmp_path: Path, path: str) -> None:
    """The second call of the batch wants both files: it waits for the first, and the inner call not for it."""
    conversation_log, log = InMemoryLog(), Log()
    calls = add_calls(
        conversation_log,
        ("outer", {"path": "same.txt"}),
        ("work", {"name": "second", "path": ["same.txt", "other.txt"]}),
        ("work", {"name": "inner", "path": path}),
    )

    async def main() -> Any:
        async def outer(arguments: Any, context: Context) -> str:
            await asyncio.sleep(1)
            return (await runs.run_one(calls[2])).text

        box = FakeToolbox(
            tmp_path, make_tool("outer", outer, writes="path"), make_tool("work", log.work, writes="path")
        )
        runs = make_scheduler(conversation_log, box, parallel=1)
        return await runs.run_batch(calls[:2])

    ended = run(main())
    assert [one.text for one in ended] == ["inner did it", "second did it"]
    assert log[0] == "inner begins"
    assert not conversation_log.pending


def test_a_file_stays_locked_while_an_inner_call_that_was_given_up_writes_it(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    calls = add_calls(
        conversation_log, ("outer", {"path": "a"}), ("inner", {"path": "a"}), ("work", {"name": "next", "path": "a"})
    )

    async def inner(arguments: Any, context: Context) -> str:
        for _ in range(20):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)
        finished.append(asyncio.get_running_loop().time())
        return "written"

    finished: list[float] = []

    async def main() -> Any:
        async def outer(arguments: Any, context: Context) -> str:
            return (await runs.run_one(calls[1])).text

        tools = [make_tool("outer", outer, writes="path", timeout=3), make_tool("inner", inner, writes="path")]
        runs = make_scheduler(
            conversation_log, FakeToolbox(tmp_path, *tools, make_tool("work", log.work, writes="path", timeout=100))
        )
        return await runs.run_batch([calls[0], calls[2]])

    log = Log()
    ended = run(main())
    assert [one.outcome for one in ended] == ["timed-out", "complete"]
    assert finished == [1020]
    assert not conversation_log.pending


def test_calls_that_a_tool_has_run_at_once_write_one_after_the_other(tmp_path: Path) -> None:
    conversation_log, log = InMemoryLog(), Log()
    inner = [("work", {"name": name, "path": ["same.txt", "other.txt"]}) for name in "bcd"]
    calls = add_calls(
        conversation_log, ("outer", {"path": "same.txt"}), *inner, ("work", {"name": "e", "path": "same.txt"})
    )

    async def main() -> None:
        async def outer(arguments: Any, context: Context) -> str:
            await asyncio.gather(*map(runs.run_one, calls[1:4]))
            return "all"

        runs = make_scheduler(
            conversation_log,
            FakeToolbox(tmp_path, make_tool("outer", outer, writes="path"), make_tool("work", log.work, writes="path")),
        )
        await runs.run_batch([calls[0], calls[4]])

    run(main())
    assert log == [f"{name} {what}" for name in "bcde" for what in ("begins", "ends")]


def test_a_tool_can_not_wait_for_a_batch_of_its_own_scheduler(tmp_path: Path) -> None:
    conversation_log = InMemoryLog()
    calls = add_calls(conversation_log, "outer", *works(("inner", 1)))

    async def main() -> Any:
        async def outer(arguments: Any, context: Context) -> str:
            await runs.run_batch(calls[1:])
            return "never"

        runs = make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("outer", outer), make_tool("work", Log().work))
        )
        ended = await runs.run_batch(calls[:1])
        # Afterwards it can be run, as it was not taken.
        return [*ended, *await runs.run_batch(calls[1:])]

    ended = run(main())
    assert [one.outcome for one in ended] == ["error", "complete"]
    assert "run_one" in ended[0].text


def test_another_scheduler_may_run_batches_within_a_call(tmp_path: Path) -> None:
    conversation_log, below = InMemoryLog(), InMemoryLog()

    async def main() -> Any:
        async def task(arguments: Any, context: Context) -> str:
            inner = make_scheduler(below, FakeToolbox(tmp_path, make_tool("work", Log().work)))
            ended = await inner.run_batch(add_calls(below, *works(("a", 1), ("b", 2))))
            return ", ".join(one.text for one in ended)

        return await make_scheduler(
            conversation_log, FakeToolbox(tmp_path, make_tool("task", task)), parallel=1
        ).run_batch(add_calls(conversation_log, "task"))

    assert run(main())[0].text == "a did it, b did it"


def test_cancelling_goes_down_to_the_calls_within(tmp_path: Path) -> None:
    conversation_log, below = InMemoryLog(), InMemoryLog()

    async def main() -> Any:
        async def task(arguments: Any, context: Context) -> str:
            inner = make_scheduler(below, FakeToolbox(tmp_path, make_tool("work", Log().work)))
            return str(await inner.run_batch(add_calls(below, *works(("a", 100)))))

        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("task", task)))
        batch = asyncio.create_task(runs.run_batch(add_calls(conversation_log, "task")))
        await asyncio.sleep(1)
        runs.cancel()
        await batch
        await asyncio.sleep(1)

    run(main())
    assert states(conversation_log) == states(below) == ["cancelled"]


# ------------------------------------------------------------------------------------------------------------ progress


def test_progress_is_the_newest_line_now_and_then(tmp_path: Path) -> None:
    conversation_log, ear = InMemoryLog(), EventRecorder()

    async def talks(arguments: Any, context: Context) -> str:
        context.progress("first\n")
        await asyncio.sleep(0)
        for number in range(1000):
            context.progress(f"line {number}\n\n")
        context.progress("   ")
        await asyncio.sleep(5)
        context.progress("x" * 5000)
        await asyncio.sleep(5)
        for _ in range(200):
            context.progress(str(object()))
            await asyncio.sleep(0.01)
        return "done"

    run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("talks", talks)), ear).run_batch(
            add_calls(conversation_log, "talks")
        )
    )
    lines = [event.text for event in ear.of_kind(CallProgress)]
    assert lines[:2] == ["first", "line 999"]
    assert len(lines[2]) == 200
    assert 10 < len(lines) < 30
    assert isinstance(ear[-1], CallEnded)


def test_no_events_after_a_call_ended(tmp_path: Path) -> None:
    conversation_log, ear = InMemoryLog(), EventRecorder()

    async def talks(arguments: Any, context: Context) -> str:
        for _ in range(100):
            context.progress("still here")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.5)
        return "late"

    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("talks", talks, timeout=3)), ear)
        await runs.run_batch(add_calls(conversation_log, "talks"))
        await asyncio.sleep(100)

    run(main())
    last = max(place for place, event in enumerate(ear) if isinstance(event, CallProgress))
    assert isinstance(ear[last + 1], CallEnded)
    assert isinstance(ear[-1], LateResult)


# ------------------------------------------------------------------------------------------- when something else fails


def test_a_listener_that_fails_stops_nothing(conversation_log: ConversationLog, tmp_path: Path) -> None:
    def bad(event: Any) -> None:
        raise ValueError("no screen")

    async def main() -> None:
        with collect_loop_errors() as loop_errors:
            runs = Scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", Log().work)), emit=bad)
            ended = await runs.run_batch(add_calls(conversation_log, *works(("a", 1), ("b", 1))))
        assert [one.outcome for one in ended] == ["complete"] * 2
        assert len(loop_errors) == 6

    run(main())
    check_renders(conversation_log)


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_failing_store_ends_the_batch_without_partial_write(
    stored: StoredConversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    ear, log, appended = EventRecorder(), Log(), []
    calls = add_calls(stored, *works(("a", 1), ("b", 2), ("c", 3), ("d", 4)))
    append = stored._store.append

    def failing(conversation: str, seq: int, events: Any, **more: Any) -> int:
        appended.append(seq)
        if len(appended) == fails_at:
            raise StoreError("no room", cause="full")
        return append(conversation, seq, events, **more)

    monkeypatch.setattr(stored._store, "append", failing)

    async def main() -> None:
        runs = make_scheduler(stored, FakeToolbox(tmp_path, make_tool("work", log.work)), ear)
        with pytest.raises(StoreError, match="no room"):
            await runs.run_batch(calls)
        await asyncio.sleep(100)
        with pytest.raises(InputError, match="before"):
            await runs.run_batch(calls[fails_at:])
        # Calls without a recorded outcome are interrupted; the next batch runs.
        stored.add_user("go on")
        stored.render("anthropic")
        stored.mark_sent()
        await runs.run_batch(add_calls(stored, *works(("e", 1))))

    run(main())
    done = fails_at - 1
    assert states(stored) == ["complete"] * done + ["interrupted"] * (4 - done) + ["complete"]
    assert len(ear.of_kind(CallEnded)) == done + 1
    assert [line for line in log if "ends" in line] == [f"{name} ends" for name in "abcd"[:fails_at]] + ["e ends"]
    check_renders(stored)
    check_renders(StoredConversation(stored._store, stored.id))


def test_result_rejected_by_the_log_is_an_error_result(
    conversation_log: ConversationLog, tmp_path: Path, monkeypatch: Any
) -> None:
    record_result = conversation_log.record_result

    def picky(call: Any, content: Any = None, **more: Any) -> None:
        if content == "unspeakable":
            raise InputError("not that")
        record_result(call, content, **more)

    monkeypatch.setattr(conversation_log, "record_result", picky)
    box = FakeToolbox(tmp_path, make_tool("give", lambda a, c: "unspeakable"))
    [ended] = run(make_scheduler(conversation_log, box).run_batch(add_calls(conversation_log, "give")))
    assert ended.outcome == "error"
    assert ended.text == recorded_results(conversation_log)[0][1] == "the result can't be stored: InputError: not that"


def test_calls_of_a_process_that_is_gone_are_not_started(stored: StoredConversation, tmp_path: Path) -> None:
    log = Log()
    calls = add_calls(stored, *works(("a", 1)))
    stored.close()
    second = StoredConversation(stored._store, stored.id)
    with pytest.raises(InputError, match="another process"):
        run(make_scheduler(second, FakeToolbox(tmp_path, make_tool("work", log.work))).run_batch(calls))
    assert log == []


def test_a_conversation_that_was_taken_over_starts_nothing_more(stored: StoredConversation, tmp_path: Path) -> None:
    log = Log()
    calls = add_calls(stored, *works(("a", 5), ("b", 5)))

    async def main() -> None:
        runs = make_scheduler(stored, FakeToolbox(tmp_path, make_tool("work", log.work)), parallel=1)
        batch = asyncio.create_task(runs.run_batch(calls))
        await asyncio.sleep(1)
        stored._store.release(stored.id, "the first")
        with StoredConversation(stored._store, stored.id, owner="the second") as second:
            second.add_user("mine")
            with pytest.raises(StoreError):
                await batch

    run(main())
    assert log == ["a begins", "a ends"]
    stored.reload()
    assert states(stored) == ["interrupted", "interrupted"]


def test_call_taken_over_during_approval_is_not_started(stored: StoredConversation, tmp_path: Path) -> None:
    log = Log()
    calls = add_calls(stored, *works(("a", 5)))

    async def slow(question: Any) -> Any:
        await asyncio.sleep(10)
        return "once"

    async def main() -> None:
        runs = make_scheduler(
            stored, FakeToolbox(tmp_path, make_tool("work", log.work, needs_approval=True)), approve=slow
        )
        batch = asyncio.create_task(runs.run_batch(calls))
        await asyncio.sleep(1)
        stored._store.release(stored.id, "the first")
        with StoredConversation(stored._store, stored.id, owner="the second") as second:
            second.add_user("mine")
            # The heartbeat detects it.
            with pytest.raises(StoreError):
                stored.renew_lease()
            with pytest.raises(StoreError, match="was not started"):
                await batch

    run(main())
    assert log == []


def test_a_closed_scheduler_takes_nothing_and_writes_nothing(conversation_log: ConversationLog, tmp_path: Path) -> None:
    async def stubborn(arguments: Any, context: Context) -> str:
        for _ in range(30):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)
        return "too late"

    async def main() -> None:
        runs = make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("stubborn", stubborn)), ear)
        batch = asyncio.create_task(runs.run_batch(add_calls(conversation_log, "stubborn")))
        await asyncio.sleep(1.5)
        await runs.close()
        assert (await batch)[0].outcome == "cancelled"
        with pytest.raises(InputError, match="closed"):
            await runs.run_batch([])
        await asyncio.sleep(100)

    ear = EventRecorder()
    run(main())
    assert ear.of_kind(LateResult) == []
    assert next(iter(conversation_log.chat.state.history.ledger.values())).evidence == []


def test_calls_that_bear_the_same_raw_id_have_their_own_results(
    conversation_log: ConversationLog, tmp_path: Path
) -> None:
    same = [
        ToolCall("work", {"name": n, "seconds": s}, origin=Origin("kimi", raw_id="x")) for n, s in (("a", 9), ("b", 1))
    ]
    run(
        make_scheduler(conversation_log, FakeToolbox(tmp_path, make_tool("work", Log().work))).run_batch(
            add_calls(conversation_log, *same)
        )
    )
    assert [text for _, text in recorded_results(conversation_log)] == ["a did it", "b did it"]
    for entry in conversation_log.chat.state.history.ledger.values():
        assert entry.completion is not None
        assert entry.completion.content == (Text(f"{entry.call.arguments['name']} did it"),)

"""The judge of client runs finds what is wrong. The clients themselves are run by `make clients` only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.blocks import Block, Message, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Request, Tool
from segue.emulator import RecordedRequest
from segue.emulator.steps import CallStep
from tests.clients.cells import list_cells
from tests.clients.faults import FaultResult
from tests.clients.judge import Script, count_returned, judge, judge_log
from tests.clients.page import write_page
from tests.clients.rows import CLIENT_ROWS, UPSTREAMS
from tests.clients.run import Cell, Result
from tests.clients.task import FILES, MISBEHAVIOURS, PLAIN, RAN_FILE, Round, build_rounds, list_words

ROW = CLIENT_ROWS["claude"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (*FILES.items(), (RAN_FILE, "one\ntwo\n")):
        (tmp_path / name).write_text(content)
    return tmp_path


def history_of(rounds: Sequence[Round], *, thinks: bool = True) -> list[Message]:
    messages: list[Message] = []
    for number, each in enumerate(rounds):
        calls = [ToolCall(call.tool, call.arguments, f"{number}-{i}") for i, call in enumerate(each.calls)]
        thought: list[Block] = [Thinking("A thought.")] if thinks else []
        messages.append(Message("ai", (*thought, Text("Answer."), *calls)))
        results = [
            ToolResponse(f"{number}-{i}", content=(Text(call.result or ""),)) for i, call in enumerate(each.calls)
        ]
        if results:
            messages.append(Message("tool", tuple(results)))
    return messages


def run(rounds: Sequence[Round], requests: Sequence[Sequence[Message]], api: str = "anthropic") -> Script:
    script = Script(rounds, ROW.only_tool)
    for number, messages in enumerate(requests, start=1):
        script.reply(Request(tuple(messages), tools=(Tool(ROW.only_tool),)))
        script.add_record(RecordedRequest(number, "POST", "/", status=200, thoughts=1, api=api))
    return script


def right_requests(rounds: Sequence[Round], **options: Any) -> list[list[Message]]:
    return [history_of(rounds[:number], **options) for number in range(len(rounds))]


def test_thoughts_that_came_back_are_counted(folder: Path) -> None:
    rounds = build_rounds(ROW, folder)
    requests = right_requests(rounds)
    assert count_returned(run(rounds, requests)) == {1: (2, 2), 2: (3, 3)}
    without = [*requests[:3], *(history_of(rounds[:number], thinks=False) for number in (3, 4))]
    assert count_returned(run(rounds, without)) == {1: (2, 2), 2: (0, 3)}


def test_a_right_run(folder: Path) -> None:
    rounds = build_rounds(ROW, folder)
    assert judge(run(rounds, right_requests(rounds)), folder) == []


def test_requests_beside_the_conversation_use_no_round(folder: Path) -> None:
    script = Script(build_rounds(ROW, folder), ROW.only_tool)
    assert script.reply(Request(())) is not None
    assert script.exchanges == []


def test_missing_thoughts_are_found(folder: Path) -> None:
    rounds = build_rounds(ROW, folder)
    problems = judge(run(rounds, right_requests(rounds, thinks=False)), folder)
    assert "request 2: the thought before Read is missing" in problems
    # AZF-06: this provider accepts no reasoning.
    assert judge(run(rounds, right_requests(rounds, thinks=False), "azure-foundry"), folder) == []


def test_merged_rounds_are_found(folder: Path) -> None:
    rounds = build_rounds(ROW, folder)
    requests = right_requests(rounds)
    first, results, second, more = requests[2]
    requests[2] = [Message("ai", first.blocks + second.blocks), Message("tool", results.blocks + more.blocks)]
    assert judge(run(rounds, requests), folder)[0].startswith("request 3: the calls are")


def test_wrong_results_are_found(folder: Path) -> None:
    rounds = build_rounds(ROW, folder)
    requests = right_requests(rounds)
    ai, results = requests[1]
    one, two = results.blocks
    assert isinstance(one, ToolResponse)
    assert isinstance(two, ToolResponse)
    requests[1] = [ai, Message("tool", (one, one, ToolResponse(two.call_id, content=(Text("aborted"),))))]
    problems = judge(run(rounds, requests), folder)
    assert problems == ["request 2: Read has 2 results", "request 2: Read has another result: aborted"]


def test_a_missing_picture_is_found(folder: Path) -> None:
    rounds = build_rounds(ROW, folder, MISBEHAVIOURS["picture"])
    problems = judge(run(rounds, right_requests(rounds)), folder)
    assert "request 2: Read has another result: " in problems[0]


def test_a_repeated_command_and_extra_rounds_are_found(folder: Path) -> None:
    rounds = build_rounds(ROW, folder)
    (folder / RAN_FILE).write_text("one\none\ntwo\n")
    problems = judge(run(rounds, [*right_requests(rounds), history_of(rounds)]), folder)
    assert problems[0].startswith("the commands that ran: ['one', 'one', 'two']")
    assert problems[1] == "6 rounds reached the provider, expected 5"


def test_a_rejected_request_is_found(folder: Path) -> None:
    rounds = build_rounds(ROW, folder)
    script = run(rounds, right_requests(rounds))
    script.add_record(RecordedRequest(6, "POST", "/", status=400, refused="No.", rule="ANT-05"))
    script.add_record(RecordedRequest(7, "POST", "/", status=429, refused="Slow down."))
    assert judge(script, folder) == ["rejected with 400 ANT-05: No."]


def test_errors_in_the_gateway_log_are_found() -> None:
    log = "req_1; claude; POST /v1/messages; 200; 0.1 s\nreq_2; claude; POST /v1/messages; 502; 0.1 s; broken"
    assert judge_log(log) == ["gateway: claude; POST /v1/messages; 502; 0.1 s; broken"]


def test_a_probe_without_a_key_is_no_error_in_the_gateway_log() -> None:
    probe = "req_1; ; HEAD /; 401; 0.0 s; reason=key"
    request = "req_2; ; HEAD /v1/models; 401; 0.0 s; reason=key"
    assert judge_log(f"{probe}\n{request}") == [f"gateway: {request.split('; ', 1)[1]}"]


def test_every_client_meets_every_provider_and_misbehaviour() -> None:
    cells = list_cells()
    assert len(set(cells)) == len(cells)
    assert sum(cell.misbehaviour == PLAIN for cell in cells) == len(CLIENT_ROWS) * len(UPSTREAMS)
    possible = {(name, task) for name, row in CLIENT_ROWS.items() for task in row.tasks or MISBEHAVIOURS}
    assert possible - {(cell.client, cell.misbehaviour) for cell in cells} == {
        ("codex-exec", "picture"),
        ("pi", "deferred"),
    }


def test_broken_rounds_are_repeated(folder: Path) -> None:
    for misbehaviour in MISBEHAVIOURS.values():
        rounds = misbehaviour.change(build_rounds(ROW, folder))
        assert [each.calls for each in rounds if not each.is_broken] == [
            each.calls for each in build_rounds(ROW, folder)
        ]


@pytest.mark.parametrize(
    "name", ["mcp__desk__stamp_word", "mcp__desk::stamp_word", "mcp__desk__stamp_word_cc0t0exo", "mcp_desk_stamp_word"]
)
def test_tool_of_a_server_is_called_by_its_declared_name(folder: Path, name: str) -> None:
    rounds = build_rounds(ROW, folder, MISBEHAVIOURS["deferred"])
    script = Script(rounds, ROW.only_tool)
    names: list[str] = []
    for _ in rounds:
        steps = script.reply(Request((), tools=(Tool(ROW.only_tool), Tool("ToolSearch"), Tool(name)))) or ()
        names += [step.name for step in steps if isinstance(step, CallStep)]
    assert names == ["Read", "ToolSearch", name, name]


def test_a_change_of_the_model_has_three_prompts(folder: Path) -> None:
    rounds = build_rounds(ROW, folder, MISBEHAVIOURS["switch"])
    assert [each.prompt for each in rounds] == [1, 1, 1, 2, 2, 3, 3]
    assert list_words(rounds) == ["one", "two", "three"]
    assert Cell("claude", "anthropic", "switch").upstreams == ("anthropic", "kimi", "anthropic")


def test_page_marks_cells_that_were_not_run(tmp_path: Path) -> None:
    file = tmp_path / "clients.md"
    results = [
        Result("claude", "1.2.3", "kimi", PLAIN, [], 5, (5, 3), 1.0),
        Result("qwen", "1.2.3", "bedrock", "switch", [], 7, (7, 4), 1.0, {1: (2, 2), 2: (1, 1), 3: (3, 3)}),
    ]
    write_page(file, results, [FaultResult("codex.quota", "1.2.3", "kimi", [], 1, 1.0)], [])
    text = file.read_text()
    assert "1 of 1 runs are right; 89 of 90 cells were not run." in text
    assert "| back to `bedrock` | not run | not run | not run | 3 of 3 | not run |" in text
    assert "| codex | the credit is used up | 1 | “has no credit left” | not run | right |" in text
    assert "| `kimi`, kimi-k2-thinking | right | not run |" in text

"""Recorded runs of coding clients, replayed through a gateway to strict providers; judged as by `make clients`."""

from __future__ import annotations

import json
import re

import httpx2
import pytest
from msgspec.structs import replace

from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.sessions.registry import PROGRAMS
from tests.budget import sample
from tests.clients.judge import Script, judge_log, judge_requests
from tests.clients.rows import CLIENT_ROWS, PROMPTS, UPSTREAMS
from tests.clients.run import Cell
from tests.clients.sample import (
    CELLS,
    FOLDER,
    WORK,
    fill_references,
    find_call_types,
    find_values,
    list_samples,
    load_sample,
)
from tests.clients.task import MISBEHAVIOURS, PLAIN, build_rounds
from tests.gateway.harness import running_gateway

# Runs whose requests have the same form whether the provider returns its reasoning or not.
ANYWHERE = [
    Cell(*name.split("."))
    for name in (
        "claude.openai-responses.deferred",
        "gemini.openai-responses.plain",
        "qwen.deepseek.plain",
        "qwen.anthropic.repeated-ids",
        "opencode.openai-responses.cut-call",
        "pi.azure-foundry.constant-id",
    )
]


IDS = ("id", "call_id")


def prompt_of(body: str) -> int:
    """Return the index of the prompt that a request belongs to: the last one in it."""
    return max(index for index, prompt in enumerate(PROMPTS) if index == 0 or prompt in body)


def replay(recorded: Cell, cell: Cell) -> tuple[Script, str]:
    """Send the requests of a recorded run to the providers of a cell.

    Return the script of the model, and the gateway's log. No id may be given out twice: clients merge or lose what has
    an id that they have seen.
    """
    row, task = CLIENT_ROWS[cell.client], MISBEHAVIOURS[cell.misbehaviour]
    script = Script(task.change(build_rounds(row, WORK, task)), row.only_tool)
    models = [f"test-{upstream}/{UPSTREAMS[upstream]}" for upstream in cell.upstreams]
    scripts = dict.fromkeys(cell.upstreams, script.reply)
    options = {"faults": task.faults, "on_request": script.add_record}
    buffer_tool_calls = PROGRAMS[row.program or cell.client].buffer_tool_calls
    with running_gateway(
        scripts, default=models[:1], buffer_tool_calls=buffer_tool_calls, emulator_options=options
    ) as gateway:
        replies: list[dict[str, list[str]]] = []
        given: set[tuple[str, str]] = set()
        for request in load_sample(recorded):
            body = json.dumps(fill_references(request.body, replies))
            gateway.server.table.override([models[prompt_of(body)]])
            response = httpx2.post(gateway.url + request.path, content=body, headers=request.headers, timeout=100)
            values = find_values(response.text)
            assert not {(key, value) for key in IDS for value in values.get(key, ())} & given
            given |= {(key, value) for key in IDS for value in values.get(key, ())}
            replies.append(values)
            if cell == recorded:
                assert find_call_types(response.text) == request.call_types
        return script, gateway.log


@pytest.mark.parametrize("cell", list_samples(), ids=lambda cell: cell.name)
def test_recorded_run_is_right(cell: Cell) -> None:
    script, log = replay(cell, cell)
    assert judge_requests(script) == []
    assert [each.record.api for each in script.exchanges if each.record] == [
        cell.upstreams[each.prompt - 1] for each in script.rounds
    ]
    if cell.misbehaviour == PLAIN:
        assert judge_log(log) == []


@pytest.mark.parametrize("cell", ANYWHERE, ids=lambda cell: cell.name)
def test_recorded_run_is_right_on_other_providers(cell: Cell) -> None:
    for upstream in sample(UPSTREAMS, 3, start=ANYWHERE.index(cell)):
        script, _ = replay(cell, replace(cell, upstream=upstream))
        assert judge_requests(script) == [], upstream


def test_samples_are_small_and_of_no_machine() -> None:
    text = "".join(file.read_text() for file in FOLDER.glob("*.jsonl"))
    assert len(text) < 300_000
    assert ENVELOPE_PREFIX not in text
    assert not re.search(r"/(?:root|work|tmp|Users)/", text)


def test_every_client_is_recorded() -> None:
    assert set(list_samples()) == set(CELLS)
    assert {cell.client for cell in CELLS} == {name for name, row in CLIENT_ROWS.items() if not row.tasks}

"""Samples of client runs: values of replies become references, texts filler, folders those of a user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients import sample
from tests.clients.run import Cell

CELL = Cell("claude", "kimi")
REPLY = 'event: x\ndata: {"type": "message", "id": "msg_1", "content": [{"type": "tool_use", "id": "toolu_1"}]}\n\n'
TOOLS = [{"name": "Read", "description": "Reads a file. " * 20, "parameters": {"type": "object"}} for _ in range(3)]


def exchange(*messages: Any) -> dict[str, Any]:
    body = {"messages": messages, "tools": TOOLS, "metadata": {"user_id": "me"}}
    return {"path": "/v1/messages", "headers": {}, "body": body, "response": REPLY}


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[sample.Request]:
    monkeypatch.setattr(sample, "FOLDER", tmp_path / "samples")
    read = f"Read {tmp_path}/runs/{CELL.name}/project/alpha.txt"
    lines = [
        exchange(read),
        exchange(read, {"tool_use_id": "toolu_1", "content": "1 CONTENT-ALPHA" + " and more" * 99}),
    ]
    recording = tmp_path / "recording.jsonl"
    recording.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    sample.write_samples("claude", "1.2.3", {CELL: recording}, tmp_path / "runs")
    assert sample.list_samples() == [CELL]
    text = (tmp_path / "samples" / "claude.jsonl").read_text()
    assert str(tmp_path) not in text
    assert text.count("Filler of 280 characters") == len(TOOLS)
    return sample.load_sample(CELL)


def test_sample_is_loaded_as_it_was_recorded(requests: list[sample.Request]) -> None:
    first, second = requests
    assert first.body["messages"] == ["Read /home/user/project/alpha.txt"]
    assert first.body["metadata"] == {}
    assert first.call_types == ["tool_use"]
    assert len(second.body["tools"]) == 3
    assert second.body["messages"][1]["content"].startswith("1 CONTENT-ALPHA and more")
    assert len(second.body["messages"][1]["content"]) == 200


def test_references_are_filled_with_the_values_of_a_reply(requests: list[sample.Request]) -> None:
    assert requests[1].body["messages"][1]["tool_use_id"] == "{{0.id.1}}"
    replies = [sample.find_values(REPLY.replace("toolu_1", "toolu_2"))]
    assert sample.fill_references(requests[1].body, replies)["messages"][1]["tool_use_id"] == "toolu_2"

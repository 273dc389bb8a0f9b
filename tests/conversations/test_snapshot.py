"""The snapshot files: what is written is read back, one message or tool a line, equal columns as references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conversations import snapshot
from tests.conversations.build import Case
from tests.conversations.snapshot import Column
from tests.conversations.table import BY_NAME, CASES

CASE = Case("example", "openai-chat", "an example", {})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(snapshot, "FOLDER", tmp_path / "snapshots")
    return tmp_path / "snapshots"


def column(*ids: str, findings: tuple[str, ...] = (), **more: Any) -> Column:
    results = [{"role": "tool", "tool_call_id": call_id, "content": "r"} for call_id in ids]
    return {"findings": list(findings), "body": {**more, "messages": results}}


def written(columns: dict[str, Column]) -> dict[str, Any]:
    """Write the columns, assert that they are read back, and return what the file stores for each target."""
    snapshot.write(CASE, columns)
    assert json.dumps(snapshot.read(CASE.name)) == json.dumps(columns)
    return json.loads(snapshot.path_of(CASE.name).read_text("utf-8"))["targets"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("first", "second", "reference"),
    [
        pytest.param(column("a"), column("a"), {}, id="equal"),
        pytest.param(column("a", "b", "a"), column("x", "b", "x"), {"ids": {"a": "x"}}, id="ids"),
        pytest.param(column("a", "b"), column("b", "a"), {"ids": {"a": "b", "b": "a"}}, id="ids exchanged"),
        pytest.param(column(model="m"), column(model="n"), {"model": "n"}, id="model"),
        pytest.param(column(model="m"), column(), {"model": None}, id="no model"),
        pytest.param(column(), column(model="m"), {"model": "m"}, id="a model of its own"),
        pytest.param(column(max_completion_tokens=1), column(max_tokens=1), {"limit": "max_tokens"}, id="limit key"),
        pytest.param(column(), column(findings=("ids",)), {"findings": ["ids"]}, id="findings"),
    ],
)
def test_equal_column_is_a_reference(first: Column, second: Column, reference: Column) -> None:
    assert written({"p": first, "q": second}) == {"p": first, "q": {"same_as": "p"} | reference}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(column("a", "a"), column("x", "y"), id="one id for two"),
        pytest.param(column("a"), column("a", "a"), id="another message"),
        pytest.param(column(seed=1), column(seed=1.0), id="another type of number"),
        pytest.param(column(seed=1, top_p=1), column(top_p=1, seed=1), id="another order of keys"),
        pytest.param(column(max_tokens=1), column(max_tokens=2), id="another limit"),
        pytest.param(column(max_tokens=1), column(), id="no limit"),
        pytest.param(column(), column(model=None), id="a model of null"),
        pytest.param(column(seed=1, model="m"), column(seed=1, model="n"), id="a model that is not first"),
    ],
)
def test_other_column_is_written_in_full(first: Column, second: Column) -> None:
    assert written({"p": first, "q": second}) == {"p": first, "q": second}


@pytest.mark.usefixtures("folder")
def test_reference_is_to_a_column_in_full() -> None:
    stored = written({"p": column(model="m"), "q": column(model="n"), "r": column(model="n")})
    assert stored["r"] == {"same_as": "p", "model": "n"}


def test_one_message_or_tool_is_on_each_line() -> None:
    gemini = {"contents": [{"parts": [{"text": "é"}]}], "tools": [{"functionDeclarations": [{"name": "f"}, {}]}]}
    bedrock = {"messages": [], "toolConfig": {"tools": [{"toolSpec": {"inputSchema": {"json": {}}}}]}, "stop": ["a"]}
    columns = {"gemini": {"findings": ["a", "b"], "body": gemini}, "bedrock": {"findings": [], "body": bedrock}}
    assert snapshot.dumps(CASE, columns | {"copy": columns["gemini"]}) == TEXT


TEXT = """\
{
  "case": "example",
  "source": "openai-chat",
  "about": "an example",
  "targets": {
    "gemini": {
      "findings": ["a", "b"],
      "body": {
        "contents": [
          {"parts": [{"text": "é"}]}
        ],
        "tools": [
          {
            "functionDeclarations": [
              {"name": "f"},
              {}
            ]
          }
        ]
      }
    },
    "bedrock": {
      "findings": [],
      "body": {
        "messages": [],
        "toolConfig": {
          "tools": [
            {"toolSpec": {"inputSchema": {"json": {}}}}
          ]
        },
        "stop": ["a"]
      }
    },
    "copy": {"same_as": "gemini"}
  }
}
"""


@pytest.mark.usefixtures("folder")
def test_case_without_a_file_has_no_columns() -> None:
    assert snapshot.read(CASE.name) == {}
    assert snapshot.names() == []


def test_no_snapshot_without_a_case() -> None:
    assert [name for name in snapshot.names() if name not in {case.name for case in CASES}] == []


def test_files_are_as_they_are_written() -> None:
    for name in snapshot.names():
        assert snapshot.path_of(name).read_text("utf-8") == snapshot.dumps(BY_NAME[name], snapshot.read(name)), name

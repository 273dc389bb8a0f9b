"""Bodies of real clients, shortened: a clean body has no finding that calls something lost which is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

import segue
from segue.wire.registry import WIRES

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "client_bodies.jsonl").read_text(encoding="utf-8").splitlines()
]
# Options that a body of the client loses at some target, because it has no equivalent.
EXPECTED: dict[str, set[str]] = {
    "claude": {"context_management"},
    "codex": {"text.verbosity"},
    "codex56": {"text.verbosity", "reasoning.context", "parallel_tool_calls"},
    "gemini": {"temperature", "top_p", "top_k"},
    "opencode": set(),
    "pi-chat": set(),
    "pi-gemini": set(),
    "pi": set(),
    "pi-responses": set(),
    "qwen": set(),
}


@pytest.mark.parametrize("target", list(WIRES))
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["client"]))
def test_clean_body_has_no_false_loss(row: dict[str, Any], target: str) -> None:
    body = row["body"]
    converted = segue.convert(body, source=row["source"], target=cast("Any", target))
    lost = [finding for finding in converted.report.findings if finding.level == "lost"]
    options = {finding.subject for finding in lost if finding.kind not in ("model", "reasoning")}
    assert options <= EXPECTED[row["client"]] | {"reasoning"}
    if WIRES[row["source"]].provider == WIRES[target].provider:
        assert not [finding for finding in lost if finding.kind == "model"]
    assert len({finding.key for finding in converted.report.findings}) == len(converted.report.findings)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["client"]))
def test_client_body_loses_nothing_in_its_own_api(row: dict[str, Any]) -> None:
    converted = segue.convert(row["body"], source=row["source"], target=row["source"])
    assert [
        finding for finding in converted.report.findings if finding.level == "lost" and finding.kind != "reasoning"
    ] == []

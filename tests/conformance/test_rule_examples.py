"""Bodies that a rule accepts, accepts with a risk, or rejects: `rule_examples.jsonl`, one a line.

A row may name another rule that reports it (`by`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segue import conformance
from segue.specs.rulebook import load_rulebook

ROWS = [json.loads(line) for line in Path(__file__).with_name("rule_examples.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['rule']} {at}") for at, row in enumerate(ROWS, 1)])
def test_example_gets_its_verdict(row: dict[str, Any]) -> None:
    verdict = conformance.check_body(row["body"], row["api"], profile=row.get("profile"))
    found = {violation.rule: violation.severity for violation in verdict}
    match row["verdict"]:
        case "accepted":
            assert verdict, str(verdict)
            assert row["rule"] not in found, str(verdict)
        case "risk":
            assert verdict, str(verdict)
            assert found.get(row.get("by", row["rule"])) == "risk", str(verdict)
        case _:
            rejecting = {violation.rule for violation in verdict if violation.severity == "reject"}
            assert row.get("by", row["rule"]) in rejecting, str(verdict)


def test_rows_name_rules() -> None:
    assert {row["rule"] for row in ROWS} <= load_rulebook().keys()

"""Bodies that recordings and reports decide: an accepted one is sent back as it came, a rejected one is repaired.

`tests/conformance/rule_examples.jsonl` has one body a line with its rule and verdict; a `risk` is accepted.
"""

import json
from pathlib import Path

import pytest

import segue

_ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "conformance/rule_examples.jsonl").read_text().splitlines()
]
# An empty part is dropped, or the type of an output corrected: there is nothing to report.
_NOTHING_CHANGED = ("GEM-10", "BED-08", "OAI-RESP-17")
# A risk, and repaired all the same: the error is reported for models that the rule does not name.
_REPAIRED_RISKS = ("GEM-02", "MIS-01", "BED-08")
# Accepted, and repaired all the same: an id that two calls share is ambiguous for everyone who reads the body.
_REPEATED_IDS = ("ANT-03", "BED-05")


def _name(row):
    return f"{row['rule']}-{row['api']}-{row['body'].get('model') or row['body'].get('modelId')}"


def _convert(row):
    return segue.convert(row["body"], source=row["api"], target=row["api"], profile=row.get("profile"))


@pytest.mark.parametrize("row", [row for row in _ROWS if row["verdict"] != "rejected"], ids=_name)
def test_accepted_body_is_unchanged(row):
    out = _convert(row)
    if row["verdict"] == "risk" and row["rule"] in _REPAIRED_RISKS and out.body != row["body"]:
        return
    if any(finding.kind == "id" for finding in out.report.findings):
        assert row["rule"] in _REPEATED_IDS
    else:
        assert out.body == row["body"], out.report.findings


@pytest.mark.parametrize("row", [row for row in _ROWS if row["verdict"] == "rejected"], ids=_name)
def test_rejected_body_is_repaired_and_reported(row):
    out = _convert(row)
    assert out.body != row["body"]
    assert out.report.findings or row["rule"] in _NOTHING_CHANGED
    assert segue.convert(out.body, source=row["api"], target=row["api"], profile=row.get("profile")).body == out.body
    verdict = segue.check(out.body, row["api"], profile=row.get("profile"))
    assert not [violation for violation in verdict if violation.severity == "reject" and violation.rule == row["rule"]]

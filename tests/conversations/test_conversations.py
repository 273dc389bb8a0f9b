"""Every conversation × every wire: converted, valid, accepted by the vendor's types, and equal to a reviewed snapshot.

`SEGUE_SNAPSHOTS=write` writes `snapshots/<case>.json`, one file per case with all wires; review the difference.
"""

from __future__ import annotations

import copy
import functools
import json
import os
from typing import Any

import pytest

import segue
from segue.conformance import apis, check_body
from tests.api_types import decode_messages
from tests.budget import sample
from tests.conversations import snapshot
from tests.conversations.build import Case
from tests.conversations.conversions import Conversions, convert
from tests.conversations.sdk import complaints
from tests.conversations.snapshot import Column
from tests.conversations.table import CASES
from tests.each import for_each
from tests.properties.checks import has_repeated_ids, model_of
from tests.properties.readers import read

WRITE = os.environ.get("SEGUE_SNAPSHOTS") == "write"
TARGETS = tuple(row.name for row in segue.formats() if getattr(row, "kind", "wire") != "text")

EVERY_TARGET = for_each("target", TARGETS)


def checked_model(case: Case, target: str) -> str | None:
    return case.models.get(target) or (model_of(case.body) if case.source == target else None)


@EVERY_TARGET
def test_is_accepted(made: Conversions, target: str) -> None:
    case = made.case
    before = copy.deepcopy(case.body)
    out = convert(case, target)
    assert case.body == before, "the input was changed"
    verdict = segue.check(out.body, target, model=checked_model(case, target))
    assert verdict, f"{verdict}\n{json.dumps(out.body, indent=1)}"
    if target == "kimi":
        assert "KIM-01" not in {violation.rule for violation in verdict}, str(verdict)


@EVERY_TARGET
def test_vendor_types_accept_it(made: Conversions, target: str) -> None:
    case, out = made.case, made.to(target).body
    # A same-API body may have errors of the SDK's types already; no new ones may be added.
    known = complaints(case.body, target) if case.source == target else ()
    assert set(complaints(out, target)) <= set(known)
    if case.source != target:
        # No field is sent that the API does not have.
        decode_messages(out, target)


POLICIES: tuple[dict[str, Any], ...] = (
    {"hosted": "text"},
    {"hosted": "drop"},
    {"reasoning": "text"},
    {"reasoning": "none"},
    {"orphans": "drop"},
    {"ids": "canonical"},
)


@EVERY_TARGET
def test_is_accepted_under_every_policy(made: Conversions, target: str) -> None:
    case, judged = made.case, {made.to(target).data}
    for policy in sample(POLICIES, 6, start=CASES.index(case) + TARGETS.index(target)):
        out = convert(case, target, **policy)
        # A policy that changes nothing gives a body that was checked already.
        if out.data not in judged:
            judged.add(out.data)
            verdict = segue.check(out.body, target, model=checked_model(case, target))
            assert verdict, f"{policy}: {verdict}"


@EVERY_TARGET
def test_a_second_conversion_changes_nothing(made: Conversions, target: str) -> None:
    out = made.to(target)
    again = segue.convert(out.body, source=target, target=target, model=made.case.models.get(target))
    assert json.dumps(again.body) == json.dumps(out.body)


# The checker only warns of these, but no output has an id of another form on Kimi, or a result before its call
# (design §4, §5).
NOT_HOME = {"KIM-01", "OAI-RESP-05", "BED-08", "BED-10"}


def same_api_model(case: Case) -> str | None:
    """The model of a body that has none: Gemini has it in the URL."""
    return None if model_of(case.body) else case.models.get(case.source)


# ANT-18: an error result holds text only, and at least some.
REJECTED = frozenset({"error_results", "error_result_with_a_picture"})


def is_valid_for_same_api(case: Case) -> bool:
    verdict = check_body(case.body, case.source, model=same_api_model(case)) if case.source in apis() else None
    if not verdict or case.name in REJECTED or any(violation.rule in NOT_HOME for violation in verdict):
        return False
    return not has_repeated_ids(read(case.body, case.source))


@pytest.mark.parametrize("case", [case for case in CASES if is_valid_for_same_api(case)], ids=lambda case: case.name)
def test_valid_body_is_unchanged_for_same_api(case: Case) -> None:
    out = segue.convert(case.body, source=case.source, target=case.source, model=same_api_model(case))
    expected = json.loads(json.dumps(case.body).replace("\\ud83d", "\ufffd").replace("\\ude00", "\ufffd"))
    assert json.dumps(out.body) == json.dumps(expected)


def column_of(made: Conversions, target: str) -> Column:
    out = made.to(target)
    return {"findings": [finding.kind for finding in out.report.findings], "body": out.body}


@functools.lru_cache(maxsize=1)
def stored(made: Conversions) -> dict[str, Column]:
    if WRITE:
        snapshot.write(made.case, {target: column_of(made, target) for target in TARGETS})
    return snapshot.read(made.case.name)


@EVERY_TARGET
def test_equals_its_snapshot(made: Conversions, target: str) -> None:
    columns = stored(made)
    assert target in columns, f"no snapshot of {made.case.name} for {target}: SEGUE_SNAPSHOTS=write, then review it"
    assert json.dumps(column_of(made, target), indent=1) == json.dumps(columns[target], indent=1)


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 70

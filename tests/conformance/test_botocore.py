"""Our Converse checker and botocore's service model.

On bodies of that model with things done to them, botocore and the judge refuse the same ones, but for booleans, which
botocore takes for numbers.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from segue import conformance
from segue.conformance.bedrock.request import parse_request
from segue.models import parse_model
from segue.specs.types import Mismatch, Spec, find_mismatches, load_types
from tests.budget import examples
from tests.conformance.bodies_bedrock import CASES
from tests.conformance.case import Case
from tests.conformance.spec_values import damaged_values

vendor = pytest.importorskip("tests.conformance.vendor_bedrock", reason="botocore is not installed")

REQUEST = load_types("bedrock")["ConverseRequest"]

# The rules that say what the model says; the others are about what a conversation is.
KNOWN = {"BED-01", "BED-02", "BED-08", "BED-09", "BED-10", "BED-11"}


def _names(form: Spec, seen: set[str]) -> set[str]:
    seen.update(form.members)
    for inner in (*form.members.values(), form.items):
        if inner is not None:
            _names(inner, seen)
    return seen


NAMES = (*sorted(_names(REQUEST, set())), "none", "type", "cache_control")


def _is_a_boolean_for_a_number(fault: Mismatch) -> bool:
    return fault.kind == "type" and isinstance(fault.value, bool) and fault.spec.kind in ("integer", "number")


@settings(examples(20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(body=damaged_values(REQUEST, NAMES))
def test_botocore_and_checker_reject_the_same(body: dict[str, Any]) -> None:
    refused = vendor.refusal(body)
    verdict = conformance.check_body(body, "bedrock")
    found = [fault for fault in find_mismatches(REQUEST, body) if not _is_a_boolean_for_a_number(fault)]
    if refused:
        rules = {violation.rule for violation in verdict if violation.severity == "reject"}
        assert rules & KNOWN, f"botocore refuses: {refused}\n{verdict}"
        assert found
    else:
        assert not found, f"botocore accepts\n{verdict}"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_valid_twins_pass_botocore(case: Case) -> None:
    assert not vendor.refusal(case.valid)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_deviations_from_the_model_are_rejected_by_botocore(case: Case) -> None:
    found = parse_request(case.violating, parse_model(case.model)).problems
    departs = [finding for findings in found.values() for finding in findings]
    assert bool(departs) is (bool(vendor.refusal(case.violating)) or case.about in STRICTER)


# Where the model has any document and the service wants an object.
STRICTER = {"input is a string", "input is null", "a schema that is none", "extra fields"}

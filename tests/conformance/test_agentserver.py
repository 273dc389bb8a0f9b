"""Our Foundry checker and the request validators of the vendor's server library.

What the validators refuse, the judge refuses. What it refuses beyond that is by rules of the service that the library
does not know, and by those of the model behind it (AZF-13).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from segue import conformance
from segue.conformance.azure_foundry.rules import PREFIXES
from segue.specs.types import find_mismatches, load_types
from tests.budget import examples
from tests.conformance.bodies_foundry import CASES, ENTROPY, TOOL, body, make_id
from tests.conformance.case import Case
from tests.conformance.spec_values import damaged_values

vendor = pytest.importorskip("tests.conformance.vendor_foundry", reason="the server library is not installed")

BODY = load_types("azure-foundry")["CreateResponse"]
ITEMS = load_types("azure-foundry")["Item"].variants
TOOLS = sorted(BODY.members["tools"].items.variants if BODY.members["tools"].items else ())

# Items of the service's own tools, workflows and consents: only in replies.
_SERVER_TOOLS = (
    *("a2a_preview", "azure_ai_search", "azure_function", "bing_custom_search_preview", "bing_grounding"),
    *("browser_automation_preview", "fabric_dataagent_preview", "openapi", "sharepoint_grounding_preview"),
)
OUTPUT_ONLY = frozenset(
    {
        *(f"{tool}_call" for tool in _SERVER_TOOLS),
        *(f"{tool}_call_output" for tool in _SERVER_TOOLS),
        *("oauth_consent_request", "structured_outputs", "workflow_action"),
    }
)

# The rules of which the library knows; of AZF-03 not that a status is never null, of AZF-07 not the ids of items.
KNOWN = {"AZF-03", "AZF-07", "AZF-08", "AZF-10", "AZF-11"}
# Lawful for the library, refused by the service (AZF-*) or by the model (OAI-RESP-*).
BEYOND = {"AZF-01", "AZF-02", "AZF-04", "AZF-05", "AZF-06"}


def _rejecting(given: dict[str, Any]) -> set[str]:
    return {
        violation.rule for violation in conformance.check_body(given, "azure-foundry") if violation.severity == "reject"
    }


def _compare(given: dict[str, Any]) -> None:
    refused = vendor.refusal(given)
    found = list(find_mismatches(BODY, given))
    rules = _rejecting(given)
    if refused:
        assert rules & KNOWN, f"the library refuses: {refused}"
    else:
        assert not found, f"the library accepts, the schema does not: {found}"
        beyond = {rule for rule in rules if not rule.startswith("OAI-RESP-")} - BEYOND
        assert beyond <= {"AZF-03"}, beyond
        assert not beyond or any(
            isinstance(item, dict) and item.get("status", "") is None for item in given.get("input", ())
        )


@settings(examples(20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(given=damaged_values(BODY, vendor.NAMES))
def test_library_rejections_are_checker_rejections(given: dict[str, Any]) -> None:
    _compare(given)


@pytest.mark.parametrize("item", sorted(ITEMS))
@settings(examples(30, items=len(ITEMS)), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_items_of_every_type(item: str, data: st.DataObject) -> None:
    entry = data.draw(damaged_values(ITEMS[item], vendor.NAMES))
    _compare({"input": [{"type": item, **entry}]})


@pytest.mark.parametrize("tool", TOOLS)
@settings(examples(15, items=len(TOOLS)), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_tools_of_every_type(tool: str, data: st.DataObject) -> None:
    each = BODY.members["tools"].items
    assert each is not None
    entry = data.draw(damaged_values(each.variants[tool], vendor.NAMES))
    _compare({"input": "q", "tools": [{"type": tool, **entry}]})


@pytest.mark.parametrize("entry", [5, "x", None, [], {}, {"type": "eq", "key": "a", "value": 1}])
def test_nested_filters_are_any_value(entry: Any) -> None:
    search = {"type": "file_search", "vector_store_ids": ["a"], "filters": {"type": "and", "filters": [entry]}}
    _compare({"input": "q", "tools": [search]})


@pytest.mark.parametrize("item", sorted(OUTPUT_ONLY))
def test_reply_only_content_is_rejected_by_both(item: str) -> None:
    given: dict[str, Any] = body({"type": item, "id": make_id("fc"), "call_id": "c", "arguments": "{}"})
    assert "Invalid discriminator" in vendor.refusal(given)
    assert "AZF-08" in _rejecting(given)


_TAILS = st.sampled_from(["", "1", ENTROPY, ENTROPY[2:], ENTROPY[1:], "_" * 50, "é" * 48, "a\n" * 24])


@examples(5)
@given(prefix=st.sampled_from([*sorted(PREFIXES), "resp", "", "_", "conv"]), tail=_TAILS, joined=st.booleans())
@example(prefix="caresp", tail=ENTROPY, joined=True)
def test_ids_are_those_of_the_library(prefix: str, tail: str, joined: bool) -> None:
    made = f"{prefix}_{tail}" if joined else f"{prefix}{tail}"
    rules = _rejecting({"input": "q", "previous_response_id": made})
    assert ("AZF-07" in rules) is (bool(made) and not vendor.is_id(made, "caresp"))
    risks = {found.rule for found in conformance.check_body(body({**TOOL, "id": made}), "azure-foundry")}
    assert ("AZF-07" in risks) is (bool(made) and not vendor.is_id(made, *PREFIXES))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_valid_twins_pass_the_library(case: Case) -> None:
    assert not vendor.refusal(case.valid)

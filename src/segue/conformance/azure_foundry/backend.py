"""The rules of the model behind Foundry (AZF-13): those of Responses, under their own numbers.

Values that the service's schema already rejects are not reported again. Outputs for calls of MCP servers have their own
number here, AZF-05.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.azure_foundry.request import FoundryRequest
from segue.conformance.openai_responses import RULE_SET as RESPONSES
from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.rule import Problem, Rule

# Checks of Responses that do not apply here, and why.
OMITTED_CHECKS: Mapping[str, str] = {
    "items_known": "AZF-08 has a list of its own",
    "compaction_last": "there is no compaction_trigger (AZF-08)",
    "other_items_valid": "AZF-03 has a schema of its own",
    "reasoning_valid": "AZF-03 has a schema of its own",
    "output_items_valid": "AZF-03 has a schema of its own",
    "call_items_valid": "AZF-03 has a schema of its own",
    "hosted_items_valid": "AZF-03 has a schema of its own",
    "approval_items_valid": "AZF-03 has a schema of its own",
    "types_valid": "AZF-03 has a schema of its own",
    "pairs_not_interrupted": "about other servers of the Responses API",
}


def _is_rejected_by_schema(path: str, rejected: frozenset[str]) -> bool:
    """Return whether the schema rejects the value at this path, at a path above it, or its type."""
    if not rejected or path in rejected or f"{path}.type" in rejected:
        return bool(rejected)
    return any(mark in ".[" and path[:index] in rejected for index, mark in enumerate(path))


def _adapt_rule(rule: Rule[ResponsesRequest]) -> Rule[FoundryRequest]:
    def check(request: FoundryRequest) -> Iterator[Problem]:
        for problem in rule.check(request.responses):
            # Foundry has more tool types than Responses; the schema checks them.
            is_foundry_type = rule.name == "tools_valid" and problem.path.endswith(".type")
            if not is_foundry_type and not _is_rejected_by_schema(problem.path, request.rejected_paths):
                yield problem

    number = "AZF-05" if rule.name == "no_outputs_for_mcp_calls" else rule.number
    return Rule(number, rule.name, rule.description, rule.severity, rule.applies_to, check)


RULES = tuple(_adapt_rule(rule) for rule in RESPONSES.rules if rule.name not in OMITTED_CHECKS)

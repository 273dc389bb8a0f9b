"""What the model behind Foundry refuses (AZF-13): the rules of Responses, under their own numbers.

What the service's schema refuses already is not told twice. Answers to calls of MCP servers have a number of their own
here, AZF-05.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.azure_foundry.request import FoundryRequest
from segue.conformance.openai_responses import BOOK as RESPONSES
from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.rule import Finding, Rule

__all__ = ["INSTEAD", "RULES"]

# Checks of Responses that do not hold here, and why.
INSTEAD: Mapping[str, str] = {
    "items_known": "AZF-08 has a list of its own",
    "compaction_last": "there is no compaction_trigger (AZF-08)",
    "others_shaped": "AZF-03 has a schema of its own",
    "reasoning_shaped": "AZF-03 has a schema of its own",
    "outputs_shaped": "AZF-03 has a schema of its own",
    "calls_shaped": "AZF-03 has a schema of its own",
    "hosted_shaped": "AZF-03 has a schema of its own",
    "approvals_shaped": "AZF-03 has a schema of its own",
    "pairs_not_torn": "about other servers that speak Responses",
}


def _is_refused(path: str, refused: frozenset[str]) -> bool:
    """Whether the schema speaks about this place, about one around it, or does not know what it is."""
    if not refused or path in refused or f"{path}.type" in refused:
        return bool(refused)
    return any(mark in ".[" and path[:index] in refused for index, mark in enumerate(path))


def _behind_schema(rule: Rule[ResponsesRequest]) -> Rule[FoundryRequest]:
    def check(request: FoundryRequest) -> Iterator[Finding]:
        for finding in rule.check(request.responses):
            # Types of tools are more than those of Responses; the schema knows them.
            foreign = rule.name == "tools_formed" and finding.path.endswith(".type")
            if not foreign and not _is_refused(finding.path, request.refused):
                yield finding

    number = "AZF-05" if rule.name == "mcp_answers_itself" else rule.number
    return Rule(number, rule.name, rule.says, rule.severity, rule.holds, check)


RULES = tuple(_behind_schema(rule) for rule in RESPONSES.rules if rule.name not in INSTEAD)

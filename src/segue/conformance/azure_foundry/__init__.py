"""The rules of the agents service of Azure AI Foundry (AZF-*) that can be checked on a request body.

Every rulebook number is either a check in a module of this package or a row of `NOT_CHECKABLE`, never both. The model
behind the service has the rules of Responses, reported under their own numbers (OAI-RESP-*).
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.azure_foundry import backend, rules
from segue.conformance.azure_foundry.request import FoundryRequest, parse_request
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {
    "AZF-09": "permits items without id or call_id; AZF-08 covers item types that are only in replies",
    "AZF-12": "about reply streams; a request body holds no events",
    "AZF-13": "about what the model behind the service checks; reported under OAI-RESP-01, 04, 05 and 25",
}

RULE_SET: RuleSet[FoundryRequest] = RuleSet(
    "azure-foundry", parse_request, (*rules.table, *backend.RULES), NOT_CHECKABLE
)

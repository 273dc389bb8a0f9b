"""The rules of Amazon Bedrock Converse (BED-*) that can be checked on a request body, and those of the served model.

Every rulebook number is either a check in a module of this package or a row of `NOT_CHECKABLE`, never both. The own
rules of Claude and Mistral are reported under their own numbers (ANT-*, MIS-01).
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.bedrock import calls, claude, content
from segue.conformance.bedrock.request import BedrockRequest, parse_request
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {"BED-12": "about reply streams; a request body holds no deltas"}

RULE_SET: RuleSet[BedrockRequest] = RuleSet(
    "bedrock", parse_request, (*calls.table, *content.table, *claude.RULES), NOT_CHECKABLE, model_key="modelId"
)

"""The rules of OpenAI Responses (OAI-RESP-*) that can be checked on a request body.

Every rulebook number is either a check in a module of this package or a row of `NOT_CHECKABLE`, never both. The
rulebook has no number for the members of an item, so they are reported under the rule about its type: messages and
settings 14, reasoning 03, outputs 16, calls 17, hosted tools 20, approvals 21.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.openai_responses import content, ids, items, pairing, reasoning, tools, types
from segue.conformance.openai_responses.request import ResponsesRequest, parse_request
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {
    "OAI-RESP-12": "newer wording of OAI-RESP-11; reported there",
    "OAI-RESP-22": "about reply streams; a request body holds no deltas",
    "OAI-RESP-23": "about replies; a request body holds no response status",
    "OAI-RESP-29": "about /responses/compact, which has a body of its own",
}

RULE_SET: RuleSet[ResponsesRequest] = RuleSet(
    "openai-responses",
    parse_request,
    (*items.table, *ids.table, *pairing.table, *reasoning.table, *content.table, *tools.table, *types.table),
    NOT_CHECKABLE,
)

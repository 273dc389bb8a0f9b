"""The rules of Anthropic Messages (ANT-*) that can be checked on a request body.

Every rulebook number is either a check in a module of this package or a row of `NOT_CHECKABLE`, never both.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.anthropic import compaction, content, pairing, thinking, tools, types
from segue.conformance.anthropic.request import AnthropicRequest, parse_request
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {
    "ANT-06": "older wording of ANT-04 and ANT-05; reported under those numbers",
    "ANT-17": "permits empty, blank or absent content of a tool_result",
    "ANT-21": "permits the same role twice; consecutive messages of one role are merged before the checks",
    "ANT-28": "a body does not show the prefix that a thinking block was created with; ANT-26 checks the signature",
    "ANT-29": "a body does not show which model or account created a thinking block",
    "ANT-37": "about reply streams; a request body holds no deltas",
    "ANT-38": "about reply streams; a lost signature shows as ANT-26",
    "ANT-39": "about replies; a request body holds no stop_reason",
    "ANT-40": "text after a tool_use is allowed; its results are reported under ANT-04 and ANT-05",
    "ANT-50": "the number of tools that a compaction block can record is not published",
    "ANT-51": "an overload of the server, not a fault of the body",
    "ANT-53": "about replies and reply streams",
}

RULE_SET: RuleSet[AnthropicRequest] = RuleSet(
    "anthropic",
    parse_request,
    (*pairing.table, *content.table, *thinking.table, *compaction.table, *tools.table, *types.table),
    NOT_CHECKABLE,
)

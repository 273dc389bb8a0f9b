"""The rules of `acme`: those of Chat Completions about calls and results."""

from __future__ import annotations

from segue.conformance import openai_chat
from segue.conformance.chat_request import ChatRequest, parse_request
from segue.conformance.rule import RuleSet

RULE_SET: RuleSet[ChatRequest] = RuleSet(
    "acme",
    parse_request,
    tuple(openai_chat.adopt_rules({"calls_have_results": "reject", "results_match_calls": "reject"})),
    {},
)

"""The rules of Mistral's chat API (MIS-*), and the Chat Completions rules that apply there too.

The hosted API is the reference. Some rules depend on the tokenizer version, which the date in a model name gives; names
without a date are checked as the newest models: v11 and later, ids of nine characters. Every MIS number is either a
check here or a row of `NOT_CHECKABLE`.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.chat_request import ChatRequest, parse_request
from segue.conformance.mistral import calls, content, keys, order, types
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {
    "MIS-16": "about reply streams; a request may repeat an id in a later turn (MIS-06)"
}

RULE_SET: RuleSet[ChatRequest] = RuleSet(
    "mistral", parse_request, (*calls.table, *order.table, *content.table, *keys.table, *types.table), NOT_CHECKABLE
)

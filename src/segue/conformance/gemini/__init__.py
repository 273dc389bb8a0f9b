"""The rules of Gemini generateContent (GEM-*) that can be checked on a request body.

Every rulebook number is either a check in a module of this package or a row of `NOT_CHECKABLE`, never both. Values that
the JSON parser rejects have no number of their own: they are reported under GEM-14, in declarations under GEM-23.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.gemini import generation, order, parts, thinking, tools
from segue.conformance.gemini.request import GeminiRequest, parse_request
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {
    "GEM-16": "Vertex's wording of GEM-15; reported there",
    "GEM-17": "permits the documented dummy signatures, which GEM-15 and GEM-18 accept",
    "GEM-19": "a body does not show which endpoint created a signature, nor to which it is sent",
    "GEM-20": "permits missing signatures before Gemini 3; GEM-15 applies to newer models only",
    "GEM-22": "permits thought parts to be sent back or omitted",
    "GEM-25": "about reply streams; a request body holds no chunks",
    "GEM-26": "about replies; a request body holds no finishReason",
    "GEM-29": "about the OpenAI-compatible endpoint, whose bodies are Chat Completions",
}

RULE_SET: RuleSet[GeminiRequest] = RuleSet(
    "gemini",
    parse_request,
    (*order.table, *parts.table, *thinking.table, *tools.table, *generation.table),
    NOT_CHECKABLE,
)

"""The rules of the server profile `acme-box`: those of Chat Completions without OpenAI's own limits."""

from __future__ import annotations

from segue.conformance.chat_request import ChatRequest
from segue.conformance.profiles.profile import OPENAI_LIMITS, OPENAI_ONLY, Profile
from segue.conformance.rule import RuleTable

_own: RuleTable[ChatRequest] = RuleTable()
PROFILES = (Profile("acme-box", "Acme Box", _own, OPENAI_ONLY, OPENAI_LIMITS),)

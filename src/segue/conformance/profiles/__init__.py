"""Server profiles: servers of the Chat Completions API with rules of their own (COMP-*).

A profile is the rule set of openai-chat without the checks that the server does not make, with a lower severity for
those it ignores, and with its own checks. Every COMP number is either a check of a profile or a row of `NOT_CHECKABLE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from segue.conformance import openai_chat
from segue.conformance.chat_request import ChatRequest, parse_request
from segue.conformance.profiles import hosted, local
from segue.conformance.rule import Rule, RuleSet, Table

__all__ = ["NOT_CHECKABLE", "PROFILES", "RULE_SETS", "Profile"]

NOT_CHECKABLE: Mapping[str, str] = {
    "COMP-03": "about the calls of replies, not about replayed ones",
    "COMP-06": "about reply streams; a request body holds no deltas",
    "COMP-13": "about replies: native calls without id and type; in requests both are optional",
    "COMP-20": "about the start options of the server",
    "COMP-24": "about reply streams; a request body holds no deltas",
}


class Profile(msgspec.Struct, frozen=True):
    """`omitted` and `downgraded` name checks of openai-chat: not checked, and reported as a risk."""

    name: str
    server: str
    own: Table[ChatRequest]
    omitted: frozenset[str] = frozenset()
    downgraded: frozenset[str] = frozenset()

    def rules(self) -> Iterator[Rule[ChatRequest]]:
        yield from self.own
        for rule in openai_chat.RULE_SET.rules:
            if rule.name not in self.omitted:
                yield rule.with_severity("risk") if rule.name in self.downgraded else rule


# Checks of OpenAI's own limits, and of reasoning effort with function tools.
_OPENAI_ONLY = frozenset({"no_effort_with_functions"})
_OPENAI_LIMITS = frozenset({"tools_within_limits"})
_KEY_CHECKS = frozenset({"no_unknown_keys", "no_error_flag"})
_PAIRING_CHECKS = frozenset(
    {"results_match_calls", "one_result_per_call", "ids_unique_in_turn", "no_system_among_results"}
)
# Servers with a chat template compare no ids: unpaired calls and results reach the model unchanged.
_TEMPLATE_SERVER_CHECKS = _OPENAI_LIMITS | _PAIRING_CHECKS | {"calls_have_results", "names_valid", "results_are_text"}
_SELF_HOSTED = _OPENAI_ONLY | {"call_id_short", "arguments_are_strings", "no_unknown_keys"}

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("cerebras", "Cerebras Inference", hosted.CEREBRAS, _OPENAI_ONLY | _KEY_CHECKS, _OPENAI_LIMITS),
        Profile("fireworks", "Fireworks AI", hosted.FIREWORKS, _OPENAI_ONLY | _KEY_CHECKS, _OPENAI_LIMITS),
        Profile("groq", "GroqCloud", hosted.GROQ, _OPENAI_ONLY | _KEY_CHECKS, _OPENAI_LIMITS),
        Profile(
            "llama.cpp",
            "llama-server",
            local.LLAMA_CPP,
            _SELF_HOSTED | {"assistant_has_content", "others_have_content"},
            _TEMPLATE_SERVER_CHECKS | {"call_type_known"},
        ),
        Profile("minimax", "MiniMax", hosted.MINIMAX, _OPENAI_ONLY | _PAIRING_CHECKS, _OPENAI_LIMITS),
        Profile(
            "ollama",
            "Ollama, /api/chat and /v1",
            local.OLLAMA,
            _SELF_HOSTED | {"call_type_known"},
            _TEMPLATE_SERVER_CHECKS | {"others_have_content", "assistant_has_content"},
        ),
        Profile("openrouter", "OpenRouter", hosted.OPENROUTER, _OPENAI_ONLY | {"no_unknown_keys"}, _OPENAI_LIMITS),
        Profile(
            "vllm",
            "vLLM",
            local.VLLM,
            _SELF_HOSTED | {"call_type_known", "calls_not_empty"},
            _TEMPLATE_SERVER_CHECKS | {"others_have_content", "assistant_has_content"},
        ),
        Profile(
            "xai",
            "xAI",
            hosted.XAI,
            _OPENAI_ONLY | {"assistant_has_content", "others_have_content"},
            _OPENAI_LIMITS,
        ),
        Profile("z.ai", "Z.ai", hosted.ZAI, _OPENAI_ONLY | _PAIRING_CHECKS | {"calls_have_results"}, _OPENAI_LIMITS),
    )
}

RULE_SETS: Mapping[str, RuleSet[ChatRequest]] = {
    name: RuleSet("openai-chat", parse_request, tuple(profile.rules()), NOT_CHECKABLE)
    for name, profile in PROFILES.items()
}

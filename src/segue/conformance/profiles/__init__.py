"""Server profiles: servers of the Chat Completions API with rules of their own (COMP-*).

A profile is the rule set of openai-chat without the checks that the server does not make, with a lower severity for
those it ignores, and with its own checks. Every COMP number is either a check of a profile or a row of `NOT_CHECKABLE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from segue.conformance import openai_chat
from segue.conformance.chat import ChatRequest, read
from segue.conformance.profiles import hosted, local
from segue.conformance.rule import Book, Rule, Table

__all__ = ["BOOKS", "PROFILES", "UNSHOWABLE", "Profile"]

UNSHOWABLE: Mapping[str, str] = {
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
    without: frozenset[str] = frozenset()
    lowered: frozenset[str] = frozenset()

    def rules(self) -> Iterator[Rule[ChatRequest]]:
        yield from self.own
        for rule in openai_chat.BOOK.rules:
            if rule.name not in self.without:
                yield rule.at("risk") if rule.name in self.lowered else rule


# Checks of OpenAI's own limits, and of reasoning effort with function tools.
_OPENAI_ALONE = frozenset({"no_effort_with_functions"})
_OPENAI_LIMITS = frozenset({"tools_within_limits"})
_KEYS = frozenset({"no_unknown_keys", "no_error_flag"})
_PAIRS = frozenset({"results_match_calls", "one_result_per_call", "ids_unique_in_turn", "no_system_among_results"})
# Servers with a chat template compare no ids: unpaired calls and results reach the model unchanged.
_UNPAIRED = _OPENAI_LIMITS | _PAIRS | {"calls_have_results", "names_valid", "results_are_text"}
_SELF_HOSTED = _OPENAI_ALONE | {"call_id_short", "arguments_are_strings", "no_unknown_keys"}

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("cerebras", "Cerebras Inference", hosted.CEREBRAS, _OPENAI_ALONE | _KEYS, _OPENAI_LIMITS),
        Profile("fireworks", "Fireworks AI", hosted.FIREWORKS, _OPENAI_ALONE | _KEYS, _OPENAI_LIMITS),
        Profile("groq", "GroqCloud", hosted.GROQ, _OPENAI_ALONE | _KEYS, _OPENAI_LIMITS),
        Profile(
            "llama.cpp",
            "llama-server",
            local.LLAMA_CPP,
            _SELF_HOSTED | {"assistant_has_content", "others_have_content"},
            _UNPAIRED | {"call_type_known"},
        ),
        Profile("minimax", "MiniMax", hosted.MINIMAX, _OPENAI_ALONE | _PAIRS, _OPENAI_LIMITS),
        Profile(
            "ollama",
            "Ollama, /api/chat and /v1",
            local.OLLAMA,
            _SELF_HOSTED | {"call_type_known"},
            _UNPAIRED | {"others_have_content", "assistant_has_content"},
        ),
        Profile("openrouter", "OpenRouter", hosted.OPENROUTER, _OPENAI_ALONE | {"no_unknown_keys"}, _OPENAI_LIMITS),
        Profile(
            "vllm",
            "vLLM",
            local.VLLM,
            _SELF_HOSTED | {"call_type_known", "calls_not_empty"},
            _UNPAIRED | {"others_have_content", "assistant_has_content"},
        ),
        Profile(
            "xai",
            "xAI",
            hosted.XAI,
            _OPENAI_ALONE | {"assistant_has_content", "others_have_content"},
            _OPENAI_LIMITS,
        ),
        Profile("z.ai", "Z.ai", hosted.ZAI, _OPENAI_ALONE | _PAIRS | {"calls_have_results"}, _OPENAI_LIMITS),
    )
}

BOOKS: Mapping[str, Book[ChatRequest]] = {
    name: Book("openai-chat", read, tuple(profile.rules()), UNSHOWABLE) for name, profile in PROFILES.items()
}

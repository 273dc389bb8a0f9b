"""Servers that speak Chat Completions with rules of their own (COMP-*): each is the book of openai-chat, changed.

A profile leaves out the checks that the server does not make or makes its own way, lowers those whose breach it takes
in silence, and adds its own. Every COMP number is either a check of a profile or a row of `UNSHOWABLE`.
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
    "COMP-03": "about the calls that the model makes, not those that are replayed",
    "COMP-06": "about reply streams; a request body holds no deltas",
    "COMP-13": "about replies: native calls without id and type; on requests it lets them be left out",
    "COMP-20": "about how the server was started",
    "COMP-24": "about reply streams; a request body holds no deltas",
}


class Profile(msgspec.Struct, frozen=True):
    """`without` and `lowered` name checks of openai-chat: left out, and made a risk."""

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


# OpenAI's own limits, and its models' own quarrel with effort beside tools.
_OPENAI_ALONE = frozenset({"no_effort_with_functions"})
_OPENAI_LIMITS = frozenset({"tools_within_limits"})
_KEYS = frozenset({"no_foreign_keys", "no_error_flag"})
_PAIRS = frozenset({"results_asked_for", "one_result_a_call", "ids_unique_in_turn", "no_system_inside_run"})
# Servers that put a template before the model compare no ids: what does not pair is told to the model all the same.
_UNPAIRED = _OPENAI_LIMITS | _PAIRS | {"calls_answered", "names_lawful", "results_are_text"}
_SELF_HOSTED = _OPENAI_ALONE | {"call_id_short", "arguments_are_text", "no_foreign_keys"}

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
            _SELF_HOSTED | {"assistant_says_something", "others_have_content"},
            _UNPAIRED | {"call_type_known"},
        ),
        Profile("minimax", "MiniMax", hosted.MINIMAX, _OPENAI_ALONE | _PAIRS, _OPENAI_LIMITS),
        Profile(
            "ollama",
            "Ollama, /api/chat and /v1",
            local.OLLAMA,
            _SELF_HOSTED | {"call_type_known"},
            _UNPAIRED | {"others_have_content", "assistant_says_something"},
        ),
        Profile("openrouter", "OpenRouter", hosted.OPENROUTER, _OPENAI_ALONE | {"no_foreign_keys"}, _OPENAI_LIMITS),
        Profile(
            "vllm",
            "vLLM",
            local.VLLM,
            _SELF_HOSTED | {"call_type_known", "calls_not_empty"},
            _UNPAIRED | {"others_have_content", "assistant_says_something"},
        ),
        Profile(
            "xai",
            "xAI",
            hosted.XAI,
            _OPENAI_ALONE | {"assistant_says_something", "others_have_content"},
            _OPENAI_LIMITS,
        ),
        Profile("z.ai", "Z.ai", hosted.ZAI, _OPENAI_ALONE | _PAIRS | {"calls_answered"}, _OPENAI_LIMITS),
    )
}

BOOKS: Mapping[str, Book[ChatRequest]] = {
    name: Book("openai-chat", read, tuple(profile.rules()), UNSHOWABLE) for name, profile in PROFILES.items()
}

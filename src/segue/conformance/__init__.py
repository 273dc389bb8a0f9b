"""The judge: would this provider take this finished request body, by the numbers of the rulebook.

A judge is not a party: nothing here knows how bodies are made. Any JSON value gives a `Verdict` or an `InputError`,
in time linear in its size, and is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance import (
    anthropic,
    azure_foundry,
    bedrock,
    deepseek,
    gemini,
    kimi,
    mistral,
    openai_chat,
    openai_responses,
    profiles,
    qwen,
)
from segue.conformance.anthropic.request import AnthropicRequest
from segue.conformance.azure_foundry.request import FoundryRequest
from segue.conformance.bedrock.request import BedrockRequest
from segue.conformance.chat import ChatRequest
from segue.conformance.gemini.request import GeminiRequest
from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.rule import Book, Finding, Holds, Rule, Severity, Verdict, Violation
from segue.conformance.values import is_object, kind, listed, quoted
from segue.errors import InputError, checked_profile

__all__ = [
    "Finding",
    "Holds",
    "Rule",
    "Severity",
    "Verdict",
    "Violation",
    "apis",
    "judge",
    "profile_names",
    "rules",
    "unshowable",
]

AnyBook = (
    Book[AnthropicRequest]
    | Book[BedrockRequest]
    | Book[ChatRequest]
    | Book[FoundryRequest]
    | Book[GeminiRequest]
    | Book[ResponsesRequest]
)
AnyRule = (
    Rule[AnthropicRequest]
    | Rule[BedrockRequest]
    | Rule[ChatRequest]
    | Rule[FoundryRequest]
    | Rule[GeminiRequest]
    | Rule[ResponsesRequest]
)

_BOOKS: Mapping[str, AnyBook] = {
    book.api: book
    for book in (
        anthropic.BOOK,
        azure_foundry.BOOK,
        bedrock.BOOK,
        deepseek.BOOK,
        gemini.BOOK,
        kimi.BOOK,
        mistral.BOOK,
        openai_chat.BOOK,
        openai_responses.BOOK,
        qwen.BOOK,
    )
}


def apis() -> tuple[str, ...]:
    """The APIs that can be judged, sorted."""
    return tuple(sorted(_BOOKS))


def profile_names() -> tuple[str, ...]:
    """The servers that `openai-chat` can be judged for, sorted."""
    return tuple(sorted(profiles.BOOKS))


def judge(body: Mapping[str, object], api: str, *, model: str | None = None, profile: str | None = None) -> Verdict:
    """Judges a body; `model` wins over the body's own, and rules follow its version.

    `profile` names a server that speaks `openai-chat` with rules of its own. Raises `InputError` where the body is not
    a request of this API at all.
    """
    book = _book(api, profile)
    if not is_object(body):
        raise InputError(f"a request body is an object, got {kind(body)}")
    return book.judge(body, model)


def rules(api: str, profile: str | None = None) -> tuple[AnyRule, ...]:
    """The table of checks: number, name, what it says, severity, and the models it holds for."""
    return _book(api, profile).rules


def unshowable(api: str, profile: str | None = None) -> Mapping[str, str]:
    """Rulebook numbers without a check, each with the reason."""
    return _book(api, profile).unshowable


def _book(api: str, profile: str | None = None) -> AnyBook:
    if api not in _BOOKS:
        raise InputError(f"no rules for the API {quoted(api)}; known are {listed(apis())}", path="api")
    checked_profile(profile, api, profiles.BOOKS, on=openai_chat.BOOK.api)
    return _BOOKS[api] if profile is None else profiles.BOOKS[profile]

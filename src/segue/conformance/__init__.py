"""The conformance checker: predicts from the rulebook whether a provider accepts a finished request body.

It is independent of the code that renders bodies. Any JSON value gives a `Verdict` or an `InputError` in time linear in
its size, and is never changed.
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
    rule_set.api: rule_set
    for rule_set in (
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
    """Returns the APIs that have a rule set, sorted."""
    return tuple(sorted(_BOOKS))


def profile_names() -> tuple[str, ...]:
    """Returns the server profiles of `openai-chat`, sorted."""
    return tuple(sorted(profiles.BOOKS))


def judge(body: Mapping[str, object], api: str, *, model: str | None = None, profile: str | None = None) -> Verdict:
    """Checks a body against the rules of its API and model; `model` overrides the body's own.

    `profile` names a server of the `openai-chat` API with rules of its own. Raises `InputError` if the body is not a
    request of this API.
    """
    rule_set = _book(api, profile)
    if not is_object(body):
        raise InputError(f"a request body must be an object, got {kind(body)}")
    return rule_set.judge(body, model)


def rules(api: str, profile: str | None = None) -> tuple[AnyRule, ...]:
    """Returns the checks of an API with number, name, description, severity and the models they apply to."""
    return _book(api, profile).rules


def unshowable(api: str, profile: str | None = None) -> Mapping[str, str]:
    """Returns the rulebook numbers without a check, each with the reason."""
    return _book(api, profile).unshowable


def _book(api: str, profile: str | None = None) -> AnyBook:
    if api not in _BOOKS:
        raise InputError(f"unknown API {quoted(api)}; known APIs: {listed(apis())}", path="api")
    checked_profile(profile, api, profiles.BOOKS, on=openai_chat.BOOK.api)
    return _BOOKS[api] if profile is None else profiles.BOOKS[profile]

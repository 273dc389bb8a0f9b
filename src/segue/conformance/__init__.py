"""The judge: would this provider take this finished request body, by the numbers of the rulebook.

A judge is not a party: nothing here knows how bodies are made. Any JSON value gives a `Verdict` or an `InputError`,
in time linear in its size, and is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance import anthropic, gemini, kimi, openai_chat, openai_responses
from segue.conformance.anthropic.request import AnthropicRequest
from segue.conformance.chat import ChatRequest
from segue.conformance.gemini.request import GeminiRequest
from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.rule import Book, Finding, Holds, Rule, Severity, Verdict, Violation
from segue.conformance.values import is_object, kind, listed, quoted
from segue.errors import InputError

__all__ = ["Finding", "Holds", "Rule", "Severity", "Verdict", "Violation", "apis", "judge", "rules", "unshowable"]

AnyBook = Book[AnthropicRequest] | Book[ChatRequest] | Book[GeminiRequest] | Book[ResponsesRequest]
AnyRule = Rule[AnthropicRequest] | Rule[ChatRequest] | Rule[GeminiRequest] | Rule[ResponsesRequest]

_BOOKS: Mapping[str, AnyBook] = {
    book.api: book for book in (anthropic.BOOK, gemini.BOOK, kimi.BOOK, openai_chat.BOOK, openai_responses.BOOK)
}


def apis() -> tuple[str, ...]:
    """The APIs that can be judged, sorted."""
    return tuple(sorted(_BOOKS))


def judge(body: Mapping[str, object], api: str, *, model: str | None = None) -> Verdict:
    """Judges a body; `model` wins over the body's own, and rules follow its version.

    Raises `InputError` where the body is not a request of this API at all.
    """
    book = _book(api)
    if not is_object(body):
        raise InputError(f"a request body is an object, got {kind(body)}")
    return book.judge(body, model)


def rules(api: str) -> tuple[AnyRule, ...]:
    """The table of checks: number, name, what it says, severity, and the models it holds for."""
    return _book(api).rules


def unshowable(api: str) -> Mapping[str, str]:
    """Rulebook numbers without a check, each with the reason."""
    return _book(api).unshowable


def _book(api: str) -> AnyBook:
    if api not in _BOOKS:
        raise InputError(f"no rules for the API {quoted(api)}; known are {listed(apis())}", path="api")
    return _BOOKS[api]

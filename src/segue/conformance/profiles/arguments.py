"""The check of the arguments of replayed calls that several server profiles share."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.chat import Call, ChatRequest
from segue.conformance.rule import Finding
from segue.conformance.values import kind_of_json, quoted

__all__ = ["function_calls", "not_json"]


def function_calls(request: ChatRequest) -> Iterator[tuple[Call, object]]:
    """Yields the calls of function tools with their arguments."""
    for call in request.calls:
        if call.is_function and call.function:
            yield call, call.function.get("arguments")


def not_json(request: ChatRequest, told: str, *, empty: bool) -> Iterator[Finding]:
    """Reports argument strings that are not JSON; `allow_empty` accepts empty ones."""
    for call, arguments in function_calls(request):
        if isinstance(arguments, str) and not (empty and not arguments) and not kind_of_json(arguments):
            yield Finding(f"{call.path}.function.arguments", f"{told}: {quoted(arguments)}")

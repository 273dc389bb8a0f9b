"""A check that several servers share: the arguments of replayed calls are valid JSON."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.chat_request import Call, ChatRequest
from segue.conformance.rule import Problem
from segue.conformance.values import json_type_name, quote


def function_calls(request: ChatRequest) -> Iterator[tuple[Call, object]]:
    """Yield the calls of function tools with their arguments."""
    for call in request.calls:
        if call.is_function and call.function:
            yield call, call.function.get("arguments")


def check_json_arguments(request: ChatRequest, reason: str, *, allow_empty: bool) -> Iterator[Problem]:
    """Report argument strings that are not JSON; `allow_empty` accepts empty ones."""
    for call, arguments in function_calls(request):
        if isinstance(arguments, str) and not (allow_empty and not arguments) and not json_type_name(arguments):
            yield Problem(f"{call.path}.function.arguments", f"{reason}: {quote(arguments)}")

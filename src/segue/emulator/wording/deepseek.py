"""The error texts of DeepSeek.

Type errors come from the JSON deserializer, with Rust's names of types; the code is always `invalid_request_error`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.emulator.wording.openai_style import (
    NAME,
    Want,
    found_in,
    index_of,
    is_missing,
    kind_of,
    said,
    schema_error,
)
from segue.wire.base import ApiError

__all__ = ["WORDS"]

_CODE = "invalid_request_error"
_UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "(insufficient tool messages following tool_calls message)"
)
_NEIGHBOURS = (
    "deepseek-reasoner does not support successive user or assistant messages (messages[{}] and messages[{}] in your "
    "input). You should interleave the user/assistant messages in the message sequence."
)
_LAST = (
    "The last message of deepseek-reasoner must be a user message, or an assistant message with prefix mode on (refer "
    "to https://api-docs.deepseek.com/guides/chat_prefix_completion)."
)
_THOUGHT = (
    "Missing `reasoning_content` field in the assistant message at message index {}. For more information, please "
    "refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
)
_KINDS = {"an array": "sequence", "an object": "map", "an integer": "integer", "a decimal number": "floating point"}
_SPOKEN = {**_KINDS, "a string": "string", "a boolean": "boolean", "null": "null"}


def _told(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _asked(make: Callable[[Fault], str]) -> Word:
    return lambda fault: _told(make(fault))


def _same(message: str) -> Word:
    return lambda _: _told(message)


def _unread(fault: Fault, what: str) -> ApiError:
    """Builds an error of the JSON deserializer, at the end of the body."""
    first = fault.steps[0] if fault.steps else "messages"
    place = f"{first}[{index_of(fault)}]" if len(fault.steps) > 1 else str(first)
    try:
        column = len(json.dumps(fault.body, separators=(",", ":"), ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        column = 1
    message = f"Failed to deserialize the JSON body into the target type: {place}: {what} at line 1 column {column}"
    return _told(message)


def _typed(fault: Fault, expected: str = "a string") -> ApiError:
    if is_missing(fault):
        return _unread(fault, f"missing field `{fault.steps[-1] if fault.steps else ''}`")
    return _unread(fault, f"invalid type: {_SPOKEN[kind_of(fault.value)]}, expected {expected}")


def _bounds(want: Want, expected: str = "a string") -> Word:
    """Builds OpenAI's text for lengths and patterns, and the deserializer's for types."""

    def word(fault: Fault) -> ApiError:
        if is_missing(fault) or kind_of(fault.value) != want.kind:
            return _typed(fault, expected)
        return replace(schema_error(fault, want), code=_CODE, param=None)

    return word


def _unasked(fault: Fault) -> ApiError:
    if fault.steps[-1:] == ("tool_call_id",) and not isinstance(fault.value, str):
        return _typed(fault)
    return _told("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'")


def _content(fault: Fault) -> ApiError:
    message = fault.at("messages", index_of(fault))
    if found_in(message, "role") == "assistant":
        return _told("Invalid assistant message: content or tool_calls must be set")
    if is_missing(fault):
        return _typed(fault)
    return _unread(fault, "data did not match any variant of untagged enum ChatCompletionRequestContent")


def _part(fault: Fault) -> ApiError:
    return _unread(fault, f"unknown variant `{said(found_in(fault.value, 'type'))}`, expected `text`")


def _sort(fault: Fault) -> ApiError:
    if fault.steps[-1:] == ("role",):
        return _unread(
            fault, f"unknown variant `{said(fault.value)}`, expected one of `system`, `user`, `assistant`, `tool`"
        )
    if not isinstance(fault.value, str):
        return _unread(fault, "missing field `tool_calls`") if "type" not in fault.steps else _typed(fault)
    return _unread(fault, f"unknown variant `{fault.value}`, expected `function`")


def _returned(fault: Fault) -> str:
    where = f"messages[{index_of(fault)}] in your input"
    return f"The `reasoning_content` field is not allowed in the input messages ({where}). Remove it and try again."


_RULES: dict[str, Word] = {
    "DS-01": _asked(lambda f: _THOUGHT.format(index_of(f))),
    "DS-02": _same("The `reasoning_content` in the thinking mode must be passed back to the API."),
    "DS-04": _asked(_returned),
    "DS-05": _same(_UNANSWERED),
    "DS-06": _unasked,
    "DS-07": _asked(lambda f: _NEIGHBOURS.format(index_of(f) - 1, index_of(f))),
    "DS-08": _same(_LAST),
    "DS-09": _same("Thinking mode does not support this tool_choice"),
    "DS-10": _bounds(Want(least=1, most=64, pattern=NAME)),
    "OAI-CHAT-07": _bounds(Want("an array", least=1), "a sequence"),
    "OAI-CHAT-09": _bounds(Want(least=1)),
    "OAI-CHAT-10": _typed,
    "OAI-CHAT-11": _content,
    "OAI-CHAT-12": _part,
    "OAI-CHAT-16": _bounds(Want("an array", least=1, most=128), "a sequence"),
    "OAI-CHAT-21": _sort,
}


def _trouble(status: int, message: str, kind: str = _CODE) -> ApiError:
    return ApiError(status, message, kind=kind, code=_CODE)


WORDS = Words(
    _RULES,
    Troubles(
        no_key=_trouble(
            401, "Authentication Fails (auth header format should be Bearer sk-...)", "authentication_error"
        ),
        bad_key=_trouble(401, "Authentication Fails, Your api key: ****0000 is invalid", "authentication_error"),
        bad_json=_trouble(400, "Failed to parse the request body as JSON: expected value at line 1 column 1"),
        no_route=lambda method, path: _trouble(404, f"Not Found: {method} {path}"),
        no_model=lambda _model: _trouble(400, "Model Not Exist"),
        rate_limited=_trouble(429, "Rate limit reached. Please pace your requests reasonably.", "rate_limit_error"),
        failed=_trouble(500, "Internal Server Error", "internal_error"),
        overloaded=_trouble(
            503,
            "Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.",
            "service_unavailable_error",
        ),
    ),
    first=(
        *("OAI-CHAT-10", "OAI-CHAT-12", "OAI-CHAT-21", "OAI-CHAT-07", "OAI-CHAT-16", "DS-10", "OAI-CHAT-09"),
        *("OAI-CHAT-11", "DS-09"),
    ),
)

"""The error texts of DeepSeek.

Type errors come from the JSON deserializer, with Rust's names of types; the code is always `invalid_request_error`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from msgspec.structs import replace

from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, StandardErrors
from segue.emulator.errors.openai_style import (
    NAME_PATTERN,
    ValueSpec,
    is_missing,
    member,
    message_index,
    schema_error,
    text_or_empty,
    type_name,
)
from segue.wire.base import ApiError

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
_RUST_TYPES = {**_KINDS, "a string": "string", "a boolean": "boolean", "null": "null"}


def _error(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _built_error(make: Callable[[BrokenRule], str]) -> ErrorBuilder:
    return lambda broken: _error(make(broken))


def _fixed_error(message: str) -> ErrorBuilder:
    return lambda _: _error(message)


def _deserialize_error(broken: BrokenRule, problem: str) -> ApiError:
    """Build an error of the JSON deserializer, at the end of the body."""
    first = broken.steps[0] if broken.steps else "messages"
    place = f"{first}[{message_index(broken)}]" if len(broken.steps) > 1 else str(first)
    try:
        column = len(json.dumps(broken.body, separators=(",", ":"), ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        column = 1
    message = f"Failed to deserialize the JSON body into the target type: {place}: {problem} at line 1 column {column}"
    return _error(message)


def _type_error(broken: BrokenRule, expected: str = "a string") -> ApiError:
    if is_missing(broken):
        return _deserialize_error(broken, f"missing field `{broken.steps[-1] if broken.steps else ''}`")
    return _deserialize_error(broken, f"invalid type: {_RUST_TYPES[type_name(broken.value)]}, expected {expected}")


def _bounds_error(spec: ValueSpec, expected: str = "a string") -> ErrorBuilder:
    """Build OpenAI's text for lengths and patterns, and the deserializer's for types."""

    def build(broken: BrokenRule) -> ApiError:
        if is_missing(broken) or type_name(broken.value) != spec.kind:
            return _type_error(broken, expected)
        return replace(schema_error(broken, spec), code=_CODE, param=None)

    return build


def _orphan_result_error(broken: BrokenRule) -> ApiError:
    if broken.steps[-1:] == ("tool_call_id",) and not isinstance(broken.value, str):
        return _type_error(broken)
    return _error("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'")


def _content_error(broken: BrokenRule) -> ApiError:
    message = broken.value_at("messages", message_index(broken))
    if member(message, "role") == "assistant":
        return _error("Invalid assistant message: content or tool_calls must be set")
    if is_missing(broken):
        return _type_error(broken)
    return _deserialize_error(broken, "data did not match any variant of untagged enum ChatCompletionRequestContent")


def _part_error(broken: BrokenRule) -> ApiError:
    return _deserialize_error(
        broken, f"unknown variant `{text_or_empty(member(broken.value, 'type'))}`, expected `text`"
    )


def _type_value_error(broken: BrokenRule) -> ApiError:
    if broken.steps[-1:] == ("role",):
        return _deserialize_error(
            broken,
            f"unknown variant `{text_or_empty(broken.value)}`, expected one of `system`, `user`, `assistant`, `tool`, "
            "`latest_reminder`",
        )
    if not isinstance(broken.value, str):
        return (
            _deserialize_error(broken, "missing field `tool_calls`")
            if "type" not in broken.steps
            else _type_error(broken)
        )
    return _deserialize_error(broken, f"unknown variant `{broken.value}`, expected `function`")


def _reasoning_message(broken: BrokenRule) -> str:
    where = f"messages[{message_index(broken)}] in your input"
    return f"The `reasoning_content` field is not allowed in the input messages ({where}). Remove it and try again."


_RULES: dict[str, ErrorBuilder] = {
    "DS-01": _built_error(lambda f: _THOUGHT.format(message_index(f))),
    "DS-02": _fixed_error("The `reasoning_content` in the thinking mode must be passed back to the API."),
    "DS-04": _built_error(_reasoning_message),
    "DS-05": _fixed_error(_UNANSWERED),
    "DS-06": _orphan_result_error,
    "DS-07": _built_error(lambda f: _NEIGHBOURS.format(message_index(f) - 1, message_index(f))),
    "DS-08": _fixed_error(_LAST),
    "DS-09": _fixed_error("Thinking mode does not support this tool_choice"),
    "DS-12": _type_error,
    "DS-10": _bounds_error(ValueSpec(minimum=1, maximum=64, pattern=NAME_PATTERN)),
    "OAI-CHAT-07": _bounds_error(ValueSpec("an array", minimum=1), "a sequence"),
    "OAI-CHAT-09": _bounds_error(ValueSpec(minimum=1)),
    "OAI-CHAT-10": _type_error,
    "OAI-CHAT-11": _content_error,
    "OAI-CHAT-12": _part_error,
    "OAI-CHAT-16": _bounds_error(ValueSpec("an array", minimum=1, maximum=128), "a sequence"),
    "OAI-CHAT-21": _type_value_error,
}


def _standard_error(status: int, message: str, kind: str = _CODE) -> ApiError:
    return ApiError(status, message, kind=kind, code=_CODE)


ERROR_TEXTS = ErrorTexts(
    _RULES,
    StandardErrors(
        no_key=_standard_error(
            401, "Authentication Fails (auth header format should be Bearer sk-...)", "authentication_error"
        ),
        bad_key=_standard_error(401, "Authentication Fails, Your api key: ****0000 is invalid", "authentication_error"),
        bad_json=_standard_error(400, "Failed to parse the request body as JSON: expected value at line 1 column 1"),
        no_route=lambda method, path: _standard_error(404, f"Not Found: {method} {path}"),
        no_model=lambda _model: _standard_error(400, "Model Not Exist"),
        rate_limited=_standard_error(
            429, "Rate limit reached. Please pace your requests reasonably.", "rate_limit_error"
        ),
        server_error=_standard_error(500, "Internal Server Error", "internal_error"),
        context_length=_standard_error(
            400,
            "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (136000 in the "
            "messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        ),
        overloaded=_standard_error(
            503,
            "Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.",
            "service_unavailable_error",
        ),
    ),
    rule_order=(
        *("OAI-CHAT-10", "OAI-CHAT-12", "OAI-CHAT-21", "OAI-CHAT-07", "OAI-CHAT-16", "DS-10", "OAI-CHAT-09"),
        *("OAI-CHAT-11", "DS-09"),
    ),
)

"""The error texts of DeepSeek.

Type errors come from the JSON deserializer, with Rust's names of types; `validate_body` finds most of them.
The code is always `invalid_request_error`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from segue.conformance.deepseek import SPEC
from segue.conformance.values import text_or_empty
from segue.emulator.errors.broken_rule import (
    TOO_DEEP,
    BrokenRule,
    ErrorBuilder,
    ErrorTexts,
    RuleError,
    StandardErrors,
    find_parse_failure,
    member,
)
from segue.emulator.errors.openai_style import NAME_PATTERN, ValueSpec, is_missing, schema_error, type_name
from segue.emulator.errors.tool_declarations import find_function_error, undeclared_choice
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import Mismatch, Spec, find_mismatches
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
_CONTENT = "data did not match any variant of untagged enum ChatCompletionRequestContent"


def _error(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _built_error(make: Callable[[BrokenRule], str]) -> ErrorBuilder:
    return lambda broken: _error(make(broken))


def _deserialize_error(broken: BrokenRule, problem: str) -> ApiError:
    """Build an error of the JSON deserializer, at the end of the body."""
    first = broken.steps[0] if broken.steps else "messages"
    place = f"{first}[{broken.message_index}]" if len(broken.steps) > 1 else str(first)
    try:
        column = len(json.dumps(broken.body, separators=(",", ":"), ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        column = 1
    return _body_error(f"{place}: {problem}", f"line 1 column {column}")


def _body_error(problem: str, place: str) -> ApiError:
    return _error(f"Failed to deserialize the JSON body into the target type: {problem} at {place}")


def _end(data: bytes) -> str:
    """Return the place of the end of a body."""
    lines = data.rstrip().split(b"\n")
    return f"line {len(lines)} column {len(lines[-1])}"


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
    message = broken.value_at("messages", broken.message_index)
    if member(message, "role") == "assistant":
        return _error("Invalid assistant message: content or tool_calls must be set")
    if is_missing(broken):
        return _type_error(broken)
    return _deserialize_error(broken, _CONTENT)


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
    where = f"messages[{broken.message_index}] in your input"
    return f"The `reasoning_content` field is not allowed in the input messages ({where}). Remove it and try again."


_RULES: dict[str, RuleError] = {
    "DS-01": _built_error(lambda f: _THOUGHT.format(f.message_index)),
    "DS-02": _error("The `reasoning_content` in the thinking mode must be passed back to the API."),
    "DS-04": _built_error(_reasoning_message),
    "DS-05": _error(_UNANSWERED),
    "DS-06": _orphan_result_error,
    "DS-07": _built_error(lambda f: _NEIGHBOURS.format(f.message_index - 1, f.message_index)),
    "DS-08": _error(_LAST),
    "DS-09": _error("Thinking mode does not support this tool_choice"),
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


# ------------------------------------------------------------------------------ what is checked before the conversation

_RANGES = {
    "temperature": "[0, 2.0]",
    "top_p": "(0, 1.0]",
    "max_tokens": "[1, 393216]",
    "max_completion_tokens": "[1, 393216]",
    "presence_penalty": "[-2.0, 2.0]",
    "frequency_penalty": "[-2.0, 2.0]",
    "top_logprobs": "[0, 20]",
    "n": "[1, 1]",
}
_EXPECTED = {"string": "a string", "integer": "u32", "number": "f32", "boolean": "a boolean", "list": "a sequence"}
_NESTED_PATH = re.compile(r"(messages\[\d+\]|tools\[\d+\])\..+")


def _describe_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{json.dumps(value)}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{value}`"
        case str():
            return f"string {json.dumps(value, ensure_ascii=False)}"
        case list() | tuple():
            return "sequence"
        case _:
            return "map"


def _describe_expected(spec: Spec, path: str) -> str:
    if spec.kind == "object":
        return "internally tagged enum ChatCompletionRequestMessage" if "messages" in path else "a map"
    return _EXPECTED.get(spec.kind, "a string")


def _describe_mismatch(mismatch: Mismatch) -> str:
    place = _NESTED_PATH.sub(r"\1", mismatch.path)
    match mismatch.kind:
        case "missing":
            return f"{place}: missing field `{mismatch.key}`"
        case "choice" | "value":
            known = [f"`{name}`" for name in mismatch.spec.variants or mismatch.spec.values]
            expected = known[0] if len(known) == 1 else f"one of {', '.join(known)}"
            where = mismatch.path if mismatch.path.endswith(".role") else place
            return f"{where}: unknown variant `{mismatch.value}`, expected {expected}"
        case _ if mismatch.path.endswith(".content"):
            return f"{place}: {_CONTENT}"
        case _:
            expected = _describe_expected(mismatch.spec, mismatch.path)
            return f"{place}: invalid type: {_describe_value(mismatch.value)}, expected {expected}"


def validate_body(body: Mapping[str, Any], http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch with its line and column, `None` if the body is valid."""
    for mismatch in find_mismatches(SPEC, body):
        if mismatch.kind in ("short", "long"):
            known = _RANGES.get(mismatch.path)
            rest = f", the valid range of {mismatch.path} is {known}" if known else ""
            return _error(f"Invalid {mismatch.path} value{rest}")
        return _body_error(_describe_mismatch(mismatch), _end(http_request.body))
    if body.get("messages") == []:
        return _error("Empty input messages")
    error = find_function_error(body)
    if error is not None:
        return _error(error.message)
    undeclared = undeclared_choice(body) if body.get("tools") else None
    return None if undeclared is None else _error(f"The tool '{undeclared}' in tool_choice is not found in tools")


def _bad_json(data: bytes) -> ApiError:
    failure = find_parse_failure(data)
    if failure is None:
        first = data.strip()[:1].decode()
        kind = {"[": "sequence", '"': "string", "n": "null", "t": "boolean", "f": "boolean"}.get(first, "number")
        return _body_error(f"invalid type: {kind}, expected struct ChatCompletionRequest", _end(data))
    why, column = "expected value", failure.column
    if failure.reason == TOO_DEEP:
        why, column = TOO_DEEP, 128
    elif failure.at_end:
        inside = "an object" if data.lstrip().startswith(b"{") else "a value"
        why, column = f"EOF while parsing {inside}", column - 1
    elif "trailing comma" in failure.reason:
        why, column = "trailing comma", column + 1
    else:
        texts = {
            "property name": "key must be a string",
            "':' delim": "expected `:`",
            "',' delim": "expected `,` or `}`",
        }
        why = next((text for reason, text in texts.items() if reason in failure.reason), why)
    return _error(f"Failed to parse the request body as JSON: {why} at line {failure.line} column {column}")


# -------------------------------------------------------------------------------------------- errors not about the body


def _standard_error(status: int, message: str, kind: str = _CODE) -> ApiError:
    return ApiError(status, message, kind=kind, code=_CODE)


ERROR_TEXTS = ErrorTexts(
    _RULES,
    StandardErrors(
        no_key=_standard_error(
            401, "Authentication Fails (auth header format should be Bearer sk-...)", "authentication_error"
        ),
        bad_key=_standard_error(401, "Authentication Fails, Your api key: ****0000 is invalid", "authentication_error"),
        bad_json=_bad_json,
        missing_field=lambda field, request, _body: _body_error(f"missing field `{field}`", _end(request.body)),
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
        no_credit=_standard_error(402, "Insufficient Balance", "unknown_error"),
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
    validate=validate_body,
)

"""The error texts of Mistral.

Its types are checked first and list all errors (422, in pydantic's format); then its validator checks the order of the
messages and then their content (400, each type of error with its own code).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from segue.conformance.chat_types import OBJECT
from segue.conformance.mistral.content import CHUNKS
from segue.conformance.mistral.types import SPEC
from segue.conformance.rule import Violation
from segue.conformance.values import text_or_empty
from segue.emulator.errors.broken_rule import (
    BrokenRule,
    ErrorBuilder,
    ErrorTexts,
    RuleError,
    StandardErrors,
    find_parse_failure,
    member,
    parse_path,
)
from segue.emulator.errors.openai_style import find_message, is_missing, type_name
from segue.emulator.errors.pydantic_style import (
    EXTRA,
    MISSING,
    bounds_message,
    missing_tag_message,
    tag_message,
    type_message,
)
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import STRING, Mismatch, any_of, find_mismatches, list_of, nullable, object_of
from segue.wire.base import ApiError

_ORDER = ("invalid_request_message_order", "3230")
_ASSISTANT = ("invalid_request_assistant_message", "3240")
_FUNCTION = ("invalid_function_call", "3280")
_TOOL = ("invalid_request_tool", "3290")
_ROLES = ("system", "user", "assistant", "tool")
_MESSAGES = object_of(messages=list_of(object_of({"role": STRING}, content=nullable(any_of(STRING, list_of(OBJECT))))))

ErrorCode = tuple[str, str]


def _error(message: str, kind: ErrorCode) -> ApiError:
    return ApiError(400, message, kind=kind[0], code=kind[1])


def _built_error(make: Callable[[BrokenRule], str], kind: ErrorCode) -> ErrorBuilder:
    return lambda broken: _error(make(broken), kind)


# ------------------------------------------------------------------------------------------------------------ the types


def _pydantic_entry(broken: BrokenRule, error_type: str, message: str, steps: tuple[str | int, ...]) -> dict[str, Any]:
    """Build an entry with pydantic's location: the role of a message follows its index."""
    loc = list(steps)
    role = text_or_empty(member(broken.value_at(*steps[:2]), "role"))
    if steps[:1] == ("messages",) and len(steps) > 2 and role:
        loc.insert(2, role)
    return {"type": error_type, "loc": ["body", *loc], "msg": message, "input": broken.value_at(*steps)}


def _entry_at(broken: BrokenRule, error_type: str, message: str) -> dict[str, Any]:
    return _pydantic_entry(broken, error_type, message, broken.steps)


def _type_entry(broken: BrokenRule, expected: str) -> dict[str, Any]:
    if is_missing(broken):
        steps = broken.steps
        while len(steps) > 1 and broken.value_at(*steps[:-1]) is None:
            steps = steps[:-1]
        return {**_pydantic_entry(broken, "missing", MISSING, steps), "input": broken.value_at(*steps[:-1])}
    return _entry_at(broken, _TYPE_ERRORS[expected], type_message(expected))


def _tag_entry(broken: BrokenRule, discriminator: str, known: Iterable[str]) -> dict[str, Any]:
    """Build an entry for an unknown tag: reported on the object, not on the member with the tag."""
    message = tag_message(text_or_empty(broken.value), known, discriminator)
    return _pydantic_entry(broken, "union_tag_invalid", message, broken.steps[:-1])


_TYPE_ERRORS = {
    "string": "string_type",
    "list": "list_type",
    "integer": "int_parsing",
    "number": "float_parsing",
    "boolean": "bool_parsing",
    "object": "model_attributes_type",
    "map": "dict_type",
}


def _option_entry(broken: BrokenRule) -> dict[str, Any]:
    """MIS-17"""
    mismatch = next((each for each in find_mismatches(SPEC, broken.body) if each.path == broken.path), None)
    spec = mismatch.spec if mismatch is not None else STRING
    if mismatch is not None and mismatch.kind in ("short", "long"):
        error_type = "greater_than_equal" if mismatch.kind == "short" else "less_than_equal"
        return _entry_at(broken, error_type, bounds_message(mismatch))
    kind = next((option.kind for option in spec.any_of), spec.kind)
    if is_missing(broken) or kind in ("string", "list"):
        return _type_entry(broken, "list" if kind == "list" else "string")
    return _entry_at(broken, _TYPE_ERRORS.get(kind, "model_attributes_type"), type_message(kind))


def _extra_key_entry(broken: BrokenRule) -> dict[str, Any]:
    """MIS-13: a key, a role, an empty list of tools, or parameters."""
    match broken.steps:
        case ("messages", int(), "role"):
            return _tag_entry(broken, "role", _ROLES)
        case ("tools",) if type_name(broken.value) != "an array":
            return _type_entry(broken, "list")
        case ("tools", int(), "function", "parameters") if type_name(broken.value) != "an object":
            return _type_entry(broken, "map")
        case _:
            return _entry_at(broken, "extra_forbidden", EXTRA)


def _function_only_entry(broken: BrokenRule) -> dict[str, Any]:
    """OAI-CHAT-21: a call or tool that is not a function, the legacy function_call, or the legacy role."""
    if broken.steps[-1:] == ("role",):
        return _tag_entry(broken, "role", _ROLES)
    if broken.steps[-1:] == ("function_call",):
        return _entry_at(broken, "extra_forbidden", EXTRA)
    return _entry_at(broken, "literal_error", "Input should be 'function'")


def _all_entries_error(make_entry: Callable[[BrokenRule], dict[str, Any]]) -> ErrorBuilder:
    """Build an error that lists all violations of the rule; the first is the message."""

    def build(broken: BrokenRule) -> ApiError:
        entries = tuple(map(make_entry, broken.singles))
        return ApiError(422, entries[0]["msg"], details=entries)

    return build


def _keys_error(broken: BrokenRule) -> ApiError:
    """MIS-13: an invalid schema is reported by the validator, everything else by the types."""
    schemas = [violation for violation in broken.violations if violation.message.startswith("Invalid tool schema")]
    others: tuple[Violation, ...] = tuple(each for each in broken.violations if each not in schemas)
    if others:
        return _all_entries_error(_extra_key_entry)(BrokenRule(broken.body, others))
    return _error(broken.message, _TOOL)


def _name_error(broken: BrokenRule) -> ApiError:
    if not isinstance(broken.value, str):
        return _all_entries_error(lambda each: _type_entry(each, "string"))(broken)
    message = "must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
    return _error(
        f"Function name was {broken.value} but {message}", _TOOL if broken.steps[:1] == ("tools",) else _FUNCTION
    )


# -------------------------------------------------------------------------------------------------------- the validator


def _id_text(broken: BrokenRule) -> str:
    return text_or_empty(broken.value) or text_or_empty(find_message(broken).get("tool_call_id"))


def _order_message(broken: BrokenRule) -> str:
    before = broken.value_at("messages", broken.message_index - 1)
    role, previous = text_or_empty(find_message(broken).get("role")), text_or_empty(member(before, "role"))
    return f"Unexpected role '{role}' after role '{previous}'"


def _chunk_error(broken: BrokenRule) -> ApiError:
    """MIS-14: prefixes, and chunks of an unknown type or in a wrong message."""
    if broken.steps[-1:] == ("prefix",):
        return _error("Assistant message with prefix True must be last message", _ASSISTANT)
    role = text_or_empty(find_message(broken).get("role"))
    if broken.value is not None and broken.value not in tuple(CHUNKS):
        return _all_entries_error(lambda each: _tag_entry(each, "type", sorted(CHUNKS)))(broken)
    kind = _ASSISTANT if role == "assistant" else (f"invalid_request_{role}_message", "3250")
    return _error(f"Unexpected content chunk types in {role} message: ['{text_or_empty(broken.value)}']", kind)


def _content_message(broken: BrokenRule) -> str:
    both = broken.value and find_message(broken).get("tool_calls")
    return f"Assistant message must have either content or tool_calls, but not {'both' if both else 'none'}."


def _first_message(broken: BrokenRule) -> str:
    if broken.path == "messages":
        return "Conversation must have at least one message"
    return "Conversation must start with a user message or system message"


_TOKENIZER = "Tool call id must be a non-empty string other than 'null' for tokenizer version 13 or newer."
_SHAPE = "but must be a-z, A-Z, 0-9, with a length of 9."
_LAST = "Expected last role User or Tool (or Assistant with prefix True) for serving but got"

_RULES: dict[str, RuleError] = {
    "MIS-01": _built_error(lambda f: f"Tool call id was {_id_text(f)} {_SHAPE}", _FUNCTION),
    "MIS-02": _error(_TOKENIZER, _FUNCTION),
    "MIS-03": _error("Not the same number of function calls and responses", _ORDER),
    "MIS-04": _built_error(lambda f: f"Unexpected tool call id {_id_text(f)} in tool results", _ORDER),
    "MIS-05": _built_error(lambda f: f"Duplicate tool call id {_id_text(f)} in tool results", _ORDER),
    "MIS-06": _built_error(lambda f: f"Duplicate tool call id {_id_text(f)} in assistant message", _ORDER),
    "MIS-07": _built_error(_order_message, _ORDER),
    "MIS-08": _built_error(_order_message, _ORDER),
    "MIS-09": _built_error(_order_message, _ORDER),
    "MIS-10": _built_error(lambda f: f"{_LAST} {text_or_empty(find_message(f).get('role'))}", _ORDER),
    "MIS-11": _built_error(_content_message, _ASSISTANT),
    "MIS-12": _name_error,
    "MIS-13": _keys_error,
    "MIS-14": _chunk_error,
    "MIS-15": _built_error(_first_message, _ORDER),
    "MIS-17": _all_entries_error(_option_entry),
    "OAI-CHAT-07": _all_entries_error(lambda f: _type_entry(f, "list")),
    "OAI-CHAT-10": _all_entries_error(lambda f: _type_entry(f, "string")),
    "OAI-CHAT-11": _all_entries_error(lambda f: _type_entry(f, "string")),
    "OAI-CHAT-21": _all_entries_error(_function_only_entry),
}

# ------------------------------------------------------------------------------ what is checked before the conversation


def _single_error(error_type: str, message: str, value: object, *steps: str | int, **more: object) -> ApiError:
    """Build an error with one entry of pydantic's list."""
    entry = {"type": error_type, "loc": ["body", *steps], "msg": message, "input": value, **more}
    return ApiError(422, message, details=(entry,))


def _mismatch_error(mismatch: Mismatch) -> ApiError:
    steps, kind = parse_path(mismatch.path), "string" if mismatch.spec.kind == "any" else mismatch.spec.kind
    if mismatch.kind == "missing":
        return _single_error("union_tag_not_found", missing_tag_message("role"), mismatch.value, *steps[:-1])
    return _single_error(_TYPE_ERRORS[kind], type_message(kind), mismatch.value, *steps)


def validate_body(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first malformed message. The conformance rules check everything else."""
    return next(map(_mismatch_error, find_mismatches(_MESSAGES, body)), None)


def _bad_json(data: bytes) -> ApiError:
    failure = find_parse_failure(data)
    if failure is None:
        return _single_error("model_attributes_type", type_message("object"), json.loads(data))
    return _single_error("json_invalid", "JSON decode error", {}, failure.offset, ctx={"error": failure.reason})


# -------------------------------------------------------------------------------------------- errors not about the body

ERROR_TEXTS = ErrorTexts(
    _RULES,
    StandardErrors(
        no_key=ApiError(401, "Unauthorized"),
        bad_key=ApiError(401, "Unauthorized"),
        bad_json=_bad_json,
        missing_field=lambda name, _request, body: _single_error("missing", MISSING, dict(body), name),
        no_route=lambda _method, _path: ApiError(404, "Not Found"),
        no_model=lambda model: ApiError(400, f"Invalid model: {model}", kind="invalid_model", code="1500"),
        rate_limited=ApiError(429, "Rate limit exceeded", kind="rate_limited", code="1300"),
        server_error=ApiError(500, "Internal server error", kind="internal_server_error", code="1000"),
        context_length=ApiError(
            400,
            "Prompt contains 140000 tokens, too large for model with 131072 maximum context length",
            kind="invalid_request_prompt",
            code="3051",
        ),
        no_credit=ApiError(402, "Payment Required"),
        overloaded=ApiError(
            429, "Service tier capacity exceeded for this model.", kind="service_tier_capacity_exceeded", code="3505"
        ),
    ),
    rule_order=(
        *("MIS-17", "OAI-CHAT-21", "MIS-13", "OAI-CHAT-07", "OAI-CHAT-10", "OAI-CHAT-11"),
        *("MIS-15", "MIS-07", "MIS-08", "MIS-09", "MIS-10", "MIS-03", "MIS-04", "MIS-05", "MIS-06"),
    ),
    validate=validate_body,
)

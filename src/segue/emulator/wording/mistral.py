"""The error texts of Mistral.

Its types are checked first and list all errors (422, in pydantic's format); then its validator checks the order of the
messages and then their content (400, each type of error with its own code).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from segue.conformance.mistral.content import CHUNKS
from segue.conformance.rule import Violation
from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.emulator.wording.openai_style import found_in, index_of, is_missing, kind_of, message_of, said
from segue.wire.base import ApiError

__all__ = ["WORDS"]

_ORDER = ("invalid_request_message_order", "3230")
_ASSISTANT = ("invalid_request_assistant_message", "3240")
_FUNCTION = ("invalid_function_call", "3280")
_TOOL = ("invalid_request_tool", "3290")
_ROLES = "'system', 'user', 'assistant', 'tool'"
_CHUNKS = ", ".join(f"'{chunk}'" for chunk in sorted(CHUNKS))

Kind = tuple[str, str]


def _told(message: str, kind: Kind) -> ApiError:
    return ApiError(400, message, kind=kind[0], code=kind[1])


def _same(message: str, kind: Kind) -> Word:
    return lambda _: _told(message, kind)


def _asked(make: Callable[[Fault], str], kind: Kind) -> Word:
    return lambda fault: _told(make(fault), kind)


# ----------------------------------------------------------------------------------------------------------- the types


def _finding(fault: Fault, sort: str, message: str, steps: tuple[str | int, ...]) -> dict[str, Any]:
    """Builds an entry with pydantic's location: the role of a message follows its index."""
    loc = list(steps)
    role = said(found_in(fault.at(*steps[:2]), "role"))
    if steps[:1] == ("messages",) and len(steps) > 2 and role:
        loc.insert(2, role)
    return {"type": sort, "loc": ["body", *loc], "msg": message, "input": fault.at(*steps)}


def _refused(fault: Fault, sort: str, message: str) -> dict[str, Any]:
    return _finding(fault, sort, message, fault.steps)


def _typed(fault: Fault, expected: str) -> dict[str, Any]:
    if is_missing(fault):
        steps = fault.steps
        while len(steps) > 1 and fault.at(*steps[:-1]) is None:
            steps = steps[:-1]
        return {**_finding(fault, "missing", "Field required", steps), "input": fault.at(*steps[:-1])}
    sort = {"string": "string_type", "list": "list_type", "dictionary": "dict_type"}[expected]
    return _refused(fault, sort, f"Input should be a valid {expected}")


def _tagged(fault: Fault, by: str, known: str) -> dict[str, Any]:
    """Builds an entry for an unknown tag: reported on the object, not on the member with the tag."""
    message = f"Input tag '{said(fault.value)}' found using '{by}' does not match any of the expected tags: {known}"
    return _finding(fault, "union_tag_invalid", message, fault.steps[:-1])


def _unknown(fault: Fault) -> dict[str, Any]:
    """MIS-13: a key, a role, an empty list of tools, or parameters."""
    match fault.steps:
        case ("messages", int(), "role"):
            return _tagged(fault, "role", _ROLES)
        case ("tools",) if kind_of(fault.value) != "an array":
            return _typed(fault, "list")
        case ("tools", int(), "function", "parameters") if kind_of(fault.value) != "an object":
            return _typed(fault, "dictionary")
        case _:
            return _refused(fault, "extra_forbidden", "Extra inputs are not permitted")


def _sorted(fault: Fault) -> dict[str, Any]:
    """OAI-CHAT-21: a call or tool that is not a function, the legacy function_call, or the legacy role."""
    if fault.steps[-1:] == ("role",):
        return _tagged(fault, "role", _ROLES)
    if fault.steps[-1:] == ("function_call",):
        return _refused(fault, "extra_forbidden", "Extra inputs are not permitted")
    return _refused(fault, "literal_error", "Input should be 'function'")


def _listed(make_entry: Callable[[Fault], dict[str, Any]]) -> Word:
    """Builds an error that lists all violations of the rule; the first is the message."""

    def word(fault: Fault) -> ApiError:
        found = tuple(make_entry(Fault(fault.body, (violation,))) for violation in fault.violations)
        return ApiError(422, found[0]["msg"], details=found)

    return word


def _members(fault: Fault) -> ApiError:
    """MIS-13: an invalid schema is reported by the validator, everything else by the types."""
    schemas = [violation for violation in fault.violations if violation.message.startswith("Invalid tool schema")]
    others: tuple[Violation, ...] = tuple(each for each in fault.violations if each not in schemas)
    if others:
        return _listed(_unknown)(Fault(fault.body, others))
    return _told(fault.message, _TOOL)


def _named(fault: Fault) -> ApiError:
    if not isinstance(fault.value, str):
        return _listed(lambda each: _typed(each, "string"))(fault)
    message = "must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
    return _told(
        f"Function name was {fault.value} but {message}", _TOOL if fault.steps[:1] == ("tools",) else _FUNCTION
    )


# -------------------------------------------------------------------------------------------------------- the validator


def _id(fault: Fault) -> str:
    return said(fault.value) or said(message_of(fault).get("tool_call_id"))


def _after(fault: Fault) -> str:
    before = fault.at("messages", index_of(fault) - 1)
    return f"Unexpected role '{said(message_of(fault).get('role'))}' after role '{said(found_in(before, 'role'))}'"


def _chunk(fault: Fault) -> ApiError:
    """MIS-14: prefixes, and chunks of an unknown type or in a wrong message."""
    if fault.steps[-1:] == ("prefix",):
        return _told("Assistant message with prefix True must be last message", _ASSISTANT)
    role = said(message_of(fault).get("role"))
    if fault.value is not None and fault.value not in tuple(CHUNKS):
        return _listed(lambda each: _tagged(each, "type", _CHUNKS))(fault)
    kind = _ASSISTANT if role == "assistant" else (f"invalid_request_{role}_message", "3250")
    return _told(f"Unexpected content chunk types in {role} message: ['{said(fault.value)}']", kind)


def _both(fault: Fault) -> str:
    both = fault.value and message_of(fault).get("tool_calls")
    return f"Assistant message must have either content or tool_calls, but not {'both' if both else 'none'}."


def _begun(fault: Fault) -> str:
    if fault.path == "messages":
        return "Conversation must have at least one message"
    return "Conversation must start with a user message or system message"


_TOKENIZER = "Tool call id must be a non-empty string other than 'null' for tokenizer version 13 or newer."
_SHAPE = "but must be a-z, A-Z, 0-9, with a length of 9."
_LAST = "Expected last role User or Tool (or Assistant with prefix True) for serving but got"

_RULES: dict[str, Word] = {
    "MIS-01": _asked(lambda f: f"Tool call id was {_id(f)} {_SHAPE}", _FUNCTION),
    "MIS-02": _same(_TOKENIZER, _FUNCTION),
    "MIS-03": _same("Not the same number of function calls and responses", _ORDER),
    "MIS-04": _asked(lambda f: f"Unexpected tool call id {_id(f)} in tool results", _ORDER),
    "MIS-05": _asked(lambda f: f"Duplicate tool call id {_id(f)} in tool results", _ORDER),
    "MIS-06": _asked(lambda f: f"Duplicate tool call id {_id(f)} in assistant message", _ORDER),
    "MIS-07": _asked(_after, _ORDER),
    "MIS-08": _asked(_after, _ORDER),
    "MIS-09": _asked(_after, _ORDER),
    "MIS-10": _asked(lambda f: f"{_LAST} {said(message_of(f).get('role'))}", _ORDER),
    "MIS-11": _asked(_both, _ASSISTANT),
    "MIS-12": _named,
    "MIS-13": _members,
    "MIS-14": _chunk,
    "MIS-15": _asked(_begun, _ORDER),
    "OAI-CHAT-07": _listed(lambda f: _typed(f, "list")),
    "OAI-CHAT-10": _listed(lambda f: _typed(f, "string")),
    "OAI-CHAT-11": _listed(lambda f: _typed(f, "string")),
    "OAI-CHAT-21": _listed(_sorted),
}

_UNREADABLE = {
    "type": "json_invalid",
    "loc": ["body", 0],
    "msg": "JSON decode error",
    "input": {},
    "ctx": {"error": "Expecting value"},
}

WORDS = Words(
    _RULES,
    Troubles(
        no_key=ApiError(401, "Unauthorized"),
        bad_key=ApiError(401, "Unauthorized"),
        bad_json=ApiError(422, "JSON decode error", details=(_UNREADABLE,)),
        no_route=lambda _method, _path: ApiError(404, "Not Found"),
        no_model=lambda model: ApiError(400, f"Invalid model: {model}", kind="invalid_model", code="1500"),
        rate_limited=ApiError(429, "Rate limit exceeded", kind="rate_limited", code="1300"),
        failed=ApiError(500, "Internal server error", kind="internal_server_error", code="1000"),
        overloaded=ApiError(
            429,
            "Service tier capacity exceeded for this model.",
            kind="service_tier_capacity_exceeded",
            code="3505",
        ),
    ),
    first=(
        *("OAI-CHAT-21", "MIS-13", "OAI-CHAT-07", "OAI-CHAT-10", "OAI-CHAT-11"),
        *("MIS-15", "MIS-07", "MIS-08", "MIS-09", "MIS-10", "MIS-03", "MIS-04", "MIS-05", "MIS-06"),
    ),
)

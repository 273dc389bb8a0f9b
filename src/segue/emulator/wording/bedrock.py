"""The error texts of Bedrock Converse.

The service model is checked first, then the service's own rules about the conversation, then the model behind it, whose
error it quotes: `The model returned the following errors: …`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from msgspec.structs import replace as moved

from segue.conformance.rule import Violation
from segue.conformance.values import is_list, is_object, text_of
from segue.emulator.wording import anthropic
from segue.emulator.wording.bedrock_shape import entries, misshapen, refused
from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.models import identify
from segue.wire.base import ApiError

__all__ = ["RULES", "WORDS", "of_model"]

_START = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
_ALTERNATE = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between "
    "user and assistant roles and try again."
)
_APART = "Conversation blocks and tool result blocks cannot be provided in the same turn."
_NO_STATUS = "This model doesn't support the status field. Remove status and try again."


def of_model(error: ApiError) -> ApiError:
    """Wraps an error of the model behind the service as the service does."""
    return replace(
        error, message=f"The model returned the following errors: {error.message}", kind="ValidationException"
    )


def _says(message: str) -> Word:
    return lambda _: refused(message)


def _shape(otherwise: str | Callable[[Fault], str]) -> Word:
    """Builds the service model's error for the body, else this message."""

    def word(fault: Fault) -> ApiError:
        found = misshapen(fault)
        return found or refused(otherwise if isinstance(otherwise, str) else otherwise(fault))

    return word


def _index(fault: Fault) -> int:
    return next((step for step in fault.steps[:2] if isinstance(step, int)), 0)


def _role(fault: Fault, index: int) -> str:
    return text_of(fault.at("messages", index, "role"))


def _other(fault: Fault) -> str:
    """Returns the text for problems that the service model does not cover."""
    if fault.steps[-1:] == ("status",):
        return _NO_STATUS
    return f"The format of the value at {fault.dotted} is invalid. Provide a json object for the field and try again."


# -------------------------------------------------------------------------------------------------- of the conversation


def _misplaced(fault: Fault, what: str) -> ApiError:
    who = _role(fault, _index(fault)).capitalize()
    return refused(f"{who} messages cannot contain {what}. Please remove the {what} and try again.")


def _unanswered(fault: Fault) -> ApiError:
    """BED-04"""
    index = _index(fault)
    if _role(fault, index) != "assistant":
        return _misplaced(fault, "tool uses")
    after = _next_turn(fault, index)
    ids = [
        text_of(single.at(*single.steps, "toolUseId"))
        for violation in fault.violations
        if _next_turn(single := Fault(fault.body, (violation,)), _index(single)) == after
    ]
    return refused(f"Expected toolResult blocks at messages.{after}.content for the following Ids: {', '.join(ids)}")


def _next_turn(fault: Fault, index: int) -> int:
    role = _role(fault, index)
    while fault.at("messages", index) is not None and _role(fault, index) in (role, "system"):
        index += 1
    return index


def _too_many(fault: Fault) -> ApiError:
    """BED-05"""
    if _role(fault, _index(fault)) != "user":
        return _misplaced(fault, "tool results")
    place = f"messages.{_index(fault)}.content"
    return refused(f"The number of toolResult blocks at {place} exceeds the number of toolUse blocks of previous turn.")


def _text(fault: Fault) -> ApiError:
    """BED-08. Claude and unknown models have Claude's text, the others that of the service."""
    value = fault.value
    place = fault.dotted
    if is_list(value):
        owner = "Message" if len(fault.steps) < 4 else "ToolResultBlock"
        above = place.removesuffix(".content")
        message = f"The content field in the {owner} object at {above} is empty."
        return refused(f"{message} Add a ContentBlock object to the content field and try again.")
    found = misshapen(fault)
    if found:
        return found
    family = identify(text_of(fault.body.get("modelId")) or None).family
    if family not in ("", "claude"):
        message = f"The text field in the ContentBlock object at {place.removesuffix('.text')} is blank."
        return refused(f"{message} Add text to the text field, and try again.")
    must = "contain non-whitespace text" if value else "be non-empty"
    return refused(f"messages: text content blocks must {must}")


# ------------------------------------------------------------------------------------------------------- of the model

_MEMBERS = {
    "toolUse": {"toolUseId": "id"},
    "toolResult": {"toolUseId": "tool_use_id"},
    "reasoningText": {"text": "thinking"},
}
_TYPES = {"toolUse": "tool_use", "toolResult": "tool_result", "reasoningText": "thinking"}


def _as_block(block: object) -> dict[str, object]:
    """Converts a block to one of the Messages API."""
    if not is_object(block) or len(block) != 1:
        return {}
    ((name, value),) = block.items()
    if name == "reasoningContent" and is_object(value):
        if "redactedContent" in value:
            return {"type": "redacted_thinking", "data": value["redactedContent"]}
        name, value = "reasoningText", value.get("reasoningText")
    if not is_object(value):
        return {"type": name, name: value}
    known = _MEMBERS.get(name, {})
    return {"type": _TYPES.get(name, name), **{known.get(key, key): entry for key, entry in value.items()}}


def _as_path(violation: Violation) -> Violation:
    """`messages[1].content[0].toolUse.toolUseId` → `messages[1].content[0].id`."""
    block, dot, rest = violation.path.partition("].content[")
    at, end, inner = rest.partition("]")
    if not dot:
        return violation
    steps = inner.strip(".").split(".")
    key = steps[-1] if len(steps) > 1 else ""
    names = _MEMBERS.get(steps[-2] if key else "", {})
    key = "data" if key == "redactedContent" else "" if key == "reasoningText" else names.get(key, key)
    return moved(violation, path=f"{block}{dot}{at}{end}{f'.{key}' if key else ''}")


def _as_messages(fault: Fault) -> Fault:
    """Converts the breach to one of the Messages API."""
    messages = fault.body.get("messages")
    body = {
        **fault.body,
        "messages": [
            {"role": entry.get("role"), "content": [_as_block(block) for block in entries(entry.get("content"))]}
            if is_object(entry)
            else {}
            for entry in entries(messages)
        ],
    }
    return Fault(body, tuple(_as_path(violation) for violation in fault.violations))


def _of_claude(number: str) -> Word:
    word = anthropic.RULES[number]
    return lambda fault: of_model(word(_as_messages(fault)))


def _of_mistral(fault: Fault) -> ApiError:
    """MIS-01"""
    message = f"Tool call id was {text_of(fault.value)} but must be a-z, A-Z, 0-9, with a length of 9."
    return of_model(refused(message))


RULES: Mapping[str, Word] = {
    "BED-01": _shape(_other),
    "BED-02": _shape(_other),
    "BED-03": _says("The toolConfig field must be defined when using toolUse and toolResult content blocks."),
    "BED-04": _unanswered,
    "BED-05": _too_many,
    "BED-06": _says(_START),
    "BED-07": lambda fault: refused(f"messages.{_index(fault)}.content: {_APART}"),
    "BED-08": _text,
    "BED-09": _shape(_other),
    "BED-10": _shape(_ALTERNATE),
    "BED-11": _shape(
        "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
    ),
    "MIS-01": _of_mistral,
    **{number: _of_claude(number) for number in sorted(anthropic.RULES)},
}


# ------------------------------------------------------------------------------------------------- beside what it reads

_INVALID_TOKEN = "The security token included in the request is invalid."
_FAILED = "The system encountered an unexpected error during processing. Try your request again."

WORDS = Words(
    RULES,
    Troubles(
        no_key=ApiError(403, "Missing Authentication Token", "MissingAuthenticationTokenException"),
        bad_key=ApiError(403, _INVALID_TOKEN, "UnrecognizedClientException"),
        bad_json=refused("Malformed input request, please reformat your input and try again."),
        no_route=lambda _method, _path: ApiError(
            404, "The requested operation is not recognized by the service.", "UnknownOperationException"
        ),
        no_model=lambda _model: refused("The provided model identifier is invalid."),
        rate_limited=ApiError(429, "Too many requests, please wait before trying again.", "ThrottlingException"),
        failed=ApiError(500, _FAILED, "InternalServerException"),
        overloaded=ApiError(503, "Bedrock is unable to process your request.", "ServiceUnavailableException"),
    ),
    first=(
        *("BED-09", "BED-01", "BED-02", "BED-10", "BED-11", "BED-08", "BED-03", "BED-06"),
        *("BED-04", "BED-05", "BED-07", "MIS-01"),
        *(number for number in anthropic.WORDS.first),
    ),
)

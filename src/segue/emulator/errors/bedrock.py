"""The error texts of Bedrock Converse.

The service model is checked first, then the service's own rules about the conversation, then the model behind it, whose
error it quotes: `The model returned the following errors: …`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from segue.conformance.rule import Violation
from segue.conformance.values import is_list, is_object, text_or_empty
from segue.emulator.errors import anthropic
from segue.emulator.errors.bedrock_service_model import (
    constraint_message,
    constraints_error,
    find_mismatch_error,
    validation_error,
)
from segue.emulator.errors.broken_rule import (
    BrokenRule,
    ErrorBuilder,
    ErrorTexts,
    RuleError,
    StandardErrors,
    build_error,
)
from segue.models import parse_model
from segue.wire.base import ApiError
from segue.wire.json_values import list_or_empty

_START = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
_ALTERNATE = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between "
    "user and assistant roles and try again."
)
_APART = "Conversation blocks and tool result blocks cannot be provided in the same turn."
_NO_STATUS = "This model doesn't support the status field. Remove status and try again."


def _wrap_model_error(error: ApiError) -> ApiError:
    """Wrap an error of the model behind the service as the service does."""
    return replace(error, message=anthropic.MODEL_ERRORS + error.message, kind="ValidationException")


def _service_model_error(otherwise: str | Callable[[BrokenRule], str]) -> ErrorBuilder:
    """Build the service model's error for the body, else this message."""

    def build(broken: BrokenRule) -> ApiError:
        mismatch_error = find_mismatch_error(broken)
        return mismatch_error or validation_error(otherwise if isinstance(otherwise, str) else otherwise(broken))

    return build


def _message_role(broken: BrokenRule, index: int) -> str:
    return text_or_empty(broken.value_at("messages", index, "role"))


def _other_message(broken: BrokenRule) -> str:
    """Return the text for problems that the service model does not cover."""
    if broken.steps[-1:] == ("status",):
        return _NO_STATUS
    place = broken.dotted_path
    return f"The format of the value at {place} is invalid. Provide a json object for the field and try again."


# ----------------------------------------------------------------------------------------------------- the conversation


def _wrong_role_error(broken: BrokenRule, what: str) -> ApiError:
    role = _message_role(broken, broken.message_index).capitalize()
    return validation_error(f"{role} messages cannot contain {what}. Please remove the {what} and try again.")


def _missing_results_error(broken: BrokenRule) -> ApiError:
    """BED-04"""
    index = broken.message_index
    if _message_role(broken, index) != "assistant":
        return _wrong_role_error(broken, "tool uses")
    after = _next_role_index(broken, index)
    ids = [
        text_or_empty(single.value_at(*single.steps, "toolUseId"))
        for single in broken.singles
        if _next_role_index(single, single.message_index) == after
    ]
    return validation_error(
        f"Expected toolResult blocks at messages.{after}.content for the following Ids: {', '.join(ids)}"
    )


def _next_role_index(broken: BrokenRule, index: int) -> int:
    """Return the index of the next message with another role; system messages are skipped."""
    role = _message_role(broken, index)
    while broken.value_at("messages", index) is not None and _message_role(broken, index) in (role, "system"):
        index += 1
    return index


def _surplus_results_error(broken: BrokenRule) -> ApiError:
    """BED-05"""
    if _message_role(broken, broken.message_index) != "user":
        return _wrong_role_error(broken, "tool results")
    place = f"messages.{broken.message_index}.content"
    return validation_error(
        f"The number of toolResult blocks at {place} exceeds the number of toolUse blocks of previous turn."
    )


def _text_error(broken: BrokenRule) -> ApiError:
    """BED-08. Claude and unknown models have Claude's text, the others that of the service."""
    value = broken.value
    place = broken.dotted_path
    if is_list(value):
        owner = "Message" if len(broken.steps) < 4 else "ToolResultBlock"
        above = place.removesuffix(".content")
        message = f"The content field in the {owner} object at {above} is empty."
        return validation_error(f"{message} Add a ContentBlock object to the content field and try again.")
    mismatch_error = find_mismatch_error(broken)
    if mismatch_error:
        return mismatch_error
    family = parse_model(text_or_empty(broken.body.get("modelId")) or None).family
    if family not in ("", "claude"):
        message = f"The text field in the ContentBlock object at {place.removesuffix('.text')} is blank."
        return validation_error(f"{message} Add text to the text field, and try again.")
    must = "contain non-whitespace text" if value else "be non-empty"
    return validation_error(f"messages: text content blocks must {must}")


# ------------------------------------------------------------------------------------------------------------ the model

_MEDIA_ERROR = re.compile("This model doesn't support the (?:video content block|s3Uri)|extraneous key")
_MEMBERS = {
    "toolUse": {"toolUseId": "id"},
    "toolResult": {"toolUseId": "tool_use_id"},
    "reasoningText": {"text": "thinking"},
}
_TYPES = {"toolUse": "tool_use", "toolResult": "tool_result", "reasoningText": "thinking"}


def _to_messages_block(block: object) -> dict[str, object]:
    """Convert a block to one of the Messages API."""
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
    converted = {"type": _TYPES.get(name, name), **{known.get(key, key): entry for key, entry in value.items()}}
    if name == "toolResult":
        converted["content"] = [_to_messages_block(entry) for entry in list_or_empty(value.get("content"))]
        converted["is_error"] = value.get("status") == "error"
    return converted


def _to_messages_path(violation: Violation) -> Violation:
    """`messages[1].content[0].toolUse.toolUseId` → `messages[1].content[0].id`."""
    block, dot, rest = violation.path.partition("].content[")
    at, end, inner = rest.partition("]")
    if not dot:
        return violation
    if inner.startswith(".toolResult.content"):
        path = f"{block}{dot}{at}{end}{inner.removeprefix('.toolResult')}"
        return msgspec.structs.replace(violation, path=path)
    steps = inner.strip(".").split(".")
    key = steps[-1] if len(steps) > 1 else ""
    names = _MEMBERS.get(steps[-2] if key else "", {})
    key = "data" if key == "redactedContent" else "" if key == "reasoningText" else names.get(key, key)
    return msgspec.structs.replace(violation, path=f"{block}{dot}{at}{end}{f'.{key}' if key else ''}")


def _to_messages_rule(broken: BrokenRule) -> BrokenRule:
    """Convert the broken rule to one of the Messages API."""
    messages = broken.body.get("messages")
    body = {
        **broken.body,
        "messages": [
            {
                "role": entry.get("role"),
                "content": [_to_messages_block(block) for block in list_or_empty(entry.get("content"))],
            }
            if is_object(entry)
            else {}
            for entry in list_or_empty(messages)
        ],
    }
    return BrokenRule(body, tuple(_to_messages_path(violation) for violation in broken.violations))


def _claude_error(number: str) -> ErrorBuilder:
    return lambda broken: _wrap_model_error(build_error(anthropic.RULES[number], _to_messages_rule(broken)))


def _service_model_or_media_error(broken: BrokenRule) -> ApiError:
    """BED-09: mismatches with the service model, then media that the model does not support."""
    if _MEDIA_ERROR.match(broken.message):
        return validation_error(broken.message)
    return _service_model_error(_other_message)(broken)


def _mistral_error(broken: BrokenRule) -> ApiError:
    """MIS-01"""
    message = f"Tool call id was {text_or_empty(broken.value)} but must be a-z, A-Z, 0-9, with a length of 9."
    return _wrap_model_error(validation_error(message))


RULES: Mapping[str, RuleError] = {
    "BED-01": _service_model_error(_other_message),
    "BED-02": _service_model_error(_other_message),
    "BED-03": validation_error(
        "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    ),
    "BED-04": _missing_results_error,
    "BED-05": _surplus_results_error,
    "BED-06": validation_error(_START),
    "BED-07": lambda broken: validation_error(f"messages.{broken.message_index}.content: {_APART}"),
    "BED-08": _text_error,
    "BED-09": _service_model_or_media_error,
    "BED-10": _service_model_error(_ALTERNATE),
    "BED-11": _service_model_error(
        "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
    ),
    "MIS-01": _mistral_error,
    **{number: _claude_error(number) for number in sorted(anthropic.RULES)},
}


# -------------------------------------------------------------------------------------------- errors not about the body

_INVALID_TOKEN = "The security token included in the request is invalid."
_FAILED = "The system encountered an unexpected error during processing. Try your request again."

ERROR_TEXTS = ErrorTexts(
    RULES,
    StandardErrors(
        no_key=ApiError(403, "Missing Authentication Token", "MissingAuthenticationTokenException"),
        bad_key=ApiError(403, _INVALID_TOKEN, "UnrecognizedClientException"),
        missing_field=lambda name, _request, _body: constraints_error([constraint_message(name, "not be null")]),
        bad_json=lambda _: validation_error("Malformed input request, please reformat your input and try again."),
        no_route=lambda _method, _path: ApiError(
            404, "The requested operation is not recognized by the service.", "UnknownOperationException"
        ),
        no_model=lambda _model: validation_error("The provided model identifier is invalid."),
        rate_limited=ApiError(429, "Too many requests, please wait before trying again.", "ThrottlingException"),
        server_error=ApiError(500, _FAILED, "InternalServerException"),
        context_length=validation_error("Input is too long for requested model."),
        no_credit=ApiError(
            400, "Your request exceeds the service quota for your account.", "ServiceQuotaExceededException"
        ),
        overloaded=ApiError(503, "Bedrock is unable to process your request.", "ServiceUnavailableException"),
    ),
    rule_order=(
        *("BED-09", "BED-01", "BED-02", "BED-10", "BED-11", "BED-08", "BED-03", "BED-06"),
        *("BED-04", "BED-05", "BED-07", "MIS-01"),
        *(number for number in anthropic.ERROR_TEXTS.rule_order),
    ),
)

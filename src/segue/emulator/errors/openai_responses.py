"""The error texts of OpenAI Responses, also for items that are not stored.

Errors about members of items follow the item specs of the conformance checker. Rules that only a server with state can
check have their texts here, too: the provider's own violation gives the rule and the path of the item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from segue.conformance.openai_responses.items import item_specs
from segue.conformance.openai_responses.types import MEMBERS, SPEC
from segue.conformance.values import text_or_empty
from segue.emulator.errors import openai_chat
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, RuleError, member
from segue.emulator.errors.openai_style import (
    NAME_PATTERN,
    OBJECTS,
    TEXT_OR_OBJECTS,
    ValueSpec,
    empty_array_error,
    find_message,
    invalid_choice_error,
    mismatch_error,
    missing_error,
    missing_field_error,
    schema_error,
    shorten,
    spec_error,
    unknown_parameter_error,
)
from segue.emulator.errors.tool_declarations import find_parameters_error
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import find_mismatches
from segue.wire.base import ApiError
from segue.wire.json_values import object_list

PREVIOUS_NOT_FOUND = "previous_response_not_found"
"""Not in the rulebook: `previous_response_id` is not stored."""

NO_TOOL_OUTPUT = "No tool output found for tool call"
_UNVERIFIED = "The encrypted content for item {id} could not be verified. Reason: Encrypted content "
_ROLES = ("assistant", "system", "developer", "user")
_INPUT = ("input_text", "input_image", "input_file")
_OUTPUT = ("output_text", "refusal")
_PARTS = ("input_text", "input_image", "output_text", "refusal", "input_file", "computer_screenshot", "summary_text")
_TYPE_NAMES: Mapping[str, str] = {"string": "a string", "list": OBJECTS, "object": "an object", "boolean": "a boolean"}
_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}
_ID = re.compile(r"[a-zA-Z0-9_-]*")
_NAMED = re.compile(r"'(rs_[^']*)'")
_OUTPUTS = ValueSpec(TEXT_OR_OBJECTS, maximum=10_485_760)
_MOVED = (
    "Unsupported parameter: '{}'. In the Responses API, this parameter has moved to '{}'. Try again with the new "
    "parameter."
)
_REFERENCE = (
    " See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create."
)
# Options of Chat Completions, and their new places.
_NEW_PLACES = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "verbosity": "text.verbosity",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
# OAI-RESP-29. Codex sends those in the second row, too.
_COMPACT_MEMBERS = frozenset(
    {
        *("model", "input", "instructions", "previous_response_id", "service_tier", "image"),
        *("tools", "parallel_tool_calls", "reasoning", "text", "client_metadata"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    }
)
_CHECKED_BY_RULES = frozenset({"messages", "system"})
_EXCLUSIVE = (
    "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. Ensure you are only providing one of: "
    "'conversation' or 'previous_response_id'."
)


# --------------------------------------------------------------------------------------------------------------- items


def _item_type(broken: BrokenRule) -> str:
    item = find_message(broken)
    return text_or_empty(item.get("type")) or ("message" if "role" in item else "item_reference")


def _readable_type(broken: BrokenRule) -> str:
    return _item_type(broken).replace("_", " ")


def _item_id_text(broken: BrokenRule) -> str:
    return text_or_empty(find_message(broken).get("id"))


def _call_id(broken: BrokenRule) -> str:
    item = find_message(broken)
    return text_or_empty(item.get("call_id")) or text_or_empty(item.get("id"))


def _input_error(message: str, status: int = 400) -> ApiError:
    return ApiError(status, message, param="input")


def _text_error(template: str, code: str | None = None, param: str | None = "input") -> ErrorBuilder:
    """Build an error from a template with the type, the id and the name of the item, and the id of its call."""

    def build(broken: BrokenRule) -> ApiError:
        message = template.format(
            type=_readable_type(broken),
            id=_item_id_text(broken),
            name=text_or_empty(find_message(broken).get("name")),
            call_id=_call_id(broken),
        )
        return ApiError(400, message, code=code, param=param)

    return build


def _member_error(broken: BrokenRule) -> ApiError:
    """Build the error for a member of an item, by its item spec."""
    if len(broken.steps) < 3:
        return schema_error(broken, ValueSpec("an object"))
    key, item_spec = broken.steps[2], item_specs().get(_item_type(broken))
    if item_spec is None or key not in item_spec.keys:
        return unknown_parameter_error(broken.path)
    if key == "status":
        return schema_error(broken, ValueSpec(values=item_spec.statuses))
    if key in item_spec.required and len(broken.steps) == 3:
        member_spec = item_spec.required[str(key)]
        null = " or null" if member_spec.nullable else ""
        return schema_error(broken, ValueSpec(_TYPE_NAMES.get(member_spec.kind, "a string") + null))
    return schema_error(broken, ValueSpec())


def _item_error(broken: BrokenRule) -> ApiError:
    """Build the error for an item type or a role; else for a member."""
    last = broken.steps[-1] if broken.steps else ""
    if len(broken.steps) == 3 and last in ("role", "type") and broken.value is not None:
        values = tuple(sorted(item_specs())) if last == "type" else _ROLES
        return invalid_choice_error(
            broken.path, broken.value, ("developer",) if _item_type(broken) == "additional_tools" else values
        )
    return _member_error(broken)


def _item_id_error(broken: BrokenRule) -> ApiError:
    value, prefix = broken.value, _PREFIXES.get(_item_type(broken), "")
    if broken.steps[-1:] != ("id",):
        return _member_error(broken)
    if not isinstance(value, str):
        return schema_error(broken, ValueSpec())
    if not value.startswith(prefix):
        message = f"Expected an ID that begins with '{prefix}'."
    elif not _ID.fullmatch(value):
        message = "Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained "
        message += "additional characters."
    else:
        return schema_error(broken, ValueSpec(minimum=1, maximum=64))
    return ApiError(
        400, f"Invalid '{broken.path}': '{shorten(value)}'. {message}", code="invalid_value", param=broken.path
    )


def _part_error(broken: BrokenRule) -> ApiError:
    """Build the error for content and its parts."""
    last = broken.steps[-1] if broken.steps else ""
    if last in ("content", "output"):
        return schema_error(broken, _OUTPUTS)
    if last == "type":
        allowed = _OUTPUT if find_message(broken).get("role") == "assistant" else _INPUT
        if broken.steps[2:] == ("output", "type"):
            return invalid_choice_error(broken.path, broken.value, ("computer_screenshot",))
        known = allowed if broken.value in _PARTS else _PARTS
        return invalid_choice_error(broken.path.removesuffix(".type"), broken.value, known)
    part_type = member(broken.value, "type")
    if isinstance(last, int) and isinstance(part_type, str):
        return missing_error(f"{broken.path}.{'image_url' if part_type == 'input_image' else 'file_id'}")
    kind = "an object" if isinstance(last, int) or last == "outcome" else "an integer" if last == "exit_code" else ""
    return schema_error(broken, ValueSpec(kind or "a string"))


def _output_error(broken: BrokenRule) -> ApiError:
    if broken.steps[-1:] == ("file_data",) and isinstance(broken.value, str):
        message = f"Invalid '{broken.path}'. Expected a base64-encoded data URL with a valid file MIME type"
        return ApiError(400, message, code="invalid_value", param=broken.path)
    at_output = broken.steps[2:3] == ("output",)
    if at_output and _item_type(broken) == "computer_call_output" and len(broken.steps) == 3:
        return schema_error(broken, ValueSpec("an object"))
    if at_output and _item_type(broken) == "shell_call_output" and len(broken.steps) == 3:
        return schema_error(broken, ValueSpec(OBJECTS))
    if at_output and _item_type(broken) in ("apply_patch_call_output", "local_shell_call_output"):
        return schema_error(broken, ValueSpec())
    return _part_error(broken) if at_output else _member_error(broken)


# -------------------------------------------------------------------------------------------------------------- pairing


_missing_output_error = _text_error("No tool output found for {type} {call_id}.")
_orphan_output_error = _text_error("No tool call found for {type} with call_id {call_id}.")


def _call_error(broken: BrokenRule) -> ApiError:
    """OAI-RESP-17: calls without outputs, outputs of another type, and members of calls."""
    if len(broken.steps) == 2:
        return _missing_output_error(broken)
    return _orphan_output_error(broken) if broken.steps[2:] == ("type",) else _member_error(broken)


def _hosted_error(broken: BrokenRule) -> ApiError:
    if broken.steps[2:] == ("call_id",):
        return schema_error(broken, ValueSpec(minimum=1, maximum=64))
    return _member_error(broken)


def _approval_error(broken: BrokenRule) -> ApiError:
    if len(broken.steps) == 2:
        return _orphan_output_error(broken)
    if broken.steps[2:] == ("approval_request_id",) and isinstance(broken.value, str):
        return _input_error(f"No approval request found for mcp approval response with id {broken.value}.")
    return _member_error(broken)


def _duplicate_call_error(broken: BrokenRule) -> ApiError:
    return ApiError(422, f"Duplicate {_readable_type(broken)} id {_call_id(broken)}", param=broken.path)


# ------------------------------------------------------------------------------------------------------------ reasoning


def _missing_reasoning_error(broken: BrokenRule) -> ApiError:
    """Return the error; the violation's message may contain the id of the missing reasoning."""
    match = _NAMED.search(broken.message)
    reasoning_id = match[1] if match else "rs_" + _item_id_text(broken).partition("_")[2]
    of_type = "" if _item_type(broken) == "message" else f" of type '{_item_type(broken)}'"
    return _input_error(
        f"Item '{_item_id_text(broken)}'{of_type} was provided without its required 'reasoning' item: '{reasoning_id}'."
    )


def _not_stored_error(broken: BrokenRule) -> ApiError:
    message = f"Item with id '{_item_id_text(broken)}' not found."
    if broken.value_at("store") is False:
        message += (
            " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove "
        )
        message += "this item from your input."
    return _input_error(message, 404)


def _encrypted_content_error(broken: BrokenRule) -> ApiError:
    value = find_message(broken).get("encrypted_content")
    if value is not None and not isinstance(value, str):
        return schema_error(broken, ValueSpec())
    ends = f"{text_or_empty(value)[:4]}...{text_or_empty(value)[-4:]}"
    return ApiError(400, f"The encrypted content {ends} could not be verified.", code="invalid_encrypted_content")


# ---------------------------------------------------------------------------------------------------------------- body


def _tool_error(broken: BrokenRule) -> ApiError:
    last = broken.steps[-1] if broken.steps else ""
    if last == "tools":
        return schema_error(broken, ValueSpec(OBJECTS))
    if isinstance(last, int):
        return missing_error(f"{broken.path}.type")
    if last == "parameters":
        return schema_error(broken, ValueSpec("an object"))
    if last in ("name", "namespace"):
        space = last == "namespace" or member(broken.value_at(*broken.steps[:-1]), "type") == "namespace"
        return schema_error(broken, ValueSpec(minimum=1, maximum=64 if space else 128, pattern=NAME_PATTERN))
    return schema_error(broken, ValueSpec())


def _body_error(broken: BrokenRule) -> ApiError:
    match broken.path:
        case "input":
            return schema_error(broken, ValueSpec(TEXT_OR_OBJECTS))
        case "conversation":
            return ApiError(400, _EXCLUSIVE, code="mutually_exclusive_parameters", param="conversation")
        case "messages":
            message = _MOVED.format("messages", "input") + _REFERENCE
            return ApiError(400, message, code="unsupported_parameter", param="messages")
        case "system":
            return unknown_parameter_error(broken.path)
        case _:
            return schema_error(broken, ValueSpec())


def _previous_response_error(broken: BrokenRule) -> ApiError:
    message = f"Previous response with id '{text_or_empty(broken.value_at('previous_response_id'))}' not found."
    return ApiError(400, message, code=PREVIOUS_NOT_FOUND, param="previous_response_id")


def response_not_found_error(response_id: str) -> ApiError:
    return ApiError(404, f"Response with id '{response_id}' not found.")


_RULES: dict[str, RuleError] = {
    "OAI-RESP-01": spec_error(minimum=1, maximum=64),
    "OAI-RESP-02": _item_id_error,
    "OAI-RESP-03": _item_id_error,
    "OAI-RESP-04": _missing_output_error,
    "OAI-RESP-05": _orphan_output_error,
    "OAI-RESP-07": _text_error("Item '{id}' of type 'reasoning' was provided without its required following item."),
    "OAI-RESP-08": _missing_reasoning_error,
    "OAI-RESP-09": _missing_reasoning_error,
    "OAI-RESP-10": _not_stored_error,
    "OAI-RESP-11": _encrypted_content_error,
    "OAI-RESP-12": _text_error(f"{_UNVERIFIED}could not be decrypted or parsed.", "invalid_encrypted_content", None),
    "OAI-RESP-13": _text_error(
        "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
    ),
    "OAI-RESP-14": _item_error,
    "OAI-RESP-15": _part_error,
    "OAI-RESP-16": _output_error,
    "OAI-RESP-17": _call_error,
    "OAI-RESP-18": _text_error(
        "Missing namespace for function_call '{name}'. It does not exist in the default namespace."
    ),
    "OAI-RESP-19": _tool_error,
    "OAI-RESP-20": _hosted_error,
    "OAI-RESP-21": _approval_error,
    "OAI-RESP-24": _body_error,
    "OAI-RESP-25": _duplicate_call_error,
    "OAI-RESP-06": _text_error(f"{NO_TOOL_OUTPUT} {{call_id}}"),
    "OAI-RESP-26": spec_error(),
    "OAI-RESP-27": _input_error("The 'compaction_trigger' item must be the final input item."),
    # Encrypted content under the id of another item.
    "OAI-RESP-28": _text_error(
        f"{_UNVERIFIED}item_id did not match the target item id.", "invalid_encrypted_content", None
    ),
    PREVIOUS_NOT_FOUND: _previous_response_error,
}


# ------------------------------------------------------------------------------ what is checked before the conversation


def _undeclared_choice(body: Mapping[str, Any]) -> str | None:
    """Return the function or custom tool in tool_choice if it is not declared: in the tools, an item or a prompt."""
    choice, tools = body.get("tool_choice"), object_list(body.get("tools"))
    name = member(choice, "name")
    if member(choice, "type") not in ("function", "custom") or not isinstance(name, str):
        return None
    items = object_list(body.get("input"))
    may_be_declared_elsewhere = (
        body.get("prompt") is not None
        or any(item.get("type") in ("additional_tools", "tool_search_output") for item in items)
        or any(tool.get("type") in ("namespace", "mcp") for tool in tools)
    )
    return None if may_be_declared_elsewhere or name in [tool.get("name") for tool in tools] else name


def validate_body(body: Mapping[str, Any], http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec. The rules check items and their parts."""
    members = _COMPACT_MEMBERS if http_request.path.endswith("/compact") else MEMBERS.keys()
    unknown_key = next((name for name in body if name not in members and name not in _CHECKED_BY_RULES), None)
    if unknown_key in _NEW_PLACES:
        message = _MOVED.format(unknown_key, _NEW_PLACES[unknown_key])
        return ApiError(400, message, code="unsupported_parameter", param=unknown_key)
    if unknown_key is not None:
        return unknown_parameter_error(unknown_key)
    for mismatch in find_mismatches(SPEC, body):
        return mismatch_error(mismatch)
    if body.get("input") == [] and not any(
        body.get(name) for name in ("previous_response_id", "conversation", "prompt")
    ):
        return empty_array_error("input")
    for index, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") == "function" and tool.get("parameters") is not None:
            error = find_parameters_error(f"tools[{index}].parameters", tool.get("name"), tool["parameters"])
            if error is not None:
                return error
    undeclared = _undeclared_choice(body)
    if undeclared is None:
        return None
    return ApiError(400, f"Tool choice '{undeclared}' not found in 'tools' parameter.", param="tool_choice")


STANDARD_ERRORS = replace(
    openai_chat.STANDARD_ERRORS,
    missing_field=missing_field_error,
    context_length=ApiError(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
        param="input",
    ),
)

ERROR_TEXTS = ErrorTexts(
    _RULES,
    STANDARD_ERRORS,
    rule_order=(
        *("OAI-RESP-24", "OAI-RESP-19", "OAI-RESP-14", "OAI-RESP-15", "OAI-RESP-16", "OAI-RESP-20", "OAI-RESP-01"),
        *("OAI-RESP-02", "OAI-RESP-03", PREVIOUS_NOT_FOUND, "OAI-RESP-13", "OAI-RESP-10", "OAI-RESP-11", "OAI-RESP-12"),
    ),
    validate=validate_body,
)

"""The error texts of OpenAI Responses, also for items that are not stored.

Errors about members of items follow the item specs of the conformance checker. Rules that only a server with state can
check have their texts here, too: the provider's own violation gives the rule and the path of the item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from segue.conformance.openai_responses.items import SHAPES
from segue.emulator.wording import openai_chat
from segue.emulator.wording.fault import Fault, Word, Words
from segue.emulator.wording.openai_style import (
    NAME,
    Want,
    choices,
    found_in,
    message_of,
    said,
    schema_error,
    shown,
    unknown_parameter,
    wanted,
)
from segue.wire.base import ApiError

__all__ = ["PREVIOUS", "WORDS"]

PREVIOUS = "previous_response_not_found"
"""Not in the rulebook: `previous_response_id` is not stored."""

_ROLES = ("assistant", "system", "developer", "user")
_INPUT = ("input_text", "input_image", "input_file")
_OUTPUT = ("output_text", "refusal")
_PARTS = ("input_text", "input_image", "output_text", "refusal", "input_file", "computer_screenshot", "summary_text")
_FORMS: Mapping[str, str] = {
    "string": "a string",
    "list": "an array of objects",
    "object": "an object",
    "boolean": "a boolean",
    "string or null": "a string or null",
    "list or null": "an array of objects or null",
}
_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}
_ID = re.compile(r"[a-zA-Z0-9_-]*")
_NAMED = re.compile(r"'(rs_[^']*)'")
_OUTPUTS = Want("one of a string or array of objects", most=10_485_760)
_MOVED = (
    "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with the "
    "new parameter. See the API documentation for more information: "
    "https://platform.openai.com/docs/api-reference/responses/create."
)
_EXCLUSIVE = (
    "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. Ensure you are only providing one of: "
    "'conversation' or 'previous_response_id'."
)


# --------------------------------------------------------------------------------------------------------------- items


def _sort(fault: Fault) -> str:
    item = message_of(fault)
    return said(item.get("type")) or ("message" if "role" in item else "item_reference")


def _spoken(fault: Fault) -> str:
    return _sort(fault).replace("_", " ")


def _id(fault: Fault) -> str:
    return said(message_of(fault).get("id"))


def _call_id(fault: Fault) -> str:
    item = message_of(fault)
    return said(item.get("call_id")) or said(item.get("id"))


def _on_input(message: str, status: int = 400, code: str | None = None) -> ApiError:
    return ApiError(status, message, code=code, param="input")


def _member(fault: Fault) -> ApiError:
    """Builds the error for a member of an item, by its item spec."""
    if len(fault.steps) < 3:
        return schema_error(fault, Want("an object"))
    key, shape = fault.steps[2], SHAPES.get(_sort(fault))
    if shape is None or key not in shape.keys:
        return unknown_parameter(fault)
    if key == "status":
        return schema_error(fault, Want(values=tuple(shape.statuses.split())))
    if key in shape.needs and len(fault.steps) == 3:
        return schema_error(fault, Want(_FORMS.get(shape.needs[str(key)], "a string")))
    return schema_error(fault, Want())


def _item(fault: Fault) -> ApiError:
    """Builds the error for an item type or a role; else for a member."""
    last = fault.steps[-1] if fault.steps else ""
    if len(fault.steps) == 2 and _sort(fault) == "compaction_trigger":
        return _on_input("'compaction_trigger' must be the last item of the input.")
    if len(fault.steps) == 3 and last in ("role", "type") and fault.value is not None:
        values = tuple(sorted(SHAPES)) if last == "type" else _ROLES
        return choices(fault.path, fault.value, ("developer",) if _sort(fault) == "additional_tools" else values)
    return _member(fault)


def _item_id(fault: Fault) -> ApiError:
    value, prefix = fault.value, _PREFIXES.get(_sort(fault), "")
    if fault.steps[-1:] != ("id",):
        return _member(fault)
    if not isinstance(value, str):
        return schema_error(fault, Want())
    if not value.startswith(prefix):
        message = f"Expected an ID that begins with '{prefix}'."
    elif not _ID.fullmatch(value):
        message = "Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained "
        message += "additional characters."
    else:
        return schema_error(fault, Want(least=1, most=64))
    return ApiError(400, f"Invalid '{fault.path}': '{shown(value)}'. {message}", code="invalid_value", param=fault.path)


def _part(fault: Fault) -> ApiError:
    """Content and its parts."""
    last = fault.steps[-1] if fault.steps else ""
    if last in ("content", "output"):
        return schema_error(fault, _OUTPUTS)
    if last == "type":
        of = _OUTPUT if message_of(fault).get("role") == "assistant" else _INPUT
        if fault.steps[2:] == ("output", "type"):
            return choices(fault.path, fault.value, ("computer_screenshot",))
        known = of if fault.value in _PARTS else _PARTS
        return choices(fault.path.removesuffix(".type"), fault.value, known)
    sort = found_in(fault.value, "type")
    if isinstance(last, int) and isinstance(sort, str):
        return ApiError(
            400,
            f"Missing required parameter: '{fault.path}.{'image_url' if sort == 'input_image' else 'file_id'}'.",
            code="missing_required_parameter",
            param=f"{fault.path}.{'image_url' if sort == 'input_image' else 'file_id'}",
        )
    kind = "an object" if isinstance(last, int) or last == "outcome" else "an integer" if last == "exit_code" else ""
    return schema_error(fault, Want(kind or "a string"))


def _output(fault: Fault) -> ApiError:
    at_output = fault.steps[2:3] == ("output",)
    if at_output and _sort(fault) == "computer_call_output" and len(fault.steps) == 3:
        return schema_error(fault, Want("an object"))
    if at_output and _sort(fault) == "shell_call_output" and len(fault.steps) == 3:
        return schema_error(fault, Want("an array of objects"))
    if at_output and _sort(fault) in ("apply_patch_call_output", "local_shell_call_output"):
        return schema_error(fault, Want())
    return _part(fault) if at_output else _member(fault)


# -------------------------------------------------------------------------------------------------------------- pairing


def _unanswered(fault: Fault) -> ApiError:
    return _on_input(f"No tool output found for {_spoken(fault)} {_call_id(fault)}.")


def _unasked(fault: Fault) -> ApiError:
    return _on_input(f"No tool call found for {_spoken(fault)} with call_id {_call_id(fault)}.")


def _called(fault: Fault) -> ApiError:
    """OAI-RESP-17: calls without outputs, outputs of another type, and members of calls."""
    if len(fault.steps) == 2:
        return _unanswered(fault)
    return _unasked(fault) if fault.steps[2:] == ("type",) else _member(fault)


def _hosted(fault: Fault) -> ApiError:
    if fault.steps[2:] == ("call_id",):
        return schema_error(fault, Want(least=1, most=64))
    return _member(fault)


def _approval(fault: Fault) -> ApiError:
    if len(fault.steps) == 2:
        return _unasked(fault)
    if fault.steps[2:] == ("approval_request_id",) and isinstance(fault.value, str):
        return _on_input(f"No approval request found for mcp approval response with id {fault.value}.")
    return _member(fault)


def _twice(fault: Fault) -> ApiError:
    return ApiError(422, f"Duplicate {_spoken(fault)} id {_call_id(fault)}", param=fault.path)


# ------------------------------------------------------------------------------------------------------------ reasoning


def _unfollowed(fault: Fault) -> ApiError:
    message = f"Item '{_id(fault)}' of type 'reasoning' was provided without its required following item."
    return _on_input(message)


def _without_reasoning(fault: Fault) -> ApiError:
    """The violation's message may contain the id of the missing reasoning."""
    named = _NAMED.search(fault.message)
    reasoning_id = named[1] if named else "rs_" + _id(fault).partition("_")[2]
    of = "" if _sort(fault) == "message" else f" of type '{_sort(fault)}'"
    return _on_input(f"Item '{_id(fault)}'{of} was provided without its required 'reasoning' item: '{reasoning_id}'.")


def _not_stored(fault: Fault) -> ApiError:
    message = f"Item with id '{_id(fault)}' not found."
    if fault.at("store") is False:
        message += (
            " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove "
        )
        message += "this item from your input."
    return _on_input(message, 404)


def _sealed(fault: Fault) -> ApiError:
    value = message_of(fault).get("encrypted_content")
    if value is not None and not isinstance(value, str):
        return schema_error(fault, Want())
    ends = f"{said(value)[:4]}...{said(value)[-4:]}"
    return ApiError(400, f"The encrypted content {ends} could not be verified.", code="invalid_encrypted_content")


def _sealed_item(fault: Fault) -> ApiError:
    message = (
        f"The encrypted content for item {_id(fault)} could not be verified. Reason: Encrypted content could not be "
    )
    return ApiError(400, f"{message}decrypted or parsed.", code="invalid_encrypted_content")


def _duplicate(fault: Fault) -> ApiError:
    message = f"Duplicate item found with id {_id(fault)}. Remove duplicate items from your input and try again."
    return _on_input(message)


# ---------------------------------------------------------------------------------------------------------------- body


def _namespace(fault: Fault) -> ApiError:
    name = said(message_of(fault).get("name"))
    message = f"Missing namespace for function_call '{name}'. It does not exist in the default namespace."
    return _on_input(message)


def _tool(fault: Fault) -> ApiError:
    last = fault.steps[-1] if fault.steps else ""
    if last == "tools":
        return schema_error(fault, Want("an array of objects"))
    if isinstance(last, int):
        path = f"{fault.path}.type"
        return ApiError(400, f"Missing required parameter: '{path}'.", code="missing_required_parameter", param=path)
    if last == "parameters":
        return schema_error(fault, Want("an object"))
    if last in ("name", "namespace"):
        space = last == "namespace" or found_in(fault.at(*fault.steps[:-1]), "type") == "namespace"
        return schema_error(fault, Want(least=1, most=64 if space else 128, pattern=NAME))
    return schema_error(fault, Want())


def _body(fault: Fault) -> ApiError:
    match fault.path:
        case "input":
            return schema_error(fault, Want("one of a string or array of objects"))
        case "conversation":
            return ApiError(400, _EXCLUSIVE, code="mutually_exclusive_parameters", param="conversation")
        case "messages":
            return ApiError(400, _MOVED, code="unsupported_parameter", param="messages")
        case "system":
            return unknown_parameter(fault)
        case _:
            return schema_error(fault, Want())


def _previous(fault: Fault) -> ApiError:
    message = f"Previous response with id '{said(fault.at('previous_response_id'))}' not found."
    return ApiError(400, message, code=PREVIOUS, param="previous_response_id")


_RULES: dict[str, Word] = {
    "OAI-RESP-01": wanted(least=1, most=64),
    "OAI-RESP-02": _item_id,
    "OAI-RESP-03": _item_id,
    "OAI-RESP-04": _unanswered,
    "OAI-RESP-05": _unasked,
    "OAI-RESP-07": _unfollowed,
    "OAI-RESP-08": _without_reasoning,
    "OAI-RESP-09": _without_reasoning,
    "OAI-RESP-10": _not_stored,
    "OAI-RESP-11": _sealed,
    "OAI-RESP-12": _sealed_item,
    "OAI-RESP-13": _duplicate,
    "OAI-RESP-14": _item,
    "OAI-RESP-15": _part,
    "OAI-RESP-16": _output,
    "OAI-RESP-17": _called,
    "OAI-RESP-18": _namespace,
    "OAI-RESP-19": _tool,
    "OAI-RESP-20": _hosted,
    "OAI-RESP-21": _approval,
    "OAI-RESP-24": _body,
    "OAI-RESP-25": _twice,
    PREVIOUS: _previous,
}

WORDS = Words(
    _RULES,
    openai_chat.TROUBLES,
    first=(
        *("OAI-RESP-24", "OAI-RESP-19", "OAI-RESP-14", "OAI-RESP-15", "OAI-RESP-16", "OAI-RESP-20", "OAI-RESP-01"),
        *("OAI-RESP-02", "OAI-RESP-03", PREVIOUS, "OAI-RESP-13", "OAI-RESP-10", "OAI-RESP-11", "OAI-RESP-12"),
    ),
)

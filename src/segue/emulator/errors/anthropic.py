"""The error texts of Anthropic Messages.

The schema is checked first and reports only its first error, in pydantic's format
(`messages.1.content.0.tool_use.id: Field required`) with the type of each block in the path. The conformance rules
check the keys and the content of blocks, calls and results, `validate_body` the rest. Pairing and thinking have their
own texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from segue.conformance.anthropic.content import KEYS
from segue.conformance.anthropic.types import BLOCKS, MEMBERS, SPEC
from segue.conformance.body_types import is_integral_float
from segue.conformance.values import is_list, is_object
from segue.emulator.errors.anthropic_blocks import (
    BLOCK_ERRORS,
    find_block,
    invalid_request,
    move_violation,
    schema_path,
    tagged_path,
)
from segue.emulator.errors.anthropic_compaction import COMPACTION_ERRORS, validate_betas
from segue.emulator.errors.broken_rule import (
    TOO_DEEP,
    BrokenRule,
    ErrorBuilder,
    ErrorTexts,
    RuleError,
    StandardErrors,
    find_parse_failure,
    parse_path,
)
from segue.emulator.errors.pydantic_style import (
    EMPTY_STRING,
    EXTRA,
    MISSING,
    bounds_message,
    missing_tag_message,
    tag_message,
    type_message,
)
from segue.emulator.errors.tool_declarations import find_schema_error
from segue.emulator.http_messages import HttpRequest
from segue.models import parse_model
from segue.specs.types import Mismatch, find_mismatches
from segue.wire.base import ApiError
from segue.wire.json_values import object_list

_VALID_NAME = re.compile("[a-zA-Z0-9_-]{1,128}")
_MessageBuilder = Callable[[BrokenRule, Any], str]

_TEXT, _LIST, _OBJECT, _BLOCK = map(type_message, ("string", "list", "map", "object"))
_IN_RESULTS = ("document", "image", "search_result", "text", "tool_reference")
_NOT_IN_MESSAGES = {"browser_state", "fallback", "mcp_tool_listing", "tool_reference", "web_search_result"}
_IN_MESSAGES = tuple(sorted(KEYS.keys() - _NOT_IN_MESSAGES))

_EMPTY = "text content blocks must be non-empty"
_BLANK = "text content blocks must contain non-whitespace text"
_NEED_CONTENT = "all messages must have non-empty content except for the optional final assistant message"
_ALLOWED = 'Allowed roles are "user" or "assistant".'
_NO_SYSTEM = 'The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
MODEL_ERRORS = "The model returned the following errors: "
"""What Bedrock puts before an error of the model."""
_INTERLEAVED = "interleaved-thinking-2025-05-14"
_SCHEMA = (
    "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn "
    "more about tool use at https://docs.claude.com/en/docs/tool-use."
)
_BUDGET = (
    "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
)
_ON_TOOLS = "For instructions on how to use tools, see https://docs.anthropic.com/en/docs/tool-use"
_NO_TOOLS = "Requests which have `tool_use` or `tool_result` blocks in the conversation must define `tools`."


# ------------------------------------------------------------------------------------------------ errors about the body


def _field_error(wrong_type: str, otherwise: str | _MessageBuilder) -> ErrorBuilder:
    """Build an error at the field: missing, of a wrong type, or else this message."""

    def build(broken: BrokenRule) -> ApiError:
        return invalid_request(f"{schema_path(broken)}: {_field_message(broken, wrong_type, otherwise)}")

    return build


def _field_message(broken: BrokenRule, wrong_type: str, otherwise: str | _MessageBuilder) -> str:
    value = broken.value
    *above, last = broken.steps or ("",)
    holder = broken.value_at(*above)
    if is_object(holder) and last not in holder:
        return MISSING
    expected_type = {_TEXT: str, _LIST: list | str, _OBJECT: Mapping}.get(wrong_type, object)
    if not isinstance(value, expected_type):
        return wrong_type
    return otherwise if isinstance(otherwise, str) else otherwise(broken, value)


def _pattern_message(pattern: str) -> str:
    return f"String should match pattern '{pattern}'"


def _name_message(_: BrokenRule, name: Any) -> str:
    if not name:
        return EMPTY_STRING
    if len(name) > 128:
        return "String should have at most 128 characters"
    # Older deployments have half of it.
    longest = 64 if _VALID_NAME.fullmatch(name) else 128
    return _pattern_message(f"^[a-zA-Z0-9_-]{{1,{longest}}}$")


def _keys_error(broken: BrokenRule) -> ApiError:
    """ANT-12: a block without a type or with an invalid one, or an unknown key."""
    *above, last = broken.steps or ("",)
    block = broken.value_at(*above)
    if last != "type":
        return invalid_request(f"{schema_path(broken)}: {EXTRA}")
    if not is_object(block) or "type" not in block:
        return invalid_request(f"{broken.dotted_path}: {MISSING}")
    outer = BrokenRule(broken.body, (move_violation(broken.violations[0], above),))
    expected = _IN_RESULTS if len(above) > 4 else _IN_MESSAGES if "messages" in above else ("text",)
    return invalid_request(f"{schema_path(outer)}: {tag_message(outer.value.get('type'), expected)}")


def _text_error(broken: BrokenRule) -> ApiError:
    """ANT-13"""
    message = _field_message(broken, _TEXT, "")
    return invalid_request(f"{schema_path(broken)}: {message}" if message else f"messages: {_EMPTY}")


def _user_content_error(broken: BrokenRule) -> ApiError:
    """ANT-15"""
    text = _field_message(broken, _LIST, "")
    message = f"messages.{broken.steps[1] if len(broken.steps) > 1 else 0}"
    return invalid_request(
        f"{broken.dotted_path}: {text}" if text else f"{message}: user messages must have non-empty content"
    )


def _assistant_content_error(broken: BrokenRule) -> ApiError:
    """ANT-16"""
    message = _field_message(broken, _LIST, "")
    return invalid_request(
        f"{broken.dotted_path}: {message}"
        if message
        else f"{broken.dotted_path.removesuffix('.content')}: {_NEED_CONTENT}"
    )


def _result_content_error(broken: BrokenRule) -> ApiError:
    """ANT-18"""
    match broken.steps:
        case (*_, "is_error"):
            return invalid_request(f"{schema_path(broken)}: {type_message('boolean')}")
        case (*above, "content") if broken.value_at(*above, "is_error") is True and not broken.value:
            place = schema_path(broken).removesuffix(".content")
            return invalid_request(f"{place}: content cannot be empty if `is_error` is true")
        case (*_, "content"):
            return invalid_request(f"{schema_path(broken)}: {_LIST}")
        case _ if not is_object(broken.value):
            return invalid_request(f"{schema_path(broken)}: {_BLOCK}")
        case (*above, "content", int()) if broken.value.get("type") in _IN_RESULTS:
            place = schema_path(BrokenRule(broken.body, (move_violation(broken.violations[0], [*above, "content"]),)))
            return invalid_request(
                f"{place.removesuffix('.content')}: all content must be type `text` if `is_error` is true"
            )
        case _:
            return invalid_request(f"{schema_path(broken)}: {tag_message(broken.value.get('type'), _IN_RESULTS)}")


def _system_error(broken: BrokenRule) -> ApiError:
    """ANT-19"""
    value = broken.value
    if isinstance(value, str):
        return invalid_request(f"system: {_BLANK if value else _EMPTY}")
    if broken.steps == ("system",):
        return invalid_request(f"system: {_LIST}")
    message = _field_message(broken, _TEXT, _TEXT) if broken.steps[-1:] == ("text",) else _BLOCK
    return invalid_request(f"{broken.dotted_path}: {message}")


def _role_error(broken: BrokenRule) -> ApiError:
    """ANT-20"""
    role = broken.value if isinstance(broken.value, str) else ""
    rest = {"system": _NO_SYSTEM, "tool": f"{_ALLOWED} {_ON_TOOLS}"}.get(role, _ALLOWED)
    return invalid_request(f'messages: Unexpected role "{role}". {rest}')


def _schema_error(broken: BrokenRule) -> ApiError:
    """ANT-36"""
    match broken.steps:
        case ("tools",):
            return invalid_request(_NO_TOOLS if broken.value in (None, []) else f"tools: {_LIST}")
        case (*_, "type"):
            return _field_error("", "Input should be 'object'")(broken)
        case _:
            return _field_error(_OBJECT, _OBJECT)(broken)


def _property_error(broken: BrokenRule) -> ApiError:
    """ANT-41. Claude on Bedrock has the path of its own API."""
    index = next((step for step in broken.steps if isinstance(step, int)), 0)
    message = "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
    return invalid_request(f"tools.{index}.custom.input_schema.properties: {message}")


def _type_error(broken: BrokenRule) -> ApiError:
    """ANT-42: what the validation of the body does not report: the effort, and types in a block."""
    if broken.steps[-1:] == ("effort",):
        return invalid_request(broken.message.removeprefix(MODEL_ERRORS))
    return _field_error(_BLOCK, _BLOCK)(broken)


def _encrypted_content_error(broken: BrokenRule) -> ApiError:
    """ANT-32"""
    message = "" if broken.steps[-1:] != ("encrypted_content",) else _field_message(broken, _TEXT, "")
    place, _ = find_block(broken)
    return invalid_request(
        f"{schema_path(broken)}: {message}"
        if message
        else f"{place}: Invalid `encrypted_content` in `search_result` block"
    )


# -------------------------------------------------------------------------------------------------------------- threads

# Not in the rulebook: errors about threads. The code is in the error's details.
THREAD_NOT_FOUND = "thread_not_found"
THREAD_ALREADY_CONTINUED = "thread_already_continued"
THREAD_FIELDS = "thread_fields"


def _thread_error(code: str, status: int, message: str) -> ApiError:
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    return ApiError(status, message, kind, details=({"error_code": code},))


RULES: Mapping[str, RuleError] = {
    THREAD_NOT_FOUND: _thread_error(
        THREAD_NOT_FOUND, 404, "No usable Thread state was found for `previous_message_id`."
    ),
    THREAD_ALREADY_CONTINUED: _thread_error(
        THREAD_ALREADY_CONTINUED,
        400,
        "The response that `previous_message_id` names has already been continued, and each response can be continued "
        "only once.",
    ),
    THREAD_FIELDS: lambda broken: invalid_request(f"{broken.path}: not permitted when continuing a thread"),
    "ANT-01": _field_error(_TEXT, _pattern_message("^[a-zA-Z0-9_-]+$")),
    "ANT-02": _field_error(_TEXT, _pattern_message("^srvtoolu_[a-zA-Z0-9_]+$")),
    "ANT-11": _field_error(_OBJECT, _OBJECT),
    "ANT-12": _keys_error,
    "ANT-13": _text_error,
    "ANT-14": invalid_request(f"messages: {_BLANK}"),
    "ANT-15": _user_content_error,
    "ANT-16": _assistant_content_error,
    "ANT-18": _result_content_error,
    "ANT-19": _system_error,
    "ANT-20": _role_error,
    "ANT-22": invalid_request(
        "This model does not support assistant message prefill. The conversation must end with a user message."
    ),
    "ANT-23": invalid_request("messages: final assistant content cannot end with trailing whitespace"),
    "ANT-30": invalid_request("Thinking may not be enabled when tool_choice forces tool use."),
    "ANT-32": _encrypted_content_error,
    "ANT-33": invalid_request(f"RequestWebSearchResultBlock.encrypted_content: {MISSING}"),
    "ANT-34": _field_error(_TEXT, _name_message),
    "ANT-35": invalid_request("tools: Tool names must be unique."),
    "ANT-36": _schema_error,
    "ANT-41": _property_error,
    "ANT-42": _type_error,
    **BLOCK_ERRORS,
    **COMPACTION_ERRORS,
}


# ------------------------------------------------------------------------------ what is checked before the conversation


def _join_or(values: tuple[str, ...]) -> str:
    quoted = [f"'{value}'" for value in values]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _mismatch_error(mismatch: Mismatch, body: Mapping[str, Any]) -> ApiError:
    place, spec = tagged_path(body, parse_path(mismatch.path)), mismatch.spec
    match mismatch.kind:
        case "missing" if spec.discriminator:
            message = missing_tag_message(spec.discriminator)
            place = place.rpartition(".")[0]
        case "missing":
            message = MISSING
        case "choice":
            place = tagged_path(body, parse_path(mismatch.path)[:-1])
            message = tag_message(mismatch.value, sorted(spec.variants))
        case "value":
            message = f"Input should be {_join_or(spec.values)}"
        case "type" if spec.any_of:
            message = _TEXT if spec.any_of[-1].kind != "list" else _LIST
        case "type":
            message = _BLOCK if spec.kind == "map" else type_message(spec.kind)
        case _:
            message = bounds_message(mismatch)
    return invalid_request(f"{place}: {message}")


def _validate_blocks(body: Mapping[str, Any]) -> ApiError | None:
    for at, message in enumerate(body["messages"]):
        content = message.get("content")
        for index, block in enumerate(object_list(content)):
            path, tag = f"messages[{at}].content[{index}]", block.get("type")
            if not isinstance(tag, str) or not tag:
                continue
            if tag not in BLOCKS:
                return invalid_request(f"{tagged_path(body, parse_path(path))}: {tag_message(tag, sorted(BLOCKS))}")
            for mismatch in find_mismatches(BLOCKS[tag], block, path):
                return _mismatch_error(mismatch, body)
    return None


def _validate_tools(body: Mapping[str, Any]) -> ApiError | None:
    tools = body.get("tools") or ()
    for index, tool in enumerate(tools):
        schema = tool.get("input_schema")
        custom = tool.get("type") in (None, "custom")
        if not custom or not is_object(schema) or schema.get("type") != "object":
            continue
        # Its types allow null for properties and required.
        if find_schema_error({key: value for key, value in schema.items() if value is not None}) is not None:
            return invalid_request(f"tools.{index}.custom.input_schema: {_SCHEMA}")
    choice = body.get("tool_choice")
    thread = body.get("thread")
    if choice is None or (is_object(thread) and thread.get("type") == "continue") or body.get("mcp_servers"):
        return None
    if not tools:
        why = "tool_choice may only be specified while providing tools"
        return None if choice["type"] == "none" else invalid_request(why)
    toolsets = any("toolset" in str(tool.get("type")) for tool in tools)
    if choice["type"] == "tool" and not toolsets and choice["name"] not in [tool.get("name") for tool in tools]:
        return invalid_request(f"Tool '{choice['name']}' not found in provided tools")
    return None


def _validate_roles(body: Mapping[str, Any]) -> ApiError | None:
    """System messages: models before Opus 4.8 reject them, and a conversation can't start with one."""
    model, roles = parse_model(body.get("model")), [message["role"] for message in body["messages"]]
    if "system" not in roles or model.family != "claude":
        return None
    newer = model.at_least(4, 8) or not model.version
    if not newer:
        return invalid_request("role 'system' is not supported on this model")
    if roles[0] == "system":
        return invalid_request('messages: first message must use the "user" role')
    return None


def _validate_budget(body: Mapping[str, Any], betas: str) -> ApiError | None:
    """With interleaved thinking the budget is for all thinking of a turn and may exceed max_tokens."""
    thinking, most = body.get("thinking"), body.get("max_tokens")
    budget = thinking.get("budget_tokens") if is_object(thinking) and thinking.get("type") == "enabled" else None
    interleaved = _INTERLEAVED in betas and body.get("tools")
    if isinstance(budget, int) and isinstance(most, int) and budget >= most and not interleaved:
        return invalid_request(_BUDGET)
    return None


def _drop_null_type(tool: object) -> object:
    """Return the tool without a null type, which means the default."""
    if not is_object(tool) or "type" not in tool or tool["type"] is not None:
        return tool
    return {key: value for key, value in tool.items() if key != "type"}


def validate_body(body: Mapping[str, Any], http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    betas = http_request.headers.get("anthropic-beta", "")
    if is_list(body.get("tools")):
        body = {**body, "tools": [_drop_null_type(tool) for tool in body["tools"]]}
    for mismatch in find_mismatches(SPEC, body):
        if is_integral_float(mismatch):
            continue
        return _mismatch_error(mismatch, body)
    unknown_key = next((name for name in body if name not in MEMBERS), None)
    if unknown_key is not None:
        return invalid_request(f"{unknown_key}: {EXTRA}")
    error = validate_betas(body, betas, counting=http_request.path.endswith("count_tokens"))
    if error is not None:
        return error
    has_messages = body.get("messages") or is_object(body.get("thread")) or is_object(body.get("compaction"))
    if not has_messages:
        return invalid_request("messages: at least one message is required")
    return _validate_roles(body) or _validate_blocks(body) or _validate_tools(body) or _validate_budget(body, betas)


# -------------------------------------------------------------------------------------------- errors not about the body

_RATE_LIMITED = (
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute. For details, refer "
    "to: https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce "
    "the prompt length or the maximum tokens requested, or try again later. You may also contact sales at "
    "https://claude.com/contact-sales to discuss your options for a rate limit increase."
)


def _bad_json(data: bytes) -> ApiError:
    failure = find_parse_failure(data)
    if failure is None:
        return invalid_request(_BLOCK)
    if not data.strip():
        why = "Input is a zero-length, empty document"
    elif failure.reason == TOO_DEEP:
        why = "Recursion limit reached"
    else:
        why = "unexpected end of data" if failure.at_end else "unexpected character"
    place = f"line {failure.line} column {failure.column} (char {failure.offset})"
    return invalid_request(f"The request body is not valid JSON: {why}: {place}")


ERROR_TEXTS = ErrorTexts(
    RULES,
    StandardErrors(
        no_key=ApiError(401, "x-api-key header is required", "authentication_error"),
        bad_key=ApiError(401, "invalid x-api-key", "authentication_error"),
        bad_json=_bad_json,
        no_route=lambda _method, _path: ApiError(404, "Not Found", "not_found_error"),
        wrong_method=lambda _method, _path: ApiError(405, "Method Not Allowed"),
        no_model=lambda model: ApiError(404, f"model: {model}", "not_found_error"),
        rate_limited=ApiError(429, _RATE_LIMITED, "rate_limit_error"),
        server_error=ApiError(500, "Internal server error", "api_error"),
        context_length=invalid_request("prompt is too long: 214748 tokens > 200000 maximum"),
        missing_field=lambda name, _request, _body: invalid_request(f"{name}: {MISSING}"),
        no_credit=invalid_request(
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
            "purchase credits."
        ),
        overloaded=ApiError(529, "Overloaded", "overloaded_error"),
        max_body_bytes=32 * 2**20,
        too_large=ApiError(413, "Request exceeds the maximum size", "request_too_large"),
    ),
    rule_order=(
        # the schema, then single messages, then conflicting settings
        *("ANT-20", "ANT-12", "ANT-01", "ANT-02", "ANT-11", "ANT-42", "ANT-18", "ANT-33", "ANT-34", "ANT-36", "ANT-41"),
        *("ANT-46", "ANT-47", "ANT-52"),
        *("ANT-16", "ANT-15", "ANT-13", "ANT-14", "ANT-19", "ANT-35", "ANT-30", "ANT-22", "ANT-23"),
        # the conversation
        *("ANT-49", "ANT-48", "ANT-43", "ANT-44"),
        *("ANT-03", "ANT-10", "ANT-09", "ANT-07", "ANT-08", "ANT-04", "ANT-05"),
        # signatures
        *("ANT-24", "ANT-27", "ANT-45", "ANT-31", "ANT-26", "ANT-25", "ANT-28", "ANT-32"),
    ),
    validate=validate_body,
)

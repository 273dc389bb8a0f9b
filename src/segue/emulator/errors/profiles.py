"""Error texts of server profiles that differ from OpenAI's (COMP-*, DS-11)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from segue.conformance.values import text_or_empty
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, RuleError, member
from segue.emulator.errors.openai_responses import NO_TOOL_OUTPUT
from segue.emulator.errors.openai_style import find_message, type_name
from segue.emulator.errors.pydantic_style import EXTRA
from segue.wire.base import ApiError

_MessageBuilder = Callable[[BrokenRule], str]


def _built_error(
    make: _MessageBuilder, kind: str = "invalid_request_error", status: int = 400, code: str | None = None
) -> ErrorBuilder:
    return lambda broken: ApiError(status, make(broken), kind=kind, code=code)


# ---------------------------------------------------------------------------------------------------------------- groq


def _groq_error(what: Callable[[BrokenRule, str], str]) -> ErrorBuilder:
    """Build Groq's error for a message of this role."""

    def make(broken: BrokenRule) -> str:
        place, role = f"messages.{broken.message_index}", text_or_empty(find_message(broken).get("role"))
        return f"'{place}' : for 'role:{role}' the following must be satisfied[({what(broken, place)})]"

    return _built_error(make)


_STRING_ERROR = _groq_error(lambda broken, _: f"'{broken.dotted_path}' : value must be a string")
_GROQ: Mapping[str, ErrorBuilder] = {
    "COMP-01": _groq_error(lambda broken, place: f"'{place}' : property '{_last_key(broken)}' is unsupported"),
    "COMP-02": _built_error(
        lambda broken: f"messages[{broken.message_index}].reasoning: reasoning is not supported with this model"
    ),
    "OAI-CHAT-07": _groq_error(lambda broken, _: f"'{broken.dotted_path}' : minimum number of items is 1"),
    "OAI-CHAT-10": _STRING_ERROR,
    "OAI-CHAT-11": _STRING_ERROR,
    "OAI-CHAT-12": _groq_error(lambda _, place: f"'{place}.content' : value must be a string"),
}


def _last_key(broken: BrokenRule) -> str:
    """Return the key at the end of the path, which may contain dots."""
    return broken.path.partition("].")[2]


# ------------------------------------------------------------------------------------------------------------ cerebras


def _cerebras_error(broken: BrokenRule) -> ApiError:
    places = [
        f"messages.{each.message_index}.{text_or_empty(find_message(each).get('role'))}.{_last_key(each)}"
        for each in broken.singles
    ]
    message = "\n".join(f"{place}: property '{place}' is unsupported" for place in places)
    return ApiError(400, message, code="wrong_api_format", param="validation_error")


# ------------------------------------------------------------------------------------------------------------- minimax


def _minimax_error(make: _MessageBuilder) -> ErrorBuilder:
    return _built_error(lambda broken: f"invalid params, {make(broken)} (2013)", "bad_request_error")


def _call_id(broken: BrokenRule) -> str:
    return text_or_empty(member(broken.value_at(*broken.steps[:4]), "id"))


_OUT_OF_ORDER = _minimax_error(lambda _: "tool call result does not follow tool call")
_MINIMAX: Mapping[str, ErrorBuilder] = {
    "COMP-07": _minimax_error(
        lambda f: f"tool result's tool id({text_or_empty(find_message(f).get('tool_call_id'))}) not found"
    ),
    "COMP-08": _OUT_OF_ORDER,
    "COMP-09": _minimax_error(lambda f: f"invalid function arguments json string, tool_call_id: {_call_id(f)}"),
    "COMP-10": _minimax_error(lambda _: "function parameters is empty"),
    "OAI-CHAT-01": _minimax_error(lambda _: "tool call id is invalid"),
    "OAI-CHAT-03": _minimax_error(lambda _: "tool call and result not match"),
}

# ------------------------------------------------------------------------------------------------------------ templates


def _json_error(broken: BrokenRule) -> tuple[str, int]:
    """Return the JSON error of the text at the path, and its offset."""
    text = text_or_empty(broken.value)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return str(error), error.pos
    except RecursionError:
        return "maximum recursion depth exceeded while decoding a JSON array", 0
    return "Expecting value: line 1 column 1 (char 0)", 0


def _llama_message(broken: BrokenRule) -> str:
    _, at = _json_error(broken)
    text = text_or_empty(broken.value)
    seen = "unexpected end of input" if at >= len(text) else f"invalid literal; last read: '{text[at : at + 1]}'"
    place = f"parse error at line 1, column {at + 1}: syntax error while parsing value - {seen}"
    return f"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] {place}"


def _missing_content_message(broken: BrokenRule) -> str:
    if find_message(broken).get("role") == "assistant":
        return "Assistant message must contain either 'content' or 'tool_calls'!"
    return "All non-assistant messages must contain 'content'"


def _unmarshal_message(broken: BrokenRule) -> str:
    field = "ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"
    kind = type_name(broken.value).partition(" ")[2] or "null"
    kind = {"integer": "number", "decimal number": "number", "boolean": "bool"}.get(kind, kind)
    return f"json: cannot unmarshal {kind} into Go struct field {field}"


_SIGNATURE = (
    "Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: "
    "https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks. Upstream error: "
    "Function call is missing a thought_signature in functionCall parts."
)
_ZAI = ApiError(400, "The messages parameter is illegal. Please check the documentation.", code="1214")

PROFILES: Mapping[str, Mapping[str, RuleError]] = {
    "groq": _GROQ,
    "cerebras": {"COMP-04": _cerebras_error},
    "xai": {
        "COMP-05": ApiError(
            400,
            "Invalid request content: Each message must have at least one content element.",
            code="Client specified an invalid argument",
        )
    },
    "minimax": _MINIMAX,
    "z.ai": {"COMP-11": _ZAI},
    "ollama": {"COMP-12": _built_error(_unmarshal_message)},
    "vllm": {
        "COMP-14": _built_error(lambda broken: _json_error(broken)[0], "BadRequestError"),
        "COMP-16": _built_error(
            lambda _: "chat completions only support assistant tool_calls of type 'function'.", "BadRequestError"
        ),
    },
    "llama.cpp": {
        "COMP-17": _built_error(_llama_message, "server_error", 500),
        "COMP-18": ApiError(400, "Assistant response prefill is incompatible with enable_thinking."),
        "COMP-19": _built_error(_missing_content_message),
    },
    "openrouter": {"COMP-21": ApiError(400, _SIGNATURE)},
    "deepseek-responses": {
        "DS-11": _built_error(
            lambda broken: f"{NO_TOOL_OUTPUT} {text_or_empty(member(broken.value, 'call_id'))}",
            code="invalid_request_error",
        )
    },
    "fireworks": {"COMP-23": _built_error(lambda broken: f"{EXTRA}, field: '{broken.path}'")},
}

"""Error texts of server profiles that differ from OpenAI's (COMP-*)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from segue.emulator.wording.fault import Fault, Word
from segue.emulator.wording.openai_style import found_in, index_of, kind_of, message_of, plain, said
from segue.wire.base import ApiError

__all__ = ["PROFILES"]

Make = Callable[[Fault], str]


def _as(make: Make, kind: str = "invalid_request_error", status: int = 400, code: str | None = None) -> Word:
    return lambda fault: ApiError(status, make(fault), kind=kind, code=code)


# ---------------------------------------------------------------------------------------------------------------- groq


def _groq(what: Callable[[Fault, str], str]) -> Word:
    """Builds Groq's error for a message of this role."""

    def make(fault: Fault) -> str:
        place, role = f"messages.{index_of(fault)}", said(message_of(fault).get("role"))
        return f"'{place}' : for 'role:{role}' the following must be satisfied[({what(fault, place)})]"

    return _as(make)


_TEXT = _groq(lambda fault, _: f"'{fault.dotted}' : value must be a string")
_GROQ: Mapping[str, Word] = {
    "COMP-01": _groq(lambda fault, place: f"'{place}' : property '{_key(fault)}' is unsupported"),
    "COMP-02": _as(lambda fault: f"messages[{index_of(fault)}].reasoning: reasoning is not supported with this model"),
    "OAI-CHAT-07": _groq(lambda fault, _: f"'{fault.dotted}' : minimum number of items is 1"),
    "OAI-CHAT-10": _TEXT,
    "OAI-CHAT-11": _TEXT,
    "OAI-CHAT-12": _groq(lambda _, place: f"'{place}.content' : value must be a string"),
}


def _key(fault: Fault) -> str:
    """Returns the key at the end of the path, which may contain dots."""
    return fault.path.partition("].")[2]


# ------------------------------------------------------------------------------------------------------------ cerebras


def _cerebras(fault: Fault) -> ApiError:
    places: list[str] = []
    for violation in fault.violations:
        each = Fault(fault.body, (violation,))
        places.append(f"messages.{index_of(each)}.{said(message_of(each).get('role'))}.{_key(each)}")
    message = "\n".join(f"{place}: property '{place}' is unsupported" for place in places)
    return ApiError(400, message, code="wrong_api_format", param="validation_error")


# ------------------------------------------------------------------------------------------------------------- minimax


def _minimax(make: Make) -> Word:
    return _as(lambda fault: f"invalid params, {make(fault)} (2013)", "bad_request_error")


def _call_at(fault: Fault) -> str:
    return said(found_in(fault.at(*fault.steps[:4]), "id"))


_OUT_OF_ORDER = _minimax(lambda _: "tool call result does not follow tool call")
_MINIMAX: Mapping[str, Word] = {
    "COMP-07": _minimax(lambda f: f"tool result's tool id({said(message_of(f).get('tool_call_id'))}) not found"),
    "COMP-08": _OUT_OF_ORDER,
    "COMP-09": _minimax(lambda f: f"invalid function arguments json string, tool_call_id: {_call_at(f)}"),
    "COMP-10": _minimax(lambda _: "function parameters is empty"),
    "OAI-CHAT-01": _minimax(lambda _: "tool call id is invalid"),
    "OAI-CHAT-03": _minimax(lambda _: "tool call and result not match"),
}

# ------------------------------------------------------------------------------------------------------------ templates


def _unread(fault: Fault) -> tuple[str, int]:
    """Returns the JSON error of the text at the path, and its offset."""
    text = said(fault.value)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return str(error), error.pos
    except RecursionError:
        return "maximum recursion depth exceeded while decoding a JSON array", 0
    return "Expecting value: line 1 column 1 (char 0)", 0


def _llama(fault: Fault) -> str:
    _, at = _unread(fault)
    text = said(fault.value)
    seen = "unexpected end of input" if at >= len(text) else f"invalid literal; last read: '{text[at : at + 1]}'"
    place = f"parse error at line 1, column {at + 1}: syntax error while parsing value - {seen}"
    return f"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] {place}"


def _wordless(fault: Fault) -> str:
    if message_of(fault).get("role") == "assistant":
        return "Assistant message must contain either 'content' or 'tool_calls'!"
    return "All non-assistant messages must contain 'content'"


def _unmarshalled(fault: Fault) -> str:
    field = "ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"
    kind = kind_of(fault.value).partition(" ")[2] or "null"
    kind = {"integer": "number", "decimal number": "number", "boolean": "bool"}.get(kind, kind)
    return f"json: cannot unmarshal {kind} into Go struct field {field}"


_SIGNATURE = (
    "Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: "
    "https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks. Upstream error: "
    "Function call is missing a thought_signature in functionCall parts."
)
_ZAI = plain("The messages parameter is illegal. Please check the documentation.", code="1214")

PROFILES: Mapping[str, Mapping[str, Word]] = {
    "groq": _GROQ,
    "cerebras": {"COMP-04": _cerebras},
    "xai": {
        "COMP-05": plain(
            "Invalid request content: Each message must have at least one content element.",
            code="Client specified an invalid argument",
        )
    },
    "minimax": _MINIMAX,
    "z.ai": {"COMP-11": _ZAI},
    "ollama": {"COMP-12": _as(_unmarshalled)},
    "vllm": {
        "COMP-14": _as(lambda fault: _unread(fault)[0], "BadRequestError"),
        "COMP-16": _as(
            lambda _: "chat completions only support assistant tool_calls of type 'function'.", "BadRequestError"
        ),
    },
    "llama.cpp": {
        "COMP-17": _as(_llama, "server_error", 500),
        "COMP-18": plain("Assistant response prefill is incompatible with enable_thinking."),
        "COMP-19": _as(_wordless),
    },
    "openrouter": {"COMP-21": plain(_SIGNATURE)},
    "fireworks": {"COMP-23": _as(lambda fault: f"Extra inputs are not permitted, field: '{fault.path}'")},
}

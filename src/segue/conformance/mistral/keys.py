"""Names (MIS-12), keys and declared tools (MIS-13)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from segue.conformance.chat_request import ChatRequest, find_non_functions
from segue.conformance.json_schema import find_draft7_error, find_pattern_error
from segue.conformance.rule import Problem, RuleTable
from segue.conformance.values import is_list, is_object, quote, type_name

BODY_KEYS = frozenset(
    {
        *("model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop", "random_seed", "metadata"),
        *("response_format", "tools", "tool_choice", "presence_penalty", "frequency_penalty", "min_tokens"),
        *("repetition_penalty", "top_k", "logprobs", "top_logprobs", "prompt_logprobs", "top_prompt_logprobs", "n"),
        *("prediction", "parallel_tool_calls", "reasoning_effort", "prompt_mode", "guardrails", "prompt_cache_key"),
        *("service_tier", "safe_prompt"),
    }
)
MESSAGE_KEYS: Mapping[str, frozenset[str]] = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}
_CALL_KEYS = frozenset({"id", "type", "function", "index"})
_CALL_FUNCTION_KEYS = frozenset({"name", "arguments"})
_DECLARED_KEYS = frozenset({"name", "description", "strict", "parameters"})

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

table: RuleTable[ChatRequest] = RuleTable()


@table.rule("MIS-12")
def names_valid(request: ChatRequest) -> Iterator[Problem]:
    """Names of functions, declared, called and in results, are 1 to 64 letters, digits, `_` or `-`."""
    for path, name in _names(request):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            seen = quote(name) if isinstance(name, str) else type_name(name)
            expected = "must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
            yield Problem(path, f"Function name was {seen} but {expected}")


def _names(request: ChatRequest) -> Iterator[tuple[str, object]]:
    for tool in request.tools:
        if tool.type == "function":
            path, inner = tool.definition()
            yield f"{path}.name", inner.get("name")
    for call in request.calls:
        if call.is_function:
            yield f"{call.path}.function.name", call.function.get("name")
    for message in request.messages:
        if message.role == "tool" and message.data.get("name") is not None:
            yield f"{message.path}.name", message.data["name"]


@table.rule("MIS-13")
def keys_known(request: ChatRequest) -> Iterator[Problem]:
    """Body, messages and calls have only the keys of the API's types; a role is one of four."""
    yield from _check_keys("", request.body, BODY_KEYS)
    for message in request.messages:
        known = MESSAGE_KEYS.get(message.role)
        if known is None:
            reason = "Input tag does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'"
            yield Problem(f"{message.path}.role", f"{quote(message.role)}: {reason}")
        else:
            yield from _check_keys(f"{message.path}.", message.data, known)
    for call in request.calls:
        # OAI-CHAT-21 covers calls of another type.
        if call.is_function:
            yield from _check_keys(f"{call.path}.", call.data, _CALL_KEYS)
            yield from _check_keys(f"{call.path}.function.", call.function, _CALL_FUNCTION_KEYS)


def _check_keys(path: str, value: Mapping[str, object], known: frozenset[str]) -> Iterator[Problem]:
    if not value.keys() <= known:
        yield from (
            Problem(f"{path}{key}", f"Extra inputs are not permitted: {quote(key)}")
            for key in value
            if key not in known
        )


@table.rule("MIS-13")
def tools_valid(request: ChatRequest) -> Iterator[Problem]:
    """tools is a non-empty list; each function has parameters, a draft 7 JSON Schema."""
    declared = request.body.get("tools")
    if declared is not None and (not is_list(declared) or not declared):
        seen = "an empty list" if is_list(declared) else type_name(declared)
        yield Problem("tools", f"Extra inputs are not permitted: tools is {seen}; omit the key if there are no tools")
    for tool in request.tools:
        if tool.type != "function":
            continue
        path, inner = tool.definition()
        yield from _check_keys(f"{path}.", inner, _DECLARED_KEYS)
        parameters = inner.get("parameters")
        if not is_object(parameters):
            seen = type_name(parameters) if "parameters" in inner else "missing"
            yield Problem(f"{path}.parameters", f"parameters is {seen}; a JSON Schema object is expected")
            continue
        error, pattern = find_draft7_error(parameters), find_pattern_error(parameters)
        if error is not None:
            yield Problem(f"{path}.parameters", f"Invalid tool schema: {error}")
        elif pattern is not None:
            yield Problem(f"{path}.parameters", f"Invalid tool schema for some versions: {pattern}", "risk")


@table.rule("OAI-CHAT-21")
def functions_only(request: ChatRequest) -> Iterator[Problem]:
    """Calls are calls of function tools; custom tools exist only at OpenAI."""
    for path, found_type in find_non_functions(request):
        # A call may omit its type. The API has hosted tools of its own.
        if found_type is None or (path.startswith("tools") and found_type != "custom"):
            continue
        yield Problem(path, f"the type is {quote(found_type)}; 'function' is expected")

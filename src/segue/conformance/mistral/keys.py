"""Names (MIS-12), keys and declared tools (MIS-13)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from segue.conformance.chat import ChatRequest, not_functions
from segue.conformance.rule import Finding, Table
from segue.conformance.schema import draft7_fault, pattern_fault
from segue.conformance.values import is_list, is_object, kind, quoted

__all__ = ["BODY_KEYS", "MESSAGE_KEYS", "table"]

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
_CALLED_KEYS = frozenset({"name", "arguments"})
_DECLARED_KEYS = frozenset({"name", "description", "strict", "parameters"})

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

table: Table[ChatRequest] = Table()


# MIS-12
@table.rule("MIS-12")
def names_valid(request: ChatRequest) -> Iterator[Finding]:
    """Names of functions, declared, called and in results, are 1 to 64 letters, digits, `_` or `-`."""
    for path, name in _names(request):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            seen = quoted(name) if isinstance(name, str) else kind(name)
            expected = "must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
            yield Finding(path, f"Function name was {seen} but {expected}")


def _names(request: ChatRequest) -> Iterator[tuple[str, object]]:
    for tool in request.tools:
        if tool.type == "function":
            path, inner = tool.inner()
            yield f"{path}.name", inner.get("name")
    for call in request.calls:
        if call.is_function:
            yield f"{call.path}.function.name", call.function.get("name")
    for message in request.messages:
        if message.role == "tool" and message.data.get("name") is not None:
            yield f"{message.path}.name", message.data["name"]


# MIS-13
@table.rule("MIS-13")
def keys_known(request: ChatRequest) -> Iterator[Finding]:
    """Body, messages and calls have only the keys of the API's types; a role is one of four."""
    yield from _extra("", request.body, BODY_KEYS)
    for message in request.messages:
        known = MESSAGE_KEYS.get(message.role)
        if known is None:
            reason = "Input tag does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'"
            yield Finding(f"{message.path}.role", f"{quoted(message.role)}: {reason}")
        else:
            yield from _extra(f"{message.path}.", message.data, known)
    for call in request.calls:
        # OAI-CHAT-21 covers calls of another type.
        if call.is_function:
            yield from _extra(f"{call.path}.", call.data, _CALL_KEYS)
            yield from _extra(f"{call.path}.function.", call.function, _CALLED_KEYS)


def _extra(path: str, value: Mapping[str, object], known: frozenset[str]) -> Iterator[Finding]:
    if not value.keys() <= known:
        yield from (
            Finding(f"{path}{key}", f"Extra inputs are not permitted: {quoted(key)}")
            for key in value
            if key not in known
        )


# MIS-13
@table.rule("MIS-13")
def tools_valid(request: ChatRequest) -> Iterator[Finding]:
    """tools is a non-empty list; each function has parameters, a draft 7 JSON Schema."""
    declared = request.body.get("tools")
    if declared is not None and (not is_list(declared) or not declared):
        seen = "an empty list" if is_list(declared) else kind(declared)
        yield Finding("tools", f"Extra inputs are not permitted: tools is {seen}; omit the key if there are no tools")
    for tool in request.tools:
        if tool.type != "function":
            continue
        path, inner = tool.inner()
        yield from _extra(f"{path}.", inner, _DECLARED_KEYS)
        parameters = inner.get("parameters")
        if not is_object(parameters):
            seen = kind(parameters) if "parameters" in inner else "missing"
            yield Finding(f"{path}.parameters", f"parameters is {seen}; a JSON Schema object is expected")
            continue
        fault, pattern = draft7_fault(parameters), pattern_fault(parameters)
        if fault is not None:
            yield Finding(f"{path}.parameters", f"Invalid tool schema: {fault}")
        elif pattern is not None:
            yield Finding(f"{path}.parameters", f"Invalid tool schema for some versions: {pattern}", "risk")


# OAI-CHAT-21
@table.rule("OAI-CHAT-21")
def functions_only(request: ChatRequest) -> Iterator[Finding]:
    """Calls are calls of function tools; custom tools exist only at OpenAI."""
    for path, found_type in not_functions(request):
        # A call may omit its type. The API has hosted tools of its own.
        if found_type is None or (path.startswith("tools") and found_type != "custom"):
            continue
        yield Finding(path, f"the type is {quoted(found_type)}; 'function' is expected")

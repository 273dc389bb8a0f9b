"""Self-hosted servers with a chat template: Ollama, vLLM and llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.chat import ChatRequest
from segue.conformance.profiles.arguments import function_calls, not_json
from segue.conformance.rule import Finding, Holds, Severity, Table
from segue.conformance.values import is_object, is_text, kind, kind_of_json, quoted

__all__ = ["LLAMA_CPP", "OLLAMA", "VLLM"]

# -------------------------------------------------------------------------------------------------------------- ollama

OLLAMA: Table[ChatRequest] = Table()


# COMP-12
@OLLAMA.rule("COMP-12")
def ollama_arguments(request: ChatRequest) -> Iterator[Finding]:
    """function.arguments is an object on /api/chat; /v1 accepts a string with one."""
    reason = "cannot unmarshal string into field arguments of type api.ToolCallFunctionArguments"
    for call, arguments in function_calls(request):
        path = f"{call.path}.function.arguments"
        if isinstance(arguments, str):
            if kind_of_json(arguments) == "an object":
                yield Finding(path, f"{reason}: /api/chat needs the object itself, only /v1 accepts a string", "risk")
            else:
                yield Finding(path, f"{reason}: {quoted(arguments)} is not a JSON object")
        elif not is_object(arguments):
            yield Finding(path, f"arguments is {kind(arguments)}; an object is expected")


# ---------------------------------------------------------------------------------------------------------------- vllm

VLLM: Table[ChatRequest] = Table()
MISTRAL = Holds("Mistral models", lambda model: model.family == "mistral")
_KEPT_OF_ID = 9


# COMP-14
@VLLM.rule("COMP-14")
def vllm_arguments(request: ChatRequest) -> Iterator[Finding]:
    """function.arguments is valid JSON; an empty string and null mean no arguments."""
    yield from not_json(request, "malformed JSON in the arguments of a replayed call", empty=True)


# COMP-15
@VLLM.rule("COMP-15", severity="risk", holds=MISTRAL)
def vllm_cut_ids(request: ChatRequest) -> Iterator[Finding]:
    """For Mistral's tokenizers ids are cut to their last nine characters, which must differ."""
    for turn in request.rounds:
        whole: dict[str, str] = {}
        for call in turn.calls:
            if is_text(call.id) and whole.setdefault(call.id[-_KEPT_OF_ID:], call.id) != call.id:
                other = whole[call.id[-_KEPT_OF_ID:]]
                yield Finding(f"{call.path}.id", f"{quoted(call.id)} and {quoted(other)} are cut to the same id")


# COMP-16
@VLLM.rule("COMP-16")
def vllm_calls(request: ChatRequest) -> Iterator[Finding]:
    """Replayed calls are objects of type function; a missing type means function."""
    for call in request.calls:
        if call.data.get("type", "function") != "function" or not is_object(call.data.get("function")):
            reason = "chat completions only support assistant tool_calls of type 'function'."
            yield Finding(call.path, reason)


# ----------------------------------------------------------------------------------------------------------- llama.cpp

LLAMA_CPP: Table[ChatRequest] = Table()


# COMP-17
@LLAMA_CPP.rule("COMP-17")
def llama_arguments(request: ChatRequest) -> Iterator[Finding]:
    """function.arguments is valid JSON."""
    yield from not_json(request, "Failed to parse tool call arguments as JSON", empty=False)


# COMP-18
@LLAMA_CPP.rule("COMP-18", severity="risk")
def llama_prefill(request: ChatRequest) -> Iterator[Finding]:
    """With thinking enabled in the template, the last message is not the assistant's."""
    settings = request.body.get("chat_template_kwargs")
    thinking = settings.get("enable_thinking") if is_object(settings) else None
    if thinking is not False and request.messages and request.messages[-1].role == "assistant":
        severity: Severity | None = "reject" if thinking is True else None
        reason = "Assistant response prefill is incompatible with enable_thinking."
        yield Finding(request.messages[-1].path, reason, severity)


# COMP-19
@LLAMA_CPP.rule("COMP-19")
def llama_content(request: ChatRequest) -> Iterator[Finding]:
    """Every message has the key content; an assistant message may have tool_calls instead."""
    for message in request.messages:
        if "content" in message.data or (message.role == "assistant" and "tool_calls" in message.data):
            continue
        if message.role == "assistant":
            yield Finding(message.path, "Assistant message must contain either 'content' or 'tool_calls'!")
        else:
            yield Finding(message.path, "All non-assistant messages must contain 'content'")

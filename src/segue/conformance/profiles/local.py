"""Self-hosted servers with a chat template: Ollama, vLLM and llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.arguments import check_json_arguments, function_calls
from segue.conformance.chat_request import ChatRequest
from segue.conformance.lookup import member
from segue.conformance.profiles.profile import SELF_HOSTED, TEMPLATE_SERVER_CHECKS, Profile
from segue.conformance.rule import ModelFilter, Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_object, json_type_name, quote, type_name

# -------------------------------------------------------------------------------------------------------------- ollama

_OLLAMA: RuleTable[ChatRequest] = RuleTable()


@_OLLAMA.rule("COMP-12")
def ollama_arguments(request: ChatRequest) -> Iterator[Problem]:
    """function.arguments is an object on /api/chat; /v1 accepts a string with one."""
    reason = "cannot unmarshal string into field arguments of type api.ToolCallFunctionArguments"
    for call, arguments in function_calls(request):
        path = f"{call.path}.function.arguments"
        if isinstance(arguments, str):
            if json_type_name(arguments) == "an object":
                yield Problem(path, f"{reason}: /api/chat needs the object itself, only /v1 accepts a string", "risk")
            else:
                yield Problem(path, f"{reason}: {quote(arguments)} is not a JSON object")
        elif not is_object(arguments):
            yield Problem(path, f"arguments is {type_name(arguments)}; an object is expected")


# ---------------------------------------------------------------------------------------------------------------- vllm

_VLLM: RuleTable[ChatRequest] = RuleTable()
MISTRAL = ModelFilter("Mistral models", lambda model: model.family == "mistral")
_ID_SUFFIX_LENGTH = 9


@_VLLM.rule("COMP-14")
def vllm_arguments(request: ChatRequest) -> Iterator[Problem]:
    """function.arguments is valid JSON; an empty string and null mean no arguments."""
    yield from check_json_arguments(request, "malformed JSON in the arguments of a replayed call", allow_empty=True)


@_VLLM.rule("COMP-15", severity="risk", applies_to=MISTRAL)
def vllm_cut_ids(request: ChatRequest) -> Iterator[Problem]:
    """For Mistral's tokenizers ids are cut to their last nine characters, which must differ."""
    for turn in request.turns:
        whole: dict[str, str] = {}
        for call in turn.calls:
            if has_text(call.id) and whole.setdefault(call.id[-_ID_SUFFIX_LENGTH:], call.id) != call.id:
                other = whole[call.id[-_ID_SUFFIX_LENGTH:]]
                yield Problem(f"{call.path}.id", f"{quote(call.id)} and {quote(other)} are cut to the same id")


@_VLLM.rule("COMP-16")
def vllm_calls(request: ChatRequest) -> Iterator[Problem]:
    """Replayed calls are objects of type function; a missing type means function."""
    for call in request.calls:
        if call.data.get("type", "function") != "function" or not is_object(call.data.get("function")):
            reason = "chat completions only support assistant tool_calls of type 'function'."
            yield Problem(call.path, reason)


# ----------------------------------------------------------------------------------------------------------- llama.cpp

_LLAMA_CPP: RuleTable[ChatRequest] = RuleTable()


@_LLAMA_CPP.rule("COMP-17")
def llama_arguments(request: ChatRequest) -> Iterator[Problem]:
    """function.arguments is valid JSON."""
    yield from check_json_arguments(request, "Failed to parse tool call arguments as JSON", allow_empty=False)


@_LLAMA_CPP.rule("COMP-18", severity="risk")
def llama_prefill(request: ChatRequest) -> Iterator[Problem]:
    """With thinking enabled in the template, the last message is not the assistant's."""
    thinking = member(request.body, "chat_template_kwargs", "enable_thinking")
    if thinking is not False and request.messages and request.messages[-1].role == "assistant":
        severity: Severity | None = "reject" if thinking is True else None
        reason = "Assistant response prefill is incompatible with enable_thinking."
        yield Problem(request.messages[-1].path, reason, severity)


@_LLAMA_CPP.rule("COMP-19")
def llama_content(request: ChatRequest) -> Iterator[Problem]:
    """Every message has the key content; an assistant message may have tool_calls instead."""
    for message in request.messages:
        if "content" in message.data or (message.role == "assistant" and "tool_calls" in message.data):
            continue
        if message.role == "assistant":
            yield Problem(message.path, "Assistant message must contain either 'content' or 'tool_calls'!")
        else:
            yield Problem(message.path, "All non-assistant messages must contain 'content'")


_CONTENT_CHECKS = frozenset({"assistant_has_content", "others_have_content"})
PROFILES = (
    Profile(
        "llama.cpp",
        "llama-server",
        _LLAMA_CPP,
        SELF_HOSTED | _CONTENT_CHECKS,
        TEMPLATE_SERVER_CHECKS | {"call_type_known"},
    ),
    Profile(
        "ollama",
        "Ollama, /api/chat and /v1",
        _OLLAMA,
        SELF_HOSTED | {"call_type_known"},
        TEMPLATE_SERVER_CHECKS | _CONTENT_CHECKS,
    ),
    Profile(
        "vllm",
        "vLLM",
        _VLLM,
        SELF_HOSTED | {"call_type_known", "calls_not_empty"},
        TEMPLATE_SERVER_CHECKS | _CONTENT_CHECKS,
    ),
)

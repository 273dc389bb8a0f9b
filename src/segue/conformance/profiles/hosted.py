"""Hosted services with the Chat Completions API: Groq, Cerebras, xAI, MiniMax, Z.ai, OpenRouter and Fireworks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance import openai_chat
from segue.conformance.chat_request import ChatRequest, Message
from segue.conformance.lookup import list_objects
from segue.conformance.profiles.profile import KEY_CHECKS, OPENAI_LIMITS, OPENAI_ONLY, PAIRING_CHECKS, Profile
from segue.conformance.rule import ModelFilter, Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_list, is_object, quote, text_or_empty, type_name
from segue.models import Model

Keys = Mapping[str, frozenset[str]]


def _unknown_keys(request: ChatRequest, known: Keys) -> Iterator[tuple[Message, str]]:
    for message in request.messages:
        keys = known.get(message.role)
        if keys is not None and not message.data.keys() <= keys:
            yield from ((message, key) for key in message.data if key not in keys)


# ----------------------------------------------------------------------------------------------------------------- groq

_GROQ: RuleTable[ChatRequest] = RuleTable()
_NAMED_KEYS = frozenset({"role", "content", "name"})
_GROQ_KEYS: Keys = {
    **dict.fromkeys(("system", "developer", "user", "function"), _NAMED_KEYS),
    "assistant": _NAMED_KEYS | {"tool_calls", "function_call", "reasoning"},
    "tool": _NAMED_KEYS | {"tool_call_id"},
}


@_GROQ.rule("COMP-01")
def groq_keys(request: ChatRequest) -> Iterator[Problem]:
    """Messages have only the keys that Groq accepts."""
    for message, key in _unknown_keys(request, _GROQ_KEYS):
        reason = f"for 'role:{message.role}' the following must be satisfied: property {quote(key)} is unsupported"
        yield Problem(f"{message.path}.{key}", reason)


def _is_reasoning_model(model: Model) -> bool | None:
    """Return whether this is a reasoning model on Groq; `None` if its name does not show it."""
    if model.reasons_by_default or "gpt-oss" in model.name or "-r1" in model.name or model.line == "qwq":
        return True
    if model.family == "qwen":
        return model.at_least(3) or None
    return False if model.family in ("llama", "gemma", "mistral", "kimi") else None


@_GROQ.rule("COMP-02")
def groq_reasoning(request: ChatRequest) -> Iterator[Problem]:
    """Only messages to reasoning models have `reasoning`."""
    reasons = _is_reasoning_model(request.model)
    if reasons:
        return
    for message in request.messages:
        if message.role == "assistant" and message.data.get("reasoning") is not None:
            reason = "reasoning is not supported with this model"
            yield Problem(f"{message.path}.reasoning", reason, "risk" if reasons is None else None)


# ------------------------------------------------------------------------------------------------------------- cerebras

_CEREBRAS: RuleTable[ChatRequest] = RuleTable()
_CEREBRAS_KEYS: Keys = {
    **dict.fromkeys(("system", "developer", "user"), _NAMED_KEYS),
    "assistant": _NAMED_KEYS | {"tool_calls", "reasoning", "refusal"},
    "tool": _NAMED_KEYS | {"tool_call_id"},
}


@_CEREBRAS.rule("COMP-04")
def cerebras_keys(request: ChatRequest) -> Iterator[Problem]:
    """Messages have only the keys that Cerebras accepts: `reasoning`, but not `reasoning_content`."""
    for message, key in _unknown_keys(request, _CEREBRAS_KEYS):
        reason = f"property 'messages.{message.index}.{message.role}.{key}' is unsupported"
        yield Problem(f"{message.path}.{key}", reason)


# ------------------------------------------------------------------------------------------------------------------ xai

_XAI: RuleTable[ChatRequest] = RuleTable()


@_XAI.rule("COMP-05")
def xai_content(request: ChatRequest) -> Iterator[Problem]:
    """Every message has content, even one with calls; an empty string is accepted."""
    for message in request.messages:
        content = message.content
        if content is None or (is_list(content) and not content):
            seen = "an empty list" if is_list(content) else type_name(content)
            reason = f"Each message must have at least one content element: content is {seen}; '' is accepted"
            yield Problem(f"{message.path}.content", reason)


# -------------------------------------------------------------------------------------------------------------- minimax

_MINIMAX: RuleTable[ChatRequest] = RuleTable()


def _find_stray_results(request: ChatRequest) -> Iterator[tuple[str, str | None, bool]]:
    """Yield path and id of each result without a call in its turn, and whether an earlier call has that id."""
    strays = {result.message.index: result for result in request.orphans}
    for turn in request.turns:
        call_ids = turn.call_ids()
        strays |= {r.message.index: r for r in turn.results if not has_text(r.id) or r.id not in call_ids}
    calls: dict[int, set[str]] = {turn.calls[0].message: turn.call_ids() for turn in request.turns}
    known: set[str] = set()
    for message in request.messages:
        known |= calls.get(message.index, set())
        result = strays.get(message.index)
        if result is not None:
            result_id = text_or_empty(result.id) or None
            yield result.path, result_id, result_id in known


@_MINIMAX.rule("COMP-07")
def minimax_orphans(request: ChatRequest) -> Iterator[Problem]:
    """A result has the id of an existing call."""
    for path, result_id, known in _find_stray_results(request):
        if not known:
            yield Problem(path, f"tool result's tool id({quote(result_id or '')}) not found (2013)")


@_MINIMAX.rule("COMP-08")
def minimax_order(request: ChatRequest) -> Iterator[Problem]:
    """Each call has one result directly after it, and no two calls of a message have the same id."""
    reason = "tool call result does not follow tool call (2013)"
    for path, result_id, known in _find_stray_results(request):
        if known:
            yield Problem(path, f"{reason}: the call {quote(result_id)} is in an earlier turn")
    for turn in request.turns:
        for message in turn.system_messages:
            yield Problem(message.path, f"{reason}: a {message.role} message is between them")
    yield from _check_duplicates(request, reason)


def _check_duplicates(request: ChatRequest, reason: str) -> Iterator[Problem]:
    """Report calls of one message with the same id, and second results."""
    for turn in request.turns:
        seen: set[str] = set()
        for call in turn.calls:
            if has_text(call.id) and call.id in seen:
                yield Problem(f"{call.path}.id", f"{reason}: {quote(call.id)} is the id of an earlier call")
            seen.add(text_or_empty(call.id))
        answered: set[str] = set()
        for result in turn.results:
            if has_text(result.id) and result.id in answered:
                yield Problem(f"{result.path}.tool_call_id", f"{reason}: {quote(result.id)} already has a result")
            answered.add(text_or_empty(result.id))


@_MINIMAX.rule("COMP-09")
def minimax_arguments(request: ChatRequest) -> Iterator[Problem]:
    """function.arguments is valid JSON."""
    yield from openai_chat.minimax_arguments(request)


@_MINIMAX.rule("COMP-10")
def minimax_parameters(request: ChatRequest) -> Iterator[Problem]:
    """Every declared function has parameters."""
    for tool in request.tools:
        path, inner = tool.definition()
        parameters = inner.get("parameters")
        if tool.type == "function" and not parameters:
            severity: Severity | None = "risk" if is_object(parameters) else None
            yield Problem(f"{path}.parameters", "function parameters is empty (2013)", severity)


# ----------------------------------------------------------------------------------------------------------------- z.ai

_ZAI: RuleTable[ChatRequest] = RuleTable()


@_ZAI.rule("COMP-11")
def zai_messages(request: ChatRequest) -> Iterator[Problem]:
    """There is a user message, every call has one result directly after it, and no id is used twice."""
    reason = "The messages parameter is illegal"
    if all(message.role != "user" for message in request.messages):
        yield Problem("messages", f"{reason}: there is no user message")
    for call in openai_chat.find_unanswered_calls(request):
        yield Problem(
            call.path, f"{reason}: the call {quote(call.id)} has no tool message with its result directly after it"
        )
    for path, result_id, _ in _find_stray_results(request):
        yield Problem(path, f"{reason}: the result of {quote(result_id)} has no call before it")
    for turn in request.turns:
        for message in turn.system_messages:
            yield Problem(message.path, f"{reason}: a {message.role} message is between the results")
    yield from _check_duplicates(request, reason)
    used: dict[str, int] = {}
    for call in request.calls:
        if has_text(call.id) and used.setdefault(call.id, call.message) != call.message:
            seen = f"{quote(call.id)} is the id of a call in messages[{used[call.id]}]"
            yield Problem(f"{call.path}.id", f"{reason}: {seen}")


@_ZAI.rule("OAI-CHAT-22", severity="risk")
def zai_keys(request: ChatRequest) -> Iterator[Problem]:
    """Messages have only documented keys, and those of the assistant reasoning_content: the preserved thinking."""
    kept = {f"{message.path}.reasoning_content" for message in request.messages if message.role == "assistant"}
    yield from (problem for problem in openai_chat.no_unknown_keys(request) if problem.path not in kept)


# COMP-11 covers the first two.
_ZAI_CHECKS = frozenset({"calls_have_results", "ids_unique_in_conversation", "no_unknown_keys"})


# ----------------------------------------------------------------------------------------------------------- openrouter

_OPENROUTER: RuleTable[ChatRequest] = RuleTable()
# Names here have a maker; `openrouter/auto` may be a model of any.
_ANY_MAKER = ("", "openai", "openrouter")


def _may_be_openai(model: Model) -> bool:
    return model.family == "gpt" or (not model.family and model.name.rpartition("/")[0] in _ANY_MAKER)


GEMINI_3 = ModelFilter("Gemini 3 and newer", lambda model: model.family == "gemini" and model.at_least(3))
MAYBE_OPENAI = ModelFilter("OpenAI's models, and names without a maker", _may_be_openai)
CLAUDE = ModelFilter("Claude models", lambda model: model.family == "claude")


@_OPENROUTER.rule("OAI-CHAT-01", applies_to=MAYBE_OPENAI)
def openrouter_ids(request: ChatRequest) -> Iterator[Problem]:
    """For OpenAI's models the id of a call has at most 40 characters; models of other makers accept longer ones."""
    severity: Severity | None = None if request.model.family else "risk"
    for problem in openai_chat.call_id_short(request):
        yield Problem(problem.path, problem.message, severity)


def _last_user_index(request: ChatRequest) -> int:
    """Return the index of the last user message, -1 if there is none."""
    return max((message.index for message in request.messages if message.role == "user"), default=-1)


@_OPENROUTER.rule("COMP-21", applies_to=GEMINI_3)
def openrouter_details(request: ChatRequest) -> Iterator[Problem]:
    """Messages with calls have reasoning_details with one encrypted entry, for the first call, at index 0."""
    current = _last_user_index(request)
    for turn in request.turns:
        first = turn.calls[0]
        message = request.messages[first.message]
        path = f"{message.path}.reasoning_details"
        details = message.data.get("reasoning_details")
        encrypted = [found for found in list_objects(details, path) if found[1].get("type") == "reasoning.encrypted"]
        if not encrypted:
            reason = "Gemini models require OpenRouter reasoning details to be preserved in each request"
            yield Problem(path, reason, "reject" if message.index > current else "risk")
        for where, _ in encrypted[1:]:
            yield Problem(where, "a second encrypted entry; one per turn is expected", "risk")
        for where, entry in encrypted[:1]:
            if entry.get("id") != first.id or entry.get("index") != 0:
                yield Problem(where, f"the id {quote(first.id)} and the index 0 are expected", "risk")


@_OPENROUTER.rule("COMP-22", severity="risk", applies_to=CLAUDE)
def openrouter_forced(request: ChatRequest) -> Iterator[Problem]:
    """A forced tool_choice silently switches reasoning off."""
    reasoning = request.body.get("reasoning")
    effort = reasoning.get("effort") if is_object(reasoning) else request.body.get("reasoning_effort")
    off = effort == "none" or (is_object(reasoning) and reasoning.get("enabled") is False)
    enabled = not off and (bool(reasoning) or effort is not None)
    if enabled and request.body.get("tool_choice") not in (None, "auto", "none"):
        yield Problem("tool_choice", "reasoning is silently dropped with a forced tool_choice")


# ------------------------------------------------------------------------------------------------------------ fireworks

_FIREWORKS: RuleTable[ChatRequest] = RuleTable()
_FIREWORKS_KEYS: Keys = dict.fromkeys(
    ("system", "developer", "user", "assistant", "tool", "function"),
    frozenset({"role", "content", "reasoning_content", "tool_calls", "tool_call_id"}),
)
_FIREWORKS_BODY = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "stream"),
        *("response_format", "temperature", "top_k", "top_p", "min_p", "typical_p", "n", "stop", "max_tokens", "seed"),
        *("max_completion_tokens", "frequency_penalty", "presence_penalty", "repetition_penalty", "mirostat_target"),
        *("mirostat_lr", "logprobs", "top_logprobs", "logit_bias", "echo", "echo_last", "ignore_eos", "speculation"),
        *("prediction", "metadata", "user", "reasoning_effort", "reasoning_history", "thinking", "return_token_ids"),
        *("context_length_exceeded_behavior", "prompt_truncate_len", "prompt_cache_key", "prompt_cache_isolation_key"),
        *("raw_output", "perf_metrics_in_response"),
    }
)


@_FIREWORKS.rule("COMP-23")
def fireworks_keys(request: ChatRequest) -> Iterator[Problem]:
    """Body and messages have only the keys that Fireworks accepts."""
    for key in request.body:
        if key not in _FIREWORKS_BODY:
            yield Problem(key, f"Extra inputs are not permitted, field: {quote(key)}")
    for message, key in _unknown_keys(request, _FIREWORKS_KEYS):
        path = f"{message.path}.{key}"
        yield Problem(path, f"Extra inputs are not permitted, field: '{path}'")


PROFILES = (
    Profile("cerebras", "Cerebras Inference", _CEREBRAS, OPENAI_ONLY | KEY_CHECKS, OPENAI_LIMITS),
    Profile("fireworks", "Fireworks AI", _FIREWORKS, OPENAI_ONLY | KEY_CHECKS, OPENAI_LIMITS),
    Profile("groq", "GroqCloud", _GROQ, OPENAI_ONLY | KEY_CHECKS, OPENAI_LIMITS),
    Profile("minimax", "MiniMax", _MINIMAX, OPENAI_ONLY | PAIRING_CHECKS | {"minimax_arguments"}, OPENAI_LIMITS),
    Profile("openrouter", "OpenRouter", _OPENROUTER, OPENAI_ONLY | {"no_unknown_keys", "call_id_short"}, OPENAI_LIMITS),
    Profile("xai", "xAI", _XAI, OPENAI_ONLY | {"assistant_has_content", "others_have_content"}, OPENAI_LIMITS),
    Profile("z.ai", "Z.ai", _ZAI, OPENAI_ONLY | PAIRING_CHECKS | _ZAI_CHECKS, OPENAI_LIMITS),
)

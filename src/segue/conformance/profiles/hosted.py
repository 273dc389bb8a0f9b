"""Services that speak Chat Completions: Groq, Cerebras, xAI, MiniMax, Z.ai, OpenRouter and Fireworks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance import openai_chat
from segue.conformance.chat import ChatRequest, Message
from segue.conformance.profiles.arguments import not_json
from segue.conformance.rule import Finding, Holds, Severity, Table
from segue.conformance.values import is_list, is_object, is_text, kind, quoted, text_of
from segue.models import Model

__all__ = ["CEREBRAS", "FIREWORKS", "GROQ", "MINIMAX", "OPENROUTER", "XAI", "ZAI"]

Keys = Mapping[str, frozenset[str]]


def _unknown_keys(request: ChatRequest, known: Keys) -> Iterator[tuple[Message, str]]:
    for message in request.messages:
        keys = known.get(message.role)
        if keys is not None and not message.data.keys() <= keys:
            yield from ((message, key) for key in message.data if key not in keys)


# ---------------------------------------------------------------------------------------------------------------- groq

GROQ: Table[ChatRequest] = Table()
_NAMED = frozenset({"role", "content", "name"})
_GROQ_KEYS: Keys = {
    **dict.fromkeys(("system", "developer", "user", "function"), _NAMED),
    "assistant": _NAMED | {"tool_calls", "function_call", "reasoning"},
    "tool": _NAMED | {"tool_call_id"},
}


# COMP-01
@GROQ.rule("COMP-01")
def groq_keys(request: ChatRequest) -> Iterator[Finding]:
    """Messages hold the keys that Groq knows and no others."""
    for message, key in _unknown_keys(request, _GROQ_KEYS):
        told = f"for 'role:{message.role}' the following must be satisfied: property {quoted(key)} is unsupported"
        yield Finding(f"{message.path}.{key}", told)


def _reasons(model: Model) -> bool | None:
    """Whether Groq's model of this name reasons; `None` where the name does not tell."""
    if model.thinking or "gpt-oss" in model.name or "-r1" in model.name or model.line == "qwq":
        return True
    if model.family == "qwen":
        return model.at_least(3) or None
    return False if model.family in ("llama", "gemma", "mistral", "kimi") else None


# COMP-02
@GROQ.rule("COMP-02")
def groq_reasoning(request: ChatRequest) -> Iterator[Finding]:
    """`reasoning` stands in messages to reasoning models only."""
    reasons = _reasons(request.model)
    if reasons:
        return
    for message in request.messages:
        if message.role == "assistant" and message.data.get("reasoning") is not None:
            told = "reasoning is not supported with this model"
            yield Finding(f"{message.path}.reasoning", told, "risk" if reasons is None else None)


# ------------------------------------------------------------------------------------------------------------ cerebras

CEREBRAS: Table[ChatRequest] = Table()
_CEREBRAS_KEYS: Keys = {
    **dict.fromkeys(("system", "developer", "user"), _NAMED),
    "assistant": _NAMED | {"tool_calls", "reasoning", "refusal"},
    "tool": _NAMED | {"tool_call_id"},
}


# COMP-04
@CEREBRAS.rule("COMP-04")
def cerebras_keys(request: ChatRequest) -> Iterator[Finding]:
    """Messages hold the keys that Cerebras knows and no others; `reasoning` is one, `reasoning_content` is not."""
    for message, key in _unknown_keys(request, _CEREBRAS_KEYS):
        told = f"property 'messages.{message.index}.{message.role}.{key}' is unsupported"
        yield Finding(f"{message.path}.{key}", told)


# ----------------------------------------------------------------------------------------------------------------- xai

XAI: Table[ChatRequest] = Table()


# COMP-05
@XAI.rule("COMP-05")
def xai_content(request: ChatRequest) -> Iterator[Finding]:
    """Every message has content, also beside calls; an empty string will do."""
    for message in request.messages:
        content = message.content
        if content is None or (is_list(content) and not content):
            seen = "an empty list" if is_list(content) else kind(content)
            told = f"Each message must have at least one content element: content is {seen}; '' will do"
            yield Finding(f"{message.path}.content", told)


# ------------------------------------------------------------------------------------------------------------- minimax

MINIMAX: Table[ChatRequest] = Table()


def _earlier(request: ChatRequest) -> Iterator[tuple[str, str | None, bool]]:
    """Path and id of each result that answers nothing in its run, and whether an earlier call bears that id."""
    strays = {result.message.index: result for result in request.orphans}
    for turn in request.rounds:
        asked = turn.call_ids()
        strays |= {r.message.index: r for r in turn.results if not is_text(r.id) or r.id not in asked}
    calls: dict[int, set[str]] = {turn.calls[0].message: turn.call_ids() for turn in request.rounds}
    known: set[str] = set()
    for message in request.messages:
        known |= calls.get(message.index, set())
        result = strays.get(message.index)
        if result is not None:
            found = text_of(result.id) or None
            yield result.path, found, found in known


# COMP-07
@MINIMAX.rule("COMP-07")
def minimax_orphans(request: ChatRequest) -> Iterator[Finding]:
    """A result names a call that there is."""
    for path, found, known in _earlier(request):
        if not known:
            yield Finding(path, f"tool result's tool id({quoted(found or '')}) not found (2013)")


# COMP-08
@MINIMAX.rule("COMP-08")
def minimax_order(request: ChatRequest) -> Iterator[Finding]:
    """Results follow their calls at once, one each, and no two calls of a message share an id."""
    told = "tool call result does not follow tool call (2013)"
    for path, found, known in _earlier(request):
        if known:
            yield Finding(path, f"{told}: the call {quoted(found)} stands further up")
    for turn in request.rounds:
        for message in turn.intruders:
            yield Finding(message.path, f"{told}: a {message.role} message stands between")
    yield from _twins(request, told)


def _twins(request: ChatRequest, told: str) -> Iterator[Finding]:
    """Calls of one message with the same id, and second results."""
    for turn in request.rounds:
        seen: set[str] = set()
        for call in turn.calls:
            if is_text(call.id) and call.id in seen:
                yield Finding(f"{call.path}.id", f"{told}: {quoted(call.id)} is the id of an earlier call")
            seen.add(text_of(call.id))
        answered: set[str] = set()
        for result in turn.results:
            if is_text(result.id) and result.id in answered:
                yield Finding(f"{result.path}.tool_call_id", f"{told}: {quoted(result.id)} was answered already")
            answered.add(text_of(result.id))


# COMP-09
@MINIMAX.rule("COMP-09")
def minimax_arguments(request: ChatRequest) -> Iterator[Finding]:
    """function.arguments holds valid JSON."""
    yield from not_json(request, "invalid function arguments json string (2013)", empty=False)


# COMP-10
@MINIMAX.rule("COMP-10")
def minimax_parameters(request: ChatRequest) -> Iterator[Finding]:
    """Every declared function has parameters."""
    for tool in request.tools:
        path, inner = tool.inner()
        parameters = inner.get("parameters")
        if tool.type == "function" and not parameters:
            severity: Severity | None = "risk" if is_object(parameters) else None
            yield Finding(f"{path}.parameters", "function parameters is empty (2013)", severity)


# ---------------------------------------------------------------------------------------------------------------- z.ai

ZAI: Table[ChatRequest] = Table()


# COMP-11
@ZAI.rule("COMP-11")
def zai_messages(request: ChatRequest) -> Iterator[Finding]:
    """A user speaks, every call has its one result right behind it, and no id is used twice in the conversation."""
    told = "The messages parameter is illegal"
    if all(message.role != "user" for message in request.messages):
        yield Finding("messages", f"{told}: no message is of the user")
    for call in openai_chat.unanswered(request):
        yield Finding(call.path, f"{told}: no tool message right after it answers the call {quoted(call.id)}")
    for path, found, _ in _earlier(request):
        yield Finding(path, f"{told}: the result of {quoted(found)} answers no call before it")
    for turn in request.rounds:
        for message in turn.intruders:
            yield Finding(message.path, f"{told}: a {message.role} message stands among the results")
    yield from _twins(request, told)
    used: dict[str, int] = {}
    for call in request.calls:
        if is_text(call.id) and used.setdefault(call.id, call.message) != call.message:
            seen = f"{quoted(call.id)} is the id of a call in messages[{used[call.id]}]"
            yield Finding(f"{call.path}.id", f"{told}: {seen}")


# ---------------------------------------------------------------------------------------------------------- openrouter

OPENROUTER: Table[ChatRequest] = Table()
GEMINI_3 = Holds("Gemini 3 and newer", lambda model: model.family == "gemini" and model.at_least(3))
CLAUDE = Holds("models of Anthropic", lambda model: model.family == "claude")


def _since_last_user(request: ChatRequest) -> int:
    """The index of the last user message, -1 where there is none."""
    return max((message.index for message in request.messages if message.role == "user"), default=-1)


# COMP-21
@OPENROUTER.rule("COMP-21", holds=GEMINI_3)
def openrouter_details(request: ChatRequest) -> Iterator[Finding]:
    """Messages with calls have reasoning_details with one encrypted entry, of the first call, at index 0."""
    current = _since_last_user(request)
    for turn in request.rounds:
        first = turn.calls[0]
        message = request.messages[first.message]
        path = f"{message.path}.reasoning_details"
        details = message.data.get("reasoning_details")
        sealed = [
            (f"{path}[{index}]", entry)
            for index, entry in enumerate(details if is_list(details) else ())
            if is_object(entry) and entry.get("type") == "reasoning.encrypted"
        ]
        if not sealed:
            told = "Gemini models require OpenRouter reasoning details to be preserved in each request"
            yield Finding(path, told, "reject" if message.index > current else "risk")
        for where, _ in sealed[1:]:
            yield Finding(where, "a second encrypted entry; one a turn is expected", "risk")
        for where, entry in sealed[:1]:
            if entry.get("id") != first.id or entry.get("index") != 0:
                yield Finding(where, f"expected are the id {quoted(first.id)} and the index 0", "risk")


# COMP-22
@OPENROUTER.rule("COMP-22", severity="risk", holds=CLAUDE)
def openrouter_forced(request: ChatRequest) -> Iterator[Finding]:
    """A forced tool_choice switches reasoning off in silence."""
    asked = request.body.get("reasoning")
    effort = asked.get("effort") if is_object(asked) else request.body.get("reasoning_effort")
    off = effort == "none" or (is_object(asked) and asked.get("enabled") is False)
    wanted = not off and (bool(asked) or effort is not None)
    if wanted and request.body.get("tool_choice") not in (None, "auto", "none"):
        yield Finding("tool_choice", "reasoning is dropped in silence beside a forced tool_choice")


# ----------------------------------------------------------------------------------------------------------- fireworks

FIREWORKS: Table[ChatRequest] = Table()
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


# COMP-23
@FIREWORKS.rule("COMP-23")
def fireworks_keys(request: ChatRequest) -> Iterator[Finding]:
    """Body and messages hold the keys that Fireworks knows and no others."""
    for key in request.body:
        if key not in _FIREWORKS_BODY:
            yield Finding(key, f"Extra inputs are not permitted, field: {quoted(key)}")
    for message, key in _unknown_keys(request, _FIREWORKS_KEYS):
        path = f"{message.path}.{key}"
        yield Finding(path, f"Extra inputs are not permitted, field: '{path}'")

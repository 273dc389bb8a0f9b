"""The rules of Moonshot Kimi (KIM-*), and those of Chat Completions that hold on its wire too.

Every KIM number is either a check here or a row of `UNSHOWABLE`. `SHARED` names the OAI-CHAT rules taken over:
where the rulebook has a KIM rule about the same thing, that one stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from segue.conformance import openai_chat
from segue.conformance.chat import Call, ChatRequest, Result, Round, read
from segue.conformance.rule import Book, Finding, Holds, Severity, Table
from segue.conformance.values import is_list, is_object, is_text, kind, quoted, text_of
from segue.models import Model

__all__ = ["BOOK", "SHARED", "UNSHOWABLE"]

UNSHOWABLE: Mapping[str, str] = {
    "KIM-07": "about reply streams and the ids in them; ids that recur in a later round are no fault of a request",
}

# Check → severity on Kimi. Not taken over: 01 (native ids may be longer), 03/04/15 (KIM-02, KIM-03), 16, 17, 21 and
# 22 (OpenAI's own limits and keys; `reasoning_content` is a native key here).
SHARED: Mapping[str, Severity] = {
    "one_result_a_call": "reject",  # OAI-CHAT-05
    "ids_unique_in_turn": "reject",  # OAI-CHAT-06
    "calls_not_empty": "reject",  # OAI-CHAT-07
    "names_lawful": "reject",  # OAI-CHAT-08
    "replayed_name_given": "reject",  # OAI-CHAT-09
    "arguments_are_text": "reject",  # OAI-CHAT-10
    "others_have_content": "reject",  # OAI-CHAT-11; of the assistant KIM-05 speaks
    "results_are_text": "reject",  # OAI-CHAT-12
    "no_error_flag": "risk",  # OAI-CHAT-13
}

_table: Table[ChatRequest] = Table()
_NATIVE_ID = re.compile(r"(?:functions\.)?(.+):\d+")


def _is_k3(model: Model) -> bool:
    return model.family == "kimi" and model.at_least(3)


K2 = Holds("the K2 generation, and names that do not say which", lambda model: model.line in ("", "k2"))
K3 = Holds("K3 and newer", _is_k3)


# KIM-01
@_table.rule("KIM-01")
def call_has_id(request: ChatRequest) -> Iterator[Finding]:
    """Every call has an id that is a non-empty string."""
    for call in request.calls:
        if not is_text(call.id):
            yield Finding(f"{call.path}.id", f"the id is {kind(call.id)}; a non-empty string is expected")


# KIM-01
@_table.rule("KIM-01", severity="risk", holds=K2)
def call_id_native(request: ChatRequest) -> Iterator[Finding]:
    """K2 was trained on ids of the form functions.{name}:{index} or {name}:{index}; others garble its output."""
    for call in request.calls:
        if not is_text(call.id):
            continue
        native = _NATIVE_ID.fullmatch(call.id)
        if native is None or native[1] != call.function.get("name"):
            name = text_of(call.function.get("name")) or "name"
            seen = f"the id {quoted(call.id)} is foreign to K2"
            yield Finding(f"{call.path}.id", f"{seen}; 'functions.{name}:0' with a running index is its own form")


# KIM-02
@_table.rule("KIM-02")
def calls_answered(request: ChatRequest) -> Iterator[Finding]:
    """Every call is answered by a tool message before any other message."""
    unanswered = _unanswered_by_order(request) if _is_k3(request.model) else openai_chat.unanswered(request)
    for call in unanswered:
        yield Finding(call.path, f"no tool message right after it answers the call {quoted(call.id)}")
    for turn in request.rounds:
        for message in turn.intruders:
            seen = f"a {message.role} message stands among the tool results of messages[{turn.calls[0].message}]"
            yield Finding(message.path, seen)


def _unanswered_by_order(request: ChatRequest) -> Iterator[Call]:
    """KIM-08: K3 takes results in the order of the calls, so only their number can be wrong."""
    for turn in request.rounds:
        missing = len(turn.calls) - len(turn.results)
        answered = turn.result_ids()
        without = [call for call in turn.calls if text_of(call.id) not in answered]
        yield from without[-missing:] if missing > 0 else ()


# KIM-02
@_table.rule("KIM-02")
def old_calls_unanswerable(request: ChatRequest) -> Iterator[Finding]:
    """The old `function_call` has no id that a result could name."""
    for message in request.messages:
        if message.data.get("function_call"):
            yield Finding(f"{message.path}.function_call", "a function_call can't be answered; tool_calls are expected")


# OAI-CHAT-21
@_table.rule("OAI-CHAT-21")
def no_free_text(request: ChatRequest) -> Iterator[Finding]:
    """Kimi has functions, its own built-in ones among them; free-text calls and tools are OpenAI's."""
    for call in request.calls:
        sort = call.data.get("type")
        if sort not in ("function", "builtin_function"):
            yield Finding(f"{call.path}.type", f"the type is {quoted(sort)}; Kimi has functions only")
    for tool in request.tools:
        if tool.type == "custom":
            yield Finding(f"tools[{tool.index}].type", "a free-text tool; Kimi has functions only")


# OAI-CHAT-08
@_table.rule("OAI-CHAT-08")
def names_begin_with_letter(request: ChatRequest) -> Iterator[Finding]:
    """The name of a declared function begins with a letter; of replayed ones nobody has said so."""
    for tool in request.tools:
        path, inner = tool.inner()
        name = inner.get("name")
        if tool.type in ("function", None) and is_text(name) and not re.match("[a-zA-Z]", name):
            yield Finding(f"{path}.name", f"function name {quoted(name)} is invalid, must start with a letter")


# KIM-03
@_table.rule("KIM-03")
def results_asked_for(request: ChatRequest) -> Iterator[Finding]:
    """A tool message names a call of the assistant message that its run follows; the old `function` role names none."""
    k3 = _is_k3(request.model)
    for message in request.messages:
        if message.role == "function":
            yield Finding(f"{message.path}.role", "a function message has no tool_call_id; a tool message is expected")
    for result in request.orphans:
        # KIM-08 speaks about those without a name.
        if not k3 or _named(result):
            seen = f"the result of {quoted(result.id)} follows no assistant message with tool_calls"
            yield Finding(result.path, seen)
    for turn in request.rounds:
        asked = turn.call_ids()
        for position, result in enumerate(turn.results):
            if text_of(result.id) in asked or (k3 and _unresolvable(turn, position, result)):
                continue
            seen = quoted(result.id) if is_text(result.id) else f"tool_call_id is {kind(result.id)} and"
            yield Finding(f"{result.path}.tool_call_id", f"{seen} names no call of the message before")


# KIM-04
@_table.rule("KIM-04")
def reasoning_beside_calls(request: ChatRequest) -> Iterator[Finding]:
    """With thinking on, every assistant message with calls has reasoning_content."""
    if not _thinks(request):
        return
    for turn in request.rounds:
        message = request.messages[turn.calls[0].message]
        reasoning = message.data.get("reasoning_content")
        if not isinstance(reasoning, str):
            seen = kind(reasoning) if "reasoning_content" in message.data else "missing"
            where = f"{message.path}.reasoning_content"
            yield Finding(where, f"thinking is on and reasoning_content is {seen}; a string is expected, '.' will do")


def _thinks(request: ChatRequest) -> bool:
    thinking = request.body.get("thinking")
    setting = thinking.get("type") if is_object(thinking) else None
    if setting in ("enabled", "disabled"):
        return setting == "enabled"
    return request.model.thinking


# KIM-05
@_table.rule("KIM-05")
def assistant_says_something(request: ChatRequest) -> Iterator[Finding]:
    """An assistant message has content or calls."""
    for message in request.messages:
        if message.role == "assistant" and not message.content and not message.data.get("tool_calls"):
            seen = "an empty list" if is_list(message.content) else kind(message.content)
            yield Finding(f"{message.path}.content", f"content is {seen} and there are no tool_calls")


# KIM-06
@_table.rule("KIM-06")
def no_empty_part(request: ChatRequest) -> Iterator[Finding]:
    """A text part is not empty, not even beside calls."""
    for message in request.messages:
        for path, part in message.parts():
            if part.get("type") == "text" and not is_text(part.get("text")):
                yield Finding(f"{path}.text", f"the text is {kind(part.get('text'))}; drop the part")


# KIM-08
@_table.rule("KIM-08", holds=K3)
def result_name_resolvable(request: ChatRequest) -> Iterator[Finding]:
    """K3 takes a result for the call at its position, so a surplus one has to carry the tool's name."""
    surplus = [
        result
        for turn in request.rounds
        for position, result in enumerate(turn.results)
        if _unresolvable(turn, position, result)
    ]
    for result in (*surplus, *(result for result in request.orphans if not _named(result))):
        yield Finding(result.path, "no call stands at the position of this result, and it has no name or tool")


def _named(result: Result) -> bool:
    return is_text(result.message.data.get("name")) or is_text(result.message.data.get("tool"))


def _unresolvable(turn: Round, position: int, result: Result) -> bool:
    return position >= len(turn.calls) and not _named(result)


BOOK: Book[ChatRequest] = Book("kimi", read, (*_table, *openai_chat.shared(SHARED)), UNSHOWABLE)

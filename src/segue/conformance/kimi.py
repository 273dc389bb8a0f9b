"""The rules of Moonshot Kimi (KIM-*), and the Chat Completions rules that apply there too.

Every KIM number is either a check here or a row of `NOT_CHECKABLE`. `SHARED_CHECKS` lists the OAI-CHAT rules that
apply; where a KIM rule covers the same subject, only the KIM rule is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from segue.conformance import openai_chat
from segue.conformance.body_types import find_type_problems
from segue.conformance.chat_request import Call, ChatRequest, Result, Turn, parse_request
from segue.conformance.chat_types import OBJECT, body_spec, tools_spec
from segue.conformance.lookup import member
from segue.conformance.rule import ModelFilter, Problem, RuleSet, RuleTable, Severity
from segue.conformance.values import has_text, is_list, quote, text_or_empty, type_name
from segue.models import Model
from segue.specs.types import ANY, STRING, object_of

NOT_CHECKABLE: Mapping[str, str] = {
    "KIM-07": "about reply streams and the ids in them; a request may repeat an id in a later turn"
}

# Check → severity on Kimi. Not shared: 01 (native ids may be longer), 03/04/15 (KIM-02, KIM-03), 16, 17, 21 and
# 22 (OpenAI's own limits and keys; `reasoning_content` is a native key here).
SHARED_CHECKS: Mapping[str, Severity] = {
    "one_result_per_call": "reject",  # OAI-CHAT-05
    "ids_unique_in_turn": "reject",  # OAI-CHAT-06
    "ids_unique_in_conversation": "risk",  # OAI-CHAT-06
    "calls_not_empty": "reject",  # OAI-CHAT-07
    "names_valid": "reject",  # OAI-CHAT-08
    "replayed_name_present": "reject",  # OAI-CHAT-09
    "arguments_are_strings": "reject",  # OAI-CHAT-10
    "others_have_content": "reject",  # OAI-CHAT-11; KIM-05 covers the assistant
    "results_are_text": "reject",  # OAI-CHAT-12
    "no_error_flag": "risk",  # OAI-CHAT-13
}

# A text part without text has a rule of its own, KIM-06.
_PARTS = {"text": object_of(text=STRING), "image_url": OBJECT, "video_url": OBJECT, "file": OBJECT}
_BUILTIN = object_of({"function": object_of({"name": STRING})})
SPEC = body_spec(
    {"system": _PARTS, "user": _PARTS, "assistant": _PARTS, "tool": None, "function": None},
    tools_spec(builtin_function=_BUILTIN),
    ANY,
)

_table: RuleTable[ChatRequest] = RuleTable()
_NATIVE_ID = re.compile(r"(?:functions\.)?(.+):\d+")


def _is_k3(model: Model) -> bool:
    return model.family == "kimi" and model.at_least(3)


K2 = ModelFilter("the K2 generation, and names without a version", lambda model: model.line in ("", "k2"))
K3 = ModelFilter("K3 and newer", _is_k3)


@_table.rule("KIM-01")
def call_has_id(request: ChatRequest) -> Iterator[Problem]:
    """Every call has an id that is a non-empty string."""
    for call in request.calls:
        if not has_text(call.id):
            yield Problem(f"{call.path}.id", f"the id is {type_name(call.id)}; a non-empty string is expected")


@_table.rule("KIM-01", severity="risk", applies_to=K2)
def call_id_native(request: ChatRequest) -> Iterator[Problem]:
    """K2 was trained on ids like functions.{name}:{index} or {name}:{index}; other ids garble its output."""
    for call in request.calls:
        if not has_text(call.id):
            continue
        native = _NATIVE_ID.fullmatch(call.id)
        if native is None or native[1] != call.function.get("name"):
            name = text_or_empty(call.function.get("name")) or "name"
            seen = f"the id {quote(call.id)} is not in K2's format"
            yield Problem(f"{call.path}.id", f"{seen}; 'functions.{name}:0' with a running index is expected")


@_table.rule("KIM-02")
def calls_have_results(request: ChatRequest) -> Iterator[Problem]:
    """Every tool call has a tool message with its result before any other message."""
    unanswered = (
        _find_unanswered_by_order(request) if _is_k3(request.model) else openai_chat.find_unanswered_calls(request)
    )
    for call in unanswered:
        yield Problem(call.path, f"the call {quote(call.id)} has no tool message with its result directly after it")
    for turn in request.turns:
        for message in turn.system_messages:
            seen = f"a {message.role} message is between the tool results of messages[{turn.calls[0].message}]"
            yield Problem(message.path, seen)


def _find_unanswered_by_order(request: ChatRequest) -> Iterator[Call]:
    """KIM-08: K3 pairs results with calls by position, so only their number can be wrong."""
    for turn in request.turns:
        missing = len(turn.calls) - len(turn.results)
        answered = turn.result_ids()
        without = [call for call in turn.calls if text_or_empty(call.id) not in answered]
        yield from without[-missing:] if missing > 0 else ()


@_table.rule("KIM-02")
def no_legacy_function_call(request: ChatRequest) -> Iterator[Problem]:
    """The legacy `function_call` has no id that a result could refer to."""
    for message in request.messages:
        if message.data.get("function_call"):
            yield Problem(
                f"{message.path}.function_call", "function_call has no id for a result; tool_calls are expected"
            )


@_table.rule("OAI-CHAT-21")
def no_custom_tools(request: ChatRequest) -> Iterator[Problem]:
    """Kimi supports function tools and its own built-in ones; custom tools exist only at OpenAI."""
    for call in request.calls:
        call_type = call.data.get("type")
        if call_type not in ("function", "builtin_function"):
            yield Problem(f"{call.path}.type", f"the type is {quote(call_type)}; Kimi supports function tools only")
    for tool in request.tools:
        if tool.type == "custom":
            yield Problem(f"tools[{tool.index}].type", "a custom tool; Kimi supports function tools only")


@_table.rule("OAI-CHAT-08")
def names_begin_with_letter(request: ChatRequest) -> Iterator[Problem]:
    """The name of a declared function begins with a letter; for replayed names this is not documented."""
    for tool in request.tools:
        path, inner = tool.definition()
        name = inner.get("name")
        if tool.type in ("function", None) and has_text(name) and not re.match("[a-zA-Z]", name):
            yield Problem(f"{path}.name", f"function name {quote(name)} is invalid, must start with a letter")


@_table.rule("KIM-03")
def results_match_calls(request: ChatRequest) -> Iterator[Problem]:
    """A tool message has the id of a call in the message before it; the legacy role `function` has no id."""
    k3 = _is_k3(request.model)
    for message in request.messages:
        if message.role == "function":
            yield Problem(f"{message.path}.role", "a function message has no tool_call_id; a tool message is expected")
    for result in request.orphans:
        # KIM-08 covers those without a name.
        if not k3 or _has_tool_name(result):
            seen = f"the result of {quote(result.id)} does not follow an assistant message with tool_calls"
            yield Problem(result.path, seen)
    for turn in request.turns:
        call_ids = turn.call_ids()
        for position, result in enumerate(turn.results):
            if text_or_empty(result.id) in call_ids or (k3 and _is_unresolvable(turn, position, result)):
                continue
            seen = quote(result.id) if has_text(result.id) else f"tool_call_id is {type_name(result.id)} and"
            yield Problem(f"{result.path}.tool_call_id", f"{seen} is not the id of a call in the message before")


@_table.rule("KIM-04")
def reasoning_with_calls(request: ChatRequest) -> Iterator[Problem]:
    """With thinking on, every assistant message with calls has reasoning_content."""
    if not _is_thinking(request):
        return
    for turn in request.turns:
        message = request.messages[turn.calls[0].message]
        reasoning = message.data.get("reasoning_content")
        if not isinstance(reasoning, str):
            seen = type_name(reasoning) if "reasoning_content" in message.data else "missing"
            where = f"{message.path}.reasoning_content"
            yield Problem(
                where, f"thinking is on and reasoning_content is {seen}; a string is expected, for example '.'"
            )


def _is_thinking(request: ChatRequest) -> bool:
    setting = member(request.body, "thinking", "type")
    if setting in ("enabled", "disabled"):
        return setting == "enabled"
    return request.model.reasons_by_default


@_table.rule("KIM-05")
def assistant_has_content(request: ChatRequest) -> Iterator[Problem]:
    """An assistant message has content or calls."""
    for message in request.messages:
        if message.role == "assistant" and not message.content and not message.data.get("tool_calls"):
            seen = "an empty list" if is_list(message.content) else type_name(message.content)
            yield Problem(f"{message.path}.content", f"content is {seen} and there are no tool_calls")


@_table.rule("KIM-06")
def no_empty_part(request: ChatRequest) -> Iterator[Problem]:
    """A text part is not empty, not even in a message with calls."""
    for message in request.messages:
        for path, part in message.parts():
            if part.get("type") == "text" and not has_text(part.get("text")):
                yield Problem(f"{path}.text", f"the text is {type_name(part.get('text'))}; drop the part")


@_table.rule("KIM-08", applies_to=K3)
def result_name_resolvable(request: ChatRequest) -> Iterator[Problem]:
    """K3 pairs results with calls by position, so a surplus result needs the name of its tool."""
    surplus = [
        result
        for turn in request.turns
        for position, result in enumerate(turn.results)
        if _is_unresolvable(turn, position, result)
    ]
    for result in (*surplus, *(result for result in request.orphans if not _has_tool_name(result))):
        yield Problem(result.path, "no call has the position of this result, and the result has neither name nor tool")


def _has_tool_name(result: Result) -> bool:
    return has_text(result.message.data.get("name")) or has_text(result.message.data.get("tool"))


def _is_unresolvable(turn: Turn, position: int, result: Result) -> bool:
    return position >= len(turn.calls) and not _has_tool_name(result)


@_table.rule("KIM-09", is_general=True)
def types_valid(request: ChatRequest) -> Iterator[Problem]:
    """Members and options have the types of the API, and the role of a message is known."""
    return find_type_problems(SPEC, request.body)


RULE_SET: RuleSet[ChatRequest] = RuleSet(
    "kimi", parse_request, (*_table, *openai_chat.adopt_rules(SHARED_CHECKS)), NOT_CHECKABLE
)

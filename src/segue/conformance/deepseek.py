"""The rules of DeepSeek (DS-*), and the Chat Completions rules that apply there too.

Which reasoning must be sent back depends on the model and on the thinking mode: R1 rejects all reasoning, V3 in
thinking mode requires that of the current exchange, V4 that of every exchange with calls. A body without a model is
checked as V4, the default, and its problems are risks. Every DS number is either a check here or a row of
`NOT_CHECKABLE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from segue.conformance import openai_chat
from segue.conformance.body_types import find_type_problems
from segue.conformance.chat_request import ChatRequest, Message, find_non_functions, parse_request
from segue.conformance.chat_types import OBJECT, TEXT, TOOL_CHOICE_WORDS, body_spec, tools_spec
from segue.conformance.lookup import member
from segue.conformance.rule import ModelFilter, Problem, RuleSet, RuleTable, Severity
from segue.conformance.values import has_text, is_list, quote, type_name
from segue.models import Model
from segue.specs.types import any_of

NOT_CHECKABLE: Mapping[str, str] = {
    "DS-03": "about the Anthropic-compatible endpoint, whose bodies are of another API",
    "DS-11": "about the Responses endpoint, whose bodies are of another API",
}

# Check → severity on DeepSeek. Not shared: 01 (ids of any length), 03/04/15 (DS-05, DS-06), 08 (DS-10), 16, 17 and
# 22 (OpenAI's own limits and keys; `reasoning_content` and `prefix` are native keys here).
SHARED_CHECKS: Mapping[str, Severity] = {
    "one_result_per_call": "risk",  # OAI-CHAT-05
    "ids_unique_in_turn": "risk",  # OAI-CHAT-06
    "ids_unique_in_conversation": "risk",  # OAI-CHAT-06
    "calls_not_empty": "reject",  # OAI-CHAT-07
    "replayed_name_present": "reject",  # OAI-CHAT-09
    "arguments_are_strings": "reject",  # OAI-CHAT-10
    "assistant_has_content": "reject",  # OAI-CHAT-11
    "others_have_content": "reject",  # OAI-CHAT-11
    "results_are_text": "reject",  # OAI-CHAT-12
    "no_error_flag": "risk",  # OAI-CHAT-13
}

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_NAME = 64
_MOST_TOOLS = 128
_NOT_THINKING = re.compile(r"\b(?:chat|coder)\b")

_PARTS = {"text": TEXT}
SPEC = body_spec(
    {"system": _PARTS, "user": _PARTS, "assistant": _PARTS, "tool": None, "latest_reminder": None},
    tools_spec(),
    any_of(TOOL_CHOICE_WORDS, OBJECT),
)

_table: RuleTable[ChatRequest] = RuleTable()


def _is_r1(model: Model) -> bool:
    return model.family == "deepseek" and model.version[:1] == (1,)


def _is_v3(model: Model) -> bool:
    """Return whether the model is V3, by its version or by the alias deepseek-reasoner."""
    named = bool(model.version) and (2,) <= model.version < (4,)
    return model.family == "deepseek" and (named or (model.reasons_by_default and not model.version))


R1 = ModelFilter("R1", _is_r1)
V3 = ModelFilter("V3 and deepseek-reasoner", _is_v3)
V4 = ModelFilter("V4 and newer, and names without a version", lambda model: not _is_r1(model) and not _is_v3(model))


def _is_thinking(request: ChatRequest) -> bool | None:
    """Return whether thinking is on, `None` if unknown. V4 thinks by default."""
    setting = member(request.body, "thinking", "type")
    if setting in ("enabled", "disabled"):
        return setting == "enabled"
    model = request.model
    if model.family != "deepseek":
        return None
    if model.reasons_by_default or _is_r1(model):
        return True
    return not _is_v3(model) and not _NOT_THINKING.search(model.name.lower())


def _exchanges(request: ChatRequest) -> Iterator[Sequence[Message]]:
    """Yield the assistant messages between one user message and the next."""
    replies: list[Message] = []
    for message in request.messages:
        if message.role == "user":
            yield replies
            replies = []
        elif message.role == "assistant":
            replies.append(message)
    yield replies


def _lacks_reasoning(message: Message) -> bool:
    return not isinstance(message.data.get("reasoning_content"), str)


def _describe_reasoning(message: Message) -> str:
    return type_name(message.data["reasoning_content"]) if "reasoning_content" in message.data else "missing"


@_table.rule("DS-01", applies_to=V3)
def reasoning_in_current_exchange(request: ChatRequest) -> Iterator[Problem]:
    """With thinking on, the messages with calls since the last user message have reasoning_content."""
    if not _is_thinking(request):
        return
    *_, current = _exchanges(request)
    for message in current:
        if message.data.get("tool_calls") and _lacks_reasoning(message):
            reason = f"Missing `reasoning_content` field in the assistant message at message index {message.index}"
            yield Problem(f"{message.path}.reasoning_content", f"{reason}: it is {_describe_reasoning(message)}")


@_table.rule("DS-02", applies_to=V4)
def reasoning_passed_back(request: ChatRequest) -> Iterator[Problem]:
    """With thinking on, assistant messages have reasoning_content; without calls in the exchange this is a risk."""
    thinks = _is_thinking(request)
    if thinks is False:
        return
    for exchange in _exchanges(request):
        has_calls = any(message.data.get("tool_calls") for message in exchange)
        severity: Severity = "reject" if has_calls and thinks else "risk"
        for message in exchange:
            if _lacks_reasoning(message):
                reason = "The `reasoning_content` in the thinking mode must be passed back to the API"
                assumed = "" if thinks else "; no model given, checked as V4"
                where = f"{message.path}.reasoning_content"
                yield Problem(where, f"{reason}: it is {_describe_reasoning(message)}{assumed}", severity)


@_table.rule("DS-04", applies_to=R1)
def no_reasoning_content(request: ChatRequest) -> Iterator[Problem]:
    """R1 rejects reasoning_content in the messages."""
    for message in request.messages:
        if message.data.get("reasoning_content") is not None:
            yield Problem(f"{message.path}.reasoning_content", "R1 rejects reasoning_content in messages")


@_table.rule("DS-05")
def calls_have_results(request: ChatRequest) -> Iterator[Problem]:
    """Every tool call has a tool message with its result before any other message."""
    reason = "insufficient tool messages following tool_calls message"
    return openai_chat.check_calls_answered(request, reason)


@_table.rule("DS-06")
def results_match_calls(request: ChatRequest) -> Iterator[Problem]:
    """A tool message has the id of a call in the assistant message before it."""
    reason = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
    return openai_chat.check_results_match(request, reason)


@_table.rule("DS-07", applies_to=R1)
def roles_alternate(request: ChatRequest) -> Iterator[Problem]:
    """R1 rejects two user or two assistant messages in a row."""
    for before, message in pairwise(request.messages):
        if message.role == before.role and message.role in ("user", "assistant"):
            reason = "deepseek-reasoner does not support successive user or assistant messages"
            yield Problem(message.path, f"{reason} (messages[{before.index}] and messages[{message.index}])")


@_table.rule("DS-08")
def last_role(request: ChatRequest) -> Iterator[Problem]:
    """The last message has the role user or tool, or is an assistant message with prefix."""
    if not request.messages:
        return
    last = request.messages[-1]
    if last.role in ("user", "tool") or (last.role == "assistant" and last.data.get("prefix") is True):
        return
    # Only the reasoning models are known to reject it.
    severity: Severity = "reject" if request.model.reasons_by_default or _is_r1(request.model) else "risk"
    reason = "The last message must be a user message, or an assistant message with prefix mode on"
    yield Problem(last.path, f"{reason}; its role is {quote(last.role)}", severity)


@_table.rule("DS-09")
def no_forced_tool(request: ChatRequest) -> Iterator[Problem]:
    """With thinking on, tool_choice can't force a tool."""
    choice, thinks = request.body.get("tool_choice"), _is_thinking(request)
    if choice in (None, "auto", "none") or thinks is False:
        return
    assumed = "" if thinks else "; no model given, checked as V4"
    yield Problem(
        "tool_choice", f"Thinking mode does not support this tool_choice{assumed}", None if thinks else "risk"
    )


@_table.rule("DS-10")
def names_valid(request: ChatRequest) -> Iterator[Problem]:
    """Names of functions are 1 to 64 letters, digits, `_` or `-`."""
    for tool in request.tools:
        if tool.type == "function":
            path, inner = tool.definition()
            yield from _check_name(f"{path}.name", inner.get("name"))
    for call in request.calls:
        # OAI-CHAT-09 covers replayed calls without a name.
        if call.is_function and has_text(call.function.get("name")):
            yield from _check_name(f"{call.path}.function.name", call.function["name"])


def _check_name(path: str, name: object) -> Iterator[Problem]:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        seen = quote(name) if isinstance(name, str) else type_name(name)
        expected = (
            f"Expected a string of at most {_LONGEST_NAME} characters that matches the pattern '^[a-zA-Z0-9_-]+$'"
        )
        yield Problem(path, f"the name is {seen}. {expected}")


@_table.rule("OAI-CHAT-16")
def tools_within_limits(request: ChatRequest) -> Iterator[Problem]:
    """tools, if present, is a list with 1 to 128 entries."""
    declared = request.body.get("tools")
    if declared is None:
        return
    if not is_list(declared) or not declared:
        seen = "empty array" if is_list(declared) else type_name(declared)
        yield Problem("tools", f"Invalid 'tools': {seen}. Expected an array with minimum length 1")
    elif len(declared) > _MOST_TOOLS:
        yield Problem("tools", f"{len(declared)} tools; at most {_MOST_TOOLS} are allowed")


@_table.rule("OAI-CHAT-21")
def functions_only(request: ChatRequest) -> Iterator[Problem]:
    """Calls and tools are function tools; custom tools exist only at OpenAI."""
    for path, found_type in find_non_functions(request):
        seen = f"{quote(found_type)} is not supported here; a call of type 'function' in tool_calls is expected"
        yield Problem(path, seen, "risk" if found_type is None else None)


@_table.rule("DS-12", is_general=True)
def types_valid(request: ChatRequest) -> Iterator[Problem]:
    """Members and options have the types of the API, and the role of a message is known."""
    return find_type_problems(SPEC, request.body)


RULE_SET: RuleSet[ChatRequest] = RuleSet(
    "deepseek", parse_request, (*_table, *openai_chat.adopt_rules(SHARED_CHECKS)), NOT_CHECKABLE
)

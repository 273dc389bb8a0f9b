"""The rules of Qwen on DashScope (QWEN-*), and the Chat Completions rules that apply there too.

Every QWEN number is either a check here or a row of `NOT_CHECKABLE`. Shared rules without evidence from DashScope
itself are risks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance import openai_chat
from segue.conformance.body_types import Parser, find_type_problems
from segue.conformance.chat_request import ChatRequest, find_non_functions, parse_request
from segue.conformance.chat_types import OBJECT, TEXT, TOOL_CHOICE_WORDS, body_spec, tools_spec
from segue.conformance.rule import Problem, RuleSet, RuleTable, Severity
from segue.conformance.values import json_type_name, quote, type_name
from segue.specs.types import any_of

NOT_CHECKABLE: Mapping[str, str] = {"QWEN-05": "about reply streams; a request body holds no deltas"}

# Check → severity on DashScope. Not shared: 01 (no known limit), 03/04/15 (QWEN-01, QWEN-02), 10 (QWEN-03), 16, 17
# and 22 (OpenAI's own limits and keys; `reasoning_content` and `partial` are native keys here).
SHARED_CHECKS: Mapping[str, Severity] = {
    "one_result_per_call": "risk",  # OAI-CHAT-05
    "ids_unique_in_turn": "risk",  # OAI-CHAT-06
    "ids_unique_in_conversation": "risk",  # OAI-CHAT-06
    "calls_not_empty": "risk",  # OAI-CHAT-07
    "names_valid": "risk",  # OAI-CHAT-08
    "replayed_name_present": "reject",  # OAI-CHAT-09
    "assistant_has_content": "risk",  # OAI-CHAT-11
    "others_have_content": "reject",  # OAI-CHAT-11
    "results_are_text": "risk",  # OAI-CHAT-12
    "no_error_flag": "risk",  # OAI-CHAT-13
}

_PARTS = {"text": TEXT, **dict.fromkeys(("image_url", "video_url", "video", "input_audio", "file"), OBJECT)}
SPEC = body_spec(
    {"system": _PARTS, "assistant": _PARTS, "user": _PARTS, "tool": None, "function": None},
    tools_spec(),
    any_of(TOOL_CHOICE_WORDS, OBJECT),
)
# Its schema errors are those of a JSON Schema validator, for which 8192.0 is an integer.
_PARSER = Parser(integral_floats=None)

_table: RuleTable[ChatRequest] = RuleTable()


@_table.rule("QWEN-01")
def calls_have_results(request: ChatRequest) -> Iterator[Problem]:
    """Every tool call has a tool message with its result before any other message."""
    reason = (
        'An assistant message with "tool_calls" must be followed by tool messages responding to each "tool_call_id"'
    )
    return openai_chat.check_calls_answered(request, reason)


@_table.rule("QWEN-02")
def results_match_calls(request: ChatRequest) -> Iterator[Problem]:
    """A tool message has the id of a call in the assistant message before it."""
    reason = 'messages with role "tool" must be a response to a preceeding message with "tool_calls"'
    return openai_chat.check_results_match(request, reason)


@_table.rule("QWEN-03")
def arguments_are_an_object(request: ChatRequest) -> Iterator[Problem]:
    """function.arguments is a string with a JSON object."""
    for call in request.calls:
        if not call.is_function or not call.function:
            continue
        arguments = call.function.get("arguments")
        if not isinstance(arguments, str):
            seen = type_name(arguments) if "arguments" in call.function else "missing"
        else:
            seen = json_type_name(arguments) or "invalid JSON"
            if seen == "an object":
                continue
            seen = f"a string with {seen} in it"
        reason = 'The "function.arguments" parameter of the code model must be in JSON format'
        yield Problem(
            f"{call.path}.function.arguments", f"{reason}: it is {seen}; a string with a JSON object is expected"
        )


@_table.rule("QWEN-04")
def has_user_message(request: ChatRequest) -> Iterator[Problem]:
    """At least one message has the role user."""
    if all(message.role != "user" for message in request.messages):
        yield Problem("messages", "The input messages do not contain elements with the role of user")


@_table.rule("OAI-CHAT-21")
def functions_only(request: ChatRequest) -> Iterator[Problem]:
    """Calls and tools are function tools; custom tools exist only at OpenAI."""
    for path, found_type in find_non_functions(request):
        seen = f"{quote(found_type)} is not supported here; a call of type 'function' in tool_calls is expected"
        yield Problem(path, seen, "risk" if found_type is None else None)


@_table.rule("QWEN-06", is_general=True)
def types_valid(request: ChatRequest) -> Iterator[Problem]:
    """Members and options have the types of the API, and the role of a message is known."""
    return find_type_problems(SPEC, request.body, parser=_PARSER)


RULE_SET: RuleSet[ChatRequest] = RuleSet(
    "qwen", parse_request, (*_table, *openai_chat.adopt_rules(SHARED_CHECKS)), NOT_CHECKABLE
)

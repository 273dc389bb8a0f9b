"""The rules of OpenAI Chat Completions (OAI-CHAT-*) that can be checked on a request body.

Every rulebook number is either a check here or a row of `NOT_CHECKABLE`, never both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from segue.conformance.arguments import check_json_arguments
from segue.conformance.body_types import find_range_problems, find_type_problems
from segue.conformance.chat_request import Call, ChatRequest, Message, parse_request
from segue.conformance.chat_types import SPEC
from segue.conformance.lookup import member
from segue.conformance.rule import ModelFilter, Problem, Rule, RuleSet, RuleTable, Severity
from segue.conformance.values import has_text, is_list, is_object, quote, text_or_empty, type_name
from segue.models import Model, tokenize_name

NOT_CHECKABLE: Mapping[str, str] = {
    "OAI-CHAT-02": "permits ids of any characters",
    "OAI-CHAT-14": "permits the same role twice, and any role first or last",
    "OAI-CHAT-18": "about reply streams; a request body holds no deltas",
    "OAI-CHAT-19": "about replies; a request body holds no finish_reason",
    "OAI-CHAT-20": "permits calls in the history without declared tools",
}

_LONGEST_ID = 40
_LONGEST_NAME = 64
_MOST_TOOLS = 128
_LONGEST_DESCRIPTION = 1024
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_DOTTED_NAME = re.compile(r"[a-zA-Z0-9_.-]+")
_COMMON_KEYS = frozenset({"role", "content", "name"})
_KEYS = {
    "system": _COMMON_KEYS,
    "developer": _COMMON_KEYS,
    "user": _COMMON_KEYS,
    "function": _COMMON_KEYS,
    # `annotations` is a key of replies, and the guide appends replies to the messages unchanged.
    "assistant": _COMMON_KEYS | {"refusal", "audio", "tool_calls", "function_call", "annotations"},
    "tool": _COMMON_KEYS | {"tool_call_id"},
}
_CONTENT_ALTERNATIVES = ("tool_calls", "function_call", "audio", "refusal")
_SYSTEM_ROLES = ("system", "developer")


def _is_hosted_by_openai(model: Model) -> bool:
    return model.family == "gpt" and "oss" not in tokenize_name(model.name)


def _names_none_of(*words: str) -> Callable[[Model], bool]:
    """Return a filter for OpenAI's own models whose name has none of these words."""
    return lambda model: _is_hosted_by_openai(model) and set(words).isdisjoint(tokenize_name(model.name))


def _has_no_system_role(model: Model) -> bool:
    words = set(tokenize_name(model.name))
    return model.line == "o" and model.version == (1,) and bool(words & {"mini", "preview"})


def _separates_effort(model: Model) -> bool:
    return _is_hosted_by_openai(model) and model.line != "o" and model.at_least(5, 2)


MINIMAX = ModelFilter("MiniMax", lambda model: model.family == "minimax")
WITHOUT_AUDIO = ModelFilter("OpenAI's models without audio in their name", _names_none_of("audio"))
WITHOUT_SEARCH = ModelFilter("OpenAI's models without search in their name", _names_none_of("search"))
FIRST_O1 = ModelFilter("o1-mini and o1-preview", _has_no_system_role)
GPT_5_2 = ModelFilter("OpenAI's gpt-5.2 and newer", _separates_effort)

_table: RuleTable[ChatRequest] = RuleTable()


@_table.rule("OAI-CHAT-01")
def call_has_id(request: ChatRequest) -> Iterator[Problem]:
    """Every call has an id that is a non-empty string."""
    for call in request.calls:
        if not has_text(call.id):
            yield Problem(
                f"{call.path}.id",
                f"the id is {type_name(call.id)}; a string of 1 to {_LONGEST_ID} characters is expected",
            )


@_table.rule("OAI-CHAT-01")
def call_id_short(request: ChatRequest) -> Iterator[Problem]:
    """The id of a call has at most 40 characters."""
    for call in request.calls:
        if has_text(call.id) and len(call.id) > _LONGEST_ID:
            seen = f"the id {quote(call.id)} has {len(call.id)} characters"
            yield Problem(f"{call.path}.id", f"{seen}; at most {_LONGEST_ID} are allowed")


@_table.rule("OAI-CHAT-03")
def calls_have_results(request: ChatRequest) -> Iterator[Problem]:
    """Every tool call has a tool message with its result before any other message."""
    for call in find_unanswered_calls(request):
        yield Problem(call.path, f"the call {quote(call.id)} has no tool message with its result directly after it")


def check_calls_answered(request: ChatRequest, reason: str) -> Iterator[Problem]:
    """Report calls without a tool message before the next other message; `reason` is the vendor's error text."""
    for call in request.calls:
        if not has_text(call.id):
            yield Problem(f"{call.path}.id", f"{reason}: the id is {type_name(call.id)}, so no result can refer to it")
    for call in find_unanswered_calls(request):
        yield Problem(call.path, f"{reason}: the call {quote(call.id)} has no result")
    for turn in request.turns:
        for message in turn.system_messages:
            yield Problem(message.path, f"{reason}: a {message.role} message is between the results")


def check_results_match(request: ChatRequest, reason: str) -> Iterator[Problem]:
    """Report tool messages without a call in the assistant message before them; `reason` is the vendor's text."""
    for result in request.orphans:
        yield Problem(result.path, reason)
    for turn in request.turns:
        call_ids = turn.call_ids()
        for result in turn.results:
            if not has_text(result.id) or result.id not in call_ids:
                seen = quote(result.id) if has_text(result.id) else type_name(result.id)
                yield Problem(f"{result.path}.tool_call_id", f"{reason}: {seen} is not the id of one of its calls")


def find_unanswered_calls(request: ChatRequest) -> Iterator[Call]:
    """Yield the calls with an id that no result of their turn has."""
    for turn in request.turns:
        answered = turn.result_ids()
        yield from (call for call in turn.calls if has_text(call.id) and call.id not in answered)


@_table.rule("OAI-CHAT-04")
def results_match_calls(request: ChatRequest) -> Iterator[Problem]:
    """A tool message has the id of a call in the assistant message before it."""
    for result in request.orphans:
        yield Problem(
            result.path, f"the result of {quote(result.id)} does not follow an assistant message with tool_calls"
        )
    for turn in request.turns:
        call_ids = turn.call_ids()
        for result in turn.results:
            if not has_text(result.id):
                yield Problem(
                    f"{result.path}.tool_call_id",
                    f"tool_call_id is {type_name(result.id)}; the id of a call is expected",
                )
            elif result.id not in call_ids:
                seen = f"{quote(result.id)} is not the id of a call in the assistant message before it"
                yield Problem(f"{result.path}.tool_call_id", seen)


@_table.rule("OAI-CHAT-05")
def one_result_per_call(request: ChatRequest) -> Iterator[Problem]:
    """No two tool messages after one assistant message have the same tool_call_id."""
    for turn in request.turns:
        first: dict[str, int] = {}
        for result in turn.results:
            if not has_text(result.id):
                continue
            earlier = first.setdefault(result.id, result.message.index)
            if earlier != result.message.index:
                seen = f"{quote(result.id)} already has a result in messages[{earlier}]"
                yield Problem(f"{result.path}.tool_call_id", seen)


@_table.rule("OAI-CHAT-06")
def ids_unique_in_turn(request: ChatRequest) -> Iterator[Problem]:
    """The calls of one assistant message have different ids."""
    for turn in request.turns:
        seen: set[str] = set()
        for call in turn.calls:
            if has_text(call.id) and call.id in seen:
                yield Problem(
                    f"{call.path}.id", f"{quote(call.id)} is already the id of an earlier call in this message"
                )
            elif has_text(call.id):
                seen.add(call.id)


@_table.rule("OAI-CHAT-06", severity="risk")
def ids_unique_in_conversation(request: ChatRequest) -> Iterator[Problem]:
    """No call has the id of a call in an earlier message; OpenAI accepts it, other servers pair the results wrongly."""
    first: dict[str, int] = {}
    for call in request.calls:
        if has_text(call.id) and first.setdefault(call.id, call.message) != call.message:
            seen = f"{quote(call.id)} is already the id of a call in messages[{first[call.id]}]"
            yield Problem(f"{call.path}.id", seen)


@_table.rule("OAI-CHAT-07")
def calls_not_empty(request: ChatRequest) -> Iterator[Problem]:
    """tool_calls, where present, is a list with at least one entry."""
    for message in request.messages:
        if message.role != "assistant" or "tool_calls" not in message.data:
            continue
        calls = message.data["tool_calls"]
        severity: Severity = "risk" if calls is None else "reject"
        if not is_list(calls) or not calls:
            seen = "an empty list" if is_list(calls) else type_name(calls)
            yield Problem(
                f"{message.path}.tool_calls", f"tool_calls is {seen}; omit the key if there are no calls", severity
            )


@_table.rule("OAI-CHAT-08")
def names_valid(request: ChatRequest) -> Iterator[Problem]:
    """Function names, declared and replayed, are 1 to 64 letters, digits, `_` or `-`."""
    for tool in request.tools:
        if tool.type in ("function", "custom", None):
            path, inner = tool.definition()
            yield from _check_name(f"{path}.name", inner.get("name"), request.model)
    for call in request.calls:
        # OAI-CHAT-09 covers replayed calls without a name.
        if call.is_function and has_text(call.function.get("name")):
            yield from _check_name(f"{call.path}.function.name", call.function["name"], request.model)
        custom = call.data.get("custom")
        if call.data.get("type") == "custom" and is_object(custom) and isinstance(custom.get("name"), str):
            yield from _check_name(f"{call.path}.custom.name", custom["name"], request.model)
    for message in request.messages:
        old = message.data.get("function_call")
        if is_object(old):
            yield from _check_name(f"{message.path}.function_call.name", old.get("name"), request.model)
        if message.role == "function":
            yield from _check_name(f"{message.path}.name", message.data.get("name"), request.model)


def _check_name(path: str, name: object, model: Model) -> Iterator[Problem]:
    if not has_text(name):
        yield Problem(path, f"the name is {type_name(name)}; letters, digits, '_' and '-' are expected")
    elif len(name) > _LONGEST_NAME:
        yield Problem(path, f"the name {quote(name)} has {len(name)} characters; at most {_LONGEST_NAME} are allowed")
    elif not _NAME.fullmatch(name):
        allows_dots = model.family == "gpt" and (model.line == "o" or model.at_least(5))
        severity: Severity = "risk" if allows_dots and _DOTTED_NAME.fullmatch(name) else "reject"
        yield Problem(path, f"the name {quote(name)} has characters other than letters, digits, '_' and '-'", severity)


@_table.rule("OAI-CHAT-09")
def replayed_name_present(request: ChatRequest) -> Iterator[Problem]:
    """A replayed call has a function name."""
    for call in request.calls:
        if call.is_function and not has_text(call.function.get("name")):
            seen = type_name(call.function["name"]) if "name" in call.function else "missing"
            yield Problem(f"{call.path}.function.name", f"the name is {seen}; a non-empty string is expected")


@_table.rule("OAI-CHAT-10")
def arguments_are_strings(request: ChatRequest) -> Iterator[Problem]:
    """function.arguments is a JSON string, not the decoded value."""
    for call in request.calls:
        if not call.is_function or not call.function:
            continue
        arguments = call.function.get("arguments")
        if not isinstance(arguments, str):
            seen = type_name(arguments) if "arguments" in call.function else "missing"
            yield Problem(f"{call.path}.function.arguments", f"arguments is {seen}; a JSON string is expected")


@_table.rule("COMP-09", applies_to=MINIMAX)
def minimax_arguments(request: ChatRequest) -> Iterator[Problem]:
    """For MiniMax, function.arguments is valid JSON."""
    yield from check_json_arguments(request, "invalid function arguments json string (2013)", allow_empty=False)


@_table.rule("OAI-CHAT-11")
def assistant_has_content(request: ChatRequest) -> Iterator[Problem]:
    """Assistant content is null only with calls, a refusal or audio; a content list has at least one part."""
    for message in request.messages:
        if message.role != "assistant":
            continue
        if message.content is None and not any(message.data.get(key) for key in _CONTENT_ALTERNATIVES):
            yield Problem(f"{message.path}.content", "content is null and there are no tool_calls")
        yield from _check_has_parts(message)


@_table.rule("OAI-CHAT-11")
def others_have_content(request: ChatRequest) -> Iterator[Problem]:
    """Tool, user and system messages have content; a content list has at least one part."""
    for message in request.messages:
        if message.role not in ("system", "developer", "user", "tool"):
            continue
        if message.content is None:
            yield Problem(f"{message.path}.content", f"content is null; a {message.role} message needs content")
        yield from _check_has_parts(message)


def _check_has_parts(message: Message) -> Iterator[Problem]:
    if is_list(message.content) and not message.content:
        yield Problem(f"{message.path}.content", "content is an empty list; at least one part is expected")


@_table.rule("OAI-CHAT-11", applies_to=WITHOUT_AUDIO)
def audio_supported(request: ChatRequest) -> Iterator[Problem]:
    """Only models with audio in their name accept input_audio parts."""
    for message in request.messages:
        # OAI-CHAT-12 covers tool messages.
        for path, part in message.parts() if message.role != "tool" else ():
            if part.get("type") == "input_audio":
                seen = f"Invalid '{message.path}'. Content blocks are expected to be either text or image_url type"
                yield Problem(path, f"{seen}: {request.model.name} does not support input_audio")


@_table.rule("OAI-CHAT-12")
def results_are_text(request: ChatRequest) -> Iterator[Problem]:
    """The content of a tool message is a string or text parts."""
    for message in request.messages:
        if message.role != "tool":
            continue
        for path, part in message.parts():
            if part.get("type") != "text":
                seen = f"a part of type {quote(part.get('type'))}"
                yield Problem(path, f"{seen}; tool messages hold text only; put media into a later user message")


@_table.rule("OAI-CHAT-13", severity="risk")
def no_error_flag(request: ChatRequest) -> Iterator[Problem]:
    """Tool messages have no is_error."""
    for message in request.messages:
        if message.role == "tool" and "is_error" in message.data:
            yield Problem(f"{message.path}.is_error", "this API has no is_error; put the error into the content")


@_table.rule("OAI-CHAT-15")
def no_system_among_results(request: ChatRequest) -> Iterator[Problem]:
    """No system or developer message is between a call and its result."""
    for turn in request.turns:
        for message in turn.system_messages:
            opener = f"messages[{turn.calls[0].message}]"
            yield Problem(message.path, f"a {message.role} message is between the tool results of {opener}")


@_table.rule("OAI-CHAT-15", applies_to=FIRST_O1)
def system_role_supported(request: ChatRequest) -> Iterator[Problem]:
    """The first models of the o family accept neither the role system nor developer."""
    for message in request.messages:
        if message.role in _SYSTEM_ROLES:
            path = f"{message.path}.role"
            yield Problem(path, f"Unsupported value: '{path}' does not support {quote(message.role)} with this model.")


@_table.rule("OAI-CHAT-16")
def tools_within_limits(request: ChatRequest) -> Iterator[Problem]:
    """At most 128 tools are declared, with descriptions of at most 1024 characters."""
    declared = request.body.get("tools")
    if declared is not None and not is_list(declared):
        yield Problem("tools", f"tools is {type_name(declared)}; a list is expected")
    if len(request.tools) > _MOST_TOOLS:
        yield Problem("tools", f"{len(request.tools)} tools; at most {_MOST_TOOLS} are allowed")
    for tool in request.tools:
        path, inner = tool.definition()
        length = len(text_or_empty(inner.get("description")))
        if length > _LONGEST_DESCRIPTION:
            seen = f"the description has {length} characters"
            yield Problem(f"{path}.description", f"{seen}; at most {_LONGEST_DESCRIPTION} are allowed")


@_table.rule("OAI-CHAT-17", applies_to=GPT_5_2)
def no_effort_with_functions(request: ChatRequest) -> Iterator[Problem]:
    """Function tools are accepted here only with the reasoning_effort none, before 5.6 also without one.

    From 5.6 on the models have a default effort.
    """
    effort = request.body.get("reasoning_effort")
    has_default = request.model.at_least(5, 6)
    if effort == "none" or (effort is None and not has_default) or all(t.type == "custom" for t in request.tools):
        return
    seen = "no reasoning_effort, so the default one," if effort is None else f"reasoning_effort {quote(effort)}"
    yield Problem(
        "reasoning_effort", f"{seen} with function tools; {request.model.name} accepts only 'none' here; use Responses"
    )


@_table.rule("OAI-CHAT-21")
def call_type_known(request: ChatRequest) -> Iterator[Problem]:
    """A call has the type function, or the type custom with a name and a string input."""
    for call in request.calls:
        call_type = call.data.get("type")
        if call_type == "custom":
            for key in ("name", "input"):
                value = member(call.data, "custom", key)
                if not isinstance(value, str):
                    yield Problem(f"{call.path}.custom.{key}", f"{key} is {type_name(value)}; a string is expected")
        elif call_type is None:
            yield Problem(f"{call.path}.type", "the call has no type; 'function' or 'custom' is expected")
        elif call_type != "function":
            # A type with its own member may be newer than the rulebook.
            severity: Severity = "risk" if has_text(call_type) and is_object(call.data.get(call_type)) else "reject"
            seen = f"the type is {quote(call_type)}; 'function' or 'custom' is expected"
            yield Problem(f"{call.path}.type", seen, severity)


@_table.rule("OAI-CHAT-22", severity="risk")
def no_unknown_keys(request: ChatRequest) -> Iterator[Problem]:
    """Messages have only documented keys; some deployments reject others."""
    for message in request.messages:
        known = _KEYS.get(message.role)
        if known is None or message.data.keys() <= known:
            continue
        for key in message.data:
            # OAI-CHAT-13 covers is_error.
            if key not in known and not (key == "is_error" and message.role == "tool"):
                yield Problem(
                    f"{message.path}.{key}", f"{quote(key)} is not a key of {message.role} messages in this API"
                )


@_table.rule("OAI-CHAT-23", is_general=True)
def types_valid(request: ChatRequest) -> Iterator[Problem]:
    """Members and options have the types of the API, and the role of a message is known."""
    for problem in find_type_problems(SPEC, request.body):
        # MiniMax has documented parameters as a string with the schema.
        may_be_text = request.model.family == "minimax" and problem.path.endswith(".function.parameters")
        yield Problem(problem.path, problem.message, "risk") if may_be_text else problem


@_table.rule("OAI-CHAT-23")
def options_in_range(request: ChatRequest) -> Iterator[Problem]:
    """Numbers are in the range of the published schema: temperature 0 to 2, top_p 0 to 1, penalties -2 to 2."""
    return find_range_problems(SPEC, request.body)


@_table.rule("OAI-CHAT-23", applies_to=WITHOUT_SEARCH)
def search_supported(request: ChatRequest) -> Iterator[Problem]:
    """Only models with search in their name accept web_search_options."""
    if request.body.get("web_search_options") is not None:
        yield Problem("web_search_options", "Web search options not supported with this model.")


RULE_SET: RuleSet[ChatRequest] = RuleSet("openai-chat", parse_request, tuple(_table), NOT_CHECKABLE)


def adopt_rules(severities: Mapping[str, Severity]) -> Iterator[Rule[ChatRequest]]:
    """Return the rules that another API of this wire shares: name of the check → severity there."""
    return (rule.with_severity(severities[rule.name]) for rule in RULE_SET.rules if rule.name in severities)

"""Error texts of the OpenAI-like providers: every rule has one, and it matches the rulebook."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from random import Random
from typing import Any

import pytest

from segue import conformance
from segue.conformance.openai_responses.items import item_specs
from segue.conformance.rule import Violation
from segue.emulator.errors.broken_rule import BrokenRule, ErrorTexts, RuleError
from segue.emulator.errors.broken_rule import build_error as build
from segue.emulator.errors.profiles import PROFILES
from segue.errors import InputError
from segue.wire.base import ApiError, Wire
from segue.wire.registry import SERVERS, WIRES
from tests.bodies import Body
from tests.conformance import bodies_chat as c
from tests.conformance import bodies_foundry as f
from tests.conformance import bodies_mistral as m
from tests.conformance import bodies_profiles, bodies_types, test_rules
from tests.conformance import bodies_responses as r
from tests.each import for_each

APIS = ("openai-chat", "openai-responses", "azure-foundry", "kimi", "deepseek", "qwen", "mistral")
WORDS: dict[str, ErrorTexts] = {
    api: import_module(f"segue.emulator.errors.{api.replace('-', '_')}").ERROR_TEXTS for api in APIS
}
RULEBOOK = test_rules.RULEBOOK
EVERY = [(api, None) for api in APIS] + [
    (conformance.profile_api(profile), profile) for profile in conformance.profile_names()
]


def rule_errors(api: str, profile: str | None) -> Mapping[str, RuleError]:
    return WORDS[api].rules if profile is None else {**WORDS[api].rules, **PROFILES[profile]}


def wire(api: str, profile: str | None) -> Wire:
    return WIRES[api] if profile is None else SERVERS[profile]


def fault(api: str, body: Body, rule: str, profile: str | None = None, severity: str | None = "reject") -> BrokenRule:
    verdict = conformance.check_body(body, api, profile=profile)
    found = tuple(v for v in verdict if v.rule == rule and severity in (None, v.severity))
    return BrokenRule(body, found)


def build_error(api: str, body: Body, rule: str, profile: str | None = None) -> ApiError:
    found = fault(api, body, rule, profile)
    assert found.violations, f"the judge does not see {rule}"
    return build(rule_errors(api, profile)[rule], found)


# ------------------------------------------------------------------------------------------- every rule, every sample


@pytest.mark.parametrize(("api", "profile"), EVERY)
def test_every_rejection_has_a_text(api: str, profile: str | None) -> None:
    numbers = {rule.number for rule in conformance.rules(api, profile) if rule.severity == "reject"}
    assert numbers <= rule_errors(api, profile).keys()


@pytest.mark.parametrize("api", APIS)
def test_first_checks_have_texts(api: str) -> None:
    first = WORDS[api].rule_order
    assert len(set(first)) == len(first)
    assert set(first) <= WORDS[api].rules.keys()


# What the providers' own sentences quote; any other quoted word is a value of the body.
OWN = "tool_calls tool_call_id tool assistant system developer user none agent agent_reference reasoning fc rs null"
CONCRETE = (
    (re.compile(r"(?<=response messages: )\S+(?:, \S+)*"), "#"),
    (re.compile(r"(?<=call_id )\S+|(?<=item found with id )\S+|(?<=call id )(?!was)\S+|(?<=tool id\()[^)]*"), "#"),
    (re.compile(r"(?<=function call )(?!output|id)\S+|(?<=tool_call_id: )\S+|(?<=id was )\S+|(?<=name was )\S+"), "#"),
    (re.compile(r"(?<=supported for )\S+|(?<=tool_call_id )\S*(?= is)|(?<=call id )\S+$"), "#"),
    (re.compile(r"(?<=role: )\S+|(?<=role:)\w+|(?<=got )\w+$|(?<=messages\.\d\.)\w+(?=\.)"), "#"),
    (re.compile(r"(?<=assistant\.)\w+"), "#"),
    (re.compile(r"'([^']*)'"), lambda found: found[0] if found[1] in OWN.split() else "'#'"),
    (re.compile(r"\[\w+\]"), "[#]"),
    (re.compile(r"\d+"), "#"),
    (re.compile(r"\.+$"), ""),
)


def strip_values(text: str) -> str:
    """A sentence without its concrete parts."""
    for pattern, instead in CONCRETE:
        text = pattern.sub(instead, text)
    return text


def sentences(error: ApiError) -> Iterator[str]:
    yield error.message
    for detail in error.details:
        yield f"{detail.get('message') or detail.get('msg')} (param {detail.get('param')})"


def samples(api: str, profile: str | None) -> Iterator[tuple[str, str, Body]]:
    """Rule, what it is about, and a body that breaks it: the tables of the checker, then the rulebook's own."""
    for case in test_rules.CASES[api] if profile is None else bodies_profiles.CASES[profile]:
        if case.severity == "reject":
            yield case.rule, case.about, {**({"model": case.model} if case.model else {}), **case.violating}
    examples = test_rules.EXAMPLES if profile is None else test_rules.PROFILE_EXAMPLES
    for of, rule, example in (param.values for param in examples):
        if of != (profile or api):
            continue
        make = test_rules.BODIES.get(api, test_rules._chat_body)
        if test_rules.is_case(str(rule), example):
            continue
        body = make(str(rule), example)
        body = {**({"model": test_rules.MODELS[str(rule)]} if str(rule) in test_rules.MODELS else {}), **body}
        if fault(api, body, str(rule), profile).violations:
            yield str(rule), "example", body


EMPTY = "empty string. Expected a string with minimum length 1, but got an empty string instead."
LONG = "string too long. Expected a string with maximum length {}, but got a string with length {} instead."
TAGS = "does not match any of the expected tags"
ITEMS = ", ".join(f"'{sort}'" for sort in sorted(item_specs())).replace(
    ", 'web_search_call'", ", and 'web_search_call'"
)
# Violations that the provider reports in another sentence than the rulebook's sample of the rule.
DIFFERENT_TEXTS: dict[str, dict[str, str]] = {
    "OAI-CHAT-01": {
        "missing": "Missing required parameter: 'messages[1].tool_calls[0].id'.",
        "a number": "Invalid type for 'messages[1].tool_calls[0].id': expected a string, but got an integer instead.",
        "empty": f"Invalid 'messages[1].tool_calls[0].id': {EMPTY}",
    },
    "OAI-CHAT-04": {
        "other id": "Invalid parameter: 'tool_call_id' of 'x' not found in 'tool_calls' of previous message.",
        **dict.fromkeys(
            ("empty id", "null id"),
            "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
        ),
    },
    "OAI-CHAT-15": {
        "a later system message to o1-mini": "Unsupported value: 'messages[2].role' does not support 'system' with "
        "this model."
    },
    "OAI-CHAT-07": {
        "an object": "Invalid type for 'messages[1].tool_calls': expected an array of objects, but got an object "
        "instead."
    },
    "OAI-CHAT-08": {
        "too long": f"Invalid 'tools[0].function.name': {LONG.format(64, 65)}",
        "none declared": "Invalid type for 'tools[0]': expected an object, but got a string instead.",
    },
    "OAI-CHAT-09": {"no function": "Missing required parameter: 'messages[1].tool_calls[0].function'."},
    "OAI-CHAT-16": {
        "129 tools": "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array "
        "with length 129 instead.",
        "an object": "Invalid type for 'tools': expected an array of objects, but got an object instead.",
    },
    "OAI-RESP-02": {
        "a custom call": "Invalid 'input[1].id': 'fc_1'. Expected an ID that begins with 'ctc'.",
        "two-part": "Invalid 'input[1].id': 'fc_1|x'. Expected an ID that contains letters, numbers, underscores, or "
        "dashes, but this value contained additional characters.",
        "too long": f"Invalid 'input[1].id': {LONG.format(64, 67)}",
    },
    "OAI-RESP-03": {
        "of a message": "Invalid 'input[1].id': 'chatcmpl_1'. Expected an ID that begins with 'msg'.",
        "no id and nothing sealed": "Missing required parameter: 'input[1].id'.",
        "no summary": "Missing required parameter: 'input[1].summary'.",
        "a number": "Invalid type for 'input[2].id': expected a string, but got an integer instead.",
    },
    "OAI-RESP-04": {
        "a shell": "No tool output found for shell call call_1.",
        "a local shell": "No tool output found for local shell call call_1.",
        "a patch": "No tool output found for apply patch call call_1.",
        "a computer": "No tool output found for computer call call_1.",
        "a search of the client": "No tool output found for tool search call call_1.",
    },
    "OAI-RESP-05": {
        "of a shell": "No tool call found for shell call output with call_id call_1.",
        "a local shell": "No tool call found for local shell call output with call_id x.",
    },
    "OAI-RESP-11": {
        "an object": "Invalid type for 'input[1].encrypted_content': expected a string, but got an object instead.",
        "an envelope": "The encrypted content segu...AAAA could not be verified.",
    },
    "OAI-RESP-14": {
        "no role": "Missing required parameter: 'input[1].role'.",
        "tool_calls": "Unknown parameter: 'input[1].tool_calls'.",
        "tool_call_id": "Unknown parameter: 'input[1].tool_call_id'.",
        "type is a number": f"Invalid value: '1'. Supported values are: {ITEMS}.",
        "neither type nor role": "Missing required parameter: 'input[1].type'.",
        "no object": "Invalid type for 'input[1]': expected an object, but got a string instead.",
        "reference to nothing": "Missing required parameter: 'input[1].id'.",
        "status": "Invalid value: 'done'. Supported values are: 'in_progress', 'completed', and 'incomplete'.",
        "tools from the user": "Invalid value: 'user'. Supported values are: 'developer'.",
        "compaction without content": "Missing required parameter: 'input[1].encrypted_content'.",
    },
    "OAI-RESP-21": {
        **dict.fromkeys(
            ("not asked", "asked later"), "No approval request found for mcp approval response with id mcpr_1."
        ),
        "neither yes nor no": "Invalid type for 'input[2].approve': expected a boolean, but got a string instead.",
        "request without id": "Missing required parameter: 'input[1].id'.",
        "an approval that nobody asked for": "No approval request found for mcp approval response with id "
        f"{f.make_id('mcpr')}.",
    },
    "OAI-RESP-25": {"two outputs": "Duplicate function call output id call_1"},
    "AZF-03": {
        "background": "background=true requires store=true",
        "stream_options": "stream_options requires stream=true",
        "metadata": "metadata value for key 'a' exceeds maximum length of 512 characters",
    },
    "AZF-04": {"no type": "Invalid payload"},
    "KIM-02": {"the old form": "Invalid request: function_call is not supported in the message at position 1"},
    "KIM-03": {"the old role": "Invalid request: unsupported role 'function' in the message at position 1"},
    "DS-06": {
        "no id": "Failed to deserialize the JSON body into the target type: messages[3]: missing field `tool_call_id` "
        "at line 1 column 278"
    },
    "DS-10": {"too long": f"Invalid 'tools[0].function.name': {LONG.format(64, 65)}"},
    "MIS-01": {"line break": "Tool call id was abcdefgh1\n but must be a-z, A-Z, 0-9, with a length of 9."},
    "MIS-08": {"after system": "Unexpected role 'tool' after role 'system'"},
    "MIS-09": {"after assistant": "Unexpected role 'system' after role 'assistant'"},
    "MIS-11": dict.fromkeys(
        ("empty", "null", "no parts"), "Assistant message must have either content or tool_calls, but not none."
    ),
    "MIS-12": {
        "no function": "Field required",
        "in the result": "Function name was a b but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a "
        "maximum length of 64.",
    },
    "MIS-13": {
        "an object": "Input should be a valid list",
        "role": f"Input tag 'developer' found using 'role' {TAGS}: 'system', 'user', 'assistant', 'tool'",
        "no parameters": "Field required",
        "wrong type": "Invalid tool schema: the schema.type is 'text'; a type of JSON Schema or a list of different "
        "ones is expected",
        "deep inside": "Invalid tool schema: the schema.properties.a.items.anyOf is an empty list; a list of schemas "
        "is expected",
    },
    "MIS-14": {
        "image in a result": "Unexpected content chunk types in tool message: ['image_url']",
        "image of the assistant": "Unexpected content chunk types in assistant message: ['image_url']",
        "thinking before v11": "Unexpected content chunk types in assistant message: ['thinking']",
        "thinking of the user": "Unexpected content chunk types in user message: ['thinking']",
        "unknown chunk": f"Input tag 'tool_result' found using 'type' {TAGS}: 'document_url', 'file', 'image_url', "
        "'input_audio', 'reference', 'resource', 'resource_link', 'text', 'thinking'",
    },
    "MIS-15": {"no message": "Conversation must have at least one message"},
    "COMP-12": {
        "null": "json: cannot unmarshal null into Go struct field ChatRequest.messages.tool_calls.function.arguments "
        "of type api.ToolCallFunctionArguments"
    },
    "COMP-19": dict.fromkeys(("result", "example"), "All non-assistant messages must contain 'content'"),
}
# «Invalid input[].call_id …» is what was left of the sentence in a report; the whole one is known from Chat.
# The text of a wrong type depends on the type.
SHORTENED = {"OAI-RESP-01", *bodies_types.RULES.values()}
# Whose sentences an API speaks; what else it takes over is worded in its own style.
RULE_PREFIXES: Mapping[str, tuple[str, ...]] = {
    **{api: (prefix,) for api, prefix in test_rules.PREFIX.items()},
    "openai-chat": ("OAI-CHAT-", "COMP-"),
    "azure-foundry": ("AZF-", "OAI-RESP-"),
}
SAMPLES = [(api, profile, rule, about, body) for api, profile in EVERY for rule, about, body in samples(api, profile)]


@for_each("api, profile, rule, about, body", SAMPLES, ids=lambda row: f"{row[1] or row[0]} {row[2]} {row[3]}")
def test_rejection_text_matches_the_rulebook(api: str, profile: str | None, rule: str, about: str, body: Body) -> None:
    error = build_error(api, body, rule, profile)
    known = RULEBOOK[rule]
    if not rule.startswith(RULE_PREFIXES[api]):
        return
    other = DIFFERENT_TEXTS.get(rule, {}).get(about)
    if other is not None:
        assert error.message == other
        return
    if known.error_status:
        assert error.status == known.error_status
    if not known.error_text or "[Error wording recalled" in known.rule or rule in SHORTENED:
        return
    sample, texts = strip_values(known.error_text), [strip_values(sentence) for sentence in sentences(error)]
    if known.error_text.endswith("..."):
        texts = [sentence[: len(sample)] for sentence in texts]
    assert sample in texts


# -------------------------------------------------------------------------------------------------- to the last letter

CALLS = c.assistant_calls(c.call("call_a"), c.call("call_b"), c.call("call_c"))
UNANSWERED = (
    "n assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
    "following tool_call_ids did not have response messages: "
)
NAME = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
GONE = "Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item "
DEEPSEEK = "invalid_request_error"
ORDER = ("invalid_request_message_order", "3230")


def refused(message: str, code: str | None = None, param: str | None = None, status: int = 400) -> ApiError:
    return ApiError(status, message, code=code, param=param)


EXACT: list[tuple[str, str, Body, ApiError]] = [
    (
        "openai-chat",
        "OAI-CHAT-01",
        c.body(c.assistant_calls(c.call(), c.call("c" * 53)), c.result(), c.result("c" * 53)),
        refused(
            f"Invalid 'messages[1].tool_calls[1].id': {LONG.format(40, 53)}",
            "string_above_max_length",
            "messages[1].tool_calls[1].id",
        ),
    ),
    (
        "openai-chat",
        "OAI-CHAT-03",
        c.body(c.SYSTEM, CALLS, c.result("call_b"), c.USER),
        refused(f"A{UNANSWERED}call_a, call_c", None, "messages.[4].role"),
    ),
    (
        "openai-chat",
        "OAI-CHAT-15",
        c.body(CALLS, c.result("call_b"), c.SYSTEM, c.result("call_a"), c.result("call_c")),
        refused(f"A{UNANSWERED}call_a, call_c", None, "messages.[3].role"),
    ),
    (
        "openai-chat",
        "OAI-CHAT-04",
        c.body(c.USER, c.result("call_9")),
        refused(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            None,
            "messages.[2].role",
        ),
    ),
    (
        "openai-chat",
        "OAI-CHAT-05",
        c.body(CALLS, c.result("call_a"), c.result("call_b"), c.result("call_a"), c.result("call_c")),
        refused(
            "Invalid parameter: Duplicate value for 'tool_call_id' of 'call_a', in messages[2] and messages[4].",
            None,
            "messages.[4].tool_call_id",
        ),
    ),
    (
        "openai-chat",
        "OAI-CHAT-07",
        c.body({"role": "assistant", "content": "hi", "tool_calls": []}),
        refused(
            "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty "
            "array instead.",
            "empty_array",
            "messages[1].tool_calls",
        ),
    ),
    (
        "openai-chat",
        "OAI-CHAT-08",
        c.body(tools=[c.tool("f"), c.tool("g.h")]),
        refused(f"Invalid 'tools[1].function.name': {NAME}", "invalid_value", "tools[1].function.name"),
    ),
    (
        "openai-chat",
        "OAI-CHAT-12",
        c.body(c.assistant_calls(), c.result(content=[c.TEXT, c.IMAGE])),
        refused(
            "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with "
            "role 'tool' contains an image URL.",
            "invalid_value",
            "messages[2]",
        ),
    ),
    (
        "openai-chat",
        "OAI-CHAT-16",
        c.body(tools=[c.tool(), c.tool("g", description="d" * 2780)]),
        refused(
            f"Invalid 'tools[1].function.description': {LONG.format(1024, 2780)}",
            "string_above_max_length",
            "tools[1].function.description",
        ),
    ),
    (
        "openai-chat",
        "OAI-CHAT-17",
        c.body(model="gpt-5.7", tools=[c.tool()], reasoning_effort="low"),
        refused(
            "Function tools with reasoning_effort are not supported for gpt-5.7 in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
            None,
            "reasoning_effort",
        ),
    ),
    (
        "openai-responses",
        "OAI-RESP-01",
        r.body(r.call(r.LONG), r.result(r.LONG)),
        refused(f"Invalid 'input[1].call_id': {LONG.format(64, 65)}", "string_above_max_length", "input[1].call_id"),
    ),
    (
        "openai-responses",
        "OAI-RESP-02",
        r.body(r.USER, r.call(id="call_U7Zp"), r.result()),
        refused(
            "Invalid 'input[2].id': 'call_U7Zp'. Expected an ID that begins with 'fc'.", "invalid_value", "input[2].id"
        ),
    ),
    (
        "openai-responses",
        "OAI-RESP-04",
        r.body(r.call("call_7")),
        refused("No tool output found for function call call_7.", None, "input"),
    ),
    (
        "openai-responses",
        "OAI-RESP-10",
        r.body({"type": "reasoning", "id": "rs_7", "summary": []}, r.SAYS, store=False),
        refused(f"Item with id 'rs_7' not found. {GONE}from your input.", None, "input", 404),
    ),
    (
        "openai-responses",
        "OAI-RESP-14",
        r.body({"role": "tool", "content": "r"}),
        refused(
            "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
            "invalid_value",
            "input[1].role",
        ),
    ),
    (
        "openai-responses",
        "OAI-RESP-15",
        r.body(r.USER, {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        refused(
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            "invalid_value",
            "input[2].content[0]",
        ),
    ),
    (
        "azure-foundry",
        "AZF-01",
        f.body(agent_reference=f.AGENT, tools=[]),
        refused("Not allowed when agent is specified.", "invalid_payload", "tools"),
    ),
    (
        "azure-foundry",
        "AZF-03",
        f.body(f.call(status=None), f.result(), instructions=1),
        ApiError(
            400,
            "Invalid payload",
            code="invalid_payload",
            details=(
                {
                    "code": "ValidationError",
                    "message": "Value is 'integer' but should be 'string'",
                    "param": "/instructions",
                    "type": "error",
                },
                {
                    "code": "ValidationError",
                    "message": "Value is 'null' but should be 'string'",
                    "param": "/input/1/status",
                    "type": "error",
                },
            ),
        ),
    ),
    ("kimi", "KIM-02", c.body(CALLS, c.result("call_b"), c.USER), refused(f"a{UNANSWERED}call_a, call_c")),
    (
        "kimi",
        "KIM-05",
        c.body(c.USER, c.USER, {"role": "assistant", "content": ""}, c.USER),
        refused("Invalid request: the message at position 3 with role 'assistant' must not be empty"),
    ),
    (
        "deepseek",
        "DS-01",
        c.body(c.assistant_calls(), c.result(), model="deepseek-reasoner"),
        refused(
            "Missing `reasoning_content` field in the assistant message at message index 1. For more information, "
            "please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
            DEEPSEEK,
        ),
    ),
    (
        "deepseek",
        "DS-07",
        c.body(c.USER, model="deepseek-r1"),
        refused(
            "deepseek-reasoner does not support successive user or assistant messages (messages[0] and messages[1] in "
            "your input). You should interleave the user/assistant messages in the message sequence.",
            DEEPSEEK,
        ),
    ),
    (
        "qwen",
        "QWEN-01",
        c.body(c.USER, CALLS, c.result("call_a"), c.USER),
        refused(
            '<400> InternalError.Algo.InvalidParameter: An assistant message with "tool_calls" must be followed by '
            'tool messages responding to each "tool_call_id". The following tool_call_ids did not have response '
            "messages: message[4].role",
            "invalid_parameter_error",
        ),
    ),
    (
        "mistral",
        "MIS-01",
        c.body(c.assistant_calls(c.call("turn1_0")), c.result("turn1_0")),
        ApiError(
            400,
            "Tool call id was turn1_0 but must be a-z, A-Z, 0-9, with a length of 9.",
            "invalid_function_call",
            "3280",
        ),
    ),
    (
        "mistral",
        "MIS-07",
        c.body(*m.HISTORY, c.USER),
        ApiError(400, "Unexpected role 'user' after role 'tool'", *ORDER),
    ),
    (
        "mistral",
        "MIS-13",
        c.body({**m.ANSWER, "reasoning_content": "t"}, c.USER, seed=1),
        ApiError(
            422,
            "Extra inputs are not permitted",
            details=(
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "seed"],
                    "msg": "Extra inputs are not permitted",
                    "input": 1,
                },
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
                    "msg": "Extra inputs are not permitted",
                    "input": "t",
                },
            ),
        ),
    ),
    (
        "cerebras",
        "COMP-04",
        c.body(*[{**m.ANSWER, "reasoning_content": "t"}] * 2),
        refused(
            "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported\n"
            "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported",
            "wrong_api_format",
            "validation_error",
        ),
    ),
    (
        "minimax",
        "COMP-09",
        c.body(c.assistant_calls(c.call("x"), c.call("y", arguments="{a")), c.result("x"), c.result("y")),
        ApiError(
            400,
            "invalid params, invalid function arguments json string, tool_call_id: y (2013)",
            kind="bad_request_error",
        ),
    ),
    (
        "vllm",
        "COMP-14",
        c.body(c.assistant_calls(c.call(arguments='{"a": 1')), c.result()),
        ApiError(400, "Expecting ',' delimiter: line 1 column 8 (char 7)", kind="BadRequestError"),
    ),
]


@pytest.mark.parametrize(("name", "rule", "body", "expected"), EXACT, ids=[f"{row[0]} {row[1]}" for row in EXACT])
def test_values_code_and_place(name: str, rule: str, body: Body, expected: ApiError) -> None:
    api, profile = (name, None) if name in APIS else ("openai-chat", name)
    assert build_error(api, body, rule, profile) == expected


# Rules that only a server with state sees broken: it makes the violation itself.
KEPT: list[tuple[str, str, str, Body, ApiError]] = [
    (
        "openai-responses",
        "OAI-RESP-11",
        "input[1]",
        r.body({**r.THINKS, "encrypted_content": "gAAAAABoxyzc90="}),
        refused("The encrypted content gAAA...c90= could not be verified.", "invalid_encrypted_content"),
    ),
    (
        "openai-responses",
        "OAI-RESP-12",
        "input[1]",
        r.body(r.THINKS),
        refused(
            "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be "
            "decrypted or parsed.",
            "invalid_encrypted_content",
        ),
    ),
    (
        "openai-responses",
        "OAI-RESP-10",
        "input[1]",
        r.body(r.MEANT),
        refused("Item with id 'rs_1' not found.", None, "input", 404),
    ),
    (
        "openai-responses",
        "OAI-RESP-08",
        "input[1].id",
        r.body(r.call(id="fc_1")),
        refused(
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_9'.",
            None,
            "input",
        ),
    ),
    (
        "openai-responses",
        "previous_response_not_found",
        "previous_response_id",
        r.body(previous_response_id="resp_1"),
        refused("Previous response with id 'resp_1' not found.", "previous_response_not_found", "previous_response_id"),
    ),
    ("azure-foundry", "AZF-06", "input[1]", r.body(r.THINKS), refused("Invalid payload", "invalid_payload")),
]


@pytest.mark.parametrize(("api", "rule", "path", "body", "expected"), KEPT, ids=[f"{row[0]} {row[1]}" for row in KEPT])
def test_server_only_checks(api: str, rule: str, path: str, body: Body, expected: ApiError) -> None:
    made = Violation(rule, path, "made with 'rs_9'", "reject")
    assert build(WORDS[api].rules[rule], BrokenRule(body, (made,))) == expected


# ----------------------------------------------------------------------------------------------- bodies of any shape


JUNK: tuple[Any, ...] = (None, 7, 0.5, True, "", "x", [], [None], ["x", 1], {}, {"id": 1}, {"type": None})


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a body with each of its keys or indexes."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        steps = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        found += [(holder, step) for step in steps[:8]]
        waiting += [holder[step] for step in steps[:8] if isinstance(holder[step], dict | list)]
    return found


def damaged(body: Body, lot: Random) -> Body:
    spoiled = copy.deepcopy(body)
    for _ in range(lot.randint(1, 2)):
        if not (found := places(spoiled)):
            break
        holder, step = lot.choice(found)
        if isinstance(holder, dict) and lot.random() < 0.2:
            del holder[step]
        else:
            holder[step] = copy.deepcopy(lot.choice(JUNK))
    return spoiled


@pytest.mark.parametrize(("api", "profile"), EVERY)
def test_error_texts_never_raise(api: str, profile: str | None) -> None:
    known, lot = rule_errors(api, profile), Random(f"{api} {profile}")
    for rule, _, body in samples(api, profile):
        before = fault(api, body, rule, profile)
        for _ in range(30):
            spoiled = damaged(body, lot)
            faults = [(rule, BrokenRule(spoiled, before.violations))]
            try:
                verdict = conformance.check_body(spoiled, api, profile=profile)
            except InputError:
                verdict = ()
            faults += [(v.rule, BrokenRule(spoiled, (v,))) for v in verdict if v.rule in known]
            for number, found in faults:
                error = build(known[number], found)
                assert isinstance(error.message, str)
                assert error.message
                assert 400 <= error.status < 600
                rendered = wire(api, profile).render_error(error)
                assert wire(api, profile).parse_error(error.status, rendered).message


# -------------------------------------------------------------------------------------- troubles, and errors as JSON


@pytest.mark.parametrize("api", APIS)
def test_standard_errors_are_rendered_and_parsed_back(api: str) -> None:
    troubles = WORDS[api].standard
    no_route, no_model = troubles.no_route("POST", "/v9/chat"), troubles.no_model("gpt-nine")
    assert (troubles.no_key.status, troubles.bad_key.status, no_route.status) == (401, 401, 404)
    assert troubles.bad_json(b"?").status in (400, 422)
    assert no_model.status in (400, 404)
    assert (troubles.rate_limited.status, troubles.server_error.status) == (429, 500)
    # Kimi and Mistral tell of overload as of too many requests.
    assert troubles.overloaded.status in (429, 503)
    assert troubles.overloaded != troubles.rate_limited
    texts = (troubles.no_key, troubles.bad_key, troubles.bad_json(b"?"), no_route, no_model, troubles.rate_limited)
    for error in (*texts, troubles.server_error, troubles.overloaded):
        read = WIRES[api].parse_error(error.status, WIRES[api].render_error(error))
        assert read.status == error.status
        assert error.message in read.message


def test_a_key_is_never_printed_whole() -> None:
    bad_key = WORDS["openai-chat"].standard.bad_key
    assert bad_key.code == "invalid_api_key"
    assert re.fullmatch(r"Incorrect API key provided: sk-\*+\. You can find your API key at \S+", bad_key.message)


STANDARD_ERRORS = ApiError(400, "no", "invalid_request_error", "1214", "messages")
SHAPES_OF_ERRORS: dict[str, Any] = {
    "deepseek": {"error": {"message": "no", "type": "invalid_request_error", "param": "messages", "code": "1214"}},
    "kimi": {"error": {"message": "no", "type": "invalid_request_error", "param": "messages", "code": "1214"}},
    "azure-foundry": {
        "error": {"code": "1214", "message": "no", "param": "messages", "type": "invalid_request_error", "details": []}
    },
    "cerebras": {"message": "no", "type": "invalid_request_error", "param": "messages", "code": "1214"},
    "xai": {"code": "1214", "error": "no"},
    "z.ai": {"error": {"code": "1214", "message": "no"}},
    "vllm": {"error": {"message": "no", "type": "invalid_request_error", "param": "messages", "code": 400}},
}


@pytest.mark.parametrize("name", SHAPES_OF_ERRORS)
def test_an_error_has_the_form_of_its_server(name: str) -> None:
    speaker = WIRES[name] if name in WIRES else SERVERS[name]
    assert speaker.render_error(STANDARD_ERRORS) == SHAPES_OF_ERRORS[name]
    assert speaker.parse_error(400, SHAPES_OF_ERRORS[name]).message == "no"


def test_an_error_of_kimi_has_no_empty_keys() -> None:
    assert WIRES["kimi"].render_error(ApiError(400, "no")) == {
        "error": {"message": "no", "type": "invalid_request_error"}
    }


def test_errors_with_a_request_id() -> None:
    qwen = WIRES["qwen"].render_error(STANDARD_ERRORS)
    assert qwen.keys() == {"error", "id", "request_id"}
    assert qwen["id"] == f"chatcmpl-{qwen['request_id']}"
    assert WIRES["qwen"].render_error(STANDARD_ERRORS) == qwen
    minimax = SERVERS["minimax"].render_error(STANDARD_ERRORS)
    assert minimax["error"] == {"type": "invalid_request_error", "message": "no", "http_code": "400"}
    assert SERVERS["minimax"].parse_error(400, minimax).message == "no"


def test_findings_are_listed() -> None:
    finding = {"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {}}
    error = ApiError(422, "Field required", details=(finding,))
    assert WIRES["mistral"].render_error(error) == {"detail": [finding]}
    assert WIRES["mistral"].parse_error(422, {"detail": [finding]}).message == "messages: Field required"
    assert WIRES["mistral"].render_error(ApiError(401, "Unauthorized")) == {"detail": "Unauthorized"}
    listed = ApiError(400, "Invalid payload", code="invalid_payload", details=({"param": "/input"},))
    foundry = WIRES["azure-foundry"]
    assert foundry.parse_error(400, foundry.render_error(listed)) == listed

"""Error texts of Anthropic, Gemini and Bedrock match the providers', with the values of the rejected body."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from segue import conformance
from segue.conformance.rule import Violation
from segue.emulator.errors import anthropic, bedrock, gemini
from segue.emulator.errors.anthropic_blocks import prefix_mismatch_error
from segue.emulator.errors.broken_rule import BrokenRule, ErrorTexts
from segue.emulator.errors.broken_rule import build_error as build
from segue.errors import InputError
from segue.specs.rulebook import load_rulebook
from segue.wire.base import ApiError
from segue.wire.registry import WIRES
from tests.budget import sample
from tests.conformance import bodies_anthropic, bodies_bedrock, bodies_gemini, bodies_gemini_tools, bodies_types
from tests.conformance.case import Case
from tests.conformance.test_rules import BODIES, MODELS, is_case

A, B, G = bodies_anthropic, bodies_bedrock, bodies_gemini

RULEBOOK = load_rulebook()
BUILDERS: dict[str, ErrorTexts] = {
    "anthropic": anthropic.ERROR_TEXTS,
    "bedrock": bedrock.ERROR_TEXTS,
    "gemini": gemini.ERROR_TEXTS,
}
PREFIX = {"anthropic": "ANT-", "bedrock": "BED-", "gemini": "GEM-"}
CASES: dict[str, tuple[Case, ...]] = {
    "anthropic": A.CASES,
    "bedrock": B.CASES,
    "gemini": (*G.CASES, *bodies_gemini_tools.CASES),
}


def fault(api: str, rule: str, body: Any, model: str | None = None) -> BrokenRule:
    found = tuple(v for v in conformance.check_body(body, api, model=model) if v.rule == rule)
    assert found, f"{api} finds no {rule}"
    return BrokenRule(body, found)


def build_error(api: str, rule: str, body: Any, model: str | None = None) -> ApiError:
    return build(BUILDERS[api].rules[rule], fault(api, rule, body, model))


def found_here(api: str, rule: str, body: Any, path: str, message: str = "") -> ApiError:
    """The error for a violation that only the server can find."""
    return build(BUILDERS[api].rules[rule], BrokenRule(body, (Violation(rule, path, message, "reject"),)))


# ---------------------------------------------------------------------------------------------------- against rulebook

# Where the rulebook quotes less than the whole message: what stands before.
LEAD = {
    "GEM-10": re.compile(r"\* GenerateContentRequest\."),
    "ANT-08": re.compile(r"messages\.\d+\.content\.\d+: "),
    "BED-01": re.compile(r"\d+ validation errors? detected: "),
    "BED-02": re.compile(r"\d+ validation errors? detected: "),
}
# Raised by the client library; the request is never sent.
NEVER_SENT = {"BED-09"}
# Cases with another text than the rulebook's sample; see below for these.
DIFFERENT_TEXTS: dict[str, set[str]] = {
    "ANT-01": {"a number", "no tool_use_id"},
    "ANT-04": {"text behind it (ANT-40)", "in a user message"},
    "ANT-07": {"in an assistant message"},
    "ANT-09": {
        *("the user's", "a server tool without a result", "the second of two"),
        "text beside the results while a server tool is open",
    },
    "ANT-12": {"inside a result", "system", "no type", "message"},
    "ANT-15": {"missing"},
    "ANT-16": {"null"},
    "ANT-18": {
        *("a call inside", "an object", "is_error a string"),
        *("an error without content", "an error with an empty list"),
    },
    "ANT-19": {"blank", "a number"},
    "ANT-20": {"tool"},
    "ANT-24": {"text before the call"},
    "ANT-25": {"the user's", "no text"},
    "ANT-26": {"missing"},
    "ANT-34": {"129", "replayed"},
    "GEM-12": {"one id in two turns", "one id for two calls of a turn"},
    "GEM-09": {"no contents", "contents missing"},
    "GEM-10": {"two", "in systemInstruction", "inside a response"},
    "GEM-11": {"on the response alone"},
    "GEM-18": {"not base64", "two in one", "cut off, on a thought", "bits left over"},
    "GEM-23": {case.about for case in bodies_gemini_tools.CASES} - {"a space", "no name", "129", "65"},
    "GEM-27": {"inside, before Gemini 3"},
    "BED-01": {"too long", "empty", "a number", "missing"},
    "BED-02": {case.about for case in B.CASES if case.rule == "BED-02"} - {"too long, replayed"},
    "BED-05": {"in an assistant message", "one id in two turns", "an id of an earlier turn, Claude"},
    "BED-08": {
        *("empty content", "empty system text", "blank text", "a result of nothing"),
        *("blank message, Nova", "blank message, Claude"),
        *("blank text, Claude, in a result", "blank text before a cache point, Claude"),
    },
    # The sample is of Claude's rules, which are found under their own numbers.
    "BED-11": {case.about for case in B.CASES if case.rule == "BED-11"},
}


def without_values(message: str) -> str:
    """The message without the parts that come from a body: ids, quoted values, types of results, numbers."""
    message = re.sub(r"\b(?:toolu|srvtoolu|fco|call)_\w+", "…", message)
    message = re.sub(r"`\w+_tool_result`", "`…`", message)
    message = re.sub(r"(immediately after|blocks|with id): [a-z0-9]+\b", r"\1: …", message)
    message = re.sub(r"`default_api:\w+`", "`…`", message)
    message = re.sub(r'"(?:[^" ]+)"', '"…"', message)
    message = re.sub(r"tool(Use|Result)\.toolUseId", "…", message)
    return re.sub(r"\d+", "…", message)


def as_quoted(rule: str, message: str) -> list[str]:
    """The sentences of a message that the rulebook quotes one of."""
    message = message.removesuffix("\n")
    lead = LEAD.get(rule)
    if lead is None:
        return [message]
    shortened = lead.sub("", message, count=1)
    assert shortened != message
    return shortened.split("; ")


def samples() -> Iterator[Any]:
    for api, cases in CASES.items():
        for number, rule in RULEBOOK.items():
            text = rule.error_text
            if not number.startswith(PREFIX[api]) or not text or number in NEVER_SENT or "recalled" in rule.rule:
                continue
            for case in cases:
                if bodies_types.has_text_of_its_own(number, case.violating):
                    continue
                if case.rule == number and case.about not in DIFFERENT_TEXTS.get(number, ()):
                    yield pytest.param(api, number, case.violating, case.model, text, id=case.name)
            example = rule.violation_example
            if example is not None and not is_case(number, example) and number not in conformance.not_checkable(api):
                body = BODIES[api](number, example)
                yield pytest.param(api, number, body, MODELS.get(number), text, id=f"{number} example")


@pytest.mark.parametrize(("api", "rule", "body", "model", "sample"), list(samples()))
def test_texts_match_the_rulebook(api: str, rule: str, body: Any, model: str | None, sample: str) -> None:
    error = build_error(api, rule, body, model)
    assert {without_values(part) for part in as_quoted(rule, error.message)} == {without_values(sample)}
    assert error.status == RULEBOOK[rule].error_status


def test_exceptions_are_cases() -> None:
    for number, abouts in DIFFERENT_TEXTS.items():
        assert abouts <= {case.about for cases in CASES.values() for case in cases if case.rule == number}


@pytest.mark.parametrize("api", BUILDERS)
def test_every_rule_has_a_text(api: str) -> None:
    numbers = {rule.number for rule in conformance.rules(api)}
    assert not numbers - BUILDERS[api].rules.keys()
    spoken = {n for n, rule in RULEBOOK.items() if n.startswith(PREFIX[api]) and rule.error_text}
    assert spoken - BUILDERS[api].rules.keys() == spoken & {"GEM-29"}


@pytest.mark.parametrize("api", BUILDERS)
def test_schema_comes_before_conversation(api: str) -> None:
    first = BUILDERS[api].rule_order
    assert len(set(first)) == len(first)
    assert set(first) <= BUILDERS[api].rules.keys()
    order = {
        "anthropic": ("ANT-12", "ANT-13", "ANT-07", "ANT-04", "ANT-26"),
        "bedrock": ("BED-09", "BED-02", "BED-08", "BED-04", "ANT-01", "ANT-24"),
        "gemini": ("GEM-14", "GEM-09", "GEM-02", "GEM-01", "GEM-15"),
    }[api]
    assert sorted(order, key=first.index) == list(order)
    refusing = {rule.number for rule in conformance.rules(api) if rule.severity == "reject"}
    assert refusing <= set(first)


# -------------------------------------------------------------------------------------------------------------- exactly


def at(index: int, *messages: Any, **more: Any) -> Any:
    """A body whose messages from this index on are these."""
    return {"messages": [*[A.Q] * index, *messages], "tools": [A.TOOL], **more}


TEXTS = [A.TEXT] * 20
SAMPLES = [
    ("anthropic", "ANT-01", at(1, A.assistant(A.TEXT, A.call("functions.f:0"))), None),
    ("anthropic", "ANT-02", at(1, A.assistant(A.TEXT, A.TEXT, A.server("toolu_1")), A.Q), None),
    ("anthropic", "ANT-03", at(1, A.assistant(A.call(), A.call()), A.user(A.result())), None),
    ("anthropic", "ANT-04", at(6, A.assistant(A.call()), A.Q), None),
    ("anthropic", "ANT-05", at(6, A.assistant(A.call()), A.user(A.TEXT, A.result())), None),
    ("anthropic", "ANT-07", at(0, A.user(A.result())), None),
    ("anthropic", "ANT-11", at(1, A.assistant(A.call(input="{}")), A.user(A.result())), None),
    ("anthropic", "ANT-12", at(65, A.assistant(A.TEXT, A.call(text="x")), A.user(A.result())), None),
    ("anthropic", "ANT-15", at(0, A.user()), None),
    ("anthropic", "ANT-16", at(0, A.assistant(), A.Q), None),
    ("anthropic", "ANT-24", at(1, A.assistant(A.call()), A.user(A.result()), thinking=A.ON), None),
    ("anthropic", "ANT-27", at(1, A.assistant(A.SIGNED, A.TEXT)), A.OLD),
    ("gemini", "GEM-09", {"contents": [G.Q, G.model(), G.Q]}, None),
    ("gemini", "GEM-10", {"contents": [G.Q, G.A, G.user({})]}, None),
    ("gemini", "GEM-11", G.body(G.model(G.call(id="x")), G.user(G.response())), None),
    (
        "gemini",
        "GEM-12",
        {"contents": [*[G.Q] * 639, G.model(G.TEXT, G.call(id="call_1")), G.user(G.response(id="fco_1"))]},
        None,
    ),
    ("gemini", "GEM-14", G.body(G.model(G.call(args="{}")), G.user(G.response())), None),
    ("gemini", "GEM-15", G.body(G.model(G.unsigned()), G.user(G.response())), G.NEW),
    ("gemini", "GEM-23", G.declares(*({"name": f"f{n}"} for n in range(18)), {"name": "9bad name"}), None),
    ("bedrock", "BED-04", B.body(B.assistant(B.call("tooluse_1")), B.Q), None),
    ("bedrock", "BED-05", B.body(B.A, B.user(B.result())), None),
    ("bedrock", "BED-07", B.body(B.assistant(B.call()), B.user(B.result(), B.TEXT)), B.LLAMA),
]


@pytest.mark.parametrize(("api", "rule", "body", "model"), [pytest.param(*row, id=row[1]) for row in SAMPLES])
def test_sample_comes_out_exactly(api: str, rule: str, body: Any, model: str | None) -> None:
    assert as_quoted(rule, build_error(api, rule, body, model).message) == [RULEBOOK[rule].error_text]


MISSING = (
    "Content that preceded this block when it was created is missing from this request, starting at "
    "`messages.0.content.0`."
)
FOUND_BY_SERVER = [
    ("anthropic", "ANT-06", {}, "messages[156]", ""),
    ("anthropic", "ANT-25", at(3, A.assistant(*TEXTS[:11], A.SIGNED)), "messages[3].content[11]", ""),
    ("anthropic", "ANT-26", at(1, A.assistant(A.SIGNED, A.TEXT)), "messages[1].content[0]", ""),
    ("anthropic", "ANT-26", at(1, A.assistant(A.SIGNED, A.TEXT)), "messages[1].content[0].signature", ""),
    ("anthropic", "ANT-28", at(1, A.assistant(A.SIGNED, A.TEXT)), "messages[1].content[0]", "system"),
    ("anthropic", "ANT-32", at(1, A.assistant(A.found(A.HIT))), "messages[1].content[0].content[0]", ""),
    ("anthropic", "ANT-40", {}, "messages[156].content", ""),
    ("gemini", "GEM-16", G.body(G.model(G.unsigned(name="readFile"))), "contents[1].parts[0].thoughtSignature", ""),
    ("gemini", "GEM-18", G.body(G.model(G.call())), "contents[1].parts[0].thoughtSignature", ""),
    ("gemini", "GEM-19", G.body(G.model(G.call())), "contents[1].parts[0].thoughtSignature", ""),
]


@pytest.mark.parametrize(("api", "rule", "body", "path", "message"), FOUND_BY_SERVER)
def test_server_only_errors(api: str, rule: str, body: Any, path: str, message: str) -> None:
    error = found_here(api, rule, body, path, message)
    assert (error.status, error.message) == (400, RULEBOOK[rule].error_text)


@pytest.mark.parametrize(
    ("differs", "last"),
    [
        ("system", "The `system` prompt differs from the one this block was created with."),
        ("tools", "The `tools` list differs from the one this block was created with."),
        ("messages", MISSING),
    ],
)
def test_block_of_another_conversation(differs: Literal["system", "tools", "messages"], last: str) -> None:
    message_text = prefix_mismatch_error("messages[1].content[0]", differs).message
    assert message_text.endswith(f" header. {last}")
    assert prefix_mismatch_error("messages[1].content[0]", differs, beta=True).message.endswith(f'"drop_block". {last}')
    behind = found_here(
        "bedrock", "ANT-28", B.body(), "messages[1].content[0].reasoningContent.reasoningText", message=differs
    )
    assert behind == ApiError(400, f"The model returned the following errors: {message_text}", "ValidationException")


INVALID = "Request contains an invalid argument."
INTRO = "The model returned the following errors:"
FAILED = "failed to satisfy constraint: Member must"
ONE = "1 validation error detected: Value"
BOTH = (
    "messages.2.member.content.1.member.toolUse.toolUseId",
    "messages.3.member.content.1.member.toolResult.toolUseId",
)
DECLARED = "tools[0].function_declarations[0].parameters.properties"

EXACT_TEXTS: dict[str, dict[str, str]] = {
    "anthropic": {
        "ANT-01 a number": "messages.1.content.0.tool_use.id: Input should be a valid string",
        "ANT-01 no tool_use_id": "messages.2.content.1.tool_result.tool_use_id: Field required",
        "ANT-04 text behind it (ANT-40)": "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this "
        "message. Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
        "ANT-04 in a user message": "messages.1: `tool_use` blocks can only be in `assistant` messages",
        "ANT-07 in an assistant message": "messages.1: `tool_result` blocks can only be in `user` messages",
        "ANT-08 twice": "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` "
        "blocks with id: toolu_1",
        "ANT-09 the user's": "messages.2: `web_search_tool_result` blocks can only be in `assistant` messages",
        "ANT-10 no call": "messages.1.content.0: unexpected `tool_use_id` found in `mcp_tool_result` blocks: "
        "mcptoolu_1. Each `mcp_tool_result` block must have a corresponding `mcp_tool_use` block before it.",
        "ANT-12 inside a result": "messages.2.content.0.tool_result.content.0.text.annotations: "
        "Extra inputs are not permitted",
        "ANT-12 no type": "messages.1.content.0.type: Field required",
        "ANT-12 system": "system.0.id: Extra inputs are not permitted",
        "ANT-16 null": "messages.1.content: Input should be a valid list",
        "ANT-18 a call inside": "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found using 'type' "
        "does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'",
        "ANT-18 an error with an image": "messages.2.content.0.tool_result: all content must be type `text` if "
        "`is_error` is true",
        "ANT-19 blank": "system: text content blocks must contain non-whitespace text",
        "ANT-20 tool": 'messages: Unexpected role "tool". Allowed roles are "user" or "assistant". For instructions on '
        "how to use tools, see https://docs.anthropic.com/en/docs/tool-use",
        "ANT-25 the user's": "messages.1.content: thinking blocks may only be in `assistant` messages",
        "ANT-25 no text": "messages.1.content.0.thinking.thinking: Input should be a valid string",
        "ANT-26 missing": "messages.1.content.0.thinking.signature: Field required",
        "ANT-31 no data": "messages.1.content.0.redacted_thinking.data: Field required",
        "ANT-34 a dot": "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        "ANT-34 65": "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
        "ANT-34 129": "tools.0.custom.name: String should have at most 128 characters",
        "ANT-36 no schema": "tools.0.custom.input_schema: Field required",
        "ANT-36 schema type": "tools.0.custom.input_schema.type: Input should be 'object'",
    },
    "gemini": {
        "GEM-09 no contents": "* GenerateContentRequest.contents: contents is not specified\n",
        "GEM-10 two": "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. "
        "Cannot set 'inlineData'",
        "GEM-13 no name": "* GenerateContentRequest.contents[2].parts[0].function_response.name: "
        "Name cannot be empty.\n",
        "GEM-13 a string": "Invalid value at 'contents[2].parts[0].function_response.response' "
        '(type.googleapis.com/google.protobuf.Struct), "text"',
        "GEM-13 another name": INVALID,
        "GEM-14 is_error": 'Invalid JSON payload received. Unknown name "is_error" at '
        "'contents[2].parts[0].function_response': Cannot find field.",
        "GEM-14 top level": 'Invalid JSON payload received. Unknown name "prompt": Cannot find field.\n'
        'Invalid JSON payload received. Unknown name "temperature": Cannot find field.',
        "GEM-14 contents as text": "Invalid value at 'contents' "
        '(type.googleapis.com/google.ai.generativelanguage.v1beta.Content), "q"',
        "GEM-14 a list as id": 'Invalid JSON payload received. Unknown name "id" at '
        "'contents[1].parts[0].function_call': Proto field is not repeating, cannot start list.",
        "GEM-18 not base64": "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), "
        'Base64 decoding failed for "a b!"',
        "GEM-23 declared twice": "Duplicate function declaration found: f",
        "GEM-23 a key of JSON Schema": 'Invalid JSON payload received. Unknown name "const" at '
        f"'{DECLARED}[0].value': Cannot find field.",
        "GEM-23 array without items": f"* GenerateContentRequest.{DECLARED}[a].items: missing field.\n",
        "GEM-23 allowed names with AUTO": "Please set allowed_function_names only when function calling mode is ANY.",
        "GEM-23 unknown mode": "Invalid value at 'tool_config.function_calling_config.mode' "
        '(type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), "REQUIRED"',
        "GEM-27 inside, before Gemini 3": "Multimodal function responses are not supported for this model",
    },
    "bedrock": {
        "BED-01 a pipe": f"2 validation errors detected: Value at '{BOTH[0]}' {FAILED} satisfy regular expression "
        f"pattern: [a-zA-Z0-9_.:-]+; Value at '{BOTH[1]}' {FAILED} satisfy regular expression pattern: "
        "[a-zA-Z0-9_.:-]+",
        "BED-01 a number": "NUMBER_VALUE cannot be converted to String",
        "BED-01 missing": f"{ONE} at 'messages.2.member.content.2.member.toolUse.toolUseId' {FAILED} not be null",
        "BED-08 empty content": "The content field in the Message object at messages.1 is empty. Add a ContentBlock "
        "object to the content field and try again.",
        "BED-09 input is a string": "The format of the value at messages.1.content.0.toolUse.input is invalid. Provide "
        "a json object for the field and try again.",
        "BED-09 the result's content is a string": "Unexpected field type",
        "BED-09 tool choice none": "ToolChoice object at toolConfig.toolChoice must set one of the following keys: "
        "auto, any, tool.",
        "BED-09 a foreign key": "Malformed input request: #: extraneous key [temperature] is not permitted, please "
        "reformat your input and try again.",
        "BED-09 too hot": f"{ONE} '2.0' at 'inferenceConfig.temperature' {FAILED} have value less than or equal to 1",
        "BED-10 an unknown role": f"{ONE} at 'messages.3.member.role' {FAILED} satisfy enum value set: "
        "[user, assistant, system]",
        "BED-10 the user twice": "A conversation must alternate between user and assistant roles. Make sure the "
        "conversation alternates between user and assistant roles and try again.",
        "BED-11 the user's": "User messages cannot contain reasoning content. Please remove the reasoning content and "
        "try again.",
        "ANT-01 Kimi's id to Claude": f"{INTRO} messages.1.content.0.tool_use.id: String should match pattern "
        "'^[a-zA-Z0-9_-]+$'",
        "ANT-26 no signature": f"{INTRO} messages.1.content.0.thinking.signature: Field required",
        "ANT-31 redacted to nothing": f"{INTRO} messages.1.content.0: Invalid `data` in `redacted_thinking` block",
        "MIS-01 eight letters to Pixtral": f"{INTRO} Tool call id was tooluse_1 but must be a-z, A-Z, 0-9, with a "
        "length of 9.",
    },
}


@pytest.mark.parametrize(
    ("api", "case", "message"),
    [
        pytest.param(api, next(case for case in CASES[api] if case.name == name), message, id=f"{api} {name}")
        for api, table in EXACT_TEXTS.items()
        for name, message in table.items()
    ],
)
def test_exactly(api: str, case: Case, message: str) -> None:
    assert build_error(api, case.rule, case.violating, case.model).message == message


def test_all_unanswered_calls_of_a_message_are_named() -> None:
    calls = A.assistant(A.call("a"), A.call("b"), A.call("c"))
    message_text = build_error(
        "anthropic", "ANT-04", at(2, calls, A.user(A.result("b")), A.assistant(A.call("d")), A.Q)
    ).message
    assert message_text.startswith("messages.2: ")
    assert " immediately after: a, c. " in message_text
    body = B.body(B.assistant(B.call("a"), B.call("b")), B.Q, B.assistant(B.call("c")), B.Q)
    message_text = build_error("bedrock", "BED-04", body).message
    assert message_text == "Expected toolResult blocks at messages.2.content for the following Ids: a, b"


def test_claude_in_bedrock_has_the_anthropic_text() -> None:
    body = {**B.chooses(any={}), **B.ON}
    error = build_error("bedrock", "ANT-30", body, B.CLAUDE)
    assert error == ApiError(400, RULEBOOK["BED-11"].error_text or "", "ValidationException")


def test_other_models_of_bedrock_leave_blank_text_to_the_service() -> None:
    body = B.body(B.A, B.user(B.TEXT, {"text": ""}), modelId=B.NOVA)
    message_text = build_error("bedrock", "BED-08", body).message
    assert message_text.startswith(
        "The text field in the ContentBlock object at messages.2.content.1 is blank. Add text"
    )


# ------------------------------------------------------------------------------------------------------------- careless


def changed(value: Any) -> Iterator[Any]:
    """The value with one of its parts replaced or left out, once for each part and each replacement."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(pairs):
        for other in (None, 7, [], {}, "", ["x"], {"type": 3}):
            copied = copy.copy(value)
            copied[key] = other
            yield copied
        less = copy.copy(value)
        del less[key]
        yield less
        for inner in changed(part):
            copied = copy.copy(value)
            copied[key] = inner
            yield copied


@pytest.mark.parametrize("api", BUILDERS)
def test_any_body_has_an_error_text(api: str) -> None:
    words = BUILDERS[api].rules
    message_text = 0
    for case in CASES[api]:
        for body in sample(changed(case.violating), 5):
            try:
                verdict = conformance.check_body(body, api, model=case.model)
            except InputError:
                continue
            for number in {violation.rule for violation in verdict}:
                error = build(words[number], BrokenRule(body, tuple(v for v in verdict if v.rule == number)))
                assert error.message
                assert error.status == 400
                message_text += 1
    assert message_text > 1000


PLACES = ("", "messages", "messages[9].content[9].x", "contents[0]", "contents.parts[3].x", "tools[0].a.b[1]", "a.b.c")


@pytest.mark.parametrize("api", BUILDERS)
@pytest.mark.parametrize("body", [{}, {"messages": 1, "contents": {"parts": {}}}, {"messages": [[]], "contents": [7]}])
def test_unknown_paths_are_harmless(api: str, body: Any) -> None:
    for number in BUILDERS[api].rules:
        for path in PLACES:
            assert found_here(api, number, body, path).message


# ------------------------------------------------------------------------------------------------------------- troubles


def standard_errors(api: str) -> dict[str, ApiError]:
    has = BUILDERS[api].standard
    return {
        "no_key": has.no_key,
        "bad_key": has.bad_key,
        "bad_json": has.bad_json(b"?"),
        "no_route": has.no_route("GET", "/v1/nothing"),
        "no_model": has.no_model("none-1"),
        "rate_limited": has.rate_limited,
        "failed": has.server_error,
        "overloaded": has.overloaded,
    }


KINDS = {
    "anthropic": {
        "no_key": (401, "authentication_error", "x-api-key header is required"),
        "bad_key": (401, "authentication_error", "invalid x-api-key"),
        "no_model": (404, "not_found_error", "model: none-1"),
        "overloaded": (529, "overloaded_error", "Overloaded"),
    },
    "gemini": {
        "no_key": (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers"),
        "bad_key": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        "no_model": (404, "NOT_FOUND", "models/none-1 is not found for API version v1beta"),
        "rate_limited": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
        "overloaded": (503, "UNAVAILABLE", "This model is currently experiencing high demand."),
    },
    "bedrock": {
        "no_key": (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
        "bad_key": (403, "UnrecognizedClientException", "The security token included in the request is invalid."),
        "no_model": (400, "ValidationException", "The provided model identifier is invalid."),
        "rate_limited": (429, "ThrottlingException", "Too many requests"),
        "overloaded": (503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
    },
}


@pytest.mark.parametrize("api", BUILDERS)
def test_standard_errors_have_the_provider_format(api: str) -> None:
    wire = WIRES[api]
    for name, (status, kind, begins) in KINDS[api].items():
        error = standard_errors(api)[name]
        made = wire.render_error(error)
        body = made.get("error", made)
        assert error.status == status
        assert kind in (body.get("type"), body.get("status"), body.get("__type"))
        assert body["message"].startswith(begins)


@pytest.mark.parametrize("api", BUILDERS)
def test_standard_errors_are_parsed_back(api: str) -> None:
    wire = WIRES[api]
    for error in standard_errors(api).values():
        assert wire.parse_error(error.status, wire.render_error(error)) == error


@pytest.mark.parametrize("api", BUILDERS)
def test_refusals_are_read_back(api: str) -> None:
    wire = WIRES[api]
    for case in CASES[api]:
        error = build_error(api, case.rule, case.violating, case.model)
        assert wire.parse_error(error.status, wire.render_error(error)) == error


def test_a_wrong_key_of_gemini_gives_its_reason() -> None:
    made = WIRES["gemini"].render_error(standard_errors("gemini")["bad_key"])
    assert made["error"]["details"][0] == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }

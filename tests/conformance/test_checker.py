"""The checker as a whole: rejected input, guarantees and cost."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue import conformance
from segue.conformance import anthropic, openai_responses
from segue.conformance.anthropic.content import KEYS
from segue.conformance.azure_foundry import backend
from segue.conformance.bedrock import claude
from segue.conformance.openai_responses.items import item_specs
from segue.errors import InputError
from tests.budget import examples
from tests.conformance import (
    bodies_anthropic,
    bodies_bedrock,
    bodies_chat,
    bodies_foundry,
    bodies_gemini,
    bodies_responses,
)
from tests.work import count_work

SOURCE = Path(conformance.__file__).parent
APIS = conformance.apis()
ITEMS = json.loads((Path(__file__).parents[1] / "data" / "responses_items.json").read_text("utf-8"))

NO_OBJECT = [None, [], "{}"]
MALFORMED = [
    ({"messages": None}, "messages"),
    ({"messages": {}}, "messages"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"messages": [{"role": "user", "content": "q"}, None]}, "messages[1]"),
    ({"messages": [{"content": "q"}]}, "messages[0].role"),
    ({"messages": [{"role": 1, "content": "q"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": {}}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": ["q"]}]}, "messages[0].content[0]"),
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("body", NO_OBJECT)
def test_non_object_is_an_input_error(body: Any, api: str) -> None:
    with pytest.raises(InputError) as raised:
        conformance.check_body(body, api)
    assert not raised.value.path


# The checkers of these APIs accept a body without messages: it is a violation.
TAKE_ANY = ("azure-foundry", "bedrock", "gemini", "openai-responses")


@pytest.mark.parametrize("api", [api for api in APIS if api not in TAKE_ANY])
def test_body_without_messages_is_an_input_error(api: str) -> None:
    with pytest.raises(InputError) as raised:
        conformance.check_body({}, api)
    assert raised.value.path == "messages"


@pytest.mark.parametrize("api", [api for api in APIS if api not in TAKE_ANY])
@pytest.mark.parametrize(("body", "path"), MALFORMED)
def test_malformed_messages_are_rejected_in_place(body: Any, path: str, api: str) -> None:
    verdict = conformance.check_body(body, api)
    assert not verdict
    # Mistral and DashScope have another number for a conversation without messages.
    rejected = {violation.path for violation in verdict if violation.severity == "reject"}
    assert {path, f"{path}.role"} & rejected


@pytest.mark.parametrize("api", ["azure-foundry", "bedrock", "gemini"])
@pytest.mark.parametrize(("body", "path"), [({}, "messages"), *MALFORMED])
def test_any_object_gets_a_verdict(body: Any, path: str, api: str) -> None:
    assert path
    assert not conformance.check_body(body, api)


def test_bedrock_has_its_model_under_its_own_key() -> None:
    b = bodies_bedrock
    body = b.ids("functions.f:0")
    assert conformance.check_body({**body, "modelId": b.NOVA}, "bedrock")
    verdict = conformance.check_body({**body, "modelId": b.CLAUDE}, "bedrock")
    assert verdict.model == b.CLAUDE
    assert {violation.rule for violation in verdict} == {"ANT-01"}
    assert conformance.check_body({**body, "modelId": b.CLAUDE}, "bedrock", model=b.NOVA)


def test_constraints_have_the_service_text() -> None:
    (first, _) = conformance.check_body(bodies_bedrock.ids("a|b"), "bedrock")
    assert first.message == (
        "Value at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"
    )


def test_foundry_rejections_have_its_text() -> None:
    f = bodies_foundry
    rules = {
        "Expected string, got object": f.body(f.call(arguments={}), f.result()),
        "Required property 'id' is missing": f.body(f.without(f.thinks(), "id"), f.SAYS),
        "Expected one of: string, array; got integer": {"input": 1},
        "Invalid value 'done'. Allowed: in_progress, completed, incomplete": f.body(f.call(status="done"), f.result()),
    }
    for message, body in rules.items():
        (violation,) = conformance.check_body(body, "azure-foundry")
        assert violation.message == message


def test_rules_taken_from_another_api_exist() -> None:
    assert {rule.name for rule in openai_responses.RULE_SET.rules} >= backend.OMITTED_CHECKS.keys()
    assert {rule.name for rule in anthropic.RULE_SET.rules} >= claude.SHARED_CHECKS
    assert len(claude.RULES) == len(claude.SHARED_CHECKS)


def test_unknown_api_is_an_input_error() -> None:
    with pytest.raises(InputError, match="anthropic"):
        conformance.check_body({"messages": []}, "telegraph")


def test_apis() -> None:
    assert APIS == (
        *("anthropic", "azure-foundry", "bedrock", "deepseek", "gemini", "kimi", "mistral"),
        *("openai-chat", "openai-responses", "qwen"),
    )


def test_profiles_belong_to_an_api_and_are_named() -> None:
    names = [name for name in conformance.profile_names() if conformance.profile_api(name) == "openai-chat"]
    assert "vllm" in names
    with pytest.raises(InputError) as raised:
        conformance.check_body({"messages": []}, "openai-chat", profile="lighthouse")
    assert raised.value.path == "profile"
    assert all(name in str(raised.value) for name in names)
    with pytest.raises(InputError, match="openai-chat") as raised:
        conformance.check_body({"messages": []}, "kimi", profile="vllm")
    assert raised.value.path == "profile"


@pytest.mark.parametrize("row", ITEMS, ids=[row["name"] for row in ITEMS])
def test_item_that_the_vendors_types_take_is_accepted(row: dict[str, Any]) -> None:
    body = {"input": [bodies_responses.USER, *row["input"]], "previous_response_id": row.get("previous_response_id")}
    verdict = conformance.check_body(body, "openai-responses", model="gpt-5.6")
    assert verdict, str(verdict)


def test_items_come_last_and_in_order() -> None:
    r = bodies_responses
    verdict = conformance.check_body(r.body(r.call(), r.result("x"), tools=[{}]), "openai-responses")
    assert [violation.path for violation in verdict] == ["tools[0]", "input[1]", "input[2]"]


def test_reference_may_stand_for_a_call_or_an_output() -> None:
    r = bodies_responses
    named: dict[str, object] = {"type": "item_reference", "id": "fc_1"}
    for body in (r.body(named, r.result()), r.body(r.call(), named)):
        assert not conformance.check_body(body, "openai-responses").violations


@pytest.mark.parametrize("model", ["gpt-4.1", "grok-4"])
def test_ids_without_reasoning_are_no_risk_where_nothing_reasons_so(model: str) -> None:
    r = bodies_responses
    body = r.body(r.call(id="fc_1"), r.result(), {**r.SAYS, "id": "msg_1"})
    assert not conformance.check_body(body, "openai-responses", model=model).violations


def test_model_argument_wins_over_the_body() -> None:
    body = bodies_anthropic.body(bodies_anthropic.A, model="claude-haiku-4-5")
    assert conformance.check_body(body, "anthropic")
    assert conformance.check_body(body, "anthropic").model == "claude-haiku-4-5"
    assert not conformance.check_body(body, "anthropic", model="claude-sonnet-5")


def test_unknown_model_is_named_as_such() -> None:
    (violation,) = conformance.check_body(bodies_anthropic.body(bodies_anthropic.A), "anthropic")
    assert "no model given, checked as the newest" in violation.message


def test_verdict_reads_well() -> None:
    a = bodies_anthropic
    verdict = conformance.check_body(
        a.body(a.assistant(a.call()), a.user(a.TEXT)), "anthropic", model="claude-opus-4-6"
    )
    assert not verdict
    assert len(verdict) == 1
    assert list(verdict) == list(verdict.violations)
    assert repr(verdict) == "<Verdict anthropic: rejected (ANT-04)>"
    assert str(verdict).splitlines() == [
        "anthropic (claude-opus-4-6): rejected, 1 violation",
        "  ANT-04 reject at messages[1].content[0]: the next message has no tool_result for the call 'toolu_1'",
    ]
    assert json.loads(json.dumps(verdict.to_dict())) == {
        "api": "anthropic",
        "model": "claude-opus-4-6",
        "accepted": False,
        "violations": [
            {
                "rule": "ANT-04",
                "path": "messages[1].content[0]",
                "message": "the next message has no tool_result for the call 'toolu_1'",
                "severity": "reject",
            }
        ],
    }


def test_risk_alone_is_accepted() -> None:
    verdict = conformance.check_body({"messages": [{"role": "system", "content": "s"}]}, "anthropic")
    assert verdict
    assert len(verdict) == 1


def test_violations_stand_in_the_order_of_the_body() -> None:
    a = bodies_anthropic
    body = a.body(a.user(), a.assistant(a.call("x y"), a.TEXT), a.user(a.result("z")), system=" ")
    places = [violation.path.split(".")[0] for violation in conformance.check_body(body, "anthropic")]
    assert list(dict.fromkeys(places)) == ["system", "messages[1]", "messages[2]", "messages[3]"]


# Values that stand where another type is expected, under the keys and words that the checks look at.
_WORDS = [
    *("", " ", "text", "tool_use", "tool_result", "function", "custom", "toolu_1", "a b", "enabled", "any", "object"),
    *("user", "assistant", "tool", "system", "developer", "kimi-k3", "claude-haiku-4-5", "gpt-5.6", *sorted(KEYS)),
    *(
        "mistral-large-2411",
        "devstral-2512",
        "deepseek-v4-pro",
        "deepseek-r1",
        "gemini-3",
        "required",
        "null",
        "abcdefgh1",
    ),
    *(bodies_bedrock.CLAUDE, bodies_bedrock.MISTRAL, bodies_bedrock.PALMYRA, bodies_bedrock.LLAMA, "server_tool_use"),
    *(
        "input_text",
        "input_image",
        "output_text",
        "namespace",
        "fc_1",
        "rs_1",
        "mcp_1",
        "completed",
        *sorted(item_specs()),
    ),
]
_NAMES = [
    *("role", "content", "tool_calls", "tool_call_id", "id", "type", "function", "custom", "name", "arguments"),
    *("input", "text", "tool_use_id", "is_error", "thinking", "signature", "data", "input_schema", "description"),
    *("encrypted_content", "reasoning_content", "tool", "refusal", "source", "prefix", "parameters", "properties"),
    *("items", "anyOf", "required", "pattern", "patternProperties", "dependencies", "enum", "minLength", "not"),
    *("reasoning_details", "index", "enable_thinking", "effort"),
    *("call_id", "output", "summary", "status", "namespace", "tools", "parameters", "approval_request_id", "action"),
    *("toolUse", "toolResult", "toolUseId", "reasoningContent", "reasoningText", "redactedContent", "document"),
    *("defer_loading", "outcome", "image_url", "async", "store", "operation"),
]
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(_WORDS),
    st.just("\ud800"),
)
_KEYS = st.one_of(st.sampled_from(_NAMES), st.text(max_size=2))
_ANY = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=6)),
    max_leaves=12,
)
_BLOCK = st.dictionaries(_KEYS, _ANY, max_size=4).flatmap(
    lambda rest: st.sampled_from(_WORDS).map(lambda block_type: {**rest, "type": block_type})
)
_UNION = st.dictionaries(_KEYS, st.one_of(_ANY, st.dictionaries(_KEYS, _ANY, max_size=4)), min_size=1, max_size=1)
_CONTENT = st.one_of(
    st.none(), st.sampled_from(["", " ", "q"]), st.lists(_BLOCK, max_size=4), st.lists(_UNION, max_size=4)
)
_MESSAGE = st.builds(
    lambda role, content, rest: {**rest, "role": role, "content": content},
    st.sampled_from(["user", "assistant", "tool", "system", "developer", "function", "x"]),
    _CONTENT,
    st.dictionaries(
        st.sampled_from(
            ["tool_calls", "tool_call_id", "name", "is_error", "reasoning_content", "prefix", "reasoning_details"]
        ),
        _ANY,
        max_size=3,
    ),
)
_ITEM = st.builds(
    lambda item, call_id, rest: {**rest, "type": item, **call_id},
    st.sampled_from(sorted(item_specs())),
    st.sampled_from([{}, {"call_id": "a"}, {"call_id": "b"}, {"id": "a"}, {"id": "fc_1"}]),
    st.dictionaries(_KEYS, _ANY, max_size=4),
)
_TOP = st.sampled_from(
    [
        *("model", "system", "tools", "tool_choice", "thinking", "reasoning_effort", "store", "previous_response_id"),
        *("reasoning", "chat_template_kwargs"),
        *("modelId", "toolConfig", "additionalModelRequestFields", "inferenceConfig", "agent_reference", "metadata"),
    ]
)
_BODY = st.builds(
    lambda messages, items, rest: {**rest, "messages": messages, "input": items},
    st.lists(_MESSAGE, max_size=6),
    st.lists(st.one_of(_MESSAGE, _ITEM, _ANY), max_size=6),
    st.dictionaries(_TOP, _ANY, max_size=4),
)


# Every book: those of the APIs and those of the servers.
RULE_SETS = [(api, None) for api in APIS] + [
    (conformance.profile_api(profile), profile) for profile in conformance.profile_names()
]


@examples(5)
@given(value=st.one_of(_ANY, _BODY), book=st.sampled_from(RULE_SETS))
def test_any_value_gives_a_verdict_or_an_input_error(value: Any, book: tuple[str, str | None]) -> None:
    api, profile = book
    before = copy.deepcopy(value)
    with contextlib.suppress(InputError):
        verdict = conformance.check_body(value, api, profile=profile)
        assert str(verdict).startswith(api)
        assert repr(verdict)
        assert verdict.to_dict()["accepted"] is bool(verdict)
    assert repr(value) == repr(before)


@examples(5)
@given(body=st.dictionaries(st.one_of(_KEYS, _TOP), _ANY, max_size=6))
def test_any_object_gets_a_responses_verdict(body: dict[str, object]) -> None:
    assert not conformance.check_body(body, "openai-responses") or {"input", "previous_response_id"} & body.keys()


@examples(5)
@given(body=_BODY, book=st.sampled_from(RULE_SETS))
def test_well_formed_messages_always_get_a_verdict(body: dict[str, object], book: tuple[str, str | None]) -> None:
    api, profile = book
    first = conformance.check_body(body, api, profile=profile)
    assert first == conformance.check_body(copy.deepcopy(body), api, profile=profile)


def _long(api: str, messages: int, *, broken: bool) -> dict[str, object]:
    a, b, c, g, r = bodies_anthropic, bodies_bedrock, bodies_chat, bodies_gemini, bodies_responses
    history: list[Any] = []
    for number in range(messages // 2):
        called, answered = f"call_{number}", f"call_{number + 1 if broken else number}"
        if api == "anthropic":
            history += [a.assistant(a.TEXT, a.call(called)), a.user(a.result(answered), a.TEXT)]
        elif api == "bedrock":
            history += [b.assistant(b.TEXT, b.call(called)), b.user(b.result(answered), b.TEXT)]
        elif api in ("openai-responses", "azure-foundry"):
            thought = {**r.THINKS, "id": "rs_1" if broken else f"rs_{number}"}
            history += [r.USER, thought, r.call(called, id=f"fc_{answered}"), r.result(answered)]
        elif api == "gemini":
            history += [g.model(g.TEXT, g.call("" if broken else g.SKIP, id=called)), g.user(g.response(id=answered))]
        else:
            history += [c.assistant_calls(c.call(called)), c.result(answered)]
    if api == "bedrock":
        return {"modelId": b.CLAUDE, **b.body(*history)}
    if api in ("openai-responses", "azure-foundry"):
        return {"input": history, "tools": [r.TOOL, r.SPACE]}
    if api == "gemini":
        return g.body(*history)
    return {"messages": history, "tools": [a.TOOL] if api == "anthropic" else [c.tool()]}


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize(("api", "profile"), RULE_SETS)
def test_work_grows_with_the_length_and_no_faster(api: str, profile: str | None, broken: bool) -> None:
    bodies = [_long(api, count, broken=broken) for count in (100, 400)]
    short, long = (count_work(lambda body=body: conformance.check_body(body, api, profile=profile)) for body in bodies)
    assert long < 4.2 * short


def test_nesting_of_a_schema_is_no_limit() -> None:
    schema: dict[str, object] = {"type": "text"}
    for _ in range(20_000):
        schema = {"items": schema}
    body = bodies_chat.body(tools=[bodies_chat.tool(parameters=schema)])
    (violation,) = conformance.check_body(body, "mistral")
    assert violation.rule == "MIS-13"
    assert violation.message.endswith("a type of JSON Schema or a list of different ones is expected")


def test_imports_models_errors_and_specs_alone() -> None:
    allowed = ("segue.conformance", "segue.errors", "segue.models", "segue.specs")
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file.name}: relative import"
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                assert not name.startswith("segue") or name.startswith(allowed), f"{file.name} imports {name}"

"""Our Mistral checker and the vendor's own request validators, on the same conversations.

Where they differ there is a name for it: `STRICTER` holds the rules by which the hosted API refuses what a validator
takes. The other way round there is no exception: what a validator refuses, the judge refuses.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from segue import conformance
from segue.conformance.json_schema import find_draft7_error, find_pattern_error
from tests.budget import examples
from tests.conformance.bodies_mistral import CASES, V3, V7, V11, V13

vendor = pytest.importorskip("tests.conformance.vendor_mistral", reason="mistral-common is not installed")

MODELS = {"v3": V3, "v7": V7, "v11": V11, "v13": V13}
SLOW_WITH_FIXTURE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
OLDER = Path(__file__).parents[2] / ".venv-mistral" / "bin" / "python"

# Rule → versions whose validator takes what it forbids, and why the judge forbids it all the same.
STRICTER: dict[str, tuple[set[str], str]] = {
    "MIS-01": ({"v3", "v7", "v11", "v13"}, "v13 takes any id, the API wants nine; `$` lets a line break pass"),
    "MIS-07": ({"v3", "v7", "v11", "v13"}, "validators since 1.11.1 take a user after a result, the API does not"),
    "MIS-11": ({"v7", "v11", "v13"}, "since v7 validators take an empty assistant message, the API does not"),
    "MIS-13": ({"v3", "v7", "v11", "v13"}, "validators take tools=[], the API answers with 422"),
}
# 1.11.0 itself: a user after a result is refused; only v13 compares ids, and every version wants nine characters.
STRICTER_THAN_1_11: dict[str, tuple[set[str], str]] = {
    "MIS-01": ({"v3", "v7", "v11", "v13"}, "`$` lets a line break pass"),
    "MIS-04": ({"v11"}, "ids are compared since v13 there, later since v11"),
    "MIS-05": ({"v11"}, "ids are compared since v13 there, later since v11"),
    "MIS-06": ({"v11"}, "ids are compared since v13 there, later since v11"),
    "MIS-11": STRICTER["MIS-11"],
    "MIS-13": STRICTER["MIS-13"],
    "MIS-14": ({"v3", "v7", "v11", "v13"}, "types of chunks are looked at by later versions only"),
}

_IDS = ["abcdefgh1", "abcdefgh2", "abcdefgh3"]
_ANY_ID = st.sampled_from([*_IDS, "abcdefgh1\n", "call_1", "null", "", None])
_NAMES = st.sampled_from(["f", "f", "f", "a.b", "n" * 65])
_TEXT = {"type": "text", "text": "t"}
_CHUNKS = st.sampled_from(
    [
        _TEXT,
        {"type": "thinking", "thinking": [_TEXT]},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
)
_CONTENT = st.one_of(st.sampled_from(["t", "t", "", "t"]), st.lists(_CHUNKS, max_size=2))


def _call(call_id: str | None, name: str = "f", arguments: object = "{}") -> dict[str, Any]:
    made: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else {"id": call_id, **made}


_CALLS = st.lists(st.builds(_call, _ANY_ID, _NAMES, st.sampled_from(["{}", "", {"a": 1}, "{"])), min_size=1, max_size=2)
_MESSAGE = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, _CONTENT),
    st.builds(lambda content: {"role": "system", "content": content}, _CONTENT),
    st.builds(
        lambda content, more: {"role": "assistant", "content": content, **more},
        st.one_of(st.none(), _CONTENT),
        st.fixed_dictionaries({}, optional={"tool_calls": st.one_of(st.none(), _CALLS), "prefix": st.booleans()}),
    ),
    st.builds(
        lambda call_id, content, more: {"role": "tool", "tool_call_id": call_id, "content": content, **more},
        _ANY_ID,
        _CONTENT,
        st.fixed_dictionaries({}, optional={"name": st.one_of(st.none(), _NAMES)}),
    ),
)


@st.composite
def _valid_conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation that every version takes."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}] * draw(st.integers(0, 1))
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": "q"})
        for _ in range(draw(st.integers(0, 2))):
            ids = draw(st.lists(st.sampled_from(_IDS), min_size=1, max_size=3, unique=True))
            messages.append({"role": "assistant", "tool_calls": [_call(found) for found in ids]})
            messages += [
                {"role": "tool", "tool_call_id": found, "content": "r"} for found in draw(st.permutations(ids))
            ]
        messages.append({"role": "assistant", "content": "a"})
    end = draw(st.sampled_from(["user", "prefix", "calls"]))
    if end == "prefix":
        messages[-1] = {**messages[-1], "prefix": True}
    elif end == "user":
        messages.append({"role": "user", "content": "q"})
    elif messages[-2]["role"] == "tool":
        messages.pop()
    else:
        messages.append({"role": "user", "content": "q"})
    return messages


@st.composite
def _bodies(draw: st.DrawFn) -> dict[str, Any]:
    """A damaged valid conversation, or messages in any order."""
    messages = draw(st.one_of(_valid_conversations(), _valid_conversations(), st.lists(_MESSAGE, max_size=5)))
    for _ in range(draw(st.integers(0, 3)) if messages else 0):
        at = draw(st.integers(0, len(messages) - 1))
        done = draw(st.sampled_from(["drop", "double", "swap", "insert", "replace", "result", "both"]))
        if done == "drop" and len(messages) > 1:
            messages = messages[:at] + messages[at + 1 :]
        elif done == "double":
            messages = [*messages[: at + 1], *messages[at:]]
        elif done == "swap" and at:
            messages = [*messages[: at - 1], messages[at], messages[at - 1], *messages[at + 1 :]]
        elif done == "insert":
            messages = [*messages[:at], draw(_MESSAGE), *messages[at:]]
        elif done == "replace":
            messages = [*messages[:at], draw(_MESSAGE), *messages[at + 1 :]]
        elif done == "both":
            was, now = draw(st.sampled_from(_IDS)), draw(_ANY_ID)
            messages = json.loads(json.dumps(messages).replace(json.dumps(was), json.dumps(now or "")))
        elif messages[at]["role"] == "tool":
            messages = [*messages[:at], {**messages[at], "tool_call_id": draw(_ANY_ID)}, *messages[at + 1 :]]
    tools = st.sampled_from([None, [], [{"type": "function", "function": {"name": "a b", "parameters": {}}}]])
    return {"messages": messages, **draw(st.fixed_dictionaries({}, optional={"tools": tools}))}


def _compare(
    body: dict[str, Any],
    version: str,
    refusal: Callable[[dict[str, Any], str], str | None],
    stricter: dict[str, tuple[set[str], str]],
) -> None:
    verdict = conformance.check_body(body, "mistral", model=MODELS[version])
    refused = refusal(body, version)
    if refused is not None:
        assert not verdict, f"{version} refuses: {refused}"
        return
    rejecting = {violation.rule for violation in verdict if violation.severity == "reject"}
    unexplained = {rule for rule in rejecting if rule not in stricter or version not in stricter[rule][0]}
    assert not unexplained, f"{version} accepts\n{verdict}"


@pytest.mark.parametrize("version", MODELS)
@settings(examples(15, items=len(MODELS)), suppress_health_check=[HealthCheck.too_slow])
@given(body=_bodies())
def test_newest_validators_agree(version: str, body: dict[str, Any]) -> None:
    _compare(body, version, vendor.refusal, STRICTER)


@pytest.fixture
def older() -> Iterator[Callable[[dict[str, Any], str], str | None]]:
    """The validators of mistral-common 1.11.0 in a process of their own."""
    if not OLDER.exists():
        pytest.skip(f"{OLDER.parent.parent.name} is not there; `make setup` makes it")
    script = Path(__file__).parent / "vendor_mistral.py"
    pipe = subprocess.PIPE
    with subprocess.Popen([OLDER, "-W", "ignore", script], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, answers = process.stdin, process.stdout

        def refusal(body: dict[str, Any], version: str) -> str | None:
            asks.write(json.dumps({"body": body, "version": version}) + "\n")
            asks.flush()
            return json.loads(answers.readline())

        yield refusal
        asks.close()


@pytest.mark.parametrize("version", MODELS)
@settings(
    examples(15, items=len(MODELS)), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(body=_bodies())
def test_older_validators_agree(
    version: str, body: dict[str, Any], older: Callable[[dict[str, Any], str], str | None]
) -> None:
    _compare(body, version, older, STRICTER_THAN_1_11)


def test_user_after_tool_is_where_the_two_differ(older: Callable[[dict[str, Any], str], str | None]) -> None:
    (body,) = [case.violating for case in CASES if case.rule == "MIS-07" and case.model is None]
    for version in MODELS:
        assert vendor.refusal(body, version) is None
        assert "Unexpected role 'user' after role 'tool'" in str(older(body, version))


def test_exceptions_are_needed_and_documented() -> None:
    """Each exception has a body of the table that shows it."""
    for rule, (versions, why) in STRICTER.items():
        assert why
        for version in versions:
            shown = [case.violating for case in CASES if case.rule == rule]
            assert any(vendor.refusal(body, version) is None for body in shown), (rule, version)


_KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "items", "required", "enum", "anyOf", "not", "additionalProperties", "pattern"),
        *("patternProperties", "dependencies", "minLength", "maximum", "multipleOf", "uniqueItems", "title", "x"),
        *("definitions", "const", "default", "format", "if", "examples", "$ref", "readOnly"),
    ]
)
_VALUES = st.sampled_from(
    [
        *(True, False, None, 0, 1, -1, 1.0, 0.5, "object", "string", "text", "[", "a+", "", {}),
        *([], ["a"], ["a", "a"], ["string", "null"], [{}], [1], {"a": True}, {"a": ["b"]}, {"[": {}}),
    ]
)
_SCHEMAS = st.recursive(
    st.dictionaries(_KEYWORDS, _VALUES, max_size=3),
    lambda inner: st.dictionaries(
        _KEYWORDS,
        st.one_of(_VALUES, inner, st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab["), inner)),
    ),
    max_leaves=5,
)


@examples(10)
@example(schema={"type": []})
@example(schema={"items": [], "required": ["a", 1]})
@given(schema=_SCHEMAS)
def test_schemas_of_draft_7_are_those_of_its_own_meta_schema(schema: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    try:
        jsonschema.Draft7Validator.check_schema(schema)
        fault = None
    except jsonschema.SchemaError as wrong:
        fault = wrong.message
    ours = find_draft7_error(schema) or find_pattern_error(schema)
    assert (ours is None) == (fault is None), (ours, fault)

"""Mistral's own validator on what we render, for each generation of tokenizers.

It is the newest mistral-common, which takes a user's words behind a result; the API and 1.11 do not (MIS-07), so that
is looked at here as well.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion

import segue
from segue.models import parse_model
from tests.bodies.chat import assistant, call, compatible_calls, result, system, user
from tests.budget import examples
from tests.conversations.table import CASES
from tests.each import for_each
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios

Body = dict[str, Any]

MODELS = {
    3: "open-mixtral-8x22b",
    7: "mistral-small-2501",
    11: "mistral-small-2506",
    13: "magistral-medium-2509",
    15: "mistral-small-2603",
}
FIELDS = set(ChatCompletionRequest.model_fields) - {"messages"}
EVERY_GENERATION = pytest.mark.parametrize("generation", MODELS)
IN_EVERY_GENERATION = for_each("generation", MODELS)


def _part(part: Body) -> Body:
    """A part as the package has it: thinking as text, and no documents, which only the API accepts."""
    match part["type"]:
        case "thinking":
            inner = part["thinking"]
            content = inner if isinstance(inner, str) else "".join(one["text"] for one in inner)
            return {"type": "thinking", "thinking": content}
        case "document_url" | "file" | "reference":
            return {"type": "text", "text": part["type"]}
        case _:
            return part


def _message(message: Body) -> Body:
    """A message as the package has it: the API also accepts the index and signature of its own replies."""
    content = message.get("content")
    if isinstance(content, list):
        message = {**message, "content": [_part(part) for part in content]}
    calls = message.get("tool_calls") or []
    unnumbered = [{key: value for key, value in call.items() if key != "index"} for call in calls]
    return {**message, "tool_calls": unnumbered} if unnumbered else message


def complaints(body: Body, generation: int) -> str | None:
    """The errors of this tokenizer's validator in serving mode; the strict types reject every unknown key."""
    known = {key: value for key, value in body.items() if key in FIELDS}
    if (known.get("temperature") or 0) <= 1.5:
        # MIS-17: the service takes more than the package.
        known["temperature"] = min(known.get("temperature") or 0, 1)
    validator = get_validator(TokenizerVersion(f"v{generation}"), ValidationMode.serving)
    try:
        request = ChatCompletionRequest.model_validate(
            {"model": "m", **known, "messages": [_message(message) for message in body["messages"]]}
        )
        validator.validate_request(request)
    except Exception as error:  # noqa: BLE001 - its own exceptions, pydantic's and plain ones
        return f"{type(error).__name__}: {error}"
    roles = [message["role"] for message in body["messages"]]
    bare = [place for place, pair in enumerate(pairwise(roles)) if pair == ("tool", "user")]
    return f"a user's words behind a result at {bare}" if bare else None


def test_models_cover_the_tokenizers() -> None:
    assert {parse_model(name).tokenizer_version for name in MODELS.values()} == set(MODELS)


@IN_EVERY_GENERATION
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_conversation_is_accepted(case: Any, generation: int) -> None:
    out = segue.convert(case.body, source=case.source, target="mistral", model=MODELS[generation])
    assert complaints(out.body, generation) is None, out.body
    again = segue.convert(out.body, source="mistral", target="mistral")
    assert again.data == out.data


@EVERY_GENERATION
@examples(2, items=len(MODELS))
@given(scenario=scenarios(), source=st.sampled_from(["openai-chat", "anthropic", "kimi", "mistral"]))
def test_scenario_is_accepted(generation: int, scenario: Any, source: str) -> None:
    out = segue.convert(build_body(scenario, source), source=source, target="mistral", model=MODELS[generation])
    assert complaints(out.body, generation) is None, out.body


A, B = "abcdefgh1", "abcdefgh2"
USER, SYSTEM, SAYS = user(), system(), assistant()
ASKS, FOUND = compatible_calls(call(A)), result(A)
# Rule, the tokenizers that hold to it, and a history that breaks it.
BROKEN: list[tuple[str, set[int], list[Body]]] = [
    ("MIS-01", {3, 7, 11}, [USER, {**ASKS, "tool_calls": [call("call_1")]}, {**FOUND, "tool_call_id": "call_1"}]),
    ("MIS-02", {3, 7, 11, 13, 15}, [USER, {**ASKS, "tool_calls": [call("null")]}, {**FOUND, "tool_call_id": "null"}]),
    ("MIS-03", {3, 7, 11, 13, 15}, [USER, {**ASKS, "tool_calls": [call(A), call(B)]}, FOUND]),
    ("MIS-04", {11, 13, 15}, [USER, ASKS, {**FOUND, "tool_call_id": B}]),
    ("MIS-05", {3, 7, 11, 13, 15}, [USER, ASKS, FOUND, FOUND]),
    ("MIS-06", {11, 13, 15}, [USER, {**ASKS, "tool_calls": [call(A), call(A)]}, FOUND, FOUND]),
    ("MIS-07", {3, 7, 11, 13, 15}, [USER, ASKS, FOUND, USER]),
    ("MIS-08", {3, 7, 11, 13, 15}, [USER, FOUND]),
    ("MIS-09", {3, 7, 11, 13, 15}, [USER, ASKS, FOUND, SYSTEM, USER]),
    ("MIS-09", {3, 7, 11, 13, 15}, [USER, SAYS, SYSTEM, USER]),
    ("MIS-10", {3, 7, 11, 13, 15}, [USER, SAYS]),
    ("MIS-11", {3}, [USER, {**ASKS, "content": "t"}, FOUND]),
    ("MIS-11", {3}, [USER, {"role": "assistant", "content": ""}, USER]),
    ("MIS-12", {3, 7, 11, 13, 15}, [USER, ASKS, {**FOUND, "name": "a.b"}]),
    ("MIS-13", {3, 7, 11, 13, 15}, [{**USER, "name": "bob"}]),
    ("MIS-14", {3, 7, 11, 13, 15}, [USER, {**SAYS, "prefix": True}, USER]),
    ("MIS-14", {3, 7}, [USER, {**SAYS, "content": [{"type": "thinking", "thinking": "hm"}]}, USER]),
    ("MIS-15", {3, 7, 11, 13, 15}, [SAYS]),
    ("the first message is not counted", {3, 7, 11, 13, 15}, [ASKS, FOUND]),
]


@IN_EVERY_GENERATION
@pytest.mark.parametrize(("rule", "holds", "messages"), BROKEN, ids=[f"{row[0]}-{at}" for at, row in enumerate(BROKEN)])
def test_rejected_body_is_repaired_for_same_api(
    rule: str, holds: set[int], messages: list[Body], generation: int
) -> None:
    body = {"model": MODELS[generation], "messages": messages}
    assert (complaints(body, generation) is not None) is (generation in holds), rule
    out = segue.convert(body, source="mistral", target="mistral")
    assert complaints(out.body, generation) is None
    assert segue.convert(out.body, source="mistral", target="mistral").data == out.data

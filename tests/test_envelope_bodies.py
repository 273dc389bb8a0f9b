"""Bodies with envelopes that no gateway opens: no target gets one, whatever the API, and the session goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from benchmarks._transcripts import RENDERERS, Call, Turn
from segue.bridge.envelopes import EndpointBinding, EnvelopeKeys, seal
from segue.canonical.blocks import Origin, Thinking
from segue.conformance.values import is_envelope
from segue.conversion import sessions
from segue.wire.registry import WIRES
from tests.bodies import Body
from tests.bodies import anthropic as a
from tests.bodies import bedrock as b
from tests.bodies import gemini as g
from tests.bodies import responses as r
from tests.properties.whole import convert_whole

ORIGIN = Origin("kimi", "kimi-k2-thinking", identity="absent")
BINDING = EndpointBinding("kimi", "https://api.example/v1", "", "kimi-k2-thinking")
SEALED = seal([(0, Thinking("It depends.", origin=ORIGIN))], BINDING, EnvelopeKeys(b"a" * 32), 0) or ""
FINDING = "reasoning in an envelope of segue dropped: only the gateway or transport that sealed it can open it"
SIGNED = "c2lnbmVk"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
GEMINI = "gemini-3-pro-preview"
POLICIES = ("native", "text", "none")


def anthropic_body(*blocks: Body) -> Body:
    messages = a.user(a.text()), a.assistant(*blocks, a.call()), a.user(a.result())
    thinking = {"type": "enabled", "budget_tokens": 2048}
    return a.body(*messages, tools=[a.tool()], max_tokens=4096, thinking=thinking)


def bedrock_body(model: str, reasoning: Body) -> Body:
    messages = [b.user("q"), b.assistant({"reasoningContent": reasoning}, b.call()), b.user(b.result())]
    return {"modelId": model, "messages": messages, "toolConfig": {"tools": [b.tool()]}}


def responses_body(*, store: bool = True, **fields: Any) -> Body:
    items = r.user(), r.reasoning(encrypted_content=SEALED, **fields), r.call(id="fc_1"), r.result()
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    return r.body(*items, model="gpt-5", store=store, tools=[tool])


def gemini_body(*parts: Body) -> Body:
    declared = [{"functionDeclarations": [{"name": "f"}]}]
    return {"contents": [g.user("q"), g.model(*parts), g.user(g.response())], "tools": declared}


BODIES: dict[str, tuple[str, str | None, Body]] = {
    "thinking": ("anthropic", None, anthropic_body({"type": "thinking", "thinking": "hm", "signature": SEALED})),
    "thinking without text": (
        "anthropic",
        None,
        anthropic_body({"type": "thinking", "thinking": "", "signature": SEALED}),
    ),
    "redacted thinking": ("anthropic", None, anthropic_body({"type": "redacted_thinking", "data": SEALED})),
    "thinking beside signed thinking": (
        "anthropic",
        None,
        anthropic_body(
            {"type": "thinking", "thinking": "hm", "signature": SIGNED}, {"type": "redacted_thinking", "data": SEALED}
        ),
    ),
    "cut off": ("anthropic", None, anthropic_body({"type": "redacted_thinking", "data": SEALED[:-7]})),
    "reasoning text": ("bedrock", None, bedrock_body(CLAUDE, {"reasoningText": {"text": "hm", "signature": SEALED}})),
    "redacted content": ("bedrock", None, bedrock_body(CLAUDE, {"redactedContent": SEALED})),
    "reasoning text, profile": (
        "bedrock",
        None,
        bedrock_body("my-profile", {"reasoningText": {"text": "hm", "signature": SEALED}}),
    ),
    "redacted content, Nova": ("bedrock", None, bedrock_body("amazon.nova-2-lite-v1:0", {"redactedContent": SEALED})),
    "reasoning item": ("openai-responses", None, responses_body()),
    "reasoning item with summary": (
        "openai-responses",
        None,
        responses_body(summary=[{"type": "summary_text", "text": "hm"}]),
    ),
    "reasoning item, not stored": ("openai-responses", None, responses_body(store=False)),
    "call": ("gemini", GEMINI, gemini_body(g.call(signature=SEALED))),
    "call, no model": ("gemini", None, gemini_body(g.call(signature=SEALED))),
    "second call": ("gemini", GEMINI, gemini_body(g.call(signature=SIGNED), g.call(signature=SEALED))),
    "text": ("gemini", GEMINI, gemini_body({"text": "t", "thoughtSignature": SEALED}, g.call(signature=SIGNED))),
    "thought": ("gemini", GEMINI, gemini_body({"text": "t", "thought": True, "thoughtSignature": SEALED}, g.call())),
    "part of its own": (
        "gemini",
        GEMINI,
        gemini_body(g.call(signature=SIGNED), {"text": "", "thoughtSignature": SEALED}),
    ),
    "older model": ("gemini", "gemini-2.5-flash", gemini_body(g.call(signature=SEALED))),
}
ROWS = [pytest.param(*row, id=name) for name, row in BODIES.items()]


def findings(report: segue.Report) -> list[str]:
    return [finding.message for finding in report.findings]


def assert_sendable(body: Body, api: str, model: str | None) -> None:
    assert "segueSealed" not in json.dumps(body)
    verdict = segue.check(body, api, model=model)
    assert verdict, str(verdict)


def test_the_checker_has_the_same_prefix() -> None:
    """It imports nothing of the code that it checks."""
    assert is_envelope(SEALED)
    assert not is_envelope(SIGNED)


@pytest.mark.parametrize(("api", "model", "body"), ROWS)
def test_check_names_the_envelope(api: str, model: str | None, body: Body) -> None:
    violations = [v for v in segue.check(body, api, model=model) if "envelope of segue" in v.message]
    assert len(violations) == 1
    is_certain = body.get("modelId") in (None, CLAUDE)
    assert violations[0].severity == ("reject" if is_certain else "risk")


@pytest.mark.parametrize(("api", "model", "body"), ROWS)
def test_repair_drops_it(api: str, model: str | None, body: Body) -> None:
    repaired = segue.repair(body, api, model=model)
    assert_sendable(repaired.body, api, model)
    assert FINDING in findings(repaired.report)
    again = segue.repair(repaired.body, api, model=model)
    assert again.body == repaired.body


@pytest.mark.parametrize("reasoning", POLICIES)
@pytest.mark.parametrize(("api", "model", "body"), ROWS)
def test_no_target_gets_it(api: str, model: str | None, body: Body, reasoning: Any) -> None:
    for target in WIRES:
        target_model = model if target == api else None
        converted = segue.convert(body, source=api, target=target, model=target_model, reasoning=reasoning)
        assert_sendable(converted.body, target, target_model)
        sent = FINDING in findings(converted.report), "reasoning rendered as text" in findings(converted.report)
        assert True in sent
        assert not sent[1] or reasoning == "text"


def test_other_content_stays() -> None:
    """What a client sends beside it is sent; Gemini gets the signature that it accepts for calls of others (GEM-17)."""
    converted = segue.convert(gemini_body(g.call(signature=SEALED)), source="gemini", target="gemini", model=GEMINI)
    expected = gemini_body(g.call(signature="skip_thought_signature_validator"))
    assert converted.body == expected
    body = gemini_body({"text": "t", "thoughtSignature": SEALED}, g.call(signature=SIGNED))
    converted = segue.convert(body, source="gemini", target="gemini", model=GEMINI)
    assert converted.body == gemini_body({"text": "t"}, g.call(signature=SIGNED))
    converted = segue.convert(responses_body(), source="openai-responses", target="openai-responses")
    # OAI-RESP-08: without the reasoning, the call has no item id.
    assert converted.body["input"] == [r.user(), r.call(), r.result()]
    converted = segue.convert(anthropic_body({"type": "redacted_thinking", "data": SEALED}), target="anthropic")
    # ANT-24
    assert converted.body == {**anthropic_body(), "thinking": {"type": "disabled"}}


def test_a_signature_in_a_user_part() -> None:
    body = {"contents": [g.user({"text": "q", "thoughtSignature": SEALED})]}
    converted = segue.convert(body, source="gemini", target="gemini")
    assert converted.body == {"contents": [g.user("q")]}
    assert findings(converted.report) == ["thought signature dropped: it is an envelope of segue"]


def test_thinking_of_a_server_that_checks_no_signatures() -> None:
    """DS-03: DeepSeek's server of the Messages API; a chunk of Mistral may be signed too."""
    body = {**BODIES["thinking"][2], "model": "deepseek-chat"}
    converted = segue.convert(body, source="anthropic", target="anthropic")
    assert converted.body["messages"][1] == a.assistant(
        {"type": "thinking", "thinking": ".", "signature": ""}, a.call()
    )
    assert FINDING in findings(converted.report)
    chunk = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": SEALED}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [chunk]},
        {"role": "user", "content": "r"},
    ]
    converted = segue.convert(
        {"model": "magistral-medium-latest", "messages": messages}, source="mistral", target="mistral"
    )
    assert "segueSealed" not in json.dumps(converted.body)
    assert FINDING in findings(converted.report)


# --------------------------------------------------------------------------------------------------- a remembered body

SOURCES = ("anthropic", "bedrock", "gemini", "mistral", "openai-responses")


def long_body(source: str, rounds: int = 12, *, sealed_round: int | None = None) -> Body:
    """A regular conversation; in one round the signature or encrypted content is an envelope."""
    turns = [Turn(user_text="Look it up.")]
    for number in range(1, rounds + 1):
        call = Call(number, "grep", {"path": f"a{number}"}, f"found {number}")
        turns.append(Turn(text="I look.", reasoning="Two files.", calls=(call,)))
    body = RENDERERS[source]([*turns, Turn(user_text="Go on.")])
    signed = [item for item in _objects_in(body) if not _SIGNATURE_KEYS.isdisjoint(item) or _is_chunk(item)]
    assert len(signed) == rounds
    if sealed_round is not None:
        item = signed[sealed_round]
        item[next((key for key in item if key in _SIGNATURE_KEYS), "signature")] = SEALED
    return body


_SIGNATURE_KEYS = {"signature", "thoughtSignature", "encrypted_content"}


def _is_chunk(item: Body) -> bool:
    return item.get("type") == "thinking" and isinstance(item["thinking"], list)


def _objects_in(value: Any) -> list[Body]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(item for child in children for item in _objects_in(child))]


@pytest.mark.parametrize("source", SOURCES)
def test_a_conversation_that_is_remembered(source: str) -> None:
    """A longer body of the same conversation has an envelope in its newest reply, then in an earlier one."""
    for target in (source, "openai-chat"):
        bodies = [long_body(source, rounds, sealed_round=rounds - 1 if rounds == 4 else None) for rounds in (2, 3, 4)]
        bodies += [long_body(source, rounds, sealed_round=3) for rounds in (5, 6)]
        sessions.clear()
        given = [json.dumps(body).encode() for body in bodies]
        remembered = [segue.convert(data, source=source, target=target) for data in given]
        expected = [convert_whole(data, source=source, target=target) for data in given]
        assert [result.data for result in remembered] == [result.data for result in expected]
        assert [result.report.to_dict() for result in remembered] == [result.report.to_dict() for result in expected]
        assert not any(b"segueSealed" in result.data for result in remembered)
        assert [FINDING in findings(result.report) for result in remembered] == [False, False, True, True, True]

"""Ids of tool calls, prefixes and a switch of provider, for Chat, Anthropic and Kimi.

000 canonical ids · 001 a call always has an id · 002 prefix functions · 003 integrity across a switch · 004 Kimi.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

import segue
from segue.canonical.ids import (
    canonical_tool_id,
    normalize_to_anthropic_tool_id,
    normalize_to_history_tool_id,
    normalize_to_openai_tool_id,
)
from segue.models import parse_model
from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import user
from tests.conversations.build import anthropic, call, calls, chat, function, kimi, result, tool, use
from tests.conversations.replies import anthropic_reply, chat_reply
from tests.conversations.table import BY_NAME
from tests.properties.checks import INTERRUPTED, TARGETS
from tests.properties.readers import read

# ------------------------------------------------------------------------------------------- 000: canonical tool ids

VECTORS = [
    ("kimi", "functions.read_file:3", "read_file", "turn-1", 0, "hist_tool_fyEG9KYWStZB4DYBUkn4gqR0"),
    ("gemini", None, "get_weather", "turn-1", 0, "hist_tool_MBmBWUVWMIhAWBl89r3g9lNG"),
    ("gemini", None, "get_weather", "turn-1", 1, "hist_tool_Jf7sk6Wd9aH2CBXWeCOmQh_8"),
    ("openai", "call_abc", "glob", "turn-2", 0, "hist_tool_NtC3Q_eqlBKUSigTuqo6iAko"),
    ("anthropic", "toolu_01A|b", "x", "turn-9", 2, "hist_tool__k8o6Jyxkx9DSFdPwWjZnUIm"),
]


def canonical(provider="openai", raw_id: Any = "call_abc", tool_name="glob", turn_key="turn-1", call_index=0) -> str:
    return canonical_tool_id(
        provider=provider, raw_id=raw_id, tool_name=tool_name, turn_key=turn_key, call_index=call_index
    )


@pytest.mark.parametrize(("provider", "raw_id", "tool_name", "turn_key", "call_index", "expected"), VECTORS)
def test_canonical_id_vectors(provider, raw_id, tool_name, turn_key, call_index, expected) -> None:
    assert canonical(provider, raw_id, tool_name, turn_key, call_index) == expected


def test_every_part_of_the_tuple_counts() -> None:
    base = {"provider": "a", "raw_id": "b", "tool_name": "c", "turn_key": "d", "call_index": 1}
    ids = {canonical(**base)} | {canonical(**{**base, key: 7 if key == "call_index" else "z"}) for key in base}
    assert len(ids) == 6


def test_separators_inside_parts_never_collide() -> None:
    parts = ["", "|", "\\", "a", "a|", "|a", "\\|", "|\\", "a\\", "\\\\"]
    triples = list(itertools.product(parts, repeat=3))
    ids = {canonical(provider, raw, name) for provider, raw, name in triples}
    assert len(ids) == len(triples)


def test_an_absent_part_is_the_empty_string() -> None:
    assert canonical(raw_id=None) == canonical(raw_id="")


def test_raw_ids_are_kept_as_they_are() -> None:
    variants = ["x", "call_x", "toolu_x", "call_call_x", "call_toolu_x", " x", "X"]
    assert len({canonical(raw_id=raw) for raw in variants}) == len(variants)


@pytest.mark.parametrize("raw", ["hist_tool_abc", "hist_tool_A-_9", f"hist_tool_{'x' * 54}"])
def test_well_formed_canonical_ids_pass_through(raw: str) -> None:
    assert canonical(raw_id=raw) == raw


@pytest.mark.parametrize(
    "raw",
    [
        "hist_tool_",
        "hist_tool_functions.read_file:3",
        f"hist_tool_{'x' * 55}",
        "hist_tool_ä",
        "hist_tool_a b",
        "HIST_TOOL_a",
    ],
)
def test_malformed_canonical_ids_are_raw_ids(raw: str) -> None:
    made = canonical(raw_id=raw)
    assert made != raw
    assert re.fullmatch(r"hist_tool_[A-Za-z0-9_-]{24}", made)


def test_a_response_takes_the_canonical_id_of_its_call() -> None:
    body = chat(user("Go."), calls(call("call_abc", "glob")), tool("call_abc", "a"))
    report = segue.convert(body, source="openai-chat", target="anthropic").report
    assert report.emitted_calls == report.emitted_results
    assert len(report.emitted_calls) == 1


def _canonical_ids(body: dict, source: str) -> list[str]:
    report = segue.convert(body, source=source, target="anthropic").report
    return [pair[0] for pair in report.emitted_calls]


def test_replay_stability_when_earlier_turns_are_pruned() -> None:
    first = [calls(call("call_1", "glob", {"n": 1})), tool("call_1", "one")]
    second = [
        calls(call("call_1", "glob", {"n": 2}), call("", "glob", {"n": 3})),
        tool("call_1", "two"),
        tool("", "three"),
    ]
    whole = _canonical_ids(chat(user("Go."), *first, user("On."), *second), "openai-chat")
    pruned = _canonical_ids(chat(user("Short."), *second), "openai-chat")
    assert whole[1:] == pruned


def test_ids_ignore_results_texts_and_argument_formatting() -> None:
    one = chat(user("Go."), calls(call("call_1", "glob", '{"a": 1, "b": 2}')), tool("call_1", "x"))
    two = chat(
        user("Come."), calls(call("call_1", "glob", '{"b":2,"a":1}'), content="text"), tool("call_1", "y"), user("!")
    )
    assert _canonical_ids(one, "openai-chat") == _canonical_ids(two, "openai-chat")


def test_a_call_without_an_id_has_a_canonical_one() -> None:
    """001: consumers never see null, whatever the wire left out."""
    body = chat(user("Go."), calls(call("", "glob"), call(None, "glob"), call("null", "glob")), *[tool("", "r")] * 3)
    ids = _canonical_ids(body, "openai-chat")
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"hist_tool_[A-Za-z0-9_-]+", one) for one in ids)


# ----------------------------------------------------------------------------------------- 002: the prefix functions


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("call_abc", "call_abc"),
        ("hist_tool_abc", "call_abc"),
        ("toolu_abc", "call_abc"),
        ("abc", "call_abc"),
        ("", "call_"),
        ("hist_tool_", "call_"),
        ("call_", "call_"),
        ("hist_tool_abc_123_def", "call_abc_123_def"),
        ("hist_tool_call_x", "call_call_x"),
        ("functions.read_file:3", "call_functions.read_file:3"),
        (" x ", "call_ x "),
        ("日本", "call_日本"),
    ],
)
def test_normalize_to_openai_tool_id(given: str, expected: str) -> None:
    assert normalize_to_openai_tool_id(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hist_tool_abc", "hist_tool_abc"),
        ("call_abc", "hist_tool_abc"),
        ("toolu_abc", "hist_tool_abc"),
        ("abc", "hist_tool_abc"),
        ("", "hist_tool_"),
        ("call_", "hist_tool_"),
        ("call_abc_123_def", "hist_tool_abc_123_def"),
        ("call_hist_tool_x", "hist_tool_hist_tool_x"),
        ("functions.read_file:3", "hist_tool_functions.read_file:3"),
        ("::", "hist_tool_::"),
    ],
)
def test_normalize_to_history_tool_id(given: str, expected: str) -> None:
    assert normalize_to_history_tool_id(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("toolu_abc", "toolu_abc"),
        ("hist_tool_abc", "toolu_abc"),
        ("call_abc", "toolu_abc"),
        ("abc", "toolu_abc"),
        ("", "toolu_"),
        ("hist_tool_", "toolu_"),
        ("toolu_functions.f:3", "toolu_functions.f:3"),
    ],
)
def test_normalize_to_anthropic_tool_id(given: str, expected: str) -> None:
    assert normalize_to_anthropic_tool_id(given) == expected


@pytest.mark.parametrize("tail", ["", "abc", "abc_123", "functions.f:0", "日本", "::", "call_x"])
def test_prefix_round_trip(tail: str) -> None:
    assert normalize_to_history_tool_id(normalize_to_openai_tool_id(f"hist_tool_{tail}")) == f"hist_tool_{tail}"
    assert normalize_to_openai_tool_id(normalize_to_history_tool_id(f"call_{tail}")) == f"call_{tail}"


# ------------------------------------------------------------------------------- 003: integrity across a switch


@pytest.mark.parametrize("name", ["seed_003_section_7", "seed_003_section_7_from_chat"])
@pytest.mark.parametrize("target", TARGETS)
def test_section_7(name: str, target: str) -> None:
    """C1 real; C2–C6 with C3 real and the others synthetic; the text is there, in this order."""
    case = BY_NAME[name]
    out = segue.convert(case.body, source=case.source, target=target)
    assert segue.check(out.body, target)
    found = read(out.body, target).interactions
    assert [one.arguments["path"] for one in found] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert found[0].text == "real c1"
    assert found[2].text == "real c3"
    assert all(INTERRUPTED in str(found[at].text) for at in (1, 3, 4, 5))
    assert len({one.id for one in found}) == 6
    spoken = json.dumps(out.body)
    assert spoken.index("c6") < spoken.index("This is what I know.") < spoken.index("Go on with what you have.")
    synthetic = [finding for finding in out.report.findings if "synth" in finding.kind]
    assert len({call_id for finding in synthetic for call_id in finding.call_ids}) == 4


@pytest.mark.parametrize("target", TARGETS)
def test_section_7_thinking_by_policy(target: str) -> None:
    case = BY_NAME["seed_003_section_7"]
    for policy, expected in (("none", False), ("text", True)):
        out = segue.convert(case.body, source=case.source, target=target, reasoning=policy)
        assert segue.check(out.body, target)
        for thought in ("One.", "Five.", "Enough."):
            assert (thought in json.dumps(out.body)) is expected, (policy, thought)


@pytest.mark.parametrize(
    ("target", "pattern"),
    [("openai-chat", r"call_\w+"), ("anthropic", r"toolu_\w+"), ("kimi", r"functions\.(read_file|glob):\d")],
)
def test_section_7_provider_projection(target: str, pattern: str) -> None:
    case = BY_NAME["seed_003_section_7"]
    out = segue.convert(case.body, source=case.source, target=target, ids="canonical")
    assert all(re.fullmatch(pattern, one) for one in read(out.body, target).ids)


def test_diagnostics_have_all_required_fields() -> None:
    """§10: ids seen and emitted, dedupe decisions, reasons of synthetic completions, the format, whose fault."""
    body = anthropic(
        user("Go."),
        anthropic_assistant(use("toolu_1"), use("toolu_2")),
        anthropic_user(result("toolu_1", "one"), result("toolu_1", "two"), result("toolu_9", "three")),
    )
    report = segue.convert(body, source="anthropic", target="openai-chat").report
    assert len(report.seen) >= 2
    assert len(report.emitted_calls) == len(report.emitted_results) == 2
    faults = {finding.fault for finding in report.findings}
    assert all(faults)
    report_dict = json.loads(json.dumps(report.to_dict()))
    text = json.dumps(report_dict)
    assert "openai-chat" in text
    kinds = [finding.kind for finding in report.findings]
    assert len(kinds) >= 3, kinds
    assert all(finding.message for finding in report.findings)


# ------------------------------------------------------------------------------------------------ 004: Kimi K2


@pytest.mark.parametrize("model", ["kimi-k2-0711-preview", "K2-Thinking", "kimik2", "moonshotai/kimi-k2-instruct"])
def test_is_kimi_model(model: str) -> None:
    assert parse_model(model).family == "kimi"
    assert parse_model(model).line == "k2"


@pytest.mark.parametrize("model", ["gpt-4o", "qwen3-coder-plus", "claude-opus-4-6"])
def test_is_no_kimi_model(model: str) -> None:
    assert parse_model(model).family != "kimi"


def _k2(*messages: Any) -> list[Any]:
    out = segue.convert(chat(*messages), source="openai-chat", target="kimi", model="kimi-k2-0711-preview")
    return read(out.body, "kimi").interactions


def test_k2_id_for_the_first_call() -> None:
    (one,) = _k2(user("Go."), calls(call("hist_tool_abc", "read_file")), tool("hist_tool_abc", "r"))
    assert one.id == "functions.read_file:0"


def test_sequential_k2_ids_for_several_calls() -> None:
    one, two = _k2(
        user("Go."),
        calls(call("hist_tool_1", "read_file"), call("hist_tool_2", "glob")),
        tool("hist_tool_1", "r"),
        tool("hist_tool_2", "s"),
    )
    assert (one.id, two.id) == ("functions.read_file:0", "functions.glob:1")


def test_k2_response_id_matches_its_call() -> None:
    (one,) = _k2(user("Go."), calls(call("hist_tool_abc", "read_file")), tool("hist_tool_abc", "the file"))
    assert (one.id, one.text) == ("functions.read_file:0", "the file")


def test_standard_ids_for_everyone_else() -> None:
    body = chat(user("Go."), calls(call("hist_tool_abc123", "read_file")), tool("hist_tool_abc123", "r"))
    out = segue.convert(body, source="openai-chat", target="openai-chat", ids="canonical")
    assert read(out.body, "openai-chat").ids == ["call_abc123"]
    out = segue.convert(body, source="openai-chat", target="anthropic")
    assert read(out.body, "anthropic").ids == ["toolu_abc123"]


def test_k2_ids_survive_the_pipeline() -> None:
    body = kimi(user("Go."), calls(call("functions.read_file:0", "read_file")), tool("functions.read_file:0", "r"))
    assert segue.convert(body, source="kimi", target="kimi").body == body


def test_tools_are_declared_to_kimi_in_the_openai_form() -> None:
    out = segue.convert(chat(user("Go."), tools=[function("read_file")]), source="openai-chat", target="kimi")
    assert out.body["tools"] == [function("read_file")]


# ------------------------------------------------------------------------------------------- switching conversations


K2_MODEL = "kimi-k2-0905-preview"


def _play(conversation: Any, reply: dict, source: str, *contents: str) -> None:
    """A reply of the model, and the results of its calls in order."""
    conversation.add_reply(reply, source=source)
    for pending, content in zip(list(conversation.pending), contents, strict=True):
        conversation.add_result(pending, content)


def _k2_rounds(conversation: Any, rounds: int, *, restart: bool = False) -> None:
    for number in range(rounds):
        index = 0 if restart else 2 * number
        reply = chat_reply(
            call(f"functions.read_file:{index}", "read_file", {"path": f"r{number}"}),
            call(f"functions.glob:{index + 1}", "glob", {"path": f"g{number}"}),
            model=K2_MODEL,
        )
        _play(conversation, reply, "kimi", f"read {number}", f"list {number}")


def _sent_results(conversation: Any, target: str, model: str | None = None) -> list[tuple[Any, str, str | None]]:
    rendered = conversation.render(target, model=model)
    assert segue.check(rendered.body, target, model=model)
    assert json.loads(rendered.data) == rendered.body
    return [(one.id, one.arguments["path"], one.text) for one in read(rendered.body, target).interactions]


@pytest.mark.parametrize("restart", [False, True])
def test_k2_completes_five_rounds(restart: bool) -> None:
    conversation = segue.Conversation(tools=[function("read_file"), function("glob")])
    conversation.add_user("Go.")
    _k2_rounds(conversation, 5, restart=restart)
    messages_sent = _sent_results(conversation, "kimi", K2_MODEL)
    assert [(path, text) for _, path, text in messages_sent] == [
        pair for n in range(5) for pair in ((f"r{n}", f"read {n}"), (f"g{n}", f"list {n}"))
    ]
    assert len({one for one, _, _ in messages_sent}) == (
        10 if not restart else len({one for one, _, _ in messages_sent})
    )
    if not restart:
        assert [one for one, _, _ in messages_sent] == [
            f"functions.{'glob' if n % 2 else 'read_file'}:{n}" for n in range(10)
        ]


@pytest.mark.parametrize("target", TARGETS)
def test_switch_from_k2(target: str) -> None:
    conversation = segue.Conversation(tools=[function("read_file"), function("glob")])
    conversation.add_user("Go.")
    _k2_rounds(conversation, 4, restart=True)
    messages_sent = _sent_results(conversation, target)
    assert [text for _, _, text in messages_sent] == [text for n in range(4) for text in (f"read {n}", f"list {n}")]
    if target != "kimi":
        assert len({one for one, _, _ in messages_sent}) == 8


def test_switch_from_openai_to_k2() -> None:
    conversation = segue.Conversation(system="Be brief.", tools=[function("read_file")])
    conversation.add_user("Go.")
    _play(conversation, chat_reply(call("call_a", "read_file", {"path": "a"})), "openai-chat", "A")
    _play(conversation, chat_reply(call("call_b", "read_file", {"path": "b"})), "openai-chat", "B")
    assert _sent_results(conversation, "kimi", K2_MODEL) == [
        ("functions.read_file:0", "a", "A"),
        ("functions.read_file:1", "b", "B"),
    ]
    reply = chat_reply(call("functions.read_file:2", "read_file", {"path": "c"}), model=K2_MODEL)
    _play(conversation, reply, "kimi", "C")
    assert [text for _, _, text in _sent_results(conversation, "kimi", K2_MODEL)] == ["A", "B", "C"]
    ids = [one for one, _, _ in _sent_results(conversation, "kimi", K2_MODEL)]
    assert ids == [f"functions.read_file:{n}" for n in range(3)]


def test_switch_k2_opus_k2_openai() -> None:
    conversation = segue.Conversation(tools=[function("read_file"), function("glob")])
    conversation.add_user("Go.")
    _k2_rounds(conversation, 1)
    assert all(
        re.fullmatch(r"[A-Za-z0-9_-]+", one)
        for one, _, _ in _sent_results(conversation, "anthropic", "claude-opus-4-6")
    )
    _play(conversation, anthropic_reply(use("toolu_01X", "read_file", {"path": "opus"})), "anthropic", "by opus")
    ids = [one for one, _, _ in _sent_results(conversation, "kimi", K2_MODEL)]
    assert ids == ["functions.read_file:0", "functions.glob:1", "functions.read_file:2"]
    _play(conversation, chat_reply(call("functions.glob:3", "glob", {"path": "k2"}), model=K2_MODEL), "kimi", "by k2")
    conversation.add_user("And?")
    messages_sent = _sent_results(conversation, "openai-chat", "gpt-4.1")
    assert [text for _, _, text in messages_sent] == ["read 0", "list 0", "by opus", "by k2"]
    assert len({one for one, _, _ in messages_sent}) == 4


def test_a_pending_call_is_completed_on_render_and_stays_pending() -> None:
    conversation = segue.Conversation(tools=[function("read_file")])
    conversation.add_user("Go.")
    conversation.add_reply(chat_reply(call("call_a", "read_file", {"path": "a"})), source="openai-chat")
    ((_, _, text),) = _sent_results(conversation, "anthropic")
    assert INTERRUPTED in str(text)
    assert len(conversation.pending) == 1


def test_a_conversation_survives_a_dump() -> None:
    conversation = segue.Conversation(system="Be brief.", tools=[function("read_file"), function("glob")])
    conversation.add_user("Go.")
    _k2_rounds(conversation, 2)
    loaded = segue.Conversation.load(conversation.dump())
    for target in TARGETS:
        assert loaded.render(target).data == conversation.render(target).data


@pytest.mark.parametrize("target", TARGETS)
def test_from_body_renders_as_convert_does(target: str) -> None:
    case = BY_NAME["parallel_with_one_missing"]
    conversation = segue.Conversation.from_body(case.body, source=case.source)
    assert conversation.render(target).data == segue.convert(case.body, source=case.source, target=target).data

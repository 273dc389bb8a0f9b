"""The cases that no library handles today, each from every API to every applicable API, with hand-written expectations.

A scenario is built as a client of the source would send it; the converted body is read by the target's own rule of
pairing, checked by the rulebook, and accepted by the vendor's types.
"""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import pytest

import segue
from tests.conversations import build
from tests.conversations.readers import declared_names, read
from tests.conversations.replies import find_calls, reply_with_calls, responses_reply
from tests.conversations.scenarios import BUILDERS, Model, Result, Scenario, User, build_body, read_calls
from tests.conversations.sdk import complaints
from tests.each import for_each
from tests.properties.checks import model_of
from tests.properties.readers import Reading

APIS = tuple(row.name for row in segue.formats() if row.name in BUILDERS)
EVERY_SOURCE = pytest.mark.parametrize("source", APIS)
EVERY_TARGET = pytest.mark.parametrize("target", APIS)
EVERY_PAIR = for_each("source, target", product(APIS, repeat=2), ids=" → ".join)

# What an id may look like, and what the projection of a foreign one looks like. Gemini takes any, and none.
VALID_IDS = {
    "openai-chat": r".{1,40}",
    "openai-responses": r".{1,64}",
    "azure-foundry": r".{1,64}",
    "anthropic": r"[A-Za-z0-9_-]+",
    "bedrock": r"[A-Za-z0-9_-]{1,64}",
    "mistral": r"[A-Za-z0-9]{9}",
    "kimi": r"(functions\.)?\w+:\d+",
}
PROJECTED = {
    "openai-chat": r"call_.{1,35}",
    "openai-responses": r"call_.{1,59}",
    "azure-foundry": r"call_.{1,59}",
    "anthropic": r"toolu_[A-Za-z0-9_-]+",
    "bedrock": r"tooluse_[A-Za-z0-9_-]{1,56}",
    "mistral": r"[A-Za-z0-9]{9}",
    "kimi": r"functions\.\w+:\d+",
    "deepseek": r"call_.{1,35}",
    "qwen": r"call_.{1,35}",
}
# An id that its own provider repeated may stay so where its API allows it (design §5); both OpenAI wires are one home.
PROVIDERS = {row.name: row.provider for row in segue.formats() if row.kind != "text"}
GONE = "its call is no longer part of this conversation"
INTERRUPTED = "[interrupted: no result was recorded]"


def convert_body(body: dict[str, Any], source: str, target: str, **policy: Any) -> tuple[Any, Reading]:
    """The conversion and the target's reading of it; it must be valid, without orphan results."""
    out = segue.convert(body, source=source, target=target, **policy)
    verdict = segue.check(out.body, target, model=model_of(body) if source == target else None)
    assert verdict, f"{verdict}\n{json.dumps(out.body, indent=1)}"
    assert "KIM-01" not in {violation.rule for violation in verdict}
    assert complaints(out.body, target) == []
    reading = read(out.body, target)
    assert not reading.surplus, f"results at no call: {reading.surplus}"
    return out, reading


def convert_scenario(scenario: Scenario, source: str, target: str) -> tuple[Any, Reading]:
    out, reading = convert_body(build_body(scenario, source), source, target)
    ids = [one.id for one in reading.interactions if one.id is not None]
    same_api = PROVIDERS[source] == PROVIDERS[target]
    form = (VALID_IDS if same_api else PROJECTED).get(target, r".+")
    assert all(re.fullmatch(form, one) for one in ids), ids
    assert same_api or len(set(ids)) == len(ids), f"ids repeat: {ids}"
    return out, reading


def pairs(reading: Reading) -> list[tuple[str, str | None]]:
    """Each call's path and its result."""
    return [(one.arguments["path"], one.text) for one in reading.interactions]


# ------------------------------------------------------------------------------------------------------------- ids


@EVERY_SOURCE
def test_ids_of_openai_and_anthropic_to_kimi(source: str) -> None:
    """K2 reads its ids out of the prompt: `functions.{tool}:{index}`, counted over the whole conversation (KIM-01)."""
    openai, anthropic = "call_9f8e7d6c5b4a3210", "toolu_01A09q90qw90lq917835lq9"
    scenario = [
        User("Read a, list all."),
        Model(None, ((openai, "read_file", {"path": "a"}), (anthropic, "glob", {"path": "*"}))),
        Result(openai, "content of a"),
        Result(anthropic, "a b", "glob"),
        Model("Done."),
        User("Read b."),
        read_calls(("toolu_01B09q90qw90lq917835lq9", "b")),
        Result("toolu_01B09q90qw90lq917835lq9", "content of b"),
    ]
    _, reading = convert_scenario(scenario, source, "kimi")
    assert [one.id for one in reading.interactions] == [
        "functions.read_file:0",
        "functions.glob:1",
        "functions.read_file:2",
    ]
    assert pairs(reading) == [("a", "content of a"), ("*", "a b"), ("b", "content of b")]


HEAD = "x" * 66  # longer than any API allows: cutting it makes all alike


@EVERY_PAIR
def test_ids_of_more_than_64_characters(source: str, target: str) -> None:
    """Cut to 40 or 64 characters, the first three would be one id; cut from the front, the last two (OAI-CHAT-01)."""
    ids = [f"{HEAD}_1", f"{HEAD}_2", f"{HEAD}_2_", f"1_{HEAD}", f"2_{HEAD}"]
    scenario = [
        User("Go."),
        read_calls(*zip(ids, "abcde", strict=True)),
        *(Result(one, f"of {one}") for one in reversed(ids)),
    ]
    _, reading = convert_scenario(scenario, source, target)
    assert pairs(reading) == [(path, f"of {one}") for path, one in zip("abcde", ids, strict=True)]
    # Gemini and Anthropic set no limit, so for the same API such an id stays.
    if source != target or target in VALID_IDS:
        assert len({one.id for one in reading.interactions} - {None}) in (0, 5)


@EVERY_TARGET
def test_ids_of_41_to_64_characters_from_responses(target: str) -> None:
    """Valid on Responses, too long for Chat; item ids of 53 characters are not call ids."""
    item = "fc_0f0e50a1476a6c35006912c58dc9f8819192c25864eb16f07f"
    ids = ["c" * 41, "c" * 64]
    body = build.responses(
        build.item("user", "Go."),
        build.function_call(ids[0], "read_file", {"path": "a"}, id=item),
        build.function_call(ids[1], "read_file", {"path": "b"}, id=f"{item}1"),
        build.output(ids[1], "B"),
        build.output(ids[0], "A"),
    )
    out, reading = convert_body(body, "openai-responses", target)
    assert pairs(reading) == [("a", "A"), ("b", "B")]
    found = [one.id for one in reading.interactions]
    if target == "openai-responses":
        assert found == ids
    else:
        assert item not in json.dumps(out.body)
        form = (VALID_IDS if target == "openai-chat" else PROJECTED).get(target, ".+")
        assert all(one is None or re.fullmatch(form, one) for one in found), found
    assert len(set(found) - {None}) in (0, 2)


@EVERY_PAIR
def test_the_same_id_twice_in_one_turn(source: str, target: str) -> None:
    """Two calls with results in order; each keeps its result and gets its own id on every target."""
    scenario = [
        User("Read a and b."),
        read_calls(("call_0", "a"), ("call_0", "b")),
        Result("call_0", "content of a"),
        Result("call_0", "content of b"),
        Model("Both read."),
        User("Well?"),
    ]
    _, reading = convert_scenario(scenario, source, target)
    assert pairs(reading) == [("a", "content of a"), ("b", "content of b")]


@EVERY_PAIR
def test_the_same_id_twice_and_one_result(source: str, target: str) -> None:
    """One of the two has no result: the second, since results come in order."""
    scenario = [
        User("Go."),
        read_calls(("call_0", "a"), ("call_0", "b")),
        Result("call_0", "content of a"),
        User("And b?"),
    ]
    _, reading = convert_scenario(scenario, source, target)
    assert [path for path, _ in pairs(reading)] == ["a", "b"]
    assert reading.interactions[0].text == "content of a"
    assert INTERRUPTED in str(reading.interactions[1].text)


@EVERY_PAIR
def test_the_same_id_again_in_a_later_turn(source: str, target: str) -> None:
    """Counters that restart in every reply: each result stays with the call of its own turn, equal calls included."""
    scenario = [
        User("Go."),
        read_calls(("call_0", "a"), ("call_1", "b")),
        Result("call_0", "first a"),
        Result("call_1", "first b"),
        read_calls(("call_0", "a")),
        Result("call_0", "second a"),
        Model("Read."),
        User("Once more."),
        read_calls(("call_1", "a"), ("call_0", "b")),
        Result("call_0", "third b"),
        Result("call_1", "third a"),
    ]
    _, reading = convert_scenario(scenario, source, target)
    assert pairs(reading) == [("a", "first a"), ("b", "first b"), ("a", "second a"), ("a", "third a"), ("b", "third b")]


@EVERY_PAIR
def test_the_same_id_again_while_the_first_is_open(source: str, target: str) -> None:
    """The newest turn with the id gets the result; the older call has none."""
    scenario = [
        User("Read a."),
        read_calls(("call_0", "a")),
        User("No, read b."),
        read_calls(("call_0", "b")),
        Result("call_0", "content of b"),
    ]
    _, reading = convert_scenario(scenario, source, target)
    assert [path for path, _ in pairs(reading)] == ["a", "b"]
    assert INTERRUPTED in str(reading.interactions[0].text)
    assert reading.interactions[1].text == "content of b"


# --------------------------------------------------------------------------------------------------- late, orphans

LATE = [
    User("Read a and b."),
    read_calls(("call_1", "a"), ("call_2", "b")),
    Result("call_2", "content of b"),
    User("Are you still there?"),
    Result("call_1", "content of a"),
]


@EVERY_PAIR
def test_result_after_a_user_message(source: str, target: str) -> None:
    """It moves to its call; the user's text stays after the reply that it followed."""
    out, reading = convert_scenario(LATE, source, target)
    assert pairs(reading) == [("a", "content of a"), ("b", "content of b")]
    body_text = json.dumps(out.body)
    assert body_text.count("Are you still there?") == 1
    # Responses accepts an output anywhere after its call, so for the same API nothing moves (OAI-RESP-06).
    if source == target in ("openai-responses", "azure-foundry"):
        assert out.body == build_body(LATE, source)
    else:
        assert body_text.index("content of a") < body_text.index("Are you still there?")
        assert body_text.index("content of b") < body_text.index("Are you still there?")


@EVERY_SOURCE
def test_result_after_a_user_message_for_mistral(source: str) -> None:
    """All results after the calls, in order, with names; the bridge is between tool and user (MIS-07)."""
    out, _ = convert_scenario(LATE, source, "mistral")
    messages = out.body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    calls_made, found, bridge = messages[1]["tool_calls"], messages[2:4], messages[4]
    assert [one["tool_call_id"] for one in found] == [one["id"] for one in calls_made]
    assert [one["name"] for one in found] == ["read_file", "read_file"]
    assert [one["content"] for one in found] == ["content of a", "content of b"]
    assert bridge["content"] == "[continued]"
    assert not bridge.get("tool_calls")
    assert messages[5]["content"] == "Are you still there?"


ORPHANS = [
    Result("gone_1", "content of x"),
    User("Go."),
    read_calls(("call_1", "a")),
    Result("gone_2", "content of y", "glob"),
    Result("call_1", "content of a"),
    Model("Read."),
    Result("gone_3", "content of z"),
    User("Well?"),
]


def _without(scenario: Scenario, *ids: str) -> list[Any]:
    return [event for event in scenario if not (isinstance(event, Result) and event.id in ids)]


@EVERY_PAIR
def test_orphan_results(source: str, target: str) -> None:
    """No call is invented and no result dropped: they become text in place."""
    # Gemini pairs by position: a result that comes first, under another id, is the open call's. There it comes last.
    scenario = ORPHANS
    if source == "gemini":
        scenario = [*_without(ORPHANS[:4], "gone_2"), ORPHANS[4], ORPHANS[3], *ORPHANS[5:]]
    out, reading = convert_scenario(scenario, source, target)
    assert pairs(reading) == [("a", "content of a")]
    body_text = json.dumps(out.body)
    for text in ("content of x", "content of y", "content of z"):
        assert body_text.count(text) == 1, text
    assert body_text.count(GONE) == 3
    assert body_text.index("content of x") < body_text.index("Read.")
    assert body_text.index("content of y") < body_text.index("Read.") < body_text.index("content of z")
    assert orphan_count(out) == 3


def orphan_count(out: segue.Converted) -> int:
    return sum(len(finding.call_ids) for finding in out.report.findings_of("orphan"))


@EVERY_PAIR
def test_orphan_results_left_out(source: str, target: str) -> None:
    scenario = _without(ORPHANS, "gone_2")
    out, reading = convert_body(build_body(scenario, source), source, target, orphans="drop")
    assert pairs(reading) == [("a", "content of a")]
    body_text = json.dumps(out.body)
    assert "content of x" not in body_text
    assert "content of z" not in body_text
    assert GONE not in body_text
    assert orphan_count(out) == 2


@EVERY_PAIR
def test_only_an_orphan_result(source: str, target: str) -> None:
    """A history cut so that only a result is left is still a conversation."""
    out, reading = convert_body(build_body([Result("gone_1", "content of x")], source), source, target)
    assert not reading.interactions
    assert "content of x" in json.dumps(out.body)


# ----------------------------------------------------------------------------------------------------------- names

DOTTED = ["ns.tool", "ns:tool", "ns_tool", "ns-tool"]
NARROW = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _dotted() -> dict[str, Any]:
    calls = tuple((f"c{at}", name, {"path": str(at)}) for at, name in enumerate(DOTTED))
    results = [Result(call_id, f"content {call_id}", name) for call_id, name, _ in calls]
    return build_body([User("Go."), Model(None, calls), *results, User("Again.")], "gemini")


@EVERY_TARGET
def test_dotted_names_from_gemini(target: str) -> None:
    """Each tool has one name, in the declaration and in the history, that the target takes; no two become one."""
    out, reading = convert_body(_dotted(), "gemini", target)
    names = [one.name for one in reading.interactions]
    assert pairs(reading) == [(str(at), f"content c{at}") for at in range(4)]
    assert declared_names(out.body, target)[:4] == names
    assert len(set(names)) == 4
    if target == "gemini":
        assert names == DOTTED
    else:
        assert all(NARROW.fullmatch(name) for name in names), names
        assert names[2:] == DOTTED[2:], "a lawful name was changed"
        assert {finding.subject for finding in out.report.findings_of("name")} == set(DOTTED[:2])


@EVERY_TARGET
def test_dotted_names_come_back_on_the_reply(target: str) -> None:
    out, _ = convert_body(_dotted(), "gemini", target)
    there = declared_names(out.body, target)[:4]
    reply = out.reply(reply_with_calls(target, [(f"r{at}", name, {"path": name}) for at, name in enumerate(there)]))
    assert find_calls(reply, "gemini") == [(own, {"path": name}) for own, name in zip(DOTTED, there, strict=True)]


@EVERY_TARGET
def test_namespaces_are_part_of_the_name(target: str) -> None:
    """`search` of two namespaces and of none: three tools there, and the same three on the reply."""

    def namespace(name: str) -> Any:
        tools = [build.flat_function("search")]
        return {"type": "namespace", "name": name, "description": "Tools.", "tools": tools}

    body = build.responses(
        build.item("user", "Search."),
        build.function_call("c1", "search", {"path": "a"}, namespace="mail"),
        build.function_call("c2", "search", {"path": "b"}, namespace="files"),
        build.function_call("c3", "search", {"path": "c"}),
        *(build.output(f"c{at}", f"content {at}") for at in (1, 2, 3)),
        tools=[namespace("mail"), namespace("files"), build.flat_function("search")],
    )
    out, reading = convert_body(body, "openai-responses", target)
    names = [one.name for one in reading.interactions]
    assert pairs(reading) == [("a", "content 1"), ("b", "content 2"), ("c", "content 3")]
    assert len(set(names)) == 3
    if target == "openai-responses":
        made = [{**item, "id": f"fc_{at}"} for at, item in enumerate(body["input"][1:4])]
        reply = out.reply(responses_reply(*made))
    else:
        assert set(declared_names(out.body, target)) == set(names)
        reply = out.reply(reply_with_calls(target, [(f"r{at}", name, {}) for at, name in enumerate(names)]))
    found = [(item["name"], item.get("namespace")) for item in reply["output"] if item["type"] == "function_call"]
    assert found == [("search", "mail"), ("search", "files"), ("search", None)]

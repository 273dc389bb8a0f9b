"""Every shape of a conversation that the fast path accepts gives the bytes and the report of the full pipeline.

Each shape is tried for each source and target, as a short conversation and repeated to a long one, whose template comes
from a minimal conversation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from typing import Any

import msgspec
import pytest

import segue
from benchmarks._transcripts import RENDERERS, Call, Turn
from segue import fast as fast_package
from segue._convert import build_policy
from segue.canonical.fast_history import FastPathUnsupportedError
from segue.canonical.json import encode_json
from segue.fast import FastConversion, body_template, clear, convert_regular, large
from segue.pipeline import Conversion, ConvertJob, convert_request
from segue.wire.registry import WIRES
from tests.budget import sample
from tests.properties.checks import models

Body = dict[str, Any]
POLICIES: tuple[dict[str, str], ...] = (
    {},
    {"ids": "canonical"},
    {"ids": "native"},
    {"reasoning": "text"},
    {"reasoning": "none"},
    {"pending": "keep", "orphans": "drop", "hosted": "text"},
)
USER, REPLY = Turn(user_text="Look it up."), Turn(text="Found it.", reasoning="Easy.")


def calls(*numbers: int, text: str | None = None, reasoning: str = "Two files.", result: str = "one\ntwo") -> Turn:
    made = [
        Call(number, "grep", {"path": f"a{number}", "deep": {"k": [1]}}, f"{result} {number}") for number in numbers
    ]
    return Turn(reasoning=reasoning, text=text, calls=tuple(made))


TURNS: dict[str, list[Turn]] = {
    "one question": [USER],
    "one call": [USER, calls(1)],
    "parallel calls with text": [USER, calls(1, 2, 3, text="I look."), USER],
    "several turns": [USER, calls(1, text="A"), calls(2, 3), REPLY, USER, calls(4), USER],
    "two user messages": [USER, USER, calls(1), REPLY, USER, USER],
    "ends with a reply": [USER, calls(1), REPLY],
    "ends with white space": [USER, calls(1), Turn(text="Found it. \n", reasoning="x")],
    "two replies": [USER, REPLY, REPLY, USER],
    "without reasoning": [USER, calls(1, reasoning=""), Turn(text="Done.", reasoning=""), USER],
    "JSON in the first message": [Turn(user_text="Give me JSON."), calls(1), USER],
}


# ------------------------------------------------------------------------------------------------- changes of a body


def find_objects(value: Any) -> Iterable[Body]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from find_objects(child)


def conversation_of(body: Body) -> list[Body]:
    return next(body[key] for key in ("messages", "input", "contents") if key in body)


def is_result(item: Body) -> bool:
    kinds = item.get("type"), item.get("role")
    return not {"tool_result", "function_call_output", "tool"}.isdisjoint(kinds) or bool(
        {"toolResult", "functionResponse"} & item.keys()
    )


def change_results(body: Body, change: Callable[[list[Body]], list[Body]]) -> None:
    """Replace each run of results, in the list of items or in one message."""
    lists = [conversation_of(body)]
    lists += [item.get("content", item.get("parts")) for item in lists[0]]
    for items in lists:
        if not isinstance(items, list):
            continue
        start = 0
        while start < len(items):
            stop = start
            while stop < len(items) and is_result(items[stop]):
                stop += 1
            items[start:stop] = change(items[start:stop])
            start += max(len(change(items[start:stop])), 1)


def reverse_results(body: Body) -> None:
    change_results(body, lambda results: results[::-1])


def double_results(body: Body) -> None:
    change_results(body, lambda results: [*results, *results][: 2 * len(results)])


def fail_results(body: Body) -> None:
    for item in find_objects(conversation_of(body)):
        if item.get("type") == "tool_result":
            item["is_error"] = True
        elif "toolUseId" in item and "content" in item:
            item["status"] = "error"
        elif "output" in item and item.get("type") is None:
            item["error"] = item.pop("output")


def empty_results(body: Body) -> None:
    for item in find_objects(conversation_of(body)):
        for key in ("content", "output"):
            if (is_result(item) or "toolUseId" in item) and isinstance(item.get(key), str | list):
                item[key] = [] if isinstance(item[key], list) else ""
        if isinstance(item.get("response"), dict):
            item["response"] = {"output": ""}


def list_results(body: Body) -> None:
    for item in find_objects(conversation_of(body)):
        if item.get("type") == "function_call_output":
            item["output"] = [{"type": "input_text", "text": item["output"]}, {"type": "input_text", "text": "more"}]
        elif is_result(item) and isinstance(item.get("content"), str):
            item["content"] = [{"type": "text", "text": item["content"]}, {"type": "text", "text": "more"}]


def structure_results(body: Body) -> None:
    for item in find_objects(conversation_of(body)):
        if "functionResponse" in item:
            item["functionResponse"]["response"] = {"count": 2, "names": ["a"]}
        elif "toolResult" in item:
            item["toolResult"]["content"] = [{"json": {"count": 2, "names": ["a"]}}]


def add_user_text_to_results(body: Body) -> None:
    for item in conversation_of(body):
        content = item.get("content")
        if isinstance(content, list) and content and is_result(content[-1]):
            content.append({"text": "Go on."} | ({} if "toolResult" in content[0] else {"type": "text"}))


def add_cache_markers(body: Body) -> None:
    for item in conversation_of(body):
        content = item.get("content")
        if isinstance(content, list) and "type" in content[-1] and content[-1]["type"] != "thinking":
            content[-1]["cache_control"] = {"type": "ephemeral"}
        elif isinstance(content, list) and "modelId" in body:
            content.append({"cachePoint": {"type": "default"}})


def add_system_text(body: Body) -> None:
    items = conversation_of(body)
    if {"role": "developer"}.items() <= items[0].items() or "input" in body or items[0].get("role") == "system":
        at = next((n for n in range(len(items) - 1, 0, -1) if items[n].get("role") == "user"), len(items))
        items.insert(at, {"role": "developer" if "input" in body else "system", "content": "Be brief."})


def add_system_part(body: Body) -> None:
    """Add system text in a list of one part, with a reply after it."""
    items = conversation_of(body)
    if "input" in body or items[0].get("role") == "system":
        role, kind = ("developer", "input_text") if "input" in body else ("system", "text")
        added = {"role": role, "content": [{"type": kind, "text": "Be brief."}]}
        at = next((n for n in range(2, len(items)) if items[n].get("role") == "assistant"), len(items))
        items.insert(at, added)


def add_empty_fields(body: Body) -> None:
    for item in find_objects(conversation_of(body)):
        if item.get("type") == "reasoning":
            item |= {"content": None, "status": None}
        elif item.get("type") == "text" and "system" in body:
            item |= {"citations": [], "cache_control": None}
        elif item.get("role") == "assistant" and "messages" in body and "tools" in body and "system" not in body:
            item |= {"refusal": None, "annotations": []}


def unsign_reasoning(body: Body) -> None:
    for item in find_objects(conversation_of(body)):
        item.pop("signature", None)
        item.pop("thoughtSignature", None)
        if item.get("type") == "reasoning":
            item["encrypted_content"] = None


def defer_tools(body: Body) -> None:
    for tool in body.get("tools", [])[1:]:
        if "input_schema" in tool:
            tool["defer_loading"] = True


def rename_tools(body: Body) -> None:
    for item in find_objects(body):
        if item.get("name") == "grep":
            item["name"] = "grep files"


def want_json(body: Body) -> None:
    if "messages" in body and "tools" in body and "system" not in body:
        body["response_format"] = {"type": "json_object"}
    elif "input" in body:
        body["text"] = {"format": {"type": "json_object"}}
    elif "contents" in body:
        body["generationConfig"] = {"responseMimeType": "application/json"}


def change_nothing(_body: Body) -> None:
    pass


CHANGES: tuple[Callable[[Body], None], ...] = (
    change_nothing,
    reverse_results,
    double_results,
    fail_results,
    empty_results,
    list_results,
    structure_results,
    add_user_text_to_results,
    add_cache_markers,
    add_system_text,
    add_system_part,
    add_empty_fields,
    unsign_reasoning,
    defer_tools,
    rename_tools,
    want_json,
)


# --------------------------------------------------------------------------------------------------------- the tests


@pytest.fixture(autouse=True)
def use_minimal_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make templates from the minimal conversation also where the whole one is little longer."""
    monkeypatch.setattr(body_template, "_MAX_EXTRA_EVENTS", 0)


def spell(source: str, turns: list[Turn], change: Callable[[Body], None], copies: int) -> bytes:
    """Return the conversation as a body, repeated with other ids."""
    repeated = [
        Turn(turn.user_text, turn.reasoning, turn.text, tuple(_renumber(call, copy) for call in turn.calls))
        for copy in range(copies)
        for turn in turns
    ]
    body = RENDERERS[source](repeated)
    change(body)
    return json.dumps(body).encode()


def _renumber(call: Call, copy: int) -> Call:
    number = call.number + 100 * copy
    return Call(number, call.tool, {**call.arguments, "n": number}, f"{call.result} {copy}")


def compare(data: bytes, job: ConvertJob) -> bool:
    """Compare both paths; return whether the fast path was taken."""
    clear()
    expected = _outcome(convert_request(json.loads(data), job))
    fast = convert_regular(data, job)
    if isinstance(fast, Conversion):
        assert _outcome(fast) == expected
        fast = convert_regular(data, job)
    if not isinstance(fast, FastConversion):
        return False
    assert (fast.data, fast.report.to_dict()) == expected
    return True


def _outcome(conversion: Conversion) -> tuple[bytes, dict[str, Any]]:
    return encode_json(conversion.rendered.body), conversion.rendered.report.to_dict()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize(("number", "source"), [*enumerate(RENDERERS)], ids=[*RENDERERS])
def test_changed_conversation_equals_full_pipeline(number: int, source: str, change: Callable[[Body], None]) -> None:
    rows = product(TURNS.values(), WIRES, POLICIES)
    taken = False
    for turns, target, policy in sample(rows, 101, start=7 * number + CHANGES.index(change)):
        job = ConvertJob(target=WIRES[target], source=WIRES[source], policy=build_policy(**policy))
        for copies in (1, 3):
            taken |= compare(spell(source, turns, change, copies), job)
    assert taken


@pytest.mark.parametrize(("number", "source"), [*enumerate(RENDERERS)], ids=[*RENDERERS])
def test_template_serves_other_conversations(number: int, source: str) -> None:
    """A template of one conversation is used for all others with the same rest and traits."""
    clear()
    for position, target in enumerate(sample(WIRES, 2, start=number)):
        policy = build_policy(**POLICIES[(number + position) % len(POLICIES)])
        model = models(target)[(number + position) % len(models(target))]
        job = ConvertJob(target=WIRES[target], source=WIRES[source], model=model, policy=policy)
        for turns, copies in product(TURNS.values(), (1, 3)):
            data = spell(source, turns, change_nothing, copies)
            fast = convert_regular(data, job)
            if isinstance(fast, FastConversion):
                assert (fast.data, fast.report.to_dict()) == _outcome(convert_request(json.loads(data), job))


def test_text_next_to_calls_needs_another_template() -> None:
    """Some models get it as a message of its own, with a finding on each call."""
    job = ConvertJob(target=WIRES["mistral"], source=WIRES["openai-responses"], model="open-mixtral-8x22b")
    clear()
    for turns in ([USER, calls(1), USER], [USER, calls(1, text="I look."), USER]):
        data = spell("openai-responses", turns, change_nothing, 3)
        for _ in range(2):
            fast = convert_regular(data, job)
            if isinstance(fast, FastConversion):
                assert (fast.data, fast.report.to_dict()) == _outcome(convert_request(json.loads(data), job))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize(("number", "source"), [*enumerate(RENDERERS)], ids=[*RENDERERS])
def test_growing_conversation_equals_full_pipeline(
    number: int, source: str, change: Callable[[Body], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request has one item more. Conversations are converted with types at once."""
    monkeypatch.setattr(fast_package, "_MAX_SHORT_LENGTH", -1)
    rows = product(TURNS.values(), WIRES, POLICIES)
    for turns, target, policy in sample(rows, 211, start=11 * number + CHANGES.index(change)):
        clear()
        body = json.loads(spell(source, turns, change, 3))
        items = conversation_of(body)
        for length in range(1, len(items) + 1):
            data = encode_json({**body, WIRES[source].conversation_key: items[:length]})
            job = {"source": source, "target": target, **policy}
            converted = segue.convert(data, **job)
            expected = segue.convert(json.loads(data), **job)
            assert converted.data == expected.data
            assert converted.report.to_dict() == expected.report.to_dict()
            assert converted._sent_body().reply_key == expected._sent_body().reply_key


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize(("number", "source"), [*enumerate(RENDERERS)], ids=[*RENDERERS])
def test_sliced_conversation_equals_full_pipeline(
    number: int, source: str, change: Callable[[Body], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large bodies are converted in slices, here of a few items."""
    monkeypatch.setattr(large, "_SLICE_SIZE", 1500)
    rows = product(TURNS.values(), WIRES, POLICIES)
    taken = False
    for turns, target, policy in sample(rows, 101, start=7 * number + CHANGES.index(change)):
        clear()
        data = spell(source, turns, change, 12)
        job = ConvertJob(target=WIRES[target], source=WIRES[source], policy=build_policy(**policy))
        with suppress(FastPathUnsupportedError, segue.SegueError, msgspec.MsgspecError):
            fast = large.convert_large(data, job)
            assert (fast.data, fast.report.to_dict()) == _outcome(convert_request(json.loads(data), job))
            taken = True
    assert taken or change in (double_results, add_cache_markers), "only some wires accept these"


def test_large_body_is_converted_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "MIN_SIZE", 1000)
    monkeypatch.setattr(large, "_SLICE_SIZE", 2000)
    clear()
    slices: list[object] = []
    real = large._decode
    monkeypatch.setattr(large, "_decode", lambda *args, **given: slices.append(args) or real(*args, **given))
    data = spell("anthropic", TURNS["several turns"], change_nothing, 30)
    fast = convert_regular(data, job := ConvertJob(target=WIRES["openai-chat"], source=WIRES["anthropic"]))
    assert isinstance(fast, FastConversion)
    assert len(slices) > 10
    assert (fast.data, fast.report.to_dict()) == _outcome(convert_request(json.loads(data), job))


def test_minimal_conversation_keeps_the_reply_before_several_user_messages() -> None:
    """Without the reply, they would follow results, and some targets need an assistant message in between."""
    data = spell("anthropic", TURNS["two user messages"], defer_tools, 3)
    assert compare(data, ConvertJob(target=WIRES["mistral"], source=WIRES["anthropic"]))

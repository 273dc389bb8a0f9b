"""A conversation of any usual shape that is converted request by request, or in slices, equals the whole.

Each shape is tried for each source and target.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import pytest

import segue
from benchmarks._transcripts import RENDERERS, Call, Turn, body
from segue.canonical.json import encode_json
from segue.conversion import sessions, slices
from segue.wire.registry import WIRES
from tests.budget import sample
from tests.properties.whole import compare

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
def cleared() -> Iterator[None]:
    sessions.clear()
    yield
    sessions.clear()


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


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize(("number", "source"), [*enumerate(RENDERERS)], ids=[*RENDERERS])
def test_growing_conversation_equals_the_whole(number: int, source: str, change: Callable[[Body], None]) -> None:
    """Each request has one item more."""
    rows = product(TURNS.values(), WIRES, POLICIES)
    for turns, target, policy in sample(rows, 331, start=11 * number + CHANGES.index(change)):
        sessions.clear()
        body = json.loads(spell(source, turns, change, 3))
        items = conversation_of(body)
        for length in range(1, len(items) + 1):
            data = encode_json({**body, WIRES[source].conversation_key: items[:length]})
            compare(data, source=source, target=target, **policy)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize(("number", "source"), [*enumerate(RENDERERS)], ids=[*RENDERERS])
def test_sliced_conversation_equals_the_whole(
    number: int, source: str, change: Callable[[Body], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large bodies are converted in slices, here of a few items."""
    monkeypatch.setattr(sessions.conversations, "max_whole", 0)
    monkeypatch.setattr(slices, "_SLICE_SIZE", 1500)
    rows = product(TURNS.values(), WIRES, POLICIES)
    for turns, target, policy in sample(rows, 211, start=7 * number + CHANGES.index(change)):
        compare(spell(source, turns, change, 12), source=source, target=target, **policy)


# The options depend on the last exchange, or the items on the options.
WHOLE = {("azure-foundry", "azure-foundry"), ("anthropic", "bedrock"), ("bedrock", "anthropic")}


@pytest.mark.parametrize("target", RENDERERS)
@pytest.mark.parametrize("source", RENDERERS)
def test_usual_conversation_is_converted_in_slices(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions.conversations, "max_whole", 0)
    monkeypatch.setattr(slices, "_SLICE_SIZE", 20_000)
    found: list[int] = []
    real = slices.parse_items
    monkeypatch.setattr(slices, "parse_items", lambda data: found.append(len(data)) or real(data))
    data = body(source, 120)
    assert compare(data, source=source, target=target) or (source, target) in WHOLE
    if (source, target) in WHOLE:
        return
    assert len(found) > 5
    assert max(found) < 60_000


@pytest.mark.parametrize("value", [b'{"t":"\xff"}', b'{"t":1e400}', b'{"t":' + b"9" * 5_000 + b"}"])
def test_a_dropped_field_must_be_valid_in_a_longer_conversation(value: bytes) -> None:
    def request(metadata: bytes, length: int) -> bytes:
        items = [b'{"role":"user","content":"hi"}', b'{"role":"assistant","content":"ho"}'] * length
        return b'{"model":"gpt-5","input":[%b],"client_metadata":%b}' % (b",".join(items), metadata)

    for length in (3, 4, 5):
        segue.convert(request(b'{"t":1}', length), source="openai-responses", target="anthropic")
    with pytest.raises(segue.InputError):
        segue.convert(request(value, 6), source="openai-responses", target="anthropic")

"""The memory of conversations gives the bytes and findings of the whole, however one is continued."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.canonical.json import encode_json
from segue.conversion import sessions
from segue.conversion.convert import ConvertJob, convert_request
from segue.conversion.sessions import ConversationMemory
from segue.wire.registry import WIRES
from tests.bodies.chat import assistant, assistant_calls, call, result, tool, user
from tests.budget import examples
from tests.properties import checks
from tests.properties.bodies import BUILDERS, build_body
from tests.properties.chaos import CHAOS
from tests.properties.generators import scenarios, valid_scenarios
from tests.properties.test_properties import PAIRS, POLICIES, SOME_PAIRS
from tests.properties.test_slices import STYLES, repeated
from tests.properties.whole import check_equal, compare, convert_whole
from tests.work import count_work

Items = list[dict[str, Any]]
MARKER = {"type": "ephemeral"}


@pytest.fixture(autouse=True)
def cleared() -> Iterator[None]:
    sessions.clear()
    yield
    sessions.clear()


def conversation_key(body: dict[str, Any]) -> str:
    return next(key for key in ("messages", "input", "contents") if key in body)


def mark_last(items: Items) -> Items:
    """Return the items with a cache marker on the last one, as clients of Claude send them."""
    *before, last = items
    content = last.get("content")
    if not isinstance(content, list) or not content or not isinstance(content[-1], dict):
        return items
    return [*before, {**last, "content": [*content[:-1], {**content[-1], "cache_control": MARKER}]}]


@st.composite
def requests(draw: st.DrawFn, items: Items) -> list[Items]:
    """The items of each request: more and more of them, some changed or dropped in between."""
    made: list[Items] = []
    marks = draw(st.booleans())
    said = [item for item in items if item.get("role") == "user"]
    length = min(len(items), max(3, len(items) - 16))
    while length <= len(items) and len(made) < 12:
        sent = items[:length]
        made.append(mark_last(sent) if marks and sent else sent)
        step = draw(st.sampled_from(["on", "on", "on", "on", "on", "again", "fork", "edit", "rewind"]))
        if step == "fork":
            items = items[: length - draw(st.integers(1, 3))] + items[length:]
            length = max(length - 3, 1)
        elif step == "edit" and length > 1:
            place = draw(st.integers(0, length - 1))
            items = [*items[:place], *items[place + 1 :]]
        elif step == "rewind" and said:
            back = max(length - draw(st.integers(1, 4)), 1)
            items = [*items[:back], draw(st.sampled_from(said)), *items[length:]]
            length = back
        length += 0 if step == "again" else draw(st.integers(1, 3))
    return made


def replay(body: dict[str, Any], all_items: Sequence[Items], style: str, *, max_whole: int = 2**22, **job: Any) -> None:
    key = conversation_key(body)
    sessions.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions.conversations, "max_whole", max_whole)
        for number, items in enumerate(all_items):
            volatile = {"client_metadata": {"turn": number}} if key == "input" else {}
            data = STYLES[style]({**body, key: items, **volatile}).encode()
            note(data.decode())
            compare(data, **job)


@SOME_PAIRS[2]
def test_continued_bodies_equal_the_whole(source: str, target: str) -> None:
    @examples(10, items=len(PAIRS[2]))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        plain = source in BUILDERS and data.draw(st.integers(0, 2)) > 0
        body = repeated(data, build_body(data.draw(valid_scenarios(source) if plain else scenarios()), source, None))
        items = body[conversation_key(body)]
        policy = data.draw(st.sampled_from(({}, {}, *POLICIES)))
        model = data.draw(st.sampled_from(checks.models(target)))
        named = data.draw(st.booleans())
        job = {"target": target, "source": source if named else None, "model": model, **policy}
        job["max_whole"] = data.draw(st.sampled_from((0, 1000, 2**22)))
        replay(body, data.draw(requests(items)), data.draw(st.sampled_from(sorted(STYLES))), **job)

    run()


@SOME_PAIRS[2]
def test_conversations_with_the_same_settings_equal_the_whole(source: str, target: str) -> None:
    @examples(20, items=len(PAIRS[2]))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        bodies = [build_body(data.draw(scenarios()), source, None) for _ in range(4)]
        key = conversation_key(bodies[0])
        policy = data.draw(st.sampled_from(({}, {}, *POLICIES)))
        job = {"target": target, "source": source, "model": data.draw(st.sampled_from(checks.models(target))), **policy}
        sessions.clear()
        for body in bodies:
            items = body[key]
            for length in (1, 1, 2, len(items)):
                sent = {**bodies[0], key: items[:length]}
                note(json.dumps(sent))
                compare(json.dumps(sent).encode(), **job)

    run()


@pytest.mark.parametrize("source", [name for name in WIRES if name in CHAOS])
@examples(10, items=len(CHAOS))
@given(data=st.data())
def test_continued_odd_bodies_equal_the_whole(source: str, data: st.DataObject) -> None:
    """Results out of order, doubled, late or missing, ids repeated or empty, system messages in the middle."""
    body: dict[str, Any] = {}
    items: Items = []
    for drawn in data.draw(st.lists(CHAOS[source], min_size=1, max_size=4)):
        body = body or drawn
        items += drawn.get(conversation_key(body)) or []
    if isinstance(items, list) and items:
        target, max_whole = data.draw(st.sampled_from(sorted(WIRES))), data.draw(st.sampled_from((0, 2**22)))
        replay(body, data.draw(requests(items)), "loose", target=target, source=source, max_whole=max_whole)


# ---------------------------------------------------------------------------------------------------- one conversation


def turns(first: int, last: int, *, repeat_ids: bool = False) -> Items:
    made: Items = []
    for number in range(first, last):
        ids = [f"call_{number % 3 if repeat_ids else number}_{place}" for place in range(2)]
        made += [assistant_calls(*map(call, ids)), *(result(i, f"result {number}") for i in ids)]
    return made


def encode(items: Items, **fields: Any) -> bytes:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    return json.dumps({"model": "gpt-5", "messages": items, "tools": tools, **fields}).encode()


@pytest.mark.parametrize("repeat_ids", [False, True])
@pytest.mark.parametrize("target", WIRES)
def test_conversation_is_continued(target: str, repeat_ids: bool) -> None:
    """Also if a server numbers its calls anew."""
    continued = [
        compare(encode([user("go"), *turns(0, number, repeat_ids=repeat_ids)]), target=target, source="openai-chat")
        for number in range(5, 14)
    ]
    assert continued == [False] + [True] * 8


def test_conversation_whose_options_alternate_is_continued() -> None:
    """Thinking is adaptive inside exchanges that begin without a signature, and has its budget after a user message."""
    thinking = {"enable_thinking": True, "thinking_budget": 2000}
    items: Items = []
    continued: list[bool] = []
    for number in range(0, 12, 2):
        for new in ([user(f"go on {number}")], turns(number, number + 1), turns(number + 1, number + 2)):
            items += new
            continued.append(compare(encode(items, **thinking), target="anthropic", source="qwen"))
        items.append(assistant("done"))
    assert continued.count(False) <= 2, continued


def test_body_with_the_options_of_an_earlier_one_costs_less_than_the_whole() -> None:
    """Although the body before it, which has other options, was converted whole and is a longer part of it."""
    thinking = {"enable_thinking": True, "thinking_budget": 2000}
    requests: list[Items] = [[user("go"), *turns(0, 120), assistant("done"), user("go on")]]
    for new in (turns(120, 121), [assistant("done"), user("go on")], turns(121, 122), turns(122, 123)):
        requests.append([*requests[-1], *new])
    bodies = [encode(items, **thinking) for items in requests]
    work = [count_work(partial(segue.convert, body, target="anthropic", source="qwen")) for body in bodies]
    assert max(work[2:4]) < work[0] / 2, work
    assert work[4] < work[0] / 10, work


@pytest.mark.parametrize("target", WIRES)
def test_first_body_of_a_known_client_is_not_converted_whole(target: str) -> None:
    bodies = [[user("go")], [user("go"), *turns(0, 1)], *([user(f"{n}. go"), *turns(0, n)] for n in range(4))]
    continued = [compare(encode(items), target=target, source="openai-chat") for items in bodies]
    assert continued == [False, True, True, True, True, True]


@pytest.mark.parametrize("target", WIRES)
def test_long_body_is_prepared_at_once(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request of a session costs no more than the third, and both far less than the first."""
    monkeypatch.setattr(sessions.conversations, "max_whole", 0)
    bodies = [encode([user("go"), *turns(0, number)]) for number in (200, 201, 202)]
    first, second, third = [
        count_work(partial(segue.convert, body, target=target, source="openai-chat")) for body in bodies
    ]
    assert second < 1.1 * third
    assert second < first / 20


def test_long_first_bodies_are_kept_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest items are kept decoded, and the settings once for all sessions of a client."""
    monkeypatch.setattr(sessions.conversations, "max_whole", 0)
    tools = [tool(f"tool_{number}", description="Read the files. " * 60, parameters={}) for number in range(100)]

    def convert(number: int) -> int:
        """Return the bytes of the conversation before and after."""
        items = [user(f"go {number}"), *turns(0, 20)]
        items = [{**item, "content": f"{number} →" * 3_000} if item["role"] == "tool" else item for item in items]
        data = encode_json({"model": "gpt-5", "messages": items, "tools": tools})
        rendered = segue.convert(data, target="anthropic", source="openai-chat").data
        return len(data) + len(rendered) - 2 * len(encode_json({"tools": tools}))

    convert(0)
    tracemalloc.start()
    try:
        size = sum(map(convert, range(1, 4)))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 1.5 * size
    finally:
        tracemalloc.stop()


STEPS = ("turn", "turn", "turn", "user", "text", "rewind", "rewind", "fork", "edit")


@pytest.mark.parametrize("target", WIRES)
def test_rewound_and_forked_conversations_equal_the_whole(target: str) -> None:
    """A user goes back and says something else, takes up an earlier branch, or edits a message; short and long."""

    @examples(4)
    @given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 5)), min_size=6, max_size=16))
    def run(steps: list[tuple[str, int]]) -> None:
        sessions.clear()
        items: Items = [user("go")]
        branches: list[Items] = [items]
        for number, (step, size) in enumerate(steps):
            match step:
                case "turn":
                    items = [*items, *turns(number, number + 1)]
                case "user":
                    items = [*items, user(f"message {number}")]
                case "text":
                    items = [*items, assistant(f"text {number}")]
                case "rewind":
                    branches.append(items)
                    items = [*items[: max(len(items) - size, 1)], user(f"instead {number}")]
                case "fork":
                    items = branches[size % len(branches)]
                case _:
                    place = max(len(items) - size, 0)
                    edited = {**items[place], "content": f"edited {number}"}
                    items = [*items[:place], edited, *items[place + 1 :]]
            note(f"{step} {size}")
            compare(encode(items), target=target, source="openai-chat")

    run()


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("turns_made", [1, 5])
def test_user_speaks_in_place_of_a_reply(target: str, turns_made: int) -> None:
    """A rewind to results, and a user message after them: Mistral needs a message between, which is reported."""
    begun = [user("go"), *turns(0, turns_made)]
    longer = [*begun, assistant("So."), user("Thanks."), *turns(turns_made, turns_made + 1)]
    for items in (begun, [*begun, assistant("So.")], [*begun, assistant("So."), user("Thanks.")], longer):
        compare(encode(items), target=target, source="openai-chat")
    for items in ([*begun, user("Stop.")], [*begun, user("Stop."), assistant("Yes.")], begun):
        compare(encode(items), target=target, source="openai-chat")


def claude_items(turns_made: int, *, marked: bool = True) -> Items:
    items: Items = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    for number in range(turns_made):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "f", "input": {"n": number}}
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "found"}
        items += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
    return mark_last(items) if marked else items


@pytest.mark.parametrize("target", WIRES)
def test_moved_cache_markers(target: str) -> None:
    """The last item of a body is another one in the next body. Without a marker, none is reported as dropped."""
    job = {"target": target, "source": "anthropic"}

    def compare_turns(number: int, *, marked: bool = True) -> bool:
        tools = [{"name": "f", "input_schema": {"type": "object"}}]
        body = {"model": "claude-sonnet-4-5", "messages": claude_items(number, marked=marked), "tools": tools}
        return compare(json.dumps({**body, "max_tokens": 99}).encode(), **job)

    assert sum(compare_turns(number) for number in range(7, 16)) >= 6
    compare_turns(16, marked=False)
    compare_turns(17)
    compare_turns(18, marked=False)


@pytest.mark.parametrize("target", ["openai-responses", "azure-foundry", "anthropic"])
@pytest.mark.parametrize("item_id", ["fc_{}", "fc_hist_{}"])
def test_changed_metadata(target: str, item_id: str) -> None:
    """Clients send other metadata with each request, which same-API is sent on. Ids of segue are not."""
    items: Items = [{"role": "user", "content": "go"}]
    continued: list[bool] = []
    for number in range(10):
        ids = {"id": item_id.format("0" * 40 + str(number)), "call_id": f"call_{number}"}
        items += [
            {"type": "function_call", **ids, "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": ids["call_id"], "output": "found"},
        ]
        metadata = {"turn": number, "path": "a/é" * number}
        tools = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
        body = {"model": "gpt-5.1", "input": items, "tools": tools, "store": False}
        body |= {"client_metadata": metadata, "stream": True}
        continued.append(compare(encode_json(body), target=target, source="openai-responses"))
    assert all(continued[4:])


def test_forks_of_a_conversation_are_continued() -> None:
    job = {"target": "anthropic", "source": "openai-chat"}
    shared = [user("go"), *turns(0, 10)]
    for number in (6, 8, 10):
        compare(encode([user("go"), *turns(0, number)]), **job)
    for other in ("left", "right", "left"):
        reply = assistant_calls(call(f"call_{other}"))
        assert compare(encode([*shared, reply, result(f"call_{other}", other)]), **job)


def test_edit_in_the_middle_is_not_continued() -> None:
    job = {"target": "gemini", "source": "openai-chat"}
    items = [user("go"), *turns(0, 12)]
    for end in (30, 33, 36):
        compare(encode(items[:end]), **job)
    edited = [*items[:4], {**items[4], "content": "other"}, *items[5:]] if "tool_call_id" in items[4] else items
    assert edited[4] != items[4] or edited[4].get("role") == "assistant"
    compare(encode([user("other"), *items[1:]]), **job)


@pytest.mark.parametrize("change", [{"temperature": 0.5}, {"tools": []}, {"model": "gpt-4.1"}])
def test_changed_rest_is_not_continued(change: dict[str, Any]) -> None:
    job = {"target": "anthropic", "source": "openai-chat"}
    for number in (6, 7, 8):
        compare(encode([user("go"), *turns(0, number)]), **job)
    assert not compare(encode([user("go"), *turns(0, 9)], **change), **job)


@pytest.mark.parametrize(
    "between",
    [
        b'],"x":[]}',
        b'}],"messages":[]}',
        b'"}',
        b"]}]}",
        b'],"stop":["END"',
        b'],"messages":[{"role":"user","content":"x"}',
    ],
)
@pytest.mark.parametrize("target", ["anthropic", "openai-chat"])
def test_bytes_that_only_look_like_a_continuation(between: bytes, target: str) -> None:
    """The items between a known head and tail must be a list of JSON values."""
    job = {"target": target, "source": "openai-chat"}
    for number in (6, 7, 8):
        compare(encode([user("go"), *turns(0, number)]), **job)
    data = encode([user("go"), *turns(0, 9)])
    cut = data.index(b'], "tools"')
    compare(data[:cut] + between + data[cut:], **job)


@pytest.mark.parametrize("target", WIRES)
def test_late_result(target: str) -> None:
    """The result is moved to its call, so that a reply with text stands before the next call."""
    job = {"target": target, "source": "openai-chat"}
    late = [assistant_calls(call("late")), assistant("Still running."), result("late")]
    for number in range(3, 8):
        compare(encode([user("go"), *turns(0, 3), *late, *turns(3, number)]), **job)


@pytest.mark.parametrize("tool_format", ["llama", "hermes", "auto"])
def test_blank_results(tool_format: str) -> None:
    """In a text tool format, they are a user message that is dropped: then two replies are neighbours."""
    job = {"target": "bedrock", "source": "openai-chat", "tool_format": tool_format}
    blank = [assistant_calls(call("blank")), result("blank", "")]
    for added in ([], blank, [*blank, assistant("Done."), user("more")], [*blank, *turns(3, 5)]):
        compare(encode([user("go"), *turns(0, 3), *added]), **job)


@pytest.mark.parametrize("target", ["qwen", "anthropic", "gemini"])
def test_id_of_a_call_with_several_results_is_used_again(target: str) -> None:
    """All results are paired anew: an early one, and one that is sent twice."""
    job = {"target": target, "source": "openai-chat"}
    turn, again = [assistant_calls(call("a")), result("a", "one")], [assistant_calls(call("a")), result("a", "two")]
    for before, after in (([result("a", "one")], []), ([], [result("a", "one")]), ([], [result("a", "other")])):
        sessions.clear()
        items = [*before, user("go"), *turn, *after]
        for added in ([], again, [*again, *turns(0, 1)]):
            compare(encode([*items, *added]), **job)


def test_orphan_opens_another_exchange() -> None:
    """Same-API, reasoning is disabled in an exchange that does not begin with it."""
    job = {"target": "anthropic", "source": "anthropic"}
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": "found"}]}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    items = claude_items(5, marked=False)
    items[1]["content"].insert(0, thinking)
    for last in (7, 9, 11):
        sent = [*items[:7], orphan, *items[7:last]]
        tools = [{"name": "f", "input_schema": {"type": "object"}}]
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9000, "messages": sent, "tools": tools}
        thinking_on = {"thinking": {"type": "enabled", "budget_tokens": 4096}}
        compare(json.dumps({**body, **thinking_on}).encode(), **job)


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("tool_format", ["auto", "hermes"])
def test_new_items_declare_tools(target: str, tool_format: str) -> None:
    def declare(name: str) -> dict[str, Any]:
        return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}

    def answered(name: str, call_id: str) -> Items:
        called = {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
        return [called, {"type": "function_call_output", "call_id": call_id, "output": "found"}]

    search = {"type": "tool_search_call", "call_id": "search", "execution": "client", "arguments": {"q": 1}}
    found = {"type": "tool_search_output", "call_id": "search", "execution": "client", "tools": [declare("late")]}
    tools = [declare("read"), {"type": "namespace", "name": "ns", "description": "d", "tools": [declare("bare")]}]
    items: Items = [{"role": "user", "content": "go"}]
    for number in range(3):
        items += answered("read", f"call_{number}")
    longer = [*items, *answered("read", "call_3")]
    searched = [*longer, search, found]
    for sent in (items, longer, searched, [*searched, *answered("late", "call_4")], longer):
        data = json.dumps({"model": "gpt-5.1", "input": sent, "tools": tools, "store": False}).encode()
        compare(data, target=target, source="openai-responses", tool_format=tool_format)


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "bedrock"])
def test_argument_with_the_name_of_a_marker(target: str) -> None:
    """A client removes the argument from a call in its history, and moves its marker."""
    for changed in range(3, 7):
        sessions.clear()
        for number in range(4, 9):
            items = claude_items(number)
            if number < 8:
                for item in items[2 * changed + 1 : 2 * changed + 2]:
                    item["content"][0]["input"] = {"n": changed, "cache_control": {"type": "ephemeral"}}
            body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": items}
            compare(json.dumps(body).encode(), target=target, source="anthropic")


def test_values_that_python_compares_equal() -> None:
    """An edit that replaces 1 by 1.0 or true in the last item, whose marker moves."""
    for value in (1.0, True):
        sessions.clear()
        for number, argument in ((4, 1), (5, value)):
            items = claude_items(number)
            items[7]["content"][0]["input"] = {"n": argument}
            items[8] = mark_last([items[8]])[0] if number == 4 else items[8]
            body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": items}
            compare(json.dumps(body).encode(), target="openai-chat", source="anthropic")


def test_new_findings_stand_where_the_full_pipeline_puts_them() -> None:
    """A renamed tool, a dropped name and a second result, each in a request of its own."""
    job = {"target": "anthropic", "source": "openai-chat"}
    first = [user("go"), *turns(0, 2)]
    renamed = [assistant_calls(call("odd", "a.b")), result("odd")]
    named = [{**assistant_calls(call("named")), "name": "bot"}, result("named")]
    doubled = [assistant_calls(call("doubled")), result("doubled", "one"), result("doubled", "two")]
    for added in ([], [*named], [*named, *renamed], [*named, *renamed, *doubled]):
        compare(encode([*first, *added], logit_bias={"1": 1}), **job)


def test_findings_of_one_stage() -> None:
    """Of the target's wire: on a field of the body, then on an item, which stands before."""

    def part(kind: str, name: str) -> dict[str, Any]:
        value = {"name": name, "args" if kind == "functionCall" else "response": {"n": 1}}
        return {"role": "model" if kind == "functionCall" else "user", "parts": [{kind: value}]}

    tools = [{"functionDeclarations": [{"name": name} for name in "fg"]}]
    items: Items = [{"role": "user", "parts": [{"text": "go"}]}]
    for name in "ffgf":
        items = [*items, part("functionCall", "f"), part("functionResponse", name)]
        body = {"contents": items, "tools": tools, "foo": 1}
        compare(json.dumps(body).encode(), target="gemini", source="gemini")


def test_caller_may_change_what_it_got() -> None:
    job = {"target": "anthropic", "source": "openai-chat"}
    converted = segue.convert(encode([user("go"), *turns(0, 3)]), **job)
    converted.body["messages"][0]["content"] = "changed"
    converted.report.add("dropped", "something else")
    compare(encode([user("go"), *turns(0, 4)]), **job)


def test_repeated_bodies_are_remembered_once() -> None:
    data = encode([user("go"), *turns(0, 3)])
    for _ in range(4):
        compare(data, target="anthropic", source="openai-chat")
        compare(encode([user("go"), *turns(0, 40)]), target="gemini", source="openai-chat")
    assert len(sessions.conversations) <= 4


def test_large_bodies_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode([user("go"), *turns(0, 3)])
    monkeypatch.setattr(sessions, "_MAX_WHOLE", len(data) - 1)
    segue.convert(data, target="anthropic", source="openai-chat")
    assert not len(sessions.conversations)


def test_conversations_in_several_threads() -> None:
    job = {"target": "openai-responses", "source": "openai-chat"}
    bodies = [[encode([user(f"go {n}"), *turns(0, number)]) for number in range(5, 12)] for n in range(4)]
    expected = [[convert_whole(data, **job) for data in run] for run in bodies]

    def convert(run: list[bytes]) -> list[segue.Converted]:
        return [segue.convert(data, **job) for data in run]

    with ThreadPoolExecutor(8) as pool:
        # Each conversation in two threads at once.
        converted = list(pool.map(convert, [*bodies, *bodies]))
    for results, others in zip(converted, [*expected, *expected], strict=True):
        for one, other in zip(results, others, strict=True):
            check_equal(one, other)


def test_memory_is_bounded() -> None:
    memory = ConversationMemory(max_count=3, max_size=100_000)
    job = ConvertJob(target=WIRES["anthropic"], source=WIRES["openai-chat"])
    for number in range(8):
        for length in (8, 9, 10):
            data = encode([user(f"go {number}"), *turns(0, length)])
            if memory.convert(data, job) is None:
                memory.add(data, convert_request(json.loads(data), job), job)
            assert len(memory) <= 3
            assert memory.size <= 100_000
    assert len(memory)
    memory.clear()
    assert (len(memory), memory.size) == (0, 0)


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-responses"])
def test_work_of_one_more_request_does_not_grow(target: str) -> None:
    def work(length: int) -> int:
        sessions.clear()
        for number in (length - 2, length - 1, length):
            segue.convert(encode([user("go"), *turns(0, number)]), target=target, source="openai-chat")
        data = encode([user("go"), *turns(0, length + 1)])
        return count_work(lambda: segue.convert(data, target=target, source="openai-chat").data)

    work(10)
    assert work(300) < 1.5 * work(30)


def test_a_conversation_is_held_once_in_each_form() -> None:
    """The bytes that a longer body begins with, and those that it is converted to."""

    def convert(number: int) -> int:
        items = [user(f"go {number}"), *turns(0, 20)]
        items = [{**item, "content": f"{number}" * 10_000} if item["role"] == "tool" else item for item in items]
        bodies = [encode([*items, *turns(20, stop)]) for stop in (20, 21, 22)]
        for body in bodies:
            segue.convert(body, target="anthropic", source="openai-chat")
        return len(bodies[-1])

    convert(0)
    convert(1)
    tracemalloc.start()
    try:
        size = convert(2)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 2.5 * size
    finally:
        tracemalloc.stop()

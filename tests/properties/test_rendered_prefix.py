"""A growing conversation: incremental rendering gives the bytes of a full render."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Media, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply
from segue.conversion import target as render_target
from segue.render.report import Finding
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.work import count_work

TARGETS = list(WIRES)
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("look", "read file", "run")
]
PICTURE = Media("image", "image/png", data="iVBORw0KGgo=")

texts = st.sampled_from(["yes", "go on", "what?", "", " ", "twice"])
names = st.sampled_from(["look", "read file", "run", "unknown.tool"])
ids = st.sampled_from(["call_1", "call_2", "toolu_01", "functions.look:0", None, ""])


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    provider = draw(st.sampled_from(["openai", "anthropic", "gemini", "kimi", "mistral", "bedrock"]))
    blocks: list[Any] = []
    if draw(st.booleans()):
        origin = Origin(provider, draw(st.sampled_from(["claude-sonnet-5", "gpt-5", None])), identity="absent")
        blocks.append(Thinking("hm", draw(st.sampled_from([None, "c2ln"])), origin=origin))
    if draw(st.booleans()):
        blocks.append(Text(draw(texts)))
    made = [
        ToolCall(draw(names), {"n": 1}, origin=Origin(provider, raw_id=draw(ids) or None))
        for _ in range(draw(st.integers(0, 3)))
    ]
    blocks += made
    return Reply(tuple(blocks or [Text("well")]))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("user"), texts),
        st.tuples(st.just("picture"), st.just("")),
        st.tuples(st.just("reply"), replies()),
        st.tuples(st.just("results"), st.sampled_from(["all", "all", "all", "some", "reversed", "cancel"])),
        st.tuples(st.just("again"), st.just("")),
        st.tuples(st.just("render"), st.just("")),
        st.tuples(st.just("render"), st.just("")),
        st.tuples(st.just("target"), st.sampled_from(TARGETS)),
    ),
    max_size=30,
)


def apply_steps(chat: segue.Conversation, what: str, how: Any) -> None:
    match what:
        case "user":
            chat.add_user(how or "and?")
        case "picture":
            chat.add_user([Text("see"), PICTURE])
        case "reply":
            chat.add_reply(how)
        case "results":
            waiting = chat.pending
            for call in waiting[::-1] if how == "reversed" else waiting[:1] if how == "some" else waiting:
                chat.cancel(call) if how == "cancel" else chat.add_result(call, f"{call.name} did it")
        case "again":
            known = [call for message in chat.messages for call in message.blocks if isinstance(call, ToolCall)]
            if known:
                chat.add_result(known[0], "late or twice")
        case _:
            pass


def _findings(rendered: segue.Rendered) -> dict[Finding, tuple[set[str], set[str]]]:
    findings = rendered.report.findings
    assert len({finding.key for finding in findings}) == len(findings)
    return {finding.key: (set(finding.call_ids), set(finding.paths)) for finding in findings}


def render_whole(chat: segue.Conversation, target: str, model: str | None = None) -> segue.Rendered:
    """The same conversation, rendered without a cache."""
    return segue.Conversation.load(chat.dump()).render(target, model)


@examples(4)
@given(first=st.sampled_from(TARGETS), scenario=steps)
def test_incremental_bytes_equal_a_full_render(first: str, scenario: list[tuple[str, Any]]):
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    target = first
    for what, how in [*scenario, ("render", "")]:
        apply_steps(chat, what, how)
        target = how if what == "target" else target
        if what == "render":
            expected = render_whole(chat, target)
            rendered = chat.render(target)
            assert b"".join(rendered.fragments) == expected.data
            assert rendered.body == expected.body
            assert rendered.report.emitted_calls == expected.report.emitted_calls
            assert rendered.report.emitted_results == expected.report.emitted_results
            assert _findings(rendered) == _findings(expected)


EMPTY_TURNS: dict[str, list[Any]] = {
    "only reasoning": [Reply((Thinking("hm", origin=Origin("deepseek", identity="absent")),)), "next"],
    "empty reply": [Reply(()), "next"],
    "blank reply": [Reply((Text(" "),)), "next", "more"],
    "empty user message": ["", "next"],
    "blank user message": [" ", "next", Reply((Text("well"),))],
    "empty user message after a reply": [Reply((Text("well"),)), "", "next"],
    "reasoning twice": [Reply((Thinking("hm", origin=Origin("kimi", identity="absent")),))] * 2,
}


@pytest.mark.parametrize("steps_after", EMPTY_TURNS.values(), ids=EMPTY_TURNS)
@pytest.mark.parametrize("target", TARGETS)
def test_message_that_a_target_drops(target: str, steps_after: list[Any]) -> None:
    """A dropped message separates nothing: what stands beside it is merged, as in a full render."""
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    for number, provider in enumerate(["anthropic", "openai", "anthropic"]):
        call = ToolCall("look", {"n": number}, origin=Origin(provider, raw_id=f"toolu_{number}"))
        for added in chat.add_reply(Reply((call,))).calls:
            chat.add_result(added, "done")
        chat.render(target)
    for step in [*steps_after, *steps_after]:
        chat.add_user(step) if isinstance(step, str) else chat.add_reply(step)
        expected = render_whole(chat, target)
        rendered = chat.render(target)
        assert rendered.data == expected.data
        assert _findings(rendered) == _findings(expected)
        assert all(violation.severity != "reject" for violation in segue.check(rendered.body, target))


@pytest.mark.parametrize("target", TARGETS)
def test_late_result_after_a_reply_without_calls(target: str) -> None:
    """The result is moved to its call, so the replies around it are neighbours."""
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("begin")
    for number in range(8):
        chat.add_reply(Reply((ToolCall("look", {"n": number}, origin=Origin("openai")),)))
        if number % 4 == 2:
            chat.add_reply(Reply((Text("I wait."),)))
        for pending in chat.pending:
            chat.add_result(pending, "found")
        assert chat.render(target).data == render_whole(chat, target).data


def agent(chat: segue.Conversation, number: int, provider: str) -> None:
    if number % 5 == 0:
        chat.add_user(f"Question {number}")
    thought = Thinking(f"thought {number}", origin=Origin(provider, identity="absent"))
    calls = [
        ToolCall(name, {"path": f"src/{number}"}, origin=Origin(provider, raw_id=f"call_{number % 7}"))
        for name in ("look", "run")
    ]
    for call in chat.add_reply(Reply((thought, Text("I look."), *calls))).calls:
        chat.add_result(call, f"result {number} " * 20)
    if number % 5 == 4:
        chat.add_reply(Reply((Text("So it is."),)))


def render_counted(chat: segue.Conversation, target: str, sizes: list[int], model: str | None = None) -> segue.Rendered:
    """Render, and append the number of messages of each render that this needs."""
    real = render_target.render_for

    def counted(request: Any, *given: Any, **more: Any) -> Any:
        sizes.append(len(request.messages))
        return real(request, *given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render_target, "render_for", counted)
        return chat.render(target, model)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("target", TARGETS)
def test_long_conversation_is_rendered_incrementally(target: str, provider: str):
    """Turn by turn the bytes are those of the whole, what stood there stands, and only the new part is looked at."""
    sizes: list[int] = []
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    earlier: list[Any] = []
    for number in range(16):
        agent(chat, number, provider)
        expected = render_whole(chat, target).data
        rendered = render_counted(chat, target, sizes)
        assert rendered.data == expected
        entries = rendered.body[WIRES[target].conversation_key]
        assert entries[: max(0, len(earlier) - 2)] == earlier[:-2]
        earlier = entries
    assert max(sizes[-8:]) <= 20, sizes


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_incremental_rendering_resumes_after_a_late_result(target: str):
    """The next cut is before the first reply to results that follows the late result."""
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("begin")
    [late] = chat.add_reply(Reply((ToolCall("look", {}),))).calls
    for number in range(20):
        agent(chat, number, "anthropic")
    chat.add_result(late, "late")
    sizes: list[int] = []
    for number in range(20, 30):
        agent(chat, number, "anthropic")
        expected = render_whole(chat, target).data
        assert render_counted(chat, target, sizes).data == expected
    assert max(sizes[-8:]) <= 20, sizes


KINDS: dict[str, dict[str, Any]] = {
    "tools": {"tools": TOOLS},
    "no tools": {"tools": ()},
    "text tool format": {"tools": TOOLS, "tool_format": "hermes"},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("target", ["openai-chat", "bedrock"])
def test_work_of_one_more_turn_does_not_grow(target: str, kind: dict[str, Any]) -> None:
    """At 50 times the length, a turn costs less than twice as much."""
    options = {key: value for key, value in kind.items() if key != "tools"}

    def work(turns: int) -> int:
        chat = segue.Conversation(tools=kind["tools"])
        chat.add_user("begin")
        for number in range(turns):
            agent(chat, number, "openai")
        for number in range(turns, turns + 3):
            chat.render(target, **options)
            agent(chat, number, "openai")
        return count_work(lambda: chat.render(target, **options).fragments)

    assert work(500) < 2 * work(10)


def test_work_of_the_report_on_one_more_turn_does_not_grow() -> None:
    """The reports on all turns are joined, each time with one more."""

    def work(turns: int) -> int:
        chat = segue.Conversation(tools=TOOLS)
        chat.add_user("begin")
        for number in range(turns):
            assert not chat.render("openai-chat").report.findings_of("synthetic")
            agent(chat, number, "openai")
        return count_work(lambda: chat.render("openai-chat").report.findings)

    assert work(200) < 2 * work(10)

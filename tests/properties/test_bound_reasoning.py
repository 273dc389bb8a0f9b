"""Reasoning that is bound to everything before it (ANT-28), in a growing conversation.

Digests, bytes and findings are those of a full render, after every operation; a turn costs the same at any length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

import segue
from segue.canonical.blocks import Code, Media, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply
from segue.render.reasoning_prefix import digest_transcript
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore
from tests.budget import SOAK, examples
from tests.properties.test_live_conversation import TOOLS, LiveConversation, Target, find_findings
from tests.properties.test_render_pieces import check_pieces
from tests.properties.test_rendered_prefix import render_counted
from tests.work import count_work

BOUND_MODEL = "claude-fable-5-1"
DIGESTS = [
    "2f46b419a54d2c94517b945035063a8e14fa75068bc253c35443b2a0abc6ab9b",
    "69261b780a40085b4194f8bcb012b135656ee145f3c58aeb993aae9576160027",
    "171d33a62d2c8e0082e7712ea3c7e92d37592a9320f7c07f72107577e4c3d1d9",
    "d5e607b8310f173175a503c80b8b783c547571202ec8a094bd6b30c1b590d593",
]


def build_bound_reply(number: int, text: str, *calls: ToolCall) -> Reply:
    thought = Thinking(f"thought {number}", "c2ln", origin=Origin("anthropic", BOUND_MODEL, identity="absent"))
    return Reply((thought, Text(text), *calls), model=BOUND_MODEL)


def take_bound_turn(chat: segue.Conversation, number: int, *, raw_id: str | None = None, text: str = "I look.") -> None:
    """A reply of a model whose reasoning is bound to its prefix, and the results of its calls."""
    if number % 5 == 0:
        chat.add_user(f"Question {number}")
        chat.render("anthropic", BOUND_MODEL)
    call = ToolCall("look", {"n": number}, origin=Origin("anthropic", raw_id=raw_id or f"toolu_{number}"))
    for made in chat.add_reply(build_bound_reply(number, text, call)).calls:
        chat.add_result(made, f"result {number}")
    if number % 5 == 4:
        chat.render("anthropic", BOUND_MODEL)
        chat.add_reply(Reply((Text("So it is."),), model=BOUND_MODEL))


def digest_last(chat: segue.Conversation) -> str:
    """The digest of the last request."""
    assert chat.state.sent_transcript is not None
    return digest_transcript(chat.state.sent_transcript)


def count_reasoning(rendered: segue.Rendered) -> int:
    return rendered.data.count(b'"type":"thinking"')


TURNS = ("turn", "turn", "turn", "turn", "repeated id", "blank", "system", "unrendered")


@examples(1)
@given(turns=st.lists(st.sampled_from([*TURNS, "compress"]), min_size=8, max_size=20))
def test_bound_reasoning_is_rendered_incrementally(turns: list[str]) -> None:
    """Digests, bytes and findings are those of a full render, also after a change has made reasoning stale."""
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    for number, kind in enumerate(turns):
        if kind == "system":
            chat.system = f"Be brief, {number}."
        elif kind == "compress":
            chat.compress("truncate-results", 100)
        whole = segue.Conversation.load(chat.dump())
        expected = whole.render("anthropic", BOUND_MODEL)
        if kind != "unrendered":
            rendered = chat.render("anthropic", BOUND_MODEL)
            assert rendered.data == expected.data
            assert find_findings(rendered) == find_findings(expected)
            assert digest_last(chat) == digest_last(whole)
        raw_id = "toolu_same" if kind == "repeated id" else None
        take_bound_turn(chat, number, raw_id=raw_id, text=" " if kind == "blank" else "I look.")


@examples(1)
@given(
    turns=st.lists(st.sampled_from(TURNS), min_size=8, max_size=20), size=st.integers(1, 6), segment=st.integers(1, 4)
)
def test_bound_reasoning_is_rendered_in_pieces(turns: list[str], size: int, segment: int) -> None:
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    for number, kind in enumerate(turns):
        if kind == "system":
            chat.system = f"Be brief, {number}."
        if kind != "unrendered":
            chat.render("anthropic", BOUND_MODEL)
        raw_id = "toolu_same" if kind == "repeated id" else None
        take_bound_turn(chat, number, raw_id=raw_id, text=" " if kind == "blank" else "I look.")
    assert check_pieces(chat, "anthropic", BOUND_MODEL, size=size, segment=segment)


def test_bound_reasoning_goes_back_until_its_prefix_changes() -> None:
    """Only the newest messages are rendered, before and after a change."""
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("begin")
    sizes: list[int] = []
    for number in range(40):
        if number == 20:
            chat.system = "Be brief."
        rendered = chat.render("anthropic", BOUND_MODEL)
        assert count_reasoning(rendered) == (number if number < 20 else 0)
        expected = segue.Conversation.load(chat.dump()).render("anthropic", BOUND_MODEL)
        assert rendered.data == expected.data
        take_bound_turn(chat, number)
        if number > 30 or 10 < number < 20:
            real: list[int] = []
            render_counted(chat, "anthropic", real, BOUND_MODEL)
            sizes += real
    assert max(sizes) <= 30, sizes


def test_work_of_one_more_turn_with_bound_reasoning_does_not_grow() -> None:
    """At 50 times the length, a turn costs less than twice as much: its render and the record of its reply."""

    def work(turns: int) -> int:
        chat = segue.Conversation(tools=TOOLS)
        chat.add_user("begin")
        for number in range(turns):
            take_bound_turn(chat, number)
        for number in range(turns, turns + 3):
            chat.render("anthropic", BOUND_MODEL)
            take_bound_turn(chat, number)

        def take_turn() -> None:
            chat.render("anthropic", BOUND_MODEL)
            take_bound_turn(chat, turns + 3)

        return count_work(take_turn)

    assert work(500) < 2 * work(10)


def test_reasoning_is_bound_to_the_declared_tools() -> None:
    """A stub is declared once there are calls: the tools differ from those that the first reply is bound to."""
    chat = segue.Conversation()
    chat.add_user("begin")
    for number in range(3):
        rendered = chat.render("anthropic", BOUND_MODEL)
        assert bool(rendered.body.get("tools")) == bool(number)
        assert not count_reasoning(rendered)
        take_bound_turn(chat, number + 1)


def test_restricted_tools_do_not_change_between_turns() -> None:
    allowed = {"mode": "auto", "allowed": ["look"]}
    chat = segue.Conversation(tools=TOOLS, tool_choice=allowed)
    chat.add_user("begin")
    for number in range(3):
        rendered = chat.render("anthropic", BOUND_MODEL)
        assert len(rendered.body["tools"]) == 1
        assert count_reasoning(rendered) == number
        take_bound_turn(chat, number + 1)


def test_digests_are_those_of_earlier_versions() -> None:
    """Digests are stored with the reasoning, so their definition must not change."""
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user([Text("see"), Media("image", "image/png", data="iVBORw0KGgo="), Code("print()", "python")])
    chat.render("anthropic", BOUND_MODEL)
    for number in range(1, 4):
        take_bound_turn(chat, number, raw_id=(None, None, "invalid.id", "toolu_1")[number])
        chat.render("anthropic", BOUND_MODEL)
    chat.add_user("and?")
    chat.render("anthropic", BOUND_MODEL)
    chat.add_reply(build_bound_reply(4, "So it is."))
    thoughts = [block for message in chat.messages for block in message.blocks if isinstance(block, Thinking)]
    assert [block.prefix for block in thoughts] == DIGESTS


# --------------------------------------------------------------------------------------------------- random operations

bound_targets = st.sampled_from(
    [
        *[Target("anthropic", BOUND_MODEL)] * 3,
        Target("anthropic", BOUND_MODEL, policy=(("ids", "canonical"),)),
        Target("anthropic", BOUND_MODEL, policy=(("ids", "native"),)),
        Target("anthropic", BOUND_MODEL, policy=(("reasoning", "text"),)),
        Target("anthropic", BOUND_MODEL, policy=(("orphans", "drop"),)),
        Target("anthropic", BOUND_MODEL, tool_format="hermes"),
        Target("anthropic", "claude-sonnet-4-5"),
        Target("openai-chat"),
    ]
)


class BoundConversation(LiveConversation):
    """A conversation with replies of a model whose reasoning is bound, and targets of that model and others."""

    @initialize(
        pool=st.lists(bound_targets, min_size=1, max_size=3),
        system=st.sampled_from([None, "Be brief."]),
        tools=st.sampled_from([TOOLS, TOOLS, []]),
    )
    def begin(self, pool: list[Target], system: str | None, tools: list[Any]) -> None:
        self.pool = pool
        self.turn = 0
        self.sent_ids: dict[Target, dict[str, str]] = {}
        self.chat = StoredConversation.create(self.store, segue.Conversation(system=system, tools=tools))
        self.chat.add_user("begin")

    @rule(
        count=st.integers(1, 4),
        raw_id=st.sampled_from([None, None, None, "toolu_same", "invalid.id", "call_0"]),
        text=st.sampled_from(["I look.", "I look.", " ", ""]),
        name=st.sampled_from(["look", "look", "read file", "undeclared.tool"]),
        is_rendered=st.booleans(),
    )
    def take_bound_turns(self, count: int, raw_id: str | None, text: str, name: str, is_rendered: bool) -> None:
        """Replies with reasoning and their results; some of them are no reply to a render."""
        for _ in range(count):
            if is_rendered:
                self.render_next()
            number = len(self.chat.messages)
            call = ToolCall(name, {"n": number}, origin=Origin("anthropic", raw_id=raw_id or f"toolu_{number}"))
            self.chat.add_reply(build_bound_reply(number, text, call))
            for pending in self.chat.pending:
                self.chat.add_result(pending, f"result {number}")

    @rule()
    def end_exchange(self) -> None:
        self.render_next()
        self.chat.add_reply(build_bound_reply(len(self.chat.messages), "So it is."))
        self.chat.add_user("and?")
        self.render_next()

    def render_next(self) -> segue.Conversation:
        target = self.pool[self.turn % len(self.pool)]
        fresh = super().render_next()
        if target.model == BOUND_MODEL:
            assert digest_last(self.chat.chat) == digest_last(fresh), target
        return fresh

    def every_api_accepts_it(self) -> None:
        """Other targets are those of `LiveConversation`."""


def test_random_operations(tmp_path: Path) -> None:
    class Here(BoundConversation):
        pass

    some = settings(examples(0.6), stateful_step_count=30 if SOAK else 12)
    some = settings(some, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    with SqliteStore(tmp_path / "conversations.db") as Here.store:
        run_state_machine_as_test(Here, settings=some)

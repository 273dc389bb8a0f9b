"""A stored conversation against one in memory: any order of operations, reopened at any time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import segue
from segue.canonical.blocks import Media, Origin, Text, Thinking, ToolCall
from segue.canonical.compress import STRATEGIES
from segue.canonical.request import Reply, Usage
from segue.conversion.segments import RenderedPrefix
from segue.store.conversation import StoredConversation
from segue.store.sql import SqlStore
from segue.store.sqlite import SqliteStore
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.conversations.table import CASES
from tests.store.conftest import ENGINES, Engine
from tests.store.reply_bodies import reply_body

TARGETS = list(WIRES)
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("look", "read_file", "run")
]
PICTURE = Media("image", "image/png", data="iVBORw0KGgo=")
GONE = "interrupted: the process that ran it is gone"

texts = st.sampled_from(["yes", "go on", "größer 東京", "twice ", "a long one " * 40])
tools = st.sampled_from(["look", "read_file", "run", "unknown.tool"])
raw_ids = st.sampled_from(["call_1", "call_1", "toolu_01", "functions.look:0", "hist_tool_abc", None])
budgets = st.sampled_from([0, 60, 200, 600])
targets = st.sampled_from(TARGETS)

Chat = segue.Conversation | StoredConversation


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """A reply as a caller makes it: of any provider, with calls that may be broken or have no id."""
    provider = draw(st.sampled_from(["openai", "anthropic", "gemini", "kimi", "mistral", "bedrock", "local"]))
    model = draw(st.sampled_from(["claude-opus-4-6", "gpt-5.1", None]))
    blocks: list[Any] = []
    if draw(st.booleans()):
        origin = Origin(provider, model, identity="absent")
        signed = "c2ln" if provider in ("anthropic", "bedrock", "gemini") and draw(st.booleans()) else None
        blocks.append(Thinking("hm", signed, origin=origin))
    if draw(st.booleans()):
        blocks.append(Text(draw(texts)))
    for number in range(draw(st.integers(0, 3))):
        origin = Origin(provider, raw_id=draw(raw_ids))
        broken = draw(st.integers(0, 9)) == 0
        reply_data: dict[str, Any] = {"arguments": None, "arguments_text": '{"n": ', "broken": True} if broken else {}
        blocks.append(ToolCall(draw(tools), **{"arguments": {"n": number}, **reply_data}, origin=origin))
    usage = draw(st.sampled_from([None, Usage(input=40), Usage(input=2_000)]))
    return Reply(tuple(blocks or [Text("well")]), usage=usage, model=model)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A reply as its API gives it."""
    wire = draw(targets)
    calls = draw(st.lists(st.tuples(tools, raw_ids), max_size=2))
    thought, text = draw(st.sampled_from(["", "I wonder"])), draw(texts) if draw(st.booleans()) or not calls else ""
    return reply_body(wire, thought=thought, text=text, calls=calls, tokens=draw(st.sampled_from([0, 90, 900]))), wire


def known_calls(chat: segue.Conversation) -> list[ToolCall]:
    return [entry.call for entry in chat.state.history.ledger.values()]


def state(chat: segue.Conversation) -> dict[str, Any]:
    """All that counts."""
    history = chat.state.history
    return {
        "messages": history.messages,
        "ledger": dict(history.ledger),
        "order": list(history.ledger),
        "pending": [call.id for call in history.pending],
        "doubted": set(history.conflicting),
        "turns": history.turns,
        "settings": chat.state.request,
        "cut": history.has_gaps,
        "tokens": chat.state.token_estimator,
    }


def copied(chat: segue.Conversation) -> segue.Conversation:
    made = segue.Conversation.load(chat.dump())
    made.state.last_request = chat.state.last_request
    copy_orphan_counts(chat, made)
    return made


def copy_orphan_counts(source: segue.Conversation, copy: segue.Conversation) -> None:
    """A dump does not have the count of dropped orphans; it only decides the ids of later ones."""
    copy.state.history._pairer._orphan_counts = defaultdict(int, source.state.history._pairer._orphan_counts)


def turn_keys(chat: segue.Conversation) -> list[str]:
    return [key for key in dict.fromkeys(message.turn_key for message in chat.messages) if key is not None]


class StoredConversationMachine(RuleBasedStateMachine):
    """Every rule is done to the kept conversation, to one in memory, and to what that would be without compressions."""

    @staticmethod
    def stores() -> list[SqlStore]:
        raise NotImplementedError

    @staticmethod
    def tick(seconds: float) -> None:
        raise NotImplementedError

    @initialize(body=st.booleans(), title=st.sampled_from([None, "a title"]))
    def begin(self, body: bool, title: str | None) -> None:
        self.first, self.second = self.stores()
        chat = segue.Conversation(system="Be brief.", tools=TOOLS)
        chat.add_user("begin")
        if body:
            # Begun elsewhere, with all that may be known beside messages.
            call, other = chat.add_reply(reply_body("kimi", calls=[("look", "a"), ("run", None)])).calls
            chat.add_result(call, "one")
            chat.add_result(call, "another")
            chat.render("anthropic")
            chat.add_reply(reply_body("anthropic", thought="so", text="fine", tokens=900))
            chat.add_result(other, "late")
            chat.compress("truncate-results", 0)
        self.model = chat
        self.live = StoredConversation.create(self.first, copied(chat), title=title)
        self.without: list[segue.Conversation] = []
        self.fresh = False
        self.keys = set(turn_keys(self.model))
        self.compare()

    # ------------------------------------------------------------------------------------------------- what is done

    def write(
        self, do: Callable[[Any], Any], *, ends: ToolCall | None = None, then: Callable[[], None] | None = None
    ) -> Any:
        """Applies a change to all. The first write interrupts calls that another process left open."""
        done = do(self.live)
        asked = self.model.state.last_request
        for chat in (self.model, *self.without):
            if self.fresh:
                for call in chat.pending:
                    if ends is None or call.id != ends.id:
                        chat.interrupt(call, GONE)
            # What was sent is what was sent, whatever stood in it.
            chat.state.last_request = asked
            do(chat)
        self.fresh = False
        if then is not None:
            then()
        self.compare()
        return done

    @rule(text=texts, picture=st.booleans())
    def add_user(self, text: str, picture: bool) -> None:
        self.write(lambda chat: chat.add_user([Text(text), PICTURE] if picture else text))

    @rule(reply=replies())
    def add_reply(self, reply: Reply) -> None:
        self.replied(lambda chat: chat.add_reply(reply))

    @rule(reply_data=bodies())
    def add_reply_of_a_wire(self, reply_data: tuple[dict[str, Any], str]) -> None:
        self.replied(lambda chat: chat.add_reply(reply_data[0], source=reply_data[1]))

    def replied(self, do: Callable[[Any], Reply]) -> None:
        reply = self.write(do)
        key = self.model.messages[-1].turn_key
        assert key is not None
        assert key not in self.keys, "a turn key came back"
        self.keys.add(key)
        assert all(call.id in self.model.state.history.ledger for call in reply.calls)

    @precondition(lambda self: self.model.pending)
    @rule(which=st.integers(0, 5), error=st.booleans(), value=st.sampled_from(["done", "x" * 900, {"n": [1, 2.5]}]))
    def add_result(self, which: int, error: bool, value: Any) -> None:
        call = self.model.pending[which % len(self.model.pending)]
        self.write(lambda chat: chat.add_result(call.id, value, error=error), ends=call)

    @precondition(lambda self: self.model.pending)
    @rule()
    def add_all_results(self) -> None:
        for call in self.model.pending:
            self.write(lambda chat, call=call: chat.add_result(call, f"{call.name} did it"), ends=call)

    @precondition(lambda self: self.model.state.history.ledger)
    @rule(which=st.integers(0, 50), value=st.sampled_from(["done", "something else"]))
    def add_result_late_or_twice(self, which: int, value: str) -> None:
        calls = known_calls(self.model)
        call = calls[which % len(calls)]
        self.write(lambda chat: chat.add_result(call, value), ends=call)

    @precondition(lambda self: any(call.raw_id for call in self.model.state.history.newest_calls))
    @rule(which=st.integers(0, 5))
    def add_result_by_raw_id(self, which: int) -> None:
        named = [call.raw_id for call in self.model.state.history.newest_calls if call.raw_id]
        raw_id = named[which % len(named)]
        if raw_id in self.model.state.history.ledger:
            return
        self.write(lambda chat: chat.add_result(raw_id, "by raw id"), ends=self.model.state.find_call(raw_id))

    @rule(raw_id=raw_ids, name=st.sampled_from(["look", None]))
    def add_maybe_orphan_result(self, raw_id: str | None, name: str | None) -> None:
        item = {"type": "function_call_output", "call_id": raw_id or "", "output": "from somewhere"}
        [block] = segue.parse_item(item, "openai", wire_type=None)
        self.write(lambda chat: chat.add_blocks(block))

    @precondition(lambda self: self.model.pending)
    @rule()
    def cancel(self) -> None:
        call = self.model.pending[-1]
        self.write(lambda chat: chat.cancel(call), ends=call)

    @rule(wire=targets)
    def render(self, wire: str) -> None:
        self.rendered(wire)

    @rule(wire=targets)
    def send(self, wire: str) -> None:
        self.rendered(wire)
        self.write(lambda chat: chat.mark_sent())

    @rule(system=st.sampled_from(["Be brief.", "Be long.", None]), fewer=st.booleans())
    def set(self, system: str | None, fewer: bool) -> None:
        def change(chat: Chat) -> None:
            if isinstance(chat, StoredConversation):
                chat.update_settings(system=system, tools=TOOLS[:2] if fewer else TOOLS)
            else:
                chat.system, chat.tools = system, TOOLS[:2] if fewer else TOOLS

        self.write(change)

    @rule(wire=targets, title=st.sampled_from(["", "another title"]))
    def metadata_change(self, wire: str, title: str) -> None:
        def change(chat: Chat) -> None:
            if isinstance(chat, StoredConversation):
                chat.switch(wire, "some-model")
                chat.rename(title)
                chat.record_broken(Reply((Text("half an ans"),), finish="error"))

        self.write(change)
        line = self.live.state
        assert (line.target, line.model, line.title) == (wire, "some-model", title or None)

    @rule(strategy=st.sampled_from(list(STRATEGIES)), budget=budgets)
    def compress(self, strategy: str, budget: int) -> None:
        before = copied(self.model)
        shadows, self.without = self.without, []
        fresh = self.fresh

        def summarise(messages: Any) -> str:
            return f"{len(messages)} messages"

        made = self.write(lambda chat: chat.compress(strategy, budget, summarise=summarise))
        for chat in (*shadows, before):
            if fresh:
                for call in chat.pending:
                    chat.interrupt(call, GONE)
        self.without = [*shadows, before] if made.changes else shadows

    @precondition(lambda self: not self.without)
    @rule(which=st.integers(0, 20))
    def pin(self, which: int) -> None:
        place = which % len(self.model.messages)
        assert self.write(lambda chat: chat.pin(chat.messages[place])).pinned

    @precondition(lambda self: self.without)
    @rule()
    def undo(self) -> None:
        def change(chat: Chat) -> None:
            if isinstance(chat, StoredConversation):
                chat.undo_compression()

        def back() -> None:
            asked = self.model.state.last_request
            self.model = self.without.pop()
            self.model.state.last_request = asked

        self.write(change, then=back)

    @precondition(lambda self: bool(turn_keys(self.model)))
    @rule(which=st.integers(0, 20))
    def rewind(self, which: int) -> None:
        keys = turn_keys(self.model)
        turn = keys[-1 - which % len(keys)]

        def change(chat: Chat) -> None:
            chat.rewind(turn) if isinstance(chat, StoredConversation) else chat.state.history.rewind(turn)

        self.write(change)
        last = max(place for place, message in enumerate(self.model.messages) if message.turn_key == turn)
        assert all(message.speaker == "tool" for message in self.model.messages[last + 1 :])
        assert not any(
            entry.rewound for entry in self.model.state.history.ledger.values() if entry.call in self.pending()
        )

    def pending(self) -> list[ToolCall]:
        return self.live.pending

    @rule(closed=st.booleans())
    def open_again(self, closed: bool) -> None:
        if closed:
            self.live.close()
        else:
            self.tick(3600)
        self.first, self.second = self.second, self.first
        self.live = StoredConversation(self.first, self.live.id)
        self.model.state.last_request = None, (), None
        self.fresh = True
        self.compare()

    @rule()
    def fork(self) -> None:
        fork = self.live.fork()
        self.compare()
        self.live = fork
        self.model.state.last_request = None, (), None
        self.fresh = True
        self.compare()

    @precondition(lambda self: bool(turn_keys(self.model)))
    @rule(which=st.integers(0, 20))
    def fork_at_a_turn(self, which: int) -> None:
        keys = turn_keys(self.model)
        turn = keys[-1 - which % len(keys)]
        origin = self.live.chat.state.history.ledger
        fork = self.live.fork(turn)
        self.compare()
        assert turn_keys(fork.chat)[-1] == turn
        for call_id, entry in fork.chat.state.history.ledger.items():
            assert entry.call == origin[call_id].call
            assert entry.state == origin[call_id].state
            assert entry.evidence == origin[call_id].evidence
        self.live, self.model, self.without = fork, copied(fork.chat), []
        self.model.state.last_request = None, (), None
        self.fresh = True
        self.keys = set(turn_keys(fork.chat))
        if fork.state.compressions:
            # What it was before those is not known here.
            self.live, self.fresh = StoredConversation.create(self.first, copied(self.model)), False
            copy_orphan_counts(self.live.chat, self.model)
        self.compare()

    # ---------------------------------------------------------------------------------------------- what has to hold

    def compare(self) -> None:
        self.sound = False
        expected, got = state(self.model), state(self.live.chat)
        for name, value in expected.items():
            assert got[name] == value, name
        self.sound = True

    def rendered(self, *wires: str) -> None:
        """What was kept gives the bytes that a whole render gives, for a reader too, and the provider takes them."""
        self.sound = False
        reader = StoredConversation(self.second, self.live.id)
        assert state(reader.chat) == state(self.live.chat)
        whole = copied(self.live.chat)
        for wire in wires:
            data = b"".join(self.live.render(wire).fragments)
            assert self.model.render(wire).data == data
            assert reader.render(wire).data == data
            assert whole.render(wire).data == data
            verdict = segue.check(data, wire)
            assert verdict, [str(violation) for violation in verdict]
        self.sound = True

    def teardown(self) -> None:
        # What went wrong is told already.
        if getattr(self, "sound", False):
            self.rendered(*TARGETS)
            self.live.close()


@pytest.mark.parametrize("kind", ENGINES)
def test_state_machine(kind: str, quick_folder: Path, request: pytest.FixtureRequest) -> None:
    engine = Engine(kind, request.getfixturevalue("server") if kind == "postgres" else str(quick_folder / "lasting.db"))
    now = [1_000_000_000]
    opened = [engine.open(clock=lambda: now[0]), engine.open(clock=lambda: now[0])]

    class Here(StoredConversationMachine):
        @staticmethod
        def stores() -> list[SqlStore]:
            return opened

        @staticmethod
        def tick(seconds: float) -> None:
            now[0] += round(seconds * 1_000_000)

    some = settings(examples(0.5 if kind == "sqlite" else 0.1), stateful_step_count=25)
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    try:
        run_state_machine_as_test(Here, settings=settings(some, suppress_health_check=checks))
    finally:
        engine.close()


def test_every_table_conversation_is_stored_unchanged(quick_folder: Path) -> None:
    """Natives of every wire and all that a body may hold: the same state and bytes, from the store and from a dump."""
    with SqliteStore(quick_folder / "table.db") as store:
        for number, case in enumerate(CASES):
            chat = segue.Conversation.from_body(case.body, source=case.source)
            kept = StoredConversation.create(store, chat)
            assert state(kept.chat) == state(chat), case.name
            for wire in (case.source, TARGETS[number % len(TARGETS)]):
                data = chat.render(wire).data
                assert kept.render(wire).data == data, (case.name, wire)
                assert copied(chat).render(wire).data == data, (case.name, wire)


def _add_late_result(kept: StoredConversation) -> None:
    """Another outcome replaces one that was not sent yet."""
    [call] = kept.add_reply(reply_body("kimi", calls=[("look", "slow")])).calls
    kept.cancel(call)
    agent(kept, 90)
    kept.render("openai-chat")
    kept.add_result(call, "after all")


def _undo(kept: StoredConversation) -> None:
    assert kept.compress("drop-oldest", 200).changes
    kept.undo_compression()


CHANGES: dict[str, Callable[[StoredConversation], object]] = {
    **{
        name: lambda kept, name=name: kept.compress(name, 200, summarise=lambda messages: "in short").changes
        for name in STRATEGIES
    },
    "undo": _undo,
    "rewind": lambda kept: kept.rewind("turn-5"),
    "rewind far": lambda kept: kept.rewind("turn-1"),
    "late": _add_late_result,
    "set": lambda kept: kept.update_settings(system="Be long."),
    "reload": lambda kept: kept.reload(),
}


def agent(kept: StoredConversation, number: int) -> None:
    if number % 3 == 0:
        kept.add_user(f"question {number}")
    for call in kept.add_reply(reply_body("openai-chat", text="I look.", calls=[("look", "a"), ("run", "b")])).calls:
        kept.add_result(call, "the same " * 20)


@pytest.mark.parametrize("change", CHANGES)
def test_incremental_rendering_survives_any_change(
    change: str, quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turn by turn, before and after something that was said is changed: the bytes are those of a whole render."""
    grown: list[bool] = []
    real = RenderedPrefix.extend

    def counted(self: RenderedPrefix, *given: Any, **more: Any) -> Any:
        made = real(self, *given, **more)
        grown.append(made is not None)
        return made

    with SqliteStore(quick_folder / "grown.db") as store:
        kept = StoredConversation.create(store, segue.Conversation(system="Be brief.", tools=TOOLS))
        for number in range(16):
            if number == 9:
                CHANGES[change](kept)
            agent(kept, number)
            # As many targets as are kept to go on from.
            for wire in ("openai-chat", "anthropic", "gemini"):
                with monkeypatch.context() as patch:
                    patch.setattr(RenderedPrefix, "extend", counted)
                    data = kept.render(wire).data
                assert data == segue.Conversation.load(kept.chat.dump()).render(wire).data, (wire, number)
                assert segue.check(data, wire)
    # Targets whose reasoning is bound to all before it are rendered whole.
    assert sum(grown) > len(grown) // 2
    assert any(grown[-3:])

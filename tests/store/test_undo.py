"""Undo of a compression: the conversation is what it would be without that compression."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from segue.canonical.blocks import Message, ToolResponse, calls_of, responses_of, text_of
from segue.canonical.compress import STRATEGIES
from segue.errors import InputError
from segue.store.conversation import StoredConversation
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.store.event_lists import EventLists
from tests.store.reply_bodies import reply_body
from tests.work import count_work

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
TEXTS = ("alpha " * 60, "beta " * 60, "gamma " * 2000, "short")
Change = Callable[[StoredConversation], object]


@pytest.fixture(scope="module")
def store() -> Any:
    return EventLists()


def create(store: Any) -> StoredConversation:
    log = StoredConversation.create(store)
    log.update_settings(system="Be brief.", tools=TOOLS)
    return log


def add_turn(
    log: StoredConversation, text: str, results: list[str | None], wire: str = "anthropic", **more: Any
) -> None:
    """One exchange of a call for each result; None leaves it open."""
    log.add_user(text)
    log.render(wire)
    calls = log.add_reply(reply_body(wire, text="so", calls=[("look", f"c{i}") for i in range(len(results))], **more))
    for call, result in zip(calls.calls, results, strict=True):
        if result is not None:
            log.add_result(call, result)


def state(log: StoredConversation) -> dict[str, Any]:
    """The stored form, without what was learned of tokens: that depends on what was sent."""
    return {key: value for key, value in json.loads(log.dump()).items() if key != "tokens"}


def bodies(log: StoredConversation) -> dict[str, bytes]:
    return {wire: log.render(wire).data for wire in WIRES}


def label(message: Message) -> object:
    """What names a message with and without a compression."""
    ids = [call.id for call in calls_of(message)], [response.call_id for response in responses_of(message)]
    return (message.speaker, *map(tuple, ids), message.turn_key, text_of(message.blocks))


def summarise(messages: Any) -> str:
    return f"{len(messages)} messages"


# --------------------------------------------------------------------------------------------------------------- tables


def test_learned_ratio_stays(store: Any) -> None:
    log = create(store)
    for number in range(6):
        add_turn(log, f"go {number}", ["word " * 4000])
    log.compress("truncate-results", 12_000)
    log.add_user("and now?")
    log.render("anthropic")
    log.add_reply(reply_body("anthropic", text="so", tokens=log.chat.tokens))
    assert log.chat.state.token_estimator.ratio("claude") == pytest.approx(1, rel=0.01)
    learned = log.chat.state.token_estimator
    log.undo_compression()
    assert log.chat.state.token_estimator == learned
    assert log.chat.tokens > 24_000
    assert StoredConversation(store, log.id).chat.state.token_estimator == learned
    assert log.fork().chat.state.token_estimator == learned
    result = log.compress("truncate-results", 12_000)
    assert result.reached
    assert log.chat.tokens <= result.tokens <= 12_000


def test_a_fork_inside_of_an_undone_compression_has_its_own_ratio(store: Any) -> None:
    log = create(store)
    for number in range(6):
        add_turn(log, f"go {number}", ["word " * 4000])
    log.compress("truncate-results", 12_000)
    add_turn(log, "and now?", [None], tokens=log.chat.tokens)
    turn = log.messages[-1].turn_key
    learned = log.chat.state.token_estimator
    log.undo_compression()
    copy = log.fork(turn)
    assert copy.chat.state.token_estimator == learned
    assert bodies(copy) == bodies(log)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pins_set_after_a_compression_stay(store: Any, strategy: str) -> None:
    """Equal user messages, shortened results and replies with reasoning: each pin stays with its own message."""
    log = create(store)
    for number in range(8):
        add_turn(log, "go on", ["same " * 300], thought="hm", wire=("anthropic", "deepseek")[number % 2])
    before = log.messages
    numbered = {id(message): place for place, message in enumerate(before)}
    log.compress(strategy, 1500, summarise=summarise)
    kept = log.chat.state.history
    places = [kept.number_of(place) for place, message in enumerate(log.messages) if not message.summarised]
    for position in range(0, len(log.messages), 3):
        log.pin(log.messages[position])
    summaries = {i for i, message in enumerate(log.messages) if message.summarised}
    pinned = [kept.number_of(i) for i in range(0, len(log.messages), 3) if i not in summaries]
    log.undo_compression()
    assert len(numbered) == len(log.messages) > len(places) or strategy in ("truncate-results", "dense")
    assert [place for place, message in enumerate(log.messages) if message.pinned] == pinned
    assert [label(message) for message in log.messages] == [label(message) for message in before]
    assert [message.pinned for message in StoredConversation(store, log.id).messages] == [
        message.pinned for message in log.messages
    ]


def test_undone_in_order(store: Any) -> None:
    log = create(store)
    for number in range(6):
        add_turn(log, f"go {number}", ["same " * 800, "other " * 200])
    states = [(state(log), bodies(log))]
    for strategy, budget in (("dense", 2500), ("truncate-results", 1500), ("drop-oldest", 900)):
        assert log.compress(strategy, budget).changes
        states.append((state(log), bodies(log)))
    log = StoredConversation(store, log.fork().id)
    for expected in reversed(states[:-1]):
        log.undo_compression()
        assert (state(log), bodies(log)) == expected
    with pytest.raises(InputError, match="no compression to undo"):
        log.undo_compression()


# ------------------------------------------------------------------------------------------------------------- property


class Pair:
    """A conversation with compressions, and its twin that gets every other operation only."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.log, self.twin = create(store), create(store)
        self.count = 0

    def both(self, change: Change) -> None:
        for log in (self.log, self.twin):
            change(log)

    def turn(self, wire: str, results: list[str | None], usage: int) -> None:
        self.count += 1
        self.both(lambda log: add_turn(log, f"go {self.count}", results, wire, tokens=usage))

    def add_result(self, which: int, text: str, error: bool) -> None:
        ids = list(self.twin.chat.state.history.ledger)
        if ids:
            self.both(lambda log: log.add_result(ids[which % len(ids)], text, error=error))

    def pin(self, which: int) -> None:
        message = self.log.messages[which % len(self.log.messages)]
        by_label = {self.key(message): message for message in self.twin.messages}
        if self.key(message) in by_label:
            self.log.pin(message)
            self.twin.pin(by_label[self.key(message)])

    @staticmethod
    def key(message: Message) -> object:
        """What names a message, also a shortened one: each user message is another."""
        ids = tuple(b.call_id for b in message.blocks if isinstance(b, ToolResponse))
        return (message.speaker, ids, message.turn_key, ids or text_of(message.blocks))

    def rewind(self, which: int) -> None:
        turns = [message.turn_key for message in self.log.messages if message.turn_key and message.speaker == "ai"]
        if turns:
            turn = turns[which % len(turns)]
            self.both(lambda log: log.rewind(turn))

    def fork(self) -> None:
        self.both(lambda log: log.close())
        self.log, self.twin = self.log.fork(), self.twin.fork()

    def open_again(self) -> None:
        self.both(lambda log: log.close())
        self.log, self.twin = (StoredConversation(self.store, log.id) for log in (self.log, self.twin))

    def compress(self, strategy: str, budget: int) -> None:
        self.write_to_twin()
        made = self.log.compress(strategy, budget, summarise=summarise)
        assert made.reached == (made.tokens <= budget)
        assert self.log.chat.tokens <= made.tokens

    def undo(self) -> None:
        if self.log.state.compressions:
            self.write_to_twin()
            learned = self.log.chat.state.token_estimator
            self.log.undo_compression()
            assert self.log.chat.state.token_estimator == learned

    def write_to_twin(self) -> None:
        """The first write of a process completes the calls that another one left pending."""
        self.twin.rename("twin")


OPERATIONS = (
    "turn",
    "turn",
    "turn",
    "add_result",
    "pin",
    "rewind",
    "fork",
    "open_again",
    "compress",
    "compress",
    "undo",
)


def run(pair: Pair, name: str, draw: Callable[[int], int]) -> None:
    """Run an operation; `draw` returns a number below its argument."""
    match name:
        case "turn":
            results = [(*TEXTS, None)[draw(5)] for _ in range(draw(4))]
            pair.turn(sorted(WIRES)[draw(len(WIRES))], results, (0, 900)[draw(2)])
        case "add_result":
            pair.add_result(draw(9), TEXTS[draw(4)], bool(draw(2)))
        case "pin" | "rewind":
            getattr(pair, name)(draw(9))
        case "fork" | "open_again":
            getattr(pair, name)()
        case "compress":
            pair.compress(sorted(STRATEGIES)[draw(4)], pair.log.chat.tokens * draw(5) // 4)
        case _:
            pair.undo()


@settings(examples(0.3), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(names=st.lists(st.sampled_from(OPERATIONS), min_size=3, max_size=9), data=st.data())
def test_undo_restores_the_conversation_without_the_compression(store: Any, names: list[str], data: Any) -> None:
    pair = Pair(store)
    pair.turn("anthropic", [TEXTS[0]], 0)
    for name in names:
        run(pair, name, lambda count: data.draw(st.integers(0, count - 1)))
    while pair.log.state.compressions:
        pair.undo()
    pair.open_again()
    assert state(pair.log) == state(pair.twin)
    assert bodies(pair.log) == bodies(pair.twin)


# ----------------------------------------------------------------------------------------------------------------- work


@pytest.mark.parametrize("operation", ["undo", "rewind", "fork"])
def test_work_grows_with_the_length(operation: str) -> None:
    """With late results, many pins and many parallel calls."""

    def work(turns: int) -> int:
        log = create(EventLists())
        late: list[str] = []
        for number in range(turns):
            add_turn(log, f"go {number}", [None, "word " * 80])
            late = [call.id for call in log.pending]
            log.pin(log.messages[-1])
        log.add_user("go")
        calls = [("look", f"p{i}") for i in range(turns)]
        for call in log.add_reply(reply_body("anthropic", calls=calls)).calls:
            log.add_result(call, "same " * 80)
        for call_id in late:
            log.add_result(call_id, "late")
        assert log.compress("dense", 0).changes
        for message in log.messages[::3]:
            log.pin(message)
        turn = next(message.turn_key for message in log.messages if message.turn_key) or ""
        actions: dict[str, Callable[[], object]] = {
            "undo": lambda: (log.undo_compression(), log.messages),
            "rewind": lambda: log.rewind(turn),
            "fork": lambda: log.fork().messages,
        }
        return count_work(actions[operation])

    assert work(48) < 4.7 * work(12)

"""What a bridge remembers of conversations with reasoning changes nothing but the cost of a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from msgspec.structs import replace

from segue.bridge import Bridge, Route, Router
from segue.bridge.entries import EntryMemory
from segue.bridge.histories import HistoryMemory
from segue.bridge.providers import Endpoint
from segue.canonical.blocks import Thinking
from segue.canonical.json import encode_json
from segue.conversion import sessions
from segue.wire.registry import WIRES
from tests.bridge.exchanges import KEYS, MODELS, NOW, Answer, Response, carry_out, endpoint, make_reply, path_of, whole
from tests.bridge.test_reasoning_routes import add_reminder
from tests.bridge.test_sealed_reasoning import CALLERS, PAIRS, Body, first_body, strip_reasoning, thoughts_in
from tests.budget import examples, sample
from tests.properties.whole import without_memory
from tests.vendors.clients import CLIENTS
from tests.work import count_work

BOUND = "claude-opus-5-1"
STEPS = ("think", "think", "think", "speak", "repeat", "switch", "worker", "rewind", "fork", "edit", "remind", "forget")


@pytest.fixture(autouse=True)
def cleared() -> Iterator[None]:
    sessions.clear()
    yield
    sessions.clear()


def copy_entries(memory: EntryMemory) -> EntryMemory:
    copied = EntryMemory()
    copied.save(dict(memory._entries))
    return copied


class Worker:
    """A bridge with a store that others may share. All targets have routes of their own."""

    def __init__(self, store: EntryMemory, *, has_store: bool) -> None:
        self.store = store
        self.has_store = has_store
        self.bridge = self.open_bridge(lambda: 0)

    def open_bridge(self, number: Callable[[], int]) -> Bridge:
        """Return a bridge that draws this number instead of random bytes."""
        router = Router(lambda query: self.route)
        return Bridge(
            router, keys=KEYS, now=lambda: NOW, random=lambda size: number().to_bytes(size), has_store=self.has_store
        )

    route: Route


class Client:
    """One conversation, its markers and all bodies that it sent."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.body = first_body(caller)
        self.sent: list[Body] = []
        self.reminder = ""

    @property
    def data(self) -> bytes:
        body = strip_reasoning(self.body) if self.caller == "openai-chat" else self.body
        if self.reminder:
            body = add_reminder(body, self.reminder, 1)
        return encode_json(mark_last(body) if self.caller == "anthropic" else body)


def mark_last(body: Body) -> Body:
    """Return a body of the Messages API whose last block has a cache marker."""
    body = json.loads(json.dumps(body))
    last = body["messages"][-1]
    if isinstance(last["content"], str):
        last["content"] = [{"type": "text", "text": last["content"]}]
    last["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return body


def send(worker: Worker, bridge: Bridge, store: EntryMemory, client: Client, reply: Any) -> Answer:
    relay = bridge.open("POST", path_of(client.caller), {}, client.data, client="c")
    answer = carry_out(relay, [reply], store)
    assert answer.status == 200, answer.data
    return answer


def reply_of(target: Endpoint, **content: Any) -> Response:
    """Return a reply of the target's model."""
    reply = make_reply(target.api, **content)
    blocks = tuple(
        replace(block, origin=replace(block.origin, model=target.model)) if isinstance(block, Thinking) else block
        for block in reply.blocks
    )
    return whole(target.api, replace(reply, blocks=blocks, model=target.model))


def ask(worker: Worker, client: Client, target: Endpoint, number: int, *, thinks: bool) -> Answer:
    """Send the conversation, compare the request with that of a worker that remembers nothing, and take the reply."""
    worker.route = Route(f"route {number}", (target,))
    calls = [("call_x", "look", {"city": f"Oslo {number // 2}"})]
    thought = f"Thought {number}." if thinks else None
    reply = reply_of(target, thought=thought, calls=calls)
    expected_store = copy_entries(worker.store)
    with without_memory():
        expected = send(worker, worker.open_bridge(lambda: number), expected_store, client, reply)
    worker.bridge._settings = _with_random(worker.bridge, number)
    answer = send(worker, worker.bridge, worker.store, client, reply)
    assert [request.body for request in answer.sent] == [request.body for request in expected.sent]
    assert answer.relay.report is not None
    assert expected.relay.report is not None
    assert answer.relay.report.findings == expected.relay.report.findings
    assert answer.data == expected.data
    # The keys are digests of the whole conversation.
    assert set(worker.store._entries) == set(expected_store._entries)
    client.sent.append(client.body)
    client.body, _ = CLIENTS[client.caller].go_on(client.body, answer.body, lambda call: "seen")
    return answer


def _with_random(bridge: Bridge, number: int) -> Any:
    return replace(bridge._settings, random=number.to_bytes)


def carry_out_steps(caller: str, api: str, steps: list[str], *, has_store: bool, model: str | None = None) -> None:
    other = next(other for other in ("gemini", "anthropic", "bedrock") if other not in (api, caller))
    own = endpoint(api, model=model or MODELS[api])
    store, client, number = EntryMemory(), Client(caller), 0
    workers = [Worker(store, has_store=has_store) for _ in range(2)]
    for step in steps:
        number += 1
        match step:
            case "think" | "speak":
                ask(workers[0], client, own, number, thinks=step == "think")
            case "repeat":
                kept = client.body
                ask(workers[0], client, own, number, thinks=True)
                client.body = kept
            case "switch":
                ask(workers[0], client, endpoint(other, 1), number, thinks=True)
            case "worker":
                workers.reverse()
            case "rewind":
                client.body = client.sent[-min(2, len(client.sent))] if client.sent else client.body
            case "fork":
                fork = Client(caller)
                fork.body = client.sent[len(client.sent) // 2] if client.sent else client.body
                for _ in range(2):
                    number += 1
                    ask(workers[0], fork, own, number, thinks=True)
            case "edit":
                client.body = add_reminder(client.body, f"Edited {number}.", 1)
            case "remind":
                client.reminder = f"<system-reminder>{number}</system-reminder>" if not client.reminder else ""
            case _:
                workers[0].bridge._settings.histories._histories.clear()


@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize("caller", CALLERS)
@examples(4)
@given(api=st.sampled_from(sorted({api for _, api in PAIRS})), steps=st.lists(st.sampled_from(STEPS), max_size=12))
def test_requests_are_those_of_a_bridge_without_memory(
    caller: str, has_store: bool, api: str, steps: list[str]
) -> None:
    note(f"{caller} on {api}: {steps}")
    sessions.clear()
    carry_out_steps(caller, api, steps, has_store=has_store)


@pytest.mark.parametrize(("caller", "api"), list(sample(PAIRS, 6)))
def test_each_change_of_a_conversation(caller: str, api: str) -> None:
    for step in sorted({*STEPS}):
        sessions.clear()
        carry_out_steps(caller, api, ["think", "think", step, "think", "speak", step, "think", "think"], has_store=True)


@pytest.mark.parametrize("caller", ["openai-chat", "openai-responses", "gemini"])
@examples(4)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=12))
def test_reasoning_that_is_bound_to_the_prefix(caller: str, steps: list[str]) -> None:
    sessions.clear()
    carry_out_steps(caller, "anthropic", steps, has_store=True, model=BOUND)


# ----------------------------------------------------------------------------------------------------------------- cost


LONG = [
    *[
        (caller, "anthropic", model)
        for caller in CALLERS
        if caller != "anthropic"
        for model in ("claude-sonnet-5", BOUND)
    ],
    # The cache markers of this client move with each request.
    ("anthropic", "kimi", MODELS["kimi"]),
]


@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize(("caller", "api", "model"), LONG)
def test_a_long_conversation_costs_no_more_than_a_short_one(caller: str, api: str, model: str, has_store: bool) -> None:
    """The lines that are run for a request do not grow with its conversation."""
    target = endpoint(api, model=model)
    worker, client = Worker(EntryMemory(), has_store=has_store), Client(caller)
    worker.route = Route("route", (target,))
    work: dict[int, int] = {}
    answers: list[Answer] = []
    for number in range(62):
        calls = [("call_x", "look", {"city": f"Oslo {number}"})]
        reply = reply_of(target, thought=f"Thought {number}.", calls=calls)
        worker.bridge._settings = _with_random(worker.bridge, number)
        run = lambda: answers.append(send(worker, worker.bridge, worker.store, client, reply))  # noqa: B023, E731
        if number in (20, 21, 60, 61):
            work[number] = count_work(run)
        else:
            run()
        client.body, _ = CLIENTS[caller].go_on(client.body, answers[-1].body, lambda call: "seen")
    sent = answers[-1].sent_bodies[-1]
    assert len(thoughts_in(api, sent)) == (61 if has_store or caller != "openai-chat" else 0)
    assert min(work[60], work[61]) <= 1.2 * min(work[20], work[21]), work


def test_an_entry_that_the_store_drops_stays_as_long_as_the_conversation_is_remembered() -> None:
    worker, client = Worker(EntryMemory(), has_store=True), Client("openai-chat")
    target = endpoint("anthropic")
    for number in range(3):
        answer = ask(worker, client, target, number, thinks=True)
    worker.store.delete(list(worker.store._entries))
    worker.route = Route("route", (target,))
    answer = send(worker, worker.bridge, worker.store, client, whole("anthropic"))
    assert len(thoughts_in("anthropic", answer.sent_bodies[-1])) == 3
    worker.bridge._settings.histories._histories.clear()
    worker.store.delete(list(worker.store._entries))
    answer = send(worker, worker.bridge, worker.store, client, whole("anthropic"))
    assert thoughts_in("anthropic", answer.sent_bodies[-1]) == []


def test_reasoning_that_is_too_old_is_not_taken_from_the_memory() -> None:
    now = NOW
    worker, client = Worker(EntryMemory(), has_store=True), Client("openai-chat")
    target = endpoint("anthropic")
    worker.route = Route("route", (target,))
    worker.bridge = Bridge(Router(lambda query: worker.route), keys=KEYS, now=lambda: now, random=bytes, max_age=60)
    for _ in range(2):
        reply = whole("anthropic", make_reply("anthropic", thought="A thought.", calls=[("x", "look", {"n": 1})]))
        answer = send(worker, worker.bridge, worker.store, client, reply)
        client.body, _ = CLIENTS["openai-chat"].go_on(client.body, answer.body, lambda call: "seen")
    answer = send(worker, worker.bridge, worker.store, client, whole("anthropic"))
    assert thoughts_in("anthropic", answer.sent_bodies[-1])
    now += timedelta(seconds=61)
    answer = send(worker, worker.bridge, worker.store, client, whole("anthropic"))
    assert thoughts_in("anthropic", answer.sent_bodies[-1]) == []


def test_the_memory_is_bounded() -> None:
    worker, client = Worker(EntryMemory(), has_store=True), Client("openai-chat")
    histories = worker.bridge._settings.histories
    for number in range(4):
        ask(worker, client, endpoint("anthropic"), number, thinks=True)
    [(history, size)] = next(iter(histories._histories.values()))
    assert len(history.borders) <= 4
    assert histories._size == size
    small = HistoryMemory(max_size=size + 10)
    small.put("a", history)
    small.put("b", history)
    assert list(small._histories) == ["b"]
    assert small._size == size
    HistoryMemory(max_size=10).put("a", history)
    assert small.find("a", history.conversation, WIRES["openai-chat"], oldest=0) is None

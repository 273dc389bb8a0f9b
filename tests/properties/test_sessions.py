"""Sessions of every pair of APIs at once: each request converts as the whole does with empty memory.

The requests mix known and unknown segments: they grow, are sent again, edited, forked and rewound, with moved cache
markers, late, doubled and missing results, unknown fields and damaged bytes. They are converted with memory, with low
thresholds, so that conversations are cut at once and small ones are converted in slices, and with a memory of size 0.
"""

from __future__ import annotations

import copy
import json
import lzma
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue._stream import render_reply_body
from segue.canonical.blocks import Origin, Text, ToolCall
from segue.canonical.request import Reply, Usage
from segue.conversion import segments, sessions, slices
from segue.errors import SegueError
from segue.wire.detect_body import detect_source
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.properties import checks
from tests.properties.client_turns import TurnMaker, form_of
from tests.properties.test_properties import POLICIES
from tests.properties.test_slices import STYLES
from tests.properties.whole import convert_whole

Body = dict[str, Any]
Items = list[dict[str, Any]]

RECORDED = Path(__file__).parents[2] / "benchmarks" / "data"
MARKER = {"type": "ephemeral"}
SESSIONS, STEPS = 4, 14


# ------------------------------------------------------------------------------------------------------------ one body


@cache
def recorded_runs() -> dict[str, list[list[Body]]]:
    """The requests of recorded runs, by source."""
    runs: dict[str, list[list[Body]]] = {}
    for path in sorted(RECORDED.glob("*.jsonl.xz")):
        requests = [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
        runs.setdefault(detect_source(requests[-1]), []).append(requests)
    return runs


def conversation_key(body: Body) -> str:
    return next((key for key in ("messages", "input", "contents") if key in body), "messages")


def move_marker(items: Items) -> Items:
    """Return the items with one cache marker, in the last content."""
    items = copy.deepcopy(items)
    parts = [part for item in items for part in parts_of(item)]
    for part in parts:
        part.pop("cache_control", None)
    if parts and parts[-1] in parts_of(items[-1])[-1:]:
        parts[-1]["cache_control"] = MARKER
    return items


def parts_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    content = item.get("content", item.get("parts"))
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def damage(data: bytes, random: Random) -> bytes:
    """Return a body with an error, another encoding of the same value, or one more key."""
    at = random.randrange(len(data))
    return random.choice(
        [
            data[:at],
            data + b" \n",
            b"\xef\xbb\xbf" + data,
            data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
            data[:-1] + b',"messages":[]}',
            data[:-1] + b',"model":"gpt-4.1"}',
            data.replace(b'"role"', b'"r\\u006fle"', 1),
            data.replace(b"e", b"\\ud800", 1),
            data.replace(b":1", b":1e400", 1),
            data.replace(b"], ", b'], "stop": ["END"], ', 1),
        ]
    )


# ---------------------------------------------------------------------------------------------------------- a session


class Session:
    """The requests of one client: each has the items of the one before, as a rule, and new ones."""

    def __init__(self, random: Random, source: str, target: str) -> None:
        self.random = random
        self.source = source
        runs = recorded_runs().get(source, [])
        self.recorded: list[Items] = []
        if runs and random.random() < 0.3:
            *requests, self.rest = random.choice(runs)
            self.key = conversation_key(self.rest)
            self.recorded = [request[self.key] for request in (*requests, self.rest)]
        else:
            self.rest, self.key = form_of(source).rest, form_of(source).key
        self.turns = TurnMaker(self.source, random, random.choice([0, 0, 0.05, 0.2, 0.5]))
        self.items: Items = []
        self.branches: list[Items] = []
        self.style = random.choice(sorted(STYLES))
        self.keys_first = random.random() < 0.3
        self.has_marker = WIRES[source].base_api in ("anthropic", "openai-chat") and random.random() < 0.6
        self.number = 0
        self.job: dict[str, Any] = {
            "target": target,
            "source": self.source if random.random() < 0.8 else None,
            "model": random.choice(checks.models(target)) if random.random() < 0.3 else None,
            **(random.choice(POLICIES) if random.random() < 0.3 else {}),
        }

    def take_group(self) -> Items:
        """Return items to add: those of the recorded run first."""
        if self.recorded:
            added = self.recorded.pop(0)[len(self.items) :]
            return added or self.turns.make_group()
        return self.turns.make_group() if self.items else [*self.turns.make_first(), *self.turns.make_group()]

    def step(self) -> bytes:
        """Return the next request."""
        self.number += 1
        self.random.choices([step for step, _ in CHANGES], [weight for _, weight in CHANGES])[0](self)
        items = move_marker(self.items) if self.has_marker and self.items else self.items
        body = {**self.rest, self.key: items}
        if "client_metadata" in body:
            body["client_metadata"] = {"turn": self.number}
        if self.keys_first:
            body = {**{key: value for key, value in body.items() if key != self.key}, self.key: items}
        data = STYLES[self.style](body).encode()
        return damage(data, self.random) if self.random.random() < 0.04 else data

    @property
    def place(self) -> int:
        return self.random.randrange(len(self.items)) if self.items else 0


def grow(session: Session) -> None:
    session.items = [*session.items, *session.take_group()]


def send_again(session: Session) -> None:
    pass


def drop_last(session: Session) -> None:
    session.branches.append(session.items)
    session.items = session.items[: max(len(session.items) - session.random.randint(1, 4), 1)]


def take_up_branch(session: Session) -> None:
    if session.branches:
        place = session.random.randrange(len(session.branches))
        session.branches[place], session.items = session.items, session.branches[place]


def add_unknown_field(session: Session) -> None:
    """Add one to an item, or to a part of its content."""
    items = copy.deepcopy(session.items)
    if items:
        item = items[session.place]
        place = session.random.choice([item, *parts_of(item)])
        place["x_unknown"] = session.random.choice([None, 1, {"a": [1]}, "x"])
    session.items = items


def replace_item(session: Session) -> None:
    place = session.place
    session.items = [*session.items[:place], *session.take_group(), *session.items[place + 1 :]]


def drop_item(session: Session) -> None:
    place = session.place
    session.items = [*session.items[:place], *session.items[place + 1 :]]


def repeat_item(session: Session) -> None:
    place = session.place
    session.items = [*session.items[:place], *session.items[place : place + 1], *session.items[place:]]


def swap_items(session: Session) -> None:
    place = session.place
    session.items = [*session.items[:place], *reversed(session.items[place : place + 2]), *session.items[place + 2 :]]


def change_rest(session: Session) -> None:
    extra: Body = session.random.choice([{"temperature": 0.5}, {"metadata": {"a": "b"}}, {"stop": ["END"]}, {"x": [1]}])
    session.rest = {**session.rest, **extra}


def change_target(session: Session) -> None:
    session.job = {**session.job, "target": session.random.choice(sorted(WIRES)), "model": None}


def change_order_of_keys(session: Session) -> None:
    session.keys_first = not session.keys_first


CHANGES: tuple[tuple[Callable[[Session], None], int], ...] = (
    (grow, 70),
    (send_again, 4),
    (drop_last, 6),
    (take_up_branch, 5),
    (add_unknown_field, 3),
    (replace_item, 3),
    (drop_item, 2),
    (repeat_item, 2),
    (swap_items, 2),
    (change_rest, 2),
    (change_target, 2),
    (change_order_of_keys, 1),
)


# ---------------------------------------------------------------------------------------------------------- the result


@cache
def reply_of(target: str) -> Body:
    call = ToolCall("f", {"a": 1}, "c", origin=Origin(WIRES[target].provider, raw_id="call_1"))
    return render_reply_body(Reply((Text("Yes."), call), "tool_calls", Usage(1, 1), "r", "m"), target)[0]


def see(convert: Callable[..., segue.Converted], data: bytes, *, reply: bool, **job: Any) -> Any:
    """All that a caller can see of a conversion, or its error."""
    try:
        converted = convert(data, **job)
    except SegueError as error:
        return type(error), str(error)
    report = converted.report
    seen = converted.data, converted.source, report.to_dict(), converted._sent_request.reply_key
    return (*seen, converted.reply(reply_of(job["target"]))) if reply else seen


def compare(data: bytes, *, reply: bool, **job: Any) -> None:
    found = see(segue.convert, data, reply=reply, **job)
    assert found == see(convert_whole, data, reply=reply, **job)


@pytest.fixture(params=["usual", "low", "none"], autouse=True)
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The usual memory, one with low thresholds, and none."""
    if request.param == "low":
        monkeypatch.setattr(segments, "_MIN_STEP", 2)
        monkeypatch.setattr(sessions.conversations, "max_whole", 3000)
        monkeypatch.setattr(slices, "_SLICE_SIZE", 400)
    if request.param == "none":
        monkeypatch.setattr(sessions.conversations, "_max_size", 0)
    sessions.clear()
    yield
    sessions.clear()


@pytest.mark.parametrize("target", WIRES)
@examples(1, items=len(WIRES))
@given(seed=st.integers(0, 2**32))
def test_requests_of_several_sessions(target: str, seed: int) -> None:
    random = Random(seed)
    started = [Session(random, source, target) for source in random.sample(sorted(WIRES), SESSIONS)]
    for _ in range(STEPS):
        session = random.choice(started)
        request = session.step()
        note(f"{session.job} {request!r}")
        compare(request, reply=random.random() < 0.15, **session.job)

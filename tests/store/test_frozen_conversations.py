"""Frozen conversations: every later version reads them unchanged and continues them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.store import events
from segue.store.base import StoredEvent
from segue.store.conversation import StoredConversation
from segue.store.events import Event, decode_event, event_kind
from segue.store.replay import ReplayState, replay_events
from segue.store.sqlite import SqliteStore
from segue.wire.registry import WIRES
from tests.store.former_names import rename_fields
from tests.store.freeze_conversations import FROZEN_CONVERSATIONS, VERSION, expected_state, fill_store, render_all
from tests.store.reply_bodies import reply_body

VERSIONS = sorted(int(file.stem) for file in FROZEN_CONVERSATIONS.glob("*.jsonl"))
WRITE = os.environ.get("SEGUE_SNAPSHOTS") == "write"


def frozen(version: int, suffix: str) -> Any:
    return json.loads((FROZEN_CONVERSATIONS / f"{version}{suffix}").read_text("utf-8"))


def from_lines(version: int) -> dict[str, list[StoredEvent]]:
    talks: dict[str, list[StoredEvent]] = {}
    for line in (FROZEN_CONVERSATIONS / f"{version}.jsonl").read_text("utf-8").splitlines():
        told = json.loads(line)
        event = decode_event(json.dumps(told["event"], ensure_ascii=False))
        talks.setdefault(told["conversation"], []).append(StoredEvent(told["seq"], told["at"], event))
    return talks


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def store(version: int, tmp_path: Path) -> Iterator[SqliteStore]:
    shutil.copy(FROZEN_CONVERSATIONS / f"{version}.db", tmp_path / "frozen.db")
    with SqliteStore(tmp_path / "frozen.db") as opened:
        yield opened


def plain(value: object) -> Any:
    return json.loads(json.dumps(value))


def same(lines: dict[str, ReplayState], version: int) -> None:
    states = frozen(version, ".json")
    assert lines.keys() == states.keys()
    for name, line in lines.items():
        assert plain(expected_state(line)) == rename_fields(states[name]), name
    bodies = {name: render_all(lines[name].chat) for name in states}
    if WRITE:
        text = json.dumps(bodies, ensure_ascii=False, indent=1) + "\n"
        (FROZEN_CONVERSATIONS / f"{version}.bytes.json").write_text(text, "utf-8")
    for name, wires in frozen(version, ".bytes.json").items():
        for wire, data in wires.items():
            assert bodies[name][wire] == data, f"{name} for {wire}: if rendering changed, SEGUE_SNAPSHOTS=write"
            assert segue.check(data, wire), f"{name} for {wire}"


def test_the_file_is_read_as_it_was(store: SqliteStore, version: int) -> None:
    same({summary.id: StoredConversation(store, summary.id).state for summary in store.list(1000)}, version)


def test_the_lines_are_read_as_they_were(version: int) -> None:
    same({name: replay_events(records) for name, records in from_lines(version).items()}, version)


def test_frozen_conversation_continues(store: SqliteStore, version: int) -> None:
    for summary in store.list(1000):
        # The lease that its writer had may still run.
        kept = StoredConversation(store, summary.id).fork()
        known = set(kept.state.turn_ends)
        kept.add_user("going on")
        assert not kept.pending
        for call in kept.add_reply(reply_body("kimi", calls=[("look", "call_1")])).calls:
            kept.add_result(call, "found")
        assert kept.messages[-1].turn_key not in known
        reader = StoredConversation(store, kept.id)
        for wire in WIRES:
            assert segue.check(kept.render(wire).data, wire)
            assert reader.render(wire).data == kept.render(wire).data
        origin = next(turn for turn in kept.state.turn_ends)
        assert StoredConversation(store, kept.fork(origin).id).state.turn_ends.keys() >= {origin}


def test_every_kind_of_event_is_frozen() -> None:
    kinds = {event_kind(record.event) for records in from_lines(VERSION).values() for record in records}
    assert kinds == {*events._EVENT_TYPES, "from-the-future"}
    fields = {
        f"{event_kind(event)}.{name}"
        for records in from_lines(VERSION).values()
        for event in (record.event for record in records)
        for name in _field_names(event)
    }
    every = {f"{kind}.{name}" for kind, made in events._EVENT_TYPES.items() for name in made.__struct_fields__}
    # What no conversation says today.
    unsaid = {name for name in every - fields if not name.endswith(".extra")}
    assert unsaid == {"settings.request_extra"}, "freeze another version: python -m tests.store.freeze_conversations"


def _field_names(event: Event) -> set[str]:
    names = getattr(event, "__struct_fields__", ())
    return {name for name in names if getattr(event, name) not in (None, (), "", {})}


def test_current_format_equals_the_frozen_one(tmp_path: Path) -> None:
    """Another way to write events needs another version; only ids and times are new each time."""
    with SqliteStore(tmp_path / "new.db") as store:
        fill_store(store)
        now = [shapes(list(store.events(summary.id))) for summary in store.list(1000)]
    assert sorted(now, key=json.dumps) == sorted(map(shapes, from_lines(VERSION).values()), key=json.dumps)


def shapes(records: list[StoredEvent]) -> list[Any]:
    return [shape(json.loads(events.dump_event(record.event))) for record in records]


def shape(value: Any, key: str = "") -> Any:
    """The value, less what names another conversation."""
    if isinstance(value, dict):
        return {name: shape(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "" if key == "origin" else value

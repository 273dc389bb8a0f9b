"""Writers that are killed: run as a process, it forks one writer after the other and kills each at a random moment.

A writer first reads all that was acknowledged before and compares it, then appends turns, several appends a turn, and
acknowledges each append on a pipe once the store has returned from it. What it writes follows from the conversation
and the number of the event, so that whoever reads it knows what has to stand there.

    python -m tests.store.crash_writer KINDS PLACE SCHEMA KILLS SEED
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from typing import Any

from segue.canonical.blocks import Message, Text, ToolCall
from segue.errors import StoreError
from segue.store.events import CallCompleted, Event, MessageAdded, Sent, Switched
from segue.store.search_text import parse_query
from segue.store.sql import SqlStore
from tests.store.engines import open_store

# The appends of a turn, by how many events each has: a reply, two outcomes, the next words.
APPENDS = (2, 1, 1, 2)
TURN = sum(APPENDS)
WHOLE = {0, 2, 3, 4}
"""How many events of the last turn there may be: an append is whole."""
KILLS_A_CONVERSATION = 8
KILLS_A_PLACE = 40
PATIENCE = 100


def make_event(conversation: str, seq: int) -> Event:
    """The event at this sequence number."""
    chance = random.Random(f"{conversation} {seq}")
    turn, place = divmod(seq - 1, TURN)
    text = f"{conversation} {seq} " + "word " * chance.choice((1, 10, 200, 1500))
    calls = tuple(ToolCall("run", {"turn": turn, "n": n}, id=f"hist_tool_{turn}_{n}") for n in (0, 1))
    match place:
        case 0:
            return MessageAdded(Message("ai", (Text(text), *calls), turn_key=f"turn-{turn}"))
        case 1:
            return Switched("anthropic", f"model-{turn}")
        case 2 | 3:
            return CallCompleted(Message("tool", (calls[place - 2].respond(text),), turn_key=f"turn-{turn}"))
        case 4:
            return Sent("anthropic", f"model-{turn}")
        case _:
            return MessageAdded(Message("human", (Text(text),)))


def check(store: SqlStore, conversation: str, acknowledged: int) -> int:
    """Checks all events and returns their number."""
    records = list(store.events(conversation))
    assert len(records) >= acknowledged, f"{conversation}: {acknowledged} acknowledged, {len(records)} there"
    assert [record.seq for record in records] == list(range(1, len(records) + 1)), f"{conversation}: gaps"
    assert len(records) % TURN in WHOLE, f"{conversation}: half an append, {len(records)} events"
    for record in records:
        assert record.event == make_event(conversation, record.seq), f"{conversation}: event {record.seq} is another"
    summary = store.get(conversation)
    message_count = sum(not isinstance(record.event, Switched | Sent) for record in records)
    assert (summary.seq, summary.messages) == (len(records), message_count), f"{conversation}: {summary}"
    with store._read_session() as session:
        found = len(store._search_index(session, parse_query(conversation), 10**6))
    assert found == message_count, f"{conversation}: {found} of {message_count} messages found"
    return len(records)


def run_writer(at: tuple[str, str, str], known: dict[str, int], conversation: str | None, pipe: int) -> None:
    """Writes until it is killed."""

    def acknowledge(**fields: object) -> None:
        os.write(pipe, json.dumps(fields).encode() + b"\n")

    try:
        store = open_store(*at)
        if conversation is None:
            conversation = store.create()
            acknowledge(conversation=conversation, seq=0)
        seq = check(store, conversation, known.get(conversation, 0))
        while True:
            count = APPENDS[[0, 2, 3, 4].index(seq % TURN)]
            seq = store.append(conversation, seq, [make_event(conversation, seq + n + 1) for n in range(count)])
            acknowledge(conversation=conversation, seq=seq)
    except (AssertionError, StoreError) as error:
        acknowledge(bad=f"{type(error).__name__}: {error}")


class WriterKiller:
    def __init__(self, kind: str, place: str, schema: str, seed: int) -> None:
        self.kind, self.place, self.schema = kind, place, schema
        self.chance = random.Random(seed)
        self.acknowledged: dict[str, dict[str, int]] = {}
        self.count = 0

    def location(self, number: int) -> tuple[str, str, str]:
        """Another place now and then: a store that is killed while it is made has to be made by the next."""
        suffix = number // KILLS_A_PLACE
        return self.kind, f"{self.place}-{suffix}" if self.kind == "sqlite" else self.place, f"{self.schema}_{suffix}"

    def run_round(self, number: int) -> None:
        at = self.location(number)
        known = self.acknowledged.setdefault(" ".join(at), {})
        conversation = list(known)[-1] if known and number % KILLS_A_CONVERSATION else None
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self.run_child(at, conversation, writing, number)
            os._exit(1)
        os.close(writing)
        self.wait_and_kill(child, reading, at_once=number % KILLS_A_PLACE < 5)
        for line in self.read_rest(reading):
            fields = json.loads(line)
            if "bad" in fields:
                raise AssertionError(fields["bad"])
            known[fields["conversation"]] = fields["seq"]
            self.record_fields(fields)
            self.count += 1

    def run_child(self, at: tuple[str, str, str], conversation: str | None, pipe: int, number: int) -> None:
        run_writer(at, self.acknowledged[" ".join(at)], conversation, pipe)

    def record_fields(self, fields: dict[str, Any]) -> None:
        """Records further acknowledged fields."""

    def check(self, store: SqlStore, conversation: str, acknowledged: int) -> int:
        return check(store, conversation, acknowledged)

    def wait_and_kill(self, child: int, reading: int, *, at_once: bool) -> None:
        """Kills after some acknowledgements, and at a random moment of what comes then."""
        self.read = b""
        wanted = 0 if at_once else self.chance.randrange(12)
        deadline = time.monotonic() + PATIENCE
        while self.read.count(b"\n") < wanted and time.monotonic() < deadline:
            if select.select([reading], [], [], 1)[0] and not self.read_more(reading):
                break
        time.sleep(self.chance.uniform(0, 0.04 if at_once else 0.008))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def read_more(self, reading: int) -> bool:
        some = os.read(reading, 65536)
        self.read += some
        return bool(some)

    def read_rest(self, reading: int) -> list[bytes]:
        while self.read_more(reading):
            pass
        os.close(reading)
        return [line for line in self.read.split(b"\n")[:-1] if line]

    def check_all(self) -> int:
        """Checks every store again after the last kill."""
        total = 0
        for place, known in self.acknowledged.items():
            with open_store(*place.split(" ")) as store:
                for conversation, seq in known.items():
                    total += self.check(store, conversation, seq)
        return total


def main(killer_type: type[WriterKiller] = WriterKiller) -> None:
    kind, place, schema, kills, seed = sys.argv[1:]
    killer = killer_type(kind, place, schema, int(seed))
    for number in range(int(kills)):
        killer.run_round(number)
    print(json.dumps({"acknowledged": killer.count, "events": killer.check_all()}))


if __name__ == "__main__":
    main()

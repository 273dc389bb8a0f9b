"""Writers that are killed: run as a process, it forks one writer after the other and kills each at a random moment.

A writer first reads all that was acknowledged before and compares it, then appends turns, several appends a turn, and
acknowledges each append on a pipe once the store has returned from it. What it writes follows from the conversation
and the number of the event, so that whoever reads it knows what has to stand there.

    python -m tests.store.mortal KINDS PLACE SCHEMA KILLS SEED
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
from segue.store.events import Completed, Event, Said, Sent, Switched
from segue.store.sql import SqlStore
from segue.store.words import query_of

from .conftest import opened

# The appends of a turn, by how many events each has: a reply, two outcomes, the next words.
APPENDS = (2, 1, 1, 2)
TURN = sum(APPENDS)
WHOLE = {0, 2, 3, 4}
"""How many events of the last turn there may be: an append is whole."""
KILLS_A_CONVERSATION = 8
KILLS_A_PLACE = 40
PATIENCE = 100


def event(conversation: str, seq: int) -> Event:
    """What stands at this place."""
    chance = random.Random(f"{conversation} {seq}")
    turn, place = divmod(seq - 1, TURN)
    words = f"{conversation} {seq} " + "word " * chance.choice((1, 10, 200, 1500))
    calls = tuple(ToolCall("run", {"turn": turn, "n": n}, id=f"hist_tool_{turn}_{n}") for n in (0, 1))
    match place:
        case 0:
            return Said(Message("ai", (Text(words), *calls), turn_key=f"turn-{turn}"))
        case 1:
            return Switched("anthropic", f"model-{turn}")
        case 2 | 3:
            return Completed(Message("tool", (calls[place - 2].respond(words),), turn_key=f"turn-{turn}"))
        case 4:
            return Sent("anthropic", f"model-{turn}")
        case _:
            return Said(Message("human", (Text(words),)))


def check(store: SqlStore, conversation: str, acknowledged: int) -> int:
    """Says how many events there are, once they are all that they have to be."""
    records = list(store.events(conversation))
    assert len(records) >= acknowledged, f"{conversation}: {acknowledged} acknowledged, {len(records)} there"
    assert [record.seq for record in records] == list(range(1, len(records) + 1)), f"{conversation}: gaps"
    assert len(records) % TURN in WHOLE, f"{conversation}: half an append, {len(records)} events"
    for record in records:
        assert record.event == event(conversation, record.seq), f"{conversation}: event {record.seq} is another"
    summary = store.get(conversation)
    said = sum(not isinstance(record.event, Switched | Sent) for record in records)
    assert (summary.seq, summary.messages) == (len(records), said), f"{conversation}: {summary}"
    with store._reading() as session:
        found = len(store._matches(session, query_of(conversation), 10**6))
    assert found == said, f"{conversation}: {found} of {said} messages found"
    return len(records)


def write(at: tuple[str, str, str], known: dict[str, int], conversation: str | None, pipe: int) -> None:
    """The life of a writer. It ends by being killed."""

    def tell(**words: object) -> None:
        os.write(pipe, json.dumps(words).encode() + b"\n")

    try:
        store = opened(*at)
        if conversation is None:
            conversation = store.create()
            tell(conversation=conversation, seq=0)
        seq = check(store, conversation, known.get(conversation, 0))
        while True:
            count = APPENDS[[0, 2, 3, 4].index(seq % TURN)]
            seq = store.append(conversation, seq, [event(conversation, seq + n + 1) for n in range(count)])
            tell(conversation=conversation, seq=seq)
    except (AssertionError, StoreError) as error:
        tell(bad=f"{type(error).__name__}: {error}")


class Executioner:
    def __init__(self, kind: str, place: str, schema: str, seed: int) -> None:
        self.kind, self.place, self.schema = kind, place, schema
        self.chance = random.Random(seed)
        self.acknowledged: dict[str, dict[str, int]] = {}
        self.told = 0

    def at(self, number: int) -> tuple[str, str, str]:
        """Another place now and then: a store that is killed while it is made has to be made by the next."""
        suffix = number // KILLS_A_PLACE
        return self.kind, f"{self.place}-{suffix}" if self.kind == "sqlite" else self.place, f"{self.schema}_{suffix}"

    def round(self, number: int) -> None:
        at = self.at(number)
        known = self.acknowledged.setdefault(" ".join(at), {})
        conversation = list(known)[-1] if known and number % KILLS_A_CONVERSATION else None
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self.live(at, conversation, writing, number)
            os._exit(1)
        os.close(writing)
        self.wait_and_kill(child, reading, at_once=number % KILLS_A_PLACE < 5)
        for line in self.rest(reading):
            words = json.loads(line)
            if "bad" in words:
                raise AssertionError(words["bad"])
            known[words["conversation"]] = words["seq"]
            self.hear(words)
            self.told += 1

    def live(self, at: tuple[str, str, str], conversation: str | None, pipe: int, number: int) -> None:
        write(at, self.acknowledged[" ".join(at)], conversation, pipe)

    def hear(self, words: dict[str, Any]) -> None:
        """What else was acknowledged."""

    def check(self, store: SqlStore, conversation: str, acknowledged: int) -> int:
        return check(store, conversation, acknowledged)

    def wait_and_kill(self, child: int, reading: int, *, at_once: bool) -> None:
        """Kills after some acknowledgements, and at a random moment of what comes then."""
        self.read = b""
        wanted = 0 if at_once else self.chance.randrange(12)
        deadline = time.monotonic() + PATIENCE
        while self.read.count(b"\n") < wanted and time.monotonic() < deadline:
            if select.select([reading], [], [], 1)[0] and not self.take(reading):
                break
        time.sleep(self.chance.uniform(0, 0.04 if at_once else 0.008))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def take(self, reading: int) -> bool:
        some = os.read(reading, 65536)
        self.read += some
        return bool(some)

    def rest(self, reading: int) -> list[bytes]:
        while self.take(reading):
            pass
        os.close(reading)
        return [line for line in self.read.split(b"\n")[:-1] if line]

    def judge(self) -> int:
        """Reads everything once more, when nobody is killed any more."""
        total = 0
        for place, known in self.acknowledged.items():
            with opened(*place.split(" ")) as store:
                for conversation, seq in known.items():
                    total += self.check(store, conversation, seq)
        return total


def main(made: type[Executioner] = Executioner) -> None:
    kind, place, schema, kills, seed = sys.argv[1:]
    executioner = made(kind, place, schema, int(seed))
    for number in range(int(kills)):
        executioner.round(number)
    print(json.dumps({"acknowledged": executioner.told, "events": executioner.judge()}))


if __name__ == "__main__":
    main()

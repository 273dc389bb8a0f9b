"""PostgreSQL behind a network that fails: nothing acknowledged is lost, nothing is stored twice, no writer hangs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

import pytest
from psycopg.conninfo import conninfo_to_dict

from segue.canonical.blocks import text_of
from segue.errors import LeaseError, StoreError
from segue.store.base import LeaseClaim
from segue.store.conversation import StoredConversation
from segue.store.postgres import PostgresStore
from tests.budget import SOAK
from tests.store.leases import TTL, Clock
from tests.store.partition import KINDS, Failure, Kind, Partition, partitioned
from tests.store.stored_turn import State, StoredTurn, run_steps

T = TypeVar("T")

SAMPLE = 2
# A silent connection costs three times as long.
SHORT, LONG = 0.3, 60
WRITER, OTHER = "the first", "the second"


class Network:
    """A store behind a partition, one that reaches the same server directly, and a clock for both."""

    def __init__(self, server: str, partition: Partition) -> None:
        schema = f"partition_{id(self)}"
        self.partition = partition
        self.clock = Clock()
        self.direct = PostgresStore(server, schema=schema, clock=self.clock, timeout=LONG)
        self.patient = PostgresStore(partition.url, schema=schema, clock=self.clock, timeout=LONG)
        self.hasty = PostgresStore(partition.url, schema=schema, clock=self.clock, timeout=SHORT)

    def begin(self, failure: Failure | None) -> None:
        for summary in self.direct.list():
            self.direct.delete(summary.id, owner=getattr(self.direct.lease(summary.id), "owner", None))
        self.clock.now = Clock().now
        self.partition.begin(failure)

    def settle(self) -> None:
        """Wait until the server has ended every transaction: a commit that is under way may still succeed."""
        deadline = time.monotonic() + LONG
        open_transactions = "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        while True:
            with self.direct._read_session() as session:
                if not session.run(f"{open_transactions} AND backend_type = 'client backend'"):
                    return
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def close(self) -> None:
        self.patient.close()
        self.hasty.close()
        with self.direct._write_session() as session:
            session.run(f"DROP SCHEMA {self.direct._schema} CASCADE")
        self.direct.close()


@pytest.fixture(scope="module")
def network(server: str) -> Generator[Network]:
    with partitioned(Path(str(conninfo_to_dict(server)["host"]))) as partition:
        network = Network(server, partition)
        yield network
        network.close()


class PartitionedTurn(StoredTurn):
    """A turn through the partition, whose state is read past it."""

    def __init__(self, network: Network, store: PostgresStore) -> None:
        super().__init__(store)
        self.reader = network.direct


@pytest.fixture(scope="module")
def undisturbed(network: Network) -> tuple[list[bytes], list[State]]:
    """The requests of a turn without failures, and its states."""
    network.begin(None)
    states = run_steps(PartitionedTurn(network, network.patient))
    return network.partition.requests, states


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_is_stored_once_whichever_request_fails(
    network: Network, undisturbed: tuple[list[bytes], list[State]], kind: Kind
) -> None:
    requests, states = undisturbed
    store = network.hasty if kind == "void" else network.patient
    for at in choose_requests(requests, kind):
        network.begin(Failure(kind, at))
        run_steps(PartitionedTurn(network, store), states, network.settle)


def choose_requests(requests: list[bytes], seed: str) -> list[int]:
    """All requests, or a few of them and of the commits."""
    if SOAK:
        return list(range(len(requests)))
    chance = random.Random(seed)
    commits = [number for number, request in enumerate(requests) if b"COMMIT" in request]
    return [*chance.sample(range(len(requests)), SAMPLE), *chance.sample(commits, min(SAMPLE, len(commits)))]


def test_cut_off_writer_is_refused_after_another_acquired_the_lease(network: Network) -> None:
    network.begin(None)
    writer = open_writer(network)
    network.partition.begin(None)
    when_reachable(lambda: writer.add_user("counted"))
    for at in choose_requests(network.partition.requests, "held"):
        check_takeover(network, at)


def check_takeover(network: Network, at: int) -> None:
    """A writer is cut off at this request; another one acquires its lease and writes; then the network is back."""
    network.begin(None)
    writer = open_writer(network)
    errors: list[StoreError] = []

    def write() -> None:
        try:
            writer.add_user("cut off")
        except StoreError as error:
            errors.append(error)

    network.partition.begin(Failure("held", at))
    thread = threading.Thread(target=write)
    thread.start()
    while not network.partition.is_held.wait(0.1) and thread.is_alive():
        pass
    network.clock.advance(TTL)
    other = StoredConversation(network.direct, writer.id, owner=OTHER, ttl=TTL)
    other.add_user("taken over")
    network.partition.release()
    thread.join()
    assert not [error for error in errors if not error.retryable and not isinstance(error, LeaseError)]
    with pytest.raises(LeaseError):
        when_reachable(lambda: writer.add_user("late"))
    other.add_user("and on")
    texts = [text_of(message.blocks) for message in StoredConversation(network.direct, writer.id).messages]
    # It is written if the request was of another connection of the pool.
    assert texts == [*([] if errors else ["cut off"]), "taken over", "and on"]


def open_writer(network: Network) -> StoredConversation:
    """A new conversation behind the partition, with its lease."""
    id = network.direct.create(lease=LeaseClaim(WRITER, TTL))
    return when_reachable(lambda: StoredConversation(network.hasty, id, owner=WRITER, ttl=TTL))


def when_reachable(call: Callable[[], T]) -> T:
    """Call until the server is reached: with so short a limit, a busy machine is enough to miss it."""
    deadline = time.monotonic() + LONG
    while True:
        try:
            return call()
        except StoreError as error:
            if isinstance(error, LeaseError) or not error.retryable or time.monotonic() > deadline:
                raise

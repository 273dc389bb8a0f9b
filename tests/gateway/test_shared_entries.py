"""Entries in a store that fails, and the setting that locates it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from segue.bridge.entries import EntryMemory
from segue.cli.gateway_settings import load_settings
from segue.cli.streams import BadInputError
from segue.errors import StoreError, StoreErrorCause
from segue.gateway.entry_store import EntryStore
from segue.gateway.metrics import Metrics
from segue.gateway.shared_entries import SharedEntries
from segue.store.postgres_server import open_pool


class FailingStore:
    """A store that raises what `error` is, else keeps entries in memory."""

    def __init__(self) -> None:
        self.error: StoreError | None = None
        self.calls = 0
        self.closed = 0
        self._memory = EntryMemory()

    def _check(self) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error

    def load(self, keys: Iterable[str]) -> dict[str, bytes]:
        self._check()
        return self._memory.load(keys)

    def save(self, entries: Mapping[str, bytes]) -> None:
        self._check()
        self._memory.save(entries)

    def delete(self, keys: Iterable[str]) -> None:
        self._check()
        self._memory.delete(keys)

    def renew_uses(self, uses: Sequence[str]) -> None:
        self._check()

    def close(self) -> None:
        self.closed += 1


def make(store: FailingStore, pause: float, mark: Path | None = None) -> tuple[SharedEntries, Metrics, list[str]]:
    metrics, log = Metrics(), list[str]()

    def open_store() -> EntryStore:
        return store  # pyright: ignore[reportReturnType]  it has the same methods

    return SharedEntries(open_store, metrics, log.append, pause, mark), metrics, log


async def wait_until_it_works(entries: SharedEntries) -> None:
    while entries.is_failing:
        await asyncio.sleep(0)


@pytest.mark.parametrize(("cause", "closed"), [("lost", 0), ("full", 0), ("locked", 0), ("failed", 2)])
def test_exchange_goes_on_without_a_store_that_fails(cause: StoreErrorCause, closed: int) -> None:
    store = FailingStore()
    entries, metrics, log = make(store, 0)

    async def exchange() -> None:
        await entries.save({"a": b"1"})
        assert await entries.load(["a"]) == {"a": b"1"}
        store.error = StoreError("gone", cause=cause)
        assert await entries.load(["a"]) == {}
        assert entries.is_failing
        assert 'segue_store_failures_total{operation="load"}' in metrics.render()
        store.error = None
        await wait_until_it_works(entries)
        assert await entries.load(["a"]) == {"a": b"1"}

    asyncio.run(exchange())
    assert log == ["the store fails, requests are served without it: gone", "the store works again"]
    assert store.closed >= closed


@pytest.mark.parametrize("cause", ["lost", "locked"])
def test_store_that_fails_is_awaited_by_one_request_of_all_workers(cause: StoreErrorCause, tmp_path: Path) -> None:
    store, mark = FailingStore(), tmp_path / "gateway.store"
    store.error = StoreError("gone", cause=cause)

    async def exchange() -> None:
        (first, metrics, log), (second, _, _) = make(store, 1000, mark), make(store, 0, mark)
        for _ in range(3):
            assert await first.load(["a"]) == {}
        assert store.calls == 1
        assert 'segue_store_failures_total{operation="load"} 3' in metrics.render()
        assert second.is_failing
        store.error = None
        # It takes the failure over without a call, and tries the store in its own task.
        assert await second.load(["a"]) == {}
        assert store.calls == 1
        await wait_until_it_works(second)
        assert not mark.exists()
        assert log == ["the store fails, requests are served without it: gone"]
        for entries in (first, second):
            entries.close()

    asyncio.run(exchange())


def test_relative_store_begins_at_the_folder_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    file = tmp_path / ".segue.toml"
    file.write_text('[gateway]\nstore = "entries.db"\nworkers = 2\n')
    assert load_settings()[0].store is None
    table, _ = load_settings(trusting=True)
    assert table.store == str(tmp_path / "entries.db")
    assert table.workers == 2
    file.write_text('[gateway]\nstore = "postgresql://host/db"\n')
    with pytest.raises(BadInputError, match="must be a file in a project file"):
        load_settings(trusting=True)
    for line in ("workers = 0", "store_days = 0", "store_mb = 0"):
        file.write_text(f"[gateway]\n{line}\n")
        with pytest.raises(BadInputError, match=line.partition(" ")[0]):
            load_settings(trusting=True)


def test_no_pool_waits_longer_for_a_server_than_one_use(server: str) -> None:
    """A pool's own attempts are ever rarer the longer a server is away: up to minutes."""
    for timeout in (2.0, 10.0):
        with open_pool(server, timeout) as pool:
            assert pool.reconnect_timeout == timeout

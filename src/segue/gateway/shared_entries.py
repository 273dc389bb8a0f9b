"""`SharedEntries`: the entries of a gateway in a store that several processes share.

A store that fails never breaks an exchange: it continues without the entries, and the failure is logged and counted.
The store is used again as soon as it works.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from segue.errors import InputError, StoreError
from segue.gateway.entry_store import EntryLimits, EntryStore, SqliteEntries
from segue.gateway.metrics import Metrics
from segue.runtime.threads import AbandonedWorkError, run_in_thread
from segue.store import resolve_file

_PATIENCE = 5.0
_PAUSE = 2.0
_TRANSIENT = frozenset({"locked", "lost", "full"})
"""Causes after which the open store can be used again; after others it is opened anew."""


def open_entries(where: str, limits: EntryLimits | None = None) -> EntryStore:
    """Open the entries in this file or at this `postgresql://` URL; a missing file or schema is created."""
    if (file := resolve_file(where)) is not None:
        return SqliteEntries(file, limits)
    try:
        from segue.gateway.postgres_entries import PostgresEntries
    except ImportError as error:
        raise InputError(
            f"PostgreSQL needs the extra `postgres` ({error}): pip install 'segue[postgres]'", path="store"
        ) from None
    return PostgresEntries(where, limits)


class SharedEntries:
    """An `AsyncEntries` of `segue.bridge.entries`. `open_store` opens the store; `log` writes a line to the log.

    After a failure other than a lock the store is not used for `pause` seconds, so that a server that does not answer
    does not delay every request.
    """

    def __init__(
        self, open_store: Callable[[], EntryStore], metrics: Metrics, log: Callable[[str], None], pause: float = _PAUSE
    ) -> None:
        self._open_store = open_store
        self._metrics = metrics
        self._log = log
        self._pause = pause
        self._store: EntryStore | None = None
        self._lock = threading.Lock()
        self._resume = 0.0
        metrics.store_up = True

    @property
    def is_failing(self) -> bool:
        return not self._metrics.store_up

    def open(self) -> EntryStore:
        """Open the store, unless it is open."""
        with self._lock:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def close(self) -> None:
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.close()

    async def load(self, keys: Iterable[str]) -> Mapping[str, bytes]:
        return await self.run("load", lambda store: store.load(keys)) or {}

    async def save(self, entries: Mapping[str, bytes]) -> None:
        await self.run("save", lambda store: store.save(entries))

    async def delete(self, keys: Iterable[str]) -> None:
        await self.run("delete", lambda store: store.delete(keys))

    async def run(self, operation: str, call: Callable[[EntryStore], Any]) -> Any:
        if time.monotonic() < self._resume:
            self._metrics.count("segue_store_failures_total", operation=operation)
            return None
        # A file or table that was removed is created anew, so the second attempt may succeed.
        for is_last in (False, True):
            try:
                async with asyncio.timeout(_PATIENCE):
                    result = await run_in_thread(self._call, call)
            except StoreError as error:
                self._fail(
                    operation, str(error), has_pause=error.cause != "locked" and (is_last or error.cause in _TRANSIENT)
                )
                if error.cause in _TRANSIENT:
                    break
            except (InputError, AbandonedWorkError) as error:
                self._fail(operation, str(error), has_pause=True)
                break
            except TimeoutError:
                self._fail(operation, f"no answer within {_PATIENCE:g} s", has_pause=True)
                break
            else:
                self._succeed()
                return result
        return None

    def _call(self, call: Callable[[EntryStore], Any]) -> Any:
        store = self.open()
        try:
            return call(store)
        except StoreError as error:
            if error.cause not in _TRANSIENT:
                self._discard(store)
            raise

    def _discard(self, store: EntryStore) -> None:
        with self._lock:
            if self._store is store:
                self._store = None
        store.close()

    def _fail(self, operation: str, reason: str, *, has_pause: bool) -> None:
        if not self.is_failing:
            self._log(f"the store fails, requests are served without it: {reason}")
        self._metrics.store_up = False
        self._metrics.count("segue_store_failures_total", operation=operation)
        if has_pause:
            self._resume = time.monotonic() + self._pause

    def _succeed(self) -> None:
        if self.is_failing:
            self._metrics.store_up = True
            self._log("the store works again")

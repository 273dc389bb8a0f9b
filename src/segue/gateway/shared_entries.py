"""`SharedEntries`: the entries of a gateway in a store that several processes share.

A store that fails never breaks an exchange: it continues without the entries, and the failure is logged and counted.
Only the request that finds it waits for it: from then on a task tries the store, and all workers go on without it until
it works again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from segue.errors import InputError, StoreError
from segue.gateway.entry_store import EntryLimits, EntryStore, SqliteEntries
from segue.gateway.metrics import Metrics
from segue.runtime.threads import AbandonedWorkError, run_in_thread
from segue.store import resolve_file

_PATIENCE = 5.0
_PAUSE = 1.0
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

    A store that fails is tried again every `pause` seconds. `mark` is a file that is there while it fails, and tells
    other workers.
    """

    def __init__(
        self,
        open_store: Callable[[], EntryStore],
        metrics: Metrics,
        log: Callable[[str], None],
        pause: float = _PAUSE,
        mark: Path | None = None,
    ) -> None:
        self._open_store = open_store
        self._metrics = metrics
        self._log = log
        self._pause = pause
        self._store: EntryStore | None = None
        self._lock = threading.Lock()
        self._mark = mark
        self._trial: asyncio.Task[None] | None = None
        metrics.store_up = True

    @property
    def is_failing(self) -> bool:
        return not self._metrics.store_up or self._is_marked

    @property
    def _is_marked(self) -> bool:
        return self._mark is not None and self._mark.exists()

    def open(self) -> EntryStore:
        """Open the store, unless it is open."""
        with self._lock:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def start(self) -> None:
        """Open the store. If it can't be used for now, report it; raise `InputError` if another setting is needed."""
        try:
            self.open()
        except StoreError as error:
            if error.cause not in _TRANSIENT:
                raise InputError(str(error), path="gateway.store") from None
            self._report_failure("open", str(error))

    async def check(self) -> None:
        """Use the store before a request does."""
        await self.run("trial", lambda store: store.renew_uses(()))

    def close(self) -> None:
        with self._lock:
            store, self._store = self._store, None
        if self._trial is not None:
            self._trial.cancel()
        if store is not None:
            store.close()

    async def load(self, keys: Iterable[str]) -> Mapping[str, bytes]:
        return await self.run("load", lambda store: store.load(keys)) or {}

    async def save(self, entries: Mapping[str, bytes]) -> None:
        await self.run("save", lambda store: store.save(entries))

    async def delete(self, keys: Iterable[str]) -> None:
        await self.run("delete", lambda store: store.delete(keys))

    async def run(self, operation: str, call: Callable[[EntryStore], Any]) -> Any:
        if self._trial is None and self._is_marked:
            self._fail(operation, "another worker could not use it")
            return None
        if self._trial is not None:
            self._metrics.count("segue_store_failures_total", operation=operation)
            return None
        return await self._use(operation, call)

    async def _try_again(self) -> None:
        """Use the store until it works."""
        while not self._metrics.store_up:
            await asyncio.sleep(self._pause)
            await self._use("trial", lambda store: store.renew_uses(()))

    async def _use(self, operation: str, call: Callable[[EntryStore], Any]) -> Any:
        # A file or table that was removed is created anew, so the second attempt may succeed.
        for _ in range(2):
            try:
                async with asyncio.timeout(_PATIENCE):
                    result = await run_in_thread(self._call, call)
            except StoreError as error:
                self._report_failure(operation, str(error))
                if error.cause in _TRANSIENT:
                    break
            except (InputError, AbandonedWorkError) as error:
                self._report_failure(operation, str(error))
                break
            except TimeoutError:
                self._report_failure(operation, f"no answer within {_PATIENCE:g} s")
                break
            else:
                self._succeed()
                return result
        self._fail(operation)
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

    def _report_failure(self, operation: str, reason: str) -> None:
        if self._metrics.store_up:
            self._log(f"the store fails, requests are served without it: {reason}")
        self._metrics.store_up = False
        self._metrics.count("segue_store_failures_total", operation=operation)

    def _fail(self, operation: str, reason: str = "") -> None:
        """Leave the store alone until it works."""
        if reason:
            self._report_failure(operation, reason)
        if self._mark is not None:
            with suppress(OSError):
                self._mark.touch(0o600)
        if self._trial is None:
            self._trial = asyncio.create_task(self._try_again())

    def _succeed(self) -> None:
        if not self._metrics.store_up:
            self._metrics.store_up = True
            self._trial = None
            if self._mark is not None:
                with suppress(OSError):
                    self._mark.unlink(missing_ok=True)
            self._log("the store works again")

"""`SharedLimits`: the limits of client keys, counted in the store for all processes that share it."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

from msgspec import Struct

from segue.gateway.client_keys import ClientKey
from segue.gateway.client_uses import LEASE
from segue.gateway.entry_store import EntryStore
from segue.gateway.limits import Admission, Denied, ProcessLimits, find_denial
from segue.gateway.shared_entries import SharedEntries

# The end of a client's last request may still be on its way to the store.
_BUSY_WAITS = (0.05, 0.1, 0.2)


class _Counted(Struct, frozen=True):
    """The store has counted a request; None as the result means that it failed."""

    denial: Denied | None


class SharedLimits:
    """`Limits` in the store of the gateway's entries. While the store fails, this process counts for itself."""

    def __init__(self, entries: SharedEntries) -> None:
        self._entries = entries
        self._own = ProcessLimits()
        self._open: set[str] = set()
        self._renewal: asyncio.Task[None] | None = None

    async def admit(self, client: ClientKey) -> Admission | Denied:
        use = secrets.token_hex(12)

        def begin(store: EntryStore) -> _Counted:
            return _Counted(store.begin_use(client.name, use, lambda counts: find_denial(client, counts)))

        counted = await self._entries.run("limits", begin)
        for wait in _BUSY_WAITS:
            if not (isinstance(counted, _Counted) and counted.denial is not None and counted.denial.is_busy):
                break
            await asyncio.sleep(wait)
            counted = await self._entries.run("limits", begin)
        if not isinstance(counted, _Counted):
            return await self._own.admit(client)
        if counted.denial is not None:
            return counted.denial
        self._open.add(use)
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew())
        return Admission(client.name, lambda tokens: self._end(use, tokens))

    async def _end(self, use: str, tokens: int) -> None:
        self._open.discard(use)
        # Not cancelled with its request.
        await asyncio.shield(self._entries.run("limits", lambda store: store.end_use(use, tokens)))

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LEASE / 3)
            if uses := tuple(self._open):
                await self._entries.run("limits", lambda store, uses=uses: store.renew_uses(uses))

    async def close(self) -> None:
        task, self._renewal = self._renewal, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

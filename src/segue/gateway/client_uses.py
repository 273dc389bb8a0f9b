"""`ClientUses`: the requests and tokens of a gateway's clients in the last minute, for any number of processes.

Each request is a row. While it is open it has a lease, which its process renews; that of a process that was killed
ends by itself, so its requests do not count as open for longer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from msgspec import Struct

from segue.store.sql import SqlSession

WINDOW = 60.0
"""The seconds in which requests and tokens are counted."""
LEASE = 30.0
"""The seconds for which a request counts as open, unless its lease is renewed."""
Denial = TypeVar("Denial")


class UseCounts(Struct, frozen=True):
    """The uses of one client: open requests, and requests and tokens of the last minute.

    `oldest_request` and `oldest_tokens` are the ages of the oldest ones that count, in seconds.
    """

    open: int = 0
    requests: int = 0
    tokens: int = 0
    oldest_request: float = 0.0
    oldest_tokens: float = 0.0


class ClientUses(ABC):
    """Uses in a database. Thread-safe; all methods block, and raise `StoreError`."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[SqlSession]:
        """Return a session for writing, which is committed at its end."""

    @abstractmethod
    def _read_time(self, session: SqlSession) -> float:
        """Return the time in seconds, of one clock for all processes."""

    @abstractmethod
    def _lock_client(self, session: SqlSession, client: str) -> None:
        """Let other transactions about this client wait until the end of this one."""

    def begin_use(self, client: str, use: str, deny: Callable[[UseCounts], Denial | None]) -> Denial | None:
        """Add a request of a client, unless `deny` returns a denial for the counts so far; return that."""
        with self._transaction() as session:
            self._lock_client(session, client)
            now = self._read_time(session)
            session.run(
                "DELETE FROM @uses WHERE client = ? AND started <= ? AND ended <= ? AND lease <= ?",
                *(client, now - WINDOW, now - WINDOW, now),
            )
            denial = deny(self._count(session, client, now))
            if denial is None:
                session.run(
                    "INSERT INTO @uses (id, client, started, lease, ended, tokens) VALUES (?, ?, ?, ?, 0, 0)",
                    *(use, client, now, now + LEASE),
                )
            return denial

    def _count(self, session: SqlSession, client: str, now: float) -> UseCounts:
        [(is_open,)] = session.run("SELECT count(*) FROM @uses WHERE client = ? AND lease > ?", client, now)
        [(requests, first)] = session.run(
            "SELECT count(*), min(started) FROM @uses WHERE client = ? AND started > ?", client, now - WINDOW
        )
        [(tokens, first_tokens)] = session.run(
            "SELECT coalesce(sum(tokens), 0), min(ended) FROM @uses WHERE client = ? AND ended > ? AND tokens > 0",
            *(client, now - WINDOW),
        )
        ages = (0.0 if moment is None else now - moment for moment in (first, first_tokens))
        return UseCounts(is_open, requests, int(tokens), *ages)

    def end_use(self, use: str, tokens: int) -> None:
        """Record the end of a request, and its tokens."""
        with self._transaction() as session:
            now = self._read_time(session)
            session.run("UPDATE @uses SET lease = 0, ended = ?, tokens = ? WHERE id = ?", now, tokens, use)

    def renew_uses(self, uses: Sequence[str]) -> None:
        """Renew the leases of open requests."""
        with self._transaction() as session:
            now = self._read_time(session)
            for use in sorted(uses):
                session.run("UPDATE @uses SET lease = ? WHERE id = ? AND lease > 0", now + LEASE, use)

"""`ClientUses`: the requests, tokens and spending of a gateway's clients and groups, for any number of processes.

Each request is a row for each of its scopes, and one for what it reserved of budgets. While it is open it has a lease,
which its process renews; that of a process that was killed ends by itself: its requests do not count as open for
longer, and what it had reserved counts as spent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from msgspec import Struct

from segue.gateway.budgets import BudgetLine, BudgetState
from segue.store.sql import SqlSession

WINDOW = 60.0
"""The seconds in which requests and tokens are counted."""
LEASE = 30.0
"""The seconds for which a request counts as open, unless its lease is renewed."""
Denial = TypeVar("Denial")
_MONEY = "$"
"""In the place of the client, in the row of what a request reserved; no client has this name."""
_KEPT_SECONDS = 40 * 86_400.0
"""How long the state of a budget is kept after its period."""


class UseCounts(Struct, frozen=True):
    """The uses of one client: open requests, and requests and tokens of the last minute.

    `oldest_request` and `oldest_tokens` are the ages of the oldest ones that count, in seconds.
    """

    open: int = 0
    requests: int = 0
    tokens: int = 0
    oldest_request: float = 0.0
    oldest_tokens: float = 0.0


class _DoesNotFitError(Exception):
    """A reservation does not fit into a budget: the transaction is rolled back."""


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

    def begin_use(
        self, clients: Sequence[str], use: str, deny: Callable[[int, UseCounts], Denial | None]
    ) -> Denial | None:
        """Add a request of these clients and groups, unless `deny` returns a denial for the counts of one of them.

        `deny` gets the position of the client. Return its denial.
        """
        with self._transaction() as session:
            for client in sorted(clients):
                self._lock_client(session, client)
            now = self._read_time(session)
            for position, client in enumerate(clients):
                session.run(
                    "DELETE FROM @uses WHERE client = ? AND started <= ? AND ended <= ? AND lease <= ?",
                    *(client, now - WINDOW, now - WINDOW, now),
                )
                denial = deny(position, self._count(session, client, now))
                if denial is not None:
                    return denial
            for client in clients:
                session.run(
                    "INSERT INTO @uses (id, client, started, lease, ended, tokens) VALUES (?, ?, ?, ?, 0, 0)",
                    *(f"{use}/{client}", client, now, now + LEASE),
                )
            return None

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

    def reserve(self, use: str, lines: Sequence[BudgetLine], amount: int) -> tuple[bool, list[BudgetState]]:
        """Reserve an amount of all these budgets, or of none if one has not enough left.

        Return whether it is reserved, and the states of the budgets. A request may reserve more later.
        """
        ordered = sorted(lines, key=lambda line: line.key)
        try:
            with self._transaction() as session:
                now = self._read_time(session)
                if any(amount > line.budget.amount for line in lines):
                    raise _DoesNotFitError
                values = [value for line in ordered for value in (line.key, line.ends, line.budget.amount, amount)]
                # The condition and the change are one statement, so no other process can reserve in between.
                rows = session.run(
                    "INSERT INTO @budgets AS b (key, ends, allowed, spent, held) VALUES "
                    + ", ".join(["(?, ?, ?, 0, ?)"] * len(ordered))
                    + " ON CONFLICT (key) DO UPDATE SET held = b.held + excluded.held, allowed = excluded.allowed"
                    " WHERE b.spent + b.held + excluded.held <= excluded.allowed RETURNING key, spent, held",
                    *values,
                )
                if len(rows) < len(ordered):
                    raise _DoesNotFitError
                session.run(
                    "INSERT INTO @uses AS u (id, client, started, lease, ended, tokens, held, budgets) "
                    "VALUES (?, ?, ?, ?, 0, 0, ?, ?) ON CONFLICT (id) DO UPDATE SET held = u.held + excluded.held",
                    *(use, _MONEY, now, now + LEASE, amount, "\n".join(line.key for line in ordered)),
                )
        except _DoesNotFitError:
            return False, self.read_budgets(lines)
        found = {key: BudgetState(int(spent), int(held)) for key, spent, held in rows}
        return True, [found[line.key] for line in lines]

    def settle(self, use: str, lines: Sequence[BudgetLine], reserved: int, cost: int) -> list[BudgetState]:
        """Record what a request cost in place of what it had reserved, and return the states of its budgets."""
        with self._transaction() as session:
            is_open = bool(session.run("DELETE FROM @uses WHERE id = ? RETURNING id", use))
            # If the lease has ended, the reservation was taken for the cost.
            held, spent = (reserved, cost) if is_open else (0, cost - reserved)
            found = self._charge(session, {line.key: line for line in lines}, held, spent)
        return [found[line.key] for line in lines]

    def _charge(
        self, session: SqlSession, lines: Mapping[str, BudgetLine | None], held: int, spent: int
    ) -> dict[str, BudgetState]:
        found: dict[str, BudgetState] = {}
        # In one order, so that no two processes wait for each other.
        for key, line in sorted(lines.items()):
            ends, allowed = (None, 0) if line is None else (line.ends, line.budget.amount)
            [(total, still_held)] = session.run(
                "INSERT INTO @budgets AS b (key, ends, allowed, spent, held) VALUES (?, ?, ?, ?, 0) "
                "ON CONFLICT (key) DO UPDATE SET held = b.held - ?, spent = b.spent + excluded.spent "
                "RETURNING spent, held",
                *(key, ends, allowed, spent, held),
            )
            found[key] = BudgetState(int(total), int(still_held))
        return found

    def read_budgets(self, lines: Sequence[BudgetLine]) -> list[BudgetState]:
        """Return the states of budgets; reservations whose lease has ended are taken for spent."""
        with self._transaction() as session:
            now = self._read_time(session)
            ended = session.run(
                "DELETE FROM @uses WHERE client = ? AND lease <= ? RETURNING held, budgets", _MONEY, now
            )
            for held, budgets in ended:
                self._charge(session, dict.fromkeys(str(budgets).split("\n")), int(held), int(held))
            keys = [line.key for line in lines]
            marks = ", ".join("?" * len(keys))
            rows = session.run(f"SELECT key, spent, held FROM @budgets WHERE key IN ({marks})", *keys)
        found = {key: BudgetState(int(spent), int(held)) for key, spent, held in rows}
        return [found.get(key, BudgetState()) for key in keys]

    def end_use(self, clients: Sequence[str], use: str, tokens: int) -> None:
        """Record the end of a request, and its tokens."""
        with self._transaction() as session:
            now = self._read_time(session)
            for client in sorted(clients):
                session.run(
                    "UPDATE @uses SET lease = 0, ended = ?, tokens = ? WHERE id = ?", now, tokens, f"{use}/{client}"
                )

    def renew_uses(self, uses: Sequence[str]) -> None:
        """Renew the leases of open requests, and drop budgets of past periods."""
        with self._transaction() as session:
            now = self._read_time(session)
            session.run("DELETE FROM @budgets WHERE ends < ?", now - _KEPT_SECONDS)
            for use in sorted(uses):
                session.run("UPDATE @uses SET lease = ? WHERE id = ? AND lease > 0", now + LEASE, use)

"""Write locks on file paths: calls that write the same path run one after the other, in request order.

A ticket requests all its paths at once and is granted when it is first in the queue of each. Tickets join queues only
at the end, so there is no deadlock. An abandoned ticket keeps its place until its tool really ends; tickets behind it
get a `StuckError` after a timeout.

A nested call (made by a running tool) does not wait for its callers, which wait for it, and goes before all waiting
tickets, as these may wait for the same caller.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["Locks", "StuckError", "Ticket", "resolved"]


class StuckError(Exception):
    """The path is locked by an abandoned call that has not ended. `holder` is the name of its tool."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{path} is still being written by an earlier {holder} that was given up and has not ended")
        self.path = path
        self.holder = holder


def resolved(paths: Iterable[Path]) -> tuple[str, ...]:
    """The resolved paths, without duplicates: links followed, case normalized as on this system."""
    return tuple(dict.fromkeys(os.path.normcase(Path(path).resolve()) for path in paths))


class Ticket:
    """A call's request for the locks on its paths."""

    def __init__(self, locks: Locks, name: str, paths: Sequence[str], callers: Sequence[Ticket]) -> None:
        self.name = name
        self.paths = tuple(paths)
        self.callers = tuple(callers)
        self.granted = not paths
        self.given_up = False
        self._locks = locks
        self._turn: asyncio.Future[None] | None = None

    async def wait(self, patience: float) -> None:
        """Waits until granted. Behind an abandoned ticket it raises `StuckError` after the timeout, in seconds."""
        while not self.granted:
            stuck = self._locks.stuck(self)
            try:
                async with asyncio.timeout(patience if stuck is not None else None):
                    while not self.granted and (self._locks.stuck(self) is None) == (stuck is None):
                        self._turn = asyncio.get_running_loop().create_future()
                        await self._turn
            except TimeoutError:
                raise StuckError(*(stuck or (self.paths[0], self.name))) from None

    def wake(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    def give_up(self) -> None:
        """Marks the call as abandoned; its paths stay locked until it ends."""
        self.given_up = True
        self._locks.changed()

    def leave(self) -> None:
        """Releases the locks: the call has ended, or will not start."""
        self._locks.leave(self)


class Locks:
    """The queues of tickets, by path."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Ticket]] = {}

    def ask(self, name: str, paths: Sequence[str], *, within: Iterable[Ticket] = ()) -> Ticket:
        """Adds a ticket to the queue of each path. `callers` are the tickets of the enclosing calls."""
        ticket = Ticket(self, name, paths, tuple(within))
        for path in ticket.paths:
            row = self._rows.setdefault(path, [])
            waiting = (place for place, other in enumerate(row) if not other.granted and not other.callers)
            row.insert(next(waiting, len(row)) if ticket.callers else len(row), ticket)
        self.changed()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        for path in ticket.paths:
            row = self._rows.get(path, [])
            if ticket in row:
                row.remove(ticket)
            if not row:
                self._rows.pop(path, None)
        ticket.granted = False
        self.changed()

    def changed(self) -> None:
        """Grants the tickets that can be granted, and wakes all waiters."""
        for ticket in dict.fromkeys(ticket for row in self._rows.values() for ticket in row):
            ticket.granted = ticket.granted or not any(self._ahead(ticket, path) for path in ticket.paths)
            ticket.wake()

    def _ahead(self, ticket: Ticket, path: str) -> list[Ticket]:
        """The tickets before this one in the queue, except its callers."""
        row = self._rows.get(path, [])
        place = row.index(ticket) if ticket in row else 0
        return [other for other in row[:place] if other not in ticket.callers]

    def stuck(self, ticket: Ticket) -> tuple[str, str] | None:
        """A path that an abandoned ticket before this one still locks, and the name of its tool, or None."""
        for path in ticket.paths:
            for other in self._ahead(ticket, path):
                if other.given_up:
                    return path, other.name
        return None

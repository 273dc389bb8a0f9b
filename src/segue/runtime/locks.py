"""Who may write which file: writers of a path go one after the other, in the order in which they asked.

A ticket asks for all its paths at once and is granted when it is first in every row. Rows are only ever joined at the
end, so no two wait for each other. What was given up keeps its place until it really ends: whoever waits behind it is
told after a while that it can't go on.

A call that another call makes while it runs does not wait for its caller, which waits for it; and it goes before all
who only wait, for they may be waiting for the same caller.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["Locks", "StuckError", "Ticket", "resolved"]


class StuckError(Exception):
    """The path is held by a call that was given up and has not ended. `holder` is that call's name."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{path} is still being written by an earlier {holder} that was given up and has not ended")
        self.path = path
        self.holder = holder


def resolved(paths: Iterable[Path]) -> tuple[str, ...]:
    """The names under which files are the same: links followed, case as the system has it, each once."""
    return tuple(dict.fromkeys(os.path.normcase(Path(path).resolve()) for path in paths))


class Ticket:
    """One call's wish to write its paths."""

    def __init__(self, locks: Locks, name: str, paths: Sequence[str], callers: Sequence[Ticket]) -> None:
        self.name = name
        self.paths = tuple(paths)
        self.callers = tuple(callers)
        self.granted = not paths
        self.given_up = False
        self._locks = locks
        self._turn: asyncio.Future[None] | None = None

    async def wait(self, patience: float) -> None:
        """Until it is granted. Behind one that was given up it waits for `patience` seconds, then it is a
        `StuckError`."""
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
        """Nobody waits for this call any more, and its paths stay locked until it ends."""
        self.given_up = True
        self._locks.changed()

    def leave(self) -> None:
        """It has ended, or will never begin."""
        self._locks.leave(self)


class Locks:
    """The rows of those who want to write, by path."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Ticket]] = {}

    def ask(self, name: str, paths: Sequence[str], *, within: Iterable[Ticket] = ()) -> Ticket:
        """A place in the row of each path. `within` are the tickets of the calls that this one is made by."""
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
        """Grants what can be granted, and lets those who wait look again."""
        for ticket in dict.fromkeys(ticket for row in self._rows.values() for ticket in row):
            ticket.granted = ticket.granted or not any(self._ahead(ticket, path) for path in ticket.paths)
            ticket.wake()

    def _ahead(self, ticket: Ticket, path: str) -> list[Ticket]:
        """Those whom a ticket waits for."""
        row = self._rows.get(path, [])
        place = row.index(ticket) if ticket in row else 0
        return [other for other in row[:place] if other not in ticket.callers]

    def stuck(self, ticket: Ticket) -> tuple[str, str] | None:
        """A path of this ticket that somebody who was given up still has, and who that is."""
        for path in ticket.paths:
            for other in self._ahead(ticket, path):
                if other.given_up:
                    return path, other.name
        return None

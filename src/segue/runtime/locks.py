"""Write locks on file paths: calls that write the same path run one after the other, in request order.

Each call has a ticket, which joins the queues of all its paths at once, at their ends, so that there is no deadlock. It
is granted when it is first in each queue. The ticket of an abandoned call (cancelled or timed out) keeps its place
until the tool has ended; tickets behind it get a `PathLockedError` after a timeout.

A nested call (made by a running tool) does not wait for its callers, because they wait for it. Its ticket is put before
all waiting tickets, because these may wait for the same caller.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path


class PathLockedError(Exception):
    """The path is locked by an abandoned call that has not ended. `holder` is the name of its tool."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{path} is still being written by an earlier {holder} that was given up and has not ended")
        self.path = path
        self.holder = holder


def resolve_paths(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the resolved paths, without duplicates: links followed, case normalized as on this system."""
    return tuple(dict.fromkeys(os.path.normcase(Path(path).resolve()) for path in paths))


class Ticket:
    """A call's request for the locks on its paths."""

    def __init__(self, locks: PathLocks, name: str, paths: Sequence[str], callers: Sequence[Ticket]) -> None:
        self.name = name
        self.paths = tuple(paths)
        self.callers = tuple(callers)
        self.granted = not paths
        self.abandoned = False
        self._locks = locks
        self._waiter: asyncio.Future[None] | None = None

    async def wait(self, timeout: float) -> None:
        """Wait until granted. Behind an abandoned ticket it raises `PathLockedError` after the timeout, in seconds."""
        while not self.granted:
            stuck = self._locks.find_abandoned(self)
            try:
                async with asyncio.timeout(timeout if stuck is not None else None):
                    while not self.granted and (self._locks.find_abandoned(self) is None) == (stuck is None):
                        self._waiter = asyncio.get_running_loop().create_future()
                        await self._waiter
            except TimeoutError:
                raise PathLockedError(*(stuck or (self.paths[0], self.name))) from None

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def abandon(self) -> None:
        """Mark the call as abandoned; its paths stay locked until it ends."""
        self.abandoned = True
        self._locks.update()

    def release(self) -> None:
        """Release the locks: the call has ended, or will not start."""
        self._locks.release(self)


class PathLocks:
    """The queues of tickets, by path."""

    def __init__(self) -> None:
        self._queues: dict[str, list[Ticket]] = {}

    def request(self, name: str, paths: Sequence[str], *, callers: Iterable[Ticket] = ()) -> Ticket:
        """Add a ticket to the queue of each path. `callers` are the tickets of the enclosing calls."""
        ticket = Ticket(self, name, paths, tuple(callers))
        for path in ticket.paths:
            queue = self._queues.setdefault(path, [])
            waiting = (place for place, other in enumerate(queue) if not other.granted and not other.callers)
            queue.insert(next(waiting, len(queue)) if ticket.callers else len(queue), ticket)
        self.update()
        return ticket

    def release(self, ticket: Ticket) -> None:
        for path in ticket.paths:
            queue = self._queues.get(path, [])
            if ticket in queue:
                queue.remove(ticket)
            if not queue:
                self._queues.pop(path, None)
        ticket.granted = False
        self.update()

    def update(self) -> None:
        """Grant the tickets that can be granted, and wake all waiters."""
        for ticket in dict.fromkeys(ticket for queue in self._queues.values() for ticket in queue):
            ticket.granted = ticket.granted or not any(self._find_blockers(ticket, path) for path in ticket.paths)
            ticket.wake()

    def _find_blockers(self, ticket: Ticket, path: str) -> list[Ticket]:
        """Return the tickets before this one in the queue, except its callers."""
        queue = self._queues.get(path, [])
        place = queue.index(ticket) if ticket in queue else 0
        return [other for other in queue[:place] if other not in ticket.callers]

    def find_abandoned(self, ticket: Ticket) -> tuple[str, str] | None:
        """Return a path that an abandoned ticket before this one still locks, and the name of its tool, or None."""
        for path in ticket.paths:
            for other in self._find_blockers(ticket, path):
                if other.abandoned:
                    return path, other.name
        return None

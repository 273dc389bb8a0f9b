"""Forks share the events of their origin: SQL that reads the events of a fork, finds forks, and moves shared events.

A fork is a row with `origin` and `origin_seq`. Its events up to `origin_seq` are those of its origin, which may be a
fork itself; only later events are stored under its own number. So a fork costs the same for any length. Before a
conversation with forks is deleted, the events that they share are moved to one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.store.sql import SqlSession

# Ends the recursion if, in a damaged database, a conversation is its own ancestor.
_MAX_DEPTH = 10_000

_SPANS = f"""WITH RECURSIVE spans (number, origin, low, high, depth) AS (
    SELECT number, origin, coalesce(origin_seq, 0), 9223372036854775807, 0 FROM @conversations WHERE number = ?
    UNION ALL
    SELECT c.number, c.origin, CASE WHEN c.origin_seq < s.low THEN c.origin_seq WHEN c.origin IS NULL THEN 0
        ELSE s.low END, s.low, s.depth + 1
    FROM spans s JOIN @conversations c ON c.number = s.origin WHERE s.low > 0 AND s.depth < {_MAX_DEPTH}
) """


def select_events(columns: str, condition: str = "") -> str:
    """Return a query of events. Parameters: the number of the conversation, the first and the last event number."""
    return (
        f"{_SPANS} SELECT {columns} FROM spans s "
        "JOIN @events e ON e.conversation = s.number AND e.seq > s.low AND e.seq <= s.high "
        f"WHERE e.seq >= ? AND e.seq <= ? {condition}"
    )


def select_hits(count: int) -> str:
    """Return a query of `count` events by their ids, once for each conversation that has them.

    Columns: id, title and number of the conversation, the columns of the event, the event's id.
    """
    return f"""WITH RECURSIVE holders (event, number, seq, depth) AS (
        SELECT id, conversation, seq, 0 FROM @events WHERE id IN ({", ".join("?" * count)})
        UNION ALL
        SELECT h.event, c.number, h.seq, h.depth + 1 FROM holders h
        JOIN @conversations c ON c.origin = h.number AND c.origin_seq >= h.seq WHERE h.depth < {_MAX_DEPTH}
    )
    SELECT c.id, c.title, c.number, e.seq, e.at, e.kind, e.crc, e.data, e.id FROM holders h
    JOIN @events e ON e.id = h.event JOIN @conversations c ON c.number = h.number"""


def detach_forks(session: SqlSession, number: int, deleted: Sequence[int]) -> None:
    """Detach the forks of a conversation that is to be deleted, like all those in `deleted`.

    The shared events are moved to the fork with the most of them, which becomes the origin of the others.
    """
    [(origin, own_start)] = session.run(
        "SELECT origin, coalesce(origin_seq, 0) FROM @conversations WHERE number = ?", number
    )
    forks = session.run(
        "SELECT number, origin_seq FROM @conversations "
        f"WHERE origin = ? AND number NOT IN ({', '.join('?' * len(deleted))}) ORDER BY origin_seq DESC, number",
        *(number, *deleted),
    )
    if forks:
        new_origin, shared = forks[0]
        session.run(
            "UPDATE @events SET conversation = ? WHERE conversation = ? AND seq > ? AND seq <= ?",
            *(new_origin, number, own_start, shared),
        )
        for fork, seq in forks:
            # Events up to `own_start` are those of the origin, if there is one.
            keeps_origin = fork == new_origin or seq <= own_start
            _set_origin(session, fork, *((origin, min(seq, own_start)) if keeps_origin else (new_origin, seq)))
    _set_origin(session, number, None, 0)


def _set_origin(session: SqlSession, number: int, origin: int | None, seq: int) -> None:
    session.run(
        "UPDATE @conversations SET origin = ?, origin_seq = ? WHERE number = ?",
        *(origin, seq if origin is not None else None, number),
    )

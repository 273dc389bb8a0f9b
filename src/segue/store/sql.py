"""The store operations that SQLite and PostgreSQL share.

SQL is written with `?` for values and `@` before table names; each engine translates that. An engine provides only its
connections, transactions, clock, error translation and full-text index.

A writer locks the conversation's row (in SQLite, the file) before it reads the last event number, until the commit: so
a stale writer gets a `ConflictError`, and event numbers have no gaps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import ClassVar, Protocol

import msgspec

from segue.errors import ConflictError, InputError, LeaseError, StoreError, text_argument
from segue.store.base import HistoryStore, Hit, Lease, Record, Summary, iso
from segue.store.events import Event, Forked, Titled
from segue.store.ids import checked_id, new_id
from segue.store.owners import is_gone
from segue.store.rows import ROW, Prepared, Row, crc_of, damaged, prepare, record_of, storable, summary_after
from segue.store.words import query_of, show, text_of_event

__all__ = ["Query", "Session", "SqlStore"]

Query = list[tuple[str, ...]]

_PAGE = 200
_MOST = 1 << 62
_COLUMNS = "number, id, title, created, updated, seq, messages, model, opening"


class Session(Protocol):
    """A database connection in use by one operation."""

    def run(self, sql: str, *values: object) -> list[Row]: ...

    def many(self, sql: str, rows: Sequence[Row]) -> None: ...


class SqlStore(HistoryStore):
    """A store in an SQL database."""

    LOCK: ClassVar[str] = ""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Session]:
        """A transaction: committed to disk when the block ends, rolled back on an exception."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Session]: ...

    @abstractmethod
    def _now(self, session: Session) -> int: ...

    @abstractmethod
    def _event_ids(self, session: Session, count: int) -> list[int]:
        """New event ids, higher than all that exist."""

    @abstractmethod
    def _index(self, session: Session, parts: Sequence[tuple[int, int, str]]) -> None:
        """Adds tokens to the index: event id, part number, tokens separated by spaces."""

    @abstractmethod
    def _copy(self, session: Session, number: int, fork: int, seq: int) -> None:
        """Copies the events up to `seq` and their index entries to the conversation `fork`."""

    @abstractmethod
    def _forget(self, session: Session, numbers: Sequence[int]) -> None:
        """Removes the events of these conversations from the index."""

    @abstractmethod
    def _matches(self, session: Session, query: Query, limit: int) -> list[int]:
        """The ids of matching events, highest first."""

    def _after_delete(self) -> None:
        """Hook for an engine to erase deleted data from its files."""

    # ---------------------------------------------------------------------------------------------------------- writing

    def create(self, title: str | None = None, id: str | None = None, *, at: int | None = None) -> str:
        text_argument(title, "title", needed=False)
        text_argument(id, "id", needed=False)
        own_id = checked_id(id) if id is not None else None
        renamed = [prepare(Titled(title))] if title else []
        with self._writing() as session:
            now = self._now(session)
            number, summary = self._made(session, own_id, now, now if at is None else _past(at, now))
            if renamed:
                self._write(session, number, summary, renamed, [summary.created])
        return summary.id

    def _made(self, session: Session, own_id: str | None, now: int, at: int) -> tuple[int, Summary]:
        while True:
            name = own_id or new_id(now)
            rows = session.run(
                "INSERT INTO @conversations (id, created, updated, seq, messages) VALUES (?, ?, ?, 0, 0) "
                "ON CONFLICT (id) DO NOTHING RETURNING number",
                name,
                at,
                at,
            )
            if rows:
                return rows[0][0], Summary(name, None, at, at, 0, 0)
            if own_id is not None:
                raise InputError(f"a conversation with the id {own_id!r} already exists", path="id")

    def append(
        self, conversation: str, expected_seq: int, events: Iterable[Event], *, at: Sequence[int] | None = None
    ) -> int:
        prepared = [prepare(event) for event in events]
        if at is not None and len(at) != len(prepared):
            raise InputError(f"expected {len(prepared)} times, one for each event, not {len(at)}", path="at")
        with self._writing() as session:
            number, summary = self._locked(session, conversation)
            if summary.seq != expected_seq:
                raise ConflictError(summary.id, expected_seq, summary.seq)
            if prepared:
                now = self._now(session)
                times = [now] * len(prepared) if at is None else [_past(time, now) for time in at]
                self._write(session, number, summary, prepared, times)
        return expected_seq + len(prepared)

    def _write(
        self, session: Session, number: int, summary: Summary, prepared: Sequence[Prepared], times: Sequence[int]
    ) -> None:
        _, *ats = accumulate(times, max, initial=summary.updated)
        ids = self._event_ids(session, len(prepared))
        session.many(
            "INSERT INTO @events (id, conversation, seq, at, kind, crc, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (id, number, seq, at, item.kind, crc_of(seq, at, item.kind, item.data), item.data)
                for seq, (id, item, at) in enumerate(zip(ids, prepared, ats, strict=True), summary.seq + 1)
            ],
        )
        parts = [
            (id, part, text) for id, item in zip(ids, prepared, strict=True) for part, text in enumerate(item.parts)
        ]
        if parts:
            self._index(session, parts)
        new = summary_after(summary, [item.event for item in prepared])
        session.run(
            "UPDATE @conversations SET title = ?, updated = ?, seq = ?, messages = ?, model = ?, opening = ? "
            "WHERE number = ?",
            new.title,
            ats[-1],
            new.seq,
            new.messages,
            new.model,
            new.opening,
            number,
        )

    def fork(self, conversation: str, seq: int) -> str:
        with self._writing() as session:
            number, origin = self._locked(session, conversation)
            if not 0 <= seq <= origin.seq:
                raise InputError(
                    f"conversation {origin.id!r} has events 1 to {origin.seq}; there is no event {seq}", path="seq"
                )
            now = self._now(session)
            fork, summary = self._made(session, None, now, now)
            self._copy(session, number, fork, seq)
            copied = self._as_of(session, number, origin, msgspec.structs.replace(summary, seq=seq))
            self._write(session, fork, copied, [prepare(Forked(origin.id, seq))], [now])
        return summary.id

    def _as_of(self, session: Session, number: int, origin: Summary, fork: Summary) -> Summary:
        """The fork's summary, with title, model and opening as of its last copied event."""
        [(messages,)] = session.run(
            "SELECT count(*) FROM @events WHERE conversation = ? AND seq <= ? "
            "AND kind IN ('said', 'completed', 'known', 'cancelled')",
            *(number, fork.seq),
        )
        latest = [next(self._told(session, number, fork.seq, "'titled'", "DESC"), None)]
        # A conversation's model and opening are never cleared, so if the origin has none the fork has none.
        if origin.model is not None:
            events = self._told(session, number, fork.seq, "'sent', 'switched'", "DESC")
            latest.append(next((event for event in events if summary_after(fork, [event]).model), None))
        if origin.opening is not None:
            events = self._told(session, number, fork.seq, "'said'", "ASC")
            latest.append(next((event for event in events if summary_after(fork, [event]).opening), None))
        summary = summary_after(fork, [event for event in latest if event is not None])
        return msgspec.structs.replace(summary, seq=fork.seq, messages=messages)

    def _told(self, session: Session, number: int, seq: int, kinds: str, order: str) -> Iterator[Event]:
        """Yields the events of these kinds up to `seq`, read in pages."""
        low, high = 0, seq + 1
        while True:
            rows = session.run(
                f"SELECT {ROW} FROM @events WHERE conversation = ? AND seq > ? AND seq < ? AND kind IN ({kinds}) "
                f"ORDER BY seq {order} LIMIT ?",
                *(number, low, high, _PAGE),
            )
            if not rows:
                return
            for row in rows:
                yield record_of(str(number), row).event
            low, high = (rows[-1][0], high) if order == "ASC" else (low, rows[-1][0])

    def delete(self, *conversations: str, owner: str | None = None) -> None:
        with self._writing() as session:
            # Rows are locked in one order, so that two concurrent deletions can't deadlock.
            found = [self._locked(session, conversation) for conversation in sorted(set(conversations))]
            for number, summary in found:
                if (held := self._held(session, number, summary.id)) is not None and held.owner != owner:
                    raise LeaseError(summary.id, held.owner, iso(held.since), iso(held.expires))
            numbers = [number for number, _ in found]
            self._forget(session, numbers)
            for number in numbers:
                session.run("DELETE FROM @leases WHERE conversation = ?", number)
                session.run("DELETE FROM @events WHERE conversation = ?", number)
                session.run("DELETE FROM @conversations WHERE number = ?", number)
        self._after_delete()

    # ---------------------------------------------------------------------------------------------------------- reading

    def events(self, conversation: str, after: int = 0, until: int | None = None) -> Iterator[Record]:
        with self._reading() as session:
            number, summary = self._row(session, conversation)
        last = summary.seq if until is None else min(until, summary.seq)
        return self._pages(number, summary.id, max(0, after), last)

    def _pages(self, number: int, conversation: str, after: int, last: int) -> Iterator[Record]:
        while after < last:
            with self._reading() as session:
                rows = session.run(
                    f"SELECT {ROW} FROM @events WHERE conversation = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
                    *(number, after, last, _PAGE),
                )
                if not rows:
                    self._row(session, conversation)
            for row in rows:
                after += 1
                if row[0] != after:
                    break
                yield record_of(conversation, row)
            if not rows or rows[-1][0] != after:
                raise damaged(conversation, after, "it is missing")

    def tail(self, conversation: str, count: int) -> Sequence[Record]:
        with self._reading() as session:
            number, summary = self._row(session, conversation)
            rows = session.run(
                f"SELECT {ROW} FROM @events WHERE conversation = ? AND seq > ? AND seq <= ? ORDER BY seq",
                *(number, max(0, summary.seq - _within(count)), summary.seq),
            )
        return [record_of(summary.id, row) for row in rows]

    def get(self, conversation: str) -> Summary:
        with self._reading() as session:
            return self._row(session, conversation)[1]

    def list(self, limit: int = 50, before: Summary | None = None) -> Sequence[Summary]:
        older = "WHERE (updated, id) < (?, ?)" if before is not None else ""
        key = (before.updated, before.id) if before is not None else ()
        with self._reading() as session:
            rows = session.run(
                f"SELECT {_COLUMNS} FROM @conversations {older} ORDER BY updated DESC, id DESC LIMIT ?",
                *(*key, _within(limit)),
            )
        return [Summary(*row[1:]) for row in rows]

    def find(self, prefix: str) -> str:
        text_argument(prefix, "id")
        with self._reading() as session:
            for start in dict.fromkeys((prefix, prefix.lower())):
                rows = session.run(
                    "SELECT id FROM @conversations WHERE id >= ? AND id < ? ORDER BY id LIMIT 6",
                    *(storable(start), storable(start) + "~"),
                )
                names: Sequence[str] = [row[0] for row in rows]
                if start in names or len(names) == 1:
                    return start if start in names else names[0]
                if names:
                    some = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
                    raise InputError(f"several conversation ids begin with {prefix!r}: {some}", path="id")
        raise InputError(f"no conversation id begins with {prefix!r}", path="id")

    def search(self, words: str, limit: int = 20) -> Sequence[Hit]:
        text_argument(words, "query")
        phrases = query_of(words)
        if not phrases or limit <= 0:
            return []
        hits: dict[int, Hit] = {}
        with self._reading() as session:
            ids = self._matches(session, phrases, _within(limit))
            rows = [
                row
                for start in range(0, len(ids), _PAGE)
                for row in session.run(
                    "SELECT c.id, c.title, e.seq, e.at, e.kind, e.crc, e.data, e.id FROM @events e "
                    "JOIN @conversations c ON c.number = e.conversation "
                    f"WHERE e.id IN ({', '.join('?' * len(ids[start : start + _PAGE]))})",
                    *ids[start : start + _PAGE],
                )
            ]
        for name, title, *event, id in rows:
            record = record_of(name, tuple(event))
            hits[id] = Hit(name, title, record.seq, record.at, show(text_of_event(record.event), phrases))
        return [hits[id] for id in ids if id in hits]

    # ----------------------------------------------------------------------------------------------------------- leases

    def acquire(self, conversation: str, owner: str, ttl: float) -> Lease:
        return self._leased(conversation, owner, ttl, fresh=True)

    def renew(self, conversation: str, owner: str, ttl: float) -> Lease:
        return self._leased(conversation, owner, ttl, fresh=False)

    def _leased(self, conversation: str, owner: str, ttl: float, *, fresh: bool) -> Lease:
        _checked_owner(owner)
        if not ttl > 0:
            raise InputError("the lease time must be greater than 0", path="ttl")
        with self._writing() as session:
            number, summary = self._locked(session, conversation)
            now = self._now(session)
            rows = session.run("SELECT owner, since, expires FROM @leases WHERE conversation = ?", number)
            holder, since, expires = rows[0] if rows else (None, now, 0)
            if holder != owner:
                if holder is not None and expires > now and not is_gone(holder):
                    raise LeaseError(summary.id, holder, iso(since), iso(expires))
                if not fresh:
                    raise LeaseError(summary.id, None)
                since = now
            lease = Lease(summary.id, owner, since, now + round(ttl * 1_000_000))
            session.run(
                "INSERT INTO @leases (conversation, owner, since, expires) VALUES (?, ?, ?, ?) ON CONFLICT "
                "(conversation) DO UPDATE SET owner = excluded.owner, since = excluded.since, "
                "expires = excluded.expires",
                *(number, owner, since, lease.expires),
            )
        return lease

    def release(self, conversation: str, owner: str) -> None:
        _checked_owner(owner)
        with self._writing() as session:
            number, _ = self._locked(session, conversation)
            session.run("DELETE FROM @leases WHERE conversation = ? AND owner = ?", number, owner)

    def lease(self, conversation: str) -> Lease | None:
        with self._reading() as session:
            number, summary = self._row(session, conversation)
            return self._held(session, number, summary.id)

    def _held(self, session: Session, number: int, conversation: str) -> Lease | None:
        rows = session.run("SELECT owner, since, expires FROM @leases WHERE conversation = ?", number)
        held = rows and rows[0][2] > self._now(session) and not is_gone(rows[0][0])
        return Lease(conversation, *rows[0]) if held else None

    # ------------------------------------------------------------------------------------------------------------- rows

    def _locked(self, session: Session, conversation: str) -> tuple[int, Summary]:
        return self._row(session, conversation, self.LOCK)

    def _row(self, session: Session, conversation: str, lock: str = "") -> tuple[int, Summary]:
        text_argument(conversation, "conversation")
        rows = session.run(f"SELECT {_COLUMNS} FROM @conversations WHERE id = ?{lock}", storable(conversation))
        if not rows:
            raise StoreError(f"no conversation {conversation!r} in {self.where}", cause="missing")
        return rows[0][0], Summary(*rows[0][1:])


def _past(at: int, now: int) -> int:
    """Limits a given time to the range from 1970 to now."""
    return min(max(0, at), now)


def _within(count: int) -> int:
    """Limits a count to what every engine supports."""
    return min(max(0, count), _MOST)


def _checked_owner(owner: str) -> None:
    text_argument(owner, "owner")
    if not owner or owner != storable(owner):
        raise InputError(f"{owner!r} is not a valid lease owner", path="owner")

"""`SqlStore`: the store operations that SQLite and PostgreSQL share.

SQL is written with `?` for values and `@` before table names; each engine translates that. An engine provides only its
connections, transactions, clock, error translation and full-text index.

A writer locks the conversation's row (in SQLite, the file) before it reads the last event number, and holds the lock
until the commit. So a writer with an outdated event number gets a `ConflictError`, and event numbers have no gaps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from operator import itemgetter
from typing import ClassVar, Protocol, TypeVar

import msgspec

from segue.canonical.type_warmup import warm_type
from segue.errors import ConflictError, InputError, LeaseError, StoreError, require_string
from segue.store.base import (
    MAX_TIME,
    ConversationStore,
    ConversationSummary,
    Lease,
    LeaseClaim,
    SearchHit,
    StoredEvent,
    format_time,
)
from segue.store.events import FORMER_KINDS, Event, Forked, Renamed
from segue.store.ids import has_ended, new_id, validate_id
from segue.store.lineage import detach_forks, select_events, select_hits
from segue.store.rows import (
    PreparedEvent,
    Row,
    damaged_error,
    decode_row,
    prepare_event,
    row_checksum,
    sanitize_text,
    update_summary,
)
from segue.store.search_text import make_snippet, parse_query, searchable_text

Query = list[tuple[str, ...]]
T = TypeVar("T", bound=msgspec.Struct)

_PAGE_SIZE = 200
_MAX_COUNT = 1 << 62
_COLUMNS = "number, id, title, created, updated, seq, messages, model, opening, folder"
_MAX_NUMBER_DIGITS = 4


class SqlSession(Protocol):
    """A database connection in use by one operation."""

    def run(self, sql: str, *values: object) -> list[Row]: ...

    def run_many(self, sql: str, rows: Sequence[Row]) -> None: ...


class SqlStore(ConversationStore):
    """A store in an SQL database."""

    LOCK_CLAUSE: ClassVar[str] = ""
    """SQL at the end of a SELECT that locks the row, if the engine needs it."""

    ROW_COLUMNS: ClassVar[str] = "seq, at, kind, crc, data"
    """The columns of an event that `decode_row` expects."""

    @abstractmethod
    def _write_session(self) -> AbstractContextManager[SqlSession]:
        """Return a transaction: committed to disk when the block ends, rolled back on an exception."""

    @abstractmethod
    def _read_session(self) -> AbstractContextManager[SqlSession]: ...

    @abstractmethod
    def _now(self, session: SqlSession) -> int: ...

    @abstractmethod
    def _allocate_event_ids(self, session: SqlSession, count: int) -> list[int]:
        """Return new event ids, higher than all that exist."""

    @abstractmethod
    def _add_to_index(self, session: SqlSession, parts: Sequence[tuple[int, int, str]]) -> None:
        """Add tokens to the index: event id, part number, tokens separated by spaces."""

    @abstractmethod
    def _remove_from_index(self, session: SqlSession, numbers: Sequence[int]) -> None:
        """Remove the events of these conversations from the index."""

    @abstractmethod
    def _search_index(self, session: SqlSession, query: Query, limit: int) -> list[int]:
        """Return the ids of matching events, highest first."""

    def _lock_deletions(self, session: SqlSession) -> None:
        """Hook for an engine whose transactions are concurrent: wait for other deletions, which lock several rows."""

    def _after_delete(self) -> None:
        """Hook for an engine to erase deleted data from its files."""

    # ---------------------------------------------------------------------------------------------------------- writing

    def create(
        self,
        title: str | None = None,
        id: str | None = None,
        *,
        at: int | None = None,
        events: Iterable[Event] = (),
        times: Sequence[int] | None = None,
        lease: LeaseClaim | None = None,
        folder: str | None = None,
    ) -> str:
        for name, value in (("title", title), ("id", id), ("folder", folder)):
            require_string(value, name, required=False)
        own_id = validate_id(id) if id is not None else None
        renamed = [prepare_event(Renamed(title))] if title else []
        prepared = _prepare_events(events, times, "times")
        with self._write_session() as session:
            now = self._now(session)
            number, summary = self._insert_conversation(
                session, own_id, now, now if at is None else _clamp_time(at, now), folder=folder
            )
            ats = [*([summary.created] * len(renamed)), *_event_times(prepared, times, now)]
            self._insert_events(session, number, summary, [*renamed, *prepared], ats)
            if lease is not None:
                self._write_lease(session, number, summary.id, lease)
        return summary.id

    def _insert_conversation(
        self,
        session: SqlSession,
        own_id: str | None,
        now: int,
        at: int,
        origin: tuple[int, int] | None = None,
        folder: str | None = None,
    ) -> tuple[int, ConversationSummary]:
        """Insert the row of a new conversation. `origin` is the number of the forked one, and its last shared event."""
        place = None if folder is None else sanitize_text(folder)
        while True:
            name = own_id or new_id(now)
            rows = session.run(
                "INSERT INTO @conversations (id, created, updated, seq, messages, origin, origin_seq, folder) "
                "VALUES (?, ?, ?, 0, 0, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING number",
                *(name, at, at, *(origin or (None, None)), place),
            )
            if rows:
                return rows[0][0], ConversationSummary(name, None, at, at, 0, 0, folder=place)
            if own_id is not None:
                raise InputError(f"a conversation with the id {own_id!r} already exists", path="id")

    def append(
        self,
        conversation: str,
        expected_seq: int,
        events: Iterable[Event],
        *,
        at: Sequence[int] | None = None,
        lease: LeaseClaim | None = None,
    ) -> int:
        prepared = _prepare_events(events, at, "at")
        with self._write_session() as session:
            number, summary = self._lock_row(session, conversation)
            if lease is not None:
                self._write_lease(session, number, summary.id, lease)
            if summary.seq != expected_seq:
                raise ConflictError(summary.id, expected_seq, summary.seq)
            if prepared:
                times = _event_times(prepared, at, self._now(session))
                self._insert_events(session, number, summary, prepared, times)
        return expected_seq + len(prepared)

    def _insert_events(
        self,
        session: SqlSession,
        number: int,
        summary: ConversationSummary,
        prepared: Sequence[PreparedEvent],
        times: Sequence[int],
    ) -> None:
        if not prepared:
            return
        _, *ats = accumulate(times, max, initial=summary.updated)
        ids = self._allocate_event_ids(session, len(prepared))
        session.run_many(
            "INSERT INTO @events (id, conversation, seq, at, kind, crc, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (id, number, seq, at, item.kind, row_checksum(seq, at, item.kind, item.data), item.data)
                for seq, (id, item, at) in enumerate(zip(ids, prepared, ats, strict=True), summary.seq + 1)
            ],
        )
        parts = [
            (id, part, text) for id, item in zip(ids, prepared, strict=True) for part, text in enumerate(item.parts)
        ]
        if parts:
            self._add_to_index(session, parts)
        new = update_summary(summary, [item.event for item in prepared])
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

    def fork(self, conversation: str, seq: int, events: Iterable[Event] = ()) -> str:
        more = [prepare_event(event) for event in events]
        with self._write_session() as session:
            number, origin = self._lock_row(session, conversation)
            if not 0 <= seq <= origin.seq:
                raise InputError(
                    f"conversation {origin.id!r} has events 1 to {origin.seq}; there is no event {seq}", path="seq"
                )
            now = self._now(session)
            shared_until = (number, seq) if seq else None
            fork, summary = self._insert_conversation(session, None, now, now, shared_until, origin.folder)
            shared = self._fork_summary(session, number, origin, msgspec.structs.replace(summary, seq=seq))
            appended = [prepare_event(Forked(origin.id, seq)), *more]
            self._insert_events(session, fork, shared, appended, [now] * len(appended))
        return summary.id

    def _fork_summary(
        self, session: SqlSession, number: int, origin: ConversationSummary, fork: ConversationSummary
    ) -> ConversationSummary:
        """Return the fork's summary, with title, model and opening as of its last shared event."""
        if fork.seq == origin.seq:
            return msgspec.structs.replace(origin, id=fork.id, created=fork.created, updated=fork.updated)
        [(messages,)] = session.run(
            select_events("count(*)", f"AND e.kind IN ({_kinds('added', 'completed', 'recorded', 'cancelled')})"),
            *(number, 1, fork.seq),
        )
        latest = [next(self._read_events(session, number, fork.seq, _kinds("renamed"), newest_first=True), None)]
        # A conversation's model and opening are never cleared, so if the origin has none the fork has none.
        if origin.model is not None:
            events = self._read_events(session, number, fork.seq, _kinds("sent", "switched"), newest_first=True)
            latest.append(next((event for event in events if update_summary(fork, [event]).model), None))
        if origin.opening is not None:
            events = self._read_events(session, number, fork.seq, _kinds("added"))
            latest.append(next((event for event in events if update_summary(fork, [event]).opening), None))
        summary = update_summary(fork, [event for event in latest if event is not None])
        return msgspec.structs.replace(summary, seq=fork.seq, messages=messages)

    def _read_events(
        self, session: SqlSession, number: int, seq: int, kinds: str, *, newest_first: bool = False
    ) -> Iterator[Event]:
        """Yield the events of these kinds up to `seq`, read in pages."""
        sql = select_events(
            self.ROW_COLUMNS, f"AND e.kind IN ({kinds}) ORDER BY e.seq {'DESC' if newest_first else ''}"
        )
        starts = range(1, seq + 1, _PAGE_SIZE)
        for start in reversed(starts) if newest_first else starts:
            for row in session.run(sql, number, start, min(start + _PAGE_SIZE - 1, seq)):
                yield decode_row(self.location, str(number), row).event

    def delete(self, *conversations: str, owner: str | None = None) -> None:
        with self._write_session() as session:
            self._lock_deletions(session)
            locked = [self._lock_row(session, conversation) for conversation in sorted(set(conversations))]
            for number, summary in locked:
                if (lease := self._current_lease(session, number, summary.id)) is not None and lease.owner != owner:
                    raise LeaseError(summary.id, lease.owner, format_time(lease.since), format_time(lease.expires))
            numbers = [number for number, _ in locked]
            for number in numbers:
                detach_forks(session, number, numbers)
            self._remove_from_index(session, numbers)
            for number in numbers:
                session.run("DELETE FROM @leases WHERE conversation = ?", number)
                session.run("DELETE FROM @events WHERE conversation = ?", number)
                session.run("DELETE FROM @conversations WHERE number = ?", number)
        self._after_delete()

    # ---------------------------------------------------------------------------------------------------------- reading

    def events(self, conversation: str, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        with self._read_session() as session:
            number, summary = self._read_row(session, conversation)
        last = summary.seq if until is None else min(until, summary.seq)
        return self._iter_records(number, summary.id, max(0, after), last)

    def _iter_records(self, number: int, conversation: str, after: int, last: int) -> Iterator[StoredEvent]:
        while after < last:
            with self._read_session() as session:
                rows = self._read_rows(session, number, after + 1, min(after + _PAGE_SIZE, last))
                if not rows:
                    self._read_row(session, conversation)
            for row in rows:
                after += 1
                if row[0] != after:
                    break
                yield decode_row(self.location, conversation, row)
            if not rows or rows[-1][0] != after:
                raise damaged_error(self.location, conversation, after, "it is missing")

    def _read_rows(self, session: SqlSession, number: int, first: int, last: int) -> Sequence[Row]:
        # Sorted here, because SQLite would copy the data of all rows to sort them.
        return sorted(session.run(select_events(self.ROW_COLUMNS), number, first, last), key=itemgetter(0))

    def tail(self, conversation: str, count: int) -> Sequence[StoredEvent]:
        with self._read_session() as session:
            number, summary = self._read_row(session, conversation)
            rows = self._read_rows(session, number, max(0, summary.seq - _clamp_count(count)) + 1, summary.seq)
        return [decode_row(self.location, summary.id, row) for row in rows]

    def get(self, conversation: str) -> ConversationSummary:
        with self._read_session() as session:
            return self._read_row(session, conversation)[1]

    def list(
        self, limit: int = 50, before: ConversationSummary | None = None, *, folder: str | None = None
    ) -> Sequence[ConversationSummary]:
        conditions: dict[str, tuple[object, ...]] = {}
        if folder is not None:
            conditions["folder = ?"] = (sanitize_text(folder),)
        if before is not None:
            conditions["(updated, id) < (?, ?)"] = (before.updated, before.id)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        with self._read_session() as session:
            rows = session.run(
                f"SELECT {_COLUMNS} FROM @conversations {where} ORDER BY updated DESC, id DESC LIMIT ?",
                *(value for values in conditions.values() for value in values),
                _clamp_count(limit),
            )
        return [self._decode(ConversationSummary, *row[1:]) for row in rows]

    def number_of(self, summary: ConversationSummary) -> int:
        with self._read_session() as session:
            newer = "SELECT count(*) FROM @conversations WHERE (updated, id) >= (?, ?)"
            [(count,)] = session.run(newer, summary.updated, summary.id)
        return count

    def set_folder(self, conversation: str, folder: str) -> None:
        require_string(folder, "folder")
        with self._write_session() as session:
            number, _ = self._lock_row(session, conversation)
            session.run("UPDATE @conversations SET folder = ? WHERE number = ?", sanitize_text(folder), number)

    def find_id(self, name: str, *, by_number: bool = True) -> str:
        require_string(name, "id")
        if not name.strip():
            raise InputError("expected the id of a conversation or its first characters, not an empty text", path="id")
        with self._read_session() as session:
            if by_number and name.isascii() and name.isdigit() and len(name) <= _MAX_NUMBER_DIGITS:
                return self._find_by_number(session, name)
            for text in dict.fromkeys((name, name.lower())):
                clean = sanitize_text(text)
                for how, condition, values in (
                    ("begin", "id >= ? AND id < ?", (clean, clean + "~")),
                    ("end", "substr(id, length(id) - ? + 1) = ?", (len(clean), clean)),
                ):
                    rows = session.run(f"SELECT id FROM @conversations WHERE {condition} ORDER BY id LIMIT 6", *values)
                    ids: Sequence[str] = [row[0] for row in rows]
                    if text in ids or len(ids) == 1:
                        return text if text in ids else ids[0]
                    if ids:
                        some = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
                        raise InputError(f"several conversation ids {how} with {name!r}: {some}", path="id")
        raise InputError(f"no conversation id begins or ends with {name!r}", path="id")

    def _find_by_number(self, session: SqlSession, digits: str) -> str:
        """Return the id that is these digits, else the one with this number in the list."""
        if session.run("SELECT 1 FROM @conversations WHERE id = ?", digits):
            return digits
        by_age = "SELECT id FROM @conversations ORDER BY updated DESC, id DESC LIMIT 1 OFFSET ?"
        rows = session.run(by_age, int(digits) - 1) if int(digits) else []
        if not rows:
            [(count,)] = session.run("SELECT count(*) FROM @conversations")
            raise InputError(f"there is no conversation number {digits}; there are {count:,}", path="id")
        return rows[0][0]

    def search(self, query: str, limit: int = 20) -> Sequence[SearchHit]:
        require_string(query, "query")
        phrases = parse_query(query)
        if not phrases or limit <= 0:
            return []
        with self._read_session() as session:
            ids = self._search_index(session, phrases, _clamp_count(limit))
            pages = [ids[start : start + _PAGE_SIZE] for start in range(0, len(ids), _PAGE_SIZE)]
            rows = [row for page in pages for row in session.run(select_hits(len(page)), *page)]
        hits: list[SearchHit] = []
        # The newest event first; of the conversations that share it, the newest first.
        for name, title, _, *event, _ in sorted(rows, key=lambda row: (row[-1], row[2]), reverse=True):
            record = decode_row(self.location, name, tuple(event))
            snippet = make_snippet(searchable_text(record.event), phrases)
            hits.append(SearchHit(name, title, record.seq, record.at, snippet))
        return hits[:limit]

    # ----------------------------------------------------------------------------------------------------------- leases

    def acquire(self, conversation: str, owner: str, ttl: float) -> Lease:
        return self._set_lease(conversation, LeaseClaim(owner, ttl))

    def renew(self, conversation: str, owner: str, ttl: float) -> Lease:
        return self._set_lease(conversation, LeaseClaim(owner, ttl, is_held=True))

    def _set_lease(self, conversation: str, claim: LeaseClaim) -> Lease:
        with self._write_session() as session:
            number, summary = self._lock_row(session, conversation)
            return self._write_lease(session, number, summary.id, claim)

    def _write_lease(self, session: SqlSession, number: int, conversation: str, claim: LeaseClaim) -> Lease:
        _validate_owner(claim.owner)
        if not claim.ttl > 0:
            raise InputError("the lease time must be greater than 0", path="ttl")
        now = self._now(session)
        current = self._read_lease(session, number, conversation)
        since = now
        if current is not None and current.owner == claim.owner:
            since = current.since
        elif current is not None and current.expires > now and not has_ended(current.owner):
            raise LeaseError(conversation, current.owner, format_time(current.since), format_time(current.expires))
        elif claim.is_held:
            raise LeaseError(conversation, None)
        lease = Lease(conversation, claim.owner, since, min(now + round(claim.ttl * 1_000_000), MAX_TIME))
        session.run(
            "INSERT INTO @leases (conversation, owner, since, expires) VALUES (?, ?, ?, ?) ON CONFLICT "
            "(conversation) DO UPDATE SET owner = excluded.owner, since = excluded.since, "
            "expires = excluded.expires",
            *(number, lease.owner, lease.since, lease.expires),
        )
        return lease

    def release(self, conversation: str, owner: str) -> None:
        _validate_owner(owner)
        with self._write_session() as session:
            number, _ = self._lock_row(session, conversation)
            session.run("DELETE FROM @leases WHERE conversation = ? AND owner = ?", number, owner)

    def lease(self, conversation: str) -> Lease | None:
        with self._read_session() as session:
            number, summary = self._read_row(session, conversation)
            return self._current_lease(session, number, summary.id)

    def _current_lease(self, session: SqlSession, number: int, conversation: str) -> Lease | None:
        lease = self._read_lease(session, number, conversation)
        is_held = lease is not None and lease.expires > self._now(session) and not has_ended(lease.owner)
        return lease if is_held else None

    def _read_lease(self, session: SqlSession, number: int, conversation: str) -> Lease | None:
        """Return the stored lease, which may have expired."""
        rows = session.run("SELECT owner, since, expires FROM @leases WHERE conversation = ?", number)
        return self._decode(Lease, conversation, *rows[0]) if rows else None

    # ------------------------------------------------------------------------------------------------------------- rows

    def _lock_row(self, session: SqlSession, conversation: str) -> tuple[int, ConversationSummary]:
        return self._read_row(session, conversation, self.LOCK_CLAUSE)

    def _read_row(self, session: SqlSession, conversation: str, lock: str = "") -> tuple[int, ConversationSummary]:
        require_string(conversation, "conversation")
        rows = session.run(f"SELECT {_COLUMNS} FROM @conversations WHERE id = ?{lock}", sanitize_text(conversation))
        if not rows:
            raise StoreError(f"no conversation {conversation!r} in {self.location}", cause="missing")
        return rows[0][0], self._decode(ConversationSummary, *rows[0][1:])

    def _decode(self, type: type[T], *values: object) -> T:
        """Return a row as a struct. `StoreError` for a value of another type: the columns of SQLite have none."""
        try:
            return msgspec.convert(dict(zip(type.__struct_fields__, values, strict=True)), warm_type(type))
        except msgspec.ValidationError:
            table = "leases" if type is Lease else "conversations"
            message = f"{self.location}: the file is damaged (a row of the table {table} has a wrong type)"
            raise StoreError(message, cause="corrupt") from None


def _kinds(*names: str) -> str:
    """Return a list in SQL of kinds of events, also under their former names."""
    former = (old for old, new in FORMER_KINDS.items() if new in names)
    return ", ".join(f"'{name}'" for name in (*names, *former))


def _prepare_events(events: Iterable[Event], times: Sequence[int] | None, argument: str) -> list[PreparedEvent]:
    prepared = [prepare_event(event) for event in events]
    if times is not None and len(times) != len(prepared):
        raise InputError(f"expected {len(prepared)} times, one for each event, not {len(times)}", path=argument)
    return prepared


def _event_times(prepared: Sequence[PreparedEvent], times: Sequence[int] | None, now: int) -> list[int]:
    return [now] * len(prepared) if times is None else [_clamp_time(time, now) for time in times]


def _clamp_time(at: int, now: int) -> int:
    """Limit a given time to the range from 1970 to now."""
    return min(max(0, at), now)


def _clamp_count(count: int) -> int:
    """Limit a count to what every engine supports."""
    return min(max(0, count), _MAX_COUNT)


def _validate_owner(owner: str) -> None:
    require_string(owner, "owner")
    if not owner or owner != sanitize_text(owner):
        raise InputError(f"{owner!r} is not a valid lease owner", path="owner")

"""`ConversationStore`: the interface that every storage engine implements, and the types that it returns.

Invariants: events are only appended; an append is atomic, and on disk when it returns; the events of a conversation are
numbered from 1 without gaps; times are in microseconds since 1970 UTC and never decrease within a conversation. The
store sets the time of an event; for an imported event the caller can pass an earlier time. A time in the future is
replaced by the current time. No method takes HTTP headers or API keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Annotated, Self, TypeAlias

import msgspec
from msgspec import Struct

from segue.store.events import Event
from segue.store.search_text import Snippet

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_TIME = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""The latest time that can be formatted, in microseconds since 1970."""


def format_time(at: int, *, exact: bool = False) -> str:
    """Format a store time as UTC in ISO 8601, to the millisecond; `exact` to the microsecond."""
    text = (_EPOCH + timedelta(microseconds=at)).isoformat(timespec="microseconds" if exact else "milliseconds")
    return text.replace("+00:00", "Z")


def parse_time(text: object) -> int | None:
    """Parse an ISO 8601 time into a store time; None if it is not valid. A time without a zone is UTC."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH
    return max(0, since // timedelta(microseconds=1))


_Time: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_TIME)]


class StoredEvent(Struct, frozen=True, gc=False):
    """A stored event: its number in the conversation (`seq`), its time (`at`) and the event itself."""

    seq: int
    at: int
    event: Event


class ConversationSummary(Struct, frozen=True):
    """A row in the list of conversations. `messages` counts all messages ever written, rewound ones included.

    `opening` is the start of the first user message, shown where there is no title; `model` is the last model that a
    request was sent to or that was switched to; `folder` is the absolute path of the folder that it belongs to.
    """

    id: str
    title: str | None
    created: _Time
    updated: _Time
    seq: int
    messages: int
    model: str | None = None
    opening: str | None = None
    folder: str | None = None


class SearchHit(Struct, frozen=True):
    """A search result: an event, with the `snippet` of its text around the match."""

    conversation: str
    title: str | None
    seq: int
    at: int
    snippet: Snippet


class Lease(Struct, frozen=True):
    """The exclusive right of one process to write a conversation, until `expires`."""

    conversation: str
    owner: str
    since: _Time
    expires: _Time


class LeaseClaim(Struct, frozen=True):
    """The lease that a write acquires in its own transaction, so that a failed write acquires nothing.

    With `is_held` the lease is renewed: `LeaseError` if this owner no longer holds it.
    """

    owner: str
    ttl: float
    is_held: bool = False


class ConversationStore(ABC):
    """A store of conversations, each a list of events. Thread-safe; a context manager that closes the store.

    Every method that takes a conversation raises a `StoreError` with the cause `missing` if it does not exist.
    """

    @property
    @abstractmethod
    def location(self) -> str:
        """The file or server URL for display, without password."""

    @abstractmethod
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
        """Create a conversation with these events and return its id, in one transaction. A title is stored as event 1.

        `at` is the creation time in microseconds since 1970, if earlier than now; `times` are those of the events.
        """

    @abstractmethod
    def append(
        self,
        conversation: str,
        expected_seq: int,
        events: Iterable[Event],
        *,
        at: Sequence[int] | None = None,
        lease: LeaseClaim | None = None,
    ) -> int:
        """Append events after event `expected_seq` and return the number of the last one.

        `at` is the time of each event in microseconds since 1970, if earlier than now; times never decrease. Raises
        `ConflictError` and writes nothing if the number of the last event is not `expected_seq`, and `LeaseError` if
        `lease` is given and can't be acquired.
        """

    @abstractmethod
    def events(self, conversation: str, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        """Yield the events after number `after` up to and including `until`, read in pages.

        Events appended after this call are not included.
        """

    @abstractmethod
    def tail(self, conversation: str, count: int) -> Sequence[StoredEvent]:
        """Return the last `count` events, oldest first, without reading the earlier ones."""

    @abstractmethod
    def get(self, conversation: str) -> ConversationSummary:
        """Return the summary of one conversation."""

    @abstractmethod
    def list(
        self, limit: int = 50, before: ConversationSummary | None = None, *, folder: str | None = None
    ) -> Sequence[ConversationSummary]:
        """Return a page of conversations, last updated first. `before` is the last summary of the previous page.

        With `folder`, only those that belong to this folder.
        """

    @abstractmethod
    def number_of(self, summary: ConversationSummary) -> int:
        """Return the number of a conversation in the list of all: 1 for the one that was updated last."""

    @abstractmethod
    def set_folder(self, conversation: str, folder: str) -> None:
        """Change the folder that a conversation belongs to. Its time of update stays the same."""

    @abstractmethod
    def find_id(self, name: str, *, by_number: bool = True) -> str:
        """Return the id of the conversation with this id, number, beginning or end of an id, in this order.

        A number is one of the list, up to four digits. `InputError` if no or several conversations match.
        """

    @abstractmethod
    def search(self, query: str, limit: int = 20) -> Sequence[SearchHit]:
        """Return events that contain all words of the query, as whole words or prefixes; newest first.

        Titles, messages, tool calls and results are searched; system text and reasoning are not.
        """

    @abstractmethod
    def fork(self, conversation: str, seq: int, events: Iterable[Event] = ()) -> str:
        """Create a conversation that begins with the events up to and including `seq`, and return its id.

        The events are shared, not copied. `Forked` and the given events are appended in the same transaction.
        """

    @abstractmethod
    def delete(self, *conversations: str, owner: str | None = None) -> None:
        """Delete these conversations, their events and search index entries, in one transaction.

        Events that a remaining fork shares are kept.

        `LeaseError` if another owner than `owner` holds the lease of one of them.
        """

    @abstractmethod
    def acquire(self, conversation: str, owner: str, ttl: float) -> Lease:
        """Acquire the lease for `ttl` seconds; `LeaseError` while another owner holds it.

        For the owner that already holds it, the lease is extended to `ttl` seconds from now.
        """

    @abstractmethod
    def renew(self, conversation: str, owner: str, ttl: float) -> Lease:
        """Extend the lease to `ttl` seconds from now; `LeaseError` if this owner no longer holds it."""

    @abstractmethod
    def release(self, conversation: str, owner: str) -> None:
        """Release the lease. Does nothing if this owner does not hold it."""

    @abstractmethod
    def lease(self, conversation: str) -> Lease | None:
        """Return the current lease, or None."""

    @abstractmethod
    def close(self) -> None:
        """Close the store. Closing it twice is not an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

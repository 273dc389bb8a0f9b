"""`HistoryStore`: what a store of conversations does, whatever engine is behind it.

What every engine keeps: events are only ever added; an append is there whole or not at all, and is on disk when it
returns; the events of a conversation are numbered from 1 without gaps; times are in microseconds since 1970 UTC and
never go back within a conversation. They are the store's own; of what happened before it was written, the writer may
say when, and is believed as far as the past reaches.

No method takes anything but events and names: headers and keys have no way in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from msgspec import Struct

from segue.store.events import Event
from segue.store.words import Shown

__all__ = ["HistoryStore", "Hit", "Lease", "Record", "Summary", "iso", "parse_iso"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at: int, *, exact: bool = False) -> str:
    """A store's time as UTC in ISO 8601; `exact` to the microsecond."""
    told = (_EPOCH + timedelta(microseconds=at)).isoformat(timespec="microseconds" if exact else "milliseconds")
    return told.replace("+00:00", "Z")


def parse_iso(told: object) -> int | None:
    """The store's time of what `iso` or anybody else wrote; None where it is none. Without a zone it is UTC."""
    if not isinstance(told, str):
        return None
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return None
    since = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH
    return max(0, since // timedelta(microseconds=1))


class Record(Struct, frozen=True):
    """An event as it is stored."""

    seq: int
    at: int
    event: Event


class Summary(Struct, frozen=True):
    """A conversation in a list. `messages` counts all that were ever written, undone ones too.

    `opening` is the beginning of the first human words, to go by where there is no title; `model` the last that was
    asked or switched to.
    """

    id: str
    title: str | None
    created: int
    updated: int
    seq: int
    messages: int
    model: str | None = None
    opening: str | None = None


class Hit(Struct, frozen=True):
    """An event that was found. `shown` is the piece of its text around the words, and where they stand in it."""

    conversation: str
    title: str | None
    seq: int
    at: int
    shown: Shown


class Lease(Struct, frozen=True):
    """A conversation in somebody's hands."""

    conversation: str
    owner: str
    since: int
    expires: int


class HistoryStore(ABC):
    """Conversations as events. Safe to use from several threads; a context manager that closes itself.

    A conversation that is not there is a `StoreError` with the cause `missing`, in every method that is given one.
    """

    @property
    @abstractmethod
    def where(self) -> str:
        """The file or server, without any password."""

    @abstractmethod
    def create(self, title: str | None = None, id: str | None = None, *, at: int | None = None) -> str:
        """Makes a conversation and says its id. A title is its first event, so it is at 1 then, else at 0.

        `at` is when it began, where that was before now.
        """

    @abstractmethod
    def append(
        self, conversation: str, expected_seq: int, events: Iterable[Event], *, at: Sequence[int] | None = None
    ) -> int:
        """Adds events after event `expected_seq` and says the number of the last one.

        `at` is when each of them happened, where that was before now; none is set before the one that it follows.
        `ConflictError` where the conversation is not at `expected_seq`: nothing is written then.
        """

    @abstractmethod
    def events(self, conversation: str, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """The events after number `after` up to and including `until`, read as they are asked for.

        What is appended once the first was taken is not among them.
        """

    @abstractmethod
    def tail(self, conversation: str, count: int) -> Sequence[Record]:
        """The last events, the oldest first. Nothing before them is read."""

    @abstractmethod
    def get(self, conversation: str) -> Summary:
        """What the list says of one conversation."""

    @abstractmethod
    def list(self, limit: int = 50, before: Summary | None = None) -> Sequence[Summary]:
        """Conversations, the last written first. `before` is the last of the page before."""

    @abstractmethod
    def find(self, prefix: str) -> str:
        """The one conversation whose id is this or begins with it; `InputError` where there is none, or several."""

    @abstractmethod
    def search(self, words: str, limit: int = 20) -> Sequence[Hit]:
        """Events that hold all of these words, or words that begin with them; the last written first.

        Looked through are titles, what was said, calls and their results; not system text and thinking.
        """

    @abstractmethod
    def fork(self, conversation: str, seq: int) -> str:
        """A new conversation with a copy of the events up to `seq`, and `Forked` after them. It says the new id."""

    @abstractmethod
    def delete(self, *conversations: str, owner: str | None = None) -> None:
        """Takes conversations away, with all that can be found of them: all of these or none.

        `LeaseError` while somebody other than `owner` has one of them in hand.
        """

    @abstractmethod
    def acquire(self, conversation: str, owner: str, ttl: float) -> Lease:
        """Takes the conversation in hand for `ttl` seconds; `LeaseError` while another has it.

        The owner that has it already keeps it, for `ttl` seconds from now.
        """

    @abstractmethod
    def renew(self, conversation: str, owner: str, ttl: float) -> Lease:
        """Keeps it in hand for `ttl` seconds from now; `LeaseError` if another took it over, or it was let go."""

    @abstractmethod
    def release(self, conversation: str, owner: str) -> None:
        """Lets it go. What this owner does not have stays as it is."""

    @abstractmethod
    def lease(self, conversation: str) -> Lease | None:
        """Who has the conversation in hand now, if anybody."""

    @abstractmethod
    def close(self) -> None:
        """Ends the use of the store. Closing twice is no error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

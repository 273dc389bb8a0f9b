"""What other processes do to the conversation that is held here."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from segue.errors import SegueError

if TYPE_CHECKING:
    from segue.runtime.book import Book
    from segue.store.base import HistoryStore

__all__ = ["Elsewhere"]


class Elsewhere:
    """Looks into the store; where that can't be read, whoever writes next tells why."""

    def __init__(self, store: HistoryStore | None, book: Book) -> None:
        self._store = store
        self._book = book

    @property
    def held(self) -> bool:
        """Whether another process has the conversation in hand."""
        if self._store is None:
            return False
        with suppress(SegueError):
            lease = self._store.lease(self._book.id)
            return lease is not None and not lease.owner.startswith(f"{socket.gethostname()}:{os.getpid()}:")
        return False

    def catch_up(self) -> int:
        """Reads what others have written meanwhile; gives how many messages that are."""
        from segue.store.conversation import StoredConversation

        book: object = self._book
        if self._store is None or not isinstance(book, StoredConversation):
            return 0
        with suppress(SegueError):
            if self._store.get(book.id).seq != book.timeline.seq:
                before = len(book.messages)
                book.reload()
                return max(0, len(book.messages) - before)
        return 0

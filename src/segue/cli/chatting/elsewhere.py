"""Watches the open conversation for leases and changes of other processes."""

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
    """Checks the store. Read errors are ignored, because the next write reports them."""

    def __init__(self, store: HistoryStore | None, book: Book) -> None:
        self._store = store
        self._book = book

    @property
    def held(self) -> bool:
        """Whether another process holds the lease of the conversation."""
        if self._store is None:
            return False
        with suppress(SegueError):
            lease = self._store.lease(self._book.id)
            return lease is not None and not lease.owner.startswith(f"{socket.gethostname()}:{os.getpid()}:")
        return False

    def catch_up(self) -> int:
        """Reload the conversation if another process has changed it; returns the number of new messages."""
        from segue.store.conversation import StoredConversation

        log: object = self._book
        if self._store is None or not isinstance(log, StoredConversation):
            return 0
        with suppress(SegueError):
            if self._store.get(log.id).seq != log.timeline.seq:
                before = len(log.messages)
                log.reload()
                return max(0, len(log.messages) - before)
        return 0

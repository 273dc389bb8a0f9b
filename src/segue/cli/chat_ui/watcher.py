"""Watches the open conversation for leases and changes of other processes."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from segue.errors import SegueError

if TYPE_CHECKING:
    from segue.runtime.conversation_log import ConversationLog
    from segue.store.base import ConversationStore

__all__ = ["ConversationWatcher"]


class ConversationWatcher:
    """Checks the store. Read errors are ignored, because the next write reports them."""

    def __init__(self, store: ConversationStore | None, log: ConversationLog) -> None:
        self._store = store
        self._log = log

    @property
    def has_other_owner(self) -> bool:
        """Whether another process holds the lease of the conversation."""
        if self._store is None:
            return False
        with suppress(SegueError):
            lease = self._store.lease(self._log.id)
            return lease is not None and not lease.owner.startswith(f"{socket.gethostname()}:{os.getpid()}:")
        return False

    def reload_changes(self) -> int:
        """Reload the conversation if another process has changed it; returns the number of new messages."""
        from segue.store.conversation import StoredConversation

        log: object = self._log
        if self._store is None or not isinstance(log, StoredConversation):
            return 0
        with suppress(SegueError):
            if self._store.get(log.id).seq != log.state.seq:
                before = len(log.messages)
                log.reload()
                return max(0, len(log.messages) - before)
        return 0

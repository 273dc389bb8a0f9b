"""The times of a conversation's messages, from the log entries that they were parsed from."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Message, Native
from segue.canonical.jsontext import write_sorted
from segue.cli.logs.recorded import Recorded

__all__ = ["times_of"]


def times_of(messages: Sequence[Message], recorded: Recorded) -> list[int | None]:
    """A time for each message: that of its last log entry. Entries are matched by content."""
    if not any(recorded.at):
        return []
    entries = cast("list[Any]", next(recorded.body[key] for key in ("messages", "input") if key in recorded.body))
    times: dict[bytes, deque[int | None]] = {}
    for entry, at in zip(entries, recorded.at, strict=True):
        times.setdefault(write_sorted(entry), deque()).append(at)
    found: list[int | None] = []
    for message in messages:
        natives = [message.native, *(block.native for block in message.blocks)]
        times_found = [at for native in natives if (at := _time(native, times)) is not None]
        found.append(max(times_found, default=None))
    return found


def _time(native: Native | None, times: dict[bytes, deque[int | None]]) -> int | None:
    queue = times.get(write_sorted(native.fragment)) if native is not None and native.fragment else None
    return queue.popleft() if queue else None

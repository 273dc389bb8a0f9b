"""The times of a conversation's messages, from the log entries that they were parsed from."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from segue.canonical.blocks import Message, Native
from segue.canonical.json import encode_json_sorted
from segue.sessions.parsed_log import ParsedLog


def message_times(messages: Sequence[Message], log: ParsedLog) -> list[int | None]:
    """Return a time for each message: that of its last log entry. Entries are matched by content."""
    if not any(log.times):
        return []
    entries = cast("list[Any]", next(log.body[key] for key in ("messages", "input", "contents") if key in log.body))
    times: dict[bytes, deque[int | None]] = {}
    for entry, at in zip(entries, log.times, strict=True):
        times.setdefault(encode_json_sorted(entry), deque()).append(at)
    result: list[int | None] = []
    for message in messages:
        natives = [message.native, *(block.native for block in message.blocks)]
        matching = [at for native in natives if (at := _take_time(native, times)) is not None]
        result.append(max(matching, default=None))
    return result


def _take_time(native: Native | None, times: dict[bytes, deque[int | None]]) -> int | None:
    queue = times.get(encode_json_sorted(native.fragment)) if native is not None and native.fragment else None
    return queue.popleft() if queue else None

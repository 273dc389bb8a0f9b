"""Encoding events as database rows, decoding rows, and updating a conversation's summary."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.blocks import first_text
from segue.errors import InputError, StoreError
from segue.store.base import ConversationSummary, StoredEvent
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    Event,
    MessageAdded,
    Renamed,
    ResultRecorded,
    Sent,
    Switched,
    decode_event,
    dump_event,
    event_kind,
)
from segue.store.search_text import index_parts, searchable_text

Row: TypeAlias = tuple[Any, ...]
_OPENING_LENGTH = 120


class PreparedEvent(Struct, frozen=True):
    """An event encoded for writing, with the `parts` of its text for the search index.

    Events are encoded before the transaction starts, to keep the transaction short.
    """

    event: Event
    kind: str
    data: str
    parts: list[str]


def sanitize_text(text: str) -> str:
    """Replace NUL characters and lone surrogates, which PostgreSQL rejects."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def prepare_event(event: Event) -> PreparedEvent:
    data = dump_event(event, with_repeats=False)
    parts = [" ".join(part) for part in index_parts(searchable_text(event))]
    return PreparedEvent(event, sanitize_text(event_kind(event)), data.decode(), parts)


def row_checksum(seq: int, at: int, kind: str, data: str | bytes) -> int:
    """Return a checksum over a row: neither engine guarantees to detect bit errors on disk."""
    return zlib.crc32(
        data if isinstance(data, bytes) else str(data).encode(), zlib.crc32(f"{seq} {at} {kind} ".encode())
    )


def decode_row(where: str, conversation: str, row: Row) -> StoredEvent:
    """Decode a row: number, time, kind, checksum, data. `where` is the location of the store, for errors."""
    seq, at, kind, crc, data = row
    if row_checksum(seq, at, kind, data) != crc:
        raise damaged_error(where, conversation, seq, "the checksum does not match")
    try:
        return StoredEvent(seq, at, decode_event(data))
    except InputError as error:
        raise damaged_error(where, conversation, seq, str(error)) from None


def damaged_error(where: str, conversation: str, seq: int, reason: str) -> StoreError:
    return StoreError(f"{where}: event {seq} of conversation {conversation!r} is damaged: {reason}", cause="corrupt")


def update_summary(summary: ConversationSummary, events: Sequence[Event]) -> ConversationSummary:
    """Return the summary after these events are appended."""
    changes: dict[str, Any] = {}
    messages = summary.messages
    for event in events:
        match event:
            case Renamed(text):
                changes["title"] = sanitize_text(text) or None
            case Sent(_, model) | Switched(_, model, _) if model is not None:
                changes["model"] = sanitize_text(model)
            case MessageAdded(message):
                messages += 1
                if message.speaker == "human" and not (summary.opening or changes.get("opening")):
                    words = first_text(message.blocks)[: 4 * _OPENING_LENGTH].split()
                    changes["opening"] = sanitize_text(" ".join(words)[:_OPENING_LENGTH])
            case CallCompleted() | ResultRecorded() | CallCancelled():
                messages += 1
            case _:
                pass
    return msgspec.structs.replace(summary, **changes, seq=summary.seq + len(events), messages=messages)

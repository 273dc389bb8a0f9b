"""Encoding events as database rows, decoding rows, and updating a conversation's summary."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.blocks import text_of
from segue.errors import InputError, StoreError
from segue.store.base import Record, Summary
from segue.store.events import (
    Cancelled,
    Completed,
    Event,
    Known,
    Said,
    Sent,
    Switched,
    Titled,
    decode_event,
    dump_event,
    kind_of,
)
from segue.store.words import parts_of, text_of_event

__all__ = ["ROW", "Prepared", "Row", "crc_of", "damaged", "prepare", "record_of", "storable", "summary_after"]

Row: TypeAlias = tuple[Any, ...]
ROW = "seq, at, kind, crc, data"
"""The columns that `decode_row` expects."""

_OPENING = 120


class Prepared(Struct, frozen=True):
    """An event encoded for writing, before the transaction starts, to keep the transaction short."""

    event: Event
    kind: str
    data: str
    parts: list[str]


def storable(text: str) -> str:
    """Replaces NUL characters and lone surrogates, which PostgreSQL rejects."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def prepare(event: Event) -> Prepared:
    data = dump_event(event)
    parts = [" ".join(part) for part in parts_of(text_of_event(event))]
    return Prepared(event, storable(kind_of(event)), data.decode(), parts)


def crc_of(seq: int, at: int, kind: str, data: str) -> int:
    """A checksum over a row: neither engine guarantees to detect bit errors on disk."""
    return zlib.crc32(f"{seq} {at} {kind} {data}".encode())


def record_of(conversation: str, row: Row) -> Record:
    seq, at, kind, crc, data = row
    if crc_of(seq, at, kind, data) != crc:
        raise damaged(conversation, seq, "the checksum does not match")
    try:
        return Record(seq, at, decode_event(data))
    except InputError as error:
        raise damaged(conversation, seq, str(error)) from None


def damaged(conversation: str, seq: int, how: str) -> StoreError:
    return StoreError(f"event {seq} of conversation {conversation!r} is damaged: {how}", cause="corrupt")


def summary_after(summary: Summary, events: Sequence[Event]) -> Summary:
    """The summary after these events are appended."""
    changes: dict[str, Any] = {}
    messages = summary.messages
    for event in events:
        match event:
            case Titled(text):
                changes["title"] = storable(text) or None
            case Sent(_, model) | Switched(_, model, _) if model is not None:
                changes["model"] = storable(model)
            case Said(message):
                messages += 1
                if message.speaker == "human" and not (summary.opening or changes.get("opening")):
                    changes["opening"] = storable(" ".join(text_of(message.blocks)[: 4 * _OPENING].split())[:_OPENING])
            case Completed() | Known() | Cancelled():
                messages += 1
            case _:
                pass
    return msgspec.structs.replace(summary, **changes, seq=summary.seq + len(events), messages=messages)

"""What an event becomes in a row, what a row becomes, and what the list says of a conversation afterwards."""

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
"""What `record_of` reads."""

_OPENING = 120


class Prepared(Struct, frozen=True):
    """An event as it is written: made before the transaction, so that this is short."""

    event: Event
    kind: str
    data: str
    parts: list[str]


def storable(text: str) -> str:
    """A text that every engine takes as it is."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def prepare(event: Event) -> Prepared:
    data = dump_event(event)
    parts = [" ".join(words) for words in parts_of(text_of_event(event))]
    return Prepared(event, storable(kind_of(event)), data.decode(), parts)


def crc_of(seq: int, at: int, kind: str, data: str) -> int:
    """The sum over a row: neither engine promises to notice a bit that has turned on the disk."""
    return zlib.crc32(f"{seq} {at} {kind} {data}".encode())


def record_of(conversation: str, row: Row) -> Record:
    seq, at, kind, crc, data = row
    if crc_of(seq, at, kind, data) != crc:
        raise damaged(conversation, seq, "what is written there is not what was written")
    try:
        return Record(seq, at, decode_event(data))
    except InputError as error:
        raise damaged(conversation, seq, str(error)) from None


def damaged(conversation: str, seq: int, how: str) -> StoreError:
    return StoreError(f"event {seq} of conversation {conversation!r} is damaged: {how}", cause="corrupt")


def summary_after(summary: Summary, events: Sequence[Event]) -> Summary:
    """What the list says of a conversation once these events are written."""
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

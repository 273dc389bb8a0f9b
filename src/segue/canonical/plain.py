"""The fast path's form of a regular history, in which nothing has to be repaired.

User messages and replies only; every call has its own id (or none has one) and its result follows at once, in order.
So calls and results are stored in parallel columns, a turn is a slice of them, and no pairing is needed. Anything else
raises `FastPathUnsupportedError`, and the request goes through the full pipeline.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.ids import NO_IDS, any_canonical, hashed_tool_ids, reply_text, short_hashes, turn_key
from segue.canonical.jsontext import MAX_DEPTH, depth_of, keys_are, repeated_key

__all__ = [
    "Content",
    "Event",
    "NotPlainError",
    "Plain",
    "Turn",
    "Words",
    "checked_words",
    "name_calls",
    "read_arguments",
]

_NOT_NAMES = frozenset({None, *NO_IDS})
# Random, so that no text of a body can contain it.
_SEAM = os.urandom(12).hex()
_seamed = msgspec.json.Decoder(list[dict[str, Any] | str])

Content: TypeAlias = str | list[str]
"""A text, or the texts of a list of parts."""


class NotPlainError(Exception):
    """The request needs the full pipeline."""


class Turn(Struct, gc=False):
    """A reply and the results of its calls: the slice from `start` to `stop` of the columns.

    Only the number of reasoning blocks is kept: cross-API reasoning is dropped, same-API it is copied unchanged.
    `placeholder` is sent in its place where the target requires reasoning. `variant` holds what else distinguishes the
    turn in its own API; `has_dropped_keys` is True where it counts in `FastHistory.dropped_keys`.
    """

    content: Content | None
    start: int
    stop: int
    thoughts: int = 0
    form: object = None
    marked: bool = False
    placeholder: str | None = None


class Words(Struct, gc=False):
    """A user message."""

    content: Content
    marked: bool = False


Event: TypeAlias = Words | Turn


class Plain(Struct, gc=False):
    """Events, the index in the body where each begins, and a column for each property of a call.

    Either all calls have an id of their own or none has one. The first `system_count` items of the body are system
    text. `error_results` are the indexes of results that are errors. `dropped_keys` counts blocks by a key that only
    their own API has. `ids` (canonical) and `sent_ids` (projected) are filled in by later steps.
    """

    events: list[Event]
    starts: list[int]
    raw_ids: list[str | None]
    names: list[str]
    arguments: list[dict[str, Any]]
    results: list[Content]
    failed: list[int] = []
    head: int = 0
    unsaid: dict[str, int] = {}
    ids: list[str] = []
    sent_ids: list[str] = []


def checked_words(content: Content) -> Content:
    """Return the content if no part of it is blank, so every target accepts it; raise otherwise."""
    if isinstance(content, str):
        if not content or content.isspace():
            raise NotPlainError
    elif not content or any(not text or text.isspace() for text in content):
        raise NotPlainError
    return content


def read_arguments(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Parse all argument texts in one decode; the separators between them detect a text that is not one object."""
    joined = f',"{_SEAM}",'.join(texts)
    read = _seamed.decode(f"[{joined}]")
    arguments = [value for value in read if isinstance(value, dict)]
    if len(arguments) != len(texts) or read[1::2] != [_SEAM] * (len(texts) - 1):
        raise NotPlainError
    if not keys_are(joined, sum(map(len, arguments))) and any(map(repeated_key, texts, arguments)):
        raise NotPlainError
    return arguments


def name_calls(plain: Plain, provider: str) -> None:
    """Assign the canonical ids that pairing would assign: every raw id is unique, or no call has one."""
    raw_ids, names, arguments = plain.raw_ids, plain.names, plain.arguments
    known = set(raw_ids)
    named = known != {None}
    if named and (len(known) < len(raw_ids) or not known.isdisjoint(_NOT_NAMES) or any_canonical(raw_ids)):
        raise NotPlainError
    turns = [event for event in plain.events if type(event) is Turn and event.start < event.stop]
    calls = list(zip(raw_ids, names, arguments, strict=True))
    replies = [reply_text(calls[turn.start : turn.stop]) for turn in turns]
    if any(len(reply) > MAX_DEPTH and depth_of(reply) > MAX_DEPTH // 2 for reply in replies):
        raise NotPlainError
    hashes = short_hashes(replies, 16)
    keys = [turn_key(key, 0) for key in hashes] if named else _counted(hashes)
    counts = [turn.stop - turn.start for turn in turns]
    plain.ids = hashed_tool_ids(
        provider,
        [raw_id or "" for raw_id in raw_ids],
        names,
        [key for key, count in zip(keys, counts, strict=True) for _ in range(count)],
        [index for count in counts for index in range(count)],
    )


def _counted(replies: list[str]) -> list[str]:
    """Return turn keys with the occurrence counted: replies whose calls have no ids may be equal."""
    seen: Counter[str] = Counter()
    keys: list[str] = []
    for reply in replies:
        keys.append(turn_key(reply, seen[reply]))
        seen[reply] += 1
    return keys

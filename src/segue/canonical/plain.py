"""A plain conversation: what is left of a history when nothing in it is odd.

Somebody speaks, the model replies, every call of a reply has its own id and gets its result at once and in order. So
calls and results stand in columns side by side, a turn is a stretch of them, and none of what pairing has to reckon
with can happen. Whoever meets anything else raises `NotPlainError`, and the history goes the long way.
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
# Unknown to whoever writes a body, so no text of theirs can hold it.
_SEAM = os.urandom(12).hex()
_seamed = msgspec.json.Decoder(list[dict[str, Any] | str])

Content: TypeAlias = str | list[str]
"""A text, or the texts of a list of parts."""


class NotPlainError(Exception):
    """Something that only the long way knows how to treat."""


class Turn(Struct, gc=False):
    """A reply and the results of its calls: those from `start` to `stop` in the columns.

    Of reasoning only the number of blocks is kept: nobody but its maker may have it, and to its maker it goes as it is.
    `placeholder` stands for it where the target insists on some. `form` is whatever else tells the turn from others in
    its own API; `marked` are those of which something is counted as unsaid.
    """

    content: Content | None
    start: int
    stop: int
    thoughts: int = 0
    form: object = None
    marked: bool = False
    placeholder: str | None = None


class Words(Struct, gc=False):
    """What the human said."""

    content: Content
    marked: bool = False


Event: TypeAlias = Words | Turn


class Plain(Struct, gc=False):
    """Events, the place in the body where each begins, and a column for each thing that there is to a call.

    Either all calls have an id of their own or none has one. The first `head` items of the body are system text.
    `failed` are the places of results that are errors. `unsaid` counts the blocks with a key that only their own API
    has a word for. The ids are filled in on the way: canonical ones, and those that the target is told.
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
    """The content if it says something in each of its parts: nobody refuses it then."""
    if isinstance(content, str):
        if not content or content.isspace():
            raise NotPlainError
    elif not content or any(not text or text.isspace() for text in content):
        raise NotPlainError
    return content


def read_arguments(texts: Sequence[str]) -> list[dict[str, Any]]:
    """The objects that these texts are, all read at once: whole ones alone come out between the seams."""
    joined = f',"{_SEAM}",'.join(texts)
    read = _seamed.decode(f"[{joined}]")
    arguments = [value for value in read if isinstance(value, dict)]
    if len(arguments) != len(texts) or read[1::2] != [_SEAM] * (len(texts) - 1):
        raise NotPlainError
    if not keys_are(joined, sum(map(len, arguments))) and any(map(repeated_key, texts, arguments)):
        raise NotPlainError
    return arguments


def name_calls(plain: Plain, provider: str) -> None:
    """Gives the calls the ids that pairing would give them: no raw id stands twice, or there are none at all."""
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
    """The keys of turns that may be equal: calls without ids say the same as often as they like."""
    seen: Counter[str] = Counter()
    keys: list[str] = []
    for reply in replies:
        keys.append(turn_key(reply, seen[reply]))
        seen[reply] += 1
    return keys

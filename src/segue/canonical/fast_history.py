"""The fast path's form of a regular history: one in which no result has to be paired, inserted or moved.

It has only user messages and replies; either every call has a unique id or none has an id, and results directly follow
their calls, in order. So calls and results are stored in parallel columns, and a turn is a slice of them. Any other
history raises `FastPathUnsupportedError` and is converted by the full pipeline.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.ids import NO_IDS, encode_reply_calls, format_turn_key, has_canonical, hash_tool_ids, short_hashes
from segue.canonical.json import MAX_DEPTH, estimate_depth, find_duplicate_key, has_key_count

_INVALID_IDS = frozenset({None, *NO_IDS})
# Random, so that no text of a body can contain it.
_SEPARATOR = os.urandom(12).hex()
_separated_decoder = msgspec.json.Decoder(list[dict[str, Any] | str])

Content: TypeAlias = str | list[str]
"""A text, or the texts of a list of parts."""


class FastPathUnsupportedError(Exception):
    """The request needs the full pipeline."""


class FastTurn(Struct, gc=False):
    """A reply and the results of its calls: the slice from `start` to `stop` of the columns.

    Only the number of reasoning blocks is kept: cross-API reasoning is dropped, same-API it is copied unchanged.
    `placeholder` is sent in its place where the target requires reasoning. `variant` holds what else distinguishes the
    turn in its own API; `has_dropped_keys` is True if it has a key that only its own API has.
    """

    content: Content | None
    start: int
    stop: int
    reasoning_count: int = 0
    variant: object = None
    has_dropped_keys: bool = False
    placeholder: str | None = None


class FastUserMessage(Struct, gc=False):
    """A user message."""

    content: Content
    has_dropped_keys: bool = False


FastEvent: TypeAlias = FastUserMessage | FastTurn


class FastHistory(Struct, gc=False):
    """Events, the index in the body where each begins, and a column for each property of a call.

    Either all calls have an id of their own or none has one. The first `system_count` items of the body are system
    text. `error_results` are the indexes of results that are errors. `ids` (canonical) and `sent_ids` (projected) are
    filled in by later steps.
    """

    events: list[FastEvent]
    starts: list[int]
    raw_ids: list[str | None]
    names: list[str]
    arguments: list[dict[str, Any]]
    results: list[Content]
    error_results: list[int] = []
    system_count: int = 0
    ids: list[str] = []
    sent_ids: list[str] = []


def require_text(content: Content) -> Content:
    """Return the content if no part of it is blank, so every target accepts it; raise otherwise."""
    if isinstance(content, str):
        if not content or content.isspace():
            raise FastPathUnsupportedError
    elif not content or any(not text or text.isspace() for text in content):
        raise FastPathUnsupportedError
    return content


def parse_argument_texts(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Parse all argument texts with one call of the decoder; raise if any text is not exactly one JSON object."""
    joined = f',"{_SEPARATOR}",'.join(texts)
    values = _separated_decoder.decode(f"[{joined}]")
    arguments = [value for value in values if isinstance(value, dict)]
    if len(arguments) != len(texts) or values[1::2] != [_SEPARATOR] * (len(texts) - 1):
        raise FastPathUnsupportedError
    if not has_key_count(joined, sum(map(len, arguments))) and any(map(find_duplicate_key, texts, arguments)):
        raise FastPathUnsupportedError
    return arguments


def assign_ids(history: FastHistory, provider: str) -> None:
    """Assign the canonical ids that pairing would assign: every raw id is unique, or no call has one."""
    raw_ids, names, arguments = history.raw_ids, history.names, history.arguments
    unique_ids = set(raw_ids)
    has_ids = unique_ids != {None}
    if has_ids and (
        len(unique_ids) < len(raw_ids) or not unique_ids.isdisjoint(_INVALID_IDS) or has_canonical(raw_ids)
    ):
        raise FastPathUnsupportedError
    turns = [event for event in history.events if type(event) is FastTurn and event.start < event.stop]
    calls = list(zip(raw_ids, names, arguments, strict=True))
    replies = [encode_reply_calls(calls[turn.start : turn.stop]) for turn in turns]
    if any(len(reply) > MAX_DEPTH and estimate_depth(reply) > MAX_DEPTH // 2 for reply in replies):
        raise FastPathUnsupportedError
    hashes = short_hashes(replies, 16)
    keys = [format_turn_key(key, 0) for key in hashes] if has_ids else _count_turn_keys(hashes)
    counts = [turn.stop - turn.start for turn in turns]
    history.ids = hash_tool_ids(
        provider,
        [raw_id or "" for raw_id in raw_ids],
        names,
        [key for key, count in zip(keys, counts, strict=True) for _ in range(count)],
        [index for count in counts for index in range(count)],
    )


def _count_turn_keys(replies: list[str]) -> list[str]:
    """Return turn keys with the occurrence counted: replies whose calls have no ids may be equal."""
    seen: Counter[str] = Counter()
    keys: list[str] = []
    for reply in replies:
        keys.append(format_turn_key(reply, seen[reply]))
        seen[reply] += 1
    return keys

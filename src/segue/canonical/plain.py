"""A plain conversation: what is left of a history when nothing in it is odd.

Somebody speaks, the model replies, every call of a reply has its own id and gets its result at once and in order. So
a turn simply holds its calls and their results side by side, and none of what pairing has to reckon with can happen.
Whoever meets anything else raises `NotPlain`, and the history goes the long way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from segue.canonical.ids import NO_IDS, hashed_tool_ids, is_canonical, reply_text, short_hashes, turn_key
from segue.canonical.jsontext import MAX_DEPTH, depth_of

__all__ = ["Call", "Content", "Event", "NotPlain", "Plain", "Turn", "Words", "checked_words", "name_calls"]

Content: TypeAlias = str | list[str]
"""A text, or the texts of a list of parts."""


class NotPlain(Exception):
    """Something that only the long way knows how to treat."""


class Call(Struct, gc=False):
    """A call. `id` is canonical, `sent_id` the target's; both are filled in on the way."""

    raw_id: str
    name: str
    arguments: dict[str, Any]
    id: str = ""
    sent_id: str = ""


class Turn(Struct, gc=False):
    """A reply and the results of its calls, in call order. `failed` are the positions of results that are errors,
    `listed` says whether some result is a list of parts.

    Of reasoning only the number of blocks is kept: nobody but its maker may have it, and to its maker it goes as it is.
    `reasoning` is a placeholder for it where the target insists on one.
    """

    content: Content | None
    calls: list[Call]
    results: list[Content]
    failed: tuple[int, ...] = ()
    listed: bool = False
    thoughts: int = 0
    reasoning: str | None = None


class Words(Struct, gc=False):
    """What the human said."""

    content: Content


Event: TypeAlias = Words | Turn


class Plain(Struct, gc=False):
    """Events, and the place in the body where each begins. The first `head` items of the body are system text.

    `unsaid` counts the blocks with a key that only their own API has a word for.
    """

    events: list[Event]
    starts: list[int]
    head: int = 0
    unsaid: dict[str, int] = {}


def checked_words(content: Content) -> Content:
    """The content if it says something in each of its parts: nobody refuses it then."""
    for text in (content,) if isinstance(content, str) else content or ("",):
        if not text or text.isspace():
            raise NotPlain
    return content


def name_calls(events: Iterable[Event], provider: str) -> list[Call]:
    """All calls, with the ids that pairing would give them: each raw id is the only one of its kind."""
    turns = [event.calls for event in events if type(event) is Turn and event.calls]
    replies = [reply_text([[call.raw_id, call.name, call.arguments] for call in calls]) for calls in turns]
    if any(len(reply) > MAX_DEPTH and depth_of(reply) > MAX_DEPTH // 2 for reply in replies):
        raise NotPlain
    keys = [turn_key(key, 0) for key in short_hashes(replies, 16)]
    named = [call for calls in turns for call in calls]
    raw_ids = {call.raw_id for call in named}
    if len(raw_ids) < len(named) or not raw_ids.isdisjoint(NO_IDS) or any(map(is_canonical, raw_ids)):
        raise NotPlain
    places = [
        (call.raw_id, call.name, key, index)
        for calls, key in zip(turns, keys, strict=True)
        for index, call in enumerate(calls)
    ]
    for call, call_id in zip(named, hashed_tool_ids(provider, places), strict=True):
        call.id = call_id
    return named

"""A plain conversation: what is left of a history when nothing in it is odd.

Somebody speaks, the model replies, every call of a reply has its own id and gets its result at once and in order. So
a turn simply holds its calls and their results side by side, and none of what pairing has to reckon with can happen.
Whoever meets anything else raises `NotPlain`, and the history goes the long way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from segue.canonical.ids import hashed_tool_id, is_canonical, raw_id_or_none, reply_text, short_hash, turn_key
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
    """A reply and the results of its calls, in call order. `failed` are the positions of results that are errors.

    Of reasoning only the number of blocks is kept: nobody but its maker may have it, and to its maker it goes as it is.
    `reasoning` is a placeholder for it where the target insists on one.
    """

    content: Content | None
    calls: list[Call]
    results: list[Content]
    failed: tuple[int, ...] = ()
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
    named: list[Call] = []
    for event in events:
        if type(event) is Turn and (calls := event.calls):
            text = reply_text([[call.raw_id, call.name, call.arguments] for call in calls])
            if depth_of(text) > MAX_DEPTH // 2:
                raise NotPlain
            key = turn_key(short_hash(text, 16), 0)
            for index, call in enumerate(calls):
                call.id = hashed_tool_id(provider, call.raw_id, call.name, key, index)
            named += calls
    raw_ids = {call.raw_id for call in named}
    if len(raw_ids) < len(named) or not all(map(raw_id_or_none, raw_ids)) or any(map(is_canonical, raw_ids)):
        raise NotPlain
    return named

"""Conversion in slices: a body is converted as a conversation that grows by a slice at a time.

The items and messages of a large body take several times its size in memory; those of a slice are released when the
next one is converted. A slice ends where a reply begins. The last one is the last reply and what follows it, so that
the conversation can be remembered by its bytes. One that can't be continued at these places is converted whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec
from msgspec import Raw

from segue.canonical.json import decode_members, parse_json_object, reject_duplicate_key
from segue.conversion.body import (
    BodyFrame,
    cut_items,
    drop_last_items,
    find_frame,
    find_replies,
    parse_items,
    split_items,
)
from segue.conversion.convert import ConvertJob, convert_request
from segue.conversion.session import ContinuedBody, start_conversation
from segue.wire.detect_body import CONVERSATION_KEYS

# The number of bytes in a slice, at least; the last one has fewer.
_SLICE_SIZE = 1 << 20
# An item with the result of a call, in any API.
_RESULT = re.compile(rb'"(?:tool|tool_result|toolResult|functionResponse|[a-z_]+_output)"')


def convert_in_slices(data: bytes, job: ConvertJob) -> tuple[ContinuedBody, BodyFrame] | None:
    """Return the converted body, and the frame of all its items; None if it must be converted whole."""
    members = decode_members(data)
    key = next((key for key in members if key in CONVERSATION_KEYS), None)
    items = split_items(members[key]) if key is not None else []
    stops = _find_stops(items)
    if key is None or not stops:
        return None
    reject_duplicate_key(data, key)
    fields = {**members, key: Raw(_join(items[: stops[0]]))}
    body, surrogates = parse_json_object(msgspec.json.encode(fields))
    conversion = convert_request(body, job, replaced_surrogates=surrogates)
    framed = find_frame(data, conversion.source, members)
    if surrogates or framed is None or conversion.source.conversation_key != key:
        return None
    frame, all_items = framed
    conversation, extended = start_conversation(conversion, job, frame, b""), None
    first = drop_last_items(all_items, items[stops[-1] :])
    for start, stop in pairwise((*stops, len(items))):
        given = _join(items[start:stop]) if stop < len(items) else cut_items(all_items, first)
        longer = conversation.append(given, parse_items(given)) if conversation is not None and given else None
        if longer is None:
            return None
        conversation, extended = longer
    if conversation is None or extended is None:
        return None
    conversation = msgspec.structs.replace(conversation, frame=frame.move_start(data, first))
    return conversation.finish(data, extended), frame


def _join(items: Sequence[bytes]) -> bytes:
    return b"[%b]" % b",".join(items)


def _find_stops(items: Sequence[bytes]) -> list[int]:
    """Return where slices end: where a reply begins, after as many bytes as a slice has, and near the end.

    Options may depend on whether results or a user message are last, so the items before the last slice end as all do.
    """
    replies = find_replies(items)
    alike = (reply for reply in reversed(replies) if _has_result(items[reply - 1]) == _has_result(items[-1]))
    last = next(alike, 0)
    stops: list[int] = []
    size = start = 0
    for reply in replies:
        size += sum(map(len, items[start:reply]))
        start = reply
        if size >= _SLICE_SIZE or reply == last:
            stops.append(reply)
            size = 0
    return stops


def _has_result(item: bytes) -> bool:
    return _RESULT.search(item) is not None

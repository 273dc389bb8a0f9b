"""Conversion of large bodies in slices: a body is converted as a conversation that grows by a slice at a time.

The items and messages of a large body would take several times its size in memory; those of a slice are released when
the next one is converted. A slice ends where a reply begins. A conversation that can't be continued there is converted
whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from segue.canonical.json import decode_members, parse_json_object, reject_duplicate_key
from segue.conversion.body import BodyFrame, find_values, parse_items
from segue.conversion.convert import ConvertJob, convert_request
from segue.conversion.session import ContinuedBody, start_conversation
from segue.wire.detect_body import CONVERSATION_KEYS
from segue.wire.json_values import object_or_none

MIN_SIZE = 4 * 2**20
"""The size of a large body."""
# The number of bytes in a slice, at least.
_SLICE_SIZE = 1 << 20
_items_decoder = msgspec.json.Decoder(list[Raw])


def convert_in_slices(data: bytes, job: ConvertJob) -> ContinuedBody | None:
    """Return the converted body; None if it must be converted whole."""
    members = decode_members(data)
    key = next((key for key in members if key in CONVERSATION_KEYS), None)
    if key is None or find_values(data) is None:
        return None
    reject_duplicate_key(data, key)
    items = _items_decoder.decode(members[key])
    stop = _find_stop(items, 0)
    fields = {**members, key: Raw(_join(items[:stop]))}
    body, surrogates = parse_json_object(msgspec.json.encode(fields))
    conversion = convert_request(body, job, replaced_surrogates=surrogates)
    conversation = start_conversation(conversion, job, BodyFrame(0, True, b""), b"") if not surrogates else None
    extended = None
    while conversation is not None and stop < len(items):
        start, stop = stop, _find_stop(items, stop)
        given = _join(items[start:stop])
        longer = conversation.append(given, parse_items(given))
        if longer is None:
            return None
        conversation, extended = longer
    return conversation.finish(data, extended) if conversation is not None and extended is not None else None


def _join(items: Sequence[Raw]) -> bytes:
    return b"[%b]" % b",".join(items)


def _find_stop(items: Sequence[Raw], start: int) -> int:
    """Return where a slice that begins at `start` ends: where a reply begins, or at the end."""
    size = 0
    while size < _SLICE_SIZE and start < len(items):
        size += memoryview(items[start]).nbytes
        start += 1
    for index in range(max(start, 1), len(items)):
        if _is_reply(items[index]) and not _is_reply(items[index - 1]):
            return index
    return len(items)


def _is_reply(item: Raw) -> bool:
    """Return whether an item is probably a reply, or part of one, in any API. The conversion decides."""
    value = object_or_none(msgspec.json.decode(item))
    if value is None:
        return False
    role, kind = value.get("role"), value.get("type", "message")
    return role in ("assistant", "model") or (role is None and isinstance(kind, str) and not kind.endswith("_output"))

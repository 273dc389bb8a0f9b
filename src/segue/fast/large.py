"""Conversion of large bodies: their items are decoded, rendered and encoded in slices.

All items of a large body would take several times its size in memory. A slice ends where a reply begins. The template
is made from the first and the last slice; the whole conversation must have the same traits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from segue.canonical.fast_history import FastPathUnsupportedError
from segue.canonical.json import reject_duplicate_key
from segue.fast.body_template import find_body_template, parse_history
from segue.fast.regular import FastConversion, start_events
from segue.fast.split import SentItems, SplitBody, find_sent_items, find_source, require_fast_path, split_rest
from segue.pipeline import Conversion, ConvertJob
from segue.wire.fast_path import FastPath, decode_members

MIN_SIZE = 4 * 2**20
"""The size of a large body."""
# The number of bytes in a slice, at least.
_SLICE_SIZE = 1 << 20
_raw_decoder = msgspec.json.Decoder(list[Raw])


def convert_large(data: bytes, job: ConvertJob) -> FastConversion:
    """Return the converted body. Raises an error if it can't be converted in slices."""
    members = decode_members(data)
    source = find_source(members, job)
    fast_path = require_fast_path(source)
    reject_duplicate_key(data, fast_path.conversation_key)
    items = _raw_decoder.decode(members.get(fast_path.conversation_key, Raw()))
    same_api = source is job.target
    first, last = _find_stop(items, 0, fast_path), _find_last_start(items, fast_path)
    if not 0 < first < last:
        raise FastPathUnsupportedError
    ends = _decode([*items[:first], *items[last:]], fast_path, same_api=same_api)
    body = SplitBody(source, fast_path, ends[0], split_rest(members, fast_path.conversation_key), ends[1])
    history = parse_history(body)
    found = find_body_template(history, body, job, 0)
    if isinstance(found, Conversion):
        # The slices are short, so that the template is made from all of their items; it can be found from now on.
        found = find_body_template(history, body, job, 0)
    if isinstance(found, Conversion):
        raise FastPathUnsupportedError
    variable = body.rest.get(body.variable or "", b"")
    del body, ends, history
    events = start_events(source, found)
    for typed, sent in _decode_slices(items, fast_path, same_api=same_api):
        history = fast_path.parse(typed)
        events.progress.assign_ids(history, source.provider)
        traits = events.traits.extend(history, 0, len(history.events))
        _, events = events.extend(history, sent, 0, found.template)
        events = replace(events, traits=traits, entries=events.entries.shrink())
    if events.traits.find_all() != found.traits:
        raise FastPathUnsupportedError
    return events.convert(data, found.template, variable)


def _decode_slices(
    items: Sequence[Raw], fast_path: FastPath, *, same_api: bool
) -> Iterator[tuple[list[Any], SentItems | None]]:
    """Yield the items, slice by slice."""
    start = 0
    while start < len(items):
        stop = _find_stop(items, start, fast_path)
        yield _decode(items[start:stop], fast_path, same_api=same_api)
        start = stop


def _decode(items: Sequence[Raw], fast_path: FastPath, *, same_api: bool) -> tuple[list[Any], SentItems | None]:
    given = b"[%b]" % b",".join(items)
    typed = fast_path.decode_items(given)
    return typed, find_sent_items(typed, given, fast_path) if same_api else None


def _find_stop(items: Sequence[Raw], start: int, fast_path: FastPath) -> int:
    """Return where a slice that begins at `start` ends."""
    size = 0
    while size < _SLICE_SIZE and start < len(items):
        size += memoryview(items[start]).nbytes
        start += 1
    return _find_reply(items, start, fast_path)


def _find_last_start(items: Sequence[Raw], fast_path: FastPath) -> int:
    """Return where the last slice begins."""
    size, start = 0, len(items)
    while size < _SLICE_SIZE and start:
        start -= 1
        size += memoryview(items[start]).nbytes
    return _find_reply(items, start, fast_path)


def _find_reply(items: Sequence[Raw], start: int, fast_path: FastPath) -> int:
    """Return the first index from `start` on at which a reply begins, or the end."""
    for index in range(max(start, 1), len(items)):
        if _is_reply(items[index], fast_path) and not _is_reply(items[index - 1], fast_path):
            return index
    return len(items)


def _is_reply(item: Raw, fast_path: FastPath) -> bool:
    return fast_path.is_reply(fast_path.decode_items(b"[%b]" % bytes(item))[0])

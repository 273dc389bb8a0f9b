"""Conversion of regular conversations: their items are parsed and rendered with types.

A conversation is divided at a cut near its end. The events before it are *settled*: a longer body with the same bytes
up to the cut, and the same rest, is converted by parsing and rendering only the items after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.call_history import CallColumns, CallHistory
from segue.canonical.fast_history import CACHED, FastHistory, FastPathUnsupportedError, FastTurn
from segue.canonical.json import encode_json, parse_json_object
from segue.fast.body_template import BodyRest, BodyTemplate, FoundTemplate, find_body_template, parse_history
from segue.fast.frame import BodyFrame, Mark, find_frame, join_items, mark_before
from segue.fast.progress import Progress
from segue.fast.split import SentItems, find_sent_items, require_fast_path, split_body
from segue.fast.traits import SeenTraits
from segue.pipeline import Conversion, ConvertJob
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.rendered_prefix import append_chunk
from segue.sent_body import EDGE_ITEMS, SentBody, join_edges
from segue.wire.base import Wire

# The size of a template in memory, as a multiple of the rest of the body, and that of the ids of a call.
_REST_FACTOR = 10
_CALL_SIZE = 600


class FastConversion(Struct, frozen=True):
    """A body converted by the fast path."""

    source: Wire
    data: bytes
    report: Report
    sent_body: SentBody
    transcript: Transcript | None = None


class _Entries(Struct, frozen=True):
    """Rendered items: the JSON of all of them in chunks, without brackets, and that of the first and the last ones."""

    chunks: tuple[bytes | memoryview, ...] = ()
    count: int = 0
    first: tuple[bytes, ...] = ()
    last: tuple[bytes, ...] = ()

    def add(self, items: Sequence[Any], encoded: bytes | memoryview | None = None) -> _Entries:
        """Return the entries with more items; `encoded` is their JSON, if they are encoded already."""
        if not items:
            return self
        if encoded is None:
            encoded = memoryview(encode_json(items))[1:-1]
        first = (*self.first, *map(encode_json, items[: EDGE_ITEMS - len(self.first)]))
        last = (*self.last, *map(encode_json, items[-EDGE_ITEMS:]))[-EDGE_ITEMS:]
        return _Entries((*self.chunks, encoded), self.count + len(items), first, last)

    def join_chunks(self) -> _Entries:
        """Return the entries with the last chunk joined to those before, so that there are always few."""
        *chunks, last = map(bytes, self.chunks)
        return replace(self, chunks=append_chunk((*chunks,), last))

    def shrink(self) -> _Entries:
        """Return the entries without the unused memory at the end of the last chunk."""
        *chunks, last = self.chunks
        return replace(self, chunks=(*chunks, bytes(last)))

    def encode_body(self, template: BodyTemplate, variable: bytes) -> bytes:
        """Encode the whole body, with the value of the variable key."""
        fragments: list[bytes | memoryview] = [template.before, b"["]
        for number, chunk in enumerate(self.chunks):
            fragments += (b",", chunk) if number else (chunk,)
        return b"".join([*fragments, b"]", template.after, variable, template.end])

    @property
    def edges(self) -> bytes:
        return join_edges(self.count, self.first, self.last)

    @property
    def size(self) -> int:
        return sum(map(len, self.chunks))


class SettledEvents(Struct, frozen=True):
    """Settled events: their traits, the progress after them, and their entries in the target body."""

    source: Wire
    rest: BodyRest
    traits: SeenTraits
    system: bytes
    """The JSON of the system text that the target's items begin with."""
    entries: _Entries
    progress: Progress = Progress()

    @property
    def size(self) -> int:
        """The approximate number of bytes in memory."""
        return self.entries.size + _REST_FACTOR * self.rest.size + _CALL_SIZE * len(self.progress.ids)

    def extend(
        self, history: FastHistory, sent: SentItems | None, cut: int, template: BodyTemplate
    ) -> tuple[SettledEvents, SettledEvents]:
        """Return these events with more: those of a history up to the cut, and all of them.

        The traits stay as they are. It leaves the history empty.
        """
        template.project(history, self.source, self.progress)
        progress = self.progress.extend(history, 0, cut)
        all_progress = progress.extend(history, cut, len(history.events))
        if sent is None:
            first, last = history.divide([cut, len(history.events)])
            entries = self.entries.add(template.render(first)) if cut else self.entries
            all_entries = entries.add(template.render(last))
        else:
            before, after = sent.split(history.starts[cut] if cut else 0)
            entries = self.entries.add(before.items, before.data)
            all_entries = entries.add(after.items, after.data)
        return replace(self, progress=progress, entries=entries), replace(
            self, progress=all_progress, entries=all_entries
        )

    def convert(self, data: bytes, template: BodyTemplate, variable: bytes) -> FastConversion:
        """Return the converted body, if these are all events. `variable` is the value of the variable key, as given."""
        progress, source = self.progress, self.source
        columns = CallColumns(source.provider, progress.ids, progress.raw_ids, progress.names)
        calls = CallHistory(lambda: source.parse_request(parse_json_object(data)[0]).messages, columns)
        variable = template.encode_variable(variable)
        sent_body = SentBody(template.build_fields(variable), calls, self.entries.edges)
        encoded = self.entries.encode_body(template, variable)
        return FastConversion(source, encoded, template.build_report(progress), sent_body)


class RegularConversation:
    """The settled events of a conversation, which the conversion of a longer body continues from. It never changes."""

    def __init__(
        self, settled: SettledEvents, data: bytes, item_count: int, job: ConvertJob, frame: BodyFrame | None = None
    ) -> None:
        """`item_count` is the number of settled items of the body. The frame around the others may be given."""
        self._settled = settled
        self._data = data
        self._item_count = item_count
        self._job = job
        self.size = len(data) + settled.size
        if frame is not None:
            self.frame = frame

    @cached_property
    def frame(self) -> BodyFrame | None:
        """The frame of bodies with the settled items."""
        framed = find_frame(self._data, self._settled.source)
        if framed is None:
            return None
        frame, items = framed
        return frame.move_head(self._data, join_items(items, self._item_count))

    @property
    def mark(self) -> Mark:
        return mark_before(self._data, 0 if self.frame is None else len(self.frame.head))

    def begins(self, data: bytes) -> bool:
        """Return whether a body begins with the settled items."""
        return self.frame is not None and self.frame.find_items(data) is not None

    def convert(self, data: bytes) -> tuple[FastConversion, RegularConversation] | None:
        """Convert a body with the settled items and others after them; None for any other body.

        Return also the longer conversation. Raises an error if the whole body must be converted.
        """
        frame, settled, job = self.frame, self._settled, self._job
        given = frame.find_items(data) if frame is not None else None
        if frame is None or given is None:
            return None
        fast_path = require_fast_path(settled.source)
        items = fast_path.decode_items(given)
        same_api = settled.rest.dependencies.same_api
        sent = find_sent_items(items, given, fast_path) if same_api else None
        history = fast_path.parse(items)
        if not history.events or not isinstance(history.events[0], FastTurn):
            raise FastPathUnsupportedError
        settled.progress.assign_ids(history, settled.source.provider)
        cut = _choose_cut(history)
        found = settled.rest.find_template(history, cut, settled.traits, job)
        if found is None or found.template.system != settled.system:
            raise FastPathUnsupportedError
        head = frame.move_head(data, join_items(given, history.starts[cut])) if cut else frame
        longer, whole = settled.extend(history, sent, cut, found.template)
        conversion = whole.convert(data, found.template, frame.find_variable(data) if frame.variable else b"")
        if not cut:
            return conversion, self
        longer = replace(longer, traits=found.first, entries=longer.entries.join_chunks())
        return conversion, RegularConversation(longer, head.head, 0, job, head)


def convert_regular(data: bytes, job: ConvertJob) -> tuple[FastConversion, RegularConversation | None] | Conversion:
    """Convert a body, and return its conversation too, if it has settled events.

    The result is a `Conversion` where a template was made from the whole body. Raises an error if the full pipeline is
    needed.
    """
    body = split_body(data, job)
    history = parse_history(body)
    cut = _choose_cut(history)
    found = find_body_template(history, body, job, cut)
    if isinstance(found, Conversion):
        return found
    item_count = history.starts[cut]
    settled, whole = start_events(body.source, found).extend(history, body.sent, cut, found.template)
    conversation = RegularConversation(replace(settled, traits=found.first), data, item_count, job) if cut else None
    return whole.convert(data, found.template, body.rest.get(body.variable or "", b"")), conversation


def start_events(source: Wire, found: FoundTemplate) -> SettledEvents:
    """Return the state before the first event: no entries but the system text."""
    template = found.template
    entries = _Entries().add(template.system_items)
    return SettledEvents(source, found.rest, SeenTraits(found.rest.dependencies), template.system, entries)


def _choose_cut(history: FastHistory) -> int:
    """Return the index of the first event that is not settled."""
    cut = history.find_cut(len(history.events))
    # Clients move cache markers with each request: they are in the last turn, or in the one before too.
    return history.find_cut(cut) if CACHED in history.marks else cut

"""The memory of conversations: bounded, shared by all threads, and never needed for a correct result."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from functools import cached_property
from threading import Lock

import msgspec

from segue.canonical.request import Options
from segue.conversion.body import BodyFrame, find_frame
from segue.conversion.convert import Conversion, ConvertJob, SettingsChangedError
from segue.conversion.prefixes import PrefixTree
from segue.conversion.session import ContinuedBody, RememberedConversation, start_conversation
from segue.conversion.slices import convert_in_slices
from segue.errors import SegueError
from segue.render.cuts import has_plain_exchange
from segue.wire.names import clear_projected_names
from segue.wire.schema import clear_rendered_schemas

_UNSUPPORTED = (SegueError, SettingsChangedError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# The errors of items that can't be parsed alone: the whole body is converted.

_MAX_COUNT = 4096
_MAX_SIZE = 64 * 2**20
# A larger body is converted in slices, and not remembered if it can't be.
_MAX_WHOLE = 4 * 2**20
# Bodies of one conversation begin with as many equal bytes.
_START_SIZE = 64
# A cache marker in the last item, which clients move, is among so many bytes at its end.
_MARKER_SIZE = 96
# The size of a first body from which on its preparation costs more than to try other entries.
_LONG_PREPARATION = 1 << 15
# The part of the memory that one conversation may have.
_MAX_SHARE = 8
# The size of a converted body in memory, as a multiple of its bytes.
_SIZE_FACTOR = 10

_JobKey = tuple[object, ...]
_Key = tuple[_JobKey, int]


class FirstBody:
    """A body that was converted whole, until another one continues it."""

    def __init__(self, data: bytes, conversion: Conversion, job: ConvertJob) -> None:
        self.size = _SIZE_FACTOR * len(data)
        self.is_placed = False
        """Whether it is found by all of its bytes, not by the first ones alone."""
        self.data = data
        # The caller may add findings to the report.
        rendered = msgspec.structs.replace(conversion.rendered, report=conversion.rendered.report.copy())
        self._conversion = msgspec.structs.replace(conversion, rendered=rendered)
        self._job = job

    @property
    def options(self) -> Options:
        """The options that the body was rendered with."""
        return self._conversion.rendered.settings.options

    @cached_property
    def can_continue(self) -> bool:
        """Whether a longer conversation can be rendered from this one: not while its exchange has media in a result."""
        return has_plain_exchange(self._conversion.request.messages)

    @property
    def prefix(self) -> bytes | None:
        """The bytes that a longer body begins with; None if the conversation can't be continued."""
        framed = self._framed if self.can_continue else None
        if framed is None:
            return None
        frame, items = framed
        return self.data[: frame.size + _measure_start(items)]

    @property
    def is_prepared(self) -> bool:
        return "conversation" in self.__dict__

    @cached_property
    def conversation(self) -> RememberedConversation | None:
        framed = self._framed if self.can_continue else None
        return framed and start_conversation(self._conversion, self._job, *framed)

    @property
    def _framed(self) -> tuple[BodyFrame, bytes] | None:
        return find_frame(self.data, self._conversion.source)


class KnownSettings:
    """The settings of a conversation, for others that have the same."""

    def __init__(self, first: RememberedConversation) -> None:
        self.size = first.size
        self.options = first.options
        self.first = first

    @cached_property
    def conversation(self) -> RememberedConversation | None:
        """An empty conversation; None if one can't be told from its first body."""
        return self.first.start_another()


_Entry = RememberedConversation | FirstBody | KnownSettings


class ConversationMemory:
    """The conversations used last. An entry is never changed: a longer conversation is a new one.

    They are found by the bytes that a body begins with. Of a first body these are the first ones only, until another
    body begins with them.
    """

    def __init__(self, max_count: int = _MAX_COUNT, max_size: int = _MAX_SIZE) -> None:
        self._max_count = max_count
        self._max_size = max_size
        self.max_whole = _MAX_WHOLE
        """A larger body is converted in slices if it continues no other."""
        self._lock = Lock()
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._trees: defaultdict[_JobKey, PrefixTree[_Key]] = defaultdict(PrefixTree[_Key])
        self._size = 0
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The approximate size of all entries in bytes."""
        return self._size

    def expect_sessions(self, max_size: int) -> None:
        """Change the limit for the size of all entries, in bytes. Long bodies are prepared to be continued at once."""
        self._max_size = max_size
        self.max_whole = _LONG_PREPARATION

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._trees.clear()
            self._size = 0

    def convert(self, data: bytes, job: ConvertJob) -> ContinuedBody | None:
        """Convert a body that continues a conversation, or is long; None if it must be converted whole."""
        entries = self._find_entries(data, job)
        continued = self._continue(data, entries)
        if continued is not None or len(data) <= self.max_whole or (sliced := convert_in_slices(data, job)) is None:
            return continued
        continued, frame = sliced
        if continued.conversation.size <= self._max_size // _MAX_SHARE:
            conversation, job_key = continued.conversation, _job_key(job)
            known = [entry.first for _, entry in entries if isinstance(entry, KnownSettings)]
            other = next((first for first in known if first.prefix.length and first.frame.tail == frame.tail), None)
            if other is None:
                self._add(job_key, KnownSettings(conversation), data[: frame.size])
            else:
                conversation = conversation.share_settings(other)
            self._add_conversation(job_key, conversation, data)
        return continued

    def _continue(self, data: bytes, entries: Sequence[tuple[_Key, _Entry]]) -> ContinuedBody | None:
        """Convert a body that continues a conversation; None for any other.

        None also if the whole body must be converted. The options of a body may depend on its newest items, so that a
        conversation has two entries. If neither continues, the older one is dropped.
        """
        has_failed = False
        # Options that this body does not have: they depend on its newest items.
        other_options: list[Options] = []
        for key, entry in entries:
            if entry.options in other_options:
                continue
            conversation = entry if isinstance(entry, RememberedConversation) else entry.conversation
            if conversation is None:
                continue
            items = conversation.frame.find_items(data)
            if items is None or (isinstance(entry, KnownSettings) and len(items) > self.max_whole):
                continue
            known = [
                other for _, other in entries if isinstance(other, KnownSettings) and not other.first.prefix.length
            ]
            if isinstance(entry, FirstBody) and not known:
                self._add(key[0], KnownSettings(conversation), data[: conversation.frame.size])
            new = conversation.find_new_items(items)
            if new is None and not conversation.prefix.length and not isinstance(entry, KnownSettings):
                # Another conversation with the same settings, or its first body again.
                if conversation is entry and conversation.newest.data == items:
                    with self._lock:
                        self._drop(key)
                continue
            try:
                continued = (
                    conversation.extend(data, new) if new is not None else conversation.replace_newest(data, items)
                )
            except SettingsChangedError:
                continued = None
                other_options.append(entry.options)
            if continued is not None:
                self._replace(key, entry, continued.conversation, data)
                return continued
            if has_failed:
                with self._lock:
                    self._drop(key)
            has_failed = True
        return None

    def _replace(self, key: _Key, entry: _Entry, longer: RememberedConversation, data: bytes) -> None:
        """Remember the conversation of a body that continues this entry. Known settings stay."""
        self._add_conversation(key[0], longer, data)
        with self._lock:
            if not isinstance(entry, KnownSettings):
                self._drop(key)
            elif key in self._entries:
                self._entries.move_to_end(key)

    def _add_conversation(self, job_key: _JobKey, conversation: RememberedConversation, data: bytes) -> None:
        start = 0 if conversation.prefix.length else _measure_start(conversation.newest.data)
        self._add(job_key, conversation, data[: conversation.frame.size + start])

    def add(self, data: bytes, conversion: Conversion, job: ConvertJob) -> bool:
        """Remember the conversation of a body that was converted whole. Return whether its rendered body is kept."""
        if job.fetch is not None or len(data) > _MAX_WHOLE:
            return False
        # Clients send a body again.
        if any(isinstance(entry, FirstBody) and entry.data == data for _, entry in self._find_entries(data, job)):
            return False
        self._add(_job_key(job), FirstBody(data, conversion, job), data[:_START_SIZE])
        return True

    def _find_entries(self, data: bytes, job: ConvertJob) -> list[tuple[_Key, _Entry]]:
        """Return the entries of earlier bodies that this one may continue: those with the longest prefix first.

        Long first bodies that nothing has continued yet come later: if another entry has the same options, they are not
        prepared in vain.
        """
        with self._lock:
            job_key = _job_key(job)
            if job_key not in self._trees:
                return []
            tree = self._trees[job_key]
            found = [(key, self._entries[key]) for key in tree.find(data)]
            new = [(key, entry) for key, entry in found if isinstance(entry, FirstBody) and not entry.is_placed]
            for key, entry in new:
                # From now on it is found by all of its bytes.
                entry.is_placed = True
                self._place(key, entry.prefix)
            if new:
                found = [(key, self._entries[key]) for key in tree.find(data)]
            return sorted(found, key=lambda item: _rank(item[1]))

    def _place(self, key: _Key, prefix: bytes | None) -> None:
        """Find an entry by another prefix from now on, or drop it."""
        if prefix is None:
            self._drop(key)
            return
        tree = self._trees[key[0]]
        tree.remove(key)
        tree.add(prefix, key)

    def _add(self, job_key: _JobKey, entry: _Entry, prefix: bytes) -> None:
        with self._lock:
            self._number += 1
            key = job_key, self._number
            self._entries[key] = entry
            self._trees[job_key].add(prefix, key)
            self._size += entry.size
            while len(self._entries) > self._max_count or self._size > self._max_size:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: _Key) -> None:
        """Drop an entry, if another thread has not yet."""
        if key in self._entries:
            self._size -= self._entries.pop(key).size
            tree = self._trees[key[0]]
            tree.remove(key)
            if not tree:
                del self._trees[key[0]]


def _rank(entry: _Entry) -> int:
    if isinstance(entry, KnownSettings):
        return 2
    return int(isinstance(entry, FirstBody) and not entry.is_prepared and len(entry.data) > _LONG_PREPARATION)


def _measure_start(items: bytes) -> int:
    """Return how many bytes of a list of items are in the bytes that a longer list begins with, after the bracket."""
    end = items[1:-1][-_MARKER_SIZE:]
    before, marker, _ = end.rpartition(b'"cache_control"')
    return len(items) - 2 - (len(end) - len(before.rstrip(b", ")) if marker else 0)


def _job_key(job: ConvertJob) -> _JobKey:
    # Wires are compared by identity: they are made once. What restores reasoning is kept by the entries.
    return id(job.target), id(job.source), job.model, job.tool_format, job.policy, id(job.restore)


conversations = ConversationMemory()
"""The conversations that `convert_bytes` remembers."""


def convert_bytes(data: bytes, job: ConvertJob) -> ContinuedBody | None:
    """Convert a body that continues a conversation, or is long; None if it must be converted whole."""
    if job.fetch is not None:
        return None
    try:
        return conversations.convert(data, job)
    except _UNSUPPORTED:
        return None


def clear() -> None:
    """Clear everything that was cached from earlier conversions, also the names and schemas of their tools."""
    conversations.clear()
    clear_projected_names()
    clear_rendered_schemas()

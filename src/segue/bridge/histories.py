"""What a bridge remembers of conversations with reasoning, so that a longer one costs no more than what is new in it.

Only the items after those of an earlier request are parsed and digested, and only their entries are loaded. Without
the memory, a body is read whole, with the same result. An entry that was loaded stays, also if the store drops it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from threading import Lock
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from segue.bridge.digests import ConversationDigest
from segue.bridge.envelopes import RejectedEnvelope
from segue.bridge.reasoning import ReasoningRestorer, find_stored_call
from segue.canonical.blocks import Message
from segue.canonical.json import parse_json
from segue.conversion.body import find_replies
from segue.errors import InputError, SegueError
from segue.wire.base import Wire

_MAX_COUNT = 256
_MAX_SIZE = 32 * 2**20
# Conversations that begin with the same words.
_MAX_FORKS = 4
# Clients change the last items of an earlier request, such as their cache markers; then an earlier border is used.
_MAX_BORDERS = 4
_SPACE = b" \t\r\n"
_UNSUPPORTED = (SegueError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode_items = msgspec.json.Decoder(list[Raw]).decode


CallDigest: TypeAlias = tuple[str, str]
"""The id of a reply's first call, and the digest of the conversation up to it."""


class _Border(Struct, frozen=True):
    """A place where a reply begins: the number of items and bytes before it, and their digest."""

    count: int
    stop: int
    digest: ConversationDigest


class History(Struct, frozen=True):
    """The conversation of one request: its JSON, what restores its reasoning, and its digest.

    `calls` are those whose entries are not loaded yet.
    """

    conversation: bytes
    borders: tuple[_Border, ...]
    restorer: ReasoningRestorer
    digest: ConversationDigest
    calls: tuple[CallDigest, ...]

    @classmethod
    def read(cls, conversation: bytes, wire: Wire, messages: Sequence[Message], restorer: ReasoningRestorer) -> History:
        """Return the history of a whole conversation, which was parsed as these messages."""
        calls, digest = _digest(messages, ConversationDigest())
        history = cls(conversation, (), restorer, digest, tuple(calls))
        try:
            return msgspec.structs.replace(history, borders=history._find_borders(wire, messages))
        except _UNSUPPORTED:
            return history

    def _find_borders(self, wire: Wire, messages: Sequence[Message]) -> tuple[_Border, ...]:
        """Return the last borders: the messages after one are those of its items parsed alone."""
        items = _decode_items(self.conversation)
        start = [0, *find_replies(items)][-_MAX_BORDERS:][0]
        after = wire.parse_request({wire.conversation_key: _parse_items(items[start:])}).messages
        _, digest = _digest(messages[: len(messages) - len(after)], ConversationDigest())
        stop = 1
        for item in items[:start]:
            stop = self.conversation.index(item, stop) + len(bytes(item))
        first = _Border(start, stop, digest)
        history = msgspec.structs.replace(self, borders=(first,), restorer=ReasoningRestorer(None, _open_nothing))
        extended = history.extend(self.conversation, 0, wire)
        # The digest shows that the messages before the items are the right ones.
        if extended is None or extended.digest.value != self.digest.value:
            return ()
        return extended.borders if start else extended.borders[1:]

    def find_border(self, conversation: bytes) -> int:
        """Return the last border up to which a conversation is the same; -1 if there is none."""
        position = 0
        for number, border in enumerate(self.borders):
            if not conversation.startswith(self.conversation[position : border.stop], position):
                return number - 1
            position = border.stop
        return len(self.borders) - 1

    def extend(self, conversation: bytes, number: int, wire: Wire) -> History | None:
        """Return the history of a conversation that is the same up to a border; None if it must be read whole."""
        borders = [*self.borders[: number + 1]]
        count, stop, digest = borders[-1].count, borders[-1].stop, borders[-1].digest
        rest = conversation[stop:].lstrip(_SPACE)
        items = _decode_items(b"[%b" % rest.removeprefix(b","))
        calls: list[CallDigest] = []
        for start, end in pairwise((0, *find_replies(items), len(items))):
            piece = items[start:end]
            messages = wire.parse_request({wire.conversation_key: _parse_items(piece)}).messages
            added, digest = _digest(messages, digest)
            calls += added
            for item in piece:
                stop = conversation.index(item, stop) + len(bytes(item))
            if piece and _ends_before_reply(messages):
                borders.append(_Border(count + end, stop, digest))
        known = self.restorer.digests
        ids = [call_id for call_id, _ in calls]
        if len({*ids}) < len(ids) or any(known.get(call_id, at) != at for call_id, at in calls):
            # The same id stands for two calls.
            return None
        new = tuple(call for call in calls if call[0] not in known)
        return History(conversation, tuple(borders[-_MAX_BORDERS:]), self.restorer, digest, new)

    def add_entries(self, find_entry: Callable[[str, str], str | None]) -> History:
        """Let the restorer use the entries of the calls, and return the history without any to load."""
        for call_id, digest in self.calls:
            self.restorer.add(call_id, digest, find_entry(call_id, digest))
        return msgspec.structs.replace(self, calls=())


class HistoryMemory:
    """The histories used last, by the client, its API, the target and the first words of the user."""

    def __init__(self, max_size: int = _MAX_SIZE) -> None:
        self._max_size = max_size
        self._size = 0
        self._lock = Lock()
        self._histories: OrderedDict[Hashable, list[tuple[History, int]]] = OrderedDict()
        self._restorers: OrderedDict[Hashable, ReasoningRestorer] = OrderedDict()

    def find(self, key: Hashable, conversation: bytes, wire: Wire, *, oldest: float) -> History | None:
        """Return the history of a conversation that continues a remembered one.

        None for any other, or if reasoning was restored that was sealed before `oldest`.
        """
        with self._lock:
            histories = [history for history, _ in self._histories.get(key, ()) if history.restorer.is_usable(oldest)]
        found = [(number, history) for history in histories if (number := history.find_border(conversation)) >= 0]
        if not found:
            return None
        number, history = max(found, key=lambda pair: pair[1].borders[pair[0]].stop)
        try:
            return history.extend(conversation, number, wire)
        except _UNSUPPORTED:
            return None

    def put(self, key: Hashable, history: History) -> None:
        """Remember a history in place of the one that it continues."""
        size = len(history.conversation) + history.restorer.size
        if size > self._max_size:
            return
        with self._lock:
            others = [pair for pair in self._drop(key) if pair[0].restorer is not history.restorer]
            self._histories[key] = [(history, size), *others[: _MAX_FORKS - 1]]
            self._size += sum(size for _, size in self._histories[key])
            while self._size > self._max_size or len(self._histories) > _MAX_COUNT:
                self._drop(next(iter(self._histories)))

    def _drop(self, key: Hashable) -> list[tuple[History, int]]:
        dropped = self._histories.pop(key, [])
        self._size -= sum(size for _, size in dropped)
        return dropped

    def find_restorer(
        self, key: Hashable, make: Callable[[], ReasoningRestorer], *, oldest: float
    ) -> ReasoningRestorer:
        """Return what restores the reasoning in envelopes alone: it is the same for all conversations."""
        with self._lock:
            restorer = self._restorers.pop(key, None)
            if restorer is None or not restorer.is_usable(oldest):
                restorer = make()
            self._restorers[key] = restorer
            if len(self._restorers) > _MAX_COUNT:
                self._restorers.popitem(last=False)
        return restorer


def _digest(messages: Sequence[Message], before: ConversationDigest) -> tuple[list[CallDigest], ConversationDigest]:
    digests, after = before.add(messages)
    calls = zip(map(find_stored_call, messages), digests, strict=True)
    return [(call_id, digest) for call_id, digest in calls if call_id is not None], after


def _parse_items(items: Sequence[Raw]) -> object:
    values, surrogates = parse_json(b"[%b]" % b",".join(items))
    if surrogates:
        raise InputError("surrogates are counted in the whole body")
    return values


def _open_nothing(_text: str) -> RejectedEnvelope:
    return RejectedEnvelope("forged")


def _ends_before_reply(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].speaker != "ai"

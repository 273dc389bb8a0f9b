"""Projects canonical ids to ids of the target: injective over the transcript, equal for a call and its result.

Ids are assigned in transcript order. The first holder of an id keeps it; a later collision gets the projection of its
canonical id, and if that is taken too, one with an increasing salt. Earlier ids never depend on later messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256

from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.canonical.call_history import CallHistory
from segue.canonical.ids import is_canonical, raw_id_or_none, short_hash
from segue.canonical.layered_map import LayeredMap
from segue.errors import ProjectionError
from segue.render.transcript import Transcript

_CANONICAL_PREFIX = "hist_tool_"
_HASHED_LENGTH = 24
_ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_NINE_COUNT = len(_ALPHANUMERIC) ** 9
_PAIRS = [first + second for second in _ALPHANUMERIC for first in _ALPHANUMERIC]
_PAIR_COUNT = len(_PAIRS)

_compile = cache(re.compile)


class IdScheme(Struct, frozen=True):
    """How ids for a target are made, and which ids the target accepts.

    `make(call, tool_name, ordinal, salt)` returns an id; `tool_name` is the projected name, `ordinal` counts the calls.
    """

    name: str
    pattern: str
    make: Callable[[ToolCall, str, int, int], str]
    indexed: bool = False
    """Whether ids contain an index that must be unique over all tools; the next free index is used."""
    prefix: str | None = None
    """Set if an id is always this prefix plus the hash part of the canonical id."""

    def accepts(self, raw_id: str) -> bool:
        return _compile(self.pattern).fullmatch(raw_id) is not None


def _suffix(call_id: str) -> str:
    return call_id[len(_CANONICAL_PREFIX) :] if is_canonical(call_id) else short_hash(call_id)


def prefix_scheme(name: str, prefix: str, *, limit: int, pattern: str) -> IdScheme:
    """Return the scheme of ids with a prefix and the canonical suffix, or a hash of it if that is too long."""

    def make(call: ToolCall, _tool_name: str, _ordinal: int, salt: int) -> str:
        suffix = _suffix(call.id)
        if salt:
            suffix = short_hash(f"{suffix}|{salt}")
        elif len(prefix) + len(suffix) > limit:
            suffix = short_hash(suffix)
        return prefix + suffix

    fits = len(prefix) + _HASHED_LENGTH <= limit
    return IdScheme(name, pattern, make, prefix=prefix if fits else None)


def kimi_scheme() -> IdScheme:
    """Return the scheme `functions.{tool}:{index}`, the index counted over the whole transcript (KIM-01)."""

    def make(_call: ToolCall, tool_name: str, ordinal: int, salt: int) -> str:
        return f"functions.{tool_name}:{ordinal + salt}"

    return IdScheme("kimi", r"(?:functions\.)?\$?[a-zA-Z0-9_-]+:\d+", make, indexed=True)


def mistral_scheme(*, pattern: str = r"[a-zA-Z0-9]{9}") -> IdScheme:
    """Return the scheme of nine letters and digits (MIS-01); some models accept other ids of their own (MIS-02)."""

    def make(call: ToolCall, _tool_name: str, _ordinal: int, salt: int) -> str:
        return nine_character_hash(f"{call.id}|{salt}")

    return IdScheme("mistral", pattern, make)


def nine_character_hash(text: str) -> str:
    """Return nine letters and digits from a hash of the text."""
    number = int.from_bytes(sha256(text.encode("utf-8", "replace")).digest(), "big") % _NINE_COUNT
    number, first = divmod(number, _PAIR_COUNT)
    number, second = divmod(number, _PAIR_COUNT)
    number, third = divmod(number, _PAIR_COUNT)
    number, fourth = divmod(number, _PAIR_COUNT)
    return f"{_PAIRS[first]}{_PAIRS[second]}{_PAIRS[third]}{_PAIRS[fourth]}{_ALPHANUMERIC[number]}"


class IdMap:
    """The projected ids of one request. Calls of a later reply are added with `assign`."""

    def __init__(
        self, scheme: IdScheme, *, provider: str, policy: str = "auto", allow_duplicates: bool = False
    ) -> None:
        self._scheme = scheme
        self._provider = provider
        self._policy = policy
        self._allow_duplicates = allow_duplicates
        self._projected: LayeredMap[str, str] = LayeredMap()
        self._taken: LayeredMap[str, bool] = LayeredMap()
        self._raw_ids: LayeredMap[tuple[str, str], bool] = LayeredMap()
        self._repeated: LayeredMap[str, bool] = LayeredMap()
        self._indexes: LayeredMap[int, bool] = LayeredMap()
        self._ordinal = 0
        self._first_free = 0

    @classmethod
    def project(cls, transcript: Transcript, scheme: IdScheme, project_name: Callable[[str], str]) -> IdMap:
        """Assign an id to every call of a transcript."""
        id_map = cls(scheme, provider=transcript.constraints.provider, policy=transcript.policy.ids)
        id_map.add_calls(transcript.contents.calls, project_name)
        return id_map

    def add_calls(self, calls: Iterable[ToolCall], project_name: Callable[[str], str]) -> None:
        for call in calls:
            self.assign(call, project_name(call.name) if call.kind != "hosted" else call.name)

    def assign(self, call: ToolCall, tool_name: str) -> str:
        """Return the id of a call, assigned the first time and kept."""
        assigned = self._projected.get(call.id)
        if assigned is not None:
            return assigned
        ordinal, self._ordinal = self._ordinal, self._ordinal + 1
        projected = self._raw_id(call, tool_name) or self._make_id(call, tool_name, ordinal)
        self._projected[call.id] = projected
        origin = call.origin
        if origin.identity == "conflated" and call.kind == "hosted":
            # A hosted item has no separate result that refers to it, so its id does not count as taken.
            return projected
        self._taken[projected] = True
        if origin.raw_id is not None:
            key = origin.provider, origin.raw_id
            if self._raw_ids.get(key):
                self._repeated[call.id] = True
            self._raw_ids[key] = True
        if self._scheme.indexed:
            self._indexes[_index_of(projected)] = True
        return projected

    def _raw_id(self, call: ToolCall, tool_name: str) -> str | None:
        """Return the raw id where policy, target and uniqueness allow it."""
        same_provider = call.origin.provider == self._provider
        if self._policy == "canonical" or not (same_provider or self._policy == "native"):
            return None
        # OAI-RESP-21, AZF-05: item types without a call id have only an item id, which no result may refer to.
        if _is_conflated(call) and call.kind != "hosted":
            return None
        # `item_id` may hold a malformed call id, which still pairs call and result; a real item id does not.
        misplaced = call.origin.item_id if raw_id_or_none(call.origin.item_id) is None else None
        raw_id = call.origin.raw_id or (misplaced if same_provider else None)
        if raw_id is None or not self._accepts(raw_id, tool_name):
            return None
        if self._allow_duplicates and same_provider:
            return raw_id
        return None if self._taken.get(raw_id) else raw_id

    def _accepts(self, raw_id: str, tool_name: str) -> bool:
        """Return whether the target accepts this raw id for a tool of this name."""
        if not self._scheme.accepts(raw_id):
            return False
        return not self._scheme.indexed or raw_id.removeprefix("functions.").rsplit(":", 1)[0] == tool_name

    def _make_id(self, call: ToolCall, tool_name: str, ordinal: int) -> str:
        if self._scheme.indexed:
            index = max(ordinal, self._first_free)
            while index in self._indexes:
                index += 1
            # Ordinals only grow, and every index between this ordinal and the one found is taken.
            self._first_free = index + 1
            return self._scheme.make(call, tool_name, index, 0)
        projected = self._scheme.make(call, tool_name, ordinal, 0)
        if not self._taken.get(projected):
            return projected
        for salt in range(1, len(self._taken) + 1):
            projected = self._scheme.make(call, tool_name, ordinal, salt)
            if projected not in self._taken:
                return projected
        raise ProjectionError(f"no {self._scheme.name} id could be made for {call.id}")

    def start(self) -> IdMap:
        """Return an empty map for the same target."""
        return IdMap(
            self._scheme, provider=self._provider, policy=self._policy, allow_duplicates=self._allow_duplicates
        )

    def fork(self) -> IdMap:
        """Return a map with the same calls. Calls added to one of the two are not in the other."""
        forked = self.start()
        forked._projected, forked._taken = self._projected.fork(), self._taken.fork()
        forked._raw_ids, forked._repeated = self._raw_ids.fork(), self._repeated.fork()
        forked._indexes, forked._ordinal, forked._first_free = self._indexes.fork(), self._ordinal, self._first_free
        return forked

    def render(self, call_id: str) -> str:
        """Return the projected id of an assigned call; raise `ProjectionError` for any other."""
        projected = self._projected.get(call_id)
        if projected is None:
            raise ProjectionError(f"{call_id} is not a call of this transcript")
        return projected

    def find(self, call_id: str) -> str | None:
        """Return the projected id of a call; None if it is not assigned."""
        return self._projected.get(call_id)

    def is_repeated(self, call_id: str) -> bool:
        """Return whether an earlier call has the same raw id."""
        return bool(self._repeated.get(call_id))

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._projected

    @property
    def scheme(self) -> str:
        return self._scheme.name


class ReplyIdMap(IdMap):
    """The ids of a reply's calls in the caller's API, new in the caller's history.

    The calls of the history are added only if one of their ids may be met again.
    """

    def __init__(self, scheme: IdScheme, *, provider: str, history: CallHistory) -> None:
        super().__init__(scheme, provider=provider)
        self._history: CallHistory | None = history

    def assign(self, call: ToolCall, tool_name: str) -> str:
        if self._history is not None and self._may_be_used(call, tool_name, self._history):
            self._add_history()
        return super().assign(call, tool_name)

    def render(self, call_id: str) -> str:
        if call_id not in self._projected:
            self._add_history()
        return super().render(call_id)

    def __contains__(self, call_id: str) -> bool:
        if call_id not in self._projected:
            self._add_history()
        return super().__contains__(call_id)

    def _may_be_used(self, call: ToolCall, tool_name: str, history: CallHistory) -> bool:
        """Return whether a call of the history may have the id that this call gets without it."""
        prefix = self._scheme.prefix
        if prefix is None or call.id in history.ids:
            return True
        projected = self._raw_id(call, tool_name) or self._scheme.make(call, tool_name, 0, 0)
        # A call of the history has its raw id, or the prefix and the hash part of its canonical id.
        return projected in history.raw_ids or _CANONICAL_PREFIX + projected.removeprefix(prefix) in history.ids

    def _add_history(self) -> None:
        history, self._history = self._history, None
        if history is not None:
            for call in history.calls:
                super().assign(call, call.name)


def _is_conflated(call: ToolCall) -> bool:
    return call.origin.identity == "conflated"


def _index_of(wire_id: str) -> int:
    return int(wire_id.rsplit(":", 1)[1])

"""`CallHistory`: the tool calls of a request, which the ids of its reply must differ from.

Most replies need no more than the ids, so the messages are parsed only where a reply needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter

from msgspec import Struct

from segue.canonical.blocks import Message, Origin, ToolCall, calls_of
from segue.canonical.ids import raw_id_or_none


class CallColumns(Struct, frozen=True):
    """The calls of a history by column: canonical ids, raw ids and tool names. All are of one provider."""

    provider: str
    ids: Sequence[str]
    raw_ids: Sequence[str | None]
    names: Sequence[str]

    def add(self, calls: Iterable[ToolCall]) -> CallColumns | None:
        """Return the columns with more calls; None if these hold more than the columns do."""
        added = list(calls)
        for call in added:
            origin = call.origin
            if call.kind == "hosted" or origin.provider != self.provider or origin.identity == "conflated":
                return None
            if origin.is_approval or (origin.item_id is not None and raw_id_or_none(origin.item_id) is None):
                return None
        return CallColumns(
            self.provider,
            [*self.ids, *(call.id for call in added)],
            [*self.raw_ids, *(call.origin.raw_id for call in added)],
            [*self.names, *(call.name for call in added)],
        )

    def build_calls(self) -> list[ToolCall]:
        """Return the calls, without their arguments."""
        return [
            ToolCall(name, None, call_id, origin=Origin(self.provider, None, raw_id))
            for name, call_id, raw_id in zip(self.names, self.ids, self.raw_ids, strict=True)
        ]


class CallHistory:
    """The calls of a request, from `calls` or `columns` if given, otherwise from the messages.

    `parse_messages` returns the messages in canonical form.
    """

    def __init__(
        self,
        parse_messages: Callable[[], Sequence[Message]],
        columns: CallColumns | None = None,
        calls: Sequence[ToolCall] | None = None,
    ) -> None:
        self._parse_messages = parse_messages
        self._columns = columns
        self._calls = calls

    @cached_property
    def messages(self) -> Sequence[Message]:
        return self._parse_messages()

    @cached_property
    def calls(self) -> Sequence[ToolCall]:
        """All calls in order, with or without their arguments."""
        if self._columns is not None:
            return self._columns.build_calls()
        if self._calls is not None:
            return self._calls
        return [call for message in self.messages for call in calls_of(message)]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The canonical ids of all calls."""
        columns = self._columns
        return frozenset(map(attrgetter("id"), self.calls) if columns is None else columns.ids)

    @cached_property
    def raw_ids(self) -> frozenset[str | None]:
        """The ids of all calls as the caller sent them."""
        columns = self._columns
        return frozenset(map(attrgetter("origin.raw_id"), self.calls) if columns is None else columns.raw_ids)

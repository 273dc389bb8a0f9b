"""The turns of a stored conversation, numbered as `segue diag` selects them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from segue.errors import InputError
from segue.store.base import StoredEvent
from segue.store.events import CallCancelled, CallCompleted, Event, MessageAdded, Rewound, Sent


class TurnSpan(Struct, gc=False):
    """One turn: its key, if any, and the index range of its events; `end` is None up to the last event.

    A turn starts with a reply and ends at the next reply or where it is rewound, so its events are the state in which
    the next request was made. Imported replies without tool calls have no turn key, so turns are numbered as well.
    """

    key: str | None
    start: int
    end: int | None = None


class TurnList:
    """All turns in the order in which they were written, including turns that were rewound later."""

    def __init__(self) -> None:
        self.spans: list[TurnSpan] = []
        self._keys: set[str] = set()
        self._in_reply = False

    def observe(self, records: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """Yield the records, and add their turns."""
        for index, record in enumerate(records):
            self._add(index, record.event)
            yield record

    def _add(self, index: int, event: Event) -> None:
        match event:
            case MessageAdded(message) if message.speaker == "ai":
                key, spans = message.turn_key, self.spans
                continues = self._in_reply and (key is None or spans[-1].key is None)
                if not continues and (key is None or key not in self._keys):
                    self._end_last(index)
                    spans.append(TurnSpan(key, index))
                elif continues and spans[-1].key is None:
                    spans[-1].key = key
                self._keys.update((key,) if key is not None else ())
                self._in_reply = True
            case MessageAdded() | CallCompleted() | CallCancelled() | Sent():
                self._in_reply = False
            case Rewound():
                self._end_last(index)
                self._in_reply = False
            case _:
                pass

    def _end_last(self, index: int) -> None:
        """End the last turn here, unless it was rewound before."""
        if self.spans and self.spans[-1].end is None:
            self.spans[-1].end = index

    def select(self, turn: str) -> tuple[str, int | None]:
        """Return a description of the turn and the number of its last event, None for the last one of all."""
        number = self._find_number(turn)
        if number:
            span = self.spans[number - 1]
            return f"after turn {number}{f' ({span.key})' if span.key else ''}", span.end
        return "before the first turn", self.spans[0].start if self.spans else None

    def _find_number(self, turn: str) -> int:
        """Return the number of a turn given as key, key prefix or number."""
        keys = [span.key or "" for span in self.spans]
        if turn and turn in keys:
            return keys.index(turn) + 1
        if turn.isdecimal() and len(turn) < 10 and int(turn) <= len(keys):
            return int(turn)
        matches = [key for key in keys if key.startswith(turn)] if turn else []
        if len(matches) == 1:
            return keys.index(matches[0]) + 1
        problem = f"several turns start with {turn!r}" if matches else f"no turn {turn!r}"
        raise InputError(f"{problem}; turns are numbered 0 to {len(keys)}", path="turn")

"""The turns of a stored conversation, computed from its events, including turns that were rewound later.

A turn starts with a reply and ends at the next reply or where it is rewound, so its events are the state in which the
next request was made. Imported replies without tool calls have no turn key, so turns are numbered as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from segue.errors import InputError
from segue.store.base import StoredEvent
from segue.store.events import CallCancelled, CallCompleted, MessageAdded, Rewound, Sent

__all__ = ["TurnSpan", "find_turns", "select_turn"]


class TurnSpan(Struct):
    """One turn: its key, if any, and the index range of its events."""

    key: str | None
    start: int
    end: int


def find_turns(records: Sequence[StoredEvent]) -> list[TurnSpan]:
    """All turns, in the order in which they were written."""
    turns: list[TurnSpan] = []
    keys: set[str] = set()
    in_reply = False
    for index, record in enumerate(records):
        match record.event:
            case MessageAdded(message) if message.speaker == "ai":
                key = message.turn_key
                continues = in_reply and (key is None or turns[-1].key is None)
                if not continues and (key is None or key not in keys):
                    _end_last_turn(turns, index)
                    turns.append(TurnSpan(key, index, len(records)))
                elif continues and turns[-1].key is None:
                    turns[-1].key = key
                keys.update((key,) if key is not None else ())
                in_reply = True
            case MessageAdded() | CallCompleted() | CallCancelled() | Sent():
                in_reply = False
            case Rewound():
                _end_last_turn(turns, index)
                in_reply = False
            case _:
                pass
    return turns


def _end_last_turn(turns: Sequence[TurnSpan], index: int) -> None:
    """End the last turn here, unless it was rewound before."""
    if turns:
        turns[-1].end = min(turns[-1].end, index)


def select_turn(records: Sequence[StoredEvent], turn: str | None) -> tuple[str, int, int]:
    """A description of the turn, the index after its last event, and the total number of turns."""
    turns = find_turns(records)
    if turn is None:
        return "now", len(records), len(turns)
    number = _find_number(turns, turn)
    if number:
        span = turns[number - 1]
        return f"after turn {number}{f' ({span.key})' if span.key else ''}", span.end, len(turns)
    return "before the first turn", turns[0].start if turns else len(records), len(turns)


def _find_number(turns: Sequence[TurnSpan], turn: str) -> int:
    """The number of a turn given as key, key prefix or number."""
    keys = [span.key or "" for span in turns]
    if turn and turn in keys:
        return keys.index(turn) + 1
    if turn.isdecimal() and len(turn) < 10 and int(turn) <= len(keys):
        return int(turn)
    matches = [key for key in keys if key.startswith(turn)] if turn else []
    if len(matches) == 1:
        return keys.index(matches[0]) + 1
    problem = f"several turns start with {turn!r}" if matches else f"no turn {turn!r}"
    raise InputError(f"{problem}; turns are numbered 0 to {len(keys)}", path="turn")

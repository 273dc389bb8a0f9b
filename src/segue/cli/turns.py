"""The turns of a stored conversation as its events tell them, also those that were taken back since.

A turn begins with a reply and ends where the next one begins, or where it is taken back: what lies in it is what was
known when the next request was made. Replies of a body have no key unless they call tools, so turns have numbers too.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from segue.errors import InputError
from segue.store.base import Record
from segue.store.events import Cancelled, Completed, Rewound, Said, Sent

__all__ = ["Turn", "turns_of", "up_to"]


class Turn(Struct):
    """One reply: its key, if it has one, and the places of the event that begins it and of the one behind its last."""

    key: str | None
    start: int
    end: int


def turns_of(records: Sequence[Record]) -> list[Turn]:
    """All replies, in the order in which they were written."""
    turns: list[Turn] = []
    known: set[str] = set()
    speaking = False
    for place, record in enumerate(records):
        match record.event:
            case Said(message) if message.speaker == "ai":
                key = message.turn_key
                goes_on = speaking and (key is None or turns[-1].key is None)
                if not goes_on and (key is None or key not in known):
                    _end(turns, place)
                    turns.append(Turn(key, place, len(records)))
                elif goes_on and turns[-1].key is None:
                    turns[-1].key = key
                known.update((key,) if key is not None else ())
                speaking = True
            case Said() | Completed() | Cancelled() | Sent():
                speaking = False
            case Rewound():
                _end(turns, place)
                speaking = False
            case _:
                pass
    return turns


def _end(turns: Sequence[Turn], place: int) -> None:
    """The last turn ends here, unless it was taken back before."""
    if turns:
        turns[-1].end = min(turns[-1].end, place)


def up_to(records: Sequence[Record], turn: str | None) -> tuple[str, int, int]:
    """What a turn is called, the place behind its last event, and how many turns there are in all."""
    turns = turns_of(records)
    if turn is None:
        return "now", len(records), len(turns)
    number = _number(turns, turn)
    if number:
        found = turns[number - 1]
        return f"after turn {number}{f' ({found.key})' if found.key else ''}", found.end, len(turns)
    return "before the first turn", turns[0].start if turns else len(records), len(turns)


def _number(turns: Sequence[Turn], turn: str) -> int:
    """How many turns there are up to this one."""
    keys = [found.key or "" for found in turns]
    if turn and turn in keys:
        return keys.index(turn) + 1
    if turn.isdecimal() and len(turn) < 10 and int(turn) <= len(keys):
        return int(turn)
    begun = [key for key in keys if key.startswith(turn)] if turn else []
    if len(begun) == 1:
        return keys.index(begun[0]) + 1
    what = f"several turns begin with {turn!r}" if begun else f"there is no turn {turn!r}"
    raise InputError(f"{what}; they are numbered 0 to {len(keys)}", path="turn")

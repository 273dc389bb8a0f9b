"""Corrupts payloads with odd values in odd places. Parsing gives a value or a `RemoteProtocolError`, and a value can be
rendered."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from segue.canonical.request import Reply
from segue.errors import RemoteProtocolError
from segue.wire.base import Wire
from segue.wire.stream.events import Event
from tests.streams.parsing import TURN, check_blocks, read, sse
from tests.streams.rendering import render_stream

ODD: list[Any] = [
    *(None, True, -1, 0, 1.5, 10**30, "", "x", "\ud83d", [], {}, ["a"], [None], [{}], [[]]),
    *({"type": 3}, {"type": "message"}, {"text": []}, {"text": "x"}, {"\ud83d": "\ude00"}),
]


def read_or_reject(wire: Wire | str, data: bytes) -> tuple[list[Event], Reply] | None:
    """Events and reply; None if this is no stream of the API."""
    try:
        return read(wire, data)
    except RemoteProtocolError:
        return None


def round_trip_or_reject(wire: Wire, data: bytes) -> None:
    """A valid stream of the API passes the block checks and can be rendered."""
    found = read_or_reject(wire, data)
    if found is not None:
        check_blocks(*found)
        render_stream(wire, found[0])


def reject_random_bytes(wire: Wire) -> None:
    chance = random.Random(3)
    for size in range(300):
        parser = wire.open_stream(TURN)
        with pytest.raises(RemoteProtocolError):  # noqa: PT012
            parser.feed(chance.randbytes(size))
            parser.close()


def mutants(payloads: Sequence[Any], seed: int) -> list[Any]:
    """The payloads with some values replaced and some payloads removed, duplicated or moved."""
    chance = random.Random(seed)
    changed: list[Any] = json.loads(json.dumps(payloads))
    for _ in range(chance.randint(1, 4)):
        spot = chance.randrange(len(changed)) if changed else 0
        match chance.randrange(6):
            case 0 if changed:
                del changed[spot]
            case 1 if changed:
                changed.insert(chance.randrange(len(changed) + 1), changed[spot])
            case 2 if changed:
                changed.insert(0, changed.pop(spot))
            case _ if changed:
                _corrupt(changed[spot], chance)
            case _:
                pass
    return changed


def read_garbled(wire: Wire, payloads: Sequence[Any], times: int, *others: Wire) -> int:
    """Reads streams of some of these payloads with odd values in them; returns how many were replies, all of which
    can be rendered for every given wire."""
    chance = random.Random(7)
    replies = 0
    for _ in range(times):
        some = [
            json.loads(json.dumps(one))
            for one in chance.sample(payloads, chance.randrange(1, min(12, len(payloads)) + 1))
        ]
        for _ in range(chance.randrange(1, 4)):
            _corrupt(chance.choice(some), chance)
        if (found := read_or_reject(wire, sse(*some))) is None:
            continue
        for one in (wire, *others):
            assert render_stream(one, found[0])
        replies += 1
    return replies


def _corrupt(value: Any, chance: random.Random) -> None:
    """Puts an odd value somewhere into this one, or removes one."""
    while isinstance(value, dict | list) and value:
        key: Any = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.4 or not isinstance(value[key], dict | list) or not value[key]:
            if isinstance(value, dict) and chance.random() < 0.3:
                del value[key]
            else:
                value[key] = copy.deepcopy(chance.choice(ODD))
            return
        value = value[key]

"""Types, learnt by one thread at a time.

msgspec takes a struct apart when it first meets it, and shows it to other threads half-done: a second one that meets
the same type in that moment takes the process down. So a type is made known here before anything is read into it.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

__all__ = ["learnt"]

Kind = TypeVar("Kind")
_one_at_a_time = Lock()
_known: set[object] = set()


def learnt(kind: Kind) -> Kind:
    """The type, ready for any thread."""
    if kind not in _known:
        with _one_at_a_time:
            msgspec.json.Decoder(kind)
            _known.add(kind)
    return kind

"""Thread-safe first use of a msgspec type.

msgspec inspects a struct type on first use and publishes the half-built information to other threads: a second thread
that uses the same type at that moment crashes the process. So each type is inspected here, under a lock, before use.
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
    """Return the type, ready for use in any thread."""
    if kind not in _known:
        with _one_at_a_time:
            msgspec.json.Decoder(kind)
            _known.add(kind)
    return kind

"""Thread-safe first use of a msgspec type.

msgspec inspects a struct type on first use and publishes the half-built information to other threads: a second thread
that uses the same type at that moment crashes the process. So each type is inspected here, under a lock, before use.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

Kind = TypeVar("Kind")
_lock = Lock()
_warmed: set[object] = set()


def warm_type(kind: Kind) -> Kind:
    """Return the type, ready for use in any thread."""
    if kind not in _warmed:
        with _lock:
            msgspec.json.Decoder(kind)
            _warmed.add(kind)
    return kind

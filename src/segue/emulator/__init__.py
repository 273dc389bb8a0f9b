"""Strict providers on loopback: they take what the real one takes, refuse what it refuses, and use tools.

One process may hold any number of them. The same seed and the same requests give the same replies, ids included.
"""

from __future__ import annotations

from segue.emulator.exchange import Recorded
from segue.emulator.server import Emulator, start

__all__ = ["Emulator", "Recorded", "start"]

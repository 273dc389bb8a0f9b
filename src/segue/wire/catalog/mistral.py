"""mistral"""

from __future__ import annotations

from segue.wire.catalog.shape import Shape

__all__ = ["MISTRAL"]

MISTRAL: dict[str, Shape] = {}

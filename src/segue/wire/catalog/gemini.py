"""gemini"""

from __future__ import annotations

from segue.wire.catalog.shape import Shape

__all__ = ["GEMINI"]

GEMINI: dict[str, Shape] = {}

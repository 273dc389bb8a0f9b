"""anthropic"""

from __future__ import annotations

from segue.wire.catalog.shape import Shape

__all__ = ["ANTHROPIC"]

ANTHROPIC: dict[str, Shape] = {}

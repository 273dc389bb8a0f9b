"""foundry"""

from __future__ import annotations

from segue.wire.catalog.shape import Shape

__all__ = ["FOUNDRY"]

FOUNDRY: dict[str, Shape] = {}

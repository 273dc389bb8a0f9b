"""bedrock"""

from __future__ import annotations

from segue.wire.catalog.shape import Shape

__all__ = ["BEDROCK"]

BEDROCK: dict[str, Shape] = {}

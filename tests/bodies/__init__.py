"""Builders for the bodies of each API, one module for each, shared by `tests/wire` and `tests/conformance`.

They build plain JSON and import nothing of the package.
"""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

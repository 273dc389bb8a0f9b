"""Builders for the bodies of each API, one module for each, shared by all tests.

They build plain JSON and import nothing of the package.
"""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

"""Public functions for call ids: the canonical id of a tool call, and legacy functions that replace id prefixes."""

from __future__ import annotations

from segue.canonical.ids import (
    canonical_tool_id,
    normalize_to_anthropic_tool_id,
    normalize_to_history_tool_id,
    normalize_to_openai_tool_id,
)

__all__ = [
    "canonical_tool_id",
    "normalize_to_anthropic_tool_id",
    "normalize_to_history_tool_id",
    "normalize_to_openai_tool_id",
]

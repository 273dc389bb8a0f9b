"""Call ids: the canonical id of a tool call, and the prefix functions for ids of two providers."""

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

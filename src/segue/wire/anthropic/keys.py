"""The keys that blocks may have in a request. The API refuses any other (ANT-12), so none goes out, not even home."""

from __future__ import annotations

from segue.wire.fields import JsonObject

__all__ = ["unknown_keys"]

_MARKED = {"type", "cache_control"}
# As the request types of the SDK have them. Types that are not here are not looked at.
_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset(_MARKED | {"text", "citations"}),
    "image": frozenset(_MARKED | {"source", "transformations"}),
    "document": frozenset(_MARKED | {"source", "title", "context", "citations"}),
    "search_result": frozenset(_MARKED | {"source", "title", "content", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset(_MARKED | {"id", "name", "input", "caller", "toolset_name"}),
    "tool_result": frozenset(_MARKED | {"tool_use_id", "content", "is_error", "toolset_name"}),
    "tool_reference": frozenset(_MARKED | {"tool_name"}),
}


def unknown_keys(block: JsonObject, kind: str) -> frozenset[str]:
    """Keys of a block that blocks of this type do not have."""
    known = _KEYS.get(kind)
    return frozenset() if known is None or known.issuperset(block) else frozenset(block.keys() - known)

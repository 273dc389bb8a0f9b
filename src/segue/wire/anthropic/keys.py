"""The fields of each block type in a request. The API rejects others (ANT-12), so they are dropped same-API too."""

from __future__ import annotations

from segue.wire.fields import JsonObject

__all__ = ["stray_keys", "unknown_keys"]

_MARKED = {"type", "cache_control"}
# From the request types of the SDK, for blocks that segue can render. Types in neither table are not checked.
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
# For blocks that only the provider can make.
_OTHERS: dict[str, frozenset[str]] = {
    "server_tool_use": frozenset(_MARKED | {"id", "name", "input", "caller"}),
    "mcp_tool_use": frozenset(_MARKED | {"id", "name", "input", "server_name"}),
    "mcp_tool_result": frozenset(_MARKED | {"tool_use_id", "content", "is_error"}),
    "mcp_tool_listing": frozenset({"type", "mcp_server_name", "tools"}),
    "container_upload": frozenset(_MARKED | {"file_id"}),
    "compaction": frozenset(_MARKED | {"content", "encrypted_content", "signature", "tool_changes"}),
    "tool_addition": frozenset(_MARKED | {"tool"}),
    "tool_removal": frozenset(_MARKED | {"tool"}),
    "fallback": frozenset({"type", "from", "to", "trigger"}),
}


def stray_keys(block: JsonObject) -> list[str]:
    """Unknown keys of a provider-made block, which is otherwise sent unchanged."""
    known = _OTHERS.get(str(block.get("type")))
    return [] if known is None or known.issuperset(block) else sorted(block.keys() - known)


def unknown_keys(block: JsonObject, kind: str) -> frozenset[str]:
    """Unknown keys of a block of this type."""
    known = _KEYS.get(kind)
    return frozenset() if known is None or known.issuperset(block) else frozenset(block.keys() - known)

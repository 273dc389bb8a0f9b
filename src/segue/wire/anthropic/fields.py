"""The fields of each block type in a request. The API rejects others (ANT-12), so they are dropped same-API too."""

from __future__ import annotations

from segue.wire.json_values import JsonObject

__all__ = ["unknown_keys", "unknown_provider_keys"]

_COMMON_FIELDS = {"type", "cache_control"}
# From the request types of the SDK, for block types that segue can render. Types in neither table are not checked.
_FIELDS: dict[str, frozenset[str]] = {
    "text": frozenset(_COMMON_FIELDS | {"text", "citations"}),
    "image": frozenset(_COMMON_FIELDS | {"source", "transformations"}),
    "document": frozenset(_COMMON_FIELDS | {"source", "title", "context", "citations"}),
    "search_result": frozenset(_COMMON_FIELDS | {"source", "title", "content", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset(_COMMON_FIELDS | {"id", "name", "input", "caller", "toolset_name"}),
    "tool_result": frozenset(_COMMON_FIELDS | {"tool_use_id", "content", "is_error", "toolset_name"}),
    "tool_reference": frozenset(_COMMON_FIELDS | {"tool_name"}),
}
# The same for block types that only the provider creates.
_PROVIDER_FIELDS: dict[str, frozenset[str]] = {
    "server_tool_use": frozenset(_COMMON_FIELDS | {"id", "name", "input", "caller"}),
    "mcp_tool_use": frozenset(_COMMON_FIELDS | {"id", "name", "input", "server_name"}),
    "mcp_tool_result": frozenset(_COMMON_FIELDS | {"tool_use_id", "content", "is_error"}),
    "mcp_tool_listing": frozenset({"type", "mcp_server_name", "tools"}),
    "container_upload": frozenset(_COMMON_FIELDS | {"file_id"}),
    "compaction": frozenset(_COMMON_FIELDS | {"content", "encrypted_content", "signature", "tool_changes"}),
    "tool_addition": frozenset(_COMMON_FIELDS | {"tool"}),
    "tool_removal": frozenset(_COMMON_FIELDS | {"tool"}),
    "fallback": frozenset({"type", "from", "to", "trigger"}),
}


def unknown_provider_keys(block: JsonObject) -> list[str]:
    """Unknown keys of a provider-made block, which is otherwise sent unchanged."""
    known = _PROVIDER_FIELDS.get(str(block.get("type")))
    return [] if known is None or known.issuperset(block) else sorted(block.keys() - known)


def unknown_keys(block: JsonObject, kind: str) -> frozenset[str]:
    """Unknown keys of a block of this type."""
    known = _FIELDS.get(kind)
    return frozenset() if known is None or known.issuperset(block) else frozenset(block.keys() - known)

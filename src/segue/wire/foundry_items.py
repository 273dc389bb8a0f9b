"""Types of the items that only Azure Foundry has, on the Responses API."""

from __future__ import annotations

from collections.abc import Mapping

# Hosted tools of Azure Foundry by the stem of their types, `…_call` and `…_call_output`: each with its tool name if the
# items have none.
FOUNDRY_TOOLS: Mapping[str, str] = {
    "a2a_preview": "",
    "azure_ai_search": "azure_ai_search",
    "azure_function": "",
    "bing_custom_search_preview": "bing_custom_search",
    "bing_grounding": "bing_grounding",
    "browser_automation_preview": "browser_automation",
    "fabric_dataagent_preview": "fabric_dataagent",
    "openapi": "",
    "sharepoint_grounding_preview": "sharepoint_grounding",
}
FOUNDRY_ITEM_TYPES = frozenset(
    {"memory_search_call", "workflow_action", "oauth_consent_request", "structured_outputs"}
    | {f"{stem}_call{end}" for stem in FOUNDRY_TOOLS for end in ("", "_output")}
)

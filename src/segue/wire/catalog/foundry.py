"""Azure Foundry's types: the Responses items that OpenAI does not have. Those of Agents are in `foundry_agents`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from segue.canonical.blocks import Text, ToolResponse
from segue.wire.catalog.common import anything, marked, members
from segue.wire.catalog.fields import Output, Patch, json_text, said, values
from segue.wire.catalog.foundry_agents import AGENTS
from segue.wire.catalog.shape import Inside, Shape, one_of
from segue.wire.openai_responses.hosted import HOSTED

__all__ = ["FOUNDRY"]

_RESPONSES = Inside("azure-foundry", lambda item: {"input": [item]})
_REPLIES = Inside("azure-foundry", lambda item: {"input": [item]}, replies_only=True)
_DONE = {"status": "completed"}
_FAILED = {"status": "failed"}


def _pair(kind: str, tool: str | None = None) -> Iterator[tuple[str, Shape]]:
    """A call and its output, which share `call_id`. Without `tool` the items hold the tool name."""
    name = "name" if tool is None else None
    yield (
        f"{kind}ToolCall",
        Shape(
            id="call_id",
            item="id",
            name=name,
            tool=tool or "",
            arguments=json_text("arguments"),
            kind="hosted",
            defaults=_DONE,
            inside=_REPLIES,
        ),
    )
    yield (
        f"{kind}ToolCallOutput",
        Shape(
            id="call_id",
            item="id",
            name=name,
            tool=tool or "",
            output=marked(anything("output"), _FAILED),
            failed=one_of("status", "failed"),
            pending=one_of("status", "in_progress"),
            kind="hosted",
            defaults=_DONE,
            inside=_REPLIES,
        ),
    )


def _remembered(response: ToolResponse) -> Patch:
    texts = [block.text for block in response.content or () if isinstance(block, Text)] or [said(response)]
    memory = {"kind": "chat_summary", "memory_id": "", "updated_at": 0, "scope": ""}
    return {"results": [{"memory_item": memory | {"content": text}} for text in texts if text]}


_MEMORIES = Output(lambda item: (HOSTED["memory_search_call"].result(item), UNSET), _remembered)


FOUNDRY: dict[str, Shape] = {
    **dict(_pair("A2A")),
    **dict(_pair("AzureAISearch", "azure_ai_search")),
    **dict(_pair("AzureFunction")),
    **dict(_pair("BingCustomSearch", "bing_custom_search")),
    **dict(_pair("BingGrounding", "bing_grounding")),
    **dict(_pair("BrowserAutomation", "browser_automation")),
    **dict(_pair("FabricDataAgent", "fabric_dataagent")),
    **dict(_pair("OpenApi")),
    **dict(_pair("SharepointGrounding", "sharepoint_grounding")),
    # Neither holds the search query.
    "MemorySearchToolCallItemParam": Shape(tool="memory_search", output=_MEMORIES, kind="hosted", inside=_RESPONSES),
    "MemorySearchToolCallItemResource": Shape(
        id="id",
        tool="memory_search",
        output=marked(_MEMORIES, _FAILED),
        failed=one_of("status", "failed"),
        kind="hosted",
        defaults=_DONE,
        inside=_RESPONSES,
    ),
    "WorkflowActionOutputItem": Shape(
        id="id",
        name="kind",
        output=members("action_id", "parent_action_id", "previous_action_id", "status"),
        failed=one_of("status", "failed"),
        cancelled=one_of("status", "cancelled"),
        pending=one_of("status", "in_progress"),
        kind="hosted",
        inside=_REPLIES,
    ),
    "OAuthConsentRequestOutputItem": Shape(
        id="id",
        tool="oauth_consent",
        output=members("server_label", "consent_link"),
        kind="hosted",
        inside=_REPLIES,
    ),
    "StructuredOutputsOutputItem": Shape(
        id="id",
        tool="capture_structured_outputs",
        output=values("output"),
        kind="hosted",
        inside=_REPLIES,
    ),
    **AGENTS,
}

"""Azure Foundry's types: the Responses items that OpenAI does not have. Those of Agents are in `foundry_agents`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from segue.canonical.blocks import Text, ToolResponse
from segue.wire.catalog.field_codecs import OutputCodec, Patch, json_text, response_text, value_output
from segue.wire.catalog.foundry_agents import AGENTS
from segue.wire.catalog.shape import EnclosingBody, PayloadShape, is_one_of
from segue.wire.catalog.shared_codecs import keys_output, optional_output, with_failure_fields
from segue.wire.openai_responses.item_types import HOSTED_TYPES

_ITEM_BODY = EnclosingBody("azure-foundry", lambda item: {"input": [item]})
_REPLY_ITEM_BODY = EnclosingBody("azure-foundry", lambda item: {"input": [item]}, replies_only=True)
_DONE = {"status": "completed"}
_FAILED = {"status": "failed"}


def _pair_shapes(kind: str, tool: str | None = None) -> Iterator[tuple[str, PayloadShape]]:
    """A call and its output, which share `call_id`. Without `tool` the items hold the tool name."""
    name = "name" if tool is None else None
    yield (
        f"{kind}ToolCall",
        PayloadShape(
            id="call_id",
            item_id="id",
            name=name,
            tool=tool or "",
            arguments=json_text("arguments"),
            kind="hosted",
            defaults=_DONE,
            enclosing_body=_REPLY_ITEM_BODY,
        ),
    )
    yield (
        f"{kind}ToolCallOutput",
        PayloadShape(
            id="call_id",
            item_id="id",
            name=name,
            tool=tool or "",
            output=with_failure_fields(optional_output("output"), _FAILED),
            failed=is_one_of("status", "failed"),
            pending=is_one_of("status", "in_progress"),
            kind="hosted",
            defaults=_DONE,
            enclosing_body=_REPLY_ITEM_BODY,
        ),
    )


def _render_memories(response: ToolResponse) -> Patch:
    texts = [block.text for block in response.content or () if isinstance(block, Text)] or [response_text(response)]
    memory = {"kind": "chat_summary", "memory_id": "", "updated_at": 0, "scope": ""}
    return {"results": [{"memory_item": memory | {"content": text}} for text in texts if text]}


_MEMORY_OUTPUT = OutputCodec(lambda item: (HOSTED_TYPES["memory_search_call"].result(item), UNSET), _render_memories)


FOUNDRY: dict[str, PayloadShape] = {
    **dict(_pair_shapes("A2A")),
    **dict(_pair_shapes("AzureAISearch", "azure_ai_search")),
    **dict(_pair_shapes("AzureFunction")),
    **dict(_pair_shapes("BingCustomSearch", "bing_custom_search")),
    **dict(_pair_shapes("BingGrounding", "bing_grounding")),
    **dict(_pair_shapes("BrowserAutomation", "browser_automation")),
    **dict(_pair_shapes("FabricDataAgent", "fabric_dataagent")),
    **dict(_pair_shapes("OpenApi")),
    **dict(_pair_shapes("SharepointGrounding", "sharepoint_grounding")),
    # Neither holds the search query.
    "MemorySearchToolCallItemParam": PayloadShape(
        tool="memory_search", output=_MEMORY_OUTPUT, kind="hosted", enclosing_body=_ITEM_BODY
    ),
    "MemorySearchToolCallItemResource": PayloadShape(
        id="id",
        tool="memory_search",
        output=with_failure_fields(_MEMORY_OUTPUT, _FAILED),
        failed=is_one_of("status", "failed"),
        kind="hosted",
        defaults=_DONE,
        enclosing_body=_ITEM_BODY,
    ),
    "WorkflowActionOutputItem": PayloadShape(
        id="id",
        name="kind",
        output=keys_output("action_id", "parent_action_id", "previous_action_id", "status"),
        failed=is_one_of("status", "failed"),
        cancelled=is_one_of("status", "cancelled"),
        pending=is_one_of("status", "in_progress"),
        kind="hosted",
        enclosing_body=_REPLY_ITEM_BODY,
    ),
    "OAuthConsentRequestOutputItem": PayloadShape(
        id="id",
        tool="oauth_consent",
        output=keys_output("server_label", "consent_link"),
        kind="hosted",
        enclosing_body=_REPLY_ITEM_BODY,
    ),
    "StructuredOutputsOutputItem": PayloadShape(
        id="id",
        tool="capture_structured_outputs",
        output=value_output("output"),
        kind="hosted",
        enclosing_body=_REPLY_ITEM_BODY,
    ),
    **AGENTS,
}

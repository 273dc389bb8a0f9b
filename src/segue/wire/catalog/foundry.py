"""Azure Foundry's types: the run steps of Agents, and the Responses items that OpenAI does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import Block, Text, ToolCall, ToolResponse
from segue.wire.catalog.codecs import (
    ArgumentsCodec,
    OutputCodec,
    Patch,
    approval_field,
    custom_output,
    json_text,
    keys_output,
    object_arguments,
    object_or_text,
    optional_output,
    response_text,
    selected_keys,
    text_output,
    value_output,
    with_failure_fields,
)
from segue.wire.catalog.openai_outputs import code_interpreter_output, render_image_file, screenshot_output
from segue.wire.catalog.shape import EnclosingBody, PayloadShape, is_one_of
from segue.wire.json_values import JsonObject, get_path, object_list, object_or_none
from segue.wire.openai_responses.item_types import HOSTED_TYPES

# ---------------------------------------------------------------------------------------------------- agents: arguments


def _open_map_arguments(root: str) -> ArgumentsCodec:
    """Return a codec for an open map of strings: all keys except `output` are arguments."""

    def parse(step: JsonObject) -> tuple[Any, str | None]:
        fields = object_or_none(get_path(step, root)) or {}
        return {key: value for key, value in fields.items() if key != "output"}, None

    def render(call: ToolCall) -> Patch:
        return object_arguments(root).render(call)

    return ArgumentsCodec(parse, render)


def _operation_arguments(root: str) -> ArgumentsCodec:
    """Return a codec for an open map that may hold its arguments as a JSON string."""
    plain, open_map = json_text(f"{root}.arguments"), _open_map_arguments(root)

    def parse(step: JsonObject) -> tuple[Any, str | None]:
        return (open_map if get_path(step, f"{root}.arguments") is None else plain).parse(step)

    return ArgumentsCodec(parse, plain.render)


# ------------------------------------------------------------------------------------------------------ agents: outputs


def _parse_search_results(results: object) -> list[Block]:
    blocks: list[Block] = []
    for result in object_list(results):
        texts = [part.get("text") for part in object_list(result.get("content"))]
        lines = [line for line in (result.get("file_name"), *texts) if isinstance(line, str) and line]
        blocks += [Text("\n".join(lines))] if lines else []
    return blocks


def _render_search_results(response: ToolResponse) -> list[JsonObject]:
    texts = [block.text for block in response.content or () if isinstance(block, Text)] or [response_text(response)]
    nameless = {"file_id": "", "file_name": "", "score": 0}
    return [nameless | {"content": [{"type": "text", "text": text}]} for text in texts if text]


# ------------------------------------------------------------------------------------------------------- agents: shapes


def _step(
    tool: str,
    arguments: ArgumentsCodec,
    output: OutputCodec,
    *,
    name: str | None = None,
    defaults: dict[str, Any] | None = None,
) -> PayloadShape:
    return PayloadShape(
        name=name, tool=tool, arguments=arguments, output=output, kind="hosted", defaults=defaults or {}
    )


def _map_step(tool: str) -> PayloadShape:
    return _step(tool, _open_map_arguments(tool), text_output(f"{tool}.output"))


_FUNCTION = PayloadShape(name="function.name", arguments=json_text("function.arguments"))
_ACTION = selected_keys("action", root="computer_use_preview")

_AGENTS: dict[str, PayloadShape] = {
    "RunStepFunctionToolCall": _FUNCTION,
    "RunStepCodeInterpreterToolCall": _step(
        "code_interpreter",
        selected_keys("input", root="code_interpreter"),
        code_interpreter_output("code_interpreter.outputs", render_image_file),
        defaults={"code_interpreter": {"input": "", "outputs": []}},
    ),
    "RunStepFileSearchToolCall": _step(
        "file_search",
        selected_keys("ranking_options", root="file_search"),
        custom_output("file_search.results", _parse_search_results, _render_search_results),
        defaults={"file_search": {"results": []}},
    ),
    "RunStepAzureAISearchToolCall": _map_step("azure_ai_search"),
    "RunStepBingGroundingToolCall": _map_step("bing_grounding"),
    "RunStepBingCustomSearchToolCall": _map_step("bing_custom_search"),
    "RunStepMicrosoftFabricToolCall": _map_step("fabric_dataagent"),
    "RunStepSharepointToolCall": _map_step("sharepoint_grounding"),
    "RunStepOpenAPIToolCall": _step(
        "openapi", _operation_arguments("openapi"), text_output("openapi.output"), name="openapi.name"
    ),
    "RunStepAzureFunctionToolCall": _step(
        "azure_function",
        json_text("azure_function.arguments"),
        text_output("azure_function.output"),
        name="azure_function.name",
    ),
    "RunStepBrowserAutomationToolCall": _step(
        "browser_automation",
        selected_keys("input", root="browser_automation"),
        text_output("browser_automation.output"),
        defaults={"browser_automation": {"input": "", "output": "", "steps": []}},
    ),
    "RunStepComputerUseToolCall": PayloadShape(
        tool="computer",
        arguments=_ACTION,
        output=screenshot_output("computer_use_preview.output"),
        defaults={"computer_use_preview": {"pending_safety_checks": []}},
    ),
    "RunStepConnectedAgentToolCall": _step(
        "connected_agent",
        object_or_text("connected_agent.arguments"),
        text_output("connected_agent.output"),
        name="connected_agent.name",
    ),
    "RunStepDeepResearchToolCall": _step(
        "deep_research",
        selected_keys("input", root="deep_research"),
        text_output("deep_research.output"),
        defaults={"deep_research": {"input": ""}},
    ),
    "RunStepMcpToolCall": _step(
        "", json_text("arguments"), text_output("output"), name="name", defaults={"arguments": "{}", "output": ""}
    ),
    "RequiredFunctionToolCall": _FUNCTION,
    "RequiredComputerUseToolCall": PayloadShape(
        tool="computer", arguments=_ACTION, defaults={"computer_use_preview": {"pending_safety_checks": []}}
    ),
    "RequiredMcpToolCall": PayloadShape(
        name="name", arguments=json_text("arguments"), kind="hosted", defaults={"server_label": "unknown"}
    ),
    "AgentsToolOutput": PayloadShape(
        id="tool_call_id", output=text_output("output"), defaults={"type": "function_call_output"}
    ),
    "AgentsComputerToolOutput": PayloadShape(id="tool_call_id", tool="computer", output=screenshot_output()),
    "AgentsToolApproval": PayloadShape(id="tool_call_id", approval=approval_field("approve", True, False)),
}


# ----------------------------------------------------------------------------------------------------------- responses


_ITEM_BODY = EnclosingBody("azure-foundry", lambda item: {"input": [item]})
_REPLY_ITEM_BODY = EnclosingBody("azure-foundry", lambda item: {"input": [item]}, replies_only=True)
_DONE = {"status": "completed"}
_FAILED = {"status": "failed"}


def _pair_shapes(kind: str, tool: str | None = None) -> Iterator[tuple[str, PayloadShape]]:
    """Yield the shapes of a call and its output, which share `call_id`. Without `tool` the items hold the tool name."""
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
        id=None, tool="memory_search", output=_MEMORY_OUTPUT, kind="hosted", enclosing_body=_ITEM_BODY
    ),
    "MemorySearchToolCallItemResource": PayloadShape(
        tool="memory_search",
        output=with_failure_fields(_MEMORY_OUTPUT, _FAILED),
        failed=is_one_of("status", "failed"),
        kind="hosted",
        defaults=_DONE,
        enclosing_body=_ITEM_BODY,
    ),
    "WorkflowActionOutputItem": PayloadShape(
        name="kind",
        output=keys_output("action_id", "parent_action_id", "previous_action_id", "status"),
        failed=is_one_of("status", "failed"),
        cancelled=is_one_of("status", "cancelled"),
        pending=is_one_of("status", "in_progress"),
        kind="hosted",
        enclosing_body=_REPLY_ITEM_BODY,
    ),
    "OAuthConsentRequestOutputItem": PayloadShape(
        tool="oauth_consent",
        output=keys_output("server_label", "consent_link"),
        kind="hosted",
        enclosing_body=_REPLY_ITEM_BODY,
    ),
    "StructuredOutputsOutputItem": PayloadShape(
        tool="capture_structured_outputs", output=value_output("output"), kind="hosted", enclosing_body=_REPLY_ITEM_BODY
    ),
    **_AGENTS,
}

"""Azure Foundry's Agents types: run steps, which hold a call with its output, and required actions of a run."""

from __future__ import annotations

from typing import Any, cast

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse
from segue.wire.catalog.common import instruction, object_at
from segue.wire.catalog.fields import Arguments, Output, Patch, data_url, json_text, keys, said, told, words
from segue.wire.catalog.paths import at
from segue.wire.catalog.shape import Shape
from segue.wire.fields import JsonObject, object_or_none, string_or_none

__all__ = ["AGENTS"]


# ----------------------------------------------------------------------------------------------------------- arguments


def _open_map(root: str) -> Arguments:
    """An open map of strings: all keys except `output` are arguments."""

    def parse(step: JsonObject) -> tuple[Any, str | None]:
        given = object_or_none(at(step, root)) or {}
        return {key: value for key, value in given.items() if key != "output"}, None

    def render(call: ToolCall) -> Patch:
        return object_at(root).write(call)

    return Arguments(parse, render)


def _operation(root: str) -> Arguments:
    """An open map that may hold its arguments as a JSON string."""
    plain, open_map = json_text(f"{root}.arguments"), _open_map(root)

    def parse(step: JsonObject) -> tuple[Any, str | None]:
        return (open_map if at(step, f"{root}.arguments") is None else plain).read(step)

    return Arguments(parse, plain.write)


# ------------------------------------------------------------------------------------------------------------- outputs


def _items(value: object) -> list[JsonObject]:
    given = cast("list[object]", value) if isinstance(value, list) else []
    return [object_or_none(item) or {} for item in given]


def _logs_and_pictures(outputs: object) -> list[Block]:
    blocks: list[Block] = []
    for item in _items(outputs):
        logs, picture = string_or_none(item.get("logs")), string_or_none(at(item, "image.file_id"))
        blocks += [Text(logs)] if logs is not None else []
        blocks += [Media("image", file_id=picture)] if picture is not None else []
    return blocks


def _interpreted(response: ToolResponse) -> list[JsonObject]:
    pictures = [block.file_id for block in response.content or () if isinstance(block, Media) and block.file_id]
    logs = [{"type": "logs", "logs": text}] if (text := said(response)) else []
    return [*logs, *({"type": "image", "image": {"file_id": picture}} for picture in pictures)]


def _found(results: object) -> list[Block]:
    blocks: list[Block] = []
    for result in _items(results):
        texts = [part.get("text") for part in _items(result.get("content"))]
        lines = [line for line in (result.get("file_name"), *texts) if isinstance(line, str) and line]
        blocks += [Text("\n".join(lines))] if lines else []
    return blocks


def _results(response: ToolResponse) -> list[JsonObject]:
    texts = [block.text for block in response.content or () if isinstance(block, Text)] or [said(response)]
    nameless = {"file_id": "", "file_name": "", "score": 0}
    return [nameless | {"content": [{"type": "text", "text": text}]} for text in texts if text]


def _screenshot(output: object) -> list[Block]:
    url, file_id = string_or_none(at(output, "image_url")), string_or_none(at(output, "file_id"))
    if url is not None:
        return [data_url(url)]
    return [Media("image", file_id=file_id)] if file_id is not None else []


def _shot(response: ToolResponse) -> JsonObject:
    for block in response.content or ():
        if not isinstance(block, Media):
            continue
        if block.file_id is not None:
            return {"type": "computer_screenshot", "file_id": block.file_id}
        url = block.url if block.data is None else f"data:{block.mime or 'image/png'};base64,{block.data}"
        return {"type": "computer_screenshot", "image_url": url}
    return {"type": "computer_screenshot"}


# -------------------------------------------------------------------------------------------------------------- shapes


def _step(
    tool: str, arguments: Arguments, output: Output, *, name: str | None = None, defaults: dict[str, Any] | None = None
) -> Shape:
    return Shape(
        id="id", name=name, tool=tool, arguments=arguments, output=output, kind="hosted", defaults=defaults or {}
    )


def _map_step(tool: str) -> Shape:
    return _step(tool, _open_map(tool), words(f"{tool}.output"))


_FUNCTION = Shape(id="id", name="function.name", arguments=json_text("function.arguments"))
_ACTION = keys("action", root="computer_use_preview")

AGENTS: dict[str, Shape] = {
    "RunStepFunctionToolCall": _FUNCTION,
    "RunStepCodeInterpreterToolCall": _step(
        "code_interpreter",
        keys("input", root="code_interpreter"),
        told("code_interpreter.outputs", _logs_and_pictures, _interpreted),
        defaults={"code_interpreter": {"input": "", "outputs": []}},
    ),
    "RunStepFileSearchToolCall": _step(
        "file_search",
        keys("ranking_options", root="file_search"),
        told("file_search.results", _found, _results),
        defaults={"file_search": {"results": []}},
    ),
    "RunStepAzureAISearchToolCall": _map_step("azure_ai_search"),
    "RunStepBingGroundingToolCall": _map_step("bing_grounding"),
    "RunStepBingCustomSearchToolCall": _map_step("bing_custom_search"),
    "RunStepMicrosoftFabricToolCall": _map_step("fabric_dataagent"),
    "RunStepSharepointToolCall": _map_step("sharepoint_grounding"),
    "RunStepOpenAPIToolCall": _step("openapi", _operation("openapi"), words("openapi.output"), name="openapi.name"),
    "RunStepAzureFunctionToolCall": _step(
        "azure_function",
        json_text("azure_function.arguments"),
        words("azure_function.output"),
        name="azure_function.name",
    ),
    "RunStepBrowserAutomationToolCall": _step(
        "browser_automation",
        keys("input", root="browser_automation"),
        words("browser_automation.output"),
        defaults={"browser_automation": {"input": "", "output": "", "steps": []}},
    ),
    "RunStepComputerUseToolCall": Shape(
        id="id",
        tool="computer",
        arguments=_ACTION,
        output=told("computer_use_preview.output", _screenshot, _shot),
        defaults={"computer_use_preview": {"pending_safety_checks": []}},
    ),
    "RunStepConnectedAgentToolCall": _step(
        "connected_agent",
        instruction("connected_agent.arguments"),
        words("connected_agent.output"),
        name="connected_agent.name",
    ),
    "RunStepDeepResearchToolCall": _step(
        "deep_research",
        keys("input", root="deep_research"),
        words("deep_research.output"),
        defaults={"deep_research": {"input": ""}},
    ),
    "RunStepMcpToolCall": _step(
        "", json_text("arguments"), words("output"), name="name", defaults={"arguments": "{}", "output": ""}
    ),
    "RequiredFunctionToolCall": _FUNCTION,
    "RequiredComputerUseToolCall": Shape(
        id="id",
        tool="computer",
        arguments=_ACTION,
        defaults={"computer_use_preview": {"pending_safety_checks": []}},
    ),
    "RequiredMcpToolCall": Shape(
        id="id",
        name="name",
        arguments=json_text("arguments"),
        kind="hosted",
        defaults={"server_label": "unknown"},
    ),
    "AgentsToolOutput": Shape(id="tool_call_id", output=words("output"), defaults={"type": "function_call_output"}),
    "AgentsComputerToolOutput": Shape(id="tool_call_id", tool="computer", output=told("output", _screenshot, _shot)),
    "AgentsToolApproval": Shape(
        id="tool_call_id",
        tell=lambda payload: "approved" if payload["approve"] else "refused",
        untell=lambda text: {"approve": text.startswith("approved")},
    ),
}

"""MCP types of OpenAI's APIs: tool lists, tool outputs, approval requests and responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import Block, Text, ToolResponse
from segue.canonical.json import parse_argument_text
from segue.wire.catalog.codecs import Content, OutputCodec, Patch, approval_field, json_text, response_text
from segue.wire.catalog.openai_outputs import has_failed
from segue.wire.catalog.shape import PayloadShape
from segue.wire.json_values import JsonObject, object_or_none, require_list, string_or_none
from segue.wire.openai_responses.item_types import HOSTED_TYPES


def mcp_output(error: Callable[[str], JsonObject]) -> OutputCodec:
    """Return a codec for the output of an MCP server's tool; `error` renders text as the API's error object."""

    def render(response: ToolResponse) -> Patch:
        if not response.error:
            return {"output": response_text(response), "error": None}
        if not response.content and isinstance(response.structured, UnsetType):
            return {"output": None}
        error_object = (
            object_or_none(parse_argument_text(response_text(response))[0]) if response_text(response) else None
        )
        return {"output": None, "error": error_object or error(response_text(response))}

    return OutputCodec(lambda payload: (HOSTED_TYPES["mcp_call"].result(payload), UNSET), render)


_TOOL_LIST_KEYS = ("server_label", "tools", "error")


def _parse_tool_list(payload: JsonObject) -> Content:
    tools = [object_or_none(tool) or {} for tool in require_list(payload.get("tools"), "tools")]
    lines = [": ".join(filter(None, map(string_or_none, (t.get("name"), t.get("description"))))) for t in tools]
    texts = [line for line in (*lines, string_or_none(payload.get("error"))) if line]
    fields = {key: payload[key] for key in _TOOL_LIST_KEYS if payload.get(key) is not None}
    return (Text("\n".join(texts)),) if texts else (), fields


def _render_tool_list(response: ToolResponse) -> Patch:
    fields = object_or_none(response.structured)
    if fields is not None and isinstance(fields.get("tools"), list):
        return {key: fields[key] for key in _TOOL_LIST_KEYS if key in fields}
    return (
        {"error": response_text(response)} if response.error else {"tools": _parse_tool_lines(response.content or ())}
    )


def _parse_tool_lines(blocks: Sequence[Block]) -> list[JsonObject]:
    lines = [line for block in blocks if isinstance(block, Text) for line in block.text.splitlines() if line]
    pairs = [line.partition(": ") for line in lines]
    tools = [{"name": name, **({"description": text} if text else {})} for name, _, text in pairs]
    return [{**tool, "input_schema": {"type": "object"}} for tool in tools]


# The tools of a server with their descriptions, or the error. No tool call requests them.
MCP_LIST_TOOLS = PayloadShape(
    tool="mcp_list_tools",
    output=OutputCodec(_parse_tool_list, _render_tool_list),
    failed=has_failed,
    kind="hosted",
    defaults={"server_label": "", "tools": []},
)


# ----------------------------------------------------------------------------------------------------------- approvals


APPROVAL_REQUEST = PayloadShape(
    name="name", arguments=json_text("arguments"), kind="hosted", defaults={"server_label": ""}
)
APPROVAL_RESPONSE = PayloadShape(
    id="approval_request_id", item_id="id", approval=approval_field("approve", True, False, "reason")
)

"""MCP types of OpenAI's APIs: tool lists, tool outputs, approval requests and responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import Block, Text, ToolResponse
from segue.canonical.jsontext import parse_argument_text
from segue.wire.catalog.fields import Content, Output, Patch, json_text, said
from segue.wire.catalog.openai_outputs import has_failed
from segue.wire.catalog.shape import Shape
from segue.wire.fields import JsonObject, list_of, object_or_none, string_or_none
from segue.wire.openai_responses.hosted import HOSTED, approved

__all__ = ["LISTING", "MAY_IT", "THAT_IT_MAY", "approval_of", "approved", "mcp"]


def mcp(error: Callable[[str], JsonObject]) -> Output:
    """The output of an MCP server's tool; `error` renders text as the API's error object."""

    def render(response: ToolResponse) -> Patch:
        if not response.error:
            return {"output": said(response), "error": None}
        if not response.content and isinstance(response.structured, UnsetType):
            return {"output": None}
        given = object_or_none(parse_argument_text(said(response))[0]) if said(response) else None
        return {"output": None, "error": given or error(said(response))}

    return Output(lambda payload: (HOSTED["mcp_call"].result(payload), UNSET), render)


_LISTING = ("server_label", "tools", "error")


def _list_tools(payload: JsonObject) -> Content:
    tools = [object_or_none(tool) or {} for tool in list_of(payload.get("tools"), "tools")]
    lines = [": ".join(filter(None, map(string_or_none, (t.get("name"), t.get("description"))))) for t in tools]
    texts = [line for line in (*lines, string_or_none(payload.get("error"))) if line]
    given = {key: payload[key] for key in _LISTING if payload.get(key) is not None}
    return (Text("\n".join(texts)),) if texts else (), given


def _listing(response: ToolResponse) -> Patch:
    given = object_or_none(response.structured)
    if given is not None and isinstance(given.get("tools"), list):
        return {key: given[key] for key in _LISTING if key in given}
    return {"error": said(response)} if response.error else {"tools": _named_tools(response.content or ())}


def _named_tools(blocks: Sequence[Block]) -> list[JsonObject]:
    lines = [line for block in blocks if isinstance(block, Text) for line in block.text.splitlines() if line]
    pairs = [line.partition(": ") for line in lines]
    tools = [{"name": name, **({"description": text} if text else {})} for name, _, text in pairs]
    return [{**tool, "input_schema": {"type": "object"}} for tool in tools]


# The tools of a server with their descriptions, or the error. No tool call requests them.
LISTING = Shape(
    id="id",
    tool="mcp_list_tools",
    output=Output(_list_tools, _listing),
    failed=has_failed,
    kind="hosted",
    defaults={"server_label": "", "tools": []},
)


# ----------------------------------------------------------------------------------------------------------- approvals


def approval_of(text: str) -> tuple[bool, Mapping[str, str]]:
    """Parse `approved: reason`: whether it is an approval, and its reason, if any."""
    word, _, reason = text.partition(": ")
    return word == "approved", {"reason": reason} if reason else {}


def _answer(text: str) -> Patch:
    is_approved, reason = approval_of(text)
    return {"approve": is_approved, **reason}


MAY_IT = Shape(id="id", name="name", arguments=json_text("arguments"), kind="hosted", defaults={"server_label": ""})
THAT_IT_MAY = Shape(
    id="approval_request_id",
    item="id",
    tell=lambda item: approved(item["approve"], item.get("reason")),
    untell=_answer,
)

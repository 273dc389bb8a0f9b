"""Where a body declares hosted and client-run tools, and how each API wraps a declaration.

Most are entries of `tools`. Some are fields of the body (`web_search_options`, `enable_search`), and an MCP server of
Anthropic's is both: the toolset in `tools`, the server in `mcp_servers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from segue.canonical.blocks import Native
from segue.canonical.request import Request, Tool
from segue.wire.json_values import JsonObject, object_or_none, string_or_none

__all__ = ["Declaration", "body_declarations", "body_tool_fields", "build_declaration", "tool_declarations"]


class Declaration(Struct, frozen=True):
    """An unwrapped declaration: its type and its other fields."""

    api: str
    kind: str
    members: JsonObject
    tool: Tool


# ------------------------------------------------------------------------------------------------------------------ in


def body_tool_fields(request: Request) -> dict[str, Any]:
    """Fields of the body besides `tools` that declare tools."""
    native = request.native
    body: Mapping[str, Any] = native.fragment if native is not None else {}
    match native.api if native is not None else None:
        case "openai-chat" if isinstance(body.get("web_search_options"), dict):
            return {"web_search_options": body["web_search_options"]}
        case "qwen" if body.get("enable_search") is True:
            return {key: body[key] for key in ("enable_search", "search_options") if key in body}
        case "anthropic" if isinstance(body.get("mcp_servers"), list):
            return {"mcp_servers": body["mcp_servers"]}
        case _:
            return {}


def tool_declarations(request: Request, tool: Tool) -> list[Declaration]:
    """The declarations in a native tool entry; one entry may name several servers."""
    native = tool.native
    if native is None:
        return []
    entry = cast("JsonObject", native.fragment)
    match native.api:
        case "gemini":
            return list(_gemini_declarations(entry, tool))
        case "anthropic":
            members = {key: value for key, value in entry.items() if key != "type"}
            name = members.get("mcp_server_name")
            server = next((one for one in _mcp_servers(request) if name is not None and one.get("name") == name), None)
            return [
                Declaration(native.api, str(entry.get("type")), members | ({"server": server} if server else {}), tool)
            ]
        case "kimi":
            name = (object_or_none(entry.get("function")) or {}).get("name")
            return [Declaration(native.api, str(name), {}, tool)]
        case _:
            members = {key: value for key, value in entry.items() if key != "type"}
            return [Declaration(native.api, str(entry.get("type")), members, tool)]


def _gemini_declarations(entry: JsonObject, tool: Tool) -> Iterator[Declaration]:
    for key, value in entry.items():
        head, *tail = key.split("_")
        name = head + "".join(word.capitalize() for word in tail)
        if isinstance(value, list):
            for server in cast("list[Any]", value):
                yield Declaration("gemini", name, {"server": server}, tool)
        else:
            yield Declaration("gemini", name, object_or_none(value) or {}, tool)


def _mcp_servers(request: Request) -> list[JsonObject]:
    servers: Any = body_tool_fields(request).get("mcp_servers") or []
    return [object_or_none(server) or {} for server in cast("list[Any]", servers)]


def body_declarations(request: Request) -> list[Declaration]:
    """Declarations outside `tools` that no entry of `tools` refers to."""
    fields = body_tool_fields(request)
    api = request.native.api if request.native is not None else ""
    if "web_search_options" in fields:
        return [_body_declaration(api, "web_search_options", fields["web_search_options"])]
    if "enable_search" in fields:
        return [_body_declaration(api, "enable_search", object_or_none(fields.get("search_options")) or {})]
    referenced = [tool.native.fragment.get("mcp_server_name") for tool in request.tools if tool.native is not None]
    return [
        _body_declaration(api, "mcp_toolset", {"server": server}, string_or_none(server.get("name")))
        for server in _mcp_servers(request)
        if server.get("name") not in referenced
    ]


def _body_declaration(api: str, kind: str, members: JsonObject, name: str | None = None) -> Declaration:
    return Declaration(api, kind, members, Tool(name or kind, kind="hosted"))


# ----------------------------------------------------------------------------------------------------------------- out


def build_declaration(api: str, kind: str, members: JsonObject) -> tuple[Tool | None, JsonObject]:
    """The declaration as a tool of the target, and the body fields that go with it."""
    match api:
        case "openai-chat":
            return None, {kind: members}
        case "qwen":
            return None, {kind: True}
        case "gemini":
            inner = [members["server"]] if "server" in members else members
            return Tool(kind, kind="hosted", native=Native(api, {kind: inner})), {}
        case _:
            entry = {"type": kind, **{key: value for key, value in members.items() if key != "server"}}
            name = string_or_none(entry.get("name") or entry.get("mcp_server_name") or entry.get("server_label"))
            tool = Tool(name or kind, kind="hosted", native=Native(api, entry))
            return tool, {"mcp_servers": [members["server"]]} if "server" in members else {}

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
from segue.wire.base import BodyTool
from segue.wire.json_values import JsonObject, object_or_none, string_or_none
from segue.wire.registry import WIRES
from segue.wire.schema.openapi import to_camel_case


class Declaration(Struct, frozen=True):
    """An unwrapped declaration: its type and its other fields."""

    api: str
    kind: str
    members: JsonObject
    tool: Tool


# ------------------------------------------------------------------------------------------------------------------ in


def body_tool_fields(request: Request) -> dict[str, Any]:
    """Return fields of the body besides `tools` that declare tools."""
    native = request.native
    if native is None:
        return {}
    body: Mapping[str, Any] = native.fragment
    if native.api == "anthropic" and isinstance(body.get("mcp_servers"), list):
        return {"mcp_servers": body["mcp_servers"]}
    field = find_body_tool(native.api)
    if field is None:
        return {}
    if field.options_key is None:
        return {field.key: body[field.key]} if isinstance(body.get(field.key), dict) else {}
    keys = (field.key, field.options_key) if body.get(field.key) is True else ()
    return {key: body[key] for key in keys if key in body}


def find_body_tool(api: str) -> BodyTool | None:
    """Return the hosted tool of an API that a field of the body declares."""
    wire = WIRES.get(api)
    return wire.body_tool if wire is not None else None


def tool_declarations(request: Request, tool: Tool) -> list[Declaration]:
    """Return the declarations in a native tool entry; one entry may name several servers."""
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
            server = next(
                (
                    candidate
                    for candidate in _mcp_servers(body_tool_fields(request))
                    if name is not None and candidate.get("name") == name
                ),
                None,
            )
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
        name = to_camel_case(key)
        if isinstance(value, list):
            for server in cast("list[Any]", value):
                yield Declaration("gemini", name, {"server": server}, tool)
        else:
            yield Declaration("gemini", name, object_or_none(value) or {}, tool)


def _mcp_servers(fields: Mapping[str, Any]) -> list[JsonObject]:
    servers: Any = fields.get("mcp_servers") or []
    return [object_or_none(server) or {} for server in cast("list[Any]", servers)]


def body_declarations(request: Request) -> list[Declaration]:
    """Return declarations outside `tools` that no entry of `tools` refers to."""
    fields = body_tool_fields(request)
    if not fields:
        return []
    api = request.native.api if request.native is not None else ""
    field = find_body_tool(api)
    if field is not None and field.key in fields:
        options = fields.get(field.options_key or field.key)
        return [_body_declaration(api, field.key, object_or_none(options) or {})]
    servers = _mcp_servers(fields)
    if not servers:
        return []
    referenced = [tool.native.fragment.get("mcp_server_name") for tool in request.tools if tool.native is not None]
    return [
        _body_declaration(api, "mcp_toolset", {"server": server}, string_or_none(server.get("name")))
        for server in servers
        if server.get("name") not in referenced
    ]


def _body_declaration(api: str, kind: str, members: JsonObject, name: str | None = None) -> Declaration:
    return Declaration(api, kind, members, Tool(name or kind, kind="hosted"))


# ----------------------------------------------------------------------------------------------------------------- out


def build_declaration(api: str, kind: str, members: JsonObject) -> tuple[Tool | None, JsonObject]:
    """Return the declaration as a tool of the target, and the body fields that go with it."""
    field = find_body_tool(api)
    if field is not None:
        return None, {kind: members if field.options_key is None else True}
    if api == "gemini":
        content = [members["server"]] if "server" in members else members
        return Tool(kind, kind="hosted", native=Native(api, {kind: content})), {}
    entry = {"type": kind, **{key: value for key, value in members.items() if key != "server"}}
    name = string_or_none(entry.get("name") or entry.get("mcp_server_name") or entry.get("server_label"))
    tool = Tool(name or kind, kind="hosted", native=Native(api, entry))
    return tool, {"mcp_servers": [members["server"]]} if "server" in members else {}

"""Declarations of remote MCP servers in each API.

Shared options: `label`, `url`, `authorization` (a token), `headers`, `allowed_tools` and `denied_tools`, `deferred`.
Tools that need approval in the source API are not allowed in a target without approvals: only the others are listed
in `allowed_tools`. A server without a URL, or whose every call needs approval, is parsed as None.
"""

from __future__ import annotations

from typing import Any, cast

from segue.wire.json_values import JsonObject, drop_none, object_or_none, string_or_none

# Restrictions of the tools that may be called: where a target has no field for them, the server is not declared.
RESTRICTIONS = ("allowed_tools", "denied_tools")
_BEARER = "Bearer "


def _string_list(value: object) -> list[str] | None:
    return [item for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else None


def _string_headers(value: object) -> JsonObject | None:
    """Return the headers whose value is a string."""
    headers = object_or_none(value)
    return headers and {key: text for key, text in headers.items() if isinstance(text, str)}


def _extract_token(options: JsonObject) -> JsonObject:
    """Move a bearer token from `headers` to `authorization`."""
    headers = dict(object_or_none(options.pop("headers", None)) or {})
    key = next((key for key in headers if key.lower() == "authorization"), None)
    value = headers.get(key) if key is not None else None
    if key is not None and isinstance(value, str) and value.startswith(_BEARER):
        del headers[key]
        options.setdefault("authorization", value.removeprefix(_BEARER))
    return options | ({"headers": headers} if headers else {})


# -------------------------------------------------------------------------------------------------------------- OpenAI


def parse_openai_server(members: JsonObject) -> JsonObject | None:
    url, label = string_or_none(members.get("server_url")), string_or_none(members.get("server_label"))
    raw_allowed = members.get("allowed_tools")
    filter_object = object_or_none(raw_allowed)
    allowed = _string_list(raw_allowed if filter_object is None else filter_object.get("tool_names"))
    without_approval = _tools_without_approval(members.get("require_approval"))
    if url is None or not label or without_approval == []:
        return None
    if without_approval is not None:
        allowed = [name for name in without_approval if allowed is None or name in allowed]
    if allowed == []:
        return None
    options = drop_none(
        label=label,
        url=url,
        authorization=string_or_none(members.get("authorization")),
        headers=_string_headers(members.get("headers")),
        allowed_tools=allowed,
        deferred=True if members.get("defer_loading") is True else None,
        server_description=string_or_none(members.get("server_description")),
    )
    return _extract_token(options)


def _tools_without_approval(approval: object) -> list[str] | None:
    """Return the tools that need no approval; None for all. By default every call needs approval."""
    if approval == "never":
        return None
    return _string_list((object_or_none((object_or_none(approval) or {}).get("never")) or {}).get("tool_names")) or []


def render_openai_server(options: JsonObject) -> JsonObject | None:
    if "denied_tools" in options:
        return None
    members = drop_none(
        server_label=options["label"],
        server_url=options["url"],
        server_description=options.get("server_description"),
        authorization=options.get("authorization"),
        headers=options.get("headers"),
        allowed_tools=options.get("allowed_tools"),
        defer_loading=options.get("deferred"),
    )
    return members | {"require_approval": "never"}


# ----------------------------------------------------------------------------------------------------------- Anthropic


def parse_anthropic_server(members: JsonObject) -> JsonObject | None:
    """Parse a toolset, with the definition of its server under `server`."""
    server = object_or_none(members.get("server")) or {}
    url, label = string_or_none(server.get("url")), string_or_none(server.get("name"))
    if url is None or not label:
        return None
    default = object_or_none(members.get("default_config")) or {}
    configs = {
        name: object_or_none(config) or {} for name, config in (object_or_none(members.get("configs")) or {}).items()
    }
    legacy = object_or_none(server.get("tool_configuration")) or {}
    if legacy.get("enabled") is False:
        return None
    allowed = _string_list(legacy.get("allowed_tools"))
    denied: list[str] | None = None
    if default.get("enabled") is False:
        allowed = [name for name, config in configs.items() if config.get("enabled") is True]
    else:
        denied = [name for name, config in configs.items() if config.get("enabled") is False] or None
    if allowed == []:
        return None
    return drop_none(
        label=label,
        url=url,
        authorization=string_or_none(server.get("authorization_token")),
        allowed_tools=allowed,
        denied_tools=denied,
        deferred=True if default.get("defer_loading") is True else None,
    )


def render_anthropic_server(options: JsonObject) -> JsonObject:
    toolset: JsonObject = {"mcp_server_name": options["label"]}
    default = drop_none(enabled=False if "allowed_tools" in options else None, defer_loading=options.get("deferred"))
    if default:
        toolset["default_config"] = default
    configs = {name: {"enabled": True} for name in options.get("allowed_tools", ())}
    configs |= {name: {"enabled": False} for name in options.get("denied_tools", ())}
    if configs:
        toolset["configs"] = configs
    server = drop_none(
        type="url", name=options["label"], url=options["url"], authorization_token=options.get("authorization")
    )
    return {**toolset, "server": server}


# -------------------------------------------------------------------------------------------------------------- Gemini


def parse_gemini_server(members: JsonObject) -> JsonObject | None:
    """Parse one server of the list, given under `server`."""
    server = object_or_none(members.get("server")) or {}
    transport = object_or_none(server.get("streamableHttpTransport") or server.get("streamable_http_transport")) or {}
    url = string_or_none(transport.get("url"))
    if url is None:
        return None
    label = string_or_none(server.get("name"))
    return _extract_token(drop_none(label=label or "mcp", url=url, headers=_string_headers(transport.get("headers"))))


def render_gemini_server(options: JsonObject) -> JsonObject | None:
    if any(name in options for name in RESTRICTIONS):
        return None
    headers = dict(options.get("headers") or {})
    if "authorization" in options:
        headers["Authorization"] = _BEARER + options["authorization"]
    transport = {"url": options["url"]} | ({"headers": headers} if headers else {})
    return {"server": {"name": options["label"], "streamableHttpTransport": transport}}

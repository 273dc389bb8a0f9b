"""Keys never reach the store: what a body says to prove who asks is left out before an event is written.

Bodies may carry such things beside the conversation: the token of an MCP server, headers for a tool that the provider
runs. Whoever goes on with a stored conversation gives them again. What people and tools said is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["without_secrets"]

_SECRETS = frozenset(
    {
        "access_token",
        "api_key",
        "apikey",
        "authorization",
        "authorization_token",
        "client_secret",
        "extra_headers",
        "headers",
        "password",
    }
)
# Names in a schema are the tool's own, and what was said is what was said.
_KEPT = frozenset(
    {
        *("function", "functionDeclarations", "function_declarations", "functions"),
        *("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "response_format", "toolSpec"),
        *("messages", "contents", "system", "systemInstruction", "instructions"),
    }
)


def without_secrets(kind: str, event: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event, less what opens a door."""
    match kind:
        case "opened":
            return {name: _opened(name, value) for name, value in event.items()}
        case "said":
            return {**event, "message": _said(event["message"])}
        case _:
            return event


def _opened(name: str, value: Any) -> Any:
    if name == "tools":
        return [tool if tool.get("kind", "function") == "function" else _without(tool) for tool in value]
    return _without(value) if name in ("native", "beside", "options") else value


def _said(message: dict[str, Any]) -> dict[str, Any]:
    """The message; where it declares tools in passing, these without what is theirs alone."""
    blocks = message.get("blocks", ())
    if not any(map(_declares, blocks)):
        return message
    changed = {**message, "blocks": [_without(block) if _declares(block) else block for block in blocks]}
    return {**changed, "native": _without(message["native"])} if "native" in message else changed


def _declares(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "opaque" and block.get("silent") == "declaring"


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            key: inner if key in _KEPT else _without(inner)
            for key, inner in fields.items()
            if key.lower().replace("-", "_") not in _SECRETS
        }
    if isinstance(value, list | tuple):
        return [_without(inner) for inner in cast("list[Any]", value)]
    return value

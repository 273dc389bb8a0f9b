"""Removal of credentials from events before they are stored.

Request bodies may hold credentials outside of the messages: the token of an MCP server, also in its URL, or headers for
a hosted tool. They are removed, and have to be supplied again when the stored conversation is continued. The text of
messages and tool results is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from segue.canonical.blocks import Message, Opaque
from segue.canonical.codec import encode_value
from segue.canonical.request import Request
from segue.redaction import is_redactable, is_secret_name

_HEADERS = re.compile(r"headers$", re.IGNORECASE)
_URL = re.compile(r"([a-z][a-z0-9+.\-]*://)([^\s/?#]*)([^\s?#]*)(\?[^\s#]*)?(#\S*)?", re.IGNORECASE)
# URL parameters have shorter names: `auth` and `sig` are credentials too.
_SECRET_PARAMETER = re.compile(r"(?:key|token|secret|passw(?:or)?d|pwd|auth|sig|signature|credential)$", re.IGNORECASE)
# JSON Schemas and message content are not searched for credentials.
_UNTOUCHED_KEYS = frozenset(
    {
        *("function", "functionDeclarations", "function_declarations", "functions"),
        *("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "response_format", "toolSpec"),
        *("messages", "contents", "system", "systemInstruction", "instructions"),
    }
)


def redact_event(kind: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an event without credentials."""
    match kind:
        case "settings":
            return {name: _redact_settings(name, value, []) for name, value in event.items()}
        case "added":
            return {**event, "message": _redact_message(event["message"], [])}
        case _:
            return event


def find_secret_fields(request: Request, messages: Iterable[Message]) -> list[str]:
    """Return the names of the fields that are not stored because they hold credentials."""
    removed: list[str] = []
    settings = {
        "tools": request.tools,
        "native": request.native,
        "options": request.options,
        "request_extra": request.extra,
    }
    for name, value in settings.items():
        if value is not None:
            _redact_settings(name, encode_value(value), removed)
    for message in messages:
        if any(isinstance(block, Opaque) and block.omit_reason == "declaring" for block in message.blocks):
            _redact_message(encode_value(message), removed)
    return list(dict.fromkeys(removed))


def _redact_settings(name: str, value: Any, removed: list[str]) -> Any:
    if name == "tools":
        return [tool if tool.get("kind", "function") == "function" else _redact(tool, removed) for tool in value]
    return _redact(value, removed) if name in ("native", "request_extra", "options") else value


def _redact_message(message: dict[str, Any], removed: list[str]) -> dict[str, Any]:
    """Return the message, with credentials removed from tool declarations among its blocks."""
    blocks = message.get("blocks", ())
    if not any(map(_is_declaration, blocks)):
        return message
    changed = {**message, "blocks": [_redact(block, removed) if _is_declaration(block) else block for block in blocks]}
    return {**changed, "native": _redact(message["native"], removed)} if "native" in message else changed


def _is_declaration(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "opaque" and block.get("omit_reason") == "declaring"


def _redact(value: Any, removed: list[str], name: str = "") -> Any:
    """Return the value without credentials and append their names to `removed`; `name` is the value's own key."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        kept: dict[str, Any] = {}
        for key, inner in fields.items():
            if key in _UNTOUCHED_KEYS:
                kept[key] = inner
            elif _is_secret(key, fields) and is_redactable(inner):
                removed.append(key)
            else:
                kept[key] = _redact(inner, removed, key)
        return kept
    if isinstance(value, list | tuple):
        return [_redact(inner, removed, name) for inner in cast("list[Any]", value)]
    if isinstance(value, str):
        redacted = _redact_url(value)
        removed += [f"part of {name}"] if redacted != value else []
        return redacted
    return value


def _is_secret(key: str, fields: Mapping[str, Any]) -> bool:
    """Return whether the key names a credential, or is the `value` of a name-value pair whose name does."""
    if key == "value":
        return any(isinstance(name := fields.get(other), str) and is_secret_name(name) for other in ("name", "key"))
    return is_secret_name(key) or _HEADERS.search(key) is not None


def _redact_url(url: str) -> str:
    """Remove user name, password and secret parameters from a URL."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return url
    scheme, host, path, query, fragment = (part or "" for part in parts.groups())
    return scheme + host.rpartition("@")[2] + path + _redact_parameters(query) + _redact_parameters(fragment)


def _redact_parameters(part: str) -> str:
    """Return a query or fragment with its leading `?` or `#`, without secret parameters."""
    pairs = part[1:].split("&")
    kept = [pair for pair in pairs if not _SECRET_PARAMETER.search(pair.partition("=")[0]) or "=" not in pair]
    return part if len(kept) == len(pairs) else part[:1] + "&".join(kept) if kept else ""

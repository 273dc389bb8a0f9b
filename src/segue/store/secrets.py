"""Keys never reach the store: what a body says to prove who asks is left out before an event is written.

Bodies may carry such things beside the conversation: the token of an MCP server, also in its address, headers for a
tool that the provider runs. Whoever goes on with a stored conversation gives them again. What people and tools said is
never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from segue.canonical.blocks import Message, Opaque
from segue.canonical.codec import dumped
from segue.canonical.request import Request
from segue.scrubbing import holds_secret, names_secret

__all__ = ["withheld", "without_secrets"]

_HEADERS = re.compile(r"headers$", re.IGNORECASE)
_ADDRESS = re.compile(r"([a-z][a-z0-9+.\-]*://)([^\s/?#]*)([^\s?#]*)(\?[^\s#]*)?(#\S*)?", re.IGNORECASE)
# In an address names are shorter, and `auth` or `sig` prove as much.
_PARAMETER = re.compile(r"(?:key|token|secret|passw(?:or)?d|pwd|auth|sig|signature|credential)$", re.IGNORECASE)
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
            return {name: _opened(name, value, []) for name, value in event.items()}
        case "said":
            return {**event, "message": _said(event["message"], [])}
        case _:
            return event


def withheld(request: Request, messages: Iterable[Message]) -> list[str]:
    """The names of what is left out when this is written, for those who have to give it again."""
    names: list[str] = []
    given = {"tools": request.tools, "native": request.native, "options": request.options, "beside": request.extra}
    for name, value in given.items():
        if value is not None:
            _opened(name, dumped(value), names)
    for message in messages:
        if any(isinstance(block, Opaque) and block.silent == "declaring" for block in message.blocks):
            _said(dumped(message), names)
    return list(dict.fromkeys(names))


def _opened(name: str, value: Any, left: list[str]) -> Any:
    if name == "tools":
        return [tool if tool.get("kind", "function") == "function" else _without(tool, left) for tool in value]
    return _without(value, left) if name in ("native", "beside", "options") else value


def _said(message: dict[str, Any], left: list[str]) -> dict[str, Any]:
    """The message; where it declares tools in passing, these without what is theirs alone."""
    blocks = message.get("blocks", ())
    if not any(map(_declares, blocks)):
        return message
    changed = {**message, "blocks": [_without(block, left) if _declares(block) else block for block in blocks]}
    return {**changed, "native": _without(message["native"], left)} if "native" in message else changed


def _declares(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "opaque" and block.get("silent") == "declaring"


def _without(value: Any, left: list[str], name: str = "") -> Any:
    """The value without secrets. The names of those are put into `left`; `name` is its own."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        kept: dict[str, Any] = {}
        for key, inner in fields.items():
            if key in _KEPT:
                kept[key] = inner
            elif _is_secret(key, fields) and holds_secret(inner):
                left.append(key)
            else:
                kept[key] = _without(inner, left, key)
        return kept
    if isinstance(value, list | tuple):
        return [_without(inner, left, name) for inner in cast("list[Any]", value)]
    if isinstance(value, str):
        shut = _shut(value)
        left += [f"part of {name}"] if shut != value else []
        return shut
    return value


def _is_secret(key: str, fields: Mapping[str, Any]) -> bool:
    """Whether the name of a field says that it is one; or, where it is the value of what another names, that name."""
    if key == "value":
        return any(isinstance(name := fields.get(other), str) and names_secret(name) for other in ("name", "key"))
    return names_secret(key) or _HEADERS.search(key) is not None


def _shut(address: str) -> str:
    """An address without what opens it: whose it is, and the parameters that prove it."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return address
    scheme, host, path, query, fragment = (part or "" for part in found.groups())
    return scheme + host.rpartition("@")[2] + path + _unproved(query) + _unproved(fragment)


def _unproved(part: str) -> str:
    """What stands behind a `?` or `#`, with its sign, less the pairs that prove who asks."""
    pairs = part[1:].split("&")
    kept = [pair for pair in pairs if not _PARAMETER.search(pair.partition("=")[0]) or "=" not in pair]
    return part if len(kept) == len(pairs) else part[:1] + "&".join(kept) if kept else ""

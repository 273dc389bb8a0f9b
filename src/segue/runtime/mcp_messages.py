"""Responses of MCP servers that the SDK refuses to decode (extra `mcp`).

The SDK refuses a whole message for an escaped lone surrogate, for deep nesting and for an invalid value. A response
that it refuses is replaced: the *replacement* is a valid response with the same id, which contains the original text.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, cast

from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from segue.canonical.json import MAX_DEPTH

_TEXT = "segue/text"
_ID = re.compile(r'"id"\s*:\s*(\d{1,18})\b')
# Characters at each end of a message that can't be decoded, in which its id is searched for.
_ID_RANGE = 200
_TOKEN = re.compile(r""""[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]""", re.DOTALL)
# Deeper values are replaced by null. The rest is still deeper than `MAX_DEPTH`, so its tool or block is left out.
_CUT_DEPTH = MAX_DEPTH + 100
# Longer messages are not cut.
_MAX_CUT = 4_000_000


def parse_message(data: bytes) -> JSONRPCMessage:
    """Parse a message, or its replacement if the SDK refuses it; `ValueError` if it is invalid and not a response."""
    text = data.decode("utf-8", "replace")
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        if (wrapped := _wrap(text)) is None:
            raise
        return jsonrpc_message_adapter.validate_json(wrapped, by_name=False)


def make_readable(data: bytes) -> bytes:
    """Return a message, or its replacement if the SDK refuses it."""
    try:
        jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        return _wrap(data.decode("utf-8", "replace")) or data
    return data


def find_original(result: object) -> str | None:
    """Return the original text in the result of a replacement; None for any other result."""
    text = cast("dict[str, object]", result).get(_TEXT) if isinstance(result, dict) else None
    return text if isinstance(text, str) else None


def decode_message(text: str) -> tuple[dict[str, Any], str]:
    """Decode the text of a message. The second value is the reason if it can't be decoded as it is.

    The value then lacks what is nested too deeply, or it has only an id.
    """
    reason = ""
    try:
        value = json.loads(text)
    except RecursionError:
        value, reason = _decode_deep_message(text), "it is nested too deeply"
    except ValueError:
        value = None
    return (cast("dict[str, Any]", value) if isinstance(value, dict) else {}), reason


def _wrap(text: str) -> bytes | None:
    """Return the replacement of a response; None if the text is not a response."""
    message, _ = decode_message(text)
    identifier = message.get("id")
    if "method" in message or isinstance(identifier, bool) or not isinstance(identifier, int | str):
        return None
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "result": {_TEXT: text}}).encode()


def _decode_deep_message(text: str) -> object:
    if len(text) <= _MAX_CUT:
        with suppress(ValueError, RecursionError):
            return json.loads(_cut_nesting(text))
    found = _ID.search(text[:_ID_RANGE]) or _ID.search(text[-_ID_RANGE:])
    return {"id": int(found[1])} if found else None


def _cut_nesting(text: str) -> str:
    """Replace the objects and lists below a depth by null."""
    parts: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            if depth == _CUT_DEPTH:
                parts += text[start : token.start()], "null"
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if depth == _CUT_DEPTH:
                start = token.end()
    return "".join([*parts, text[start:]])

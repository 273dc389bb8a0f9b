"""Requests about stored responses and conversations: to read them, to list their items, to make and extend them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qs

import msgspec
from msgspec import Raw

from segue.bridge.api_paths import ApiPath
from segue.bridge.caller import Caller
from segue.bridge.stored_responses import StoredHistory, decode_entry, input_items
from segue.canonical.json import encode_json
from segue.errors import InputError
from segue.wire.json_values import JsonObject, object_or_none

_LIMITS = frozenset(map(str, range(1, 101)))


def create_conversation(caller: Caller, name: str, created: int) -> bytes:
    """Return the entry of a new conversation."""
    metadata = caller.field("metadata")
    if metadata is not None and object_or_none(metadata) is None:
        raise InputError("expected an object", path="metadata")
    made: JsonObject = {"id": name, "object": "conversation", "created_at": created, "metadata": metadata or {}}
    items = _given_items(caller) if caller.field("items") is not None else []
    return msgspec.json.encode(StoredHistory(items, Raw(encode_json(made))))


def append_items(caller: Caller, entry: bytes) -> tuple[bytes, Mapping[str, Any]]:
    """Return the entry of a conversation with the items of a request added, and the list of these."""
    history, items = decode_entry(entry), _given_items(caller)
    appended = [*history.items, *items]
    added = _render_list(_list_items(appended)[len(history.items) :])
    return msgspec.json.encode(StoredHistory(appended, history.response)), added


def _given_items(caller: Caller) -> list[Raw]:
    if not isinstance(caller.field("items"), list):
        raise InputError("expected a list", path="items")
    items = input_items(caller.members["items"])
    try:
        caller.wire.parse_request({"input": [msgspec.json.decode(item) for item in items]})
    except InputError as error:
        raise InputError(error.message, path=f"items{error.path.removeprefix('input')}") from None
    return items


def serve(api_path: ApiPath, stored: bytes, query: str) -> Mapping[str, Any]:
    """Return the body for a request about a stored response or conversation."""
    history = decode_entry(stored)
    if api_path.operation == "delete":
        kind = "response" if api_path.collection == "responses" else "conversation.deleted"
        return {"id": api_path.resource, "object": kind, "deleted": True}
    if api_path.operation == "items":
        return _select_items(_list_items(history.items), query)
    return cast("dict[str, Any]", msgspec.json.decode(history.response))


def _select_items(items: list[JsonObject], query: str) -> JsonObject:
    """Return the page of a list that a query asks for: newest first, if it does not say otherwise."""
    options = {key: values[-1] for key, values in parse_qs(query).items()}
    items = items if options.get("order") == "asc" else items[::-1]
    limit, after = options.get("limit"), options.get("after")
    if limit is not None and limit not in _LIMITS:
        raise InputError(f"expected a number from 1 to {len(_LIMITS)}", path="limit")
    start = next((at + 1 for at, item in enumerate(items) if item["id"] == after), 0)
    if after is not None and not start:
        raise InputError(f"no item has the id {after!r}", path="after")
    page = items[start:] if limit is None else items[start : start + int(limit)]
    return _render_list(page, has_more=start + len(page) < len(items))


def _render_list(items: Sequence[JsonObject], *, has_more: bool = False) -> JsonObject:
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return {"object": "list", "data": [*items], "first_id": first, "last_id": last, "has_more": has_more}


def _list_items(items: Sequence[Raw]) -> list[JsonObject]:
    """Return items as the API lists them: with ids, and with texts as content parts."""
    return [_list_item(index, msgspec.json.decode(item)) for index, item in enumerate(items)]


def _list_item(index: int, item: JsonObject) -> JsonObject:
    listed = {"id": f"item_{index}", "type": "message", **item}
    if isinstance(item.get("content"), str):
        listed["content"] = [
            {"type": "output_text" if item.get("role") == "assistant" else "input_text", "text": item["content"]}
        ]
    return listed

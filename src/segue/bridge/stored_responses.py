"""Stored responses: requests that continue an earlier response by its id, served from the store of the bridge.

Bodies of the Responses API may refer to an earlier response (`previous_response_id`) or a conversation, those of the
Messages API to a thread. Such a body has only the newest items, so it can't be converted as it is. A response of this
bridge is taken from the store; any other reference is rejected as the API documents it, and clients then send the whole
history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from segue.bridge.api_paths import ApiPath
from segue.bridge.caller import Caller
from segue.canonical.json import decode_members
from segue.wire.base import ApiError

_RESPONSES, _MESSAGES = "openai-responses", "anthropic"
_REFERENCE = "previous_response_id"
_ITEM_REFERENCE = b'"item_reference"'
_KIND = "unknown-reference"
_TERMINAL_EVENT = re.compile(rb"event: response\.(?:completed|incomplete)\ndata: (.*)\n\n")
_THREADS_UNSUPPORTED: dict[str, Any] = {"error_code": "thread_unsupported_request", "unsupported": []}


class Reference(Struct, frozen=True):
    """A reference to state outside of the body: to a response, by its id, or to something that is never stored here.

    `error` is sent if it is not found.

    `is_optional`: after the error, the SDK sends the request again with the whole history.
    """

    response_id: str | None
    error: ApiError
    is_optional: bool = False


class StoredResponse(Struct, frozen=True):
    """A stored response, and the items of the conversation that it answered."""

    items: list[Raw]
    response: Raw


def find_reference(caller: Caller) -> Reference | None:
    """Return the reference in a caller's body; None if the body has the whole history."""
    api = caller.wire.base_api
    if api == _RESPONSES:
        previous, conversation = caller.field(_REFERENCE), caller.field("conversation")
        if isinstance(previous, str) and previous:
            message = f"Previous response with id '{previous}' not found."
            return Reference(
                previous, ApiError(400, message, code="previous_response_not_found", param=_REFERENCE, error_kind=_KIND)
            )
        if conversation is not None:
            message = "Conversations are not stored here; send the whole history in `input`."
            return Reference(
                None, ApiError(404, message, code="conversation_not_found", param="conversation", error_kind=_KIND)
            )
    if api == _MESSAGES and caller.field("thread") is not None:
        message = "thread: threads are not supported here; send the whole history in `messages`"
        return Reference(
            None, ApiError(400, message, details=(_THREADS_UNSUPPORTED,), error_kind=_KIND), is_optional=True
        )
    return None


def is_stored(caller: Caller) -> bool:
    """Return whether the caller may refer to the response later."""
    return caller.wire.base_api == _RESPONSES and caller.field("store") is not False


def encode(body: bytes, response: Raw) -> bytes:
    """Encode the entry of a response to a body."""
    return msgspec.json.encode(StoredResponse(_input_items(decode_members(body).get("input")), response))


def expand(caller: Caller, stored: bytes) -> bytes:
    """Return the caller's body with the items of the stored response before its own, and without the reference."""
    earlier = _decode(stored)
    output = msgspec.json.decode(earlier.response, type=dict[str, Raw]).get("output")
    items = [*earlier.items, *_input_items(output), *_input_items(caller.members.get("input"))]
    members = {key: raw for key, raw in caller.members.items() if key != _REFERENCE}
    return msgspec.json.encode({**members, "input": items})


def find_item_references(caller: Caller, body: bytes) -> list[str]:
    """Return the ids of the items that a body refers to and does not have."""
    if caller.wire.base_api != _RESPONSES or _ITEM_REFERENCE not in body:
        return []
    items = [_decode_item(item) for item in _input_items(decode_members(body).get("input"))]
    known = {item.id for item in items if not item.is_reference}
    return [item.id for item in items if item.is_reference and item.id and item.id not in known]


def resolve_items(body: bytes, found: Mapping[str, bytes]) -> bytes:
    """Return a body with these items, by their ids, in place of the references to them."""
    members = decode_members(body)
    items = _input_items(members.get("input"))
    pairs = [(item, _decode_item(item)) for item in items]
    resolved = [Raw(found[named.id]) if named.is_reference and named.id in found else item for item, named in pairs]
    return msgspec.json.encode({**members, "input": resolved})


def item_not_found(item_id: str) -> ApiError:
    return ApiError(404, f"Item with id '{item_id}' not found.", param="input", error_kind=_KIND)


def output_items(response: Raw) -> dict[str, bytes]:
    """Return the items of a response that later requests may refer to, by their ids."""
    items = _input_items(msgspec.json.decode(response, type=dict[str, Raw]).get("output"))
    return {named.id: bytes(item) for item in items if (named := _decode_item(item)).id}


class _Item(Struct):
    id: str = ""
    type: str = ""

    @property
    def is_reference(self) -> bool:
        return self.type == "item_reference"


def _decode_item(item: Raw) -> _Item:
    try:
        return msgspec.json.decode(item, type=_Item)
    except msgspec.ValidationError:
        return _Item()


def _input_items(raw: Raw | None) -> list[Raw]:
    """Return the items of an `input`, which may be a text."""
    if raw is None:
        return []
    value = bytes(raw).lstrip()
    if value.startswith(b'"'):
        return [Raw(b'{"role":"user","content":%b}' % value)]
    return msgspec.json.decode(value, type=list[Raw]) if value.startswith(b"[") else []


def _decode(stored: bytes) -> StoredResponse:
    return msgspec.json.decode(stored, type=StoredResponse)


def serve(api_path: ApiPath, stored: bytes) -> Mapping[str, Any]:
    """Return the body for a request about a stored response."""
    entry = _decode(stored)
    if api_path.operation == "delete":
        return {"id": api_path.resource, "object": "response", "deleted": True}
    if api_path.operation == "retrieve":
        return cast("dict[str, Any]", msgspec.json.decode(entry.response))
    items = [cast("dict[str, Any]", msgspec.json.decode(item)) for item in entry.items]
    items = [{"id": f"item_{index}", "type": "message", **item} for index, item in enumerate(items)]
    ends = [item["id"] for item in (*items[:1], *items[-1:])] or [None]
    # Newest first, as the API lists them.
    return {"object": "list", "data": items[::-1], "first_id": ends[-1], "last_id": ends[0], "has_more": False}


def not_found(response_id: str) -> ApiError:
    return ApiError(404, f"Response with id '{response_id}' not found.", param="id", error_kind=_KIND)


class ResponseCapture:
    """Keeps the response of the last event of a stream, which has all of it."""

    def __init__(self) -> None:
        self.response: Raw | None = None

    def feed(self, rendered: bytes) -> None:
        if b"event: response.completed" in rendered or b"event: response.incomplete" in rendered:
            match = _TERMINAL_EVENT.search(rendered)
            if match is not None:
                self.response = msgspec.json.decode(match[1], type=dict[str, Raw]).get("response")


def parse_id(response: Raw) -> str:
    """Return the id of a response."""
    return msgspec.json.decode(response, type=_Identified).id


class _Identified(Struct):
    id: str

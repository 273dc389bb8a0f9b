"""Stored history: requests that refer to earlier messages by an id, served from the store of the bridge.

A body of the Responses API may name an earlier response or a conversation, one of the Messages API the last message of
a thread. Such a body has only the newest items, so it can't be converted as it is. What this bridge stored is put
before them; any other reference is rejected as the API documents it, and clients then send the whole history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from segue.bridge.caller import Caller
from segue.bridge.envelopes import EntryKind
from segue.canonical.json import decode_members, encode_json
from segue.conversion.markers import drop_markers
from segue.render.report import Report
from segue.reply import render_reply
from segue.wire.base import ApiError, Wire
from segue.wire.json_values import JsonObject, object_or_none, string_or_none

_RESPONSES, _MESSAGES = "openai-responses", "anthropic"
_PREVIOUS, _CONVERSATION, _THREAD = "previous_response_id", "conversation", "thread"
_ITEM_REFERENCE = b'"item_reference"'
_KIND = "unknown-reference"
_TERMINAL_EVENT = re.compile(rb"event: response\.(?:completed|incomplete)\ndata: (.*)\n\n")
# A thread keeps them, so that its later requests have none.
_THREAD_FIELDS = ("system", "tools")
_NAMES: Mapping[str, str] = {"responses": "Response", "conversations": "Conversation"}


class Reference(Struct, frozen=True):
    """A reference in a body to earlier messages: to the entry of this kind and id.

    `error` is sent if there is none. `is_optional`: after the error, the SDK sends the request again with the whole
    history. `is_start`: the body has the whole history, and later ones refer to its reply.
    """

    kind: EntryKind
    id: str
    error: ApiError
    is_optional: bool = False
    is_start: bool = False


class StoredHistory(Struct, frozen=True):
    """The items of a request and the response to them; or the items of a conversation, and the conversation.

    `fields` are those that later requests do not repeat.
    """

    items: list[Raw]
    response: Raw
    fields: dict[str, Raw] = {}

    @property
    def all_items(self) -> list[Raw]:
        """The items with those of the response, as they are in a request."""
        members = msgspec.json.decode(self.response, type=dict[str, Raw])
        if "content" in members:
            return [*self.items, Raw(msgspec.json.encode({"role": "assistant", "content": members["content"]}))]
        return [*self.items, *input_items(members.get("output"))]


def find_reference(caller: Caller, *, has_store: bool) -> Reference | ApiError | None:
    """Return the reference in a caller's body; None if the body has the whole history, an error if it has two."""
    if caller.wire.base_api == _RESPONSES:
        previous, conversation = caller.field(_PREVIOUS), caller.field(_CONVERSATION)
        if previous and conversation is not None:
            names = f"'{_CONVERSATION}' and '{_PREVIOUS}'"
            message = f"Mutually exclusive parameters: {names}. Ensure you are only providing one of: {names}."
            code = "mutually_exclusive_parameters"
            return ApiError(400, message, code=code, param=_CONVERSATION, error_kind="invalid")
        if isinstance(previous, str) and previous:
            message = f"Previous response with id '{previous}' not found."
            code = "previous_response_not_found"
            error = ApiError(400, message, code=code, param=_PREVIOUS, error_kind=_KIND)
            return Reference("responses", previous, error)
        if conversation is not None:
            name = _conversation_id(conversation)
            return Reference("conversations", name, not_found("conversations", name, param=_CONVERSATION))
    if caller.wire.base_api == _MESSAGES and caller.field(_THREAD) is not None:
        thread = object_or_none(caller.field(_THREAD)) or {}
        previous = string_or_none(thread.get("previous_message_id")) or ""
        message = "thread: threads are not supported here; send the whole history in `messages`"
        error = _thread_error(400, "thread_unsupported_request", message, unsupported=[])
        if has_store:
            message = "No usable Thread state was found for `previous_message_id`."
            error = _thread_error(404, "thread_not_found", message)
        return Reference("messages", previous, error, is_optional=True, is_start=thread.get("type") != "continue")
    return None


def _conversation_id(value: object) -> str:
    return string_or_none((object_or_none(value) or {"id": value}).get("id")) or ""


def _thread_error(status: int, code: str, message: str, **details: Any) -> ApiError:
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    return ApiError(status, message, kind, details=({"error_code": code, **details},), error_kind=_KIND)


def is_stored(caller: Caller) -> bool:
    """Return whether the caller may refer to the reply later."""
    if caller.wire.base_api == _MESSAGES:
        return caller.field(_THREAD) is not None
    return caller.wire.base_api == _RESPONSES and (_keeps_response(caller) or caller.field(_CONVERSATION) is not None)


def _keeps_response(caller: Caller) -> bool:
    return caller.field("store") is not False


def repeated_fields(caller: Caller) -> JsonObject:
    """Return the references that a response repeats."""
    if caller.wire.base_api != _RESPONSES:
        return {}
    previous, conversation = caller.field(_PREVIOUS), caller.field(_CONVERSATION)
    fields = {_PREVIOUS: previous} if previous else {}
    return fields if conversation is None else {**fields, _CONVERSATION: {"id": _conversation_id(conversation)}}


def read_entry(reference: Reference, entry: bytes | None) -> StoredHistory | ApiError | None:
    """Return the history that a reference names, None at its start; the error if there is none, or it went on."""
    if entry:
        return decode_entry(entry)
    if entry is None:
        return None if reference.is_start else reference.error
    message = "The response that `previous_message_id` names has already been continued."
    return _thread_error(400, "thread_already_continued", message)


def expand(caller: Caller, history: StoredHistory | None) -> bytes:
    """Return the caller's body with the items of the history before its own, and without the reference."""
    key = caller.wire.conversation_key
    members = {name: raw for name, raw in caller.members.items() if name not in (_PREVIOUS, _CONVERSATION, _THREAD)}
    if history is None:
        return msgspec.json.encode(members)
    items = [*history.all_items, *input_items(members.get(key))]
    return msgspec.json.encode({**history.fields, **members, key: items})


def make_entries(
    caller: Caller, body: bytes, response: Raw, history: StoredHistory | None
) -> Iterator[tuple[EntryKind, str, bytes]]:
    """Yield the kinds, ids and values of the entries for a response to a body with this history in it."""
    members, response_id = decode_members(body), _parse_id(response)
    made = StoredHistory(input_items(members.get(caller.wire.conversation_key)), response)
    if caller.wire.base_api == _MESSAGES:
        items = [Raw(drop_markers(msgspec.json.decode(item))) for item in made.items]
        fields = {name: members[name] for name in _THREAD_FIELDS if name in members}
        yield "messages", response_id, msgspec.json.encode(StoredHistory(items, response, fields))
        if history is not None:
            # A thread goes on from its last message only.
            yield "messages", _parse_id(history.response), b""
        return
    if _keeps_response(caller):
        yield "responses", response_id, msgspec.json.encode(made)
        for item in input_items(msgspec.json.decode(response, type=dict[str, Raw]).get("output")):
            if item_id := _decode_item(item).id:
                yield "item", item_id, bytes(item)
    if history is not None and caller.field(_CONVERSATION) is not None:
        appended = StoredHistory(made.all_items, history.response)
        yield "conversations", _parse_id(history.response), msgspec.json.encode(appended)


def find_item_references(caller: Caller, body: bytes) -> list[str]:
    """Return the ids of the items that a body refers to and does not have."""
    if caller.wire.base_api != _RESPONSES or _ITEM_REFERENCE not in body:
        return []
    items = [_decode_item(item) for item in input_items(decode_members(body).get("input"))]
    known = {item.id for item in items if not item.is_reference}
    return [item.id for item in items if item.is_reference and item.id and item.id not in known]


def resolve_items(body: bytes, found: Mapping[str, bytes]) -> bytes:
    """Return a body with these items, by their ids, in place of the references to them."""
    members = decode_members(body)
    items = input_items(members.get("input"))
    pairs = [(item, _decode_item(item)) for item in items]
    resolved = [Raw(found[named.id]) if named.is_reference and named.id in found else item for item, named in pairs]
    return msgspec.json.encode({**members, "input": resolved})


def item_not_found(item_id: str) -> ApiError:
    return ApiError(404, f"Item with id '{item_id}' not found.", param="input", error_kind=_KIND)


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


def input_items(raw: Raw | None) -> list[Raw]:
    """Return the items of an `input`, which may be a text."""
    if raw is None:
        return []
    value = bytes(raw).lstrip()
    if value.startswith(b'"'):
        return [Raw(b'{"role":"user","content":%b}' % value)]
    return msgspec.json.decode(value, type=list[Raw]) if value.startswith(b"[") else []


def decode_entry(entry: bytes) -> StoredHistory:
    return msgspec.json.decode(entry, type=StoredHistory)


def not_found(kind: EntryKind, entry_id: str, *, param: str = "id") -> ApiError:
    code = "conversation_not_found" if kind == "conversations" else None
    message = f"{_NAMES[kind]} with id '{entry_id}' not found."
    return ApiError(404, message, code=code, param=param, error_kind=_KIND)


class ResponseCapture:
    """Keeps the response of the last event of a stream, which has all of it."""

    def __init__(self) -> None:
        self.response: Raw | None = None

    def feed(self, rendered: bytes) -> None:
        if b"event: response.completed" in rendered or b"event: response.incomplete" in rendered:
            match = _TERMINAL_EVENT.search(rendered)
            if match is not None:
                self.response = msgspec.json.decode(match[1], type=dict[str, Raw]).get("response")


class MessageCapture:
    """Keeps the events of a stream, from which its message is assembled."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._chunks: list[bytes] = []

    def feed(self, rendered: bytes) -> None:
        self._chunks.append(rendered)

    @property
    def response(self) -> Raw:
        parser = self._wire.open_stream("")
        parser.feed(b"".join(self._chunks))
        return Raw(encode_json(render_reply(parser.close(), self._wire, Report())))


def open_capture(caller: Caller) -> ResponseCapture | MessageCapture:
    """Return what keeps the reply of a stream, from its events for the caller. It is None until it is complete."""
    return MessageCapture(caller.wire) if caller.wire.base_api == _MESSAGES else ResponseCapture()


def _parse_id(response: Raw) -> str:
    return msgspec.json.decode(response, type=_Identified).id


class _Identified(Struct):
    id: str

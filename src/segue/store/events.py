"""The events of a stored conversation, and their JSON form.

Invariants: an event holds conversation content only, without HTTP headers, API keys and times. Unknown content is
preserved: an event of an unknown kind is decoded as `UnknownEvent`, unknown fields are kept in `extra`, and both are
encoded again unchanged. The stored kind is the struct's tag; a changed one is read under
its former name too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, TypeAlias, cast, get_args

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Message, Native, Text
from segue.canonical.codec import (
    decode_interaction,
    decode_message,
    decode_reply,
    decode_request,
    encode_value,
    use_former_names,
)
from segue.canonical.history import History, Interaction
from segue.canonical.json import encode_json
from segue.canonical.request import Options, Reply, Request, Tool, Usage
from segue.canonical.type_warmup import warm_type
from segue.errors import InputError
from segue.store.redaction import redact_event
from segue.store.repeats import Repeats, remove_repeats, restore_repeats
from segue.wire.registry import WIRES

_decoder = msgspec.json.Decoder()


class SettingsChanged(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="settings"):
    """System text, tools and options: written when the conversation is created and on every change.

    `model`, `continues`, `native` and `request_extra` come from the request body that the conversation was created
    from; `request_extra` is that request's `extra`.
    """

    system: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] = ()
    options: Options = Options()
    model: str | None = None
    continues: str | None = None
    native: Native | None = None
    request_extra: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] | None = None

    @classmethod
    def from_request(cls, request: Request) -> SettingsChanged:
        """Return the event for all of the request except its messages, which are not in its fragment either."""
        return cls(
            request.system,
            request.tools,
            request.options,
            request.model,
            request.continues,
            _without_messages(request.native),
            request.extra,
        )

    @property
    def request(self) -> Request:
        """The request with these settings and no messages."""
        return Request(
            (),
            self.system,
            self.tools,
            self.options,
            self.model,
            self.continues,
            self.native,
            self.request_extra or None,
        )


def _without_messages(native: Native | None) -> Native | None:
    """Return the fragment of a body with an empty list of messages: each message has a fragment of its own."""
    wire = WIRES.get(native.api) if native is not None else None
    if native is None or wire is None or not isinstance(native.fragment.get(wire.conversation_key), list):
        return native
    return msgspec.structs.replace(native, fragment={**native.fragment, wire.conversation_key: []})


class MessageAdded(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="added"):
    """A message was added to the history: a user message, a reply, anything except a tool result.

    For a reply, `usage` and `model` are those the provider returned.
    """

    message: Message
    usage: Usage | None = None
    model: str | None = None
    extra: Mapping[str, Any] | None = None


class CallCompleted(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="completed"):
    """A tool call has a result, successful or not. `message` is the tool message with that result."""

    message: Message
    extra: Mapping[str, Any] | None = None


class ResultRecorded(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="recorded"):
    """A tool result that is stored but not in the history yet; `ResultPublished` adds it to the history.

    Results enter the history in call order, so a result may have to wait for those of earlier calls.
    """

    message: Message
    extra: Mapping[str, Any] | None = None


class ResultPublished(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="published"):
    """The stored results of these calls enter the history, in this order."""

    calls: tuple[str, ...]
    extra: Mapping[str, Any] | None = None


class CallCancelled(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="cancelled"):
    """A tool call was cancelled or interrupted. `message` is the tool message with that outcome."""

    message: Message
    extra: Mapping[str, Any] | None = None


class Sent(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="sent"):
    """The history so far was sent to a model. `made_up` are the ids of the calls that got synthetic results.

    `findings` are the losses and changes in the first request after a switch, each with its level.
    """

    target: str
    model: str | None = None
    made_up: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None


class Pin(Struct, frozen=True, gc=False):
    """A message that compression must not change.

    `number` is the number of the message in the history, and `summarised` how many messages it summarises: both are the
    same with and without the compressions that are undone later. A pin without a number was stored with an index and a
    digest of the content only.
    """

    place: int
    digest: str
    number: int | None = None
    summarised: int = 0

    @classmethod
    def at(cls, history: History, position: int) -> Pin:
        [message] = history.slice(position, position + 1)
        return cls(position, _message_digest(message), history.number_of(position), message.summarised)

    def find(self, history: History) -> int | None:
        """Return the position of the pinned message; None if it is a summary of a compression that was undone."""
        if self.number is not None:
            position = history.find_number(self.number)
            message = history.slice(position, position + 1)[0] if position is not None else None
            return position if message is not None and message.summarised == self.summarised else None
        here = history.slice(self.place, self.place + 1) if self.place >= 0 else []
        if here and _message_digest(here[0]) == self.digest:
            return self.place
        positions = reversed([*enumerate(history.slice(0))])
        return next((position for position, message in positions if _message_digest(message) == self.digest), None)


class Restored(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="restored"):
    """State that can't be derived from the messages: of a conversation that already had messages, or a new pin.

    `turns` is the number of turns that were not imported, `ledger` the interactions that can't be derived from the
    messages, `tokens` an encoded `TokenEstimator`, `pins` the messages that were pinned.
    """

    turns: int = 0
    ledger: tuple[Interaction, ...] = ()
    tokens: Mapping[str, Any] | None = None
    pins: tuple[Pin, ...] = ()
    extra: Mapping[str, Any] | None = None


class ReplyBroken(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="broken"):
    """An incomplete reply, kept as evidence; it is not part of the conversation."""

    reply: Reply
    extra: Mapping[str, Any] | None = None


class CompressionApplied(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="compressed"):
    """The history was compressed. `kept` are ranges (start, stop) of the old messages, `replaced` are new messages.

    A new message is stored with its index in the new history; the kept messages fill the other positions in order.
    `places` are the indexes of the old messages that the new ones stand for.
    """

    strategy: str
    budget: int | None = None
    kept: tuple[tuple[int, int], ...] = ()
    replaced: tuple[tuple[int, Message], ...] = ()
    places: tuple[int, ...] = ()
    extra: Mapping[str, Any] | None = None

    @classmethod
    def between(
        cls,
        before: Sequence[Message],
        after: Sequence[Message],
        *,
        strategy: str,
        budget: int | None = None,
        places: Sequence[int] = (),
    ) -> CompressionApplied:
        """Return the change between two histories. A message is kept if it is the same object, in the old order.

        `places` are those of the `CompressionResult`.
        """
        old_places = {id(message): place for place, message in enumerate(before)}
        kept: list[tuple[int, int]] = []
        replaced: list[tuple[int, Message]] = []
        last = -1
        for at, message in enumerate(after):
            place = old_places.get(id(message), -1)
            if place <= last:
                replaced.append((at, message))
                continue
            if kept and kept[-1][1] == place:
                kept[-1] = (kept[-1][0], place + 1)
            else:
                kept.append((place, place + 1))
            last = place
        new_places = tuple(places[at] for at, _ in replaced) if places else ()
        return cls(strategy, budget, tuple(kept), tuple(replaced), new_places)

    def apply(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages after the compression. `InputError` if it refers to messages that do not exist."""
        if any(not 0 <= start < stop <= len(messages) for start, stop in self.kept):
            raise InputError(
                f"the compression keeps messages that do not exist (the history has {len(messages)})", path="kept"
            )
        old = iter([messages[place] for start, stop in self.kept for place in range(start, stop)])
        new = dict(self.replaced)
        total = sum(stop - start for start, stop in self.kept) + len(new)
        if any(not 0 <= at < total for at in new):
            raise InputError("the compression places a message outside the new history", path="replaced")
        return tuple(new[at] if at in new else next(old) for at in range(total))


class CompressionUndone(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="undone"):
    """The compression event with this number is undone.

    `tokens` is the encoded `TokenEstimator` at that time. It was calibrated with compressed requests, so it can't be
    derived from the restored messages.
    """

    seq: int
    tokens: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] | None = None


class Rewound(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="rewound"):
    """The conversation continues after the turn with this key; later messages are removed."""

    turn: str
    extra: Mapping[str, Any] | None = None


class Switched(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="switched"):
    """Another target or model from the next request on; `provider` is the configured provider name."""

    target: str
    model: str | None = None
    provider: str | None = None
    extra: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, target: str, model: str | None, provider: str | None, *, emulated: bool) -> Switched:
        """Return the event for a model, which may be emulated."""
        return cls(target, model, provider, {"emulated": True} if emulated else None)


class Forked(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="forked"):
    """All events before this one were copied from the conversation `origin`, up to its event `seq`."""

    origin: str
    seq: int
    extra: Mapping[str, Any] | None = None


class Renamed(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag="renamed"):
    """A new title; an empty text removes it."""

    text: str
    extra: Mapping[str, Any] | None = None


class UnknownEvent(Struct, frozen=True, gc=False):
    """An event of a kind that this version does not support, unchanged."""

    kind: str
    fields: Mapping[str, Any]


Event: TypeAlias = (
    SettingsChanged
    | MessageAdded
    | CallCompleted
    | ResultRecorded
    | ResultPublished
    | CallCancelled
    | Sent
    | Restored
    | ReplyBroken
    | CompressionApplied
    | CompressionUndone
    | Rewound
    | Switched
    | Forked
    | Renamed
    | UnknownEvent
)

_EVENT_TYPES: dict[str, type[Struct]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Event) if kind is not UnknownEvent
}

FORMER_KINDS = {
    "said": "added",
    "known": "recorded",
    "opened": "settings",
    "recalled": "restored",
    "broke": "broken",
    "titled": "renamed",
}
"""The kinds of events as they were stored before schema version 5."""


class _StoredMessage(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An event with a message as it is stored: without what the message repeats."""

    message: Message
    usage: Usage | None = None
    model: str | None = None
    repeats: Repeats | None = None


class _StoredAdded(_StoredMessage, frozen=True, gc=False, forbid_unknown_fields=True, tag="added"): ...


class _StoredCompleted(_StoredMessage, frozen=True, gc=False, forbid_unknown_fields=True, tag="completed"): ...


class _StoredResult(_StoredMessage, frozen=True, gc=False, forbid_unknown_fields=True, tag="recorded"): ...


class _StoredCancelled(_StoredMessage, frozen=True, gc=False, forbid_unknown_fields=True, tag="cancelled"): ...


_UsualEvent: TypeAlias = (
    _StoredAdded
    | _StoredCompleted
    | _StoredResult
    | _StoredCancelled
    | ResultPublished
    | Sent
    | CompressionUndone
    | Rewound
    | Switched
    | Forked
    | Renamed
)


def _message_digest(message: Message) -> str:
    """Return a digest of a message's content. It ignores `pinned`, and is the same in every process and version."""
    event = encode_value(MessageAdded(msgspec.structs.replace(message, pinned=False)))
    # Under the names that its first version had.
    message = use_former_names(redact_event("added", event)["message"])
    return sha256(encode_json({"type": "said", "message": message})).hexdigest()[:32]


def event_kind(event: Event) -> str:
    return event.kind if isinstance(event, UnknownEvent) else str(event.__struct_config__.tag)


def dump_event(event: Event, *, with_repeats: bool = True) -> bytes:
    """Encode the event as JSON, without API keys and other credentials.

    Without repeats, what the fragments of its message repeat is encoded once.
    """
    kind = event_kind(event)
    fields = event.fields if isinstance(event, UnknownEvent) else redact_event(kind, encode_value(event))
    if not with_repeats and isinstance(event, MessageAdded | CallCompleted | ResultRecorded | CallCancelled):
        message, repeats = remove_repeats(fields["message"])
        if repeats is not None:
            fields = {**fields, "message": message, "repeats": repeats}
    try:
        return encode_json({**fields, "type": kind})
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"can't be encoded as JSON: {error}", path=event_kind(event)) from None


def decode_event(data: bytes | str) -> Event:
    """Decode what `dump_event` wrote, in this or another version."""
    return _decode_at_once(data) or decode_by_field(data)


def _decode_at_once(data: bytes | str) -> Event | None:
    """Decode an event of a usual kind without unknown fields; None if it is another one."""
    # The structs collect unknown fields in `extra`, so a stored key `extra` is itself an unknown field.
    if '"extra"' in data if isinstance(data, str) else b'"extra"' in data:
        return None
    try:
        event = _usual_decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(event, _StoredMessage):
        return event
    if event.repeats is not None:
        try:
            restore_repeats(event.message, event.repeats)
        except InputError:
            return None
    if isinstance(event, _StoredAdded):
        return MessageAdded(event.message, event.usage, event.model)
    has_reply_fields = event.usage is not None or event.model is not None
    return None if has_reply_fields else _RESULT_EVENTS[type(event)](event.message)


_RESULT_EVENTS = {_StoredCompleted: CallCompleted, _StoredResult: ResultRecorded, _StoredCancelled: CallCancelled}


@cache
def _usual_decoder() -> msgspec.json.Decoder[_UsualEvent]:
    return msgspec.json.Decoder(warm_type(_UsualEvent))


def decode_by_field(data: bytes | str) -> Event:
    """Decode an event field by field, and keep what this version does not expect."""
    try:
        stored = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a stored event: {error}") from None
    fields = cast("dict[str, Any]", stored) if isinstance(stored, dict) else {}
    kind = fields.pop("type", None)
    if not isinstance(kind, str):
        raise InputError("not a stored event: expected an object with a `type`")
    kind = FORMER_KINDS.get(kind, kind)
    if kind not in _EVENT_TYPES:
        return UnknownEvent(kind, fields)
    struct = _EVENT_TYPES[kind]
    if struct is SettingsChanged and "beside" in fields:
        fields["request_extra"] = fields.pop("beside")
    stored_repeats = fields.pop("repeats", None) if "message" in struct.__struct_fields__ else None
    values = {name: fields.pop(name) for name in struct.__struct_fields__ if name != "extra" and name in fields}
    try:
        decoded = _decode_fields(struct, kind, values)
        if stored_repeats is not None:
            restore_repeats(decoded["message"], msgspec.convert(stored_repeats, warm_type(Repeats)))
        return cast("Event", struct(**decoded, extra=fields or None))
    except (TypeError, ValueError) as error:
        raise InputError(f"not a stored event of the kind {kind!r}: {error}") from None


def _decode_fields(struct: type[Struct], kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """Decode the JSON values of an event's fields."""
    match kind:
        case "added" | "completed" | "recorded" | "cancelled":
            values["message"] = decode_message(values.get("message"), "message")
            if values.get("usage") is not None:
                values["usage"] = msgspec.convert(values["usage"], warm_type(Usage))
            return values
        case "restored":
            entries = enumerate(values.pop("ledger", ()))
            values["ledger"] = tuple(decode_interaction(entry, f"ledger[{at}]") for at, entry in entries)
            values["pins"] = msgspec.convert(values.pop("pins", ()), tuple[Pin, ...])
            return values
        case "broken":
            return {"reply": decode_reply(values.get("reply"), "reply")}
        case "settings":
            request_extra = values.pop("request_extra", None)
            request = decode_request(values)
            plain = {name: getattr(request, name) for name in ("system", "tools", "options", "model", "continues")}
            return {**plain, "native": request.native, "request_extra": request_extra}
        case "compressed":
            replaced = enumerate(values.pop("replaced", ()))
            values["replaced"] = tuple((at, decode_message(new, f"replaced[{i}][1]")) for i, (at, new) in replaced)
            values["kept"] = msgspec.convert(values.pop("kept", ()), tuple[tuple[int, int], ...])
            values["places"] = msgspec.convert(values.pop("places", ()), tuple[int, ...])
            return values
        case _:
            converted = msgspec.convert(values, warm_type(struct))
            return {field: getattr(converted, field) for field in values}

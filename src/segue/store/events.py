"""What can happen to a conversation, as values: the only thing that a store keeps.

Invariants: an event holds what the conversation holds and nothing else (no headers, no keys, no clock); what a reader
does not know, it keeps: an event of an unknown kind comes back as `Unknown`, unknown fields stay in `extra`, and both
are written again as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Message, Native, Text
from segue.canonical.codec import decode_interaction, decode_message, decode_reply, decode_request, dumped
from segue.canonical.history import Interaction
from segue.canonical.jsontext import write
from segue.canonical.learning import learnt
from segue.canonical.request import Options, Reply, Request, Tool, Usage
from segue.errors import InputError
from segue.store.secrets import without_secrets

__all__ = [
    "Broke",
    "Cancelled",
    "Completed",
    "Compressed",
    "Event",
    "Forked",
    "Known",
    "Opened",
    "Pin",
    "Published",
    "Recalled",
    "Rewound",
    "Said",
    "Sent",
    "Switched",
    "Titled",
    "Undone",
    "Unknown",
    "decode_event",
    "dump_event",
    "kind_of",
]

_decoder = msgspec.json.Decoder()


class Opened(Struct, frozen=True, gc=False, tag="opened"):
    """What the model is given beside the messages: written at the beginning, and again whenever it is set anew.

    `model`, `continues`, `native` and `beside` are what a body said that the conversation was begun from; `beside` is
    the request's own `extra`.
    """

    system: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] = ()
    options: Options = Options()
    model: str | None = None
    continues: str | None = None
    native: Native | None = None
    beside: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, request: Request) -> Opened:
        """All of the request but its messages."""
        return cls(
            request.system,
            request.tools,
            request.options,
            request.model,
            request.continues,
            request.native,
            request.extra,
        )

    @property
    def request(self) -> Request:
        """The request that this was written of, without messages."""
        return Request(
            (), self.system, self.tools, self.options, self.model, self.continues, self.native, self.beside or None
        )


class Said(Struct, frozen=True, gc=False, tag="said"):
    """A message as it entered the history: a human's words, a reply, anything but the outcome of a call.

    Of a reply `usage` and `model` are what the provider said of it.
    """

    message: Message
    usage: Usage | None = None
    model: str | None = None
    extra: Mapping[str, Any] | None = None


class Completed(Struct, frozen=True, gc=False, tag="completed"):
    """The outcome of a call, good or bad: a tool message that holds the response."""

    message: Message
    extra: Mapping[str, Any] | None = None


class Known(Struct, frozen=True, gc=False, tag="known"):
    """The outcome of a call, kept the moment it was known: no part of what was said before it is published."""

    message: Message
    extra: Mapping[str, Any] | None = None


class Published(Struct, frozen=True, gc=False, tag="published"):
    """What was known of these calls is said now, in this order."""

    calls: tuple[str, ...]
    extra: Mapping[str, Any] | None = None


class Cancelled(Struct, frozen=True, gc=False, tag="cancelled"):
    """The end of a call that did not run to its own: a tool message that says so."""

    message: Message
    extra: Mapping[str, Any] | None = None


class Sent(Struct, frozen=True, gc=False, tag="sent"):
    """All that was said so far went to a model. `made_up` are the calls whose results were made up for it."""

    target: str
    model: str | None = None
    made_up: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None


class Pin(Struct, frozen=True, gc=False):
    """A message that no compression may touch: its place among those that are told now, and what it says.

    Where a compression before it is taken back later, the message has another place, and is known by its `digest`.
    """

    place: int
    digest: str

    @classmethod
    def of(cls, messages: Sequence[Message], message: Message) -> Pin:
        return cls(next(place for place, held in enumerate(messages) if held is message), digest_of(message))

    def found(self, messages: Sequence[Message]) -> Message | None:
        """The message that is meant; None where it was made by what was taken back."""
        if 0 <= self.place < len(messages) and digest_of(messages[self.place]) == self.digest:
            return messages[self.place]
        return next((message for message in reversed(messages) if digest_of(message) == self.digest), None)


class Recalled(Struct, frozen=True, gc=False, tag="recalled"):
    """What is known beside the messages: of a conversation that was not kept from its beginning, and what was pinned.

    `turns` is how many live turns there were, `ledger` what the messages do not tell of interactions, `tokens` what was
    learned of the tokens that providers count, as an `Estimate` is written.
    """

    turns: int = 0
    ledger: tuple[Interaction, ...] = ()
    tokens: Mapping[str, Any] | None = None
    pins: tuple[Pin, ...] = ()
    extra: Mapping[str, Any] | None = None


class Broke(Struct, frozen=True, gc=False, tag="broke"):
    """A reply that came to no end: evidence, no part of the conversation."""

    reply: Reply
    extra: Mapping[str, Any] | None = None


class Compressed(Struct, frozen=True, gc=False, tag="compressed"):
    """The messages from here on: stretches of those before (`kept`, from and up to), and `replaced` ones.

    A replaced message is written with its place in the new list; the kept ones fill the other places in their order.
    """

    strategy: str
    budget: int | None = None
    kept: tuple[tuple[int, int], ...] = ()
    replaced: tuple[tuple[int, Message], ...] = ()
    extra: Mapping[str, Any] | None = None

    @classmethod
    def between(
        cls, before: Sequence[Message], after: Sequence[Message], *, strategy: str, budget: int | None = None
    ) -> Compressed:
        """What leads from one list to the other. A message is kept where it is the same object, in the old order."""
        places = {id(message): place for place, message in enumerate(before)}
        kept: list[tuple[int, int]] = []
        replaced: list[tuple[int, Message]] = []
        last = -1
        for at, message in enumerate(after):
            place = places.get(id(message), -1)
            if place <= last:
                replaced.append((at, message))
                continue
            if kept and kept[-1][1] == place:
                kept[-1] = (kept[-1][0], place + 1)
            else:
                kept.append((place, place + 1))
            last = place
        return cls(strategy, budget, tuple(kept), tuple(replaced))

    def applied(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages as they are after this, of what they were before."""
        if any(not 0 <= start < stop <= len(messages) for start, stop in self.kept):
            raise InputError(f"a compression keeps messages that are not there; there are {len(messages)}", path="kept")
        old = iter([messages[place] for start, stop in self.kept for place in range(start, stop)])
        new = dict(self.replaced)
        total = sum(stop - start for start, stop in self.kept) + len(new)
        if any(not 0 <= at < total for at in new):
            raise InputError("a compression puts a message where none can be", path="replaced")
        return tuple(new[at] if at in new else next(old) for at in range(total))


class Undone(Struct, frozen=True, gc=False, tag="undone"):
    """The event of this number no longer counts."""

    seq: int
    extra: Mapping[str, Any] | None = None


class Rewound(Struct, frozen=True, gc=False, tag="rewound"):
    """The conversation goes on from this turn, by its key; what came after it no longer counts."""

    turn: str
    extra: Mapping[str, Any] | None = None


class Switched(Struct, frozen=True, gc=False, tag="switched"):
    """Another target or model from the next request on; `provider` is whose model it is, by the user's name for it."""

    target: str
    model: str | None = None
    provider: str | None = None
    extra: Mapping[str, Any] | None = None


class Forked(Struct, frozen=True, gc=False, tag="forked"):
    """All before this was copied from another conversation: its events up to this number."""

    origin: str
    seq: int
    extra: Mapping[str, Any] | None = None


class Titled(Struct, frozen=True, gc=False, tag="titled"):
    """A new title; the empty one takes it away."""

    text: str
    extra: Mapping[str, Any] | None = None


class Unknown(Struct, frozen=True, gc=False):
    """An event of a kind that this segue has no word for, as it was written."""

    kind: str
    fields: Mapping[str, Any]


Event: TypeAlias = (
    Opened
    | Said
    | Completed
    | Known
    | Published
    | Cancelled
    | Sent
    | Recalled
    | Broke
    | Compressed
    | Undone
    | Rewound
    | Switched
    | Forked
    | Titled
    | Unknown
)

_KINDS: dict[str, type[Struct]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        *(Opened, Said, Completed, Known, Published, Cancelled, Sent, Recalled, Broke),
        *(Compressed, Undone, Rewound, Switched, Forked, Titled),
    )
}


def digest_of(message: Message) -> str:
    """A name for what a message says, pinned or not, here and wherever it was read again."""
    told = dump_event(Said(msgspec.structs.replace(message, pinned=False)))
    return sha256(told).hexdigest()[:32]


def kind_of(event: Event) -> str:
    return event.kind if isinstance(event, Unknown) else str(event.__struct_config__.tag)


def dump_event(event: Event) -> bytes:
    """The event as JSON, without keys and authorisation."""
    kind = kind_of(event)
    fields = event.fields if isinstance(event, Unknown) else without_secrets(kind, dumped(event))
    try:
        return write({**fields, "type": kind})
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"this can't be written as JSON: {error}", path=kind_of(event)) from None


def decode_event(data: bytes | str) -> Event:
    """What `dump_event` wrote, here or by another version."""
    try:
        stored = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a stored event: {error}") from None
    fields = cast("dict[str, Any]", stored) if isinstance(stored, dict) else {}
    kind = fields.pop("type", None)
    if not isinstance(kind, str):
        raise InputError("not a stored event: an object with a `type` was expected")
    if kind not in _KINDS:
        return Unknown(kind, fields)
    made = _KINDS[kind]
    known = {name: fields.pop(name) for name in made.__struct_fields__ if name != "extra" and name in fields}
    try:
        return cast("Event", made(**_values(made, kind, known), extra=fields or None))
    except (TypeError, ValueError) as error:
        raise InputError(f"not a stored event of the kind {kind!r}: {error}") from None


def _values(made: type[Struct], kind: str, known: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event, read into what they are."""
    match kind:
        case "said" | "completed" | "known" | "cancelled":
            known["message"] = decode_message(known.get("message"), "message")
            if known.get("usage") is not None:
                known["usage"] = msgspec.convert(known["usage"], learnt(Usage))
            return known
        case "recalled":
            entries = enumerate(known.pop("ledger", ()))
            known["ledger"] = tuple(decode_interaction(entry, f"ledger[{at}]") for at, entry in entries)
            known["pins"] = msgspec.convert(known.pop("pins", ()), tuple[Pin, ...])
            return known
        case "broke":
            return {"reply": decode_reply(known.get("reply"), "reply")}
        case "opened":
            beside = known.pop("beside", None)
            request = decode_request(known)
            plain = {name: getattr(request, name) for name in ("system", "tools", "options", "model", "continues")}
            return {**plain, "native": request.native, "beside": beside}
        case "compressed":
            replaced = enumerate(known.pop("replaced", ()))
            known["replaced"] = tuple((at, decode_message(new, f"replaced[{i}][1]")) for i, (at, new) in replaced)
            known["kept"] = msgspec.convert(known.pop("kept", ()), tuple[tuple[int, int], ...])
            return known
        case _:
            return {field: getattr(msgspec.convert(known, learnt(made)), field) for field in known}

"""Compactions in the conversations of callers: what each stands for is remembered when a provider makes it.

The messages before a compaction are saved in the store, sealed as reasoning is. Where a later request has the
compaction and the target can't read it, or is not the one that made it, they are put back before it. The API, the
account and the endpoint that made it get it back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeGuard, cast

import msgspec
from msgspec import Raw, Struct

from segue.bridge.caller import Caller
from segue.bridge.envelopes import (
    MAX_PAYLOAD_SIZE,
    EndpointBinding,
    EntryKind,
    EnvelopeKeys,
    OpenedFields,
    entry_keys,
    open_fields,
    seal_fields,
)
from segue.canonical.envelope import is_envelope
from segue.canonical.json import decode_members, encode_json_sorted, parse_json
from segue.canonical.request import Reply
from segue.errors import InputError
from segue.render.compaction import is_compaction
from segue.render.constraints import TEXTS
from segue.render.report import Report
from segue.reply import render_reply
from segue.wire.base import CompactionForm, CompactionThreshold, Wire
from segue.wire.json_values import JsonObject, object_or_none, objects_in

DEFAULT_LIMIT = 16 * 2**20
_IGNORED_KEYS = frozenset({"id", "status", "cache_control"})
_SYSTEM_ROLES = ("system", "developer")


class CompactionTarget(Struct, frozen=True):
    """A target of a conversation with compactions. `binding` is its account and endpoint.

    `can_read`: it has the caller's API, and compactions. `gets_unknown`: it gets those whose maker is not known, too.
    """

    binding: EndpointBinding
    can_read: bool
    gets_unknown: bool


class ClientEntries(Struct, frozen=True):
    """How the entries of one client are sealed and found. `limit` is the size of one history in bytes."""

    keys: EnvelopeKeys
    client: str
    now: float
    max_age: float
    limit: int = DEFAULT_LIMIT

    def names(self, kind: EntryKind, digest: str) -> tuple[str, ...]:
        return entry_keys(self.keys, self.client, kind, digest, "")

    def seal(
        self, kind: EntryKind, digest: str, fields: Mapping[str, Any], binding: EndpointBinding
    ) -> dict[str, bytes]:
        """Return the entry of some fields; empty if they are too large."""
        limit = self._limit_of(kind)
        text = seal_fields({"entry": [kind, digest], **fields}, binding, self.keys, self.now, limit=limit)
        return {} if text is None else {self.names(kind, digest)[0]: text.encode()}

    def seal_summary(self, text: str, model: str) -> str | None:
        """Return the envelope of a summary, which only this client can send back."""
        fields = {"client": self.names("summary", "")[0], "summary": text}
        return seal_fields(fields, EndpointBinding("segue", "", "", model), self.keys, self.now)

    def open_summary(self, envelope: str) -> str | None:
        opened = open_fields(envelope, self.keys, self.now, self.max_age)
        if not isinstance(opened, OpenedFields) or opened.fields.get("client") not in self.names("summary", ""):
            return None
        text = opened.fields.get("summary")
        return text if isinstance(text, str) else None

    def open(self, kind: EntryKind, digest: str, found: Mapping[str, bytes]) -> OpenedFields | None:
        """Return the fields of an entry; None if it is not there, forged, or that of something else."""
        entry = next((found[name] for name in self.names(kind, digest) if name in found), None)
        text = "" if entry is None else entry.decode("ascii", "replace")
        opened = open_fields(text, self.keys, self.now, self.max_age, limit=self._limit_of(kind))
        return opened if isinstance(opened, OpenedFields) and opened.fields.get("entry") == [kind, digest] else None

    def _limit_of(self, kind: EntryKind) -> int:
        # Who made a compaction is always remembered: no other account may get it.
        return MAX_PAYLOAD_SIZE if kind == "compaction" else self.limit


class CompactedBody:
    """A caller's body with compactions, and what is known of them. It is completed by entries of the store."""

    def __init__(self, wire: Wire, body: bytes, entries: ClientEntries) -> None:
        assert wire.compaction is not None
        self._wire = wire
        self._form = wire.compaction
        self._entries = entries
        self._members = decode_members(body)
        self._body = body
        self._summarised, self._limit = False, None
        self._report = Report()
        """What was opened."""
        given = read_items(self._members.get(wire.conversation_key))
        self._items = _open_own(
            given, self._form, entries, self._report, prunes=find_threshold(wire, self._members) is not None
        )
        if self._items is not given:
            self._body = self._encode(self._items)
        self._summaries: dict[str, str | None] = {}
        self.restored: tuple[str, list[JsonObject]] | None = None
        """The compaction whose history was put back last, and the items of that."""
        self._makers: dict[str, OpenedFields | None] = {}
        self._histories: dict[str, list[JsonObject] | None] = {}

    def find_missing(self, target: CompactionTarget) -> dict[str, tuple[EntryKind, str]]:
        """Return the names of the entries that this target needs, and are not loaded yet."""
        makers = [digest for digest in self._digests(self._items) if digest not in self._makers]
        if makers:
            return self._name("compaction", makers)
        needed = [digest for digest in self._needed(self._items, target) if digest not in self._histories]
        return self._name("compacted", needed)

    def _name(self, kind: EntryKind, digests: Iterable[str]) -> dict[str, tuple[EntryKind, str]]:
        return {name: (kind, digest) for digest in digests for name in self._entries.names(kind, digest)}

    def add(self, asked: Mapping[str, tuple[EntryKind, str]], found: Mapping[str, bytes]) -> None:
        """Take the entries that the store has of those that were asked for."""
        for kind, digest in dict.fromkeys(asked.values()):
            opened = self._entries.open(kind, digest, found)
            if kind == "compaction":
                self._makers[digest] = opened
            elif kind == "summary":
                text = opened.fields.get("text") if opened is not None else None
                self._summaries[digest] = text if isinstance(text, str) else None
            else:
                items = opened.fields.get("items") if opened is not None else None
                self._histories[digest] = list(objects_in(items)) if isinstance(items, list) else None

    def _digests(self, items: Sequence[JsonObject]) -> list[str]:
        return [digest for _, digest in _find(items, self._form)]

    def _needed(self, items: Sequence[JsonObject], target: CompactionTarget) -> Iterator[str]:
        """Yield the compactions whose history this target needs, as far as is known."""
        for position, digest in reversed(_find(items, self._form)):
            if items is self._items and self._may_send(digest, target):
                return
            yield digest
            history = self._histories.get(digest)
            if history is not None:
                yield from self._needed(history, target)
                return
            items = items[:position]

    def _may_send(self, digest: str, target: CompactionTarget) -> bool:
        """Return whether a target gets a compaction unchanged: no other account or endpoint than its maker may."""
        maker = self._makers.get(digest)
        made_it = target.gets_unknown if maker is None else maker.find_mismatch(target.binding) is None
        return target.can_read and made_it

    def name_summary(self, digest: str) -> dict[str, tuple[EntryKind, str]]:
        """Return the names of the entry with the summary of a history; none if it was loaded already."""
        return {} if digest in self._summaries else self._name("summary", [digest])

    def has_summary(self, digest: str) -> bool:
        return self._summaries.get(digest) is not None

    def save_summary(self, digest: str, text: str, binding: EndpointBinding) -> dict[str, bytes]:
        """Use a summary in place of a history, and return its entry."""
        self._summaries[digest] = text
        return self._entries.seal("summary", digest, {"text": text}, binding)

    def restore(
        self, target: CompactionTarget, report: Report, *, summarised: bool = False, limit: int | None = None
    ) -> bytes:
        """Return the body for this target: with the history that it would not have otherwise.

        With `summarised`, the history is replaced by its summary. With a `limit`, its oldest parts are left out, so
        that the body has about so many bytes.
        """
        self.restored = None
        self._summarised, self._limit = summarised, limit
        report.extend(self._report.findings)
        items = self._restore(self._items, target, report)
        return self._body if items is self._items else self._encode(items)

    def _encode(self, items: Sequence[JsonObject]) -> bytes:
        return msgspec.json.encode({**self._members, self._wire.conversation_key: items})

    def _restore(
        self, items: list[JsonObject], target: CompactionTarget, report: Report, *, is_history: bool = False
    ) -> list[JsonObject]:
        for position, digest in reversed(_find(items, self._form)):
            if not is_history and self._may_send(digest, target):
                foreign = [at for at, one in _find(items[:position], self._form) if not self._may_send(one, target)]
                return _without(items, foreign, self._form) if foreign else items
            history = self._histories.get(digest)
            if history is not None:
                earlier = self._restore(history, target, report, is_history=True)
                before, after = items[:position], items[position:]
                if not is_history:
                    earlier = self._fit(digest, earlier, report)
                return [*_merge(earlier, before, self._form), *_without(after, [0], self._form)]
            if target.can_read and not is_history:
                # The same API, but another account: the blob must not be sent there.
                why = "compaction dropped: another account or endpoint made it, and what it stands for is not stored"
                report.add("dropped", why, subject="compaction")
                text = _readable_text(items[position], self._form) or TEXTS.lost_history
                rest = _without(items, [position], self._form)
                items = [*rest[:position], {"role": "user", "content": text}, *rest[position:]]
        return items

    def _fit(self, digest: str, history: list[JsonObject], report: Report) -> list[JsonObject]:
        """Return a history as it is sent: whole, as its summary, or without its oldest parts."""
        self.restored = digest, history
        count = f"{len(history):,} items" if len(history) != 1 else "one item"
        summary = self._summaries.get(digest) if self._summarised else None
        if summary is not None:
            why = f"compaction: {count} that it stands for summarised: they do not fit the model's context"
            report.add("compressed", why, subject="compaction", level="changed")
            return [{"role": "user", "content": TEXTS.summary.format(content=summary)}]
        if self._limit is not None:
            kept = _drop_oldest(history, self._limit - len(self._body), self._form)
            why = f"compaction: {len(history) - len(kept):,} of {count} that it stands for dropped: they do not fit"
            report.add("dropped", f"{why} the model's context", subject="compaction")
            return kept
        report.add("supplied", f"compaction: {count} that it stands for restored", subject="compaction", level="note")
        return history


def _drop_oldest(history: Sequence[JsonObject], limit: int, form: CompactionForm) -> list[JsonObject]:
    """Return the newest items, from a message of the user on, that have at most this size in bytes."""
    size, start = 0, len(history)
    for position in reversed(range(len(history))):
        size += len(msgspec.json.encode(history[position]))
        if size > limit:
            break
        if _is_users(history[position]):
            start = position
    return [{"role": "user", "content": TEXTS.lost_history}, *history[start:]]


def _open_own(
    items: list[JsonObject], form: CompactionForm, entries: ClientEntries, report: Report, *, prunes: bool
) -> list[JsonObject]:
    """Return the items with the compactions that segue made as text; the same list if there are none."""
    for position in reversed(range(len(items))):
        parts = [part for part in _parts(items[position], form) if _is_compaction_part(part, form)]
        envelopes = [value for part in parts for value in part.values() if _is_own_value(value)]
        if not envelopes:
            continue
        text = entries.open_summary(envelopes[-1])
        if text is None:
            why = "compaction of segue dropped: it was changed, is too old, or is of another client"
            report.add("dropped", why, subject="compaction")
        else:
            report.add("text", "compaction of segue rendered as text", subject="compaction")
        content = TEXTS.lost_history if text is None else TEXTS.summary.format(content=text)
        summary = {"role": "user", "content": content}
        rest = _without(items, [position], form)
        # A provider with such blocks, or with a threshold, ignores what is before the newest one.
        before = _open_own(rest[:position], form, entries, report, prunes=prunes)
        if form.in_messages or prunes:
            before = [item for item in before if item.get("role") in _SYSTEM_ROLES]
        return [*before, summary, *rest[position:]]
    return items


def _is_own_value(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and is_envelope(value)


class CompactionRequest(Struct, frozen=True):
    """A caller's request to compact the conversation now. `is_standalone`: at a path of its own, not for a reply."""

    wire: Wire
    form: CompactionForm
    is_standalone: bool = False
    instructions: str = ""

    def plain_body(self, body: bytes) -> bytes:
        """Return the body without the request."""
        members = {key: raw for key, raw in decode_members(body).items() if key != self.form.request_key}
        key = self.wire.conversation_key
        items = read_items(members.get(key))
        if items and items[-1].get("type", "") == self.form.trigger:
            return msgspec.json.encode({**members, key: items[:-1]})
        return msgspec.json.encode(members)

    def empty_body(self, body: bytes) -> bytes:
        """Return the body without its conversation."""
        return msgspec.json.encode({**decode_members(body), self.wire.conversation_key: []})

    def native_body(self, body: bytes) -> bytes:
        """Return the body for a provider of this API, which compacts a conversation in a reply."""
        if not self.is_standalone or self.form.trigger is None:
            return body
        key, members = self.wire.conversation_key, decode_members(body)
        items = [*read_items(members.get(key)), {"type": self.form.trigger}]
        return msgspec.json.encode({**{name: raw for name, raw in members.items() if name != "stream"}, key: items})

    def render_standalone(self, body: bytes, reply: Mapping[str, Any]) -> JsonObject:
        """Return the response to a standalone request: all messages of the user, and the compaction of a reply."""
        items = read_items(decode_members(body).get(self.wire.conversation_key))
        made = [item for item in self.form.reply_items(dict(reply)) if _find([item], self.form)]
        users = [item for item in items if item.get("role") == "user"]
        kept = {key: reply.get(key) for key in ("id", "created_at", "usage")}
        return {"object": "response.compaction", "output": [*users, *made], **kept}


def find_compaction_request(caller: Caller, body: bytes) -> CompactionRequest | None:
    """Return the request for a compaction in a body; raise `InputError` for one that no provider accepts."""
    wire, form = caller.wire, caller.wire.compaction
    if form is None:
        return None
    trigger, members = form.trigger, caller.members_of(body)
    is_standalone = caller.api_path.operation == "compact"
    if trigger is not None and b'"%b"' % trigger.encode() in body:
        items = read_items(members.get(wire.conversation_key))
        places = [position for position, item in enumerate(items) if item.get("type") == trigger]
        if places and places != [len(items) - 1]:
            path = f"{wire.conversation_key}[{places[0]}]"
            raise InputError(f"'{trigger}' must be the last item of the input.", path=path)
        if places and not is_standalone:
            return CompactionRequest(wire, form)
    if is_standalone:
        return CompactionRequest(wire, form, is_standalone=True)
    options: object = msgspec.json.decode(members.get(form.request_key or "", Raw(b"null")))
    if isinstance(options, dict):
        instructions = cast("JsonObject", options).get("instructions")
        return CompactionRequest(wire, form, instructions=instructions if isinstance(instructions, str) else "")
    return None


def find_threshold(wire: Wire, members: Mapping[str, Raw]) -> CompactionThreshold | None:
    """Return the number of tokens from which the caller wants the conversation compacted; None if it does not."""
    raw = members.get(wire.compaction.threshold_key) if wire.compaction is not None else None
    return None if wire.compaction is None or raw is None else wire.compaction.find_threshold(msgspec.json.decode(raw))


def drop_threshold(wire: Wire, body: bytes) -> bytes:
    """Return the body without its threshold; beside other settings it stays, for the report."""
    form, members = wire.compaction, decode_members(body)
    value = None if form is None else msgspec.json.decode(members[form.threshold_key])
    entries = objects_in(value) or objects_in((object_or_none(value) or {}).get("edits"))
    if form is None or len(entries) > 1:
        return body
    return msgspec.json.encode({key: raw for key, raw in members.items() if key != form.threshold_key})


def continue_after(wire: Wire, body: bytes, summary: str) -> bytes:
    """Return a body with the summary of its conversation, then what follows the last message of the user if short."""
    members = decode_members(body)
    items = read_items(members.get(wire.conversation_key))
    start = next((at for at in reversed(range(len(items))) if _is_users(items[at])), len(items))
    tail = items[start:]
    if not tail or len(msgspec.json.encode(tail)) > len(body) // 2:
        tail = [{"role": "user", "content": TEXTS.last_user_message}]
    system = [item for item in items[:start] if item.get("role") in _SYSTEM_ROLES]
    text = {"role": "user", "content": TEXTS.summary.format(content=summary)}
    return msgspec.json.encode({**members, wire.conversation_key: [*system, text, *tail]})


def _is_users(item: JsonObject) -> bool:
    """Return whether this is a message of the user, and no result."""
    results = [part for part in objects_in(item.get("content")) if part.get("type") == "tool_result"]
    return item.get("role") == "user" and not results


def may_have_compactions(wire: Wire, body: bytes) -> bool:
    """Return whether a body may have a compaction, without parsing it."""
    # The word is searched once, and hardly ever there.
    kinds = wire.compaction.types if wire.compaction is not None and b"compaction" in body else ()
    return any(b'"%b"' % kind.encode() in body for kind in kinds)


def read_items(raw: Raw | None) -> list[JsonObject]:
    """Return the items of a conversation, which may be a text; none if they are not valid."""
    value: object = None if raw is None else parse_json(bytes(raw))[0]
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    items = objects_in(value)
    return items if isinstance(value, list) and len(items) == len(cast("list[object]", value)) else []


def make_entries(
    wire: Wire, body: bytes, reply: Reply, binding: EndpointBinding, entries: ClientEntries
) -> dict[str, bytes]:
    """Return the entries for the compactions of a reply to this body: who made each, and what it stands for."""
    form = wire.compaction
    if form is None:
        return {}
    made: dict[str, bytes] = {}
    items: list[JsonObject] | None = None
    for position, block in enumerate(reply.blocks):
        if not is_compaction(block) or block.native is None:
            continue
        digest = _digest(block.native.fragment, form)
        if items is None:
            items = read_items(decode_members(body).get(wire.conversation_key))
            items = [item for item in items if item.get("type", "") != form.trigger]
        before = msgspec.structs.replace(reply, blocks=reply.blocks[:position])
        rendered = form.reply_items(render_reply(before, wire, Report())) if before.blocks else []
        made |= entries.seal("compacted", digest, {"items": [*items, *rendered]}, binding)
        made |= entries.seal("compaction", digest, {}, binding)
    return made


def _find(items: Sequence[JsonObject], form: CompactionForm) -> list[tuple[int, str]]:
    """Return the positions of the items with compactions, each with the digest of its last one."""
    found: list[tuple[int, str]] = []
    for position, item in enumerate(items):
        own = [part for part in _parts(item, form) if _is_compaction_part(part, form)]
        if own:
            found.append((position, _digest(own[-1], form)))
    return found


def _parts(item: JsonObject, form: CompactionForm) -> list[JsonObject]:
    """Return what may be a compaction: the item, or the blocks in it."""
    return objects_in(item.get("content")) if form.in_messages else [item]


def _is_compaction_part(part: JsonObject, form: CompactionForm) -> bool:
    """Return whether this is a compaction with content: one that failed stands for nothing."""
    return part.get("type") in form.types and any(part.get(key) for key in form.content_keys)


def _digest(part: Mapping[str, Any], form: CompactionForm) -> str:
    return sha256(encode_json_sorted([part.get(key) for key in form.content_keys])).hexdigest()


def _readable_text(item: JsonObject, form: CompactionForm) -> str:
    texts = [part.get("content") for part in _parts(item, form) if _is_compaction_part(part, form)]
    text = texts[-1] if texts else None
    return TEXTS.summary.format(content=text) if isinstance(text, str) and text else ""


def _without(items: Sequence[JsonObject], positions: Sequence[int], form: CompactionForm) -> list[JsonObject]:
    """Return the items without the compactions at these positions."""
    kept: list[JsonObject] = []
    for position, item in enumerate(items):
        if position not in positions:
            kept.append(item)
        elif form.in_messages:
            content = [part for part in _parts(item, form) if not _is_compaction_part(part, form)]
            kept += [{**item, "content": content}] if content else []
    return kept


def _merge(history: Sequence[JsonObject], kept: Sequence[JsonObject], form: CompactionForm) -> list[JsonObject]:
    """Return a history with the items that the caller kept of it, or put before its compaction, once each.

    What is new of them is system text at the start, or stands at the end.
    """
    known = [_identify(item) for item in history]
    new: list[JsonObject] = []
    for item in kept:
        key = _identify(item)
        if key in known:
            known.remove(key)
        elif not any(_is_compaction_part(part, form) for part in _parts(item, form)):
            new.append(item)
    system = [item for item in new if item.get("role") in _SYSTEM_ROLES]
    return [*system, *history, *(item for item in new if item.get("role") not in _SYSTEM_ROLES)]


def _identify(item: JsonObject) -> bytes:
    """Return what identifies an item, in whatever form the client sends it again."""
    rest = {key: value for key, value in item.items() if key not in _IGNORED_KEYS}
    if rest.get("role") is None:
        return encode_json_sorted(rest)
    content: Any = rest.get("content")
    parts = objects_in(content)
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    if parts and len(texts) == len(content):
        content = "\n".join(texts)
    return encode_json_sorted([rest["role"], content])

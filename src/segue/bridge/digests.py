"""Digests of a caller's conversation, by which the stored reasoning of its replies is found.

They cover the user's texts, without reminders, and the tool calls, whatever messages these are grouped into. Results,
system text and the texts of replies are not part of them: clients shorten or drop them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import cast

import msgspec
from msgspec import Raw

from segue.canonical.blocks import Message, Text, ToolCall
from segue.canonical.json import encode_json
from segue.errors import InputError
from segue.wire.base import Wire
from segue.wire.names import split_name

_MAX_INTEGER = 2**53
# Between two items of a conversation, as most clients write them.
_ITEM_GAP = re.compile(
    rb'\}\s*,\s*(?=\{\s*"(?:role"|parts"|content"|type"\s*:\s*"(?:message|reasoning|function_call)))'
)
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_decode_items = msgspec.json.Decoder(list[Raw]).decode


class ConversationDigest:
    """The digest of the messages so far. It is never changed: `add` returns another one."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = sha256()

    @property
    def value(self) -> str:
        return self._hash.hexdigest()

    def add(self, messages: Sequence[Message]) -> tuple[list[str], ConversationDigest]:
        """Return for each message the digest of the conversation up to its first call, and that of them all."""
        after = self._hash.copy()
        digests: list[str] = []
        for message in messages:
            parts = list(_identify(message))
            at_call = after.copy()
            at_call.update(b"".join(parts[:1]))
            digests.append(at_call.hexdigest())
            after.update(b"".join(parts))
        added = ConversationDigest.__new__(ConversationDigest)
        added._hash = after
        return digests, added


def digest_opening(wire: Wire, conversation: Raw | None) -> str:
    """Return a digest of the user's first words in a conversation, which are the same in all its requests.

    `conversation` is the JSON of its items; only those up to the words are parsed. Conversations that begin with the
    same words share the digest.
    """
    for raw in _iter_items(conversation):
        item = msgspec.json.decode(raw)
        if not isinstance(item, dict) or cast("dict[str, object]", item).get("role") != "user":
            continue
        try:
            messages = wire.parse_request({wire.conversation_key: [item]}).messages
        except InputError:
            continue
        opening = b"".join(part for message in messages for part in _identify(message))
        if opening:
            return sha256(opening).hexdigest()
    return sha256().hexdigest()


def _iter_items(conversation: Raw | None) -> Iterator[Raw]:
    """Yield the items of a conversation; no more of them are decoded than are used."""
    view = memoryview(conversation or b"")
    if bytes(view[:1]) != b"[":
        return
    start, read = 1, 0
    for gap in _ITEM_GAP.finditer(view):
        # Some gaps are inside of an item: what comes before them is not valid JSON.
        read += gap.start() - start
        if read > len(view):
            break
        try:
            items = _decode_items(b"[%b]" % view[start : gap.start() + 1])
        except msgspec.DecodeError:
            continue
        yield from items
        start = gap.end()
    yield from _decode_items(b"[%b" % view[start:])


def _identify(message: Message) -> Iterator[bytes]:
    """Yield the parts of a message that identify it, whatever messages its blocks are grouped into."""
    for block in message.blocks:
        if isinstance(block, ToolCall) and block.kind != "hosted":
            yield encode_json([split_name(block.name)[1], _normalize(block.arguments), block.arguments_text or ""])
        elif isinstance(block, Text) and message.speaker in ("human", "tool"):
            text = _remove_reminders(block.text).strip()
            if text:
                yield encode_json(text)


def _remove_reminders(text: str) -> str:
    """Return a user's text without the spans that clients add to it, and move or drop in later requests."""
    kept: list[str] = []
    position = 0
    while (start := text.find(_REMINDER, position)) >= 0 and (end := text.find(_REMINDER_END, start)) >= 0:
        kept.append(text[position:start])
        position = end + len(_REMINDER_END)
    return "".join((*kept, text[position:]))


def _normalize(value: object) -> object:
    """Return a value in the form that all clients' JSON libraries agree on: keys sorted, `1.0` as `1`."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {key: _normalize(fields[key]) for key in sorted(fields)}
    if isinstance(value, list | tuple):
        return [_normalize(item) for item in cast("Sequence[object]", value)]
    is_integer = isinstance(value, float) and value.is_integer() and abs(value) < _MAX_INTEGER
    return int(cast("float", value)) if is_integer else value

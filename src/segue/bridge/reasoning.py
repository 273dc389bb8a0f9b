"""Reasoning across APIs: sealed into the caller's replies, and restored from the caller's next requests.

A caller's API has a field for opaque data at each block of reasoning (`signature`, `encrypted`), at the calls (`call`),
or none. The reasoning of a reply is sealed into that field. It is also saved as an entry of the store under the id that
the caller gets for the first call: for callers without such a field, and for clients that drop it.

Positions are counted in the calls of the reply, because clients add, merge and drop texts: `2n` is after call `n` and
before the texts that follow it, `2n + 1` directly before call `n + 1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import cast

import msgspec
from msgspec import Raw

from segue.bridge.envelopes import Opened, PlacedBlock, Rejected
from segue.canonical.blocks import Block, Message, Origin, Text, Thinking, ToolCall, calls_of
from segue.canonical.envelope import is_envelope
from segue.canonical.json import encode_json
from segue.canonical.request import Request
from segue.errors import InputError
from segue.render.reasoning import has_reasoning_content
from segue.render.report import Report
from segue.wire.base import ReasoningPlace, Wire

_MAX_INTEGER = 2**53
# Between two items of a conversation, as most clients write them.
_ITEM_GAP = re.compile(
    rb'\}\s*,\s*(?=\{\s*"(?:role"|parts"|content"|type"\s*:\s*"(?:message|reasoning|function_call)))'
)
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_decode_items = msgspec.json.Decoder(list[Raw]).decode

SealBlocks = Callable[[Sequence[PlacedBlock]], str | None]
OpenEnvelope = Callable[[str], Opened | Rejected]


class ReplySealer:
    """Seals the reasoning of one reply for the caller: a `ReasoningMapper` of `segue.reply`.

    `prefix` is the digest of the prompt for models that accept reasoning only after the same prompt (ANT-28).
    """

    def __init__(self, caller: Wire, model: str, seal: SealBlocks, *, prefix: str | None = None) -> None:
        self._place: ReasoningPlace | None = caller.reasoning_place
        self._origin = Origin(caller.provider, identity="absent")
        self._model = model
        self._seal = seal
        self._prefix = prefix
        self._calls_before = 0
        self._blocks: list[PlacedBlock] = []
        self._unplaced: list[Thinking] = []
        self._unsealed: list[PlacedBlock] = []
        self.calls: list[tuple[ToolCall, str]] = []
        """The calls of the reply, with the ids that the caller gets."""

    @property
    def blocks(self) -> Sequence[PlacedBlock]:
        """All reasoning of the reply so far."""
        return [*self._blocks, *((2 * self._calls_before, block) for block in self._unplaced)]

    def map_start(self, block: Thinking) -> Thinking:
        in_place = self._place in ("signature", "encrypted")
        return Thinking(origin=self._origin) if in_place else Thinking(origin=block.origin)

    def map_block(self, block: Thinking) -> Thinking | None:
        if not has_reasoning_content(block.text, block.signature, block.encrypted):
            return None
        recorded = self._record(block)
        self._unplaced.append(recorded)
        if self._place is None or self._place == "call":
            return Thinking(block.text, origin=block.origin) if block.text else None
        envelope = self._seal([(2 * self._calls_before, recorded)])
        if envelope is None:
            return Thinking(block.text, origin=self._origin) if block.text else None
        if self._place == "encrypted" or not block.text:
            return Thinking(block.text, encrypted=envelope, origin=self._origin)
        return Thinking(block.text, envelope, origin=self._origin)

    def blocks_before(self, block: Block) -> list[Block]:
        """Place the reasoning since the last block before this one, and return its envelope where a call carries it."""
        position = 2 * self._calls_before + _is_client_call(block)
        placed = [(position, thinking) for thinking in self._unplaced]
        self._unplaced = []
        self._blocks += placed
        self._unsealed += placed
        self._calls_before += _is_client_call(block)
        if self._place != "call" or not self._unsealed or not isinstance(block, ToolCall):
            return []
        envelope = self._seal(self._unsealed)
        self._unsealed = []
        return [] if envelope is None else [Thinking(signature=envelope, origin=self._origin)]

    def add_call(self, call: ToolCall, given_id: str) -> None:
        if _is_client_call(call):
            self.calls.append((call, given_id))

    def _record(self, block: Thinking) -> Thinking:
        """Return the block with the model and the prefix that it is bound to."""
        origin = block.origin
        if origin.model is None:
            origin = msgspec.structs.replace(origin, model=self._model)
        return msgspec.structs.replace(block, origin=origin, prefix=block.prefix or self._prefix)


class ReasoningRestorer:
    """Restores the reasoning of earlier replies in a caller's request: the `transform` of a conversion.

    `find_entry` returns the entry of the store for a call, by its id and the digest of the conversation up to it.
    The digests are those of `digest_calls`.
    """

    def __init__(
        self,
        place: ReasoningPlace | None,
        open_envelope: OpenEnvelope,
        find_entry: Callable[[str, str], str | None] = lambda call_id, digest: None,
    ) -> None:
        self._place = place
        self._open = open_envelope
        self._find_entry = find_entry

    def __call__(self, request: Request, report: Report) -> Request:
        digests = digest_calls(request.messages)
        messages = tuple(
            self._restore(message, digest, report) if message.speaker == "ai" else message
            for message, digest in zip(request.messages, digests, strict=True)
        )
        return msgspec.structs.replace(request, messages=messages)

    def _restore(self, message: Message, digest: str, report: Report) -> Message:
        envelopes = list(_find_envelopes(message))
        if not envelopes:
            return self._restore_entry(message, digest, report)
        opened = {id(block): self._open_reported(text, report) for block, text in envelopes}
        if self._place == "call":
            positioned = [pair for found in opened.values() if found is not None for pair in found.blocks]
            return _insert(message, positioned)
        blocks: list[Block] = []
        for block in message.blocks:
            found = opened.get(id(block))
            if id(block) not in opened:
                blocks.append(block)
            elif found is not None:
                blocks += [thinking for _, thinking in found.blocks]
        return message.with_blocks(tuple(blocks))

    def _restore_entry(self, message: Message, digest: str, report: Report) -> Message:
        call_id = first_call_id(message)
        entry = None if call_id is None else self._find_entry(call_id, digest)
        found = None if entry is None else self._open_reported(entry, report)
        return message if found is None else _insert(message, found.blocks)

    def _open_reported(self, envelope: str, report: Report) -> Opened | None:
        opened = self._open(envelope)
        if isinstance(opened, Opened):
            return opened
        report.add("reasoning", f"sealed reasoning dropped: {opened.message}", subject="envelope")
        return None


def first_call_id(message: Message) -> str | None:
    """Return the id under which the reasoning of a message is stored: that of its first call."""
    return next((call.origin.raw_id for call in calls_of(message) if call.kind != "hosted"), None)


def has_sealed_reasoning(request: Request) -> bool:
    return any(True for message in request.messages for _ in _find_envelopes(message))


def _find_envelopes(message: Message) -> Iterator[tuple[Thinking, str]]:
    for block in message.blocks:
        if isinstance(block, Thinking):
            for text in (block.signature, block.encrypted):
                if is_envelope(text):
                    yield block, text
                    break


def _is_client_call(block: Block) -> bool:
    return isinstance(block, ToolCall) and block.kind != "hosted"


def _insert(message: Message, positioned: Sequence[PlacedBlock]) -> Message:
    """Return the message with this reasoning, at its positions, in place of all that it has."""
    rest = [block for block in message.blocks if not isinstance(block, Thinking)]
    count = sum(map(_is_client_call, rest))
    last = 2 * count - 1 if count else 1

    def find_at(position: int) -> list[Thinking]:
        return [thinking for place, thinking in positioned if min(place, last) == position]

    blocks: list[Block] = [*find_at(0)]
    calls = 0
    for block in rest:
        if _is_client_call(block):
            calls += 1
            blocks += [*find_at(2 * calls - 1), block, *find_at(2 * calls)]
        else:
            blocks.append(block)
    return message.with_blocks((*blocks, *(() if count else find_at(1))))


# -------------------------------------------------------------------------------------------------------------- digests


def digest_calls(messages: Sequence[Message]) -> list[str]:
    """Return for each message a digest of the conversation up to its first call.

    It covers the user's texts, without reminders, and the tool calls. Results, system text and the texts of replies are
    not part of it: clients shorten or drop them.
    """
    running = sha256()
    digests: list[str] = []
    for message in messages:
        parts = list(_identify(message))
        at_call = running.copy()
        at_call.update(b"".join(parts[:1]))
        digests.append(at_call.hexdigest())
        running.update(b"".join(parts))
    return digests


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
            yield encode_json([block.name, _normalize(block.arguments), block.arguments_text or ""])
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

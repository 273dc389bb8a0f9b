"""Parses ConverseStream, as an AWS event stream or as boto3 decodes it. Text blocks have no start event."""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import partial
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.jsontext import plain
from segue.canonical.request import Reply
from segue.errors import InputError
from segue.wire.bedrock.items import parse_content
from segue.wire.bedrock.reply import parse_error, parse_reply
from segue.wire.bedrock.traits import API
from segue.wire.fields import JsonObject, integer_or_none, object_or_none, string_or_none
from segue.wire.framing import EXCEPTION
from segue.wire.stream_pieces import grown, written_out
from segue.wire.stream_slots import BlockReader, Slot

__all__ = ["BedrockReader"]

_GROW = "contentBlockDelta"
_EVENTS = (_GROW, "contentBlockStart", "contentBlockStop", "messageStart", "messageStop", "metadata")
# Every payload is padded under this key to hide its length.
_PADDING = "p"
_TEXT, _CALL, _THOUGHT, _SEALED = "text", "toolUse", "reasoningContent", "redactedContent"


class _Slot(Slot):
    """An open block, keyed by index and kind. `input_parts` also collects deltas other than text."""

    __slots__ = ("index", "kind", "signature")

    def __init__(self, index: object, kind: str) -> None:
        super().__init__((index, kind), {})
        self.index = index
        self.kind = kind
        self.signature: list[str] = []


class BedrockReader(BlockReader[_Slot]):
    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._around: JsonObject = {}
        self._role: JsonObject = {"role": "assistant"}
        self._begun = 0
        # Hosted calls, by whose ids their results are recognised.
        self._server: list[JsonObject] = []

    def read(self, payload: JsonObject, name: str | None) -> None:
        event = payload if name == _GROW else payload.get(_GROW) if name is None else None
        if type(event) is dict and self._went_on(cast("JsonObject", event) if name is None else payload):
            return None
        return self._read_any(cast("JsonObject", plain(payload)), name)

    def _went_on(self, event: JsonObject) -> bool:
        """Parses a text or input delta of an open block; False for any other event."""
        index = event.get("contentBlockIndex")
        if type(index) is not int or type(event.get("delta")) is not dict or len(event["delta"]) != 1:
            return False
        delta: JsonObject = event["delta"]
        text = delta.get(_TEXT)
        if text is not None:
            slot = self.slots.get((index, _TEXT))
            if slot is not None and type(text) is str:
                self.text(slot.place, text)
                if _PADDING not in event:
                    self.expect(_TEXT, text, partial(self.text, slot.place))
                return True
        elif type(delta.get(_CALL)) is dict:
            slot = self.slots.get((index, _CALL))
            text = delta[_CALL].get("input")
            if slot is not None and slot.call is not None and slot.begun and type(text) is str:
                self.input(slot.place, text)
                if _PADDING not in event:
                    self.expect("input", text, partial(self.input, slot.place))
                return True
        return False

    def _read_any(self, payload: JsonObject, name: str | None) -> None:
        if self.at_once is not None:
            return None
        if name is not None and name.startswith(EXCEPTION):
            return self._fail(name.removeprefix(EXCEPTION), payload)
        if name in _EVENTS:
            return self._read_event(name, object_or_none(payload.get(name)) or payload)
        known = False
        for kind, value in payload.items():
            inner = object_or_none(value)
            if kind in _EVENTS and inner is not None:
                known = True
                self._read_event(kind, inner)
            elif kind.endswith("Exception"):
                known = True
                self._fail(kind, inner or {})
        if not known and name is None:
            self._read_beside(payload)
        return None

    def _read_beside(self, payload: JsonObject) -> None:
        """A payload that is not an event: a complete reply, an error, or anything else, which is ignored."""
        if object_or_none(payload.get("output")) is not None:
            if not self.opened:
                self.at_once = self.tell_at_once(parse_reply(payload))
        elif "__type" in payload or string_or_none(payload.get("message") or payload.get("Message")):
            self.failed = parse_error(0, payload)

    def _fail(self, kind: str, error: JsonObject) -> None:
        """Records an exception; in a stream its name begins with a lower-case letter, elsewhere with a capital."""
        self.failed = parse_error(0, {**error, "__type": kind[:1].upper() + kind[1:]})

    def _read_event(self, kind: str, event: JsonObject) -> None:
        self.open(None, None, native=Native(API, self._around, intact=False))
        event.pop(_PADDING, None)
        index = integer_or_none(event.get("contentBlockIndex"))
        match kind:
            case "contentBlockStart":
                self.end_stopped()
                for member, value in (object_or_none(event.get("start")) or {}).items():
                    if value is not None:
                        self._begin(index, member, value)
            case "contentBlockDelta":
                for member, value in (object_or_none(event.get("delta")) or {}).items():
                    if value is not None:
                        self._grow(index, member, value)
            case "contentBlockStop":
                self._stop(index)
            case "messageStart":
                self._role.update(event)
            case _:
                self._around.update(event)
                if self.at_end():
                    self.end_slots(finished=True)

    def stop_reason(self) -> object:
        return self._around.get("stopReason")

    # ---------------------------------------------------------------------------------------------------------- blocks

    def _begin(self, index: int | None, kind: str, value: object) -> _Slot:
        self._begun += 1
        slot = _Slot(index if index is not None else f"no index {self._begun}", kind)
        if slot.key in self.slots:
            self.end_slot(self.slots[slot.key])
        self.slots[slot.key] = slot
        if kind == _CALL:
            self._begin_call(slot, object_or_none(value) or {})
        elif kind == _TEXT:
            self.place(slot, self.start(Text("")))
            self.text(slot.place, value if isinstance(value, str) else "")
        elif kind in (_THOUGHT, _SEALED):
            self.place(slot, self.start(Thinking(origin=Origin(API, identity="absent"))))
        else:
            slot.pieces.append(value)
        return slot

    def _begin_call(self, slot: _Slot, used: JsonObject) -> None:
        fragment: JsonObject = {_CALL: {**used, "input": {}}}
        slot.fragment = fragment
        parsed, _ = parse_content([fragment], None)
        call = cast("ToolCall", parsed[0])
        if call.kind != "hosted":
            native = Native(API, {_CALL: used}, intact=False)
            slot.call = self.named(msgspec.structs.replace(call, native=native))
            self.place(slot, self.start(slot.call))
        given = used.get("input")
        if given not in (None, {}, ""):
            self.take_input(slot, written_out(given))

    def _grow(self, index: int | None, kind: str, value: Any) -> None:
        if kind == _TEXT:
            if isinstance(value, str):
                self.text(self._speaking(index, _TEXT).place, value)
        elif kind == _CALL:
            text = (object_or_none(value) or {}).get("input")
            if text not in (None, ""):
                self.take_input(self._taking_input(index), written_out(text))
        elif kind == _THOUGHT:
            self._grow_thought(index, object_or_none(value) or {})
        elif kind == "citation":
            self._speaking(index, _TEXT).pieces.append(value)
        elif kind != "cachePoint":
            self._speaking(index, kind).pieces.append({"content": value} if kind == "toolResult" else value)

    def _grow_thought(self, index: int | None, delta: JsonObject) -> None:
        if isinstance(text := delta.get("text"), str):
            self.thinking(self._speaking(index, _THOUGHT).place, text)
        if isinstance(signature := delta.get("signature"), str):
            self._speaking(index, _THOUGHT).signature.append(signature)
        if isinstance(sealed := delta.get(_SEALED), str):
            self._speaking(index, _SEALED).pieces.append(sealed)
        rest = {key: value for key, value in delta.items() if key not in ("text", "signature", _SEALED)}
        if rest:
            self._speaking(index, _THOUGHT).pieces.append(rest)

    def _speaking(self, index: int | None, kind: str) -> _Slot:
        """The open block of this kind that a delta belongs to; a missing one is started, as always for text."""
        if index is None:
            slot = next((slot for slot in reversed(self.slots.values()) if slot.kind == kind), None)
        else:
            slot = self.slots.get((index, kind))
        if slot is None:
            self.end_stopped()
            slot = self._begin(index, kind, None)
        return slot

    def _taking_input(self, index: int | None) -> _Slot:
        """The open call that an input delta belongs to; raises `InputError` where that is ambiguous."""
        slot = self.slots.get((index, _CALL))
        if slot is not None:
            return slot
        calls = [slot for slot in self.slots.values() if slot.kind == _CALL]
        if (index, _CALL) in self.closed or not calls or (index is not None and len(calls) > 1):
            raise InputError("input delta for a call that has not started or has ended", path="contentBlockIndex")
        return calls[-1]

    def _stop(self, index: int | None) -> None:
        if index is None:
            slots = [slot for slot in reversed(self.slots.values()) if not slot.stopped][:1]
        else:
            slots = [slot for slot in self.slots.values() if slot.index == index]
        for slot in slots:
            self.stop_slot(slot)

    # ------------------------------------------------------------------------------------------------------------ ends

    def block_of(self, slot: _Slot, *, ended: bool) -> Block | None:
        if slot.kind == _CALL:
            slot.fragment = {_CALL: {**slot.fragment[_CALL], "input": self.input_of(slot, ended=ended)}}
        else:
            slot.fragment = self._fragment(slot)
        blocks, _ = parse_content([*self._server, slot.fragment], None)
        if len(blocks) == len(self._server):
            return None
        block = blocks[-1]
        if isinstance(block, ToolCall) and block.kind == "hosted":
            self._server.append(slot.fragment)
        return block

    def _fragment(self, slot: _Slot) -> JsonObject:
        """The block as in a complete reply."""
        match slot.kind:
            case "text":
                text = self.ended(slot.place)
                if not slot.pieces or not text:
                    return {_TEXT: text}
                return {"citationsContent": {"content": [{"text": text}], "citations": slot.pieces}}
            case "reasoningContent":
                signed = {"signature": _once(slot.signature)} if slot.signature else {}
                thought = {"reasoningText": {"text": self.ended(slot.place), **signed}}
                return {_THOUGHT: {**cast("JsonObject", grown(slot.pieces) or {}), **thought}}
            case "redactedContent":
                return {_THOUGHT: {_SEALED: _blob(slot.pieces)}}
            case kind:
                return {kind: grown(slot.pieces)}

    def reply_of(self, content: list[JsonObject]) -> Reply:
        return parse_reply({**self._around, "output": {"message": {**self._role, "content": content}}})


def _once(signature: list[str]) -> str:
    """The signature, sent in parts or repeated."""
    return signature[0] if len(set(signature)) == 1 else "".join(signature)


def _blob(pieces: list[str]) -> str:
    """Joins base64 data that was encoded in parts."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except ValueError:
        return "".join(pieces)

"""Parses streams of the Messages API, tolerant of servers that number, start or stop blocks in other ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.jsontext import plain
from segue.canonical.request import Reply
from segue.errors import InputError
from segue.wire.anthropic.items import API, parse_content
from segue.wire.anthropic.reply import parse_error, parse_reply
from segue.wire.fields import JsonObject, integer_or_none, object_or_none, string_or_none
from segue.wire.stream_pieces import PLACEHOLDERS, grown, written_out
from segue.wire.stream_slots import BlockReader, Slot

__all__ = ["AnthropicReader"]

# Block type → the field that is streamed, its delta type, and the key of the delta.
_GROWS = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
}
_NOTHING = ("", "", "")
_DELTAS = {delta: grows for grows, delta, _ in _GROWS.values()}
# Fields that a delta of unknown type cannot change.
_SETTLED = frozenset({"type", "id", "name", "tool_use_id", "input"})


class _Slot(Slot):
    """`kind` is the block type, `extra_deltas` the deltas of fields other than text and input."""

    __slots__ = ("delta", "delta_key", "grows", "kind", "more")

    def __init__(self, key: object, fragment: JsonObject) -> None:
        super().__init__(key, fragment)
        self.kind = fragment.get("type")
        known = _GROWS.get(self.kind, _NOTHING) if isinstance(self.kind, str) else _NOTHING
        self.grows, self.delta, self.delta_key = known
        self.more: list[JsonObject] = []


class AnthropicReader(BlockReader[_Slot]):
    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._message: JsonObject = {"type": "message", "role": "assistant"}
        self._model: str | None = None
        self._begun = 0

    def read(self, payload: JsonObject, name: str | None) -> None:
        if payload.get("type") == "content_block_delta":
            index = payload.get("index")
            slot = self.slots.get(index) if type(index) is int else None
            if slot is not None and type(payload.get("delta")) is dict:
                delta: JsonObject = payload["delta"]
                kind = delta.get("type")
                if kind == slot.delta and type(text := delta.get(slot.delta_key)) is str:
                    if kind == "text_delta":
                        return self._went_on(self.text, slot, text)
                    if kind == "thinking_delta":
                        return self._went_on(self.thinking, slot, text)
                    if slot.begun:
                        return self._went_on(self.input, slot, text)
        return self._read_event(cast("JsonObject", plain(payload)), name)

    def _went_on(self, emit: Callable[[int, str], None], slot: _Slot, text: str) -> None:
        emit(slot.place, text)
        self.expect(slot.delta_key, text, partial(emit, slot.place))

    def _read_event(self, payload: JsonObject, name: str | None) -> None:
        if self.at_once is not None:
            return
        kind = string_or_none(payload.get("type")) or name
        index = integer_or_none(payload.get("index"))
        if kind in ("message_start", "message_delta", "content_block_start", "content_block_delta"):
            self._open_reply(object_or_none(payload.get("message")) or {} if kind == "message_start" else {})
        match kind:
            case "message_start":
                content = (object_or_none(payload.get("message")) or {}).get("content")
                for place, block in enumerate(cast("list[object]", content) if isinstance(content, list) else []):
                    self._begin(place, block)
            case "content_block_start":
                self._begin(index, payload.get("content_block"))
            case "content_block_delta":
                self._grow(index, object_or_none(payload.get("delta")) or {})
            case "content_block_stop":
                self._stop(index)
            case "message_delta" | "message_stop":
                self._read_end(payload, kind)
            case "error":
                self._fail(payload)
            case "ping":
                pass
            case _:
                self._read_beside(payload)

    def _read_beside(self, payload: JsonObject) -> None:
        """A payload that is not an event: a complete message, an error, or anything else, which is ignored."""
        if isinstance(payload.get("content"), list) and payload.get("role", "assistant") == "assistant":
            if not self.opened:
                self.at_once = self.tell_at_once(parse_reply(payload))
        elif payload.get("error"):
            self._fail(payload)

    def _fail(self, payload: JsonObject) -> None:
        error = payload.get("error")
        self.failed = parse_error(0, {"error": {"message": error}} if isinstance(error, str) else payload)

    # --------------------------------------------------------------------------------------------------- reply fields

    def _open_reply(self, message: JsonObject) -> None:
        self._note({key: value for key, value in message.items() if key != "content"})
        if not self.opened:
            # `native` refers to the message that is updated below, so at the end it has the final fields.
            self._model = string_or_none(self._message.get("model"))
            self.open(
                string_or_none(self._message.get("id")), self._model, native=Native(API, self._message, intact=False)
            )

    def _note(self, fields: Mapping[str, Any]) -> None:
        """Merges fields of the message: usage by member, of any other field the last value wins."""
        for key, value in fields.items():
            known = self._message.get(key)
            if key == "usage" and isinstance(known, dict) and isinstance(value, dict):
                counts = {name: count for name, count in cast("JsonObject", value).items() if count is not None}
                self._message[key] = {**cast("JsonObject", known), **counts}
            elif value is not None or key not in self._message:
                self._message[key] = value

    def _read_end(self, payload: JsonObject, kind: str) -> None:
        self._note({key: value for key, value in payload.items() if key not in ("type", "delta")})
        self._note(object_or_none(payload.get("delta")) or {})
        self.done = self.done or kind == "message_stop"
        if self.at_end():
            self.end_slots(finished=True)

    def stop_reason(self) -> object:
        return self._message.get("stop_reason")

    # ---------------------------------------------------------------------------------------------------------- blocks

    def _begin(self, index: int | None, value: object) -> _Slot:
        """Starts a block. A block that is still open under the same index ends, even without a stop event."""
        self.end_stopped()
        self._begun += 1
        key = index if index is not None else ("no index", self._begun)
        if key in self.slots:
            self.end_slot(self.slots[key])
        fragment = object_or_none(value)
        if fragment is None:
            raise InputError("a content block was expected", path="content_block")
        return self._begin_as(_Slot(key, fragment))

    def _begin_as(self, slot: _Slot) -> _Slot:
        fragment = slot.fragment
        native = Native(API, dict(fragment), intact=False)
        self.slots[slot.key] = slot
        match slot.kind:
            case "text":
                self.place(slot, self.start(Text("", native=native)))
                self.text(slot.place, string_or_none(fragment.get("text")) or "")
            case "thinking":
                self.place(slot, self.start(Thinking(origin=self._origin(), native=native)))
                self.thinking(slot.place, string_or_none(fragment.get("thinking")) or "")
            case "redacted_thinking":
                self.place(slot, self.start(Thinking(origin=self._origin())))
            case "tool_use":
                (call,) = parse_content([{**fragment, "input": {}}], self._model)
                slot.call = self.named(msgspec.structs.replace(cast("ToolCall", call), native=native))
                self.place(slot, self.start(slot.call))
                slot.given = _given(fragment.get("input"))
            case _:
                slot.given = _given(fragment.get("input"))
                self._note_fallback(fragment)
        return slot

    def _note_fallback(self, fragment: JsonObject) -> None:
        """A fallback block names the model that continues, which becomes the model of the reply."""
        model = (object_or_none(fragment.get("to")) or {}).get("model") if fragment.get("type") == "fallback" else None
        if isinstance(model, str):
            self._message["model"] = self._model = model

    def _origin(self) -> Origin:
        return Origin(API, self._model, identity="absent")

    def _grow(self, index: int | None, delta: JsonObject) -> None:
        kind = delta.get("type")
        grows = _DELTAS.get(kind, "") if isinstance(kind, str) else ""
        if grows == "input":
            text = delta.get("partial_json")
            if text not in (None, ""):
                self._grow_input(self._taking_input(index), written_out(text))
        elif grows:
            slot = self._speaking(index, grows)
            emit = self.text if grows == "text" else self.thinking
            emit(slot.place, string_or_none(delta.get(grows)) or "")
        elif kind == "signature_delta":
            self._speaking(index, "thinking").fragment["signature"] = delta.get("signature")
        elif (slot := self._at(index)) is not None:
            if kind == "citations_delta":
                slot.more.append({"citations": [delta.get("citation")]})
            else:
                slot.more.append({key: value for key, value in delta.items() if key not in _SETTLED | {slot.grows}})

    def _at(self, index: int | None) -> _Slot | None:
        if index is not None:
            return self.slots.get(index)
        return next(reversed(self.slots.values()), None)

    def _speaking(self, index: int | None, kind: str) -> _Slot:
        """The open block of this kind that a delta belongs to; a missing one is started."""
        slot = self._at(index)
        if slot is not None and slot.kind == kind:
            return slot
        if index is None:
            slot = next((slot for slot in reversed(self.slots.values()) if slot.kind == kind), None)
            return slot or self._begin(None, {"type": kind, kind: ""})
        stray = (index, kind)
        if stray in self.slots:
            return self.slots[stray]
        fragment = {"type": kind, kind: ""}
        return self._begin_as(_Slot(stray, fragment)) if slot is not None else self._begin(index, fragment)

    def _taking_input(self, index: int | None) -> _Slot:
        """The open call that an input delta belongs to; raises `InputError` where that is ambiguous."""
        slot = self._at(index)
        if slot is not None and index is not None and slot.grows in ("input", ""):
            return slot
        taking = [slot for slot in self.slots.values() if slot.kind == "tool_use" or "input" in slot.fragment]
        if index in self.closed or not taking or (index is not None and len(taking) > 1):
            raise InputError("input delta for a call that has not started or has ended", path="index")
        return taking[-1]

    def _grow_input(self, slot: _Slot, text: str) -> None:
        if not slot.begun and text.strip() in PLACEHOLDERS:
            slot.given = slot.given or text
            return
        self.take_input(slot, text)

    def _stop(self, index: int | None) -> None:
        slot = self._at(index)
        for stray in [other for key, other in self.slots.items() if isinstance(key, tuple) and key[0] == index]:
            self.end_slot(stray)
        if slot is not None and slot.key in self.slots:
            self.stop_slot(slot)

    # ------------------------------------------------------------------------------------------------------------ ends

    def block_of(self, slot: _Slot, *, ended: bool) -> Block:
        fragment = slot.fragment
        if slot.grows in ("text", "thinking"):
            fragment[slot.grows] = self.ended(slot.place)
        if slot.call or slot.begun or "input" in fragment:
            if not slot.begun and slot.given:
                self.take_input(slot, slot.given)
            # ANT-37: an empty text means no arguments
            fragment["input"] = self.input_of(slot, ended=ended)
        if slot.more:
            slot.fragment = cast("JsonObject", grown([fragment, *slot.more]))
        (block,) = parse_content([slot.fragment], self._model)
        return block

    def reply_of(self, content: list[JsonObject]) -> Reply:
        return parse_reply({**self._message, "content": content})


def _given(value: object) -> str:
    """Input in the start event: complete, or empty if deltas follow."""
    return "" if value == {} else written_out(value)

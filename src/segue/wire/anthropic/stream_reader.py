"""Server-sent events of a message to events: its blocks, put together from deltas however a server numbers, begins and
ends them."""

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
from segue.wire.anthropic.reply import (
    parse_error,
    parse_reply,
)
from segue.wire.fields import JsonObject, integer_or_none, object_or_none, string_or_none
from segue.wire.stream_pieces import PLACEHOLDERS, grown, input_value, written_out
from segue.wire.stream_reader import ENDED_EARLY, Reader

__all__ = ["AnthropicReader"]

_FULL = frozenset({"max_tokens", "model_context_window_exceeded"})
# By the type of a block what grows in it, and the deltas that tell it.
_GROWS = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
}
_NOTHING = ("", "", "")
_DELTAS = {delta: grows for grows, delta, _ in _GROWS.values()}
# What a delta of an unknown type can't add to.
_SETTLED = frozenset({"type", "id", "name", "tool_use_id", "input"})


class _Slot:
    """A block that is being told. `place` is its number among the events, as soon as it has one."""

    __slots__ = (
        *("begun", "call", "delta", "delta_key", "fragment", "given", "grows", "key"),
        *("kind", "more", "pieces", "place", "stopped"),
    )

    def __init__(self, key: object, fragment: JsonObject) -> None:
        self.key = key
        self.fragment = fragment
        self.kind = fragment.get("type")
        known = _GROWS.get(self.kind, _NOTHING) if isinstance(self.kind, str) else _NOTHING
        self.grows, self.delta, self.delta_key = known
        self.place = -1
        self.call: ToolCall | None = None
        # Input that stood in the first event; whether more came; and that of what the provider runs.
        self.given = ""
        self.begun = False
        self.pieces: list[str] = []
        self.more: list[JsonObject] = []
        self.stopped = False


class AnthropicReader(Reader):
    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._message: JsonObject = {"type": "message", "role": "assistant"}
        self._model: str | None = None
        self._open: dict[object, _Slot] = {}
        self._ended: set[object] = set()
        self._told: list[_Slot] = []
        self._blocks: dict[int, Block] = {}
        self._begun = 0
        self._stopped = False
        self._at_once: Reply | None = None

    def read(self, payload: JsonObject, name: str | None) -> None:
        if payload.get("type") == "content_block_delta":
            index = payload.get("index")
            slot = self._open.get(index) if type(index) is int else None
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

    def _went_on(self, tell: Callable[[int, str], None], slot: _Slot, text: str) -> None:
        tell(slot.place, text)
        self.expect(slot.delta_key, text, partial(tell, slot.place))

    def _read_event(self, payload: JsonObject, name: str | None) -> None:
        if self._at_once is not None:
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
        """What is no event: the message at once, an error, or something that says nothing."""
        if isinstance(payload.get("content"), list) and payload.get("role", "assistant") == "assistant":
            if not self.opened:
                self._at_once = self.tell_at_once(parse_reply(payload))
        elif payload.get("error"):
            self._fail(payload)

    def _fail(self, payload: JsonObject) -> None:
        said = payload.get("error")
        self.failed = parse_error(0, {"error": {"message": said}} if isinstance(said, str) else payload)

    # -------------------------------------------------------------------------------------------------- what is around

    def _open_reply(self, message: JsonObject) -> None:
        self._note({key: value for key, value in message.items() if key != "content"})
        if not self.opened:
            # What is said around a reply grows with it: at its end, `native` holds what the end said.
            self._model = string_or_none(self._message.get("model"))
            self.open(
                string_or_none(self._message.get("id")), self._model, native=Native(API, self._message, intact=False)
            )

    def _note(self, said: Mapping[str, Any]) -> None:
        """Counts are told again with more; for the rest, what is said last holds."""
        for key, value in said.items():
            known = self._message.get(key)
            if key == "usage" and isinstance(known, dict) and isinstance(value, dict):
                told = {name: count for name, count in cast("JsonObject", value).items() if count is not None}
                self._message[key] = {**cast("JsonObject", known), **told}
            elif value is not None or key not in self._message:
                self._message[key] = value

    def _read_end(self, payload: JsonObject, kind: str) -> None:
        self._note({key: value for key, value in payload.items() if key not in ("type", "delta")})
        self._note(object_or_none(payload.get("delta")) or {})
        self._stopped = self._stopped or kind == "message_stop"
        if self._at_end():
            self._end_all(finished=True)

    def _at_end(self) -> bool:
        return self._stopped or self.done or self._message.get("stop_reason") is not None

    # ---------------------------------------------------------------------------------------------------------- blocks

    def _begin(self, index: int | None, value: object) -> _Slot:
        """A block begins. One that is still open under the same number has ended, stop or not."""
        for slot in [slot for slot in self._open.values() if slot.stopped]:
            self._end(slot)
        self._begun += 1
        key = index if index is not None else ("no index", self._begun)
        if key in self._open:
            self._end(self._open[key])
        fragment = object_or_none(value)
        if fragment is None:
            raise InputError("a content block was expected", path="content_block")
        return self._begin_as(_Slot(key, fragment))

    def _begin_as(self, slot: _Slot) -> _Slot:
        fragment = slot.fragment
        beside = Native(API, dict(fragment), intact=False)
        self._open[slot.key] = slot
        match slot.kind:
            case "text":
                self._place(slot, self.start(Text("", native=beside)))
                self.text(slot.place, string_or_none(fragment.get("text")) or "")
            case "thinking":
                self._place(slot, self.start(Thinking(origin=self._origin(), native=beside)))
                self.thinking(slot.place, string_or_none(fragment.get("thinking")) or "")
            case "redacted_thinking":
                self._place(slot, self.start(Thinking(origin=self._origin())))
            case "tool_use":
                (call,) = parse_content([{**fragment, "input": {}}], self._model)
                slot.call = self.named(msgspec.structs.replace(cast("ToolCall", call), native=beside))
                self._place(slot, self.start(slot.call))
                slot.given = _given(fragment.get("input"))
            case _:
                slot.given = _given(fragment.get("input"))
                self._note_fallback(fragment)
        return slot

    def _note_fallback(self, fragment: JsonObject) -> None:
        """Where another model goes on, it is the one that the reply is of."""
        model = (object_or_none(fragment.get("to")) or {}).get("model") if fragment.get("type") == "fallback" else None
        if isinstance(model, str):
            self._message["model"] = self._model = model

    def _place(self, slot: _Slot, place: int) -> None:
        slot.place = place
        self._told.append(slot)

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
            tell = self.text if grows == "text" else self.thinking
            tell(slot.place, string_or_none(delta.get(grows)) or "")
        elif kind == "signature_delta":
            self._speaking(index, "thinking").fragment["signature"] = delta.get("signature")
        elif (slot := self._at(index)) is not None:
            if kind == "citations_delta":
                slot.more.append({"citations": [delta.get("citation")]})
            else:
                slot.more.append({key: value for key, value in delta.items() if key not in _SETTLED | {slot.grows}})

    def _at(self, index: int | None) -> _Slot | None:
        if index is not None:
            return self._open.get(index)
        return next(reversed(self._open.values()), None)

    def _speaking(self, index: int | None, kind: str) -> _Slot:
        """The open block of this kind that a delta goes on with. One that nobody began begins here."""
        slot = self._at(index)
        if slot is not None and slot.kind == kind:
            return slot
        if index is None:
            slot = next((slot for slot in reversed(self._open.values()) if slot.kind == kind), None)
            return slot or self._begin(None, {"type": kind, kind: ""})
        stray = (index, kind)
        if stray in self._open:
            return self._open[stray]
        fragment = {"type": kind, kind: ""}
        return self._begin_as(_Slot(stray, fragment)) if slot is not None else self._begin(index, fragment)

    def _taking_input(self, index: int | None) -> _Slot:
        """The open call that a delta goes on with. Input that could be any call's, or none's, is no reply's."""
        slot = self._at(index)
        if slot is not None and index is not None and slot.grows in ("input", ""):
            return slot
        taking = [slot for slot in self._open.values() if slot.kind == "tool_use" or "input" in slot.fragment]
        if index in self._ended or not taking or (index is not None and len(taking) > 1):
            raise InputError("input for a call that was not begun or has ended", path="index")
        return taking[-1]

    def _grow_input(self, slot: _Slot, text: str) -> None:
        if not slot.begun and text.strip() in PLACEHOLDERS:
            slot.given = slot.given or text
            return
        self._take_input(slot, text)

    def _take_input(self, slot: _Slot, text: str) -> None:
        slot.begun = True
        if slot.call is not None:
            self.input(slot.place, text)
        else:
            slot.pieces.append(text)

    def _stop(self, index: int | None) -> None:
        slot = self._at(index)
        for stray in [other for key, other in self._open.items() if isinstance(key, tuple) and key[0] == index]:
            self._end(stray)
        if slot is None or slot.key not in self._open:
            return
        if slot.call is not None and not slot.begun and not slot.given:
            # Whether it has no arguments, or was cut off before they came, the end of the reply tells.
            slot.stopped = True
        else:
            self._end(slot)

    # ------------------------------------------------------------------------------------------------------------ ends

    def _end_all(self, *, finished: bool) -> None:
        full = string_or_none(self._message.get("stop_reason")) in _FULL
        for slot in list(self._open.values()):
            last = slot is next(reversed(self._open.values()))
            self._end(slot, ended=finished and not (full and last))

    def _end(self, slot: _Slot, *, ended: bool = True) -> None:
        del self._open[slot.key]
        self._ended.add(slot.key)
        fragment = slot.fragment
        if slot.grows in ("text", "thinking"):
            fragment[slot.grows] = self.ended(slot.place)
        broken = self._end_input(slot, ended=ended) if slot.call or slot.begun or "input" in fragment else False
        if slot.more:
            fragment = slot.fragment = cast("JsonObject", grown([fragment, *slot.more]))
        (block,) = parse_content([fragment], self._model)
        if isinstance(block, ToolCall):
            block = self.named(block) if slot.call is None else msgspec.structs.replace(block, id=slot.call.id)
            if broken:
                text = fragment["input"]
                block = msgspec.structs.replace(block, arguments=None, arguments_text=text, broken=True)
        if slot.place < 0:
            self._place(slot, self.whole(block))
        else:
            self.end(slot.place, cast("Text | Thinking | ToolCall", block))
        self._blocks[slot.place] = block

    def _end_input(self, slot: _Slot, *, ended: bool) -> bool:
        """Puts the input into the fragment, and says whether it was cut off."""
        if not slot.begun and slot.given:
            self._take_input(slot, slot.given)
        text = self.ended(slot.place) if slot.call is not None else "".join(slot.pieces)
        # ANT-37: an empty text means no arguments
        slot.fragment["input"], broken = input_value(text, ended=ended)
        return broken

    def finish(self) -> Reply:
        if self._at_once is not None:
            return self._at_once
        if not self._at_end() and self.failed is None:
            self.failed = ENDED_EARLY
        self._end_all(finished=self.failed is None)
        reply = parse_reply({**self._message, "content": [slot.fragment for slot in self._told]})
        blocks = tuple(self._blocks[place] for place in range(self.blocks))
        return self.concluded(msgspec.structs.replace(reply, blocks=blocks))


def _given(value: object) -> str:
    """Input that stood at the beginning of a block: all of it, or nothing yet."""
    return "" if value == {} else written_out(value)

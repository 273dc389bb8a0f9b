"""Parses streams of the Messages API, including those of servers that number, start or stop blocks differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.json import to_plain_json
from segue.canonical.request import Reply
from segue.errors import InputError
from segue.wire.anthropic.capabilities import API
from segue.wire.anthropic.items import parse_content
from segue.wire.anthropic.reply import parse_error, parse_reply
from segue.wire.json_values import (
    JsonObject,
    integer_or_none,
    list_or_empty,
    object_or_none,
    optional_object,
    optional_string,
    string_or_none,
)
from segue.wire.stream.block_reader import BlockReader, OpenBlock
from segue.wire.stream.deltas import ARGUMENT_PLACEHOLDERS, arguments_to_text, merge_deltas

# Block type → the field that is streamed, its delta type, and the key of the delta.
_STREAMED_FIELDS = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
}
# Blocks that a delta under the index of another block starts.
_STRAY_KINDS = ("text", "thinking")
_NOT_STREAMED = ("", "", "")
_FIELD_BY_DELTA = {delta: field for field, delta, _ in _STREAMED_FIELDS.values()}
# Fields that a delta of unknown type cannot change.
_FIXED_FIELDS = frozenset({"type", "id", "name", "tool_use_id", "input"})


class _OpenBlock(OpenBlock):
    """`extra_deltas` are the deltas of fields other than text and input."""

    __slots__ = ("delta_key", "delta_type", "extra_deltas", "streamed_field")

    def __init__(self, key: object, fragment: JsonObject) -> None:
        kind = fragment.get("type")
        super().__init__(key, fragment, kind, takes_input=kind == "tool_use" or "input" in fragment)
        known = _STREAMED_FIELDS.get(self.kind, _NOT_STREAMED) if isinstance(self.kind, str) else _NOT_STREAMED
        self.streamed_field, self.delta_type, self.delta_key = known
        self.extra_deltas: list[JsonObject] = []


class AnthropicReader(BlockReader[_OpenBlock]):
    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._message: JsonObject = {"type": "message", "role": "assistant"}
        self._model: str | None = None
        self._start_count = 0

    def read(self, payload: JsonObject, name: str | None) -> None:
        if payload.get("type") == "content_block_delta":
            index = payload.get("index")
            open_block = self.open_blocks.get(index) if type(index) is int else None
            if open_block is not None and type(payload.get("delta")) is dict:
                delta: JsonObject = payload["delta"]
                kind = delta.get("type")
                if kind == open_block.delta_type and type(text := delta.get(open_block.delta_key)) is str:
                    if kind == "text_delta":
                        return self._add_delta(self.add_text, open_block, text)
                    if kind == "thinking_delta":
                        return self._add_delta(self.add_thinking, open_block, text)
                    if open_block.has_input:
                        return self._add_delta(self.add_input, open_block, text)
        # A payload that was decoded from JSON is plain, unless that left half of a surrogate pair.
        is_plain = self.payload and not self.has_split_surrogates
        return self._read_event(payload if is_plain else cast("JsonObject", to_plain_json(payload)), name)

    def _add_delta(self, emit: Callable[[int, str], None], open_block: _OpenBlock, text: str) -> None:
        emit(open_block.block_index, text)
        self.set_delta_template(open_block.delta_key, text, partial(emit, open_block.block_index))

    def _read_event(self, payload: JsonObject, name: str | None) -> None:
        if self.whole_reply is not None:
            return
        kind = string_or_none(payload.get("type")) or name
        index = integer_or_none(payload.get("index"))
        if kind in ("message_start", "message_delta", "content_block_start", "content_block_delta"):
            self._open_reply(object_or_none(payload.get("message")) or {} if kind == "message_start" else {})
        match kind:
            case "message_start":
                content = (object_or_none(payload.get("message")) or {}).get("content")
                for position, block in enumerate(list_or_empty(content)):
                    self._begin(position, block)
            case "content_block_start":
                self._begin(index, payload.get("content_block"))
            case "content_block_delta":
                self._read_delta(index, optional_object(payload.get("delta"), "delta") or {})
            case "content_block_stop":
                self._stop(index)
            case "message_delta" | "message_stop":
                self._read_end(payload, kind)
            case "error":
                self._fail(payload)
            case "ping":
                pass
            case _:
                self._read_non_event(payload)

    def _read_non_event(self, payload: JsonObject) -> None:
        """Parse a payload that is not an event: a complete message or an error; ignore any other."""
        kind = string_or_none(payload.get("type"))
        if kind not in (None, "message") and not kind.endswith("error"):
            return
        if isinstance(payload.get("content"), list) and payload.get("role", "assistant") == "assistant":
            if not self.reply_started:
                self.whole_reply = self.emit_reply(parse_reply(payload))
        elif payload.get("error"):
            self._fail(payload)

    def _fail(self, payload: JsonObject) -> None:
        self.error = parse_error(0, payload)

    # --------------------------------------------------------------------------------------------------- reply fields

    def _open_reply(self, message: JsonObject) -> None:
        self._merge_fields({key: value for key, value in message.items() if key != "content"})
        if not self.reply_started:
            # `native` refers to the message that is updated below, so at the end it has the final fields.
            self._model = string_or_none(self._message.get("model"))
            self.emit_reply_start(
                string_or_none(self._message.get("id")),
                self._model,
                native=Native(API, self._message, intact=False),
                opening=self._message.copy(),
            )

    def _merge_fields(self, fields: Mapping[str, Any]) -> None:
        """Merge fields of the message: usage by member, of any other field the last value wins."""
        for key, value in fields.items():
            known = self._message.get(key)
            if key == "usage" and isinstance(known, dict) and isinstance(value, dict):
                counts = {name: count for name, count in cast("JsonObject", value).items() if count is not None}
                # Not updated in place: the copy of the message in the first event has the same object.
                self._message[key] = {**cast("JsonObject", known), **counts}
            elif value is not None or key not in self._message:
                self._message[key] = value

    def _read_end(self, payload: JsonObject, kind: str) -> None:
        self._merge_fields({key: value for key, value in payload.items() if key not in ("type", "delta")})
        self._merge_fields(object_or_none(payload.get("delta")) or {})
        self.done = self.done or kind == "message_stop"
        if self.is_at_end():
            self.end_open_blocks(finished=True)

    def stop_reason(self) -> object:
        return self._message.get("stop_reason")

    # ---------------------------------------------------------------------------------------------------------- blocks

    def _begin(self, index: int | None, value: object) -> _OpenBlock:
        """Start a block; end a block that is still open under the same index, even without a stop event."""
        self.end_stopped_blocks()
        self._start_count += 1
        key = index if index is not None else ("no index", self._start_count)
        if key in self.open_blocks:
            self.end_block(self.open_blocks[key])
        fragment = object_or_none(value)
        if fragment is None:
            raise InputError("a content block was expected", path="content_block")
        return self._open_block(_OpenBlock(key, fragment))

    def _open_block(self, open_block: _OpenBlock) -> _OpenBlock:
        fragment = open_block.fragment
        native = Native(API, dict(fragment), intact=False)
        self.add_open_block(open_block)
        match open_block.kind:
            case "text":
                self.set_block_index(open_block, self.emit_block_start(Text("", native=native)))
                self.add_text(open_block.block_index, optional_string(fragment.get("text"), "content_block.text") or "")
            case "thinking":
                self.set_block_index(open_block, self.emit_block_start(Thinking(origin=self._origin(), native=native)))
                self.add_thinking(
                    open_block.block_index, optional_string(fragment.get("thinking"), "content_block.thinking") or ""
                )
            case "redacted_thinking":
                self.set_block_index(open_block, self.emit_block_start(Thinking(origin=self._origin())))
            case "tool_use":
                (call,) = parse_content([{**fragment, "input": {}}], self._model)
                open_block.call = self.assign_id(msgspec.structs.replace(cast("ToolCall", call), native=native))
                self.set_block_index(open_block, self.emit_block_start(open_block.call))
                open_block.initial_input = _initial_input(fragment.get("input"))
            case _:
                open_block.initial_input = _initial_input(fragment.get("input"))
                self._note_fallback(fragment)
        return open_block

    def _note_fallback(self, fragment: JsonObject) -> None:
        """Set the model of the reply to the one that a fallback block names."""
        model = (object_or_none(fragment.get("to")) or {}).get("model") if fragment.get("type") == "fallback" else None
        if isinstance(model, str):
            self._message["model"] = self._model = model

    def _origin(self) -> Origin:
        return Origin(API, self._model, identity="absent")

    def _read_delta(self, index: int | None, delta: JsonObject) -> None:
        kind = delta.get("type")
        field = _FIELD_BY_DELTA.get(kind, "") if isinstance(kind, str) else ""
        if field == "input":
            text = delta.get("partial_json")
            if text not in (None, ""):
                self._add_input_delta(self._call_for_input(index), arguments_to_text(text))
        elif field:
            open_block = self._text_block_for(index, field)
            emit = self.add_text if field == "text" else self.add_thinking
            emit(open_block.block_index, optional_string(delta.get(field), f"delta.{field}") or "")
        elif kind == "signature_delta":
            self._text_block_for(index, "thinking").fragment["signature"] = delta.get("signature")
        elif (open_block := self._block_at(index)) is not None:
            if kind == "citations_delta":
                open_block.extra_deltas.append({"citations": [delta.get("citation")]})
            else:
                open_block.extra_deltas.append(
                    {
                        key: value
                        for key, value in delta.items()
                        if key not in _FIXED_FIELDS | {open_block.streamed_field}
                    }
                )

    def _block_at(self, index: int | None) -> _OpenBlock | None:
        if index is not None:
            return self.open_blocks.get(index)
        return next(reversed(self.open_blocks.values()), None)

    def _text_block_for(self, index: int | None, kind: str) -> _OpenBlock:
        """Return the open block of this kind for a delta; start a missing one."""
        open_block = self._block_at(index)
        if open_block is not None and open_block.kind == kind:
            return open_block
        if index is None:
            return self.last_open_block(kind) or self._begin(None, {"type": kind, kind: ""})
        stray = (index, kind)
        if stray in self.open_blocks:
            return self.open_blocks[stray]
        fragment = {"type": kind, kind: ""}
        return self._open_block(_OpenBlock(stray, fragment)) if open_block is not None else self._begin(index, fragment)

    def _call_for_input(self, index: int | None) -> _OpenBlock:
        """Return the open call that an input delta belongs to; raise `InputError` if that is ambiguous."""
        open_block = self._block_at(index)
        if open_block is not None and index is not None and open_block.streamed_field in ("input", ""):
            return open_block
        calls = self.open_calls
        if index in self.closed_keys or not calls or (index is not None and len(calls) > 1):
            raise InputError("input delta for a call that has not started or has ended", path="index")
        return next(reversed(calls.values()))

    def _add_input_delta(self, open_block: _OpenBlock, text: str) -> None:
        if not open_block.has_input and text.strip() in ARGUMENT_PLACEHOLDERS:
            open_block.initial_input = open_block.initial_input or text
            return
        self.add_block_input(open_block, text)

    def _stop(self, index: int | None) -> None:
        open_block = self._block_at(index)
        strays = [stray for kind in _STRAY_KINDS if (stray := self.open_blocks.get((index, kind))) is not None]
        for stray in sorted(strays, key=lambda stray: stray.block_index):
            self.end_block(stray)
        if open_block is not None and open_block.key in self.open_blocks:
            self.stop_block(open_block)

    # ------------------------------------------------------------------------------------------------------------ ends

    def build_block(self, open_block: _OpenBlock, *, ended: bool) -> Block:
        fragment = open_block.fragment
        if open_block.streamed_field in ("text", "thinking"):
            fragment[open_block.streamed_field] = self.finish_text(open_block.block_index)
        if open_block.call or open_block.has_input or "input" in fragment:
            if not open_block.has_input and open_block.initial_input:
                self.add_block_input(open_block, open_block.initial_input)
            # ANT-37: an empty text means no arguments
            fragment["input"] = self.block_input(open_block, ended=ended)
        if open_block.extra_deltas:
            open_block.fragment = cast("JsonObject", merge_deltas([fragment, *open_block.extra_deltas]))
        (block,) = parse_content([open_block.fragment], self._model)
        return block

    def build_reply(self, content: list[JsonObject]) -> Reply:
        return parse_reply({**self._message, "content": content})


def _initial_input(value: object) -> str:
    """Return the input in the start event: complete, or empty if deltas follow."""
    return "" if value == {} else arguments_to_text(value)

"""Parses ConverseStream, as an AWS event stream or as boto3 decodes it. Text blocks have no start event."""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import partial
from itertools import islice
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.json import to_plain_json
from segue.canonical.request import Reply
from segue.errors import InputError
from segue.wire.bedrock.capabilities import API
from segue.wire.bedrock.items import parse_content
from segue.wire.bedrock.reply import parse_error, parse_reply
from segue.wire.json_values import (
    JsonObject,
    integer_or_none,
    object_or_none,
    optional_object,
    optional_string,
    string_or_none,
)
from segue.wire.stream.aws_events import EXCEPTION_PREFIX
from segue.wire.stream.block_reader import BlockReader, OpenBlock
from segue.wire.stream.deltas import arguments_to_text, merge_deltas

_DELTA_EVENT = "contentBlockDelta"
_LAST_EVENT = "metadata"
_EVENTS = (_DELTA_EVENT, "contentBlockStart", "contentBlockStop", "messageStart", "messageStop", _LAST_EVENT)
# Every payload is padded under this key to hide its length.
_PADDING = "p"
_TEXT, _CALL, _REASONING, _REDACTED = "text", "toolUse", "reasoningContent", "redactedContent"


class _OpenBlock(OpenBlock):
    """An open block, keyed by index and kind. `input_parts` also collects deltas other than text."""

    __slots__ = ("index", "signature")

    def __init__(self, index: object, kind: str) -> None:
        super().__init__((index, kind), {}, kind, takes_input=kind == _CALL)
        self.index = index
        self.signature: list[str] = []


class BedrockReader(BlockReader[_OpenBlock]):
    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._response_fields: JsonObject = {}
        self._message_fields: JsonObject = {"role": "assistant"}
        self._start_count = 0
        self._open_at: dict[object, dict[object, _OpenBlock]] = {}
        # Hosted calls by id; a result with the id of one of them is hosted too.
        self._hosted_calls: dict[object, JsonObject] = {}

    def read(self, payload: JsonObject, name: str | None) -> None:
        event = payload if name == _DELTA_EVENT else payload.get(_DELTA_EVENT) if name is None else None
        if type(event) is dict and self._add_delta(cast("JsonObject", event) if name is None else payload):
            return None
        return self._read_payload(cast("JsonObject", to_plain_json(payload)), name)

    def _add_delta(self, event: JsonObject) -> bool:
        """Parse a text or input delta of an open block; return False for any other event."""
        index = event.get("contentBlockIndex")
        if type(index) is not int or type(event.get("delta")) is not dict or len(event["delta"]) != 1:
            return False
        delta: JsonObject = event["delta"]
        text = delta.get(_TEXT)
        if text is not None:
            open_block = self.open_blocks.get((index, _TEXT))
            if open_block is not None and type(text) is str:
                self.add_text(open_block.block_index, text)
                self.set_delta_template(_TEXT, text, partial(self.add_text, open_block.block_index))
                return True
        elif type(delta.get(_CALL)) is dict:
            open_block = self.open_blocks.get((index, _CALL))
            text = delta[_CALL].get("input")
            if open_block is not None and open_block.call is not None and open_block.has_input and type(text) is str:
                self.add_input(open_block.block_index, text)
                self.set_delta_template("input", text, partial(self.add_input, open_block.block_index))
                return True
        elif type(delta.get(_REASONING)) is dict and len(delta[_REASONING]) == 1:
            open_block = self.open_blocks.get((index, _REASONING))
            text = delta[_REASONING].get(_TEXT)
            if open_block is not None and type(text) is str:
                self.add_thinking(open_block.block_index, text)
                self.set_delta_template(_TEXT, text, partial(self.add_thinking, open_block.block_index))
                return True
        return False

    def _read_payload(self, payload: JsonObject, name: str | None) -> None:
        if self.whole_reply is not None:
            return None
        if name is not None and name.startswith(EXCEPTION_PREFIX):
            return self._fail(name.removeprefix(EXCEPTION_PREFIX), payload)
        if name in _EVENTS:
            return self._read_event(name, object_or_none(payload.get(name)) or payload)
        is_event = False
        for kind, value in payload.items():
            inner = object_or_none(value)
            if kind in _EVENTS and inner is not None:
                is_event = True
                self._read_event(kind, inner)
            elif kind.endswith("Exception"):
                is_event = True
                self._fail(kind, inner or {})
        if not is_event and name is None:
            self._read_non_event(payload)
        return None

    def _read_non_event(self, payload: JsonObject) -> None:
        """Parse a payload that is not an event: a complete reply or an error; ignore any other."""
        if object_or_none(payload.get("output")) is not None:
            if not self.reply_started:
                self.whole_reply = self.emit_reply(parse_reply(payload))
        elif "__type" in payload or string_or_none(payload.get("message") or payload.get("Message")):
            self.error = parse_error(0, payload)

    def _fail(self, kind: str, error: JsonObject) -> None:
        """Record an exception; in a stream its name begins with a lower-case letter, elsewhere with a capital."""
        self.error = parse_error(0, {**error, "__type": kind[:1].upper() + kind[1:]})

    def _read_event(self, kind: str, event: JsonObject) -> None:
        self.emit_reply_start(None, None, native=Native(API, self._response_fields, intact=False))
        event.pop(_PADDING, None)
        index = integer_or_none(event.get("contentBlockIndex"))
        match kind:
            case "contentBlockStart":
                self.end_stopped_blocks()
                for member, value in (object_or_none(event.get("start")) or {}).items():
                    if value is not None:
                        self._begin(index, member, value)
            case "contentBlockDelta":
                for member, value in (optional_object(event.get("delta"), "delta") or {}).items():
                    if value is not None:
                        self._read_delta(index, member, value)
            case "contentBlockStop":
                self._stop(index)
            case "messageStart":
                self._message_fields.update(event)
            case _:
                self._response_fields.update(event)
                if self.is_at_end():
                    self.end_open_blocks(finished=True)
                    self.done = self.done or kind == _LAST_EVENT

    def stop_reason(self) -> object:
        return self._response_fields.get("stopReason")

    # ---------------------------------------------------------------------------------------------------------- blocks

    def _begin(self, index: int | None, kind: str, value: object) -> _OpenBlock:
        self._start_count += 1
        open_block = _OpenBlock(index if index is not None else f"no index {self._start_count}", kind)
        if open_block.key in self.open_blocks:
            self.end_block(self.open_blocks[open_block.key])
        self.add_open_block(open_block)
        self._open_at.setdefault(open_block.index, {})[open_block.key] = open_block
        if kind == _CALL:
            self._begin_call(open_block, object_or_none(value) or {})
        elif kind == _TEXT:
            self.set_block_index(open_block, self.emit_block_start(Text("")))
            self.add_text(open_block.block_index, optional_string(value, "start.text") or "")
        elif kind in (_REASONING, _REDACTED):
            self.set_block_index(open_block, self.emit_block_start(Thinking(origin=Origin(API, identity="absent"))))
        else:
            open_block.input_parts.append(value)
        return open_block

    def _begin_call(self, open_block: _OpenBlock, tool_use: JsonObject) -> None:
        fragment: JsonObject = {_CALL: {**tool_use, "input": {}}}
        open_block.fragment = fragment
        parsed, _ = parse_content([fragment], None)
        call = cast("ToolCall", parsed[0])
        if call.kind != "hosted":
            native = Native(API, {_CALL: tool_use}, intact=False)
            open_block.call = self.assign_id(msgspec.structs.replace(call, native=native))
            self.set_block_index(open_block, self.emit_block_start(open_block.call))
        initial_input = tool_use.get("input")
        if initial_input not in (None, {}, ""):
            self.add_block_input(open_block, arguments_to_text(initial_input))

    def _read_delta(self, index: int | None, kind: str, value: Any) -> None:
        if kind == _TEXT:
            if (text := optional_string(value, "delta.text")) is not None:
                self.add_text(self._block_for(index, _TEXT).block_index, text)
        elif kind == _CALL:
            text = (optional_object(value, "delta.toolUse") or {}).get("input")
            if text not in (None, ""):
                self.add_block_input(self._call_for_input(index), arguments_to_text(text))
        elif kind == _REASONING:
            self._read_reasoning_delta(index, optional_object(value, "delta.reasoningContent") or {})
        elif kind == "citation":
            self._block_for(index, _TEXT).input_parts.append(value)
        elif kind != "cachePoint":
            self._block_for(index, kind).input_parts.append({"content": value} if kind == "toolResult" else value)

    def _read_reasoning_delta(self, index: int | None, delta: JsonObject) -> None:
        if (text := optional_string(delta.get("text"), "delta.reasoningContent.text")) is not None:
            self.add_thinking(self._block_for(index, _REASONING).block_index, text)
        if (signature := optional_string(delta.get("signature"), "delta.reasoningContent.signature")) is not None:
            self._block_for(index, _REASONING).signature.append(signature)
        if (encrypted := optional_string(delta.get(_REDACTED), f"delta.reasoningContent.{_REDACTED}")) is not None:
            self._block_for(index, _REDACTED).input_parts.append(encrypted)
        rest = {key: value for key, value in delta.items() if key not in ("text", "signature", _REDACTED)}
        if rest:
            self._block_for(index, _REASONING).input_parts.append(rest)

    def _block_for(self, index: int | None, kind: str) -> _OpenBlock:
        """Return the open block of this kind for a delta; start a missing one (text has no start event)."""
        open_block = self.last_open_block(kind) if index is None else self.open_blocks.get((index, kind))
        if open_block is None:
            self.end_stopped_blocks()
            open_block = self._begin(index, kind, None)
        return open_block

    def _call_for_input(self, index: int | None) -> _OpenBlock:
        """Return the open call that an input delta belongs to; raise `InputError` if that is ambiguous."""
        open_block = self.open_blocks.get((index, _CALL))
        if open_block is not None:
            return open_block
        calls = self.open_calls
        if (index, _CALL) in self.closed_keys or not calls or (index is not None and len(calls) > 1):
            raise InputError("input delta for a call that has not started or has ended", path="contentBlockIndex")
        return next(reversed(calls.values()))

    def _stop(self, index: int | None) -> None:
        if index is None:
            to_stop = list(islice(reversed(self.running_blocks.values()), 1))
        else:
            to_stop = list(self._open_at.get(index, {}).values())
        for open_block in to_stop:
            self.stop_block(open_block)

    # ------------------------------------------------------------------------------------------------------------ ends

    def build_block(self, open_block: _OpenBlock, *, ended: bool) -> Block | None:
        del self._open_at[open_block.index][open_block.key]
        if open_block.kind == _CALL:
            open_block.fragment = {
                _CALL: {**open_block.fragment[_CALL], "input": self.block_input(open_block, ended=ended)}
            }
        else:
            open_block.fragment = self._build_fragment(open_block)
        result_id = (object_or_none(open_block.fragment.get("toolResult")) or {}).get("toolUseId")
        hosted_call = self._hosted_calls.get(result_id) if isinstance(result_id, str) else None
        preceding = [] if hosted_call is None else [hosted_call]
        blocks, _ = parse_content([*preceding, open_block.fragment], None)
        if len(blocks) == len(preceding):
            return None
        block = blocks[-1]
        if isinstance(block, ToolCall) and block.kind == "hosted":
            self._hosted_calls[open_block.fragment[_CALL].get("toolUseId")] = open_block.fragment
        return block

    def _build_fragment(self, open_block: _OpenBlock) -> JsonObject:
        """Return the block as in a complete reply."""
        match open_block.kind:
            case "text":
                text = self.finish_text(open_block.block_index)
                if not open_block.input_parts or not text:
                    return {_TEXT: text}
                return {"citationsContent": {"content": [{"text": text}], "citations": open_block.input_parts}}
            case "reasoningContent":
                signed = {"signature": _join_signature(open_block.signature)} if open_block.signature else {}
                reasoning = {"reasoningText": {"text": self.finish_text(open_block.block_index), **signed}}
                return {_REASONING: {**cast("JsonObject", merge_deltas(open_block.input_parts) or {}), **reasoning}}
            case "redactedContent":
                return {_REASONING: {_REDACTED: _join_base64(open_block.input_parts)}}
            case kind:
                return {str(kind): merge_deltas(open_block.input_parts)}

    def build_reply(self, content: list[JsonObject]) -> Reply:
        return parse_reply(
            {**self._response_fields, "output": {"message": {**self._message_fields, "content": content}}}
        )


def _join_signature(signature: list[str]) -> str:
    """Return the signature, sent in parts or repeated."""
    return signature[0] if len(set(signature)) == 1 else "".join(signature)


def _join_base64(parts: list[str]) -> str:
    """Join base64 data that was encoded in parts."""
    if len(parts) == 1:
        return parts[0]
    try:
        return b64encode(b"".join(b64decode(part, validate=True) for part in parts)).decode()
    except ValueError:
        return "".join(parts)

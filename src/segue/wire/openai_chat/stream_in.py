"""Stream parser: chat completion chunks to events, and to the equivalent whole completion."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Native, Opaque, Origin, Text, Thinking
from segue.canonical.json import to_plain_json
from segue.canonical.request import Reply
from segue.wire.base import ApiError
from segue.wire.json_values import (
    JsonObject,
    integer_or_none,
    object_or_none,
    optional_object,
    optional_string,
    require_object,
    string_or_none,
)
from segue.wire.openai_chat.assembler import CallAssembler
from segue.wire.openai_chat.dialect import ChatDialect
from segue.wire.openai_chat.items import is_filled
from segue.wire.openai_chat.reasoning import DETAILS_KEY, REASONING_KEYS, parse_details_text
from segue.wire.openai_chat.reply import find_usage, parse_reply
from segue.wire.openai_shared import parse_error
from segue.wire.stream.deltas import TextBuffer
from segue.wire.stream.events import ReplyStart
from segue.wire.stream.parse import ENDED_EARLY, PayloadReader, with_streamed_calls

PER_CHUNK_FIELDS = frozenset({"choices", "usage", "object", "error"})
MODELLED_DELTA_FIELDS = frozenset(
    {"role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"}
)
_AUDIO_TEXT_FIELDS = ("data", "transcript")
_ERROR_FINISH = "error"


class ChatReader(PayloadReader):
    """Chunks to events. Only the first choice is parsed; the others are counted."""

    def __init__(self, turn_key: str, dialect: ChatDialect) -> None:
        super().__init__(dialect.provider, turn_key)
        self._dialect = dialect
        self._envelope: JsonObject = {}
        self._message: JsonObject = {"role": "assistant"}
        self._unknown_fields: JsonObject = {}
        # Texts of unknown objects (audio), by the keys of object and member.
        self._object_texts: dict[tuple[str, str], TextBuffer] = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._call_assembler = CallAssembler(self, dialect.provider)
        self._text_run: tuple[str, int] | None = None
        self._content: list[tuple[str, str]] = []
        self._has_parts = False
        self._other_choices: set[int] = set()
        self._usage: object = None
        self._finish_reason: object = None
        self._whole_reply: Reply | None = None

    def read(self, payload: JsonObject, name: str | None) -> None:
        if self._whole_reply is not None:
            return None
        if self.has_split_surrogates:
            payload = _replace_surrogates(payload, "choices")
        choices = payload.get("choices")
        if not isinstance(choices, list):
            return self._read_without_choices(payload)
        if (usage := find_usage(payload)) is not None:
            self._usage = usage
        if payload.get("error"):
            self.error = parse_error(0, payload)
        if not self.reply_started or len(payload) > len(self._envelope) + 1:
            self._open(payload)
        for entry in cast("list[object]", choices):
            choice = object_or_none(entry)
            if choice is None:
                continue
            index = integer_or_none(choice.get("index")) or 0
            if index:
                self._other_choices.add(index)
                continue
            delta = optional_object(choice.get("delta"), "delta")
            if delta is None and object_or_none(choice.get("message")) is not None and not self.block_count:
                return self._read_whole_reply(payload)
            self._read_choice(
                _replace_surrogates(choice, "delta") if self.has_split_surrogates else choice, delta or {}
            )
        if len(cast("list[object]", choices)) > 1:
            # A template stands for a payload with one delta.
            self.delta_template = None
        return None

    def _open(self, payload: JsonObject) -> None:
        for key, value in payload.items():
            # Azure's first chunk has no id and no model.
            if key not in PER_CHUNK_FIELDS and value is not None and not self._envelope.get(key):
                self._envelope[key] = value
        if payload["choices"] and not self.reply_started:
            envelope = self._envelope
            model = string_or_none(envelope.get("model"))
            self._call_assembler.model = model
            # The dict of unknown fields is shared: it is filled until the reply ends.
            native = Native(
                self._dialect.name, {**envelope, "choices": [{"message": self._unknown_fields}]}, intact=False
            )
            self.emit_reply_start(
                string_or_none(envelope.get("id")), model, integer_or_none(envelope.get("created")), native
            )

    def _read_without_choices(self, payload: JsonObject) -> None:
        """Read a payload without choices: only errors are used."""
        flat = payload.get("object") == "error" or isinstance(payload.get("detail"), list)
        if flat or payload.get("error"):
            self.error = parse_error(0, payload)

    def _read_whole_reply(self, payload: JsonObject) -> None:
        body = cast("JsonObject", to_plain_json(payload)) if self.has_split_surrogates else payload
        self.events = [event for event in self.events if not isinstance(event, ReplyStart)]
        self._whole_reply = self.emit_reply(parse_reply(body, dialect=self._dialect))

    def _read_choice(self, choice: JsonObject, delta: JsonObject) -> None:
        if choice.get("finish_reason") is not None:
            self._finish_reason = choice["finish_reason"]
        if choice.get("error"):
            self.error = parse_error(0, choice)
        # KIM-07
        if choice.get("usage") is not None:
            self._usage = choice["usage"]
        self._read_reasoning(delta)
        content = delta.get("content")
        if isinstance(content, list):
            self._read_parts(cast("list[object]", content))
        elif text := optional_string(content, "delta.content"):
            self._read_text(text, choice.get("logprobs"), alone=_is_alone(delta, "content"))
        if refusal := optional_string(delta.get("refusal"), "delta.refusal"):
            self._append_text("refusal", refusal)
        if entries := delta.get("tool_calls"):
            self._end_text_run()
            self._call_assembler.add_deltas(entries)
            if not _is_alone(delta, "tool_calls"):
                self.delta_template = None
        if is_filled(legacy_delta := object_or_none(delta.get("function_call")) or {}):
            self._end_text_run()
            self._call_assembler.add_legacy_delta(legacy_delta)
        if not MODELLED_DELTA_FIELDS.issuperset(delta):
            self._keep_unknown_fields(delta)

    def _read_reasoning(self, delta: JsonObject) -> None:
        for key in REASONING_KEYS:
            text = optional_string(delta.get(key), f"delta.{key}")
            if text is not None and (text or self._dialect.reasoning_key == key):
                self._append_text("thinking", text)
                self._message[key] = None
                if text and self._text_run is not None and _is_alone(delta, key):
                    self.set_delta_template(key, text, partial(self.add_thinking, self._text_run[1]))
                return
        for text in parse_details_text(delta.get(DETAILS_KEY)):
            self._append_text("thinking", text)

    def _read_text(self, text: str, logprobs: object, *, alone: bool) -> None:
        self._append_text("text", text, self._collect_logprobs(logprobs) if logprobs else None)
        if alone and not logprobs and self._text_run is not None:
            self.set_delta_template("content", text, partial(self.add_text, self._text_run[1]))

    def _read_parts(self, parts: list[object]) -> None:
        """Read content parts: text, and reasoning of vendors that send it as a part."""
        self._has_parts = True
        for position, value in enumerate(parts):
            path = f"delta.content[{position}]"
            part = require_object(value, path)
            if (text := optional_string(part.get("text"), f"{path}.text")) is not None:
                self._append_text("text", text)
            elif (thought := part.get("thinking")) is not None:
                pieces = cast("list[object]", thought if isinstance(thought, list) else [thought])
                for piece in pieces:
                    piece_text = piece if isinstance(piece, str) else require_object(piece, path).get("text")
                    self._append_text("thinking", optional_string(piece_text, f"{path}.thinking") or "")

    def _keep_unknown_fields(self, delta: JsonObject) -> None:
        """Collect unknown fields: lists are extended, objects merged, other values replaced."""
        unknown = {key: value for key, value in delta.items() if key not in MODELLED_DELTA_FIELDS and value is not None}
        for key, value in cast("JsonObject", to_plain_json(unknown) if self.has_split_surrogates else unknown).items():
            collected = self._unknown_fields.get(key)
            if isinstance(collected, list) and isinstance(value, list):
                cast("list[Any]", collected).extend(cast("list[Any]", value))
            elif isinstance(collected, dict) and isinstance(value, dict):
                self._merge_object(key, cast("JsonObject", collected), cast("JsonObject", value))
            else:
                for name in _AUDIO_TEXT_FIELDS:
                    self._object_texts.pop((key, name), None)
                self._unknown_fields[key] = copy(value)

    def _merge_object(self, key: str, collected: JsonObject, delta: JsonObject) -> None:
        """Merge a partial object (audio): data and transcript are appended, the id stays."""
        for name, value in delta.items():
            current = collected.get(name)
            if name in _AUDIO_TEXT_FIELDS and isinstance(current, str) and isinstance(value, str):
                self._object_texts.setdefault((key, name), TextBuffer(current)).append(value)
            elif value is not None and not (name == "id" and current):
                collected[name] = value
                self._object_texts.pop((key, name), None)

    def _collect_logprobs(self, logprobs: object) -> JsonObject | None:
        fields = object_or_none(logprobs) or {}
        for key, value in fields.items():
            if isinstance(value, list):
                self._logprobs.setdefault(key, []).extend(cast("list[Any]", value))
        return {"logprobs": fields} if fields else None

    # -------------------------------------------------------------------------------------------------------- emitting

    def _append_text(self, kind: str, text: str, extras: JsonObject | None = None) -> None:
        run = self._text_run
        if run is None or run[0] != kind:
            self._end_text_run()
            block = (
                Thinking(origin=self._reasoning_origin()) if kind == "thinking" else Text("", refusal=kind == "refusal")
            )
            run = self._text_run = (kind, self.emit_block_start(block))
        if kind == "thinking":
            self.add_thinking(run[1], text)
        else:
            self.add_text(run[1], text, extras)

    def _reasoning_origin(self) -> Origin:
        return Origin(self._dialect.reasoning_provider, string_or_none(self._envelope.get("model")), identity="absent")

    def _end_text_run(self) -> None:
        if self._text_run is None:
            return
        kind, index = self._text_run
        self._text_run = None
        text = self.finish_text(index)
        self._content.append((kind, text))
        is_thinking = kind == "thinking"
        block = (
            Thinking(text, origin=self._reasoning_origin()) if is_thinking else Text(text, refusal=kind == "refusal")
        )
        self.emit_block_end(index, block)

    def finish(self) -> Reply:
        if self._whole_reply is not None:
            return self._whole_reply
        self._end_text_run()
        ended = self._finish_reason is not None or self.done
        if self.error is None and self._finish_reason == _ERROR_FINISH:
            self.error = ApiError(0, f"the provider ended the reply with `{_ERROR_FINISH}`", kind=_ERROR_FINISH)
        if not ended and self.error is None:
            self.error = ENDED_EARLY
        finished = ended and self.error is None
        calls = self._call_assembler.end_all(finished=finished, truncated=self._finish_reason == "length")
        reply = with_streamed_calls(parse_reply(self._body(), dialect=self._dialect), calls)
        for block in reply.blocks:
            # The answer of an audio model has no deltas of text.
            if isinstance(block, Opaque):
                self.emit_block(block)
        return self.emit_finish(msgspec.structs.replace(reply, other_choices=len(self._other_choices)))

    def _body(self) -> JsonObject:
        """Build the equivalent whole completion."""
        for (key, name), text in self._object_texts.items():
            self._unknown_fields[key][name] = text.text()
        message = {**self._message, **self._unknown_fields}
        texts: dict[str, str] = {}
        for kind in {kind for kind, _ in self._content}:
            texts[kind] = "".join(text for run_kind, text in self._content if run_kind == kind)
        for key in REASONING_KEYS:
            if key in message:
                message[key] = texts.get("thinking", "")
        if self._has_parts:
            message["content"] = [text_part(kind, text) for kind, text in self._content if kind != "refusal"]
        else:
            message["content"] = texts.get("text")
        if "refusal" in texts:
            message["refusal"] = texts["refusal"]
        entries = list(self._call_assembler.entries())
        if calls := [entry for legacy, entry in entries if not legacy]:
            message["tool_calls"] = calls
        for _, legacy_call in (pair for pair in entries if pair[0]):
            message["function_call"] = legacy_call
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        if self._logprobs:
            choice["logprobs"] = self._logprobs
        body: JsonObject = {**self._envelope, "object": "chat.completion", "choices": [choice]}
        return body if self._usage is None else {**body, "usage": self._usage}


def _is_alone(delta: JsonObject, key: str) -> bool:
    """Return whether a delta has nothing else to read: other members are null, the role, or empty content."""
    return all(
        value is None or name in (key, "role") or (name == "content" and value == "") for name, value in delta.items()
    )


def _replace_surrogates(value: JsonObject, except_key: str) -> JsonObject:
    """Replace lone surrogates except under `except_key`, whose texts may be joined with their other half."""
    replaced = cast("JsonObject", to_plain_json({key: member for key, member in value.items() if key != except_key}))
    return {**replaced, except_key: value[except_key]} if except_key in value else replaced


def text_part(kind: str, text: str) -> JsonObject:
    if kind == "thinking":
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    return {"type": "text", "text": text}

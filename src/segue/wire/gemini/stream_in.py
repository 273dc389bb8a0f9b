"""Stream parser: `GenerateContentResponse` chunks to events and to the equivalent complete response."""

from __future__ import annotations

from typing import cast

import msgspec

from segue.canonical.blocks import Native, Origin, Text, Thinking, ToolCall
from segue.canonical.json import encode_json_text, parse_json_object, to_plain_json
from segue.canonical.request import Reply
from segue.wire.gemini.fields import (
    JsonObject,
    as_list,
    both_cases,
    find_key,
    get_field,
    get_int,
    get_object,
    get_text,
    object_or_none,
    require_object,
)
from segue.wire.gemini.hosted_tools import parse_origin
from segue.wire.gemini.items import API, parse_parts
from segue.wire.gemini.reply import (
    parse_error,
    parse_reply,
    parse_timestamp,
)
from segue.wire.gemini.stream_parts import PartialCall, TextRun
from segue.wire.stream.parse import ENDED_EARLY, PayloadReader, with_streamed_calls

__all__ = ["PER_CHUNK_FIELDS", "GeminiReader"]

_USAGE_FIELDS = both_cases("usageMetadata")
_TEXT_FIELDS = frozenset({"text", "thought"})
PER_CHUNK_FIELDS = frozenset({*both_cases("candidates", "usageMetadata"), "error"})
_ARGUMENT_FIELDS = both_cases("args", "partialArgs", "willContinue")


class GeminiReader(PayloadReader):
    """Parses chunks into events.

    A chunk continues the open text if it begins with the same kind of text (answer or thought). Signed parts and parts
    with other fields are always separate (GEM-21, GEM-25).
    """

    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._response_fields: JsonObject = {}
        self._candidate: JsonObject | None = None
        self._content: JsonObject | None = None
        self._parts: list[JsonObject] = []
        self._emitted_calls: dict[int, list[ToolCall]] = {}
        self._text_run: TextRun | None = None
        self._call: PartialCall | None = None
        self._empty_part: JsonObject | None = None
        self._parts_by_call_id: dict[str, JsonObject] = {}
        self._is_cumulative = False
        self._other_candidates: set[int] = set()

    def read(self, payload: JsonObject, name: str | None) -> None:
        self._sync_usage()
        if payload.get("error"):
            self.error = self.error or parse_error(0, to_plain_json(payload) if self.has_split_surrogates else payload)
            return
        if "candidates" not in payload and (inner := object_or_none(payload.get("response"))) is not None:
            payload = inner
        for key, value in payload.items():
            if key != "candidates" and value is not None:
                self._response_fields[key] = to_plain_json(value) if self.has_split_surrogates else value
        candidates = payload.get("candidates")
        if self._text_run is not None and (text := _continued_text(candidates, self._text_run.thought)):
            self._text_run.append(text)
            if self._text_run.is_incremental:
                self.set_delta_template("text", text, self._text_run.append_incremental)
            return
        candidates = (
            cast("list[object]", candidates) if isinstance(candidates, list) else as_list(candidates, "candidates")
        )
        if not self.reply_started and (candidates or get_object(payload, "promptFeedback")):
            self._open()
        for position, value in enumerate(candidates):
            candidate = object_or_none(value)
            index = get_int(candidate, "index") if candidate is not None else None
            index = position if index is None else index
            if candidate is not None and index == 0:
                self._read_candidate(candidate)
            elif index > 0:
                self._other_candidates.add(index)

    def _sync_usage(self) -> None:
        """Parse the usage of the last chunk if the delta template decoded only its text."""
        if self.delta_template is not None and self.delta_template.last_payload:
            last = parse_json_object(self.delta_template.last_payload)[0]
            self._response_fields.update(
                {key: value for key, value in last.items() if key in _USAGE_FIELDS and value is not None}
            )
            self.delta_template.last_payload = b""

    def _open(self) -> None:
        fields = self._response_fields
        outer_fields = {key: value for key, value in fields.items() if key not in PER_CHUNK_FIELDS}
        created = parse_timestamp(get_text(fields, "createTime"))
        model = get_text(fields, "modelVersion")
        self.emit_reply_start(get_text(fields, "responseId"), model, created, Native(API, outer_fields, intact=False))

    def _read_candidate(self, candidate: JsonObject) -> None:
        if self._candidate is None:
            self._candidate = {}
        for key, value in candidate.items():
            if key != "content" and value is not None:
                self._candidate[key] = to_plain_json(value) if self.has_split_surrogates else value
        content = object_or_none(candidate.get("content"))
        if content is None:
            return
        if self._content is None:
            self._content = {}
        for key, value in content.items():
            if key != "parts" and value is not None:
                self._content[key] = to_plain_json(value) if self.has_split_surrogates else value
        parts = content.get("parts")
        continues = True
        for part in cast("list[object]", parts) if isinstance(parts, list) else as_list(parts, "parts"):
            self._read_part(require_object(part, "parts"), continues)
            continues = False

    def _read_part(self, part: JsonObject, continues: bool) -> None:
        text = part.get("text")
        if isinstance(text, str) and _TEXT_FIELDS.issuperset(part):
            self._append_text(text, part.get("thought") is True, continues)
            return
        self._end_text_run()
        part = to_plain_json(part) if self.has_split_surrogates else part
        inner = object_or_none(get_field(part, "functionCall"))
        if inner is not None and self._read_call_delta(part, inner):
            return
        if self._is_duplicate(part):
            return
        self._emitted_calls[len(self._parts)] = [
            emitted
            for block in parse_parts([part], get_text(self._response_fields, "modelVersion"))[0]
            if isinstance(emitted := self.emit_block(block), ToolCall)
        ]
        self._parts.append(part)

    def _is_duplicate(self, part: JsonObject) -> bool:
        """Whether this part was received before: with the same id, or in a cumulative stream."""
        if self._is_cumulative:
            return part in self._parts
        call_id = get_text(get_object(part, "functionCall"), "id")
        if not call_id:
            return False
        first_part = self._parts_by_call_id.setdefault(call_id, part)
        return first_part is not part and first_part == part

    # ------------------------------------------------------------------------------------------------------------ text

    def _append_text(self, text: str, thought: bool, continues: bool) -> None:
        run = self._text_run
        if run is None or run.thought is not thought or not continues:
            self._end_text_run()
            if not text:
                self._empty_part = _text_part(text, thought)
                return
            if self._is_cumulative and _text_part(text, thought) in self._parts:
                return
            block = Thinking(origin=self._origin(), native=_STARTED) if thought else Text("", native=_STARTED)
            run = self._text_run = TextRun(self, self.emit_block_start(block), thought=thought, is_cumulative=False)
        run.append(text)

    def _origin(self) -> Origin:
        return Origin(API, get_text(self._response_fields, "modelVersion"), identity="absent")

    def _end_text_run(self) -> None:
        run, self._text_run = self._text_run, None
        if run is None:
            return
        part = _text_part(run.end(), run.thought)
        self._is_cumulative = self._is_cumulative or run.is_cumulative
        self._parts.append(part)
        native = Native(API, part)
        text = part["text"]
        block = Thinking(text, origin=self._origin(), native=native) if run.thought else Text(text, native=native)
        self.emit_block_end(run.block_index, block)

    # --------------------------------------------------------------------------------------------------- partial calls

    def _read_call_delta(self, part: JsonObject, inner: JsonObject) -> bool:
        """Read a partial call; False if this is a whole call."""
        call = self._call
        if call is not None and not call.is_continued_by(inner):
            self._end_call(ended=False)
            call = None
        if call is None:
            if get_field(inner, "willContinue") is not True and get_field(inner, "partialArgs") is None:
                return False
            call = self._call = self._begin_call(part, inner)
        call.fragment = {**part, **call.fragment}
        call.add_delta(inner)
        if get_field(inner, "willContinue") is not True:
            self._end_call(ended=True)
        return True

    def _begin_call(self, part: JsonObject, inner: JsonObject) -> PartialCall:
        if signature := get_text(part, "thoughtSignature"):
            self.emit_block(Thinking(signature=signature, origin=self._origin()))
        origin = parse_origin(inner, get_text(self._response_fields, "modelVersion"))
        call = self.assign_id(ToolCall(get_text(inner, "name") or "", origin=origin))
        self._parts.append({})
        return PartialCall(call, self.emit_block_start(call), len(self._parts) - 1, part)

    def _end_call(self, *, ended: bool) -> None:
        partial, self._call = self._call, None
        if partial is None:
            return
        fragment = partial.fragment
        inner = {
            key: value for key, value in get_object(fragment, "functionCall").items() if key not in _ARGUMENT_FIELDS
        }
        part = {**fragment, find_key(fragment, "functionCall"): {**inner, "args": partial.arguments}}
        self._parts[partial.part_index] = part
        text = encode_json_text(partial.arguments)
        self.add_input(partial.block_index, text)
        call = msgspec.structs.replace(partial.call, arguments=partial.arguments, native=Native(API, part))
        if not ended:
            call = msgspec.structs.replace(call, arguments=None, arguments_text=text, broken=True)
        self._emitted_calls[partial.part_index] = [call]
        self.emit_block_end(partial.block_index, call)

    # ---------------------------------------------------------------------------------------------------------- the end

    def finish(self) -> Reply:
        self._sync_usage()
        self._end_text_run()
        reason = get_field(self._candidate or {}, "finishReason")
        blocked = self._candidate is None and bool(get_object(self._response_fields, "promptFeedback"))
        if reason is None and not blocked and not self.done and self.error is None:
            self.error = ENDED_EARLY
        self._end_call(ended=False)
        emitted = [call for _, calls in sorted(self._emitted_calls.items()) for call in calls]
        reply = with_streamed_calls(parse_reply(self._body()), emitted)
        return self.emit_finish(msgspec.structs.replace(reply, other_choices=len(self._other_candidates)))

    def _body(self) -> JsonObject:
        """The equivalent whole response. An empty text part is only kept if it is the only one."""
        if self._candidate is None:
            return {"candidates": [{}], **self._response_fields} if self._other_candidates else self._response_fields
        candidate = self._candidate
        parts = self._parts or ([self._empty_part] if self._empty_part is not None else [])
        if self._content is not None:
            content = {**self._content, "parts": parts} if parts else self._content
            candidate = {"content": content, **candidate}
        return {"candidates": [candidate], **self._response_fields}


_PLAIN_CANDIDATE_FIELDS = frozenset({"content", "index"})


def _continued_text(candidates: object, thought: bool) -> str | None:
    """The text of a chunk that only continues a text of this kind, as most do; else None."""
    candidate = _only_object(candidates)
    if candidate is None or not _PLAIN_CANDIDATE_FIELDS.issuperset(candidate) or candidate.get("index"):
        return None
    content = object_or_none(candidate.get("content"))
    part = _only_object(content.get("parts")) if content is not None else None
    if part is None or len(part) != 1 + thought or (thought and part.get("thought") is not True):
        return None
    text = part.get("text")
    return text if isinstance(text, str) else None


def _only_object(value: object) -> JsonObject | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return object_or_none(items[0]) if len(items) == 1 else None


# Marks a streamed block as same-API before its fragment is known.
_STARTED = Native(API, {}, intact=False)


def _text_part(text: str, thought: bool) -> JsonObject:
    return {"text": text, "thought": True} if thought else {"text": text}

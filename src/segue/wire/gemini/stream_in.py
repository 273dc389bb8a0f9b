"""Stream parser: `GenerateContentResponse` chunks to events and to the equivalent complete response."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Native, Origin, Text, Thinking, ToolCall
from segue.canonical.json import encode_json_sorted, parse_json_object, to_plain_json
from segue.canonical.request import Reply
from segue.errors import InputError
from segue.wire.gemini.capabilities import API
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
)
from segue.wire.gemini.items import mark_cut_off, parse_origin, parse_parts
from segue.wire.gemini.reply import parse_error, parse_reply, parse_timestamp
from segue.wire.json_values import list_or_empty, require_object
from segue.wire.stream.deltas import TextBuffer
from segue.wire.stream.events import arguments_text
from segue.wire.stream.parse import ENDED_EARLY, PayloadReader, with_streamed_calls

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
        self._text_run: _TextRun | None = None
        self._call: _PartialCall | None = None
        self._empty_part: JsonObject | None = None
        self._parts_by_call_id: dict[str, JsonObject] = {}
        # The parts of a cumulative stream so far, encoded: each chunk repeats them.
        self._known_parts: set[bytes] = set()
        self._known_count = 0
        self._is_cumulative = False
        self._other_candidates: set[int] = set()

    def read(self, payload: JsonObject, name: str | None) -> None:
        self._sync_fields()
        if payload.get("error"):
            self.error = self.error or parse_error(0, to_plain_json(payload) if self.has_split_surrogates else payload)
            return
        payload = _unwrap_response(payload)
        self._keep_fields(payload)
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

    def _sync_fields(self) -> None:
        """Keep the fields of the last chunk (its usage), if the delta template decoded only its text."""
        if self.delta_template is not None and self.delta_template.last_payload:
            self._keep_fields(_unwrap_response(parse_json_object(self.delta_template.last_payload)[0]))
            self.delta_template.last_payload = b""

    def _keep_fields(self, payload: JsonObject) -> None:
        for key, value in payload.items():
            if key != "candidates" and value is not None:
                self._response_fields[key] = to_plain_json(value) if self.has_split_surrogates else value

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
        """Return whether this part was received before: with the same id, or in a cumulative stream."""
        if self._is_cumulative:
            return self._is_known(part)
        call_id = get_text(get_object(part, "functionCall"), "id")
        if not call_id:
            return False
        first_part = self._parts_by_call_id.setdefault(call_id, part)
        return first_part is not part and first_part == part

    def _is_known(self, part: JsonObject) -> bool:
        self._known_parts.update(encode_json_sorted(known) for known in self._parts[self._known_count :])
        self._known_count = len(self._parts)
        return encode_json_sorted(part) in self._known_parts

    # ------------------------------------------------------------------------------------------------------------ text

    def _append_text(self, text: str, thought: bool, continues: bool) -> None:
        run = self._text_run
        if run is None or run.thought is not thought or not continues:
            self._end_text_run()
            if not text:
                self._empty_part = _text_part(text, thought)
                return
            if self._is_cumulative and self._is_known(_text_part(text, thought)):
                return
            block = Thinking(origin=self._origin(), native=_STARTED) if thought else Text("", native=_STARTED)
            run = self._text_run = _TextRun(self, self.emit_block_start(block), thought=thought, is_cumulative=False)
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
        for key, value in part.items():
            call.fragment.setdefault(key, value)
        call.add_delta(inner)
        if get_field(inner, "willContinue") is not True:
            self._end_call(ended=True)
        return True

    def _begin_call(self, part: JsonObject, inner: JsonObject) -> _PartialCall:
        if signature := get_text(part, "thoughtSignature"):
            self.emit_block(Thinking(signature=signature, origin=self._origin()))
        origin = parse_origin(inner, get_text(self._response_fields, "modelVersion"))
        call = self.assign_id(ToolCall(get_text(inner, "name") or "", origin=origin))
        self._parts.append({})
        return _PartialCall(call, self.emit_block_start(call), len(self._parts) - 1, {**part})

    def _end_call(self, *, ended: bool) -> None:
        partial, self._call = self._call, None
        if partial is None:
            return
        fragment = partial.fragment
        partial.close_text()
        inner = {
            key: value for key, value in get_object(fragment, "functionCall").items() if key not in _ARGUMENT_FIELDS
        }
        part = {**fragment, find_key(fragment, "functionCall"): {**inner, "args": partial.arguments}}
        self._parts[partial.part_index] = part
        call = msgspec.structs.replace(partial.call, arguments=partial.arguments, native=Native(API, part))
        call = call if ended else mark_cut_off(call)
        self.add_input(partial.block_index, arguments_text(call))
        self._emitted_calls[partial.part_index] = [call]
        self.emit_block_end(partial.block_index, call)

    # ---------------------------------------------------------------------------------------------------------- the end

    def finish(self) -> Reply:
        self._sync_fields()
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
        """Return the equivalent whole response. An empty text part is only kept if it is the only one."""
        if self._candidate is None:
            return {"candidates": [{}], **self._response_fields} if self._other_candidates else self._response_fields
        candidate = self._candidate
        parts = self._parts or ([self._empty_part] if self._empty_part is not None else [])
        if self._content is not None:
            content = {**self._content, "parts": parts} if parts else self._content
            candidate = {"content": content, **candidate}
        return {"candidates": [candidate], **self._response_fields}


def _unwrap_response(payload: JsonObject) -> JsonObject:
    inner = object_or_none(payload.get("response")) if "candidates" not in payload else None
    return payload if inner is None else inner


_PLAIN_CANDIDATE_FIELDS = frozenset({"content", "index"})


def _continued_text(candidates: object, thought: bool) -> str | None:
    """Return the text of a chunk that only continues a text of this kind, as most do; else None."""
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
    items = list_or_empty(value)
    return object_or_none(items[0]) if len(items) == 1 else None


# Marks a streamed block as same-API before its fragment is known.
_STARTED = Native(API, {}, intact=False)


def _text_part(text: str, thought: bool) -> JsonObject:
    return {"text": text, "thought": True} if thought else {"text": text}


# ------------------------------------------------------------------------------------------ a text over several chunks

# A text of this length that repeats all previous text as its prefix is not a coincidence.
_LONG_TEXT = 24
_MIN_CHUNKS = 4


class _TextRun:
    """A text or thought over several chunks.

    Some servers send the whole text so far in each chunk (cumulative). That is certain if the text is long, or if the
    third chunk repeats the second as the second repeated the first; until then the second one is held back.
    """

    __slots__ = ("_chunks", "_held", "_length", "_reader", "block_index", "is_cumulative", "thought")

    def __init__(self, reader: PayloadReader, block_index: int, *, thought: bool, is_cumulative: bool) -> None:
        self._reader = reader
        self.block_index = block_index
        self.thought = thought
        self.is_cumulative = is_cumulative
        self._length = self._chunks = 0
        self._held: str | None = None

    def append(self, text: str) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            if text.startswith(held):
                self.is_cumulative = True
            else:
                self._emit(held)
        if self.is_cumulative:
            so_far = self._reader.text_buffer(self.block_index)
            if so_far.starts_with(text):
                text = ""
            elif so_far.is_prefix_of(text):
                text = text[len(so_far) :]
        elif self._length and len(text) > self._length:
            so_far = self._reader.text_buffer(self.block_index)
            if so_far.is_prefix_of(text) and text not in (text + text)[1:-1]:
                if len(so_far) >= _LONG_TEXT:
                    self.is_cumulative = True
                    text = text[len(so_far) :]
                elif self._chunks == 1:
                    self._held = text
                    return
        self._emit(text)

    @property
    def is_incremental(self) -> bool:
        """Whether it is certain that chunks are increments and not cumulative."""
        return self._chunks >= _MIN_CHUNKS and not self.is_cumulative and self._held is None

    def append_incremental(self, text: str) -> None:
        """Append to an incremental text without the check for repetition."""
        self._emit(text)

    def _emit(self, text: str) -> None:
        if text:
            self._chunks += 1
            self._length += len(text)
            if self.thought:
                self._reader.add_thinking(self.block_index, text)
            else:
                self._reader.add_text(self.block_index, text)

    def end(self) -> str:
        if self._held is not None:
            self._emit(self._held)
            self._held = None
        return self._reader.finish_text(self.block_index)


# --------------------------------------------------------------------------------------------- a call in several parts

_PATH_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL)
_VALUE_FIELDS = ("stringValue", "numberValue", "boolValue")
_MAX_DEPTH = 500


class _PartialCall:
    """A call whose arguments arrive in parts, each with its JSON path."""

    __slots__ = ("_open_path", "_open_text", "arguments", "block_index", "call", "fragment", "part_index")

    def __init__(self, call: ToolCall, block_index: int, part_index: int, fragment: JsonObject) -> None:
        self.call = call
        self.block_index = block_index
        self.part_index = part_index
        self.fragment = fragment
        self.arguments: JsonObject = {}
        self._open_path: str | None = None
        # The container and key of the text that grows, and its deltas.
        self._open_text: tuple[Any, str | int, TextBuffer] | None = None

    def close_text(self) -> None:
        """Store the text that has grown."""
        if self._open_text is not None:
            target, key, text = self._open_text
            target[key] = text.text()
            self._open_text = None

    def is_continued_by(self, inner: JsonObject) -> bool:
        name, call_id = get_text(inner, "name"), get_text(inner, "id")
        return name in (None, "", self.call.name) and call_id in (None, "", self.call.origin.raw_id)

    def add_delta(self, inner: JsonObject) -> None:
        whole = get_field(inner, "args")
        if isinstance(whole, dict):
            self.close_text()
            self.arguments.update(cast("JsonObject", whole))
        for part in map(require_object, as_list(get_field(inner, "partialArgs"), "partialArgs")):
            path = get_text(part, "jsonPath") or ""
            value: Any = next((found for key in _VALUE_FIELDS if (found := get_field(part, key)) is not None), None)
            self._set_value(path, value, grows=path == self._open_path)
            self._open_path = path if get_field(part, "willContinue") is True else None

    def _set_value(self, path: str, value: Any, *, grows: bool) -> None:
        if grows and self._open_text is not None:
            # A part without a value means null, or the end of a string that it continues.
            self._open_text[2].append(f"{value or ''}")
            return
        self.close_text()
        steps = _parse_path(path)
        if not steps:
            return
        target: Any = self.arguments
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            target = _get_or_create(target, step, path, empty)
        last = steps[-1]
        before = _get_or_create(target, last, path, None)
        if grows and isinstance(before, str):
            self._open_text = (target, last, TextBuffer(before))
            self._open_text[2].append(f"{value or ''}")
        else:
            target[last] = value


def _parse_path(path: str) -> list[str | int]:
    steps: list[str | int] = []
    position = 1 if path.startswith("$") else 0
    while position < len(path):
        match = _PATH_STEP.match(path, position)
        if match is None or len(steps) >= _MAX_DEPTH:
            raise InputError(f"invalid JSON path: {path[:64]}", path="partialArgs")
        plain, number, single, double = match.groups()
        quoted = single if single is not None else double
        name = plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted or "")
        steps.append(int(number[:9]) if number is not None else name)
        position = match.end()
    return steps


def _get_or_create(target: Any, step: str | int, path: str, empty: Any) -> Any:
    """Return the value at this step; `empty` is inserted if there is none."""
    if isinstance(step, str) and isinstance(target, dict):
        fields = cast("JsonObject", target)
        if fields.get(step) is None and empty is not None:
            fields[step] = empty
        return fields.get(step)
    if isinstance(step, int) and isinstance(target, list):
        items = cast("list[Any]", target)
        if step < len(items):
            items[step] = empty if items[step] is None and empty is not None else items[step]
            return items[step]
        if step == len(items):
            items.append(empty)
            return empty
    raise InputError(f"JSON path does not match the arguments: {path[:64]}", path="partialArgs")

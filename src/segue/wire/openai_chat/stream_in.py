"""Stream parser: chat completion chunks to events, and to the equivalent whole completion."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Native, Origin, Text, Thinking, ToolCall
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import parse_argument_text, to_plain_json
from segue.canonical.request import Reply
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject, integer_or_none, object_or_none, string_or_none
from segue.wire.openai_chat.dialect import ChatDialect
from segue.wire.openai_chat.reply import parse_reply
from segue.wire.openai_shared import parse_error
from segue.wire.stream.deltas import ARGUMENT_PLACEHOLDERS, TextBuffer, arguments_to_text
from segue.wire.stream.events import ReplyStart
from segue.wire.stream.parse import ENDED_EARLY, PayloadReader, join_surrogates, with_streamed_calls

PER_CHUNK_FIELDS = frozenset({"choices", "usage", "object", "error"})
MODELLED_DELTA_FIELDS = frozenset(
    {"role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"}
)
_AUDIO_TEXT_FIELDS = ("data", "transcript")
_ERROR_FINISH = "error"
_REASONING_KEYS = ("reasoning_content", "reasoning")
# Placeholders that servers send before the arguments: nothing, or an empty value that is then sent again whole.
_EMPTY_ARGUMENTS = frozenset({"", "{", "{}", "null"})
_CALL_KEYS = frozenset({"index", "id", "type", "function", "custom"})


class ChatReader(PayloadReader):
    """Chunks to events. Only the first choice is parsed; the others are counted."""

    def __init__(self, turn_key: str, dialect: ChatDialect) -> None:
        super().__init__(dialect.provider, turn_key)
        self._dialect = dialect
        self._envelope: JsonObject = {}
        self._message: JsonObject = {"role": "assistant"}
        self._unknown_fields: JsonObject = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._call_assembler = _CallAssembler(self, dialect.provider)
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
        if payload.get("usage") is not None:
            self._usage = payload["usage"]
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
            delta = object_or_none(choice.get("delta"))
            if delta is None and object_or_none(choice.get("message")) is not None and not self.block_count:
                return self._read_whole_reply(payload)
            self._read_choice(
                _replace_surrogates(choice, "delta") if self.has_split_surrogates else choice, delta or {}
            )
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
        for key in _REASONING_KEYS:
            text = delta.get(key)
            if isinstance(text, str) and (text or self._dialect.reasoning_key == key):
                self._append_text("thinking", text)
                self._message[key] = None
                break
        content = delta.get("content")
        if isinstance(content, str) and content:
            self._read_text(content, choice.get("logprobs"), alone=len(delta) == 1)
        elif isinstance(content, list):
            self._read_parts(cast("list[object]", content))
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._append_text("refusal", refusal)
        if entries := delta.get("tool_calls"):
            self._end_text_run()
            self._call_assembler.add_deltas(entries)
        if (legacy_delta := object_or_none(delta.get("function_call"))) is not None:
            self._end_text_run()
            self._call_assembler.add_legacy_delta(legacy_delta)
        if not MODELLED_DELTA_FIELDS.issuperset(delta):
            self._keep_unknown_fields(delta)

    def _read_text(self, text: str, logprobs: object, *, alone: bool) -> None:
        self._append_text("text", text, self._collect_logprobs(logprobs) if logprobs else None)
        if alone and not logprobs and self._text_run is not None:
            self.set_delta_template("content", text, partial(self.add_text, self._text_run[1]))

    def _read_parts(self, parts: list[object]) -> None:
        """Read content parts: text, and reasoning of vendors that send it as a part."""
        self._has_parts = True
        for value in parts:
            part = object_or_none(value) or {}
            if isinstance(text := part.get("text"), str):
                self._append_text("text", text)
            elif (thought := part.get("thinking")) is not None:
                pieces = cast("list[object]", thought if isinstance(thought, list) else [thought])
                for piece in pieces:
                    piece_text = piece if isinstance(piece, str) else (object_or_none(piece) or {}).get("text")
                    self._append_text("thinking", piece_text if isinstance(piece_text, str) else "")

    def _keep_unknown_fields(self, delta: JsonObject) -> None:
        """Collect unknown fields: lists are extended, objects merged, other values replaced."""
        unknown = {key: value for key, value in delta.items() if key not in MODELLED_DELTA_FIELDS and value is not None}
        for key, value in cast("JsonObject", to_plain_json(unknown) if self.has_split_surrogates else unknown).items():
            collected = self._unknown_fields.get(key)
            if isinstance(collected, list) and isinstance(value, list):
                cast("list[Any]", collected).extend(cast("list[Any]", value))
            elif isinstance(collected, dict) and isinstance(value, dict):
                self._unknown_fields[key] = _merge_object(cast("JsonObject", collected), cast("JsonObject", value))
            else:
                self._unknown_fields[key] = [*cast("list[Any]", value)] if isinstance(value, list) else value

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
            block = Thinking(origin=self._origin()) if kind == "thinking" else Text("", refusal=kind == "refusal")
            run = self._text_run = (kind, self.emit_block_start(block))
        if kind == "thinking":
            self.add_thinking(run[1], text)
        else:
            self.add_text(run[1], text, extras)

    def _origin(self) -> Origin:
        return Origin(self.provider, string_or_none(self._envelope.get("model")), identity="absent")

    def _end_text_run(self) -> None:
        if self._text_run is None:
            return
        kind, index = self._text_run
        self._text_run = None
        text = self.finish_text(index)
        self._content.append((kind, text))
        block = Thinking(text, origin=self._origin()) if kind == "thinking" else Text(text, refusal=kind == "refusal")
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
        return self.emit_finish(msgspec.structs.replace(reply, other_choices=len(self._other_choices)))

    def _body(self) -> JsonObject:
        """Build the equivalent whole completion."""
        message = {**self._message, **self._unknown_fields}
        texts: dict[str, str] = {}
        for kind in {kind for kind, _ in self._content}:
            texts[kind] = "".join(text for run_kind, text in self._content if run_kind == kind)
        for key in _REASONING_KEYS:
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


def _merge_object(collected: JsonObject, delta: JsonObject) -> JsonObject:
    """Merge a partial object (audio): data and transcript are appended, the id stays."""
    merged = {**collected}
    for key, value in delta.items():
        current = merged.get(key)
        if key in _AUDIO_TEXT_FIELDS and isinstance(current, str) and isinstance(value, str):
            merged[key] = current + value
        elif value is not None and not (key == "id" and current):
            merged[key] = value
    return merged


def _replace_surrogates(value: JsonObject, except_key: str) -> JsonObject:
    """Replace lone surrogates except under `except_key`, whose texts may be joined with their other half."""
    replaced = cast("JsonObject", to_plain_json({key: member for key, member in value.items() if key != except_key}))
    return {**replaced, except_key: value[except_key]} if except_key in value else replaced


def text_part(kind: str, text: str) -> JsonObject:
    if kind == "thinking":
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    return {"type": "text", "text": text}


# ---------------------------------------------------------------------------------------------------------------- calls


class _OpenCall:
    """A call that has not ended. `emitted` is the arguments text already sent as events, `pending` the rest."""

    __slots__ = (
        "block_index",
        "call",
        "custom",
        "emitted",
        "ended",
        "extra",
        "index",
        "kind",
        "legacy",
        "name",
        "pending",
        "raw_id",
    )

    def __init__(self, index: int | None, *, legacy: bool = False) -> None:
        self.index = index
        self.legacy = legacy
        self.raw_id: str | None = None
        self.name = ""
        self.kind: object = None
        self.custom = False
        self.extra: JsonObject = {}
        self.emitted = TextBuffer()
        self.pending = ""
        self.block_index: int | None = None
        self.call: ToolCall | None = None
        self.ended = False

    def arguments(self) -> str:
        return self.emitted.text() + self.pending

    def is_complete(self) -> bool:
        """Return whether the arguments are a complete JSON object."""
        return not self.custom and _is_complete_object(self.arguments())


def _is_complete_object(text: str) -> bool:
    """Return whether this is a complete, non-empty JSON object."""
    return text.rstrip().endswith("}") and bool(object_or_none(parse_argument_text(text)[0]))


class _CallAssembler:
    """Assembles tool calls from deltas, however a server numbers, names and repeats them.

    By the specification (OAI-CHAT-18) the index identifies a call, and id and name are sent once. Servers omit the
    index or always send the same one, repeat, change or omit ids, split names, and send whole calls; they never
    continue arguments that are complete. So a call is found by its index, else by its id, else it is the last one, and
    a new call starts where a name arrives that cannot belong to the current call.
    """

    def __init__(self, reader: PayloadReader, provider: str) -> None:
        self._reader = reader
        self._provider = provider
        self._slots: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}
        self.model: str | None = None

    def __bool__(self) -> bool:
        return bool(self._slots)

    # --------------------------------------------------------------------------------------------------------- parsing

    def add_deltas(self, entries: object) -> None:
        """Add the value of `tool_calls` in one delta."""
        values = cast("list[object]", entries) if isinstance(entries, list) else [entries]
        for value in values:
            if (entry := object_or_none(value)) is not None:
                self._add_delta(entry)

    def add_legacy_delta(self, entry: JsonObject) -> None:
        """Add the value of `function_call` in one delta: one call, without an id."""
        slot = next((slot for slot in self._slots if slot.legacy), None) or self._open_call(None, legacy=True)
        self._update_call(
            slot, None, join_surrogates(_text_or_empty(entry.get("name"))), arguments_to_text(entry.get("arguments"))
        )

    def _add_delta(self, entry: JsonObject) -> None:
        custom = object_or_none(entry.get("custom"))
        detail = custom if custom is not None else object_or_none(entry.get("function")) or {}
        text = arguments_to_text(detail.get("input" if custom is not None else "arguments"))
        if self._reader.has_split_surrogates:
            entry, detail = cast("tuple[JsonObject, JsonObject]", (to_plain_json(entry), to_plain_json(detail)))
        index, raw_id = _parse_index(entry.get("index")), raw_id_or_none(entry.get("id"))
        name = _text_or_empty(detail.get("name"))
        slot = self._find_call(index, raw_id, name)
        if slot is None or _starts_new_call(slot, index, raw_id, name, text):
            if slot is None and not (name or text or raw_id or custom):
                return
            slot = self._open_call(index)
        elif raw_id is not None and raw_id == slot.raw_id and name == slot.name and slot.emitted:
            # The arguments are sent again from the start: only the new rest is used.
            received = slot.arguments()
            text = (
                text[len(received) :]
                if text.startswith(received) and (text == received or _is_complete_object(text))
                else text
            )
        slot.custom = slot.custom or (custom is not None and slot.call is None)
        slot.kind = slot.kind or entry.get("type")
        slot.extra.update({key: value for key, value in entry.items() if key not in _CALL_KEYS and value is not None})
        self._update_call(slot, raw_id, name, text)
        if text and not (name or raw_id or slot.pending or slot.custom or slot.ended):
            self._reader.set_delta_template("arguments", text, partial(self._append_arguments, slot))

    def _append_arguments(self, slot: _OpenCall, text: str) -> None:
        """Append arguments to an open call (delta template)."""
        if slot.block_index is not None and text:
            self._reader.add_input(slot.block_index, text)
            slot.emitted.append(text)

    def _find_call(self, index: int | None, raw_id: str | None, name: str) -> _OpenCall | None:
        """Return the call that a delta continues, by index and id; None if there is none."""
        if index is not None and index in self._by_index:
            indexed = self._by_index[index]
            if raw_id is not None and indexed.raw_id not in (None, raw_id) and raw_id in self._by_id:
                return self._by_id[raw_id]
            return indexed
        if raw_id is not None and raw_id in self._by_id:
            return self._by_id[raw_id]
        # COMP-24
        if self._slots and raw_id is None and (index is None or not name):
            return self._slots[-1]
        return None

    def _open_call(self, index: int | None, *, legacy: bool = False) -> _OpenCall:
        for slot in self._slots:
            self._start_call(slot)
            if not slot.ended and slot.is_complete():
                self._end_call(slot, ended=True)
        self._reader.delta_template = None
        slot = _OpenCall(index, legacy=legacy)
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        return slot

    def _update_call(self, slot: _OpenCall, raw_id: str | None, name: str, text: str) -> None:
        if raw_id is not None and slot.raw_id is None and slot.block_index is None:
            slot.raw_id = raw_id
            self._by_id[raw_id] = slot
        if name and slot.block_index is None and name != slot.name:
            # The name is sent in parts, or again with more.
            slot.name = name if name.startswith(slot.name) else slot.name + name
        if not text or slot.ended:
            return
        if slot.pending.strip() in ARGUMENT_PLACEHOLDERS and text.lstrip().startswith("{"):
            slot.pending = ""
        slot.pending += text
        if slot.pending.strip() not in _EMPTY_ARGUMENTS:
            self._emit_arguments(slot)

    # -------------------------------------------------------------------------------------------------------- emitting

    def _start_call(self, slot: _OpenCall) -> ToolCall:
        if slot.call is None:
            identity = "absent" if slot.legacy else "natural" if slot.raw_id else "synthetic"
            origin = Origin(self._provider, self.model, slot.raw_id, identity=identity)
            kind = "custom" if slot.custom else "function"
            slot.call = self._reader.assign_id(ToolCall(slot.name, kind=kind, origin=origin))
            slot.block_index = self._reader.emit_block_start(slot.call)
        return slot.call

    def _emit_arguments(self, slot: _OpenCall) -> None:
        self._start_call(slot)
        if slot.block_index is not None and slot.pending:
            self._reader.add_input(slot.block_index, slot.pending)
            slot.emitted.append(slot.pending)
            slot.pending = ""

    def _end_call(self, slot: _OpenCall, *, ended: bool) -> None:
        self._emit_arguments(slot)
        slot.ended = True
        if slot.call is None or slot.block_index is None:
            return
        # Joined surrogates may differ from the raw deltas: the emitted text is used.
        text = self._reader.finish_text(slot.block_index)
        slot.emitted = TextBuffer(text)
        call = slot.call
        arguments, exact = (text, None) if slot.custom else parse_argument_text(text)
        slot.call = ToolCall(
            call.name,
            None if not ended else arguments,
            call.id,
            text if not ended else exact,
            call.kind,
            call.origin,
            broken=not ended,
        )
        self._reader.emit_block_end(slot.block_index, slot.call)

    def end_all(self, *, finished: bool, truncated: bool) -> list[ToolCall]:
        """End all open calls. `finished`: the reply was completed; `truncated`: it reached the token limit."""
        for slot in self._slots:
            if not slot.ended:
                last = slot is self._slots[-1]
                cut = not finished or (truncated and last and parse_argument_text(slot.arguments())[0] in (None, {}))
                self._end_call(slot, ended=not cut or slot.is_complete())
        return [slot.call for slot in self._slots if slot.call is not None]

    def entries(self) -> Iterable[tuple[bool, JsonObject]]:
        """Yield the entries of the equivalent whole message, each with whether it is a legacy `function_call`."""
        for slot in self._slots:
            text = slot.arguments()
            if slot.legacy:
                yield True, {"name": slot.name, "arguments": text}
                continue
            key, field = ("custom", "input") if slot.custom else ("function", "arguments")
            entry: JsonObject = {"id": slot.raw_id} if slot.raw_id is not None else {}
            kind = slot.kind if isinstance(slot.kind, str) and slot.kind else key
            yield False, {**entry, "type": kind, key: {"name": slot.name, field: text}, **slot.extra}


def _starts_new_call(slot: _OpenCall, index: int | None, raw_id: str | None, name: str, text: str) -> bool:
    """Return whether a delta with a tool name starts a new call instead of continuing the one found."""
    if not name or slot.legacy:
        return False
    if slot.name == "" and slot.raw_id in (None, raw_id):
        return False
    another_id = raw_id is not None and slot.raw_id is not None and raw_id != slot.raw_id
    if not slot.arguments():
        # COMP-06
        return (another_id and (name != slot.name or not text or _is_complete_object(text))) or (
            not another_id and raw_id is None and index is None and name != slot.name and _is_complete_object(text)
        )
    if not slot.is_complete() and slot.arguments().strip() not in ARGUMENT_PLACEHOLDERS:
        return False
    if another_id:
        return True
    if raw_id is not None and raw_id == slot.raw_id:
        return (index is not None and index != slot.index) or (_is_complete_object(text) and text != slot.arguments())
    if slot.arguments().strip() in ARGUMENT_PLACEHOLDERS and name == slot.name:
        return False
    return bool(text) or name != slot.name


def _parse_index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""

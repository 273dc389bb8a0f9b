"""Stream renderer: canonical events to API events, one item after another.

Consecutive texts are parts of one message, which is done when another item begins. Same-API blocks that were not
streamed are held until they end and sent as the original item: the empty item, then the events with its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from itertools import count
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

from segue.canonical.blocks import Block, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.json import encode_json, encode_json_text
from segue.canonical.request import Usage
from segue.wire.base import ApiError, RenderContext
from segue.wire.error_forms import classify_error
from segue.wire.json_values import JsonObject, list_or_empty, object_or_none, string_or_none
from segue.wire.openai_responses.context import ResponsesContext, ResponsesDialect
from segue.wire.openai_responses.errors import ERROR_FORMS
from segue.wire.openai_responses.item_types import FUNCTION_TYPES, HOSTED_TYPES, is_embedded, item_type_or_none
from segue.wire.openai_responses.items import project_call_item, render_call
from segue.wire.openai_responses.reply import (
    REPLY_KEYS,
    derive_item_id,
    derive_response_id,
    encrypted_content,
    render_ending,
    render_envelope,
    render_item,
    render_part,
    render_references,
    render_status,
    render_usage,
    request_fields,
)
from segue.wire.stream.events import Delta, Event, Finished, InputDelta, ReplyStart, TextDelta, ThinkingDelta
from segue.wire.stream.framing import encode_sse
from segue.wire.stream.render import DeltaFormat, RenderText, StreamRenderer

_ReplayEvent: TypeAlias = tuple[str, JsonObject]
"""The name of an event, and its fields apart from the item."""

_INPUT_EVENTS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
"""Event name and key of the text of a call."""

# Event names of a part and its text, the list key, the index key, and the part type.
_SUMMARY_EVENTS = ("reasoning_summary_part", "reasoning_summary_text", "summary", "summary_index", "summary_text")
_CONTENT_EVENTS = ("content_part", "reasoning_text", "content", "content_index", "reasoning_text")
_TEXT_EVENTS = ("content_part", "output_text", "content", "content_index", "output_text")

_STREAMED_TYPES = ("message", "reasoning", *FUNCTION_TYPES)


class ResponsesRenderer(StreamRenderer):
    def __init__(self, render_context: RenderContext, model: str | None, dialect: ResponsesDialect) -> None:
        super().__init__(render_context, model)
        self.api = dialect.name
        self._dialect = dialect
        self._request = render_context.request
        self._wire_context = ResponsesContext(dialect, render_context)
        self._writer = _ResponseWriter(dialect)
        self._open_message: _OpenItem | None = None
        self._open_items: dict[int, _OpenItem] = {}
        self._inputs: dict[int, StringIO] = {}
        self._pending_thinking: dict[int, Thinking] = {}

    def render(self, events: Iterable[Event]) -> bytes:
        chunks: list[bytes] = []
        for event in events:
            if (
                type(event) is TextDelta
                and event.index == self.order.current
                and event.index in self._writer.delta_templates
            ):
                chunks.append(self._render_delta(event))
                continue
            for ordered in self.order.reorder((event,)):
                if not isinstance(ordered, (TextDelta, InputDelta, ThinkingDelta)):
                    chunks += self.render_event(ordered)
                elif ordered.index in self._writer.delta_templates:
                    chunks.append(self._render_delta(ordered))
                elif isinstance(ordered, ThinkingDelta):
                    chunks += self._begin_thinking(ordered)
        return b"".join(chunks)

    def open_run(self, delta: Delta) -> DeltaFormat | None:
        index = delta.index
        if index != self.order.current or index not in self._writer.delta_templates:
            return None
        render_text = self._writer.delta_renderer(index)
        if not isinstance(delta, InputDelta):
            return DeltaFormat(render_text)
        append = self._inputs[index].write

        def render_input(text: str, encoded: bytes) -> bytes:
            append(text)
            return render_text(text, encoded)

        return DeltaFormat(render_input)

    def _render_delta(self, event: TextDelta | InputDelta | ThinkingDelta) -> bytes:
        if isinstance(event, InputDelta):
            self._inputs[event.index].write(event.text)
        elif isinstance(event, TextDelta) and event.extras is not None and self.same_api:
            return self._writer.delta(event.index, event.text, encode_json(event.extras)[1:-1] + b",")
        return self._writer.delta(event.index, event.text)

    # ---------------------------------------------------------------------------------------------------- the response

    def render_reply_start(self, event: ReplyStart) -> Iterator[bytes]:
        seed = (event.id or "", event.model or "", str(event.created or ""))
        derived_id = derive_response_id(event.id, self._dialect, *seed)
        reply_id = event.id if self.same_api and event.id else derived_id
        envelope = render_envelope(reply_id, event.created, event.model or self.model, request_fields(self._request))
        yield self._writer.open(
            {
                **envelope,
                **{key: value for key, value in self.response_fields.items() if key not in REPLY_KEYS},
                **render_references(self._request),
            }
        )

    def render_finish(self, event: Finished) -> Iterator[bytes]:
        yield from self._close_message("incomplete" if render_status(event.finish) == "incomplete" else "completed")
        ending = render_ending(event.finish, event.raw_finish if self.same_api else None)
        yield self._writer.end(ending, self.usage)

    def render_error(self, error: ApiError) -> Iterator[bytes]:
        kind = classify_error(error)
        form = ERROR_FORMS[kind]
        is_known = error.code in form.known_codes or (kind == "unknown-reference" and error.code is not None)
        code = error.code if is_known else form.event_code or form.code
        if not self._writer.response:
            # A bare error has the text, but Codex reads that only of a failed response.
            yield from self.render_reply_start(ReplyStart(None, None))
        error_fields = {"code": code, "message": error.message}
        yield self._writer.end({"status": "failed", "error": error_fields}, self.usage)

    # ----------------------------------------------------------------------------------------------------------- items

    def _is_sent_whole(self, block: Block) -> bool:
        """Return whether a block is sent whole: an item without deltas, or a same-API one complete from the start."""
        native = self._wire_context.own_native(block.native)
        if native is not None and isinstance(block, ToolCall) and native.fragment["type"] not in FUNCTION_TYPES:
            return True
        return self.same_api and (native is None or _is_complete_item(native.fragment))

    def render_block_start(self, index: int, block: Text | Thinking | ToolCall) -> Iterator[bytes]:
        if self._is_sent_whole(block):
            return
        if isinstance(block, Text):
            yield from self._begin_text(index, block)
        elif isinstance(block, Thinking):
            self._pending_thinking[index] = block
        else:
            yield from self._begin_call(index, block)

    def render_block_end(self, index: int, block: Text | Thinking | ToolCall) -> Iterator[bytes]:
        if isinstance(block, Text):
            yield from self._end_text(index, block)
        elif index in self._open_items:
            open_item = self._open_items.pop(index)
            if isinstance(block, ToolCall):
                yield from self._end_call(open_item, block, self._inputs.pop(index).getvalue())
            else:
                yield from self._end_thinking(open_item, block)
        elif isinstance(block, ToolCall) or self.same_api or encrypted_content(block, self._wire_context):
            self._pending_thinking.pop(index, None)
            yield from self.render_block(block)

    # ------------------------------------------------------------------------------------------------------------ text

    def _begin_text(self, index: int, block: Text) -> Iterator[bytes]:
        native = self._wire_context.own_native(block.native)
        fragment = cast("JsonObject", native.fragment) if native is not None else {}
        own_id = string_or_none(fragment.get("id"))
        message = self._open_message
        if message is None or (own_id is not None and own_id != message.id):
            yield from self._close_message("completed")
            item_id = own_id or self._writer.derive_id("msg")
            bare: JsonObject = {"id": item_id, "type": "message", "role": "assistant"}
            message = _OpenItem(item_id, {**fragment, **bare, "status": "in_progress", "content": []})
            yield self._writer.add_item(message)
            self._open_message = message
        position = {"item_id": message.id, "output_index": message.index, "content_index": len(message.parts)}
        name = "refusal" if block.refusal else "output_text"
        part = render_part(msgspec.structs.replace(block, text=""))
        yield self._writer.event("content_part.added", **position, part=part)
        self._writer.start_deltas(index, f"{name}.delta", position, b"" if block.refusal else b'"logprobs":[],')
        self._open_items[index] = message

    def _end_text(self, index: int, block: Text) -> Iterator[bytes]:
        if index not in self._open_items:
            yield from self._begin_text(index, block)
            yield self._writer.delta(index, block.text)
        message = self._open_items.pop(index)
        position = {"item_id": message.id, "output_index": message.index, "content_index": len(message.parts)}
        part = self._render_part(block, message)
        annotations = part.get("annotations")
        for number, annotation in enumerate(list_or_empty(annotations)):
            yield self._writer.event(
                "output_text.annotation.added", **position, annotation_index=number, annotation=annotation
            )
        if block.refusal:
            yield self._writer.event("refusal.done", **position, refusal=block.text)
        else:
            yield self._writer.event(
                "output_text.done", **position, text=block.text, logprobs=part.get("logprobs") or []
            )
        yield self._writer.event("content_part.done", **position, part=part)
        message.parts.append(part)

    def _render_part(self, block: Text, message: _OpenItem) -> JsonObject:
        """Render the part of a message; same-API the original one."""
        native = self._wire_context.own_native(block.native)
        content = native.fragment.get("content") if native is not None else None
        part = object_or_none(cast("list[object]", content)[0]) if isinstance(content, list) and content else None
        if native is not None:
            message.fragment = {**message.fragment, **native.fragment}
        return part if part is not None else render_part(block)

    def _close_message(self, state: str) -> Iterator[bytes]:
        message, self._open_message = self._open_message, None
        if message is not None:
            final_status = message.fragment.get("status")
            state = final_status if final_status not in (None, "in_progress") else state
            yield self._writer.end_item(
                message, {**message.fragment, "id": message.id, "status": state, "content": message.parts}
            )

    # ------------------------------------------------------------------------------------------------------- reasoning

    def _begin_thinking(self, event: ThinkingDelta) -> Iterator[bytes]:
        block = self._pending_thinking.pop(event.index, None)
        if block is None:
            return
        yield from self._close_message("completed")
        native = self._wire_context.own_native(block.native)
        fragment: Mapping[str, Any] = native.fragment if native is not None else {}
        item_id = string_or_none(fragment.get("id")) or self._writer.derive_id("rs")
        open_item = self._open_items[event.index] = _OpenItem(
            item_id, {"id": item_id, "type": "reasoning", "summary": []}
        )
        yield self._writer.add_item(open_item)
        part, text, _, index_key, kind = _CONTENT_EVENTS if fragment.get("content") else _SUMMARY_EVENTS
        position = {"item_id": item_id, "output_index": open_item.index, index_key: 0}
        yield self._writer.event(f"{part}.added", **position, part={"type": kind, "text": ""})
        self._writer.start_deltas(event.index, f"{text}.delta", position)
        open_item.fragment = {"content": True} if fragment.get("content") else {}
        yield self._writer.delta(event.index, event.text)

    def _end_thinking(self, open_item: _OpenItem, block: Thinking) -> Iterator[bytes]:
        part, text, list_key, index_key, kind = _CONTENT_EVENTS if open_item.fragment else _SUMMARY_EVENTS
        position = {"item_id": open_item.id, "output_index": open_item.index, index_key: 0}
        content_part = {"type": kind, "text": block.text}
        yield self._writer.event(f"{text}.done", **position, text=block.text)
        yield self._writer.event(f"{part}.done", **position, part=content_part)
        native = self._wire_context.own_native(block.native)
        item: JsonObject = dict(native.fragment) if native is not None else {"type": "reasoning", "summary": []}
        if native is None:
            item |= {list_key: [content_part], **encrypted_content(block, self._wire_context)}
        yield self._writer.end_item(
            open_item, {"id": open_item.id, **item, **({"id": open_item.id} if native is not None else {})}
        )

    # ----------------------------------------------------------------------------------------------------------- calls

    def _begin_call(self, index: int, call: ToolCall) -> Iterator[bytes]:
        yield from self._close_message("completed")
        bare = render_call(msgspec.structs.replace(call, arguments={}, arguments_text=None), self._wire_context)
        item = self._with_item_id(bare, call)
        name, key = _INPUT_EVENTS[item["type"]]
        item[key] = ""
        if item["type"] == "function_call":
            item["status"] = "in_progress"
        open_item = self._open_items[index] = _OpenItem(item["id"], item)
        yield self._writer.add_item(open_item)
        self._inputs[index] = StringIO()
        position: JsonObject = {"item_id": item["id"], "output_index": open_item.index}
        self._writer.start_deltas(index, f"{name}.delta", position)

    def _with_item_id(self, item: JsonObject, call: ToolCall) -> JsonObject:
        native = self._wire_context.own_native(call.native)
        own_id = string_or_none(native.fragment.get("id")) if native is not None else None
        prefix = "ctc" if item["type"] == "custom_tool_call" else "fc"
        return {"id": own_id or self._writer.derive_id(prefix), **{key: item[key] for key in item if key != "id"}}

    def _end_call(self, open_item: _OpenItem, call: ToolCall, text: str) -> Iterator[bytes]:
        name, key = _INPUT_EVENTS[open_item.fragment["type"]]
        native = self._wire_context.own_native(call.native)
        native_fields = dict(native.fragment) if native is not None else {}
        item: JsonObject = {**native_fields, **open_item.fragment, key: text}
        if item["type"] == "function_call":
            item["status"] = "incomplete" if call.broken else "completed"
        yield self._writer.event(f"{name}.done", item_id=open_item.id, output_index=open_item.index, **{key: text})
        yield self._writer.end_item(open_item, item)

    # ------------------------------------------------------------------------------------------------------ whole items

    def render_block(self, block: Block) -> Iterator[bytes]:
        for item in _render_block_items(block, self._writer.derive_id(""), self._wire_context):
            yield from self._close_message("completed")
            open_item = _OpenItem(string_or_none(item.get("id")) or "", _clear_content(item))
            yield self._writer.add_item(open_item)
            for name, fields in _replay_events(item):
                yield self._writer.event(name, item_id=open_item.id, output_index=open_item.index, **fields)
            yield self._writer.end_item(open_item, item)


# --------------------------------------------------------------------------------------------------------------- events


class _OpenItem:
    """An item that has not ended: its id, its fields without content, and the `parts` that are done.

    `index` is assigned when it is added.
    """

    __slots__ = ("fragment", "id", "index", "parts")

    def __init__(self, item_id: str, fragment: JsonObject) -> None:
        self.index = -1
        self.id = item_id
        self.fragment = fragment
        self.parts: list[JsonObject] = []


class _ResponseWriter:
    """Encodes the events of a response: sequence numbers, items, deltas. Each method returns the bytes that it adds.

    Deltas are frequent and differ only in text and sequence number: the common bytes are encoded once, in
    `delta_templates`, by block index.
    """

    def __init__(self, dialect: ResponsesDialect) -> None:
        self._dialect = dialect
        self.response: JsonObject = {}
        self.delta_templates: dict[int, tuple[bytes, bytes]] = {}
        self._output: list[JsonObject] = []
        self._item_count = 0
        self._numbers = count()

    def event(self, name: str, **fields: object) -> bytes:
        kind = f"response.{name}"
        return encode_sse(encode_json({"type": kind, **fields, "sequence_number": next(self._numbers)}), kind)

    def open(self, envelope: JsonObject) -> bytes:
        self.response = envelope
        encoded = Raw(encode_json(envelope))
        return self.event("created", response=encoded) + self.event("in_progress", response=encoded)

    def end(self, ending: JsonObject, usage: Usage | None) -> bytes:
        rendered_usage = None if usage is None else render_usage(usage)
        return self.event(
            str(ending["status"]), response={**self.response, **ending, "output": self._output, "usage": rendered_usage}
        )

    def derive_id(self, prefix: str) -> str:
        """Return the id of the next item."""
        return derive_item_id(prefix, str(self.response.get("id")), self._item_count, self._dialect)

    def add_item(self, item: _OpenItem) -> bytes:
        item.index, self._item_count = self._item_count, self._item_count + 1
        return self.event("output_item.added", output_index=item.index, item=item.fragment)

    def end_item(self, item: _OpenItem, final_item: JsonObject) -> bytes:
        self._output.append(final_item)
        return self.event("output_item.done", output_index=item.index, item=final_item)

    def start_deltas(self, index: int, name: str, position: JsonObject, suffix: bytes = b"") -> None:
        """Set the event name, position and trailing fields of the deltas of this block."""
        kind = f"response.{name}"
        head = encode_sse(encode_json({"type": kind, **position})[:-1] + b',"delta":', kind)[:-2]
        self.delta_templates[index] = head, suffix

    def delta(self, index: int, text: str, suffix: bytes | None = None) -> bytes:
        return self.delta_renderer(index, suffix)(text, encode_json(text))

    def delta_renderer(self, index: int, suffix: bytes | None = None) -> RenderText:
        """Return a function that renders the deltas of this block."""
        head, trailing = self.delta_templates[index]
        tail = b',%b"sequence_number":' % (trailing if suffix is None else suffix)
        numbers = self._numbers
        return lambda _, encoded: b"%b%b%b%d}\n\n" % (head, encoded, tail, next(numbers))


# ------------------------------------------------------------------------------------------------------- complete items


def _is_complete_item(item: Mapping[str, Any]) -> bool:
    """Return whether an item has its content already, or is of a type that is not streamed."""
    kind = item_type_or_none(cast("JsonObject", item)) or "message"
    if kind in _INPUT_EVENTS:
        return bool(item.get(_INPUT_EVENTS[kind][1]))
    if kind not in ("message", "reasoning"):
        return True
    lists = [item.get(key) for key in ("content", "summary")]
    parts = [part for entries in lists if isinstance(entries, list) for part in cast("list[object]", entries)]
    return any((object_or_none(part) or {}).get(key) for part in parts for key in ("text", "refusal"))


def _render_block_items(block: Block, suffix: str, context: ResponsesContext) -> list[JsonObject]:
    """Render the items of a block; same-API the original one, with projected call id and name."""
    native = context.own_native(block.native)
    if native is None or item_type_or_none(cast("JsonObject", native.fragment)) is None:
        state = "incomplete" if isinstance(block, ToolCall) and block.broken else "completed"
        return render_item(block, suffix, state, context)
    item = cast("JsonObject", native.fragment)
    if isinstance(block, ToolResponse):
        embedded = is_embedded(block) and not HOSTED_TYPES[item["type"]].output_only
        return [] if embedded else [item]
    if isinstance(block, ToolCall) and block.kind != "hosted":
        return [project_call_item(item, block, context)]
    return [item]


def _clear_content(item: JsonObject) -> JsonObject:
    """Return the item without content, for `output_item.added`."""
    kind = item.get("type", "message")
    if kind not in _STREAMED_TYPES:
        return item
    empty: JsonObject = {key: [] for key in ("content", "summary") if isinstance(item.get(key), list)}
    if kind in FUNCTION_TYPES:
        empty[_INPUT_EVENTS[kind][1]] = ""
    if item.get("status") is not None:
        empty["status"] = "in_progress"
    return {**item, **empty}


def _replay_events(item: JsonObject) -> Iterator[_ReplayEvent]:
    """Yield the events between `output_item.added` and `output_item.done`."""
    match item.get("type", "message"):
        case "message":
            yield from _replay_parts(item, *_TEXT_EVENTS)
        case "reasoning":
            yield from _replay_parts(item, *_SUMMARY_EVENTS)
            yield from _replay_parts(item, *_CONTENT_EVENTS)
        case kind if kind in FUNCTION_TYPES:
            name, key = _INPUT_EVENTS[kind]
            value = item.get(key)
            text = value if isinstance(value, str) else "" if value is None else encode_json_text(value)
            yield f"{name}.delta", {"delta": text}
            yield f"{name}.done", {key: text}
        case _:
            pass


def _replay_parts(
    item: JsonObject, part: str, text: str, list_key: str, index_key: str, kind: str
) -> Iterator[_ReplayEvent]:
    entries = item.get(list_key)
    for number, entry in enumerate(list_or_empty(entries)):
        fragment = object_or_none(entry)
        if fragment is None or fragment.get("type") != kind or not isinstance(fragment.get("text"), str):
            continue
        index_field: JsonObject = {index_key: number}
        logprobs: JsonObject = {"logprobs": []} if kind == "output_text" else {}
        yield f"{part}.added", {**index_field, "part": {**fragment, "text": ""}}
        yield f"{text}.delta", {**index_field, "delta": fragment["text"], **logprobs}
        yield f"{text}.done", {**index_field, "text": fragment["text"], **logprobs}
        yield f"{part}.done", {**index_field, "part": fragment}

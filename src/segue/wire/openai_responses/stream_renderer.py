"""Stream renderer: canonical events to API events, one item after another.

Consecutive texts are parts of one message, which is done when another item begins. Same-API blocks that were not
streamed are held until they end and sent as the original item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.jsontext import write
from segue.canonical.request import Request, Usage
from segue.wire.base import ApiError, Projection
from segue.wire.events import (
    End,
    Event,
    Failed,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    UsageTold,
    Whole,
)
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.framing import server_sent
from segue.wire.openai_responses.calls import render_call
from segue.wire.openai_responses.reply import (
    REPLY_KEYS,
    render_around,
    render_ending,
    render_part,
    response_id,
    status_of,
)
from segue.wire.openai_responses.shared import ResponsesDialect, Spelling
from segue.wire.openai_responses.stream_whole import (
    CONTENT,
    INPUTS,
    SUMMARY,
    growth,
    is_whole,
    items_of,
    unfinished,
)
from segue.wire.openai_responses.stream_writer import OpenItem, ResponseWriter
from segue.wire.stream_pieces import GrowingText
from segue.wire.stream_renderer import InOrder, StreamRenderer

__all__ = ["ResponsesRenderer"]


class ResponsesRenderer(StreamRenderer):
    def __init__(
        self, render_context: Projection, dialect: ResponsesDialect, model: str | None, asked: Request | None
    ) -> None:
        super().__init__(render_context, model)
        self._dialect = dialect
        self._out = Spelling(dialect, render_context)
        self._asked = len(asked.messages) if asked is not None else 0
        self._order = InOrder()
        self._writer = ResponseWriter()
        self._home = False
        self._message: OpenItem | None = None
        self._open: dict[int, OpenItem] = {}
        self._inputs: dict[int, GrowingText] = {}
        self._thinking: dict[int, Thinking] = {}
        self._usage: Usage | None = None

    def render(self, events: Iterable[Event]) -> bytes:
        chunks: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and event.index == self._order.open and event.index in self._writer.growing:
                chunks.append(self._grown(event))
                continue
            for one in self._order.sorted((event,)):
                if not isinstance(one, (TextDelta, InputDelta, ThinkingDelta)):
                    chunks += self._rest(one)
                elif one.index in self._writer.growing:
                    chunks.append(self._grown(one))
                elif isinstance(one, ThinkingDelta):
                    chunks += self._begin_thinking(one)
        return b"".join(chunks)

    def _rest(self, event: Opened | Start | End | Whole | UsageTold | Finished | Failed) -> Iterable[bytes]:
        match event:
            case Opened():
                return self._opened(event)
            case Start():
                return self._start(event)
            case End():
                return self._end(event)
            case Whole():
                return self._whole(event.index, event.block)
            case UsageTold():
                self._usage = event.usage
                return ()
            case Finished():
                return self._finished(event)
            case Failed():
                return self._failed(event.error)

    def _grown(self, event: TextDelta | InputDelta | ThinkingDelta) -> bytes:
        if isinstance(event, InputDelta):
            self._inputs[event.index].append(event.text)
        elif isinstance(event, TextDelta) and event.beside is not None and self._home:
            return self._writer.delta(event.index, event.text, write(event.beside)[1:-1] + b",")
        return self._writer.delta(event.index, event.text)

    # ---------------------------------------------------------------------------------------------------- the response

    def _opened(self, event: Opened) -> Iterator[bytes]:
        native = self._out.home(event.native)
        self._home = native is not None
        seed = (event.id or "", event.model or "", str(event.created or ""), str(self._asked))
        made = response_id(event.id, self._dialect, *seed)
        reply_id = event.id if self._home and event.id else made
        around = render_around(reply_id, event.created, event.model or self.model)
        kept: Mapping[str, Any] = native.fragment if native is not None else {}
        yield self._writer.open({**around, **{key: value for key, value in kept.items() if key not in REPLY_KEYS}})

    def _finished(self, event: Finished) -> Iterator[bytes]:
        yield from self._close_message("incomplete" if status_of(event.finish) == "incomplete" else "completed")
        ending = render_ending(event.finish, event.cause if self._home else None)
        yield self._writer.end(ending, self._usage)

    def _failed(self, error: ApiError) -> Iterator[bytes]:
        if not self._writer.around:
            payload = {
                "type": "error",
                "code": error.code or error.kind,
                "message": error.message,
                "param": error.param,
            }
            yield server_sent(write({**payload, "sequence_number": 0}), "error")
            return
        yield from self._close_message("incomplete")
        inner = {"code": error.code or "server_error", "message": error.message}
        yield self._writer.end({"status": "failed", "error": inner}, self._usage)

    # ----------------------------------------------------------------------------------------------------------- items

    def _waits(self, block: Block) -> bool:
        """Whether a block is sent whole: a same-API block whose item was complete from the start."""
        native = self._out.home(block.native)
        return self._home and (native is None or is_whole(native.fragment))

    def _start(self, event: Start) -> Iterator[bytes]:
        block = event.block
        if self._waits(block):
            return
        if isinstance(block, Text):
            yield from self._begin_text(event.index, block)
        elif isinstance(block, Thinking):
            self._thinking[event.index] = block
        else:
            yield from self._begin_call(event.index, block)

    def _end(self, event: End) -> Iterator[bytes]:
        index, block = event.index, event.block
        if isinstance(block, Text):
            yield from self._end_text(index, block)
        elif index in self._open:
            begun = self._open.pop(index)
            if isinstance(block, ToolCall):
                yield from self._end_call(begun, block, self._inputs.pop(index).text())
            else:
                yield from self._end_thinking(begun, block)
        elif isinstance(block, ToolCall) or self._home:
            yield from self._whole(index, block)

    # ------------------------------------------------------------------------------------------------------------ text

    def _begin_text(self, index: int, block: Text) -> Iterator[bytes]:
        native = self._out.home(block.native)
        fragment = cast("JsonObject", native.fragment) if native is not None else {}
        own_id = string_or_none(fragment.get("id"))
        message = self._message
        if message is None or (own_id is not None and own_id != message.id):
            yield from self._close_message("completed")
            item_id = own_id or self._writer.made_id("msg", index)
            bare: JsonObject = {"id": item_id, "type": "message", "role": "assistant"}
            message = OpenItem(item_id, {**fragment, **bare, "status": "in_progress", "content": []})
            yield self._writer.add(message)
            self._message = message
        at = {"item_id": message.id, "output_index": message.index, "content_index": len(message.parts)}
        name = "refusal" if block.refusal else "output_text"
        part = render_part(msgspec.structs.replace(block, text=""))
        yield self._writer.event("content_part.added", **at, part=part)
        self._writer.grow(index, f"{name}.delta", at, b"" if block.refusal else b'"logprobs":[],')
        self._open[index] = message

    def _end_text(self, index: int, block: Text) -> Iterator[bytes]:
        if index not in self._open:
            yield from self._begin_text(index, block)
            yield self._writer.delta(index, block.text)
        message = self._open.pop(index)
        at = {"item_id": message.id, "output_index": message.index, "content_index": len(message.parts)}
        part = self._part_of(block, message)
        given = part.get("annotations")
        for number, annotation in enumerate(cast("list[object]", given) if isinstance(given, list) else []):
            yield self._writer.event(
                "output_text.annotation.added", **at, annotation_index=number, annotation=annotation
            )
        if block.refusal:
            yield self._writer.event("refusal.done", **at, refusal=block.text)
        else:
            yield self._writer.event("output_text.done", **at, text=block.text, logprobs=part.get("logprobs") or [])
        yield self._writer.event("content_part.done", **at, part=part)
        message.parts.append(part)

    def _part_of(self, block: Text, message: OpenItem) -> JsonObject:
        """The part of a message; same-API the original one."""
        native = self._out.home(block.native)
        content = native.fragment.get("content") if native is not None else None
        part = object_or_none(cast("list[object]", content)[0]) if isinstance(content, list) and content else None
        if native is not None:
            message.fragment = {**message.fragment, **native.fragment}
        return part if part is not None else render_part(block)

    def _close_message(self, state: str) -> Iterator[bytes]:
        message, self._message = self._message, None
        if message is not None:
            given = message.fragment.get("status")
            state = given if given not in (None, "in_progress") else state
            yield self._writer.done(
                message, {**message.fragment, "id": message.id, "status": state, "content": message.parts}
            )

    # ------------------------------------------------------------------------------------------------------- reasoning

    def _begin_thinking(self, event: ThinkingDelta) -> Iterator[bytes]:
        block = self._thinking.pop(event.index, None)
        if block is None:
            return
        yield from self._close_message("completed")
        native = self._out.home(block.native)
        fragment: Mapping[str, Any] = native.fragment if native is not None else {}
        item_id = string_or_none(fragment.get("id")) or self._writer.made_id("rs", event.index)
        begun = self._open[event.index] = OpenItem(item_id, {"id": item_id, "type": "reasoning", "summary": []})
        yield self._writer.add(begun)
        part, text, _, numbered, kind = CONTENT if fragment.get("content") else SUMMARY
        at = {"item_id": item_id, "output_index": begun.index, numbered: 0}
        yield self._writer.event(f"{part}.added", **at, part={"type": kind, "text": ""})
        self._writer.grow(event.index, f"{text}.delta", at)
        begun.fragment = {"content": True} if fragment.get("content") else {}
        yield self._writer.delta(event.index, event.text)

    def _end_thinking(self, begun: OpenItem, block: Thinking) -> Iterator[bytes]:
        part, text, listed, numbered, kind = CONTENT if begun.fragment else SUMMARY
        at = {"item_id": begun.id, "output_index": begun.index, numbered: 0}
        content_part = {"type": kind, "text": block.text}
        yield self._writer.event(f"{text}.done", **at, text=block.text)
        yield self._writer.event(f"{part}.done", **at, part=content_part)
        native = self._out.home(block.native)
        made: JsonObject = dict(native.fragment) if native is not None else {"type": "reasoning", "summary": []}
        if native is None:
            made[listed] = [content_part]
        yield self._writer.done(begun, {"id": begun.id, **made, **({"id": begun.id} if native is not None else {})})

    # ----------------------------------------------------------------------------------------------------------- calls

    def _begin_call(self, index: int, call: ToolCall) -> Iterator[bytes]:
        yield from self._close_message("completed")
        bare = render_call(msgspec.structs.replace(call, arguments={}, arguments_text=None), self._out)
        item = self._named(bare, call, index)
        name, key = INPUTS[item["type"]]
        item[key] = ""
        if item["type"] == "function_call":
            item["status"] = "in_progress"
        begun = self._open[index] = OpenItem(item["id"], item)
        yield self._writer.add(begun)
        self._inputs[index] = GrowingText()
        at: JsonObject = {"item_id": item["id"], "output_index": begun.index}
        self._writer.grow(index, f"{name}.delta", at)

    def _named(self, item: JsonObject, call: ToolCall, index: int) -> JsonObject:
        native = self._out.home(call.native)
        own_id = string_or_none(native.fragment.get("id")) if native is not None else None
        prefix = "ctc" if item["type"] == "custom_tool_call" else "fc"
        return {"id": own_id or self._writer.made_id(prefix, index), **{key: item[key] for key in item if key != "id"}}

    def _end_call(self, begun: OpenItem, call: ToolCall, text: str) -> Iterator[bytes]:
        name, key = INPUTS[begun.fragment["type"]]
        native = self._out.home(call.native)
        kept = dict(native.fragment) if native is not None else {}
        item: JsonObject = {**kept, **begun.fragment, key: text}
        if item["type"] == "function_call":
            item["status"] = "incomplete" if call.broken else "completed"
        yield self._writer.event(f"{name}.done", item_id=begun.id, output_index=begun.index, **{key: text})
        yield self._writer.done(begun, item)

    # ------------------------------------------------------------------------------------------------------ whole items

    def _whole(self, index: int, block: Block) -> Iterator[bytes]:
        for item in items_of(block, self._writer.made_id("", index), self._out):
            yield from self._close_message("completed")
            begun = OpenItem(string_or_none(item.get("id")) or "", unfinished(item))
            yield self._writer.add(begun)
            for name, fields in growth(item):
                yield self._writer.event(name, item_id=begun.id, output_index=begun.index, **fields)
            yield self._writer.done(begun, item)

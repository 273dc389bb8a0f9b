"""Events to the events of the Responses API: one item after another, each told from its beginning to its end.

Words that follow one another are parts of one message, which is done when something else begins. What comes home and
was not streamed in the first place waits for its end, and goes out as the item that it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.jsontext import write, write_text
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
from segue.wire.openai_responses.calls import FUNCTIONS, relabelled, render_call
from segue.wire.openai_responses.hosted import HOSTED, is_embedded
from segue.wire.openai_responses.items import item_kind_or_none
from segue.wire.openai_responses.reply import (
    REPLY_KEYS,
    render_around,
    render_ending,
    render_item,
    render_part,
    render_usage,
    response_id,
    status_of,
)
from segue.wire.openai_responses.shared import ResponsesDialect, Spelling, made_id
from segue.wire.stream_renderer import InOrder, StreamRenderer

__all__ = ["ResponsesRenderer"]

# The events that tell the text of a call, and what it stands under.
_INPUTS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
_SUMMARY = ("reasoning_summary_part", "reasoning_summary_text", "summary", "summary_index", "summary_text")
_CONTENT = ("content_part", "reasoning_text", "content", "content_index", "reasoning_text")


class _Open:
    """An item that was added: its number, id, and what it is besides its content; `parts` are done."""

    __slots__ = ("fragment", "id", "index", "parts")

    def __init__(self, index: int, item_id: str, fragment: JsonObject) -> None:
        self.index = index
        self.id = item_id
        self.fragment = fragment
        self.parts: list[JsonObject] = []


class ResponsesRenderer(StreamRenderer):
    def __init__(
        self, projection: Projection, dialect: ResponsesDialect, model: str | None, asked: Request | None
    ) -> None:
        super().__init__(projection, model)
        self._dialect = dialect
        self._out = Spelling(dialect, projection)
        self._asked = len(asked.messages) if asked is not None else 0
        self._order = InOrder()
        self._sequence = 0
        self._around: JsonObject = {}
        self._home = False
        self._output: list[JsonObject] = []
        self._added = 0
        self._message: _Open | None = None
        self._open: dict[int, _Open] = {}
        self._heads: dict[int, bytes] = {}
        self._betweens: dict[int, bytes] = {}
        self._inputs: dict[int, list[str]] = {}
        self._thinking: dict[int, Thinking] = {}
        self._usage: Usage | None = None

    def render(self, events: Iterable[Event]) -> bytes:
        told: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and event.index == self._order.open and event.index in self._heads:
                told.append(self._grown(event))
                continue
            for one in self._order.sorted((event,)):
                if not isinstance(one, (TextDelta, InputDelta, ThinkingDelta)):
                    told += self._rest(one)
                elif one.index in self._heads:
                    told.append(self._grown(one))
                elif isinstance(one, ThinkingDelta):
                    told += self._begin_thinking(one)
        return b"".join(told)

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
            return self._delta(event.index, event.text, write(event.beside)[1:-1] + b",")
        return self._delta(event.index, event.text)

    def _delta(self, index: int, text: str, beside: bytes | None = None) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        between = self._betweens[index] if beside is None else beside
        return b'%b%b,%b"sequence_number":%d}\n\n' % (self._heads[index], write(text), between, number)

    def _event(self, name: str, **fields: object) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        kind = f"response.{name}"
        return server_sent(write({"type": kind, **fields, "sequence_number": number}), kind)

    def _head(self, name: str, **fields: object) -> bytes:
        kind = f"response.{name}"
        return server_sent(write({"type": kind, **fields})[:-1] + b',"delta":', kind)[:-2]

    # ---------------------------------------------------------------------------------------------------- the response

    def _opened(self, event: Opened) -> Iterator[bytes]:
        native = self._out.home(event.native)
        self._home = native is not None
        seed = (event.id or "", event.model or "", str(event.created or ""), str(self._asked))
        made = response_id(event.id, self._dialect, *seed)
        reply_id = event.id if self._home and event.id else made
        around = render_around(reply_id, event.created, event.model or self.model)
        kept: Mapping[str, Any] = native.fragment if native is not None else {}
        self._around = {**around, **{key: value for key, value in kept.items() if key not in REPLY_KEYS}}
        yield self._event("created", response=self._around)
        yield self._event("in_progress", response=self._around)

    def _finished(self, event: Finished) -> Iterator[bytes]:
        yield from self._close_message("incomplete" if status_of(event.finish) == "incomplete" else "completed")
        ending = render_ending(event.finish, event.cause if self._home else None)
        yield self._event(str(ending["status"]), response=self._response(ending))

    def _failed(self, error: ApiError) -> Iterator[bytes]:
        if not self._around:
            said = {"type": "error", "code": error.code or error.kind, "message": error.message, "param": error.param}
            yield server_sent(write({**said, "sequence_number": 0}), "error")
            return
        yield from self._close_message("incomplete")
        told = {"code": error.code or "server_error", "message": error.message}
        yield self._event("failed", response=self._response({"status": "failed", "error": told}))

    def _response(self, ending: JsonObject) -> JsonObject:
        usage = None if self._usage is None else render_usage(self._usage)
        return {**self._around, **ending, "output": self._output, "usage": usage}

    # ----------------------------------------------------------------------------------------------------------- items

    def _add(self, item_id: str, item: JsonObject) -> Iterator[bytes]:
        """Begins an item; the one that is open is `self._last`."""
        self._last = _Open(self._added, item_id, item)
        self._added += 1
        yield self._event("output_item.added", output_index=self._last.index, item=item)

    def _done(self, item: _Open, made: JsonObject) -> bytes:
        self._output.append(made)
        return self._event("output_item.done", output_index=item.index, item=made)

    def _made_id(self, prefix: str, index: int) -> str:
        return made_id(prefix, str(self._around.get("id")), str(index))

    def _waits(self, block: Block) -> bool:
        """Whether a block goes out in one piece: at home, where it is the item that it was from the first."""
        native = self._out.home(block.native)
        return self._home and (native is None or _is_whole(native.fragment))

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
                yield from self._end_call(begun, block, "".join(self._inputs.pop(index)))
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
            item_id = own_id or self._made_id("msg", index)
            bare: JsonObject = {"id": item_id, "type": "message", "role": "assistant"}
            yield from self._add(item_id, {**fragment, **bare, "status": "in_progress", "content": []})
            message = self._message = self._last
        at = {"item_id": message.id, "output_index": message.index, "content_index": len(message.parts)}
        name = "refusal" if block.refusal else "output_text"
        part = render_part(msgspec.structs.replace(block, text=""))
        yield self._event("content_part.added", **at, part=part)
        self._heads[index] = self._head(f"{name}.delta", **at)
        self._betweens[index] = b"" if block.refusal else b'"logprobs":[],'
        self._open[index] = message

    def _end_text(self, index: int, block: Text) -> Iterator[bytes]:
        if index not in self._open:
            yield from self._begin_text(index, block)
            yield self._delta(index, block.text)
        message = self._open.pop(index)
        at = {"item_id": message.id, "output_index": message.index, "content_index": len(message.parts)}
        part = self._part_of(block, message)
        given = part.get("annotations")
        for number, annotation in enumerate(cast("list[object]", given) if isinstance(given, list) else []):
            yield self._event("output_text.annotation.added", **at, annotation_index=number, annotation=annotation)
        if block.refusal:
            yield self._event("refusal.done", **at, refusal=block.text)
        else:
            yield self._event("output_text.done", **at, text=block.text, logprobs=part.get("logprobs") or [])
        yield self._event("content_part.done", **at, part=part)
        message.parts.append(part)

    def _part_of(self, block: Text, message: _Open) -> JsonObject:
        """The part of a message; at home as it stood there."""
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
            yield self._done(message, {**message.fragment, "id": message.id, "status": state, "content": message.parts})

    # ------------------------------------------------------------------------------------------------------- reasoning

    def _begin_thinking(self, event: ThinkingDelta) -> Iterator[bytes]:
        block = self._thinking.pop(event.index, None)
        if block is None:
            return
        yield from self._close_message("completed")
        native = self._out.home(block.native)
        fragment: Mapping[str, Any] = native.fragment if native is not None else {}
        item_id = string_or_none(fragment.get("id")) or self._made_id("rs", event.index)
        yield from self._add(item_id, {"id": item_id, "type": "reasoning", "summary": []})
        part, text, _, numbered, kind = _CONTENT if fragment.get("content") else _SUMMARY
        at = {"item_id": item_id, "output_index": self._last.index, numbered: 0}
        yield self._event(f"{part}.added", **at, part={"type": kind, "text": ""})
        self._heads[event.index] = self._head(f"{text}.delta", **at)
        self._betweens[event.index] = b""
        self._open[event.index] = self._last
        self._last.fragment = {"content": True} if fragment.get("content") else {}
        yield self._delta(event.index, event.text)

    def _end_thinking(self, begun: _Open, block: Thinking) -> Iterator[bytes]:
        part, text, listed, numbered, kind = _CONTENT if begun.fragment else _SUMMARY
        at = {"item_id": begun.id, "output_index": begun.index, numbered: 0}
        told = {"type": kind, "text": block.text}
        yield self._event(f"{text}.done", **at, text=block.text)
        yield self._event(f"{part}.done", **at, part=told)
        native = self._out.home(block.native)
        made: JsonObject = dict(native.fragment) if native is not None else {"type": "reasoning", "summary": []}
        if native is None:
            made[listed] = [told]
        yield self._done(begun, {"id": begun.id, **made, **({"id": begun.id} if native is not None else {})})

    # ----------------------------------------------------------------------------------------------------------- calls

    def _begin_call(self, index: int, call: ToolCall) -> Iterator[bytes]:
        yield from self._close_message("completed")
        bare = render_call(msgspec.structs.replace(call, arguments={}, arguments_text=None), self._out)
        item = self._named(bare, call, index)
        name, key = _INPUTS[item["type"]]
        item[key] = ""
        if item["type"] == "function_call":
            item["status"] = "in_progress"
        yield from self._add(item["id"], item)
        self._open[index] = self._last
        self._inputs[index] = []
        self._betweens[index] = b""
        self._heads[index] = self._head(f"{name}.delta", item_id=item["id"], output_index=self._last.index)

    def _named(self, item: JsonObject, call: ToolCall, index: int) -> JsonObject:
        native = self._out.home(call.native)
        own_id = string_or_none(native.fragment.get("id")) if native is not None else None
        prefix = "ctc" if item["type"] == "custom_tool_call" else "fc"
        return {"id": own_id or self._made_id(prefix, index), **{key: item[key] for key in item if key != "id"}}

    def _end_call(self, begun: _Open, call: ToolCall, text: str) -> Iterator[bytes]:
        name, key = _INPUTS[begun.fragment["type"]]
        native = self._out.home(call.native)
        kept = dict(native.fragment) if native is not None else {}
        item: JsonObject = {**kept, **begun.fragment, key: text}
        if item["type"] == "function_call":
            item["status"] = "incomplete" if call.broken else "completed"
        yield self._event(f"{name}.done", item_id=begun.id, output_index=begun.index, **{key: text})
        yield self._done(begun, item)

    # ------------------------------------------------------------------------------------------------------ whole items

    def _whole(self, index: int, block: Block) -> Iterator[bytes]:
        for item in self._items_of(index, block):
            yield from self._close_message("completed")
            yield from self._tell(item)

    def _items_of(self, index: int, block: Block) -> list[JsonObject]:
        """The items of a block; at home the one that it was, under the client's id and name of a call."""
        native = self._out.home(block.native)
        suffix = self._made_id("", index)
        state = "incomplete" if isinstance(block, ToolCall) and block.broken else "completed"
        if native is None or item_kind_or_none(cast("JsonObject", native.fragment)) is None:
            return render_item(block, suffix, state, self._out)
        item = cast("JsonObject", native.fragment)
        if isinstance(block, ToolResponse):
            embedded = is_embedded(block) and not HOSTED[item["type"]].alone
            return [] if embedded else [item]
        if isinstance(block, ToolCall) and block.kind != "hosted":
            return [relabelled(item, block, self._out)]
        return [item]

    def _tell(self, item: JsonObject) -> Iterator[bytes]:
        """An item that is there already, as if it had grown."""
        kind = item.get("type", "message")
        item_id = string_or_none(item.get("id")) or ""
        empty: JsonObject = {key: [] for key in ("content", "summary") if isinstance(item.get(key), list)}
        if kind in FUNCTIONS:
            empty[_INPUTS[kind][1]] = ""
        if item.get("status") is not None:
            empty["status"] = "in_progress"
        yield from self._add(item_id, {**item, **empty} if kind in ("message", "reasoning", *FUNCTIONS) else item)
        begun = self._last
        at = {"item_id": item_id, "output_index": begun.index}
        if kind in FUNCTIONS:
            name, key = _INPUTS[kind]
            given = item.get(key)
            text = given if isinstance(given, str) else "" if given is None else write_text(given)
            yield self._event(f"{name}.delta", **at, delta=text)
            yield self._event(f"{name}.done", **at, **{key: text})
        elif kind == "reasoning":
            yield from self._tell_parts(item, at, *_SUMMARY)
            yield from self._tell_parts(item, at, *_CONTENT)
        elif kind == "message":
            yield from self._tell_parts(
                item, at, "content_part", "output_text", "content", "content_index", "output_text"
            )
        yield self._done(begun, item)

    def _tell_parts(
        self, item: JsonObject, at: JsonObject, part: str, text: str, listed: str, numbered: str, kind: str
    ) -> Iterator[bytes]:
        given = item.get(listed)
        for number, entry in enumerate(cast("list[object]", given) if isinstance(given, list) else []):
            one = object_or_none(entry)
            if one is None or one.get("type") != kind or not isinstance(one.get("text"), str):
                continue
            place = {**at, numbered: number}
            yield self._event(f"{part}.added", **place, part={**one, "text": ""})
            beside: JsonObject = {"logprobs": []} if kind == "output_text" else {}
            yield self._event(f"{text}.delta", **place, delta=one["text"], **beside)
            yield self._event(f"{text}.done", **place, text=one["text"], **beside)
            yield self._event(f"{part}.done", **place, part=one)


def _is_whole(item: Mapping[str, Any]) -> bool:
    """Whether an item has its content already, or is of a type that does not grow."""
    kind = item_kind_or_none(cast("JsonObject", item)) or "message"
    if kind in _INPUTS:
        return bool(item.get(_INPUTS[kind][1]))
    if kind not in ("message", "reasoning"):
        return True
    listed = [item.get(key) for key in ("content", "summary")]
    parts = [part for given in listed if isinstance(given, list) for part in cast("list[object]", given)]
    return any((object_or_none(part) or {}).get(key) for part in parts for key in ("text", "refusal"))

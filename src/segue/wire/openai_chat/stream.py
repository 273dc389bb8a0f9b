"""Stream renderer: events to chat completion chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.ids import short_hash
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
from segue.wire.fields import JsonObject, object_or_none
from segue.wire.framing import server_sent
from segue.wire.openai_chat.calls import render_call
from segue.wire.openai_chat.dialect import ChatDialect, Spelling
from segue.wire.openai_chat.items import render_assistant
from segue.wire.openai_chat.reply import (
    for_client,
    render_finish,
    render_usage,
)
from segue.wire.openai_chat.stream_reader import ENVELOPE, SPOKEN, ChatReader, part
from segue.wire.stream_renderer import InOrder, StreamRenderer

__all__ = ["ChatReader", "ChatRenderer"]

_TAIL = b',"logprobs":null,"finish_reason":null}]}\n\n'


class ChatRenderer(StreamRenderer):
    """Events to chunks. Usage is sent if the client requested it, or in the last chunk if the vendor always does so."""

    def __init__(
        self, render_context: Projection, dialect: ChatDialect, model: str | None, asked: Request | None
    ) -> None:
        super().__init__(render_context, model)
        self._dialect = dialect
        self._out = Spelling(dialect, render_context)
        self._asked = asked
        self._head = b""
        self._envelope: JsonObject = {}
        self._around: Mapping[str, Any] = {}
        self._home = False
        self._calls: dict[int, int] = {}
        self._keys: dict[int, tuple[str, str]] = {}
        self._legacy: set[int] = set()
        self._held: set[int] = set()
        self._refusals: set[int] = set()
        self._parted = self._spoken = False
        self._usage: Usage | None = None
        self._order = InOrder()

    def render(self, events: Iterable[Event]) -> bytes:
        chunks: list[bytes] = []
        for event in events if self._dialect.streamed_calls else self._order.sorted(events):
            if isinstance(event, TextDelta):
                chunks.append(self._text(event))
            elif isinstance(event, InputDelta):
                if event.index not in self._held:
                    chunks.append(self._chunk(self._input(event)))
            elif isinstance(event, ThinkingDelta):
                chunks.append(self._chunk(self._thought(event.text)))
            else:
                chunks += self._rest(event)
        return b"".join(chunks)

    def _rest(self, event: Opened | Start | End | Whole | UsageTold | Finished | Failed) -> Iterable[bytes]:
        match event:
            case Opened():
                yield self._opened(event)
            case Start():
                if isinstance(event.block, ToolCall):
                    yield from self._begun(event.index, event.block)
                else:
                    self._note(event)
            case End():
                if event.index in self._held and isinstance(event.block, ToolCall):
                    yield from self._whole_call(event.index, event.block)
            case Whole():
                yield from self._whole(event.block)
            case UsageTold():
                self._usage = event.usage
            case Finished():
                yield from self._beside()
                yield from self._finished(event)
            case Failed():
                yield from self._beside()
                yield server_sent(write(self._error(event.error)))

    def _chunk(self, delta: JsonObject) -> bytes:
        return self._head + write(delta) + _TAIL

    def _opened(self, event: Opened) -> bytes:
        self._home = event.native is not None and event.native.api == self._dialect.name
        around: Mapping[str, Any] = event.native.fragment if self._home and event.native is not None else {}
        reply_id = event.id if self._home else None
        self._envelope = {
            "id": reply_id or "chatcmpl-" + short_hash(f"{event.id}|{event.model}"),
            "object": "chat.completion.chunk",
            "created": event.created or 0,
            "model": event.model or self.model,
        }
        known = ENVELOPE | self._envelope.keys()
        self._envelope.update({key: value for key, value in around.items() if key not in known})
        self._around = around
        self._head = b"data: " + write(self._envelope)[:-1] + b',"choices":[{"index":0,"delta":'
        return self._chunk({"role": "assistant", "content": ""})

    def _note(self, event: Start) -> None:
        if isinstance(event.block, Text) and event.block.refusal and self._dialect.refusals:
            self._refusals.add(event.index)
        if isinstance(event.block, Thinking):
            self._parted = True

    def _text(self, event: TextDelta) -> bytes:
        if event.index in self._refusals:
            return self._chunk({"refusal": event.text})
        text = event.text
        if self._parted:
            # Texts before and after another block become one string; a blank line separates them.
            text = f"\n\n{text}" if self._spoken and not self._home else text
            self._parted = False
        self._spoken = True
        if event.beside is not None and self._home:
            choice = {"index": 0, "delta": {"content": text}, **event.beside, "finish_reason": None}
            return server_sent(write({**self._envelope, "choices": [choice]}))
        return self._chunk({"content": text})

    def _thought(self, text: str) -> JsonObject:
        if self._dialect.reasoning_parts:
            return {"content": [part("thinking", text)]}
        return {self._dialect.reasoning_key or "reasoning_content": text}

    def _begun(self, index: int, call: ToolCall) -> Iterable[bytes]:
        self._parted = True
        if not self._dialect.streamed_calls or (call.kind == "custom" and not self._dialect.custom_tools):
            self._held.add(index)
            return
        name = self._out.spell(call.name)
        if self._is_old(call):
            self._legacy.add(index)
            yield self._chunk({"function_call": {"name": name, "arguments": ""}})
            return
        place = self._calls[index] = len(self._calls)
        key, field = self._keys[index] = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
        entry = {"index": place, "id": self.ids.render(call.id), "type": key, key: {"name": name, field: ""}}
        yield self._chunk({"tool_calls": [entry]})

    def _is_old(self, call: ToolCall) -> bool:
        """Whether this was a legacy `function_call`, which has no id."""
        own = self._home and self._dialect.old_calls and call.origin.provider == self._dialect.provider
        return own and call.origin.identity == "absent"

    def _input(self, event: InputDelta) -> JsonObject:
        if event.index in self._legacy:
            return {"function_call": {"arguments": event.text}}
        key, field = self._keys[event.index]
        return {"tool_calls": [{"index": self._calls[event.index], key: {field: event.text}}]}

    def _whole_call(self, index: int, call: ToolCall) -> Iterable[bytes]:
        if call.broken:
            self.report.add("dropped", f"incomplete call of {call.name} dropped: it was cut off", subject=call.name)
            return
        place = self._calls[index] = len(self._calls)
        yield self._chunk({"tool_calls": [{"index": place, **render_call(call, self._out)}]})

    def _whole(self, block: Block) -> Iterable[bytes]:
        self._parted = True
        message = render_assistant(for_client([block], self._out), self._out, None)
        message.pop("role")
        if message.get("content"):
            yield self._text(TextDelta(-1, str(message["content"])))

    def _beside(self) -> Iterable[bytes]:
        """Same-API: the unknown fields of the message (annotations, images, audio)."""
        choices = self._around.get("choices")
        first = object_or_none(cast("list[object]", choices)[0]) if isinstance(choices, list) and choices else None
        message = object_or_none((first or {}).get("message")) or {}
        if unknown := {key: value for key, value in message.items() if key not in SPOKEN and value not in (None, [])}:
            yield self._chunk(unknown)

    def _finished(self, event: Finished) -> Iterable[bytes]:
        reason = render_finish(event.finish, calls=bool(self._calls or self._legacy), broken=self._dialect.error_finish)
        if self._legacy and reason == "tool_calls":
            reason = "function_call"
        choice: JsonObject = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": reason}
        body: JsonObject = {**self._envelope, "choices": [choice]}
        usage = None if self._usage is None else render_usage(self._usage)
        if usage is not None and self._dialect.usage_at_end:
            body["usage"] = usage
        yield server_sent(write(body))
        if usage is not None and not self._dialect.usage_at_end and self._wants_usage():
            yield server_sent(write({**self._envelope, "choices": [], "usage": usage}))
        yield server_sent(b"[DONE]")

    def _wants_usage(self) -> bool:
        """Whether the client requested usage; clients of other APIs always get it."""
        native = self._asked.native if self._asked is not None else None
        if native is None or native.api != self._dialect.name:
            return True
        return bool((object_or_none(native.fragment.get("stream_options")) or {}).get("include_usage"))

    def _error(self, error: ApiError) -> JsonObject:
        return self._dialect.render_error(error)

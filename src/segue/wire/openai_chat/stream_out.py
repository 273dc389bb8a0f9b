"""Stream renderer: events to chat completion chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.ids import short_hash
from segue.canonical.json import encode_json
from segue.wire.base import ApiError, RenderContext
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.openai_chat.dialect import ChatContext, ChatDialect
from segue.wire.openai_chat.items import render_call
from segue.wire.openai_chat.messages import render_assistant
from segue.wire.openai_chat.reply import ID_PREFIX, blocks_for_client, render_finish, render_usage
from segue.wire.openai_chat.stream_in import MODELLED_DELTA_FIELDS, PER_CHUNK_FIELDS, text_part
from segue.wire.stream.events import Delta, Event, Finished, InputDelta, ReplyStart, TextDelta, ThinkingDelta
from segue.wire.stream.framing import encode_sse
from segue.wire.stream.render import DeltaFormat, StreamRenderer

_DELTA_TAIL = b',"logprobs":null,"finish_reason":null}]}\n\n'


class ChatRenderer(StreamRenderer):
    """Events to chunks. Usage is sent if the client requested it, or in the last chunk if the vendor always does so."""

    def __init__(self, render_context: RenderContext, model: str | None, dialect: ChatDialect) -> None:
        super().__init__(render_context, model)
        self.api = dialect.name
        self._dialect = dialect
        self._wire_context = ChatContext(dialect, render_context, is_reply=True)
        self._request = render_context.request
        self._head = b""
        self._envelope: JsonObject = {}
        self._call_numbers: dict[int, int] = {}
        self._call_keys: dict[int, tuple[str, str]] = {}
        self._legacy_calls: set[int] = set()
        self._held_calls: set[int] = set()
        self._whole_calls: list[JsonObject] = []
        self._refusals: set[int] = set()
        self._needs_separator = self._has_text = False
        self._has_thought = self._thought_ended = False

    def render(self, events: Iterable[Event]) -> bytes:
        chunks: list[bytes] = []
        for event in events if self._dialect.streamed_calls else self.order.reorder(events):
            if isinstance(event, TextDelta):
                chunks.append(self._render_text(event))
            elif isinstance(event, InputDelta):
                if event.index not in self._held_calls:
                    chunks.append(self._render_chunk(self._arguments_delta(event)))
            elif isinstance(event, ThinkingDelta):
                chunks.append(self._render_chunk(self._reasoning_delta(self._join_thought(event.text))))
            else:
                chunks += self.render_event(event)
        return b"".join(chunks)

    def open_run(self, delta: Delta) -> DeltaFormat | None:
        index = delta.index
        if not self._dialect.streamed_calls and index != self.order.current:
            return None
        match delta:
            case TextDelta():
                key = "refusal" if index in self._refusals else "content"
                return DeltaFormat.from_function(lambda text: self._render_chunk({key: text}))
            case ThinkingDelta():
                return DeltaFormat.from_function(lambda text: self._render_chunk(self._reasoning_delta(text)))
            case InputDelta() if index not in self._held_calls:
                return DeltaFormat.from_function(
                    lambda text: self._render_chunk(self._arguments_delta(InputDelta(index, text)))
                )
            case _:
                return None

    def _render_chunk(self, delta: JsonObject) -> bytes:
        return self._head + encode_json(delta) + _DELTA_TAIL

    def render_reply_start(self, event: ReplyStart) -> Iterable[bytes]:
        reply_id = event.id if self.same_api or (event.id or "").startswith(ID_PREFIX) else None
        self._envelope = {
            "id": reply_id or ID_PREFIX + short_hash(f"{event.id}|{event.model}"),
            "object": "chat.completion.chunk",
            "created": event.created or 0,
            "model": event.model or self.model,
        }
        used_keys = PER_CHUNK_FIELDS | self._envelope.keys()
        self._envelope.update({key: value for key, value in self.response_fields.items() if key not in used_keys})
        self._head = b"data: " + encode_json(self._envelope)[:-1] + b',"choices":[{"index":0,"delta":'
        yield self._render_chunk({"role": "assistant", "content": ""})

    def render_block_start(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]:
        if isinstance(block, ToolCall):
            return self._render_call_start(index, block)
        if isinstance(block, Thinking):
            self._needs_separator = True
            self._thought_ended = self._has_thought
        elif block.refusal and self._dialect.refusals:
            self._refusals.add(index)
        return ()

    def render_block_end(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]:
        if index in self._held_calls and isinstance(block, ToolCall):
            return self._render_whole_call(index, block)
        return ()

    def _join_thought(self, text: str) -> str:
        """Return the text of reasoning, on a line of its own after earlier reasoning, as in a whole reply."""
        if self._thought_ended and text and not (self.same_api or self._dialect.reasoning_parts):
            text = f"\n{text}"
        if text:
            self._has_thought, self._thought_ended = True, False
        return text

    def _render_text(self, event: TextDelta) -> bytes:
        if event.index in self._refusals:
            return self._render_chunk({"refusal": event.text})
        text = event.text
        if self._needs_separator:
            # Texts before and after another block become one string; a blank line separates them.
            text = f"\n\n{text}" if self._has_text and not self.same_api else text
            self._needs_separator = False
        self._has_text = True
        if event.extras is not None and self.same_api:
            choice = {"index": 0, "delta": {"content": text}, **event.extras, "finish_reason": None}
            return encode_sse(encode_json({**self._envelope, "choices": [choice]}))
        return self._render_chunk({"content": text})

    def _reasoning_delta(self, text: str) -> JsonObject:
        if self._dialect.reasoning_parts:
            return {"content": [text_part("thinking", text)]}
        return {self._dialect.reasoning_key or "reasoning_content": text}

    def _render_call_start(self, index: int, call: ToolCall) -> Iterable[bytes]:
        self._needs_separator = True
        if not self._dialect.streamed_calls or (call.kind == "custom" and not self._dialect.custom_tools):
            self._held_calls.add(index)
            return
        name = self._wire_context.project_name(call.name)
        if self._is_legacy(call):
            self._legacy_calls.add(index)
            yield self._render_chunk({"function_call": {"name": name, "arguments": ""}})
            return
        number = self._call_numbers[index] = len(self._call_numbers)
        key, field = self._call_keys[index] = (
            ("custom", "input") if call.kind == "custom" else ("function", "arguments")
        )
        entry = {"index": number, "id": self.ids.render(call.id), "type": key, key: {"name": name, field: ""}}
        yield self._render_chunk({"tool_calls": [entry]})

    def _is_legacy(self, call: ToolCall) -> bool:
        """Return whether this was a legacy `function_call`, which has no id."""
        is_own = self.same_api and self._dialect.legacy_calls and call.origin.provider == self._dialect.provider
        return is_own and call.origin.identity == "absent"

    def _arguments_delta(self, event: InputDelta) -> JsonObject:
        if event.index in self._legacy_calls:
            return {"function_call": {"arguments": event.text}}
        key, field = self._call_keys[event.index]
        return {"tool_calls": [{"index": self._call_numbers[event.index], key: {field: event.text}}]}

    def _render_whole_call(self, index: int, call: ToolCall) -> Iterable[bytes]:
        if call.broken:
            self.report.add("dropped", f"incomplete call of {call.name} dropped: it was cut off", subject=call.name)
            return
        number = self._call_numbers[index] = len(self._call_numbers)
        self._whole_calls.append({"index": number, **render_call(call, self._wire_context)})
        if self._dialect.streamed_calls:
            yield from self._render_whole_calls()

    def _render_whole_calls(self) -> Iterable[bytes]:
        # MIS-16: all calls of a reply are in one delta; clients number them by their place in it.
        calls, self._whole_calls = self._whole_calls, []
        if calls:
            yield self._render_chunk({"tool_calls": calls})

    def render_block(self, block: Block) -> Iterable[bytes]:
        self._needs_separator = True
        message = render_assistant(blocks_for_client([block], self._wire_context), self._wire_context, None)
        message.pop("role")
        if message.get("content"):
            yield self._render_text(TextDelta(-1, str(message["content"])))

    def _render_unknown_fields(self) -> Iterable[bytes]:
        """Render the unknown fields of a same-API message (annotations, images, audio)."""
        choices = self.response_fields.get("choices")
        first = object_or_none(cast("list[object]", choices)[0]) if isinstance(choices, list) and choices else None
        message = object_or_none((first or {}).get("message")) or {}
        if unknown := {
            key: value for key, value in message.items() if key not in MODELLED_DELTA_FIELDS and value not in (None, [])
        }:
            yield self._render_chunk(unknown)

    def render_finish(self, event: Finished) -> Iterable[bytes]:
        yield from self._render_whole_calls()
        yield from self._render_unknown_fields()
        reason = render_finish(
            event.finish,
            has_calls=bool(self._call_numbers or self._legacy_calls),
            error_reason=self._dialect.error_finish,
        )
        if self._legacy_calls and reason == "tool_calls":
            reason = "function_call"
        choice: JsonObject = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": reason}
        body: JsonObject = {**self._envelope, "choices": [choice]}
        usage = None if self.usage is None else render_usage(self.usage)
        if usage is not None and self._dialect.usage_at_end:
            body["usage"] = usage
        yield encode_sse(encode_json(body))
        if usage is not None and not self._dialect.usage_at_end and self._includes_usage():
            yield encode_sse(encode_json({**self._envelope, "choices": [], "usage": usage}))
        yield encode_sse(b"[DONE]")

    def _includes_usage(self) -> bool:
        """Return whether the client requested usage; clients of other APIs always get it."""
        native = self._request.native if self._request is not None else None
        if native is None or native.api != self._dialect.name:
            return True
        return bool((object_or_none(native.fragment.get("stream_options")) or {}).get("include_usage"))

    def render_error(self, error: ApiError) -> Iterable[bytes]:
        yield encode_sse(encode_json(self._dialect.render_error(error)))

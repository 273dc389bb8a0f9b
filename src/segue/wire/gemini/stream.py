"""Stream renderer: events to `GenerateContentResponse` chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from segue.canonical.blocks import Block, Thinking, ToolCall
from segue.canonical.jsontext import write
from segue.canonical.request import Usage
from segue.models import identify
from segue.wire.base import Projection
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
from segue.wire.framing import server_sent
from segue.wire.gemini.fields import (
    JsonObject,
    look,
)
from segue.wire.gemini.items import API, render_parts, signs_the_next
from segue.wire.gemini.reply import (
    first_signature,
    for_client,
    lacks_signature,
    render_error,
    render_finish,
    render_usage,
    speaks,
)
from segue.wire.gemini.spelling import Spelling
from segue.wire.gemini.stream_reader import NOT_AROUND, GeminiReader
from segue.wire.stream_renderer import InOrder, StreamRenderer

__all__ = ["GeminiReader", "GeminiRenderer"]

_TEXT_HEAD = b'data: {"candidates":[{"content":{"parts":[{"text":'


class GeminiRenderer(StreamRenderer):
    """Events to chunks. Calls are sent whole (GEM-25), the last ones in the final chunk: clients would send back an
    empty text that follows a call."""

    def __init__(self, render_context: Projection, model: str | None) -> None:
        super().__init__(render_context, model)
        self._out = Spelling(render_context, identify(None))
        self._order = InOrder()
        self._around: JsonObject = {}
        self._home = False
        self._tails: dict[bool, bytes] = {}
        self._growing: dict[int, bytes] = {}
        self._signature: Thinking | None = None
        self._called = False
        self._kept: list[JsonObject] = []
        self._spoken = False
        self._usage: Usage | None = None

    def render(self, events: Iterable[Event]) -> bytes:
        chunks: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and event.index == self._order.open:
                self._grow(event, chunks)
                continue
            for one in self._order.sorted((event,)):
                if isinstance(one, (TextDelta, ThinkingDelta, InputDelta)):
                    self._grow(one, chunks)
                else:
                    chunks += self._rest(one)
        return b"".join(chunks)

    def _grow(self, event: TextDelta | ThinkingDelta | InputDelta, chunks: list[bytes]) -> None:
        tail = self._growing.get(event.index)
        if tail is not None and event.text:
            if self._kept:
                chunks.append(self._flushed())
            self._spoken = True
            chunks.append(b"%b%b%b" % (_TEXT_HEAD, write(event.text), tail))

    def _rest(self, event: Opened | Start | End | Whole | UsageTold | Finished | Failed) -> Iterable[bytes]:
        match event:
            case Opened():
                self._opened(event)
            case Start():
                self._start(event)
            case End():
                grown = self._growing.pop(event.index, None) is not None
                # Reasoning without text is rendered here only to report that it was dropped.
                if not grown or (isinstance(event.block, Thinking) and not event.block.text):
                    return self._whole(event.block)
            case Whole():
                return self._whole(event.block)
            case UsageTold():
                self._usage = event.usage
            case Finished():
                return self._finished(event)
            case Failed():
                return [self._flushed(), server_sent(write(render_error(event.error)))]
        return ()

    def _opened(self, event: Opened) -> None:
        native = event.native if event.native is not None and event.native.api == API else None
        self._home = native is not None
        model = event.model or self.model
        around = {**({"modelVersion": model} if model else {}), **({"responseId": event.id} if event.id else {})}
        kept: Mapping[str, Any] = native.fragment if native is not None else {}
        self._around = {**around, **{key: value for key, value in kept.items() if key not in NOT_AROUND}}
        behind = write(self._around)[1:]
        behind = (b"," if len(behind) > 1 else b"") + behind
        content = b'}],"role":"model"},"index":0}]' + behind + b"\n\n"
        self._tails = {False: content, True: b',"thought":true' + content}

    def _chunk(self, candidate: JsonObject, **beside: object) -> bytes:
        return server_sent(write({"candidates": [candidate], **beside, **self._around}))

    def _flushed(self) -> bytes:
        parts, self._kept = self._kept, []
        return self._chunk({"content": {"parts": parts, "role": "model"}, "index": 0}) if parts else b""

    def _start(self, event: Start) -> None:
        """Same-API blocks that were not streamed, signed blocks and calls are sent whole; others as deltas."""
        block = event.block
        if isinstance(block, ToolCall) or self._signature is not None:
            return
        own = self._home or (isinstance(block, Thinking) and block.origin.provider == API)
        if not own or (block.native is not None and not block.native.fragment):
            self._growing[event.index] = self._tails[isinstance(block, Thinking)]

    def _whole(self, block: Block) -> Iterator[bytes]:
        if isinstance(block, ToolCall) and block.broken:
            self.report.add("dropped", f"incomplete call of {block.name} dropped: it was cut off", subject=block.name)
            return
        for one in [block] if self._home else for_client(block, self.projection):
            if isinstance(one, Thinking) and signs_the_next(one):
                yield from self._parts([])
                self._signature = one
                continue
            if isinstance(one, ToolCall) and one.kind != "hosted":
                first = not self._called and not self._home
                if first and self._signature is None and lacks_signature(one):
                    self._signature = first_signature()
                self._called = True
            yield from self._parts([one])

    def _parts(self, blocks: list[Block]) -> Iterator[bytes]:
        """Queue the parts of these blocks, the first one signed; they are sent with the next block or the end."""
        signature, self._signature = self._signature, None
        parts = render_parts([*([signature] if signature is not None else []), *blocks], self._out)
        if parts:
            if self._kept:
                yield self._flushed()
            self._kept = parts
            self._spoken = True

    def _finished(self, event: Finished) -> Iterator[bytes]:
        yield from self._parts([])
        parts, self._kept = self._kept, []
        usage: JsonObject = {} if self._usage is None else {"usageMetadata": render_usage(self._usage)}
        cause = event.cause if self._home else None
        if self._home and cause is None and not self._spoken and look(self._around, "promptFeedback"):
            yield server_sent(write({**usage, **self._around}))
            return
        candidate: JsonObject = {"finishReason": render_finish(event.finish, cause), "index": 0}
        if parts or self._spoken or speaks(event.finish):
            # The vendor's client treats a chunk without content as a failed reply.
            candidate = {"content": {"parts": parts or [{"text": ""}], "role": "model"}, **candidate}
        yield self._chunk(candidate, **usage)

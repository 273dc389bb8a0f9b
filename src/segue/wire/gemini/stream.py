"""Streams of Gemini: chunks, each a `GenerateContentResponse` of its own, ⇄ events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.jsontext import plain, read_object, write, write_text
from segue.canonical.request import Reply, Usage
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
    both,
    int_at,
    items_of,
    look,
    object_at,
    object_of,
    object_or_none,
    spelled,
    text_at,
)
from segue.wire.gemini.hosted import origin_of
from segue.wire.gemini.items import API, parse_parts, render_parts, signs_the_next
from segue.wire.gemini.reply import (
    first_signature,
    for_client,
    parse_error,
    parse_reply,
    render_error,
    render_finish,
    render_usage,
    seconds_of,
    speaks,
)
from segue.wire.gemini.spelling import Spelling
from segue.wire.gemini.stream_parts import GrowingCall, Run
from segue.wire.stream import ENDED_EARLY, InOrder, Reader, StreamRenderer, with_calls_told

__all__ = ["GeminiReader", "GeminiRenderer"]

_COUNTS = both("usageMetadata")
_GROWS = frozenset({"text", "thought"})
_NOT_AROUND = frozenset({*both("candidates", "usageMetadata"), "error"})
_PARTIAL = both("args", "partialArgs", "willContinue")


# ------------------------------------------------------------------------------------------------------------- reading


class GeminiReader(Reader):
    """Chunks to events. A text goes on where a chunk begins with one of the kind that the last chunk ended with; what
    is signed, or says more than text, is a part of its own (GEM-21, GEM-25)."""

    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._around: JsonObject = {}
        self._candidate: JsonObject | None = None
        self._content: JsonObject | None = None
        self._parts: list[JsonObject] = []
        self._told: dict[int, list[ToolCall]] = {}
        self._run: Run | None = None
        self._call: GrowingCall | None = None
        self._padding: JsonObject | None = None
        self._named: dict[str, JsonObject] = {}
        self._repeats = False
        self._others: set[int] = set()

    def read(self, payload: JsonObject, name: str | None) -> None:
        self._catch_up()
        if payload.get("error"):
            self.failed = self.failed or parse_error(0, plain(payload) if self.halves else payload)
            return
        if "candidates" not in payload and (inner := object_or_none(payload.get("response"))) is not None:
            payload = inner
        for key, value in payload.items():
            if key != "candidates" and value is not None:
                self._around[key] = plain(value) if self.halves else value
        candidates = payload.get("candidates")
        if self._run is not None and (text := _more_words(candidates, self._run.thought)):
            self._run.say(text)
            if self._run.settled:
                self.expect("text", text, self._run.more)
            return
        candidates = (
            cast("list[object]", candidates) if isinstance(candidates, list) else items_of(candidates, "candidates")
        )
        if not self.opened and (candidates or object_at(payload, "promptFeedback")):
            self._open()
        for place, value in enumerate(candidates):
            candidate = object_or_none(value)
            index = int_at(candidate, "index") if candidate is not None else None
            index = place if index is None else index
            if candidate is not None and index == 0:
                self._read_candidate(candidate)
            elif index > 0:
                self._others.add(index)

    def _catch_up(self) -> None:
        """The counts of the last chunk, where only its text was read."""
        if self.alike is not None and self.alike.last:
            last = read_object(self.alike.last)[0]
            self._around.update({key: value for key, value in last.items() if key in _COUNTS and value is not None})
            self.alike.last = b""

    def _open(self) -> None:
        said = self._around
        around = {key: value for key, value in said.items() if key not in _NOT_AROUND}
        created = seconds_of(text_at(said, "createTime"))
        model = text_at(said, "modelVersion")
        self.open(text_at(said, "responseId"), model, created, Native(API, around, intact=False))

    def _read_candidate(self, candidate: JsonObject) -> None:
        if self._candidate is None:
            self._candidate = {}
        for key, value in candidate.items():
            if key != "content" and value is not None:
                self._candidate[key] = plain(value) if self.halves else value
        content = object_or_none(candidate.get("content"))
        if content is None:
            return
        if self._content is None:
            self._content = {}
        for key, value in content.items():
            if key != "parts" and value is not None:
                self._content[key] = plain(value) if self.halves else value
        parts = content.get("parts")
        goes_on = True
        for part in cast("list[object]", parts) if isinstance(parts, list) else items_of(parts, "parts"):
            self._read_part(object_of(part, "parts"), goes_on)
            goes_on = False

    def _read_part(self, part: JsonObject, goes_on: bool) -> None:
        text = part.get("text")
        if isinstance(text, str) and _GROWS.issuperset(part):
            self._say(text, part.get("thought") is True, goes_on)
            return
        self._end_run()
        part = plain(part) if self.halves else part
        inner = object_or_none(look(part, "functionCall"))
        if inner is not None and self._read_piece(part, inner):
            return
        if self._is_told(part):
            return
        self._told[len(self._parts)] = [
            told
            for block in parse_parts([part], text_at(self._around, "modelVersion"))[0]
            if isinstance(told := self.tell_block(block), ToolCall)
        ]
        self._parts.append(part)

    def _is_told(self, part: JsonObject) -> bool:
        """Whether this came before: under the same id, or in a stream that repeats everything."""
        if self._repeats:
            return part in self._parts
        call_id = text_at(object_at(part, "functionCall"), "id")
        if not call_id:
            return False
        known = self._named.setdefault(call_id, part)
        return known is not part and known == part

    # ------------------------------------------------------------------------------------------------------------ text

    def _say(self, text: str, thought: bool, goes_on: bool) -> None:
        run = self._run
        if run is None or run.thought is not thought or not goes_on:
            self._end_run()
            if not text:
                self._padding = _text_part(text, thought)
                return
            if self._repeats and _text_part(text, thought) in self._parts:
                return
            block = Thinking(origin=self._origin(), native=_BEGUN) if thought else Text("", native=_BEGUN)
            run = self._run = Run(self, self.start(block), thought=thought, repeats=False)
        run.say(text)

    def _origin(self) -> Origin:
        return Origin(API, text_at(self._around, "modelVersion"), identity="absent")

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        part = _text_part(run.end(), run.thought)
        self._repeats = self._repeats or run.repeats
        self._parts.append(part)
        native = Native(API, part)
        text = part["text"]
        block = Thinking(text, origin=self._origin(), native=native) if run.thought else Text(text, native=native)
        self.end(run.place, block)

    # ------------------------------------------------------------------------------------------------- calls in pieces

    def _read_piece(self, part: JsonObject, inner: JsonObject) -> bool:
        """Whether this is a piece of a call and not a whole one."""
        growing = self._call
        if growing is not None and not growing.goes_on_with(inner):
            self._end_call(ended=False)
            growing = None
        if growing is None:
            if look(inner, "willContinue") is not True and look(inner, "partialArgs") is None:
                return False
            growing = self._call = self._begin_call(part, inner)
        growing.fragment = {**part, **growing.fragment}
        growing.take(inner)
        if look(inner, "willContinue") is not True:
            self._end_call(ended=True)
        return True

    def _begin_call(self, part: JsonObject, inner: JsonObject) -> GrowingCall:
        if signature := text_at(part, "thoughtSignature"):
            self.tell_block(Thinking(signature=signature, origin=self._origin()))
        origin = origin_of(inner, text_at(self._around, "modelVersion"))
        call = self.named(ToolCall(text_at(inner, "name") or "", origin=origin))
        self._parts.append({})
        return GrowingCall(call, self.start(call), len(self._parts) - 1, part)

    def _end_call(self, *, ended: bool) -> None:
        growing, self._call = self._call, None
        if growing is None:
            return
        given = growing.fragment
        inner = {key: value for key, value in object_at(given, "functionCall").items() if key not in _PARTIAL}
        part = {**given, spelled(given, "functionCall"): {**inner, "args": growing.arguments}}
        self._parts[growing.at] = part
        text = write_text(growing.arguments)
        self.input(growing.place, text)
        call = msgspec.structs.replace(growing.call, arguments=growing.arguments, native=Native(API, part))
        if not ended:
            call = msgspec.structs.replace(call, arguments=None, arguments_text=text, broken=True)
        self._told[growing.at] = [call]
        self.end(growing.place, call)

    # ---------------------------------------------------------------------------------------------------------- the end

    def finish(self) -> Reply:
        self._catch_up()
        self._end_run()
        reason = look(self._candidate or {}, "finishReason")
        blocked = self._candidate is None and bool(object_at(self._around, "promptFeedback"))
        if reason is None and not blocked and not self.done and self.failed is None:
            self.failed = ENDED_EARLY
        self._end_call(ended=False)
        told = [call for _, calls in sorted(self._told.items()) for call in calls]
        reply = with_calls_told(parse_reply(self._body()), told)
        return self.concluded(msgspec.structs.replace(reply, others=len(self._others)))

    def _body(self) -> JsonObject:
        """The answer as it would have come at once. An empty text says nothing beside others."""
        if self._candidate is None:
            return {"candidates": [{}], **self._around} if self._others else self._around
        candidate = self._candidate
        parts = self._parts or ([self._padding] if self._padding is not None else [])
        if self._content is not None:
            content = {**self._content, "parts": parts} if parts else self._content
            candidate = {"content": content, **candidate}
        return {"candidates": [candidate], **self._around}


_USUAL = frozenset({"content", "index"})


def _more_words(candidates: object, thought: bool) -> str | None:
    """The text of a chunk that says nothing but how a text of this kind goes on, as most do."""
    candidate = _only(candidates)
    if candidate is None or not _USUAL.issuperset(candidate) or candidate.get("index"):
        return None
    content = object_or_none(candidate.get("content"))
    part = _only(content.get("parts")) if content is not None else None
    if part is None or len(part) != 1 + thought or (thought and part.get("thought") is not True):
        return None
    text = part.get("text")
    return text if isinstance(text, str) else None


def _only(value: object) -> JsonObject | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return object_or_none(items[0]) if len(items) == 1 else None


# What a text that grows begins with: nothing but that this API says it.
_BEGUN = Native(API, {}, intact=False)


def _text_part(text: str, thought: bool) -> JsonObject:
    return {"text": text, "thought": True} if thought else {"text": text}


# ------------------------------------------------------------------------------------------------------------- writing

_TEXT_HEAD = b'data: {"candidates":[{"content":{"parts":[{"text":'


class GeminiRenderer(StreamRenderer):
    """Events to chunks. Calls go out whole (GEM-25), the last ones together with the end: an empty text behind a call
    would be sent back by clients."""

    def __init__(self, projection: Projection, model: str | None) -> None:
        super().__init__(projection, model)
        self._out = Spelling(projection, identify(None))
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
        told: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and event.index == self._order.open:
                self._grow(event, told)
                continue
            for one in self._order.sorted((event,)):
                if isinstance(one, (TextDelta, ThinkingDelta, InputDelta)):
                    self._grow(one, told)
                else:
                    told += self._rest(one)
        return b"".join(told)

    def _grow(self, event: TextDelta | ThinkingDelta | InputDelta, told: list[bytes]) -> None:
        tail = self._growing.get(event.index)
        if tail is not None and event.text:
            if self._kept:
                told.append(self._flushed())
            self._spoken = True
            told.append(b"%b%b%b" % (_TEXT_HEAD, write(event.text), tail))

    def _rest(self, event: Opened | Start | End | Whole | UsageTold | Finished | Failed) -> Iterable[bytes]:
        match event:
            case Opened():
                self._opened(event)
            case Start():
                self._start(event)
            case End():
                grown = self._growing.pop(event.index, None) is not None
                # Of reasoning without words it is told that it was left out.
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
        self._around = {**around, **{key: value for key, value in kept.items() if key not in _NOT_AROUND}}
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
        """What is at home here, and did not grow there, goes out in one piece; so does what is signed, and a call."""
        block = event.block
        if isinstance(block, ToolCall) or self._signature is not None:
            return
        own = self._home or (isinstance(block, Thinking) and block.origin.provider == API)
        if not own or (block.native is not None and not block.native.fragment):
            self._growing[event.index] = self._tails[isinstance(block, Thinking)]

    def _whole(self, block: Block) -> Iterator[bytes]:
        if isinstance(block, ToolCall) and block.broken:
            self.report.add("dropped", f"the call of {block.name} was cut off: left out", subject=block.name)
            return
        for one in [block] if self._home else for_client(block, self.projection):
            if isinstance(one, Thinking) and signs_the_next(one):
                yield from self._parts([])
                self._signature = one
                continue
            calls = isinstance(one, ToolCall) and one.kind != "hosted"
            if calls and not self._called and not self._home and self._signature is None:
                self._signature = first_signature()
            self._called = self._called or calls
            yield from self._parts([one])

    def _parts(self, blocks: list[Block]) -> Iterator[bytes]:
        """Parts of these blocks, the first of them signed; they wait for what comes behind them."""
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
            # The vendor's client takes a chunk without content for a reply that failed.
            candidate = {"content": {"parts": parts or [{"text": ""}], "role": "model"}, **candidate}
        yield self._chunk(candidate, **usage)
